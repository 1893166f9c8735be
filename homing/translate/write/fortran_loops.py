"""Fortran: what parts exchange, and the loops over their own iterations."""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.affine import shifted
from homing.translate.names import added
from homing.translate.plan.model import Box, Exchange, Follow, LocalIndex
from homing.translate.tree import (
    Loop,
)
from homing.translate.write.thread_loops import FortranThreadLoops
from homing.translate.write.writer import PART, Local, Region, Stride, cyclic_range, stride_of


class FortranLoops(FortranThreadLoops):
    """What stands around loops, and their bounds."""

    # --- communication ---------------------------------------------------------------------------------

    def _extents(self, boxes: Sequence[Box]) -> str:
        sides = []
        for box in boxes:
            for side in box.sides:
                if side.follow is None:
                    sides.append(f"{side.first}, {side.last}, 0, 0, 0, 0")
                else:
                    follow = side.follow
                    sides.append(
                        f"{side.first}, {side.last}, {follow.dimension + 1}, {follow.offset}, "
                        f"{side.low}, {side.high}"
                    )
        return f"[integer(homing_long) :: {',  '.join(sides)}]"

    def _exchange(self, verb: str, array: str, boxes: Sequence[Box]) -> list[str]:
        home = self.layout(boxes[0].home)
        boxes_text = self._extents(boxes)
        return [
            f"call homing_{verb}({self.layout(array)}, {home}, {PART}, {array}, {len(boxes)}, {boxes_text})"
        ]

    def fetch(self, array: str, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("fetch", array, boxes)

    def push(self, array: str, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("push", array, boxes)

    def before(self, array: str) -> list[str]:
        return [f"call homing_before({self.layout(array)}, {PART}, {array})"]

    def broadcast(self, region: Region, exchange: Exchange) -> list[str]:
        box, target = exchange.box, exchange.copy
        region.add(Local(target, array=self.arrays[box.array]))
        low = ", ".join(side.first for side in box.sides)
        high = ", ".join(side.last for side in box.sides)
        bounds = ", ".join(f"{side.first}:{side.last}" for side in box.sides)
        return [
            f"if (allocated({target})) deallocate({target})",
            f"allocate({target}({bounds}))",
            f"call homing_broadcast({self.layout(box.array)}, {PART}, {box.array}, "
            f"[integer(homing_long) :: {low}], "
            f"[integer(homing_long) :: {high}], {target})",
        ]

    # --- loops ------------------------------------------------------------------------------------------

    def own_loop(
        self,
        region: Region,
        loop: Loop,
        follow: Follow,
        positions: Sequence[LocalIndex],
        before: list[str] | None,
    ) -> None:
        assert loop.first is not None and loop.last is not None and loop.variable is not None
        if follow.dealt.cyclic:
            self._cyclic_loop(region, loop, follow, positions, before)
            return
        low = self._bound(region, follow, "low", loop.variable)
        high = self._bound(region, follow, "high", loop.variable)
        low, high = shifted(low, -follow.offset), shifted(high, -follow.offset)
        if (factor := follow.factor) > 1:
            low = f"({low} + modulo(-({low}), {factor}))/{factor}"
            high = f"({high} - modulo({high}, {factor}))/{factor}"
        first, last, stride = loop.first.text, loop.last.text, stride_of(loop)
        if isinstance(stride, str):
            self.problems.append((loop.begin, loop.head.end, stride))
            return
        by, less = stride.text, stride.less_one
        if stride.up:
            new_first, new_last = f"max({first}, {low})", f"min({last}, {high})"
            if not stride.one:
                new_first = f"{first} + (({new_first} - ({first}) + {less})/{by})*{by}"
        else:
            new_first, new_last = f"min({first}, {high})", f"max({last}, {low})"
            if not stride.one:
                new_first = f"{first} - ((({first}) - {new_first} + {less})/{by})*{by}"
        self._put_before(loop, self._upwards(loop, stride), before)
        self.edits.replace(loop.first.begin, loop.first.end, new_first)
        self.edits.replace(loop.last.begin, loop.last.end, new_last)

    def of_kind(self, text: str, variable: str) -> str:
        """The number as it is assigned to the variable. A program may have a variable KIND: then the
        assignment converts it, of which a compiler may warn."""
        return text if self.routine.lookup("kind") else f"int({text}, kind({variable}))"

    def _bound(self, region: Region, follow: Follow, which: str, variable: str) -> str:
        name = added(f"hm_{which}_{follow.home}_{follow.dimension + 1}")
        declared = self.routine.lookup(variable)
        kind = declared[1].type if declared else "integer"
        known = region.bounds.get(name)
        if known is not None:
            other = self.routine.lookup(known[3])
            if (other[1].type if other else "integer") != kind:
                name = added(f"{name}_{variable}")
        region.bounds.setdefault(name, (self.arrays[follow.home], follow.dimension, which, variable))
        self.bounds[name] = kind
        return name

    def _cyclic_loop(
        self,
        region: Region,
        loop: Loop,
        follow: Follow,
        positions: Sequence[LocalIndex],
        before: list[str] | None,
    ) -> None:
        assert loop.first is not None and loop.last is not None and loop.variable is not None
        bounds = cyclic_range(loop)
        if isinstance(bounds, str):
            self.problems.append((loop.begin, loop.head.end, bounds))
            return
        lowest, highest, stride = bounds
        index, offset = follow.dimension, follow.offset
        layout = self.layout(follow.home)
        argument = follow.dealt.argument
        at = added(f"hm_at_{loop.variable}")
        for one in positions:
            region.add(Local(one.name))
        region.add(Local(at, like=loop.variable))

        def next_own(text: str) -> str:
            most = f"int(huge({at}), homing_long)"
            found = f"homing_run_next({layout}, {PART}, {index}, {self.long(shifted(text, offset))}, {most})"
            return shifted(self.of_kind(found, at), -offset)

        # Blocks of one index: to the next one over the shadows between them.
        steps = {one.name: f"{one.name}_by" if argument == "1" else "1" for one in positions}

        def local_before(variable: str) -> list[str]:
            lines = []
            for one in positions:
                place = self.long(shifted(variable, one.offset))
                own = self.layout(one.array)
                if argument == "1":
                    region.add(Local(steps[one.name]))
                    lines.append(f"{steps[one.name]} = int(homing_local_stride({own}, {one.dimension}))")
                lines.append(
                    f"{one.name} = int(homing_local({own}, {PART}, {one.dimension}, {place})) - "
                    f"{steps[one.name]}"
                )
            return lines

        lines = [f"{at} = {next_own(lowest)}"]
        body = [f"{one.name} = {one.name} + {steps[one.name]}" for one in positions]
        indent = self.source.indent(loop.begin)
        if argument == "1":
            lines += local_before(at)
            self.edits.replace(loop.first.begin, loop.first.end, at)
            apart = f"int(homing_stride({layout}, {index}))"
            self.edits.replace(loop.last.begin, loop.head.end, f"{highest}, {apart}")
        else:
            end = added(f"hm_end_{loop.variable}")
            region.add(Local(end, like=loop.variable))
            block_end = f"homing_block_end({layout}, {PART}, {index}, {self.long(shifted(at, offset))})"
            block_end = shifted(self.of_kind(block_end, at), -offset)
            lines += [
                f"do while ({at} <= {highest})",
                f"{end} = {block_end}",
                f"{end} = min({highest}, {end})",
                *local_before(at),
            ]
            self.edits.replace(loop.first.begin, loop.first.end, at)
            self.edits.replace(loop.last.begin, loop.head.end, end)
            behind = [f"{at} = {next_own(f'{end} + 1')}", "end do"]
            self.edits.insert_lines(
                self.source.next_line(loop.end - 1), [self.indented(indent, x) for x in behind], first=True
            )
        if not stride.one:
            body.append(f"if (modulo({loop.variable} - ({loop.first.text}), {stride.text}) /= 0) cycle")
        if body:
            there = loop.body_begin < len(self.source.text)
            inner = self.source.indent(loop.body_begin) if there else indent + "  "
            self.edits.insert_lines(loop.body_begin, [self.indented(inner, x) for x in body])
        self._put_before(loop, [*self._upwards(loop, stride), *lines], before)

    def _put_before(self, loop: Loop, lines: Sequence[str], before: list[str] | None) -> None:
        if before is not None:
            before.extend(lines)
        else:
            indent = self.source.indent(loop.begin)
            at = self.source.line_start(loop.begin)
            self.edits.insert_lines(at, [self.indented(indent, line) for line in lines])

    def _upwards(self, loop: Loop, stride: Stride) -> list[str]:
        """A variable's sign is known when the program runs: which way the loop goes has been decided."""
        if stride.name is None:
            return []
        place = self.source.place(loop.begin)
        file = place.file.rpartition("/")[2].replace("'", "''")
        said = f"{file}:{place.line}: the step {stride.name} is not positive"
        return [f"if ({stride.name} < 1) error stop '{said}'"]

    def owner_test(self, array: str, subscripts: Sequence[tuple[int, str]]) -> str:
        return " .and. ".join(
            f"homing_owns({self.layout(array)}, {PART}, {index}, {self.long(text)})"
            for index, text in subscripts
        )

    def only_if(self, test: str) -> tuple[str, str]:
        return f"if ({test}) then", "end if"

    def local_index(self, array: str, dimension: int, index: str) -> str:
        return f"int(homing_local({self.layout(array)}, {PART}, {dimension}, {self.long(index)}))"

    def assign(self, name: str, value: str) -> str:
        return f"{name} = {value}"
