"""C and C++: functions that keep the address of what they get, or return it.

In parts, a function of serial code gets the gathered array, which is gone behind the statement; one that a
region calls gets a part. An address that outlives the call would mean memory that nothing else looks at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homing.translate.directives.model import Form
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.freed import FREES
from homing.translate.positions import Problem
from homing.translate.tree import Access, Kind, Reference, Routine, Statement, Unit, statements

#: Types of variables that hold no address. (uintptr_t may.)
_NUMBER = re.compile(
    r"(?:(?:un)?signed|short|int|long|char|float|double|bool|_Bool|size_t|ssize_t|ptrdiff_t|u?int\d+_t|\s)+"
)


@dataclass
class Kept:
    """Of one function: which of its arguments outlive it, and which it may return."""

    stored: set[int] = field(default_factory=set)
    returned: set[int] = field(default_factory=set)


def addresses_kept(units: Sequence[Unit], distributions: Distributions) -> Iterator[Problem]:
    """Calls that give a distributed array to such a function."""
    every = [one for unit in units if unit.form is Form.C for one in unit.routines if not one.module]
    known = _known(every, distributions.routines)
    for routine in every:
        arrays = distributions.of(routine)
        for statement in statements(routine.body) if arrays else ():
            for reference in statement.references:
                function = reference.argument_of
                if function is None or reference.name not in arrays or function in FREES:
                    continue
                kept = known.get(function)
                reason = None
                if kept is not None and reference.argument_index in kept.stored:
                    reason = f"'{function}' keeps the address of what it gets"
                elif _returns(reference, known):
                    reason = f"the value of '{function}' may be the address of what it gets"
                if reason is not None:
                    reason += f", here the distributed '{reference.name}': parts have others"
                    yield routine.source.problem(statement.begin, statement.end, reason)


def _returns(reference: Reference, known: Mapping[str, Kept]) -> bool:
    """Has the value of the call, which is used, the address of this argument?"""
    kept = known.get(reference.argument_of or "")
    return reference.value_used and (kept is None or reference.argument_index in kept.returned)


def _known(every: Sequence[Routine], routines: Mapping[str, Routine]) -> dict[str, Kept]:
    found = {one.name: Kept() for one in every if routines.get(one.name) is one}
    count = -1
    while count != (count := sum(len(one.stored) + len(one.returned) for one in found.values())):
        for routine in every:
            if routines.get(routine.name) is routine:
                for index, name in enumerate(routine.arguments):
                    _follow(routine, index, name, found)
    return found


def _follow(routine: Routine, index: int, name: str, known: Mapping[str, Kept]) -> None:
    """Follow one argument through a function, and its pointers that get the same address."""
    if not _holds(routine, name):
        return
    kept, names, count = known[routine.name], {name}, -1
    made = list(statements(routine.body))
    while count != (count := len(names)):
        for statement in made:
            found = [one for one in statement.references if one.name in names]
            for reference in found:
                by = known.get(reference.argument_of or "")
                if by is not None and reference.argument_index in by.stored:
                    kept.stored.add(index)
            if not any(_flows(routine, one, known) for one in found):
                continue
            if statement.kind is Kind.JUMP and statement.jump == "return":
                kept.returned.add(index)
            for target in _targets(routine, statement):
                if target is None:
                    kept.stored.add(index)
                else:
                    names.add(target)


def _flows(routine: Routine, reference: Reference, known: Mapping[str, Kept]) -> bool:
    """Does a statement have the address itself, not only what lies there?"""
    if reference.argument_of is not None:
        return _returns(reference, known)
    if reference.access is Access.READ and reference.subscripts is None:
        return reference.name not in routine.arguments  # a structure with the address
    return reference.access is Access.OTHER and not reference.only_read


def _targets(routine: Routine, statement: Statement) -> Iterator[str | None]:
    """The variables of the function's own that get an address in a statement; None: others, too."""
    text = routine.source.text
    for name in statement.writes:
        if name not in routine.declarations or "save" in routine.declarations[name].attributes:
            if _holds(routine, name):
                yield None
            continue
        written = [one for one in statement.references if one.name == name and one.access is Access.WRITE]
        deeper = any(
            text[: one.begin].rstrip().endswith("*")
            or one.subscripts is not None
            or text[one.name_end :].lstrip().startswith("->")
            for one in written
        )
        if deeper and name in routine.arguments:
            yield None
        elif _holds(routine, name):
            yield name


def _holds(routine: Routine, name: str) -> bool:
    """May a variable hold an address?"""
    found = routine.lookup(name)
    if found is None:
        return True
    scope, declared = found
    before = scope.source.text[declared.statement_begin : declared.begin]
    pointer = declared.storage == "pointer" or "*" in before.rpartition(",")[2]
    array = declared.storage == "dummy" and bool(declared.bounds)
    return pointer or array or _NUMBER.fullmatch(declared.type) is None
