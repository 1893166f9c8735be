"""Phases: the parts of the time loop that go through the hot arrays along another dimension than the others.

The unit is a parallel region, wherever the loop's calls lead to one. What stands between the calls of a phase
is as much of the program as reaches such regions only: in NAS BT `call z_solve`, which lies in a procedure
that the time loop calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from homing.translate.affine import affine
from homing.translate.directives.model import Form
from homing.translate.targets.upm.program import Identity, Program, hidden_in, place
from homing.translate.targets.upm.timeloop import TimeLoop
from homing.translate.tree import Branch, Construct, Loop, Node, Routine, Statement, statements, walk

#: How often an array is dealt out along which of its dimensions (from 0).
_Directions = Counter[tuple[Identity, int]]
#: What may stand behind a statement on its line.
_REST = {True: re.compile(r"\s*;?\s*(//.*|/\*.*\*/\s*)?$"), False: re.compile(r"\s*(!.*)?$")}


@dataclass
class Phase:
    """Nodes in one body, first to last, that calls can be put around."""

    routine: Routine
    first: Node
    last: Node

    @property
    def where(self) -> str:
        return place(self.routine, self.first)


@dataclass
class Phases:
    """What was found, and for the user why."""

    found: list[Phase] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def phases(program: Program, loop: TimeLoop, hot: Sequence[Identity]) -> Phases:
    """The phases of the time loop, in the order of their text."""
    result = Phases()
    regions = {id(node): (routine, node) for routine, node in _regions(program, loop.routine, loop.loop.body)}
    along = {key: _directions(program, *region, hot) for key, region in regions.items()}
    usual: _Directions = Counter()
    for directions in along.values():
        usual.update(_main(directions).items())
    chosen = set()
    for key, directions in along.items():
        for identity, index in _main(directions).items():
            others = {at: n for (name, at), n in usual.items() if name == identity and at != index}
            most = max(others, key=lambda at: others[at], default=index)
            if others and others[most] > usual[(identity, index)]:
                chosen.add(key)
                result.lines.append(
                    f"upm: {place(*regions[key])} goes through {identity[1]} along dimension {index + 1}, "
                    f"most others along dimension {most + 1}"
                )
                break
    if not chosen:
        result.lines.append(
            "upm: no phase goes through the hot arrays along another dimension than the others"
        )
    cover = _Cover(program, loop.routine, chosen, result)
    cover.body(loop.routine, loop.loop.body, frozenset({loop.routine.name}))
    return result


def _regions(
    program: Program, routine: Routine, nodes: Sequence[Node], seen: frozenset[str] = frozenset()
) -> Iterator[tuple[Routine, Construct]]:
    """The parallel regions that the nodes come to, those inside another left out."""
    for node in nodes:
        if isinstance(node, Construct) and node.parallel:
            yield routine, node
            continue
        for body in _bodies(node):
            yield from _regions(program, routine, body, seen)
        for callee in program.callees([node]) if isinstance(node, Statement) else ():
            if callee.name not in seen:
                yield from _regions(program, callee, callee.body, seen | {callee.name})


def _bodies(node: Node) -> list[list[Node]]:
    if isinstance(node, Branch):
        return [body for _, body in node.arms]
    return [node.body] if isinstance(node, Loop | Construct) else []


def _directions(
    program: Program, routine: Routine, region: Construct, hot: Sequence[Identity]
) -> _Directions:
    """Along which dimensions the region's worksharing loops deal out each hot array, and how many do."""
    found: _Directions = Counter()
    hidden = hidden_in(region, routine)
    for owner, node in program.reached(routine, [region], frozenset({routine.name})):
        if not (isinstance(node, Construct) and node.worksharing and node.body):
            continue
        variables = _shared_out(node)
        once = set()
        for statement in statements(node.body):
            for reference in statement.references:
                if owner is routine and reference.name in hidden:
                    continue
                texts = [subscript.text for subscript in reference.subscripts or []]
                index = _dealt_out(texts, variables)
                if index is not None:
                    meant = program.resolve(owner, reference.name)
                    once |= {(identity, index) for identity in meant if identity in hot}
        found.update(once)
    return found


