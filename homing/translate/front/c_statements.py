"""The statements of a C or C++ function, as libclang's tree has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clang.cindex import Cursor, CursorKind, StorageClass, TypeKind

from homing.translate.code_text import blanked
from homing.translate.front.c_accesses import Accesses
from homing.translate.front.c_aliases import Alias
from homing.translate.front.c_expressions import is_calm
from homing.translate.front.c_given import givings
from homing.translate.front.c_memory import (
    MEMORY,
    TAKES,
    allocates,
    commas,
    frees,
    takings,
)
from homing.translate.front.c_types import unused_calls
from homing.translate.front.cxx import (
    INPUT,
    OUTPUT,
    REFERENCES,
    has_references,
)
from homing.translate.front.cxx_apart import ClassFile
from homing.translate.front.cxx_calls import holds_objects, uses_class
from homing.translate.front.cxx_statements import CxxStatements
from homing.translate.tree import (
    CASE,
    CLASSES,
    Access,
    Branch,
    Kind,
    Node,
    Statement,
)

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
        OUTPUT,
    ]
)
_INPUT = frozenset(["scanf", "fscanf", "fgets", "fread", "getchar", "gets", "fgetc", "getc", INPUT])


class CStatements(CxxStatements):
    """A part of the front's builder, which knows the file."""

    lines: set[int]
    aliases: list[Alias]  # of the function
    gives_reference: bool  # C++: does the function return one?
    accesses: Accesses
    classes: ClassFile

    def file_variable(self, cursor: Cursor) -> None:
        raise NotImplementedError

    def block(self, cursor: Cursor) -> list[Node]:
        found: list[Node] = []
        for child in cursor.get_children():
            found.extend(self.node(child))
        if self.cxx and any(map(holds_objects, cursor.get_children())):
            end = self.end(cursor) - 1
            found.append(Statement(end, end, Kind.CALL, "", calls=(CLASSES,)))
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
        if kind is CursorKind.CXX_FOR_RANGE_STMT:
            return [self.range_loop(cursor)]
        if kind in (CursorKind.WHILE_STMT, CursorKind.DO_STMT):
            return [self.other_loop(cursor)]
        if kind is CursorKind.IF_STMT:
            children = list(cursor.get_children())
            head, children = self.condition(children)
            head.decides = True
            arms = [(head, self.body(children[0]))]
            if len(children) > 1:
                first, at = self.end(children[0]), self.begin(children[1])
                word = re.search(r"\belse\b", blanked(self.source.text[first:at], False, " "))
                at = first + word.end() if word else at  # directives may stand behind it
                arms.append((self.blank(at, at), self.body(children[1])))
            head.begin = begin
            return [Branch(arms, self.end(cursor))]
        if kind is CursorKind.SWITCH_STMT:
            head, children = self.condition(list(cursor.get_children()))
            head.begin = begin
            return [Branch([(head, self.body(children[-1]))], self.end(cursor), switch=True)]
        if kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
            made = self.blank(begin, begin + len("case" if kind is CursorKind.CASE_STMT else "default"))
            made.label = CASE
            inside = (one for one in cursor.get_children() if one.kind is not CursorKind.INTEGER_LITERAL)
            return [made, *(node for child in inside for node in self.node(child))]
        if kind is CursorKind.LABEL_STMT:
            made = self.blank(begin, begin + len(cursor.spelling))
            made.label = cursor.spelling
            return [made, *(node for child in cursor.get_children() for node in self.node(child))]
        if kind is CursorKind.DECL_STMT:
            return [self.declaration(cursor)]
        if kind is CursorKind.CXX_TRY_STMT:
            return [self.tries(cursor)]
        if kind is CursorKind.NULL_STMT:
            return []
        return [self.expression_statement(cursor)]

    def blank(self, begin: int, end: int) -> Statement:
        return Statement(begin, end, Kind.OTHER, self.text(begin, end), code=self.source.text[begin:end])

    def declaration(self, cursor: Cursor) -> Statement:
        made = self.blank(self.begin(cursor), self.end(cursor))
        writes: set[str] = set()
        children = [cursor] if cursor.kind is CursorKind.VAR_DECL else list(cursor.get_children())
        for child in children:
            if child.kind is not CursorKind.VAR_DECL:
                if self.cxx:
                    self.declared(child, made)
                elif child.kind is CursorKind.TYPEDEF_DECL:  # `typedef char row[n];`
                    for inner in filter(lambda one: one.kind.is_expression(), child.get_children()):
                        self.expression(inner, made.references, Access.READ, False, made)
                continue
            if child.storage_class is StorageClass.EXTERN:
                self.file_variable(child)
                continue
            self.variable(self.routine, child, "automatic")
            writes.add(child.spelling)
            for inner in child.get_children():
                if inner.kind.is_expression():
                    # Of what a reference is made, the name is another one.
                    other = child.type.kind in REFERENCES or (self.cxx and has_references(child.type))
                    access = Access.OTHER if other else Access.READ
                    count = len(made.references)
                    self.expression(inner, made.references, access, False, made)
                    made.takes += tuple(takings(inner, self.places))
                    made.given += tuple(givings(inner, self.places))
                    if child.type.kind is TypeKind.POINTER and is_calm(inner):
                        self.aliases.append(Alias(child, made.references[count:]))
        self.with_values(made, writes)
        self.finish(made)
        made.writes |= frozenset(writes)
        objects = [one for one in children if self.cxx and one.kind is CursorKind.VAR_DECL]
        if any(uses_class(one.type) for one in objects):
            made.calls += (CLASSES,)
        return made

    def with_values(self, made: Statement, names: Iterable[str]) -> None:
        """C++: pointers that get memory from `new` with its values."""
        if self.accesses.valued:
            self.accesses.valued = False
            for name in names:
                reason = "values for memory from new: assign them behind it"
                self.routine.unseen.setdefault(name, (made.begin, made.end, reason))

    def expression_statement(self, cursor: Cursor, condition: bool = False) -> Statement:
        made = self.blank(self.begin(cursor), self.end(cursor))
        whole = None
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
            access = Access.OTHER if self.gives_reference else Access.READ
            for child in cursor.get_children():
                if child.kind.is_expression():
                    self.expression(child, made.references, access, False, made)
        elif condition:
            self.accesses.condition(cursor, made.references, False, made)
        else:
            self.accesses.unused = unused_calls(cursor)
            self.expression(cursor, made.references, Access.READ, False, made)
            whole = cursor
            made.commas = commas(cursor, self.places) if MEMORY & set(made.calls) else ()
        self.with_values(made, [one.name for one in made.references if one.access is Access.WRITE])
        made.takes = tuple(takings(cursor, self.places, whole is None))
        made.given = tuple(givings(cursor, self.places, whole is None))
        self.finish(made, whole)
        return made

    def finish(self, made: Statement, whole: Cursor | None = None) -> None:
        """whole: the expression that is all of the statement, if one is."""
        made.reads = frozenset(r.name for r in made.references if r.access is not Access.WRITE)
        made.writes |= frozenset(
            r.name for r in made.references if r.access not in (Access.READ, Access.OTHER)
        )
        if made.kind is Kind.ASSIGNMENT and TAKES & set(made.calls):
            made.kind = Kind.ALLOCATE
            made.within = whole is None or not allocates(whole)
        if made.kind is Kind.OTHER and made.calls == ("free",) and whole is not None and frees(whole):
            made.kind = Kind.DEALLOCATE
            for reference in made.references:
                if reference.argument_of == "free":
                    reference.access, reference.argument_of = Access.WRITE, None
        if made.kind is Kind.OTHER and made.calls:
            made.kind = Kind.CALL
            if made.calls[0] in _OUTPUT:
                made.kind = Kind.OUTPUT
            elif made.calls[0] in _INPUT:
                made.kind = Kind.INPUT
