"""ALIGN: where the elements of an array lie, by those of another one, or of a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from homing.translate.affine import affine
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.model import Dimension
from homing.translate.plan.reference_text import folded
from homing.translate.tree import Routine


def aligned(
    routine: Routine, align: d.Align, target_dimensions: Sequence[Dimension], base: Array | None
) -> list[Dimension] | str:
    """The array's dimensions, or why it has none. base: the target, if it is no template."""
    target = align.target.name.key
    found = routine.lookup(align.name.key)
    rank = len(found[1].bounds) if found else 0
    dummies = [text.text.strip().lower() for text in align.subscripts] or [":"] * rank
    subscripts = [text.text.strip().lower() for text in align.target.subscripts] or [":"] * len(
        target_dimensions
    )
    if len(subscripts) != len(target_dimensions):
        return f"'{align.target.name}' has {len(target_dimensions)} dimensions, not {len(subscripts)}"
    dimensions = [Dimension(d.Kind.STAR) for _ in dummies]
    colons = [i for i, text in enumerate(dummies) if text == ":"]
    next_colon = 0
    for index, text in enumerate(subscripts):
        wanted = target_dimensions[index]
        if text == "*":
            if wanted.distributed:
                return "replication over a distributed dimension is not supported"
            continue
        if text == ":":
            if next_colon >= len(colons):
                return "more ':' in the target than in the array"
            at, offset = colons[next_colon], 0
            next_colon += 1
        else:
            value = affine(text)
            using = [name for name in dummies if value.coefficient(name)]
            if not using:
                if wanted.distributed:
                    return f"'{text}' puts the whole array on one part"
                continue
            if len(value.terms) != 1 or value.terms[0][1] != 1:
                return f"'{text}' is not an index plus a number"
            at, offset = dummies.index(using[0]), value.constant
        if wanted.distributed:
            base_name, base_dimension = wanted.base, wanted.base_dimension
            upper = wanted.upper
            if base is not None and not base_name:
                base_name, base_dimension = target, index
                upper = base.declaration.bounds[index].upper
            if text == ":" and base is not None and found and index < len(base.declaration.bounds):
                # `:` aligns first with first.
                own, other = found[1].bounds[at], base.declaration.bounds[index]
                if not own.deferred and not other.deferred:
                    step = affine(folded(other.lower, routine)).minus(affine(folded(own.lower, routine)))
                    offset = step or 0
            dimensions[at] = replace(
                wanted,
                upper=upper,
                offset=wanted.offset + offset,
                base=base_name,
                base_dimension=base_dimension,
            )
        elif base is not None and index < len(base.declaration.bounds):  # how far it reaches
            upper = base.declaration.bounds[index].upper
            dimensions[at] = Dimension(d.Kind.STAR, upper=upper, offset=offset)
    return dimensions
