"""Fortran's type-bound procedures: `call q%put(i)` and `q%at(i)` call what the type binds to the name.

Which type `q` has is not asked: all procedures that any type binds to the name count as called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.intents import is_intent_in
from homing.translate.tree import Access, Routine, Statement, Unit, statements

_TYPE = re.compile(
    r"^[ \t]*type\b(?![ \t]*\()[^\n]*$(.*?)^[ \t]*end[ \t]*type\b", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_BINDING = re.compile(
    r"^[ \t]*(?:procedure|generic)\b(?:[ \t]*\([^)\n]*\))?(?P<said>[^:\n!]*)(?:::)?(?P<names>[^!\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_CONTAINS = re.compile(r"^[ \t]*contains\b", re.IGNORECASE | re.MULTILINE)
_MORE = re.compile(r"&[ \t]*\n[ \t]*&?")
_PLACE = re.compile(r"%\s*(\w+)")


def bindings(units: Sequence[Unit], routines: Mapping[str, Routine]) -> dict[str, dict[str, bool]]:
    """By the name that types bind: the procedures, and whether they get the object as first argument."""
    found: dict[str, dict[str, bool]] = {}
    for unit in units:
        for inside in _TYPE.findall(unit.source.text) if unit.form is not Form.C else ():
            _, *bound = _CONTAINS.split(_MORE.sub(" ", inside), maxsplit=1)
            for match in _BINDING.finditer("".join(bound)):
                _bind(found, match)
    known = -1
    while known != (known := sum(map(len, found.values()))):  # GENERIC names are of names that are bound
        for behind in found.values():
            for name in [one for one in behind if one in found and one not in routines]:
                behind.update(found[name])
    kept = {
        name: {one: own for one, own in behind.items() if one in routines} for name, behind in found.items()
    }
    return {name: behind for name, behind in kept.items() if behind}


def _bind(found: dict[str, dict[str, bool]], match: re.Match[str]) -> None:
    said = match["said"].lower()
    names = match["names"] if "::" in match[0] else f"{said}{match['names']}"
    first = "nopass" not in said and not re.search(r"\bpass\s*\(", said)
    generic = re.match(r"\s*generic", match[0], re.IGNORECASE)
    if generic:
        name, _, behind = names.lower().partition("=>")
        for one in behind.split(","):
            found.setdefault(name.strip(), {})[one.strip()] = first
        return
    for each in names.lower().split(","):
        name, _, behind = each.partition("=>")
        if name.strip():
            found.setdefault(name.strip(), {})[(behind or name).strip()] = first


def call_bound(
    units: Sequence[Unit], routines: Mapping[str, Routine], known: Mapping[str, Mapping[str, bool]]
) -> None:
    """Statements that name what a type binds call it."""
    for unit in units if known else ():
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                if "%" in statement.code:
                    _call(statement, known, routines)


def _call(
    statement: Statement, known: Mapping[str, Mapping[str, bool]], routines: Mapping[str, Routine]
) -> None:
    named = [name for name in _PLACE.findall(statement.code.lower()) if name in known]
    if not named:
        return
    written = next((name for name in statement.calls if "%" in name), "")
    last = written.rpartition("%")[2]
    kept = tuple(name for name in statement.calls if name != written or last not in known)
    statement.calls = (*kept, *dict.fromkeys(one for name in named for one in known[name]))
    behind = known.get(last, {})
    for reference in statement.references if behind else ():
        if reference.argument_of == written and len(behind) == 1:  # as if it were called by its own name
            reference.argument_of, first = next(iter(behind.items()))
            reference.argument_index += first
            continue
        if reference.argument_of == written:
            at = [reference.argument_index + first for first in behind.values()]
        elif reference.access is Access.OTHER and reference.name == written.partition("%")[0]:
            at = [0 if first else -1 for first in behind.values()]
        else:
            continue
        given = zip(at, behind, strict=True)
        reference.only_read = all(index < 0 or _only_read(routines[name], index) for index, name in given)


def _only_read(routine: Routine, index: int) -> bool:
    """Is it a dummy with INTENT(IN)?"""
    if index >= len(routine.arguments):
        return False
    return is_intent_in(routine, routine.declarations.get(routine.arguments[index]))
