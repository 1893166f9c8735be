"""C: prototypes of functions that get distributed arrays say what their definitions say then: a layout before
each array, and widths that only the definition knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.tree import Routine, Unit
from homing.translate.write.c_language import reference_to_pointer

_EXTENT = re.compile(r"\[([^\[\]]*)\]")


def adapt_prototypes(
    units: Sequence[Unit], distributions: Distributions, edits: dict[int, Edits], parts: bool
) -> list[Problem]:
    """parts: the arrays are cut (--to spmd and mpi), so that a part's width is not the array's."""
    problems = []
    for unit in units:
        if unit.form is not Form.C:
            continue
        scope = unit.routines[0]
        own = {routine.name: routine for routine in unit.routines}
        for prototype in scope.prototypes:
            callee = own.get(prototype.name) or distributions.routines.get(prototype.name)
            taken = _taken(callee, distributions) if callee is not None else []
            for index, array in taken:
                if index >= len(prototype.parameters):  # `void f();` says nothing
                    continue
                where = prototype.parameters[index]
                if unit.source.cxx and parts:
                    _adapt_cxx(where, array, edits[id(unit)], distributions.inside(array.routine))
                elif not _adapt(where, array, edits[id(unit)], parts):
                    reason = (
                        f"'{array.name}' of '{prototype.name}' has a name for its type here: write it out"
                    )
                    problems.append(unit.source.problem(prototype.begin, prototype.end, reason))
    return problems


def _taken(callee: Routine, distributions: Distributions) -> list[tuple[int, Array]]:
    """The arguments that are distributed arrays."""
    known = distributions.of(callee)
    found = ((index, known.get(dummy)) for index, dummy in enumerate(callee.arguments))
    return [(index, array) for index, array in found if array is not None and array.routine is callee]


def _adapt(where: tuple[int, int], array: Array, edits: Edits, parts: bool) -> bool:
    begin, end = where
    edits.replace(begin, begin, "homing_layout *, ")
    if not parts:
        return True
    groups = list(_EXTENT.finditer(edits.source.text, begin, end))
    first = array.rank - len(groups)  # 1: `(*a)[n]`, or `*a`
    if first not in (0, 1):
        return False
    for index, group in enumerate(groups, first):
        if index and array.dimensions[index].distributed:
            edits.replace(group.start(1), group.end(1), "*")
    return True


def _adapt_cxx(where: tuple[int, int], array: Array, edits: Edits, inside: bool) -> None:
    begin, end = where
    const = "const " if "const" in array.declaration.attributes else ""
    text = f"{const}void *" if inside else reference_to_pointer(edits.source.text[begin:end])
    edits.replace(begin, end, f"homing_layout *, {text}")
