"""Small questions about references."""

from __future__ import annotations

import re

from homing.translate.directives.model import Form
from homing.translate.source import SourceFile
from homing.translate.tree import Reference, Routine, Subscript

#: C: a function that works on bytes gets an element's address.
_OF_BYTES = re.compile(r"\b(memcpy|memmove|memset)\s*\([^;{}]*\Z")


def reference_subscripts(reference: Reference) -> list[Subscript]:
    """The subscripts of a reference that is known to have some."""
    assert reference.subscripts is not None
    return reference.subscripts


def why_not_followed(source: SourceFile, reference: Reference) -> str:
    """Why an access in a way that cannot be followed is refused."""
    word = re.compile(r"[A-Za-z_]\w*").match(source.text, reference.begin)
    behind = source.text[word.end() : word.end() + 9].lstrip() if word else source.text[reference.begin :]
    if source.cxx and behind.startswith("::"):
        return f"'{reference.name}' with its namespace: write `using namespace`, and the name alone"
    if source.form is Form.C and word and word[0] != reference.name:
        return f"an access to '{reference.name}' through the macro '{word[0]}': write it out"
    return "may give the distributed array another name"


def why_not_copied(source: SourceFile, reference: Reference) -> str | None:
    """Why a loop that is shared out may not give bytes from an element on to a function."""
    copying = source.form is Form.C and _OF_BYTES.search(source.text[: reference.begin][-200:])
    if not copying or (reference.subscripts is not None and reference.argument_of != copying[1]):
        return None
    return f"{copying[1]} of a piece, which may lie in several parts: write a loop over its elements"


def folded(text: str, routine: Routine) -> str:
    """The text in the form in which names are compared."""
    return text if routine.source.form is Form.C else text.lower()
