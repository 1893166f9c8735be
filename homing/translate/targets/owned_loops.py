"""Loops over a part's own iterations: whose they are, and what they read and write of other parts.

ON HOME and AFFINITY decide (Chapman, Patil and Prabhakar 2001, section 3); without them the array that is
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from homing.translate.affine import affine, names_in, shifted
from homing.translate.names import added
from homing.translate.plan.array import Array
from homing.translate.plan.boxes import Site
from homing.translate.plan.count import number
from homing.translate.plan.last_values import last_values
from homing.translate.plan.model import Box, Follow, LocalIndex, LoopPlan, Schedule
from homing.translate.plan.model import Subscript as Anew
from homing.translate.plan.order import Nest, any_order, disorders
from homing.translate.plan.reach import Reach, reach
from homing.translate.plan.reference_text import reference_subscripts, why_not_copied, why_not_followed
from homing.translate.plan.steps import unsteady_step
from homing.translate.targets.broadcast_values import too_old
from homing.translate.targets.communication import Communication
from homing.translate.targets.loop_homes import LoopHomes
from homing.translate.targets.routine import Work
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Loop,
    Node,
    Reference,
    Statement,
    Subscript,
    walk,
    written_in,
)
from homing.translate.write.planned_text import loop_lines
from homing.translate.write.writer import Around, Region

#: Constructs that mean in a part's iterations what they mean in all of them.
_IN_PARTS = frozenset({"simd", "critical", "atomic"})
#: A counter inside may go so far in a CYCLIC dimension, where each block has a shadow as wide.
_WIDEST = 64


@dataclass
class _Found:
    """What a loop's references need, as far as they have been looked at. follows: by the loop's variable;
    varying: names that change in the loop; fixed: the home's dimensions with one subscript for all
    iterations; locals: variables for local positions, by the loop's variable, the
    array, its dimension and the distance."""

    follows: dict[str, Follow]
    varying: frozenset[str]
    wrote: frozenset[str]
    fixed: tuple[tuple[int, str], ...] = ()
    fixed_locals: dict[str, tuple[LocalIndex, str]] = field(default_factory=dict)
    fetches: list[Box] = field(default_factory=list)
    pushes: list[Box] = field(default_factory=list)
    #: By array: the distances from the own elements at which the loop writes.
    written_at: dict[str, set[tuple[tuple[int, tuple[int, int]], ...]]] = field(default_factory=dict)
    sent_back: set[str] = field(
        default_factory=set
    )  # arrays of which perhaps not all that is sent is written
    broadcasts: list[Site] = field(default_factory=list)
    locals: dict[tuple[str, Array, int, int], str] = field(default_factory=dict)
    subscripts: list[Anew] = field(default_factory=list)
    together: list[tuple[str, int, str, int]] = field(default_factory=list)

    def changed(self) -> tuple[str, ...]:
        """Arrays of which a part may send back as it came what another one has written meanwhile: the owner
        takes what has changed."""
        return tuple(sorted(name for name in self.sent_back if len(self.written_at[name]) > 1))

    def local_indices(self) -> tuple[LocalIndex, ...]:
        by_name = {
            name: LocalIndex(name, variable, array.name, dimension, offset)
            for (variable, array, dimension, offset), name in self.locals.items()
        }
        return tuple(by_name.values())


class OwnedLoops:
    """Gives loops local bounds, and classifies every access in them."""

    def __init__(self, work: Work, exchange: Communication) -> None:
        self.work = work
        self.exchange = exchange
        self.homes = LoopHomes(work)
        self._outside: dict[int, list[Loop]] = {}  # by the id of the loop that they are around

    def share_out(self, construct: Construct, loop: Loop, region: Region) -> Around:
        """Give the loop the part's own iterations. Returns the lines around it."""
        problems = len(self.work.problems)
        plan = self.plan_loop(construct, loop, region)
        if plan is None:
            self.work.steps.append(self.work.refused_loop(construct, loop, self.work.problems[problems:]))
            return Around()
        self.work.steps.append(plan)
        return loop_lines(self.work.writer, region, loop, plan)

    def plan_loop(self, construct: Construct, loop: Loop, region: Region) -> LoopPlan | None:
        """What becomes of the loop; None where it is refused: the problems say why."""
        sites = list(sites_of([loop], [], False, self.work.arrays))
        problems = len(self.work.problems)
        if loop.variable is None:
            reason = f"not a loop that can be shared out: {loop.unrolled_reason or 'no counter'}"
            self.work.wrong(loop.begin, max(loop.head.end, loop.begin), reason)
            return None
        self._constant_steps(loop)
        for site in sites:
            self._usable(site)
        for inner in walk([loop]):
            nested = isinstance(inner, Construct) and inner.directive.name not in _IN_PARTS
            if isinstance(inner, Construct) and nested and self.work.touched([inner]):
                reason = "a construct inside a loop that is shared out"
                self.work.wrong(inner.directive.begin, inner.directive.end, reason)
        if len(self.work.problems) > problems:
            return None
        sites = [site.sectioned(self.work.arrays[site.reference.name].rank) for site in sites]
        home = self.homes.home_of(construct, loop, sites)
        if home is None:
            return None
        why, follows = home
        self._steady_steps(loop, follows)
        wrote = written_in(loop)
        fixed = self.work.fixed_home.get(id(loop), ())
        arrays = frozenset(self.work.arrays)
        found = _Found(follows, wrote - arrays, wrote & arrays, fixed)
        for site in sites:
            self._classify(site, found)
        for site in found.broadcasts:
            array = self.work.arrays[site.reference.name]
            whole = [self.work.writer.whole(array, index) for index in range(array.rank)]
            if too_old(loop, site, sites, found.varying, whole):
                reason = "all parts get it before the loop, which may have written it when it is read"
                self.work.wrong(site.reference.begin, site.reference.end, reason)
        self._in_order(construct, loop, follows, region)
        if len(self.work.problems) > problems:
            return None
        fetches, at_hand = self.exchange.fetches(found.fetches)
        broadcasts = self.exchange.broadcasts(found.broadcasts, found.varying | self.work.arrays.keys())
        self.work.fresh.wrote(wrote)
        if len(self.work.problems) > problems:
            return None
        last = last_values(self.work.routine, construct, loop, follows)
        if last is not None and fixed:
            last = "LASTPRIVATE where the home is one column (or row) of parts"
        if isinstance(last, str):
            self.work.wrong(construct.directive.begin, construct.directive.end, last)
            return None
        return replace(
            self.work.loop_plan(construct, loop, Schedule.OWN),
            why=why,
            follows=tuple(follows.values()),
            fixed=fixed,
            fixed_locals=tuple(found.fixed_locals.values()),
            fetches=fetches,
            at_hand=at_hand,
            pushes=self.exchange.pushes(found.pushes),
            changed=found.changed(),
            broadcasts=broadcasts,
            locals=found.local_indices(),
            subscripts=tuple(found.subscripts),
            together=tuple(found.together),
            last_values=last,
        )

    def _constant_steps(self, loop: Loop) -> None:
        """Steps that are named constants become numbers."""
        for inner in walk([loop]):
            if isinstance(inner, Loop) and inner.variable is not None:
                hidden = names_in(inner.step) & self.work.routine.inner
                value = number(inner.step, {} if hidden else self.exchange.constants)
                inner.step = inner.step if value is None else str(value)

    def _steady_steps(self, loop: Loop, follows: dict[str, Follow]) -> None:
        """Steps of loops that run over own iterations."""
        for inner in walk([loop]):
            if isinstance(inner, Loop) and inner.variable in follows:
                reason = unsteady_step(self.work.routine, inner, self.work.written([loop]))
                if reason is not None:
                    self.work.wrong(inner.begin, max(inner.head.end, inner.begin), reason)

    def _in_order(self, construct: Construct, loop: Loop, follows: dict[str, Follow], region: Region) -> None:
        """Is the loop the same when the parts run their own iterations of those inside it?"""
        nest = Nest(
            loop,
            follows,
            any_order(construct, loop),
            frozenset(self.work.arrays),
            frozenset(one.name for one in region.reductions),
            lambda reference: not self.work.seen_by_others(reference, loop, region),
            lambda name: self.work.routine.places.get(name, []),
        )
        for disorder in disorders(nest):
            self.work.wrong(disorder.begin, disorder.end, disorder.reason)

    def _usable(self, site: Site) -> None:
        reference = site.reference
        if reference.subscripts is None and not self.work.reads_elements(reference):
            if reference.argument_of in ("size", "lbound", "ubound", "shape"):
                self.work.wrong(
                    reference.begin,
                    reference.end,
                    "asks for the shape of a distributed array in a region: read it into a variable before",
                )
            else:
                whole = "a whole distributed array inside a loop that is shared out"
                if reference.argument_of in self.work.distributions.routines:
                    name = f"'{reference.argument_of}'"
                    whole += f": give {name} elements of it, or write what {name} does into the loop"
                reason = why_not_copied(self.work.source, reference) or whole
                self.work.wrong(reference.begin, reference.end, reason)
        elif (
            reference.subscripts is not None
            and len(reference.subscripts) != self.work.arrays[reference.name].rank
        ):
            rank = self.work.arrays[reference.name].rank
            reason = f"{len(reference.subscripts)} subscripts for {rank} dimensions"
            if reference.argument_of is not None:
                reason = (
                    f"a row of it goes to '{reference.argument_of}', which may use more: give elements, or "
                    "call a function with a length (snprintf, memcpy)"
                )
            self.work.wrong(
                reference.begin, reference.end, why_not_copied(self.work.source, reference) or reason
            )
        elif reference.access is Access.OTHER:
            self.work.wrong(reference.begin, reference.end, why_not_followed(self.work.source, reference))
        elif reference.access is Access.ARGUMENT or reference.argument_of in self.work.distributions.routines:
            piece = any(s.section for s in reference.subscripts or ()) or reference.access is Access.ARGUMENT
            if piece:
                reason = "a piece of a distributed array is passed on (sequence association)"
                self.work.wrong(reference.begin, reference.end, reason)

    def _classify(self, site: Site, found: _Found) -> None:
        """Does the reference reach own elements, those of another part, or the same for all iterations?"""
        reference = site.reference
        array = self.work.arrays[reference.name]
        cut = array.distributed_dimensions()
        subscripts = reference_subscripts(reference)
        if reference.access is Access.READ and self._everywhere(site, array, found):
            found.broadcasts.append(site)
            return
        fixed = [
            i
            for i in cut
            if not subscripts[i].section and not affine(subscripts[i].text).names & found.varying
        ]
        if fixed and not self._at_home(reference, array, fixed, found):
            if reference.access is Access.READ:
                found.broadcasts.append(site)
                return
            one_owner = "every iteration writes the same owner's element"
            elsewhere = "is written where other parts run the loop: say ON HOME"
            reason = one_owner if fixed == cut else elsewhere
            self.work.wrong(reference.begin, reference.end, reason)
            return
        followed: dict[int, tuple[Follow, Reach]] = {}
        for index in cut:
            if index in fixed:
                continue
            one = self._followed(site, array, index, subscripts[index], found)
            if one is None:
                return
            followed[index] = one
        for index in fixed:
            if array.dimensions[index].cyclic:
                subscript = reference_subscripts(reference)[index]
                name = local_name(array, index, subscript.text)
                local = LocalIndex(name, "", array.name, index, 0)
                found.fixed_locals[name] = (local, subscript.text)
                found.subscripts.append(Anew(subscript.begin, subscript.end, name, 0))
        distances: dict[int, tuple[int, int]] = {}
        for index, (follow, far) in followed.items():
            own = (follow.offset + follow.dealt.offset) - array.dimensions[index].offset
            distances[index] = (far.low - own, far.high - own)
            if array.dimensions[index].cyclic:
                # A neighbour lies as far from the own element as its index does, in the shadow around its
                # block.
                subscript = reference_subscripts(reference)[index]
                name = self._position(array, index, follow, own, found)
                distance = far.constant - own
                found.subscripts.append(Anew(subscript.begin, subscript.end, name, distance, far.more))
        if reference.access is not Access.READ:
            found.written_at.setdefault(array.name, set()).add(tuple(distances.items()))
        if any(ends != (0, 0) for ends in distances.values()):
            self._reach(reference, array, distances)
            self._exchange(site, self.exchange.box(site, array, followed, found.varying), found)

    def _everywhere(self, site: Site, array: Array, found: _Found) -> bool:
        """Is it read at elements of any part, so that all parts need a copy? Of what the loop writes it
        would be too old: sections are refused, elements where their loop is looked for."""
        reference = site.reference
        subscripts = reference_subscripts(reference)
        cut = array.distributed_dimensions()
        section = any(subscripts[i].section for i in cut)
        if reference.name in found.wrote:
            if section:
                reason = f"reads '{reference.name}' of several parts, and the loop writes it: read it before"
                self.work.wrong(reference.begin, reference.end, reason)
            return section
        changing = found.varying | self.work.arrays.keys()
        moving = [i for i in cut if affine(subscripts[i].text).names & changing]
        if section:
            return True
        text = "elements of any part"
        for index in moving:
            shifts = self._shifts(site, array, index, subscripts[index], found)
            homes = [found.follows[variable] for variable in shifts]
            if homes and not array.dimensions[index].perhaps_together(homes[0].dealt):
                text = f"'{array.name}' is not distributed like '{homes[0].home}'; without ALIGN"
            elif homes:
                continue
            text = f"{text}: every part gets a copy of '{array.name}' before the loop"
            note = self.work.source.problem(reference.begin, reference.end, text)
            if note not in self.work.distributions.notes:
                self.work.distributions.notes.append(note)
            return True
        return False

    def _at_home(self, reference: Reference, array: Array, fixed: Sequence[int], found: _Found) -> bool:
        """Does the element lie in the column (or row) of parts that runs the loop, at the own iteration?"""
        follows = {one.dimension: one for one in found.follows.values()}
        home = self.work.arrays[next(iter(found.follows.values())).home]
        if array is not home or [index for index, _ in found.fixed] != list(fixed):
            return False
        subscripts = reference_subscripts(reference)
        same = (affine(subscripts[i].text).minus(affine(text)) == 0 for i, text in found.fixed)
        own = (
            affine(subscripts[i].text).scaled(one.variable) == (one.factor, one.offset)
            for i, one in follows.items()
        )
        return all(same) and all(own)

    def _followed(
        self, site: Site, array: Array, index: int, subscript: Subscript, found: _Found
    ) -> tuple[Follow, Reach] | None:
        """Which loop's iterations a distributed subscript goes with, and at which distance."""
        reference = site.reference
        shifts = self._shifts(site, array, index, subscript, found)
        if not shifts:
            self.work.wrong(
                subscript.begin,
                subscript.end,
                f"the distributed subscript '{subscript.text}' is not the index of a shared-out "
                "loop plus a number",
            )
            return None
        variable, far = next(iter(shifts.items()))
        follow = found.follows[variable]
        mine = array.dimensions[index]
        if not mine.perhaps_together(follow.dealt):
            reason = f"'{array.name}' is not distributed like '{follow.home}': ALIGN them"
            self.work.wrong(reference.begin, reference.end, reason)
            return None
        if not any(loop.variable == variable for loop in site.loops):
            self.work.wrong(reference.begin, reference.end, f"stands outside the loop over '{variable}'")
            return None
        aligned = (mine.base or follow.dealt.base) and not mine.varies
        if array.name != follow.home and not aligned:
            alike = (array.name, index, follow.home, follow.dimension)
            if alike not in found.together:
                found.together.append(alike)
        return follow, far

    def _shifts(
        self, site: Site, array: Array, index: int, subscript: Subscript, found: _Found
    ) -> dict[str, Reach]:
        """The loops whose iterations a distributed subscript goes with, by their variables."""
        reference = site.reference
        inner = self.work.routine.inner  # C: names that mean something else in a block
        known = {name: value for name, value in self.exchange.constants.items() if name not in inner}
        cyclic = array.dimensions[index].cyclic
        loops = [*self._around(site.loops[0]), *site.loops]
        return {
            variable: far
            for variable, follow in found.follows.items()
            if not subscript.section
            and (far := reach(subscript.text, variable, loops, known, follow.factor)) is not None
            # What is sent to other parts has to be known to the element.
            and (not far.more or reference.access is Access.READ)
            and (not far.more or not cyclic or far.high - far.low <= _WIDEST)
        }

    def _around(self, loop: Loop) -> list[Loop]:
        """Serial loops around one that is shared out: their counters are the same in all iterations."""
        if id(loop) not in self._outside:
            every = (one for one in walk(self.work.routine.body) if isinstance(one, Loop) and one is not loop)
            self._outside[id(loop)] = [one for one in every if one.begin <= loop.begin < one.end]
        return self._outside[id(loop)]

    def _position(self, array: Array, index: int, follow: Follow, own: int, found: _Found) -> str:
        """The variable that holds the local position of the own element."""
        name = local_name(array, index, shifted(follow.variable, own))
        for (variable, other, dimension, offset), known in found.locals.items():
            same = variable == follow.variable and offset == own
            alike = same and other.dimensions[dimension] == array.dimensions[index]
            if alike and _same_bounds(other, dimension, array, index):
                array.tie(index, other, dimension)
                name = known
                break
        return found.locals.setdefault((follow.variable, array, index, own), name)

    def _reach(self, reference: Reference, array: Array, distances: dict[int, tuple[int, int]]) -> None:
        """The array's shadow holds what lies so far from the own elements."""
        for index, ends in distances.items():
            low, high = max(0, -ends[0]), max(0, ends[1])
            if array.given_shadow is not None:
                given = array.given_shadow[index]
                if low > given[0] or high > given[1]:
                    self.work.wrong(
                        reference.begin,
                        reference.end,
                        f"reaches {max(low, high)} beyond the own elements, SHADOW allows "
                        f"{given[0]}:{given[1]}",
                    )
            array.widen(index, low, high)

    def _exchange(self, site: Site, box: Box, found: _Found) -> None:
        reference = site.reference
        if reference.access is Access.READ:
            found.fetches.append(box)
        elif reference.access is Access.UPDATE:
            self.work.wrong(
                reference.begin,
                reference.end,
                "changes an element of another part: two parts may do so at once",
            )
        else:
            found.pushes.append(box)
            if site.conditional or not box.exact:
                # Elements of the shadow that are not written now are sent back as they came.
                found.fetches.append(box)
                found.sent_back.add(reference.name)


