"""THREADPRIVATE variables to which serial code gives values (--to mpi).

Serial code is run by the first thread of each rank, so each of these has what the program gives its one first
thread. What a loop over own iterations reads there, before it writes it, has to come from COPYIN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from homing.translate.plan.of_threads import OfThreads, ThreadPrivate
from homing.translate.plan.reached import called
from homing.translate.positions import Position
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    statements,
)

#: What one thread of a region runs.
_OF_ONE = ("single", "master", "masked", "sections")
#: Jumps that leave a body, and pass nothing by in it.
_LEAVING = ("break", "continue", "cycle", "exit", "return", "stop")
#: A variable, by the name that a routine has for it.
_Named = tuple[OfThreads, str]


class SerialValues:
    """Where serial code gives such variables values, and where they are read first."""

    def __init__(self, private: ThreadPrivate) -> None:
        self.private = private
        self.routines = private.known.routines
        self._given: dict[OfThreads, Position] | None = None

    def read(
        self, routine: Routine, node: Node, copied: Set[str]
    ) -> Iterator[tuple[int, int, str, Position]]:
        """What the node may read of that: the place, the name and where serial code gives it the value.
        copied: what COPYIN names."""
        if not any(scope.private for unit in self.private.known.units for scope in unit.routines):
            return
        found, given_anew = set[str](), {"".join(one.split()) for one in copied}
        for one, name, variable in self._first(routine, [node], set(), frozenset()):
            word = variable.name if variable.scope is not None else f"/{variable.name}/"
            given = self.given(variable)
            if given is not None and name not in found and not {name, word} & given_anew:
                found.add(name)
                yield one.begin, one.end, name, given

    def given(self, variable: OfThreads) -> Position | None:
        """Where serial code gives it a value, or may do so."""
        if self._given is None:
            self._given = {}
            for routine in self._run_by_one():
                for place, name in self._writes(routine):
                    meant = self.private.meant(routine, name)
                    if meant is not None:
                        self._given.setdefault(meant, place)
        return self._given.get(variable)

    def _run_by_one(self) -> list[Routine]:
        """The procedures that serial code may come to."""
        every = [one for unit in self.private.known.units for one in unit.routines]
        waiting = [one for one in every if one.main or one.module or self.private.otherwise(one)]
        if not any(one.main for one in every):
            waiting = every
        found = dict[int, Routine]()
        while waiting:
            one = waiting.pop()
            if id(one) not in found:
                found[id(one)] = one
                waiting += called(one.body, self.routines)
        inside = self.private.only_inside()
        return [one for key, one in found.items() if key not in inside]

    def _writes(self, routine: Routine) -> Iterator[tuple[Position, str]]:
        apart = routine.apart
        for name, begin in apart.words.items() if apart is not None else ():  # C++'s classes, not followed
            yield routine.source.place(begin), name
        for statement in _serial(routine.body, False):
            for one in statement.references:
                if one.access is not Access.READ:
                    yield routine.source.place(one.begin), one.name

    # --- what is read before it is written --------------------------------------------------------------

    def _first(
        self, routine: Routine, nodes: Sequence[Node], known: set[_Named], seen: frozenset[int]
    ) -> Iterator[tuple[Reference | Statement, str, OfThreads]]:
        """The nodes' reads of variables that they have not written before, in each iteration. known: which
        they have, in the end. seen: the procedures on the way here."""
        for node in nodes:
            if isinstance(node, Statement):
                yield from self._of_statement(routine, node, known, seen)
            elif isinstance(node, Loop):
                yield from self._of_statement(routine, node.head, set(known), seen)
                yield from self._first(routine, node.body, set(known), seen)
            elif isinstance(node, Branch):
                always = not (node.conditional or node.masked or node.switch or node.tries)
                for head, body in node.arms:
                    yield from self._of_statement(routine, head, set(known), seen)
                    yield from self._first(routine, body, known if always else set(known), seen)
            elif isinstance(node, Construct):
                yield from self._first(routine, node.body, set(known), seen)

    def _of_statement(
        self, routine: Routine, statement: Statement, known: set[_Named], seen: frozenset[int]
    ) -> Iterator[tuple[Reference | Statement, str, OfThreads]]:
        written = set[_Named]()
        for one in statement.references:
            meant = self.private.meant(routine, one.name)
            if meant is None or (meant, one.name) in known:
                continue
            if one.access is not Access.WRITE:
                yield one, one.name, meant
            elif _whole(routine, statement, one) and not statement.guarded and not _jumps(routine):
                written.add((meant, one.name))
        for callee in called([statement], self.routines):
            if id(callee) in seen:
                continue
            its = set(known)
            for _, name, meant in self._first(callee, callee.body, its, seen | {id(callee)}):
                yield statement, name, meant
            alone = re.match(rf"(call\b\s*)?{re.escape(callee.name)}\b", statement.text) is not None
            alone = alone and statement.kind is Kind.CALL and not statement.guarded and not _jumps(routine)
            if alone and all(one.kind is not Kind.JUMP for one in statements(callee.body)):
                written |= its
        known |= written


def _serial(nodes: Sequence[Node], region: bool) -> Iterator[Statement]:
    """The statements that one thread runs: outside of regions, and in constructs for one. region: in one."""
    for node in nodes:
        if isinstance(node, Construct):
            inner = (region or node.parallel) and node.directive.name not in _OF_ONE
            yield from _serial(node.body, inner)
        elif isinstance(node, Loop):
            if not region:
                yield node.head
            yield from _serial(node.body, region)
        elif isinstance(node, Branch):
            for head, body in node.arms:
                if not region:
                    yield head
                yield from _serial(body, region)
        elif isinstance(node, Statement) and not isinstance(node, Executable) and not region:
            yield node


def _whole(routine: Routine, statement: Statement, one: Reference) -> bool:
    """Does the statement write all of the variable, whatever else it does?"""
    text = routine.source.text[one.name_end : one.name_end + 9]
    leading = statement.kind is Kind.ASSIGNMENT and statement.begin == one.begin
    return leading and one.subscripts is None and re.match(r"\s*=(?!=)", text) is not None


def _jumps(routine: Routine) -> bool:
    """May something in the routine be passed by?"""
    made = statements(routine.body)
    return any(one.kind is Kind.JUMP and one.jump not in _LEAVING for one in made)
