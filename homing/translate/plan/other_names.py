"""Variables that have other names: what a region writes through a pointer or a reference may be one that a
loop reads by its own name."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from homing.translate.directives.model import Form
from homing.translate.tree import Access, Routine, Unit, references

#: What may be a C variable's address.
_ADDRESS = re.compile(r"(?<!&)&[\s(]*(\w+)")


class OtherNames:
    """Of a program."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._given: set[str] = set()
        for unit in units:
            if unit.form is Form.C:
                self._given.update(_ADDRESS.findall(unit.source.text))
            for routine in unit.routines:
                found = references(routine.body)
                self._given.update(one.name for one in found if one.access is Access.OTHER)

    def may_be_written(self, routine: Routine, name: str, written: Set[str]) -> bool:
        """May a variable be one that the routine writes by these other names?"""
        known = routine.lookup(name)
        if routine.source.form is not Form.C:
            given = known is None or "target" in known[1].attributes
        else:
            kept = known is None or (routine.source.cxx and known[0] is not routine)  # there by a reference
            given = kept or name in self._given
        return given and any(_means_others(routine, one) for one in written)


def _means_others(routine: Routine, name: str) -> bool:
    """Is it a pointer, a reference, or an object that may have one?"""
    known = routine.lookup(name)
    if known is None:
        return True
    if routine.source.form is not Form.C:
        return known[1].storage == "pointer" or "pointer" in known[1].attributes
    return not known[1].number
