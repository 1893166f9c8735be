"""Names that mean the same memory in turn: solvers read one array and write another, and exchange the two
pointers behind each sweep. What constructs do through one of them, they do to what the others mean, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from homing.translate.directives.model import Form
from homing.translate.tree import Access, Kind, Reference, Routine, Statement, statements

_MEMBER = re.compile(r"\s*(?:->|\.\s*[A-Za-z_])")
_EXCHANGES = ("std::swap", "move_alloc")


def same_memory(
    routine: Routine, statement: Statement, routines: Mapping[str, Routine]
) -> Iterator[tuple[str, str]]:
    """Pairs of names of which one gets the memory of the other, or may."""
    known = [one for one in statement.references if not _member(routine, one)]
    if any(name in _EXCHANGES or _exchanges(routines.get(name)) for name in statement.calls):
        names = [one.name for one in known if one.subscripts is None and one.access is not Access.READ]
        yield from pairwise(names)
    elif routine.source.form is not Form.C:
        names = [one.name for one in known if one.access is Access.OTHER]
        if "=>" in statement.text and len(names) > 1:
            yield names[0], names[1]
    elif statement.kind is Kind.ASSIGNMENT:
        given = known[0] if known else None
        if given is not None and given.begin == statement.begin and _is_pointer(routine, given):
            yield from ((given.name, one.name) for one in known[1:] if one.access is Access.OTHER)
    else:
        for name in statement.writes:
            made = routine.declarations.get(name)
            if made is None or made.storage != "pointer" or not _inside(statement, made.begin):
                continue
            for one in known:
                if made.begin < one.begin < made.end and one.access is Access.OTHER:
                    yield name, one.name


def _inside(statement: Statement, place: int) -> bool:
    return statement.begin <= place < statement.end


def _member(routine: Routine, reference: Reference) -> bool:
    return (
        routine.source.form is Form.C and _MEMBER.match(routine.source.text, reference.name_end) is not None
    )


def _is_pointer(routine: Routine, reference: Reference) -> bool:
    found = routine.lookup(reference.name)
    pointer = found is not None and (found[1].storage in ("pointer", "dummy") or bool(found[1].bounds))
    return pointer and reference.access is Access.WRITE and reference.subscripts is None


def _exchanges(callee: Routine | None) -> bool:
    """C: does it give what one of its arguments points to the value of another, `*p = *q`?"""
    if callee is None or callee.source.form is not Form.C:
        return False
    for statement in statements(callee.body):
        names = {one.name for one in statement.references if one.subscripts is None} & {*callee.arguments}
        if len(names) > 1 and re.match(r"\*\s*\w+\s*=[^=]*\*", statement.text):
            declared = [callee.declarations.get(name) for name in names]
            text = callee.source.text
            if all(
                one and "**" in text[one.statement_begin : one.begin].replace(" ", "") for one in declared
            ):
                return True
    return False
