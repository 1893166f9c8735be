"""C functions that parallel regions call, and that work on distributed arrays of their file: they get these
as arguments of the same names, as the user could have written. In a region each thread has a part of its own,
which a function does not see by itself. (Of Fortran: plan/brought.py.)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.code_text import Edit, blanked, closing, edited
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.source import SourceFile
from homing.translate.tree import Construct, Routine, Unit, references, statements, walk

_PREPROCESSOR = re.compile(r"^[ \t]*#[ \t]*(?!pragma)(?:[^\n\\]|\\\r?\n|\\.)*", re.MULTILINE)
_EMPTY = re.compile(r"\s*(?:void\s*)?")


def with_arguments(units: Sequence[Unit], distributions: Distributions) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence."""
    found = {}
    for index, unit in enumerate(units):
        if unit.form is d.Form.C and not unit.source.cxx:
            others = [one.source for one in units if one is not unit]
            made = _File(unit, distributions, others).source()
            if made is not None:
                found[index] = made
    return found


class _File:
    """One file. Its functions that only itself calls, by their names."""

    def __init__(self, unit: Unit, distributions: Distributions, others: Sequence[SourceFile]) -> None:
        self.unit, self.distributions, self.others = unit, distributions, others
        self.text = unit.source.text
        self.code = blanked(self.text, False, " ")
        self.routines = [one for one in unit.routines if not one.module]
        self.places: dict[str, list[tuple[int, int]]] = {}  # the brackets of calls, definition, prototypes

    def source(self) -> SourceFile | None:
        inside = self.distributions.passing.in_regions
        callees = {one.name: one for one in self.routines if id(one) in inside and not _opens_regions(one)}
        wanted = {name: self._from_file(one) for name, one in callees.items()}
        if not any(wanted.values()):
            return None
        known = -1
        while known != (known := sum(map(len, wanted.values()))):
            for name, one in callees.items():
                for called in _calls(one) & callees.keys():
                    wanted[name] |= wanted[called]
        wanted = {name: arrays for name, arrays in wanted.items() if arrays}
        if not all(self._only_called(name) and self._named(arrays) for name, arrays in wanted.items()):
            return None
        if any(self._hidden(one, wanted) for one in self.routines):
            return None
        edits = (edit for name, arrays in wanted.items() for edit in self._edits(name, arrays))
        made, source = edited(self.text, edits), self.unit.source
        if made is None:
            return None
        return SourceFile(source.path, made, source.form, source.fixed_columns, True, source.cxx)

    def _from_file(self, routine: Routine) -> dict[str, Array]:
        names = {reference.name for reference in references(routine.body)}
        for node in walk(routine.body):
            for directive in node.homing if isinstance(node, Construct) else ():
                if isinstance(directive, d.OnHome | d.DataAffinity):
                    names.add(directive.home.name.key)
        arrays = self.distributions.of(routine)
        return {
            name: arrays[name] for name in names & arrays.keys() if arrays[name].routine is routine.parent
        }

    def _only_called(self, name: str) -> bool:
        """Does its name stand before the brackets of calls, of its definition and of prototypes alone?"""
        word = re.compile(rf"\b{re.escape(name)}\b")
        if any(word.search(one.text) for one in self.others):
            return False
        if any(word.search(line) for line in _PREPROCESSOR.findall(self.code)):
            return False
        found = list(word.finditer(self.code))
        opening = [re.compile(r"\s*\(").match(self.code, one.end()) for one in found]
        member = any(self.code[: one.start()].rstrip().endswith((".", "->")) for one in found)
        if not all(opening) or member or any(name in one.declarations for one in self.routines):
            return False
        if any(name in one.pointed for routine in self.routines for one in statements(routine.body)):
            return False
        ends = [one.end() for one in opening if one is not None]
        self.places[name] = [(end, closing(self.code, end) - 1) for end in ends]
        return not any("..." in self.code[begin:end] for begin, end in self.places[name])

    def _named(self, arrays: Mapping[str, Array]) -> bool:
        """Can each be declared as an argument?"""
        for array in arrays.values():
            bounds = array.declaration.bounds
            if array.declaration.storage == "pointer":
                if len(bounds) != 1:
                    return False
            elif any(bound.upper is None for bound in bounds):
                return False
        return True

    def _hidden(self, routine: Routine, wanted: Mapping[str, Mapping[str, Array]]) -> bool:
        """Does a function that hands arrays on have others by their names?"""
        for called in _calls(routine) & wanted.keys():
            if any(name in routine.declarations or name in routine.inner for name in wanted[called]):
                return True
        return False

    def _edits(self, name: str, arrays: Mapping[str, Array]) -> Iterator[Edit]:
        """What comes before each bracket that closes arguments, or in the place of none."""
        bodies = [(one.arguments_end + 1, one.end) for one in self.routines]
        for begin, end in self.places[name]:
            call = any(first <= begin < last for first, last in bodies)
            words = ", ".join(one if call else _declared(arrays[one]) for one in sorted(arrays))
            if _EMPTY.fullmatch(self.code, begin, end):
                yield begin, end, words
            else:
                yield end, end, f", {words}"


def _declared(array: Array) -> str:
    declaration = array.declaration
    if declaration.storage == "pointer":
        return f"{declaration.type} *{array.name}"
    sides = "".join(f"[({bound.upper}) + 1]" for bound in declaration.bounds[1:])
    return f"{declaration.type} {array.name}[]{sides}"


def _calls(routine: Routine) -> set[str]:
    return {name for one in statements(routine.body) for name in one.calls}


def _opens_regions(routine: Routine) -> bool:
    return any(isinstance(node, Construct) and node.parallel for node in walk(routine.body))
