"""Which procedures distributed arrays reach, and as what: by scopes, by modules, and as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from homing.translate.directives import model as d
from homing.translate.plan.accessibility import NotPublic
from homing.translate.plan.array import Array, Unsure
from homing.translate.plan.passed_bounds import compared
from homing.translate.plan.passed_pieces import pass_pieces
from homing.translate.plan.reached import called, reaching
from homing.translate.plan.redistribution import Redistributions
from homing.translate.tree import (
    Access,
    Bound,
    Construct,
    Declaration,
    Executable,
    Node,
    Reference,
    Routine,
    Statement,
    Unit,
    references,
    statements,
    walk,
)

Wrong = Callable[[int, int, str], None]


class Passing:
    """The way of the arrays through the program. arrays: by the routine's id, then by name; what is found is
    added."""

    def __init__(
        self,
        units: Sequence[Unit],
        routines: dict[str, Routine],
        arrays: dict[int, dict[str, Array]],
        in_place: bool,
        redistributions: Callable[[Routine], Redistributions],
        wrong_in: Callable[[Routine], Wrong],
    ) -> None:
        self.units = units
        self.routines = routines
        self.arrays = arrays
        self.in_place = in_place
        self.redistributions = redistributions
        self.wrong_in = wrong_in
        self.parallel_context: dict[int, bool] = {}
        self.several: dict[str, Routine] = {}  # procedures whose calls differ in what they distribute
        self._hidden: dict[str, NotPublic] = {}  # by the module's name

    def of(self, routine: Routine) -> dict[str, Array]:
        return self.arrays[id(routine)]

    def visible(self) -> None:
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
                        self.wrong_in(routine)(begin, end, reason)

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
                        if used not in self._hidden:
                            self._hidden[used] = NotPublic(module)
                        hidden = self._hidden[used]
                        names = None if only is None else {part.strip() for part in only.split(",")}
                        for name, array in self.of(module).items():
                            if name in routine.declarations or hidden(name):
                                continue
                            if names is None or name in names:
                                self.of(routine).setdefault(name, array)
                    chain = chain.parent

    def propagate(self) -> None:
        """Dummies get the distribution of what is passed, where the procedure has parallel constructs."""
        waiting = [routine for unit in self.units for routine in unit.routines]
        rounds = 0
        while waiting:
            rounds += 1
            routine = waiting.pop(0)
            changed = False
            pass_pieces(routine, self.of(routine), self.routines, self.works_in_parallel)  # of dummies
            for inside, reference in _calls(routine):
                callee = self.routines.get(reference.argument_of or "")
                if callee is None or callee is routine:
                    continue
                array = self.redistributions(routine).array(reference)
                if array is None or reference.argument_index >= len(callee.arguments):
                    continue
                dummy = callee.arguments[reference.argument_index]
                inside |= id(routine) in self.in_regions
                # One that only says how its argument is distributed gets it in parts, too.
                if not (self._needs(callee, inside) or dummy in self.of(callee)):
                    continue
                changed |= self._pass(routine, reference, array, callee, dummy, inside)
            if changed and rounds < 10_000:
                waiting.extend(r for unit in self.units for r in unit.routines if r not in waiting)

    def _needs(self, callee: Routine, inside: bool) -> bool:
        """Must a procedure know how its arguments are distributed? Where arrays stay in place, only what has
        directives of ours."""
        if self.in_place:
            return self._reaches(callee, lambda node: isinstance(node, Executable) or _has_home(node))
        return inside or self.works_in_parallel(callee)

    @cached_property
    def in_regions(self) -> frozenset[int]:
        """The routines (by id) that parallel regions call, or what these call."""
        waiting = []
        for unit in self.units:
            for routine in unit.routines:
                for node in walk(routine.body):
                    if isinstance(node, Construct) and node.parallel:
                        found_here = called(node.body, self.routines)
                        # Of a function without RESULT, its name is the variable.
                        result = routine.name if routine.result == routine.name else None
                        waiting += [one for one in found_here if one is not routine or result is None]
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

    def reaches(self, routine: Routine, statement: Statement | None) -> bool:
        """Does a statement of the routine call what works on arrays of other scopes? None: does a region call
        the routine?"""
        if statement is None:
            return id(routine) in self.in_regions
        return any(id(one) in self.reaching for one in called([statement], self.routines))

    def whole_calls(self, routine: Routine) -> None:
        """Every argument that a procedure gets in parts is passed in parts, wherever it is called."""
        for statement in statements(routine.body):
            given: dict[str, set[int]] = {}
            for reference in statement.references:
                if reference.argument_of and self.redistributions(routine).array(reference) is not None:
                    given.setdefault(reference.argument_of, set()).add(reference.argument_index)
            named = {*statement.calls, *given, *(r.name for r in statement.references if not r.array)}
            for name in sorted(named & self.routines.keys()):
                callee = self.routines[name]
                for index, dummy in enumerate(callee.arguments if callee is not routine else ()):
                    known = self.of(callee).get(dummy)
                    own = known is not None and known.routine is callee
                    if own and index not in given.get(name, set()) and name not in routine.declarations:
                        self.several[name] = callee
                        reason = f"'{dummy}' of '{name}' gets distributed arrays, and here one that is not"
                        self.wrong_in(routine)(statement.begin, statement.end, reason)

    def works_in_parallel(self, routine: Routine) -> bool:
        """Does it, or something that it calls, contain an OpenMP construct?"""
        return self._reaches(routine, lambda node: isinstance(node, Construct))

    def _reaches(
        self, routine: Routine, wanted: Callable[[Node], bool], seen: frozenset[str] = frozenset()
    ) -> bool:
        """Does it, or something that it calls, contain such a node?"""
        if routine.name in seen:
            return False
        if any(wanted(node) for node in walk(routine.body)):
            return True
        seen |= {routine.name}
        called = {r.argument_of for r in references(routine.body) if r.argument_of}
        return any(
            name in self.routines and self._reaches(self.routines[name], wanted, seen) for name in called
        )

    def _pass(
        self, routine: Routine, reference: Reference, array: Array, callee: Routine, dummy: str, inside: bool
    ) -> bool:
        def wrong(reason: str) -> bool:
            self.wrong_in(routine)(reference.begin, reference.end, reason)
            return False

        declaration = callee.declarations.get(dummy)
        if declaration is not None and array.rank == 1 and is_pointer(callee, declaration):
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
        unsure = Unsure()
        if callee.source.form.fortran and not self.in_place:
            found = compared(array, callee, dummy, self.units, self.of, self.routines)
            if isinstance(found, str):
                return wrong(found)
            unsure = found
        context = self.parallel_context.setdefault(id(callee), inside)
        if context != inside:
            self.several[callee.name] = callee
            return wrong(f"'{callee.name}' is called inside and outside parallel regions")
        known = self.of(callee).get(dummy)
        if known is not None and known.passed_from is not None:
            same = len(known.dimensions) == len(array.dimensions) and all(
                (a.kind, a.argument, a.offset) == (b.kind, b.argument, b.offset)
                for a, b in zip(known.dimensions, array.dimensions, strict=False)
            )
            if not same:
                self.several[callee.name] = callee
                return wrong(f"'{dummy}' of '{callee.name}' gets differently distributed arrays")
            known.link(array)
            known.unsure.begins |= unsure.begins
            known.unsure.ends |= unsure.ends
            return False
        if known is not None:
            kinds = [dimension.kind for dimension in known.dimensions]
            if kinds != [dimension.kind for dimension in array.dimensions]:
                return wrong(f"'{dummy}' is distributed otherwise in '{callee.name}'")
        made = Array(dummy, callee, declaration, array.dimensions, array.reshape, None)
        made.shadow = [list(widths) for widths in array.shadow]
        made.given_shadow = array.given_shadow
        made.passed_from = array
        made.unsure = unsure
        made.link(array)
        self.of(callee)[dummy] = made
        return True

    def inside(self, routine: Routine) -> bool:
        """Is the routine called from inside parallel regions?"""
        return self.parallel_context.get(id(routine), False)


def _has_home(node: Node) -> bool:
    return isinstance(node, Construct) and bool(node.homing)


def _later(array: Array, routine: Routine) -> bool:
    """C: the file declares the array behind the function, which does not know it."""
    file = routine.outermost
    declared = file.declarations.get(array.name)
    if file.source.form is not d.Form.C or array.name in file.included or declared is None:
        return False
    others = [one.begin for one in file.again.get(array.name, ())]  # also in the function's own blocks
    return declared.begin > routine.begin and not any(begin < routine.end for begin in others)


def is_pointer(callee: Routine, declaration: Declaration) -> bool:
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
