"""C: functions that get distributed arrays, and whose prototypes stand in headers.

The header stays as it is. The function gets another name by a macro behind it, and a prototype with the
layouts; files that were translated otherwise do not find the function when they are linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.arrays import Distributions
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.tree import Routine, Unit, references, statements


def declare_anew(
    units: Sequence[Unit], distributions: Distributions, edits: Mapping[int, Edits]
) -> Iterator[Problem]:
    """Macros and prototypes for such functions, in every file that knows them."""
    c_units = [unit for unit in units if unit.form is Form.C and unit.routines]
    for owner in c_units:
        for routine in owner.routines:
            known = distributions.of(routine).keys() & set(routine.arguments)
            if routine.module or not known:
                continue
            users = [unit for unit in c_units if unit is owner or routine.name in _names(unit)]
            if not any(routine.name in unit.routines[0].headers for unit in users):
                continue
            lines = _lines(routine, edits[id(owner)])
            if lines is None:
                reason = "declares a function that gets distributed arrays in a way that is not followed"
                yield owner.source.problem(routine.begin, routine.head_end, reason)
                continue
            if any(unit.source.cxx != owner.source.cxx for unit in users):
                reason = "gets distributed arrays, and is called in C and in C++ by a header's declaration"
                yield owner.source.problem(routine.begin, routine.head_end, reason)
                continue
            for unit in users:
                first = min(one.begin for one in unit.routines if not one.module)
                edits[id(unit)].insert_lines(unit.source.line_start(first), list(lines))


def _names(unit: Unit) -> set[str]:
    """What the functions of a file call and name."""
    found: set[str] = set()
    for routine in unit.routines:
        for statement in statements(routine.body):
            found.update(statement.calls)
        found.update(one.name for one in references(routine.body))
        found.update(one.argument_of for one in references(routine.body) if one.argument_of)
    return found


def _lines(routine: Routine, edits: Edits) -> list[str] | None:
    """The macro, and the prototype as the translated function's head has it."""
    text = routine.source.text
    end = text.rfind("{", routine.begin, routine.head_end + 1)
    head = " ".join(edits.changed(routine.begin, end).split()) if end > 0 else ""
    found = re.search(rf"\b{routine.name}\s*\(", head)
    if found is None or head.startswith("static") or "#" in head or "//" in head:
        return None
    made = f"{head[: found.start()]}hm_{routine.name}({head[found.end() :]};"
    return [f"#define {routine.name}(...) hm_{routine.name}(__VA_ARGS__)", made]
