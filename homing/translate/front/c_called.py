"""C: functions that use elements of their file's distributed arrays (`double flux(int i) { return u[i + 1] -
u[i]; }`): what they do stands in place of their calls in loops that are shared out, as the user could have
written it there. What a loop needs of other parts is seen from its own subscripts alone.

A call stays, and is refused later, where the function cannot be said elsewhere, or a name in it would mean
something else there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence

from clang.cindex import BinaryOperator, Cursor, CursorKind, StorageClass, TypeKind

from homing.translate.code_text import Edit, blanked, closing, unused_name
from homing.translate.front.c_bodies import Body, changed_variables, plain_type
from homing.translate.front.c_computes import COMPUTES
from homing.translate.front.c_macros import arguments_of
from homing.translate.front.c_places import Places
from homing.translate.front.c_quiet import quiet_calls
from homing.translate.front.c_types import ADDRESS, COUNTING, assigns, strip, unary
from homing.translate.front.libclang import ARRAYS, VARIABLES
from homing.translate.source import SourceFile

_OMP = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\r?\n|\\.)*", re.MULTILINE)
_BRACKETS = re.compile(r"\([^()]*\)")
_SHARED = re.compile(r"\bshared\s*\([^()]*\)")
_NONE = re.compile(r"\bdefault\s*\(\s*none\s*\)")
_THREADS = re.compile(r"\bthreadprivate\s*\(([^()]*)\)")
_CHOOSING = (BinaryOperator.LAnd, BinaryOperator.LOr, BinaryOperator.Comma)
#: Arguments that stay the same where nothing in them is written.
_STEADY = frozenset(
    [
        CursorKind.DECL_REF_EXPR,
        CursorKind.INTEGER_LITERAL,
        CursorKind.FLOATING_LITERAL,
        CursorKind.BINARY_OPERATOR,
        CursorKind.UNARY_OPERATOR,
        CursorKind.PAREN_EXPR,
        CursorKind.UNEXPOSED_EXPR,
        CursorKind.CSTYLE_CAST_EXPR,
    ]
)


class CalledFunctions:
    """Those of one file."""

    def __init__(self, source: SourceFile, named: Container[str], functions: Sequence[Cursor]) -> None:
        """named: arrays of which directives speak; functions: the file's definitions."""
        self.source, self.places, self.functions = source, Places(source), functions
        self.code = blanked(source.text, False, " ")
        self.words = set(re.findall(r"\w+", source.text))
        self.inside = {one.get_usr(): list(one.walk_preorder()) for one in functions}
        self.known = {one.get_usr(): one for one in functions}
        self.users = self._users(named)
        self.bodies: dict[str, Body] = {}
        self.made: list[Edit] = []
        self.inlined: set[str] = set()  # by their names
        self.brought: set[str] = set()  # variables of the file, with what goes into a loop
        self.each = {name for one in _THREADS.finditer(self.code) for name in re.findall(r"\w+", one[1])}

    def edits(self) -> list[Edit]:
        """One round: calls in what is put there are for the next."""
        self.made = []
        pragmas = [(match.end(), match[1]) for match in _OMP.finditer(self.source.text)] if self.users else []
        names = re.compile("|".join(rf"\b{re.escape(self.known[usr].spelling)}\b" for usr in self.users))
        for function in self.functions if pragmas else ():
            begin, end = self.places.begin(function), self.places.end(function)
            texts = [(at, text) for at, text in pragmas if begin < at < end]
            if not texts or (self.source.cxx and any(_NONE.search(text) for _, text in texts)):
                continue  # names of namespaces and classes may stand in no clause
            loops = [one for one in self.inside[function.get_usr()] if one.kind is CursorKind.FOR_STMT]
            begins = [self.places.begin(one) for one in loops]
            calling = []
            for at, text in texts:
                after = [index for index, begin in enumerate(begins) if begin >= at]
                if after and re.search(r"\bfor\b", _BRACKETS.sub("", text)):
                    first = min(after, key=begins.__getitem__)
                    if names.search(self.code, begins[first], self.places.end(loops[first])):
                        calling.append(loops[first])
            if calling:
                caller = _Caller(self, function, self._taken(function, [text for _, text in texts]))
                for loop in calling:
                    self.brought = set()
                    caller.statement(loop, False)
                    self._listed(function, loop)
        return sorted(set(self.made))

    def _listed(self, function: Cursor, loop: Cursor) -> None:
        """Name the variables that went into a loop where a directive around it has DEFAULT(NONE)."""
        begin, end = self.places.begin(function), self.places.end(loop)
        for pragma in _OMP.finditer(self.source.text, begin, self.places.begin(loop)):
            none = _NONE.search(pragma[0])
            fresh = self.brought - set(re.findall(r"\w+", pragma[0]))
            if none is None or not fresh:
                continue
            behind = (
                one for one in self.inside[function.get_usr()] if self.places.begin(one) >= pragma.end()
            )
            about = min(behind, key=lambda one: (self.places.begin(one), -self.places.end(one)))
            if self.places.end(about) >= end:
                at = pragma.start() + none.end()
                self.made.append((at, at, f" shared({', '.join(sorted(fresh))})"))

    def put(self, usr: str, edit: Edit) -> None:
        """What stands for a call of the function."""
        self.inlined.add(self.known[usr].spelling)
        self.made.append(edit)
        self.brought |= self.body(usr).shared - self.each

    def unused(self, inlined: Container[str]) -> Iterator[Edit]:
        """Static functions that nothing names any more; each line stays."""
        for usr, function in self.known.items():
            if function.spelling not in inlined or function.storage_class is not StorageClass.STATIC:
                continue
            begin, end = self.places.begin(function), self.places.end(function)
            elsewhere = self.code[:begin] + self.code[end:]
            if usr in self.users and not re.search(rf"\b{re.escape(function.spelling)}\b", elsewhere):
                yield begin, end, "\n" * self.source.text.count("\n", begin, end)

    # --- functions ------------------------------------------------------------------------------------------

    def _users(self, named: Container[str]) -> set[str]:
        """The functions that use such arrays of the file, also by others."""
        found = {
            usr
            for usr, inside in self.inside.items()
            if any(one.kind is CursorKind.DECL_REF_EXPR and _of_file(one, named) for one in inside)
        }
        calls = {usr: set(self._called(inside)) for usr, inside in self.inside.items()}
        before = -1
        while before != (before := len(found)):
            found |= {usr for usr, called in calls.items() if called & found}
        return {usr for usr in found if self.known[usr].spelling != "main" and not _again(usr, calls)}

    def _called(self, inside: Sequence[Cursor]) -> Iterator[str]:
        for one in inside:
            if one.kind is CursorKind.CALL_EXPR and one.referenced is not None:
                yield one.referenced.get_usr()

    def body(self, usr: str) -> Body:
        if usr not in self.bodies:
            self.bodies[usr] = Body(self.source, self.places, self.known[usr])
        return self.bodies[usr]

    def pure(self, usr: str) -> bool:
        """Does it do no more than compute a value?"""
        return self._pure(usr, frozenset())

    def _pure(self, usr: str, within: frozenset[str]) -> bool:
        if usr in within or usr not in self.known:
            return False
        if quiet_calls(self.known[usr], lambda one: str(one.spelling), reads=True) is None:
            return False
        for one in self.inside[usr]:
            callee = one.referenced if one.kind is CursorKind.CALL_EXPR else None
            if callee is None or computes(callee):
                continue
            if not self._pure(callee.get_usr(), within | {usr}):
                return False
        return True

    def _taken(self, function: Cursor, pragmas: Sequence[str]) -> set[str]:
        """Names that may mean something else in the function than in its file."""
        inside = self.inside[function.get_usr()]
        taken = {one.spelling for one in inside if one.kind in VARIABLES}
        for text in pragmas:
            taken |= set(re.findall(r"\w+", _SHARED.sub("", text)))
        for loop in inside:
            if loop.kind is CursorKind.FOR_STMT:  # its counter may be each thread's own
                first = next(iter(loop.get_children()), None)
                taken |= {one.spelling for one in changed_variables(first.walk_preorder() if first else ())}
        return taken

    def behind_directive(self, begin: int) -> bool:
        """Does what stands there belong to a directive before it?"""
        ends = (match.end() for match in _DIRECTIVE.finditer(self.code))
        return any(end <= begin and not self.code[end:begin].strip() for end in ends)

    def redefined(self, usr: str) -> bool:
        """Does a macro that it names change behind it?"""
        begin, end = self.places.begin(self.known[usr]), self.places.end(self.known[usr])
        later = re.findall(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", self.code[end:], re.MULTILINE)
        return not set(later).isdisjoint(re.findall(r"\w+", self.code[begin:end]))


class _Caller:
    """A function in whose loops calls go."""

    def __init__(self, file: CalledFunctions, function: Cursor, taken: set[str]) -> None:
        self.file, self.function, self.taken = file, function, taken
        inside = file.inside[function.get_usr()]
        self.addressed = {
            target.referenced.hash
            for one in inside
            if unary(one) == ADDRESS
            for target in [strip(next(iter(one.get_children())))]
            if target.kind is CursorKind.DECL_REF_EXPR and target.referenced is not None
        }

    # --- statements -----------------------------------------------------------------------------------------

    def statement(self, node: Cursor, in_block: bool) -> None:
        """in_block: statements may be put before it."""
        kind = node.kind
        if kind is CursorKind.COMPOUND_STMT:
            for child in node.get_children():
                self.statement(child, True)
        elif kind in (CursorKind.IF_STMT, CursorKind.SWITCH_STMT):
            condition, *inside = node.get_children()
            self.calls(condition, node if in_block else None)
            for child in inside:
                self.statement(child, False)
        elif kind in (CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT):
            *heads, last = node.get_children()
            if kind is CursorKind.DO_STMT:
                heads, last = [last], heads[0]
            for head in heads:
                self.calls(head, None)
            self.statement(last, False)
        elif kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT):
            for child in node.get_children():
                self.statement(child, False)
        elif kind is CursorKind.DECL_STMT:
            if not any(one.kind is not CursorKind.VAR_DECL for one in node.get_children()):
                self.calls(node, node if in_block else None)
        elif kind.is_expression():
            whole = strip(node)
            usr = self._user(whole)
            if usr and not self._nested(whole) and whole.type.kind is TypeKind.VOID:
                self._replaced(whole, usr)
            else:
                self.calls(node, node, not in_block)

    def _replaced(self, call: Cursor, usr: str) -> None:
        """A statement that is a call and nothing else."""
        text = self._statements(call, usr, "")
        begin, end = self.file.places.access(call)
        behind = re.compile(r"\s*;").match(self.file.code, end)
        if text is not None and behind is not None:
            self.file.put(usr, (begin, behind.end(), text))

    # --- expressions ----------------------------------------------------------------------------------------

    def calls(self, node: Cursor, statement: Cursor | None, braces: bool = False) -> None:
        """The calls in an expression. statement: before which others may be put; braces: in braces then."""
        found = list(self._calls(node, False))
        if not found or self._others(node):
            return
        hoisted: set[int] = set()
        for call, usr, conditional in found:
            if self._nested(call) or not self.file.pure(usr):
                continue
            begin, end = self.file.places.access(call)
            given = self._given(call, usr)
            if given is None:
                continue
            text = None
            if all(simple for _, _, _, simple in given):
                text = self.file.body(usr).expression([(said, kind) for said, kind, _, _ in given])
            if text is not None:
                self.file.put(usr, (begin, end, text))
            elif statement is not None and not conditional and not hoisted and not self._late(call, node):
                hoisted.add(begin)
                self._before(call, usr, statement, braces)

    def _before(self, call: Cursor, usr: str, statement: Cursor, braces: bool) -> None:
        """The function's statements before that of a call, which becomes a variable."""
        body = self.file.body(usr)
        result = self._fresh(body.function.spelling, "value")
        text = self._statements(call, usr, result)
        begin, end = self.file.places.begin(statement), self.file.places.end(statement)
        behind = re.compile(r"\s*;").match(self.file.code, end)
        if text is None or (braces and behind is None) or self.file.behind_directive(begin):
            return
        opening = "{ " if braces else ""
        self.file.made.append((begin, begin, f"{opening}{plain_type(body.result)} {result}; {text} "))
        self.file.put(usr, (*self.file.places.access(call), result))
        if braces and behind is not None:
            self.file.made.append((behind.end(), behind.end(), " }"))

    def _others(self, node: Cursor) -> bool:
        """Is there a call that may write what those read? One that gets them all comes later."""
        for one in strip(node).get_children() if strip(node).kind is CursorKind.CALL_EXPR else [node]:
            if self._other(one):
                return True
        return False

    def _other(self, node: Cursor) -> bool:
        for one in node.walk_preorder():
            callee = one.referenced if one.kind is CursorKind.CALL_EXPR else None
            if one.kind is CursorKind.CALL_EXPR and (
                callee is None or not (computes(callee) or self.file.pure(callee.get_usr()))
            ):
                return True
        return False

    def _late(self, call: Cursor, statement: Cursor) -> bool:
        """Does a statement declare something before the variable that is made of the call?"""
        declared = [one for one in statement.get_children() if one.kind is CursorKind.VAR_DECL]
        return any(one.hash == call.hash for first in declared[1:] for one in first.walk_preorder())

    def _calls(self, node: Cursor, conditional: bool) -> Iterator[tuple[Cursor, str, bool]]:
        if node.kind is CursorKind.CXX_UNARY_EXPR:  # sizeof
            return
        if usr := self._user(node):
            yield node, usr, conditional
        choosing = node.kind is CursorKind.CONDITIONAL_OPERATOR or (
            node.kind is CursorKind.BINARY_OPERATOR and node.binary_operator in _CHOOSING
        )
        for child in node.get_children():
            yield from self._calls(child, conditional or choosing)

    def _user(self, call: Cursor) -> str:
        """The function that it calls by its name, if that is one of those."""
        callee = call.referenced if call.kind is CursorKind.CALL_EXPR else None
        usr = callee.get_usr() if callee is not None else ""
        if usr not in self.file.users or not self.file.body(usr).readable or self.file.redefined(usr):
            return ""
        body, (begin, end) = self.file.body(usr), self.file.places.access(call)
        own = body.function.semantic_parent == self.function.semantic_parent
        called = re.compile(rf"{re.escape(body.function.spelling)}\s*\(").match(self.file.code, begin)
        if not own or called is None or closing(self.file.code, called.end()) != end:
            return ""
        return "" if body.free & self.taken else str(usr)

    def _nested(self, call: Cursor) -> bool:
        """Is there one in its arguments, which goes first?"""
        return any(True for child in call.get_children() for _ in self._calls(child, False))

    # --- arguments ------------------------------------------------------------------------------------------

    def _given(self, call: Cursor, usr: str) -> list[tuple[str, str, bool, bool]] | None:
        """Of each argument the text, the type, whether it stays the same while the function runs, and
        whether it may be evaluated once or several times."""
        begin, end = self.file.places.access(call)
        opened = self.file.code.index("(", begin) + 1
        texts = arguments_of(self.file.source.text[opened : end - 1], self.file.code[opened : end - 1])
        cursors = list(call.get_arguments())
        if not cursors and texts == ("",):
            texts = ()
        if not len(texts) == len(cursors) == len(self.file.body(usr).parameters):
            return None
        if any("\n" in text for text in texts):
            texts = tuple(" ".join(text.split()) for text in texts)
        if any("//" in text or "/*" in text or '"' in text for text in texts):
            return None
        return [
            (text, plain_type(strip(one).type), self._steady(one), _simple(one))
            for text, one in zip(texts, cursors, strict=True)
        ]

    def _steady(self, argument: Cursor) -> bool:
        for one in argument.walk_preorder():
            if one.kind not in _STEADY or assigns(one) or unary(one) in (*COUNTING, ADDRESS):
                return False
            meant = one.referenced if one.kind is CursorKind.DECL_REF_EXPR else None
            if meant is None or meant.kind is CursorKind.ENUM_CONSTANT_DECL:
                continue
            own = meant.semantic_parent is not None and meant.semantic_parent.kind is CursorKind.FUNCTION_DECL
            if meant.kind not in VARIABLES or not own or meant.storage_class is StorageClass.STATIC:
                return False
            if meant.hash in self.addressed or meant.type.kind is TypeKind.LVALUEREFERENCE:
                return False
        return True

    def _statements(self, call: Cursor, usr: str, result: str) -> str | None:
        given, body = self._given(call, usr), self.file.body(usr)
        if given is None:
            return None
        said = [(text, kind, steady) for text, kind, steady, _ in given]
        return body.statements(said, result, lambda name: self._fresh(body.function.spelling, name))

    def _fresh(self, function: str, name: str) -> str:
        return unused_name(f"{name}_of_{function}", self.file.words)


def computes(callee: Cursor) -> bool:
    """Is it a function of C's library that computes a value?"""
    known = callee.spelling in COMPUTES or f"std::{callee.spelling}" in COMPUTES
    return known and bool(callee.location.is_in_system_header)


def _of_file(name: Cursor, named: Container[str]) -> bool:
    meant = name.referenced
    if meant is None or meant.kind is not CursorKind.VAR_DECL or meant.spelling not in named:
        return False
    if meant.type.get_canonical().kind not in (TypeKind.POINTER, *ARRAYS):
        return False
    return meant.semantic_parent is None or meant.semantic_parent.kind is not CursorKind.FUNCTION_DECL


def _again(usr: str, calls: Mapping[str, set[str]]) -> bool:
    """Does a function come back to itself?"""
    seen: set[str] = set()
    waiting = [usr]
    while waiting:
        fresh = calls.get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting += fresh
    return usr in seen


def _simple(argument: Cursor) -> bool:
    """Is it the same however often it is evaluated, and does it do nothing else?"""
    for one in argument.walk_preorder():
        if assigns(one) or one.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR or unary(one) in COUNTING:
            return False
        if one.kind is CursorKind.CALL_EXPR and (one.referenced is None or not computes(one.referenced)):
            return False
    return True
