"""Which arrays are distributed, and how: directives resolved, checked, and followed through procedure
calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from homing.translate.affine import affine, shifted
from homing.translate.directives import model as d
from homing.translate.front.resolve import number
from homing.translate.plan.array import Array
from homing.translate.plan.brought import bring
from homing.translate.plan.effects import Effects
from homing.translate.plan.model import Dimension
from homing.translate.plan.passed_elements import pass_elements
from homing.translate.plan.passed_pieces import pass_pieces
from homing.translate.plan.reached import called, reaching
from homing.translate.plan.redistribution import Redistributions
from homing.translate.positions import Problem, Text
from homing.translate.tree import (
    Access,
    Bound,
    Construct,
    Declaration,
    Kind,
    Reference,
    Routine,
    Unit,
    references,
    statements,
    walk,
)


class Distributions:
    """The distributed arrays of all units that are translated together."""

    def __init__(self, units: Sequence[Unit], in_place: bool = False) -> None:
        """in_place: arrays keep their layout (--to pages)."""
        self.units = units
        self.in_place = in_place
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.arrays: dict[int, dict[str, Array]] = {}
        self.routines: dict[str, Routine] = {}
        self.parallel_context: dict[int, bool] = {}
        self._redistributions: dict[int, Redistributions] = {}
        self.effects = Effects(self.routines)
        for unit in units:
            for routine in unit.routines:
                self.arrays[id(routine)] = {}
                if not routine.module:
                    self.routines.setdefault(routine.name, routine)
        self._allocations()
        number((routine for unit in units for routine in unit.routines), self.routines)
        pass_elements(units, self.routines)
        for unit in units:
            for routine in unit.routines:
                self._declare(routine)
        self._visible()
        for unit in units:
            for routine in unit.routines if unit.form is not d.Form.C else ():
                for name in self.of(routine).keys() & routine.places.keys():
                    at = routine.places[name][0]
                    self._wrong_in(routine)(at, at, f"declares the distributed '{name}' anew in a BLOCK")
        if not in_place:
            bring(units, self.routines, self.in_regions, self.of)
        for unit in units:
            for routine in unit.routines:
                pass_pieces(routine, self.of(routine), self.routines, self.works_in_parallel)
                self._redistributions[id(routine)] = Redistributions(
                    routine, self.of(routine), self._redistributed, self._wrong_in(routine)
                )
        self._propagate()
        for unit in units:
            for routine in unit.routines:
                self._whole_calls(routine)

    def of(self, routine: Routine) -> dict[str, Array]:
        """The distributed arrays that names mean in a routine."""
        return self.arrays[id(routine)]

    def redistributions(self, routine: Routine) -> Redistributions:
        """What REDISTRIBUTE does in a routine."""
        return self._redistributions[id(routine)]

    @property
    def any(self) -> bool:
        return any(self.arrays.values())

    def _allocations(self) -> None:
        """Bounds of deferred arrays from the one ALLOCATE statement that gives them."""
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
                    if declared is None or len(allocations) > 1:
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
            dimensions = self._dimensions(routine, distribute, templates, arrangements)
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
                if align.target.name.key in space:
                    self._align(routine, align, space, templates)
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

    def _dimensions(
        self,
        routine: Routine,
        distribute: d.Distribute,
        templates: dict[str, d.Template],
        arrangements: dict[str, d.Arrangement],
    ) -> list[Dimension] | None:
        grid = self._grid(routine, distribute, arrangements)
        if grid is None:
            return None
        template = templates.get(distribute.name.key)
        if template is not None and len(template.bounds) != len(distribute.formats):
            self._wrong(
                distribute,
                f"template '{distribute.name}' has {len(template.bounds)} dimensions, not "
                f"{len(distribute.formats)}",
            )
            return None
        dimensions = []
        taken = 0
        for index, format_ in enumerate(distribute.formats):
            if format_.kind is d.Kind.STAR:
                dimensions.append(Dimension(d.Kind.STAR))
                continue
            parts = grid[taken] if taken < len(grid) else ""
            taken += 1
            argument, sizes = "", ""
            texts = [_fold(argument.text, routine) for argument in format_.arguments]
            if format_.kind is d.Kind.CYCLIC:
                argument = texts[0] if texts else "1"
            elif format_.kind is d.Kind.GEN_BLOCK:
                sizes = ", ".join(texts)
            made = Dimension(format_.kind, argument, sizes, parts=parts)
            if template is not None:
                lower, upper = _ends(template.bounds[index], distribute.source.form.fortran, routine)
                word = f"{routine.name}/{distribute.name.key}/{index}"
                made = replace(made, template=word, lower=lower, upper=upper)
            dimensions.append(made)
        return dimensions

    def _grid(
        self, routine: Routine, distribute: d.Distribute, arrangements: dict[str, d.Arrangement]
    ) -> list[str] | None:
        """The extents of the grid of parts that ONTO names, as far as it gives them; None: it is wrong."""
        onto = distribute.onto
        count = sum(f.kind is not d.Kind.STAR for f in distribute.formats)
        if onto is None:
            return []
        if onto.arrangement is None:
            if len(onto.weights) != count:
                reason = f"ONTO has {len(onto.weights)} weights, {count} dimensions are distributed"
                self._wrong(distribute, reason)
                return None
            self._note(
                distribute, "ONTO's weights are ignored: the grid is chosen from the number of threads"
            )
            return []
        arrangement = arrangements.get(onto.arrangement.key)
        if arrangement is None:
            self._wrong(distribute, f"no PROCESSORS or MEMORIES '{onto.arrangement}' is declared here")
            return None
        grid: list[str] = []
        for extent in arrangement.bounds:
            last = _fold(extent.upper.text, routine)
            if last == "*":
                grid.append("")
            elif extent.lower is not None:
                grid.append(f"({last}) - ({_fold(extent.lower.text, routine)}) + 1")
            else:
                grid.append(last)
        if arrangement.bounds and len(grid) != count:
            reason = f"'{onto.arrangement}' has {len(grid)} dimensions, {count} are distributed"
            self._wrong(distribute, reason)
            return None
        if not arrangement.memories:
            return grid
        self._note(
            distribute,
            "data are mapped to threads, not to memories: every thread of a memory gets a part of its own",
        )
        return []

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
            self._wrong(origin, f"'{origin.name}' is not declared here")
            return
        scope, declaration = found
        if scope is not routine:
            self._wrong(origin, f"'{origin.name}' is declared in '{scope.name}': distribute it there")
            return
        if isinstance(origin, d.Align) and routine.source.form is d.Form.C:
            declaration = self._extents_by_alignment(declaration, dimensions)
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
        if name in scope.equivalence and not self.in_place:
            self._wrong(origin, f"'{origin.name}' shares storage (EQUIVALENCE)")
            return
        if "namelist" in declaration.attributes:
            self._wrong(origin, f"'{origin.name}' is in a NAMELIST, which reads and writes it unseen")
            return
        if declaration.storage == "common" and not self.in_place:
            self._wrong(origin, f"'{origin.name}' is in a COMMON block, where sequence matters")
            return
        if name in scope.private:
            self._wrong(origin, f"'{origin.name}' is THREADPRIVATE")
            return
        fortran = routine.source.form is not d.Form.C
        if declaration.storage == "pointer" and fortran and not self.in_place:
            self._wrong(
                origin, f"'{origin.name}' is a POINTER, which may have other names: make it ALLOCATABLE"
            )
            return
        if "target" in declaration.attributes and not self.in_place:
            self._wrong(origin, f"'{origin.name}' is a TARGET, which pointers may have other names for")
            return
        if extents and len(extents) == rank:
            declaration = replace(
                declaration,
                bounds=[Bound(self._first(routine), self._last(routine, e.text)) for e in extents],
            )
        complete = _with_templates(routine, name, declaration, dimensions)
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
        templates: dict[str, d.Template],
    ) -> None:
        target = align.target.name.key
        base = self.of(routine).get(target)
        target_dimensions = base.dimensions if base is not None else space[target]
        found = routine.lookup(align.name.key)
        rank = len(found[1].bounds) if found else 0
        dummies = [text.text.strip().lower() for text in align.subscripts] or [":"] * rank
        subscripts = [text.text.strip().lower() for text in align.target.subscripts] or [":"] * len(
            target_dimensions
        )
        if len(subscripts) != len(target_dimensions):
            self._wrong(
                align, f"'{align.target.name}' has {len(target_dimensions)} dimensions, not {len(subscripts)}"
            )
            return
        dimensions = [Dimension(d.Kind.STAR) for _ in dummies]
        colons = [i for i, text in enumerate(dummies) if text == ":"]
        next_colon = 0
        for index, text in enumerate(subscripts):
            wanted = target_dimensions[index]
            if text == "*":
                if wanted.distributed:
                    self._wrong(align, "replication over a distributed dimension is not supported")
                    return
                continue
            if text == ":":
                if next_colon >= len(colons):
                    self._wrong(align, "more ':' in the target than in the array")
                    return
                at, offset = colons[next_colon], 0
                next_colon += 1
            else:
                value = affine(text)
                using = [name for name in dummies if value.coefficient(name)]
                if not using:
                    if wanted.distributed:
                        self._wrong(align, f"'{text}' puts the whole array on one part")
                        return
                    continue
                if len(value.terms) != 1 or value.terms[0][1] != 1:
                    self._wrong(align, f"'{text}' is not an index plus a number")
                    return
                at, offset = dummies.index(using[0]), value.constant
            if wanted.distributed:
                base_name, base_dimension = wanted.base, wanted.base_dimension
                upper = wanted.upper
                if base is not None and not base_name:
                    base_name, base_dimension = target, index
                    upper = base.declaration.bounds[index].upper
                if text == ":" and base is not None and found and index < len(base.declaration.bounds):
                    # `:` aligns first with first.
                    own, other = found[1].bounds[at], base.declaration.bounds[index]
                    if not own.deferred and not other.deferred:
                        step = affine(_fold(other.lower, routine)).minus(affine(_fold(own.lower, routine)))
                        offset = step or 0
                dimensions[at] = replace(
                    wanted,
                    upper=upper,
                    offset=wanted.offset + offset,
                    base=base_name,
                    base_dimension=base_dimension,
                )
        space[align.name.key] = dimensions
        if align.name.key in self.of(routine):
            self._wrong(align, f"'{align.name}' is distributed twice")
            return
        self._add(routine, align.name.key, align, dimensions, base.reshape if base else False, ())

    def _redistributed(self, array: Array, directive: d.Redistribute) -> Array | None:
        """The array with the distribution of a REDISTRIBUTE directive."""
        if len(directive.formats) != array.rank:
            self._wrong(
                directive, f"'{directive.name}' has {array.rank} dimensions, not {len(directive.formats)}"
            )
            return None
        distribute = d.Distribute(
            directive.source, directive.name, directive.formats, directive.onto, (), array.reshape
        )
        arrangements = {
            one.name.key: one for one in array.routine.directives if isinstance(one, d.Arrangement)
        }
        dimensions = self._dimensions(array.routine, distribute, {}, arrangements)
        if dimensions is None:
            return None
        dimensions = _with_templates(array.routine, array.name, array.declaration, dimensions)
        made = replace(array, dimensions=dimensions, shadow=[[0, 0] for _ in dimensions], linked=[], tied={})
        if array.given_shadow is not None and any(low or high for low, high in array.given_shadow):
            made.given_shadow = None  # it was declared for the other distribution
        return made

    # --- scopes and calls -------------------------------------------------------------------------------

    def _visible(self) -> None:
        """Names of an enclosing scope, and of modules that are used."""
        modules = {
            routine.name: routine for unit in self.units for routine in unit.routines if routine.module
        }
        known = -1
        while known != (
            known := sum(map(len, self.arrays.values()))
        ):  # a module may use one that comes later
            self._visible_once(modules)
        for unit in self.units:
            for routine in unit.routines:
                for used, name, begin, end in routine.renamed:
                    if used in modules and name in self.of(modules[used]):
                        reason = f"gives the distributed '{name}' another name"
                        self._wrong_in(routine)(begin, end, reason)

    def _visible_once(self, modules: dict[str, Routine]) -> None:
        for unit in self.units:
            for routine in unit.routines:
                scope = routine.parent
                while scope is not None:
                    for name, array in self.of(scope).items():
                        if name not in routine.declarations and not _later(array, routine):
                            self.of(routine).setdefault(name, array)
                    scope = scope.parent
                chain: Routine | None = routine
                while chain is not None:
                    for used, (_, _, only) in chain.uses.items():
                        module = modules.get(used)
                        if module is None:
                            continue
                        names = None if only is None else {part.strip() for part in only.split(",")}
                        for name, array in self.of(module).items():
                            if (names is None or name in names) and name not in routine.declarations:
                                self.of(routine).setdefault(name, array)
                    chain = chain.parent

    def _propagate(self) -> None:
        """Dummies get the distribution of what is passed, where the procedure has parallel constructs."""
        waiting = [routine for unit in self.units for routine in unit.routines]
        rounds = 0
        while waiting:
            rounds += 1
            routine = waiting.pop(0)
            changed = False
            for inside, reference in _calls(routine):
                callee = self.routines.get(reference.argument_of or "")
                if callee is None or callee is routine:
                    continue
                array = self.redistributions(routine).array(reference)
                if array is None or reference.argument_index >= len(callee.arguments):
                    continue
                dummy = callee.arguments[reference.argument_index]
                # One that only says how its argument is distributed gets it in parts, too.
                if not (inside or self.works_in_parallel(callee) or dummy in self.of(callee)):
                    continue
                inside |= id(routine) in self.in_regions
                changed |= self._pass(routine, reference, array, callee, dummy, inside)
            if changed and rounds < 10_000:
                waiting.extend(r for unit in self.units for r in unit.routines if r not in waiting)

    @cached_property
    def in_regions(self) -> frozenset[int]:
        """The routines (by id) that parallel regions call, or what these call."""
        waiting = []
        for unit in self.units:
            for routine in unit.routines:
                for node in walk(routine.body):
                    if isinstance(node, Construct) and node.parallel:
                        waiting += called(node.body, self.routines)
        found: set[int] = set()
        while waiting:
            routine = waiting.pop()
            if id(routine) not in found:
                found.add(id(routine))
                waiting += called(routine.body, self.routines)
        return frozenset(found)

    @cached_property
    def reaching(self) -> frozenset[int]:
        """The routines (by id) that work on distributed arrays of other scopes."""
        return reaching(self.units, self.routines, self.of)

    def _whole_calls(self, routine: Routine) -> None:
        """Every argument that a procedure gets in parts is passed in parts, wherever it is called."""
        for statement in statements(routine.body):
            given: dict[str, set[int]] = {}
            for reference in statement.references:
                if reference.argument_of and self.redistributions(routine).array(reference) is not None:
                    given.setdefault(reference.argument_of, set()).add(reference.argument_index)
            named = {*statement.calls, *given, *(r.name for r in statement.references)}
            for name in sorted(named & self.routines.keys()):
                callee = self.routines[name]
                for index, dummy in enumerate(callee.arguments if callee is not routine else ()):
                    known = self.of(callee).get(dummy)
                    own = known is not None and known.routine is callee
                    if own and index not in given.get(name, set()) and name not in routine.declarations:
                        reason = f"'{dummy}' of '{name}' gets distributed arrays, and here one that is not"
                        self._wrong_in(routine)(statement.begin, statement.end, reason)

    def works_in_parallel(self, routine: Routine, seen: frozenset[str] = frozenset()) -> bool:
        """Does it, or something that it calls, contain an OpenMP construct?"""
        if routine.name in seen:
            return False
        if any(isinstance(node, Construct) for node in walk(routine.body)):
            return True
        seen |= {routine.name}
        called = {r.argument_of for r in references(routine.body) if r.argument_of}
        return any(
            name in self.routines and self.works_in_parallel(self.routines[name], seen) for name in called
        )

    def _pass(
        self, routine: Routine, reference: Reference, array: Array, callee: Routine, dummy: str, inside: bool
    ) -> bool:
        def wrong(reason: str) -> bool:
            self._wrong_in(routine)(reference.begin, reference.end, reason)
            return False

        declaration = callee.declarations.get(dummy)
        if declaration is not None and array.rank == 1 and _is_pointer(callee, declaration):
            declaration.bounds = [Bound("0", None, deferred=True)]
        if reference.subscripts is not None and self.in_place and dummy not in self.of(callee):
            return False  # what lies where it lay
        if reference.subscripts is not None:
            return wrong(f"a piece of the distributed '{reference.name}' is passed on (sequence association)")
        if declaration is None:
            return wrong(f"the argument '{dummy}' of '{callee.name}' is not declared there")
        if len(declaration.bounds) != array.rank:
            return wrong(
                f"'{reference.name}' has {array.rank} dimensions, '{dummy}' of '{callee.name}' has "
                f"{len(declaration.bounds)}"
            )
        for index, (mine, its) in enumerate(zip(array.declaration.bounds, declaration.bounds, strict=False)):
            if mine.deferred or its.deferred or its.upper is None:
                continue
            step = affine(_fold(mine.lower, routine)).minus(affine(_fold(its.lower, callee)))
            if step not in (None, 0):
                return wrong(f"dimension {index + 1} of '{dummy}' in '{callee.name}' begins elsewhere")
        context = self.parallel_context.setdefault(id(callee), inside)
        if context != inside:
            return wrong(f"'{callee.name}' is called inside and outside parallel regions")
        known = self.of(callee).get(dummy)
        if known is not None and known.passed_from is not None:
            same = len(known.dimensions) == len(array.dimensions) and all(
                (a.kind, a.argument, a.offset) == (b.kind, b.argument, b.offset)
                for a, b in zip(known.dimensions, array.dimensions, strict=False)
            )
            if not same:
                return wrong(f"'{dummy}' of '{callee.name}' gets differently distributed arrays")
            known.link(array)
            return False
        if known is not None:
            kinds = [dimension.kind for dimension in known.dimensions]
            if kinds != [dimension.kind for dimension in array.dimensions]:
                return wrong(f"'{dummy}' is distributed otherwise in '{callee.name}'")
        made = Array(dummy, callee, declaration, array.dimensions, array.reshape, None)
        made.shadow = [list(widths) for widths in array.shadow]
        made.given_shadow = array.given_shadow
        made.passed_from = array
        made.link(array)
        self.of(callee)[dummy] = made
        return True

    def inside(self, routine: Routine) -> bool:
        """Is the routine called from inside parallel regions?"""
        return self.parallel_context.get(id(routine), False)


def _ends(bound: d.Bounds, fortran: bool, routine: Routine) -> tuple[str, str]:
    """The lowest and the highest index of a template's dimension."""
    upper = _fold(bound.upper.text, routine)
    if bound.lower is not None:
        return _fold(bound.lower.text, routine), upper
    return ("1", upper) if fortran else ("0", f"({upper}) - 1")


