"""The C front end: libclang says what the program means and where each piece stands.

Parsed without -fopenmp: with it libclang does not descend into loops under a directive. OpenMP pragmas are
read from the text, and _OPENMP is defined as if it were.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from clang import cindex
from clang.cindex import BinaryOperator, Cursor, CursorKind, SourceLocation, TranslationUnit, TypeKind

from homing.errors import UserError
from homing.translate import openmp
from homing.translate.affine import shifted
from homing.translate.attach import attach
from homing.translate.directives.model import Directive
from homing.translate.front.includes import check_includes
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
    OpenMP,
    Prototype,
    Reference,
    Routine,
    Statement,
    Subscript,
    Unit,
)

#: libclang's numbers of unary operators (CXUnaryOperatorKind).
_COUNTING, _ADDRESS, _DEREFERENCE, _NOT = (1, 2, 3, 4), 5, 6, 10
#: The version of OpenMP that gcc and clang claim to compile.
_OPENMP = "-D_OPENMP=201511"

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
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
_TRANSPARENT = (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR)
_ASSIGNMENTS = (BinaryOperator.Assign,)
#: The same comparison with its sides exchanged.
_TURNED = {
    BinaryOperator.LT: BinaryOperator.GT,
    BinaryOperator.LE: BinaryOperator.GE,
    BinaryOperator.GT: BinaryOperator.LT,
    BinaryOperator.GE: BinaryOperator.LE,
}
_POINTERS = (
    TypeKind.POINTER,
    TypeKind.CONSTANTARRAY,
    TypeKind.VARIABLEARRAY,
    TypeKind.INCOMPLETEARRAY,
)
_UNSIGNED = (
    TypeKind.UCHAR,
    TypeKind.USHORT,
    TypeKind.UINT,
    TypeKind.ULONG,
    TypeKind.ULONGLONG,
)


@lru_cache(maxsize=1)
def _index() -> cindex.Index:
    places = [
        *glob.glob("/usr/lib/llvm-19/lib/libclang-19.so*"),
        *glob.glob("/usr/lib/llvm-19/lib/libclang.so*"),
        *glob.glob("/usr/lib/*/libclang-19.so*"),
    ]
    stated = os.environ.get("HOMING_LIBCLANG")
    for path in [stated] if stated else places:
        if path and os.path.isfile(path):
            cindex.Config.set_library_file(path)
            break
    else:
        raise UserError("libclang 19 is not here (Debian: libclang1-19), or set HOMING_LIBCLANG to its file")
    try:
        return cindex.Index.create()
    except cindex.LibclangError as error:
        raise UserError(f"libclang cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def _other_headers() -> tuple[str, ...]:
    """gcc's own headers (omp.h), behind clang's."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return ()
    found = subprocess.run([gcc, "-print-file-name=include"], capture_output=True, text=True, check=False)
    return ("-idirafter", found.stdout.strip()) if found.returncode == 0 else ()


def _deep(error: BaseException) -> BaseException:
    """RecursionError also where ctypes met it while it made a callback's argument."""
    inside = isinstance(error, ctypes.ArgumentError) and "RecursionError" in str(error)
    return RecursionError() if inside else error


@contextlib.contextmanager
def _raising_callbacks() -> Iterator[None]:
    """libclang calls back for each child of a cursor, and what is raised there (nesting too deep) is printed
    and forgotten by ctypes: a part of the tree would be missing. Here it is raised at the end."""
    failed: list[BaseException | None] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: failed.append(told.exc_value)
    try:
        yield
    except Exception as error:  # where a part is missing, what is there is not understood either
        raise _deep(failed[0] if failed and failed[0] else error) from None
    finally:
        sys.unraisablehook = before
    if failed:
        raise _deep(failed[0] or RecursionError())


