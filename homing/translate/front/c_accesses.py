"""What a C expression reads and writes, out of libclang's tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from clang.cindex import BinaryOperator, Cursor, CursorKind, TypeKind

from homing.translate.front import cxx
from homing.translate.front.c_elements_given import element_given, element_referred
from homing.translate.front.c_expressions import (
    ASSIGNMENTS,
    POINTERS,
    changes,
    is_calm,
    is_null,
    is_zeroed,
    of_memory,
)
from homing.translate.front.c_library import of_the_library
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import (
    ADDRESS,
    COUNTING,
    DEREFERENCE,
    NOT,
    TRANSPARENT,
    function_type,
    gives_address,
    is_number,
    strip,
    unary,
)
from homing.translate.front.cxx_calls import ClassCode, uses_class
from homing.translate.front.libclang import ARRAYS
from homing.translate.tree import CLASSES, Access, Kind, Reference, Statement, Subscript

#: What part of an array has whose name has fewer subscripts than dimensions.
_VARIABLES = (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL)


#: Functions that get an element's address and work on the bytes from there, as those of C's library do.
_OF_BYTES = frozenset({"memcpy", "memmove", "memset", "memcmp", "fread", "fwrite"})
#: Expressions whose value is a number made from what they hold.
_NUMBERS = frozenset(
    [
        CursorKind.ARRAY_SUBSCRIPT_EXPR,
        CursorKind.BINARY_OPERATOR,
        CursorKind.CALL_EXPR,
        CursorKind.MEMBER_REF_EXPR,
        CursorKind.UNARY_OPERATOR,
    ]
)


class Accesses:
    """is_array: does a name mean an array here, whose size is known?"""

    def __init__(self, places: Places, is_array: Callable[[str], bool]) -> None:
        self.places = places
        self._is_array = is_array
        self.pointed: dict[str, str] = {}  # the functions that pointers may mean, and their types
        self.assigned = self.called = 0  # how many assignments and calls were seen
        self.quiet: dict[str, frozenset[str]] = {}  # functions that write nothing: see c_quiet.py
        self.apart: list[Cursor] = []  # C++: the lambdas and classes inside the function
        self.valued = False  # C++: does the last expression give memory from `new` its values?
        self.called_at: set[int] = set()  # C++: where functions are called by their names
        self.unused: frozenset[int] = frozenset()  # the calls (their hashes) whose values nothing uses

    def expression(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        """Every variable in an expression, with what is done to it."""
        kind = cursor.kind
        before, assigned, called = len(found), self.assigned, self.called
        if kind is CursorKind.CSTYLE_CAST_EXPR and cursor.type.kind is TypeKind.VOID:
            inner = strip(list(cursor.get_children())[-1])
            if inner.kind is CursorKind.DECL_REF_EXPR:
                return  # `(void)a`: for the compiler's warnings
        access = self._bound(cursor, access)
        if kind in TRANSPARENT or kind in cxx.CASTS:
            for child in cursor.get_children():
                if child.kind.is_expression():
                    self.expression(child, found, access, conditional, into)
                    if kind in cxx.CASTS and (function := strip(child).referenced) is not None:
                        name = self.function(function)
                        if name in self.pointed:
                            self.pointed[name] = ""
            return
        if kind is CursorKind.LAMBDA_EXPR:
            ClassCode(self, found, conditional, into).lambda_expression(cursor)
        elif kind is CursorKind.DECL_REF_EXPR:
            self._name(cursor, found, access, conditional, into)
        elif kind is CursorKind.MEMBER_REF_EXPR:
            count = len(found)
            for child in cursor.get_children():
                self.expression(child, found, access, conditional, into)
            _read_by(cursor, found[count:], access)
        elif kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
            self._element(cursor, found, access, conditional, into)
        elif kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            left, right = list(cursor.get_children())
            into.kind = Kind.ASSIGNMENT
            self.expression(left, found, self._target(Access.UPDATE, access), conditional, into)
            self.expression(right, found, Access.READ, conditional, into)
        elif kind is CursorKind.BINARY_OPERATOR:
            self._binary(cursor, found, access, conditional, into)
        elif kind is CursorKind.CONDITIONAL_OPERATOR:
            condition, *others = list(cursor.get_children())
            self.condition(condition, found, conditional, into)
            for other in others:
                wanted = access if self.places.source.cxx else Access.READ  # of C++ it may be a variable
                self.expression(other, found, wanted, True, into)
        elif kind is CursorKind.UNARY_OPERATOR:
            self._unary(cursor, found, access, conditional, into)
        elif kind is CursorKind.CALL_EXPR:
            self._call(cursor, found, access, conditional, into)
        elif kind is CursorKind.CXX_NEW_EXPR:
            into.calls += ("calloc" if is_zeroed(self.places, cursor) else "malloc",)
            self.valued |= cxx.has_values(cursor)
            for child in cursor.get_children():
                if child.kind.is_expression() and child.extent.start.offset:
                    self.expression(child, found, Access.READ, conditional, into)
        elif kind is CursorKind.CXX_DELETE_EXPR:
            into.calls += ("free", CLASSES) if cxx.deletes_object(cursor) else ("free",)
            for child in cursor.get_children():
                count = len(found)
                whole = strip(child).kind in (CursorKind.DECL_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR)
                self.expression(child, found, Access.ARGUMENT if whole else Access.READ, conditional, into)
                for reference in found[count : count + 1] if whole else ():
                    reference.argument_of = "free"
        elif kind is CursorKind.CXX_UNARY_EXPR:
            self._size_of(cursor, found, conditional, into)
        else:
            for child in cursor.get_children():
                if child.kind.is_expression() or child.kind.is_statement():
                    held = access if kind is CursorKind.INIT_LIST_EXPR else Access.READ
                    if is_number(child.type) and self.places.source.cxx and cxx.copies_values(cursor.type):
                        held = Access.READ
                    wanted = Access.OTHER if held is Access.OTHER else Access.READ
                    self.expression(child, found, wanted, conditional, into)
        if kind in _NUMBERS and access is not Access.OTHER and is_number(cursor.type):
            self._confined(found[before:], assigned, called)

    def _bound(self, cursor: Cursor, access: Access) -> Access:
        """C++: what is done to what a structure is made from: its members may be references to that."""
        made = cursor.kind in (CursorKind.INIT_LIST_EXPR, *TRANSPARENT, *cxx.CASTS)
        if made and self.places.source.cxx and access is Access.READ and cxx.has_references(cursor.type):
            return Access.OTHER
        return access

    def _target(self, access: Access, wanted: Access) -> Access:
        """C++: of an assignment, which is a variable itself: `double &x = (a[1] = 2);`."""
        return Access.OTHER if wanted is Access.OTHER and self.places.source.cxx else access

    def _name(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        """A function's name, or a variable's."""
        referenced = cursor.referenced
        if referenced is not None and referenced.kind is CursorKind.CXX_METHOD:
            into.calls += (CLASSES,)
        elif referenced is not None and referenced.kind is CursorKind.FUNCTION_DECL:
            function = self.function(referenced)
            into.pointed += (function,) if cxx.apart(referenced) is None else (CLASSES,)
            self.pointed.setdefault(function, function_type(referenced.type))
        else:
            (begin, end), name = self.places.access(cursor), cxx.variable_name(referenced, cursor.spelling)
            only_read = constant = False
            if self.places.source.cxx and referenced is not None:
                if referenced.kind is CursorKind.ENUM_CONSTANT_DECL:
                    return
                value = access is Access.READ and cursor.type.kind not in POINTERS
                if "::" in self.places.source.text[begin:end]:
                    access = Access.OTHER
                constant = cxx.is_constant(referenced)
                only_read = value or (access is not Access.READ and constant)
            if access is Access.READ and cursor.type.kind in POINTERS:
                access = Access.OTHER  # where the elements are, for whoever gets it
            made = Reference(name, begin, begin + len(name), end, None, access, conditional)
            made.confined = access is Access.READ and is_number(cursor.type)
            made.only_read, made.constant = access is Access.OTHER and only_read, constant
            found.append(made)

    def _confined(self, found: Sequence[Reference], assigned: int, called: int) -> None:
        """Note of which references an expression leaves no more than a number."""
        if assigned == self.assigned and self.called - called < 2:
            for reference in found:
                reference.confined = True

    def function(self, cursor: Cursor) -> str:
        """What a function is called in the tree."""
        if not self.places.source.cxx:
            return str(cursor.spelling)
        return cxx.function_name(cursor, self.places.overloaded)

    def _binary(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        left, right = list(cursor.get_children())
        operator = cursor.binary_operator
        if operator in ASSIGNMENTS:
            self.assigned += 1
            into.kind = Kind.ASSIGNMENT
            self.expression(left, found, self._target(Access.WRITE, access), conditional, into)
            self.expression(right, found, Access.READ, conditional, into)
            return
        if operator in (BinaryOperator.EQ, BinaryOperator.NE) and (
            (is_null(left) and strip(right).kind is CursorKind.DECL_REF_EXPR)
            or (is_null(right) and strip(left).kind is CursorKind.DECL_REF_EXPR)
        ):
            return  # is there memory? There is, for a distributed array; others do not matter here
        if operator in (BinaryOperator.LAnd, BinaryOperator.LOr):
            self.condition(left, found, conditional, into)
            self.condition(right, found, True, into)
            return
        last = access if operator is BinaryOperator.Comma and self.places.source.cxx else None
        self.expression(left, found, of_memory(left, access), conditional, into)
        self.expression(right, found, last or of_memory(right, access), conditional, into)

    def condition(self, cursor: Cursor, found: list[Reference], conditional: bool, into: Statement) -> None:
        """An expression that is true or false; a pointer alone: is there memory?"""
        inner = strip(cursor)
        if inner.kind is CursorKind.DECL_REF_EXPR and inner.type.kind in POINTERS:
            return
        count, assigned, called = len(found), self.assigned, self.called
        self.expression(cursor, found, Access.READ, conditional, into)
        self._confined(found[count:], assigned, called)

    def _unary(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        operand = next(iter(cursor.get_children()))
        count, wanted = len(found), access
        operator = unary(cursor)
        if operator in COUNTING:
            access = self._target(Access.UPDATE, access)
            into.kind = Kind.ASSIGNMENT
        elif operator == ADDRESS:
            access = Access.OTHER
        elif operator == DEREFERENCE:
            access = Access.OTHER if access is Access.READ else access
        elif operator == NOT and strip(operand).kind is CursorKind.DECL_REF_EXPR:
            if operand.type.kind is TypeKind.POINTER:
                return
            access = Access.READ
        else:
            access = Access.READ
        self.expression(operand, found, access, conditional, into)
        if operator == DEREFERENCE:
            _read_by(cursor, found[count:], wanted)

    def _call(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        self.called += 1
        if self.places.source.cxx and self._cxx_call(cursor, found, access, conditional, into):
            return
        callee = cursor.referenced
        name = self.function(callee) if callee is not None else cursor.spelling
        pointer = self._pointer(cursor)
        if pointer:
            inner = next(iter(cursor.get_children()), None)
            into.through |= {function_type(inner.type) if inner is not None else ""}
        elif self.places.source.cxx:
            function = strip(next(iter(cursor.get_children()), cursor))
            for location in (function.location, cursor.location):
                at = self.places.place(location.offset), self.places.written_at(location)
                self.called_at.update(at)
        name = pointer or name
        into.calls += (name, CLASSES) if self._runs_classes(cursor, pointer) else (name,)
        changed = self._by_reference(cursor, access)
        used = cursor.hash not in self.unused and gives_address(cursor)
        of_bytes = name in _OF_BYTES or self._of_the_library(cursor)
        for index, argument in enumerate(cxx.arguments(cursor)):
            inner, first = strip(argument), len(found)
            if index in changed:
                referred = access is not Access.OTHER and element_referred(cursor, index, argument)
                used_as = Access.UPDATE if referred else Access.OTHER
                self.expression(inner, found, used_as, conditional, into)
                _given_to(found[first:], name, index)
                continue
            if not self.places.source.cxx and (given := element_given(cursor, index, argument)):
                self.expression(given[0], found, given[1], conditional, into)
                continue
            while inner.kind in cxx.CASTS and inner.type.kind is TypeKind.POINTER:
                inner = strip(list(inner.get_children())[-1])
            count = len(found)
            row = inner.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR and inner.type.get_canonical().kind in ARRAYS
            piece_of = of_bytes and inner.type.kind in POINTERS and not row
            if piece_of and (base := self._piece(inner, found, conditional, into)) is not None:
                inner = base
            array = inner.kind is CursorKind.DECL_REF_EXPR and inner.type.kind in POINTERS
            piece = inner.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR and inner.type.kind in (
                TypeKind.POINTER,
                TypeKind.CONSTANTARRAY,
                TypeKind.VARIABLEARRAY,
            )
            access = Access.ARGUMENT if array or piece else Access.READ
            if inner.kind is CursorKind.MEMBER_REF_EXPR and inner.type.kind in ARRAYS:
                access = Access.UPDATE if changes(cursor, index) else Access.READ
            count = len(found) if of_bytes else count
            self.expression(inner, found, access, conditional, into)
            if (array or piece) and len(found) > count:
                found[count].argument_of = name
                found[count].argument_index = index
                found[count].value_used = used
            _given_to(found[first:], name, index)

    def _by_reference(self, call: Cursor, access: Access) -> frozenset[int]:
        """C++: the arguments that a function may change, or of which its value is another name."""
        callee = call.referenced
        if not self.places.source.cxx:
            return frozenset()
        held = access is Access.OTHER and callee is not None and callee.result_type.kind in cxx.REFERENCES
        return cxx.by_reference(call, constant=held)

    def _runs_classes(self, call: Cursor, pointer: str) -> bool:
        """C++: may it run code of classes: through a pointer, by what it gets, or from a header?"""
        callee = call.referenced
        if not self.places.source.cxx:
            return False
        if pointer or callee is None or any(uses_class(one.type) for one in cxx.arguments(call)):
            return True
        if len(cxx.arguments(call)) < len(list(callee.get_arguments())):
            return True  # a default argument may
        body = callee.get_definition()
        where = body.location if body is not None else None
        if where is None or where.is_in_system_header or where.file is None:
            return False
        return where.file.name != self.places.source.path and self.function(callee) not in self.quiet

    def _of_the_library(self, call: Cursor) -> bool:
        """C: a function of the system's headers? C++: one of std for what lies between two addresses?"""
        if not self.places.source.cxx:
            return of_the_library(call)
        callee = call.referenced
        if callee is None or callee.kind is not CursorKind.FUNCTION_DECL:
            return False
        return self.function(callee).startswith("std::") and cxx.of_range(callee)

    def _piece(
        self, cursor: Cursor, found: list[Reference], conditional: bool, into: Statement
    ) -> Cursor | None:
        """The array's name in `&a[i]` and `a + i`, of which a function gets some; the rest is read."""
        beside = []
        while cursor.kind is not CursorKind.DECL_REF_EXPR:
            inner = list(cursor.get_children())
            if cursor.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
                beside.append(inner[1])
            elif cursor.kind is CursorKind.BINARY_OPERATOR and cursor.binary_operator is BinaryOperator.Add:
                if strip(inner[0]).type.kind not in POINTERS:
                    inner.reverse()
                beside.append(inner[1])
            elif unary(cursor) != ADDRESS:
                return None
            cursor = strip(inner[0])
        begin, end = self.places.access(cursor)
        if (
            not beside
            or cursor.type.kind not in POINTERS
            or self.places.source.text[begin:end] != cursor.spelling
        ):
            return None
        for one in beside:
            self.expression(one, found, Access.READ, conditional, into)
        return cursor

    def _pointer(self, cursor: Cursor) -> str:
        """What a call through a pointer to a function is called in the tree: no function has such a name."""
        callee = cursor.referenced
        if cursor.spelling and (callee is None or callee.kind not in _VARIABLES):
            return ""
        function = next(iter(cursor.get_children()), None)
        begin = self.places.begin(cursor if function is None else function)
        end = begin if function is None else self.places.end(function)
        return f"*{self.places.source.text[begin:end]}"

    def _cxx_call(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> bool:
        """What is a call in C++ alone: of a stream, a copy of a structure, or of a class's code."""
        stream = cxx.stream_call(cursor)
        callee = cursor.referenced
        if stream is not None:
            into.calls += (stream,)
            what = Access.WRITE if stream == cxx.INPUT else Access.READ
            for argument in cxx.arguments(cursor):
                if cxx.is_stream(argument.type) and strip(argument).kind is not CursorKind.CALL_EXPR:
                    continue
                self.expression(argument, found, what, conditional, into)
            return True
        if callee is None or (reason := cxx.apart(callee)) is None:
            return False
        if callee.kind is CursorKind.CONSTRUCTOR and cxx.is_copy(callee):
            for argument in cxx.arguments(cursor):
                self.expression(argument, found, Access.READ, conditional, into)
        elif callee.kind is CursorKind.CXX_METHOD and cxx.is_copy(callee):
            left, right = list(cursor.get_arguments())
            into.kind = Kind.ASSIGNMENT
            self.expression(left, found, Access.WRITE, conditional, into)
            self.expression(right, found, Access.READ, conditional, into)
        else:
            ClassCode(self, found, conditional, into).call(cursor, callee, reason, access)
        return True

    def _size_of(self, cursor: Cursor, found: list[Reference], conditional: bool, into: Statement) -> None:
        """sizeof: nothing is evaluated but the bounds of a type, `sizeof(char[n])`."""
        count, begin, inner = len(found), self.places.begin(cursor), list(cursor.get_children())
        for child in inner:
            self.expression(child, found, Access.READ, conditional, into)
        operand = re.match(r"\w+[\s(]*", self.places.source.text[begin : self.places.end(cursor)])
        if operand and inner and self.places.begin(inner[0]) > begin + operand.end():
            return  # an expression begins there
        for reference in found[count:]:
            reference.access = Access.OTHER if reference.subscripts is None else Access.READ
            reference.only_read = True
        unused = [r for r in found[count:] if not self._is_array(r.name)]
        for reference in unused:
            found.remove(reference)

    def _element(
        self, cursor: Cursor, found: list[Reference], access: Access, conditional: bool, into: Statement
    ) -> None:
        chain = []
        base = cursor
        while base.kind is CursorKind.ARRAY_SUBSCRIPT_EXPR:
            inner, index = list(base.get_children())
            chain.append(index)
            base = strip(inner)
        chain.reverse()
        if base.kind is not CursorKind.DECL_REF_EXPR:  # a member: what is done to it is done to the whole
            changed = access in (Access.WRITE, Access.UPDATE, Access.OTHER)
            count = len(found)
            self.expression(base, found, access if changed else Access.READ, conditional, into)
            _read_by(cursor, found[count:], access)
        else:
            begin, end = self.places.access(cursor)
            subscripts, changed, only_read = [], False, False
            for index in chain:
                first, last = self.places.access(index)
                subscripts.append(Subscript(first, last, self.places.text(first, last)))
            name = cxx.variable_name(base.referenced, base.spelling)
            if not re.match(rf"{re.escape(name)}\s*\[", self.places.source.text[begin:end]):
                changed = access in (Access.WRITE, Access.UPDATE)
                only_read = access is Access.READ and cursor.type.get_canonical().kind not in POINTERS
                access = Access.OTHER  # of a macro, or with its namespace
                begin, end = self.places.begin(cursor), self.places.end(cursor)
            elif access is Access.READ and cursor.type.kind in ARRAYS:
                access = Access.OTHER
            made = Reference(name, begin, begin + len(name), end, subscripts, access, conditional)
            made.changed, made.only_read = changed, only_read
            found.append(made)
        for index in chain:
            self.expression(index, found, Access.READ, conditional, into)


def _given_to(found: Sequence[Reference], function: str, index: int) -> None:
    """Note which references an argument may have the addresses of, but not as the whole of it."""
    for one in found:
        if not one.confined and (one.argument_of, one.argument_index) != (function, index):
            one.given_to += ((function, index),)


def _read_by(cursor: Cursor, found: Sequence[Reference], access: Access) -> None:
    """Note that `*p`, `p->x` or `p->v[i]` reads what the pointer means, and does no more."""
    if access is Access.READ and cursor.type.kind not in POINTERS and is_calm(cursor):
        for reference in found:
            reference.only_read = True
