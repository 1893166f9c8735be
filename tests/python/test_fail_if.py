"""--fail-if over a run on this machine, and over what a guest counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.errors import UserError
from homing.fail_if import figures, judged
from homing.report.results import Results, read_results
from homing.simulate.expressions import FAILED, Expression
from tests.python.record_writer import four_node_run
from tests.python.test_first_touch import estimate


def results(folder: Path, counts: dict[str, Any] | None = None) -> Results:
    writer = four_node_run()
    estimate(writer, 1, 0.75, 0.5, 0.8)
    estimate(writer, 2, 0.0, 0.0, 0.2)
    found = read_results([str(writer.write(folder / "a.homing"))])
    found.counts = counts
    return found


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("remote_fraction > 0.3", FAILED),
        ("remote_fraction > 60 %", 0),
        ("area.main_mem.remote_fraction > 0.4", FAILED),
        ("any_area.remote_fraction > 0.9", 0),
        ("moved_pages > 10", FAILED),
        ("total_misses > 1", 2),
        ("home_share.0 > 0.5", 2),
        ("area.nobody.share > 0.1", 2),
    ],
)
def test_a_condition_is_judged_by_the_estimate(
    condition: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(Expression.parse(condition), results(tmp_path), 0) == status
    said = capsys.readouterr().err
    assert ("true" in said) == (status == FAILED)
    assert said.count("\n") == 1 if status == 2 else True


def test_counts_of_a_guest_come_before_the_estimate(tmp_path: Path) -> None:
    counts = {"run": {"remote_fraction": 0.9, "total_misses": 5000, "remote_misses": 4500}}
    expression = Expression.parse("remote_fraction > 0.8 and total_misses > 1000")
    assert judged(expression, results(tmp_path, counts), 0) == FAILED


def test_a_program_that_failed_has_the_last_word(tmp_path: Path) -> None:
    assert judged(Expression.parse("remote_fraction > 0"), results(tmp_path), 7) == 7


def test_a_run_that_nothing_is_known_of_has_not_passed() -> None:
    expression = Expression.parse("remote_fraction > 0")
    with pytest.raises(UserError, match="nothing is known"):
        figures(expression, Results())
    assert judged(expression, None, 0) == 2
