"""How many elements an exchange has, where the program's text says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from homing.translate.affine import affine
from homing.translate.plan.model import Box, Side
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
    scope: Routine | None = routine
    while scope is not None:
        for name, declaration in scope.declarations.items():
            fixed = {"parameter", "const"} & declaration.attributes
            if fixed and declaration.initial is not None and not declaration.bounds:
                initial = declaration.initial
                texts.setdefault(name, initial.lower() if routine.source.form.fortran else initial)
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


def _extent(side: Side, known: Mapping[str, int]) -> int | None:
    first, last = affine(side.first), affine(side.last)
    apart = last.minus(first)
    if apart is None:
        low, high = number(side.first, known), number(side.last, known)
        if low is None or high is None:
            return None
        apart = high - low
    return max(apart + 1, 0)


def exchanged(box: Box, offsets: Sequence[int], known: Mapping[str, int]) -> int | None:
    """How many elements one block of a part gets or sends: those beside its own. offsets: of the array's
    dimensions, in the index space that is dealt out."""
    count, following = 1, 0
    for side, offset in zip(box.sides, offsets, strict=True):
        follow = side.follow
        if follow is not None:
            # Elements at low..high from each own one, of which some are own ones, too.
            following += 1
            home = follow.offset + follow.dealt.offset - offset
            count *= max(0, home - side.low) + max(0, side.high - home)
            continue
        extent = _extent(side, known)
        if extent is None:
            return None
        count *= extent
    return count if following == 1 else None  # beside a grid's part: as many as the part is long


def copied(box: Box, known: Mapping[str, int]) -> int | None:
    """How many elements of a box every part gets."""
    count = 1
    for side in box.sides:
        extent = _extent(side, known)
        if extent is None:
            return None
        count *= extent
    return count
