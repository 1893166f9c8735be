"""Pointers of a function's own that only read: `const double *row = &table[3 * i];`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clang.cindex import Cursor

from homing.translate.tree import Access, Node, Reference, references


@dataclass(frozen=True)
class Alias:
    """A pointer, and the variables whose addresses it gets when it is declared."""

    variable: Cursor
    means: Sequence[Reference]


def note_read_only(aliases: Sequence[Alias], body: list[Node]) -> None:
    """Note which of these addresses are never written through: the pointer is to constants, or all that the
    function does with its name is reading elements."""
    if not aliases:
        return
    used = {one.name for one in references(body) if one.access is not Access.READ and not one.only_read}
    for alias in aliases:
        constant = alias.variable.type.get_pointee().is_const_qualified()
        if constant or alias.variable.spelling not in used:
            for reference in alias.means:
                reference.only_read = True
