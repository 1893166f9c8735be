"""--fail-if over a run on this machine, and over what a guest counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing import cli
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
        ("area.main_mem.total_misses > 1", 2),
    ],
)
def test_a_condition_is_judged_by_the_estimate(
    condition: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged([Expression.parse(condition)], results(tmp_path), 0) == status
    said = capsys.readouterr().err
    assert ("true" in said) == (status == FAILED)
    assert said.count("\n") == 1 if status == 2 else True


def test_counts_of_a_guest_come_before_the_estimate(tmp_path: Path) -> None:
    counts = {"run": {"remote_fraction": 0.9, "total_misses": 5000, "remote_misses": 4500}}
    expression = Expression.parse("remote_fraction > 0.8 and total_misses > 1000")
    assert judged([expression], results(tmp_path, counts), 0) == FAILED


def test_a_program_that_failed_has_the_last_word(tmp_path: Path) -> None:
    assert judged([Expression.parse("remote_fraction > 0")], results(tmp_path), 7) == 7


def test_a_run_that_nothing_is_known_of_has_not_passed() -> None:
    expression = Expression.parse("remote_fraction > 0")
    with pytest.raises(UserError, match="nothing is known"):
        figures(expression, Results())
    assert judged([expression], None, 0) == 2


def test_each_of_several_conditions_that_holds_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ("remote_fraction > 0.3", "moved_pages > 10", "remote_fraction > 0.9")
    one, other, false = (Expression.parse(text) for text in texts)
    for conditions in ([one, other, false], [false, other, one]):
        assert judged(conditions, results(tmp_path), 0) == FAILED
        said = capsys.readouterr().err
        assert said.count(": true") == 2 and texts[0] in said and texts[1] in said
    assert judged([false, false], results(tmp_path), 0) == 0
    assert judged([false, Expression.parse("total_misses > 1")], results(tmp_path), 0) == 2
    assert judged([false, one], results(tmp_path), 3) == 3


def test_repeated_conditions_reach_the_judge(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[Expression]] = []
    monkeypatch.setattr("homing.run.compared", lambda *_: 0)
    monkeypatch.setattr("homing.fail_if.judged", lambda conditions, *_: seen.append(conditions) or 96)
    words = ["run", "--fail-if", "remote_fraction > 0.1", "--fail-if", "moved_pages > 1", "--", "true"]
    assert cli.main(words) == 96
    assert [one.text for one in seen[0]] == ["remote_fraction > 0.1", "moved_pages > 1"]
    assert cli.main(["run", "--fail-if", "moved_pages > 1", "--fail-if", "nonsense", "--", "true"]) == 2
    assert "--fail-if nonsense" in capfd.readouterr().err


def test_arrays_with_too_few_samples_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = four_node_run()
    estimate(writer, 1, 0.1, 0.1, 0.8)
    writer.sample(2, before=1.0, after=1.0, granules=3, traffic=0.02)
    found = read_results([str(writer.write(tmp_path / "few"))])
    assert judged([Expression.parse("any_area.remote_fraction > 0.9")], found, 0) == 0
    title = found.processes[0].areas[1].name.title
    assert judged([Expression.parse(f'area."{title}".remote_fraction > 0.9')], found, 0) == 2
    said = capsys.readouterr().err
    assert "too few of its touches were sampled (3)" in said and said.count("\n") == 1


def test_an_estimate_is_called_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("remote_fraction > 0.3", "any_area.remote_fraction > 0.3"):
        assert judged([Expression.parse(text)], results(tmp_path), 0) == FAILED
        said = capsys.readouterr().err
        assert "misses" not in said
        assert ", of touches, estimated (95 % interval " in said
