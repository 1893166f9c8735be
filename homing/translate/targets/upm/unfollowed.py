"""Shared memory in parallel constructs that no registered array stands for, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable

from homing.translate.directives.model import Form
from homing.translate.targets.upm.program import Program
from homing.translate.tree import Declaration, Reference, Routine

_MEMBER = {True: re.compile(r"\s*(->|\.\s*[A-Za-z_])"), False: re.compile(r"\s*(\([^()]*\)\s*)?%")}
#: What stands in the place of an array that is a member of a structure.
OF_STRUCTURES = "members of structures"


def not_followed(
    program: Program, routine: Routine, reference: Reference, meant: Iterable[Declaration]
) -> str | None:
    """Why what a reference reaches is registered with no array; None: it is, or there is nothing of the
    kind."""
    in_c = routine.source.form is Form.C
    behind = routine.source.text[reference.name_end : reference.name_end + 80]
    if _MEMBER[in_c].match(behind):
        return OF_STRUCTURES
    declarations = list(meant)
    if in_c:
        if any(_holds_pointers(routine, one) for one in declarations):
            return "only the pointers in it, not what they point to"
        return None
    known = declarations or program.declares(routine, reference.name) or reference.name in program.routines
    used = _has_uses(routine)
    if not known and used and reference.subscripts is not None and not reference.intrinsic:
        return "of a module whose file is not given"
    return None


def _holds_pointers(routine: Routine, declaration: Declaration) -> bool:
    text = routine.source.text[declaration.statement_begin : declaration.begin]
    behind = routine.source.text[declaration.begin + len(declaration.name) : declaration.end]
    return re.search(r"\*[\s\w]*\*", text) is not None or (
        text.rstrip().endswith("*") and re.match(r"\s*\[", behind) is not None
    )


def _has_uses(routine: Routine) -> bool:
    scope: Routine | None = routine
    while scope is not None:
        if scope.uses:
            return True
        scope = scope.parent
    return False
