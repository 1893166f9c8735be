"""C: rows of distributed arrays that memcpy, memmove and memset work on, `memcpy(b[i], a[i], sizeof b[i])`,
and snprintf and strncpy; texts that others read, `strlen(name[i])`. A row lies in one part, so bytes of it
alone are as elements that the statement reads or changes."""

from __future__ import annotations

import re
from math import prod

from homing.translate.affine import affine
from homing.translate.front.tokens import closing, parts, tokens
from homing.translate.plan.array import Array
from homing.translate.plan.count import constants, number
from homing.translate.plan.passed_rows import steady
from homing.translate.tree import Access, Reference, Routine, Statement, Subscript

#: How many of the arguments are addresses, and which is the length; None: up to the end of the text.
_OF_BYTES: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("memcpy", "memmove", "strncpy"), (2, 2)),
    "memset": (1, 2),
    "snprintf": (1, 1),
    **dict.fromkeys(("strlen", "atoi", "atof"), (1, None)),
    **dict.fromkeys(("strcmp", "strncmp"), (2, None)),
}
#: COUNT*sizeof(TYPE), or sizeof(TYPE[N][M]).
_BYTES = re.compile(
    r"(?:(?P<before>.+)\*)?sizeof\((?P<type>\w+)(?P<sides>(?:\[[^\[\]]+\])*)\)(?:\*(?P<behind>.+))?"
)


def copy_row(routine: Routine, statement: Statement, reference: Reference, array: Array) -> None:
    """Turn such an argument into an access of the statement."""
    subscripts = reference.subscripts or []
    rest = range(len(subscripts), array.rank)
    cut = any(array.dimensions[index].distributed for index in rest)
    addresses, length = _OF_BYTES.get(reference.argument_of or "", (0, None))
    known = reference.argument_index < addresses
    if not known or reference.value_used or reference.access is not Access.ARGUMENT:
        return
    if not subscripts or not rest or cut:
        return
    if length is None and (len(rest) != 1 or array.declaration.type != "char"):
        return
    if length is not None and not _within(routine, statement, reference, array, length):
        return
    reference.argument_of = None
    reference.access = Access.READ
    if reference.argument_index == 0 and length is not None:
        reference.access = Access.UPDATE
        statement.writes |= {reference.name}
    end = reference.end
    reference.subscripts = [*subscripts, *(Subscript(end, end, ":", section=True) for _ in rest)]


def _within(routine: Routine, statement: Statement, reference: Reference, array: Array, length: int) -> bool:
    """Are there no more bytes than the row has?"""
    found = _BYTES.fullmatch(_length(statement, reference.argument_of or "", length))
    sizes = [bound.upper for bound in array.declaration.bounds[len(reference.subscripts or []) :]]
    if found is None or found["type"] != array.declaration.type or (found["before"] and found["behind"]):
        return False
    known, count = constants(routine), found["before"] or found["behind"]
    if found["sides"]:
        mine = [number(f"({size}) + 1", known) if size else None for size in sizes]
        its = [number(side, known) for side in re.findall(r"\[([^\[\]]+)\]", found["sides"])]
        if count or None in mine or None in its:
            return False
        return prod(one or 0 for one in its) <= prod(one or 0 for one in mine)
    if not count or len(sizes) != 1 or not sizes[0]:
        return False
    beyond = affine(f"({count}) - ({sizes[0]}) - 1")
    value = beyond.constant if not beyond.terms else number(f"({count}) - ({sizes[0]}) - 1", known)
    return value is not None and value <= 0 and all(steady(routine, one) for one in affine(count).names)


def _length(statement: Statement, name: str, at: int) -> str:
    """An argument of the statement's one call of the function, without blanks; empty: it has more calls."""
    words = tokens(statement.code)
    found = []
    for index, word in enumerate(words[:-1]):
        if statement.code[word.begin : word.end] == name and words[index + 1].text == "(":
            found.append(parts(words, index + 2, closing(words, index + 1), ","))
    if len(found) != 1 or len(found[0]) <= at:
        return ""
    first, last = found[0][at]
    return "".join(statement.code[words[first].begin : words[last - 1].end].split())
