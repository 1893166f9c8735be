"""Fortran: distributed arrays of a module or of the program around a procedure, which parallel regions call.

In a region such an array is in parts, and each thread has its own, which the procedure does not see by
itself. So it gets them as arguments of the same names, which hide those from outside, and every CALL hands
them on by name. The procedure's text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from homing.translate.directives import model as d
from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.tree import (
    Access,
    Bound,
    Construct,
    Kind,
    Reference,
    Routine,
    Statement,
    Unit,
    references,
    statements,
    walk,
)

_CALL = re.compile(r"call\s+(\w+)\s*(\((.*)\)\s*)?$", re.IGNORECASE | re.DOTALL)


def bring(
    units: Sequence[Unit],
    routines: Mapping[str, Routine],
    in_regions: frozenset[int],
    arrays: Callable[[Routine], dict[str, Array]],
) -> None:
    """Add the arguments to the procedures, and what the calls pass."""
    every = [routine for unit in units if unit.form is not Form.C for routine in unit.routines]
    callees = [one for one in every if id(one) in in_regions and not _opens_regions(one)]
    wanted = {id(one): _from_outside(one, arrays(one)) for one in callees}
    found = -1
    while found != (found := sum(map(len, wanted.values()))):
        for one in callees:
            for name, _ in _calls(one):
                called = routines.get(name)
                more = wanted.get(id(called), {})
                own = {
                    name: array
                    for name, array in more.items()
                    if arrays(one).get(name) is array and called is not one
                }
                wanted[id(one)] |= {name: array for name, array in own.items() if _outside(one, array)}
    for one in callees:
        for name, array in wanted[id(one)].items():
            _argument(one, name, array)
    for caller in every:
        for name, statement in _calls(caller):
            callee = routines.get(name)
            if callee is None:
                continue
            for brought, array in wanted.get(id(callee), {}).items():
                if arrays(caller).get(brought) is array or brought in caller.brought:
                    _pass(statement, callee, brought)


def _opens_regions(routine: Routine) -> bool:
    return any(isinstance(node, Construct) and node.parallel for node in walk(routine.body))


def _outside(routine: Routine, array: Array) -> bool:
    """Does the array belong to a scope around the procedure? One that comes by USE cannot be hidden."""
    scope = routine.parent
    while scope is not None:
        if scope is array.routine:
            return True
        scope = scope.parent
    return False


def _from_outside(routine: Routine, known: dict[str, Array]) -> dict[str, Array]:
    names = {reference.name for reference in references(routine.body)}
    for node in walk(routine.body):
        for directive in node.homing if isinstance(node, Construct) else ():
            if isinstance(directive, d.OnHome | d.DataAffinity):
                names.add(directive.home.name.key)
    return {name: known[name] for name in sorted(names & known.keys()) if _outside(routine, known[name])}


def _calls(routine: Routine) -> list[tuple[str, Statement]]:
    return [
        (statement.calls[0], statement)
        for statement in statements(routine.body)
        if statement.kind is Kind.CALL and statement.calls and _CALL.search(statement.code)
    ]


def _argument(routine: Routine, name: str, array: Array) -> None:
    at = routine.declarations_end
    routine.declarations[name] = replace(
        array.declaration,
        bounds=[Bound("1", None, deferred=True) for _ in array.dimensions],
        begin=at,
        end=at,
        statement_begin=at,
        statement_end=at,
        attributes=frozenset(),
        initial=None,
        storage="dummy",
        separate_shape=None,
        elsewhere=(),
    )
    routine.arguments.append(name)
    routine.brought.append(name)


def _pass(statement: Statement, callee: Routine, name: str) -> None:
    match = _CALL.search(statement.code)
    assert match is not None
    closing = match.end(3) if match[2] else None
    place = statement.places[closing] if closing is not None else statement.end
    made = Reference(name, place, place, place, None, Access.ARGUMENT)
    made.argument_of, made.argument_keyword = callee.name, name
    made.argument_index = callee.arguments.index(name)
    made.brought = "(" if closing is None else ", " if (match[3] or "").strip() else ""
    statement.references.append(made)
