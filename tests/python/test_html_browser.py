"""The page of `homing report --html` in Chromium: the numbers that it shows, its links and keys, widths,
print, accessibility, and a large run. Needs Chromium (group `all` of tools/packages.tsv)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homing.bench import report as bench
from homing.bench.browser import CHROMIUM, Browser, browser
from homing.bench.results import Results
from homing.report.html import page
from homing.report.json import to_json
from homing.report.results import read_results
from tests.places import TREE
from tests.python.large_record import large_run, page_map
from tests.python.record_writer import RecordWriter, four_node_run

pytestmark = [pytest.mark.full, pytest.mark.skipif(not CHROMIUM, reason="no Chromium")]

WIDTHS = (390, 1280, 2560)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def mapped_run() -> RecordWriter:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 0)])
    page_map(writer, 1, 3, [(250 * at, at) for at in range(4)])
    words = writer.text("BLOCK over 8 threads")
    writer.row("distribution", area=1, iteration=3, family=1, words=words, known=99)
    for thread in range(8):
        writer.row("sample", area=1, granule=125 * thread, thread=100 + thread, node=thread // 2, weight=1)
    return writer


def write(writer: RecordWriter, folder: Path) -> tuple[Path, dict[str, Any]]:
    results = read_results([str(writer.write(folder / "a.homing"))])
    path = folder / "a.html"
    path.write_text(page(results), encoding="utf-8")
    return path, to_json(results)["processes"][0]


def text_of(tab: Browser, selector: str) -> str:
    found = tab.run(f"document.querySelector({json.dumps(selector)}).innerText")
    assert isinstance(found, str)
    return " ".join(found.split())


def test_numbers_of_the_page_are_those_of_json(tab: Browser, tmp_path: Path) -> None:
    path, run = write(mapped_run(), tmp_path)
    tab.view(1280)
    tab.open(path)
    assert f"{run['moved_pages']} pages" in text_of(tab, ".numbers")
    before, after = (100 * run["remote_fraction"][end] for end in ("before", "after"))
    assert f"{before:.0f} % → {after:.1f} %" in text_of(tab, ".figure .value")
    rows = tab.run("[...document.querySelectorAll('.area .name')].map(one => one.innerText)")
    assert rows == [area["title"] for area in run["areas"]]
    assert f"{run['areas'][0]['moved_pages']} pages" in text_of(tab, ".detail .facts")
    counts = tab.run("[...document.querySelectorAll('.timeline td')].map(one => one.innerText)")
    assert str(run["regions"][0]["count"]) in counts
    assert len(tab.run("[...document.querySelectorAll('.machine tbody th')].map(one => one.innerText)")) == 8
    assert not tab.problems


def test_processes_have_an_arrow_where_something_moved(tab: Browser, tmp_path: Path) -> None:
    paths = []
    for rank, (before, after) in enumerate([(0.75, 0.01), (0.7, 0.7), (0.5, 0.5001)]):
        writer = four_node_run(rank=rank)
        writer.sample(1, before=before, after=after, granules=400, time=0.7)
        paths.append(str(writer.write(tmp_path / str(rank))))
    (tmp_path / "page.html").write_text(page(read_results(paths)), encoding="utf-8")
    tab.open(tmp_path / "page.html")
    cells = "[...document.querySelectorAll('.verdict tbody td:last-child')].map(one => one.innerText)"
    assert tab.run(cells) == ["75 → 1.0 %", "70 %", "50 %"]
    assert not tab.problems


def test_iterations_without_rows_are_not_denied(tab: Browser, tmp_path: Path) -> None:
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    writer.row("iteration", number=0, time=0.1, seconds=0.1, state=2, basis=6, regions=3)
    writer.row("progress", iterations=57)
    writer.row("end", time=6.0, iterations=58, period=3)
    path, run = write(writer, tmp_path)
    assert run["iterations"]["count"] == 57
    tab.open(path)
    text = text_of(tab, ".timeline")
    assert "No iteration has a row in the record; 57 ran while homing was at rest" in text
    assert "No outer iteration" not in text
    assert not tab.problems


def test_matrix_is_the_sum_of_the_sampled_references(tab: Browser, tmp_path: Path) -> None:
    path, _ = write(mapped_run(), tmp_path)
    tab.open(path)
    cells = tab.run("[...document.querySelectorAll('.matrix td')].map(one => parseFloat(one.innerText) || 0)")
    # 400 before the moves, all of node 0's pages; 400 after, a hundredth of them remote.
    for at, shown in enumerate(cells):
        thread, home = at // 4, at % 4
        sampled = (100 if home == 0 else 0) + (99 if home == thread else 1 / 3)
        assert shown == pytest.approx(sampled / 8, abs=0.6)


def test_what_is_selected_is_selected_everywhere(tab: Browser, tmp_path: Path) -> None:
    path, run = write(mapped_run(), tmp_path)
    tab.open(path)
    tab.run("document.body.focus()")
    tab.press("j")
    title = run["areas"][1]["title"]
    assert text_of(tab, ".detail h3") == title
    assert title in text_of(tab, ".chips")
    tab.press("]")
    assert "iteration 1" in text_of(tab, ".chips")
    assert "area=1" in tab.run("location.hash") and "iteration=1" in tab.run("location.hash")
    tab.run("document.getElementById('filter').value = 'MAIN_mem'")
    tab.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    tab.drawn()
    assert tab.run("document.querySelectorAll('.area').length") == 1
    tab.press("Escape")
    assert not tab.problems


def test_map_is_zoomed_by_keys(tab: Browser, tmp_path: Path) -> None:
    path, _ = write(mapped_run(), tmp_path)
    tab.open(path)
    all_of_it = text_of(tab, ".axis")
    tab.run("document.getElementById('map').focus()")
    tab.press("+")
    tab.drawn()
    assert text_of(tab, ".axis") != all_of_it
    tab.press("0")
    tab.drawn()
    assert text_of(tab, ".axis") == all_of_it


def test_lanes_tell_the_node_without_colour(tab: Browser, tmp_path: Path) -> None:
    """In the map of the end, each quarter of the area is inked in its node's lane and in no other."""
    path, _ = write(mapped_run(), tmp_path)
    tab.open(path)
    inked = tab.run("""(() => {
      const canvas = [...document.querySelectorAll('.plot canvas')][2]
      const context = canvas.getContext('2d')
      const at = (x, y) => {
        const [r, g, b, a] = context.getImageData(x * canvas.width, y * canvas.height, 1, 1).data
        return a === 255 && Math.max(r, g, b) - Math.min(r, g, b) > 40
      }
      return [0, 1, 2, 3].map(x => [0, 1, 2, 3].map(y => at((x + .5) / 4, (y + .5) / 4)))
    })()""")
    assert inked == [[x == y for y in range(4)] for x in range(4)]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(tab: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    path, _ = write(mapped_run(), tmp_path)
    tab.view(width, dark=dark)
    tab.open(path)
    assert tab.run("document.documentElement.scrollWidth") <= width
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(one) for one in background[4:-1].split(",")) < 300) == dark


