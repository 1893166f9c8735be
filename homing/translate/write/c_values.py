"""The initial values of C's distributed arrays that are no pointers: they are given behind the directive."""

from __future__ import annotations

import re
from collections.abc import Iterable

from homing.translate.affine import shifted
from homing.translate.tree import Declaration, Kind, Node, statements

_ZERO = re.compile(r"0(?:\.0*)?f?")
_NAMES = re.compile(r"\b[A-Za-z_]\w*")


def zeros(initial: str | None) -> bool:
    """Are initial values all zeros, as memory is where there are none?"""
    return all(_ZERO.fullmatch(word) for word in re.split(r"[{}\s,]+", initial or "") if word)


def others_behind(
    declaration: Declaration, place: int, body: list[Node], arrays: Iterable[str]
) -> str | None:
    """Why initial values may be others at the place where they are given."""
    names = set(_NAMES.findall(declaration.initial or ""))
    for read in sorted(names.intersection(arrays)):
        return f"an initial value reads the distributed '{read}': assign it behind the directive instead"
    between = (one for one in statements(body) if declaration.statement_end <= one.begin < place)
    if names and any(one.kind is not Kind.OTHER for one in between):
        return "initial values are given behind the directive: write it directly behind the declaration"
    return None


def given(declaration: Declaration, layout: str) -> list[str]:
    """The lines that give them."""
    kept = "static " if "save" in declaration.attributes else ""  # it may be too large for the stack
    sides = "".join(f"[{shifted(one.upper or '', 1)}]" for one in declaration.bounds)
    lines = [
        f"{{ {kept}{declaration.type} hm_values{sides} = {declaration.initial};",
        f"void *hm_whole = homing_gather({layout});",
        "__builtin_memcpy(hm_whole, hm_values, sizeof hm_values);",
        f"homing_release({layout}, hm_whole, 1); }}",
    ]
    return [piece for line in lines for piece in line.split("\n")]
