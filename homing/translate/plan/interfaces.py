"""Fortran's interfaces apart from their procedures: in interface blocks, and in the modules of submodules.

A procedure that gets distributed arrays gets their layouts, too, which such an interface does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.tree import Routine, Unit, references

_BLOCK = re.compile(
    r"^[ \t]*interface\b.*?^[ \t]*end[ \t]*interface\b", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_SUBMODULE = re.compile(r"\s*submodule\s*\(\s*(\w+)", re.IGNORECASE)
_BODY = re.compile(
    r"^[ \t]*(?!end\b)[^!'\"\n]*?\b(?:subroutine|function)[ \t]+(\w+)", re.MULTILINE | re.IGNORECASE
)


def interfaces(
    units: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]], in_place: bool
) -> Iterator[tuple[Unit, int, int, str]]:
    """(unit, begin, end, reason) of each that is in the way. arrays: the distributed ones of a routine.
    in_place: they stay where they are."""
    fortran = [unit for unit in units if unit.form is not Form.C]
    for unit in fortran:
        for routine in unit.routines:
            if routine.parent is None or not _gets(routine, arrays):
                continue
            if unit.source.text[routine.parent.begin :].lstrip()[:9].lower() == "submodule":
                reason = "a submodule's procedure gets distributed arrays: write it in the module itself"
                yield unit, routine.begin, routine.head_end - 1, reason
    yield from () if in_place else _in_submodules(fortran, arrays)
    for unit in fortran:
        for _, body in bodies(unit, units, arrays):
            reason = f"'{body[1].lower()}' gets distributed arrays, whose layouts this interface lacks"
            yield unit, body.start(1), body.end(1), f"{reason}: put the procedure into a module"


def _in_submodules(
    fortran: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]]
) -> Iterator[tuple[Unit, int, int, str]]:
    """Where procedures of submodules name arrays of the module, of which they know no parts."""
    modules = {one.name: one for unit in fortran for one in unit.routines if one.module}
    for unit in fortran:
        for routine in unit.routines:
            scope = routine.outermost
            head = _SUBMODULE.match(unit.source.text, scope.begin)
            if head is None or routine is scope or head[1].lower() not in modules:
                continue
            own = [one for one in references(routine.body) if routine.lookup(one.name) is None]
            known = arrays(modules[head[1].lower()]).keys() - arrays(routine).keys()
            for one in (reference for reference in own if reference.name in known):
                reason = f"a submodule's procedure uses the distributed '{one.name}' of its module"
                yield unit, one.begin, one.end, f"{reason}: write it in the module itself"


def bodies(
    unit: Unit, units: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]]
) -> Iterator[tuple[int, re.Match[str]]]:
    """Interface bodies in a file, of external procedures that get distributed arrays: where the block begins,
    and the body's head up to the name, which is its group."""
    given = {
        routine.name
        for one in units
        for routine in (one.routines if one.form is not Form.C else ())
        if routine.parent is None and _gets(routine, arrays)
    }
    for block in _BLOCK.finditer(unit.source.text) if given else ():
        for body in _BODY.finditer(unit.source.text, block.start(), block.end()):
            if body[1].lower() in given:
                yield block.start(), body


def _gets(routine: Routine, arrays: Callable[[Routine], Mapping[str, Array]]) -> bool:
    return any(one.dummy and one.routine is routine for one in arrays(routine).values())
