"""Heads of serial loops and branches that hold parallel code, and that read distributed arrays themselves
(Fortran): what they read becomes the value of an ASSOCIATE around, evaluated on gathered arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.code_text import blanked, closing
from homing.translate.names import added
from homing.translate.plan.array import Array
from homing.translate.plan.model import SerialPlan
from homing.translate.targets.routine import Work
from homing.translate.tree import Branch, Loop, Node, Reference, Statement, walk
from homing.translate.write.lines_apart import crowded

_BRANCH = re.compile(r"(?:\w+\s*:\s*)?(?:if|select\s*case)\s*\(", re.IGNORECASE)
_WHILE = re.compile(r"(?:\w+\s*:\s*)?do\s*\d*(\s*,?\s*while\s*\()", re.IGNORECASE)


class Heads:
    """Takes values out of heads. It leaves what it cannot take to be refused."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.count = 0

    def read_before(
        self,
        node: Loop | Branch | Statement,
        reached: Sequence[str] = (),
        passed: Sequence[Reference] = (),
    ) -> bool:
        """Evaluate what the node's head reads of distributed arrays before it. False: nothing was changed.
        reached, passed: procedures that find arrays in parts, arrays that go to such; none may be in it."""
        head = (
            node if isinstance(node, Statement) else node.head if isinstance(node, Loop) else node.arms[0][0]
        )
        mine = (one for one in head.references if one.name in self.work.arrays)
        found = [one for one in mine if one not in passed]
        if not self.work.source.form.fortran or head.label or not found:
            return False
        if any(one.argument_of is not None or not self.work.reads_elements(one) for one in found):
            return False
        if self._shares_an_end(node) or crowded(self.work.routine, node, node, lambda _: True):
            return False
        ranges = self._counted(node) if isinstance(node, Loop) and node.variable else self._condition(head)
        if not all(any(begin <= one.begin < end for begin, end in ranges) for one in found):
            return False
        if any(self._within(one, reached, passed) for one in ranges):
            return False
        ranges = [one for one in ranges if any(one[0] <= reference.begin < one[1] for reference in found)]
        arrays = list(dict.fromkeys(self.work.arrays[one.name] for one in found))
        if isinstance(node, Loop) and not node.variable:
            self._while(node, ranges[0], arrays)
        else:
            lines = [f"associate ({name} => ({text}))" for name, text in map(self._value, ranges)]
            self.work.before(head.begin, self._gathered(arrays, lines))
            self.work.after(node.end, ["end associate"] * len(lines), head.begin)
        names = tuple(one.name for one in arrays)
        self.work.steps.append(SerialPlan(self.work.place(head.begin), self.work.routine.name, names, (), ()))
        return True

    def _within(self, place: tuple[int, int], reached: Sequence[str], passed: Sequence[Reference]) -> bool:
        """Does something that works on parts stand there?"""
        names = set(re.findall(r"\w+", self.work.source.text[slice(*place)].lower()))
        return bool(names & set(reached)) or any(place[0] <= one.begin < place[1] for one in passed)

    def _gathered(self, arrays: Sequence[Array], lines: Sequence[str]) -> list[str]:
        return [*self.work.writer.gather(arrays), *lines, *self.work.writer.release(arrays, [])]

    def _value(self, place: tuple[int, int]) -> tuple[str, str]:
        """A name in the place of an expression, and the expression."""
        self.count += 1
        name = added(f"hm_head_{self.count}")
        text = self.work.writer.edits.take(*place)
        self.work.writer.edits.replace(*place, name)
        return name, text

    def _while(self, loop: Loop, place: tuple[int, int], arrays: Sequence[Array]) -> None:
        """DO WHILE becomes DO, and a test at the beginning of its body."""
        match = _WHILE.match(loop.head.code)
        assert match is not None
        name, text = self._value(place)
        test = [*self._gathered(arrays, [f"associate ({name} => ({text}))"]), f"if (.not. {name}) exit"]
        edits, places = self.work.writer.edits, loop.head.places
        edits.take(places[match.start(1)], loop.head.end)
        edits.replace(places[match.start(1)], loop.head.end, "")
        self.work.after(loop.head.end, [*test, "end associate"], loop.begin)

    def _counted(self, loop: Loop) -> list[tuple[int, int]]:
        return [(one.begin, one.end) for one in (loop.first, loop.last) if one is not None]

    def _condition(self, head: Statement) -> list[tuple[int, int]]:
        """Where the condition stands, if the whole of it can be put elsewhere as it is written."""
        match = _BRANCH.match(head.code) or _WHILE.match(head.code)
        if match is None:
            return []
        end = closing(blanked(head.code, True, " "), match.end()) - 1
        begin, last = head.places[match.end()], head.places[end]
        return [] if "\n" in self.work.source.text[begin:last] else [(begin, last)]

    def _shares_an_end(self, node: Node) -> bool:
        """DO 10 i / DO 10 j: nothing can be put between their ends."""
        others = (one for one in walk(self.work.routine.body) if isinstance(one, Loop) and one is not node)
        return isinstance(node, Loop) and any(one.end == node.end for one in others)
