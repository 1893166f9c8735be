"""--to pages in Fortran: arrays keep their declarations; layouts are made beside them."""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.openmp import clause_text
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.model import LastValues, LoopPlan
from homing.translate.tree import (
    Access,
    Construct,
    Executable,
    Kind,
    Loop,
    Statement,
)
from homing.translate.write.fortran_writer import FortranWriter
from homing.translate.write.planned_text import followers
from homing.translate.write.writer import PART, Local, Region


class PagesFortran(FortranWriter):
    """Arrays keep their declarations; layouts are made beside them."""

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        named = {array.name for array in arrays}
        lines: list[str] = []
        for reference in statement.references:
            if reference.name not in named or reference.access is not Access.WRITE:
                continue
            array = self.arrays[reference.name]
            if array.dummy:
                reason = f"'{array.name}' is the caller's: ALLOCATE a distributed array where it is declared"
                self.problems.append((statement.begin, statement.end, reason))
                continue
            if statement.kind is Kind.DEALLOCATE:
                self._lines(
                    self.source.line_start(statement.begin),
                    [f"call homing_layout_free({self.layout(array)})"],
                    statement.begin,
                )
                continue
            bounds = [
                (f"lbound({array.name}, {i + 1})", f"ubound({array.name}, {i + 1})")
                for i in range(array.rank)
            ]
            lines += self.create(array, bounds)
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def allocated_anew(self, statement: Statement, arrays: Sequence[Array]) -> None:
        """Layouts behind a statement that may have allocated the arrays or freed them."""
        lines: list[str] = []
        for array in arrays:
            bounds = [
                (f"lbound({array.name}, {i + 1})", f"ubound({array.name}, {i + 1})")
                for i in range(array.rank)
            ]
            lines += [
                f"call homing_layout_free({self.layout(array)})",
                f"if (allocated({array.name})) then",
                *self.create(array, bounds),
                "end if",
            ]
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def unallocated(self, array: Array) -> list[str]:
        late = self.routine.module or (self.made_late(array) and array.declaration.storage != "pointer")
        return [] if late else [f"{self.layout(array)} = homing_nothing"]

    def beginning(self) -> list[str]:
        """The main program places what lies in modules before anybody touches it."""
        found = [array for array in self.arrays.values() if array.routine is not self.routine]
        found = [array for array in found if not self.unknown_here(array)]
        static = [array for array in found if array.declaration.storage == "static"]
        return [line for array in static for line in self.fitted(array)] if self.routine.main else []

    def made_late(self, array: Array) -> bool:
        """Is the array's layout made where it is needed first? Those of modules, which have no statements, of
        COMMON blocks, with SAVE; pointers, which may mean other memory than before."""
        declaration = array.declaration
        if array.dummy:
            return False
        if declaration.storage == "pointer":
            return True
        if array.routine.main:
            return False
        if array.routine.module:
            return declaration.storage != "allocatable"
        kept = {"save", "data"} & declaration.attributes or declaration.initial is not None
        return bool(kept) or declaration.storage == "common"

    def fitted(self, array: Array) -> list[str]:
        """The layout as the array is now, and its pages where they belong, unless that has been done."""
        if not self.made_late(array):
            return []
        lines = self._bases_fitted(array)
        name = array.name
        bounds = [(f"lbound({name}, {i + 1})", f"ubound({name}, {i + 1})") for i in range(array.rank)]
        numbers, sizes = self._dimensions(array, bounds)
        call = (
            f"if (homing_layout_fitted({self.layout(array)}, '{name}', storage_size({name}), {array.rank}, "
            f"[integer(homing_long) :: {numbers}], [integer(homing_long) :: {sizes}])) "
            f"call homing_place({self.layout(array)}, {name})"
        )
        movable = {"pointer": "associated", "allocatable": "allocated"}.get(array.declaration.storage)
        self.calls_runtime = True
        return [*lines, *([f"if ({movable}({name})) then", call, "end if"] if movable else [call])]

    def _bases_fitted(self, array: Array) -> list[str]:
        """What the array is aligned with."""
        bases = dict.fromkeys(dimension.base for dimension in array.dimensions if dimension.base)
        return [line for base in bases if base in self.arrays for line in self.fitted(self.arrays[base])]

    def ready(self, at: int, arrays: Sequence[Array]) -> None:
        """Before what begins there and hands the arrays on, with their layouts."""
        lines = [line for array in arrays for line in self.fitted(array)]
        self._lines(self.source.line_start(at), lines, at)

    def _holds(self, array: Array) -> bool:
        """The array itself does."""
        return False

    def create(self, array: Array, bounds: Sequence[tuple[str, str]]) -> list[str]:
        numbers, sizes = self._dimensions(array, bounds)
        layout = self.layout(array)
        return [
            *self._bases_fitted(array),
            f"{layout} = homing_layout_create('{array.name}', storage_size({array.name}), {array.rank}, "
            f"[integer(homing_long) :: {numbers}], [integer(homing_long) :: {sizes}])",
            f"call homing_place({layout}, {array.name})",
        ]

    def share_layouts(self, region: Construct, more: Sequence[str]) -> None:
        """A region that does not share what it does not list, with loops that have a home."""
        directive = region.directive
        layouts = sorted({self.layout(a) for a in self.arrays.values()})
        kept = [clause_text(one) for one in directive.clauses]
        text = " ".join([f"!$omp {directive.name}", *kept, f"shared({', '.join([*layouts, *more])})"])
        self._directive(directive.begin, directive.end, text)

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        bounds = [(f"lbound({old.name}, {i + 1})", f"ubound({old.name}, {i + 1})") for i in range(old.rank)]
        lines = [f"call homing_layout_free({self.layout(old)})", *self.create(new, bounds)]
        self._lines(self.source.next_line(node.end - 1), lines, node.begin)

    def _directive_text(self, node: Construct, more: Sequence[str]) -> str:
        directive = node.directive
        kept = table.kept_texts(directive, table.Place.LOOP, "pages")
        count = (
            ["num_threads(homing_threads())"] if node.parallel and not directive.clause("num_threads") else []
        )
        name = table.without_simd(directive)
        return f"!$omp {name} " + " ".join([*kept, *more, "schedule(static, 1)", *count])

    def _wrap(
        self,
        node: Construct,
        loop: Loop,
        lines: Sequence[str],
        private: Sequence[str],
        last: LastValues | None,
    ) -> None:
        listed = node.directive.listed("private", "firstprivate", "reduction")
        names = [*private, *(last.copies if last else ()), *([loop.variable] if loop.variable else ())]
        names = [name for name in names if name not in listed]
        more = [f"private({', '.join(names)})"]
        if not table.shares_all(node.directive):
            shared = sorted({self.layout(a) for a in self.arrays.values()})
            shared += last.shared if last else []
            more.append(f"shared({', '.join(shared)})")
        self._directive(node.directive.begin, node.directive.end, self._directive_text(node, more))
        head = [f"do {PART} = homing_first_part(), homing_last_part()", *lines]
        self._lines(self.source.next_line(node.directive.end), head, loop.begin)
        indent = self.source.indent(loop.begin)
        at = self.source.next_line(loop.end - 1)
        behind = self.keep_last(last) if last else []
        self.edits.insert_lines(at, [self.indented(indent, line) for line in [*behind, "end do"]])
        self.locals.setdefault(PART, Local(PART))

    def on_owner(self, node: Construct, loop: Loop, plan: LoopPlan, homes: Sequence[Array]) -> None:
        """homes: the arrays whose owners run the loop, as they are distributed there."""
        region = Region(self.routine, node)
        lines: list[str] = []
        for inner, follow in followers(loop, plan):
            self.own_loop(region, inner, follow, [], lines if inner is loop else None)
        last = plan.last_values
        ends = self.find_last(region, last) if last else []
        bounds = self._bound_lines(region)
        self._declare_locals(region)
        fitted = [line for home in homes for line in self.fitted(home)]
        before, behind = self.around_last(last, node) if last else ([], [])
        self._lines(self.source.line_start(node.directive.begin), [*fitted, *before], node.begin)
        home = self.layout(plan.home or "")
        for index, text in plan.fixed:
            runs = f"homing_runs({home}, {PART}, {index}, {self.long(text)}, int(huge(0), homing_long))"
            bounds.insert(0, f"if (.not. {runs}) cycle")
        self._wrap(node, loop, [*bounds, *ends, *lines], [*region.bounds, *region.locals], last)
        closing = node.closing.end if node.closing else node.end - 1
        self._lines(self.source.next_line(closing), behind, node.begin)

    def _new_declarations(self, own: Sequence[Array]) -> list[str]:
        lines = []
        for array in own:
            if array.dummy:
                continue
            if self.routine.module or self.made_late(array):
                lines.append(f"type(homing_handle){self.saved} :: {self.layout(array)} = homing_nothing")
            else:
                lines += self.handle(array)
        if self.routine.module:
            lines += self.shown(own)
        lines += self._variables(own).values()
        return lines

    def _companions(self, array: Array) -> list[str]:
        return [self.layout(array)]

    def _take_out(self, begin: int, arrays: Sequence[Array], others_too: bool) -> None:
        """Declarations stay."""

    def _move_data(self, changed: Sequence[Array]) -> None:
        """DATA statements, too."""

    def _leave_out(self, changed: Sequence[Array]) -> None:
        """So do others of the same names."""

    def _changeable(self, begin: int, arrays: Sequence[Array]) -> None:
        """Bounds stay."""

    def frame(self) -> None:
        self.inside = True  # layouts are handed on beside the arrays, wherever a procedure is called
        needed = bool(self.arrays) or bool(self.locals) or bool(self.bounds) or self.calls_runtime
        if needed:
            super().frame()
        elif self.routine.main:
            # homing_threads() starts the runtime by itself.
            return
