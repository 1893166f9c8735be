"""The Fortran text of a program in parts (see parts.py for the plan and runtime/homing_parts.h for the
calls).

A distributed array becomes an allocatable with the program's own bounds; every thread holds its part:
in a parallel region it is PRIVATE, and MOVE_ALLOC hands it over from and back to a container that outlives
the region. So the user's subscripts stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.front.implicit import declared
from homing.translate.names import added
from homing.translate.openmp import Reduction, clause_text
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.intents import is_intent_in
from homing.translate.plan.model import LastValues, SinglePlan
from homing.translate.tree import (
    Construct,
    Loop,
    Reference,
    Routine,
    Statement,
    walk,
)
from homing.translate.write.fortran_loops import FortranLoops
from homing.translate.write.writer import PART, Around, Local, Region


class FortranWriter(FortranLoops):
    """Regions and what stands in them."""

    # --- LASTPRIVATE ------------------------------------------------------------------------------------

    def find_last(self, region: Region, last: LastValues) -> list[str]:
        """Before a part's iterations: does it run the last of all?"""
        follow, variable = last.follow, last.variable
        region.add(Local(last.ends))
        value = added(f"hm_final_{variable}")
        region.add(Local(value, like=variable))
        index = self.long(follow.index(value))
        most = f"int(huge({value}), homing_long)"
        runs = f"homing_runs({self.layout(follow.home)}, {PART}, {follow.dimension}, {index}, {most})"
        return [
            f"{last.ends} = 0",
            f"{value} = {last.final}",
            f"if ({last.counted}) {last.ends} = merge(1, 0, {runs})",
        ]

    def keep_last(self, last: LastValues) -> list[str]:
        """Behind a part's iterations."""
        final = added(f"hm_final_{last.variable}")
        lines = [f"{holder} = {value}" for holder, value in last.kept(final)]
        self.holders.update((last.holder(name), name) for name in last.names)
        self.holders["hm_ends_here"] = ""
        return [f"if ({last.ends} == 1) then", *lines, "hm_ends_here = 1", "end if"]

    def around_last(self, last: LastValues, node: Construct) -> tuple[list[str], list[str]]:
        """Before the loop's construct, and behind it."""
        before = ["hm_ends_here = 0"]
        behind = [f"{name} = {last.holder(name)}" for name in last.names]
        behind = ["if (hm_ends_here == 1) then", *behind, "end if"]
        if self.mpi:
            shared = [
                f"call homing_share_last({one}, storage_size({one}), hm_ends_here)" for one in last.shared
            ]
            behind = [*shared, *behind]
        if not node.parallel:
            before = ["!$omp single", *before, "!$omp end single"]
            behind = ["!$omp barrier", "!$omp master", *behind, "!$omp end master", "!$omp barrier"]
        return before, behind

    # --- constructs -------------------------------------------------------------------------------------

    def owner_executes(
        self,
        node: Construct,
        test: str,
        before: Sequence[str],
        lines: Sequence[str],
        behind: Sequence[str],
        barrier: bool,
    ) -> None:
        begin = node.directive.begin
        assert node.closing is not None
        self._lines(self.source.line_start(begin), before, begin)
        self._directive(begin, node.directive.end, f"if ({test}) then")
        self._lines(
            self.source.next_line(node.directive.end), lines, node.body[0].begin if node.body else begin
        )
        self._directive(node.closing.begin, node.closing.end, "end if")
        tail = list(behind)
        if barrier and node.directive.name == "single" and not node.closing.clause("nowait"):
            tail.append("!$omp barrier")
        self._lines(self.source.next_line(node.closing.end), tail, begin)

    def whole_array(self, array: Array) -> str:
        """The gathered array that one thread works on."""
        return added(f"hm_whole_{array.name}")

    def as_single(self, node: Construct) -> None:
        assert node.closing is not None
        data = [clause_text(one) for one in node.directive.clause("private", "firstprivate")]
        self._directive(node.directive.begin, node.directive.end, " ".join(["!$omp single", *data]))
        self._directive(node.closing.begin, node.closing.end, "!$omp end single")
        for inner in walk(node.body):
            if isinstance(inner, Construct):
                self._directive(inner.directive.begin, inner.directive.end, "")
                if inner.closing is not None:
                    self._directive(inner.closing.begin, inner.closing.end, "")

    def single_whole(self, region: Region, node: Construct, plan: SinglePlan) -> str | None:
        arrays = [self.arrays[name] for name in plan.gathered]
        changed = [self.arrays[name] for name in plan.changed]
        if self.inside:
            return (
                "needs more than its owner's elements: not supported in a procedure that is "
                "called inside a region"
            )
        assert node.closing is not None
        before, inside, back, behind = ["!$omp single"], [], [], []
        for array in arrays:
            whole = self.whole_array(array)
            self.locals[whole] = Local(whole, array=array)
            mine = added(f"hm_mine_{array.name}")
            region.add(Local(mine, array=array))
            before.append(f"allocate({whole}({self._whole_bounds(array)}))")
            inside += [f"call move_alloc({array.name}, {mine})", f"call move_alloc({whole}, {array.name})"]
            back += [f"call move_alloc({array.name}, {whole})", f"call move_alloc({mine}, {array.name})"]
        before.append("!$omp end single")
        for array in arrays:
            before.append(
                f"call homing_collect({self.layout(array)}, {PART}, {array.name}, {self.whole_array(array)})"
            )
        before.append("!$omp barrier")
        if self.mpi:
            before += [
                "!$omp master",
                *(f"call homing_share({self.layout(a)}, {self.whole_array(a)})" for a in arrays),
            ]
            before += ["!$omp end master", "!$omp barrier"]
        behind.append("!$omp barrier")
        for array in changed:
            behind.append(
                f"call homing_scatter({self.layout(array)}, {PART}, {array.name}, {self.whole_array(array)})"
            )
        behind += ["!$omp barrier", "!$omp single"]
        behind += [f"deallocate({self.whole_array(array)})" for array in arrays]
        behind.append("!$omp end single")
        begin = node.directive.begin
        self._lines(self.source.line_start(begin), before, begin)
        self._lines(self.source.next_line(node.directive.end), inside, begin)
        self.edits.insert_lines(
            self.source.line_start(node.closing.begin),
            [self.indented(self.source.indent(begin), line) for line in back],
        )
        self._lines(self.source.next_line(node.closing.end), behind, begin)
        return None

    def worksharing(
        self,
        region: Region,
        node: Construct,
        loop: Loop,
        around: Around,
        barrier: bool,
        combined: Sequence[Reduction],
    ) -> None:
        directive = node.directive
        last = around.last
        data = self.loop_clauses(directive, last, self.mpi)
        counters = set(filter(self._perhaps_shared, table.counters(node)))
        if region.construct is not None:
            counters |= set(table.counters(node)) & table.counters_apart(region.construct)
        if alone := counters - directive.listed(*(clause.name for clause in directive.clauses)):
            data.append(f"private({', '.join(sorted(alone))})")
        ahead, later = self.around_last(last, node) if last else ([], [])
        waits = barrier or bool(combined) or bool(directive.clause("reduction"))
        exchange = [*ahead, *around.exchange]
        tail: list[str] = []
        if data:
            # A loop over the parts, one a thread, so that OpenMP itself does what the clauses say.
            clauses = " ".join(data)
            part = region.add(Local("hm_each"))
            opening = f"!$omp do schedule(static, 1) {clauses}"
            inner = [f"do {part} = homing_first_part(), homing_last_part()"]
            tail = [*around.left, "end do", "!$omp end do" + ("" if waits else " nowait")]
        else:
            opening, inner, tail = "", [], list(around.left)
            if waits:
                tail.append("!$omp barrier")
        if combined:
            start, stop = self.reductions(combined)
            exchange = ["!$omp barrier", "!$omp single", *start, "!$omp end single", *exchange]
            tail += ["!$omp master", *stop, "!$omp end master", "!$omp barrier"]
        # Communication first: it has barriers, which may not stand inside the worksharing loop.
        begin = directive.begin
        if opening:
            self._lines(self.source.line_start(begin), exchange, begin)
            self._directive(begin, directive.end, opening)
            self._lines(self.source.next_line(directive.end), inner + around.setup, begin)
        else:
            self._lines(self.source.line_start(begin), exchange, begin)
            self._directive(begin, directive.end, "")
            self._lines(self.source.next_line(directive.end), around.setup, begin)
        if node.closing is not None:
            self._directive(node.closing.begin, node.closing.end, "")
            at = self.source.next_line(node.closing.end)
        else:
            at = self.source.next_line(loop.end - 1)
        self._lines(at, [*tail, *later, *around.behind], begin)
        if not self.inside:
            self.procedures.add(region, node, loop)

    def _perhaps_shared(self, counter: str) -> bool:
        """In a procedure that a region calls: do threads share it, but for the directive of the loop?"""
        found = self.routine.lookup(counter)
        if not self.inside or (found is not None and found[0] is not self.routine):
            return self.inside
        kept = declared(self.routine, counter)
        lives_on = kept is None or kept.initial is not None or bool(kept.attributes & {"save", "data"})
        return lives_on or (kept is not None and kept.storage in ("dummy", "common"))

    def begin_region(
        self, region: Region, construct: Construct, before: Sequence[str], behind: Sequence[str]
    ) -> None:
        directive = construct.directive
        last = directive.listed("lastprivate")
        counters = self._counters(construct)
        kept = self.region_clauses(directive, counters)
        arrays = list(region.arrays)
        for name in sorted({array.name for array, *_ in region.bounds.values()}):
            if self.arrays[name] not in arrays:
                arrays.append(self.arrays[name])
        private = [array.name for array in region.arrays]
        private += [PART, *region.locals, *region.bounds]
        private += sorted((counters | last) - directive.listed("private", "firstprivate", "reduction"))
        if construct.worksharing and isinstance(construct.body[0], Loop):
            self.procedures.add(region, construct, construct.body[0])
        kept.append(f"private({', '.join(private)})")
        # Otherwise the counter of any DO inside is private in all of the region.
        apart = table.counters_apart(construct) - directive.listed(*(one.name for one in directive.clauses))
        if apart and table.shares_all(directive):
            kept.append(f"shared({', '.join(sorted(apart))})")
        kept.append("num_threads(homing_threads())")
        if not table.shares_all(directive):
            shared = [self.container(a) for a in region.arrays] + [self.layout(a) for a in arrays]
            shared += self.holders
            wholes = (self.whole_array(array) for array in region.arrays)
            shared += [whole for whole in wholes if whole in self.locals]
            kept.append(f"shared({', '.join(shared)})")
        begin = directive.begin
        self._directive(begin, directive.end, "!$omp parallel " + " ".join(kept))
        self.works_on_parts = True
        prologue = [f"{PART} = homing_part()"]
        prologue += [f"call move_alloc({self.container(a)}({PART})%part, {a.name})" for a in region.arrays]
        prologue += self._bound_lines(region)
        epilogue = [f"call move_alloc({a.name}, {self.container(a)}({PART})%part)" for a in region.arrays]
        like = construct.body[0].begin if construct.body else begin
        at = self.source.next_line(directive.end)
        indent = self.source.indent(like)
        self.edits.insert_lines(at, [self.indented(indent, x) for x in [*prologue, *before]], first=True)
        closing = construct.closing
        if closing is not None:
            self._directive(closing.begin, closing.end, "!$omp end parallel")
            self.edits.insert_lines(
                self.source.line_start(closing.begin),
                [self.indented(indent, x) for x in [*behind, *epilogue]],
            )
        else:
            end = self.source.next_line(construct.end - 1)
            self._lines(end, [*behind, *epilogue, "!$omp end parallel"], like)
        self._declare_locals(region)

    def _counters(self, region: Construct) -> set[str]:
        """Counters of the region's loops: private without being listed as long as the loops stand in it,
        which those that are moved do not."""
        nodes = list(walk([region]))
        loops = {node.variable for node in nodes if isinstance(node, Loop) and node.variable}
        shared_out = {
            node.body[0].variable
            for node in nodes
            if isinstance(node, Construct) and node.worksharing and isinstance(node.body[0], Loop)
        }
        found = shared_out | (loops - region.directive.listed("shared"))
        found -= table.counters_apart(region)
        scope: Routine | None = self.routine
        while scope is not None and not scope.implicit_none:
            scope = scope.parent
        # Under IMPLICIT NONE a name that is not declared here may be one of a BLOCK construct.
        return {name for name in found if name and (scope is None or self.routine.lookup(name) is not None)}

    def _bound_lines(self, region: Region) -> list[str]:
        lines = []
        for name, (array, dimension, which, _) in region.bounds.items():
            most = f"int(huge({name}), homing_long)"
            found = f"homing_run_{which}({self.layout(array)}, {PART}, {dimension}, {most})"
            lines.append(f"{name} = {self.of_kind(found, name)}")
        for one, i, two, j in sorted(region.together):
            lines.append(f"call homing_together({one}, {i}, {two}, {j})")
        return lines

    def begin_procedure(self, region: Region) -> None:
        self.works_on_parts = True
        lines = [f"{PART} = homing_part()", *self._bound_lines(region)]
        self._lines(self.routine.declarations_end, lines, self._body_like(), first=True)
        self._declare_locals(region)

    def _body_like(self) -> int:
        return self.routine.body[0].begin if self.routine.body else self.routine.declarations_end

    def _declare_locals(self, region: Region) -> None:
        for local in region.locals.values():
            self.locals.setdefault(local.name, local)

    def reductions(self, reductions: Sequence[Reduction]) -> tuple[list[str], list[str]]:
        return self.over_ranks(reductions)

    # --- arguments -------------------------------------------------------------------------------------

    def pass_parts(self, reference: Reference, array: Array) -> None:
        container, layout = self.container(array), self.layout(array)
        begin, word = reference.begin, reference.argument_keyword
        if word is not None:
            begin = self.source.text.lower().rindex(word, 0, begin)
            container, layout = f"{added(f'hm_parts_{word}')}={container}", f"{self.layout(word)}={layout}"
        self.edits.replace(begin, reference.end, f"{container}, {layout}")

    def pass_part(self, reference: Reference, array: Array) -> None:
        if reference.brought is not None:
            handed = self.handed.setdefault(reference.begin, (reference.brought, []))[1]
            handed += [f"{array.name}={array.name}", f"{self.layout(array)}={self.layout(array)}"]
            return
        word = reference.argument_keyword
        name = f"{self.layout(word)}=" if word is not None else ""
        self.edits.replace(reference.end, reference.end, f", {name}{self.layout(array)}")

    def value_before(self, name: str, call: str) -> tuple[list[str], list[str]]:
        # ASSOCIATE knows the type, which may have a kind that is not known by name here.
        return [f"associate ({name} => {call})"], ["end associate"]

    def may_write(self, reference: Reference, callee: Routine | None) -> bool:
        if callee is None:
            return True
        if reference.argument_index >= len(callee.arguments):
            return False
        declaration = callee.declarations.get(callee.arguments[reference.argument_index])
        if declaration is None:
            return True
        return not is_intent_in(callee, declaration)

    def is_private(self, node: Loop | Construct | Statement, reference: Reference) -> bool:
        places = self.routine.places.get(reference.name, [])
        if any(node.begin <= place < node.end for place in places):
            return True
        return self.inside and self.routine.lookup(reference.name) is None
