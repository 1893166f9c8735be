"""The number of the time loop's iteration, for phases in procedures, where its variable is not known.

It is 0 outside of the loop, 1 in its first iteration and more than 1 in the others. Fortran keeps it in a
COMMON block, whose symbol C's tentative definition shares.
"""

from __future__ import annotations

from homing.translate.directives.model import Form
from homing.translate.source import Edits
from homing.translate.targets.upm.interfaces import specifications
from homing.translate.targets.upm.writer import FileWriter
from homing.translate.tree import Routine

_BLOCK = "homing_upm_iteration"
_IN_C = f"{_BLOCK}_"
_IN_FORTRAN = "homing_upm_step"


def name(in_c: bool) -> str:
    """What it is called in the language."""
    return _IN_C if in_c else _IN_FORTRAN


def declare(writer: FileWriter, routine: Routine) -> None:
    """Before the statements of a procedure that reads or writes it, or at the top of its C file."""
    if writer.in_c:
        line = f"__attribute__((common)) int {_IN_C};"
        top = writer.edits.lines_before(0)
        if line not in top:
            writer.edits.insert_lines(0, [line])
        return
    at = specifications(routine)
    lines = [f"integer :: {_IN_FORTRAN}", f"common /{_BLOCK}/ {_IN_FORTRAN}"]
    if writer.source.form is Form.FIXED:
        lines[0] = f"integer {_IN_FORTRAN}"
    first = routine.body[0].begin if routine.body else at
    if not any(_BLOCK in line for line in writer.edits.lines_before(at)):
        writer.put(at, lines, first, first=True)


def define(edits: Edits, form: Form) -> None:
    """Fortran: a unit that gives it its first value, at the end of the file with the time loop."""
    if form is Form.C:
        return
    indent = "      " if form is Form.FIXED else ""
    inner = indent + "  "
    edits.insert_lines(
        len(edits.source.text),
        [
            f"{indent}block data homing_upm_start",
            f"{inner}integer {_IN_FORTRAN}",
            f"{inner}common /{_BLOCK}/ {_IN_FORTRAN}",
            f"{inner}data {_IN_FORTRAN} /0/",
            f"{indent}end",
        ],
    )


def reset(in_c: bool) -> str:
    """Before the loop and behind it."""
    return f"{name(in_c)} = 0" + (";" if in_c else "")


def count(in_c: bool) -> str:
    """At the begin of each iteration."""
    if in_c:
        return f"if ({_IN_C} < 2) {_IN_C}++;"
    return f"if ({_IN_FORTRAN} < 2) {_IN_FORTRAN} = {_IN_FORTRAN} + 1"
