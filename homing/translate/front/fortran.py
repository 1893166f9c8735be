"""The Fortran front: program units, constructs and statements out of the text of a file.

Lines are cut into statements (lines.py), each statement says what it is by its shape and first words
(kinds.py), tree-sitter reads the expressions in it (expressions.py). How constructs nest follows from the
statements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from homing.translate import openmp
from homing.translate.attach import attach
from homing.translate.directives.model import Directive
from homing.translate.front import lines as text_lines
from homing.translate.front import second_opinion
from homing.translate.front.accesses import bind_all, header, statement
from homing.translate.front.associates import note_names
from homing.translate.front.declarations import (
    declare,
    declare_in_block,
    declared_behind,
    dummies,
    is_statement_function,
)
from homing.translate.front.expressions import Expressions, NotRead
from homing.translate.front.implicit import know_modules
from homing.translate.front.kinds import EXECUTABLE, MIDDLE, OPENING, UNITS, Form, form
from homing.translate.front.lines import Line
from homing.translate.front.resolve import resolve
from homing.translate.front.tokens import closing, parts
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import Branch, Loop, Node, OpenMP, Routine, Unit, references, statements, walk

_INSIDE = frozenset({"end", *MIDDLE})
_PREFIXES = re.compile(r"\b(pure|impure|elemental|recursive|non_recursive|module)\b", re.IGNORECASE)
_SKIPPED = {"interface": "interface", "type definition": "type", "enum": "enum"}


def read(source: SourceFile, directives: Sequence[Directive]) -> Unit:
    """Read a Fortran file and hang the homing directives where they belong.

    TranslationError: what cannot be read, with its place.
    """
    lines = text_lines.split(source)
    reader = _Reader(source)
    for line in lines:
        if not line.openmp:
            reader.take(line)
    reader.finish()
    pragmas = [
        openmp.parse(line.code, line.places, line.begin, line.end, lower=True)
        for line in lines
        if line.openmp and line.places
    ]
    for routine in reader.routines:
        routine.end = max(routine.end, routine.begin)
        resolve(routine, {one.name for one in reader.routines if not (one.module or one.main)})
        note_names(routine)
    attach(source, reader.routines, pragmas, directives)
    for routine in reader.routines:
        _threadprivate(routine, pragmas)
    return Unit(source, source.form, reader.routines)


def _threadprivate(routine: Routine, pragmas: Sequence[OpenMP]) -> None:
    """Note the names that THREADPRIVATE directives inside the routine name."""
    names: set[str] = set()
    for pragma in pragmas:
        if pragma.name == "threadprivate" and routine.begin <= pragma.begin < routine.end:
            match = re.search(r"\((.*)\)", pragma.text, re.DOTALL)
            if match:
                names.update(word.strip().strip("/").lower() for word in match[1].split(","))
    routine.private = frozenset(names)


@dataclass
class _Block:
    """A construct that is open: a loop, or a branch whose last arm is being filled."""

    kind: str
    node: Loop | Branch
    body: list[Node]
    line: Line
    bound: dict[str, tuple[str, str, str]] = field(default_factory=dict)


def _cycles(loop: Loop, label: str) -> None:
    """GOTO to the CONTINUE that ends a loop goes on with the next iteration; where it ends several, it is
    the innermost loop's."""
    inner = [node for node in walk(loop.body) if isinstance(node, Loop)]
    if label in {node.label for node in inner} | {one.label for one in statements(loop.body)}:
        return
    for one in statements(loop.body):
        if one.jump == "goto" and set(one.targets) == {label}:
            nested = any(node.begin <= one.begin < node.end for node in inner)
            one.jump, one.targets = "cycle", (label,) if nested else ()


