"""C++: where the translation's lines stand, beside arrays of namespaces.

What makes an array stands in its namespace, whose names its bounds may have, wherever the directive stands.
The layout stands outside of all: functions that know the array by `using` find it, too.
"""

from __future__ import annotations

from homing.translate.tree import Routine


def inside(scope: Routine, name: str, place: int, lines: list[str]) -> list[str] | None:
    """The lines as the variable's namespace has them, standing at the place; None: it cannot be opened
    there."""
    around = scope.namespaces[name]
    here = next((block[2] for block in reversed(_blocks(scope, place))), "")
    if around == here:
        return lines
    if here and not around.startswith(here + "::"):
        return None
    missing = around.removeprefix(here).removeprefix("::").split("::")
    return [*(f"namespace {one} {{" for one in missing), *lines, "}" * len(missing)]


def known_from(scope: Routine, place: int) -> int | None:
    """Where a line stands before the namespaces that are around the place; None: another one is on it."""
    blocks = _blocks(scope, place)
    if not blocks:
        return None
    begin = scope.source.line_start(blocks[0][0])
    return None if scope.source.text[begin : blocks[0][0]].strip() else begin


def _blocks(scope: Routine, place: int) -> list[tuple[int, int, str]]:
    return [block for block in scope.blocks if block[0] <= place < block[1]]
