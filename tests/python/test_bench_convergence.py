"""homing bench convergence without a guest: knobs, rows, and what is required of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from homing.bench import balancing, convergence
from homing.bench.guest_runs import Outcome
from homing.bench.programs import Output, parse_output
from tests.python.test_bench import OUTPUT


def made(name: str, remote: dict[int, int], oracle: int = 100, last: float = 0.02, **more: Any) -> Outcome:
    """An outcome with 10,000 misses in each phase."""
    return Outcome(
        name,
        [name],
        {1: 10_000, 2: 10_000, 3: 10_000},
        remote,
        oracle,
        last,
        parse_output(OUTPUT),
        9.0,
        **more,
    )


@pytest.mark.parametrize("footprints", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seconds", [0.05, 0.5, 5.0])
def test_balancing_scans_what_is_asked_for(footprints: float, seconds: float) -> None:
    size = 64 << 20
    knobs = balancing.balancing_settings(footprints, seconds, size)
    assert knobs["numa_balancing"] == 1
    assert knobs["scan_period_min_ms"] == knobs["scan_period_max_ms"]
    wanted_ms = 1000 * seconds / footprints
    assert knobs["scan_period_min_ms"] == pytest.approx(max(wanted_ms, 8 * math.ceil(1 / footprints)), abs=1)
    assert knobs["scan_size_mb"] <= math.ceil(min(footprints, 1) * size / 2**20)
    pieces = math.ceil(size / (knobs["scan_size_mb"] << 20))
    assert knobs["scan_period_min_ms"] / pieces >= 4  # a timer tick
    if footprints < 1 and seconds >= 0.5:  # a piece an iteration
        assert pieces == pytest.approx(1 / footprints, rel=0.15)
    assert knobs["scan_delay_ms"] >= 1


def program(**changed: Outcome) -> convergence.ProgramRuns:
    runs = {name: made(name, {1: 0, 2: 7500, 3: 7500}) for name in convergence.VARIANTS}
    facts = {"settled_after": 1, "moved": 900}
    runs["homing"] = made("homing", {1: 0, 2: 900, 3: 300}, homing=facts)
    runs["parallel_init"] = made("parallel_init", {1: 0, 2: 200, 3: 200})
    runs["parallel_init_homing"] = made("parallel_init_homing", {1: 2, 2: 201, 3: 201})
    runs["homing_hint_faults"] = made("homing_hint_faults", {1: 0, 2: 900, 3: 300}, homing=facts)
    for name in ("balancing_0.1", "balancing_1", "balancing_10", "homing_hint_faults"):
        runs[name].settings = {
            "scan_size_mb": 1,
            "scan_period_min_ms": 100,
            "scanned_footprints_an_iteration": 0.1,
            "scanned_footprints_an_iteration_at_first": 0.12,
            "first_iterations": 20,
        }
    runs.update(changed)
    return convergence.ProgramRuns("cg", ["cg"], runs)


def failed(runs: convergence.ProgramRuns) -> list[str]:
    return [one.name for one in convergence.checks_of(runs) if not one.passed]


def test_convergence_has_the_rows_that_were_promised() -> None:
    names = {row.name for row in convergence.rows_of(program())}
    runs = [*convergence.VARIANTS, "oracle"]
    halves = [f"{name}.last_half" for name in ("homing", "parallel_init", "oracle")]
    assert names >= {f"cg.{name}" for name in runs + halves}
    assert len(runs) == 11
    assert failed(program()) == []


def test_harm_is_measured_more_often_where_it_is_less_clear() -> None:
    def pairs(plain: Sequence[int], homing: Sequence[int]) -> dict[tuple[str, int], Outcome]:
        runs = {"parallel_init": plain, "parallel_init_homing": homing}
        return {(name, at): made(name, {2: n}) for name in runs for at, n in enumerate(runs[name])}

    def next_turn(plain: Sequence[int], homing: Sequence[int]) -> int | None:
        others = {step: made(step[0], {2: 1}) for step in convergence._STEPS if "parallel" not in step[0]}
        step = convergence._next_step({**others, **pairs(plain, homing)})
        return None if step is None else step[1]

    assert next_turn([], []) == 0
    assert next_turn([1000, 1001], [1000, 1001]) == 2
    assert next_turn([1000, 1009, 1001], [1000, 1030, 1004]) is None
    assert next_turn([1000, 1009, 1001], [1000, 1030, 1008]) == 3, "perhaps it is harm"
    assert next_turn([1000, 1011, 1001], [1000, 1000, 1000]) == 3, "plain runs differ"
    assert next_turn([1000] * 7, [1008] * 7) is None
    assert next_turn([1000] * 6 + [1011], [1008] * 7) == 7
    assert next_turn([1000, 1011] * 15 + [1000], [1000] * 31) is None


def test_convergence_sees_what_is_not_met() -> None:
    facts = {"settled_after": 3, "moved": 900}
    slow = made("homing", {1: 0, 2: 900, 3: 300}, homing=facts)
    assert [name for name in failed(program(homing=slow)) if "settles" in name]
    slow = made("homing_hint_faults", {1: 0, 2: 900, 3: 300}, homing=facts)
    slow.settings = {"scanned_footprints_an_iteration": 0.9}
    assert failed(program(homing_hint_faults=slow)) == ["cg: settles within 2 scans with hint-faults"]
    far = made("homing", {1: 0, 2: 300, 3: 501}, homing={"settled_after": 0, "moved": 9})
    assert failed(program(homing=far)) == ["cg: last half within 3 points of the oracle"]
    dear = made("homing", {1: 0, 2: 1400, 3: 300}, homing={"settled_after": 0, "moved": 9})
    assert [name for name in failed(program(homing=dear)) if "tenth" in name]
    harm = made("parallel_init_homing", {1: 0, 2: 203, 3: 202})
    assert [name for name in failed(program(parallel_init_homing=harm)) if "no harm" in name]
    other = made("interleave", {1: 0, 2: 7500, 3: 7500})
    other.output = Output({**other.output.fields, "result zeta": "10.4"})
    assert failed(program(interleave=other)) == ["cg: same results in all runs"]


def test_a_scan_period_is_searched_for() -> None:
    def scanned(correction: float) -> float:  # a kernel that follows the knob unevenly
        return 0.2 if correction > 0.5 else 3.0 if correction < 0.1 else 0.9

    search = balancing.PeriodSearch()
    for _ in range(6):
        ratio = scanned(search.correction)
        if 0.67 <= ratio <= 1.5:
            break
        assert search.next(ratio)
    assert scanned(search.correction) == 0.9
