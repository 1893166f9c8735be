"""The Fortran text of a program in parts (see parts.py for the plan and runtime/homing_parts.h for the
calls).

A distributed array becomes an allocatable with the program's own bounds; every thread holds its part:
in a parallel region it is PRIVATE, and MOVE_ALLOC hands it over from and back to a container that outlives
the region. So the user's subscripts stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate import directives as d
from homing.translate.affine import affine, shifted
from homing.translate.arrays import Array, Distributions
from homing.translate.boxes import Box, Follow
from homing.translate.fortran_procedures import LoopProcedures
from homing.translate.openmp import clause_text, reductions_of
from homing.translate.source import Edits
from homing.translate.tree import (
    Access,
    Construct,
    Executable,
    Loop,
    Reference,
    Routine,
    Statement,
    walk,
)
from homing.translate.writer import PART, Local, Position, Region

_KINDS = {d.Kind.STAR: 0, d.Kind.BLOCK: 1, d.Kind.CYCLIC: 2, d.Kind.GEN_BLOCK: 3}
_OPERATIONS = {
    "+": ("homing_sum", "0"),
    "-": ("homing_sum", "0"),
    "*": ("homing_product", "1"),
    "max": ("homing_maximum", None),
    "min": ("homing_minimum", None),
    ".and.": ("homing_and", None),
    ".or.": ("homing_or", None),
}


class FortranWriter:
    """Writes one routine. `used` collects whether anything of the runtime is needed."""

    def __init__(self, routine: Routine, distributions: Distributions, edits: Edits, mpi: bool) -> None:
        self.routine = routine
        self.source = routine.source
        self.distributions = distributions
        self.arrays = distributions.of(routine)
        self.edits = edits
        self.mpi = mpi
        self.inside = distributions.inside(routine)
        self.locals: dict[str, Local] = {}
        self.bounds: dict[str, str] = {}  # own bounds: name -> type
        self.fixed = self.source.form is d.Form.FIXED
        self.problems: list[tuple[int, int, str]] = []
        self.waiting: list[tuple[Statement, list[Array]]] = []
        self.anew: list[tuple[Executable, Array, Array]] = []
        self.extra: list[str] = []  # declarations that take the place of others
        self.procedures = LoopProcedures(routine, edits, self.indented)

    # --- names and small texts --------------------------------------------------------------------------

    def indented(self, indent: str, line: str) -> str:
        if self.fixed:
            return line if line.startswith("!$omp") else " " * max(6, len(indent.expandtabs())) + line
        return indent + line

    def layout(self, array: Array) -> str:
        return f"hm_layout_{array.name}"

    def container(self, array: Array) -> str:
        return f"hm_parts_{array.name}"

    def type_name(self, array: Array) -> str:
        root = array
        while root.passed_from is not None:
            root = root.passed_from
        word = re.sub(r"\W+", "_", root.declaration.type).strip("_")
        return f"hm_{word}_{array.rank}"[:60]

    def long(self, text: str) -> str:
        return f"int({text}, homing_long)"

    def whole(self, array: Array, dimension: int) -> tuple[str, str]:
        bounds = array.declaration.bounds
        if dimension < len(bounds):
            bound = bounds[dimension]
            if not bound.deferred and bound.upper is not None and array.routine is self.routine:
                return bound.lower, bound.upper
        layout = self.layout(array)
        return f"homing_lower({layout}, {dimension})", f"homing_upper({layout}, {dimension})"

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

    def _home(self, box: Box) -> Array:
        return next(side.follow.home for side in box.sides if side.follow is not None)

    def _exchange(self, verb: str, array: Array, boxes: Sequence[Box]) -> list[str]:
        home = self.layout(self._home(boxes[0]))
        boxes_text = self._extents(boxes)
        return [
            f"call homing_{verb}({self.layout(array)}, {home}, {PART}, {array.name}, {len(boxes)}, "
            f"{boxes_text})"
        ]

    def fetch(self, array: Array, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("fetch", array, boxes)

    def push(self, array: Array, boxes: Sequence[Box]) -> list[str]:
        return self._exchange("push", array, boxes)

    def broadcast(self, region: Region, box: Box, target: str) -> list[str]:
        low = ", ".join(side.first for side in box.sides)
        high = ", ".join(side.last for side in box.sides)
        bounds = ", ".join(f"{side.first}:{side.last}" for side in box.sides)
        return [
            f"if (allocated({target})) deallocate({target})",
            f"allocate({target}({bounds}))",
            f"call homing_broadcast({self.layout(box.array)}, {PART}, {box.array.name}, "
            f"[integer(homing_long) :: {low}], "
            f"[integer(homing_long) :: {high}], {target})",
        ]

    # --- loops ------------------------------------------------------------------------------------------

    def own_loop(
        self,
        region: Region,
        loop: Loop,
        follow: Follow,
        positions: Sequence[Position],
        before: list[str] | None,
    ) -> None:
        assert loop.first is not None and loop.last is not None and loop.variable is not None
        home = follow.home
        dimension = home.dimensions[follow.dimension]
        if dimension.cyclic:
            self._cyclic_loop(region, loop, follow, positions, before)
            return
        low = self._bound(region, follow, "low", loop.variable)
        high = self._bound(region, follow, "high", loop.variable)
        low, high = shifted(low, -follow.offset), shifted(high, -follow.offset)
        first, last, step = loop.first.text, loop.last.text, loop.step.replace(" ", "")
        number = affine(step)
        if number.terms or number.constant == 0:
            self.problems.append(
                (loop.begin, loop.head.end, "the step of a loop that is shared out must be a number")
            )
            return
        stride = abs(number.constant)
        if number.constant > 0:
            new_first, new_last = f"max({first}, {low})", f"min({last}, {high})"
            if stride > 1:
                new_first = f"{first} + (({new_first} - ({first}) + {stride - 1})/{stride})*{stride}"
        else:
            new_first, new_last = f"min({first}, {high})", f"max({last}, {low})"
            if stride > 1:
                new_first = f"{first} - ((({first}) - {new_first} + {stride - 1})/{stride})*{stride}"
        self.edits.replace(loop.first.begin, loop.first.end, new_first)
        self.edits.replace(loop.last.begin, loop.last.end, new_last)

    def _bound(self, region: Region, follow: Follow, which: str, variable: str) -> str:
        name = f"hm_{which}_{follow.home.name}_{follow.dimension + 1}"
        declared = self.routine.lookup(variable)
        kind = declared[1].type if declared else "integer"
        known = region.bounds.get(name)
        if known is not None:
            other = self.routine.lookup(known[3])
            if (other[1].type if other else "integer") != kind:
                name = f"{name}_{variable}"
        region.bounds.setdefault(name, (follow.home, follow.dimension, which, variable))
        self.bounds[name] = kind
        return name

    def _cyclic_loop(
        self,
        region: Region,
        loop: Loop,
        follow: Follow,
        positions: Sequence[Position],
        before: list[str] | None,
    ) -> None:
        assert loop.first is not None and loop.last is not None and loop.variable is not None
        if loop.step.replace(" ", "") != "1":
            self.problems.append((loop.begin, loop.head.end, "a CYCLIC dimension needs a loop with step 1"))
            return
        array, index, offset = follow.home, follow.dimension, follow.offset
        layout = self.layout(array)
        argument = array.dimensions[index].argument
        at = f"hm_at_{loop.variable}"
        region.add(Local(at, like=loop.variable))

        def next_own(text: str) -> str:
            found = f"homing_next({layout}, {PART}, {index}, {self.long(shifted(text, offset))})"
            return (
                f"int({found}) - {offset}"
                if offset > 0
                else f"int({found}) + {-offset}"
                if offset
                else f"int({found})"
            )

        def local_before(variable: str) -> list[str]:
            lines = []
            for name, own, dimension, shift in positions:
                place = self.long(shifted(variable, shift))
                lines.append(
                    f"{name} = int(homing_local({self.layout(own)}, {PART}, {dimension}, {place})) - 1"
                )
            return lines

        lines = [f"{at} = {next_own(loop.first.text)}"]
        body = [f"{name} = {name} + 1" for name, *_ in positions]
        indent = self.source.indent(loop.begin)
        inner = (
            self.source.indent(loop.body_begin) if loop.body_begin < len(self.source.text) else indent + "  "
        )
        if argument == "1":
            lines += local_before(at)
            self.edits.replace(loop.first.begin, loop.first.end, at)
            self.edits.replace(loop.last.end, loop.last.end, f", int(homing_stride({layout}, {index}))")
        else:
            end = f"hm_end_{loop.variable}"
            region.add(Local(end, like=loop.variable))
            stop = self.edits.source.text[loop.last.begin : loop.last.end]
            block_end = f"int(homing_block_end({layout}, {PART}, {index}, {self.long(shifted(at, offset))}))"
            if offset:
                block_end += f" - {offset}" if offset > 0 else f" + {-offset}"
            lines += [f"do while ({at} <= {stop})", f"{end} = min({stop}, {block_end})", *local_before(at)]
            self.edits.replace(loop.first.begin, loop.first.end, at)
            self.edits.replace(loop.last.begin, loop.last.end, end)
            behind = [f"{at} = {next_own(f'{end} + 1')}", "end do"]
            self.edits.insert_lines(
                self.source.next_line(loop.end - 1), [self.indented(indent, x) for x in behind], first=True
            )
        if body:
            self.edits.insert_lines(loop.body_begin, [self.indented(inner, x) for x in body])
        if before is not None:
            before.extend(lines)
        else:
            self.edits.insert_lines(
                self.source.line_start(loop.begin), [self.indented(indent, x) for x in lines]
            )

    def owner_test(self, array: Array, subscripts: Sequence[tuple[int, str]]) -> str:
        return " .and. ".join(
            f"homing_owns({self.layout(array)}, {PART}, {index}, {self.long(text)})"
            for index, text in subscripts
        )

    def local_index(self, array: Array, dimension: int, index: str) -> str:
        return f"int(homing_local({self.layout(array)}, {PART}, {dimension}, {self.long(index)}))"

    def assign(self, name: str, value: str) -> str:
        return f"{name} = {value}"

    # --- constructs -------------------------------------------------------------------------------------

    def _directive(self, begin: int, end: int, text: str) -> None:
        """Put code (or another directive) in place of a directive."""
        if self.fixed and text and not text.startswith("!$omp"):
            start = self.source.line_start(begin)
            self.edits.replace(start, end, "      " + text)
            return
        self.edits.replace(begin, end, text)

    def _lines(self, offset: int, lines: Sequence[str], like: int, first: bool = False) -> None:
        indent = self.source.indent(like)
        self.edits.insert_lines(offset, [self.indented(indent, line) for line in lines], first)

    def owner_executes(
        self,
        node: Construct,
        test: str,
        before: Sequence[str],
        lines: Sequence[str],
        behind: Sequence[str],
        barrier: bool,
    ) -> None:
        begin = node.directive.begin
        assert node.closing is not None
        self._lines(self.source.line_start(begin), before, begin)
        self._directive(begin, node.directive.end, f"if ({test}) then")
        self._lines(
            self.source.next_line(node.directive.end), lines, node.body[0].begin if node.body else begin
        )
        self._directive(node.closing.begin, node.closing.end, "end if")
        tail = list(behind)
        if barrier and node.directive.name == "single" and not node.closing.clause("nowait"):
            tail.append("!$omp barrier")
        self._lines(self.source.next_line(node.closing.end), tail, begin)

    def single_whole(
        self, region: Region, node: Construct, arrays: Sequence[Array], changed: Sequence[Array]
    ) -> str | None:
        if self.inside:
            return (
                "needs more than its owner's elements: not supported in a procedure that is "
                "called inside a region"
            )
        assert node.closing is not None
        before, inside, back, behind = ["!$omp single"], [], [], []
        for array in arrays:
            whole = f"hm_whole_{array.name}"
            self.locals[whole] = Local(whole, array=array)
            mine = f"hm_mine_{array.name}"
            region.add(Local(mine, array=array))
            before.append(f"allocate({whole}({self._whole_bounds(array)}))")
            inside += [f"call move_alloc({array.name}, {mine})", f"call move_alloc({whole}, {array.name})"]
            back += [f"call move_alloc({array.name}, {whole})", f"call move_alloc({mine}, {array.name})"]
        before.append("!$omp end single")
        for array in arrays:
            before.append(
                f"call homing_collect({self.layout(array)}, {PART}, {array.name}, hm_whole_{array.name})"
            )
        before.append("!$omp barrier")
        if self.mpi:
            before += [
                "!$omp master",
                *(f"call homing_share({self.layout(a)}, hm_whole_{a.name})" for a in arrays),
            ]
            before += ["!$omp end master", "!$omp barrier"]
        behind.append("!$omp barrier")
        for array in changed:
            behind.append(
                f"call homing_scatter({self.layout(array)}, {PART}, {array.name}, hm_whole_{array.name})"
            )
        behind += ["!$omp barrier", "!$omp single"]
        behind += [f"deallocate(hm_whole_{array.name})" for array in arrays]
        behind.append("!$omp end single")
        begin = node.directive.begin
        self._lines(self.source.line_start(begin), before, begin)
        self._lines(self.source.next_line(node.directive.end), inside, begin)
        self.edits.insert_lines(
            self.source.line_start(node.closing.begin),
            [self.indented(self.source.indent(begin), line) for line in back],
        )
        self._lines(self.source.next_line(node.closing.end), behind, begin)
        return None

    def worksharing(
        self,
        region: Region,
        node: Construct,
        loop: Loop,
        before: Sequence[str],
        behind: Sequence[str],
        barrier: bool,
        mpi: bool,
    ) -> None:
        directive = node.directive
        data = directive.clause("reduction", "private", "firstprivate")
        reductions = directive.clause("reduction")
        before, behind = list(before), list(behind)
        tail: list[str] = []
        if data:
            # A loop over the parts, one a thread, so that OpenMP itself does what the clauses say.
            clauses = " ".join(clause_text(clause) for clause in data)
            part = region.add(Local("hm_each"))
            opening = f"!$omp do schedule(static, 1) {clauses}"
            inner = [f"do {part} = homing_first_part(), homing_last_part()"]
            tail = ["end do", "!$omp end do" + ("" if barrier or reductions else " nowait")]
            if mpi and reductions:
                start, stop = self.reductions(reductions_of(reductions))
                before = ["!$omp barrier", "!$omp single", *start, "!$omp end single", *before]
                tail += ["!$omp master", *stop, "!$omp end master", "!$omp barrier"]
        else:
            opening, inner = "", []
            if barrier:
                tail = ["!$omp barrier"]
        # Communication first: it has barriers, which may not stand inside the worksharing loop.
        exchange = [line for line in before if not line.startswith("hm_") and not line.startswith("do while")]
        setup = before[len(exchange) :] if before[: len(exchange)] == exchange else []
        if not setup:
            exchange, setup = before, []
        begin = directive.begin
        if opening:
            self._lines(self.source.line_start(begin), exchange, begin)
            self._directive(begin, directive.end, opening)
            self._lines(self.source.next_line(directive.end), inner + setup, begin)
        else:
            self._lines(self.source.line_start(begin), exchange, begin)
            self._directive(begin, directive.end, "")
            self._lines(self.source.next_line(directive.end), setup, begin)
        if node.closing is not None:
            self._directive(node.closing.begin, node.closing.end, "")
            at = self.source.next_line(node.closing.end)
        else:
            at = self.source.next_line(loop.end - 1)
        self._lines(at, tail + behind, begin)
        if not self.inside:
            self.procedures.add(region, node, loop)

    def begin_region(
        self, region: Region, construct: Construct, before: Sequence[str], behind: Sequence[str]
    ) -> None:
        directive = construct.directive
        kept = []
        counters = self._counters(construct)
        dropped = {"schedule", "collapse", "ordered", "if", "nowait", "affinity of sgi"}
        for clause in directive.clauses:
            if clause.name in dropped:
                continue
            if clause.name == "shared":
                names = [n.strip() for n in (clause.text or "").split(",")]
                names = [n for n in names if n and n not in self.arrays and n.lower() not in counters]
                if names:
                    kept.append(f"shared({', '.join(names)})")
                continue
            kept.append(clause_text(clause))
        arrays = list(region.arrays)
        for name in sorted({f.home.name for f in self._follows(region)}):
            if self.arrays[name] not in arrays:
                arrays.append(self.arrays[name])
        private = [array.name for array in region.arrays]
        private += [PART, *region.locals, *region.bounds]
        private += sorted(counters - directive.listed("private", "firstprivate", "reduction"))
        if construct.directive.name == "parallel do" and isinstance(construct.body[0], Loop):
            self.procedures.add(region, construct, construct.body[0])
        kept.append(f"private({', '.join(private)})")
        kept.append("num_threads(homing_threads())")
        if any((c.text or "").strip() != "shared" for c in directive.clause("default")):
            shared = [self.container(a) for a in region.arrays] + [self.layout(a) for a in arrays]
            kept.append(f"shared({', '.join(shared)})")
        begin = directive.begin
        self._directive(begin, directive.end, "!$omp parallel " + " ".join(kept))
        prologue = [f"{PART} = homing_part()"]
        prologue += [f"call move_alloc({self.container(a)}({PART})%part, {a.name})" for a in region.arrays]
        prologue += self._bound_lines(region)
        epilogue = [f"call move_alloc({a.name}, {self.container(a)}({PART})%part)" for a in region.arrays]
        like = construct.body[0].begin if construct.body else begin
        at = self.source.next_line(directive.end)
        indent = self.source.indent(like)
        self.edits.insert_lines(at, [self.indented(indent, x) for x in [*prologue, *before]], first=True)
        closing = construct.closing
        if closing is not None:
            self._directive(closing.begin, closing.end, "!$omp end parallel")
            self.edits.insert_lines(
                self.source.line_start(closing.begin),
                [self.indented(indent, x) for x in [*behind, *epilogue]],
            )
        else:
            end = self.source.next_line(construct.end - 1)
            self._lines(end, [*behind, *epilogue, "!$omp end parallel"], like)
        self._declare_locals(region)

    def _counters(self, region: Construct) -> set[str]:
        """Counters of the region's loops: private without being listed as long as the loops stand in it,
        which those that are moved do not."""
        nodes = list(walk([region]))
        loops = {node.variable for node in nodes if isinstance(node, Loop) and node.variable}
        shared_out = {
            node.body[0].variable
            for node in nodes
            if isinstance(node, Construct) and node.worksharing and isinstance(node.body[0], Loop)
        }
        found = shared_out | (loops - region.directive.listed("shared"))
        scope: Routine | None = self.routine
        while scope is not None and not scope.implicit_none:
            scope = scope.parent
        # Under IMPLICIT NONE a name that is not declared here may be one of a BLOCK construct.
        return {name for name in found if name and (scope is None or self.routine.lookup(name) is not None)}

    def _follows(self, region: Region) -> list[Follow]:
        return [Follow("", array, dimension, 0) for array, dimension, _, _ in region.bounds.values()]

    def _bound_lines(self, region: Region) -> list[str]:
        lines = [
            f"{name} = int(homing_own_{which}({self.layout(array)}, {PART}, {dimension}))"
            for name, (array, dimension, which, _) in region.bounds.items()
        ]
        for one, i, two, j in sorted(region.together):
            lines.append(f"call homing_together({one}, {i}, {two}, {j})")
        return lines

    def begin_procedure(self, region: Region) -> None:
        lines = [f"{PART} = homing_part()", *self._bound_lines(region)]
        self._lines(self.routine.declarations_end, lines, self._body_like())
        self._declare_locals(region)

    def _body_like(self) -> int:
        return self.routine.body[0].begin if self.routine.body else self.routine.declarations_end

    def _declare_locals(self, region: Region) -> None:
        for local in region.locals.values():
            self.locals.setdefault(local.name, local)

    def reductions(self, reductions: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
        before, behind = [], []
        for operator, name in reductions:
            known = _OPERATIONS.get(operator)
            if known is None:
                self.problems.append(
                    (self.routine.begin, self.routine.head_end, f"REDUCTION({operator}) over ranks")
                )
                continue
            operation, neutral = known
            if neutral is not None:
                before.append(f"if (homing_rank() > 0) {name} = {neutral}")
            behind.append(f"call homing_reduce({name}, {operation})")
        return before, behind

    # --- serial code ------------------------------------------------------------------------------------

    def _whole_bounds(self, array: Array) -> str:
        layout = self.layout(array)
        return ", ".join(
            f"homing_lower({layout}, {i}):homing_upper({layout}, {i})" for i in range(array.rank)
        )

    def _each_part(self, calls: Sequence[str]) -> list[str]:
        self.locals.setdefault("hm_each", Local("hm_each"))
        return [
            "do hm_each = homing_first_part(), homing_last_part()",
            *("  " + call for call in calls),
            "end do",
        ]

    def gather(self, arrays: Sequence[Array]) -> list[str]:
        lines = [f"allocate({array.name}({self._whole_bounds(array)}))" for array in arrays]
        lines += self._each_part(
            [
                f"call homing_collect({self.layout(a)}, hm_each, {self.container(a)}(hm_each)%part, {a.name})"
                for a in arrays
            ]
        )
        if self.mpi:
            lines += [f"call homing_share({self.layout(a)}, {a.name})" for a in arrays]
        return lines

    def release(self, arrays: Sequence[Array], changed: Sequence[Array]) -> list[str]:
        lines = []
        if changed:
            lines = self._each_part(
                [
                    f"call homing_scatter({self.layout(a)}, hm_each, "
                    f"{self.container(a)}(hm_each)%part, {a.name})"
                    for a in changed
                ]
            )
        return [*lines, *(f"deallocate({array.name})" for array in arrays)]

    # --- life of an array -------------------------------------------------------------------------------

    def _dimensions(self, array: Array, bounds: Sequence[tuple[str, str]]) -> tuple[str, str]:
        numbers, sizes = [], []
        for index, dimension in enumerate(array.dimensions):
            lower, upper = bounds[index]
            template_lower, template_upper = dimension.lower or lower, dimension.upper or upper
            if dimension.base:
                base = f"hm_layout_{dimension.base}, {dimension.base_dimension}"
                template_lower, template_upper = (
                    f"homing_template_lower({base})",
                    f"homing_template_upper({base})",
                )
            argument = dimension.argument or "0"
            if dimension.kind is d.Kind.GEN_BLOCK:
                single = re.fullmatch(r"[a-z]\w*", dimension.sizes)
                declared = self.routine.lookup(dimension.sizes) if single else None
                is_array = declared is not None and bool(declared[1].bounds)
                argument = f"size({dimension.sizes})" if is_array else str(dimension.sizes.count(",") + 1)
                sizes.append(dimension.sizes)
            low, high = array.given_shadow[index] if array.given_shadow else array.shadow[index]
            low, high = max(low, array.shadow[index][0]), max(high, array.shadow[index][1])
            numbers.append(
                f"{lower}, {upper}, {_KINDS[dimension.kind]}, {argument}, {low}, {high}, "
                f"{template_lower}, {template_upper}, {dimension.offset}, {dimension.parts or 0}"
            )
        return ",  ".join(numbers), ", ".join(sizes)

    def create(self, array: Array, bounds: Sequence[tuple[str, str]]) -> list[str]:
        """The layout and the parts of an array."""
        self.locals.setdefault(PART, Local(PART))
        layout, container = self.layout(array), self.container(array)
        numbers, sizes = self._dimensions(array, bounds)
        zero = int(array.declaration.storage != "allocatable")
        own = ", ".join(
            f"homing_low({layout}, {PART}, {i}):homing_high({layout}, {PART}, {i})" for i in range(array.rank)
        )
        return [
            f"{layout} = homing_layout_create('{array.name}', storage_size({array.name}), {array.rank}, "
            f"[integer(homing_long) :: {numbers}], [integer(homing_long) :: {sizes}])",
            f"allocate({container}(homing_first_part():homing_last_part()))",
            f"!$omp parallel private({PART}) num_threads(homing_threads())",
            f"{PART} = homing_part()",
            f"allocate({container}({PART})%part({own}))",
            f"call homing_clear({layout}, {PART}, {container}({PART})%part, {zero})",
            "!$omp end parallel",
        ]

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        # Shadows are known when all loops of all routines have been looked at.
        self.waiting.append((statement, list(arrays)))

    def _lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        named = {array.name for array in arrays}
        targets = [r for r in statement.references if r.access is Access.WRITE and r.name in named]
        status = [
            r.name
            for r in statement.references
            if r.access is Access.WRITE
            and r.name not in named
            and re.search(rf"\bstat\s*=\s*{r.name}\b", statement.text)
        ]
        if statement.guarded:
            self.problems.append(
                (statement.begin, statement.end, "use IF ... THEN around a distributed array's ALLOCATE")
            )
            return
        lines = []
        for reference in targets:
            array = self.arrays[reference.name]
            if statement.text.lstrip().startswith("deallocate"):
                lines += [
                    f"deallocate({self.container(array)})",
                    f"call homing_layout_free({self.layout(array)})",
                ]
                continue
            if reference.subscripts is None:
                self.problems.append((statement.begin, statement.end, "ALLOCATE without bounds"))
                return
            bounds = [
                (s.low or "1", s.high or "0") if s.section else ("1", s.text) for s in reference.subscripts
            ]
            lines += self.create(array, bounds)
        others = re.search(r"\((.*)\)\s*$", statement.code, re.DOTALL)
        kept = []
        if others:
            for item in _split(others[1]):
                match = re.match(r"\s*(\w+)", item)
                if match and match[1].lower() in named and not re.match(r"\s*\w+\s*=", item):
                    continue
                kept.append(item.strip())
        word = "deallocate" if statement.text.lstrip().startswith("deallocate") else "allocate"
        real = [item for item in kept if not re.match(r"\w+\s*=(?!=)", item)]
        head = f"{word}({', '.join(kept)})" if real else f"{status[0]} = 0" if status else "continue"
        self.edits.replace(statement.begin, statement.end, head)
        # Before what is gathered for the next statement.
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        self.anew.append((node, old, new))
        self.locals.setdefault("hm_each", Local("hm_each"))

    def _redistribute(self, node: Executable, old: Array, new: Array) -> None:
        bounds = [(f"lbound({old.name}, {i + 1})", f"ubound({old.name}, {i + 1})") for i in range(old.rank)]
        lines = self.gather([old])
        lines += [f"deallocate({self.container(old)})", f"call homing_layout_free({self.layout(old)})"]
        lines += self.create(new, bounds) + self.release([new], [new])
        self._lines(self.source.next_line(node.end - 1), lines, node.begin, first=True)

    def pass_parts(self, reference: Reference, array: Array) -> None:
        self.edits.replace(reference.begin, reference.end, f"{self.container(array)}, {self.layout(array)}")

    def pass_part(self, reference: Reference, array: Array) -> None:
        self.edits.replace(reference.end, reference.end, f", {self.layout(array)}")

    def may_write(self, reference: Reference, callee: Routine | None) -> bool:
        if callee is None:
            return True
        if reference.argument_index >= len(callee.arguments):
            return False
        declaration = callee.declarations.get(callee.arguments[reference.argument_index])
        if declaration is None:
            return True
        begin, end = declaration.statement_begin, declaration.statement_end
        return re.search(r"intent\s*\(\s*in\s*\)", callee.source.text[begin:end].lower()) is None

    def is_private(self, loop: Loop, reference: Reference) -> bool:
        del loop
        return self.inside and self.routine.lookup(reference.name) is None

    # --- declarations -----------------------------------------------------------------------------------

    def frame(self) -> None:
        routine = self.routine
        own = [a for a in self.arrays.values() if a.routine is routine]
        for statement, arrays in self.waiting:
            self._lifetime(statement, arrays)
        for node, old, new in self.anew:
            self._redistribute(node, old, new)
        self._own_declarations(own)
        start: list[str] = []
        if routine.main:
            start.append("call homing_start()")
        for array in own:
            declaration = array.declaration
            if array.dummy or declaration.storage in ("allocatable",):
                continue
            bounds = [(b.lower, b.upper or "0") for b in declaration.bounds]
            start += self.create(array, bounds)
        for array in own:
            procedure = not routine.main and not routine.module and not array.dummy
            if procedure and "save" in array.declaration.attributes:
                begin, end = array.declaration.begin, array.declaration.end
                self.problems.append((begin, end, "a distributed array with SAVE in a procedure"))
        if routine.module:
            for array in own:
                if array.declaration.storage != "allocatable":
                    begin, end = array.declaration.begin, array.declaration.end
                    self.problems.append((begin, end, "a distributed array of a module must be ALLOCATABLE"))
        declarations = self._new_declarations(own)
        at = routine.declarations_end
        indent = self._indent()
        self.edits.insert_lines(at, [self.indented(indent, x) for x in [*declarations, *start]], first=True)
        # USE comes before everything else, at the same place or an earlier one.
        needed = own or declarations or start or self.locals
        if needed or any(isinstance(n, Construct) for n in walk(routine.body)):
            self.edits.insert_lines(routine.head_end, [self.indented(indent, "use homing_parts")], first=True)
        self._import()
        self.procedures.write(self._variables(own))

    def _import(self) -> None:
        """An ONLY list that names a distributed array of a module names what belongs to it as well."""
        for module, (_, end, only) in self.routine.uses.items():
            if only is None:
                continue
            names = {part.strip() for part in only.split(",")}
            found = [a for a in self.arrays.values() if a.routine.name == module and a.name in names]
            if found:
                more = ", ".join(f"{name}" for a in found for name in self._companions(a))
                self.edits.replace(end, end, f", {more}")

    def _companions(self, array: Array) -> list[str]:
        """What stands beside an array's declaration."""
        return [self.container(array), self.layout(array)]

    def _indent(self) -> str:
        for declaration in self.routine.declarations.values():
            return self.source.indent(declaration.statement_begin)
        return self.source.indent(self.routine.declarations_end)

    def _new_declarations(self, own: Sequence[Array]) -> list[str]:
        lines = list(self.extra)
        types: set[str] = set()
        for array in own:
            if array.dummy and self.inside:
                continue
            colons = ", ".join(":" for _ in array.dimensions)
            name = self.type_name(array)
            if name not in types:
                types.add(name)
                element = array.declaration.type
                lines += [
                    f"type :: {name}",
                    "  sequence",
                    f"  {element}, allocatable :: part({colons})",
                    "end type",
                ]
            if not array.dummy:
                lines.append(f"type({name}), allocatable :: {self.container(array)}(:)")
                lines.append(f"type(homing_handle) :: {self.layout(array)}")
                if self.routine.module:
                    lines.append(f"public :: {', '.join(self._companions(array))}")
            else:
                lines.append(f"type({name}), intent(inout) :: {self.container(array)}(homing_first_part():*)")
        lines += self._variables(own).values()
        return lines

    def _variables(self, own: Sequence[Array]) -> dict[str, str]:
        """The translation's variables, with their declarations."""
        found: dict[str, str] = {}
        for local in self.locals.values():
            if local.array is not None:
                colons = ", ".join(":" for _ in local.array.dimensions)
                found[local.name] = f"{local.array.declaration.type}, allocatable :: {local.name}({colons})"
            else:
                like = self.routine.lookup(local.like) if local.like else None
                found[local.name] = f"{like[1].type if like else 'integer'} :: {local.name}"
        if PART not in self.locals and (own or self.bounds) and not self.routine.module:
            found[PART] = f"integer :: {PART}"
        for name, kind in self.bounds.items():
            found[name] = f"{kind} :: {name}"
        return found

    def _own_declarations(self, own: Sequence[Array]) -> None:
        routine = self.routine
        by_statement: dict[int, list[Array]] = {}
        for array in own:
            by_statement.setdefault(array.declaration.statement_begin, []).append(array)
        dummies = [a for a in own if a.dummy]
        if dummies:
            begin = min(decl.statement_begin for decl in routine.declarations.values())
            at = self.source.line_start(begin)
            lines = [f"type(homing_handle), intent(in) :: {', '.join(self.layout(a) for a in dummies)}"]
            self.edits.insert_lines(at, [self.indented(self._indent(), x) for x in lines])
            self._argument_list(dummies)
        for begin, arrays in by_statement.items():
            changed = [a for a in arrays if self._must_change(a)]
            if not changed:
                continue
            if self.inside:
                for array in changed:
                    self._local_bounds(array)
                continue
            self._take_out(begin, changed)

    def _must_change(self, array: Array) -> bool:
        return array.declaration.storage != "allocatable" or array.dummy

    def _argument_list(self, dummies: Sequence[Array]) -> None:
        """`f` becomes `f, hm_layout_f` (or the container of all parts) in the procedure's head."""
        text = self.source.text
        head = text[self.routine.begin : self.routine.arguments_end]
        opening = self.routine.begin + head.index("(")
        for array in dummies:
            match = re.compile(rf"\b{re.escape(array.name)}\b", re.IGNORECASE).search(text, opening)
            assert match is not None
            new = match.group() if self.inside else self.container(array)
            self.edits.replace(match.start(), match.end(), f"{new}, {self.layout(array)}")

    def _local_bounds(self, array: Array) -> None:
        """A dummy inside a region has the bounds of the part."""
        declaration = array.declaration
        text = self.source.text[declaration.begin : declaration.end]
        shape = declaration.separate_shape
        parts = []
        for index, (dimension, bound) in enumerate(zip(array.dimensions, declaration.bounds, strict=True)):
            low = f"homing_low({self.layout(array)}, homing_part(), {index})"
            high = f"homing_high({self.layout(array)}, homing_part(), {index})"
            if dimension.distributed:
                parts.append(f"{low}:" if bound.deferred else f"{low}:{high}")
            elif bound.deferred:
                parts.append(f"{bound.lower}:" if bound.lower != "1" else ":")
            else:
                parts.append(f"{bound.lower}:{bound.upper}" if bound.lower != "1" else str(bound.upper))
        new = f"({', '.join(parts)})"
        del shape
        opening = text.find("(")
        if opening >= 0:
            self.edits.replace(declaration.begin + opening, declaration.end, new)
        else:
            self.edits.replace(declaration.end, declaration.end, new)

    def _take_out(self, begin: int, arrays: Sequence[Array]) -> None:
        """Declare the arrays of one statement as allocatables instead (dummies: as locals)."""
        first = arrays[0].declaration
        lines = []
        for array in arrays:
            colons = ", ".join(":" for _ in array.dimensions)
            lines.append(f"{array.declaration.type}, allocatable :: {array.declaration.spelling}({colons})")
            if array.declaration.initial is not None:
                decl = array.declaration
                self.problems.append(
                    (decl.begin, decl.end, "an initialised distributed array: assign its values instead")
                )
        names = {array.name for array in arrays}
        others = [
            decl
            for decl in self.routine.declarations.values()
            if decl.statement_begin == begin and decl.name not in names
        ]
        source = self.source
        if not others:
            self.edits.replace(first.statement_begin, first.statement_end, lines[0])
            self.extra += lines[1:]
        else:
            everything = sorted(
                (decl for decl in self.routine.declarations.values() if decl.statement_begin == begin),
                key=lambda decl: decl.begin,
            )
            kept = [source.text[decl.begin : decl.end] for decl in everything if decl.name not in names]
            self.edits.replace(everything[0].begin, everything[-1].end, ", ".join(_joined(k) for k in kept))
            self.extra += lines


def _joined(text: str) -> str:
    """An entity on one line."""
    return re.sub(r"&[ \t]*(?:![^\n]*)?\n\s*&?", "", text)


def _split(text: str) -> list[str]:
    """The items of a list, at commas outside brackets."""
    items, depth, current = [], 0, ""
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            items.append(current)
            current = ""
        else:
            current += char
    return [*items, current]
