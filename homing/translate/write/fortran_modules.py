"""Static distributed arrays of modules, which are there when the program begins.

The main program makes those whose names it has. Those that it does not have (PRIVATE, an ONLY list, a module
that another one uses) a procedure of the module makes, which the main program calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form
from homing.translate.names import added
from homing.translate.plan.accessibility import NotPublic, names_lacking
from homing.translate.plan.array import Array
from homing.translate.tree import Routine
from homing.translate.write.fortran_arrays import FortranArrays
from homing.translate.write.initial_values import holder, initialised
from homing.translate.write.writer import PART


class FortranModules(FortranArrays):
    """What a module's arrays need in the module, and in the main program."""

    def made_late(self, array: Array) -> bool:
        """Is what belongs to the array made where it is needed first?"""
        del array
        return False

    def _companions(self, array: Array) -> list[str]:
        """What stands beside an array's declaration."""
        values = [holder(array)] if self._holds(array) else []
        return [self.container(array), self.layout(array), *values]

    def _holds(self, array: Array) -> bool:
        """Has it values from the beginning?"""
        return array.declaration.storage == "static" and initialised(array.declaration)

    def _created(self, array: Array) -> list[str]:
        """An array that is there from the beginning."""
        lines = self.create(array, _bounds(array))
        if self._holds(array):
            lines += [f"allocate({array.name}, source={holder(array)})", *self._released([array], [array])]
        return lines

    def of_modules(self) -> tuple[list[str], list[str]]:
        """In the main program: the USE statements and the lines that make the arrays, those first that others
        are aligned with."""
        uses, lines = [], []
        for module in self._modules(self.routine):
            arrays = self._static(module)
            if arrays and not self._by_main(arrays, self.routine):
                uses.append(f"use {module.name}, only: {_maker(module)}")
                lines.append(f"call {_maker(module)}()")
            else:
                lines += [line for array in arrays for line in self._created(array)]
        return uses, lines

    def made_here(self) -> None:
        """In a module: the procedure that makes its arrays, where the main program cannot."""
        arrays = self._static(self.routine)
        main = next((one for one in self._every() if one.main and one.source.form is not Form.C), None)
        if not arrays or (main is not None and self._by_main(arrays, main)):
            return
        if main is None or not any(one is self.routine for one in self._modules(main)):
            reason = (
                "a distributed array of a module, which the main program (if it is given) does not use: make "
                "it ALLOCATABLE"
            )
            self.problems += [(one.declaration.begin, one.declaration.end, reason) for one in arrays]
            return
        lines = [line for array in arrays for line in self._created(array)]
        own = [one for one in (PART, "hm_each") if self.locals.pop(one, None)]  # the procedure's
        name, end = _maker(self.routine), self.routine.body_end
        contains = re.compile(r"[ \t]*contains\b", re.IGNORECASE).match(self.source.text, end)
        text = [f"subroutine {name}()", f"  integer :: {', '.join(own)}", *(f"  {line}" for line in lines)]
        text.append(f"end subroutine {name}")
        indent = self._indent()
        if contains is None:
            text.insert(0, "contains")
        self.edits.insert_lines(
            self.source.next_line(end) if contains else end, [self.indented(indent, one) for one in text]
        )
        self.extra.append(f"public :: {name}")

    def _indent(self) -> str:
        raise NotImplementedError

    def companions_of_others(self) -> list[str]:
        """USE statements for what stands beside arrays that come through a module that another one uses,
        which may not hand it on."""
        found: dict[str, list[str]] = {}
        uses = [one for scope in _scopes(self.routine) for one in scope.uses.items()]
        around = {scope.name for scope in _scopes(self.routine)}
        for array in self.arrays.values():
            module = array.routine
            if module.module and module.name not in around and not _named(array, uses):
                found.setdefault(module.name, []).extend(self._companions(array))
        return [f"use {module}, only: {', '.join(names)}" for module, names in found.items()]

    def shown(self, own: Sequence[Array]) -> list[str]:
        """In a module: who has an array has what stands beside it, and nobody else."""
        hidden = NotPublic(self.routine)
        return [
            f"{'private' if hidden(array.name) else 'public'} :: {', '.join(self._companions(array))}"
            for array in own
        ]

    def _static(self, module: Routine) -> list[Array]:
        own = [one for one in self.distributions.of(module).values() if one.routine is module]
        static = [one for one in own if one.declaration.storage not in ("allocatable", "pointer")]
        return [one for one in static if not self.made_late(one)]

    def _by_main(self, arrays: list[Array], main: Routine) -> bool:
        """Does the main program have the names, and those in their bounds?"""
        used = main.uses.get(arrays[0].routine.name)
        known = self.distributions.of(main)
        if used is None or used[2] is not None or any(known.get(one.name) is not one for one in arrays):
            return False
        return not any(names_lacking(one, main, self.distributions.modules, _bounds(one)) for one in arrays)

    def _every(self) -> Iterator[Routine]:
        return (routine for unit in self.distributions.units for routine in unit.routines)

    def _modules(self, main: Routine) -> list[Routine]:
        """All that the main program uses, also through others, each behind those that it uses itself."""
        modules = {one.name: one for one in self._every() if one.module and one.source.form is not Form.C}
        found: dict[str, Routine] = {}

        def follow(scope: Routine, above: frozenset[str]) -> None:
            for name in scope.uses:
                module = modules.get(name)
                if module is not None and name not in found and name not in above:
                    follow(module, above | {name})
                    found[name] = module

        for scope in [main, *(one for one in self._every() if one.parent is main)]:
            follow(scope, frozenset())
        return list(found.values())


def _maker(module: Routine) -> str:
    return added(f"hm_make_{module.name}")


def _named(array: Array, uses: Sequence[tuple[str, tuple[int, int, str | None]]]) -> bool:
    """Does a USE statement bring the array from its own module?"""
    lists = [only for name, (_, _, only) in uses if name == array.routine.name]
    return any(only is None or array.name in re.findall(r"\w+", only) for only in lists)


def _bounds(array: Array) -> list[tuple[str, str]]:
    return [(one.lower, one.upper or "0") for one in array.declaration.bounds]


def _scopes(routine: Routine) -> Iterator[Routine]:
    scope: Routine | None = routine
    while scope is not None:
        yield scope
        scope = scope.parent
