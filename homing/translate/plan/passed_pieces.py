"""Columns of distributed arrays as arguments: a(:, j), or a(1, j) to an array of a column's length. A column
lies in one part, so the procedure gets it as it is, and it is the caller who reads or writes it. (C's rows:
passed_rows.py.)"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from homing.translate.affine import affine
from homing.translate.directives.model import Form
from homing.translate.front.tokens import closing, parts, tokens
from homing.translate.plan.array import Array
from homing.translate.plan.copied_rows import copy_row
from homing.translate.plan.intents import is_intent_in
from homing.translate.plan.passed_rows import pass_row
from homing.translate.tree import Access, Declaration, Reference, Routine, Statement, statements


def pass_pieces(
    routine: Routine,
    arrays: Mapping[str, Array],
    routines: Mapping[str, Routine],
    in_parallel: Callable[[Routine], bool],
) -> None:
    """Turn every such argument into an access of the statement."""
    c = routine.source.form is Form.C
    for statement in statements(routine.body):
        for reference in statement.references:
            array = arrays.get(reference.name)
            callee = routines.get(reference.argument_of or "")
            if c and array is not None and callee is None:
                copy_row(routine, statement, reference, array)
            if array is None or callee is None or reference.subscripts is None or in_parallel(callee):
                continue
            if c:
                pass_row(routine, statement, reference, array, callee)
                continue
            at = reference.argument_index
            dummy = callee.declarations.get(callee.arguments[at]) if at < len(callee.arguments) else None
            if dummy is None or not dummy.bounds or dummy.attributes & {"allocatable", "pointer", "target"}:
                continue
            if _in_one_part(array, reference) and (
                _has_section(reference) or _column(statement, reference, array, callee, dummy)
            ):
                _pass(statement, reference, callee, dummy)


def _in_one_part(array: Array, reference: Reference) -> bool:
    subscripts = reference.subscripts or []
    return len(subscripts) == array.rank and not any(
        one.section and dimension.distributed
        for one, dimension in zip(subscripts, array.dimensions, strict=True)
    )


def _has_section(reference: Reference) -> bool:
    return any(one.section for one in reference.subscripts or ())


def _column(
    statement: Statement, reference: Reference, array: Array, callee: Routine, dummy: Declaration
) -> bool:
    """Does the first element of a column stand for the column, and is the dummy no longer than it?"""
    subscripts, bounds = reference.subscripts or [], array.declaration.bounds
    if array.rank != 2 or array.dimensions[0].distributed or len(dummy.bounds) != 1:
        return False
    first, length = bounds[0], dummy.bounds[0]
    if first.upper is None or first.deferred or length.upper is None or length.deferred:
        return False
    if length.lower != "1" or affine(subscripts[0].text).minus(affine(first.lower)) != 0:
        return False
    given = length.upper
    if given in callee.arguments:
        given = _actual(statement, callee, given) or ""
    elif not given.isdigit():
        return False
    extent = f"{first.upper} - ({first.lower}) + 1"
    difference = affine(extent).minus(affine(given))
    # The dummy's length is the column's, or a number that is no more.
    return difference is not None and difference >= 0


def _actual(statement: Statement, callee: Routine, name: str) -> str | None:
    """The text of the actual argument that a dummy gets in the statement's only call of the procedure."""
    words = tokens(statement.code)
    calls = [i for i, word in enumerate(words) if word.kind == "name" and word.text == callee.name]
    if len(calls) != 1 or calls[0] + 1 >= len(words) or words[calls[0] + 1].text != "(":
        return None
    opening = calls[0] + 1
    for index, (first, last) in enumerate(parts(words, opening + 1, closing(words, opening), ",")):
        keyword = first + 1 < last and words[first + 1].text == "="
        dummy = words[first].text if keyword else callee.arguments[index]
        if dummy == name:
            begin = words[first + 2 if keyword else first].begin
            return statement.code[begin : words[last - 1].end].lower()
    return None


def _pass(statement: Statement, reference: Reference, callee: Routine, dummy: Declaration) -> None:
    reference.argument_of = None
    if is_intent_in(callee, dummy):
        reference.access = Access.READ
    else:
        reference.access = Access.UPDATE
        statement.writes |= {reference.name}
    if not _has_section(reference):
        subscript = (reference.subscripts or [])[0]
        subscript.section, subscript.low, subscript.high = True, None, None
