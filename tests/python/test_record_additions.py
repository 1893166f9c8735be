"""What the launcher adds to a record after the run; every reader still finds the record whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from homing.lab.counts import parse
from homing.record_additions import add_to_record
from homing.records import LAB_COUNTS, read_record
from homing.report.json import to_json
from homing.report.results import read_results
from homing.report.summary import print_summary
from tests.python.record_writer import PIECE_BYTES, four_node_run
from tests.python.test_lab_unit import COUNTS
from tests.python.test_simulator import homing


def lab_counts(**more: Any) -> str:
    phases = [{"first_phase": phase, "last_phase": phase, "misses": 40, "remote": 4} for phase in (1, 2, 5)]
    whole = {"first_phase": 1, "last_phase": 5, "misses": 150, "remote": 30}
    return json.dumps({**parse(json.dumps({**COUNTS, "oracle": [*phases, whole]})).to_dict(), **more})


@pytest.mark.parametrize("ended", [True, False])
def test_facts_are_added_and_the_record_stays_whole(tmp_path: Path, ended: bool) -> None:
    writer = four_node_run(ended=ended, host="homing-lab")
    path = writer.write(tmp_path / "r.homing")
    if not ended:
        path.write_bytes(path.read_bytes().ljust(PIECE_BYTES, b"\0"))
    before = read_record(str(path))
    long = "x" * 300_000  # longer than what is left of a piece
    add_to_record(str(path), {"ended_by": "SIGINT", "long": long}, gone=True)
    add_to_record(str(path), {"later": "once more"}, gone=True)
    after = read_record(str(path))
    assert not after.truncated
    assert not after.out_of_room
    assert (after.end is None) == (not ended)
    assert after.facts == {**before.facts, "ended_by": "SIGINT", "long": long, "later": "once more"}
    assert after.areas == before.areas
    assert after.ended_by == "SIGINT"


def test_nothing_is_added_to_what_may_be_at_work_or_was_cut_off(tmp_path: Path) -> None:
    path = four_node_run(ended=False).write(tmp_path / "r.homing")
    whole = path.read_bytes().ljust(PIECE_BYTES, b"\0")
    for data, gone in ((whole, False), (whole[:-100], True)):
        path.write_bytes(data)
        add_to_record(str(path), {"ended_by": "SIGINT"}, gone=gone)
        assert path.read_bytes() == data


def test_report_prints_a_guests_counts(tmp_path: Path) -> None:
    path = four_node_run().write(tmp_path / "r.homing")
    text = lab_counts()
    add_to_record(str(path), {LAB_COUNTS: text})
    run = json.loads(text)["run"]
    done = homing("report", "--json", tmp_path / "again.json", path)
    assert done.returncode == 0, done.stderr
    assert f"of {run['total_misses']:,} cache misses remote" in done.stdout
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["counts"] == json.loads(text)
    assert LAB_COUNTS not in again["processes"][0]["facts"]


def test_records_of_one_run_have_its_counts_once_and_of_several_runs_none(tmp_path: Path) -> None:
    paths = [str(four_node_run(pid=pid).write(tmp_path / f"{pid}.homing")) for pid in (1, 2, 3)]
    for path in paths[:2]:
        add_to_record(path, {LAB_COUNTS: lab_counts()})
    add_to_record(paths[2], {LAB_COUNTS: lab_counts(pages=7)})
    together = read_results(paths[:2])
    assert together.counts == json.loads(lab_counts())
    apart = read_results(paths)
    assert apart.counts is None
    assert any("several runs" in note for note in apart.notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 5000,
        '{"run": 3, "phases": []}',
        '{"run": {"remote_fraction": "x", "oracle_remote_fraction": 0, "total_misses": 1}, "phases": []}',
        '{"run": {"remote_fraction": NaN, "oracle_remote_fraction": 0, "total_misses": 1}, "phases": []}',
        '{"run": {"remote_fraction": 0, "oracle_remote_fraction": 0, "total_misses": 1}, "phases": [{}]}',
        '{"run": {"remote_fraction": 0, "oracle_remote_fraction": 0, "total_misses": 1}, "phases": {"a": 1}}',
    ],
)
def test_damaged_counts_are_a_note(tmp_path: Path, text: str) -> None:
    path = four_node_run().write(tmp_path / "r.homing")
    add_to_record(str(path), {LAB_COUNTS: text})
    results = read_results([str(path)])
    print_summary(results, str(tmp_path / "summary"))
    assert results.counts is None
    assert to_json(results)["counts"] is None
    assert ("the counts in the record are damaged" in (tmp_path / "summary").read_text()) == bool(text)


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        (
            {"kib": 1024, "ways": 1, "line": 64, "page_bytes": 4096},
            "in 1024 KiB direct-mapped a thread, lines of 64",
        ),
        ({"kib": 1024, "line": 64, "page_bytes": 4096}, "in a cache that the record does not name"),
        ({"kib": "1", "ways": 1, "line": 64, "page_bytes": 4096}, "in a cache that the record does not name"),
        (None, "in a cache that the record does not name"),
    ],
)
def test_a_simulated_cache_that_is_not_said_whole(tmp_path: Path, cache: Any, said: str) -> None:
    writer = four_node_run()
    writer.row("counted", accesses=100, oracle_remote=1)
    writer.row("misses", to=[10, 0, 0, 0])
    writer.fact("simulated", json.dumps({"cache": cache}))
    results = read_results([str(writer.write(tmp_path / "r.homing"))])
    print_summary(results, str(tmp_path / "summary"))
    assert said in (tmp_path / "summary").read_text()


def test_counts_of_iterations_have_the_programs_numbers(tmp_path: Path) -> None:
    """The simulator counts a guess as if it were an iteration: it is a part of the one that follows."""
    writer = four_node_run()
    for number, basis in ((0, 6), (1, 5), (2, 5)):
        writer.row("iteration", number=number, state=2, basis=basis, regions=3)
    writer.row("counted", accesses=100)
    writer.row("misses", to=[60, 0, 0, 0])
    for number, misses in ((0, 5), (1, 25), (2, 30)):
        writer.row("counted", scope=1, id=number, accesses=2 * misses)
        writer.row("misses", scope=1, id=number, to=[misses, 0, 0, 0])
    results = read_results([str(writer.write(tmp_path / "r.homing"))])
    assert results.counts is not None
    found = [(one["number"], one["total_misses"]) for one in results.counts["iterations"]]
    assert found == [(0, 30), (1, 30)]