def _shared_out(construct: Construct) -> list[str]:
    """The variables of the loops that are dealt out together, outermost first."""
    clauses = construct.directive.clause("collapse")
    text = (clauses[0].text or "").strip() if clauses else ""
    found: list[str] = []
    node: Node | None = construct.body[0]
    while isinstance(node, Construct) and node.body:
        node = node.body[0]
    for _ in range(int(text) if text.isdecimal() and len(text) < 3 else 1):
        if not isinstance(node, Loop) or node.variable is None:
            break
        found.append(node.variable)
        node = next((inner for inner in node.body if isinstance(inner, Loop)), None)
    return found


def _dealt_out(subscripts: Sequence[str], variables: Sequence[str]) -> int | None:
    """The dimension that the outermost of the variables goes through."""
    forms = [affine(text) for text in subscripts]
    for variable in variables:
        for index, form in enumerate(forms):
            if form.coefficient(variable):
                return index
    return None


def _main(directions: _Directions) -> dict[Identity, int]:
    """Of each array the dimension along which more loops deal it out than along any other."""
    best: dict[Identity, int] = {}
    for identity in {identity for identity, _ in directions}:
        counts = sorted(((n, at) for (name, at), n in directions.items() if name == identity), reverse=True)
        if len(counts) == 1 or counts[0][0] > counts[1][0]:
            best[identity] = counts[0][1]
    return dict(sorted(best.items()))


class _Cover:
    """Finds what calls are put around."""

    def __init__(self, program: Program, start: Routine, chosen: set[int], result: Phases) -> None:
        self.program = program
        self.start = start
        self.chosen = chosen
        self.result = result

    def body(self, routine: Routine, nodes: Sequence[Node], seen: frozenset[str]) -> None:
        before: Phase | None = None
        for node in nodes:
            regions = {id(region) for _, region in _regions(self.program, routine, [node], seen)}
            if not regions & self.chosen:
                before = None
            elif regions <= self.chosen and _has_lines_of_its_own(routine, node):
                if before is None:
                    before = Phase(routine, node, node)
                    self._add(before)
                before.last = node
            else:
                before = None
                self._inside(routine, node, seen)

    def _add(self, phase: Phase) -> None:
        if all(phase.first is not known.first for known in self.result.found):
            self.result.found.append(phase)

    def _inside(self, routine: Routine, node: Node, seen: frozenset[str]) -> None:
        if isinstance(node, Construct) and node.parallel:
            self.result.lines.append(f"upm: {place(routine, node)}: no calls: its lines are not its own")
            return
        for body in _bodies(node):
            self.body(routine, body, seen)
        for callee in self.program.callees([node]) if isinstance(node, Statement) else ():
            if callee.name in seen:
                continue
            parallel = self.program.called_inside(callee, regions=True)
            if parallel is not None:
                self.result.lines.append(
                    f"upm: {callee.name}: no calls: it is also called inside the "
                    f"{parallel[1].directive.name} construct of {place(*parallel)}"
                )
                continue
            self.body(callee, callee.body, seen | {callee.name})


def _has_lines_of_its_own(routine: Routine, node: Node) -> bool:
    """Can lines be put before the node and behind it?"""
    source = routine.source
    before = source.text[source.line_start(node.begin) : node.begin]
    behind = source.text[node.end : source.next_line(max(node.end - 1, node.begin))].rstrip("\r\n")
    if before.strip() or not _REST[source.form is Form.C].match(behind):
        return False
    if isinstance(node, Loop) and source.form is not Form.C:  # DO 10 i / DO 10 j: the end is another's, too
        ends = [other.end_begin for other in walk(routine.body) if isinstance(other, Loop)]
        return ends.count(node.end_begin) == 1
    return not isinstance(node, Statement) or node.label is None
