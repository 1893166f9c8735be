"""Small questions about the types and expressions of C."""

from __future__ import annotations

from clang import cindex
from clang.cindex import BinaryOperator, Cursor, CursorKind, Type, TypeKind

from homing.translate.front import cxx
from homing.translate.front.libclang import ARRAYS

#: libclang's numbers of unary operators (CXUnaryOperatorKind): ++ and --, &, *, !.
COUNTING, ADDRESS, DEREFERENCE, NOT = (1, 2, 3, 4), 5, 6, 10
TRANSPARENT = (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR)
_ARITHMETIC = frozenset(kind for kind in TypeKind if 2 < kind.value < 24 or kind is TypeKind.COMPLEX) | {
    TypeKind.BOOL,
    TypeKind.ENUM,
    TypeKind.HALF,
    TypeKind.FLOAT128,
}


def function_type(kind: Type) -> str:
    """The type of a function, or of what a pointer to one means; nothing where it does not say all."""
    kind = kind.get_canonical()
    while kind.kind in (TypeKind.POINTER, *cxx.REFERENCES):
        kind = kind.get_pointee().get_canonical()
    whole = kind.kind is TypeKind.FUNCTIONPROTO
    return str(kind.spelling).removesuffix(" noexcept") if whole else ""


def is_number(kind: Type) -> bool:
    """May a value hold no address? A structure of numbers holds none."""
    if "intptr_t" in kind.spelling:
        return False
    kind = kind.get_canonical()
    while kind.kind in ARRAYS:
        kind = kind.element_type.get_canonical()
    if kind.kind is TypeKind.RECORD:
        bases = kind.get_declaration().get_children()
        if not kind.is_pod() or any(one.kind is CursorKind.CXX_BASE_SPECIFIER for one in bases):
            return False
        return all(is_number(one.type) for one in kind.get_fields())
    return kind.kind in _ARITHMETIC


def holds_addresses(kind: Type) -> bool:
    """Has a structure a pointer or a reference?"""
    kind = kind.get_canonical()
    while kind.kind in ARRAYS:
        kind = kind.element_type.get_canonical()
    if kind.kind is TypeKind.RECORD:
        bases = kind.get_declaration().get_children()
        inner = [one.type for one in bases if one.kind is CursorKind.CXX_BASE_SPECIFIER]
        return any(map(holds_addresses, [*inner, *(one.type for one in kind.get_fields())]))
    return kind.kind is TypeKind.POINTER or kind.kind in cxx.REFERENCES


def strip(cursor: Cursor) -> Cursor:
    while cursor.kind in TRANSPARENT:
        children = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def unary(cursor: Cursor) -> int:
    """The number of the unary operator that the expression is; 0: it is none."""
    if cursor.kind is not CursorKind.UNARY_OPERATOR:
        return 0
    return int(cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor))


def assigns(cursor: Cursor) -> bool:
    """Is the expression `... = ...`?"""
    return cursor.kind is CursorKind.BINARY_OPERATOR and cursor.binary_operator is BinaryOperator.Assign


def unused_calls(cursor: Cursor) -> frozenset[int]:
    """The calls (their hashes) in a statement whose values it does not use."""
    inner = strip(cursor)
    while inner.kind in cxx.CASTS and inner.type.kind is TypeKind.VOID:
        inner = strip(list(inner.get_children())[-1])
    if inner.kind is CursorKind.BINARY_OPERATOR and inner.binary_operator is BinaryOperator.Comma:
        return frozenset().union(*map(unused_calls, inner.get_children()))
    return frozenset([inner.hash]) if inner.kind is CursorKind.CALL_EXPR else frozenset()


def gives_address(call: Cursor) -> bool:
    """May the value of a call be an address, or hold one?"""
    kind = call.type
    number = kind.spelling in ("uintptr_t", "intptr_t")
    if number or kind.get_canonical().kind in (TypeKind.POINTER, TypeKind.RECORD):
        return True
    callee = call.referenced
    return callee is not None and callee.result_type.kind in cxx.REFERENCES
