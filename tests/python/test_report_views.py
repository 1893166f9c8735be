"""`homing report --map`, `--compare` and `--perfetto`, and `homing run --compare` and `--html`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing import cli
from homing.errors import UserError
from homing.report.blocks import page_blocks, shares
from homing.report.command import command
from homing.report.compare import comparison, spread
from homing.report.page_maps import PageMap
from homing.report.perfetto import events, write_perfetto
from homing.report.results import Results, read_results
from tests.patience import PATIENCE
from tests.places import TREE
from tests.python.large_record import page_map
from tests.python.record_writer import RecordWriter, four_node_run


def results_of(writer: RecordWriter, folder: Path, name: str = "a.homing") -> Results:
    return read_results([str(writer.write(folder / name))])


def lines(writer: RecordWriter, folder: Path, width: int) -> list[str]:
    return [line.plain for line in page_blocks(results_of(writer, folder).processes[0], width)]


def test_map_has_a_lane_for_each_node(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 2)])
    page_map(writer, 1, 3, [(250 * at, at) for at in range(4)])
    assert lines(writer, tmp_path, 30) == [
        "/main_mem/, 3.9 MiB, owners block",
        "found  0 ····················",
        "       1 ····················",
        "       2 ████████████████████",
        "       3 ····················",
        "at end 0 █████···············",
        "       1 ·····█████··········",
        "       2 ··········█████·····",
        "       3 ···············█████",
    ]


def test_map_shows_shares_of_a_cell_as_heights(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(at, at // 5 % 2) for at in range(0, 1000, 5)])
    drawn = lines(writer, tmp_path, 30)
    assert drawn[1] == "found  0 " + "▄" * 20 and drawn[2] == "       1 " + "▄" * 20


def test_no_lane_of_the_map_is_wider_than_the_terminal(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 0)])
    for width in (40, 80, 200):
        lanes = [line for line in lines(writer, tmp_path, width) if "·" in line or "█" in line]
        assert max(map(len, lanes)) <= width


def test_many_nodes_are_letters(tmp_path: Path) -> None:
    writer = RecordWriter()
    for node in range(16):
        writer.row("node", index=node, position=node, cpus=1, target=1, memory_bytes=1 << 30)
    writer.row("area", id=1, begin=4096, bytes=4096 * 160, kind=1, name=writer.text("u"), granule=4096)
    writer.row("placement", area=1, when=1, pages=[10] * 8)
    page_map(writer, 1, 1, [(10 * at, at) for at in range(16)])
    assert lines(writer, tmp_path, 26)[1] == "found    0123456789abcdef"


def test_shares_of_all_cells_are_those_of_the_pages() -> None:
    random = np.random.default_rng(5)
    first = np.concatenate(([0], np.sort(random.choice(np.arange(1, 5000), 300, replace=False))))
    node = random.integers(-1, 4, len(first))
    one = PageMap(1, 1, 5000, 1, first, node)
    held = shares([one], 97, 4).sum(axis=0) * (5000 / 97)
    assert held == pytest.approx(one.pages_on(4))


def test_record_without_maps_says_so(tmp_path: Path) -> None:
    (line,) = lines(four_node_run(), tmp_path, 80)
    assert "holds none" in line


def compared(before: RecordWriter, after: RecordWriter, folder: Path) -> str:
    first, second = results_of(before, folder, "a.homing"), results_of(after, folder, "b.homing")
    return "\n".join(line.plain for line in comparison(first, second, ("A", "B")))


def run_with(after: float, seconds: float) -> RecordWriter:
    writer = four_node_run()
    writer.sample(1, before=0.75, after=after, granules=400, time=0.7)
    for number in range(6, 26):
        second = seconds * (1 + 0.01 * (number % 5))
        writer.row(
            "iteration", number=number, time=number * 0.1, seconds=second, regions=15, state=2, basis=1
        )
    return writer


def test_what_is_the_same_is_within_the_noise(tmp_path: Path) -> None:
    text = compared(run_with(0.30, 0.1), run_with(0.31, 0.1), tmp_path)
    remote = [line for line in text.splitlines() if "remote" in line]
    assert len(remote) == 2 and all("within the noise" in line for line in remote)
    assert "within the noise" in next(line for line in text.splitlines() if line.startswith("iteration"))


def test_what_differs_is_told_with_its_intervals(tmp_path: Path) -> None:
    text = compared(run_with(0.75, 0.2), run_with(0.01, 0.1), tmp_path)
    assert "within the noise" not in text
    assert "75 % -> 1.0 %" in text
    assert "(-50 %)" in text


def test_what_one_run_does_not_know_is_told_of_the_other(tmp_path: Path) -> None:
    text = compared(run_with(0.75, 0.2), RecordWriter(), tmp_path)
    assert "75 % (71-79 %) -> too few samples, of touches, estimated" in text


def test_too_few_iterations_are_not_compared(tmp_path: Path) -> None:
    assert "too few iterations" in compared(four_node_run(), four_node_run(), tmp_path)
    assert spread([1.0] * 7) is None


def test_areas_of_one_run_only_are_named(tmp_path: Path) -> None:
    after = four_node_run()
    after.row("area", id=7, begin=1 << 40, bytes=1 << 20, kind=1, name=after.text("extra"), granule=4096)
    assert "only in the second: extra" in compared(four_node_run(), after, tmp_path)


def test_compare_tells_of_a_record_whose_end_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = four_node_run().write(tmp_path / "whole")
    cut = tmp_path / "cut"
    cut.write_bytes(whole.read_bytes()[:-200])
    assert cli.main(["report", "--compare", str(cut), str(whole)]) == 2
    said = capsys.readouterr()
    assert f"{cut}: the file's end is missing" in said.err and "remote" in said.out


def test_one_process_is_not_counted_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = four_node_run().write(tmp_path / "a")
    (tmp_path / "copy").write_bytes(path.read_bytes())
    for other in (path, tmp_path / "copy"):
        assert cli.main(["report", str(path), str(other)]) == 2
        assert f"{other}: is of the same process as {path}" in capsys.readouterr().err
    other = four_node_run(pid=4712).write(tmp_path / "b")
    assert cli.main(["report", str(path), str(other)]) == 0


@pytest.mark.parametrize(
    "flags",
    [["--map", "--compare", "r"], ["--map", "--summary", "none"], ["--compare", "r", "--summary", "none"]],
)
def test_flags_that_would_print_nothing(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    four_node_run().write(tmp_path / "r")
    assert cli.main(["report", "r", *flags]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and flags[0] in said.err and not said.out


def test_compare_wants_two_records(tmp_path: Path) -> None:
    path = str(four_node_run().write(tmp_path / "a.homing"))
    with pytest.raises(UserError, match="two records"):
        command([path], compare=True, json=None, html=None, perfetto=None, map=False, summary="none")
    with pytest.raises(UserError, match="--json"):
        command([path, path], compare=True, json="x", html=None, perfetto=None, map=False, summary="none")


def test_trace_is_sound(tmp_path: Path) -> None:
    writer = four_node_run()
    writer.row("sample", area=1, granule=3, thread=103, time=0.25, node=1, weight=1)
    (process,) = results_of(writer, tmp_path).processes
    results = Results([process, process])  # hosts and containers repeat the numbers of processes
    write_perfetto(results, str(tmp_path / "trace.json"))
    trace: list[dict[str, Any]] = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert trace == list(events(results))
    for event in trace:
        assert event["ph"] in "MXCibe" and "id" not in event
        assert event["ph"] not in "be" or event["id2"]["local"] in (1, 2)
        assert event["ph"] == "M" or 0 <= event["ts"] <= 0.7e6
    of_process = [[event for event in trace if event["pid"] == pid] for pid in (1, 2)]
    assert len(of_process[0]) == len(of_process[1]) == len(trace) / 2
    assert of_process[0][0]["args"] == {"name": "cg (process 4711 on node17)"}
    names = {event["args"]["name"] for event in trace if event["name"] == "thread_name"}
    assert {"iterations", "homing: moves", "thread 3 on node 1"} <= names


@pytest.mark.parametrize("start", ["inf", "nan", "-inf", 1e300])
def test_a_trace_of_a_damaged_start_is_json(start: str | float, tmp_path: Path) -> None:
    whole = results_of(four_node_run(), tmp_path).processes
    damaged = four_node_run(start=float(start))
    for iteration in (2, 3):
        damaged.row("references", **{"area": 1, "iteration": iteration, "from": 0, "to": [1.7e308] * 4})
    results = Results([*whole, *results_of(damaged, tmp_path).processes])
    write_perfetto(results, str(tmp_path / "trace.json"))
    times = [
        event["ts"]
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if "ts" in event
    ]
    assert all(0 <= time <= 0.7e6 for time in times)


def test_slices_of_a_track_do_not_cross(tmp_path: Path) -> None:
    writer = four_node_run()
    for at in range(5):
        time = 0.31 + at * 0.01
        writer.row("move", area=1, iteration=4, wanted=9, moved=9, seconds=0.2, calls=1, time=time)
    tracks: dict[int, list[Any]] = {}
    for event in events(results_of(writer, tmp_path)):
        if event["ph"] == "X":
            tracks.setdefault(event["tid"], []).append(event)
    for slices in tracks.values():
        for one, other in pairwise(slices):
            assert one["ts"] + one["dur"] <= other["ts"] + 0.01


def test_trace_holds_iterations_moves_and_counters(tmp_path: Path) -> None:
    trace = list(events(results_of(four_node_run(), tmp_path)))
    slices = {event["name"]: event for event in trace if event["ph"] == "X"}
    assert slices["iteration 3"]["ts"] == pytest.approx(0.2e6)
    assert slices["iteration 3"]["dur"] == pytest.approx(0.1e6)
    assert slices["/main_mem/"]["args"]["moved"] == 740
    counters = [event for event in trace if event["ph"] == "C"]
    assert [one["args"]["per cent"] for one in counters if one["name"] == "remote share"] == [75.0, 1.0]
    last = {one["name"]: one["args"]["pages"] for one in counters if one["name"].startswith("pages on")}
    assert list(last.values()) == [360, 350, 350, 340]


def homing(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "homing", *words],
        cwd=TREE,
        env={**os.environ, "HOMING_ASSUME_NODES": "4", "OMP_NUM_THREADS": "4", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_run_compares_and_writes_a_page(tmp_path: Path) -> None:
    """Twice the program, its own exit status, one page."""
    program = str(TREE / "build" / "release" / "apps" / "pattern_block_gcc")
    page = tmp_path / "a.html"
    done = homing("run", "--compare", "--html", str(page), "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("homing 0.") == 1
    assert "nothing moved -> with homing" in done.stderr
    assert 'id="run"' in page.read_text(encoding="utf-8")


def test_a_program_that_fails_runs_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    done = homing("run", "--compare", "--", "sh", "-c", f"echo x >>{count}; exit 3")
    assert done.returncode == 3
    assert count.read_text() == "x\n"
