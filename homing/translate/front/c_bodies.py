"""C: what a function does, said where it is called: as an expression, or as statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from clang.cindex import Cursor, CursorKind, StorageClass, Type, TypeKind

from homing.translate.code_text import Edit, blanked, edited, without_comments
from homing.translate.front.c_places import Places
from homing.translate.front.c_quiet import LOUD
from homing.translate.front.c_types import ADDRESS, COUNTING, assigns, is_number, strip, unary
from homing.translate.front.cxx import REFERENCES
from homing.translate.front.libclang import ARRAYS
from homing.translate.source import SourceFile

_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict)\b|\s+$")
_WORD = re.compile(r"\w+|\d+\.\d*")
#: Directives, and what tells a function from others or lasts as long as it.
_OF_THE_FUNCTION = re.compile(r"^[ \t]*#|\b_Pragma\b|\\\n|\b__\w+|\balloca\b", re.MULTILINE)
_ENDS = re.compile(r"\s*\n\s*")
#: What is not said elsewhere: where something jumps to, names for types, and what other names may hold.
_STAYS = frozenset(
    [
        *LOUD,
        CursorKind.LABEL_STMT,
        CursorKind.GOTO_STMT,
        CursorKind.TYPEDEF_DECL,
        CursorKind.TYPE_ALIAS_DECL,
        CursorKind.STRUCT_DECL,
        CursorKind.UNION_DECL,
        CursorKind.ENUM_DECL,
        CursorKind.CXX_TRY_STMT,
        CursorKind.FUNCTION_DECL,
    ]
)


def plain_type(kind: Type) -> str:
    """The type's name without qualifiers; of a reference, that of what it refers to."""
    kind = kind.get_canonical()
    if kind.kind in REFERENCES:
        kind = kind.get_pointee()
    return _QUALIFIERS.sub("", _QUALIFIERS.sub("", str(kind.spelling))).strip()


class Body:
    """A function's body, and the variables that are its own."""

    def __init__(self, source: SourceFile, places: Places, function: Cursor) -> None:
        self.source, self.places, self.function = source, places, function
        self.parameters = list(function.get_arguments())
        self.block = next(one for one in function.get_children() if one.kind is CursorKind.COMPOUND_STMT)
        inside = list(self.block.walk_preorder())
        self.variables = [one for one in inside if one.kind is CursorKind.VAR_DECL]
        own = {one.hash for one in (*self.parameters, *self.variables)}
        others = [
            one
            for one in inside
            if one.kind in (CursorKind.DECL_REF_EXPR, CursorKind.TYPE_REF)
            and (one.referenced is None or one.referenced.hash not in own)
        ]
        self.free = {one.spelling.rpartition(" ")[2] for one in others}
        #: Of these, variables.
        self.shared = {
            one.spelling
            for one in others
            if one.referenced is not None and one.referenced.kind is CursorKind.VAR_DECL
        }
        self.changed = {one.hash for one in changed_variables(inside)}
        self.result = function.result_type
        self.readable = self._readable(inside)

    def _readable(self, inside: Sequence[Cursor]) -> bool:
        """May it be said elsewhere at all?"""
        text = self.source.text[self.places.begin(self.block) : self.places.end(self.block)]
        if _OF_THE_FUNCTION.search(blanked(text, False, " ")) or 'R"' in text:
            return False
        if any(one.kind in _STAYS for one in inside):
            return False
        kept = (StorageClass.STATIC, StorageClass.EXTERN)
        if any(one.storage_class in kept or one.type.kind in REFERENCES for one in self.variables):
            return False
        void = self.result.kind is TypeKind.VOID
        return all(_scalar(one.type) for one in self.parameters) and (void or _number(self.result))

    # --- as an expression -----------------------------------------------------------------------------------

    def expression(self, given: Sequence[tuple[str, str]]) -> str | None:
        """The value, of arguments that may be evaluated as often as they are named (text, type); None: it
        needs statements."""
        if any(one.hash in self.changed for one in (*self.parameters, *self.variables)):
            return None
        if self.result.kind is TypeKind.VOID:
            return None
        put = {
            parameter.hash: _converted(text, kind, parameter.type)
            for parameter, (text, kind) in zip(self.parameters, given, strict=True)
        }
        return self._value(list(self.block.get_children()), put)

    def _value(self, nodes: Sequence[Cursor], known: Mapping[int, str]) -> str | None:
        put = dict(known)
        for at, node in enumerate(nodes):
            if node.kind is CursorKind.DECL_STMT:
                for variable in node.get_children():
                    value = _initial(variable)
                    if value is None or not _number(variable.type):
                        return None
                    text = self._said(value, put)
                    if text is None:
                        return None
                    put[variable.hash] = _converted(text, plain_type(strip(value).type), variable.type)
            elif node.kind is CursorKind.RETURN_STMT:
                value = next(iter(node.get_children()), None)
                text = self._said(value, put) if value is not None else None
                if value is None or text is None:
                    return None
                return _converted(text, plain_type(strip(value).type), self.result)
            elif node.kind is CursorKind.IF_STMT:
                condition, then, *other = node.get_children()
                said = self._said(condition, put) if condition.kind.is_expression() else None
                first = self._value(_inside(then), put)
                second = self._value(_inside(other[0]) if other else nodes[at + 1 :], put)
                if said is None or first is None or second is None:
                    return None
                return f"(({said}) ? {first} : {second})"
            else:
                return None
        return None

    # --- as statements --------------------------------------------------------------------------------------

    def statements(
        self, given: Sequence[tuple[str, str, bool]], result: str, fresh: Callable[[str], str]
    ) -> str | None:
        """In braces; the value goes to the variable `result`. given: text, type, and whether it stays the
        same meanwhile. fresh: a name that nothing has, made of one."""
        if any(one.type.kind in REFERENCES for one in self.parameters):
            return None  # what it refers to may change meanwhile
        put = {one.hash: fresh(one.spelling) for one in self.variables}
        text = ""
        for parameter, (value, kind, steady) in zip(self.parameters, given, strict=True):
            if steady and parameter.hash not in self.changed:
                put[parameter.hash] = _converted(value, kind, parameter.type)
            else:
                put[parameter.hash] = fresh(parameter.spelling)
                text += f"{plain_type(parameter.type)} {put[parameter.hash]} = {value}; "
        done = self._done(list(self.block.get_children()), put, result)
        return None if done is None else f"{{ {text}{done}}}"

    def _done(self, nodes: Sequence[Cursor], put: Mapping[int, str], result: str) -> str | None:
        out = ""
        for at, node in enumerate(nodes):
            if node.kind is CursorKind.RETURN_STMT:  # what follows is not reached
                value = next(iter(node.get_children()), None)
                text = self._said(value, put) if value is not None else ""
                if text is None or bool(text) != bool(result):
                    return None
                return f"{out}{result} = {text}; " if text else out
            if _returns_somewhere(node):
                rest = self._leaving(node, nodes[at + 1 :], put, result)
                return None if rest is None else out + rest
            text = self._said(node, put)
            if text is None:
                return None
            ended = text.endswith((";", "}")) and not node.kind.is_expression()
            out += text if ended else f"{text};"
            out += " "
        return out

    def _leaving(
        self, node: Cursor, rest: Sequence[Cursor], put: Mapping[int, str], result: str
    ) -> str | None:
        """A statement that may return, and what follows it."""
        if node.kind is CursorKind.COMPOUND_STMT:
            return self._done([*node.get_children(), *rest], put, result)
        if node.kind is not CursorKind.IF_STMT:
            return None
        condition, then, *other = node.get_children()
        said = self._said(condition, put) if condition.kind.is_expression() else None
        first, second = _inside(then), _inside(other[0]) if other else []
        if _always_returns(then):
            second = [*second, *rest]
        elif other and _always_returns(other[0]):
            first = [*first, *rest]
        elif rest:
            return None
        one, two = self._done(first, put, result), self._done(second, put, result)
        if said is None or one is None or two is None:
            return None
        return f"if ({said}) {{ {one}}} else {{ {two}}} "

    # --- texts ----------------------------------------------------------------------------------------------

    def _said(self, node: Cursor, put: Mapping[int, str]) -> str | None:
        """The text of an expression or a statement, on one line, with others for the function's own names;
        None: a macro names one of them."""
        begin, end = self.places.begin(node), self.places.end(node)
        edits: list[Edit] = []
        for one in node.walk_preorder():
            at = last = 0
            if one.kind is CursorKind.DECL_REF_EXPR and one.referenced is not None:
                new = put.get(one.referenced.hash)
                at, last = self.places.access(one)
            elif one.kind is CursorKind.VAR_DECL:
                new = put.get(one.hash)
                at = self.places.place(one.location.offset)
                last = at + len(one.spelling)
            else:
                continue
            if new is None:
                continue
            if self.source.text[at:last] != one.spelling or not begin <= at < end:
                return None
            edits.append((at - begin, last - begin, new))
        text = self.source.text[begin:end]
        text = (edited(text, edits) or "") if edits else text
        return _one_line(text) or None