class _Reader:
    """Takes the statements of a file in order."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.routines: list[Routine] = []
        self.units: list[Routine] = []  # open ones, innermost last
        self.blocks: list[_Block] = []  # of the innermost unit
        self.skipped: list[str] = []  # interfaces, types and enums
        self.specifying = True
        self.last: Line | None = None

    def take(self, line: Line) -> None:
        """The next statement."""
        code = Expressions(line.code, line.places)
        what = form(code.words)
        if not self._skip(what):
            self._take(line, code, what)
        self.last = line

    def finish(self) -> None:
        if self.blocks:
            raise self._wrong(self.blocks[-1].line, "is not ended")
        for routine in self.units:
            routine.end = self.last.line_end if self.last else len(self.source.text)
            self._close_body(routine, routine.end)

    def _wrong(self, line: Line, reason: str) -> TranslationError:
        return TranslationError([self.source.problem(line.begin, line.end, reason)])

    def _skip(self, what: Form) -> bool:
        """Is it inside an interface, a derived type or an enumeration, which hold no declarations of ours?"""
        if self.skipped:
            if what.kind == "end" and what.word.startswith(self.skipped[-1]):
                self.skipped.pop()
            elif what.kind == "interface":
                self.skipped.append("interface")
            return True
        if what.kind in _SKIPPED and (self.units or what.kind == "interface"):
            self.skipped.append("enum" if what.kind == "enum" else _SKIPPED[what.kind])
            return True
        return False

    def _take(self, line: Line, code: Expressions, what: Form) -> None:
        if what.kind in UNITS and not self.blocks:
            self._open_unit(line, code, what)
            return
        if not self.units:
            # A main program without a head.
            self._open_unit(line, code, Form("program", 0, "main"), headless=True)
        routine = self.units[-1]
        if what.kind == "contains":
            self._close_body(routine, line.line_begin)
            self._no_open_block(line)
        elif what.kind == "end" and what.word not in OPENING.values():
            self._end_unit(line)
        elif self.specifying and what.kind not in _INSIDE and self._specifies(routine, line, code, what):
            return
        else:
            self._execute(routine, line, code, what)

    # --- program units ------------------------------------------------------------------------------------

    def _open_unit(self, line: Line, code: Expressions, what: Form, headless: bool = False) -> None:
        parent = self.units[-1] if self.units else None
        if parent is not None:
            self._close_body(parent, line.line_begin)
        routine = Routine(
            what.name or what.kind,
            self.source,
            line.line_begin,
            line.line_begin,
            main=what.kind == "program",
            module=what.kind in ("module", "submodule"),
            parent=parent,
        )
        routine.head_end = line.line_begin if headless else line.line_end
        routine.arguments_end = line.line_begin if headless else line.end
        if what.kind in ("function", "subroutine"):
            self._head(routine, code, what)
        self.routines.append(routine)
        self.units.append(routine)
        self.specifying = True

    def _head(self, routine: Routine, code: Expressions, what: Form) -> None:
        words = code.words
        at = what.at
        if what.kind == "function":
            routine.result = routine.name
            before = re.match(r"(.*?)\s*\bfunction\b", code.code, re.IGNORECASE)
            routine.result_type = _PREFIXES.sub("", before[1]).strip() if before else ""
        if at < len(words) and words[at].text == "(":
            stop = closing(words, at)
            routine.arguments = [code.text(*part) for part in parts(words, at + 1, stop, ",")]
            routine.arguments_end = code.word_place(min(stop, len(words) - 1))
            at = stop + 1
        while at + 2 < len(words):
            if words[at].text == "result" and words[at + 1].text == "(":
                routine.result = words[at + 2].text
            at += 1

    def _end_unit(self, line: Line) -> None:
        self._no_open_block(line)
        routine = self.units.pop()
        self._close_body(routine, line.line_begin)
        routine.end = line.line_end
        dummies(routine)
        self.specifying = False

    def _no_open_block(self, line: Line) -> None:
        if self.blocks:
            raise self._wrong(self.blocks[-1].line, f"is not ended by line {self.source.line_of(line.begin)}")

    def _close_body(self, routine: Routine, offset: int) -> None:
        if not routine.body_end:
            routine.body_end = offset
            if not routine.declarations_end:
                routine.declarations_end = self._behind_declarations(routine, offset)

    def _behind_declarations(self, routine: Routine, until: int) -> int:
        """Behind the last declaration, and behind what belongs to them in other lines."""
        if self.last is None or self.last.begin < routine.begin:
            return routine.begin
        place = self.last.line_end
        return place + declared_behind(self.source.text[place:until])

    # --- specifications -----------------------------------------------------------------------------------

    def _specifies(self, routine: Routine, line: Line, code: Expressions, what: Form) -> bool:
        if what.kind == "assignment":  # f(x) = ...: whether a module has an array f
            know_modules([Unit(self.source, self.source.form, self.routines)])
        if what.kind in EXECUTABLE and not is_statement_function(routine, code, what):
            self.specifying = False
            routine.declarations_end = self._behind_declarations(routine, line.line_begin)
            dummies(routine)
            return False
        if what.kind == "assignment":
            made = statement(line, what)
            routine.functions[code.words[0].text] = made
            return True
        if what.kind in ("declaration", "attribute", "common") and not second_opinion.declares(
            what.kind, line.code
        ):
            reason = "a declaration that is not understood"
            raise TranslationError([self.source.problem(line.begin, line.end, reason)])
        try:
            declare(routine, line, code, what)
        except (IndexError, NotRead):
            reason = "a specification that is not understood"
            raise TranslationError([self.source.problem(line.begin, line.end, reason)]) from None
        return True

    # --- constructs ---------------------------------------------------------------------------------------

    def _body(self, routine: Routine) -> list[Node]:
        return self.blocks[-1].body if self.blocks else routine.body

    def _execute(self, routine: Routine, line: Line, code: Expressions, what: Form) -> None:
        if what.kind in ("format", "entry", "data", "namelist", "include") and not line.label:
            self._body(routine).append(statement(line, what))
        elif what.kind == "do":
            self._open_loop(routine, line, code, what)
        elif what.kind in OPENING:
            self._open_branch(routine, line, code, what)
        elif what.kind in MIDDLE:
            self._middle(line, what)
        elif what.kind == "end":
            self._close(line, what)
        else:
            ends = line.label is not None and self._ends_loop(line.label)
            made = statement(line, what)
            if what.kind == "declaration" and any(block.kind == "block" for block in self.blocks):
                declare_in_block(routine, made, line, code)
            if not (ends and what.kind == "continue"):
                self._body(routine).append(made)
            if ends:
                self._close_labelled(line)
            return
        if line.label is not None and what.kind == "end" and self._ends_loop(line.label):
            self._close_labelled(line)

    def _open_branch(self, routine: Routine, line: Line, code: Expressions, what: Form) -> None:
        head = statement(line, what)
        kind = OPENING[what.kind]
        branch = Branch(
            [(head, [])],
            line.end,
            kind not in ("associate", "block", "critical", "team"),
            kind in ("where", "forall"),
            [line.line_end],
        )
        block = _Block(kind, branch, branch.arms[0][1], line)
        if kind == "forall":
            block.bound = header(code, what.at)[1]
        self._body(routine).append(branch)
        self.blocks.append(block)

    def _middle(self, line: Line, what: Form) -> None:
        block = self.blocks[-1] if self.blocks else None
        if block is None or block.kind != MIDDLE[what.kind] or not isinstance(block.node, Branch):
            raise self._wrong(line, "stands in no construct that it belongs to")
        block.body = []
        block.node.arms.append((statement(line, what), block.body))
        block.node.body_begins.append(line.line_end)

    def _close(self, line: Line, what: Form) -> None:
        block = self.blocks[-1] if self.blocks else None
        if block is None or block.kind != what.word:
            raise self._wrong(line, "ends a construct that does not begin here")
        self.blocks.pop()
        block.node.end = line.end
        if isinstance(block.node, Loop):
            block.node.end_begin = line.begin
        elif block.node.masked:
            for _, body in block.node.arms:
                for reference in references(body):
                    reference.conditional = True
        if block.bound:
            inner = block.node.body if isinstance(block.node, Loop) else block.node.arms[0][1]
            bind_all(list(references(inner)), block.bound)

    def _ends_loop(self, label: str) -> bool:
        return any(isinstance(b.node, Loop) and b.node.label == label for b in self.blocks)

    def _close_labelled(self, line: Line) -> None:
        """DO 10 i / DO 10 j: one statement ends both."""
        assert line.label is not None
        while self._ends_loop(line.label):
            block = self.blocks.pop()
            if not isinstance(block.node, Loop) or block.node.label != line.label:
                raise self._wrong(block.line, f"is not ended before the label {line.label}")
            block.node.end, block.node.end_begin = line.end, line.begin
            _cycles(block.node, line.label)

    # --- loops --------------------------------------------------------------------------------------------

    def _open_loop(self, routine: Routine, line: Line, code: Expressions, what: Form) -> None:
        head = statement(line, what)
        loop = Loop(head, [], line.end, line.end, body_begin=line.line_end)
        block = _Block("do", loop, loop.body, line)
        try:
            self._control(loop, code, what.at, block)
        except (IndexError, NotRead):
            raise self._wrong(line, "a DO statement that is not understood") from None
        self._body(routine).append(loop)
        self.blocks.append(block)

    def _control(self, loop: Loop, code: Expressions, at: int, block: _Block) -> None:
        words, head = code.words, loop.head
        if at < len(words) and words[at].kind == "number":
            loop.label = words[at].text
            at += 1
        if at < len(words) and words[at].text == ",":
            at += 1
        if at + 1 < len(words) and words[at + 1].text == "=" and words[at].kind == "name":
            loop.variable = words[at].text
            bounds = parts(words, at + 2, len(words), ",")
            found = [code.subscript(*part) for part in bounds]
            loop.first, loop.last = found[0], found[1]
            if len(bounds) > 2:
                loop.step = found[2].text
            head.references = [r for part in bounds for r in code.reads(*part)]
            head.writes = frozenset({loop.variable})
        else:
            loop.unrolled_reason = "a loop without a counter (DO WHILE, DO CONCURRENT or DO)"
            if (at < len(words) and words[at].text == "concurrent") or words[at - 1].text == "doconcurrent":
                opening = at + (words[at].text == "concurrent")
                head.references, block.bound = header(code, opening)
            else:
                at += at < len(words) and words[at].text == "while"
                head.references = code.listed(at, len(words))
        head.reads = frozenset(reference.name for reference in head.references)
