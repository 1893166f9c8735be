"""Fortran's interfaces apart from their procedures: in interface blocks, and in the modules of submodules.

A procedure that gets distributed arrays gets their layouts, too, which such an interface does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.tree import Routine, Unit

_BLOCK = re.compile(
    r"^[ \t]*interface\b.*?^[ \t]*end[ \t]*interface\b", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_BODY = re.compile(
    r"^[ \t]*(?!end\b)[^!'\"\n]*?\b(?:subroutine|function)[ \t]+(\w+)", re.MULTILINE | re.IGNORECASE
)


def interfaces(
    units: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]]
) -> Iterator[tuple[Unit, int, int, str]]:
    """(unit, begin, end, reason) of each that is in the way. arrays: the distributed ones of a routine."""
    fortran = [unit for unit in units if unit.form is not Form.C]
    for unit in fortran:
        for routine in unit.routines:
            if routine.parent is None or not _gets(routine, arrays):
                continue
            if unit.source.text[routine.parent.begin :].lstrip()[:9].lower() == "submodule":
                reason = "a submodule's procedure gets distributed arrays: write it in the module itself"
                yield unit, routine.begin, routine.head_end - 1, reason
    for unit in fortran:
        for _, body in bodies(unit, units, arrays):
            reason = f"'{body[1].lower()}' gets distributed arrays, whose layouts this interface lacks"
            yield unit, body.start(1), body.end(1), f"{reason}: put the procedure into a module"


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
