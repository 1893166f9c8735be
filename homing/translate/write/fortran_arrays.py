"""The life of distributed arrays in Fortran: parts are made, freed and dealt out anew, and serial code gets
the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from homing.translate.affine import names_in
from homing.translate.code_text import closing
from homing.translate.directives import model as d
from homing.translate.plan.accessibility import names_lacking
from homing.translate.plan.array import Array
from homing.translate.tree import (
    Access,
    Executable,
    Statement,
)
from homing.translate.write.fortran_text import DEPTH, FortranText, split_list
from homing.translate.write.writer import PART, Local

_MODEL_PIECE = re.compile(r"(?<![%\w])(?:mold|source)\s*=\s*(\w+)\s*\(", re.IGNORECASE)
_SECTION = re.compile(r"(?P<low>[^:]*):(?P<high>[^:]*)(?::(?P<step>[^:]*))?")
_KINDS = {d.Kind.STAR: 0, d.Kind.BLOCK: 1, d.Kind.CYCLIC: 2, d.Kind.GEN_BLOCK: 3}


class FortranArrays(FortranText):
    """Serial code on distributed arrays."""

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

    def gather(self, arrays: Sequence[Array], anew: Sequence[Array] = ()) -> list[str]:
        lines: list[str] = []
        for array in anew:
            lines += [f"if (allocated({self.container(array)})) then", *self.gather([array]), "end if"]
        arrays = [array for array in arrays if array not in anew]
        return lines + self._gathered(arrays) if arrays else lines

    def _gathered(self, arrays: Sequence[Array]) -> list[str]:
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

    def release(
        self, arrays: Sequence[Array], changed: Sequence[Array], anew: Sequence[Array] = ()
    ) -> list[str]:
        lines: list[str] = []
        for array in anew:
            if array in changed:
                lines += self._dealt_out(array)
            else:
                lines.append(f"if (allocated({array.name})) deallocate({array.name})")
        arrays = [array for array in arrays if array not in anew]
        return lines + self._released(arrays, [array for array in changed if array not in anew])

    def _dealt_out(self, array: Array) -> list[str]:
        """Parts of an array that may have been allocated or freed, with other bounds than before."""
        container, layout, name = self.container(array), self.layout(array), array.name
        freed = [f"deallocate({container})", f"call homing_layout_free({layout})"]
        other = " .or. ".join(
            f"homing_{side}({layout}, {i}) /= {inquiry}({name}, {i + 1})"
            for i in range(array.rank)
            for side, inquiry in (("lower", "lbound"), ("upper", "ubound"))
        )
        bounds = [(f"lbound({name}, {i + 1})", f"ubound({name}, {i + 1})") for i in range(array.rank)]
        return [
            f"if (.not. allocated({name})) then",
            f"if (allocated({container})) then",
            *freed,
            "end if",
            "else",
            f"if (allocated({container})) then",
            f"if ({other}) then",
            *freed,
            "end if",
            "end if",
            f"if (.not. allocated({container})) then",
            *self.create(array, bounds),
            "end if",
            *self._released([array], [array]),
            "end if",
        ]

    def _released(self, arrays: Sequence[Array], changed: Sequence[Array]) -> list[str]:
        lines: list[str] = []
        if changed:
            lines = self._each_part(
                [
                    f"call homing_scatter({self.layout(a)}, hm_each, "
                    f"{self.container(a)}(hm_each)%part, {a.name})"
                    for a in changed
                ]
            )
        return [*lines, *(f"deallocate({array.name})" for array in arrays)]

    def unknown_here(self, array: Array, bounds: Sequence[tuple[str, str]] = ()) -> list[str]:
        """Names that say how a module's array is distributed, and that this routine does not have."""
        return names_lacking(array, self.routine, self.distributions.modules, bounds)

    def _dimensions(self, array: Array, bounds: Sequence[tuple[str, str]]) -> tuple[str, str]:
        numbers, sizes = [], []
        for name in self.unknown_here(array, bounds)[:1]:
            reason = f"'{array.name}' is distributed by '{name}', which has no meaning here: USE it"
            self.problems.append((self.routine.begin, self.routine.head_end, reason))
        for index, dimension in enumerate(array.dimensions):
            lower, upper = bounds[index]
            template_lower, template_upper = dimension.lower or lower, dimension.upper or upper
            if dimension.base:
                base = f"{self.layout(dimension.base)}, {dimension.base_dimension}"
                template_lower, template_upper = (
                    f"homing_template_lower({base})",
                    f"homing_template_upper({base})",
                )
            argument = dimension.argument or "0"
            if dimension.kind is d.Kind.GEN_BLOCK:
                argument = f"size([integer(homing_long) :: {dimension.sizes}])"
                sizes.append(dimension.sizes)
            shadow = self.edits.late(partial(_shadow, array, index))
            numbers.append(
                f"{lower}, {upper}, {_KINDS[dimension.kind]}, {argument}, {shadow}, "
                f"{template_lower}, {template_upper}, {dimension.offset}, {dimension.parts or 0}"
            )
        return ",  ".join(numbers), ", ".join(sizes)

    def create(self, array: Array, bounds: Sequence[tuple[str, str]]) -> list[str]:
        """The layout and the parts of an array."""
        self.locals.setdefault(PART, Local(PART))
        layout, container = self.layout(array), self.container(array)
        numbers, sizes = self._dimensions(array, bounds)
        # ALLOCATE gives components their default values.
        has_values = self.distributions.types.may_have_defaults(self.routine, array.declaration.type)
        zero = 2 if has_values else int(array.declaration.storage != "allocatable")
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
        condition, code = self._guard(statement) if statement.guarded else ("", statement.code)
        if statement.guarded and not condition:
            self.problems.append(
                (statement.begin, statement.end, "use IF ... THEN around a distributed array's ALLOCATE")
            )
            return
        freed = code.lower().lstrip().startswith("deallocate")
        lines = []
        for reference in targets:
            array = self.arrays[reference.name]
            if array.dummy:
                reason = f"'{array.name}' is the caller's: ALLOCATE a distributed array where it is declared"
                self.problems.append((statement.begin, statement.end, reason))
                return
            if freed:
                lines += [
                    f"deallocate({self.container(array)})",
                    f"call homing_layout_free({self.layout(array)})",
                ]
                continue
            bounds = [
                (s.low or "1", s.high or "0") if s.section else ("1", s.text)
                for s in reference.subscripts or ()
            ] or self._bounds_of_model(code, array.rank)
            if not bounds:
                reason = f"ALLOCATE without bounds: give them, {array.name}({', '.join('n' * array.rank)})"
                self.problems.append((statement.begin, statement.end, reason))
                return
            asked = {word.lower() for pair in bounds for one in pair for word in re.findall(r"\w+", one)}
            if reference.subscripts and (parts := sorted(asked & self.arrays.keys())):
                reason = f"asks the distributed '{parts[0]}' for bounds: read them into a variable before"
                self.problems.append((statement.begin, statement.end, reason))
                return
            lines += self.create(array, bounds)
        others = re.search(r"\((.*)\)\s*$", code, re.DOTALL)
        type_spec, listed = _typed(others[1] if others else "")
        lines += self._sourced(statement, [self.arrays[one.name] for one in targets], listed)
        kept = []
        for item in split_list(listed):
            match = re.match(r"(\w+)\s*(=?)", item)
            if match and (match[2] or match[1].lower() not in named):
                kept.append(item)
        word = "deallocate" if freed else "allocate"
        real = [item for item in kept if not re.match(r"\w+\s*=(?!=)", item)]
        head = (
            f"{word}({type_spec}{', '.join(kept)})" if real else f"{status[0]} = 0" if status else "continue"
        )
        if condition:
            lines = [*([head] if head != "continue" else []), *lines, "end if"]
            head = f"if ({condition}) then"
        self.edits.replace(statement.begin, statement.end, head)
        # Before what is gathered for the next statement.
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def _bounds_of_model(self, code: str, rank: int) -> list[tuple[str, str]]:
        """ALLOCATE (a, MOLD = m) or SOURCE: those of an array or a section that is named; else none."""
        if (piece := _MODEL_PIECE.search(code)) is not None:
            return self._bounds_of_section(piece[1].lower(), code[piece.end() :], rank)
        match = re.search(r"\b(?:mold|source)\s*=\s*(\w+)\s*[,)]", code, re.IGNORECASE)
        name = match[1].lower() if match else ""
        if name in self.arrays:
            layout = self.layout(self.arrays[name])
            return [(f"homing_lower({layout}, {i})", f"homing_upper({layout}, {i})") for i in range(rank)]
        declared = self.routine.lookup(name)
        if declared is None or len(declared[1].bounds) != rank:
            return []
        return [(f"lbound({name}, {i + 1})", f"ubound({name}, {i + 1})") for i in range(rank)]

    def _bounds_of_section(self, name: str, behind: str, rank: int) -> list[tuple[str, str]]:
        """The same of `b(2:n, k)`: behind: the code after its opening bracket."""
        end = closing(behind, 0)
        subscripts, rest = split_list(behind[: end - 1]), behind[end:].lstrip()
        found = self.routine.lookup(name)
        if not rest.startswith((",", ")")) or found is None or len(found[1].bounds) != len(subscripts):
            return []
        sections = [(at, _SECTION.fullmatch(one)) for at, one in enumerate(subscripts)]
        numbers = [one for one, (_, section) in zip(subscripts, sections, strict=True) if section is None]
        sides = [(at, one["low"], one["high"], one["step"]) for at, one in sections if one is not None]
        if len(sides) != rank or not all(map(self._scalar, numbers)):
            return []
        if names_in(behind[:end].lower()) & self.arrays.keys() or re.search(r"\([^()]*:", behind[: end - 1]):
            return []
        bounds = []
        for at, low, high, step in sides:
            first, last = f"lbound({name}, {at + 1})", f"ubound({name}, {at + 1})"
            if name in self.arrays:
                layout = self.layout(self.arrays[name])
                first, last = f"homing_lower({layout}, {at})", f"homing_upper({layout}, {at})"
            length = f"({high.strip() or last}) - ({low.strip() or first})"
            length = f"({length} + ({step}))/({step})" if step else f"{length} + 1"
            bounds.append(("1", f"max(0_homing_long, int({length}, homing_long))"))
        return bounds

    def _scalar(self, text: str) -> bool:
        """Is a subscript a number, and no list of them?"""
        found = [self.routine.lookup(name) for name in names_in(text.lower())]
        return "[" not in text and "(/" not in text and all(one and not one[1].bounds for one in found)

    def _sourced(self, statement: Statement, arrays: Sequence[Array], items: str) -> list[str]:
        """ALLOCATE (..., SOURCE = value): what the arrays are set to."""
        given = (re.fullmatch(r"source\s*=\s*(.+)", item, re.I | re.S) for item in split_list(items))
        source = next((match[1] for match in given if match), None)
        if source is None:
            return []
        read = []
        for reference in statement.references:
            if reference.name in self.arrays:
                read.append(self.arrays[reference.name])
                if reference.argument_of is not None:
                    reason = (
                        f"SOURCE calls a function with the distributed '{reference.name}': assign it behind"
                    )
                    self.problems.append((reference.begin, reference.end, reason))
        used = list(dict.fromkeys([*arrays, *read]))
        # Without the colons, gfortran 12 would free `z` in `z = b(7:3)`.
        lines = [f"{array.name}({', '.join(':' * array.rank)}) = {source}" for array in arrays]
        return [*self.gather(used), *lines, *self.release(used, arrays)]

    def _guard(self, statement: Statement) -> tuple[str, str]:
        """The condition of `if (condition) allocate (...)`, asked of the parts, and what is guarded; empty:
        it asks for something else of the arrays, or is not read."""
        match = re.match(r"\s*if\s*(?=\()", statement.code, re.IGNORECASE)
        at = match.end() if match else 0
        depth = 0
        for end in range(at, len(statement.code)):
            depth += {"(": 1, ")": -1}.get(statement.code[end], 0)
            if depth == 0:
                break
        condition, tail = statement.code[at + 1 : end], statement.code[end + 1 :]
        place = statement.places[end]
        for reference in statement.references:
            array = self.arrays.get(reference.name)
            if array is None or reference.begin > place:
                continue
            if reference.argument_of != "allocated":
                return "", ""
            asked = re.compile(rf"\ballocated\s*\(\s*{array.name}\s*\)", re.IGNORECASE)
            condition = asked.sub(f"allocated({self.container(array)})", condition)
        return (condition, tail) if match and depth == 0 else ("", "")

    def swap(self, statement: Statement, pair: tuple[Array, Array] | None) -> None:
        self.edits.replace(statement.begin, statement.end, "continue")
        if pair is None:
            return
        first, second = pair
        self.swapped.setdefault(first.name, first)
        mine, its, kept = self.container(first), self.container(second), self.container_before(first)
        lines = [
            f"call move_alloc({mine}, {kept})",
            f"call move_alloc({its}, {mine})",
            f"call move_alloc({kept}, {its})",
            f"call homing_layout_swap({self.layout(first)}, {self.layout(second)})",
        ]
        self._lines(self.source.next_line(statement.end - 1), lines, statement.begin, first=True)

    def _redistribute(self, node: Executable, old: Array, new: Array) -> None:
        layout, before = self.layout(old), self.layout_before(old)
        container, parts = self.container(old), self.container_before(old)
        bounds = [(f"homing_lower({before}, {i})", f"homing_upper({before}, {i})") for i in range(old.rank)]
        lines = [
            f"{before} = {layout}",
            f"call move_alloc({container}, {parts})",
            *self.create(new, bounds),
            f"!$omp parallel private({PART}) num_threads(homing_threads())",
            f"{PART} = homing_part()",
            f"call homing_redistribute({before}, {layout}, {PART}, {parts}({PART})%part, "
            f"{container}({PART})%part)",
            "!$omp end parallel",
            f"deallocate({parts})",
            f"call homing_layout_free({before})",
        ]
        self._lines(self.source.next_line(node.end - 1), lines, node.begin, first=True)


def _shadow(array: Array, index: int) -> str:
    """Widths below and above, of all loops."""
    low, high = array.given_shadow[index] if array.given_shadow else array.shadow[index]
    return f"{max(low, array.shadow[index][0])}, {max(high, array.shadow[index][1])}"


def _typed(text: str) -> tuple[str, str]:
    """What ALLOCATE has in its brackets: TYPE ::, where a type is said, and the rest."""
    depth = 0
    for at, char in enumerate(text):
        depth += DEPTH.get(char, 0)
        if depth == 0 and text.startswith("::", at):
            return f"{text[:at].strip()} :: ", text[at + 2 :]
    return "", text
