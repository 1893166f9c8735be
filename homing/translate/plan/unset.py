"""Variables in DISTRIBUTE that have no value yet where the array is cut: when the procedure begins (of a
module or a C file: the program)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.positions import Problem
from homing.translate.tree import Declaration, Routine, Unit

_NAME = re.compile(r"(?<![\w%.])[A-Za-z]\w*")
#: Attributes of what has a value before the first statement, or may have one.
_SET = frozenset({"parameter", "save", "data", "extern", "const"})


def unset(units: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]]) -> Iterator[Problem]:
    """What decides about arrays that are there from the beginning, and gets its value later only."""
    for unit in units:
        for routine in unit.routines:
            for array in arrays(routine).values():
                origin = array.origin
                if array.routine is not routine or not isinstance(origin, d.Distribute) or _later(array):
                    continue
                texts = [text.text for each in origin.formats for text in each.arguments]
                texts = texts if unit.form is d.Form.C else [text.lower() for text in texts]
                for name in sorted({name for text in texts for name in _NAME.findall(text)}):
                    declared = routine.declarations.get(name)
                    if declared is not None and not _set(routine, declared):
                        when = "the program" if routine.module else "the procedure"
                        yield origin.source.problem(
                            f"'{name}' has no value yet when {when} begins, where '{origin.name}' is cut: "
                            "give it one in its declaration, or ALLOCATE the array behind"
                        )


def _later(array: Array) -> bool:
    """Is it cut where a statement takes its memory (C: where the directive stands, in a function)?"""
    late = array.declaration.storage not in ("static", "automatic")
    return late or (array.routine.source.form is d.Form.C and not array.routine.module)


def _set(routine: Routine, declared: Declaration) -> bool:
    if declared.name in routine.arguments or declared.name in routine.equivalence:
        return True
    own = declared.storage in ("static", "automatic", "allocatable")
    return not own or declared.initial is not None or bool(_SET & declared.attributes)
