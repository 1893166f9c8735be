"""Iterations in the summary and the JSON file: how many, what they are based on, and when they settled."""

from __future__ import annotations

import pytest

from homing.report.json import to_json
from tests.python.record_writer import RecordWriter
from tests.python.test_report import printed, results_of


def test_the_last_settled_stretch_counts() -> None:
    """Iterations are numbered from 0, as the engine does, and a row tells how its iteration ended."""
    writer = RecordWriter()
    for number, state in enumerate([1, 2, 3, 3, 2, 2, 3, 3]):
        writer.row("iteration", number=number, state=state, basis=1)
    assert results_of(writer).processes[0].settled_at == 7


@pytest.mark.parametrize(
    ("last", "settled", "words"),
    [(2, None, "not settled after 580 or more"), (3, 247, "settled at iteration 247 of 580 or more")],
)
def test_iterations_at_rest_have_no_row(
    last: int, settled: int | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that was killed leaves no count of its iterations: the newest row tells the number."""
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    for number, state in ((0, 2), (4, 2), (246, 3), (360, 3), (579, last)):
        writer.row("iteration", number=number, state=state, basis=1, regions=15)
    results = results_of(writer)
    process = results.processes[0]
    assert (process.iteration_count, process.settled_at) == (580, settled)
    assert to_json(results)["processes"][0]["iterations"]["count"] == 580
    assert words in printed(results, capsys)
    writer.row("end", iterations=996, settled_at=247)
    process = results_of(writer).processes[0]
    assert (process.iteration_count, process.settled_at) == (996, 247)


def test_guesses_are_parts_of_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    """The engine numbers them as if they were iterations: what is printed counts the program's own."""
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    for number, basis in ((0, 6), (1, 6), (4, 1), (5, 6), (7, 1)):
        writer.row("iteration", number=number, state=2, basis=basis, regions=3)
    writer.row("move", area=1, iteration=5, wanted=2, moved=2)
    writer.row("end", iterations=9, settled_at=5, period=3)
    results = results_of(writer)
    (process,) = to_json(results)["processes"]
    assert process["iterations"]["count"] == 6
    assert [row["number"] for row in process["iterations"]["rows"]] == [0, 0, 2, 3, 4]
    assert process["moves"][0]["iteration"] == 3
    assert "3 regions that repeat; settled at iteration 5 of 6" in printed(results, capsys)


def test_guesses_without_a_row_are_counted_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Iterations without touches have no row: the last moves were in iterations that there never were."""
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    writer.row("progress", iterations=36)
    for number, basis in ((0, 6), (1, 6), (10, 1)):
        writer.row("iteration", number=number, state=2, basis=basis, regions=3)
    for number in (1, 10, 39, 42):
        writer.row("move", area=1, iteration=number, wanted=2, moved=2)
    writer.row("end", iterations=41, period=3)
    (process,) = to_json(results_of(writer))["processes"]
    assert [row["number"] for row in process["iterations"]["rows"]] == [0, 0, 5]
    assert [move["iteration"] for move in process["moves"]] == [0, 5, 34, 36]


def test_iterations_that_were_found_before_the_first_call_are_parts_of_one() -> None:
    """Of a program that tells its iterations homing had found the loop over its arrays first."""
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    writer.row("progress", iterations=3)
    for number, basis in ((0, 6), (1, 1), (8, 5), (9, 5)):
        writer.row("iteration", number=number, state=2, basis=basis, regions=3)
    writer.row("move", area=1, iteration=9, wanted=2, moved=2)
    writer.row("end", iterations=11)
    (process,) = to_json(results_of(writer))["processes"]
    assert process["iterations"]["count"] == 3
    rows = [(row["number"], row["basis"]) for row in process["iterations"]["rows"]]
    assert rows == [(0, "guess"), (0, "guess"), (0, "call"), (1, "call")]
    assert process["moves"][0]["iteration"] == 1


@pytest.mark.parametrize(
    ("regions", "words"),
    [((8,), "regions that repeat"), ((9, 2), "regions that repeat"), ((9, 2, 2), "2 reg")],
)
def test_a_period_is_said_where_it_is_known(
    regions: tuple[int, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first row counts the regions since the start: a process that left by _exit has no other."""
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    writer.row("progress", iterations=23)
    for number, count in enumerate(regions):
        writer.row("iteration", number=number, state=2, basis=1, regions=count)
    assert f"\niteration  {words}" in printed(results_of(writer), capsys)


def test_what_is_only_guessed_is_no_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    writer = RecordWriter()
    writer.row("node", index=0, position=0, cpus=1, target=1)
    writer.row("iteration", number=0, state=2, basis=6, regions=2)
    writer.row("end", iterations=1)
    text = printed(results_of(writer), capsys)
    assert "not known yet; guessed from the first region that recurs\n" in text
    writer.row("end", iterations=34, period=2)
    assert "2 regions that repeat; not settled after 33" in printed(results_of(writer), capsys)


def test_the_basis_of_iterations_without_rows_is_the_period() -> None:
    writer = RecordWriter()
    writer.row("end", iterations=13, period=1)
    (process,) = results_of(writer).processes
    assert process.basis == "period"
