"""IMPLICIT: the types of what no statement declares a type of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.directives.model import Form
from homing.translate.tree import Declaration, Routine, Unit

_RULE = re.compile(
    r"(?P<type>[a-z][\w ]*(?:\*\s*\d+)?(?:\s*\([^()]*\))?)\s*"
    r"\((?P<letters>[a-z](?:\s*[-,]\s*[a-z])*)\)\s*(?:,|$)",
    re.IGNORECASE,
)


def rules(text: str) -> dict[str, str]:
    """The types by first letter, of `implicit real*8 (a-h, o-z), integer (i-n)`."""
    found = {}
    for match in _RULE.finditer(re.sub(r"^\s*implicit\s*", "", text, flags=re.IGNORECASE)):
        for letters in match["letters"].lower().replace(" ", "").split(","):
            first, last = letters[0], letters[-1]
            found.update({chr(code): match["type"].strip() for code in range(ord(first), ord(last) + 1)})
    return found


def settle_types(routine: Routine) -> None:
    """A type for every declaration without one."""
    for name, declaration in routine.declarations.items():
        if not declaration.type:
            declaration.type = _type(routine, name)


def _type(routine: Routine, name: str) -> str:
    scope: Routine | None = routine
    while scope is not None:
        if name[0] in scope.implicit:
            return scope.implicit[name[0]]
        scope = scope.parent
    return "integer" if "i" <= name[0] <= "n" else "real"


#: Modules that bring no plain variables.
_OF_THE_LANGUAGE = frozenset({"omp_lib", "omp_lib_kinds", "iso_fortran_env", "iso_c_binding", "mpi"})


def know_modules(units: Sequence[Unit]) -> None:
    """Tells routines what the modules bring that they use, where these are given and use none themselves."""
    every = [routine for unit in units for routine in unit.routines]
    names = {one.name: {*one.declarations} for one in every if one.module and not one.uses}
    for routine in every:
        if routine.parent is not None and routine.parent.name in names:
            names[routine.parent.name].add(routine.name)
    for routine in every:
        if not routine.renamed:
            routine.known = {used: frozenset(names[used]) for used in routine.uses if used in names}


def may_bring(scope: Routine, name: str) -> bool:
    """Whether the name may come by a USE of this scope, as far as its modules are known."""
    return any(
        module not in _OF_THE_LANGUAGE
        and (only is None or name in re.findall(r"\w+", only.lower()))
        and (module not in scope.known or name in scope.known[module])
        for module, (_, _, only) in scope.uses.items()
    )


def declared(routine: Routine, name: str) -> Declaration | None:
    """What a name means in a routine: as it is declared, or, without IMPLICIT NONE, as its first letter says.
    None: neither, or it may be a variable of a module."""
    found = routine.lookup(name)
    if found is not None or routine.source.form is Form.C:
        return found[1] if found else None
    at = routine.declarations_end
    if routine.result_type and name == routine.result:
        return Declaration(name, name, routine.result_type, [], at, at, at, at)
    scope: Routine | None = routine
    while scope is not None:
        if scope.implicit_none or may_bring(scope, name) or name in scope.functions:
            return None
        scope = scope.parent
    words = {word for said, word in routine.said if said == name} | ({"save"} if routine.saves else set())
    return Declaration(name, name, _type(routine, name), [], at, at, at, at, attributes=frozenset(words))
