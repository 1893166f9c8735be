"""The Fortran front end: fparser says what each statement is and how they nest; the text says where.

fparser's tree knows lines but no columns, so the statements are cut out of the text as well (fortran_lines)
and matched with fparser's one by one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fparser.common.readfortran import FortranStringReader
from fparser.common.sourceinfo import FortranFormat
from fparser.two.parser import ParserFactory
from fparser.two.utils import FortranSyntaxError

from homing.translate import fortran_lines, openmp
from homing.translate.attach import attach
from homing.translate.directives import Directive, Form
from homing.translate.fortran_lines import Line
from homing.translate.fortran_words import Words, bounds, closing, top_level
from homing.translate.positions import Problem, TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import (
    Access,
    Branch,
    Declaration,
    Kind,
    Loop,
    Node,
    OpenMP,
    Routine,
    Statement,
    Unit,
)

_PROGRAM_UNITS = {
    "Main_Program": "main",
    "Main_Program0": "main",
    "Module": "module",
    "Submodule": "module",
    "Subroutine_Subprogram": "procedure",
    "Function_Subprogram": "procedure",
}
_JUMPS = {
    "Goto_Stmt": "goto",
    "Computed_Goto_Stmt": "goto",
    "Arithmetic_If_Stmt": "goto",
    "Return_Stmt": "return",
    "Exit_Stmt": "exit",
    "Cycle_Stmt": "cycle",
    "Stop_Stmt": "stop",
    "Error_Stop_Stmt": "stop",
}
_OUTPUT = {
    "Print_Stmt",
    "Write_Stmt",
    "Open_Stmt",
    "Close_Stmt",
    "Rewind_Stmt",
    "Flush_Stmt",
    "Backspace_Stmt",
}


@lru_cache(maxsize=1)
def _parser() -> Any:
    logging.getLogger("fparser").setLevel(logging.CRITICAL)
    return ParserFactory().create(std="f2008")


def read(source: SourceFile, directives: Sequence[Directive]) -> Unit:
    """Parse a Fortran file and hang the homing directives where they belong.

    TranslationError: what the parser does not take, with its line.
    """
    free = source.form is Form.FREE
    reader = FortranStringReader(source.text, ignore_comments=True)
    reader.set_format(FortranFormat(free, False))
    try:
        tree = _parser()(reader)
    except FortranSyntaxError as error:
        match = re.search(r"at line (\d+)", str(error))
        line = int(match[1]) if match else 1
        begin = source.offset(line, 1)
        end = source.next_line(begin)
        reason = "not understood (fparser: Fortran 2008 syntax)"
        raise TranslationError([source.problem(begin, max(begin, end - 1), reason)]) from error
    lines = fortran_lines.split(source)
    builder = _Builder(source, [line for line in lines if not line.openmp])
    for child in tree.content:
        builder.unit(child, None)
    builder.finish()
    pragmas = [
        openmp.parse(line.code, line.places, line.begin, line.end, lower=True)
        for line in lines
        if line.openmp and line.places
    ]
    for routine in builder.routines:
        routine.end = max(routine.end, routine.begin)
    attach(source, builder.routines, pragmas, directives)
    for routine in builder.routines:
        threadprivate(routine, pragmas)
    return Unit(source, source.form, builder.routines)


def threadprivate(routine: Routine, pragmas: Sequence[OpenMP]) -> None:
    """Note the names that THREADPRIVATE directives inside the routine name."""
    names: set[str] = set()
    for pragma in pragmas:
        if pragma.name == "threadprivate" and routine.begin <= pragma.begin < routine.end:
            match = re.search(r"\((.*)\)", pragma.text, re.DOTALL)
            if match:
                names.update(word.strip().strip("/").lower() for word in match[1].split(","))
    routine.private = frozenset(names)


class _Builder:
    """Walks fparser's tree and the statements of the text side by side."""

    def __init__(self, source: SourceFile, lines: list[Line]) -> None:
        self.source = source
        self.lines = lines
        self.at = 0
        self.routines: list[Routine] = []

    # --- statements in step -----------------------------------------------------------------------------

    def take(self, node: Any) -> Line:
        """The line of the text that a statement of fparser's is."""
        if self.at >= len(self.lines):
            raise self._lost(node, len(self.source.text))
        line = self.lines[self.at]
        self.at += 1
        span = getattr(node.item, "span", None)
        if span is not None:
            number = self.source.line_of(line.begin)
            if not span[0] <= number <= max(span):
                raise self._lost(node, line.begin)
        return line

    def _lost(self, node: Any, offset: int) -> TranslationError:
        reason = f"cannot be matched with the parser's statement '{str(node).splitlines()[0]}'"
        return TranslationError([self.source.problem(offset, self.source.next_line(offset), reason)])

    def finish(self) -> None:
        if self.at < len(self.lines):
            line = self.lines[self.at]
            raise TranslationError(
                [Problem(self.source.position(line.begin), line.code, "the parser has no such statement")]
            )

    def leaves(self, node: Any) -> list[tuple[Any, Line]]:
        """Every statement below a node that is of no further interest."""
        if _is_preprocessor(node):
            return []
        if _content(node) is not None:
            found = []
            for child in _content(node) or ():
                found.extend(self.leaves(child))
            return found
        return [(node, self.take(node))] if getattr(node, "item", None) is not None else []

    # --- program units ----------------------------------------------------------------------------------

    def unit(self, node: Any, parent: Routine | None) -> None:
        kind = _PROGRAM_UNITS.get(type(node).__name__)
        if kind is None:
            self.leaves(node)
            return
        start = self.lines[self.at] if self.at < len(self.lines) else None
        begin = start.line_begin if start else len(self.source.text)
        name = kind if type(node).__name__ == "Main_Program0" else ""
        routine = Routine(
            name, self.source, begin, begin, main=kind == "main", module=kind == "module", parent=parent
        )
        self.routines.append(routine)
        first = True
        for child in node.content:
            what = type(child).__name__
            if _is_preprocessor(child):
                continue
            if first and _content(child) is None and what.endswith("_Stmt"):
                line = self.take(child)
                self._head(routine, what, line)
                first = False
                continue
            first = False
            if what == "Specification_Part":
                self._specification(routine, child)
            elif what == "Execution_Part":
                if not routine.declarations_end:
                    routine.declarations_end = self._after_declarations(routine)
                routine.body.extend(self.nodes(child.content))
            elif what in ("Internal_Subprogram_Part", "Module_Subprogram_Part"):
                self._before_contains(routine)
                for inner in child.content:
                    if type(inner).__name__ in _PROGRAM_UNITS:
                        self.unit(inner, routine)
                    else:
                        self.leaves(inner)
            elif what.startswith("End_"):
                self._before_contains(routine)
                line = self.take(child)
                routine.end = line.line_end
            else:
                self.leaves(child)
        if not routine.declarations_end:
            routine.declarations_end = routine.body_end
        if routine.end <= routine.begin and self.at:
            routine.end = self.lines[self.at - 1].line_end

    def _upcoming(self, routine: Routine) -> int:
        return self.lines[self.at].line_begin if self.at < len(self.lines) else routine.end

    def _after_declarations(self, routine: Routine) -> int:
        """Behind the last declaration, and behind an #endif that follows it; directives come later."""
        if self.at == 0:
            return routine.begin
        last = self.lines[self.at - 1]
        place = last.line_end if last.begin >= routine.begin else routine.begin
        until = self._upcoming(routine)
        behind = place
        for match in re.finditer(
            r"^[ \t]*(#|[!cC*]\$omp)[^\n]*\n?", self.source.text[place:until], re.MULTILINE | re.I
        ):
            if match[1] != "#":
                break
            behind = place + match.end()
        return behind

    def _before_contains(self, routine: Routine) -> None:
        if not routine.body_end:
            routine.body_end = self._upcoming(routine)
            if not routine.declarations_end:
                routine.declarations_end = self._after_declarations(routine)

    def _head(self, routine: Routine, what: str, line: Line) -> None:
        words = Words(line.code, line.places)
        routine.head_end = line.line_end
        lower = [word.text.lower() for word in words.words]
        for keyword in ("subroutine", "function", "program", "module", "submodule"):
            if keyword in lower:
                at = lower.index(keyword)
                break
        else:
            return
        if at + 1 < len(lower):
            routine.name = lower[at + 1]
        if keyword == "function":
            routine.result = routine.name
            if "result" in lower[at + 2 :]:
                routine.result = lower[lower.index("result", at + 2) + 2]
        if what in ("Subroutine_Stmt", "Function_Stmt") and at + 2 < len(lower) and lower[at + 2] == "(":
            stop = closing(words.words, at + 2)
            routine.arguments = [word for word in lower[at + 3 : stop] if word != ","]
            routine.arguments_end = words.place(stop)
        else:
            routine.arguments_end = line.end

    # --- declarations -----------------------------------------------------------------------------------

    def _specification(self, routine: Routine, node: Any) -> None:
        for statement, line in self.leaves(node):
            what = type(statement).__name__
            words = Words(line.code, line.places)
            if what == "Type_Declaration_Stmt":
                self._type_declaration(routine, words, line)
            elif what == "Dimension_Stmt":
                self._dimension(routine, words, line)
            elif what in ("Common_Stmt", "Equivalence_Stmt"):
                self._common(routine, words, line, what)
            elif what == "Use_Stmt":
                self._use(routine, words, line)
            elif what == "Implicit_Stmt" and "none" in line.code.lower():
                routine.implicit_none = True
            elif what in ("Allocatable_Stmt", "Pointer_Stmt", "Target_Stmt", "Save_Stmt", "Parameter_Stmt"):
                word = what.split("_")[0].lower()
                for entity in words.words[1:]:
                    declaration = routine.declarations.get(entity.text.lower())
                    if declaration:
                        declaration.attributes |= {word}
                        if word in ("allocatable", "pointer"):
                            declaration.storage = word
        for name in routine.arguments:
            if name in routine.declarations:
                routine.declarations[name].storage = "dummy"

    def _use(self, routine: Routine, words: Words, line: Line) -> None:
        names = [word for word in words.words if word.kind == "name"]
        texts = [word.text.lower() for word in names]
        if len(texts) > 1 and texts[1] in ("intrinsic", "non_intrinsic"):
            del texts[1]
        only = None
        match = re.search(r",\s*only\s*:(.*)$", line.code, re.IGNORECASE | re.DOTALL)
        if match:
            only = match[1].lower()
        routine.uses[texts[1]] = (line.begin, line.end, only)

    def _type_declaration(self, routine: Routine, words: Words, line: Line) -> None:
        all_words = words.words
        separator = next((i for i, word in enumerate(all_words) if word.text == "::"), None)
        shape: tuple[int, int] | None = None
        attributes: set[str] = set()
        if separator is not None:
            head = top_level(all_words, 0, separator, ",")
            type_text = words.text(*head[0])
            for first, last in head[1:]:
                attribute = all_words[first].text.lower()
                attributes.add(attribute)
                if attribute == "dimension":
                    shape = (first + 2, last - 1)
            begin = separator + 1
        else:
            begin = _type_end(words)
            type_text = words.text(0, begin)
        self._entities(routine, words, line, begin, type_text, attributes, shape)

    def _entities(
        self,
        routine: Routine,
        words: Words,
        line: Line,
        begin: int,
        type_text: str,
        attributes: set[str],
        shape: tuple[int, int] | None,
    ) -> None:
        entities = top_level(words.words, begin, len(words.words), ",")
        for first, last in entities:
            if first >= last:
                continue
            spelling = words.words[first].text
            name = spelling.lower()
            own = shape
            at = first + 1
            separate = None
            if at < last and words.words[at].text == "(":
                stop = closing(words.words, at)
                own, at = (at + 1, stop), stop + 1
            elif shape is not None:
                separate = (words.place(shape[0]), words.place_end(shape[1] - 1))
            initial = None
            if at < last and words.words[at].text in ("=", "=>", "/"):
                initial = words.text(at + 1, last)
            storage = "static"
            for candidate in ("allocatable", "pointer"):
                if candidate in attributes:
                    storage = candidate
            before = routine.declarations.get(name)
            made = Declaration(
                name,
                spelling,
                type_text,
                bounds(words, *own) if own else (before.bounds if before else []),
                words.place(first),
                words.place_end(last - 1),
                line.begin,
                line.end,
                len(entities),
                frozenset(attributes) | (before.attributes if before else frozenset()),
                initial,
                before.storage if before and before.storage != "static" else storage,
                separate,
            )
            routine.declarations[name] = made

    def _dimension(self, routine: Routine, words: Words, line: Line) -> None:
        begin = 2 if len(words.words) > 1 and words.words[1].text == "::" else 1
        for first, last in top_level(words.words, begin, len(words.words), ","):
            name = words.words[first].text.lower()
            before = routine.declarations.get(name)
            made = Declaration(
                name,
                words.words[first].text,
                before.type if before else "",
                bounds(words, first + 2, last - 1),
                words.place(first),
                words.place_end(last - 1),
                line.begin,
                line.end,
                attributes=(before.attributes if before else frozenset()) | {"dimension statement"},
                storage=before.storage if before else "static",
            )
            routine.declarations[name] = made

    def _common(self, routine: Routine, words: Words, line: Line, what: str) -> None:
        names = {word.text.lower() for word in words.words[1:] if word.kind == "name"}
        if what == "Equivalence_Stmt":
            routine.equivalence |= names
            return
        at = 1
        while at < len(words.words):
            word = words.words[at]
            if word.text == "/":
                at += 3 if at + 1 < len(words.words) and words.words[at + 1].text != "/" else 2
                continue
            if word.text == "//":
                at += 1
                continue
            if word.kind == "name":
                name = word.text.lower()
                declaration = routine.declarations.get(name)
                shape = None
                after = at + 1
                if after < len(words.words) and words.words[after].text == "(":
                    stop = closing(words.words, after)
                    shape = bounds(words, after + 1, stop)
                    after = stop + 1
                if declaration is None:
                    declaration = Declaration(
                        name,
                        word.text,
                        "",
                        shape or [],
                        words.place(at),
                        words.place_end(after - 1),
                        line.begin,
                        line.end,
                    )
                    routine.declarations[name] = declaration
                elif shape:
                    declaration.bounds = shape
                declaration.storage = "common"
                at = after
                continue
            at += 1

    # --- statements -------------------------------------------------------------------------------------

    def nodes(self, content: Sequence[Any]) -> list[Node]:
        found: list[Node] = []
        for child in content:
            found.extend(self.node(child))
        return found

    def node(self, node: Any) -> list[Node]:
        what = type(node).__name__
        if _is_preprocessor(node):
            return []
        if _content(node) is None:
            if getattr(node, "item", None) is None:
                return []
            return [self.statement(node, self.take(node))]
        if "Do_Construct" in what or what.endswith("_Do"):
            return [self._loop(list(node.content))]
        if what in ("Internal_Subprogram_Part",):
            return []
        return [self._branch(node, what)]

    def _loop(self, content: list[Any]) -> Loop:
        content = [child for child in content if not _is_preprocessor(child)]
        head_node = content[0]
        line = self.take(head_node)
        head = self._blank(line, Kind.OTHER)
        words = Words(line.code, line.places)
        loop = Loop(head, [], line.end, line.end, body_begin=line.line_end)
        self._control(loop, words)
        rest = content[1:]
        inner_heads = [child for child in rest if type(child).__name__ == "Label_Do_Stmt"]
        if inner_heads:  # DO 10 I / DO 10 J / 10 CONTINUE: one end for both
            at = rest.index(inner_heads[0])
            loop.body = self.nodes(rest[:at])
            inner = self._loop(rest[at:])
            loop.body.append(inner)
            loop.end, loop.end_begin = inner.end, inner.end_begin
            return loop
        *body, last = rest
        loop.body = self.nodes(body)
        if _content(last) is not None:
            loop.body.extend(self.node(last))
            last_line = self.lines[self.at - 1]
        else:
            last_line = self.take(last)
            if type(last).__name__ not in ("End_Do_Stmt", "Continue_Stmt"):
                self.at -= 1
                loop.body.append(self.statement(last, self.take(last)))
        loop.end, loop.end_begin = last_line.end, last_line.begin
        return loop

    def _control(self, loop: Loop, words: Words) -> None:
        texts = [word.text.lower() for word in words.words]
        at = texts.index("do") + 1
        if at < len(texts) and words.words[at].kind == "number":
            loop.label = texts[at]
            at += 1
        if at < len(texts) and texts[at] == ",":
            at += 1
        references = list(words.reads(at, len(texts)))
        loop.head.references = references
        if at + 1 < len(texts) and texts[at + 1] == "=" and words.words[at].kind == "name":
            loop.variable = texts[at]
            parts = top_level(words.words, at + 2, len(texts), ",")
            loop.first = words.subscript(*parts[0])
            loop.last = words.subscript(*parts[1])
            if len(parts) > 2:
                loop.step = words.text(*parts[2])
            references = [r for part in parts for r in words.reads(*part)]
            loop.head.references = references
            loop.head.writes = frozenset({loop.variable})
        else:
            loop.unrolled_reason = "a loop without a counter (DO WHILE, DO CONCURRENT or DO)"
        loop.head.reads = frozenset(reference.name for reference in references)

    def _branch(self, node: Any, what: str) -> Branch:
        arms: list[tuple[Statement, list[Node]]] = []
        begins: list[int] = []
        end = 0
        for child in node.content:
            if _is_preprocessor(child):
                continue
            kind = type(child).__name__
            header = _content(child) is None and (
                kind
                in [
                    "If_Then_Stmt",
                    "Else_If_Stmt",
                    "Else_Stmt",
                    "Select_Case_Stmt",
                    "Case_Stmt",
                    "Select_Type_Stmt",
                    "Type_Guard_Stmt",
                    "Where_Construct_Stmt",
                    "Masked_Elsewhere_Stmt",
                    "Elsewhere_Stmt",
                    "Forall_Construct_Stmt",
                    "Associate_Stmt",
                    "Block_Stmt",
                    "Critical_Stmt",
                ]
            )
            if header or not arms:
                line = self.take(child) if _content(child) is None else None
                if line is None:
                    arms.append((self._blank(self.lines[self.at], Kind.OTHER), self.node(child)))
                    begins.append(self.lines[self.at - 1].line_end)
                    continue
                head = self._blank(line, Kind.OTHER)
                words = Words(line.code, line.places)
                head.references = [r for r in words.reads(0, len(words.words)) if r.name not in _KEYWORDS]
                head.reads = frozenset(reference.name for reference in head.references)
                arms.append((head, []))
                begins.append(line.line_end)
                end = line.end
                continue
            if kind.startswith("End_") and _content(child) is None:
                end = self.take(child).end
                continue
            arms[-1][1].extend(self.node(child))
            end = self.lines[self.at - 1].end
        always = what.startswith(("Associate", "Block_Nonlabel_Block", "Block_Construct", "Critical"))
        masked = what.startswith(("Where", "Forall"))
        if masked:
            for _, body in arms:
                for inner in body:
                    if isinstance(inner, Statement):
                        for reference in inner.references:
                            reference.conditional = True
        return Branch(arms, end, not always, masked, begins)

    def _blank(self, line: Line, kind: Kind) -> Statement:
        return Statement(
            line.begin,
            line.end,
            kind,
            line.code.lower(),
            label=line.label,
            places=line.places,
            code=line.code,
        )

    def statement(self, node: Any, line: Line) -> Statement:
        made = self._blank(line, Kind.OTHER)
        words = Words(line.code, line.places)
        self._fill(made, node, words, 0)
        made.reads = frozenset(r.name for r in made.references if r.access is not Access.WRITE)
        made.writes |= frozenset(
            r.name for r in made.references if r.access in (Access.WRITE, Access.UPDATE, Access.ARGUMENT)
        )
        return made

    def _fill(self, made: Statement, node: Any, words: Words, begin: int) -> None:
        what = type(node).__name__
        count = len(words.words)
        if what in ("If_Stmt", "Where_Stmt", "Forall_Stmt"):
            stop = closing(words.words, begin + 1)
            made.references.extend(words.reads(begin + 2, stop))
            made.guarded = True
            first = len(made.references)
            self._fill(made, node.items[-1], words, stop + 1)
            for reference in made.references[first:]:
                reference.conditional = True
        elif what in ("Assignment_Stmt", "Pointer_Assignment_Stmt"):
            symbol = "=" if what == "Assignment_Stmt" else "=>"
            at = begin
            while at < count and words.words[at].text != symbol:
                at = closing(words.words, at) + 1 if words.words[at].text == "(" else at + 1
            target, after = words.designator(begin)
            target.access = Access.WRITE if symbol == "=" else Access.OTHER
            made.references.append(target)
            if after > begin + 1:
                made.references.extend(words.arguments(target.name, begin + 2, after - 1))
            if after < at:  # a component of it
                made.references.extend(words.reads(after, at))
            values = list(words.reads(at + 1, count))
            if symbol == "=>":
                for reference in values:
                    reference.access = Access.OTHER
            made.references.extend(values)
            made.kind = Kind.ASSIGNMENT
        elif what == "Call_Stmt":
            made.kind = Kind.CALL
            name = words.words[begin + 1].text.lower()
            made.calls = (name,)
            if begin + 2 < count and words.words[begin + 2].text == "(":
                stop = closing(words.words, begin + 2)
                for index, (first, last) in enumerate(top_level(words.words, begin + 3, stop, ",")):
                    if first + 1 < last and words.words[first + 1].text == "=":
                        first += 2
                    if first >= last:
                        continue
                    found = list(words.reads(first, last))
                    if (
                        found
                        and found[0].begin == words.place(first)
                        and found[0].end == words.place_end(last - 1)
                    ):
                        found[0].access = Access.ARGUMENT
                        found[0].argument_of = name
                        found[0].argument_index = index
                    made.references.extend(found)
        elif what in ("Read_Stmt", "Print_Stmt", "Write_Stmt"):
            made.kind = Kind.INPUT if what == "Read_Stmt" else Kind.OUTPUT
            items = count
            if words.words[begin + 1].text == "(" and what != "Print_Stmt":
                items = closing(words.words, begin + 1) + 1
            else:
                separators = top_level(words.words, begin + 1, count, ",")
                items = separators[0][1] + 1 if len(separators) > 1 else count
            control = list(words.reads(begin + 2, items))
            made.references.extend(r for r in control if r.name not in ("unit", "fmt", "nml"))
            for first, last in top_level(words.words, items, count, ","):
                found = list(words.reads(first, last))
                if what == "Read_Stmt":
                    for reference in found:
                        at_start = reference.begin == words.place(first)
                        if at_start or words.words[first].text == "(":
                            reference.access = Access.WRITE
                made.references.extend(found)
        elif what in ("Allocate_Stmt", "Deallocate_Stmt"):
            made.kind = Kind.ALLOCATE if what == "Allocate_Stmt" else Kind.DEALLOCATE
            stop = closing(words.words, begin + 1)
            for first, last in top_level(words.words, begin + 2, stop, ","):
                if first + 1 < last and words.words[first + 1].text == "=":
                    status, _ = words.designator(first + 2)
                    status.access = (
                        Access.WRITE if words.words[first].text.lower() in ("stat", "errmsg") else Access.READ
                    )
                    made.references.append(status)
                    continue
                target, after = words.designator(first)
                target.access = Access.WRITE
                made.references.append(target)
                if after > first + 1:
                    made.references.extend(words.arguments(target.name, first + 2, after - 1))
        else:
            if what in _OUTPUT:
                made.kind = Kind.OUTPUT
            if what in _JUMPS:
                made.kind = Kind.JUMP
                made.jump = _JUMPS[what]
            found = [r for r in words.reads(begin, count) if r.name not in _KEYWORDS]
            if what in ("Nullify_Stmt", "Data_Stmt", "Namelist_Stmt"):
                for reference in found:
                    reference.access = Access.OTHER
            made.references.extend(found)


