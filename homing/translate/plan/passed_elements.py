"""Elements that go to scalar arguments: they are read or changed where the call stands. (C passes values.)"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.tree import Access, Reference, Routine, Statement, Unit, statements


def pass_elements(units: Sequence[Unit], routines: Mapping[str, Routine]) -> None:
    """Turn every such argument into an access of the statement."""
    for unit in units:
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                for reference in statement.references:
                    callee = routines.get(reference.argument_of or "")
                    if callee is not None and _is_element(routine, reference):
                        _pass(statement, reference, callee)


def _is_element(routine: Routine, reference: Reference) -> bool:
    subscripts = reference.subscripts or []
    declared = routine.lookup(reference.name)
    if declared is None or not subscripts or len(declared[1].bounds) != len(subscripts):
        return False
    return not any(subscript.section for subscript in subscripts)


def _pass(statement: Statement, reference: Reference, callee: Routine) -> None:
    at = reference.argument_index
    dummy = callee.declarations.get(callee.arguments[at]) if at < len(callee.arguments) else None
    if dummy is None or dummy.bounds or dummy.storage != "dummy" or callee.source.form is Form.C:
        return
    text = callee.source.text[dummy.statement_begin : dummy.statement_end].lower()
    if re.search(r"\b(allocatable|pointer|target|procedure)\b", text):
        return
    reference.argument_of = None
    reference.access = Access.READ
    if re.search(r"\bintent\s*\(\s*in\s*\)|,\s*value\b", text) is None:
        reference.access = Access.UPDATE
        statement.writes |= {reference.name}
