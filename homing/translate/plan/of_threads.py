"""THREADPRIVATE variables that a loop over own iterations writes (--to mpi): only such loops may read them.

There, each thread reads what it wrote itself, or what it has since the program began. In serial code and in
what each thread of a region runs, ranks would have other values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from homing.translate.affine import names_in
from homing.translate.plan.accessibility import declared_in
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.reached import called
from homing.translate.positions import Position
from homing.translate.tree import Access, Branch, Construct, Loop, Node, Routine, Statement, references

#: Fortran: procedures that are run under other names than their own, which calls do not show.
_OTHERWISE = re.compile(
    r"^[ \t]*(?:module[ \t]+procedure|procedure|generic|final)\b(?P<one>[^!\n]*)"
    r"|^[ \t]*interface[ \t]+(?:operator|assignment|read|write)\b(?P<more>.*?)^[ \t]*end[ \t]*interface",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class OfThreads:
    """A variable: the scope that declares it, or a COMMON block, which has none; and the name."""

    scope: int | None
    name: str


class ThreadPrivate:
    """The THREADPRIVATE variables of a program."""

    def __init__(self, distributions: Distributions) -> None:
        self.known = distributions
        self._inside: frozenset[int] | None = None  # procedures that only such loops call
        self._words: frozenset[str] | None = None
        self._read: dict[OfThreads, Position | None] = {}

    def written(self, routine: Routine, name: str, through: str | None) -> frozenset[OfThreads] | None:
        """What a name means that is written in the routine, or through a procedure; None: also others."""
        if through is None:
            one = self.meant(routine, name)
            return None if one is None else frozenset([one])
        waiting, seen, found = [self.known.routines[through]], set[int](), set[OfThreads]()
        while waiting:
            callee = waiting.pop()
            if id(callee) in seen:
                continue
            seen.add(id(callee))
            waiting += called(callee.body, self.known.routines)
            if all(one.name != name for one in references(callee.body)):
                continue
            one = self.meant(callee, name)
            declared = callee.declarations.get(name)
            own = declared is not None and "save" not in declared.attributes and declared.storage != "common"
            if one is not None:
                found.add(one)
            elif not own:
                return None
        return frozenset(found) or None

    def read_elsewhere(self, variable: OfThreads) -> Position | None:
        """Where it is read outside of such loops, or may be."""
        if variable not in self._read:
            self._read[variable] = next(self._reads(variable), None)
        return self._read[variable]

    def meant(self, routine: Routine, name: str) -> OfThreads | None:
        scope = declared_in(routine, name, self.known.modules)
        if scope is None:
            return None
        block = scope.declarations[name].block
        if scope.declarations[name].storage == "common":
            return OfThreads(None, block) if {name, block} & scope.private else None
        return OfThreads(id(scope), name) if name in scope.private else None

    def _reads(self, variable: OfThreads) -> Iterator[Position]:
        inside = self.only_inside()
        for routine in (one for unit in self.known.units for one in unit.routines):
            apart = routine.apart
            if apart is not None and variable.name in apart.words:
                yield routine.source.place(apart.words[variable.name])
            for begin in self._declaring(routine, variable):
                yield routine.source.place(begin)
            for node, own in self._nodes(routine, routine.body, id(routine) in inside):
                if isinstance(node, Construct):
                    words = _names(node.directive.text, routine)
                    if any(name == variable.name or self._is(routine, name, variable) for name in words):
                        yield routine.source.place(node.begin)
                    continue
                for one in node.references:
                    if one.access is Access.WRITE or (own and one.access is not Access.OTHER):
                        continue
                    if self._is(routine, one.name, variable):
                        yield routine.source.place(one.begin)

    def _declaring(self, routine: Routine, variable: OfThreads) -> Iterator[int]:
        """Where declarations read it: bounds and lengths, statement functions, NAMELIST."""
        for declared in routine.declarations.values():
            sides = [side for bound in declared.bounds for side in (bound.lower, bound.upper or "")]
            words = _names(" ".join([declared.type, declared.length, *sides]), routine)
            if any(self._is(routine, name, variable) for name in words):
                yield declared.begin
        for function in routine.functions.values():
            if any(self._is(routine, one.name, variable) for one in function.references):
                yield function.begin
        for name, (begin, _, _) in routine.unseen.items():
            if self._is(routine, name, variable):
                yield begin

    def _is(self, routine: Routine, name: str, variable: OfThreads) -> bool:
        return self.meant(routine, name) == variable

    def _nodes(
        self, routine: Routine, nodes: list[Node], own: bool
    ) -> Iterator[tuple[Statement | Construct, bool]]:
        """All statements and constructs; are they in a loop over own iterations?"""
        for node in nodes:
            if isinstance(node, Construct):
                yield node, own
                arrays = self.known.of(routine)
                shared_out = node.worksharing and any(one.name in arrays for one in references(node.body))
                yield from self._nodes(routine, node.body, own or shared_out)
            elif isinstance(node, Loop):
                yield node.head, own
                yield from self._nodes(routine, node.body, own)
            elif isinstance(node, Branch):
                for head, body in node.arms:
                    yield head, own
                    yield from self._nodes(routine, body, own)
            elif isinstance(node, Statement):
                yield node, own

    def only_inside(self) -> frozenset[int]:
        """The procedures that nothing else calls."""
        if self._inside is None:
            every = [one for unit in self.known.units for one in unit.routines if not one.module]
            calls = [
                (id(routine), own, id(callee))
                for routine in every
                for node, own in self._nodes(routine, routine.body, False)
                if isinstance(node, Statement)
                for callee in called([node], self.known.routines)
            ]
            found, count = set[int](), -1
            while count != (count := len(found)):
                found |= {callee for caller, own, callee in calls if own or caller in found}
            found -= {id(one) for one in every if one.main or self.otherwise(one)}
            count = -1
            while count != (count := len(found)):
                found -= {callee for caller, own, callee in calls if not own and caller not in found}
            self._inside = frozenset(found)
        return self._inside

    def otherwise(self, routine: Routine) -> bool:
        """Fortran: may it be called by another name?"""
        if self._words is None:
            texts = [unit.source.text for unit in self.known.units if unit.source.form.fortran]
            found = [match for text in texts for match in _OTHERWISE.finditer(text)]
            words = (names_in((one["one"] or one["more"]).lower()) for one in found)
            self._words = frozenset[str]().union(*words)
        return routine.name in self._words


def _names(text: str, routine: Routine) -> frozenset[str]:
    return names_in(text.lower() if routine.source.form.fortran else text)
