"""Elements that go to scalar arguments: they are read or changed where the call stands. (C passes values.)"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.accessibility import NotPublic
from homing.translate.plan.intents import is_kept, statement_of
from homing.translate.tree import Access, Declaration, Reference, Routine, Statement, Unit, statements


def pass_elements(units: Sequence[Unit], routines: Mapping[str, Routine]) -> None:
    """Turn every such argument into an access of the statement."""
    modules = {routine.name: routine for unit in units for routine in unit.routines if routine.module}
    for unit in units:
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                for reference in statement.references:
                    callee = routines.get(reference.argument_of or "")
                    if callee is not None and _is_element(routine, reference, modules):
                        _pass(statement, reference, callee)


def _is_element(routine: Routine, reference: Reference, modules: Mapping[str, Routine]) -> bool:
    subscripts = reference.subscripts or []
    declaration = _declared(routine, reference.name, modules)
    if declaration is None or not subscripts or len(declaration.bounds) != len(subscripts):
        return False
    return not any(subscript.section for subscript in subscripts)


def _declared(routine: Routine, name: str, modules: Mapping[str, Routine]) -> Declaration | None:
    """What the name means here, by USE as well."""
    scope: Routine | None = routine
    while scope is not None:
        if name in scope.declarations:
            return scope.declarations[name]
        for used, (_, _, only) in scope.uses.items():
            module = modules.get(used)
            named = only is None or name in {part.strip() for part in only.split(",")}
            if module is not None and named and name in module.declarations and not NotPublic(module)(name):
                return module.declarations[name]
        scope = scope.parent
    return None


def _pass(statement: Statement, reference: Reference, callee: Routine) -> None:
    at = reference.argument_index
    dummy = callee.declarations.get(callee.arguments[at]) if at < len(callee.arguments) else None
    if dummy is None or dummy.bounds or dummy.storage != "dummy" or callee.source.form is Form.C:
        return
    text = statement_of(callee, dummy).lower()
    if re.search(r"\b(allocatable|pointer|target|procedure)\b", text):
        return
    reference.argument_of = None
    reference.access = Access.READ
    if not is_kept(callee, dummy):
        reference.access = Access.UPDATE
        statement.writes |= {reference.name}
