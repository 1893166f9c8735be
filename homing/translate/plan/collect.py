"""The plan of a whole translation, from what its parts have planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from homing.translate.plan.arrays import Distributions
from homing.translate.plan.model import ArrayPlan, LoopPlan, Plan, Refusal, Schedule, Step
from homing.translate.positions import Problem


def collected(
    target: str,
    files: Sequence[str],
    arrays: tuple[ArrayPlan, ...],
    steps: Iterable[Step],
    problems: Iterable[Problem],
    notes: Iterable[Problem],
) -> Plan:
    """All of it, in the order of the sources; loops in which something is wrong are refused."""
    order = {name: number for number, name in enumerate(files)}
    refused = refusals(problems)

    def place(step: Step) -> tuple[int, str, int, int]:
        at = step.place
        return (order.get(at.file, len(order)), at.file, at.line, at.column)

    marked = [_marked(one, refused) for one in sorted(steps, key=place)]
    return Plan(target, tuple(files), arrays, tuple(marked), refused, tuple(str(note) for note in notes))


def refusals(problems: Iterable[Problem]) -> tuple[Refusal, ...]:
    """What is refused, in the order of the sources."""
    return tuple(Refusal(one.position, one.text, one.reason) for one in sorted(set(problems)))


def _marked(step: Step, refused: Sequence[Refusal]) -> Step:
    if not isinstance(step, LoopPlan):
        return step
    for one in refused:
        if one.place.file == step.place.file and step.lines[0] <= one.place.line <= step.lines[1]:
            return replace(step, schedule=Schedule.REFUSED, reason=one.reason)
    if step.schedule is Schedule.REFUSED and not step.reason:
        return replace(step, reason="see what is refused")
    return step


def array_plans(distributions: Distributions) -> tuple[ArrayPlan, ...]:
    """Every array where it is declared, and every argument that gets one."""
    found = []
    for unit in distributions.units:
        for routine in unit.routines:
            for array in distributions.of(routine).values():
                if array.routine is not routine:
                    continue
                origin = array.origin
                found.append(
                    ArrayPlan(
                        array.name,
                        routine.name,
                        routine.source.place(array.declaration.begin),
                        type(origin).__name__.lower() if origin is not None else "",
                        tuple(array.dimensions),
                        tuple((low, high) for low, high in array.shadow),
                        array.passed_from.routine.name if array.passed_from else "",
                        not distributions.in_place,
                    )
                )
    return tuple(found)
