"""IMPLICIT: the types of what no statement declares a type of."""

from __future__ import annotations

import re

from homing.translate.tree import Routine

_RULE = re.compile(
    r"(?P<type>[a-z][\w ]*(?:\*\s*\d+)?(?:\s*\([^()]*\))?)\s*"
    r"\((?P<letters>[a-z](?:\s*[-,]\s*[a-z])*)\)\s*(?:,|$)",
    re.IGNORECASE,
)


def rules(text: str) -> dict[str, str]:
    """The types by first letter, of `implicit real*8 (a-h, o-z), integer (i-n)`."""
    found = {}
    for match in _RULE.finditer(re.sub(r"^\s*implicit\s*", "", text, flags=re.IGNORECASE)):
        for letters in match["letters"].lower().replace(" ", "").split(","):
            first, last = letters[0], letters[-1]
            found.update({chr(code): match["type"].strip() for code in range(ord(first), ord(last) + 1)})
    return found


def settle_types(routine: Routine) -> None:
    """A type for every declaration without one."""
    for name, declaration in routine.declarations.items():
        if not declaration.type:
            declaration.type = _type(routine, name)


def _type(routine: Routine, name: str) -> str:
    scope: Routine | None = routine
    while scope is not None:
        if name[0] in scope.implicit:
            return scope.implicit[name[0]]
        scope = scope.parent
    return "integer" if "i" <= name[0] <= "n" else "real"
