"""Components that go to arguments: `call set(q%w)` changes `q`, if the procedure changes its argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homing.translate.directives.model import Form
from homing.translate.plan.intents import is_kept
from homing.translate.tree import Access, Kind, Reference, Routine, Unit, statements, written_in_all


def pass_components(
    units: Sequence[Unit], routines: Mapping[str, Routine], bound: Mapping[str, Mapping[str, bool]]
) -> None:
    """Turn every such argument into an access of the statement. bound: see bindings.py."""
    for unit in units:
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                for reference in statement.references:
                    name = reference.component_of
                    if name is None or reference.access is not Access.READ:
                        continue
                    behind = bound.get(name.rpartition("%")[2], {}) if "%" in name else {name: False}
                    called = [(routines[one], first) for one, first in behind.items() if one in routines]
                    changed = any(_changes(callee, reference, first) for callee, first in called)
                    if changed or (not called and statement.kind is Kind.CALL and name in statement.calls):
                        reference.access = Access.UPDATE
                        statement.writes |= {reference.name}


def _changes(callee: Routine, reference: Reference, first: bool) -> bool:
    """May the procedure change the argument?"""
    at = reference.argument_index + first
    if callee.source.form is Form.C:
        return True
    dummy = reference.argument_keyword or (callee.arguments[at] if at < len(callee.arguments) else "")
    declared = callee.declarations.get(dummy)
    return not is_kept(callee, declared) and (not dummy or dummy in written_in_all(callee.body))
