"""Declarations of a C program in parts: distributed arrays as pointers with layouts, their life, and what
serial code gets of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.affine import shifted
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.reached import reaching
from homing.translate.source import Edits, SourceFile
from homing.translate.tree import (
    Access,
    Construct,
    Declaration,
    Executable,
    Kind,
    Loop,
    Routine,
    Statement,
    statements,
    walk,
)
from homing.translate.write import c_values, cxx_namespaces
from homing.translate.write.c_language import reference_to_pointer
from homing.translate.write.c_layouts import CLayouts

#: What takes memory that nothing else has a name for, or none.
_OWN_MEMORY = re.compile(r"^\W*(0|NULL|nullptr)\W*$|\b(malloc|calloc|aligned_alloc|valloc|memalign|new)\b")
#: A pointer's own, in front of its name.
_QUALIFIERS = re.compile(r"\*(?:\s|\b(?:const|restrict|__restrict|volatile)\b)*\Z")


class CDeclarations(CLayouts):
    """One function, or a file's own scope."""

    def __init__(self, routine: Routine, distributions: Distributions, edits: Edits, mpi: bool) -> None:
        super().__init__(routine, distributions, edits, mpi)
        self.waiting: list[Statement] = []
        self.copies = 0

    def indented(self, indent: str, line: str) -> str:
        return line if line.startswith("#") else indent + line

    def _put(self, offset: int, lines: Sequence[str], like: int, first: bool = False) -> None:
        indent = self.source.indent(like)
        self.edits.insert_lines(offset, [self.indented(indent, line) for line in lines], first=first)

    def _like(self) -> int:
        return self.routine.body[0].begin if self.routine.body else self.routine.head_end

    def gather(self, arrays: Sequence[Array], anew: Sequence[Array] = ()) -> list[str]:
        each = ((array.name, f"homing_gather({self.layout(array)})") for array in arrays)
        return [f"{name} = {self.language.whole(name, call)};" for name, call in each]

    def release(
        self, arrays: Sequence[Array], changed: Sequence[Array], anew: Sequence[Array] = ()
    ) -> list[str]:
        found = []
        for array in arrays:
            call = f"homing_release({self.layout(array)}, (void *){array.name}, {int(array in changed)})"
            found.append(f"{array.name} = {self.language.whole(array.name, call)};")
        return found

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        del arrays
        self.waiting.append(statement)

    def _lifetime(self, statement: Statement) -> None:
        for reference in statement.references:
            array = self.arrays.get(reference.name)
            if array is None or reference.access is not Access.WRITE:
                continue
            if reference.subscripts is not None:
                self.problems.append(
                    (reference.begin, reference.end, "memory for a piece of a distributed array")
                )
                continue
            if statement.calls == ("free",):
                self.edits.replace(
                    statement.begin,
                    statement.end,
                    f"{self.layout(array)} = homing_layout_free({self.layout(array)})",
                )
            else:
                self._taken(array, statement)

    def _taken(self, array: Array, statement: Statement) -> None:
        """Memory that a statement takes, or the condition of an IF."""
        nowhere = self.language.whole(array.name, "homing_nowhere()")
        text = ", ".join([*self.again_inside(array, statement), f"{array.name} = {nowhere}"])
        if not statement.within:
            self.edits.replace(statement.begin, statement.end, text)
            return
        for taking in statement.takes:
            if taking.name == array.name:
                self.edits.replace(taking.begin, taking.end, f"({text})")

    def made_again(self, array: Array, statement: Statement) -> list[str]:
        """The layout of memory that the statement takes, where free may have come before it."""
        every = [one for unit in self.distributions.units for one in unit.routines]
        freed = any(
            one.kind is Kind.DEALLOCATE and any(r.name == array.name for r in one.references)
            for routine in every
            if self.distributions.of(routine).get(array.name) is array
            for one in statements(routine.body)
        )
        if not freed or array.dummy or array.origin is None:
            return []
        if array.routine.source is self.source and statement.begin < self._end(array.origin):
            return []
        made = self._create(array, False, zero="calloc" in statement.calls)
        return [f"if (!{self.layout(array)}) {{", *made, "}"]

    def again_inside(self, array: Array, statement: Statement) -> list[str]:
        """The same as an expression."""
        lines = self.made_again(array, statement)[1:-1]
        if not lines:
            return []
        each = " ".join(lines).replace(";", ",")
        return [f"(void)({self.layout(array)} || ({each} 1))"]

    def _redistribute(self, node: Executable, old: Array, new: Array) -> None:
        layout, before = self.layout(old), self.layout_before(old)
        lines = [
            "{",
            f"homing_layout *{before} = {layout};",
            *self._create(new, False),
            "#pragma omp parallel num_threads(homing_threads())",
            f"homing_redistribute({before}, {layout}, homing_part(), NULL, NULL);",
            f"homing_layout_free({before});",
            "}",
        ]
        self._put(self.source.next_line(node.end - 1), lines, node.begin, first=True)

    def frame(self) -> None:
        routine = self.routine
        for statement in self.waiting:
            self._lifetime(statement)
        for directive_node, old, new in self.anew:
            self._redistribute(directive_node, old, new)
        if routine.module:
            self.edits.insert_lines(0, ['#include "homing_parts.h"'], first=True)
        own = [a for a in self.arrays.values() if a.routine is routine]
        for directive in routine.directives:
            self._blank(directive)
        for node in walk(routine.body):
            if isinstance(node, Construct):
                for inner in node.homing:
                    self._blank(inner)
            elif isinstance(node, Executable):
                self._blank(node.directive)
        if routine.main:
            lines = ["homing_start();", *self._of_file()]
            self._put(routine.head_end, lines, self._like(), first=True)
        elif routine.module and own and not self._main_of(self.source):
            self._register()
        elif (
            not routine.module
            and own != list(self.arrays.values())
            and not self.inside
            and not self._main_of(None)
        ):  # what calls it may not have begun what the arrays need
            self._put(routine.head_end, ["homing_start();"], self._like(), first=True)
        for array in self.arrays.values() if routine.module else ():
            if array.routine is not routine:
                self._of_another_file(array)
        if not own:
            return
        dummies = [array for array in own if array.dummy]
        if dummies:
            self._arguments(dummies)
            if not self.inside:
                self._put(
                    routine.head_end, [f"(void){array.name};" for array in dummies], self._like(), first=True
                )
        real = [array for array in own if not array.dummy]
        for array in real:
            self._declaration(array)
        if routine.module and routine.namespaces:
            for array in real:
                self._in_namespace(array)
                early = self._first_user_of(array)
                if early is not None and array.origin is not None and early < self._end(array.origin):
                    reason = "a function that knows the distributed array stands before the directive"
                    self.problems.append((array.declaration.begin, array.declaration.end, reason))
        elif routine.module and real:
            at = self.source.next_line(max(map(self._place, real)))
            early = self._first_user()
            at = at if early is None else min(at, self.source.line_start(early))
            self._put(at, [self._layout_of_file(array) for array in real], 0, first=True)
        else:
            for place in sorted({self._place(array) for array in real}):
                here = [array for array in real if self._place(array) == place]
                lines = [line for array in here for line in self._made(array, declare=True)]
                self._put(self.source.next_line(place), lines, place, first=True)

    def _place(self, array: Array) -> int:
        """Where an array is made: behind its directive, and behind those whose layouts it is made from."""
        mine = self._end(array.origin) if array.origin is not None else 0
        bases = [self.arrays[one.base] for one in array.dimensions if one.base in self.arrays]
        return max([mine, *(self._place(one) for one in bases if one.routine is self.routine)])

    def _main_of(self, source: SourceFile | None) -> bool:
        """Is the main program in this file, or (None) in any?"""
        units = self.distributions.units
        return any(one.main for unit in units if source in (None, unit.source) for one in unit.routines)

    def _of_file(self) -> list[str]:
        """What makes the arrays of the file's own scope, in a place where names of functions hide none."""
        scope = self.routine.parent or self.routine
        lines = []
        for array in self.distributions.of(scope).values():
            if array.routine is not scope:
                continue  # another file makes it
            around = scope.namespaces.get(array.name)
            if around:  # whose names may not be open here
                lines.append(f"{around}::hm_make_{array.name}();")
            else:
                lines += self._made(array, declare=False)
        return lines

    def _register(self) -> None:
        """A file without the main program: homing_start makes its arrays, wherever it is called."""
        lines = ["static void hm_make_arrays(void) {", *self._of_file(), "}"]
        lines += ["__attribute__((constructor)) static void hm_before_main(void) {"]
        lines += ["homing_at_start(hm_make_arrays);", "}"]
        self._put(len(self.source.text), lines, 0)

    def _layout_of_file(self, array: Array) -> str:
        """The declaration of an array's layout; files that use the array find it by its name."""
        static = "" if array in self.distributions.lent else "static "
        return f"{static}homing_layout *{self.layout(array)};"

    def _of_another_file(self, array: Array) -> None:
        """What this file has to know of an array that another one makes (plan/lent.py)."""
        name, lent = array.name, self.distributions.lent
        is_pointer = array.declaration.storage == "pointer"  # and stays one
        lines = [f"extern homing_layout *{self.layout(array)};"]
        if is_pointer or lent.by_header(self.routine, name):
            first = self._first_user_of(array)
            if not is_pointer:
                lines.append(f"extern __typeof__(*{name}) *hm_{name};")
        else:
            declared = [self.routine.declarations[name], *self.routine.again.get(name, ())]
            first = min(one.statement_begin for one in declared)
            for one in declared:
                self._to_pointer(one)
        if first is None:
            return
        if not is_pointer:
            if self._is_member(array, first):
                return
            lines.append(f"#define {name} hm_{name}")
        self.edits.insert_lines(self.source.line_start(first), lines, first=True)

    def _is_member(self, array: Array, at: int) -> bool:
        """Has a member the array's name, which cannot be another one by a macro then?"""
        member = re.search(rf"(?:\.|->)\s*{array.name}\b", self.source.text)
        if member is not None:
            who = "a header" if array.name in self.routine.included else "another file"
            reason = f"{who} declares the distributed '{array.name}', and a member has its name: rename one"
            self.problems.append((at, at + 1, reason))
        return member is not None

    def _in_namespace(self, array: Array) -> None:
        """C++: in the array's namespace, what main calls to make it; the layout is known to all behind."""
        for one in (array.declaration, *self.routine.again.get(array.name, ())):
            if self.source.text[: one.begin].rstrip().endswith("::"):
                reason = "defines a distributed array outside of its namespace: define it inside"
                self.problems.append((one.begin, one.end, reason))
        if array.origin is None:
            return
        end = self._end(array.origin)
        made = []
        if array.name in self.routine.namespaces:
            made = [f"static void hm_make_{array.name}() {{", *self._create(array, declare=False), "}"]
            found = cxx_namespaces.inside(self.routine, array.name, end, made)
            if found is None:
                reason = f"'{array.name}' stands in another namespace: write the directive there"
                self.problems.append((array.declaration.begin, array.declaration.end, reason))
            made = found or made
        behind = self.source.next_line(end)
        known = cxx_namespaces.known_from(self.routine, end)
        layout = [self._layout_of_file(array)]
        if known is None:
            self._put(behind, [*layout, *made], 0)
            return
        self._put(known, layout, 0)
        if made:
            self._put(behind, made, 0)

    def _end(self, directive: d.Directive) -> int:
        source = directive.source
        return self.source.offset(source.end_line, source.end_column) - 1

    def _blank(self, directive: d.Directive) -> None:
        place = directive.source.position
        begin = self.source.offset(place.line, place.column)
        end = self.source.offset(directive.source.end_line, directive.source.end_column)
        text = self.source.text[begin:end].rstrip("\r\n")
        self.edits.replace(begin, begin + len(text), "\n" * text.count("\n"))

    def _made(self, array: Array, declare: bool) -> list[str]:
        """The name is used, even where regions alone use the array, by the names of its parts."""
        of_file = array.declaration.storage == "pointer" and self.routine.module
        used = [] if of_file else [f"(void){array.name};"]
        return [*self._create(array, declare), *self._values(array), *used]

    def _values(self, array: Array) -> list[str]:
        """The initial values of an array that is no pointer, unless they are zeros, as its memory is."""
        declaration = array.declaration
        if declaration.storage == "pointer" or array.dummy or c_values.zeros(declaration.initial):
            return []
        return c_values.given(declaration, self.layout(array))

    def _declaration(self, array: Array) -> None:
        """The name becomes a pointer to the gathered array."""
        declaration = array.declaration
        if self.mpi and declaration.addresses:
            reason = "the elements hold addresses, which mean nothing to other ranks"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        if declaration.storage == "pointer":
            if declaration.initial is not None:
                if not _OWN_MEMORY.search(declaration.initial):
                    reason = (
                        f"'{declaration.name}' gets memory that may have other names: take it with malloc"
                    )
                    self.problems.append((declaration.begin, declaration.end, reason))
                begin = declaration.end - len(declaration.initial)
                self.edits.replace(begin, declaration.end, self._nowhere(declaration))
            return
        if not self.routine.module and not self.routine.main:
            reason = "a distributed array of a function: take memory with malloc, or declare it in main"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        loops = (one for one in walk(self.routine.body) if isinstance(one, Loop))
        if any(one.begin <= declaration.begin < one.end for one in loops):
            reason = "a distributed array that a loop makes in every iteration: declare it before the loop"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        of_file = self.routine.module and not c_values.zeros(declaration.initial)
        if of_file or (declaration.initial is not None and declaration.bounds[0].upper is None):
            reason = "an initialised distributed array: assign its values instead"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        other = c_values.others_behind(declaration, self._place(array), self.routine.body, self.arrays)
        if other is not None:
            self.problems.append((declaration.begin, declaration.end, other))
            return
        if "extern" in declaration.attributes:
            reason = "another file defines the array: distribute it there"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        for one in (declaration, *self.routine.again.get(array.name, ())):
            self._to_pointer(one)
        if array.name in self.routine.included or array in self.distributions.lent:
            self._renamed(array)

    def _nowhere(self, declaration: Declaration) -> str:
        """The first value of a pointer, which gets others and so is no constant."""
        text, start = self.source.text, declaration.statement_begin
        automatic = re.search(r"\bauto\b", text[start : declaration.begin])
        if not automatic:
            found = _QUALIFIERS.search(text, 0, declaration.begin)
            start = found.start() if found else declaration.begin
        for const in re.finditer(r"\bconst\b", text[start : declaration.begin]):
            self.edits.replace(start + const.start(), start + const.end(), "")
        if not automatic:
            return self.language.whole(declaration.name, "homing_nowhere()")
        sides = "".join(f"[{shifted(one.upper or '', 1)}]" for one in declaration.bounds[1:])
        return f"({declaration.type} {f'(*){sides}' if sides else '*'})homing_nowhere()"

    def _to_pointer(self, declaration: Declaration) -> None:
        text, name = self.source.text, declaration.spelling
        end = declaration.begin + len(name)
        match = re.compile(r"\s*\[[^\]]*\]").match(text, end)
        if match is None or text[declaration.begin : end] != name:
            reason = f"declares the distributed '{name}' in a way that is not followed: write out its bounds"
            self.problems.append((declaration.begin, declaration.end, reason))
            return
        inner = text[match.end() : declaration.end]
        if declaration.initial is not None:
            inner = inner[: len(inner) - len(declaration.initial)].rstrip().removesuffix("=").rstrip()
        # In a function regions may be all that has used it.
        within = any(one.begin <= declaration.begin < one.end for one in self._functions())
        unused = " __attribute__((unused))" if self.routine.module and within else ""
        self.edits.replace(
            declaration.begin,
            declaration.end,
            (f"(*{name}){inner}" if inner.strip() else f"*{name}") + unused,
        )

    def _functions(self) -> list[Routine]:
        units = self.distributions.units
        return [one for unit in units for one in unit.routines if one.parent is self.routine]

    def _renamed(self, array: Array) -> None:
        """A header declares the array, and stays as it is, or another file does: behind that the name is
        another one by a macro. What uses the header's is not found when it is linked."""
        name, declared = array.name, [array.declaration, *self.routine.again.get(array.name, ())]
        if self._is_member(array, array.declaration.begin):
            return
        first = min(one.statement_begin for one in declared)
        lines = [f"#define {name} hm_{name}"]
        early = self._first_user()
        if early is not None and early < first:
            first = early
            inner = "".join(f"[{shifted(one.upper or '', 1)}]" for one in array.declaration.bounds[1:])
            lines.append(f"extern {array.declaration.type} {f'(*{name}){inner}' if inner else f'*{name}'};")
        self.edits.insert_lines(self.source.line_start(first), lines, first=True)

    def _first_user(self) -> int | None:
        """Where the first function of the file begins that knows an array of the file's own scope."""
        users = (
            one.begin
            for one in self._functions()
            if any(array.routine is self.routine for array in self.distributions.of(one).values())
        )
        return min(users, default=None)

    def _first_user_of(self, array: Array) -> int | None:
        """The same of one array, which the function names, or what it calls."""
        known = self.distributions.of
        users = reaching(
            self.distributions.units,
            self.distributions.routines,
            lambda one: {name: other for name, other in known(one).items() if other is array},
        )
        return min((one.begin for one in self._functions() if id(one) in users), default=None)

    def _arguments(self, dummies: Sequence[Array]) -> None:
        for array in dummies:
            declaration = array.declaration
            # The layout comes first: widths of the part depend on it.
            start = declaration.statement_begin
            layout = f"homing_layout *{self.layout(array)}, "
            if self.language.cxx:
                self._cxx_argument(array, layout)
                continue
            self.edits.replace(start, start, layout)
            if self.inside:
                self._widths(array)

    def _cxx_argument(self, array: Array, layout: str) -> None:
        """No parameter of C++ has widths that are known when it is called: a part comes as an address."""
        declaration, text = array.declaration, self.source.text
        start = declaration.statement_begin
        if not self.inside:
            kept = reference_to_pointer(text[start : declaration.end])
            self.edits.replace(start, declaration.end, layout + kept)
            return
        given = f"hm_given_{array.name}"
        const = "const " if "const" in declaration.attributes else ""
        self.edits.replace(start, declaration.end, f"{layout}{const}void *{given}")
        line = self._part_pointer(array, given)
        self._put(self.routine.head_end, [line, f"(void){array.name};"], self._like(), first=True)

    def _part_pointer(self, array: Array, value: str) -> str:
        const = "const " if "const" in array.declaration.attributes else ""
        widths = ""
        for index in range(1, array.rank):
            cut = array.dimensions[index].distributed
            extent = shifted(array.declaration.bounds[index].upper or "", 1)
            widths += (
                f"[homing_width({self.layout(array)}, homing_part(), {index})]" if cut else f"[{extent}]"
            )
        return self.language.pointer(const + array.declaration.type, array.name, widths, value)

    def _widths(self, array: Array) -> None:
        declaration = array.declaration
        text = self.source.text
        at = declaration.begin + len(declaration.spelling)
        groups = list(re.compile(r"\s*\[([^\]]*)\]").finditer(text, at, declaration.end))
        pointer = declaration.bounds[0].deferred and len(groups) < array.rank
        for index, group in enumerate(groups, 1 if pointer else 0):
            if index == 0:
                if array.rank >= 1 and "restrict" not in group[1]:
                    self.edits.replace(
                        group.start(1),
                        group.end(1),
                        "restrict" if array.dimensions[0].distributed else f"restrict {group[1]}",
                    )
                continue
            if array.dimensions[index].distributed:
                self.edits.replace(
                    group.start(1),
                    group.end(1),
                    f"homing_width({self.layout(array)}, homing_part(), {index})",
                )
