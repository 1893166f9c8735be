"""What a name is, once everything that a file declares is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from homing.translate.front.intrinsics import INQUIRIES, INTRINSICS
from homing.translate.tree import Access, Kind, Reference, Routine, Statement, references, statements


def resolve(routine: Routine, procedures: Collection[str] = ()) -> None:
    """Tell functions of the language from the program's own names, and arrays from functions. procedures: the
    file's."""
    for statement in statements(routine.body):
        if statement.kind is Kind.OUTPUT:
            _unit(routine, statement)
        own = {*procedures, *statement.calls}
        for reference in statement.references:
            if reference.name in INTRINSICS and reference.subscripts is not None:
                reference.intrinsic = reference.name not in own and routine.lookup(reference.name) is None
            reference.array = _is_array(routine, reference.name)
            if reference.argument_of is not None:
                _argument(routine, reference, reference.argument_of, own)


def _unit(routine: Routine, statement: Statement) -> None:
    """What WRITE names as its unit is only read where it is the number of one, and no internal file."""
    numbers = [r for r in statement.references if r.access is Access.UPDATE and _is_number(routine, r.name)]
    for reference in numbers:
        reference.access = Access.READ
    others = {r.name for r in statement.references if r.access not in (Access.READ, Access.OTHER)}
    statement.writes -= {reference.name for reference in numbers} - others


def _is_number(routine: Routine, name: str) -> bool:
    """Is it surely an integer?"""
    found = routine.lookup(name)
    if found is not None:
        return found[1].type.lower().startswith("integer")
    scope: Routine | None = routine
    while scope is not None:
        if scope.uses or scope.implicit_none or scope.implicit:
            return False
        scope = scope.parent
    return name[0] in "ijklmn"


def _argument(routine: Routine, reference: Reference, name: str, own: Collection[str]) -> None:
    """A subscript of an array is nobody's argument, and functions of the language keep what they get."""
    intrinsic = name in INTRINSICS and name not in INQUIRIES and name not in own
    if _is_array(routine, name) or (intrinsic and routine.lookup(name) is None):
        reference.argument_of, reference.argument_keyword, reference.argument_index = None, None, 0


def _is_array(routine: Routine, name: str) -> bool:
    found = routine.lookup(name)
    return found is not None and bool(found[1].bounds)


def number(routines: Iterable[Routine], known: Mapping[str, Routine]) -> None:
    """Which argument it is that is passed by its name."""
    for routine in routines:
        for reference in references(routine.body):
            callee = known.get(reference.argument_of or "")
            if reference.argument_keyword is not None and callee is not None:
                dummies = callee.arguments
                if reference.argument_keyword in dummies:
                    reference.argument_index = dummies.index(reference.argument_keyword)
