"""C's pointers to an element or a row (`P *p = &ps[i];`, `double *row = a[i];`) go, and so do references of
C++ (`P &p = ps[i];`): what they mean stands in their place, as the user could have written (`ps[i].x`,
`a[i][j]`).

Only where they mean the same as long as they are there: the pointer is not changed and given nobody but to
functions, and neither is what is in its value.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from clang import cindex
from clang.cindex import Cursor, CursorKind, StorageClass, TypeKind

from homing.translate.code_text import Edit, blanked, closing
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import ADDRESS, COUNTING, DEREFERENCE, assigns, strip, unary
from homing.translate.front.libclang import ARRAYS, VARIABLES
from homing.translate.source import SourceFile

_VALUES = frozenset(
    [
        CursorKind.DECL_REF_EXPR,
        CursorKind.INTEGER_LITERAL,
        CursorKind.BINARY_OPERATOR,
        CursorKind.PAREN_EXPR,
        CursorKind.UNEXPOSED_EXPR,
    ]
)
_QUALIFIERS = re.compile(r"\b(?:const|restrict|__restrict)\b|\s+")
_ARROW = re.compile(r"\s*->\s*")
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma\b(?:[^\n\\]|\\\r?\n|\\.)*", re.MULTILINE)
_BRACKET = re.compile(r"\s*\[")


@dataclass(frozen=True)
class _Element:
    """What a pointer means: the array's name, what is in the brackets, and whether it is a row. reference: it
    is no pointer."""

    root: Cursor
    name: str
    subscripts: tuple[str, ...]
    row: bool
    reference: bool = False

    def text(self, more: str = "") -> str:
        """more: how far it lies behind."""
        subscripts = list(self.subscripts)
        if self.row:
            subscripts.append(more or "0")
        elif more:
            subscripts[-1] = f"({subscripts[-1]}) + ({more})"  # a word may be a macro
        return self.name + "".join(f"[{one}]" for one in subscripts)

    @property
    def address(self) -> str:
        return self.name + "".join(f"[{one}]" for one in self.subscripts) if self.row else f"&{self.text()}"


class ElementPointers:
    """Those of one file's functions."""

    def __init__(self, source: SourceFile, named: Container[str]) -> None:
        """named: arrays of which directives speak."""
        self.source, self.named, self.places = source, named, Places(source)
        self.code = blanked(source.text, False, " ")

    def edits(self, functions: Sequence[Cursor]) -> Iterator[Edit]:
        for function in functions:
            for block in function.walk_preorder():
                if block.kind is CursorKind.COMPOUND_STMT:
                    children = list(block.get_children())
                    for at, child in enumerate(children):
                        if child.kind is CursorKind.DECL_STMT:
                            yield from self._declared(function, child, children[at + 1 :])

    def _declared(self, function: Cursor, statement: Cursor, behind: Sequence[Cursor]) -> list[Edit]:
        """A declaration of such pointers and of nothing else."""
        made: list[Edit] = []
        declared = list(statement.get_children())
        for variable in declared:
            element = self._meant(variable) if variable.kind is CursorKind.VAR_DECL else None
            if element is None or not self._steady(function, variable, element, behind):
                return []
            for at in behind:
                found = list(self._uses(at, variable, element))
                if None in found:
                    return []
                made += [edit for edit in found if edit is not None]
        begin, end = self.places.begin(statement), self.places.end(statement)
        lines = self.source.text.count("\n", begin, end)
        return [(begin, end, ";" + "\n" * lines), *made] if declared else []

    # --- the pointer's value --------------------------------------------------------------------------------

    def _meant(self, variable: Cursor) -> _Element | None:
        values = [one for one in variable.get_children() if one.kind.is_expression()]
        reference = variable.type.kind is TypeKind.LVALUEREFERENCE
        if (variable.type.kind is not TypeKind.POINTER and not reference) or len(values) != 1:
            return None
        if variable.storage_class is StorageClass.STATIC:
            return None
        value, row = strip(values[0]), False
        if reference:
            pass
        elif unary(value) == ADDRESS:
            value = strip(next(iter(value.get_children())))
        elif value.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR and value.type.get_canonical().kind in ARRAYS:
            row = True
        else:
            return None
        pointee = value.type.get_canonical().element_type if row else value.type
        if _plain(variable.type.get_pointee()) != _plain(pointee):
            return None
        depth, inner = 0, value
        while inner.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
            base, subscript = (strip(one) for one in inner.get_children())
            if any(one.kind not in _VALUES or assigns(one) for one in subscript.walk_preorder()):
                return None
            depth, inner = depth + 1, base
        if inner.kind is not CursorKind.DECL_REF_EXPR or not depth or not self._known(inner):
            return None
        begin = at = self.places.begin(inner)
        if not self.source.text.startswith(inner.spelling, begin):
            return None
        at += len(inner.spelling)
        subscripts = []
        for _ in range(depth):
            opening = _BRACKET.match(self.code, at)
            if opening is None:
                return None
            at = closing(self.code, opening.end())
            subscripts.append(" ".join(self.source.text[opening.end() : at - 1].split()))
        return _Element(inner, inner.spelling, tuple(subscripts), row, reference)

    def _known(self, root: Cursor) -> bool:
        """Is it an array that may be distributed?"""
        declared = root.referenced
        return declared is not None and (
            declared.kind is CursorKind.PARM_DECL
            or (declared.kind is CursorKind.VAR_DECL and root.spelling in self.named)
        )

    # --- does it stay the same? -----------------------------------------------------------------------------

    def _steady(
        self, function: Cursor, variable: Cursor, element: _Element, behind: Sequence[Cursor]
    ) -> bool:
        """Does the value mean the same wherever the pointer is used?"""
        value = next(one for one in variable.get_children() if one.kind.is_expression())
        names = {one.spelling for one in value.walk_preorder() if one.kind is CursorKind.DECL_REF_EXPR}
        used = [one.referenced for one in value.walk_preorder() if one.kind is CursorKind.DECL_REF_EXPR]
        inside = [one for at in behind for one in at.walk_preorder()]
        if any(one.kind in VARIABLES and one.spelling in names for one in inside):
            return False
        begin, end = self.places.begin(variable), max(map(self.places.end, behind), default=0)
        for pragma in _PRAGMA.findall(self.source.text[begin:end]):
            # A task may run later; DEFAULT(NONE) lists the pointer, not what it means.
            words = [*names, variable.spelling, "none", "task", "taskloop", "target"]
            if not set(words).isdisjoint(re.findall(r"\w+", pragma)):
                return False
        changed = {one.hash for at in behind for one in _changed(at, (*COUNTING, ADDRESS))}
        addressed = {one.hash for one in _changed(function, (ADDRESS,), assigned=False)}
        if self.source.cxx:
            addressed |= {one.hash for one in _held(function)}
        calls = any(one.kind is CursorKind.CALL_EXPR and not _of_the_system(one) for one in inside)
        for one in used:
            if one is None or one.hash in changed:
                return False
            kind = one.type.get_canonical()
            if one.kind is CursorKind.ENUM_CONSTANT_DECL or kind.kind in ARRAYS or _constant(one):
                continue
            if one.kind not in VARIABLES or one.hash in addressed or one.type.is_volatile_qualified():
                return False
            own = one.semantic_parent.kind is CursorKind.FUNCTION_DECL
            own = own and one.storage_class is not StorageClass.STATIC
            if not own and (calls or kind.kind is not TypeKind.POINTER):
                return False  # a function may change it, or each thread have its own
        return True

    # --- its uses -------------------------------------------------------------------------------------------

    def _uses(self, cursor: Cursor, variable: Cursor, element: _Element) -> Iterator[Edit | None]:
        """What stands in place of each use below; None: one that cannot be told."""
        for child in cursor.get_children():
            inner = child
            while inner.kind is CursorKind.UNEXPOSED_EXPR:
                inside = list(inner.get_children())
                if len(inside) != 1:
                    break
                inner = inside[0]
            if inner.kind is CursorKind.LAMBDA_EXPR:
                every = (one.referenced for one in inner.walk_preorder())
                if any(one is not None and one == variable for one in every):
                    yield None  # which may keep it
            elif inner.kind is CursorKind.DECL_REF_EXPR and inner.referenced == variable:
                yield from self._use(cursor, inner, element)
            else:
                yield from self._uses(child, variable, element)

    def _use(self, around: Cursor, use: Cursor, element: _Element) -> Iterator[Edit | None]:
        text, begin, end = self.source.text, self.places.begin(use), self.places.end(use)
        if text[begin:end] != use.spelling:
            yield None  # in a macro
            return
        if element.reference:
            yield begin, end, element.text()
            return
        first = next(iter(around.get_children()), None)
        is_base = first is not None and self.places.begin(first) == begin and self.places.end(first) == end
        arrow = _ARROW.match(text, end)
        if around.kind is CursorKind.MEMBER_REF_EXPR and arrow:
            yield begin, arrow.end(), f"{element.text()}."
        elif around.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR and is_base:
            opening = _BRACKET.match(self.code, end)
            if opening is None:
                yield None
                return
            last = closing(self.code, opening.end())
            behind = text[opening.end() : last - 1].strip()
            if element.row:
                yield begin, opening.end(), element.address + "["
            elif behind == "0":
                yield begin, last, element.text()
            else:
                yield begin, opening.end(), element.text("\0").partition("\0")[0]
                yield last - 1, last, ")]"
        elif unary(around) == DEREFERENCE:
            yield self.places.begin(around), end, element.text()
        elif around.kind is CursorKind.CALL_EXPR and not is_base:
            yield begin, end, element.address
        else:
            yield None


