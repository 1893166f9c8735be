"""C and C++: functions that keep the address of what they get, or return it.

In parts, a function of serial code gets the gathered array, which is gone behind the statement; one that a
region calls gets a part. An address that outlives the call would mean memory that nothing else looks at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
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
#: Functions of libraries that have an address still when they have returned: until something else is called
#: (MPI's, FFTW's, what runs at the same time), or for good (C's streams and environment).
_LIBRARIES = re.compile(
    r"P?MPI_(?:I[a-z]\w*|File_i(?:read|write)\w*|\w+_init|R?(?:Put|Get|(?:Get_)?Accumulate)|Win_(?:create|attach)"
    r"|Buffer_attach)(?:_c)?"
    r"|d?fftw[fl]?_(?:mpi_)?plan_\w+|\w+Async|pthread_create|thrd_create|setv?buf|setbuffer|fmemopen|putenv"
    r"|tsearch|shmem_\w+_nbi",
    re.IGNORECASE,
)
#: Functions of others whose names say so: attach_field, bufferRegister.
_KEEPS = r"(?:[Aa]ttach|[Bb]ind|[Rr]egister|[Ii]send|[Ii]recv|[Aa]sync)"
_SAY_SO = re.compile(
    rf"{_KEEPS}(?:_\w*|[A-Z0-9]\w*)?|\w*(?:_|[a-z0-9](?=[A-Z])){_KEEPS}(?:_\w*|[A-Z0-9]\w*)?"
)
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
    headers = [one for unit in units if unit.form is Form.C for one in unit.routines[:1]]
    known = _known(every, headers, distributions.routines)
    seen = distributions.routines.keys() | {name for one in headers for name in one.freeing}
    for routine in (one for unit in units for one in unit.routines):
        arrays = distributions.of(routine)
        for statement in statements(routine.body) if arrays else ():
            for reference in statement.references:
                if reference.name not in arrays or reference.argument_of in FREES:
                    continue
                if routine.source.form is Form.C:
                    reason = _reason(routine, reference, statement, known, distributions.routines, seen)
                else:
                    reason = _unseen(statement.calls, seen) if reference.access is not Access.READ else None
                if reason is not None:
                    reason += f", here the distributed '{reference.name}': parts have others"
                    yield routine.source.problem(statement.begin, statement.end, reason)


def _reason(
    routine: Routine,
    reference: Reference,
    statement: Statement,
    known: Mapping[str, Kept],
    routines: Mapping[str, Routine],
    seen: Set[str],
) -> str | None:
    """How the address of an array that a function of C gets outlives the statement."""
    if reference.argument_of is None:
        return None
    if _stores(routine, reference, statement, known, routines):
        return f"'{reference.argument_of.removeprefix('*')}' keeps the address of what it gets"
    if not reference.confined and _returns(reference, known):
        return f"the value of '{reference.argument_of.removeprefix('*')}' may be the address of what it gets"
    return _unseen((reference.argument_of,), seen)


def _unseen(calls: Sequence[str], seen: Set[str]) -> str | None:
    """Does a function whose body is not seen have what it gets when it has returned?"""
    for function in calls:
        if function not in seen and (_LIBRARIES.fullmatch(function) or _SAY_SO.fullmatch(function)):
            return f"'{function}' is in no file given, and may keep the address of what it gets"
    return None


def _stores(
    routine: Routine,
    reference: Reference,
    statement: Statement,
    known: Mapping[str, Kept],
    routines: Mapping[str, Routine],
) -> bool:
    """May a function that gets the address keep it?"""
    given = reference.given_to if _flows(routine, reference, known, whole=False) else ()
    if reference.argument_of is not None:
        given = ((reference.argument_of, reference.argument_index), *given)
    for function, index in given:
        names = meant(statement.through, routines) if function.startswith("*") else {function}
        if any(index in known[one].stored for one in names & known.keys()):
            return True
        if function in known and index not in known[function].returned:
            return False  # nor do those behind get it
    return False


def _returns(reference: Reference, known: Mapping[str, Kept]) -> bool:
    """Has the value of the call, which is used, the address of this argument?"""
    kept = known.get(reference.argument_of or "")
    if reference.argument_of in _FIRST and reference.argument_index > 0:
        return False
    return reference.value_used and (kept is None or reference.argument_index in kept.returned)


def _known(
    every: Sequence[Routine], files: Sequence[Routine], routines: Mapping[str, Routine]
) -> dict[str, Kept]:
    """Of the program's functions, and of those that the files' headers define."""
    found = {
        name: Kept(set(stored), set(returned))
        for file in files
        for name, (stored, returned) in file.keeping.items()
    }
    found.update((one.name, Kept()) for one in every if routines.get(one.name) is one)
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
            if any(_stores(routine, one, statement, known, routines) for one in found):
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


def _flows(routine: Routine, reference: Reference, known: Mapping[str, Kept], whole: bool = True) -> bool:
    """Does a statement have the address itself, not only what lies there? whole: all of it, not only the
    arguments of the calls that get it."""
    if whole and reference.confined:
        return reference.argument_of is None and _by_address(routine, reference)
    if reference.argument_of is not None:
        return _returns(reference, known)
    return reference.access in (Access.READ, Access.OTHER)


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
