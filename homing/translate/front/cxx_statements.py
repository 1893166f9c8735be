"""C++'s own statements: TRY, declarations of several names at once, and in conditions."""

from __future__ import annotations

import re

from clang.cindex import Cursor, CursorKind

from homing.translate.front.c_variables import Variables
from homing.translate.front.cxx import RECORDS, SCOPES
from homing.translate.front.cxx_calls import ClassCode
from homing.translate.tree import Access, Branch, Declaration, Node, Statement

_NAMES = re.compile(r"[A-Za-z_]\w*")


class CxxStatements(Variables):
    """A part of the front's builder, which knows the rest."""

    def block(self, cursor: Cursor) -> list[Node]:
        raise NotImplementedError

    def finish(self, made: Statement, whole: Cursor | None = None) -> None:
        raise NotImplementedError

    def tries(self, cursor: Cursor) -> Branch:
        """TRY and its handlers, of which none, one or a part may run."""
        arms: list[tuple[Statement, list[Node]]] = []
        for child in cursor.get_children():
            inner = list(child.get_children()) if child.kind is CursorKind.CXX_CATCH_STMT else [child]
            begin = self.begin(cursor if child.kind is CursorKind.COMPOUND_STMT else child)
            head = self.blank(begin, self.begin(inner[-1]))
            for one in inner[:-1]:
                if one.kind is CursorKind.VAR_DECL:
                    self.variable(self.routine, one, "automatic")
                    head.writes |= {one.spelling}
            arms.append((head, self.block(inner[-1])))
        return Branch(arms, self.end(cursor), tries=True)

    def condition(self, children: list[Cursor]) -> tuple[Statement, list[Cursor]]:
        """The head of IF, SWITCH and WHILE, which may declare variables, and what comes behind it."""
        if not self.cxx or children[0].kind not in (CursorKind.DECL_STMT, CursorKind.VAR_DECL):
            return self.expression_statement(children[0], condition=True), children[1:]
        declared = children.pop(0)
        made = self.declaration(declared)
        if declared.kind is CursorKind.DECL_STMT and children[0].kind is CursorKind.VAR_DECL:
            more, children = self.condition(children)
        else:
            more = self.expression_statement(children[0], condition=True)
            children = children[1:]
        made.end = more.end
        made.references += more.references
        made.calls += more.calls
        made.takes += more.takes
        made.given += more.given
        made.writes |= more.writes
        self.finish(made)
        return made, children

    def bindings(self, cursor: Cursor) -> set[str]:
        """The names of `auto [a, b]`, each a variable."""
        begin, end = self.begin(cursor), self.end(cursor)
        names = set(_NAMES.findall(cursor.spelling))
        for name in sorted(names):
            one = Declaration(name, name, "auto", [], begin, end, begin, end, storage="automatic")
            self.routine.places.setdefault(name, []).append(begin)
            self.routine.declarations.setdefault(name, one)
        return names

    def declared(self, child: Cursor, made: Statement) -> None:
        """What a declaration of C++'s own does: `auto [a, b] = f();`, a class in a function."""
        if child.kind in RECORDS and child.is_definition():
            ClassCode(self.accesses, made.references, False, made).local_class(child)
        if child.kind not in SCOPES or not child.spelling.startswith("["):
            return
        made.writes |= self.bindings(child)
        head = self.source.text[self.begin(child) : self.end(child)].partition("[")[0]
        access = Access.OTHER if "&" in head else Access.READ
        for inner in child.get_children():
            if inner.kind.is_expression():
                self.expression(inner, made.references, access, False, made)
