"""The C front end: libclang says what the program means and where each piece stands.

Parsed without -fopenmp: with it libclang does not descend into loops under a directive. OpenMP pragmas are
read from the text, and _OPENMP is defined as if it were.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from clang import cindex
from clang.cindex import BinaryOperator, Cursor, CursorKind, TranslationUnit, TypeKind

from homing.translate.affine import shifted
from homing.translate.attach import attach
from homing.translate.directives.model import Directive
from homing.translate.front.c_accesses import Accesses, strip
from homing.translate.front.c_places import Places, declarator
from homing.translate.front.c_pragmas import pragmas_of
from homing.translate.front.includes import check_includes
from homing.translate.front.libclang import index as clang_index
from homing.translate.front.libclang import other_headers, raising_callbacks, survives
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import (
    Access,
    Bound,
    Branch,
    Declaration,
    Kind,
    Loop,
    Node,
    Prototype,
    Routine,
    Statement,
    Subscript,
    Unit,
)

#: The version of OpenMP that gcc and clang claim to compile.
_OPENMP = "-D_OPENMP=201511"

_OUTPUT = frozenset(
    [
        "printf",
        "fprintf",
        "puts",
        "fputs",
        "putchar",
        "fputc",
        "putc",
        "fwrite",
        "fflush",
        "fopen",
        "fclose",
        "perror",
        "vprintf",
    ]
)
_INPUT = frozenset(["scanf", "fscanf", "fgets", "fread", "getchar", "gets", "fgetc", "getc"])
#: The same comparison with its sides exchanged.
_TURNED = {
    BinaryOperator.LT: BinaryOperator.GT,
    BinaryOperator.LE: BinaryOperator.GE,
    BinaryOperator.GT: BinaryOperator.LT,
    BinaryOperator.GE: BinaryOperator.LE,
}
_UNSIGNED = (
    TypeKind.UCHAR,
    TypeKind.USHORT,
    TypeKind.UINT,
    TypeKind.ULONG,
    TypeKind.ULONGLONG,
)


def read(source: SourceFile, directives: Sequence[Directive], flags: Sequence[str]) -> tuple[Unit, list[int]]:
    """Parse a C file and hang the directives where they belong; also the offsets at which lines can be
    marked.

    TranslationError: what clang calls an error. UserError: there is no libclang.
    """
    index = clang_index()
    check_includes(source, flags)
    here = os.path.dirname(os.path.abspath(source.path))
    arguments = ["-std=gnu17", "-Wno-everything", _OPENMP, f"-I{here}", *flags, *other_headers()]
    text = source.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def parse() -> TranslationUnit:
        return index.parse(
            source.path,
            args=arguments,
            unsaved_files=[(source.path, text)],
            options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
        )

    if not survives(parse):
        reason = "clang cannot read it: something is nested too deeply, or an included file has no end"
        raise TranslationError([source.problem(0, 0, reason)])
    unit = parse()
    problems = []
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            where = diagnostic.location
            inside = where.file is not None and where.file.name == source.path
            begin = source.offset(where.line, 1) if inside else 0
            end = source.next_line(begin) - 1 if inside else 0
            place = "" if inside or where.file is None else f"{where.file.name}:{where.line}: "
            problems.append(source.problem(begin, max(begin, end), f"{place}{diagnostic.spelling} (clang)"))
    if problems:
        raise TranslationError(problems)
    builder = _Builder(source)
    with raising_callbacks():
        builder.file(unit.cursor)
        pragmas = list(pragmas_of(source, unit))
    attach(source, builder.routines, pragmas, directives)
    for routine in builder.routines:
        names: set[str] = set()
        for pragma in pragmas:
            if pragma.name == "threadprivate":
                for clause in pragma.clauses:
                    names.update(word.strip() for word in (clause.text or "").split(","))
                match = re.search(r"threadprivate\s*\(([^)]*)\)", pragma.text)
                if match:
                    names.update(word.strip() for word in match[1].split(","))
        routine.private = frozenset(names)
    return Unit(source, source.form, builder.routines), sorted(builder.lines)


class _Builder:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.routines: list[Routine] = []
        self.lines: set[int] = set()
        self.routine = Routine(os.path.basename(source.path), source, 0, len(source.text) + 1, module=True)
        self.places = Places(source)
        self.begin, self.end, self.text = self.places.begin, self.places.end, self.places.text
        self.place = self.places.place
        self.expression = Accesses(self.places, self.is_array).expression

    # --- the file ---------------------------------------------------------------------------------------

    def file(self, top: Cursor) -> None:
        scope = self.routine
        scope.declarations_end = scope.body_end = len(self.source.text)
        self.routines.append(scope)
        for cursor in top.get_children():
            where = cursor.location
            if where.file is None or where.file.name != self.source.path:
                if cursor.kind is CursorKind.VAR_DECL and where.file is not None:
                    scope.included.add(cursor.spelling)
                elif cursor.kind is CursorKind.FUNCTION_DECL and where.file is not None:
                    scope.headers[cursor.spelling] = where.file.name
                continue
            self.lines.add(self.source.line_start(self.begin(cursor)))
            if cursor.kind is CursorKind.FUNCTION_DECL:
                if cursor.is_definition():
                    self.function(cursor)
                else:
                    places = tuple((self.begin(one), self.end(one)) for one in cursor.get_arguments())
                    whole = self.begin(cursor), self.end(cursor)
                    scope.prototypes.append(Prototype(cursor.spelling, *whole, places))
            elif cursor.kind is CursorKind.VAR_DECL:
                self.variable(scope, cursor, "static")

    def function(self, cursor: Cursor) -> None:
        scope = self.routines[0]
        made = Routine(
            cursor.spelling,
            self.source,
            self.begin(cursor),
            self.end(cursor),
            main=cursor.spelling == "main",
            parent=scope,
        )
        self.routines.append(made)
        self.routine = made
        for child in cursor.get_children():
            if child.kind is CursorKind.PARM_DECL:
                made.arguments.append(child.spelling)
                self.variable(made, child, "dummy")
            elif child.kind is CursorKind.COMPOUND_STMT:
                start = self.begin(child)
                made.head_end = made.declarations_end = self.source.next_line(start)
                made.arguments_end = self.source.text.rindex(")", made.begin, start)
                made.body_end = self.source.line_start(self.end(child) - 1)
                made.body = self.block(child)

    def variable(self, scope: Routine, cursor: Cursor, storage: str) -> Declaration:
        begin, end = self.begin(cursor), self.end(cursor)
        name_at = self.place(cursor.location.offset)
        name = cursor.spelling
        kind = cursor.type
        pointer = False
        bounds: list[Bound] = []
        text = self.source.text
        at = name_at + len(name)
        if text[name_at:at] == name:
            before = text[declarator(text, begin, name_at) : name_at].rstrip()
            if before.endswith(("*", "restrict", "const")) and "*" in before:
                pointer = True
                closed = re.compile(r"\s*\)").match(text, at)
                in_brackets = re.search(r"\(\s*\*[\s\w]*$", before) is not None
                if in_brackets and closed:
                    at = closed.end()
            while group := re.compile(r"\s*\[([^\]]*)\]").match(text, at):
                inner = re.sub(r"^\s*(?:restrict|static|const|\s)+\b", "", group[1]).strip()
                if inner:
                    bounds.append(Bound("0", shifted(self.text(group.start(1), group.end(1)), -1)))
                    if inner != group[1].strip():
                        bounds[-1] = Bound("0", shifted(inner, -1))
                else:
                    bounds.append(Bound("0", None, deferred=True))
                at = group.end()
            if pointer and bounds:
                bounds.insert(0, Bound("0", None, deferred=True))
        element = kind
        while element.kind in (
            TypeKind.POINTER,
            TypeKind.CONSTANTARRAY,
            TypeKind.VARIABLEARRAY,
            TypeKind.INCOMPLETEARRAY,
        ):
            element = element.get_pointee() if element.kind is TypeKind.POINTER else element.element_type
        type_text = re.sub(r"\b(?:const|volatile|restrict)\b\s*", "", element.spelling).strip()
        initial = None
        match = re.compile(r"\s*=\s*").match(text, at)
        if match:
            initial = text[match.end() : end]
        attributes = set()
        if "const" in text[begin:name_at]:
            attributes.add("const")
        if cursor.storage_class.name == "STATIC":
            attributes.add("save")
        made = Declaration(
            name,
            name,
            type_text,
            bounds,
            name_at,
            end,
            begin,
            end,
            attributes=frozenset(attributes),
            initial=initial,
            storage="dummy" if storage == "dummy" else "pointer" if pointer else storage,
        )
        scope.places.setdefault(name, []).append(begin)
        if name in scope.declarations and bounds == [] and scope.declarations[name].bounds:
            return made
        if name not in scope.declarations or bounds or pointer:
            scope.declarations[name] = made
        return made

    # --- statements -------------------------------------------------------------------------------------

    def block(self, cursor: Cursor) -> list[Node]:
        found: list[Node] = []
        for child in cursor.get_children():
            found.extend(self.node(child))
        return found

    def body(self, cursor: Cursor) -> list[Node]:
        braces = cursor.kind is CursorKind.COMPOUND_STMT and not self.behind_pragma(self.begin(cursor))
        return self.block(cursor) if braces else self.node(cursor)

    def behind_pragma(self, begin: int) -> bool:
        """Do the braces belong to a directive on the line before, and with it to what stands before that?"""
        text, end = self.source.text, self.source.line_start(begin)
        if text[end:begin].strip():
            return False
        start = text.rfind("\n", 0, max(end - 1, 0)) + 1
        while start > 0 and text.endswith("\\\n", 0, start):
            start = text.rfind("\n", 0, start - 1) + 1
        return re.compile(r"[ \t]*#[ \t]*pragma\b").match(text, start, end) is not None

    def node(self, cursor: Cursor) -> list[Node]:
        begin = self.begin(cursor)
        if self.source.text[self.source.line_start(begin) : begin].strip() == "":
            self.lines.add(self.source.line_start(begin))
        kind = cursor.kind
        if kind is CursorKind.COMPOUND_STMT:
            head = self.blank(begin, begin + 1)
            return [
                Branch(
                    [(head, self.block(cursor))], self.end(cursor), conditional=False, body_begins=[begin + 1]
                )
            ]
        if kind is CursorKind.FOR_STMT:
            return [self.loop(cursor)]
        if kind in (CursorKind.WHILE_STMT, CursorKind.DO_STMT):
            return [self.other_loop(cursor)]
        if kind is CursorKind.IF_STMT:
            children = list(cursor.get_children())
            head = self.expression_statement(children[0])
            arms = [(head, self.body(children[1]))]
            if len(children) > 2:
                arms.append(
                    (self.blank(self.begin(children[2]), self.begin(children[2])), self.body(children[2]))
                )
            head.begin = begin
            return [Branch(arms, self.end(cursor))]
        if kind is CursorKind.SWITCH_STMT:
            children = list(cursor.get_children())
            head = self.expression_statement(children[0])
            head.begin = begin
            return [Branch([(head, self.body(children[-1]))], self.end(cursor), switch=True)]
        if kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
            return [
                node
                for child in cursor.get_children()
                if child.kind.is_statement() or True
                for node in (self.node(child) if child.kind is not CursorKind.INTEGER_LITERAL else [])
            ]
        if kind is CursorKind.LABEL_STMT:
            made = self.blank(begin, begin + len(cursor.spelling))
            made.label = cursor.spelling
            return [made, *(node for child in cursor.get_children() for node in self.node(child))]
        if kind is CursorKind.DECL_STMT:
            return [self.declaration(cursor)]
        if kind is CursorKind.NULL_STMT:
            return []
        return [self.expression_statement(cursor)]

    def blank(self, begin: int, end: int) -> Statement:
        return Statement(begin, end, Kind.OTHER, self.text(begin, end), code=self.source.text[begin:end])

    def declaration(self, cursor: Cursor) -> Statement:
        made = self.blank(self.begin(cursor), self.end(cursor))
        writes: set[str] = set()
        for child in cursor.get_children():
            if child.kind is not CursorKind.VAR_DECL:
                continue
            self.variable(self.routine, child, "automatic")
            writes.add(child.spelling)
            for inner in child.get_children():
                if inner.kind.is_expression():
                    self.expression(inner, made.references, Access.READ, False, made)
        self.finish(made)
        made.writes |= frozenset(writes)
        return made

    def expression_statement(self, cursor: Cursor) -> Statement:
        made = self.blank(self.begin(cursor), self.end(cursor))
        jump = {
            CursorKind.RETURN_STMT: "return",
            CursorKind.GOTO_STMT: "goto",
            CursorKind.INDIRECT_GOTO_STMT: "goto",
            CursorKind.BREAK_STMT: "break",
            CursorKind.CONTINUE_STMT: "cycle",
        }.get(cursor.kind)
        if jump:
            made.kind, made.jump = Kind.JUMP, jump
            if jump == "goto":
                made.targets = tuple(re.findall(r"goto\s+(\w+)", made.text))
            for child in cursor.get_children():
                if child.kind.is_expression():
                    self.expression(child, made.references, Access.READ, False, made)
        else:
            self.expression(cursor, made.references, Access.READ, False, made)
        self.finish(made)
        return made

    def finish(self, made: Statement) -> None:
        made.reads = frozenset(r.name for r in made.references if r.access is not Access.WRITE)
        made.writes |= frozenset(
            r.name for r in made.references if r.access not in (Access.READ, Access.OTHER)
        )
        if made.kind is Kind.ASSIGNMENT and {"malloc", "calloc", "aligned_alloc"} & set(made.calls):
            made.kind = Kind.ALLOCATE
        if made.kind is Kind.OTHER and made.calls == ("free",):
            made.kind = Kind.DEALLOCATE
            for reference in made.references:
                reference.access, reference.argument_of = Access.WRITE, None
        if made.kind is Kind.OTHER and made.calls:
            made.kind = Kind.CALL
            if made.calls[0] in _OUTPUT:
                made.kind = Kind.OUTPUT
            elif made.calls[0] in _INPUT:
                made.kind = Kind.INPUT

    def other_loop(self, cursor: Cursor) -> Loop:
        children = list(cursor.get_children())
        body, condition = (
            (children[0], children[-1]) if cursor.kind is CursorKind.DO_STMT else (children[-1], children[0])
        )
        head = self.expression_statement(condition)
        head.begin = self.begin(cursor)
        return Loop(
            head,
            self.body(body),
            self.end(cursor),
            self.end(cursor),
            unrolled_reason="a while loop",
            body_begin=self.begin(body),
        )

    def loop(self, cursor: Cursor) -> Loop:
        begin, end = self.begin(cursor), self.end(cursor)
        children = list(cursor.get_children())
        body = children[-1]
        head = self.blank(begin, self.begin(body))
        made = Loop(head, [], end, end, body_begin=self.begin(body))
        written = re.match(r"for\b", self.source.text[begin : begin + 4]) is not None
        counted = written and len(children) == 4 and self.control(made, children)
        if not counted:
            made.variable = None
            made.unrolled_reason = "not `for (i = first; i < last; i++)`"
            if not written:
                word = re.match(r"\w*", self.source.text[begin:])
                made.unrolled_reason = (
                    f"its head comes from the macro '{word[0] if word else ''}': write it out"
                )
            for child in children[:-1]:
                if child.kind is CursorKind.DECL_STMT:
                    inner = self.declaration(child)
                    head.references += inner.references
                    head.writes |= inner.writes
                else:
                    self.expression(child, head.references, Access.READ, False, head)
        head.reads = frozenset(r.name for r in head.references if r.access is not Access.WRITE)
        head.writes |= frozenset(
            r.name for r in head.references if r.access not in (Access.READ, Access.OTHER)
        )
        made.body = self.body(body)
        return made

    def control(self, made: Loop, children: list[Cursor]) -> bool:
        """Fill in variable, bounds and step; False where the loop is not counted."""
        init, condition, increment, _ = children
        if init.kind is CursorKind.DECL_STMT:
            variables = [child for child in init.get_children() if child.kind is CursorKind.VAR_DECL]
            if len(variables) != 1:
                return False
            values = [child for child in variables[0].get_children() if child.kind.is_expression()]
            if not values:
                return False
            name, first = variables[0].spelling, values[-1]
            counter = variables[0].type
            self.variable(self.routine, variables[0], "automatic")
        elif init.kind is CursorKind.BINARY_OPERATOR and init.binary_operator is BinaryOperator.Assign:
            target, first = list(init.get_children())
            if target.kind is not CursorKind.DECL_REF_EXPR:
                return False
            name, counter = target.spelling, target.type
        else:
            return False
        if condition.kind is not CursorKind.BINARY_OPERATOR:
            return False
        left, right = (strip(child) for child in condition.get_children())
        operator = condition.binary_operator
        if right.kind is CursorKind.DECL_REF_EXPR and right.spelling == name:  # `n > i`
            left, right, operator = right, left, _TURNED.get(operator, operator)
        step = self.step(increment, name)
        if operator is BinaryOperator.NE and step in ("1", "-1"):  # it ends there, or never
            operator = BinaryOperator.LT if step == "1" else BinaryOperator.GT
        steps = {
            BinaryOperator.LT: -1,
            BinaryOperator.LE: 0,
            BinaryOperator.GT: 1,
            BinaryOperator.GE: 0,
        }
        if left.kind is not CursorKind.DECL_REF_EXPR or left.spelling != name or operator not in steps:
            return False
        if step is None or (operator in (BinaryOperator.LT, BinaryOperator.LE)) == step.startswith("-"):
            return False
        first_text = self.text(self.begin(first), self.end(first))
        last_text = self.text(self.begin(right), self.end(right))
        made.variable = name
        made.first = Subscript(self.begin(first), self.end(first), first_text)
        made.last = Subscript(self.begin(right), self.end(right), shifted(last_text, steps[operator]))
        made.step = step
        made.condition = (self.begin(condition), self.end(condition))
        made.increment = (self.begin(increment), self.end(increment))
        made.unsigned = counter.get_canonical().kind in _UNSIGNED
        self.expression(first, made.head.references, Access.READ, False, made.head)
        self.expression(right, made.head.references, Access.READ, False, made.head)
        made.head.writes = frozenset({name})
        return True

    def step(self, increment: Cursor, name: str) -> str | None:
        text = self.text(self.begin(increment), self.end(increment)).replace(" ", "")
        if text in (f"{name}++", f"++{name}"):
            return "1"
        if text in (f"{name}--", f"--{name}"):
            return "-1"
        match = re.fullmatch(rf"{re.escape(name)}([+-])=(.+)", text)
        if match is None:
            match = re.fullmatch(rf"{re.escape(name)}={re.escape(name)}([+-])(.+)", text)
        if match is None:
            return None
        return ("-" if match[1] == "-" else "") + match[2]

    # --- expressions ------------------------------------------------------------------------------------

    def is_array(self, name: str) -> bool:
        known = self.routine.lookup(name)
        return known is not None and bool(known[1].bounds) and known[1].storage not in ("pointer", "dummy")
