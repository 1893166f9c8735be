"""--to pages: arrays stay shared; calls place their pages, and loops with a home run where their data lie.

The part-by-part loop around a loop is OpenMP's own worksharing loop with one iteration a thread, so that all
other clauses mean what they meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from homing.translate import clauses as table
from homing.translate import directives as d
from homing.translate.allocation import unsteady
from homing.translate.array import Array
from homing.translate.arrays import Distributions
from homing.translate.c_writer import CWriter
from homing.translate.fortran_writer import FortranWriter
from homing.translate.openmp import clause_text, reductions_of
from homing.translate.order import Disorder, Nest, any_order, disorders
from homing.translate.owned_loops import sites_of
from homing.translate.parts import Parts
from homing.translate.plan.model import Follow, LoopPlan, Schedule, Step
from homing.translate.planned_text import followers
from homing.translate.positions import Problem
from homing.translate.single_owner import loop_variables
from homing.translate.source import Edits
from homing.translate.tree import (
    Access,
    Construct,
    Executable,
    Kind,
    Loop,
    OpenMP,
    Statement,
    Unit,
    references,
    walk,
)
from homing.translate.writer import PART, Local, Region


def translate_pages(
    units: Sequence[Unit], distributions: Distributions, edits: dict[int, Edits]
) -> tuple[list[Problem], list[Step]]:
    """Edit all units. Returns what is wrong, and what is done."""
    problems: list[Problem] = []
    steps: list[Step] = []
    writers: list[PagesFortran | PagesC] = []
    for unit in units:
        for routine in unit.routines:
            writer: PagesFortran | PagesC
            if unit.form is d.Form.C:
                writer = PagesC(routine, distributions, edits[id(unit)], False)
            else:
                writer = PagesFortran(routine, distributions, edits[id(unit)], False)
            pages = Pages(routine, distributions, writer, False, steps, "pages")
            pages.place_pages(writer)
            pages.kept_loops("no ON HOME and no AFFINITY: the iterations stay where they are")
            problems += pages.problems
            writers.append(writer)
    for writer in writers:
        if distributions.any or writer.edits.any:
            writer.frame()
            problems += [writer.source.problem(*wrong) for wrong in writer.problems]
    return problems, steps


class Pages(Parts):
    """One routine: which loops get a home, and what is handed on."""

    def place_pages(self, writer: PagesFortran | PagesC) -> None:
        for node in walk(self.routine.body):
            if isinstance(node, Construct) and node.worksharing and node.homing:
                self._as_here(node)
                self._scheduled(node, writer)
            elif isinstance(node, Construct) and node.parallel and not table.shares_all(node.directive):
                if any(isinstance(inner, Construct) and inner.homing for inner in walk(node.body)):
                    writer.share_layouts(node)
            elif isinstance(node, Executable) and isinstance(node.directive, d.Redistribute):
                self.redistribute(node)
            elif isinstance(node, Executable):
                source = node.directive.source
                self.problems.append(
                    Problem(source.position, source.text, "the loop that follows is not shared out by OpenMP")
                )
            elif isinstance(node, Statement):
                if self._lifetime(node):
                    writer.lifetime(
                        node, [self.arrays[r.name] for r in node.references if r.name in self.arrays]
                    )
                for reference in self._passes(node):
                    writer.pass_part(reference, self.arrays[reference.name])
                self._anew(node, writer)

    def _anew(self, statement: Statement, writer: PagesFortran | PagesC) -> None:
        """A statement that may allocate arrays without saying so."""
        found = unsteady(self.routine, [statement], self.arrays, self.distributions.routines, False)
        if not found or not isinstance(writer, PagesFortran):
            return
        regions = (n for n in walk(self.routine.body) if isinstance(n, Construct) and n.parallel)
        parallel = self.distributions.inside(self.routine)
        parallel |= any(region.begin <= statement.begin < region.end for region in regions)
        if parallel or any(array.dummy for array in found):
            name = found[0].name
            reason = f"may allocate '{name}' here: ALLOCATE it where it is declared, outside of regions"
            self.wrong(statement.begin, statement.end, reason)
            return
        writer.allocated_anew(statement, found)

    def _as_here(self, node: Construct) -> None:
        """The arrays have the distributions that they have at the node."""
        known = self.distributions.redistributions(self.routine)
        for reference in references([node]):
            array = known.array(reference)
            if array is not None:
                self.arrays[reference.name] = array

    def _scheduled(self, node: Construct, writer: PagesFortran | PagesC) -> None:
        loop = node.body[0]
        if not isinstance(loop, Loop) or loop.variable is None:
            reason = loop.unrolled_reason if isinstance(loop, Loop) else "no loop follows"
            self.wrong(node.directive.begin, node.directive.end, reason or "no loop follows")
            return
        if self.on_threads(node):
            return
        if not {"parallel", "do", "simd"}.issuperset(node.directive.name.split()):
            reason = f"{node.directive.name.upper()} with a home is not supported"
            self.wrong(node.directive.begin, node.directive.end, reason)
            return
        self.clauses(node, table.Place.LOOP)
        sites = [s for s in sites_of([loop], [], False, self.arrays) if s.reference.subscripts is not None]
        sites = [s for s in sites if len(s.reference.subscripts or []) == self.arrays[s.reference.name].rank]
        home = self._home(node, loop, sites)
        if home is None:
            return
        why, follows = home
        nested = any_order(node, loop)
        wanted = {v: f for v, f in follows.items() if v == loop.variable or v in nested}
        more = loop.variable in wanted and len(wanted) < len(follows)
        if more and not self._disorders(node, loop, follows):
            wanted = follows
        elif len(wanted) > 1:
            for disorder in self._disorders(node, loop, wanted):
                self.wrong(disorder.begin, disorder.end, disorder.reason)
        if loop.variable not in wanted:
            self.wrong(loop.head.begin, loop.head.end, f"ON HOME says nothing about '{loop.variable}'")
            return
        array = self.arrays[wanted[loop.variable].home]
        if len(wanted) < len(follows):
            first = ", ".join(sorted(set(follows) - set(wanted)))
            self.note(loop.begin, f"iterations of {first} are not dealt out: add NEST")
            grid = [i for i in array.distributed_dimensions() if i != wanted[loop.variable].dimension]
            if grid:
                self.wrong(
                    node.directive.begin,
                    node.directive.end,
                    f"'{array.name}' is distributed in several dimensions: say NEST for the loops, or "
                    "every iteration "
                    "would run several times",
                )
                return
        elif len(array.distributed_dimensions()) > len(wanted):
            self.wrong(
                node.directive.begin, node.directive.end, "a loop for each distributed dimension is needed"
            )
            return
        plan = self.loop_plan(node, loop, Schedule.OWN)
        plan = replace(plan, why=why, follows=tuple(wanted.values()))
        self.steps.append(plan)
        writer.on_owner(node, loop, plan)

    def _disorders(self, node: Construct, loop: Loop, follows: dict[str, Follow]) -> list[Disorder]:
        """Why the parts may not run their own iterations of the loops inside, too."""
        region = Region(self.routine, node)
        region.private = node.directive.listed("private", "firstprivate", "reduction")
        region.private |= loop_variables(node.body, self.routine) | set(table.counters(node))
        nest = Nest(
            loop,
            follows,
            any_order(node, loop),
            frozenset(self.arrays),
            frozenset(one.name for one in reductions_of(node.directive.clause("reduction"))),
            lambda reference: not self.seen_by_others(reference, loop, region),
            lambda name: self.routine.places.get(name, []),
        )
        return list(disorders(nest))


def _kept(directive: OpenMP) -> list[str]:
    return [clause_text(one) for one in table.kept(directive, table.Place.LOOP, "pages")]


def _name(directive: OpenMP) -> str:
    """Without SIMD: the loop over the parts calls functions."""
    return directive.name.removesuffix(" simd")


class PagesFortran(FortranWriter):
    """Arrays keep their declarations; layouts are made beside them."""

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        named = {array.name for array in arrays}
        lines: list[str] = []
        for reference in statement.references:
            if reference.name not in named or reference.access is not Access.WRITE:
                continue
            array = self.arrays[reference.name]
            if array.dummy:
                reason = f"'{array.name}' is the caller's: ALLOCATE a distributed array where it is declared"
                self.problems.append((statement.begin, statement.end, reason))
                continue
            if statement.kind is Kind.DEALLOCATE:
                self._lines(
                    self.source.line_start(statement.begin),
                    [f"call homing_layout_free({self.layout(array)})"],
                    statement.begin,
                )
                continue
            bounds = [
                (f"lbound({array.name}, {i + 1})", f"ubound({array.name}, {i + 1})")
                for i in range(array.rank)
            ]
            lines += self.create(array, bounds)
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def allocated_anew(self, statement: Statement, arrays: Sequence[Array]) -> None:
        """Layouts behind a statement that may have allocated the arrays or freed them."""
        lines: list[str] = []
        for array in arrays:
            bounds = [
                (f"lbound({array.name}, {i + 1})", f"ubound({array.name}, {i + 1})")
                for i in range(array.rank)
            ]
            lines += [
                f"call homing_layout_free({self.layout(array)})",
                f"if (allocated({array.name})) then",
                *self.create(array, bounds),
                "end if",
            ]
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def unallocated(self, array: Array) -> list[str]:
        return [] if self.routine.module else [f"{self.layout(array)} = homing_nothing"]

    def create(self, array: Array, bounds: Sequence[tuple[str, str]]) -> list[str]:
        numbers, sizes = self._dimensions(array, bounds)
        layout = self.layout(array)
        return [
            f"{layout} = homing_layout_create('{array.name}', storage_size({array.name}), {array.rank}, "
            f"[integer(homing_long) :: {numbers}], [integer(homing_long) :: {sizes}])",
            f"call homing_place({layout}, {array.name})",
        ]

    def share_layouts(self, region: Construct) -> None:
        """A region that does not share what it does not list, with loops that have a home."""
        directive = region.directive
        layouts = sorted({self.layout(a) for a in self.arrays.values()})
        kept = [clause_text(one) for one in directive.clauses]
        text = " ".join([f"!$omp {directive.name}", *kept, f"shared({', '.join(layouts)})"])
        self._directive(directive.begin, directive.end, text)

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        bounds = [(f"lbound({old.name}, {i + 1})", f"ubound({old.name}, {i + 1})") for i in range(old.rank)]
        lines = [f"call homing_layout_free({self.layout(old)})", *self.create(new, bounds)]
        self._lines(self.source.next_line(node.end - 1), lines, node.begin)

    def _directive_text(self, node: Construct, more: Sequence[str]) -> str:
        directive = node.directive
        kept = _kept(directive)
        count = (
            ["num_threads(homing_threads())"] if node.parallel and not directive.clause("num_threads") else []
        )
        return f"!$omp {_name(directive)} " + " ".join([*kept, *more, "schedule(static, 1)", *count])

    def _wrap(self, node: Construct, loop: Loop, lines: Sequence[str], private: Sequence[str]) -> None:
        listed = node.directive.listed("private", "firstprivate", "lastprivate", "reduction")
        names = [*private, *([loop.variable] if loop.variable and loop.variable not in listed else [])]
        if not table.shares_all(node.directive):
            layouts = sorted({self.layout(a) for a in self.arrays.values()})
            more = [f"private({', '.join(names)})", f"shared({', '.join(layouts)})"]
        else:
            more = [f"private({', '.join(names)})"]
        self._directive(node.directive.begin, node.directive.end, self._directive_text(node, more))
        head = [f"do {PART} = homing_first_part(), homing_last_part()", *lines]
        self._lines(self.source.next_line(node.directive.end), head, loop.begin)
        indent = self.source.indent(loop.begin)
        at = self.source.next_line(loop.end - 1)
        self.edits.insert_lines(at, [self.indented(indent, "end do")])
        self.locals.setdefault(PART, Local(PART))

    def on_owner(self, node: Construct, loop: Loop, plan: LoopPlan) -> None:
        region = Region(self.routine, node)
        lines: list[str] = []
        for inner, follow in followers(loop, plan):
            self.own_loop(region, inner, follow, [], lines if inner is loop else None)
        bounds = self._bound_lines(region)
        self._declare_locals(region)
        self._wrap(node, loop, [*bounds, *lines], [*region.bounds, *region.locals])

    def _new_declarations(self, own: Sequence[Array]) -> list[str]:
        nothing = " = homing_nothing" if self.routine.module else ""
        lines = [f"type(homing_handle) :: {self.layout(a)}{nothing}" for a in own if not a.dummy]
        if self.routine.module:
            lines += [f"public :: {self.layout(a)}" for a in own]
        for local in self.locals.values():
            like = self.routine.lookup(local.like) if local.like else None
            lines.append(f"{like[1].type if like else 'integer'} :: {local.name}")
        lines += [f"{kind} :: {name}" for name, kind in self.bounds.items()]
        return lines

    def _companions(self, array: Array) -> list[str]:
        return [self.layout(array)]

    def _take_out(self, begin: int, arrays: Sequence[Array]) -> None:
        """Declarations stay."""

    def _local_bounds(self, array: Array) -> None:
        """Bounds stay."""

    def frame(self) -> None:
        self.inside = True  # layouts are handed on beside the arrays, wherever a procedure is called
        needed = bool(self.arrays) or bool(self.locals) or bool(self.bounds)
        if needed:
            super().frame()
        elif self.routine.main:
            # homing_threads() starts the runtime by itself.
            return


class PagesC(CWriter):
    """The same for C."""

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        for reference in statement.references:
            array = self.arrays.get(reference.name)
            if array is None or reference.access is not Access.WRITE or array not in arrays:
                continue
            layout = self.layout(array)
            if statement.calls == ("free",):
                lines = [f"{layout} = homing_layout_free({layout});"]
                self._put(self.source.line_start(statement.begin), lines, statement.begin)
            else:
                begin = self._end(array.origin) if array.origin else 0
                if statement.begin > begin:
                    self._put(
                        self.source.next_line(statement.end),
                        [f"homing_place({layout}, {array.name});"],
                        statement.begin,
                    )

    def _lifetime(self, statement: Statement) -> None:
        """Nothing is taken out."""

    def _create(self, array: Array, declare: bool) -> list[str]:
        lines = super()._create(array, declare)[:-2]
        static = array.declaration.storage != "pointer"
        if static or array.declaration.initial is not None:
            lines.append(f"homing_place({self.layout(array)}, {array.name});")
        return lines

    def _declaration(self, array: Array) -> None:
        """Declarations stay."""

    def _widths(self, array: Array) -> None:
        """So do the widths of arguments."""

    def frame(self) -> None:
        self.inside = False
        super().frame()
        unused = [
            f"(void){self.layout(a)};" for a in self.arrays.values() if a.dummy and a.routine is self.routine
        ]
        self._put(self.routine.head_end, unused, self._like(), first=True)

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        layout = self.layout(old)
        lines = [f"homing_layout_free({layout});", *super()._create(new, False)[:-2]]
        lines.append(f"homing_place({layout}, {old.name});")
        self._put(self.source.next_line(node.end - 1), lines, node.begin)

    def share_layouts(self, region: Construct) -> None:
        """A region that does not share what it does not list, with loops that have a home."""
        directive = region.directive
        layouts = sorted({self.layout(a) for a in self.arrays.values()})
        kept = [clause_text(one) for one in directive.clauses]
        name = directive.name.replace("do", "for")
        text = " ".join([f"#pragma omp {name}", *kept, f"shared({', '.join(layouts)})"])
        self.edits.replace(directive.begin, directive.end, text)

    def _wrap(self, node: Construct, loop: Loop, lines: Sequence[str]) -> None:
        directive = node.directive
        kept = [*_kept(directive), *(f"private({name})" for name in self.outer_counters(node))]
        if node.parallel and not directive.clause("num_threads"):
            kept.append("num_threads(homing_threads())")
        if not table.shares_all(directive):
            kept.append(f"shared({', '.join(sorted({self.layout(a) for a in self.arrays.values()}))})")
        name = _name(directive).replace("do", "for")
        self.edits.replace(
            directive.begin, directive.end, f"#pragma omp {name} " + " ".join([*kept, "schedule(static, 1)"])
        )
        head = f"for (int {PART} = homing_first_part(); {PART} <= homing_last_part(); {PART}++) {{"
        self._put(self.source.next_line(directive.end), [head, *lines], loop.begin)
        self._put(self.source.next_line(loop.end - 1), ["}"], loop.begin)

    def on_owner(self, node: Construct, loop: Loop, plan: LoopPlan) -> None:
        region = Region(self.routine, node)
        lines: list[str] = []
        for inner, follow in followers(loop, plan):
            self.own_loop(region, inner, follow, [], lines if inner is loop else None)
        bounds = [
            f"const long {name} = homing_run_{which}({self.layout(array)}, {PART}, {dimension}, LONG_MAX);"
            for name, (array, dimension, which, _) in region.bounds.items()
        ]
        self._wrap(node, loop, [*bounds, *lines])
