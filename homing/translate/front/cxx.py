"""What a C++ source has that C has not: what is read as C's, and what is refused by its name.

Namespaces, `extern "C"`, references, `auto`, range-for, new and delete of arrays, casts, and output to
streams are read. Of templates, classes with functions, overloaded operators, lambdas and exceptions it is
not known which code runs, and what it does to a distributed array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clang import cindex
from clang.cindex import Cursor, CursorKind, Type, TypeKind

from homing.translate.front.c_places import Places
from homing.translate.front.libclang import ARRAYS

_NOT_FOLLOWED = {
    CursorKind.LAMBDA_EXPR: "a lambda is not followed: write a function, or the loop itself",
    CursorKind.CXX_TRY_STMT: "exceptions are not followed",
    CursorKind.CXX_THROW_EXPR: "exceptions are not followed",
    CursorKind.CXX_DYNAMIC_CAST_EXPR: "dynamic_cast is not followed",
    CursorKind.CXX_TYPEID_EXPR: "typeid is not followed",
    CursorKind.CXX_THIS_EXPR: "members of classes are not followed",
}
_TEMPLATES = (
    CursorKind.FUNCTION_TEMPLATE,
    CursorKind.CLASS_TEMPLATE,
    CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
)
_MEMBERS = (
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.DESTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
    CursorKind.CXX_BASE_SPECIFIER,
    CursorKind.FUNCTION_TEMPLATE,
)
_RECORDS = (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL)
SCOPES = (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL)
REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)
CASTS = (
    CursorKind.CSTYLE_CAST_EXPR,
    CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR,
    CursorKind.CXX_CONST_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
)
#: Functions of std that compute on numbers, whether or not they are templates; C's own have their C names.
_OF_NUMBERS = frozenset(["max", "min", "clamp", "abs", "swap", "move"])
_STREAMS = ("std::basic_ostream<", "std::basic_istream<", "std::basic_iostream<")
#: What calls of streams are called in the tree.
OUTPUT, INPUT = "std::cout", "std::cin"


def children(scope: Cursor) -> Iterator[Cursor]:
    """What a file declares, also in its namespaces and in extern "C"."""
    for cursor in scope.get_children():
        if cursor.kind in SCOPES:
            yield from children(cursor)
        else:
            yield cursor


def qualified(cursor: Cursor) -> str:
    """The name with its namespaces; C's functions, also as std has them, by their own names."""
    names = [cursor.spelling]
    scope = cursor.semantic_parent
    while scope is not None and scope.kind in SCOPES:
        if scope.kind is CursorKind.NAMESPACE and scope.spelling:
            names.insert(0, scope.spelling)
        scope = scope.semantic_parent
    if names[0].startswith("(anonymous"):
        names.pop(0)
    if names[0] in ("std", "__gnu_cxx"):
        return f"std::{names[-1]}" if names[-1] in _OF_NUMBERS else names[-1]
    return "::".join(names)


def record_of(kind: Type) -> Cursor | None:
    """The class that a type is, or an array or a reference of; not what pointers mean."""
    kind = kind.get_canonical()
    while kind.kind in (*REFERENCES, *ARRAYS):
        kind = kind.get_pointee() if kind.kind in REFERENCES else kind.element_type
        kind = kind.get_canonical()
    return kind.get_declaration() if kind.kind is TypeKind.RECORD else None


def like_c(record: Cursor) -> bool:
    """Is it a structure as C has them?"""
    if "<" in record.type.spelling or record.location.is_in_system_header:
        return _in_c_header(record)
    for child in record.get_children():
        if child.kind in _MEMBERS:
            return False
        if child.kind is CursorKind.FIELD_DECL:
            inner = record_of(child.type)
            if inner is not None and not like_c(inner):
                return False
    return True


def _in_c_header(record: Cursor) -> bool:
    """FILE, time_t's tm and the like."""
    plain = "<" not in record.type.spelling and "::" not in record.type.spelling
    return plain and all(child.kind is CursorKind.FIELD_DECL for child in record.get_children())


def is_stream(kind: Type) -> bool:
    text = str(kind.get_canonical().spelling).removeprefix("const ")
    return text.startswith(_STREAMS)


