"""--to pages in C: arrays keep their declarations; layouts are made beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from homing.translate.code_text import blanked
from homing.translate.openmp import clause_text
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.model import LastValues, LoopPlan
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Given,
    Loop,
    Node,
    Statement,
    statements,
    walk,
)
from homing.translate.write.c_writer import CWriter
from homing.translate.write.planned_text import followers
from homing.translate.write.writer import PART, Region

#: Functions that have filled a pointer where their value is 0; otherwise it is undefined.
_WHERE_ZERO = re.compile(r"(?:std\s*::\s*)?posix_memalign\b")


def _placed(layout: str, array: Array) -> str:
    declared = array.declaration
    volatile = re.search(r"\bvolatile\b", array.routine.source.text[declared.statement_begin : declared.end])
    return f"homing_place({layout}, {'(const void *)' if volatile else ''}{array.name});"


def _blocks(body: list[Node]) -> Iterator[tuple[int, int]]:
    """Where the statements stand that a loop or a branch holds, with all around them."""
    for node in walk(body):
        if isinstance(node, Branch):
            begins = [head.begin for head, _ in node.arms]
            yield from pairwise([*begins, node.end])
        elif isinstance(node, Loop | Construct):
            yield node.begin, node.end


class PagesC(CWriter):
    """The same for C."""

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        for reference in statement.references:
            array = self.arrays.get(reference.name)
            if array is None or reference.access is not Access.WRITE or array not in arrays:
                continue
            layout = self.layout(array)
            if statement.calls == ("free",):
                freed = f"{layout} = homing_layout_free({layout}), "
                self.edits.replace(statement.begin, statement.begin, freed)
            elif not any(one.name == array.name for one in statement.takes):  # a macro takes the memory
                begin = self._end(array.origin) if array.origin else 0
                if statement.begin > begin:
                    lines = [*self.made_again(array, statement), _placed(layout, array)]
                    self._put(self.source.next_line(statement.end), lines, statement.begin)

    def taken(self, statement: Statement) -> None:
        """Memory that pointers get, of whichever function."""
        for taking in statement.takes:
            array = self.arrays.get(taking.name)
            if array is None:
                continue
            if array.origin is not None and taking.begin < self._end(array.origin):
                continue
            behind = [*self.again_inside(array, statement), _placed(self.layout(array), array)[:-1]]
            if taking.used:
                behind.append(array.name)
            self.edits.replace(taking.begin, taking.begin, "(")
            self.edits.replace(taking.end, taking.end, "".join(f", {one}" for one in behind) + ")")

        places: dict[tuple[int, int], list[Given]] = {}
        for given in dict.fromkeys(statement.given):
            array = self.arrays.get(given.name)
            if array is None or any(map(self._placed_by, given.sources)):
                continue
            if given.kept or (given.macro and not self._stands_alone(given)):
                reason = f"what gives '{given.name}' memory by its address is not followed: it is not placed"
                self.distributions.notes.append(self.source.problem(given.begin, given.end, reason))
            elif array.origin is None or given.begin >= self._end(array.origin):
                places.setdefault((given.begin, given.end), []).append(given)
        for every in places.values():
            self._given(every, statement)

    def _given(self, every: Sequence[Given], statement: Statement) -> None:
        """What one call or assignment gives memory."""
        given, arrays = every[0], [self.arrays[one.name] for one in every]
        if given.macro:
            lines = [[*self.made_again(one, statement), _placed(self.layout(one), one)] for one in arrays]
            behind = self.source.text.index(";", given.end) + 1
            self.edits.replace(behind, behind, "".join(f" {line}" for each in lines for line in each))
            return
        placed = []
        for one in arrays:
            placed += [*self.again_inside(one, statement), _placed(self.layout(one), one)[:-1]]
        begin, end = "(", f", {', '.join(placed)})"
        if given.sources and given.used:
            end = f", {', '.join([*placed, given.name])})"
        elif given.value:  # which is the whole expression's
            kind = "auto" if self.source.cxx else "__auto_type"
            taken = _WHERE_ZERO.match(self.source.text, given.begin)
            done = f"{'if (hm_value == 0) ' if taken else ''}{{ {'; '.join(placed)}; }}"
            begin, end = f"__extension__({{ {kind} hm_value = ", f"; {done} hm_value; }})"
        self.edits.replace(given.begin, given.begin, begin)
        self.edits.replace(given.end, given.end, end)

    def _stands_alone(self, given: Given) -> bool:
        """Is what a macro makes a statement, in a block? It may be no expression."""
        before = blanked(self.source.text[: given.begin], False, " ")
        before = re.sub(r"^[ \t]*#.*$", "", before, flags=re.MULTILINE).rstrip()
        inner = re.split(r"[{}]", before)[-1]
        alone = before.endswith((";", "{", "}")) and inner.count("(") == inner.count(")")
        return alone and self.source.text[given.end :].lstrip().startswith(";")

    def _placed_by(self, source: str) -> bool:
        """Has a pointer memory that is placed: is it a distributed array, or does it get one's value?"""
        if source in self.arrays:
            return True
        return any(
            source in statement.writes and any(one.name in self.arrays for one in statement.references)
            for statement in statements(self.routine.body)
        )

    def _lifetime(self, statement: Statement) -> None:
        """Nothing is taken out."""

    def _create(self, array: Array, declare: bool, zero: bool | None = None) -> list[str]:
        lines = super()._create(array, declare, zero)[:-1]
        static = array.declaration.storage != "pointer"
        if static or array.declaration.initial is not None or self._given_before(array):
            lines.append(_placed(self.layout(array), array))
        return lines

    def _values(self, array: Array) -> list[str]:
        """The declaration has them."""
        return []

    def _given_before(self, array: Array) -> bool:
        """Does the pointer get memory between its declaration and the directive?"""
        end = self._end(array.origin) if array.origin is not None else 0
        before = [one for one in statements(self.routine.body) if one.begin < end]
        return any(
            one.name == array.name and one.access is Access.WRITE and one.subscripts is None
            for statement in before
            for one in statement.references
        ) or any(one.name == array.name for statement in before for one in statement.given)

    def _declaration(self, array: Array) -> None:
        """Declarations stay."""

    def _widths(self, array: Array) -> None:
        """So do the widths of arguments."""

    def _cxx_argument(self, array: Array, layout: str) -> None:
        start = array.declaration.statement_begin
        self.edits.replace(start, start, layout)

    def frame(self) -> None:
        self.inside = False
        super().frame()
        unused = [
            f"(void){self.layout(a)};" for a in self.arrays.values() if a.dummy and a.routine is self.routine
        ]
        self._put(self.routine.head_end, unused, self._like(), first=True)

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        layout = self.layout(old)
        lines = [f"homing_layout_free({layout});", *super()._create(new, False)[:-1]]
        lines.append(_placed(layout, old))
        self._put(self.source.next_line(node.end - 1), lines, node.begin)

    def share_layouts(self, region: Construct, more: Sequence[str]) -> None:
        """A region that does not share what it does not list, with loops that have a home."""
        del more  # variables of last values are declared inside
        directive = region.directive
        layouts = self._layouts_at(region)
        kept = [clause_text(one) for one in directive.clauses]
        name = directive.name.replace("do", "for")
        text = " ".join([f"#pragma omp {name}", *kept, f"shared({', '.join(layouts)})"])
        self.edits.replace(directive.begin, directive.end, text)

    def _layouts_at(self, node: Construct) -> list[str]:
        """The layouts whose names mean something there: not those of blocks that it does not lie in."""
        blocks = list(_blocks(self.routine.body))

        def known(array: Array) -> bool:
            place = self._place(array)
            around = [(begin, end) for begin, end in blocks if begin <= place < end]
            return place < node.begin and all(begin <= node.begin < end for begin, end in around)

        own = [one for one in self.arrays.values() if one.routine is self.routine and not one.dummy]
        return sorted(self.layout(one) for one in self.arrays.values() if one not in own or known(one))

    def _wrap(self, node: Construct, loop: Loop, lines: Sequence[str], last: LastValues | None) -> None:
        directive = node.directive
        private = [*self.outer_counters(node), *(last.copies if last else ())]
        kept = table.kept_texts(directive, table.Place.LOOP, "pages")
        kept += [f"private({name})" for name in dict.fromkeys(private)]
        if node.parallel and not directive.clause("num_threads"):
            kept.append("num_threads(homing_threads())")
        if not table.shares_all(directive):
            shared = self._layouts_at(node)
            shared += last.shared if last and node.parallel else []
            kept.append(f"shared({', '.join(shared)})")
        name = table.without_simd(directive).replace("do", "for")
        self.edits.replace(
            directive.begin, directive.end, f"#pragma omp {name} " + " ".join([*kept, "schedule(static, 1)"])
        )
        head = f"for (int {PART} = homing_first_part(); {PART} <= homing_last_part(); {PART}++) {{"
        self._put(self.source.next_line(directive.end), [head, *lines], loop.begin)
        left = self.keep_last(last) if last else []
        self._put(self.source.next_line(loop.end - 1), [*left, "}"], loop.begin)

    def on_owner(self, node: Construct, loop: Loop, plan: LoopPlan, homes: Sequence[Array]) -> None:
        """homes: the arrays whose owners run the loop; their layouts have been made."""
        region = Region(self.routine, node)
        lines: list[str] = []
        last = plan.last_values
        for inner, follow in followers(loop, plan):
            self.own_loop(region, inner, follow, [], lines if inner is loop else None)
        bounds = [
            f"const long {name} = homing_run_{which}({self.layout(array)}, {PART}, {dimension}, LONG_MAX);"
            for name, (array, dimension, which, _) in region.bounds.items()
        ]
        home = self.layout(plan.home or "")
        for index, text in plan.fixed:
            bounds.insert(0, f"if (!homing_runs({home}, {PART}, {index}, {text}, LONG_MAX)) continue;")
        ends = self.find_last(region, last) if last else []
        before, behind = self.around_last(last, node) if last else ([], [])
        self._put(self.source.line_start(node.directive.begin), before, node.begin)
        self._wrap(node, loop, [*bounds, *ends, *lines], last)
        self._put(self.source.next_line(node.end - 1), behind, node.begin)
