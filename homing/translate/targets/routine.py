"""One routine on its way into parts: problems, explanations, edits, and what every part has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from homing.translate.directives import model as d
from homing.translate.openmp import reductions_of
from homing.translate.plan import clauses as table
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.clauses import Place
from homing.translate.plan.effects import UNSEEN, What
from homing.translate.plan.model import AnewPlan, Box, Home, LoopPlan, NotePlan, Schedule, Step
from homing.translate.positions import Position, Problem
from homing.translate.tree import (
    CLASSES,
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    references,
    statements,
    walk,
    written_in,
    written_in_all,
)
from homing.translate.write.writer import Region, Writer

#: Fortran's largest label: those that are put in are counted down from it.
_LARGEST_LABEL = 99999


@dataclass
class Fresh:
    """The boxes of each array that every part has since the last write."""

    boxes: dict[str, set[tuple[object, ...]]] = field(default_factory=dict)
    names: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)

    def has(self, box: Box) -> bool:
        return box.key() in self.boxes.get(box.array, set())

    def add(self, box: Box) -> None:
        self.boxes.setdefault(box.array, set()).add(box.key())
        self.names[box.key()] = box.names()

    def wrote(self, names: Iterable[str]) -> None:
        """These variables have new values."""
        changed = frozenset(names)
        for name in changed:
            self.boxes.pop(name, None)
        for kept in self.boxes.values():
            kept.difference_update({key for key in kept if self.names[key] & changed})

    def copy(self) -> Fresh:
        return Fresh({name: set(keys) for name, keys in self.boxes.items()}, dict(self.names))


class Work:
    """One routine, its distributed arrays and the edits so far. Problems are collected; what was edited is of
    no use when there are any."""

    def __init__(
        self,
        routine: Routine,
        distributions: Distributions,
        writer: Writer,
        mpi: bool,
        steps: list[Step],
        target: str = "",
    ) -> None:
        self.routine = routine
        self.source = routine.source
        self.distributions = distributions
        self.arrays = dict(distributions.of(routine))  # REDISTRIBUTE changes it on the way
        self.writer = writer
        self.mpi = mpi
        self.target = target or ("mpi" if mpi else "spmd")
        self.steps = steps
        self.problems: list[Problem] = []
        self.planned: set[int] = set()  # loops, by id
        self.fixed_home: dict[int, tuple[tuple[int, str], ...]] = {}  # by the loop's id: dimension, subscript
        self.fresh = Fresh()
        self._labels = _spare_labels(self.source.text)

    def spare_label(self) -> str:
        """A label of Fortran that stands nowhere in the file; another one each time."""
        return next(self._labels)

    def wrong(self, begin: int, end: int, reason: str) -> None:
        problem = self.source.problem(begin, end, reason)
        if problem not in self.problems:
            self.problems.append(problem)

    def place(self, offset: int) -> Position:
        """Where the user finds what stands there."""
        return self.source.place(offset)

    def note(self, offset: int, reason: str) -> None:
        """What is done otherwise than the program says."""
        self.steps.append(NotePlan(self.place(offset), self.routine.name, reason))

    def loop_plan(self, construct: Construct, loop: Loop, schedule: Schedule, reason: str = "") -> LoopPlan:
        """A loop that OpenMP shares out, with what its head and its clauses say."""
        listed = construct.directive.listed("private", "firstprivate", "lastprivate", "linear")
        counters = {inner.variable for inner in walk([loop]) if isinstance(inner, Loop)}
        self.planned.add(id(loop))
        return LoopPlan(
            self.place(loop.begin),
            (self.place(construct.begin).line, self.place(max(loop.end - 1, loop.begin)).line),
            self.routine.name,
            schedule,
            loop.variable,
            loop.first.text if loop.first else "",
            loop.last.text if loop.last else "",
            loop.step.replace(" ", ""),
            private=tuple(sorted(listed - counters)),
            reductions=tuple(
                (one.operator, one.name) for one in reductions_of(construct.directive.clause("reduction"))
            ),
            reason=reason,
        )

    def kept_loops(self, touching: str = "") -> None:
        """The loops that OpenMP shares out as it did. touching: why those do with distributed arrays; empty:
        they are refused."""
        for node in walk(self.routine.body):
            loop = node.body[0] if isinstance(node, Construct) and node.worksharing and node.body else None
            if not isinstance(node, Construct) or not isinstance(loop, Loop) or id(loop) in self.planned:
                continue
            touched = bool(self.touched([loop]))
            schedule = Schedule.REFUSED if touched and not touching else Schedule.KEPT
            reason = touching if touched else "touches no distributed array"
            self.steps.append(self.loop_plan(node, loop, schedule, reason))

    def refused_loop(self, construct: Construct, loop: Loop, problems: Sequence[Problem]) -> LoopPlan:
        return self.loop_plan(construct, loop, Schedule.REFUSED, problems[0].reason if problems else "")

    def without_arrays(self, nodes: Sequence[Node]) -> None:
        """Directives of loops that touch no distributed array."""
        for node in walk(list(nodes)):
            if isinstance(node, Construct) and node.homing and not self.on_threads(node):
                for directive in node.homing:
                    reason = "the loop touches no distributed array that this routine knows"
                    self.problems.append(directive.source.problem(reason))
            elif isinstance(node, Executable) and not isinstance(node.directive, d.Redistribute):
                reason = "the loop that follows is not shared out by OpenMP"
                self.problems.append(node.directive.source.problem(reason))

    def on_threads(self, node: Construct) -> bool:
        """Iterations on the threads that AFFINITY names, if it names any."""
        threads = [one for one in node.homing if isinstance(one, d.ThreadAffinity)]
        loop = node.body[0] if node.body else None
        if not threads or not node.worksharing:
            return False
        if not isinstance(loop, Loop) or loop.variable is None:
            reason = (loop.unrolled_reason if isinstance(loop, Loop) else None) or "no loop follows"
            self.wrong(node.directive.begin, node.directive.end, reason)
            return True
        for other in node.homing:
            if other is not threads[0]:
                reason = "the loop's iterations go to threads already"
                self.problems.append(other.source.problem(reason))
        self.clauses(node, Place.THREADS)
        thread = threads[0].thread.text
        plan = self.loop_plan(node, loop, Schedule.THREAD)
        plan = replace(plan, why=Home.THREAD, thread=thread.lower() if self.source.form.fortran else thread)
        self.steps.append(plan)
        self.writer.on_thread(node, loop, plan)
        return True

    def clauses(self, node: Construct, place: Place) -> None:
        """Say which clauses of a construct cannot be kept."""
        for clause, reason in table.problems(node, place, self.target):
            self.wrong(clause.begin, clause.end, reason)
        for clause in node.directive.clauses:
            for variable in sorted(node.directive.listed(clause.name) & set(self.arrays)):
                if clause.name in table.ON_DATA:
                    reason = f"the distributed '{variable}' in {clause.name.upper()}"
                    self.wrong(node.directive.begin, node.directive.end, reason)

    def touched(self, nodes: Sequence[Node]) -> list[Reference]:
        return [r for r in references(list(nodes)) if r.name in self.arrays]

    def reads_elements(self, reference: Reference) -> bool:
        """Does it read elements and nothing else? In Fortran, a bare name does that no procedure gets."""
        if reference.access is not Access.READ:
            return False
        return reference.subscripts is not None or (
            self.source.form.fortran and reference.argument_of is None
        )

    def seen_by_others(
        self, reference: Reference, node: Loop | Construct | Statement, region: Region
    ) -> bool:
        """Is it a variable that other threads see, too: neither private nor a distributed array?"""
        if reference.name in self.arrays or reference.name in region.private:
            return False
        return not self.writer.is_private(node, reference)

    def written(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Whatever the nodes write. What is passed on counts where the procedure writes it or is not seen."""
        acts = list(self.distributions.effects.acts(self.routine, nodes))
        found = frozenset(act.name for act in acts if act.what is What.WRITE)
        if any(act.what is What.UNKNOWN and act.name == CLASSES for act in acts):  # also in what is called
            found |= {one.name for one in references(list(nodes))}
        if any(act.what in UNSEEN or act.pointer for act in acts):
            return found | written_in_all(nodes)
        return found

    def shares(self, node: Construct, region: Region) -> bool:
        """Must the threads wait for each other behind the construct: does it write what others see, or read
        what others may write behind it, or is it heard outside? Distributed arrays need no waiting: only
        their own part reaches them. Nor must it keep apart what stands before it and behind it.
        """
        if region.construct is None or self._told_outside(region.construct, region):
            return True
        for act in self.distributions.effects.acts(self.routine, node.body):
            if act.through or act.pointer or act.what is not What.WRITE:
                return True
        for reference in references(node.body):
            if self._may_mean(reference, region):
                return True
            if not self.seen_by_others(reference, node, region):
                continue
            if reference.access is not Access.READ or reference.name in region.written:
                return True
            if self._by_another_name(reference.name, region):
                return True
        return False

    def _told_outside(self, construct: Construct, region: Region) -> bool:
        """Do threads tell each other something outside of the region's shared loops: is there what one writes
        and others see? Each loop there keeps apart what is used before it and behind it."""
        outside = list(_outside(construct.body))
        acts = self.distributions.effects.acts(self.routine, outside)
        if any(act.what in UNSEEN or act.through or act.pointer for act in acts):
            return True
        return any(
            (reference.name in region.written and self.seen_by_others(reference, construct, region))
            or self._may_mean(reference, region)
            for reference in references(outside)
        )

    def _may_mean(self, reference: Reference, region: Region) -> bool:
        """C: is it a pointer, a reference or an object, which may mean other variables that are written?"""
        known = self.routine.lookup(reference.name)
        around = region.construct
        if self.source.form is not d.Form.C or around is None:
            return False
        if known is None or known[1].number or reference.name in self.arrays:
            return False
        written = region.written - self.arrays.keys() - frozenset(region.private)
        places = {one: self.routine.places.get(one, []) for one in written}
        return not all(any(around.begin <= at < around.end for at in found) for found in places.values())

    def _by_another_name(self, name: str, region: Region) -> bool:
        """May the region write a variable that the loop reads through a pointer or a reference?"""
        written = region.written - self.arrays.keys()
        return self.distributions.other_names.may_be_written(self.routine, name, written)

    def redistribute(self, node: Executable) -> None:
        step = self.distributions.redistributions(self.routine).steps.get(id(node))
        if step is None:  # what is wrong has been said
            return
        old, new = step
        self.writer.redistribute(node, old, new)
        self.arrays[new.name] = new
        self.fresh = Fresh()
        place = self.place(node.begin)
        self.steps.append(AnewPlan(place, self.routine.name, new.name, tuple(new.dimensions)))

    def forget(self, node: Node) -> None:
        """What the node may change is not fresh behind it (and inside it, where it is a loop)."""
        for statement in statements([node]):
            names = {r.name for r in statement.references} | set(statement.calls)
            # A procedure may write what its caller does not name; a jump to a label comes from anywhere.
            if statement.kind is Kind.CALL or statement.label or names & self.distributions.routines.keys():
                self.fresh = Fresh()
                return
        self.fresh.wrote(written_in(node))

    def before(self, offset: int, lines: Sequence[str], indent_of: int | None = None) -> None:
        """Insert lines before the line of an offset, indented like it."""
        indent = self.source.indent(offset if indent_of is None else indent_of)
        self.writer.edits.insert_lines(
            self.source.line_start(offset), [self.writer.indented(indent, x) for x in lines]
        )

    def after(self, offset: int, lines: Sequence[str], indent_of: int) -> None:
        """Insert lines behind the line of an offset."""
        indent = self.source.indent(indent_of)
        at = self.source.next_line(max(offset - 1, 0))
        self.writer.edits.insert_lines(at, [self.writer.indented(indent, x) for x in lines])

    def lifetime(self, statement: Statement) -> bool:
        return statement.kind in (Kind.ALLOCATE, Kind.DEALLOCATE) and any(
            r.name in self.arrays and r.access is Access.WRITE for r in statement.references
        )

    def passes_parts(self, statement: Statement) -> list[Reference]:
        """As `passes`, to procedures that take parts out of what they get: not twice the same."""
        found = self.passes(statement)
        for one, other in combinations(found if self.source.form is not d.Form.C else (), 2):
            if (one.name, one.argument_of) != (other.name, other.argument_of):
                continue
            if _in_one_call(self.source.text[one.end : other.begin]):
                reason = f"passes the distributed '{one.name}' twice to '{one.argument_of}': pass a copy"
                self.wrong(statement.begin, statement.end, reason)
        return found

    def passes(self, statement: Statement) -> list[Reference]:
        """The distributed arrays that a statement passes to procedures that know about parts."""
        found = []
        for reference in statement.references:
            callee = self.distributions.routines.get(reference.argument_of or "")
            if callee is None or reference.name not in self.arrays:
                continue
            if reference.argument_index >= len(callee.arguments):
                continue
            dummy = callee.arguments[reference.argument_index]
            known = self.distributions.of(callee).get(dummy)
            if known is not None and known.routine is callee:
                found.append(reference)
        return found


def _in_one_call(between: str) -> bool:
    """Are what stands before the text and what stands behind it arguments of one call?"""
    depth = 0
    for char in between:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return True


def _spare_labels(text: str) -> Iterator[str]:
    used = set(re.findall(r"\d+", text))
    yield from (str(label) for label in range(_LARGEST_LABEL, 0, -1) if str(label) not in used)


def _outside(nodes: Iterable[Node]) -> Iterator[Node]:
    """The statements that stand in no loop that OpenMP shares out."""
    for node in nodes:
        if isinstance(node, Construct) and node.worksharing:
            continue
        if isinstance(node, Loop):
            yield node.head
            yield from _outside(node.body)
        elif isinstance(node, Branch):
            for head, body in node.arms:
                yield head
                yield from _outside(body)
        elif isinstance(node, Construct):
            yield from _outside(node.body)
        else:
            yield node