def stream_call(call: Cursor) -> str | None:
    """OUTPUT or INPUT: a call of std's << or >> on a stream, or of a stream's own function."""
    callee = call.referenced
    if callee is None or not callee.location.is_in_system_header:
        return None
    inner = list(call.get_children())
    first = inner[0] if inner else None
    if first is not None and first.kind is CursorKind.MEMBER_REF_EXPR:
        of = list(first.get_children())
        return OUTPUT if of and is_stream(of[0].type) and "ostream" in of[0].type.spelling else None
    if call.spelling in ("operator<<", "operator>>") and first is not None and is_stream(first.type):
        return OUTPUT if call.spelling == "operator<<" else INPUT
    return None


def by_reference(call: Cursor) -> frozenset[int]:
    """The arguments that the function may change: those that it gets as references to what is no constant."""
    callee = call.referenced
    if callee is None:
        return frozenset()
    kinds = list(callee.type.argument_types()) if callee.type.kind is TypeKind.FUNCTIONPROTO else []
    return frozenset(
        index
        for index, kind in enumerate(kinds)
        if kind.kind in REFERENCES
        and not kind.get_pointee().is_const_qualified()
        and not (is_array(kind.get_pointee()))
    )


def is_array(kind: Type) -> bool:
    return kind.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY)


class Unlike:
    """What of a file is not followed: (begin, end, reason), the outermost first."""

    def __init__(self, places: Places, path: str) -> None:
        self.places = places
        self.path = path
        self.found: list[tuple[int, int, str]] = []
        self._kinds: dict[str, set[str]] = {}

    def file(self, top: Cursor) -> list[tuple[int, int, str]]:
        for cursor in children(top):
            where = cursor.location
            if cursor.kind is CursorKind.FUNCTION_DECL and not where.is_in_system_header:
                self._overloaded(cursor)
            if where.file is None or where.file.name != self.path:
                continue
            self._declared(cursor)
        return self.found

    def _text(self, cursor: Cursor) -> str:
        return self.places.text(self.places.begin(cursor), self.places.end(cursor))

    def _wrong(self, cursor: Cursor, reason: str) -> None:
        begin = self.places.written_at(cursor.extent.start)
        end = self.places.written_at(cursor.extent.end)
        line = self.places.source.text.find("\n", begin)
        self.found.append((begin, max(begin, min(end, line if line >= 0 else end)), reason))

    def _overloaded(self, cursor: Cursor) -> None:
        known = self._kinds.setdefault(qualified(cursor), set())
        kind = cursor.type.get_canonical().spelling
        if known and kind not in known and cursor.location.file.name == self.path:
            self._wrong(cursor, f"'{cursor.spelling}' is overloaded: give each function a name of its own")
        known.add(kind)

    def _declared(self, cursor: Cursor) -> None:
        kind = cursor.kind
        if kind in _TEMPLATES:
            self._wrong(cursor, f"the template '{cursor.spelling}' is not followed: write what it stands for")
        elif kind in _RECORDS and cursor.is_definition():
            if not like_c(cursor):
                reason = f"the class '{cursor.spelling}' has functions or bases, which are not followed"
                self._wrong(cursor, reason)
        elif kind in _MEMBERS:
            self._wrong(cursor, f"'{cursor.spelling}', a member of a class, is not followed")
        elif kind is CursorKind.FUNCTION_DECL and cursor.spelling.startswith("operator"):
            self._wrong(cursor, f"the overloaded {cursor.spelling} is not followed: write a function")
        elif kind in (CursorKind.FUNCTION_DECL, CursorKind.VAR_DECL):
            self._code(cursor)

    def _code(self, cursor: Cursor) -> None:
        reason = self._reason(cursor)
        if reason is not None:
            self._wrong(cursor, reason)
            return
        if cursor.kind is CursorKind.CALL_EXPR and stream_call(cursor):
            for child in cursor.get_arguments():
                self._operand(child)
            return
        for child in cursor.get_children():
            self._code(child)

    def _operand(self, cursor: Cursor) -> None:
        """Of a stream: manipulators stand for themselves."""
        if cursor is None or (is_stream(cursor.type) and cursor.kind is not CursorKind.CALL_EXPR):
            return
        record = record_of(cursor.type)
        if record is not None and record.location.is_in_system_header and record.spelling.startswith("_Set"):
            return  # std::setw and its like
        self._code(cursor)

    def _reason(self, cursor: Cursor) -> str | None:
        kind = cursor.kind
        if kind in _NOT_FOLLOWED:
            return _NOT_FOLLOWED[kind]
        if kind in _RECORDS and cursor.is_definition() and not like_c(cursor):
            return f"the class '{cursor.spelling}' has functions or bases, which are not followed"
        if kind is CursorKind.PARM_DECL and _has_default(cursor, self._text(cursor)):
            return "a default argument of an array or pointer: write it in each call"
        if kind in (CursorKind.IF_STMT, CursorKind.SWITCH_STMT, CursorKind.WHILE_STMT):
            inner = list(cursor.get_children())
            if inner and inner[0].kind in (CursorKind.DECL_STMT, CursorKind.VAR_DECL):
                return "a declaration in a condition: write it before"
        if kind is CursorKind.CALL_EXPR:
            return self._call(cursor)
        if kind is CursorKind.CXX_NEW_EXPR and _has_values(cursor):
            return "values for memory from new: assign them behind it"
        if kind is CursorKind.VAR_DECL and "[" in cursor.spelling:
            return "a structured binding is not followed"
        if kind in (
            CursorKind.VAR_DECL,
            CursorKind.PARM_DECL,
            CursorKind.DECL_REF_EXPR,
            CursorKind.CXX_NEW_EXPR,
        ):
            return _of_class(cursor)
        return None

    def _call(self, cursor: Cursor) -> str | None:
        if stream_call(cursor):
            return None
        callee = cursor.referenced
        if callee is None:
            return None
        if callee.kind is CursorKind.CONSTRUCTOR or (
            callee.kind is CursorKind.CXX_METHOD and callee.spelling == "operator="
        ):
            return _of_class(cursor)
        if callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION):
            if callee.semantic_parent.is_anonymous() and callee.spelling == "operator()":
                return _NOT_FOLLOWED[CursorKind.LAMBDA_EXPR]
            return f"'{callee.spelling}', a member of a class, is not followed"
        if callee.spelling.startswith("operator"):
            return f"the overloaded {callee.spelling} is not followed"
        template = cindex.conf.lib.clang_getSpecializedCursorTemplate(callee)
        if template is not None and template.kind in _TEMPLATES and not _of_numbers(callee):
            return f"'{callee.spelling}' comes from a template, which is not followed"
        return None


