"""Procedures that work on distributed arrays of other scopes: they find them in parts and leave them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from homing.translate.plan.array import Array
from homing.translate.tree import Executable, Node, Routine, Unit, references, statements, walk


def called(nodes: Sequence[Node], routines: Mapping[str, Routine]) -> list[Routine]:
    """The procedures that the nodes name, or call through a pointer, as far as their files are given."""
    names: set[str] = set()
    types: set[str] = set()
    for statement in statements(list(nodes)):
        names.update(statement.calls, statement.pointed)
        names.update(reference.name for reference in statement.references if not reference.array)
        types |= statement.through
    names |= meant(types, routines)
    return [routines[name] for name in sorted(names & routines.keys())]


def meant(types: Set[str], routines: Mapping[str, Routine]) -> set[str]:
    """C: the functions that pointers to functions of these types may mean."""
    files = (
        {id(one.parent): one.parent for one in routines.values() if one.parent is not None} if types else {}
    )
    return {
        name
        for file in files.values()
        for name, kind in file.pointed.items()
        if not kind or kind in types or "" in types
    }


def reaching(
    units: Sequence[Unit], routines: Mapping[str, Routine], arrays: Callable[[Routine], dict[str, Array]]
) -> frozenset[int]:
    """These procedures (by id), and those that call them."""
    every = [routine for unit in units for routine in unit.routines if not routine.module]
    found = {id(routine) for routine in every if _reaches(routine, arrays(routine))}
    calls = {id(routine): called(routine.body, routines) for routine in every}
    known = -1
    while known != (known := len(found)):
        for routine in every:
            if any(id(callee) in found for callee in calls[id(routine)] if callee is not routine):
                found.add(id(routine))
    return frozenset(found)


def _reaches(routine: Routine, known: dict[str, Array]) -> bool:
    outer = {name for name, array in known.items() if array.routine is not routine}
    if any(reference.name in outer for reference in references(routine.body)):
        return True
    return any(isinstance(node, Executable) for node in walk(routine.body)) and bool(outer)