def _plain(kind: cindex.Type) -> str:
    return _QUALIFIERS.sub("", kind.get_canonical().spelling)


def _constant(variable: Cursor) -> bool:
    return bool(variable.type.is_const_qualified()) and variable.kind in VARIABLES


def _changed(cursor: Cursor, operators: Container[int], assigned: bool = True) -> Iterator[Cursor]:
    """The variables to which one of the operators is applied, and that are assigned to."""
    for inner in cursor.walk_preorder():
        changes = assigns(inner) or inner.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
        counts = unary(inner) in operators
        target = strip(next(iter(inner.get_children()))) if (changes and assigned) or counts else None
        if target is not None and target.kind is CursorKind.DECL_REF_EXPR and target.referenced is not None:
            yield target.referenced


def _held(cursor: Cursor) -> Iterator[Cursor]:
    """C++: the variables that something gets, or has another name for, instead of their values."""
    for inner in cursor.get_children():
        if inner.kind is CursorKind.DECL_REF_EXPR and inner.referenced is not None:
            target = assigns(cursor) or cursor.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
            if not target and cursor.kind is not CursorKind.UNEXPOSED_EXPR and unary(cursor) not in COUNTING:
                yield inner.referenced
        elif inner.kind is CursorKind.LAMBDA_EXPR:
            every = (one.referenced for one in inner.walk_preorder())
            yield from (one for one in every if one is not None and one.kind in VARIABLES)
        else:
            yield from _held(inner)


def _of_the_system(call: Cursor) -> bool:
    return call.referenced is not None and bool(call.referenced.location.is_in_system_header)
