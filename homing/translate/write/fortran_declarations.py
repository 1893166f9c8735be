"""Declarations of a Fortran program in parts: distributed arrays as allocatables, and what is added."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from homing.translate.affine import names_in
from homing.translate.front.implicit import declared
from homing.translate.front.tokens import outside, tokens
from homing.translate.names import added
from homing.translate.plan.accessibility import declared_in
from homing.translate.plan.array import Array
from homing.translate.plan.intents import INTENT_IN
from homing.translate.plan.passed_bounds import checkable
from homing.translate.tree import Construct, Declaration, walk
from homing.translate.write.fortran_modules import FortranModules
from homing.translate.write.fortran_text import split_list
from homing.translate.write.initial_values import declared_holder, initialised, moved_data
from homing.translate.write.writer import PART


class FortranDeclarations(FortranModules):
    """The routine's frame; it is written when all routines are looked at."""

    def frame(self) -> None:
        routine = self.routine
        own = [a for a in self.arrays.values() if a.routine is routine]
        for place, (before, handed) in self.handed.items():
            behind = ")" if before == "(" else ""
            self.edits.replace(place, place, f"{before}{', '.join(handed)}{behind}")
        for statement, arrays in self.waiting:
            self._lifetime(statement, arrays)
        for node, old, new in self.anew:
            self._redistribute(node, old, new)
        self._own_declarations(own)
        start: list[str] = []
        uses = self.companions_of_others()
        if routine.main:
            more, lines = self.of_modules()
            uses += more
            # The modules' arrays first: what is declared here may be aligned with them.
            start += ["call homing_start()", *lines]
        for array in own:
            declaration = array.declaration
            if array.dummy:
                start += self._own_bounds(array)
                continue
            if self.kept(array):
                made = [] if declaration.storage == "allocatable" else self._created(array)
                start += (
                    [f"if (.not. allocated({self.container(array)})) then", *made, "end if"] if made else []
                )
                continue
            if self.left(array):
                if self.routine.saves:
                    reason = f"'{array.name}' begins anew in each call: SAVE must name what lives on"
                    self.problems.append((declaration.begin, declaration.end, reason))
                layout = self.layout(array)
                start += [
                    f"{layout} = homing_nothing",
                    f"{added(f'hm_left_{array.name}')}%layout => {layout}",
                ]
            if declaration.storage in ("allocatable", "pointer"):
                start += self.unallocated(array)
                continue
            if self.made_late(array) or routine.module:
                continue
            start += self._created(array)
        if routine.module:
            self.made_here()
        start += self.beginning()
        declarations = self._new_declarations(own)
        at = routine.declarations_end
        indent = self._indent()
        # USE comes before everything else, at the same place or an earlier one.
        needed = own or declarations or start or self.locals or self.calls_runtime
        if needed and routine.module:
            # Who uses the module has it by another way; gfortran takes the two for different types at times.
            declarations.insert(0, "private :: homing_handle")
        self.edits.insert_lines(at, [self.indented(indent, x) for x in [*declarations, *start]], first=True)
        if needed or any(isinstance(n, Construct) for n in walk(routine.body)):
            lines = [self.indented(indent, one) for one in ["use homing_parts", *uses]]
            self.edits.insert_lines(routine.head_end, lines, first=True)
        self._import()
        self.procedures.write(self._variables(own))

    def _own_bounds(self, array: Array) -> list[str]:
        """Parts have the indices of what is passed: a dummy that begins elsewhere would mean other elements,
        or one that ends elsewhere. Where that is known before, it is refused."""
        if array.name in self.routine.brought or "optional" in array.declaration.attributes:
            return []
        bounds, layout = array.declaration.bounds, self.layout(array)
        sides = [("begins", index, bounds[index].lower) for index in sorted(array.unsure.begins)]
        sides += [("ends", index, bounds[index].upper or "") for index in sorted(array.unsure.ends)]
        place = self.source.place(array.declaration.begin)
        where = f"{os.path.basename(place.file)}:{place.line}:{place.column}".replace("'", "''")
        return [
            f"call homing_{what}_at({layout}, {index}, int({text}, homing_long), '{where}' // achar(0))"
            for what, index, text in sides
            if checkable(text.lower(), self.arrays)
        ]

    def kept(self, array: Array) -> bool:
        """Does a procedure's array live on until the next call?"""
        if self.routine.main or self.routine.module or array.dummy or self.made_late(array):
            return False
        return self._saved(array) or initialised(array.declaration)

    def _saved(self, array: Array) -> bool:
        """Does SAVE hold for it? One without names holds for none whose bounds the call decides."""
        declaration = array.declaration
        sides = [side for bound in declaration.bounds for side in (bound.lower, bound.upper or "1")]
        given = any(set(names_in(side.lower())) & set(self.routine.arguments) for side in sides)
        automatic = given or not all(map(self._is_constant, sides))
        return "save" in declaration.attributes and (declaration.storage != "static" or not automatic)

    @property
    def saved(self) -> str:
        """The attribute that has variables live on, where they do not anyway."""
        return "" if self.routine.saves else ", save"

    def left(self, array: Array) -> bool:
        """Has each call of the procedure an array, and a layout, of its own?"""
        whole = self.routine.main or self.routine.module or array.dummy or self.made_late(array)
        return not whole and not self.kept(array)

    def handle(self, array: Array) -> list[str]:
        """The declaration of the array's layout."""
        layout = self.layout(array)
        if not self.left(array):
            return [f"type(homing_handle){self.saved if self.kept(array) else ''} :: {layout}"]
        left = f"type(homing_leaving) :: {added(f'hm_left_{array.name}')}"
        return [f"type(homing_handle), target :: {layout}", left]

    def unallocated(self, array: Array) -> list[str]:
        """What is set at the beginning of the routine for an array that is not there yet."""
        del array
        return []

    def beginning(self) -> list[str]:
        """What else comes before the routine's first statement."""
        return []

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
                derived = element.lower().startswith(("type", "class"))
                begin, end = array.declaration.begin, array.declaration.end
                if derived and array.dummy:
                    reason = "parts of a derived type, passed on outside of parallel regions"
                    self.problems.append((begin, end, reason))
                if (length := character_length(element)) and not self._is_constant(length):
                    reason = (
                        f"the length of '{array.name}' is known when the program runs: make it a constant"
                    )
                    self.problems.append((begin, end, reason))
                lines += [
                    f"type :: {name}",
                    *([] if derived else ["  sequence"]),
                    f"  {element}, allocatable :: part({colons})",
                    "end type",
                ]
                if self.routine.module:  # who uses the module may have one of the same name
                    lines.append(f"private :: {name}")
            if not array.dummy:
                kept = self.saved if self.kept(array) else ""
                lines.append(f"type({name}), allocatable{kept} :: {self.container(array)}(:)")
                lines += self.handle(array)
                if self.routine.module:
                    lines += self.shown([array])
            else:
                lines.append(f"type({name}), intent(inout) :: {self.container(array)}(homing_first_part():*)")
        anew = {old.name: old for _, old, _ in self.anew}
        for array in {**self.swapped, **anew}.values():
            lines.append(f"type({self.type_name(array)}), allocatable :: {self.container_before(array)}(:)")
        lines += [f"type(homing_handle) :: {self.layout_before(array)}" for array in anew.values()]
        variables = self._variables(own)
        lines += variables.values()
        return [*lines, *self._each_threads_own(variables)]

    def _each_threads_own(self, variables: Mapping[str, str]) -> list[str]:
        """Of the translation's variables, those that a SAVE without names would have the threads share."""
        mine = [name for name in variables if name not in self.holders and name != "hm_each"]
        if not (self.inside and self.routine.saves and mine):
            return []
        begin, end = self.routine.begin, self.routine.head_end
        if re.search(r"\brecursive\b", self.source.text[begin:end], re.IGNORECASE):
            reason = "a RECURSIVE procedure of a region, with SAVE without names: name what lives on"
            self.problems.append((begin, end, reason))
        return [f"!$omp threadprivate({name})" for name in mine]

    def _is_constant(self, text: str) -> bool:
        """Of numbers and PARAMETERs?"""
        if set(text) & set("*:"):
            return False
        for name in names_in(text.lower()):
            scope = declared_in(self.routine, name, self.distributions.modules)
            if scope is not None and "parameter" not in scope.declarations[name].attributes:
                return False
        return True

    def _variables(self, own: Sequence[Array]) -> dict[str, str]:
        """The translation's variables, with their declarations."""
        found: dict[str, str] = {}
        for local in self.locals.values():
            if local.array is not None:
                colons = ", ".join(":" for _ in local.array.dimensions)
                found[local.name] = f"{local.array.declaration.type}, allocatable :: {local.name}({colons})"
            else:
                like = declared(self.routine, local.like) if local.like else None
                found[local.name] = f"{like.type if like else 'integer'} :: {local.name}"
        if PART not in self.locals and (own or self.works_on_parts) and not self.routine.module:
            found[PART] = f"integer :: {PART}"
        for name, kind in self.bounds.items():
            found[name] = f"{kind} :: {name}"
        for name, model in self.holders.items():  # threads share them, wherever the routine is called
            kept = declared(self.routine, model) if model else None
            found[name] = f"{kept.type if kept else 'integer'}{self.saved} :: {name}"
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
            lines += [self._brought(array) for array in dummies if array.name in routine.brought]
            self.edits.insert_lines(at, [self.indented(self._indent(), x) for x in lines])
            self._argument_list(dummies)
        elsewhere = {
            place[0] for array in own if self._must_change(array) for place in array.declaration.elsewhere
        }
        for begin, arrays in by_statement.items():
            changed = [a for a in arrays if self._must_change(a) and a.name not in routine.brought]
            if not changed:
                continue
            if self.inside:
                self._changeable(begin, changed)
                continue
            self._take_out(begin, changed, begin in elsewhere)
        changed = [array for array in own if self._must_change(array)]
        self._leave_out(changed)
        self._move_data(changed)

    def _brought(self, array: Array) -> str:
        """The declaration of an argument that the text does not have."""
        sides = [f"homing_low({self.layout(array)}, homing_part(), {i}):" for i in range(array.rank)]
        return f"{array.declaration.type}, intent(inout) :: {array.name}({', '.join(sides)})"

    def _must_change(self, array: Array) -> bool:
        return array.declaration.storage != "allocatable" or array.dummy

    def _argument_list(self, dummies: Sequence[Array]) -> None:
        """`f` becomes `f, hm_layout_f` (or the container of all parts) in the procedure's head."""
        text = self.source.text
        brought = [a for a in dummies if a.name in self.routine.brought]
        if brought:
            names = ", ".join(f"{a.name}, {self.layout(a)}" for a in brought)
            end = self.routine.arguments_end
            if text[end : end + 1] != ")":
                names = f"({names})"
            elif len(self.routine.arguments) > len(self.routine.brought):
                names = f", {names}"
            self.edits.replace(end, end, names)
        dummies = [a for a in dummies if a not in brought]
        if not dummies:
            return
        head = text[self.routine.begin : self.routine.arguments_end]
        opening = self.routine.begin + head.index("(")
        for array in dummies:
            match = re.compile(rf"\b{re.escape(array.name)}\b", re.IGNORECASE).search(text, opening)
            assert match is not None
            new = match.group() if self.inside else self.container(array)
            self.edits.replace(match.start(), match.end(), f"{new}, {self.layout(array)}")

    def _changeable(self, begin: int, arrays: Sequence[Array]) -> None:
        """The dummies of one statement with their parts' bounds. What others write is brought into parts that
        the user's text only reads: INTENT(IN) forbids it."""
        every = [one for one in self.routine.declarations.values() if one.statement_begin == begin]
        head = begin, min(one.begin for one in every)
        found = INTENT_IN.search(self.source.text, *head)
        pure = re.search(r"\b(?<!im)pure\b|\belemental\b", self._head(), re.IGNORECASE)
        if found is None or pure:
            alone = list(arrays)
        elif len(every) == len(arrays):
            alone = list(arrays)
            self.edits.replace(found.start(), found.end(), "intent(inout)")
        else:
            alone = []
            for array in arrays:
                words = sorted(array.declaration.attributes - {"intent", "dimension"})
                listed = ", ".join([array.declaration.type, *words, "intent(inout)"])
                self.extra.append(f"{listed} :: {array.declaration.spelling}({self._part_shape(array)})")
            self._name_no_more(every, {array.name for array in arrays})
        for array in alone:
            self._local_bounds(array)

    def _head(self) -> str:
        return self.source.text[self.routine.begin : self.routine.head_end]

    def _local_bounds(self, array: Array) -> None:
        """A dummy inside a region has the bounds of the part."""
        declaration = array.declaration
        new = f"({self._part_shape(array)}){f'*{declaration.length}' if declaration.length else ''}"
        self.edits.replace(declaration.begin + len(declaration.spelling), declaration.end, new)

    def _part_shape(self, array: Array) -> str:
        declaration = array.declaration
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
        return ", ".join(parts)

    def _leave_out(self, changed: Sequence[Array]) -> None:
        """Other statements (DIMENSION, a type) that declare the arrays name them no more."""
        names: dict[tuple[int, int], set[str]] = {}
        for array in (one for one in changed if one.declaration.elsewhere):
            if self.inside or array.dummy:
                begin, end = array.declaration.begin, array.declaration.end
                self.problems.append((begin, end, "an argument in two declarations: declare it in one"))
                continue
            for place in array.declaration.elsewhere:
                names.setdefault(place, set()).add(array.name)
        for (begin, end), out in names.items():
            out |= {one.name for one in changed if one.declaration.statement_begin == begin}
            left = without_entities(self.source.text[begin:end], out)
            if left is None:
                self.problems.append((begin, end, "declares a distributed array, and another statement, too"))
                continue
            self.edits.replace(begin, end, left)

    def _as_allocatables(self, arrays: Sequence[Array]) -> list[str]:
        """Their declarations as allocatables, and what holds their first values."""
        lines = []
        for array in arrays:
            colons = ", ".join(":" for _ in array.dimensions)
            words = ", ".join([array.declaration.type, *self._access(array.declaration), "allocatable"])
            lines.append(f"{words} :: {array.declaration.spelling}({colons})")
            decl = array.declaration
            if initialised(decl) and decl.storage == "static":
                lines.append(declared_holder(array, self.source.text[decl.begin : decl.end]))
            elif initialised(decl):
                reason = "an initialised distributed array: assign its values instead"
                self.problems.append((decl.begin, decl.end, reason))
        return lines

    def _access(self, declaration: Declaration) -> list[str]:
        """PUBLIC or PRIVATE, where the declaration itself says it."""
        head = self.source.text[declaration.statement_begin : declaration.begin].partition("::")[0]
        found = re.search(r",\s*(?:&[^\n]*\n\s*&?\s*)?(public|private)\b", head, re.IGNORECASE)
        return [found[1].lower()] if found else []

    def _move_data(self, changed: Sequence[Array]) -> None:
        """DATA statements give their values to what holds them."""
        self.extra += moved_data(self.routine, changed, self.edits)

    def _take_out(self, begin: int, arrays: Sequence[Array], others_too: bool) -> None:
        """Declare the arrays of one statement as allocatables instead (dummies: as locals). others_too: the
        statement is shortened by _leave_out."""
        first = arrays[0].declaration
        lines = self._as_allocatables(arrays)
        if others_too:
            self.extra += lines
            return
        names = {array.name for array in arrays}
        others = [
            decl
            for decl in self.routine.declarations.values()
            if decl.statement_begin == begin and decl.name not in names
        ]
        if not others:
            self.edits.replace(first.statement_begin, first.statement_end, lines[0])
            self.extra += lines[1:]
        else:
            self._name_no_more([*others, *(array.declaration for array in arrays)], names)
            self.extra += lines

    def _name_no_more(self, every: Sequence[Declaration], names: set[str]) -> None:
        """Leave names out of a declaration with these entities."""
        ordered = sorted(every, key=lambda one: one.begin)
        kept = [self.source.text[one.begin : one.end] for one in ordered if one.name not in names]
        self.edits.replace(ordered[0].begin, ordered[-1].end, ", ".join(_joined(one) for one in kept))