_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elseif",
        "endif",
        "select",
        "case",
        "default",
        "type",
        "class",
        "is",
        "where",
        "elsewhere",
        "forall",
        "associate",
        "block",
        "critical",
        "end",
        "do",
        "return",
        "exit",
        "cycle",
        "stop",
        "error",
        "goto",
        "go",
        "to",
        "continue",
        "open",
        "close",
        "rewind",
        "flush",
        "backspace",
        "inquire",
        "nullify",
        "data",
        "namelist",
        "format",
        "entry",
        "include",
    ]
)


def _content(node: Any) -> list[Any] | None:
    content = getattr(node, "content", None)
    return content if isinstance(content, list) else None


def _is_preprocessor(node: Any) -> bool:
    name = type(node).__name__
    return name.startswith("Cpp_") or name in ("Comment", "Directive")


def _type_end(words: Words) -> int:
    """Where the entities of a declaration without `::` begin."""
    all_words = words.words
    at = 1
    if all_words[0].text.lower() == "double":
        at = 2
    if at < len(all_words) and all_words[at].text == "*":
        at += 1
        at = closing(all_words, at) + 1 if all_words[at].text == "(" else at + 1
    elif at < len(all_words) and all_words[at].text == "(":
        at = closing(all_words, at) + 1
    return at
