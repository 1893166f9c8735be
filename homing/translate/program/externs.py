"""C: a file's distributed array by the same name in another file (`extern`). Its parts are known in one
file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.positions import Problem
from homing.translate.tree import Declaration, Reference, Routine, Unit, references


def externs(units: Sequence[Unit], distributions: Distributions) -> Iterator[Problem]:
    """The other files that declare such an array, or use it as a header declares it."""
    scopes = [
        routine
        for unit in units
        if unit.form is Form.C
        for routine in unit.routines
        if routine.module and not distributions.in_place
    ]
    for scope in scopes:
        for name, array in distributions.of(scope).items():
            if array.routine is scope and not _static(scope, array.declaration):
                for other in scopes:
                    if other is not scope:
                        yield from _seen(name, array, other, units)


def _static(scope: Routine, declaration: Declaration) -> bool:
    text = scope.source.text[declaration.statement_begin : declaration.begin]
    return re.search(r"\bstatic\b", text) is not None


def _seen(name: str, array: Array, other: Routine, units: Sequence[Unit]) -> Iterator[Problem]:
    place = array.routine.source.place(array.declaration.begin)
    reason = f"'{name}' is distributed in {place}, whose parts no other file knows: pass it as an argument"
    declared = other.declarations.get(name)
    if declared is not None and not _static(other, declared):
        yield other.source.problem(declared.begin, declared.end, reason)
    elif declared is None and name in other.included and name in other.unseen:  # by a header's function
        yield other.source.problem(*other.unseen[name])
    elif declared is None and name in other.included:
        for reference in _uses(name, other, units):
            yield other.source.problem(reference.begin, reference.end, reason)
            break


def _uses(name: str, scope: Routine, units: Sequence[Unit]) -> Iterator[Reference]:
    for unit in units:
        if unit.source is scope.source:
            for routine in unit.routines:
                for reference in references(routine.body):
                    if reference.name == name and routine.lookup(name) is None:
                        yield reference
