"""What the files of a program must know alike: procedures that get distributed arrays in parts, and the
distributed arrays of modules and of C files.

Whoever uses one of these and was not translated with them would find other data than it expects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homing.translate.directives.model import Form
from homing.translate.plan.arrays import Distributions
from homing.translate.positions import Position
from homing.translate.tree import Routine, Unit

#: The module of what was a COMMON block (targets/commons.py) has the block's name behind this.
COMMON = "hm_common_"


@dataclass(frozen=True)
class Shared:
    """A procedure or an array. module: the Fortran module that it belongs to; fortran: as opposed to C."""

    name: str
    module: str
    fortran: bool
    place: Position
    procedure: bool

    def __str__(self) -> str:
        where = f" of module '{self.module}'" if self.module else ""
        if self.procedure:
            return f"procedure '{self.name}'{where}, which works on distributed arrays ({self.place})"
        return f"'{self.name}'{where}, which is distributed ({self.place})"

    def plain(self) -> tuple[str, str, bool, str, int, int, bool]:
        """The same without classes, for a record."""
        at = self.place
        return self.name, self.module, self.fortran, at.file, at.line, at.column, self.procedure

    def symbols(self) -> tuple[str, ...]:
        """What it may be called in an object: by gfortran and flang, or by C."""
        if not self.fortran:
            words = self.name.split("::")
            nested = "".join(f"{len(word)}{word}" for word in words)
            return (self.name,) if len(words) == 1 else (self.name, f"_ZN{nested}E")
        if self.module.startswith(COMMON):  # who does not know has the block
            block = self.module.removeprefix(COMMON)
            return (f"{block}_", "__BLNK__") if block == "blank" else (f"{block}_",)
        if self.module:
            return (
                f"__{self.module}_MOD_{self.name}",
                f"_QM{self.module}{'P' if self.procedure else 'E'}{self.name}",
            )
        return (f"{self.name}_", f"{self.name}__")

    def named_in(self, text: str, form: Form) -> bool:
        """Does a source that nobody could read name it?"""
        if form is Form.C:
            name = self.name.rpartition("::")[2]
            words = (name, f"{name}_") if self.fortran and not self.module else (name,)
            return any(re.search(rf"\b{re.escape(word)}\b", text) for word in words)
        if self.module:
            return re.search(rf"\buse\b[^\n!]*\b{re.escape(self.module)}\b", text, re.I) is not None
        return re.search(rf"\b{re.escape(self.name)}\b", text, re.I) is not None


def shared(units: Sequence[Unit], distributions: Distributions) -> tuple[Shared, ...]:
    """All of a program. With --to pages arrays stay where they are, but layouts are handed on with them."""
    if not distributions.any:
        return ()
    found: list[Shared] = []
    for unit in units:
        fortran = unit.form is not Form.C
        for routine in unit.routines:
            own = [one for one in distributions.of(routine).values() if one.routine is routine]
            if routine.module:
                module = routine.name if fortran else ""
                for array in own if not distributions.in_place else ():
                    place = routine.source.place(array.declaration.begin)
                    around = routine.namespaces.get(array.name, "")
                    name = f"{around}::{array.name}" if around else array.name
                    found.append(Shared(name, module, fortran, place, False))
            elif not routine.main and _knows(routine, distributions):
                host = routine.parent
                if host is not None and not host.module:
                    continue  # an internal procedure is its host's alone
                module = host.name if host is not None and fortran else ""
                place = routine.source.place(routine.begin)
                found.append(Shared(routine.name, module, fortran, place, True))
    return tuple(found)


def _knows(routine: Routine, distributions: Distributions) -> bool:
    dummies = distributions.of(routine).keys() & set(routine.arguments)
    return bool(dummies) or id(routine) in distributions.reaching