def _later(array: Array, routine: Routine) -> bool:
    """C: the file declares the array behind the function, which does not know it."""
    return array.routine.source.form is d.Form.C and array.declaration.begin > routine.begin


def _is_pointer(callee: Routine, declaration: Declaration) -> bool:
    """C: `double *x` among the arguments."""
    text = callee.source.text[declaration.statement_begin : declaration.begin]
    c = callee.source.form is d.Form.C
    return c and declaration.storage == "dummy" and not declaration.bounds and text.count("*") == 1


def _calls(routine: Routine) -> list[tuple[bool, Reference]]:
    """Every array that is passed on whole, and whether that happens in a parallel region."""
    regions = [
        (node.begin, node.end) for node in walk(routine.body) if isinstance(node, Construct) and node.parallel
    ]
    found = []
    for reference in references(routine.body):
        if reference.argument_of and reference.access in (Access.ARGUMENT, Access.READ):
            inside = any(begin <= reference.begin < end for begin, end in regions)
            found.append((inside, reference))
    return found


def _with_templates(
    routine: Routine, name: str, declaration: Declaration, dimensions: Sequence[Dimension]
) -> list[Dimension]:
    """Arrays of the same bounds lie together without being told to: their index space is named after it."""
    complete = []
    for index, dimension in enumerate(dimensions):
        if dimension.distributed and not dimension.template:
            bound = declaration.bounds[index] if index < len(declaration.bounds) else None
            if bound is not None and bound.deferred and declaration.storage == "allocatable":
                # Their bounds are compared when the program runs (homing_together).
                key = f"{routine.name}/allocated/{_position(dimensions, index)}"
            elif bound is None or bound.upper is None:
                key = f"{routine.name}/{name}/{index}"
            else:
                low, high = affine(_fold(bound.lower, routine)), affine(_fold(bound.upper or "", routine))
                key = f"{routine.name}/{low}/{high}/{_position(dimensions, index)}"
            dimension = replace(dimension, template=key)
        complete.append(dimension)
    return complete


def _position(dimensions: Sequence[Dimension], index: int) -> int:
    return sum(dimension.distributed for dimension in dimensions[:index])


def _fold(text: str, routine: Routine) -> str:
    """The text in the form in which names are compared."""
    return text if routine.source.form is d.Form.C else text.lower()
