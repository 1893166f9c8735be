"""What one part needs of another: shadows fetched, results pushed, what all read broadcast.

Chapman, Patil and Prabhakar 2001, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.affine import affine, names_in
from homing.translate.array import Array
from homing.translate.boxes import Box, Follow, Side, Site, merged, side_of
from homing.translate.reference_text import reference_subscripts
from homing.translate.routine import RoutineInParts
from homing.translate.tree import (
    Loop,
)
from homing.translate.writer import Local, Region


class Communication(RoutineInParts):
    """Emits the exchange for boxes of elements; each box is sent once until it is written again."""

    def _box(
        self,
        site: Site,
        array: Array,
        followed: dict[int, tuple[Follow, int]],
        varying: frozenset[str],
        nest: Sequence[Loop],
    ) -> Box | None:
        sides = []
        exact = not site.conditional
        for index, subscript in enumerate(reference_subscripts(site.reference)):
            if index in followed:
                follow, shift = followed[index]
                loop = next(n for n in site.loops if n.variable == follow.variable)
                assert loop.first is not None and loop.last is not None
                first, last = loop.first.text, loop.last.text
                if loop.step.replace(" ", "").startswith("-"):
                    first, last = last, first
                if (names_in(first) | names_in(last)) & varying:
                    whole = self.writer.whole(array, index)
                    first, last = whole
                    exact = False
                if loop.step.replace(" ", "") not in ("1", "-1"):
                    exact = False
                sides.append(Side(first, last, follow, shift, shift))
                continue
            side, all_of_it = side_of(subscript, site.loops, varying, self.writer.whole(array, index))
            exact &= all_of_it
            sides.append(side)
        return Box(array, sides, exact, [site.reference])

    def _fetch(self, boxes: Sequence[Box]) -> list[str]:
        lines: list[str] = []
        needed = [box for box in merged(boxes, hull=True) if not self.fresh.has(box)]
        for array in _arrays_of(needed):
            mine = [box for box in needed if box.array is array]
            lines += self.writer.fetch(array, mine)
            for box in mine:
                self.fresh.add(box)
                self.explain(box.references[0].begin, f"fetch the shadow of {array.name}: {_box_text(box)}")
        return lines

    def _push(self, boxes: Sequence[Box]) -> list[str]:
        lines: list[str] = []
        needed = merged(boxes, hull=False)
        for array in _arrays_of(needed):
            mine = [box for box in needed if box.array is array]
            lines += self.writer.push(array, mine)
            for box in mine:
                self.explain(box.references[0].begin, f"push to the owners of {array.name}: {_box_text(box)}")
        return lines

    def _broadcast(self, sites: Sequence[Site], varying: frozenset[str], region: Region) -> list[str]:
        """Elements that all parts read: one contiguous copy each, in place of the array's name."""
        boxes: list[Box] = []
        for site in sites:
            array = self.arrays[site.reference.name]
            sides = []
            for index, subscript in enumerate(reference_subscripts(site.reference)):
                side, _ = side_of(subscript, site.loops, varying, self.writer.whole(array, index))
                if array.dimensions[index].distributed and subscript.section:
                    self.wrong(
                        subscript.begin, subscript.end, "a section over several parts, read by every thread"
                    )
                    return []
                sides.append(side)
            boxes.append(Box(array, sides, True, [site.reference]))
        lines: list[str] = []
        for box in merged(boxes, hull=True):
            name = f"hm_copy_{box.array.name}_{self._copy_number(box)}"
            region.add(Local(name, array=box.array))
            lines += self.writer.broadcast(region, box, name)
            for reference in box.references:
                self.writer.edits.replace(reference.begin, reference.name_end, name)
            self.explain(box.references[0].begin, f"broadcast {box.array.name}: {_box_text(box)}")
        return lines

    def _copy_number(self, box: Box) -> int:
        self.copies = getattr(self, "copies", 0) + 1
        del box
        return self.copies


def _arrays_of(boxes: Sequence[Box]) -> list[Array]:
    found: list[Array] = []
    for box in boxes:
        if box.array not in found:
            found.append(box.array)
    return found


def _box_text(box: Box) -> str:
    sides = []
    for side in box.sides:
        if side.follow is not None:
            sides.append(f"own iterations {side.low:+d}..{side.high:+d}")
        elif affine(side.first) == affine(side.last):
            sides.append(side.first)
        else:
            sides.append(f"{side.first}:{side.last}")
    return f"{box.array.name}({', '.join(sides)})"
