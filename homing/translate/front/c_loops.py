"""C's loops: which of them are counted, from where to where."""

from __future__ import annotations

import re

from clang.cindex import BinaryOperator, Cursor, CursorKind, TypeKind

from homing.translate.affine import shifted
from homing.translate.front.c_accesses import Accesses
from homing.translate.front.c_given import givings
from homing.translate.front.c_memory import takings
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import strip
from homing.translate.front.cxx import REFERENCES
from homing.translate.front.cxx_calls import uses_class
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import (
    CLASSES,
    Access,
    Declaration,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    Subscript,
    written_in_all,
)

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


class Loops:
    """A part of the front's builder, which knows the rest."""

    source: SourceFile
    routine: Routine
    places: Places
    accesses: Accesses

    def blank(self, begin: int, end: int) -> Statement:
        raise NotImplementedError

    def body(self, cursor: Cursor) -> list[Node]:
        raise NotImplementedError

    def declaration(self, cursor: Cursor) -> Statement:
        raise NotImplementedError

    def expression_statement(self, cursor: Cursor, condition: bool = False) -> Statement:
        raise NotImplementedError

    def condition(self, children: list[Cursor]) -> tuple[Statement, list[Cursor]]:
        raise NotImplementedError

    def bindings(self, cursor: Cursor) -> set[str]:
        raise NotImplementedError

    def variable(self, scope: Routine, cursor: Cursor, storage: str) -> Declaration:
        raise NotImplementedError

    def expression(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        self.accesses.expression(cursor, found, access, conditional, into)

    def begin(self, cursor: Cursor) -> int:
        return self.places.begin(cursor)

    def end(self, cursor: Cursor) -> int:
        return self.places.end(cursor)

    def text(self, begin: int, end: int) -> str:
        return self.places.text(begin, end)

    def range_loop(self, cursor: Cursor) -> Loop:
        """C++: `for (double x : a)`, which names the whole array."""
        begin, end = self.begin(cursor), self.end(cursor)
        inner = list(cursor.get_children())
        variable, over, body = inner[0], inner[-2], inner[-1]
        bound = variable.spelling.startswith("[")  # `auto &[key, value]`
        if variable.kind is not CursorKind.VAR_DECL and not bound:
            reason = "a range-for that declares more than its element: declare it before"
            raise TranslationError([self.source.problem(begin, self.begin(body), reason)])
        head = self.blank(begin, self.begin(body))
        made = Loop(head, [], end, end, body_begin=self.begin(body))
        made.unrolled_reason = "a loop over the elements of an array"
        names = self.bindings(variable) if bound else {variable.spelling}
        if not bound:
            self.variable(self.routine, variable, "automatic")
        self.expression(over, head.references, Access.OTHER, False, head)
        if uses_class(over.type):
            head.calls += (CLASSES,)  # its iterators
        head.reads = frozenset(one.name for one in head.references)
        head.writes = frozenset(names)
        changes = variable.type.kind in REFERENCES and not variable.type.get_pointee().is_const_qualified()
        head.writes |= head.reads if changes else frozenset()
        made.body = self.body(body)
        return made

    def other_loop(self, cursor: Cursor) -> Loop:
        children = list(cursor.get_children())
        if cursor.kind is CursorKind.DO_STMT:
            body, condition = children[0], children[-1]
            head = self.expression_statement(condition, condition=True)
        else:
            condition = children[0]
            head, (body,) = self.condition(children)
        head.begin = self.begin(cursor)
        end = ends = self.end(cursor)
        if cursor.kind is CursorKind.DO_STMT:
            # Where a macro gives the word, it is as near to its condition.
            word = self.source.text.rfind("while", self.end(body), self.begin(condition))
            ends = word if word >= 0 else self.end(body)
        return Loop(
            head,
            self.body(body),
            end,
            ends,
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
                    head.calls += inner.calls
                    head.pointed += inner.pointed
                    head.through |= inner.through
                else:
                    self.expression(child, head.references, Access.READ, False, head)
                    used = self.source.text.count(";", begin, self.begin(child)) == 1  # the condition
                    head.takes += tuple(takings(child, self.places, used))
                    head.given += tuple(givings(child, self.places, used))
        head.reads = frozenset(r.name for r in head.references if r.access is not Access.WRITE)
        head.writes |= frozenset(
            r.name for r in head.references if r.access not in (Access.READ, Access.OTHER)
        )
        made.body = self.body(body)
        if made.variable is not None and made.variable in written_in_all(made.body):
            made.unrolled_reason = (
                f"its index '{made.variable}' is written or declared anew inside: use another name"
            )
            made.variable = made.first = made.last = None
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
            if first.kind is CursorKind.INIT_LIST_EXPR:
                return False
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
            match = re.fullmatch(rf"{re.escape(name)}=(?P<step>[\w*]+)\+{re.escape(name)}", text)
            return match["step"] if match else None
        return ("-" if match[1] == "-" else "") + match[2]
