"""How many elements an exchange has, where the program's text says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from homing.translate.affine import Affine, affine
from homing.translate.plan.boxes import written
from homing.translate.plan.model import Box, Dimension, Side
from homing.translate.source import SourceFile
from homing.translate.tree import Routine

#: C: #define NAME NUMBER
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?[ \t]*(\d+)[ \t]*\)?[ \t]*(?:/[/*].*)?$", re.MULTILINE
)
#: Constants that are made of others are few, and not deep.
_ROUNDS = 8


def constants(routine: Routine) -> dict[str, int]:
    """The names that mean a number wherever they stand in the routine."""
    found = _macros(routine.source) if not routine.source.form.fortran else {}
    texts: dict[str, str] = {}
    hidden: set[str] = set()
    scope: Routine | None = routine
    while scope is not None:
        for name, declaration in scope.declarations.items():
            fixed = {"parameter", "const"} & declaration.attributes and name not in hidden
            if fixed and declaration.initial is not None and not declaration.bounds:
                initial = declaration.initial
                texts.setdefault(name, initial.lower() if routine.source.form.fortran else initial)
        hidden |= scope.declarations.keys()
        scope = scope.parent
    for _ in range(_ROUNDS):
        new = {name: value for name, text in texts.items() if (value := number(text, found)) is not None}
        if new.items() <= found.items():
            break
        found = {**new, **found}
    return found


def _macros(source: SourceFile) -> dict[str, int]:
    found: dict[str, int] = {}
    twice: set[str] = set()
    for name, value in _MACRO.findall(source.text):
        if found.setdefault(name, int(value)) != int(value):
            twice.add(name)
    return {name: value for name, value in found.items() if name not in twice}


def number(text: str, known: Mapping[str, int]) -> int | None:
    """The value of an expression, where it is a sum of numbers and known names."""
    value = affine(text)
    if any(term not in known for term, _ in value.terms):
        return None
    return value.constant + sum(known[term] * factor for term, factor in value.terms)


def exchanged(box: Box, offsets: Sequence[int]) -> str:
    """How many elements one block of a part gets or sends, as an expression: those beside its own. Empty
    where that is not known. offsets: of the array's dimensions, in the index space that is dealt out."""
    count = 1
    factors = []
    following = 0
    for side, offset in zip(box.sides, offsets, strict=True):
        follow = side.follow
        if follow is None:
            factors.append(_extent(side))
            continue
        # Elements at low..high from each own one, of which some are own ones, too.
        following += 1
        home = follow.offset + follow.dealt.offset - offset
        count *= _beside(side.low - home, side.high - home, follow.dealt)
    # Beside a grid's part are as many as the part is long.
    return _product(count, factors) if following == 1 else ""


def _beside(low: int, high: int, dealt: Dimension) -> int:
    """How many indices lie at low..high from those of a block, and not in it."""
    block = number(dealt.argument, {}) if dealt.cyclic else None
    if block is None:  # as long as it takes
        return max(0, -low) + max(0, high)
    return sum(1 for at in range(low, high + block) if not 0 <= at < block)


def copied(box: Box) -> str:
    """How many elements of a box every part gets, as an expression."""
    return _product(1, [_extent(side) for side in box.sides])


def value(count: str, known: Mapping[str, int]) -> int | None:
    """The number of elements, where the program's text says it."""
    if not count:
        return None
    found = 1
    for factor in count.split(" * "):
        each = number(factor, known)
        if each is None:
            return None
        found *= max(each, 0)
    return found


def _extent(side: Side) -> Affine:
    return affine(f"({side.last}) - ({side.first}) + 1")


def _product(count: int, factors: Sequence[Affine]) -> str:
    words = []
    for one in factors:
        if not one.terms:
            count *= max(one.constant, 0)
        else:
            text = written(one)
            words.append(text if len(one.terms) == 1 and not one.constant else f"({text})")
    return " * ".join([*([str(count)] if count != 1 or not words else []), *words])