def _one_line(text: str) -> str:
    """Without comments, and with blanks for the ends of lines."""
    return _ENDS.sub(" ", without_comments(text)).strip()


def _scalar(kind: Type) -> bool:
    """A number, or a pointer to numbers."""
    kind = kind.get_canonical()
    if kind.kind in REFERENCES:
        kind = kind.get_pointee()
    if kind.kind is TypeKind.POINTER:
        kind = kind.get_pointee()
    return _number(kind)


def _number(kind: Type) -> bool:
    return is_number(kind) and kind.get_canonical().kind not in (TypeKind.RECORD, *ARRAYS)


def _initial(variable: Cursor) -> Cursor | None:
    """What a scalar variable is made of."""
    values = [one for one in variable.get_children() if one.kind.is_expression()]
    known = variable.kind is CursorKind.VAR_DECL and len(values) == 1
    return values[0] if known and values[0].kind is not CursorKind.INIT_LIST_EXPR else None


def _converted(text: str, kind: str, wanted: Type) -> str:
    if kind == plain_type(wanted):
        return text if _WORD.fullmatch(text) else f"({text})"
    return f"(({plain_type(wanted)})({text}))"


def _inside(node: Cursor) -> list[Cursor]:
    return list(node.get_children()) if node.kind is CursorKind.COMPOUND_STMT else [node]


def _returns_somewhere(node: Cursor) -> bool:
    return any(one.kind is CursorKind.RETURN_STMT for one in node.walk_preorder())


def _always_returns(node: Cursor) -> bool:
    if node.kind is CursorKind.COMPOUND_STMT:
        return any(_always_returns(one) for one in node.get_children())
    if node.kind is CursorKind.IF_STMT:
        arms = list(node.get_children())[1:]
        return len(arms) == 2 and all(map(_always_returns, arms))
    return node.kind is CursorKind.RETURN_STMT


def changed_variables(inside: Iterable[Cursor]) -> Iterator[Cursor]:
    """The variables that get other values, or may by their addresses."""
    for one in inside:
        changes = assigns(one) or one.kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
        if changes or unary(one) in (*COUNTING, ADDRESS):
            target = strip(next(iter(one.get_children())))
            if target.kind is CursorKind.DECL_REF_EXPR and target.referenced is not None:
                yield target.referenced
