"""Fortran's generic names: a call by one is a call of the procedure behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.tree import Routine, Statement, Unit, statements

_INTERFACE = re.compile(
    r"^[ \t]*interface[ \t]+([a-z]\w*)[ \t]*(?:![^\n]*)?$(.*?)^[ \t]*end[ \t]*interface",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_PROCEDURE = re.compile(
    r"^[ \t]*(?:module[ \t]+)?procedure\b[ \t]*(?:::)?([^!\n]*)", re.IGNORECASE | re.MULTILINE
)


def generics(units: Sequence[Unit], routines: Mapping[str, Routine]) -> dict[str, list[str]]:
    """The procedures by their generic names, as far as they are the program's."""
    found: dict[str, list[str]] = {}
    for unit in units:
        for match in _INTERFACE.finditer(unit.source.text) if unit.form is not Form.C else ():
            names = [n.strip().lower() for line in _PROCEDURE.findall(match[2]) for n in line.split(",")]
            found.setdefault(match[1].lower(), []).extend(name for name in names if name in routines)
    return {name: behind for name, behind in found.items() if name not in routines and behind}


def call_by_own_names(units: Sequence[Unit], single: Mapping[str, str]) -> None:
    """Calls by a generic name with one procedure behind it become calls of that."""
    for _, statement in calls(units, single):
        statement.calls = tuple(single.get(name, name) for name in statement.calls)
        for reference in statement.references:
            if reference.argument_of is not None:
                reference.argument_of = single.get(reference.argument_of, reference.argument_of)


def calls(units: Sequence[Unit], known: Mapping[str, object]) -> Iterator[tuple[Routine, Statement]]:
    """The statements that use one of the names."""
    for unit in units if known else ():
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                used = {*statement.calls, *(r.argument_of for r in statement.references if r.argument_of)}
                if used & known.keys() and not (used & known.keys() & routine.declarations.keys()):
                    yield routine, statement
