"""--to pages: arrays stay shared; calls place their pages, and loops with a home run where their data lie.

The part-by-part loop around a loop is OpenMP's own worksharing loop with one iteration a thread, so that all
other clauses mean what they meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from homing.translate.directives import model as d
from homing.translate.openmp import reductions_of
from homing.translate.plan import clauses as table
from homing.translate.plan.allocation import unsteady
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.last_values import last_values
from homing.translate.plan.model import Follow, LoopPlan, Schedule, Step
from homing.translate.plan.order import Disorder, Nest, any_order, disorders
from homing.translate.positions import Problem
from homing.translate.source import Edits
from homing.translate.targets.communication import Communication
from homing.translate.targets.owned_loops import OwnedLoops, sites_of
from homing.translate.targets.routine import Work
from homing.translate.targets.single_owner import loop_variables
from homing.translate.tree import (
    Branch,
    Clause,
    Construct,
    Executable,
    Loop,
    Statement,
    Unit,
    references,
    walk,
)
from homing.translate.write.pages_c import PagesC
from homing.translate.write.pages_fortran import PagesFortran
from homing.translate.write.writer import Region


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
            work = Work(routine, distributions, writer, False, steps, "pages")
            pages = Pages(work)
            pages.place_pages(writer)
            work.kept_loops("no ON HOME and no AFFINITY: the iterations stay where they are")
            problems += work.problems
            writers.append(writer)
    for writer in writers:
        if distributions.any or writer.edits.any:
            writer.frame()
            problems += [writer.source.problem(*wrong) for wrong in writer.problems]
    return problems, steps


class Pages:
    """One routine: which loops get a home, and what is handed on."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.loops = OwnedLoops(work, Communication(work))
        self.planned: list[tuple[int, LoopPlan]] = []  # by the construct's id

    def place_pages(self, writer: PagesFortran | PagesC) -> None:
        regions: list[Construct] = []
        for node in walk(self.work.routine.body):
            if isinstance(node, Construct) and node.worksharing and node.homing:
                self._as_here(node)
                self._scheduled(node, writer)
            elif isinstance(node, Construct) and node.directive.name == "section" and node.homing:
                text = "SECTIONS stay on the threads that OpenMP chooses"
                self.work.distributions.notes += [one.source.problem(text) for one in node.homing]
            elif isinstance(node, Construct) and node.parallel and not table.shares_all(node.directive):
                if any(isinstance(inner, Construct) and inner.homing for inner in walk(node.body)):
                    regions.append(node)
            elif isinstance(node, Executable) and isinstance(node.directive, d.Redistribute):
                self.work.redistribute(node)
            elif isinstance(node, Executable):
                self.work.problems.append(
                    node.directive.source.problem("the loop that follows is not shared out by OpenMP")
                )
            elif isinstance(node, Statement):
                if self.work.lifetime(node):
                    writer.lifetime(
                        node,
                        [self.work.arrays[r.name] for r in node.references if r.name in self.work.arrays],
                    )
                self._hand_on(node, node.begin, writer)
                self._anew(node, writer)
            elif isinstance(node, Loop):
                self._hand_on(node.head, node.begin, writer)
            elif isinstance(node, Branch):
                for head, _ in node.arms:
                    self._hand_on(head, node.begin, writer)
        for region in regions:
            writer.share_layouts(region, self._last_values(region))

    def _hand_on(self, statement: Statement, at: int, writer: PagesFortran | PagesC) -> None:
        """The layouts of what a statement passes on, known before what begins at `at`."""
        if isinstance(writer, PagesC):
            writer.taken(statement)
        passed = self.work.passes(statement)
        if passed and isinstance(writer, PagesFortran):
            writer.ready(at, [self.work.arrays[reference.name] for reference in passed])
        for reference in passed:
            writer.pass_part(reference, self.work.arrays[reference.name])

    def _last_values(self, region: Construct) -> list[str]:
        """What the region's loops keep of LASTPRIVATE, in variables that its threads share."""
        loops = {id(node) for node in walk(region.body)}
        plans = [plan for loop, plan in self.planned if loop in loops and plan.last_values]
        return sorted({name for plan in plans if plan.last_values for name in plan.last_values.shared})

    def _anew(self, statement: Statement, writer: PagesFortran | PagesC) -> None:
        """A statement that may allocate arrays without saying so."""
        found = unsteady(
            self.work.routine, [statement], self.work.arrays, self.work.distributions.routines, False
        )
        if not found or not isinstance(writer, PagesFortran):
            return
        regions = (n for n in walk(self.work.routine.body) if isinstance(n, Construct) and n.parallel)
        parallel = self.work.distributions.inside(self.work.routine)
        parallel |= any(region.begin <= statement.begin < region.end for region in regions)
        if parallel or any(array.dummy for array in found):
            name = found[0].name
            reason = f"may allocate '{name}' here: ALLOCATE it where it is declared, outside of regions"
            self.work.wrong(statement.begin, statement.end, reason)
            return
        writer.allocated_anew(statement, found)

    def _as_here(self, node: Construct) -> None:
        """The arrays have the distributions that they have at the node."""
        known = self.work.distributions.redistributions(self.work.routine)
        for reference in references([node]):
            array = known.array(reference)
            if array is not None:
                self.work.arrays[reference.name] = array

    def _scheduled(self, node: Construct, writer: PagesFortran | PagesC) -> None:
        loop = node.body[0]
        if not isinstance(loop, Loop) or loop.variable is None:
            reason = loop.unrolled_reason if isinstance(loop, Loop) else "no loop follows"
            self.work.wrong(node.directive.begin, node.directive.end, reason or "no loop follows")
            return
        if self.work.on_threads(node) or self._in_its_order(node, loop):
            return
        if not {"parallel", "do", "simd"}.issuperset(node.directive.name.split()):
            reason = f"{node.directive.name.upper()} with a home is not supported"
            self.work.wrong(node.directive.begin, node.directive.end, reason)
            return
        self.work.clauses(node, table.Place.LOOP)
        sites = [
            s for s in sites_of([loop], [], False, self.work.arrays) if s.reference.subscripts is not None
        ]
        sites = [
            s for s in sites if len(s.reference.subscripts or []) == self.work.arrays[s.reference.name].rank
        ]
        home = self.loops.homes.home_of(node, loop, sites)
        if home is None:
            return
        why, follows = home
        fixed = self.work.fixed_home.get(id(loop), ())
        nested = any_order(node, loop)
        wanted = {v: f for v, f in follows.items() if v == loop.variable or v in nested}
        more = loop.variable in wanted and len(wanted) < len(follows)
        if more and not self._disorders(node, loop, follows):
            wanted = follows
        elif len(wanted) > 1:
            for disorder in self._disorders(node, loop, wanted):
                self.work.wrong(disorder.begin, disorder.end, disorder.reason)
        if loop.variable not in wanted:
            inner = ", ".join(sorted(follows))
            self._stays(node, loop, f"the home goes with {inner}, not with '{loop.variable}'", loop.head)
            return
        array = self.work.arrays[wanted[loop.variable].home]
        if len(wanted) < len(follows):
            first = ", ".join(sorted(set(follows) - set(wanted)))
            self.work.note(loop.begin, f"iterations of {first} are not dealt out: add NEST")
            grid = [i for i in array.distributed_dimensions() if i != wanted[loop.variable].dimension]
            if grid:
                self.work.wrong(
                    node.directive.begin,
                    node.directive.end,
                    f"'{array.name}' is distributed in several dimensions: say NEST for the loops, or "
                    "every iteration "
                    "would run several times",
                )
                return
        elif len(array.distributed_dimensions()) > len(wanted) + len(fixed):
            self.work.wrong(
                node.directive.begin, node.directive.end, "a loop for each distributed dimension is needed"
            )
            return
        plan = self.work.loop_plan(node, loop, Schedule.OWN)
        last = last_values(self.work.routine, node, loop, wanted)
        if isinstance(last, str):
            self.work.wrong(node.directive.begin, node.directive.end, last)
            return
        plan = replace(plan, why=why, follows=tuple(wanted.values()), fixed=fixed, last_values=last)
        self.work.steps.append(plan)
        self.planned.append((id(node), plan))
        homes = dict.fromkeys(follow.home for follow in plan.follows)
        writer.on_owner(node, loop, plan, [self.work.arrays[name] for name in homes])

    def _in_its_order(self, node: Construct, loop: Loop) -> bool:
        """Loops whose iterations need the program's order stay as they are, on the threads that OpenMP
        chooses."""
        clauses = node.directive.clause("ordered", "linear")
        if clauses:
            self._stays(node, loop, clauses[0].name.upper(), clauses[0])
        return bool(clauses)

    def _stays(self, node: Construct, loop: Loop, why: str, where: Clause | Statement) -> None:
        text = f"{why}: the loop's iterations stay where OpenMP puts them"
        self.work.distributions.notes.append(self.work.source.problem(where.begin, where.end, text))
        self.work.steps.append(self.work.loop_plan(node, loop, Schedule.KEPT, text))

    def _disorders(self, node: Construct, loop: Loop, follows: dict[str, Follow]) -> list[Disorder]:
        """Why the parts may not run their own iterations of the loops inside, too."""
        region = Region(self.work.routine, node)
        region.private = node.directive.listed("private", "firstprivate", "reduction")
        region.private |= loop_variables(node.body, self.work.routine) | set(table.counters(node))
        nest = Nest(
            loop,
            follows,
            any_order(node, loop),
            frozenset(self.work.arrays),
            frozenset(one.name for one in reductions_of(node.directive.clause("reduction"))),
            lambda reference: not self.work.seen_by_others(reference, loop, region),
            lambda name: self.work.routine.places.get(name, []),
        )
        return list(disorders(nest))
