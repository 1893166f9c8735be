"""Small questions about C expressions: what they change, and what they are."""

from __future__ import annotations

from clang.cindex import BinaryOperator, Cursor, CursorKind, TypeKind

from homing.translate.front import cxx
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import COUNTING, TRANSPARENT, strip, unary
from homing.translate.front.libclang import ARRAYS
from homing.translate.tree import Access

ASSIGNMENTS = (BinaryOperator.Assign,)
POINTERS = (TypeKind.POINTER, *ARRAYS)
#: Of expressions that only read.
_CALM = (
    *TRANSPARENT,
    CursorKind.ARRAY_SUBSCRIPT_EXPR,
    CursorKind.BINARY_OPERATOR,
    CursorKind.DECL_REF_EXPR,
    CursorKind.INTEGER_LITERAL,
    CursorKind.MEMBER_REF_EXPR,
)


def changes(call: Cursor, index: int) -> bool:
    """May the function change what this argument points to?"""
    if call.referenced is None or call.referenced.kind is not CursorKind.FUNCTION_DECL:
        return True
    parameters = list(call.referenced.type.argument_types())
    if index >= len(parameters):  # printf's
        return False
    kind = parameters[index].get_canonical()
    return kind.kind is not TypeKind.POINTER or not kind.get_pointee().is_const_qualified()


def is_calm(cursor: Cursor) -> bool:
    """Does an expression call nothing, and assign nothing?"""
    for inner in cursor.walk_preorder():
        if inner.kind is CursorKind.BINARY_OPERATOR and inner.binary_operator in ASSIGNMENTS:
            return False
        if inner.kind is CursorKind.UNARY_OPERATOR:
            if unary(inner) in COUNTING:
                return False
        elif inner.kind not in _CALM:
            return False
    return True


def of_memory(cursor: Cursor, access: Access) -> Access:
    """What `*(a + i) = x` does to the operands of the sum: the pointer's memory is changed."""
    changed = access in (Access.WRITE, Access.UPDATE, Access.OTHER)
    return access if changed and strip(cursor).type.kind in POINTERS else Access.READ


def is_null(cursor: Cursor) -> bool:
    inner = strip(cursor)
    if inner.kind is CursorKind.CXX_NULL_PTR_LITERAL_EXPR:
        return True
    if inner.kind in cxx.CASTS and inner.type.kind is TypeKind.POINTER:
        children = list(inner.get_children())
        return bool(children) and children[-1].kind is CursorKind.INTEGER_LITERAL
    return cursor.type.kind is TypeKind.POINTER and inner.kind is CursorKind.INTEGER_LITERAL


def is_zeroed(places: Places, new: Cursor) -> bool:
    """C++: `new double[n]()`."""
    return places.source.text[places.begin(new) : places.end(new)].rstrip().endswith((")", "}"))
