"""C++: expressions of which it is not known which code they run: calls of members of classes, of templates
and of overloaded operators, and lambdas.

The code stays as it is. What matters is what such a call gets: numbers are read, as by any function; where it
gets the address of a variable, or a reference to it, the access is one that cannot be followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from clang.cindex import BinaryOperator, Cursor, CursorKind, Type, TypeKind

from homing.translate.front import cxx
from homing.translate.front.c_places import Places
from homing.translate.front.c_quiet import quiet_calls
from homing.translate.front.c_types import DEREFERENCE, is_number, strip, unary
from homing.translate.front.libclang import ARRAYS
from homing.translate.tree import CLASSES, Access, Reference, Statement

#: Values that are variables, or parts of variables, and not made for the call.
_VARIABLES = (CursorKind.DECL_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR, CursorKind.MEMBER_REF_EXPR)
#: Members of std's containers.
_MAKING = ("emplace", "emplace_back", "emplace_front")
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE)
_DECLARED = (CursorKind.VAR_DECL, CursorKind.PARM_DECL)


class Expressions(Protocol):
    """What reads the expressions inside."""

    places: Places
    quiet: dict[str, frozenset[str]]
    apart: list[Cursor]

    def expression(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None: ...

    def function(self, cursor: Cursor) -> str: ...


class ClassCode:
    """Of one expression: what calls of such functions do."""

    def __init__(
        self, accesses: Expressions, found: list[Reference], conditional: bool, into: Statement
    ) -> None:
        self.accesses = accesses
        self.found = found
        self.conditional = conditional
        self.into = into

    def lambda_expression(self, cursor: Cursor) -> None:
        """All that a lambda names it may read and write, whenever it is called."""
        self._add(CLASSES)
        self.accesses.apart.append(cursor)
        for inner in outer_names(cursor):
            meant = inner.referenced
            if meant.kind in _FUNCTIONS:
                continue  # it runs where code of classes does
            self._mention(inner, cxx.variable_name(meant, inner.spelling), cxx.LAMBDA)

    def local_class(self, cursor: Cursor) -> None:
        """A class inside a function, whose static variables it may name."""
        reason = f"the class '{cursor.spelling}' is not followed"
        self.accesses.apart.append(cursor)
        for inner in outer_names(cursor):
            if inner.referenced.kind in _DECLARED:
                self._mention(inner, cxx.variable_name(inner.referenced, inner.spelling), reason)

    def _mention(self, cursor: Cursor, name: str, reason: str) -> None:
        begin, end = self.accesses.places.access(cursor)
        made = Reference(name, begin, begin + len(name), end, None, Access.OTHER, self.conditional)
        made.apart = reason
        self.found.append(made)

    def call(self, cursor: Cursor, callee: Cursor, reason: str, access: Access) -> None:
        """A call of a function whose body is not read."""
        use = cxx.container_use(callee)
        target, given = _object(cursor, callee)
        if use == "element" and target is not None:
            access = Access.UPDATE if access is Access.WRITE else access
            self._read(target, access)
            for _, one in given:
                self._read(one, Access.READ)
            return
        quiet = self._quiet(callee) and len(given) == len(_parameters(callee))  # a default may call
        if target is not None:
            steady = use == "asked" or (quiet and callee.is_const_method() and is_number(callee.result_type))
            self._read(target, Access.READ) if steady else self._not_followed(target, reason)
        kinds = _parameters(callee)
        for index, one in given:
            kind = kinds[index] if index < len(kinds) else None
            copied = (quiet and is_number(callee.result_type)) or use == "more"
            if _by_value(one, kind, copied, use == "more" and callee.spelling in _MAKING):
                self._read(one, Access.READ)
            else:
                self._not_followed(one, reason)
        if quiet:
            self._add(_quiet_name(callee))
        elif use != "asked":
            self._add(cxx.member_name(callee) if use else CLASSES)

    def _read(self, cursor: Cursor, access: Access) -> None:
        self.accesses.expression(strip(cursor), self.found, access, self.conditional, self.into)

    def _not_followed(self, cursor: Cursor, reason: str) -> None:
        count = len(self.found)
        self._read(cursor, Access.OTHER)
        for one in self.found[count:]:
            if one.access is not Access.READ:
                one.apart = one.apart or reason

    def _add(self, *names: str) -> None:
        """CLASSES each time: see by_pointers_alone."""
        self.into.calls += tuple(name for name in names if name == CLASSES or name not in self.into.calls)

    def _quiet(self, callee: Cursor) -> bool:
        """Does the function write nothing but its own variables, and call nothing else that does? One that a
        class may override, or that may change its object, is none."""
        if callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION):
            steady = callee.is_const_method() or callee.is_static_method()
            if not steady or callee.is_virtual_method():
                return False
        elif callee.kind is not CursorKind.FUNCTION_DECL:
            return False
        name, known = _quiet_name(callee), self.accesses.quiet
        if name not in known:
            body = callee.get_definition() or callee
            calls = quiet_calls(body, self.accesses.function) if any(_bodies(body)) else None
            if calls is None or _asks(calls) or _hides_code(body) or _reaches_out(body):
                return False
            if not self._knows_all(body):
                return False
            known[name] = calls
        return True

    def _knows_all(self, body: Cursor) -> bool:
        """Are all functions that it names of the system, or known to write nothing?"""
        meant = (one.referenced for one in body.walk_preorder() if one.kind is CursorKind.DECL_REF_EXPR)
        return all(
            one.location.is_in_system_header or self.accesses.function(one) in self.accesses.quiet
            for one in meant
            if one is not None and one.kind in _FUNCTIONS
        )


def outer_names(cursor: Cursor) -> Iterator[Cursor]:
    """The names in a piece of code of what is declared outside of it."""
    file, begin, end = cursor.extent.start.file, cursor.extent.start.offset, cursor.extent.end.offset
    for inner in cursor.walk_preorder():
        if inner.kind not in (CursorKind.DECL_REF_EXPR, CursorKind.VARIABLE_REF):
            continue
        meant = inner.referenced
        if meant is None:
            continue
        where = meant.location
        inside = where.file is not None and file is not None and where.file.name == file.name
        if not (inside and begin <= where.offset < end):
            yield inner


def _quiet_name(callee: Cursor) -> str:
    """Each of what a template makes, and each lambda, is a function of its own."""
    return f"{cxx.member_name(callee)} {callee.get_usr()}"


def _hides_code(body: Cursor) -> bool:
    """Does a function run code that the tree does not show: the ends of objects, a range-for's iterators?"""
    for inner in body.walk_preorder():
        if inner.kind is CursorKind.CXX_FOR_RANGE_STMT:
            return True
        if inner.kind in _DECLARED and uses_class(inner.type):
            return True
    return False


