"""Conditions of --fail-if: what they may say, and what they are judged by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import UserError
from homing.simulate.expressions import Expression


def counts(remote: int = 20, total: int = 100) -> dict[str, Any]:
    area = {"name": "m::u", "variable": "u", "title": "u", "remote_misses": remote, "total_misses": total}
    return {
        "run": {
            "remote_fraction": remote / total,
            "remote_misses": remote,
            "total_misses": total,
            "home_shares": [0.75, 0.25],
        },
        "moved_pages": 3,
        "areas": [
            {**area, "remote_fraction": remote / total, "share": 0.9},
            {
                **area,
                "name": "heap@x",
                "variable": "v",
                "title": "x.c:3",
                "remote_fraction": 0.0,
                "share": 0.1,
            },
        ],
    }


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("remote_fraction > 0.1", True),
        ("remote_fraction > 20 %", False),
        ("remote_fraction >= 20%", True),
        ("area.u.remote_fraction > 0.1", True),
        ("area.m::u.remote_fraction > 0.1 and total_misses > 1000", False),
        ("area.v.remote_fraction > 0.1 or moved_pages == 3", True),
        ("any_area.remote_fraction > 0.5", False),
        ("not (home_share.0 < 0.5)", True),
        ("remote_misses < 1 or (total_misses == 100 and not moved_pages > 3)", True),
    ],
)
def test_conditions(text: str, true: bool) -> None:
    verdict = Expression.parse(text).judge(counts())
    assert verdict.true is true
    assert bool(verdict.reasons) is true


def test_a_condition_names_the_arrays_behind_it() -> None:
    verdict = Expression.parse("remote_fraction > 0.1").judge(counts())
    assert verdict.reasons[0] == "remote_fraction = 0.2 > 0.1"
    assert any(line.startswith("u: 20.0 % of its misses remote, 100 % of all") for line in verdict.reasons)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends too early"),
        ("remote_fraction", "expects one of"),
        ("remote_fraction > much", "expects a number"),
        ("speed > 1", "speed: there are accesses"),
        ("area.u.speed > 1", "speed: must be one of"),
        ("(remote_fraction > 1", "not closed"),
        ("remote_fraction > 1 remote_fraction > 2", "what is 'remote_fraction'"),
        ("remote_fraction > 1 & 2", "cannot be read at '& 2'"),
    ],
)
def test_bad_conditions(text: str, reason: str) -> None:
    with pytest.raises(UserError) as error:
        Expression.parse(text)
    assert reason in error.value.message


def test_a_condition_about_what_is_not_there() -> None:
    with pytest.raises(UserError, match="there is no array w; there are u, v"):
        Expression.parse("area.w.share > 0").judge(counts())
    with pytest.raises(UserError, match="the machine has 2 nodes"):
        Expression.parse("home_share.2 > 0").judge(counts())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "any_area: no array was watched"),
        ({"share": 0.005}, "any_area: no array has 1 % of the misses"),
        ({"too_few": "too few of its touches were sampled (3)"}, "any_area: u: too few of its touches"),
    ],
)
def test_any_array_is_not_none(change: dict[str, Any] | None, reason: str) -> None:
    found = counts()
    found["areas"] = [] if change is None else [{**one, **change} for one in found["areas"]]
    for text in ("any_area.remote_fraction > 0", "not any_area.remote_fraction > 0"):
        with pytest.raises(UserError, match=reason):
            Expression.parse(text).judge(found)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("velocity", [1]),
        ("velocity.data", [1]),
        ("data", [1]),
        ("GRID (two.c:4)", [0]),
        ("pressure (two.c:7)", [0]),
        ("pressure (two.c:15)", []),
        ("main (two.c:7)", [0]),
        ("press*", [0]),
    ],
)
def test_conditions_know_the_names_that_areas_knows(name: str, found: list[int]) -> None:
    told = counts()
    for area, title in zip(
        told["areas"],
        (
            "pressure: grid (two.c:4) from main (two.c:7)",
            "velocity.data: Field (m.cpp:9) from Solver (m.cpp:15)",
        ),
        strict=True,
    ):
        area.update(title=title, variable=title.partition(":")[0].rpartition(".")[2])
    condition = Expression.parse(f'area."{name}".share > 0')
    if not found:
        with pytest.raises(UserError, match="there is no array"):
            condition.judge(told)
        return
    titles = [told["areas"][at]["title"] for at in found]
    assert [reason.partition(": share")[0] for reason in condition.judge(told).reasons] == titles


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_conditions_compare_as_python_does(value: float, limit: float, operator: str) -> None:
    found = counts()
    found["run"]["remote_fraction"] = value
    wanted = eval(f"{value!r} {operator} {limit!r}")
    assert Expression.parse(f"remote_fraction {operator} {limit!r}").judge(found).true is wanted
    assert Expression.parse(f"not remote_fraction {operator} {limit!r}").judge(found).true is not wanted
