"""What references in a shared-out loop touch, as boxes whose bounds are the user's expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from homing.translate.affine import Affine, affine, is_primary, names_in
from homing.translate.plan.model import Box, Side
from homing.translate.tree import Loop, Reference, Subscript


@dataclass
class Site:
    """A reference, the loops around it from the shared-out one inwards, and whether it always happens."""

    reference: Reference
    loops: list[Loop]
    conditional: bool

    def sectioned(self, rank: int) -> Site:
        """The same where a bare name is the section of all elements."""
        reference = self.reference
        if reference.subscripts is not None:
            return self
        end = reference.name_end
        every = [Subscript(end, end, ":", section=True) for _ in range(rank)]
        return replace(self, reference=replace(reference, subscripts=every))


def written(value: Affine, factor_text: dict[str, str] | None = None) -> str:
    """An affine expression as text of either language."""
    pieces: list[str] = []
    for term, factor in value.terms:
        text = (factor_text or {}).get(term, term)
        if not is_primary(text):
            text = f"({text})"
        if abs(factor) != 1:
            text = f"{abs(factor)}*{text}"
        pieces.append(("- " if factor < 0 else "+ " if pieces else "") + text)
    if value.constant or not pieces:
        sign = "- " if value.constant < 0 else "+ " if pieces else ""
        if value.constant < 0 and not pieces:
            sign = "-"
        pieces.append(f"{sign}{abs(value.constant)}")
    text = " ".join(pieces)
    return "-" + text[2:] if text.startswith("- ") else text


def _combine(value: Affine, variable: str, bound: Affine) -> Affine:
    """value with the variable replaced by bound."""
    factor = value.coefficient(variable)
    terms = dict(value.without(variable).terms)
    for term, count in bound.terms:
        terms[term] = terms.get(term, 0) + factor * count
    return Affine(
        value.constant + factor * bound.constant,
        tuple(sorted((t, c) for t, c in terms.items() if c)),
        (value.names - {variable}) | bound.names,
    )


def side_of(
    subscript: Subscript, loops: Sequence[Loop], varying: frozenset[str], whole: tuple[str, str]
) -> tuple[Side, bool]:
    """The values of a subscript over all iterations of the loops, and whether all of them occur.

    varying: names that change in the loops. whole: the bounds of the dimension, for what cannot be said.
    """
    if subscript.section:
        low, high = subscript.low, subscript.high
        step = (subscript.step or "1").replace(" ", "")
        if down := re.fullmatch(r"-\d+", step):
            low, high = high, low
        low, high = low or whole[0], high or whole[1]
        if (names_in(low) | names_in(high)) & varying or not (down or step.isdigit()):
            return Side(*whole), False
        return Side(low, high), subscript.step is None
    value = affine(subscript.text)
    used = value.names & varying
    if not used:
        return Side(subscript.text, subscript.text), True
    if len(used) > 1:
        return Side(*whole), False
    variable = next(iter(used))
    loop = next((loop for loop in loops if loop.variable == variable), None)
    factor = value.coefficient(variable)
    if loop is None or loop.first is None or loop.last is None or value.hides(variable) or factor == 0:
        return Side(*whole), False
    if (names_in(loop.first.text) | names_in(loop.last.text)) & varying:
        return Side(*whole), False
    if "->" in loop.first.text + loop.last.text + subscript.text:
        return Side(*whole), False
    first, last = affine(loop.first.text), affine(loop.last.text)
    backwards = loop.step.replace(" ", "").startswith("-")
    if backwards != (factor < 0):
        first, last = last, first
    exact = loop.step.replace(" ", "") in ("1", "-1") and abs(factor) == 1
    made = Side(written(_combine(value, variable, first)), written(_combine(value, variable, last)))
    return made, exact


def merged(boxes: Sequence[Box], hull: bool) -> list[Box]:
    """Fewer boxes with the same elements. hull: boxes that overlap may become one around both."""
    result: list[Box] = []
    for box in boxes:
        for index, other in enumerate(result):
            union = _union(other, box, hull)
            if union is not None:
                result[index] = union
                break
        else:
            result.append(box)
    return result if len(result) == len(boxes) else merged(result, hull)


def _union(a: Box, b: Box, hull: bool) -> Box | None:
    if a.array != b.array:
        return None
    different = [i for i, (x, y) in enumerate(zip(a.sides, b.sides, strict=True)) if x.key() != y.key()]
    references = a.references + b.references
    if not different:
        return Box(a.array, a.sides, a.exact and b.exact, references)
    if len(different) > 1 or not hull:
        return None
    index = different[0]
    side = _join(a.sides[index], b.sides[index])
    if side is None:
        return None
    sides = list(a.sides)
    sides[index] = side
    return Box(a.array, tuple(sides), False, references)


def _join(a: Side, b: Side) -> Side | None:
    if (a.follow is None) != (b.follow is None):
        return None
    if a.follow is not None and b.follow is not None:
        if (
            a.follow.way() != b.follow.way()
            or affine(a.first) != affine(b.first)
            or affine(a.last) != affine(b.last)
        ):
            return None
        return Side(a.first, a.last, a.follow, min(a.low, b.low), max(a.high, b.high))
    a_first, a_last, b_first, b_last = (affine(t) for t in (a.first, a.last, b.first, b.last))
    starts, ends = a_first.minus(b_first), a_last.minus(b_last)
    if starts is None or ends is None:
        return None
    length = a_last.minus(a_first)
    if length is not None:  # numbers: only if no element lies between them
        gap = max((b_first.minus(a_last) or 0), (a_first.minus(b_last) or 0))
        if gap > 1:
            return None
    return Side(a.first if starts <= 0 else b.first, a.last if ends >= 0 else b.last)
