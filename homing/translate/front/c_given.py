"""C and C++: pointers that get memory, but not by an assignment of what a call returns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clang.cindex import BinaryOperator, Cursor, CursorKind, TypeKind

from homing.translate.front.c_memory import SAYS_SO, unused
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import ADDRESS, DEREFERENCE, strip, unary
from homing.translate.front.cxx import CASTS, REFERENCES, arguments, by_reference
from homing.translate.tree import Given

#: What exchanges two pointers, and takes no memory.
_EXCHANGE = frozenset({"swap", "exchange", "move"})


def givings(cursor: Cursor, places: Places, used: bool = True) -> Iterator[Given]:
    """In an expression: `make(&p, n)`, in C++ `make(p, n)` by a reference; `p = q`; other uses of `&p`. used:
    something has the value of the whole expression."""
    without = unused(cursor, not used)
    passed: set[int] = set()
    for inner in cursor.walk_preorder():
        if inner.kind is CursorKind.CALL_EXPR:
            passed.update(_plain(one).hash for one in arguments(inner))
            yield from _filled(inner, places)
        elif inner.kind is CursorKind.BINARY_OPERATOR and inner.binary_operator is BinaryOperator.Assign:
            left, right = (_plain(one) for one in inner.get_children())
            begin, end = places.access(inner)
            every = list(right.walk_preorder())
            calls = any(one.kind in (CursorKind.CALL_EXPR, CursorKind.CXX_NEW_EXPR) for one in every)
            names = (one.spelling for one in every if one.kind is CursorKind.DECL_REF_EXPR)
            sources = tuple(dict.fromkeys(names))
            if sources and not calls and _is_pointer(left) and _written(left, places, begin, end):
                end, has = max(end, places.end(inner)), inner.hash not in without
                yield Given(left.spelling, begin, end, sources, used=has)
        elif unary(inner) == ADDRESS:
            of = _plain(next(iter(inner.get_children())))
            if inner.hash not in passed and _is_pointer(of):
                yield Given(of.spelling, *places.access(inner), kept=True)


def _filled(call: Cursor, places: Places) -> Iterator[Given]:
    if call.spelling in _EXCHANGE or SAYS_SO.search(call.spelling):
        return
    changed = by_reference(call) if places.source.cxx else frozenset[int]()
    for index, argument in enumerate(arguments(call)):
        inner = _plain(argument)
        if index not in changed:
            if unary(inner) != ADDRESS:
                continue
            inner = _plain(next(iter(inner.get_children())))
        if _is_pointer(inner) and _fills(call.referenced, index, ()):
            begin, end = places.access(call)
            end, text = max(end, places.end(call)), places.source.text
            pointer = call.referenced is None or call.referenced.kind is not CursorKind.FUNCTION_DECL
            name = "" if pointer else rf"(?:\w*\s*::\s*)*{re.escape(call.spelling)}\b"
            macro = re.match(name, text[begin:end]) is None
            value = call.type.get_canonical().kind is not TypeKind.VOID
            lvalue = call.referenced is not None and call.referenced.result_type.kind in REFERENCES
            yield Given(inner.spelling, begin, end, value=value, kept=lvalue, macro=macro)


def _fills(function: Cursor | None, index: int, around: tuple[str, ...]) -> bool:
    """May a function give memory to the pointer whose address it gets? One whose body is not seen may; so may
    one that writes it, or passes it on, and calls something."""
    body = function.get_definition() if function is not None else None
    if function is None or body is None or function.spelling in around:
        return function is None or body is None
    names = [one.spelling for one in body.get_arguments()]
    if index >= len(names):
        return True
    name = names[index]
    every = list(body.walk_preorder())
    calls = [one for one in every if one.kind in (CursorKind.CALL_EXPR, CursorKind.CXX_NEW_EXPR)]
    if calls and any(_writes(one, name) for one in every):
        return True
    around = (*around, function.spelling)
    for call in calls:
        for at, one in enumerate(arguments(call) if call.kind is CursorKind.CALL_EXPR else ()):
            given = _plain(one)
            if given.kind is CursorKind.DECL_REF_EXPR and given.spelling == name:
                by_value = given.type.kind is not TypeKind.POINTER or at in by_reference(call)
                deeper = given.type.get_canonical().kind is TypeKind.POINTER and not by_value
                if (deeper or by_value) and _fills(call.referenced, at, around):
                    return True
    return False


def _writes(cursor: Cursor, name: str) -> bool:
    """`*name = ...`, `name[0] = ...`; `name = ...` of a reference; or something else has its value."""
    if cursor.kind is CursorKind.VAR_DECL:
        return any(_named(one, name) for one in cursor.get_children())
    if cursor.kind is not CursorKind.BINARY_OPERATOR or cursor.binary_operator is not BinaryOperator.Assign:
        return False
    left, right = (_plain(one) for one in cursor.get_children())
    if _named(right, name):
        return right.type.kind is TypeKind.POINTER
    if unary(left) == DEREFERENCE:
        return _named(_plain(next(iter(left.get_children()))), name)
    if left.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
        return _named(_plain(next(iter(left.get_children()))), name)
    referenced = left.referenced if _named(left, name) else None
    return referenced is not None and referenced.type.kind in REFERENCES


def _named(cursor: Cursor, name: str) -> bool:
    return cursor.kind is CursorKind.DECL_REF_EXPR and bool(cursor.spelling == name)


def _plain(cursor: Cursor) -> Cursor:
    """Without casts and brackets."""
    inner = strip(cursor)
    while inner.kind in CASTS:
        inner = strip(list(inner.get_children())[-1])
    return inner


def _is_pointer(cursor: Cursor) -> bool:
    kinds = (TypeKind.POINTER, TypeKind.ELABORATED, TypeKind.TYPEDEF)
    named = cursor.kind is CursorKind.DECL_REF_EXPR and cursor.type.kind in kinds
    return named and cursor.type.get_canonical().kind is TypeKind.POINTER


def _written(left: Cursor, places: Places, begin: int, end: int) -> bool:
    """Does the program write the assignment there, and not a macro?"""
    return re.match(rf"{re.escape(left.spelling)}\s*=", places.source.text[begin:end]) is not None
