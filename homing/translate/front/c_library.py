"""Functions of C's library: which of them know an address by what they get alone."""

from __future__ import annotations

from clang.cindex import Cursor, CursorKind, TypeKind

#: They know an address still when they have returned.
_KEEPING = frozenset(
    [
        "strtok",
        "setbuf",
        "setbuffer",
        "setvbuf",
        "putenv",
        "fmemopen",
        "pthread_create",
        "aio_read",
        "aio_write",
    ]
)


def of_the_library(call: Cursor) -> bool:
    """Is it a function of the system's headers? It knows an address by what it gets alone."""
    callee = call.referenced
    if callee is None or callee.kind is not CursorKind.FUNCTION_DECL or callee.spelling in _KEEPING:
        return False
    for argument, wanted in zip(call.get_arguments(), callee.type.argument_types(), strict=False):
        pointee = wanted.get_canonical().get_pointee()
        if pointee.kind is TypeKind.POINTER and argument is not None and _names(argument):
            return False  # strtod and strtok_r give an address back there
    return bool(callee.location.is_in_system_header)


def _names(expression: Cursor) -> bool:
    return any(one.kind is CursorKind.DECL_REF_EXPR for one in expression.walk_preorder())
