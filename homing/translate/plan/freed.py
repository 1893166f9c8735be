"""C and C++: memory of distributed arrays that is taken or given back where no statement of its own does it.

In parts, free gives the layout back, and malloc nothing. So both must be whole statements, outside of
parallel regions, in the function that has the array's name. Elsewhere they would get the gathered array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.arrays import Distributions
from homing.translate.positions import Problem
from homing.translate.tree import (
    Access,
    Construct,
    Kind,
    Reference,
    Routine,
    Statement,
    Unit,
    statements,
    walk,
)

#: What gives memory back.
FREES = frozenset({"free", "std::free", "realloc", "std::realloc", "reallocarray"})


def memory_unseen(units: Sequence[Unit], distributions: Distributions) -> Iterator[Problem]:
    """Such places in all files."""
    every = [one for unit in units if unit.form is Form.C for one in unit.routines if not one.module]
    files = [one for unit in units for one in unit.routines[:1]]
    freed = {name: set(which) for one in files for name, which in one.freeing.items()}
    given = freed.keys() | distributions.routines.keys() | FREES
    unseen = {name: which for one in files for name, which in one.releasing.items() if name not in given}
    freed |= {name: set(which) for name, which in unseen.items()}
    _add_freed(freed, every, distributions.routines)
    for routine in every:
        known = distributions.of(routine)
        regions = [one for one in walk(routine.body) if isinstance(one, Construct) and one.parallel]
        inside = distributions.inside(routine)
        for statement in statements(routine.body) if known else ():
            in_region = inside or any(one.begin <= statement.begin < one.end for one in regions)
            for reference in statement.references:
                reason = _wrong(statement, reference, freed, in_region) if reference.name in known else None
                if reason is not None and reference.argument_of in unseen:
                    reason = (
                        f"'{reference.argument_of}' is in no file given, and may free what it gets, here the "
                        f"distributed '{reference.name}': give its file, too"
                    )
                if reason is not None:
                    yield routine.source.problem(statement.begin, statement.end, reason)


def _wrong(
    statement: Statement, reference: Reference, freed: Mapping[str, set[int]], in_region: bool
) -> str | None:
    """Why the memory of the distributed array that a reference means is lost sight of."""
    name, function = reference.name, reference.argument_of or ""
    if statement.kind in (Kind.ALLOCATE, Kind.DEALLOCATE) and reference.access is Access.WRITE:
        followed = statement.decides and any(one.name == name for one in statement.takes)
        if statement.within and not followed:
            return f"takes memory for the distributed '{name}' in a larger expression: {_OF_ITS_OWN}"
        if in_region:
            return f"takes or frees memory of the distributed '{name}' in a parallel region: do it outside"
    elif function in FREES:
        if not function.endswith("free"):
            return f"'{function}' gets the distributed '{name}': take other memory with malloc, and copy"
        return f"frees the distributed '{name}' in a larger expression: {_OF_ITS_OWN}"
    elif reference.argument_index in freed.get(function, ()):
        return f"'{function}' frees what it gets, here the distributed '{name}': free it in this function"
    return None


_OF_ITS_OWN = "write a statement of its own"


def _add_freed(found: dict[str, set[int]], every: Sequence[Routine], routines: Mapping[str, Routine]) -> None:
    """Which of their arguments functions free, themselves or by what they call."""
    count = -1
    while count != (count := sum(map(len, found.values()))):
        for routine in every:
            if routines.get(routine.name) is routine:
                names = _freed_names(routine, found)
                indices = {at for at, name in enumerate(routine.arguments) if name in names}
                found.setdefault(routine.name, set()).update(indices)


def _freed_names(routine: Routine, known: Mapping[str, set[int]]) -> set[str]:
    """The names whose memory a function frees, and of which others are made that it frees."""
    made, names = list(statements(routine.body)), set[str]()
    for statement in made:
        for reference in statement.references:
            function = reference.argument_of or ""
            freed = statement.kind is Kind.DEALLOCATE and reference.access is Access.WRITE
            if freed or function in FREES or reference.argument_index in known.get(function, ()):
                names.add(reference.name)
    count = -1
    while count != (count := len(names)):
        for statement in made:
            if statement.writes & names:
                names |= {
                    one.name
                    for one in statement.references
                    if one.access is Access.OTHER and one.subscripts is None
                }
    return names
