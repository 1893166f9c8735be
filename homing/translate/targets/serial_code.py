"""Serial code of a program in parts: what touches a distributed array gets the whole of it, gathered for the
time being; what holds parallel regions is translated piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.translate.directives import model as d
from homing.translate.plan.allocation import unsteady
from homing.translate.plan.array import Array
from homing.translate.plan.model import AnewPlan, Schedule, SerialPlan
from homing.translate.plan.reached import called
from homing.translate.plan.reference_text import why_not_followed
from homing.translate.targets.routine import Fresh
from homing.translate.targets.single_owner import SingleOwner
from homing.translate.targets.whole_constructs import lists_arrays, whole
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Statement,
    statements,
    walk,
)
from homing.translate.write.lines_apart import crowded

#: Constructs that stand inside a parallel region.
REGION_DIRECTIVES = frozenset({"barrier", "single", "master", "masked", "critical", "flush", "atomic"})


class SerialCode(SingleOwner):
    """Statements outside parallel regions."""

    def region(self, construct: Construct) -> None:
        """A parallel region in it."""
        raise NotImplementedError

    def _parallel_inside(self, node: Node) -> bool:
        """Does the node hold something that must be translated itself, so that it cannot be wrapped whole?"""
        for inner in walk([node]):
            if isinstance(inner, Construct):
                return True
            if isinstance(inner, Executable):
                return True
            if isinstance(inner, Statement) and (self._lifetime(inner) or self._passes(inner)):
                return True
        return bool(self._reaches(node))

    def _reaches(self, node: Node) -> list[str]:
        """Procedures that the node calls, and that work on distributed arrays of other scopes."""
        found = called([node], self.distributions.routines)
        if self.routine.result == self.routine.name:  # which is a variable here
            found = [one for one in found if one is not self.routine]
        return [one.name for one in found if id(one) in self.distributions.reaching]

    def in_serial(self, nodes: Sequence[Node]) -> None:
        """Statements outside parallel regions: runs of those that touch distributed arrays are wrapped."""
        run: list[Node] = []
        last_touch = -1

        def flush() -> None:
            nonlocal run, last_touch
            if last_touch >= 0:
                self._wrap(run[: last_touch + 1])
            run, last_touch = [], -1

        for node in nodes:
            kept = self._kept_whole(node)
            if self._parallel_inside(node) and not kept:
                flush()
                self._serial_node(node)
                continue
            self.forget(node)
            touches = self.touched([node])
            leaves = isinstance(node, Statement) and node.kind is Kind.JUMP
            if leaves and not touches:
                flush()
                continue
            if touches or run:
                run.append(node)
                if touches:
                    last_touch = len(run) - 1
        flush()

    def _kept_whole(self, node: Node) -> bool:
        """A parallel construct that stays what it is, on the gathered arrays; it is said."""
        kind = whole(node) if isinstance(node, Construct) and node.parallel else None
        if not isinstance(node, Construct) or kind is None or not self.touched([node]):
            return False
        parts = any(self._lifetime(one) or self._passes(one) for one in statements([node]))
        anew = any(
            isinstance(n, Executable) and isinstance(n.directive, d.Redistribute) for n in walk([node])
        )
        if parts or anew or self._reaches(node) or lists_arrays(node.directive, set(self.arrays)):
            return False
        text = f"{kind}: runs as OpenMP says, on the gathered arrays"
        begin, end = node.directive.begin, node.directive.end
        self.distributions.notes.append(self.source.problem(begin, end, text))
        loop = node.body[0] if node.body else None
        if isinstance(loop, Loop):
            self.steps.append(self.loop_plan(node, loop, Schedule.KEPT, text))
        return True

    def _serial_node(self, node: Node) -> None:
        if isinstance(node, Construct):
            if node.parallel:
                self.region(node)
            elif self.touched([node]):
                if node.worksharing or node.directive.name in REGION_DIRECTIVES:
                    # An orphaned construct in a routine that is called serially, with a team of one.
                    self.wrong(
                        node.directive.begin,
                        node.directive.end,
                        "outside of a parallel region, as far as the files given show: pass the "
                        "arrays on as arguments",
                    )
                else:
                    self.wrong(
                        node.directive.begin, node.directive.end, "not supported with distributed arrays"
                    )
            return
        if isinstance(node, Loop):
            self._no_touch(node.head, "a loop's bounds")
            for body in self.bodies(node):
                self.in_serial(body)
        elif isinstance(node, Branch):
            for head, _ in node.arms:
                if any(r.name in self.arrays for r in head.references):
                    self.wrong(
                        head.begin,
                        head.end,
                        "a distributed array decides about parallel code: read it into a variable before",
                    )
            for body in self.bodies(node):
                self.in_serial(body)
        elif isinstance(node, Executable):
            if isinstance(node.directive, d.Redistribute):
                self.redistribute(node)
        elif self._lifetime(node):
            self.writer.lifetime(
                node, [self.arrays[r.name] for r in node.references if r.name in self.arrays]
            )
        else:
            passed = self._passes(node)
            others = [r for r in node.references if r.name in self.arrays and r not in passed]
            reached = self._reaches(node)
            if others and reached and not passed:
                reason = f"'{reached[0]}' finds the arrays in parts, and elements stand in the same statement"
                self.wrong(node.begin, node.end, reason)
            elif others:
                self.wrong(node.begin, node.end, "parts of the array and elements of it in one statement")
            for reference in passed:
                self.writer.pass_parts(reference, self.arrays[reference.name])
            self.fresh = Fresh()

    def bodies(self, node: Loop | Branch) -> Iterator[list[Node]]:
        """What may run, or not, and several times; behind it is fresh what no way through it changes."""
        if isinstance(node, Loop):
            self.forget(node)
        start, arrays = self.fresh.copy(), dict(self.arrays)
        for body in [node.body] if isinstance(node, Loop) else [body for _, body in node.arms]:
            self.fresh, self.arrays = start.copy(), dict(arrays)
            yield body
        self.fresh = start
        self.forget(node)

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

    def _no_touch(self, statement: Statement, what: str) -> None:
        for reference in statement.references:
            if reference.name in self.arrays:
                self.wrong(
                    statement.begin,
                    statement.end,
                    f"a distributed array in {what}: read it into a variable before",
                )

    def _wrap(self, nodes: Sequence[Node]) -> None:
        """Gather before the nodes, release behind them."""
        found = self.touched(nodes)
        arrays: list[Array] = []
        changed: list[Array] = []
        for reference in found:
            array = self.arrays[reference.name]
            if reference.access is Access.OTHER:
                self.wrong(reference.begin, reference.end, why_not_followed(self.source, reference))
            if array not in arrays:
                arrays.append(array)
            if reference.access is not Access.READ and array not in changed:
                changed.append(array)
            callee = self.distributions.routines.get(reference.argument_of or "")
            if reference.access is Access.READ and reference.argument_of and array not in changed:
                # A function that is not known may write what it is given.
                function = callee is not None or reference.argument_of not in self.arrays
                if function and self.writer.may_write(reference, callee):
                    changed.append(array)
        for statement in statements(list(nodes)):
            if statement.kind is Kind.JUMP and statement.jump in ("return", "goto"):
                self.wrong(
                    statement.begin,
                    statement.end,
                    "leaves code that works on a gathered array: move the jump behind it",
                )
        first, last = nodes[0], nodes[-1]
        if crowded(self.routine, first, last, self._parallel_inside):
            where = "in braces of its own" if self.source.form is d.Form.C else "on lines of its own"
            reason = (
                f"works on whole arrays beside code that works on parts: put it {where}, one statement a line"
            )
            self.wrong(first.begin, last.end, reason)
        anew = unsteady(self.routine, nodes, self.arrays, self.distributions.routines)
        for array in anew:
            if array.dummy:
                reason = f"may allocate or free '{array.name}', which the caller's distribution is of"
                self.wrong(first.begin, last.end, reason)
        self.before(first.begin, self.writer.gather(arrays, anew))
        self.after(last.end, self.writer.release(arrays, changed, anew), first.begin)
        self.fresh.wrote(array.name for array in changed)
        gathered, dealt_out, made = (tuple(one.name for one in each) for each in (arrays, changed, anew))
        place = self.place(first.begin)
        self.steps.append(SerialPlan(place, self.routine.name, gathered, dealt_out, made))
