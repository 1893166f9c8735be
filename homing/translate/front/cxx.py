"""What a C++ source has that C has not: its names and types, and which of its code is read as C's.

Namespaces, `extern "C"`, references, `auto`, range-for, new and delete of arrays, casts, and output to
streams are read. Of templates, classes with functions, overloaded operators and lambdas it is not known which
code runs: it stays as it is, and may not mean a distributed array.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import dropwhile, takewhile

from clang import cindex
from clang.cindex import Cursor, CursorKind, Type, TypeKind

from homing.translate.front.libclang import ARRAYS, VARIABLES

TEMPLATES = (
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
FUNCTIONS = (CursorKind.FUNCTION_DECL, *_MEMBERS)
RECORDS = (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL)
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
_OF_NUMBERS = frozenset(["max", "min", "clamp", "abs", "exchange", "swap", "move"])
#: Functions of std that work on what lies between two addresses, and keep none of them.
_OF_RANGES = frozenset(
    ["accumulate", "adjacent_difference", "all_of", "any_of", "copy", "copy_backward", "copy_if", "copy_n",
     "count", "count_if", "equal", "fill", "fill_n", "find", "find_if", "for_each", "generate",
     "inner_product", "iota", "is_sorted", "max_element", "min_element", "none_of", "nth_element",
     "partial_sort", "partial_sum", "replace", "replace_if", "reverse", "reverse_copy", "rotate", "sort",
     "stable_sort", "swap_ranges", "transform"]
)  # fmt: skip
_STREAMS = ("std::basic_ostream<", "std::basic_istream<", "std::basic_iostream<")
_SPECIFIERS = frozenset(["static", "inline", "const", "constexpr"])
_CAST = frozenset(["(", "static_cast", "<"])
_NUMBERS = frozenset(["bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"])
#: What calls of streams are called in the tree.
OUTPUT, INPUT = "std::cout", "std::cin"


def children(scope: Cursor) -> Iterator[Cursor]:
    """What a file declares, also in its namespaces and in extern "C"."""
    for cursor in scope.get_children():
        if cursor.kind in SCOPES and not cursor.spelling.startswith("["):  # `auto [a, b] = f();`
            yield from children(cursor)
        else:
            yield cursor


def namespace_blocks(scope: Cursor, path: str, around: str = "") -> Iterator[tuple[Cursor, str]]:
    """The file's blocks of namespaces with their full names, those around others first. One without a name
    has that of what is around it."""
    for cursor in scope.get_children():
        if cursor.kind in SCOPES and cursor.location.file is not None and cursor.location.file.name == path:
            name = around
            if cursor.kind is CursorKind.NAMESPACE:
                if not _nameless(cursor):
                    name = f"{around}::{cursor.spelling}".removeprefix("::")
                yield cursor, name
            yield from namespace_blocks(cursor, path, name)


def qualified(cursor: Cursor) -> str:
    """The name with its namespaces; C's functions, also as std has them, by their own names."""
    names = [cursor.spelling]
    scope = cursor.semantic_parent
    while scope is not None and scope.kind in SCOPES:
        if scope.kind is CursorKind.NAMESPACE and not _nameless(scope):
            names.insert(0, scope.spelling)
        scope = scope.semantic_parent
    if names[0] in ("std", "__gnu_cxx"):
        return f"std::{names[-1]}" if names[-1] in _OF_NUMBERS | _OF_RANGES else names[-1]
    return "::".join(names)


def _nameless(namespace: Cursor) -> bool:
    return not namespace.spelling or namespace.spelling.startswith("(anonymous")


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
    if not record.type.is_pod() and not has_references(record.type):
        return False  # its members have values from the start
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


def by_reference(call: Cursor, constant: bool = False) -> frozenset[int]:
    """The arguments that the function may change: those that it gets as references to what is no constant
    (or, where that is said, to what is)."""
    callee = call.referenced
    if callee is None:
        return frozenset()
    kinds = list(callee.type.argument_types()) if callee.type.kind is TypeKind.FUNCTIONPROTO else []
    return frozenset(
        index
        for index, kind in enumerate(kinds)
        if kind.kind in REFERENCES
        and (constant or not kind.get_pointee().is_const_qualified())
        and not (is_array(kind.get_pointee()))
    )


