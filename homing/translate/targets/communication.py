"""What one part needs of another: shadows fetched, results pushed, what all read broadcast.

Chapman, Patil and Prabhakar 2001, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from homing.translate.affine import names_in, shifted
from homing.translate.names import added
from homing.translate.plan.array import Array
from homing.translate.plan.boxes import Site, merged, side_of
from homing.translate.plan.count import constants, copied, exchanged, value
from homing.translate.plan.model import Box, Exchange, Follow, Side, Span
from homing.translate.plan.reach import Reach
from homing.translate.plan.reference_text import reference_subscripts
from homing.translate.targets.routine import Work
from homing.translate.tree import Loop, Reference


class Communication:
    """Plans the exchange for boxes of elements; each box is sent once until it is written again."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.copies = 0  # of what is broadcast, so far

    @cached_property
    def constants(self) -> dict[str, int]:
        return constants(self.work.routine)

    def box(
        self,
        site: Site,
        array: Array,
        followed: dict[int, tuple[Follow, Reach]],
        varying: frozenset[str],
    ) -> Box:
        sides = []
        exact = not site.conditional
        for index, subscript in enumerate(reference_subscripts(site.reference)):
            if index in followed:
                follow, far = followed[index]
                first, last, all_of_it = self._range(site, array, index, follow, far, varying)
                sides.append(Side(first, last, follow, far.low, far.high))
            else:
                side, all_of_it = side_of(
                    subscript, site.loops, varying, self.work.writer.whole(array, index)
                )
                sides.append(side)
            exact &= all_of_it
        return Box(array.name, tuple(sides), exact, (span(site.reference),))

    def _range(
        self, site: Site, array: Array, index: int, follow: Follow, far: Reach, varying: frozenset[str]
    ) -> tuple[str, str, bool]:
        """The values of a counter, lowest first, and whether all of them occur. Where its bounds vary, those
        with which the subscript is one of the array."""
        loop: Loop = next(n for n in site.loops if n.variable == follow.variable)
        assert loop.first is not None and loop.last is not None
        first, last = loop.first.text, loop.last.text
        step = loop.step.replace(" ", "")
        if step.startswith("-"):
            first, last = last, first
        exact = step in ("1", "-1") and follow.factor == 1
        if (names_in(first) | names_in(last)) & varying:
            low, high = self.work.writer.whole(array, index)
            return shifted(low, -far.high), shifted(high, -far.low), False
        return follow.scaled(first), follow.scaled(last), exact

    def fetches(self, boxes: Sequence[Box]) -> tuple[tuple[Exchange, ...], tuple[Box, ...]]:
        """What is fetched for these boxes, array by array, and what has been fetched before."""
        wanted = merged(boxes, hull=True)
        at_hand = tuple(box for box in wanted if self.work.fresh.has(box))
        needed = [box for box in wanted if box not in at_hand]
        for box in needed:
            self.work.fresh.add(box)
        return self._exchanges(needed), at_hand

    def pushes(self, boxes: Sequence[Box]) -> tuple[Exchange, ...]:
        return self._exchanges(merged(boxes, hull=False))

    def _exchanges(self, boxes: Sequence[Box]) -> tuple[Exchange, ...]:
        arrays = list(dict.fromkeys(box.array for box in boxes))
        return tuple(
            self._exchange_of(
                box, exchanged(box, [one.offset for one in self.work.arrays[box.array].dimensions])
            )
            for box in sorted(boxes, key=lambda box: arrays.index(box.array))
        )

    def _exchange_of(self, box: Box, count: str, copy: str = "") -> Exchange:
        place = self.work.place(box.references[0].begin)
        return Exchange(box, place, count, value(count, self.constants), copy)

    def broadcasts(self, sites: Sequence[Site], varying: frozenset[str]) -> tuple[Exchange, ...]:
        """Elements that all parts read: one contiguous copy each, in place of the array's name. varying:
        names that have no value before, or not the same everywhere."""
        boxes: list[Box] = []
        for site in sites:
            array = self.work.arrays[site.reference.name]
            sides = []
            for index, subscript in enumerate(reference_subscripts(site.reference)):
                side, _ = side_of(subscript, site.loops, varying, self.work.writer.whole(array, index))
                sides.append(side)
            boxes.append(Box(array.name, tuple(sides), True, (span(site.reference),)))
        found = []
        for box in merged(boxes, hull=True):
            self.copies += 1
            copy = added(f"hm_copy_{box.array}_{self.copies}")
            found.append(self._exchange_of(box, copied(box), copy))
        return tuple(found)


def span(reference: Reference) -> Span:
    return Span(reference.begin, reference.name_end, reference.end)
