"""homing bench wittmann_why without its runs: what is made of what they found."""

from __future__ import annotations

import os
from typing import Any

import pytest

from homing.bench import undisturbed, wittmann_here, wittmann_why
from homing.bench.results import Results


def found(machine: str, way: str, mlups: float, misses: list[list[int]], width: str = "10") -> dict[str, Any]:
    grid = ["--sites-k", "130", "--block-j", width]
    one = {"machine": machine, "way": way, "grid": grid, "mlups": mlups, "misses": misses}
    return {**one, "home": 1.0, "blocks": 1440, "bound": "memory"}


def even(nodes: int, local: int, far: int) -> list[list[int]]:
    return [[local if a == b else far for b in range(nodes)] for a in range(nodes)]


def test_statements_are_judged_on_the_papers_shape() -> None:
    results = Results("x", "", "")
    rates = {"static.s": 100.0, "static.round-robin": 80.0, "paper.s1.kji": 95.0}
    wittmann_why.add_shape(
        results, [found("istanbul", way, rate, even(4, 9, 0)) for way, rate in rates.items()]
    )
    (check,) = results.checks
    assert check.name == "istanbul: paper.s1.kji is within 10 % of static first touch with the paper's shape"
    assert check.passed
    assert {row.name: row.value for row in results.rows}["istanbul.shape.mlups.paper.s1.kji"] == 95


def test_ways_without_a_bar_are_held_against_those_with_one() -> None:
    rates = {
        "static.s": 100.0,
        "tasks.s.ijk": 50.0,
        "tasks.s.kji": 80.0,
        "tasks-all.s.ijk": 100.0,
        "tasks-all.s.kji": 80.0,
        "tbb-paper.p": 60.0,
        "tbb-1d-paper.p": 63.0,
    }
    results = Results("x", "", "")
    wittmann_why.add_new(
        results, [found("istanbul", way, rate, even(4, 9, 0)) for way, rate in rates.items()]
    )
    submission, line = results.checks
    assert not submission.passed
    assert "ijk 2.00 times" in submission.text
    assert line.passed
    assert {row.name: row.value for row in results.rows}["istanbul.new.mlups.tbb-1d-paper.p"] == 63


def test_what_follows_from_published_runs() -> None:
    """T of round robin to local: 1/nodes + (1 - 1/nodes) bandwidth / link, on each machine."""
    results = Results("x", "", "")
    ways = {
        machine: {
            "static.round-robin": {"misses": even(nodes, 9, 9)},
            "static.s": {"misses": even(nodes, 9, 0)},
            "queues.s.ijk": {"misses": even(nodes, 100, 0)},
            "queues.s.kji": {"misses": even(nodes, 110, 0)},
        }
        for machine, nodes in (("nehalem-ep", 2), ("istanbul", 4))
    }
    wittmann_why.add_model(results, ways)
    rows = {row.name: row.value for row in results.rows}
    own = 0.5 + 0.5 * 18.5 / 10.0
    link = rows["istanbul.model.link_for_the_papers_order"]
    assert link == pytest.approx(0.75 * 9.8 / (own - 0.25), abs=0.06)
    assert rows["istanbul.model.lines_of_kji_to_ijk"] == pytest.approx(1.1)
    assert 0.6 < rows["istanbul.model.random_order"] < 1


def test_lines_that_neighbours_share() -> None:
    runs = []
    for width, lines in (("10", 108), ("20", 104)):
        runs += [
            found("nehalem-ex", way, 1.0, [[count]], width)
            for way, count in (("queues.s.ijk", 100), ("queues.s.kji", lines))
        ]
    results = Results("x", "", "")
    wittmann_why.add_halo(results, runs)
    assert [row.value for row in results.rows] == [1.08, 1.04]
    assert results.checks[0].passed


def test_temporal_blocking_is_held_against_plain_sweeps_where_nobody_disturbed() -> None:
    results = Results("x", "", "")

    def runs(*values: float) -> list[tuple[float, float]]:
        return [*((value, 0.0) for value in values), (100.0, 0.5)]

    depths = {"1.1": runs(4.0, 4.0), "1.4": runs(6.0), "2.4": runs(2.0)}
    loaded = {
        f"{others}.1.{depth}": [(rate, 0.5)] for others in (1, 2) for depth, rate in ((1, 2.0), (4, 1.0))
    }
    wittmann_here.add_temporal(
        results, {"layers": {"12.t2.groups_1": runs(5.0)}, "depths": depths, "loaded": loaded}
    )
    rows = {row.name: row for row in results.rows}
    assert rows["here.depth_4.groups_1"].value == 6
    assert rows["here.depth_4.groups_1"].note.startswith("1.50 times")
    assert rows["here.depth_4.groups_1"].note.endswith("1 of 2 runs undisturbed")
    assert rows["here.loaded_1.depth_4.groups_1"].note.startswith("0.50 times plain sweeps beside")
    assert rows["here.plain.layers_12.t2.groups_1"].value == 5
    assert [check.passed for check in results.checks] == [True, True]


def test_where_all_runs_were_disturbed_all_of_them_count() -> None:
    assert undisturbed.kept_alone([(1, 0.5), (2, 0.6)]) == [1, 2]


def test_what_others_had_of_the_cpus() -> None:
    assert undisturbed.busy_seconds("cpu  100 0 100 900 50 0 0 0 0 0\ncpu0 1") == pytest.approx(
        200 / os.sysconf("SC_CLK_TCK")
    )
    (found, quiet) = undisturbed.others_share(lambda: 7)
    assert found == 7
    assert quiet >= 0


def test_spreads_are_told_apart_where_all_rounds_differ() -> None:
    def rounds(*spreads: float) -> list[tuple[list[float], float]]:
        return [([1 - one / 2, 1, 1, 1, 1 + one / 2], 0.0) for one in spreads]

    for tasks, passed in ((rounds(0.05, 0.2), True), (rounds(0.5, 0.6), False)):
        results = Results("x", "", "")
        wittmann_here.add_spread(
            results, {"static.s": rounds(0.1, 0.06), "tasks.s.kji": tasks, "tbb.p.n-a": rounds(0.1)}
        )
        assert results.checks[0].passed == passed
    assert results.rows[0].value == pytest.approx(0.08)