def is_array(kind: Type) -> bool:
    return kind.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY)


# --- classes, templates and lambdas -------------------------------------------------------------------------

LAMBDA = "a lambda is not followed: write a function, or the loop itself"
#: Classes of std that hold elements one behind the other.
_CONTAINERS = re.compile(r"(?:const )?std::(?:__cxx11::)?(?:vector|array|valarray|deque|basic_string)<(.*)>$")
_ELEMENTS = frozenset(["operator[]", "at", "front", "back"])
_ASKED = frozenset(["size", "empty", "length", "capacity", "max_size"])
_OPERATOR = re.compile(r"operator(?:\W|\b(?:new|delete|co_await)\b)")


def is_operator(function: Cursor) -> bool:
    return _OPERATOR.match(function.spelling) is not None


def is_template(function: Cursor) -> bool:
    """Is it a template, or made from one?"""
    if function.kind in TEMPLATES:
        return True
    made = cindex.conf.lib.clang_getSpecializedCursorTemplate(function)
    return made is not None and made.kind in TEMPLATES


def apart(callee: Cursor) -> str | None:
    """Why the body of a function is not read: a class has it, a template, or an operator."""
    name = callee.spelling
    if callee.kind is CursorKind.CONSTRUCTOR:
        return f"a constructor of '{name}' is not followed"
    if callee.kind in (CursorKind.CXX_METHOD, CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION):
        if name == "operator()" and is_lambda(callee.semantic_parent):
            return LAMBDA
        return f"'{name}', a member of a class, is not followed"
    if is_operator(callee):
        return f"the overloaded {name} is not followed"
    if is_template(callee) and not _of_numbers(callee) and not of_range(callee):
        return f"'{name}' comes from a template, which is not followed"
    if callee.lexical_parent is not None and callee.lexical_parent.kind in RECORDS:
        return f"'{name}', a friend of a class, is not followed"
    return None


def is_lambda(record: Cursor) -> bool:
    return record is not None and (record.is_anonymous() or "(lambda" in record.type.spelling)


def of_range(callee: Cursor) -> bool:
    """Is it a function of std for what lies between two addresses?"""
    return callee.location.is_in_system_header and qualified(callee).removeprefix("std::") in _OF_RANGES


def is_copy(callee: Cursor) -> bool:
    """Does a constructor or `=` copy a structure as C does, byte by byte?"""
    record = callee.semantic_parent
    if not (like_c(record) or record.type.is_pod()):
        return False
    if callee.kind is CursorKind.CONSTRUCTOR:
        plain = not list(callee.get_arguments())
        return bool(plain or callee.is_copy_constructor() or callee.is_move_constructor())
    copies = callee.is_copy_assignment_operator_method() or callee.is_move_assignment_operator_method()
    return callee.spelling == "operator=" and bool(copies)


def is_data(record: Cursor) -> bool:
    """Are objects of a class no more than their bytes?"""
    return like_c(record) or bool(record.type.is_pod())


def runs_own_code(kind: Type, depth: int = 0) -> bool:
    """May making or ending an object run code of the program? std's own classes do so for their elements."""
    record = record_of(kind)
    if record is None or depth > 9 or is_data(record):
        return depth > 9
    if not record.location.is_in_system_header:
        return True
    made = record.type.get_canonical()
    inner = [made.get_template_argument_type(at) for at in range(made.get_num_template_arguments())]
    return any(one.kind is not TypeKind.INVALID and runs_own_code(one, depth + 1) for one in inner)


