"""Fortran's functions that a program gives another meaning, and that the translation would call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.tree import Declaration, Routine, Unit, statements

#: What the writers call.
_CALLED = (
    "allocated", "huge", "int", "kind", "lbound", "max", "min", "modulo", "move_alloc", "size",
    "storage_size", "ubound",
)  # fmt: skip


def hidden(units: Sequence[Unit], edits: dict[int, Edits]) -> Iterator[Problem]:
    """The names that mean something else where the translation needs the function."""
    every = [routine for unit in units for routine in unit.routines]
    modules = {one.name: one for one in every if one.module}
    procedures = {one.name: one for one in every if not one.module}
    for unit in units:
        if unit.form is Form.C:
            continue
        for routine in unit.routines:
            known = {name: _meaning(routine, name, modules, procedures) for name in _CALLED}
            if not any(known.values()):
                continue
            text = "\n".join(edits[id(unit)].texts(routine.begin, routine.end))
            for name, found in known.items():
                if found is not None and re.search(rf"\b{name}\s*\(", text):
                    scope, begin, end = found
                    reason = (
                        f"the translation calls Fortran's function {name.upper()} in '{routine.name}', where "
                        "the name means something else: choose another name"
                    )
                    yield scope.source.problem(begin, end, reason)


def _meaning(
    routine: Routine, name: str, modules: dict[str, Routine], procedures: dict[str, Routine]
) -> tuple[Routine, int, int] | None:
    """Where the name gets another meaning, if it does."""
    declared = _declared(routine, name, modules)
    if declared is not None:
        return declared[0], declared[1].begin, declared[1].end
    other = procedures.get(name)
    if other is not None and any(name in one.calls for one in statements(routine.body)):
        return other, other.begin, other.head_end
    return None


def _declared(routine: Routine, name: str, modules: dict[str, Routine]) -> tuple[Routine, Declaration] | None:
    found = routine.lookup(name)
    scope: Routine | None = routine
    while found is None and scope is not None:
        for used in scope.uses:
            if used in modules and name in modules[used].declarations:
                found = modules[used], modules[used].declarations[name]
        scope = scope.parent
    return found
