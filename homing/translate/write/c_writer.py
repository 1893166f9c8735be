"""The C text of a program in parts (see parts.py for the plan and runtime/homing_parts.h for the calls).

In a parallel region the array's name means the thread's part: a pointer to an array of the inner dimensions'
own widths, moved so that the program's indices reach the part's elements. In serial code the name is a
pointer to the gathered array, or to nothing that may be used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.affine import shifted
from homing.translate.openmp import Reduction, clause_text
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.model import Box, Exchange, Follow, LastValues, LocalIndex, SinglePlan
from homing.translate.tree import (
    Construct,
    Loop,
    Reference,
    Routine,
    Statement,
    walk,
)
from homing.translate.write.thread_loops import CThreadLoops
from homing.translate.write.writer import PART, Around, Region, cyclic_range, stride_of


class CWriter(CThreadLoops):
    """Loops, regions and what stands in them."""

    def swap(self, statement: Statement, pair: tuple[Array, Array] | None) -> None:
        layouts = ", ".join(f"&{self.layout(array)}" for array in pair or ())
        text = f"homing_layout_swap({layouts})" if pair else ""
        if statement.swap and statement.swap.function:  # it may be in no other statement: no warning of it
            text = f"(void){statement.swap.function}, {text}"
        if pair and statement.text.endswith(";"):
            text += ";"
        if not pair:
            # The variable is in no other statement: no warning of it.
            kept, _, value = statement.text.partition("=")
            name = re.findall(r"\w+", kept.partition("[")[0])[-1]
            text = "" if name in self.arrays else f"(void){name}"
            if value.endswith(";"):
                text = f"{kept}= 0; {text};"
        self.edits.replace(statement.begin, statement.end, text)

    # --- communication ----------------------------------------------------------------------------------

    def _exchange(self, verb: str, array: str, boxes: Sequence[Box]) -> list[str]:
        home, rank = boxes[0].home, len(boxes[0].sides)
        extents = []
        for box in boxes:
            for side in box.sides:
                values = [side.first, side.last]
                if side.follow is None:
                    values += ["0"] * 4
                else:
                    follow = side.follow
                    values += map(str, (follow.dimension + 1, follow.offset, side.low, side.high))
                extents.append(f"{{{self.language.numbers(values)}}}")
        memory = f"(void *){array}" if self.language.cxx else array
        lines = [f"homing_{verb}({self.layout(array)}, {self.layout(home)}, {PART}, {memory}, {len(boxes)},"]
        rows = [", ".join(extents[at : at + rank]) for at in range(0, len(extents), rank)]
        begin, end = self.language.listed("homing_extent")
        end += ");"
        lines.append(f"    {begin}{rows[0]}{',' if len(rows) > 1 else end}")
        for number, row in enumerate(rows[1:], 2):
            lines.append(" " * (4 + len(begin)) + row + ("," if number < len(rows) else end))
        return lines

    def fetch(self, array: str, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("fetch", array, boxes)

    def push(self, array: str, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("push", array, boxes)

    def before(self, array: str) -> list[str]:
        return [f"homing_before({self.layout(array)}, {PART}, {array});"]

    def broadcast(self, region: Region, exchange: Exchange) -> list[str]:
        box, target = exchange.box, exchange.copy
        array = self.arrays[box.array]
        del region
        self.copies += 1
        begin, end = self.language.listed("long")
        low = self.language.numbers([side.first for side in box.sides])
        high = self.language.numbers([side.last for side in box.sides])
        widths = "".join(
            f"[homing_at_least_one(({side.last}) - ({side.first}) + 1)]" for side in box.sides[1:]
        )
        call = f"homing_broadcast_copy({self.layout(array)}, {PART}, {array.name},"
        declared = self.language.pointer(f"const {array.declaration.type}", target, widths, call)
        return [declared.removesuffix(";"), f"    {begin}{low}{end}, {begin}{high}{end}, {self.copies});"]

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
        home, index, offset = follow.home, follow.dimension, follow.offset
        variable = loop.variable
        if follow.dealt.cyclic:
            self._cyclic_loop(region, loop, follow, positions, before)
            return
        names = []
        for which in ("low", "high"):
            name = f"hm_{which}_{home}_{index + 1}"
            region.bounds.setdefault(name, (self.arrays[home], index, which, variable))
            names.append(shifted(name, -offset))
        low, high = names
        if (by := follow.factor) > 1:
            low = f"({low} + homing_modulo(-({low}), {by})) / {by}"
            high = f"({high} - homing_modulo({high}, {by})) / {by}"
        first, last, stride = loop.first.text, loop.last.text, stride_of(loop)
        if isinstance(stride, str):
            self.problems.append((loop.begin, loop.head.end, stride))
            return
        up = stride.up
        new_first = f"homing_larger({first}, {low})" if up else f"homing_smaller({first}, {high})"
        new_last = f"homing_smaller({last}, {high})" if up else f"homing_larger({last}, {low})"
        if not stride.one:
            distance = f"({new_first} - ({first}))" if up else f"(({first}) - {new_first})"
            sign = "+" if up else "-"
            new_first = f"({first}) {sign} ({distance} + {stride.less_one}) / {stride.text} * {stride.text}"
        # Bounds are computed once: a condition is evaluated in every iteration.
        begin = f"hm_first_{variable}_{loop.begin}"
        end = f"hm_last_{variable}_{loop.begin}"
        lines = [f"const long {begin} = {new_first}, {end} = {new_last};"]
        if loop.unsigned:  # no iteration at all must not look like very many
            lines[0] = lines[0].removeprefix("const ")
            nothing = f"{begin} = 1, {end} = 0" if up else f"{begin} = 0, {end} = 1"
            lines.append(f"if ({begin} {'>' if up else '<'} {end}) {nothing};")
        self.edits.replace(loop.first.begin, loop.first.end, begin)
        self.edits.replace(*loop.condition, f"{_counter(loop)} {'<=' if up else '>='} {end}")
        self._before_loop(loop, lines, before)

    def _before_loop(self, loop: Loop, lines: list[str], before: list[str] | None) -> None:
        if before is not None:
            before.extend(lines)
            return
        indent = self.source.indent(loop.begin)
        self.edits.insert_lines(
            self.source.line_start(loop.begin), [self.indented(indent, line) for line in ["{", *lines]]
        )
        at = self.source.next_line(loop.end - 1)
        self.edits.insert_lines(at, [self.indented(indent, "}")], first=True)

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
        lowest, highest, by = bounds
        if not by.one:
            # Of an unsigned counter or step the difference would not be negative.
            apart = (
                f"(long){loop.variable} - ({loop.first.text})"
                if by.name
                else f"{loop.variable} - ({loop.first.text})"
            )
            test = f"if (({apart}) % {'(long)' if by.name else ''}{by.text}) continue; else "
            self.edits.replace(loop.body_begin, loop.body_begin, test)
        index, offset = follow.dimension, follow.offset
        layout = self.layout(follow.home)
        last = f"hm_last_{loop.variable}_{loop.begin}"
        at = f"hm_at_{loop.variable}_{loop.begin}"

        def next_own(text: str) -> str:
            found = f"homing_run_next({layout}, {PART}, {index}, {shifted(text, offset)}, LONG_MAX)"
            return shifted(found, -offset)

        def locals_(variable: str) -> list[str]:
            return [
                f"long {one.name} = homing_local({self.layout(one.array)}, {PART}, {one.dimension}, "
                f"{shifted(variable, one.offset)});"
                for one in positions
            ]

        if follow.dealt.argument == "1":
            stride = f"hm_stride_{loop.variable}_{loop.begin}"
            lines = [
                f"const long {last} = {highest}, {at} = homing_smaller({next_own(lowest)}, {last} + 1);",
                f"const long {stride} = homing_stride({layout}, {index});",
                *locals_(at),
                *(
                    f"const long {_step(one.name)} = homing_local_stride({self.layout(one.array)}, "
                    f"{one.dimension});"
                    for one in positions
                ),
            ]
            increments = "".join(f", {one.name} += {_step(one.name)}" for one in positions)
            self.edits.replace(loop.first.begin, loop.first.end, at)
            self.edits.replace(*loop.condition, f"{_counter(loop)} <= {last}")
            self.edits.replace(*loop.increment, f"{loop.variable} += {stride}{increments}")
            self._before_loop(loop, lines, before)
            return
        increments = "".join(f", {one.name}++" for one in positions)
        end = f"hm_end_{loop.variable}_{loop.begin}"
        block_end = shifted(f"homing_block_end({layout}, {PART}, {index}, {shifted(at, offset)})", -offset)
        lines = [
            f"const long {last} = {highest};",
            f"for (long {at} = {next_own(lowest)}, {end}; {at} <= {last};",
            f"     {at} = {next_own(f'{end} + 1')}) {{",
            f"    {end} = homing_smaller({last}, {block_end});",
            *("    " + line for line in locals_(at)),
        ]
        self.edits.replace(loop.first.begin, loop.first.end, at)
        self.edits.replace(*loop.condition, f"{_counter(loop)} <= {end}")
        self.edits.replace(*loop.increment, f"{loop.variable}++{increments}")
        indent = self.source.indent(loop.begin)
        at_end = self.source.next_line(loop.end - 1)
        self.edits.insert_lines(at_end, [self.indented(indent, "}")], first=True)
        self._before_loop(loop, lines, before)

    def owner_test(self, array: str, subscripts: Sequence[tuple[int, str]]) -> str:
        return " && ".join(
            f"homing_owns({self.layout(array)}, {PART}, {index}, {text})" for index, text in subscripts
        )

    def only_if(self, test: str) -> tuple[str, str]:
        return f"if ({test}) {{", "}"

    def local_index(self, array: str, dimension: int, index: str) -> str:
        return f"homing_local({self.layout(array)}, {PART}, {dimension}, {index})"

    def assign(self, name: str, value: str) -> str:
        return f"const long {name} = {value};"

    # --- LASTPRIVATE ------------------------------------------------------------------------------------

    def find_last(self, region: Region, last: LastValues) -> list[str]:
        """Before a part's iterations: does it run the last of all?"""
        del region
        follow, value = last.follow, f"hm_final_{last.variable}"
        index = follow.index(value)
        runs = f"homing_runs({self.layout(follow.home)}, {PART}, {follow.dimension}, {index}, LONG_MAX)"
        return [
            # A compiler may want to see a value, though no part keeps it unless it has given it one.
            *(f"{name} = (__typeof__({name})){{0}};" for name in last.copies),
            f"const long {value} = (long)({last.final});",
            f"const int {last.ends} = {last.counted} && {runs};",
        ]

    def keep_last(self, last: LastValues) -> list[str]:
        """Behind a part's iterations."""
        lines = [f"{holder} = {value};" for holder, value in last.kept(f"hm_final_{last.variable}")]
        return [f"if ({last.ends}) {{", *lines, "hm_ends_here = 1;", "}"]

    def around_last(self, last: LastValues, node: Construct) -> tuple[list[str], list[str]]:
        """Before the loop's construct, and behind it."""
        held = {name: last.holder(name) for name in last.names}
        declared = [f"static __typeof__({name}) {holder};" for name, holder in held.items()]
        declared.append("static int hm_ends_here;")
        before = ["hm_ends_here = 0;"]
        if last.variable in last.names:
            before.append(f"{last.variable} = {last.first};")
        behind = [f"{name} = {holder};" for name, holder in held.items()]
        behind = ["if (hm_ends_here) {", *behind, "}"]
        if self.mpi:
            shared = [f"homing_share_last(&{one}, sizeof {one}, hm_ends_here);" for one in held.values()]
            behind = [
                *shared,
                "homing_share_last(&hm_ends_here, sizeof hm_ends_here, hm_ends_here);",
                *behind,
            ]
        if not node.parallel:
            before = ["#pragma omp single", "{", *before, "}"]
            behind = ["#pragma omp barrier", "#pragma omp master", "{", *behind, "}", "#pragma omp barrier"]
        return ["{", *declared, *before], [*behind, "}"]

    # --- constructs -------------------------------------------------------------------------------------

    def _around(self, node: Construct, before: Sequence[str], behind: Sequence[str]) -> None:
        """Lines before a construct's directive and behind its end, in a block of their own."""
        like = node.body[0].begin if node.body else node.begin
        self._put(self.source.line_start(node.directive.begin), before, like)
        # Behind what loops inside put at the same place.
        self._put(self.source.next_line(node.end - 1), behind, like)

    def owner_executes(
        self,
        node: Construct,
        test: str,
        before: Sequence[str],
        lines: Sequence[str],
        behind: Sequence[str],
        barrier: bool,
    ) -> None:
        tail = list(behind)
        if barrier and node.directive.name == "single" and not node.directive.clause("nowait"):
            tail.append("#pragma omp barrier")
        self._around(
            node,
            ["{", *before, f"if ({test}) {{", *("    " + line for line in lines)],
            ["}", *tail, "}"],
        )
        self.edits.replace(node.directive.begin, node.directive.end, "")

    def as_single(self, node: Construct) -> None:
        data = [clause_text(one) for one in node.directive.clause("private", "firstprivate")]
        counters = sorted(set(self.outer_counters(node)) - node.directive.listed("private"))
        data += [f"private({', '.join(counters)})"] if node.worksharing and counters else []
        self.edits.replace(node.directive.begin, node.directive.end, " ".join(["#pragma omp single", *data]))
        for inner in walk(node.body):
            if isinstance(inner, Construct):
                self.edits.replace(inner.directive.begin, inner.directive.end, "")

    def single_whole(self, region: Region, node: Construct, plan: SinglePlan) -> str | None:
        arrays = [self.arrays[name] for name in plan.gathered]
        changed = [self.arrays[name] for name in plan.changed]
        if self.inside:
            return (
                "needs more than its owner's elements: not supported in a function that is called "
                "inside a region"
            )
        before, inside, behind = ["{"], [], []
        for array in arrays:
            before.append(
                f"void *hm_whole_{array.name} = homing_gather_inside({self.layout(array)}, {PART}, "
                f"{array.name});"
            )
            inside.append(self._pointer(array, f"hm_whole_{array.name}", whole=True))
        for array in changed:
            behind.append(f"homing_scatter_inside({self.layout(array)}, {PART}, {array.name});")
        behind += [f"homing_release_inside({self.layout(array)}, {PART});" for array in arrays]
        like = node.body[0].begin if node.body else node.begin
        self._put(self.source.next_line(node.directive.end), ["{", *inside], like)
        self._around(node, before, ["}", *behind, "}"])
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
        ahead, later = self.around_last(last, node) if last else ([], [])
        waits = barrier or bool(combined) or bool(directive.clause("reduction"))
        # Each thread's own, wherever they are declared: there is no worksharing loop any more that says so.
        counters = [f"{self._type_of(name)} {name};" for name in self.outer_counters(node)]
        head, tail = ["{", *self._used(region, node), *ahead, *around.exchange], []
        if combined:
            start, stop = self.reductions(combined)
            head[1:1] = ["#pragma omp barrier", "#pragma omp single", "{", *start, "}"]
            tail = ["#pragma omp master", "{", *stop, "}", "#pragma omp barrier"]
        if data:
            # A loop over the parts, one a thread, so that OpenMP itself does what the clauses say.
            clauses = " ".join(data)
            wait = "" if waits else " nowait"
            opening = f"#pragma omp for schedule(static, 1) {clauses}{wait}"
            self.edits.replace(directive.begin, directive.end, opening)
            each = "for (int hm_each = homing_first_part(); hm_each <= homing_last_part(); hm_each++)"
            inner = [each + " {", *counters, *around.setup]
            self._put(self.source.next_line(directive.end), inner, loop.begin)
            tail = [*around.left, "}", *tail, *later]
        else:
            head += ["{", *counters, *around.setup]
            self.edits.replace(directive.begin, directive.end, "")
            wait_here = ["#pragma omp barrier"] if waits else []
            tail = [*around.left, "}", *wait_here, *tail, *later]
        self._around(node, head, [*tail, *around.behind, "}"])

    def _used(self, region: Region, node: Construct) -> list[str]:
        """The counters' own variables, which nothing may use any more: for the compiler's warnings. What a
        region shares would be handed to it, without a value."""
        private = region.construct.directive.listed("private") if region.construct is not None else None
        return [f"(void){name};" for name in self.outer_counters(node) if private is None or name in private]

    def _type_of(self, name: str) -> str:
        declared = self.routine.lookup(name)
        return declared[1].type if declared else "int"

    def begin_region(
        self, region: Region, construct: Construct, before: Sequence[str], behind: Sequence[str]
    ) -> None:
        directive = construct.directive
        kept = self.region_clauses(directive)
        if not table.shares_all(directive):
            homes = {array.name: array for array, *_ in region.bounds.values()}
            homes.update({array.name: array for array in region.arrays})
            kept.append(f"shared({', '.join(self.layout(a) for a in homes.values())})")
        if construct.worksharing:
            private = [*self.outer_counters(construct), *sorted(directive.listed("lastprivate"))]
            private = [name for name in private if name not in directive.listed("firstprivate")]
            kept += [f"private({name})" for name in dict.fromkeys(private)]
            if not table.shares_all(directive) and directive.listed("lastprivate"):
                held = [f"hm_last_{name}" for name in sorted(directive.listed("lastprivate"))]
                kept.append(f"shared({', '.join([*held, 'hm_ends_here'])})")
        text = "#pragma omp parallel " + " ".join([*kept, "num_threads(homing_threads())"])
        self.edits.replace(directive.begin, directive.end, text)
        like = construct.body[0].begin if construct.body else construct.begin
        lines = ["{", *self._prologue(region), *before]
        at = self.source.next_line(directive.end)
        self._put(at, lines, like, first=True)
        leave = [f"homing_leave({self.layout(a)}, {PART}, {a.name});" for a in region.arrays]
        self._put(self.source.next_line(construct.end - 1), [*behind, *leave, "}"], like)

    def _prologue(self, region: Region) -> list[str]:
        lines = [f"const int {PART} = homing_part();", f"(void){PART};"]
        if region.construct is None:
            lines += [f"(void){self.layout(array)};" for array in region.arrays]
        if region.construct is not None:
            lines += [self._pointer(a, f"homing_enter({self.layout(a)}, {PART})") for a in region.arrays]
        for name, (array, dimension, which, _) in region.bounds.items():
            lines.append(
                f"const long {name} = homing_run_{which}({self.layout(array)}, {PART}, {dimension}, "
                "LONG_MAX);"
            )
        for one, i, two, j in sorted(region.together):
            lines.append(f"homing_together({one}, {i}, {two}, {j});")
        return lines

    def _pointer(self, array: Array, value: str, whole: bool = False) -> str:
        widths = ""
        for index in range(1, array.rank):
            bound = array.declaration.bounds[index]
            if array.dimensions[index].distributed and not whole:
                widths += f"[homing_width({self.layout(array)}, {PART}, {index})]"
            else:
                widths += f"[{shifted(bound.upper or '', 1)}]"
        return self.language.pointer(array.declaration.type, array.name, widths, value)

    def begin_procedure(self, region: Region) -> None:
        self._put(self.routine.head_end, self._prologue(region), self._like(), first=True)

    def reductions(self, reductions: Sequence[Reduction]) -> tuple[list[str], list[str]]:
        return self.over_ranks(reductions)

    # --- arguments -------------------------------------------------------------------------------------

    def pass_parts(self, reference: Reference, array: Array) -> None:
        self.edits.replace(reference.begin, reference.begin, f"{self.layout(array)}, ")

    def pass_part(self, reference: Reference, array: Array) -> None:
        self.edits.replace(reference.begin, reference.begin, f"{self.layout(array)}, ")

    def value_before(self, name: str, call: str) -> tuple[list[str], list[str]]:
        kind = "auto" if self.language.cxx else f"__typeof__({call})"
        return [f"const {kind} {name} = {call};"], []

    def may_write(self, reference: Reference, callee: Routine | None) -> bool:
        if callee is None or reference.argument_index >= len(callee.arguments):
            return True
        declaration = callee.declarations.get(callee.arguments[reference.argument_index])
        return declaration is None or "const" not in declaration.attributes

    def is_private(self, node: Loop | Construct | Statement, reference: Reference) -> bool:
        places = self.routine.places.get(reference.name, [])
        return any(node.begin <= place < node.end for place in places)


def _counter(loop: Loop) -> str:
    """The counter, as it is compared with a bound that may be negative."""
    return f"(long){loop.variable}" if loop.unsigned else loop.variable or ""


def _step(position: str) -> str:
    """The variable that holds how far a local position moves between two own indices of a CYCLIC(1)
    dimension."""
    return f"{position}_by"
