"""A plan for people (`homing translate --explain`): by file, its arrays and what becomes of its code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from homing.translate.plan.model import (
    AnewPlan,
    ArrayPlan,
    Box,
    Exchange,
    Follow,
    Home,
    LoopPlan,
    NotePlan,
    Plan,
    ReadPlan,
    Schedule,
    SerialPlan,
    SinglePlan,
    Step,
)
from homing.translate.plan.record import expression

_WHY = {
    Home.ON_HOME: "as ON HOME says",
    Home.AFFINITY: "as AFFINITY says",
    Home.WRITTEN: "whose owner computes",
    Home.READ: "which is read; nothing distributed is written",
}
_DIRECTIVES = {"distribute": "DISTRIBUTE", "align": "ALIGN"}

#: A line: its style on a terminal, and its text.
Line = tuple[str, str]


def lines(plan: Plan) -> Iterator[Line]:
    """All that is said, line by line."""
    shown = list(plan.files)
    shown += [one.place.file for one in (*plan.arrays, *plan.steps) if one.place.file not in shown]
    for name in dict.fromkeys(shown):
        arrays = [one for one in plan.arrays if one.place.file == name]
        steps = [one for one in plan.steps if one.place.file == name]
        yield "bold", f"{name}: --to {plan.target}"
        if not arrays and not steps and not plan.report:
            yield "dim", "  nothing is distributed or shared out here"
        for array in arrays:
            yield "", f"{_place(array)}: {array.routine}: {_array(array)}"
        for step in steps:
            first, *more = _step(step)
            yield _style(step), f"{_place(step)}: {step.routine}: {first}"
            for line in more:
                yield "", f"    {line}"
    for text in plan.report:
        yield "", text
    for refused in plan.refused:
        text = " ".join(refused.text.split())
        yield "bold red", f"{refused.place}: refused: {refused.reason}" + (f": {text}" if text else "")


def show(plan: Plan) -> None:
    """On the standard output, with colours on a terminal."""
    terminal = sys.stdout.isatty()
    if not terminal:
        for _, text in lines(plan):
            print(text)
        return
    from rich.console import Console
    from rich.text import Text

    from homing.report.lines import terminal_width

    width = terminal_width(sys.stdout, os.environ)
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    for style, text in lines(plan):
        console.print(Text(text, style), soft_wrap=True)


def _place(one: ArrayPlan | Step) -> str:
    return f"{one.place.file}:{one.place.line}"


def _style(step: Step) -> str:
    if isinstance(step, LoopPlan):
        return {Schedule.REFUSED: "red", Schedule.KEPT: "dim"}.get(step.schedule, "")
    return "yellow" if isinstance(step, SerialPlan | NotePlan) else ""


def _array(one: ArrayPlan) -> str:
    shadow = ", ".join(f"{low}:{high}" for low, high in one.shadow)
    text = f"array {one.formats()}" + (f", shadow ({shadow})" if one.pieces else ", pages placed")
    if one.directive:
        text += f", by {_DIRECTIVES.get(one.directive, one.directive.upper())}"
    return text + (f", passed from {one.passed_from}" if one.passed_from else "")


def _step(step: Step) -> list[str]:
    if isinstance(step, LoopPlan):
        return _loop(step)
    if isinstance(step, SinglePlan):
        return _single(step)
    if isinstance(step, SerialPlan):
        scattered = f", {_names(step.changed)} scattered behind it" if step.changed else ""
        return [f"serial code, {step.reason}: {_names(step.gathered)} gathered{scattered}"]
    if isinstance(step, ReadPlan):
        return ["every thread reads it:", *(f"broadcast of {_exchange(one)}" for one in step.broadcasts)]
    if isinstance(step, AnewPlan):
        formats = ", ".join(one.format() for one in step.dimensions)
        return [f"{step.array} is dealt out anew as {step.array}({formats})"]
    return [step.reason]


def _loop(one: LoopPlan) -> list[str]:
    head = "loop"
    if one.variable:
        head += f" over {one.variable} = {one.first}..{one.last}"
        head += f" by {one.step}" if one.step not in ("1", "") else ""
    if one.schedule is Schedule.KEPT:
        return [f"{head}: OpenMP's schedule is kept: {one.reason}"]
    if one.schedule is Schedule.REFUSED:
        return [f"{head}: refused: {one.reason}"]
    if one.schedule is Schedule.THREAD:
        return [f"{head}: iterations on thread {one.thread}, as AFFINITY says"]
    follows = ", ".join(_follow(each) for each in one.follows)
    found = [f"{head}: {follows}, {_WHY.get(one.why, '')}"]
    found += [f"fetch the shadow of {_exchange(each)}" for each in one.fetches]
    found += [f"no fetch of {_box(each)}: nothing was written since the last one" for each in one.at_hand]
    found += [f"broadcast of {_exchange(each)}" for each in one.broadcasts]
    found += [f"push to the owners of {_exchange(each)}" for each in one.pushes]
    if one.reductions:
        found.append("reduced: " + ", ".join(f"{name} by {operator}" for operator, name in one.reductions))
    if one.last_values:
        found.append("left by the part that runs the last iteration: " + ", ".join(one.last_values.names))
    if one.private:
        found.append("private: " + ", ".join(one.private))
    return found


def _follow(one: Follow) -> str:
    at = f" at {one.scaled(one.variable)}{f'{one.offset:+d}' if one.offset else ''}"
    at = at if one.offset or one.factor > 1 else ""
    return f"{one.variable} on the owner of {one.home} dimension {one.dimension + 1}{at}"


def _single(one: SinglePlan) -> list[str]:
    if one.reason:
        return [f"{one.construct}: refused: {one.reason}"]
    if one.owner is None:
        scattered = f", {_names(one.changed)} scattered behind it" if one.changed else ""
        gathered = f"{_names(one.gathered)} gathered for one thread"
        return [f"{one.construct}: not one owner's elements: {gathered}{scattered}"]
    index = ", ".join(text for _, text in one.index)
    dimensions = ", ".join(str(at + 1) for at, _ in one.index)
    found = [f"{one.construct}: run by the owner of {one.owner}, index {index} of dimension {dimensions}"]
    found += [f"fetch the shadow of {_exchange(each)}" for each in one.fetches]
    return found + [f"push to the owners of {_exchange(each)}" for each in one.pushes]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)


def _exchange(one: Exchange) -> str:
    each = "each part" if one.copy else "each block"
    if not one.count:
        return f"{_box(one.box)}, as many elements for {each} as the parts are long"
    plural = "" if one.elements == 1 else "s"
    count = one.count if one.elements is None else f"{one.elements:,}"
    return f"{_box(one.box)}, {count} element{plural} for {each}"


def _box(box: Box) -> str:
    sides = []
    for side in box.sides:
        if side.follow is not None:
            variable = side.follow.scaled(side.follow.variable) or side.first
            ends = dict.fromkeys((side.low, side.high))
            sides.append("..".join(variable + (f"{end:+d}" if end else "") for end in ends))
        elif expression(side.first) == expression(side.last):
            sides.append(side.first)
        else:
            sides.append(f"{side.first}:{side.last}")
    return f"{box.array}({', '.join(sides)})"
