"""Steps of loops that are variables: may they stand wherever the part's own iterations are counted?"""

from __future__ import annotations

import re

from homing.translate.directives.model import Form
from homing.translate.front.implicit import declared
from homing.translate.tree import Declaration, Loop, Routine

#: C's words for whole numbers.
_WHOLE = frozenset(
    ["char", "const", "int", "int32_t", "int64_t", "long", "ptrdiff_t", "short", "signed", "size_t",
     "ssize_t", "uint32_t", "uint64_t", "unsigned"]
)  # fmt: skip


def unsteady_step(routine: Routine, loop: Loop, written: frozenset[str]) -> str | None:
    """Why the step cannot be used before the loop, if so. written: whatever the loop that is shared out
    writes."""
    if re.fullmatch(r"-?\s*\d+", loop.step):
        return None
    name = loop.step.lstrip("- ")
    what = f"the step '{name}' of the loop over '{loop.variable}'"
    if not name.isidentifier():
        return f"{what} is neither a number nor a variable: give its value to a variable before"
    found = declared(routine, name)
    if found is None:
        return f"{what} is not declared in the files given: give its value to a variable here before"
    if found.bounds or not is_whole(found.type, routine.source.form):
        return f"{what} is no integer variable"
    if found.storage == "pointer" or "*" in found.type or _volatile(routine, found):
        return f"{what} is a pointer, or volatile: what it means may change"
    if name in written:
        return f"{what} is changed in the loop: give its value to another variable before"
    return None


def _volatile(routine: Routine, found: Declaration) -> bool:
    """C's type has lost the word."""
    text = routine.source.text[found.statement_begin : found.statement_end]
    return "volatile" in found.attributes or re.search(r"\bvolatile\b", text, re.IGNORECASE) is not None


def is_whole(kind: str, form: Form) -> bool:
    """Is it a type of whole numbers?"""
    if form.fortran:
        return kind.lower().startswith("integer")
    return bool(words := kind.split()) and _WHOLE.issuperset(words)