def local_name(array: Array, dimension: int, text: str) -> str:
    """The variable that holds where an index of a CYCLIC dimension lies in the part."""
    word = re.sub(r"\W+", "_", text).strip("_")[:24]
    return added(f"hm_at_{array.name}_{dimension + 1}_{word}")


def _same_bounds(a: Array, i: int, b: Array, j: int) -> bool:
    if a is b:
        return i == j
    if i >= len(a.declaration.bounds) or j >= len(b.declaration.bounds):
        return False
    mine, its = a.declaration.bounds[i], b.declaration.bounds[j]
    if mine.deferred or its.deferred or mine.upper is None or its.upper is None:
        return False
    return affine(mine.lower) == affine(its.lower) and affine(mine.upper) == affine(its.upper)


def sites_of(
    nodes: Sequence[Node], loops: list[Loop], conditional: bool, arrays: dict[str, Array]
) -> Iterable[Site]:
    for node in nodes:
        if isinstance(node, Statement):
            for reference in node.references:
                if reference.name in arrays:
                    yield Site(reference, loops, conditional or reference.conditional)
        elif isinstance(node, Loop):
            for reference in node.head.references:
                if reference.name in arrays:
                    yield Site(reference, loops, conditional)
            # A loop inside others may run not at all: its bounds are part of the box.
            uncounted = node.variable is None
            yield from sites_of(node.body, [*loops, node], conditional or uncounted, arrays)
        elif isinstance(node, Branch):
            for head, body in node.arms:
                for reference in head.references:
                    if reference.name in arrays:
                        yield Site(reference, loops, conditional)
                yield from sites_of(body, loops, conditional or node.conditional, arrays)
        elif isinstance(node, Construct):
            yield from sites_of(node.body, loops, conditional, arrays)
