"""homing bench treadmarks: what is read, what the costs are, what rows and tables say; what the translator
writes, on the shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.bench import treadmarks, treadmarks_costs, treadmarks_translated
from homing.bench.treadmarks import Found
from homing.errors import UserError

OUTPUT = """processes: 2
count messages: 12 8 of 8 4
count bytes: 300 200 of 200 100
predicted 0: 10.000 us
predicted 1: 20.500 us
predicted 2: 40.000 us
verification: successful
"""


def test_counts_are_read() -> None:
    found = Found.parse(OUTPUT)
    assert found.sums == {"messages": 12, "bytes": 300}
    assert found.largest == {"messages": 8, "bytes": 200}
    assert found.predicted == (10.0, 20.5, 40.0)
    assert Found.from_dict(found.to_dict()) == found
    with pytest.raises(UserError, match="printed no counts"):
        Found.parse("verification: successful\n")


def test_costs_are_ordered_by_what_they_do_to_the_speed_up() -> None:
    for cost in (*treadmarks_costs.COSTS.values(), treadmarks_costs.protect(2000)):
        assert cost.favourable <= cost.believed <= cost.unfavourable
        assert cost.why
    for cost in treadmarks_costs.WORK.values():  # the slower the work, the better it scales
        assert cost.favourable >= cost.believed >= cost.unfavourable


def test_changing_protection_takes_longer_with_more_pages() -> None:
    assert treadmarks_costs.protect(0).values == pytest.approx((18, 18, 18))
    assert treadmarks_costs.protect(2000).unfavourable == treadmarks_costs.protect(9000).unfavourable == 800
    assert "protect 18.0 " in treadmarks_costs.costs_text("lu", 2000)
    assert len(treadmarks_costs.costs_text("lu", 1).splitlines()) == 10


def test_pages_in_use_are_those_that_are_shared() -> None:
    assert treadmarks.pages_in_use("jacobi", "shared", ("--n", "1024"), 4) == 2 * 2048
    assert treadmarks.pages_in_use("jacobi", "private", ("--n", "1024"), 4) == 4 * 2 * 4
    assert treadmarks.pages_in_use("lu", "private", ("--n", "2048"), 4) == 2


def test_only_what_there_is() -> None:
    with pytest.raises(UserError, match="there are jacobi, lu, lbe, counts, mpi"):
        treadmarks.run("small", ["cg"], lambda words: " ".join(words))


def run(**speed: float) -> dict[tuple[str, int], Found]:
    """A table in which way W with 16 processes has the speed-up speed[W], and half of it with 32."""
    found = {("shared", 1): Found({"messages": 0, "bytes": 0}, {}, (100.0, 100.0, 100.0))}
    for way, at_16 in speed.items():
        for processes in (2, 4, 8, 16, 32):
            value = at_16 * processes / 16 if processes <= 16 else at_16 / 2
            found[way, processes] = Found({"messages": 50, "bytes": 900}, {}, (100 / value,) * 3)
    return found


def test_what_the_text_says_is_held_against_the_predictions() -> None:
    table = run(shared=2.0, shared_eager=6.0, private=12.0)
    answers = {
        text: (holds("shared", 1), holds("shared_eager", 1))
        for text, holds in treadmarks.statements("jacobi", table)
    }
    assert list(answers.values()) == [(True, True), (True, True), (True, True), (True, False)]
    lines = treadmarks.statement_table("jacobi", table).splitlines()
    assert lines[-1].endswith("yes / yes / yes                   no / no / no")


def test_rows_are_a_step_and_beside_the_paper() -> None:
    results: Any = treadmarks.Results("treadmarks", "", "")
    treadmarks.count_rows(results, "jacobi", run(shared=2.0, shared_eager=3.0, private=12.0))
    rows = {row.name: row for row in results.rows}
    assert rows["jacobi.shared.p16.messages"].value == 50 / treadmarks.STEPS
    assert rows["jacobi.shared.p16.speedup"].value == pytest.approx(2.0)
    assert rows["jacobi.private_over_shared.p16"].value == pytest.approx(6.0)
    assert rows["jacobi.private_over_shared.p16"].paper == 5.0


def test_the_most_that_a_process_computes() -> None:
    assert treadmarks_translated.work("jacobi", 10, 1) == 8 * 8
    assert treadmarks_translated.work("lbe", 10, 3) == 4 * 8  # blocks of 4, 4 and 2 rows
    assert treadmarks_translated.work("lu", 3, 2) == 2 * (1 + 1) + 1 * (1 + 1)


def test_translated_lu_has_the_digits_of_one_process(tmp_path: Path) -> None:
    """What --to mpi writes runs on the shared memory: a broadcast of each column is one exchange."""
    path = treadmarks_translated.build("lu", tmp_path / "lu", ["-O0", "-fopenmp"])
    costs = tmp_path / "costs"
    costs.write_text(treadmarks_costs.costs_text("lu", 100))
    found = treadmarks_translated.count(path, "lu", 33, 3, str(costs))
    assert found["sums"]["barriers"] >= 3 * 32
    assert found["sums"]["diffs"] >= 32
    assert found["us"][0] < found["us"][1] < found["us"][2]
    with pytest.raises(UserError, match="is not from 1 to 32"):
        treadmarks_translated.count(path, "lu", 33, 99, str(costs))