def _reaches_out(body: Cursor) -> bool:
    """Does a function name anything but its own variables, constants, and numbers in its object?"""
    for one in outer_names(body):
        kind, own = one.referenced.type, one.referenced.semantic_parent == body
        constant = is_number(kind) and kind.is_const_qualified()
        if one.referenced.kind not in _FUNCTIONS and not (own or constant):
            return True
    for inner in body.walk_preorder():
        meant = inner.referenced if inner.kind is CursorKind.MEMBER_REF_EXPR else None
        if meant is not None and meant.kind not in (CursorKind.CXX_METHOD, CursorKind.FIELD_DECL):
            return True
        if meant is not None and meant.kind is CursorKind.FIELD_DECL and not is_number(meant.type):
            return True  # an address, or a reference
    return False


def _asks(calls: frozenset[str]) -> bool:
    return any(name.startswith("omp_") for name in calls)


def _bodies(function: Cursor) -> Iterator[Cursor]:
    return (one for one in function.get_children() if one.kind is CursorKind.COMPOUND_STMT)


def _object(call: Cursor, callee: Cursor) -> tuple[Cursor | None, Sequence[tuple[int, Cursor]]]:
    """The object whose function is called, and the arguments that are written, by their numbers."""
    given = [(index, one) for index, one in enumerate(call.get_arguments()) if one is not None]
    written = {one.hash for one in cxx.arguments(call)}
    first = next(iter(call.get_children()), None)
    target: Cursor | None = None
    if first is not None and first.kind is CursorKind.MEMBER_REF_EXPR:
        target = next(iter(first.get_children()), None)
    elif callee.kind is CursorKind.CXX_METHOD and not callee.is_static_method() and given:
        target = given[0][1]
        given = [(index - 1, one) for index, one in given[1:]]
    return target, [(index, one) for index, one in given if one.hash in written]


def _parameters(callee: Cursor) -> list[Type]:
    whole = callee.type.get_canonical().kind is TypeKind.FUNCTIONPROTO
    return [one.get_canonical() for one in callee.type.argument_types()] if whole else []


def _by_value(argument: Cursor, kind: Type | None, copied: bool, made_from: bool) -> bool:
    """Is it a number to a function, or a structure, that it gets? copied: where it gets a reference, it has
    the number alone when it is left. made_from: it makes a number from it, and does no more."""
    if kind is None:
        return False
    if kind.kind not in cxx.REFERENCES:
        return is_number(kind) and kind.kind not in ARRAYS
    meant = kind.get_pointee()
    if not is_number(meant) or meant.get_canonical().kind in ARRAYS:
        return False
    if kind.kind is TypeKind.LVALUEREFERENCE and not meant.is_const_qualified() and not made_from:
        return False
    return copied or not _is_variable(argument)


def _is_variable(argument: Cursor) -> bool:
    """May the value of an expression be a variable itself?"""
    inner = strip(argument)
    while inner.kind in cxx.CASTS:
        if cxx.makes_number(inner):
            return False
        inner = strip(list(inner.get_children())[-1])
    if inner.kind in _VARIABLES:
        return True
    if inner.kind is CursorKind.UNARY_OPERATOR:
        return unary(inner) in (3, 4, DEREFERENCE)  # ++i, --i, *p
    if inner.kind is CursorKind.BINARY_OPERATOR:
        return inner.binary_operator in (BinaryOperator.Assign, BinaryOperator.Comma)
    if inner.kind is CursorKind.CALL_EXPR:
        return inner.referenced is None or inner.referenced.result_type.kind in cxx.REFERENCES
    return inner.kind in (CursorKind.CONDITIONAL_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR)


def holds_objects(statement: Cursor) -> bool:
    """Does a statement declare objects, whose ends run code where their block ends?"""
    if statement.kind is not CursorKind.DECL_STMT:
        return False
    return any(one.kind is CursorKind.VAR_DECL and uses_class(one.type) for one in statement.get_children())


def uses_class(kind: Type) -> bool:
    """Is it an object whose functions may be called, and not one of std's for numbers?"""
    record = cxx.record_of(kind)
    if record is None or cxx.is_data(record) or cxx.lists_numbers(kind.get_canonical()):
        return False
    text = str(kind.get_canonical().spelling)
    return not (text.startswith("__gnu_cxx::__normal_iterator<") or cxx.of_numbers(record))
