"""Names in directives that nothing declares: a compiler would complain of code that the user never wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.directives.model import texts_of
from homing.translate.plan.accessibility import declared_in
from homing.translate.positions import Problem
from homing.translate.tree import Executable, Routine, Unit, walk

#: Names, but not those of components, kinds and functions, nor words between dots.
_NAME = re.compile(r"(?<![\w%.])[A-Za-z]\w*(?!\w|\s*[(.%])")


def undeclared(units: Sequence[Unit], modules: Mapping[str, Routine]) -> Iterator[Problem]:
    """Fortran: the names that the routines have not. C's front asks clang."""
    for unit in units:
        for routine in unit.routines if unit.form.fortran else ():
            executed = [one.directive for one in walk(routine.body) if isinstance(one, Executable)]
            for directive in [*routine.directives, *executed] if _says_all(routine, modules) else ():
                names = [name for one in texts_of(directive) for name in _NAME.findall(one.text.lower())]
                for name in names:
                    if declared_in(routine, name, modules) is None:
                        yield directive.source.problem(f"'{name}' is not declared")


def _says_all(routine: Routine, modules: Mapping[str, Routine]) -> bool:
    """Are all its names declared, where that is known here?"""
    scope: Routine | None = routine
    strict = False
    while scope is not None:
        text = scope.source.text[scope.begin : scope.declarations_end]
        if not scope.uses.keys() <= modules.keys() or re.search(r"\benumerator\b", text, re.IGNORECASE):
            return False
        strict |= scope.implicit_none
        scope = scope.parent
    return strict
