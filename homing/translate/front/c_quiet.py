"""C and C++: functions of headers that compute a value and do nothing else."""

from __future__ import annotations

from collections.abc import Callable

from clang import cindex
from clang.cindex import Cursor, CursorKind, StorageClass, TLSKind, TypeKind

from homing.translate.front.c_types import ADDRESS, COUNTING, strip, unary
from homing.translate.front.cxx import REFERENCES
from homing.translate.front.libclang import ARRAYS

#: What may take or free memory, or run what is not seen.
LOUD = (
    CursorKind.ASM_STMT,
    CursorKind.CXX_DELETE_EXPR,
    CursorKind.CXX_NEW_EXPR,
    CursorKind.CXX_THROW_EXPR,
    CursorKind.LAMBDA_EXPR,
    CursorKind.StmtExpr,
)


def quiet_calls(
    function: Cursor, named: Callable[[Cursor], str], reads: bool = False
) -> frozenset[str] | None:
    """What a function calls that writes nothing but variables of its own; None: it may write more, or (but
    with `reads`) read what others write. named: what a function is called in the tree."""
    calls = set()
    for inner in function.walk_preorder():
        if inner.kind in LOUD:
            return None
        if inner.kind is CursorKind.VAR_DECL and not _own(inner):
            return None
        if inner.kind is CursorKind.DECL_REF_EXPR and not reads and not _known(inner):
            return None
        if inner.kind is CursorKind.CALL_EXPR:
            callee = inner.referenced
            if callee is None or callee.kind is not CursorKind.FUNCTION_DECL:
                return None
            calls.add(named(callee))
        elif inner.kind is CursorKind.UNARY_OPERATOR:
            operator = unary(inner)
            if operator == ADDRESS:
                return None
            if operator in COUNTING and not _writes_own(next(iter(inner.get_children()))):
                return None
        elif _assigns(inner) and not _writes_own(next(iter(inner.get_children()))):
            return None
    return frozenset(calls)


def _assigns(cursor: Cursor) -> bool:
    if cursor.kind is not CursorKind.BINARY_OPERATOR:
        return cursor.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
    return bool(cursor.binary_operator is cindex.BinaryOperator.Assign)


def _own(variable: Cursor) -> bool:
    kept = variable.storage_class in (StorageClass.STATIC, StorageClass.EXTERN)
    kept |= variable.tls_kind is not TLSKind.NONE
    return not kept and variable.type.kind not in REFERENCES


def _known(name: Cursor) -> bool:
    """Is it a variable of the function's own, a function or a constant?"""
    meant = name.referenced
    if meant is None or meant.kind is not CursorKind.VAR_DECL:
        return True
    return _inside(meant) or meant.type.is_const_qualified()


def _writes_own(target: Cursor) -> bool:
    """Does the target of an assignment lie in a variable of the function's own, and not behind a pointer?"""
    at = strip(target)
    while at.kind in (CursorKind.ARRAY_SUBSCRIPT_EXPR, CursorKind.MEMBER_REF_EXPR):
        base = next(iter(at.get_children()), None)
        if base is None:
            return False
        at = strip(base)
        if at.type.kind is TypeKind.POINTER:
            return False
    if at.kind is not CursorKind.DECL_REF_EXPR or at.referenced is None:
        return False
    meant = at.referenced
    if meant.kind is CursorKind.PARM_DECL:
        return meant.type.kind not in REFERENCES and meant.type.kind not in ARRAYS
    return meant.kind is CursorKind.VAR_DECL and _own(meant) and _inside(meant)


def _inside(variable: Cursor) -> bool:
    around = variable.semantic_parent
    return around is not None and around.kind is CursorKind.FUNCTION_DECL
