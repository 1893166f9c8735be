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
from homing.translate.plan.reached import meant
from homing.translate.positions import Problem
from homing.translate.tree import Access, Kind, Reference, Routine, Statement, Unit, statements

#: What a function returns of C's library that is the address of its first argument, or none.
_FIRST = frozenset(
    f"{word}{name}" for word in ("", "__builtin_") for name in ("memcpy", "memmove", "memset", "strcpy")
) | {"strncpy", "strcat", "strncat", "fgets"}
_MEMORY = frozenset({"malloc", "calloc", "aligned_alloc", "realloc"})
#: `z.p->`, behind the name.
_DEEPER = re.compile(r"(?:\s*(?:\.\s*\w+|\[[^\]]*\]))*\s*->")


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
                reason = None
                if _stores(reference, statement, known, distributions.routines):
                    reason = f"'{function.removeprefix('*')}' keeps the address of what it gets"
                elif _returns(reference, known):
                    reason = f"the value of '{function.removeprefix('*')}' may be the address of what it gets"
                if reason is not None:
                    reason += f", here the distributed '{reference.name}': parts have others"
                    yield routine.source.problem(statement.begin, statement.end, reason)


def _stores(
    reference: Reference, statement: Statement, known: Mapping[str, Kept], routines: Mapping[str, Routine]
) -> bool:
    """May the function that gets the address keep it?"""
    function = reference.argument_of or ""
    names = meant(statement.through, routines) if function.startswith("*") else {function}
    return any(reference.argument_index in known[one].stored for one in names & known.keys())


def _returns(reference: Reference, known: Mapping[str, Kept]) -> bool:
    """Has the value of the call, which is used, the address of this argument?"""
    kept = known.get(reference.argument_of or "")
    if reference.confined or (reference.argument_of in _FIRST and reference.argument_index > 0):
        return False
    return reference.value_used and (kept is None or reference.argument_index in kept.returned)


def _known(every: Sequence[Routine], routines: Mapping[str, Routine]) -> dict[str, Kept]:
    found = {one.name: Kept() for one in every if routines.get(one.name) is one}
    count = -1
    while count != (count := sum(len(one.stored) + len(one.returned) for one in found.values())):
        for routine in every:
            if routines.get(routine.name) is routine:
                for index, name in enumerate(routine.arguments):
                    _follow(routine, index, name, found, routines)
    return found


def _follow(
    routine: Routine, index: int, name: str, known: Mapping[str, Kept], routines: Mapping[str, Routine]
) -> None:
    """Follow one argument through a function, and its pointers that get the same address."""
    if not _holds(routine, name):
        return
    kept, names, count = known[routine.name], {name}, -1
    made = list(statements(routine.body))
    while count != (count := len(names)):
        for statement in made:
            found = [one for one in statement.references if one.name in names]
            if any(_stores(one, statement, known, routines) for one in found):
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
        return reference.name not in routine.arguments and not reference.confined  # a structure with it
    return _by_address(routine, reference) or (reference.access is Access.OTHER and not reference.confined)


def _targets(routine: Routine, statement: Statement) -> Iterator[str | None]:
    """The variables of the function's own that get an address in a statement; None: others, too."""
    if statement.kind is Kind.ASSIGNMENT and not statement.writes:  # `get()->p = u`
        yield None
    for reference in statement.references if statement.calls else ():  # `memcpy(&g, &u, sizeof u)`
        if _by_address(routine, reference):
            yield reference.name if _own(routine, reference.name) else None
    for name in statement.writes:
        if not _own(routine, name):
            if _holds(routine, name):
                yield None
            continue
        written = [one for one in statement.references if one.name == name and one.access is Access.WRITE]
        if any(_deeper(routine, one) for one in written) and not _fresh(routine, name):
            yield None
        elif _holds(routine, name):
            yield name


def _own(routine: Routine, name: str) -> bool:
    """Is a variable gone when the function is left?"""
    return name in routine.declarations and "save" not in routine.declarations[name].attributes


def _by_address(routine: Routine, reference: Reference) -> bool:
    """`&p`, of a pointer."""
    pointer = _pointer(routine, reference.name)
    return pointer and reference.access is Access.OTHER and _before(routine, reference).endswith("&")


def _before(routine: Routine, reference: Reference) -> str:
    return routine.source.text[max(0, reference.begin - 99) : reference.begin].rstrip(" \t\n(")


def _pointer(routine: Routine, name: str) -> bool:
    found = routine.lookup(name)
    return found is not None and found[1].storage in ("pointer", "dummy") and not found[1].number


def _deeper(routine: Routine, one: Reference) -> bool:
    """Does a statement write what a pointer of the function's means, and not the pointer?"""
    declared = routine.declarations[one.name]
    text = routine.source.text
    if "&" in text[declared.statement_begin : declared.begin]:  # a reference of C++
        return True
    element = one.subscripts is not None and declared.storage in ("pointer", "dummy")
    return element or _before(routine, one).endswith("*") or bool(_DEEPER.match(text, one.name_end))


def _fresh(routine: Routine, name: str) -> bool:
    """Does a pointer mean memory alone that the function takes, or variables of its own?"""
    if name in routine.arguments:
        return False
    for statement in statements(routine.body):
        every = statement.references
        if statement.calls and any(one.name == name and _by_address(routine, one) for one in every):
            return False
        if name not in statement.writes or any(one.name == name and _deeper(routine, one) for one in every):
            continue
        others = [one for one in every if one.name != name and one.access is Access.OTHER]
        own = all(_own(routine, one.name) and not _pointer(routine, one.name) for one in others)
        if not _MEMORY & set(statement.calls) and (statement.calls or not own):
            return False
    return True


def _holds(routine: Routine, name: str) -> bool:
    """May a variable hold an address?"""
    found = routine.lookup(name)
    if found is None:
        return True
    return not found[1].number
