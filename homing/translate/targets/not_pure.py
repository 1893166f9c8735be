"""PURE procedures that use distributed arrays outside of parallel regions: an element's part may have to be
brought there, which no PURE procedure may do. They, and PURE ones that call them, are so no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.code_text import edited
from homing.translate.plan.arrays import Distributions
from homing.translate.source import SourceFile
from homing.translate.tree import Routine, Unit, references, statements

_PURE = re.compile(r"\bpure\b(?=.*\b(?:function|subroutine)\b)", re.IGNORECASE)


def without_pure(units: Sequence[Unit], distributions: Distributions) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence."""
    every = [one for unit in units if unit.form.fortran for one in unit.routines]
    pure = {id(one): place for one in every for place in _places(one)}
    gone = {id(one) for one in every if id(one) in pure and _uses(one, distributions)}
    before = -1
    while before != (before := len(gone)):
        names = {one.name.lower() for one in every if id(one) in gone}
        gone |= {id(one) for one in every if id(one) in pure and _names(one) & names}
    found = {}
    for index, unit in enumerate(units):
        places = [pure[id(one)] for one in unit.routines if id(one) in gone]
        source = unit.source
        made = edited(source.text, ((begin, end, " " * (end - begin)) for begin, end in places))
        if made is not None:
            found[index] = SourceFile(source.path, made, source.form, source.fixed_columns, marked=True)
    return found


def _places(routine: Routine) -> Iterator[tuple[int, int]]:
    """Where its head says PURE."""
    if not (routine.module or routine.main):
        match = _PURE.search(routine.source.text, routine.begin, routine.head_end)
        if match is not None:
            yield match.span()


def _uses(routine: Routine, distributions: Distributions) -> bool:
    arrays = distributions.of(routine)
    if distributions.inside(routine):
        return False
    return any(one.name in arrays for one in references(routine.body))


def _names(routine: Routine) -> set[str]:
    return {name for one in statements(routine.body) for name in (*one.calls, *one.reads)}
