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
from homing.translate.fortran_specification import specification
from homing.translate.fortran_statements import KEYWORDS, blank, statement
from homing.translate.fortran_words import Words, closing, top_level
from homing.translate.positions import Problem, TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import (
    Branch,
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
                specification(routine, self.leaves(child))
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
        """Behind the last declaration, and behind an #endif or an OpenMP declaration that follows it; other
        directives come later."""
        if self.at == 0:
            return routine.begin
        last = self.lines[self.at - 1]
        place = last.line_end if last.begin >= routine.begin else routine.begin
        until = self._upcoming(routine)
        behind = place
        for match in re.finditer(
            r"^[ \t]*(#|[!cC*]\$omp[ \t]*(?:threadprivate|declare)?)[^\n]*\n?",
            self.source.text[place:until],
            re.MULTILINE | re.IGNORECASE,
        ):
            if not match[1].lower().endswith(("#", "threadprivate", "declare")):
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
            return [statement(node, self.take(node))]
        if "Do_Construct" in what or what.endswith("_Do"):
            return [self._loop(list(node.content))]
        if what in ("Internal_Subprogram_Part",):
            return []
        return [self._branch(node, what)]

    def _loop(self, content: list[Any]) -> Loop:
        content = [child for child in content if not _is_preprocessor(child)]
        head_node = content[0]
        line = self.take(head_node)
        head = blank(line, Kind.OTHER)
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
                loop.body.append(statement(last, self.take(last)))
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
                    arms.append((blank(self.lines[self.at], Kind.OTHER), self.node(child)))
                    begins.append(self.lines[self.at - 1].line_end)
                    continue
                head = blank(line, Kind.OTHER)
                words = Words(line.code, line.places)
                head.references = [r for r in words.reads(0, len(words.words)) if r.name not in KEYWORDS]
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


def _content(node: Any) -> list[Any] | None:
    content = getattr(node, "content", None)
    return content if isinstance(content, list) else None


def _is_preprocessor(node: Any) -> bool:
    name = type(node).__name__
    return name.startswith("Cpp_") or name in ("Comment", "Directive")