def _of_numbers(callee: Cursor) -> bool:
    """A template of std's for numbers, as max and pow are."""
    if not callee.location.is_in_system_header:
        return False
    kinds = [callee.result_type, *callee.type.argument_types()]
    for kind in kinds:
        inner = kind.get_canonical()
        if inner.kind in REFERENCES:
            inner = inner.get_pointee().get_canonical()
        if inner.kind is TypeKind.RECORD or (inner.kind is TypeKind.POINTER and callee.spelling != "swap"):
            return False
    return True


def _of_class(cursor: Cursor) -> str | None:
    kind = cursor.type
    if cursor.kind is CursorKind.CXX_NEW_EXPR:
        kind = kind.get_canonical().get_pointee()
    if is_stream(kind) and cursor.kind is CursorKind.DECL_REF_EXPR:
        return None
    record = record_of(kind)
    if record is None or like_c(record):
        return None
    if record.is_anonymous() or "(lambda" in kind.spelling:
        return _NOT_FOLLOWED[CursorKind.LAMBDA_EXPR]
    if cursor.kind is CursorKind.DECL_REF_EXPR:
        return f"'{cursor.spelling}' is an object of {record.type.spelling}, which is not followed"
    return f"an object of {record.type.spelling} is not followed: use an array or a plain variable"


def _has_default(parameter: Cursor, text: str) -> bool:
    return parameter.type.get_canonical().kind in (TypeKind.POINTER, *REFERENCES) and "=" in text


def _has_values(new: Cursor) -> bool:
    inner = list(new.get_children())
    return bool(inner) and inner[-1].kind is CursorKind.INIT_LIST_EXPR and any(inner[-1].get_children())


def arguments(call: Cursor) -> Sequence[Cursor]:
    """Those that are written in the call."""
    end = call.extent.end.offset
    begin = call.extent.start.offset
    end = max(end, begin + 1)  # in an argument of a macro all stands where the macro does
    return [one for one in call.get_arguments() if one is not None and begin <= one.extent.start.offset < end]
