"""From plans to text: each object of a plan, written by the writer of the language.

Nothing is decided here. What is written is what the plan says, which is what --explain prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from homing.translate.affine import shifted
from homing.translate.plan.model import Box, Exchange, Follow, LoopPlan, SinglePlan, Subscript
from homing.translate.tree import Construct, Loop, walk
from homing.translate.write.writer import Around, Local, Region, Writer


def loop_lines(writer: Writer, region: Region, loop: Loop, plan: LoopPlan) -> Around:
    """The loop and those inside it run over own iterations; the lines around it."""
    for one, dimension, other, place in plan.together:
        region.together.add((writer.layout(one), dimension, writer.layout(other), place))
    _subscripts(writer, plan.subscripts)
    exchange = exchange_lines(writer.fetch, plan.fetches)
    exchange += broadcast_lines(writer, region, plan.broadcasts)
    exchange += [line for name in plan.changed for line in writer.before(name)]
    setup: list[str] = []
    for inner, follow in followers(loop, plan):
        positions = [one for one in plan.locals if one.variable == inner.variable]
        writer.own_loop(region, inner, follow, positions, setup if inner is loop else None)
    left: list[str] = []
    if plan.last_values:
        setup[:0] = writer.find_last(region, plan.last_values)
        left = writer.keep_last(plan.last_values)
    if plan.fixed:
        opening, closing = writer.only_if(writer.owner_test(plan.follows[0].home, plan.fixed))
        positions_of = [
            writer.assign(region.add(Local(one.name)), writer.local_index(one.array, one.dimension, text))
            for one, text in plan.fixed_locals
        ]
        setup[:0] = [opening, *positions_of]
        left.append(closing)
    return Around(exchange, setup, exchange_lines(writer.push, plan.pushes), plan.last_values, left)


def followers(loop: Loop, plan: LoopPlan) -> Iterator[tuple[Loop, Follow]]:
    """The loops that run over own iterations, from the outermost inwards."""
    follows = {one.variable: one for one in plan.follows}
    for inner in walk([loop]):
        if isinstance(inner, Loop) and inner.variable in follows:
            yield inner, follows[inner.variable]


def single_lines(writer: Writer, region: Region, node: Construct, plan: SinglePlan, barrier: bool) -> None:
    """A SINGLE construct that its elements' owner runs."""
    assert plan.owner is not None
    _subscripts(writer, plan.subscripts)
    before = exchange_lines(writer.fetch, plan.fetches)
    lines = []
    for one, text in plan.locals:
        region.add(Local(one.name))
        lines.append(writer.assign(one.name, writer.local_index(one.array, one.dimension, text)))
    test = writer.owner_test(plan.owner, plan.index)
    behind = exchange_lines(writer.push, plan.pushes)
    writer.owner_executes(node, test, before, lines, behind, barrier=barrier)


def exchange_lines(verb: Callable[[str, Sequence[Box]], list[str]], found: Sequence[Exchange]) -> list[str]:
    """One call for each array."""
    boxes: dict[str, list[Box]] = {}
    for one in found:
        boxes.setdefault(one.box.array, []).append(one.box)
    return [line for array, each in boxes.items() for line in verb(array, each)]


def broadcast_lines(writer: Writer, region: Region, found: Sequence[Exchange]) -> list[str]:
    """A contiguous copy each; its name stands in place of the array's."""
    lines: list[str] = []
    for one in found:
        lines += writer.broadcast(region, one)
        for reference in one.box.references:
            writer.edits.replace(reference.begin, reference.name_end, one.copy)
    return lines


def _subscripts(writer: Writer, subscripts: Sequence[Subscript]) -> None:
    for one in subscripts:
        more = f" + ({one.more})" if one.more else ""
        writer.edits.replace(one.begin, one.end, shifted(one.name, one.distance) + more)
