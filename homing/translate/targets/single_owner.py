"""SINGLE constructs that touch distributed arrays: the part that owns the elements works on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from homing.translate.affine import affine, names_in
from homing.translate.directives import model as d
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.boxes import Site, side_of
from homing.translate.plan.effects import What
from homing.translate.plan.model import Box, Follow, LocalIndex, Side, SinglePlan, Subscript
from homing.translate.plan.reference_text import reference_subscripts
from homing.translate.targets.communication import Communication, span
from homing.translate.targets.owned_loops import local_name, sites_of
from homing.translate.targets.routine import Work
from homing.translate.tree import (
    Access,
    Construct,
    Loop,
    Node,
    Reference,
    Routine,
    walk,
    written_in,
)
from homing.translate.write.planned_text import single_lines
from homing.translate.write.writer import Region

#: How far apart elements that one thread works on in a SINGLE construct may lie and still be a shadow.
_NEAR = 4
#: Constructs that the thread of a SINGLE construct is through with when it comes to their end.
_OF_ONE = frozenset({"atomic", "critical", "flush", "simd"})


@dataclass
class _Near:
    """What a SINGLE construct's references need, as far as they have been looked at. tests: dimension and
    subscript of the element whose owner runs it; changing: names whose values change in it."""

    array: Array
    tests: list[tuple[int, str]]
    changing: frozenset[str]
    fetches: list[Box] = field(default_factory=list)
    pushes: list[Box] = field(default_factory=list)
    locals: dict[str, tuple[LocalIndex, str]] = field(default_factory=dict)
    subscripts: list[Subscript] = field(default_factory=list)


class SingleOwner:
    """Finds the one owner of what a SINGLE construct touches."""

    def __init__(self, work: Work, exchange: Communication) -> None:
        self.work = work
        self.exchange = exchange

    def single(self, node: Construct, region: Region) -> None:
        """SINGLE or MASTER: by the owner where all elements are one owner's; otherwise on the gathered
        array."""
        found = self.work.touched(node.body)
        problems = len(self.work.problems)
        self.work.clauses(node, table.Place.SINGLE)
        for inner in walk(node.body):
            if isinstance(inner, Construct) and inner.directive.name not in _OF_ONE:
                name = inner.directive.name.upper()
                text = f"{name} in {node.directive.name.upper()} with distributed arrays is not supported"
                self.work.wrong(inner.directive.begin, inner.directive.end, text)
                return
        owner = None if self._own_data(node) else self._one_owner(node, found)
        # A thread of each rank learns what all have to know, on the gathered arrays.
        everywhere = self._tells(node, region) and region.construct is not None
        if owner is None or everywhere:
            self.on_whole(node, found, region)
        else:
            plan = self._by_owner(node, region, *owner)
            self.work.steps.append(plan)
            single_lines(self.work.writer, region, node, plan, self.work.shares(node, region))
        if len(self.work.problems) > problems:
            last = self.work.steps[-1]
            assert isinstance(last, SinglePlan)
            self.work.steps[-1] = replace(last, reason=self.work.problems[problems].reason)

    def _tells(self, node: Construct, region: Region) -> set[str]:
        """Shared variables that the construct writes, where ranks have them each."""
        return set(written_in(node)) - self.work.arrays.keys() - region.private if self.work.mpi else set()

    def on_whole(self, node: Construct, found: Sequence[Reference], region: Region) -> None:
        arrays: list[Array] = []
        for reference in found:
            if self.work.arrays[reference.name] not in arrays:
                arrays.append(self.work.arrays[reference.name])
            if self._passes_reference(reference):
                self.work.wrong(
                    reference.begin, reference.end, "parts passed to a procedure by one thread only"
                )
        changed = [
            array
            for array in arrays
            if any(r.name == array.name and r.access is not Access.READ for r in found)
        ]
        plan = SinglePlan(
            self.work.place(node.begin),
            self.work.routine.name,
            node.directive.name,
            gathered=tuple(array.name for array in arrays),
            changed=tuple(array.name for array in changed),
        )
        self.work.steps.append(plan)
        reason = self.work.writer.single_whole(region, node, plan)
        if reason is not None:
            self.work.wrong(node.directive.begin, node.directive.end, reason)
        self.work.forget(node)

    def _by_owner(
        self, node: Construct, region: Region, array: Array, tests: list[tuple[int, str]]
    ) -> SinglePlan:
        if shared := self._tells(node, region):
            self.work.wrong(
                node.directive.begin,
                node.directive.end,
                f"'{min(shared)}' would be known to the owner's rank only",
            )
        found = _Near(array, tests, written_in(node) - frozenset(self.work.arrays))
        for site in sites_of(node.body, [], False, self.work.arrays):
            self._near(site, found)
        fetches, _ = self.exchange.fetches(found.fetches)
        self.work.forget(node)
        return SinglePlan(
            self.work.place(node.begin),
            self.work.routine.name,
            node.directive.name,
            owner=array.name,
            index=tuple(tests),
            fetches=fetches,
            pushes=self.exchange.pushes(found.pushes),
            locals=tuple(found.locals.values()),
            subscripts=tuple(found.subscripts),
        )

    def _near(self, site: Site, found: _Near) -> None:
        """An element that lies near the owner's: in its part, or in the shadow around it."""
        reference = site.reference
        own = self.work.arrays[reference.name]
        followed: dict[int, tuple[Follow, int]] = {}
        distances = []
        for (index, home), at in zip(found.tests, own.distributed_dimensions(), strict=True):
            subscript = reference_subscripts(reference)[at]
            step = affine(subscript.text).minus(affine(home)) or 0
            dealt = found.array.dimensions[index]
            distance = step + own.dimensions[at].offset - dealt.offset
            distances.append(distance)
            followed[at] = (Follow("", found.array.name, index, 0, dealt), step)
            if own.dimensions[at].cyclic:
                if distance:
                    self.work.wrong(
                        subscript.begin,
                        subscript.end,
                        "lies on another part than the element that is written",
                    )
                name = local_name(own, at, subscript.text)
                found.locals[name] = (LocalIndex(name, "", own.name, at, 0), subscript.text)
                found.subscripts.append(Subscript(subscript.begin, subscript.end, name, 0))
            else:
                own.widen(at, max(0, -distance), max(0, distance))
        if not any(distances):
            return
        sides = []
        exact = not site.conditional
        homes = dict(found.tests)
        for at, subscript in enumerate(reference_subscripts(reference)):
            if at in followed:
                follow, step = followed[at]
                text = homes[follow.dimension]
                sides.append(Side(text, text, follow, step, step))
            else:
                side, whole = side_of(subscript, site.loops, found.changing, self.work.writer.whole(own, at))
                exact &= whole
                sides.append(side)
        box = Box(own.name, tuple(sides), exact, (span(reference),))
        if reference.access is Access.READ:
            found.fetches.append(box)
        else:
            found.pushes.append(box)
            if not exact:
                found.fetches.append(box)

    def _own_data(self, node: Construct) -> bool:
        """Does it what a condition in its place would not keep?"""
        acts = self.work.distributions.effects.acts(self.work.routine, node.body) if self.work.mpi else ()
        if any(act.what is not What.WRITE or act.through or act.pointer for act in acts):
            return True  # every rank has to do it
        every = [*node.directive.clauses, *(node.closing.clauses if node.closing else [])]
        return any(clause.name in table.OF_ONE_THREAD for clause in every)

    def _passes_reference(self, reference: Reference) -> bool:
        return reference.argument_of in self.work.distributions.routines

    def _one_owner(
        self, node: Construct, found: Sequence[Reference]
    ) -> tuple[Array, list[tuple[int, str]]] | None:
        changing = written_in(node) | loop_variables(node.body, self.work.routine)
        chosen: tuple[Array, list[tuple[int, str]]] | None = None
        writes_first = sorted(found, key=lambda r: r.access is Access.READ)
        for reference in writes_first:
            array = self.work.arrays[reference.name]
            if (
                reference.subscripts is None
                or len(reference.subscripts) != array.rank
                or self._passes_reference(reference)
            ):
                return None
            tests = []
            for index in array.distributed_dimensions():
                subscript = reference.subscripts[index]
                if subscript.section or names_in(subscript.text) & (changing - {array.name}):
                    return None
                tests.append((index, subscript.text))
            if chosen is None:
                chosen = (array, tests)
                continue
            other, other_tests = chosen
            if len(tests) != len(other_tests):
                return None
            for (index, text), (other_index, other_text) in zip(tests, other_tests, strict=True):
                mine, its = array.dimensions[index], other.dimensions[other_index]
                step = affine(text).minus(affine(other_text))
                if step is None or abs(step) > _NEAR or mine.varies or not mine.together(its):
                    return None
                if mine.cyclic and step + mine.offset - its.offset != 0:
                    return None
        return chosen


def loop_variables(nodes: Sequence[Node], routine: Routine) -> set[str]:
    """Predetermined private: counters of loops in a region (Fortran; C's are when they are declared
    there)."""
    if routine.source.form is d.Form.C:
        return set()
    return {n.variable for n in walk(list(nodes)) if isinstance(n, Loop) and n.variable}