def _survives(parse: Callable[[], object]) -> bool:
    """Does libclang survive this? It dies of a stack that is too small, and takes the process with it: tried
    in a process of its own, which costs some tens of milliseconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child only parses and ends
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libclang says of its crash
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            parse()
            status = 0
        finally:
            os._exit(status)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:  # the time is up
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return status == 0


def read(source: SourceFile, directives: Sequence[Directive], flags: Sequence[str]) -> tuple[Unit, list[int]]:
    """Parse a C file and hang the directives where they belong; also the offsets at which lines can be
    marked.

    TranslationError: what clang calls an error. UserError: there is no libclang.
    """
    index = _index()
    check_includes(source, flags)
    here = os.path.dirname(os.path.abspath(source.path))
    arguments = ["-std=gnu17", "-Wno-everything", _OPENMP, f"-I{here}", *flags, *_other_headers()]
    text = source.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def parse() -> TranslationUnit:
        return index.parse(
            source.path,
            args=arguments,
            unsaved_files=[(source.path, text)],
            options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
        )

    if not _survives(parse):
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
    with _raising_callbacks():
        builder.file(unit.cursor)
        pragmas = list(_pragmas(source, unit))
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


def _pragmas(source: SourceFile, unit: TranslationUnit) -> list[OpenMP]:
    comments = [
        (token.extent.start.offset, token.extent.end.offset)
        for token in unit.get_tokens(extent=unit.cursor.extent)
        if token.kind.name == "COMMENT"
    ]
    found = []
    for match in _PRAGMA.finditer(source.text):
        if any(begin <= match.start() < end for begin, end in comments):
            continue
        code, places = "", []
        body = match[1]
        at = match.start(1)
        skip = re.compile(r"\\\r?\n|/\*.*?\*/|//[^\n]*", re.DOTALL)
        position = 0
        while position < len(body):
            gap = skip.match(body, position)
            if gap:
                code += " "
                places.append(at + position)
                position = gap.end()
                continue
            code += body[position]
            places.append(at + position)
            position += 1
        lead = len(code) - len(code.lstrip())
        code, places = code.strip(), places[lead : lead + len(code.strip())]
        begin = match.start() + len(match.group()) - len(match.group().lstrip())
        end = match.start() + len(match.group().rstrip())
        found.append(openmp.parse(code, places, begin, end, lower=False))
    return found


class _Builder:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.routines: list[Routine] = []
        self.lines: set[int] = set()
        self.routine = Routine(os.path.basename(source.path), source, 0, len(source.text) + 1, module=True)
        # libclang counts bytes.
        self.bytes: list[int] | None = None
        if not source.text.isascii():
            self.bytes = []
            for number, char in enumerate(source.text):
                self.bytes += [number] * len(char.encode("utf-8", "surrogateescape"))
            self.bytes.append(len(source.text))

    def place(self, offset: int) -> int:
        if self.bytes is None:
            return offset
        return self.bytes[min(offset, len(self.bytes) - 1)]

    def begin(self, cursor: Cursor) -> int:
        return self.place(cursor.extent.start.offset)

    def end(self, cursor: Cursor) -> int:
        return self.place(cursor.extent.end.offset)

    def access(self, cursor: Cursor) -> tuple[int, int]:
        """Where an access stands; in a macro's argument, where the program has written it."""
        return self.written_at(cursor.extent.start), self.written_at(cursor.extent.end)

    def written_at(self, location: SourceLocation) -> int:
        file, unused, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
        found = ctypes.byref(file), ctypes.byref(unused), ctypes.byref(unused), ctypes.byref(offset)
        cindex.conf.lib.clang_getFileLocation(location, *found)
        return self.place(offset.value)

    def text(self, begin: int, end: int) -> str:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", self.source.text[begin:end], flags=re.DOTALL)
        return " ".join(text.split())

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
            before = text[_declarator(text, begin, name_at) : name_at].rstrip()
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
        left, right = (_strip(child) for child in condition.get_children())
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

    def expression(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        """Every variable in an expression, with what is done to it."""
        kind = cursor.kind
        if kind in _TRANSPARENT or kind is CursorKind.CSTYLE_CAST_EXPR:
            for child in cursor.get_children():
                if child.kind.is_expression():
                    self.expression(child, found, access, conditional, into)
            return
        if kind is CursorKind.DECL_REF_EXPR:
            referenced = cursor.referenced
            if referenced is None or referenced.kind is not CursorKind.FUNCTION_DECL:
                (begin, end), name = self.access(cursor), cursor.spelling
                found.append(Reference(name, begin, begin + len(name), end, None, access, conditional))
        elif kind is CursorKind.MEMBER_REF_EXPR:
            for child in cursor.get_children():
                self.expression(child, found, access, conditional, into)
        elif kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
            self.element(cursor, found, access, conditional, into)
        elif kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            left, right = list(cursor.get_children())
            into.kind = Kind.ASSIGNMENT
            self.expression(left, found, Access.UPDATE, conditional, into)
            self.expression(right, found, Access.READ, conditional, into)
        elif kind is CursorKind.BINARY_OPERATOR:
            self.binary(cursor, found, access, conditional, into)
        elif kind is CursorKind.CONDITIONAL_OPERATOR:
            condition, *others = list(cursor.get_children())
            self.expression(condition, found, Access.READ, conditional, into)
            for other in others:
                self.expression(other, found, Access.READ, True, into)
        elif kind is CursorKind.UNARY_OPERATOR:
            self.unary(cursor, found, access, conditional, into)
        elif kind is CursorKind.CALL_EXPR:
            self.call(cursor, found, conditional, into)
        elif kind is CursorKind.CXX_UNARY_EXPR:
            self.size_of(cursor, found, conditional, into)
        else:
            for child in cursor.get_children():
                if child.kind.is_expression() or child.kind.is_statement():
                    self.expression(child, found, Access.READ, conditional, into)

    def binary(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        left, right = list(cursor.get_children())
        operator = cursor.binary_operator
        if operator in _ASSIGNMENTS:
            into.kind = Kind.ASSIGNMENT
            self.expression(left, found, Access.WRITE, conditional, into)
            self.expression(right, found, Access.READ, conditional, into)
            return
        if operator in (BinaryOperator.EQ, BinaryOperator.NE) and (
            (_is_null(left) and _strip(right).kind is CursorKind.DECL_REF_EXPR)
            or (_is_null(right) and _strip(left).kind is CursorKind.DECL_REF_EXPR)
        ):
            return  # is there memory? There is, for a distributed array; others do not matter here
        late = conditional or operator in (BinaryOperator.LAnd, BinaryOperator.LOr)
        self.expression(left, found, _of_memory(left, access), conditional, into)
        self.expression(right, found, _of_memory(right, access), late, into)

    def unary(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        operand = next(iter(cursor.get_children()))
        operator = cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor)
        if operator in _COUNTING:
            access = Access.UPDATE
            into.kind = Kind.ASSIGNMENT
        elif operator == _ADDRESS:
            access = Access.OTHER
        elif operator == _DEREFERENCE:
            access = Access.OTHER if access is Access.READ else access
        elif operator == _NOT and _strip(operand).kind is CursorKind.DECL_REF_EXPR:
            if operand.type.kind is TypeKind.POINTER:
                return
            access = Access.READ
        else:
            access = Access.READ
        self.expression(operand, found, access, conditional, into)

    def call(self, cursor: Cursor, found: list[Reference], conditional: bool, into: Statement) -> None:
        name = cursor.spelling
        into.calls += (name,)
        for index, argument in enumerate(cursor.get_arguments()):
            inner = _strip(argument)
            if inner.kind is CursorKind.CSTYLE_CAST_EXPR and inner.type.kind is TypeKind.POINTER:
                inner = _strip(list(inner.get_children())[-1])
            count = len(found)
            array = inner.kind is CursorKind.DECL_REF_EXPR and inner.type.kind in (
                TypeKind.POINTER,
                TypeKind.CONSTANTARRAY,
                TypeKind.VARIABLEARRAY,
                TypeKind.INCOMPLETEARRAY,
            )
            piece = inner.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR and inner.type.kind in (
                TypeKind.POINTER,
                TypeKind.CONSTANTARRAY,
                TypeKind.VARIABLEARRAY,
            )
            access = Access.ARGUMENT if array or piece else Access.READ
            self.expression(inner, found, access, conditional, into)
            if (array or piece) and len(found) > count:
                found[count].argument_of = name
                found[count].argument_index = index

    def size_of(self, cursor: Cursor, found: list[Reference], conditional: bool, into: Statement) -> None:
        """sizeof: nothing is evaluated."""
        count = len(found)
        for child in cursor.get_children():
            self.expression(child, found, Access.READ, conditional, into)
        for reference in found[count:]:
            reference.access = Access.OTHER if reference.subscripts is None else Access.READ
        unused = [r for r in found[count:] if not self.is_array(r.name)]
        for reference in unused:
            found.remove(reference)

    def is_array(self, name: str) -> bool:
        known = self.routine.lookup(name)
        return known is not None and bool(known[1].bounds) and known[1].storage not in ("pointer", "dummy")

    def element(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        chain = []
        base = cursor
        while base.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
            inner, index = list(base.get_children())
            chain.append(index)
            base = _strip(inner)
        chain.reverse()
        if base.kind is not CursorKind.DECL_REF_EXPR:  # a member: what is done to it is done to the whole
            changed = access in (Access.WRITE, Access.UPDATE, Access.OTHER)
            self.expression(base, found, access if changed else Access.READ, conditional, into)
        else:
            begin, end = self.access(cursor)
            subscripts = []
            for index in chain:
                first, last = self.access(index)
                subscripts.append(Subscript(first, last, self.text(first, last)))
            name = base.spelling
            if not re.match(rf"{re.escape(name)}\s*\[", self.source.text[begin:end]):
                access, begin, end = Access.OTHER, self.begin(cursor), self.end(cursor)  # of a macro
            found.append(Reference(name, begin, begin + len(name), end, subscripts, access, conditional))
        for index in chain:
            self.expression(index, found, Access.READ, conditional, into)


def _of_memory(cursor: Cursor, access: Access) -> Access:
    """What `*(a + i) = x` does to the operands of the sum: the pointer's memory is changed."""
    changed = access in (Access.WRITE, Access.UPDATE, Access.OTHER)
    return access if changed and _strip(cursor).type.kind in _POINTERS else Access.READ


def _declarator(text: str, begin: int, name_at: int) -> int:
    """Where the declarator begins: of all but a declaration's first one clang knows the name's place only."""
    if begin < name_at:
        return begin
    match = re.search(r",[\s(*]*(?:\b(?:const|restrict|volatile|__restrict)\b[\s*]*)*$", text[:name_at])
    return match.start() + 1 if match else begin


def _strip(cursor: Cursor) -> Cursor:
    while cursor.kind in _TRANSPARENT:
        children = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def _is_null(cursor: Cursor) -> bool:
    inner = _strip(cursor)
    if inner.kind is CursorKind.CSTYLE_CAST_EXPR and inner.type.kind is TypeKind.POINTER:
        children = list(inner.get_children())
        return bool(children) and children[-1].kind is CursorKind.INTEGER_LITERAL
    return cursor.type.kind is TypeKind.POINTER and inner.kind is CursorKind.INTEGER_LITERAL
