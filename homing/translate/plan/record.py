"""A plan as JSON (docs/json.md, "homing translate --explain --json")."""

from __future__ import annotations

from typing import Any

import homing
from homing.translate.affine import affine
from homing.translate.plan.boxes import written
from homing.translate.plan.model import (
    AnewPlan,
    ArrayPlan,
    Box,
    Dimension,
    Exchange,
    Follow,
    LoopPlan,
    NotePlan,
    Plan,
    ReadPlan,
    SerialPlan,
    SinglePlan,
    Step,
    UpmPlan,
)
from homing.translate.positions import Position

SCHEMA = "homing-plan/1"


def to_json(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "homing": homing.__version__,
        "target": plan.target,
        "files": list(plan.files),
        "arrays": [_array(one) for one in plan.arrays],
        "steps": [step(one) for one in plan.steps],
        "refused": [
            {**_place(one.place), "text": " ".join(one.text.split()), "reason": one.reason}
            for one in plan.refused
        ],
        "notes": list(plan.notes),
        "report": list(plan.report),
        "upm": _upm(plan.upm) if plan.upm is not None else None,
    }


def _upm(one: UpmPlan) -> dict[str, Any]:
    return {
        "hot": [
            {
                "name": each.name,
                "owner": each.owner,
                "reads": list(each.reads),
                "writes": list(each.writes),
                "registered": each.registered,
            }
            for each in one.hot
        ],
        "time_loop": {
            **_place(one.time_loop),
            "routine": one.routine,
            "variable": one.variable,
            "constructs": one.constructs,
            "region": _place(one.region) if one.region is not None else None,
        }
        if one.time_loop is not None
        else None,
        "phases": [{**_place(each.place), "routine": each.routine} for each in one.phases],
    }


def expression(text: str) -> str:
    """An expression in the one form that it has in every language and spelling."""
    return written(affine(text))


def _place(place: Position) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}


def _dimension(one: Dimension) -> dict[str, Any]:
    return {
        "format": one.kind.value,
        "argument": one.argument or one.sizes or None,
        "offset": one.offset,
        "parts": one.parts or None,
    }


def _array(one: ArrayPlan) -> dict[str, Any]:
    return {
        "name": one.name,
        "routine": one.routine,
        **_place(one.place),
        "directive": one.directive or None,
        "distribution": one.formats(),
        "dimensions": [
            {**_dimension(dimension), "shadow": list(widths)}
            for dimension, widths in zip(one.dimensions, one.shadow, strict=True)
        ],
        "passed_from": one.passed_from or None,
        "parts": one.pieces,
    }


def _box(box: Box) -> dict[str, Any]:
    return {
        "array": box.array,
        "dimensions": [
            {
                "first": expression(side.first),
                "last": expression(side.last),
                "follows": side.follow.variable or side.first if side.follow else None,
                "low": side.low,
                "high": side.high,
            }
            for side in box.sides
        ],
    }


def _exchange(one: Exchange) -> dict[str, Any]:
    return {**_box(one.box), **_place(one.place), "count": one.count or None, "elements": one.elements}


def _follow(one: Follow) -> dict[str, Any]:
    return {
        "variable": one.variable,
        "array": one.home,
        "dimension": one.dimension + 1,
        "offset": one.offset,
        "factor": one.factor,
        "format": one.dealt.format(),
    }


def step(one: Step) -> dict[str, Any]:
    """One step; `kind` says which."""
    head = {"kind": _KINDS[type(one)], **_place(one.place), "routine": one.routine}
    return {**head, **_body(one)}


_KINDS: dict[type, str] = {
    LoopPlan: "loop",
    SinglePlan: "single",
    SerialPlan: "serial",
    ReadPlan: "read",
    AnewPlan: "redistribute",
    NotePlan: "note",
}


def _body(one: Step) -> dict[str, Any]:
    if isinstance(one, LoopPlan):
        return _loop(one)
    if isinstance(one, SinglePlan):
        return {
            "construct": one.construct,
            "owner": one.owner,
            "index": [{"dimension": at + 1, "subscript": expression(text)} for at, text in one.index],
            "fetches": [_exchange(each) for each in one.fetches],
            "pushes": [_exchange(each) for each in one.pushes],
            "gathered": list(one.gathered),
            "scattered": list(one.changed),
            "reason": one.reason or None,
        }
    if isinstance(one, SerialPlan):
        return {
            "gathered": list(one.gathered),
            "scattered": list(one.changed),
            "allocated": list(one.anew),
            "reason": one.reason,
        }
    if isinstance(one, ReadPlan):
        return {"broadcasts": [_exchange(each) for each in one.broadcasts]}
    if isinstance(one, AnewPlan):
        return {"array": one.array, "dimensions": [_dimension(each) for each in one.dimensions]}
    return {"reason": one.reason}


def _loop(one: LoopPlan) -> dict[str, Any]:
    return {
        "lines": list(one.lines),
        "schedule": one.schedule.value,
        "variable": one.variable,
        "first": expression(one.first) if one.first else None,
        "last": expression(one.last) if one.last else None,
        "step": expression(one.step),
        "why": one.why.value,
        "home": one.home,
        "follows": [_follow(each) for each in one.follows],
        "thread": one.thread or None,
        "fetches": [_exchange(each) for each in one.fetches],
        "at_hand": [_box(each) for each in one.at_hand],
        "pushes": [_exchange(each) for each in one.pushes],
        "broadcasts": [_exchange(each) for each in one.broadcasts],
        "local_indices": [
            {
                "array": each.array,
                "dimension": each.dimension + 1,
                "variable": each.variable,
                "offset": each.offset,
            }
            for each in one.locals
        ],
        "private": list(one.private),
        "last_values": list(one.last_values.names) if one.last_values else [],
        "reductions": [{"operator": operator, "variable": name} for operator, name in one.reductions],
        "reason": one.reason or None,
    }
