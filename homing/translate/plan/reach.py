"""How far from a loop's index a subscript lies, where counters of loops inside are part of it: a(i + k),
k = -2, 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.translate.affine import Affine, affine
from homing.translate.plan.boxes import written
from homing.translate.plan.count import number
from homing.translate.tree import Loop, written_in_all


@dataclass(frozen=True)
class Reach:
    """Between low and high. more: what is added to the index beside `constant`, as text; empty: nothing."""

    low: int
    high: int
    constant: int
    more: str = ""


def reach(
    text: str, variable: str, loops: Sequence[Loop], known: Mapping[str, int], factor: int = 1
) -> Reach | None:
    """None where the subscript is not the variable, times the factor, plus numbers and counters between
    numbers.

    known: names that mean a number everywhere.
    """
    value = affine(text)
    if value.coefficient(variable) != factor or value.hides(variable):
        return None
    rest = value.without(variable)
    counters = [(term, factor) for term, factor in rest.terms if term not in known]
    constant = rest.constant + sum(known[term] * factor for term, factor in rest.terms if term in known)
    low = high = constant
    for term, factor in counters:
        ends = _ends(term, loops, known)
        if ends is None:
            return None
        low += min(factor * end for end in ends)
        high += max(factor * end for end in ends)
    more = written(Affine(0, tuple(counters), rest.names)) if counters else ""
    return Reach(low, high, constant, more)


def _ends(name: str, loops: Sequence[Loop], known: Mapping[str, int]) -> tuple[int, int] | None:
    """A counter's first and last value, where the loop alone changes it."""
    loop = next((loop for loop in loops if loop.variable == name), None)
    if loop is None or loop.first is None or loop.last is None or name in written_in_all(loop.body):
        return None
    first, last = number(loop.first.text, known), number(loop.last.text, known)
    return None if first is None or last is None else (first, last)
