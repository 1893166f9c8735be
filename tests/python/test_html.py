"""The page of `homing report --html`: what it holds, without a browser (tests/python/test_html_browser.py has
one)."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing.errors import UserError
from homing.installation import find_page
from homing.records import read_record
from homing.report.html import page, write_html
from homing.report.json import to_json
from homing.report.page_maps import page_maps
from homing.report.results import Results, read_results
from tests.python.large_record import large_run, page_map
from tests.python.record_writer import RecordWriter, four_node_run


def script(text: str, name: str) -> Any:
    """What a script of the page holds, inflated."""
    found = re.search(rf'<script type="[^"]*" id="{name}"( data-encoding="gzip")?>(.*)</script>', text)
    assert found is not None
    if name == "arrays":
        return gzip.decompress(base64.b64decode(found[2]))
    body = gzip.decompress(base64.b64decode(found[2])).decode() if found[1] else found[2]
    assert "\n" not in body
    return json.loads(body)


def numbers(text: str, name: str) -> Any:
    """An array of the page."""
    kind, begin, count = script(text, "views")["arrays"][name]
    types = {"Uint32Array": "<u4", "Int16Array": "<i2", "Uint16Array": "<u2", "Float32Array": "<f4"}
    return np.frombuffer(script(text, "arrays"), types[kind], count, begin)


def page_of(writer: RecordWriter, folder: Path) -> tuple[str, Any]:
    results = read_results([str(writer.write(folder / "a.homing"))])
    return page(results), to_json(results)


def test_page_holds_what_json_has(tmp_path: Path) -> None:
    text, results = page_of(four_node_run(), tmp_path)
    assert script(text, "run") == results


def test_large_results_are_compressed_and_the_same(tmp_path: Path) -> None:
    text, results = page_of(large_run(700, 3000, 10), tmp_path)
    assert 'id="run" data-encoding="gzip"' in text
    assert script(text, "run") == results


def test_page_loads_nothing(tmp_path: Path) -> None:
    text, _ = page_of(four_node_run(), tmp_path)
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)=["']?(https?:|//)|url\(["']?https?:|@import""", text)


def test_no_name_ends_the_script(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script><!--"
    text, results = page_of(four_node_run(program=f"/tmp/{bad}"), tmp_path)
    assert script(text, "run") == results
    assert bad not in text
    assert text.count("</script>") == 4


def test_a_command_that_is_not_utf_8_has_a_page(tmp_path: Path) -> None:
    write_html(Results(command=["./pr\udcffg"]), str(tmp_path / "page"))
    assert "<title>pr?g - homing</title>" in (tmp_path / "page").read_text(encoding="utf-8")


def runs(text: str) -> list[tuple[int, int, list[int], list[int]]]:
    """(area, when, lengths, nodes) of each page map."""
    table = numbers(text, "0/maps").reshape(-1, 8)
    lengths, nodes = numbers(text, "0/map-lengths"), numbers(text, "0/map-nodes")
    return [
        (int(area), int(when), lengths[at : at + count].tolist(), nodes[at : at + count].tolist())
        for _, area, when, at, count, *_ in table.tolist()
    ]


def test_page_maps_are_runs_by_address(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 0), (900, -1)])
    page_map(writer, 1, 3, [(50 * at, at % 4) for at in range(20)])
    text, _ = page_of(writer, tmp_path)
    assert runs(text) == [
        (1, 1, [900, 100], [0, -1]),
        (1, 3, [50] * 20, [at % 4 for at in range(20)]),
    ]


def test_every_granule_is_told_where_homes_are_recorded(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 3, [(0, 0), (500, 1)], step=2)
    writer.row("homes", area=1, when=3, time=0.6, first=0, end=499, node=0)
    writer.row("homes", area=1, when=3, time=0.6, first=499, end=1000, node=2)
    text, _ = page_of(writer, tmp_path)
    assert runs(text) == [(1, 3, [499, 501], [0, 2])]


@pytest.mark.parametrize(
    "bad",
    [
        [(0, 0), (0, 1)],  # does not ascend
        [(5, 0)],  # does not begin at 0
        [(0, 0), (1000, 1)],  # beyond the area
        [(0, 4)],  # no such node
    ],
)
def test_damaged_page_maps_are_left_out(tmp_path: Path, bad: list[tuple[int, int]]) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, bad)
    page_map(writer, 99, 1, [(0, 0)])  # no such area
    record = read_record(str(writer.write(tmp_path / "a.homing")))
    assert page_maps(record) == {}


def test_what_a_record_lacks_is_named(tmp_path: Path) -> None:
    text, _ = page_of(four_node_run(), tmp_path)
    missing = script(text, "views")["processes"][0]["missing"]
    assert "--record-samples" in missing["touches"]
    assert "page maps" in missing["maps"]
    assert "--lines" in missing["lines"]
    assert "references" not in missing


def test_references_are_summed_by_area_and_by_iteration(tmp_path: Path) -> None:
    text, results = page_of(four_node_run(), tmp_path)
    assert numbers(text, "0/ref-iterations").tolist() == [2, 5]
    whole = numbers(text, "0/refs").reshape(-1, 4, 4)[0]
    parts = numbers(text, "0/iteration-refs").reshape(-1, 4, 4)
    assert np.allclose(whole, parts.sum(axis=0))
    assert parts[0].tolist() == [[100, 0, 0, 0]] * 4
    assert [area["id"] for area in results["processes"][0]["areas"]] == [1, 2]


def test_single_touches_are_listed_by_area_and_line(tmp_path: Path) -> None:
    writer = four_node_run()
    page_map(writer, 1, 1, [(0, 0)])
    page_map(writer, 1, 3, [(0, 0), (500, 1)])
    for granule, thread, node in ((10, 100, 0), (600, 102, 1), (700, 102, 1)):
        code = {"object": writer.text("/home/user/cg"), "offset": 0x2010}
        writer.row("sample", area=1, granule=granule, thread=thread, node=node, region=1, weight=1, **code)
    text, _ = page_of(writer, tmp_path)
    assert numbers(text, "0/touch-granules").tolist() == [10, 600, 700]
    assert numbers(text, "0/touch-threads").tolist() == [0, 2, 2]
    process = script(text, "views")["processes"][0]
    (line,) = process["lines"]
    assert (line["touches"], line["found"], line["end"]) == (3, [3, 2], [3, 0])
    assert process["region_touches"][0]["matrix"][1] == [2, 0, 0, 0]


def test_verdict_has_numbers(tmp_path: Path) -> None:
    text, _ = page_of(four_node_run(), tmp_path)
    verdict = script(text, "views")["processes"][0]["verdict"]
    assert "75 %" in verdict["cost"]
    assert "740 pages" in verdict["done"] and "1.0 %" in verdict["done"]
    assert all(advice["evidence"] for advice in verdict["advice"])


def test_a_process_that_stepped_aside_says_why(tmp_path: Path) -> None:
    writer = RecordWriter()
    writer.message("one node only")
    writer.fact("end", "stepped aside")
    text, _ = page_of(writer, tmp_path)
    assert "one node only" in script(text, "views")["processes"][0]["verdict"]["cost"]


def test_missing_page_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("homing.installation.PACKAGE", str(tmp_path / "homing"))
    monkeypatch.setattr("homing.installation.BESIDE", str(tmp_path))
    with pytest.raises(UserError, match="built without its page"):
        find_page()
