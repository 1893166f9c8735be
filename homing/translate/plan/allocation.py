"""Fortran statements that may allocate an array, or free it, without saying so: an assignment to the whole of
it, and a call that gets it whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.tree import Access, Kind, Node, Reference, Routine, Statement, statements

#: A function's value, or an element or a section.
_CALL = re.compile(r"\w\s*\([^()]*\)")
#: Operators that give a value of their operands' shape, unlike those that a program defines.
_OPERATOR = re.compile(
    r"\.\s*(?!(?:and|or|not|n?eqv|eq|ne|lt|le|gt|ge|true|false)\s*\.)[a-z]+\s*\.", re.IGNORECASE
)


def unsteady(
    routine: Routine,
    nodes: Sequence[Node],
    arrays: Mapping[str, Array],
    routines: Mapping[str, Routine],
    asked: bool = True,
) -> list[Array]:
    """The arrays that the nodes may allocate or free. asked: or of which they ask whether they are there."""
    found: list[Array] = []
    if routine.source.form is Form.C:
        return found
    for statement in statements(list(nodes)):
        for reference in _possible(routine, statement, routines):
            array = arrays.get(reference.name)
            if not asked and reference.argument_of == "allocated":
                continue
            if array is not None and "allocatable" in _attributes(array) and array not in found:
                found.append(array)
    return found


def allocated_otherwise(routine: Routine, routines: Mapping[str, Routine]) -> Iterator[str]:
    """Names of what may get other bounds than those that an ALLOCATE statement gives."""
    if routine.source.form is Form.C:
        return
    for statement in statements(routine.body):
        if statement.kind is Kind.ALLOCATE:
            yield from (r.name for r in statement.references if r.access is Access.WRITE and not r.subscripts)
        for reference in _possible(routine, statement, routines):
            if reference.argument_of != "allocated":
                yield reference.name


def _attributes(array: Array) -> frozenset[str]:
    return array.declaration.attributes | {array.declaration.storage}


def _possible(routine: Routine, statement: Statement, routines: Mapping[str, Routine]) -> Iterator[Reference]:
    if statement.kind in (Kind.ALLOCATE, Kind.DEALLOCATE):
        return
    for reference in statement.references:
        if reference.subscripts is not None:
            continue
        if reference.access is Access.WRITE and statement.kind is Kind.ASSIGNMENT:
            if _shaped(routine, statement, reference):
                yield reference
        elif reference.argument_of == "allocated":
            yield reference
        elif reference.access is Access.ARGUMENT or _of_function(routine, reference):
            callee = routines.get(reference.argument_of or "")
            if callee is None or _allocatable(callee, reference.argument_index):
                yield reference


def _of_function(routine: Routine, reference: Reference) -> bool:
    name = reference.argument_of
    if name is None or name in ("size", "lbound", "ubound", "shape", "kind", "storage_size", "present"):
        return False
    found = routine.lookup(name)
    return found is None or not found[1].bounds


def _allocatable(callee: Routine, index: int) -> bool:
    if index >= len(callee.arguments):
        return True
    declared = callee.declarations.get(callee.arguments[index])
    return declared is None or "allocatable" in declared.attributes


def _shaped(routine: Routine, statement: Statement, target: Reference) -> bool:
    """May the value be an array? One of another shape allocates the target anew."""
    if "[" in statement.code or "(/" in statement.code:
        return True
    if _operand(statement.code, target.name):
        return False
    for reference in statement.references:
        if reference is target or reference.intrinsic:
            continue
        if reference.name == target.name and reference.subscripts is None:
            continue  # has its shape
        found = routine.lookup(reference.name)
        if reference.subscripts is None:
            if found is None or found[1].bounds:
                return True
        elif found is None or not found[1].bounds or any(s.section for s in reference.subscripts):
            return True
    return False


def _operand(code: str, name: str) -> bool:
    """Is the whole array one of the operands of the value, `u = u - r/2`? What goes with it has its shape."""
    target, _, value = code.partition("=")
    if not re.fullmatch(rf"\s*{name}\s*", target, re.IGNORECASE) or {"'", '"'} & set(code):
        return False
    if _OPERATOR.search(re.sub(r"\d\.", "0", value)):
        return False
    while value != (value := _CALL.sub("1", value)):
        pass
    return re.search(rf"(?<![\w%]){name}\b(?!\s*[(%])", value, re.IGNORECASE) is not None
