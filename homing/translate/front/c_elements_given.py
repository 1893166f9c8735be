"""C: functions that get the address of one element (`move(&ps[i], dt)`), in C++ a reference to it
(`move(ps[i], dt)`), and do no more than use that element.

Such a call reads or changes the element, as if that stood in the program: what the function makes of the
pointer is looked at in its body, and in those of functions of the file that it gives the pointer on to.
"""

from __future__ import annotations

from collections.abc import Iterator

from clang.cindex import Cursor, CursorKind, TypeKind

from homing.translate.front.c_types import ADDRESS, COUNTING, DEREFERENCE, TRANSPARENT, assigns, strip, unary
from homing.translate.front.cxx import (
    CASTS,
    REFERENCES,
    by_reference,
    function_name,
    has_references,
    is_copy,
    makes_number,
)
from homing.translate.front.libclang import ARRAYS
from homing.translate.tree import Access

#: Functions of std that change what they get by reference, and keep no address.
_EXCHANGES = frozenset({"std::swap", "std::exchange"})
#: What may stand around an assignment whose value nothing uses.
_STATEMENTS = (CursorKind.COMPOUND_STMT, CursorKind.IF_STMT, CursorKind.FOR_STMT, CursorKind.WHILE_STMT)
#: Functions that give the pointer on to each other, at most.
_DEEPEST = 8


def element_given(call: Cursor, index: int, argument: Cursor) -> tuple[Cursor, Access] | None:
    """The element whose address the argument is, and what the call does with it; None: it is something else,
    or it is not known what becomes of it."""
    inner = strip(argument)
    if unary(inner) != ADDRESS:
        return None
    element = strip(next(iter(inner.get_children())))
    kind = element.type.get_canonical().kind
    if element.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR or kind in (TypeKind.POINTER, *ARRAYS):
        return None
    access = _use(call.referenced, index, 0)
    return None if access is None else (element, access)


def element_referred(call: Cursor, index: int, argument: Cursor) -> bool:
    """C++: is the argument an element, or what it holds, that a function gets by reference and reads and
    changes, and does no more?"""
    inner, kind = strip(argument), argument.type.get_canonical().kind
    while inner.kind is CursorKind.MEMBER_REF_EXPR and any(True for _ in inner.get_children()):
        inner = strip(next(iter(inner.get_children())))
    if inner.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR or kind in (TypeKind.POINTER, *ARRAYS):
        return False
    callee = call.referenced
    if callee is not None and callee.location.is_in_system_header:
        return function_name(callee, frozenset()) in _EXCHANGES
    return _uses_reference(callee, index, 0)


def _uses_reference(function: Cursor | None, index: int, depth: int) -> bool:
    """Does a function keep no address of what its argument refers to, and give it to none that may?"""
    definition = function.get_definition() if function is not None else None
    if definition is None or definition.kind is not CursorKind.FUNCTION_DECL or depth > _DEEPEST:
        return False
    parameters = list(definition.get_arguments())
    if index >= len(parameters) or definition.result_type.kind in REFERENCES:
        return False
    return all(_is_value(path, depth) for path in _uses(definition, parameters[index]))


def _is_value(path: list[Cursor], depth: int) -> bool:
    """Is the name (the last of the path), or what it holds, read or changed, and no more?"""
    if any(one.kind is CursorKind.LAMBDA_EXPR for one in path):
        return False
    at = len(path) - 1
    while True:
        after, above = _above(path, at)
        held = above.kind is CursorKind.MEMBER_REF_EXPR and above.referenced.kind is CursorKind.FIELD_DECL
        if not held and not _is_element_of(above, path[at]):
            break
        at = after
    child, outer = path[at], path[after - 1]
    if child.type.get_canonical().kind in ARRAYS:
        return False
    if above.kind is CursorKind.CALL_EXPR and above.referenced is not None:
        if above.referenced.kind is not CursorKind.FUNCTION_DECL:
            return is_copy(above.referenced)
        numbers = [n for n, one in enumerate(above.get_arguments()) if child in one.walk_preorder()]
        kept = by_reference(above, constant=True)
        return all(n not in kept or _uses_reference(above.referenced, n, depth + 1) for n in numbers)
    if path[at - 1].kind is CursorKind.UNEXPOSED_EXPR:  # its value
        return not (
            (above.kind is CursorKind.VAR_DECL and above.type.kind in REFERENCES)
            or (above.kind is CursorKind.INIT_LIST_EXPR and has_references(above.type))
            or (above.kind in CASTS and not makes_number(above))
        )
    changes = assigns(above) or above.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
    return outer.kind in _STATEMENTS and (changes or unary(above) in COUNTING)


