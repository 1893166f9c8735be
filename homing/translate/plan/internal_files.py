"""Fortran: texts that READ and WRITE have in place of a file, `write (line, ...)`, `read (c(i)%tag, *)`."""

from __future__ import annotations

import re

from homing.translate.code_text import leading_component, leading_variable
from homing.translate.plan.derived_types import DerivedTypes
from homing.translate.tree import Kind, Reference, Routine, Statement

_BEGINS = re.compile(r"(?:if\s*\(.*\)\s*)?(?:read|write)\s*\(\s*(?:unit\s*=\s*)?(?=\w)")


def internal_file(routine: Routine, statement: Statement, types: DerivedTypes) -> Reference | None:
    """The text that a READ or WRITE statement has in place of a file."""
    match = _BEGINS.match(statement.text)
    if match is None or statement.kind not in (Kind.INPUT, Kind.OUTPUT):
        return None
    designator, name, _ = leading_component(statement.text[match.end() :])
    if not is_text(routine, designator, types):
        return None
    return next((one for one in statement.references if one.name == name), None)


def is_text(routine: Routine, designator: str, types: DerivedTypes) -> bool:
    """Is what a variable, an element or a component means of type CHARACTER?"""
    base, name, rest = leading_variable("".join(designator.split()))
    found = routine.lookup(name)
    if found is None or not base:
        return False
    if "%" not in rest:
        return found[1].type.lower().startswith("character")
    return types.component_type(routine, found[1].type, _names(rest)) == "character"


def _names(components: str) -> list[str]:
    """The names in `%row(i)%tag`."""
    names = []
    while components.startswith("%"):
        _, name, components = leading_variable(components[1:])
        names.append(name.lower())
    return names
