"""Serial code of a program in parts: what touches a distributed array gets the whole of it, gathered for the
time being; what holds parallel regions is translated piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from homing.translate.directives import model as d
from homing.translate.names import added
from homing.translate.plan.allocation import unsteady
from homing.translate.plan.array import Array
from homing.translate.plan.model import Schedule, SerialPlan
from homing.translate.plan.reached import called
from homing.translate.plan.reference_text import why_not_followed
from homing.translate.targets.c_heads import condition
from homing.translate.targets.called_before import Call, CalledBefore
from homing.translate.targets.heads import Heads
from homing.translate.targets.leaving import (
    deal_out_before_jumps,
    entered,
    label_before,
    pieces,
    reaching,
)
from homing.translate.targets.routine import Fresh, Work
from homing.translate.targets.whole_constructs import lists_arrays, whole
from homing.translate.tree import (
    CASE,
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Reference,
    Statement,
    Swap,
    leads,
    statements,
    walk,
)
from homing.translate.write.lines_apart import crowded

_FORGETS = re.compile(r"\s*(\w+)\s*=\s*(?:NULL|nullptr|0|\(\s*void\s*\*\s*\)\s*0)\s*;?\s*")
#: Constructs that stand inside a parallel region.
REGION_DIRECTIVES = frozenset({"barrier", "single", "master", "masked", "critical", "flush", "atomic"})


class SerialCode:
    """Statements outside parallel regions."""

    def __init__(self, work: Work, region: Callable[[Construct], None]) -> None:
        """region: translates a parallel region in it."""
        self.work = work
        self.region = region
        self.heads = Heads(work)
        self.values = 0  # of functions that are called before a statement, so far

    def _parallel_inside(self, node: Node) -> bool:
        """Does the node hold something that must be translated itself, so that it cannot be wrapped whole?"""
        if any(isinstance(inner, Construct | Executable) for inner in walk([node])):
            return True
        if any(
            inner.swap or self.work.lifetime(inner) or self.work.passes(inner) for inner in statements([node])
        ):
            return True
        if isinstance(node, Branch | Loop) and any(  # C: in a block of its own
            node.begin <= array.declaration.begin < node.end
            for array in self.work.arrays.values()
            if array.routine is self.work.routine
        ):
            return True
        once = isinstance(node, Branch) and not any(isinstance(inner, Loop) for inner in walk([node]))
        if once and any(self._returns_value(inner) for inner in statements([node])):
            return True
        return bool(self._reaches(node))

    def _apart(self, node: Node) -> bool:
        """May it not stand on a line with what is wrapped? What is put behind a jump is not reached."""
        jump = isinstance(node, Statement) and node.kind is Kind.JUMP
        return jump or self._parallel_inside(node)

    def _reaches(self, node: Node) -> list[str]:
        """Procedures that the node calls, and that work on distributed arrays of other scopes."""
        found = called([node], self.work.distributions.routines)
        if self.work.routine.result == self.work.routine.name:  # which is a variable here
            found = [one for one in found if one is not self.work.routine]
        return [one.name for one in found if id(one) in self.work.distributions.reaching]

    def in_serial(self, nodes: Sequence[Node]) -> None:
        """Statements outside parallel regions: runs of those that touch distributed arrays are wrapped."""
        run: list[Node] = []
        last_touch = -1

        def flush() -> None:
            nonlocal run, last_touch
            if last_touch >= 0:
                self._wrap_run(run)
            run, last_touch = [], -1

        for node in nodes:
            if isinstance(node, Statement) and (node.label == CASE or self._forgets(node)):
                flush()
                continue
            if isinstance(node, Statement) and self._returns_value(node):
                flush()
                self._return_value(node)
                continue
            kept = self._kept_whole(node)
            if self._parallel_inside(node) and not kept:
                flush()
                self._serial_node(node)
                continue
            self.work.forget(node)
            touches = self.work.touched([node])
            leaves = isinstance(node, Statement) and node.kind is Kind.JUMP
            if leaves and not touches:
                flush()
                continue
            if isinstance(node, Statement) and node.form == "arithmetic if" and touches:
                flush()
                if self.heads.read_before(node):
                    continue
            if touches or run:
                run.append(node)
                if touches:
                    last_touch = len(run) - 1
        flush()

    def _wrap_run(self, run: Sequence[Node]) -> None:
        """Wrap what touches distributed arrays, in pieces where something leads into it."""
        for piece in pieces(self.work, run):
            touching = [at for at, node in enumerate(piece) if self.work.touched([node])]
            if touching:
                behind = touching[-1] + 1
                self._wrap(piece[touching[0] : behind + reaching(piece[:behind], piece[behind:])])

    def _forgets(self, statement: Statement) -> bool:
        """C: `p = NULL`, which gives a distributed array no other memory."""
        found = _FORGETS.fullmatch(statement.code) if self.work.source.form is d.Form.C else None
        return found is not None and found[1] in self.work.arrays

    def _kept_whole(self, node: Node) -> bool:
        """A parallel construct that stays what it is, on the gathered arrays; it is said."""
        kind = whole(node) if isinstance(node, Construct) and node.parallel else None
        if not isinstance(node, Construct) or kind is None or not self.work.touched([node]):
            return False
        parts = any(self.work.lifetime(one) or self.work.passes(one) for one in statements([node]))
        anew = any(
            isinstance(n, Executable) and isinstance(n.directive, d.Redistribute) for n in walk([node])
        )
        if parts or anew or self._reaches(node) or lists_arrays(node.directive, set(self.work.arrays)):
            return False
        text = f"{kind}: runs as OpenMP says, on the gathered arrays"
        begin, end = node.directive.begin, node.directive.end
        self.work.distributions.notes.append(self.work.source.problem(begin, end, text))
        loop = node.body[0] if node.body else None
        if isinstance(loop, Loop):
            self.work.steps.append(self.work.loop_plan(node, loop, Schedule.KEPT, text))
        return True

    def _serial_node(self, node: Node) -> None:
        if isinstance(node, Construct):
            if node.parallel:
                self.region(node)
            elif self.work.touched([node]):
                if node.worksharing or node.directive.name in REGION_DIRECTIVES:
                    # An orphaned construct in a routine that is called serially, with a team of one.
                    self.work.wrong(
                        node.directive.begin,
                        node.directive.end,
                        "outside of a parallel region, as far as the files given show: pass the "
                        "arrays on as arguments",
                    )
                else:
                    self.work.wrong(
                        node.directive.begin, node.directive.end, "not supported with distributed arrays"
                    )
            return
        if isinstance(node, Loop):
            if not self.heads.read_before(node, self._reaches(node.head)):
                self.head(node, node.head, "a distributed array in a loop's bounds")
            for body in self.bodies(node):
                self.in_serial(body)
        elif isinstance(node, Branch):
            known = self.heads.read_before(node, self._reaches(node.arms[0][0]))
            for head, _ in node.arms[known:]:
                what = "a distributed array decides about parallel code"
                if head.form == "associate":
                    what = "ASSOCIATE around parallel code names a value or piece of a distributed array"
                self.head(node, head, what, not node.masked)
            for body in self.bodies(node):
                self.in_serial(body)
        elif isinstance(node, Executable):
            if isinstance(node.directive, d.Redistribute):
                self.work.redistribute(node)
        elif node.swap:
            self._swap(node, node.swap)
        elif self.work.lifetime(node):
            self.work.writer.lifetime(
                node, [self.work.arrays[r.name] for r in node.references if r.name in self.work.arrays]
            )
        else:
            self._passing(node)

    def _swap(self, node: Statement, found: Swap) -> None:
        """A statement by which arrays change places: their layouts do."""
        pair = (
            None if found.pair is None else (self.work.arrays[found.pair[0]], self.work.arrays[found.pair[1]])
        )
        self.work.writer.swap(node, pair)
        self.work.fresh = Fresh()
        if found.pair:
            first, second = found.pair
            self.work.note(node.begin, f"'{first}' and '{second}' change places, and nothing is copied")

    def _passing(self, node: Statement) -> None:
        """A statement that calls what works on parts."""
        passed = self.work.passes_parts(node)
        others = [r for r in node.references if r.name in self.work.arrays and r not in passed]
        reached = self._reaches(node)
        if others and node.guarded and self.heads.read_before(node, reached, passed):
            others = []
        found = (
            CalledBefore(self.work, node, passed, reached).found() if others and (passed or reached) else []
        )
        if isinstance(found, str):
            self.work.wrong(node.begin, node.end, found)
        for reference in passed:
            self.work.writer.pass_parts(reference, self.work.arrays[reference.name])
        if found and not isinstance(found, str):
            self._called_before(node, found, passed)
        self.work.fresh = Fresh()

    def _called_before(self, node: Statement, calls: Sequence[Call], passed: Sequence[Reference]) -> None:
        """The functions' values first, then the statement on gathered arrays."""
        behind: list[str] = []
        for call in calls:
            self.values += 1
            name = added(f"hm_value_{self.values}")
            text = self.work.writer.edits.take(call.begin, call.end)
            self.work.writer.edits.replace(call.begin, call.end, name)
            lines, after = self.work.writer.value_before(name, text)
            self.work.before(node.begin, lines)
            behind += after
        self._wrap([node], passed)
        self.work.after(node.end, behind, node.begin)

    def bodies(self, node: Loop | Branch) -> Iterator[list[Node]]:
        """What may run, or not, and several times; behind it is fresh what no way through it changes."""
        if isinstance(node, Loop):
            self.work.forget(node)
        start, arrays = self.work.fresh.copy(), dict(self.work.arrays)
        for body in [node.body] if isinstance(node, Loop) else [body for _, body in node.arms]:
            self.work.fresh, self.work.arrays = start.copy(), dict(arrays)
            yield body
        self.work.fresh = start
        self.work.forget(node)

    def head(self, node: Node, head: Statement, what: str, may_call: bool = True) -> None:
        """The head of a loop or a branch whose body is translated piece by piece: the arrays are in parts,
        and only what works on parts gets them."""
        passed = self.work.passes_parts(head) if may_call else []
        taken = {one.name for one in head.takes if head.decides}
        known = [r for r in head.references if r.name in self.work.arrays]
        if self.work.lifetime(head) and taken:
            self.work.writer.lifetime(head, [self.work.arrays[r.name] for r in known])
            known = [r for r in known if r.name not in taken or r.access is not Access.WRITE]
        if any(r not in passed for r in known):
            if may_call and not passed and self._evaluated(node, head):
                return
            self.work.wrong(head.begin, head.end, f"{what}: read it into a variable before")
            return
        for reference in passed:
            self.work.writer.pass_parts(reference, self.work.arrays[reference.name])
        if passed:
            self.work.fresh = Fresh()

    def _evaluated(self, node: Node, head: Statement) -> bool:
        """C: evaluate a condition on gathered arrays, in its place."""
        fortran = self.work.source.form.fortran
        place = None if fortran or self._reaches(head) else condition(self.work.source, node, head)
        touched = self.work.touched([head])
        if place is not None and self._declares(*place):
            return False
        if place is None or head.takes or not all(place[0] <= one.begin < place[1] for one in touched):
            return False
        arrays, changed = self._gathered([head])
        self.values += 1
        name = added(f"hm_value_{self.values}")
        lines, _ = self.work.writer.value_before(name, self.work.writer.edits.take(*place).strip())
        before, behind = self.work.writer.gather(arrays, ()), self.work.writer.release(arrays, changed, ())
        block = " ".join(["({", *before, *lines, *behind, f"{name};", "})"])
        self.work.writer.edits.replace(*place, block)
        self._explain(head, arrays, changed)
        return True

    def _declares(self, begin: int, end: int) -> bool:
        """C++: does a condition declare variables, `if (double x = u[2]; x > 1)`?"""
        places = (place for found in self.work.routine.places.values() for place in found)
        return any(begin <= place < end for place in places)

    def _other_memory(self, reference: Reference) -> bool:
        """C: is the pointer itself changed?"""
        changed = reference.access in (Access.WRITE, Access.UPDATE)
        return changed and reference.subscripts is None and self.work.source.form is d.Form.C

    def _jumped_into(self, nodes: Sequence[Node]) -> None:
        """What leads to a label inside would find the arrays in parts."""
        for one in _entered(nodes):
            reason = "a CASE in code that works on a gathered array: put it before it"
            self.work.wrong(one.begin, one.end, reason)
        labels = {one.label for one in statements(list(nodes)) if one.label and one.label != CASE}
        labels &= entered(self.work, nodes)
        if labels and (first := label_before(self.work, nodes[0])):
            labels.discard(first)
        for one in statements(self.work.routine.body) if labels else ():
            into = leads(one) & labels
            if into and not nodes[0].begin <= one.begin < nodes[-1].end:
                label = min(into)
                reason = f"jumps to '{label}' in code that works on a gathered array: put the label before it"
                self.work.wrong(one.begin, one.end, reason)

    def _returns_value(self, node: Statement) -> bool:
        """C: does a function return what it computes of distributed arrays, and of nothing else?"""
        if node.jump != "return" or self.work.source.form is not d.Form.C or self.work.routine.main:
            return False
        if self.work.passes(node) or self._reaches(node):
            return False
        return bool(self.work.touched([node]))

    def _return_value(self, node: Statement) -> None:
        """The value first, then the arrays are parts again: in a block that takes the statement's place."""
        arrays, changed = self._gathered([node])
        text = self.work.source.text
        begin = node.begin + len("return")
        value = self.work.writer.edits.take(begin, node.end).strip()
        self.values += 1
        name = added(f"hm_value_{self.values}")
        lines, _ = self.work.writer.value_before(name, value)
        before = self.work.writer.gather(arrays, ())
        behind = self.work.writer.release(arrays, changed, ())
        end = node.end + len(text[node.end :]) - len(text[node.end :].lstrip())
        end = end + 1 if text[end : end + 1] == ";" else node.end
        block = " ".join(["{", *before, *lines, *behind, f"return {name};", "}"])
        self.work.writer.edits.replace(node.begin, end, block)
        self._explain(node, arrays, changed)

    def _gathered(
        self, nodes: Sequence[Node], passed: Sequence[Reference] = ()
    ) -> tuple[list[Array], list[Array]]:
        """The arrays that nodes of serial code use, and those of them that they change."""
        found = [one for one in self.work.touched(nodes) if one not in passed]
        arrays: list[Array] = []
        changed: list[Array] = []
        named = _associated(nodes)
        for reference in found:
            array = self.work.arrays[reference.name]
            if reference.access is Access.OTHER and id(reference) not in named:
                self.work.wrong(reference.begin, reference.end, why_not_followed(self.work.source, reference))
            elif self._other_memory(reference):
                reason = "gives the distributed array other memory, which may have other names"
                self.work.wrong(reference.begin, reference.end, reason)
            if array not in arrays:
                arrays.append(array)
            if reference.access is not Access.READ and array not in changed:
                changed.append(array)
            callee = self.work.distributions.routines.get(reference.argument_of or "")
            if reference.access is Access.READ and reference.argument_of and array not in changed:
                # A function that is not known may write what it is given.
                function = callee is not None or reference.argument_of not in self.work.arrays
                if function and self.work.writer.may_write(reference, callee):
                    changed.append(array)
        return arrays, changed

    def _explain(
        self, first: Node, arrays: Sequence[Array], changed: Sequence[Array], anew: Sequence[Array] = ()
    ) -> None:
        self.work.fresh.wrote(array.name for array in changed)
        gathered, dealt_out, made = (tuple(one.name for one in each) for each in (arrays, changed, anew))
        place = self.work.place(first.begin)
        self.work.steps.append(SerialPlan(place, self.work.routine.name, gathered, dealt_out, made))

    def _wrap(self, nodes: Sequence[Node], passed: Sequence[Reference] = ()) -> None:
        """Gather before the nodes, release behind them. passed: what they use no more."""
        arrays, changed = self._gathered(nodes, passed)
        self._jumped_into(nodes)
        first, last = nodes[0], nodes[-1]
        if crowded(self.work.routine, first, last, self._apart):
            where = "in braces of its own" if self.work.source.form is d.Form.C else "on lines of its own"
            reason = (
                f"works on whole arrays beside code that works on parts: put it {where}, one statement a line"
            )
            self.work.wrong(first.begin, last.end, reason)
        anew = unsteady(self.work.routine, nodes, self.work.arrays, self.work.distributions.routines)
        for array in anew:
            if array.dummy:
                reason = f"may allocate or free '{array.name}', which the caller's distribution is of"
                self.work.wrong(first.begin, last.end, reason)
        self.work.before(first.begin, self.work.writer.gather(arrays, anew))
        deal_out_before_jumps(self.work, nodes, lambda: self.work.writer.release(arrays, changed, anew))
        self.work.after(last.end, self.work.writer.release(arrays, changed, anew), first.begin)
        self._explain(first, arrays, changed, anew)


def _associated(nodes: Sequence[Node]) -> set[int]:
    """References to which ASSOCIATE gives other names, by which the construct works on gathered arrays."""
    heads = (node.arms[0][0] for node in walk(list(nodes)) if isinstance(node, Branch))
    return {id(one) for head in heads if head.form == "associate" for one in head.references}


def _entered(nodes: Sequence[Node]) -> Iterator[Statement]:
    """The labels in the nodes that a SWITCH around them leads to."""
    for node in nodes:
        if isinstance(node, Statement):
            if node.label == CASE:
                yield node
        elif isinstance(node, Branch):
            if not node.switch:
                yield from (one for _, body in node.arms for one in _entered(body))
        elif isinstance(node, Loop | Construct):
            yield from _entered(node.body)
