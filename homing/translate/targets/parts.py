"""Translation into parts of each thread's own (--to spmd, --to mpi): what is done where, in either language.

Chapman, Patil and Prabhakar 2001, section 5. Regions stay where they are; in them every distributed array
means the thread's part. Loops run over the part's own iterations; what they read of other parts is fetched
before them, what they write into others' is pushed behind them, what all read is broadcast. Serial code that
touches a distributed array gets the whole of it, gathered for the time being.
"""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.directives import model as d
from homing.translate.openmp import Reduction, reductions_of
from homing.translate.plan import clauses as table
from homing.translate.plan.boxes import Site
from homing.translate.plan.clauses import Place
from homing.translate.plan.model import ReadPlan
from homing.translate.plan.threads_differ import Differing, of_procedure, of_region
from homing.translate.positions import Problem
from homing.translate.targets.communication import Communication
from homing.translate.targets.one_rank import OneRank
from homing.translate.targets.owned_loops import OwnedLoops
from homing.translate.targets.routine import Fresh, Work
from homing.translate.targets.serial_code import SerialCode
from homing.translate.targets.single_owner import SingleOwner, loop_variables
from homing.translate.targets.whole_constructs import OF_MANY, lists_arrays, one_thread_can, whole
from homing.translate.tree import (
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Statement,
    references,
    statements,
    walk,
)
from homing.translate.write.lines_apart import crowded
from homing.translate.write.planned_text import broadcast_lines
from homing.translate.write.writer import Region


