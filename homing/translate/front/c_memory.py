"""C and C++: how a statement takes memory, or gives it back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from clang.cindex import BinaryOperator, Cursor, CursorKind, Type, TypeKind

from homing.translate.front.c_places import Places
from homing.translate.front.c_types import assigns, strip
from homing.translate.front.cxx import CASTS
from homing.translate.front.libclang import ARRAYS
from homing.translate.tree import Taking

#: What takes memory; and what gives it back, too.
TAKES = frozenset({"malloc", "calloc", "aligned_alloc"})
MEMORY = TAKES | {"free"}
#: Names of functions that give memory back begin or end so: grid_free, freeGrid, DestroyField.
_WORDS = (
    r"(?:[Ff]ree|[Dd]elete|[Dd]estroy|[Dd]ealloc(?:ate)?|[Rr]elease|[Dd]ispose|[Cc]lean_?[Uu]p"
    r"|[Ff]inali[sz]e|[Tt]ear_?[Dd]own)"
)
SAYS_SO = re.compile(rf"^{_WORDS}(?![a-z])|(?:_|(?<=[a-z0-9])(?=[A-Z])){_WORDS}$")
#: Expressions whose values may be memory that has no name yet.
_GIVES = (CursorKind.CALL_EXPR, CursorKind.CXX_NEW_EXPR)


def frees(cursor: Cursor) -> bool:
    """Is the whole expression one `free(p)`, or one `delete`?"""
    inner = strip(cursor)
    if inner.kind is CursorKind.CXX_DELETE_EXPR:
        return True
    return inner.kind is CursorKind.CALL_EXPR and inner.spelling == "free"


def allocates(cursor: Cursor) -> bool:
    """Is the whole expression one assignment, with no other in it?"""
    inner = strip(cursor)
    return assigns(inner) and sum(assigns(one) for one in inner.walk_preorder()) == 1


def unused(cursor: Cursor, whole: bool) -> frozenset[int]:
    """The parts (their hashes) of an expression whose values nothing uses. whole: nor that of all of it."""
    inner = strip(cursor)
    while whole and inner.kind in CASTS and inner.type.kind is TypeKind.VOID:
        inner = strip(list(inner.get_children())[-1])
    if inner.kind is CursorKind.BINARY_OPERATOR and inner.binary_operator is BinaryOperator.Comma:
        left, right = inner.get_children()
        return unused(left, True) | unused(right, whole)
    return frozenset([inner.hash]) if whole else frozenset()


def takings(cursor: Cursor, places: Places, used: bool = True) -> Iterator[Taking]:
    """The assignments in an expression that give a pointer what a call or `new` returns. used: something has
    the value of the whole expression."""
    without = unused(cursor, not used)
    for inner in cursor.walk_preorder():
        if not assigns(inner):
            continue
        left, right = (strip(one) for one in inner.get_children())
        if left.kind is CursorKind.DECL_REF_EXPR and left.type.kind is TypeKind.POINTER and _gives(right):
            begin, end = places.access(inner)
            if re.match(
                rf"{left.spelling}\s*=", places.source.text[begin:end]
            ):  # a macro may have written it
                yield Taking(left.spelling, begin, max(end, places.end(inner)), inner.hash not in without)


def _gives(cursor: Cursor) -> bool:
    """May the value of an expression be what a call or `new` returns?"""
    inner = strip(cursor)
    while inner.kind in CASTS:
        inner = strip(list(inner.get_children())[-1])
    if inner.kind is CursorKind.CONDITIONAL_OPERATOR:
        return any(_gives(one) for one in list(inner.get_children())[1:])
    if inner.kind is CursorKind.BINARY_OPERATOR:  # a comma, `a = malloc(n)`, or `(char *)malloc(n) + 8`
        return any(_gives(one) for one in inner.get_children())
    return inner.kind in _GIVES


def commas(cursor: Cursor, places: Places) -> tuple[int, ...]:
    """Where the commas stand between expressions of which an expression is made, one after the other; none
    where something else stands between them."""
    if cursor.kind is not CursorKind.BINARY_OPERATOR or cursor.binary_operator is not BinaryOperator.Comma:
        return ()
    left, right = cursor.get_children()
    end = places.end(left)
    between = places.source.text[end : places.begin(right)]
    if between.strip() != ",":
        return ()
    before = commas(left, places)
    whole = left.kind is CursorKind.BINARY_OPERATOR and left.binary_operator is BinaryOperator.Comma
    return (*before, end + between.index(",")) if before or not whole else ()


def freed_arguments(function: Cursor, known: Mapping[str, set[int]]) -> set[int]:
    """Which of its arguments a function that a header defines gives back, itself or by those that are known
    to do so."""
    names = [one.spelling for one in function.get_arguments()]
    found = set()
    for inner in function.walk_preorder():
        given: list[Cursor] = []
        if inner.kind is CursorKind.CXX_DELETE_EXPR:
            given = list(inner.get_children())
        elif inner.kind is CursorKind.CALL_EXPR:
            freed = {0} if inner.spelling in ("free", "realloc") else known.get(inner.spelling, set())
            given = [one for at, one in enumerate(inner.get_arguments()) if at in freed]
        for one in given:
            found |= {names.index(word.spelling) for word in _pointers(one) if word.spelling in names}
    return found


def may_free(function: Cursor) -> set[int]:
    """Which of its arguments a function may give back of which nothing but its prototype is seen: it gets no
    other one, or its name says so."""
    if function.is_definition() or function.get_definition() is not None:
        return set()
    given = list(function.get_arguments())
    alone = len(given) == 1 and not function.location.is_in_system_header
    if not alone and not SAYS_SO.search(function.spelling):
        return set()
    return {at for at, one in enumerate(given) if _changeable(one.type.get_canonical())}


def _changeable(kind: Type) -> bool:
    if kind.kind not in (TypeKind.POINTER, *ARRAYS):
        return False
    return kind.kind is not TypeKind.POINTER or not kind.get_pointee().is_const_qualified()


def _pointers(cursor: Cursor) -> Iterator[Cursor]:
    """The names of pointers in an argument."""
    for inner in cursor.walk_preorder():
        if inner.kind is CursorKind.DECL_REF_EXPR and inner.type.kind is TypeKind.POINTER:
            yield inner
