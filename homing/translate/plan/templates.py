"""The index spaces that are cut: bounds of templates, and dimensions that lie together without being told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from homing.translate.affine import affine
from homing.translate.directives import model as d
from homing.translate.plan.accessibility import declared_in
from homing.translate.plan.count import constants, number
from homing.translate.plan.model import Dimension
from homing.translate.plan.reference_text import folded
from homing.translate.tree import Declaration, Routine


def ends(bound: d.Bounds, fortran: bool, routine: Routine) -> tuple[str, str]:
    """The lowest and the highest index of a template's dimension."""
    upper = folded(bound.upper.text, routine)
    if bound.lower is not None:
        return folded(bound.lower.text, routine), upper
    return ("1", upper) if fortran else ("0", f"({upper}) - 1")


def with_templates(
    routine: Routine,
    name: str,
    declaration: Declaration,
    dimensions: Sequence[Dimension],
    modules: Mapping[str, Routine],
) -> list[Dimension]:
    """Arrays of the same bounds lie together without being told to: their index space is named after it."""
    complete = []
    known = constants(routine) if routine.source.form is not d.Form.C else {}
    for index, dimension in enumerate(dimensions):
        if dimension.distributed and not dimension.template:
            bound = declaration.bounds[index] if index < len(declaration.bounds) else None
            if bound is not None and bound.deferred and declaration.storage == "allocatable":
                # Their bounds are compared when the program runs (homing_together).
                key = f"{routine.name}/allocated/{_place(dimensions, index)}"
            elif bound is None or bound.upper is None:
                key = f"{routine.name}/{name}/{index}"
            else:
                low, high = (
                    affine(text if (value := number(text, known)) is None else str(value))
                    for text in (folded(bound.lower, routine), folded(bound.upper or "", routine))
                )
                scope = _scope(routine, [name for name, _ in (*low.terms, *high.terms)], modules)
                key = f"{scope}/{low}/{high}/{_place(dimensions, index)}"
            dimension = replace(dimension, template=key)
        complete.append(dimension)
    return complete


def _scope(routine: Routine, terms: Sequence[str], modules: Mapping[str, Routine]) -> str:
    """Where bounds of these terms mean the same; numbers do so everywhere, C's macros in their file,
    PARAMETERs wherever they are used."""
    if not terms:
        return ""
    names = {word for term in terms for word in re.findall(r"[A-Za-z_]\w*", term)}
    if routine.source.form is not d.Form.C:
        found = {name: declared_in(routine, name, modules) for name in names}
        if any(one is None or not _constant(one, name) for name, one in found.items()):
            return routine.name
        owners = {name: one.name for name, one in found.items() if one is not None}
        if len(set(owners.values())) == 1:
            return next(iter(owners.values()))
        return ",".join(f"{name}@{owner}" for name, owner in sorted(owners.items()))
    if any(routine.lookup(name) is not None for name in names):
        return routine.name
    return routine.outermost.name


def _constant(scope: Routine, name: str) -> bool:
    return "parameter" in scope.declarations[name].attributes


def _place(dimensions: Sequence[Dimension], index: int) -> str:
    """Which dimension of its grid of parts it has, and which grid that is: a grid of one dimension has all
    parts in it, the first of two dimensions has fewer. Extents of 1 change nothing."""
    grid = [one.parts for one in dimensions if one.distributed and one.parts != "1"]
    before = sum(one.distributed and one.parts != "1" for one in dimensions[:index])
    return f"{before}of{','.join(extent or '*' for extent in grid)}"