def made_by_std(variable: Cursor, depth: int = 0) -> bool:
    """Is a variable made by constructors of std alone, from no function and no object of the program's? A
    structure may have values for its members."""
    for inner in variable.walk_preorder():
        meant = inner.referenced
        own = meant is not None and not meant.location.is_in_system_header
        if inner.kind is CursorKind.LAMBDA_EXPR or _made_by_own(inner.type, depth):
            return False
        if inner.kind is CursorKind.CALL_EXPR:
            made = meant is not None and meant.kind is CursorKind.CONSTRUCTOR
            if own and not (made and not _made_by_own(meant.semantic_parent.type, depth)):
                return False
            if not made and (meant is None or meant.spelling != "now"):
                return False
            if not own and any(_is_own(one.type) for one in inner.walk_preorder()):
                return False  # an iterator of the program's, say
        elif inner.kind is CursorKind.DECL_REF_EXPR and own and meant.kind in FUNCTIONS:
            return False
    return True


def _is_own(kind: Type) -> bool:
    record = record_of(kind)
    return record is not None and not record.location.is_in_system_header


def _made_by_own(kind: Type, depth: int) -> bool:
    """Is it a class of the program's with code for making or ending it, or one of std's for such?"""
    record = record_of(kind)
    if record is None or depth > 9:
        return depth > 9
    if record.location.is_in_system_header:
        made = record.type.get_canonical()
        inner = [made.get_template_argument_type(at) for at in range(made.get_num_template_arguments())]
        records = [record_of(one) for one in inner if one.kind is not TypeKind.INVALID]
        known = [one.type for one in records if one is not None]
        return any(_is_own(one) or _made_by_own(one, depth + 1) for one in known)
    for child in record.get_children():
        if child.kind in _MEMBERS and child.kind is not CursorKind.CXX_METHOD:
            return True
        if child.kind is CursorKind.FIELD_DECL and not made_by_std(child, depth + 1):
            return True
    return record.kind not in RECORDS


def deletes_object(delete: Cursor) -> bool:
    """Does `delete p` run a destructor?"""
    kinds = [one.type.get_canonical() for one in delete.get_children() if one.kind.is_expression()]
    records = [record_of(one.get_pointee()) for one in kinds if one.kind is TypeKind.POINTER]
    return any(one is not None and not is_data(one) for one in records)


def copies_values(kind: Type) -> bool:
    """Does `{...}` for a structure copy what it gets, as far as that are numbers?"""
    record = record_of(kind)
    if record is None or record.location.is_in_system_header or has_references(kind):
        return False
    return not any(one.kind is CursorKind.CXX_BASE_SPECIFIER for one in record.get_children())


def has_references(kind: Type) -> bool:
    """Has a structure members that are references?"""
    kind = kind.get_canonical()
    while kind.kind in ARRAYS:
        kind = kind.element_type.get_canonical()
    if kind.kind is not TypeKind.RECORD or is_system(kind):
        return False
    return any(one.type.kind in REFERENCES or has_references(one.type) for one in kind.get_fields())


def is_constexpr(variable: Cursor) -> bool:
    """Has a variable its value before the program runs?"""
    words = (word.spelling for word in variable.get_tokens())
    return "constexpr" in takewhile(_SPECIFIERS.__contains__, words)


def is_constant(variable: Cursor) -> bool:
    """Is it an object that nothing may change, as `const double k`? What pointers in it mean may change."""
    kind = variable.type.get_canonical()
    if variable.kind not in VARIABLES or kind.kind is TypeKind.POINTER:
        return False
    return kind.is_const_qualified() and not _is_mutable(kind)


def _is_mutable(kind: Type) -> bool:
    """Has a class members that may change in a constant, or such as are not seen here?"""
    record = record_of(kind)
    if record is None:
        return False
    fields = list(kind.get_canonical().get_fields())
    bases = any(one.kind is CursorKind.CXX_BASE_SPECIFIER for one in record.get_children())
    return bases or not fields or any(one.is_mutable_field() or _is_mutable(one.type) for one in fields)


def makes_number(cast: Cursor) -> bool:
    """Is it `double(x)`, `(double)x` or `static_cast<double>(x)`: no reference to x?"""
    words = [word.spelling for _, word in zip(range(9), cast.get_tokens(), strict=False)]
    kind = list(takewhile(_NUMBERS.__contains__, dropwhile(_CAST.__contains__, words)))
    begin = len(list(takewhile(_CAST.__contains__, words)))
    return bool(kind) and words[begin + len(kind) : begin + len(kind) + 1] in (["("], [")"], [">"], ["{"])