def test_it_prints(tab: Browser, tmp_path: Path) -> None:
    path, _ = write(mapped_run(), tmp_path)
    tab.view(1280)
    tab.open(path)
    assert tab.printed().startswith(b"%PDF")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, as web/package-lock.json names it."""
    folder = tmp_path_factory.mktemp("page")
    done = subprocess.run(
        [sys.executable, TREE / "tools" / "page.py", folder, "--all"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"axe-core could not be installed: {done.stderr}")
    return (TREE / "web" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True])
def test_no_serious_violation_of_accessibility(tab: Browser, tmp_path: Path, axe: str, dark: bool) -> None:
    path, _ = write(mapped_run(), tmp_path)
    tab.view(1280, dark=dark)
    tab.open(path)
    tab.run(axe + "; 0")
    found = tab.run("axe.run(document).then(result => JSON.stringify(result.violations))")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in json.loads(found)
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_ten_thousand_areas_and_a_million_runs(tab: Browser, tmp_path: Path) -> None:
    path, run = write(large_run(10_000, 1_000_000), tmp_path)
    assert path.stat().st_size < 5 << 20
    tab.view(1600)
    tab.open(path)
    assert text_of(tab, ".area-list .tools [role=status]") == f"{len(run['areas']):,} areas"
    # Only what is seen exists.
    assert tab.run("document.querySelectorAll('*').length") < 2000
    tab.run("document.getElementById('areas').focus()")
    tab.press("End")
    tab.drawn()
    assert text_of(tab, ".detail h3") == run["areas"][-1]["title"]
    assert not tab.problems


def test_bench_measures_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AREAS", 50), ("RUNS", 4000), ("ITERATIONS", 20)):
        monkeypatch.setattr(bench, name, value)
    data = bench.measure(tmp_path, 1)
    results = Results("report", "", "")
    bench.add_rows(results, data)
    assert [row.name for row in results.rows][:3] == ["html.bytes", "html.write", "html.open_ms"]
    assert 0 < data["bytes"] < 1 << 20 and len(data["pan_ms"]) == len(data["scroll_ms"]) == 120