def _is_element_of(above: Cursor, array: Cursor) -> bool:
    """Is it `m[i]` of a member `m` that is an array?"""
    if above.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR or array.type.get_canonical().kind not in ARRAYS:
        return False
    return array in next(iter(above.get_children())).walk_preorder()


def _use(function: Cursor | None, index: int, depth: int) -> Access | None:
    """What a function does with what a pointer argument means; None: it is not known, or more."""
    definition = function.get_definition() if function is not None else None
    if definition is None or definition.kind is not CursorKind.FUNCTION_DECL or depth > _DEEPEST:
        return None
    parameters = list(definition.get_arguments())
    if index >= len(parameters):
        return None
    kind = parameters[index].type.get_canonical()
    if kind.kind is not TypeKind.POINTER:
        return None
    access = Access.READ if kind.get_pointee().is_const_qualified() else Access.UPDATE
    for above in _uses(definition, parameters[index]):
        if not _of_the_element(above, depth):
            return None
    return access


def _uses(function: Cursor, parameter: Cursor) -> Iterator[list[Cursor]]:
    """The names of a parameter in the function's body, each behind what is around it."""

    def visit(cursor: Cursor, around: list[Cursor]) -> Iterator[list[Cursor]]:
        here = [*around, cursor]
        if cursor.kind is CursorKind.DECL_REF_EXPR and cursor.referenced == parameter:
            yield here
        for child in cursor.get_children():
            yield from visit(child, here)

    yield from visit(function, [])


def _of_the_element(path: list[Cursor], depth: int) -> bool:
    """Is the parameter's name (the last of the path) used for the element alone, and its address for nothing
    but a call that does no more?"""
    at = len(path) - 1
    child = path[at]
    at, above = _above(path, at)
    if unary(above) == DEREFERENCE or above.kind is CursorKind.MEMBER_REF_EXPR or _is_first(above, child):
        return _stays(path, at)
    if above.kind is CursorKind.CALL_EXPR and above.referenced is not None:
        for index, argument in enumerate(above.get_arguments()):
            if path[-1] in argument.walk_preorder():
                whole = strip(argument) == path[-1]
                return whole and _use(above.referenced, index, depth + 1) is not None
    return False


def _stays(path: list[Cursor], at: int) -> bool:
    """Does what path[at] means (a piece of the element) stay without an address that somebody keeps?"""
    while path[at].type.get_canonical().kind in ARRAYS:  # a member that is an array: an element of it
        at, above = _above(path, at)
        if above.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return False
    at, above = _above(path, at)
    if above.kind is CursorKind.MEMBER_REF_EXPR and path[at].type.get_canonical().kind is TypeKind.RECORD:
        return _stays(path, at)
    return unary(above) != ADDRESS


def _above(path: list[Cursor], at: int) -> tuple[int, Cursor]:
    """What is around path[at], and where, without brackets and the like."""
    at -= 1
    while path[at].kind in TRANSPARENT:
        at -= 1
    return at, path[at]


def _is_first(above: Cursor, child: Cursor) -> bool:
    """`p[0]`?"""
    if above.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR:
        return False
    base, index = list(above.get_children())
    tokens = [one.spelling for one in index.get_tokens()]
    return child in base.walk_preorder() and tokens == ["0"]