def is_system(kind: Type) -> bool:
    return bool(kind.get_declaration().location.is_in_system_header)


def container_use(callee: Cursor) -> str:
    """What a member of std's vector and the like, of numbers, does: "element", "asked" or "more"; else
    nothing."""
    record = callee.semantic_parent
    if record is None or record.kind not in RECORDS or not of_numbers(record):
        return ""
    if callee.spelling in _ELEMENTS:
        return "element"
    return "asked" if callee.spelling in _ASKED else "more"


def of_numbers(record: Cursor) -> bool:
    """Is a class std's vector of numbers, or the like?"""
    kind = record.type.get_canonical()
    if not _CONTAINERS.match(kind.spelling) or not record.location.is_in_system_header:
        return False
    element = kind.get_template_argument_type(0).get_canonical().kind
    return element is not TypeKind.BOOL and 2 < element.value < 24


def function_name(function: Cursor, overloaded: Container[str]) -> str:
    """As `qualified`; of one of several functions of a name, with the types of its arguments."""
    name = qualified(function)
    if name not in overloaded:
        return name
    return name + str(function.displayname).removeprefix(function.spelling)


def member_name(function: Cursor) -> str:
    """What a function of a class or a template is called in the tree: no other has such a name."""
    names, scope = [str(function.displayname)], function.semantic_parent
    while scope is not None and scope.kind in (*RECORDS, *SCOPES, *TEMPLATES) and scope.spelling:
        names.insert(0, str(scope.spelling))
        scope = scope.semantic_parent
    return "::".join(names)


def variable_name(variable: Cursor | None, spelling: str) -> str:
    """The name; of a static member of a class, with the class's."""
    scope = variable.semantic_parent if variable is not None else None
    member = variable is not None and variable.kind is CursorKind.VAR_DECL
    if scope is None or not member or scope.kind is CursorKind.FUNCTION_TEMPLATE:
        return spelling
    return f"{scope.spelling}::{spelling}" if scope.kind in (*RECORDS, *TEMPLATES) else spelling


def _of_numbers(callee: Cursor) -> bool:
    """A template of std's for numbers, as max and pow are."""
    if not callee.location.is_in_system_header:
        return False
    kinds = [callee.result_type, *callee.type.argument_types()]
    for kind in kinds:
        inner = kind.get_canonical()
        if inner.kind in REFERENCES:
            inner = inner.get_pointee().get_canonical()
        if lists_numbers(inner) or (callee.spelling in ("swap", "exchange") and _is_plain(inner)):
            continue
        if inner.kind is TypeKind.RECORD or (inner.kind is TypeKind.POINTER and callee.spelling != "swap"):
            return False
    return True


def _is_plain(kind: Type) -> bool:
    """A structure that is no more than its bytes."""
    return kind.kind is TypeKind.RECORD and is_data(kind.get_declaration())


def lists_numbers(kind: Type) -> bool:
    """`{a, b, c}` for a function of std, which gets copies of these numbers."""
    if kind.kind is not TypeKind.RECORD or not kind.spelling.startswith("std::initializer_list<"):
        return False
    return bool(2 < kind.get_template_argument_type(0).get_canonical().kind.value < 24)


def has_values(new: Cursor) -> bool:
    """`new double[2]{1, 2}`"""
    inner = list(new.get_children())
    return bool(inner) and inner[-1].kind is CursorKind.INIT_LIST_EXPR and any(inner[-1].get_children())


def arguments(call: Cursor) -> Sequence[Cursor]:
    """Those that are written in the call."""
    end = call.extent.end.offset
    begin = call.extent.start.offset
    end = max(end, begin + 1)  # in an argument of a macro all stands where the macro does
    return [one for one in call.get_arguments() if one is not None and begin <= one.extent.start.offset < end]