class Parts:
    """One routine's translation: serial code, regions and what stands in them."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.exchange = Communication(work)
        self.loops = OwnedLoops(work, self.exchange)
        self.singles = SingleOwner(work, self.exchange)
        self.serial = SerialCode(work, self.region)
        self.ranks = OneRank(work)

    # --- the routine --------------------------------------------------------------------------------

    def translate(self) -> None:
        """Plan and edit the routine's executable part."""
        self._translate()
        self.work.kept_loops()

    def _translate(self) -> None:
        if not self.work.arrays:
            self.work.without_arrays(self.work.routine.body)
            return
        self._jumps()
        self._unseen()
        if self.work.distributions.inside(self.work.routine):
            source = self.work.routine.source
            region = Region(self.work.routine, None, written=self.work.written(self.work.routine.body))
            region.private = {
                name
                for name, declaration in self.work.routine.declarations.items()
                if (
                    name not in self.work.routine.arguments
                    or (
                        self.work.source.form is d.Form.C
                        and not declaration.bounds
                        and "&" not in source.text[declaration.statement_begin : declaration.statement_end]
                    )
                )
                and "save" not in declaration.attributes
            }
            region.arrays = [a for a in self.work.arrays.values() if a.routine is self.work.routine]
            used = {reference.name for reference in references(self.work.routine.body)}
            for name, array in self.work.arrays.items():
                if array.routine is not self.work.routine and name in used:
                    self.work.wrong(
                        self.work.routine.begin,
                        self.work.routine.head_end,
                        f"'{name}' is no argument of this procedure, which is called inside a "
                        "parallel region: pass it",
                    )
            self.in_region(self.work.routine.body, region)
            self.work.writer.begin_procedure(region)
            return
        self.serial.in_serial(self.work.routine.body)

    def _unseen(self) -> None:
        """Accesses that a region or loop makes without naming the array: in statement functions, and in
        procedures that it calls."""
        for function in self.work.routine.functions.values():
            for reference in self.work.touched([function]):
                self.work.wrong(reference.begin, reference.end, "a distributed array in a statement function")
        if (
            self.work.distributions.inside(self.work.routine)
            or id(self.work.routine) not in self.work.distributions.in_regions
        ):
            return
        for reference in self.work.touched(self.work.routine.body):
            if not self.work.arrays[reference.name].dummy:
                reason = (
                    "a distributed array in a procedure that is called inside a parallel region: pass it, or "
                    "in a loop that is shared out write what it does there, or give it elements"
                )
                self.work.wrong(reference.begin, reference.end, reason)

    def _jumps(self) -> None:
        """GOTO out of (or into) a region or a loop that is shared out."""
        labels: dict[str, int] = {}
        for statement in statements(self.work.routine.body):
            if statement.label:
                labels[statement.label] = statement.begin
        for node in walk(self.work.routine.body):
            if not isinstance(node, Construct) or not (node.parallel or node.worksharing):
                continue
            if not self.work.touched([node]):
                continue
            for statement in statements(node.body):
                if statement.kind is not Kind.JUMP:
                    continue
                inner = [
                    loop
                    for loop in walk(node.body)
                    if isinstance(loop, Loop) and loop.begin <= statement.begin < loop.end
                ]
                if statement.jump == "return":
                    self.work.wrong(statement.begin, statement.end, "jumps out of a parallel region")
                elif statement.jump == "goto":
                    targets = statement.targets
                    outside = [
                        t
                        for t in targets
                        if t not in labels or not node.begin <= labels[t] < max(node.end, node.begin)
                    ]
                    if outside or not targets:
                        self.work.wrong(statement.begin, statement.end, "jumps out of a parallel region")
                elif statement.jump == "break" and any(
                    isinstance(inner, Branch) and inner.switch and inner.begin <= statement.begin < inner.end
                    for inner in walk(node.body)
                ):
                    continue  # leaves the switch
                elif statement.jump in ("exit", "break") and len(inner) <= 1 and node.worksharing:
                    self.work.wrong(statement.begin, statement.end, "leaves a loop that is shared out")

    # --- regions ------------------------------------------------------------------------------------

    def region(self, construct: Construct) -> None:
        """A parallel region."""
        found = self.work.touched(construct.body)
        directive = construct.directive
        if not found:
            if construct.worksharing and isinstance(construct.body[0], Statement):
                self.work.wrong(directive.begin, directive.end, "no loop follows")
            self.work.without_arrays([construct])
            return
        name = directive.name
        if name not in ("parallel", "parallel do", "parallel do simd"):
            self.work.wrong(
                directive.begin, directive.end, f"{name.upper()} with distributed arrays is not supported"
            )
            return
        region = Region(self.work.routine, construct, written=self.work.written(construct.body))
        for reference in found:
            if self.work.arrays[reference.name] not in region.arrays:
                region.arrays.append(self.work.arrays[reference.name])
        self.work.clauses(construct, Place.REGION)
        for clause in directive.clause("default"):
            kind = (clause.text or "").strip().lower()
            names = sorted({array.name for array in region.arrays} - directive.listed("shared"))
            if kind in ("private", "firstprivate") and names:
                reason = f"the distributed '{names[0]}' in {kind.upper()}: list it in SHARED"
                self.work.wrong(clause.begin, clause.end, reason)
        for clause in directive.clause("if", "num_threads"):
            word = clause.name.upper()
            self.work.note(clause.begin, f"{word} is dropped: every thread is needed for its part")
        region.private = loop_variables(construct.body, self.work.routine) - table.counters_apart(construct)
        region.private |= directive.listed("private", "firstprivate", "lastprivate", "reduction")
        region.private |= {
            name
            for name, places in self.work.routine.places.items()
            if any(construct.begin <= place < construct.end for place in places)
        }
        region.reductions = _reductions(construct)
        sums: list[Reduction] = []
        if construct.worksharing:
            loop = construct.body[0]
            if not isinstance(loop, Loop):
                self.work.wrong(directive.begin, directive.end, "no loop follows")
                return
            region.private |= set(table.counters(construct))
            around = self.loops.share_out(construct, loop, region)
            sums = self.ranks.atomic_sums(loop, region)
            self.ranks.seen_by_one_rank(loop, region, frozenset(one.name for one in sums))
            inside = around.exchange + around.setup, around.left + around.behind
            self.work.writer.begin_region(region, construct, *inside)
            if around.last:
                before, behind = self.work.writer.around_last(around.last, construct)
                self.work.before(construct.begin, before)
                self.work.after(construct.end, behind, construct.begin)
        else:
            if self.work.mpi:
                sums = self.ranks.once_a_rank(construct, region)
                region.added_up = frozenset(one.name for one in sums)
            self.in_region(construct.body, region)
            self.work.writer.begin_region(region, construct, [], [])
        if self.work.mpi:
            self._mpi_region(construct, sums)

    def _mpi_region(self, construct: Construct, sums: Sequence[Reduction]) -> None:
        found = [*_reductions(construct), *sums]
        if found:
            start, stop = self.work.writer.reductions(found)
            self.work.before(construct.begin, start)
            self.work.after(construct.end, stop, construct.begin)

    def in_region(self, nodes: Sequence[Node], region: Region) -> None:
        """Statements of a parallel region, which every thread runs."""
        pending: list[d.Directive] = []
        for node in nodes:
            if isinstance(node, Executable):
                if isinstance(node.directive, d.Redistribute):
                    self.work.wrong(node.begin, node.end, "REDISTRIBUTE inside a parallel region")
                else:
                    pending.append(node.directive)
                continue
            touches = self.work.touched([node])
            if isinstance(node, Construct):
                self._region_construct(node, region, bool(touches))
                pending = []
                continue
            if pending and isinstance(node, Loop):
                first = pending[0].source
                self.work.problems.append(
                    Problem(first.position, first.text, "the loop that follows is not shared out by OpenMP")
                )
                pending = []
            if not touches:
                if isinstance(node, Loop | Branch) and any(isinstance(n, Construct) for n in walk([node])):
                    self._sequential(node, region)
                else:
                    for statement in statements([node]):
                        self.ranks.seen_by_one_rank(statement, region)
                    self.work.forget(node)
                continue
            if isinstance(node, Loop | Branch):
                self._sequential(node, region)
            else:
                self._region_statement(node, region)
        for directive in pending:
            self.work.problems.append(directive.source.problem("no loop follows"))

    def _sequential(self, node: Loop | Branch, region: Region) -> None:
        """A loop or branch that all threads run."""
        if isinstance(node, Loop) and any(r.name in self.work.arrays for r in node.head.references):
            if node.variable is None:
                self.serial.head(
                    node,
                    node.head,
                    "a distributed array in the condition of a loop that all threads run",
                    may_call=False,
                )
            self._region_reads(node.head, region)
        heads = [head for head, _ in node.arms] if isinstance(node, Branch) else []
        for head in heads:
            if any(r.name in self.work.arrays for r in head.references):
                if head is not heads[0]:
                    self.work.wrong(
                        head.begin,
                        head.end,
                        "a distributed array in a later condition: read it into a variable",
                    )
                self._region_reads(head, region)
        before = region.uneven
        region.uneven |= self._differing(region).uneven(node)
        for body in self.serial.bodies(node):
            self.in_region(body, region)
        region.uneven = before

    def _differing(self, region: Region) -> Differing:
        """What is not the same in all threads."""
        if region.differing is None:
            if region.construct is not None:
                region.differing = of_region(self.work.routine, region.construct)
            else:
                known = self.work.distributions
                every = [one for unit in known.units for one in unit.routines]
                region.differing = of_procedure(self.work.routine, every, known.inside)
        return region.differing

    def _region_construct(self, node: Construct, region: Region, touches: bool) -> None:
        directive = node.directive
        kind = whole(node) if touches else None
        if kind is not None and self._by_one_thread(node, region, kind):
            return
        if node.worksharing:
            loop = node.body[0]
            if not touches:
                self.work.forget(node)
                self.work.without_arrays([node])
                return
            if not isinstance(loop, Loop):
                self.work.wrong(directive.begin, directive.end, "no loop follows")
                return
            self.work.clauses(node, Place.LOOP)
            # Behind the loop, the same names are those of what the region shares.
            copied = directive.listed("private", "firstprivate", "lastprivate", "reduction")
            copied = (copied | set(table.counters(node))) - region.private
            last = directive.listed("lastprivate") & copied
            of_region = region.reductions
            region.passed |= copied
            region.private |= copied
            region.reductions = [*of_region, *_reductions(node)]
            around = self.loops.share_out(node, loop, region)
            waits = not directive.clause("nowait") and not (node.closing and node.closing.clause("nowait"))
            # In a procedure that is called in regions, each thread may have a variable of its own.
            sums = self.ranks.atomic_sums(loop, region) if region.construct is not None else []
            self.ranks.seen_by_one_rank(loop, region, frozenset(one.name for one in sums))
            region.reductions = of_region
            region.private -= last
            barrier = waits and self.work.shares(node, region)
            region.private -= copied
            combined = [*_reductions(node), *sums] if self.work.mpi else []
            self.work.writer.worksharing(region, node, loop, around, barrier, combined)
            return
        if directive.name in ("single", "master", "masked"):
            self.work.forget(node) if not touches else self.singles.single(node, region)
            return
        if not touches:
            if directive.name in ("critical", "atomic", "ordered"):
                self.ranks.seen_by_one_rank(node, region, region.added_up)
            self.work.forget(node)
            return
        if directive.name == "parallel" or node.parallel:
            self.work.wrong(
                directive.begin, directive.end, "a parallel region inside another, with distributed arrays"
            )
        elif directive.name in ("critical", "atomic"):
            self.work.wrong(
                directive.begin,
                directive.end,
                f"distributed arrays in {directive.name.upper()}: every thread reaches its own part only",
            )
        else:
            self.work.wrong(
                directive.begin,
                directive.end,
                f"{directive.name.upper()} with distributed arrays is not supported",
            )

    def _by_one_thread(self, node: Construct, region: Region, kind: str) -> bool:
        """A construct inside a region whose work is one thread's, on the gathered arrays."""
        closed = self.work.source.form is d.Form.C or node.closing is not None
        inner = {n.directive.name for n in walk(node.body) if isinstance(n, Construct)} - OF_MANY
        if (
            not closed
            or inner
            or not one_thread_can(node)
            or lists_arrays(node.directive, set(self.work.arrays))
        ):
            return False
        text = f"{kind} inside a region: one thread runs it, on the gathered arrays"
        begin, end = node.directive.begin, node.directive.end
        self.work.distributions.notes.append(self.work.source.problem(begin, end, text))
        if isinstance(node.body[0], Loop):
            self.work.planned.add(id(node.body[0]))
        self.work.writer.as_single(node)
        self.singles.on_whole(node, self.work.touched(node.body), region)
        return True

    # --- statements that all threads run ------------------------------------------------------------

    def _region_statement(self, statement: Statement, region: Region) -> None:
        if statement.swap:
            reason = "distributed arrays change places in a parallel region: do it outside"
            self.work.wrong(statement.begin, statement.end, reason)
        passed = self.work.passes_parts(statement)
        for reference in passed:
            self.work.writer.pass_part(reference, self.work.arrays[reference.name])
        if passed:
            self.work.fresh = Fresh()
        elements = [r for r in statement.references if r.name in self.work.arrays and r not in passed]
        for reference in elements:
            if not self.work.reads_elements(reference):
                reason = "every thread of the region would do this: put it into a SINGLE construct"
                self.work.wrong(reference.begin, reference.end, reason)
                return
        if elements:
            self._region_reads(statement, region)
        self.ranks.seen_by_one_rank(statement, region)
        self.work.forget(statement)

    def _region_reads(self, statement: Statement, region: Region) -> None:
        """Elements that every thread reads: broadcast before the statement."""
        sites = [Site(r, [], False) for r in statement.references if r.name in self.work.arrays]
        for site in sites:
            if not self.work.reads_elements(site.reference):
                self.work.wrong(
                    site.reference.begin,
                    site.reference.end,
                    "a whole distributed array, read by every thread",
                )
                return
        if region.uneven:
            reason = "threads may come here differently often, and all of them take part in bringing elements"
            self.work.wrong(statement.begin, statement.end, f"{reason}: read them before")
            return
        if crowded(self.work.routine, statement, statement, lambda _: False):
            reason = "elements that every thread reads are brought before: put the statement in braces"
            self.work.wrong(statement.begin, statement.end, f"{reason}, on lines of their own")
            return
        sites = [site.sectioned(self.work.arrays[site.reference.name].rank) for site in sites]
        varying = frozenset(self.work.arrays) | self._differing(region).names
        found = self.exchange.broadcasts(sites, varying)
        self.work.steps.append(ReadPlan(self.work.place(statement.begin), self.work.routine.name, found))
        self.work.before(statement.begin, broadcast_lines(self.work.writer, region, found))


def _reductions(construct: Construct) -> list[Reduction]:
    return reductions_of(construct.directive.clause("reduction"))
