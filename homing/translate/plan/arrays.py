"""Which arrays are distributed, and how: directives resolved, checked, and followed through procedure
calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from homing.translate.affine import affine, shifted
from homing.translate.directives import model as d
from homing.translate.front.resolve import number
from homing.translate.plan import lent
from homing.translate.plan.accessibility import declared_in, used_first
from homing.translate.plan.alignment import aligned
from homing.translate.plan.allocation import allocated_otherwise
from homing.translate.plan.array import Array
from homing.translate.plan.bindings import bindings, call_bound
from homing.translate.plan.brought import bring
from homing.translate.plan.by_use import ByUse
from homing.translate.plan.dealt_anew import dealt_anew
from homing.translate.plan.derived_types import DerivedTypes
from homing.translate.plan.effects import Effects
from homing.translate.plan.generics import call_by_own_names, calls, generics
from homing.translate.plan.grids import Grids
from homing.translate.plan.interfaces import interfaces
from homing.translate.plan.model import Dimension
from homing.translate.plan.not_planned import not_planned
from homing.translate.plan.other_names import OtherNames
from homing.translate.plan.passed_components import pass_components
from homing.translate.plan.passed_elements import pass_elements
from homing.translate.plan.passed_pieces import pass_pieces
from homing.translate.plan.passing import Passing
from homing.translate.plan.redistribution import Redistributions
from homing.translate.plan.swaps import find_swaps
from homing.translate.plan.templates import with_templates
from homing.translate.plan.undeclared import undeclared
from homing.translate.plan.unset import unset
from homing.translate.positions import Problem, Text
from homing.translate.tree import (
    Access,
    Bound,
    Declaration,
    Kind,
    Reference,
    Routine,
    Unit,
    statements,
)

#: Of which COMMON blocks the distributed arrays become a module's (targets/commons.py).
_BLOCKS = (
    "all that name it must mean the same by it, with bounds and DATA of plain constants, and the one main "
    "program be given with them"
)
#: Words for which ALLOCATE(word(...)) begins with a type.
_TYPES = frozenset({"integer", "complex", "character"})


class Distributions:
    """The distributed arrays of all units that are translated together."""

    def __init__(self, units: Sequence[Unit], in_place: bool = False) -> None:
        """in_place: arrays keep their layout (--to pages)."""
        self.units = units
        self.modules = {one.name: one for unit in units for one in unit.routines if one.module}
        self.by_use = ByUse(self.modules)
        self.types = DerivedTypes(units)
        self.in_place = in_place
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.arrays: dict[int, dict[str, Array]] = {}
        self.routines: dict[str, Routine] = {}
        self._redistributions: dict[int, Redistributions] = {}
        self.effects = Effects(self.routines, units, self.types)
        self.other_names = OtherNames(units)
        self.grids = Grids(self._wrong, self._note)
        self.passing = Passing(
            units, self.routines, self.arrays, in_place, self.redistributions, self._wrong_in
        )
        for unit in units:
            for routine in unit.routines:
                self.arrays[id(routine)] = {}
                if not routine.module:
                    self.routines.setdefault(routine.name, routine)
        of_headers = lent.declare(units) if not in_place else set()
        named = generics(units, self.routines)
        #: Generic names with one procedure behind them.
        self.behind = {name: found[0] for name, found in named.items() if len(found) == 1}
        call_by_own_names(units, self.behind)
        bound = bindings(units, self.routines)
        call_bound(units, self.routines, bound)
        pass_components(units, self.routines, bound)
        self._allocations()
        number((routine for unit in units for routine in unit.routines), self.routines)
        pass_elements(units, self.routines)
        for routine in used_first(units, self.modules):
            self._declare(routine)
        self.problems += undeclared(units, self.modules)
        self.problems += unset(units, self.of)
        self.lent = lent.Lent(units if not in_place else (), self.arrays, of_headers)
        self.problems += self.lent.problems
        self.passing.visible()
        if not in_place:
            find_swaps(units, self.of)
        for unit in units:
            for routine in unit.routines if unit.form is not d.Form.C else ():
                for name in self.of(routine).keys() & routine.places.keys():
                    at = routine.places[name][0]
                    self._wrong_in(routine)(at, at, f"declares the distributed '{name}' anew in a BLOCK")
        if not in_place:
            self._unseen()
            self._hidden_in_blocks()
            bring(units, self.routines, self.passing.in_regions, self.of)
        for unit in units:
            for routine in unit.routines:
                pass_pieces(routine, self.of(routine), self.routines, self.passing.works_in_parallel)
                self._redistributions[id(routine)] = Redistributions(
                    routine,
                    self.of(routine),
                    partial(dealt_anew, grids=self.grids, modules=self.modules, wrong=self._wrong),
                    self._wrong_in(routine),
                    partial(self.passing.reaches, routine),
                )
        self.passing.propagate()
        for unit in units:
            for routine in unit.routines:
                self.passing.whole_calls(routine)
        for routine, begin, end, reason in not_planned(units, self.of, in_place):
            self._wrong_in(routine)(begin, end, reason)
        for unit, begin, end, reason in interfaces(units, self.of, in_place):
            self.problems.append(unit.source.problem(begin, end, reason))
        self._generic_calls({name: behind for name, behind in named.items() if len(behind) > 1})

    def _written(self, scope: Routine, name: str) -> bool:
        inside = (r for unit in self.units for r in unit.routines if r.parent is scope)
        return any(name in one.writes for routine in inside for one in statements(routine.body))

    def _variable(self, routine: Routine, declaration: Declaration, extents: Sequence[Text]) -> str:
        """The variable that decides how large a pointer of a C file is, if there is one."""
        if self.in_place or not routine.module or declaration.storage != "pointer":
            return ""
        for word in (word for one in extents for word in re.findall(r"[A-Za-z_]\w*", one.text)):
            known = routine.declarations.get(word)
            if known is not None and (known.initial is None or self._written(routine, word)):
                return str(word)
        return ""

    def _unseen(self) -> None:
        """Arrays that something reaches where no access is seen."""
        for unit in self.units:
            for routine in unit.routines:
                for name in self.of(routine).keys() & routine.unseen.keys():
                    self._wrong_in(routine)(*routine.unseen[name])

    def _hidden_in_blocks(self) -> None:
        """C: a name has one meaning in a function as far as it is followed."""
        for unit in self.units:
            of_file = self.of(unit.routines[0]) if unit.form is d.Form.C else {}
            for routine in unit.routines if unit.form is d.Form.C else ():
                for name in sorted((self.of(routine).keys() | of_file.keys()) & routine.inner):
                    if self._once(routine, name):
                        continue
                    at = routine.source.text.index(name, routine.places[name][-1])
                    reason = f"declares the distributed '{name}' anew in a block: give it another name"
                    self._wrong_in(routine)(at, at + len(name), reason)

    def _once(self, routine: Routine, name: str) -> bool:
        """C: is a name that a block declares nothing else in the function?"""
        array = self.of(routine).get(name)
        of_file = routine.parent is not None and name in routine.parent.declarations
        if array is None or array.routine is not routine or of_file:
            return False
        return len(routine.places[name]) == 1 and name not in routine.arguments

    def _generic_calls(self, named: dict[str, list[str]]) -> None:
        """Which procedure a generic name with several means is not known here."""
        given = {
            name
            for name, behind in named.items()
            for one in behind
            if any(array.routine is self.routines[one] for array in self.of(self.routines[one]).values())
        }
        for routine, statement in calls(self.units, dict.fromkeys(given)):
            reason = "a generic name, one of whose procedures gets distributed arrays: call it by its own"
            self._wrong_in(routine)(statement.begin, statement.end, reason)

    def of(self, routine: Routine) -> dict[str, Array]:
        """The distributed arrays that names mean in a routine."""
        return self.arrays[id(routine)]

    def redistributions(self, routine: Routine) -> Redistributions:
        """What REDISTRIBUTE does in a routine."""
        return self._redistributions[id(routine)]

    def inside(self, routine: Routine) -> bool:
        """Is the routine called from inside parallel regions, with parts of arrays?"""
        return self.passing.inside(routine)

    @property
    def in_regions(self) -> frozenset[int]:
        """The routines (by id) that parallel regions call, or what these call."""
        return self.passing.in_regions

    @property
    def reaching(self) -> frozenset[int]:
        """The routines (by id) that work on distributed arrays of other scopes."""
        return self.passing.reaching

    @property
    def any(self) -> bool:
        return any(self.arrays.values())

    def _allocations(self) -> None:
        """Bounds of deferred arrays from the one ALLOCATE statement that gives them."""
        every = [routine for unit in self.units for routine in unit.routines]
        elsewhere = {name for routine in every for name in allocated_otherwise(routine, self.routines)}
        for unit in self.units:
            for routine in unit.routines:
                found: dict[str, list[Reference]] = {}
                for statement in statements(routine.body):
                    if statement.kind is not Kind.ALLOCATE:
                        continue
                    for reference in statement.references:
                        if reference.access is Access.WRITE and reference.subscripts:
                            found.setdefault(reference.name, []).append(reference)
                for name, allocations in found.items():
                    declared = routine.lookup(name)
                    if declared is None or len(allocations) > 1 or name in elsewhere:
                        continue
                    declaration = declared[1]
                    subscripts = allocations[0].subscripts or []
                    if len(declaration.bounds) == len(subscripts) and all(
                        b.deferred for b in declaration.bounds
                    ):
                        declaration.bounds = [
                            Bound(s.low or "1", s.high) if s.section else Bound("1", s.text)
                            for s in subscripts
                        ]

    # --- directives of one routine ----------------------------------------------------------------------

    def _wrong(self, directive: d.Directive, reason: str) -> None:
        self.problems.append(directive.source.problem(reason))

    def _wrong_in(self, routine: Routine) -> Callable[[int, int, str], None]:
        def wrong(begin: int, end: int, reason: str) -> None:
            problem = routine.source.problem(begin, end, reason)
            if problem not in self.problems:
                self.problems.append(problem)

        return wrong

    def _declare(self, routine: Routine) -> None:
        templates: dict[str, d.Template] = {}
        arrangements: dict[str, d.Arrangement] = {}
        distributes: dict[str, d.Distribute] = {}
        aligns: list[d.Align] = []
        shadows: list[d.Shadow] = []
        nosequence: list[d.NoSequence] = []
        for directive in routine.directives:
            if isinstance(directive, d.Template):
                templates[directive.name.key] = directive
            elif isinstance(directive, d.Arrangement):
                arrangements[directive.name.key] = directive
            elif isinstance(directive, d.Distribute):
                if directive.name.key in distributes:
                    self._wrong(directive, f"'{directive.name}' is distributed twice")
                distributes.setdefault(directive.name.key, directive)
            elif isinstance(directive, d.Align):
                aligns.append(directive)
            elif isinstance(directive, d.Shadow):
                shadows.append(directive)
            elif isinstance(directive, d.NoSequence):
                nosequence.append(directive)
        space: dict[str, list[Dimension]] = {}
        for name, distribute in distributes.items():
            dimensions = self.grids.of(routine, distribute, templates, arrangements)
            if dimensions is None:
                continue
            space[name] = dimensions
            if name in templates:
                continue
            self._add(routine, name, distribute, dimensions, distribute.reshape, distribute.extents)
        pending = list(aligns)
        while pending:
            later = []
            for align in pending:
                base = self._base(routine, align.target.name.key)
                if base is not None or align.target.name.key in space:
                    self._align(routine, align, space, base)
                else:
                    later.append(align)
            if len(later) == len(pending):
                for align in later:
                    self._wrong(align, f"'{align.target.name}' has no distribution")
                break
            pending = later
        known = self.of(routine)
        for shadow in shadows:
            array = known.get(shadow.name.key)
            if array is None:
                self._wrong(shadow, f"'{shadow.name}' is not distributed")
                continue
            self._shadow(array, shadow)
        for none in nosequence:
            array = known.get(none.name.key)
            if array is None:
                self.notes.append(none.source.problem(f"'{none.name}' is not distributed: ignored"))
            else:
                array.reshape = True

    def _base(self, routine: Routine, name: str) -> Array | None:
        """The distributed array that the name means in the routine, its own or another scope's."""
        where = declared_in(routine, name, self.modules)
        return self.of(where).get(name) if where is not None else None

    def _shadow(self, array: Array, shadow: d.Shadow) -> None:
        if len(shadow.widths) != array.rank:
            self._wrong(shadow, f"'{shadow.name}' has {array.rank} dimensions, not {len(shadow.widths)}")
            return
        widths = []
        for width in shadow.widths:
            low, high = affine(width.low.text.lower()), affine(width.high.text.lower())
            if low.terms or high.terms or low.constant < 0 or high.constant < 0:
                self._wrong(shadow, "a shadow's width must be a number that is not negative")
                return
            widths.append((low.constant, high.constant))
        array.given_shadow = widths

    def _note(self, directive: d.Directive, reason: str) -> None:
        self.notes.append(directive.source.problem(reason))

    def _add(
        self,
        routine: Routine,
        name: str,
        origin: d.Distribute | d.Align,
        dimensions: list[Dimension],
        reshape: bool,
        extents: Sequence[Text],
    ) -> None:
        found = routine.lookup(name)
        if found is None:
            in_block = "is declared in a BLOCK: declare it in the procedure"
            meant = self.by_use.meant(routine, name)
            elsewhere = f"is declared in '{meant[0].name}': distribute it there" if meant else ""
            said = in_block if routine.places.get(name) else elsewhere or "is not declared here"
            self._wrong(origin, f"'{origin.name}' {said}")
            return
        scope, declaration = found
        if scope is not routine:
            self._wrong(origin, f"'{origin.name}' is declared in '{scope.name}': distribute it there")
            return
        if isinstance(origin, d.Align) and routine.source.form is d.Form.C:
            declaration = self._extents_by_alignment(declaration, dimensions)
        if isinstance(origin, d.Align):
            dimensions = [one if one.distributed else Dimension(one.kind) for one in dimensions]
        rank = len(declaration.bounds) or len(extents)
        if rank == 0:
            if declaration.storage == "pointer":
                self._wrong(origin, f"'{origin.name}' is a pointer without an extent: add EXTENT(...)")
            else:
                self._wrong(origin, f"'{origin.name}' is not an array")
            return
        if rank != len(dimensions):
            self._wrong(origin, f"'{origin.name}' has {rank} dimensions, not {len(dimensions)}")
            return
        if not any(one.distributed for one in dimensions):
            self._note(origin, f"'{origin.name}' is cut nowhere: it stays one array of all threads")
            return
        if reason := self._other_storage(routine, scope, declaration, name):
            self._wrong(origin, f"'{origin.name}'{reason}")
            return
        if reason := self.types.why_not(routine, declaration.type, self.in_place):
            self._wrong(origin, f"'{origin.name}' {reason}")
            return
        variable = self._variable(routine, declaration, extents)
        if variable:
            reason = f"EXTENT at file scope holds when the program begins, and '{variable}' is a variable"
            self._wrong(origin, f"{reason}: say a constant, or declare the pointer in a function")
            return
        if extents and len(extents) == rank:
            declaration = replace(
                declaration,
                bounds=[Bound(self._first(routine), self._last(routine, e.text)) for e in extents],
            )
        complete = with_templates(routine, name, declaration, dimensions, self.modules)
        made = Array(name, routine, declaration, complete, reshape, origin)
        made.shadow = [[0, 0] for _ in complete]
        if extents and len(extents) != rank:
            self._wrong(origin, f"EXTENT has {len(extents)} dimensions, '{origin.name}' has {rank}")
            return
        for index, bound in enumerate(made.declaration.bounds):
            if bound.upper is None and routine.source.form is d.Form.C and declaration.storage == "pointer":
                self._wrong(origin, f"'{origin.name}', dimension {index + 1}, has no extent: add EXTENT(...)")
                return
        made.extents = tuple(extent.text for extent in extents)
        self.of(routine)[name] = made

    def _other_storage(self, routine: Routine, scope: Routine, declaration: Declaration, name: str) -> str:
        """Why the array cannot get other memory, as the end of a sentence; empty: it can."""
        if name in scope.private:
            return " is THREADPRIVATE"
        if self.in_place:
            return ""
        fortran = routine.source.form is not d.Form.C
        if name in scope.equivalence:
            return " shares storage (EQUIVALENCE)"
        if declaration.storage == "common":
            return f" is in a COMMON block, where sequence matters: {_BLOCKS}"
        if declaration.storage == "pointer" and fortran:
            return " is a POINTER, which may have other names: make it ALLOCATABLE"
        if name in _TYPES and fortran:
            return f": ALLOCATE({name}(...)) names a type: call the array otherwise"
        if "target" in declaration.attributes:
            return " is a TARGET, which pointers may have other names for"
        return ""

    @staticmethod
    def _first(routine: Routine) -> str:
        return "0" if routine.source.form is d.Form.C else "1"

    @staticmethod
    def _last(routine: Routine, extent: str) -> str:
        return shifted(extent, -1) if routine.source.form is d.Form.C else extent.lower()

    @staticmethod
    def _extents_by_alignment(declaration: Declaration, dimensions: list[Dimension]) -> Declaration:
        """C pointers have no extent; an aligned one reaches as far as the template does."""
        bounds = list(declaration.bounds)
        if not bounds and declaration.storage == "pointer" and len(dimensions) == 1:
            bounds = [Bound("0", None, deferred=True)]
        for index, bound in enumerate(bounds):
            if index < len(dimensions) and bound.upper is None and dimensions[index].upper is not None:
                bounds[index] = Bound("0", shifted(dimensions[index].upper or "", -dimensions[index].offset))
        return replace(declaration, bounds=bounds)

    def _align(
        self,
        routine: Routine,
        align: d.Align,
        space: dict[str, list[Dimension]],
        base: Array | None,
    ) -> None:
        target = align.target.name.key
        target_dimensions = base.dimensions if base is not None else space[target]
        found = routine.lookup(align.name.key)
        dimensions = aligned(routine, align, target_dimensions, base)
        if isinstance(dimensions, str):
            self._wrong(align, dimensions)
            return
        space[align.name.key] = dimensions
        if base is not None and found and found[1].storage in ("static", "automatic") and _late(base):
            self._wrong(align, f"'{align.name}' is there before '{target}' is: make it ALLOCATABLE, too")
            return
        if align.name.key in self.of(routine):
            self._wrong(align, f"'{align.name}' is distributed twice")
            return
        self._add(routine, align.name.key, align, dimensions, base.reshape if base else False, ())


def _late(array: Array) -> bool:
    """Fortran: does it begin with its ALLOCATE statement?"""
    return array.routine.source.form.fortran and array.declaration.storage == "allocatable"
