"""C: functions that are their file's own (static), told apart where another file has one of the same name."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from homing.translate.directives.model import Form
from homing.translate.tree import Routine, Unit, statements


def tell_apart(units: Sequence[Unit]) -> None:
    """Names by which the translation knows such functions, and the calls in their files: `f of x.c`."""
    c = [unit for unit in units if unit.form is Form.C]
    count = Counter(name for unit in c for name in {one.name for one in unit.routines if not one.module})
    for unit in c:
        for routine in unit.routines:
            if not routine.module and count[routine.name] > 1 and _static(routine):
                _rename(unit, routine.name, f"{routine.name} of {os.path.basename(unit.source.path)}")


def _static(routine: Routine) -> bool:
    """Is the definition, or a prototype in its file, static?"""
    text = routine.source.text
    name = re.escape(routine.name)
    if re.search(r"\bstatic\b", text[routine.begin : routine.arguments_end]):
        return True
    return re.search(rf"^[ \t]*static\b[^;{{}}()]*\b{name}\s*\(", text, re.MULTILINE) is not None


def _rename(unit: Unit, old: str, new: str) -> None:
    for routine in unit.routines:
        if routine.name == old:
            routine.name = new
        routine.prototypes = [
            replace(one, name=new) if one.name == old else one for one in routine.prototypes
        ]
        for statement in statements(routine.body):
            statement.calls = tuple(new if name == old else name for name in statement.calls)
            for reference in statement.references:
                if reference.argument_of == old:
                    reference.argument_of = new
                if reference.name == old and routine.lookup(old) is None:
                    reference.name = new
