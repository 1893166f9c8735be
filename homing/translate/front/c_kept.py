"""C and C++: functions that headers define, and that keep the addresses of what they get, or return them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clang.cindex import Cursor, CursorKind, StorageClass, TypeKind

from homing.translate.front.c_types import assigns, is_number, strip
from homing.translate.front.cxx import REFERENCES

#: Which of a function's arguments outlive it, and which it may return.
Outliving = tuple[frozenset[int], frozenset[int]]


def kept_arguments(function: Cursor, known: Mapping[str, Outliving]) -> Outliving:
    """Follow what a function's arguments hold through its variables. known: of functions before it."""
    holders = {one.spelling: {index} for index, one in enumerate(function.get_arguments())}
    stored, returned = set[int](), set[int]()
    count = -1
    while count != (count := sum(map(len, holders.values())) + len(stored) + len(returned)):
        for inner in function.walk_preorder():
            if inner.kind is CursorKind.RETURN_STMT:
                returned |= {index for one in inner.get_children() for index in _held(one, holders, known)}
            elif inner.kind is CursorKind.VAR_DECL:
                held = {index for one in inner.get_children() for index in _held(one, holders, known)}
                if inner.storage_class is StorageClass.STATIC:
                    stored |= held
                elif held:
                    holders.setdefault(inner.spelling, set()).update(held)
            elif assigns(inner):
                left, right = inner.get_children()
                held = _held(right, holders, known)
                if (name := _own(left)) is None:
                    stored |= held
                elif held:
                    holders.setdefault(name, set()).update(held)
            elif inner.kind is CursorKind.CALL_EXPR:
                kept = known.get(inner.spelling, (frozenset(), frozenset()))[0]
                for at, one in enumerate(inner.get_arguments()):
                    stored |= _held(one, holders, known) if at in kept else set()
    return frozenset(stored), frozenset(returned)


def _held(value: Cursor, holders: Mapping[str, set[int]], known: Mapping[str, Outliving]) -> set[int]:
    """The arguments whose addresses a value may hold."""
    inner = strip(value)
    if is_number(inner.type):
        return set()
    if inner.kind is CursorKind.DECL_REF_EXPR:
        return set(holders.get(inner.spelling, ()))
    children = list(_values(inner))
    if inner.kind is CursorKind.CALL_EXPR and inner.spelling in known:
        arguments = list(inner.get_arguments())
        children = [one for at, one in enumerate(arguments) if at in known[inner.spelling][1]]
    return {index for one in children for index in _held(one, holders, known)}


def _values(expression: Cursor) -> Iterator[Cursor]:
    """The expressions of which one is made."""
    for child in expression.get_children():
        if child.kind.is_expression():
            yield child


def _own(target: Cursor) -> str | None:
    """The variable of the function's own in which the target of an assignment lies, and not behind it."""
    at = strip(target)
    while at.kind in (CursorKind.ARRAY_SUBSCRIPT_EXPR, CursorKind.MEMBER_REF_EXPR):
        at = strip(next(_values(at), at))
        if at.type.get_canonical().kind is TypeKind.POINTER:
            return None
    meant = at.referenced if at.kind is CursorKind.DECL_REF_EXPR else None
    if meant is None or meant.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
        return None
    if meant.type.kind in REFERENCES or meant.storage_class in (StorageClass.STATIC, StorageClass.EXTERN):
        return None
    inside = meant.semantic_parent is not None and meant.semantic_parent.kind is CursorKind.FUNCTION_DECL
    return str(meant.spelling) if inside or meant.kind is CursorKind.PARM_DECL else None
