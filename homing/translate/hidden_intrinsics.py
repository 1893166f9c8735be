"""Fortran's functions that a program gives another meaning, and that the translation would call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.directives import Form
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.tree import Declaration, Routine, Unit

#: What the writers call.
_CALLED = (
    "allocated", "huge", "int", "kind", "lbound", "max", "min", "modulo", "move_alloc", "storage_size",
    "ubound",
)  # fmt: skip


def hidden(units: Sequence[Unit], edits: dict[int, Edits]) -> Iterator[Problem]:
    """The names that mean something else where the translation needs the function."""
    modules = {one.name: one for unit in units for one in unit.routines if one.module}
    for unit in units:
        if unit.form is Form.C:
            continue
        for routine in unit.routines:
            known = {name: found for name in _CALLED if (found := _declared(routine, name, modules))}
            if not known:
                continue
            text = "\n".join(edits[id(unit)].texts(routine.begin, routine.end))
            for name, (scope, declaration) in known.items():
                if re.search(rf"\b{name}\s*\(", text):
                    reason = (
                        f"the translation calls Fortran's function {name.upper()} in '{routine.name}', where "
                        "the name means something else: give the variable another name"
                    )
                    yield scope.source.problem(declaration.begin, declaration.end, reason)


def _declared(routine: Routine, name: str, modules: dict[str, Routine]) -> tuple[Routine, Declaration] | None:
    found = routine.lookup(name)
    scope: Routine | None = routine
    while found is None and scope is not None:
        for used in scope.uses:
            if used in modules and name in modules[used].declarations:
                found = modules[used], modules[used].declarations[name]
        scope = scope.parent
    return found