def character_length(type_text: str) -> str:
    """What the length of a CHARACTER type is said to be; empty: it is 1, or another type."""
    found = re.fullmatch(r"\s*character\s*(?:\*\s*)?(.*)", type_text, re.IGNORECASE | re.DOTALL)
    inside = found[1].strip() if found else ""
    if not inside.startswith("("):
        return inside
    for place, item in enumerate(split_list(inside[1:-1])):
        keyword, _, value = item.rpartition("=")
        if keyword.strip().lower() == "len" or (not keyword and place == 0):
            return value.strip()
    return ""


def without_entities(text: str, names: set[str]) -> str | None:
    """A declaration without some of the names that it declares, empty where none is left; None: they are not
    found there."""
    text = re.sub(r"&[ \t]*(?:![^\n]*)?\n\s*&?|\n {5}\S", "", text)
    head = re.match(
        r"(?:[^:()]|\((?:[^()]|\([^()]*\))*\))*::"
        r"|double\s+precision\b|\w+(?:\s*\*\s*\d+)?(?:\s*\([^)]*\))?(?=\s+\w)",
        text,
        re.IGNORECASE,
    )
    words = tokens(text[head.end() :]) if head and "::" not in head[0] else []
    if any(words[at].text == "/" for at in outside(words, 0, len(words))):
        return None  # values between slashes
    items = split_list(text[head.end() :]) if head else []
    kept = [item for item in items if re.sub(r"\W.*", "", item, flags=re.DOTALL).lower() not in names]
    if head is None or len(items) - len(kept) != len(names):
        return None
    return f"{head[0]} {', '.join(kept)}" if kept else ""


def _joined(text: str) -> str:
    """An entity on one line."""
    return re.sub(r"&[ \t]*(?:![^\n]*)?\n\s*&?", "", text)
