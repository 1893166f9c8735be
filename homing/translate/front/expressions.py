"""Accesses in Fortran expressions, out of tree-sitter's tree of each.

What stands around an expression (the statement's own words) is cut off before, so that nothing in a name can
be taken for it.
"""

from __future__ import annotations

from functools import lru_cache

from tree_sitter import Language, Node, Parser
from tree_sitter_fortran import language

from homing.translate.front.tokens import Token, parts, tokens, without_strings
from homing.translate.tree import Access, Bound, Reference, Subscript

#: Implied DO variables that an access stands under: name -> (first, last, step) as text.
Bindings = dict[str, tuple[str, str, str]]

#: tree-sitter's name for q%w.
_COMPONENT = "derived_type_member_expression"
#: Nodes in which every name is that of a type or kind.
_NO_ACCESS = frozenset(
    ["intrinsic_type", "derived_type", "kind", "number_literal", "string_literal", "boolean_literal"]
)


class NotRead(Exception):
    """tree-sitter has no tree for this text; begin and end count characters of the statement."""

    def __init__(self, begin: int, end: int) -> None:
        super().__init__(f"{begin}:{end}")
        self.begin = begin
        self.end = end


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(language()))


class Expressions:
    """The expressions of one statement. places: the offset in the file of each character of its code."""

    def __init__(self, code: str, places: list[int]) -> None:
        self.code = code
        self.lower = code.lower()
        self.places = places
        self.words: list[Token] = tokens(code)
        self._clean = without_strings(code, self.words)
        self._shift = 0  # of the text that is being read against the statement

    # --- text ---------------------------------------------------------------------------------------------

    def text(self, begin: int, end: int) -> str:
        """words[begin:end] in lower case."""
        if begin >= end:
            return ""
        return self.lower[self.words[begin].begin : self.words[end - 1].end]

    def place(self, at: int) -> int:
        """Offset in the file of a character."""
        return self.places[at]

    def place_end(self, end: int) -> int:
        """Offset in the file behind the character before `end`."""
        return self.places[end - 1] + 1

    def word_place(self, index: int) -> int:
        return self.places[self.words[index].begin]

    def word_end(self, index: int) -> int:
        return self.places[self.words[index].end - 1] + 1

    # --- accesses -----------------------------------------------------------------------------------------

    def reads(self, begin: int, end: int) -> list[Reference]:
        """Every access in the expression words[begin:end], outer ones first."""
        return self._found("", begin, end, "")

    def listed(self, begin: int, end: int) -> list[Reference]:
        """Every access in the list of expressions words[begin:end]."""
        return self._found("[", begin, end, "]")

    def arguments(self, name: str, begin: int, end: int) -> list[Reference]:
        """Every access in the actual arguments words[begin:end] of the procedure `name`."""
        found: list[Reference] = []
        if begin < end:
            for first, last in parts(self.words, begin, end, ","):
                if self.words[first].text == "*" and last == first + 2:  # *10, a label to return to: a number
                    star = self.words[first].begin
                    self._clean = f"{self._clean[:star]} {self._clean[star + 1 :]}"
            root = self._tree("f(", begin, end, ")")
            self._arguments(name, root.children[1], {}, found)
        return found

    def _found(self, before: str, begin: int, end: int, behind: str) -> list[Reference]:
        found: list[Reference] = []
        if begin < end:
            root = self._tree(before, begin, end, behind)
            self._walk(root, {}, found)
        return found

    def _tree(self, before: str, begin: int, end: int, behind: str) -> Node:
        first, last = self.words[begin].begin, self.words[end - 1].end
        head = f"q={before}"
        text = f"{head}{self._clean[first:last]}{behind}\nend\n"
        self._shift = first - len(head)
        root = _parser().parse(text.encode("ascii")).root_node
        node = root.children[0].children[0] if root.children and root.children[0].children else root
        value = node.child_by_field_name("right")
        whole = len(head) + last - first + len(behind)
        if root.has_error or value is None or value.end_byte != whole:
            raise NotRead(first, last)
        return value

    def _at(self, node: Node) -> tuple[int, int]:
        return node.start_byte + self._shift, node.end_byte + self._shift

    def _walk(self, node: Node, bound: Bindings, found: list[Reference]) -> None:
        """Iterative, for sums of hundreds of terms; brackets go deeper by a call each."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            what = node.type
            if what == "identifier":
                found.append(self._reference(node, None, bound))
            elif what == "call_expression":
                self._designator(node, bound, found)
            elif what == _COMPONENT:
                waiting.append(node.children[0])
            elif what == "keyword_argument":
                waiting.append(node.children[-1])
            elif what == "implied_do_loop_expression":
                self._implied(node, bound, found)
            elif what in ("coarray_expression", "coarray_index"):
                raise NotRead(*self._at(node))
            elif what not in _NO_ACCESS:
                waiting.extend(reversed(node.named_children))

    def _reference(self, node: Node, arguments: Node | None, bound: Bindings) -> Reference:
        begin, name_end = self._at(node)
        end = name_end
        subscripts = None
        if arguments is not None:
            end = arguments.end_byte + self._shift
            subscripts = [self._subscript(child, bound) for child in arguments.named_children]
        name = self.lower[begin:name_end]
        return Reference(
            name, self.place(begin), self.place_end(name_end), self.place_end(end), subscripts, Access.READ
        )

    def _designator(self, node: Node, bound: Bindings, found: list[Reference]) -> None:
        """NAME(...), and what may stand before its brackets: a component, or brackets once more."""
        base, arguments = node.children[0], node.children[1]
        if base.type == "identifier":
            found.append(self._reference(base, arguments, bound))
            self._arguments(found[-1].name, arguments, bound, found)
            return
        self._walk(base, bound, found)
        begin, end = self._at(base)
        self._arguments(self.lower[begin:end].replace(" ", ""), arguments, bound, found)

    def _arguments(self, name: str, arguments: Node, bound: Bindings, found: list[Reference]) -> None:
        for index, child in enumerate(arguments.named_children):
            keyword = None
            value = child
            if child.type == "keyword_argument":
                begin, end = self._at(child.children[0])
                keyword = self.lower[begin:end]
                value = child.children[-1]
            first = len(found)
            self._walk(value, bound, found)
            if value.type == "identifier" or (
                value.type == "call_expression" and value.children[0].type == "identifier"
            ):
                found[first].argument_of = name
                found[first].argument_index = index
                found[first].argument_keyword = keyword
            elif _COMPONENT in (value.type, value.type == "call_expression" and value.children[0].type):
                found[first].component_of = name
                found[first].argument_index = index
                found[first].argument_keyword = keyword

    def _implied(self, node: Node, bound: Bindings, found: list[Reference]) -> None:
        """(a(i), i = 1, n): inside it, `i` is no variable of the program."""
        *items, control = node.named_children
        begin, _ = self._at(control)
        first = next(i for i, word in enumerate(self.words) if word.begin >= begin)
        variable = self.words[first].text
        bounds = control.named_children[1:]
        texts = [self._text(child) for child in bounds]
        for child in bounds:
            self._walk(child, bound, found)
        inner = {**bound, variable: (texts[0], texts[1], texts[2] if len(texts) > 2 else "1")}
        for child in items:
            self._walk(child, inner, found)

    def _text(self, node: Node) -> str:
        begin, end = self._at(node)
        return self.lower[begin:end]

    def _subscript(self, node: Node, bound: Bindings) -> Subscript:
        begin, end = self._at(node)
        text = self.lower[begin:end]
        made = Subscript(self.place(begin), self.place_end(end), text)
        if node.type == "extent_specifier":
            made.section = True
            sides: list[str | None] = [None]
            for child in node.children:
                if child.type in (":", "::"):
                    sides.extend([None] * len(child.type))
                else:
                    sides[-1] = self._text(child)
            made.low, made.high = sides[0], sides[1]
            made.step = sides[2] if len(sides) > 2 else None
        if bound:
            bind(made, bound)
        return made

    def subscript(self, begin: int, end: int) -> Subscript:
        """The bound of a loop, words[begin:end]."""
        return Subscript(self.word_place(begin), self.word_end(end - 1), self.text(begin, end))

    # --- declarations -------------------------------------------------------------------------------------

    def bounds(self, begin: int, end: int) -> list[Bound]:
        """The array specification words[begin:end], without its brackets."""
        made = []
        for first, last in parts(self.words, begin, end, ","):
            sides = parts(self.words, first, last, ":")
            if len(sides) == 1:
                text = self.text(first, last)
                made.append(Bound("1", None if text in ("*", "..") else text))
                continue
            low, high = self.text(*sides[0]), self.text(*sides[1])
            made.append(Bound(low or "1", high if high and high != "*" else None, deferred=not high))
        return made


def bind(subscript: Subscript, bound: Bindings) -> None:
    """A variable of an implied DO (or FORALL) in a subscript stands for all its values: the subscript becomes
    a section."""
    names = bound.keys() & _names(f"{subscript.text} {subscript.low} {subscript.high}")
    if not names:
        return
    name = min(names)
    first, last, step = bound[name]
    known = not bound.keys() & _names(f"{first} {last}")
    exact = not subscript.section and subscript.text == name and known and step == "1"
    subscript.section = True
    subscript.low, subscript.high = (first, last) if exact else (None, None)
    subscript.step = None


def _names(text: str) -> set[str]:
    return {word.text for word in tokens(text) if word.kind == "name"}


def understood(code: str) -> bool:
    """Does tree-sitter read the statement as a whole without an error?"""
    text = without_strings(code, tokens(code))
    return not _parser().parse(f"{text}\nend\n".encode("ascii")).root_node.has_error
