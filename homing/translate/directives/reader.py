"""A directive's text, word by word: what all of them are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from homing.translate.directives.located import Located
from homing.translate.directives.model import Source
from homing.translate.positions import Name, Text

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\d+(?:\.\d+)?(?:_\w+|[uUlL]+)?)
      | (?P<string>'[^']*'|"[^"]*")
      | (?P<mark>::|->|\*\*|//|<<|>>|[<>=/!]=|&&|\|\||[][(){},:=*+\-/<>%&|!~^?.;])""",
    re.VERBOSE | re.ASCII,
)
_OPENING = {"(": ")", "[": "]"}
_CLOSING = frozenset(_OPENING.values())
END = "the end of the directive"

T = TypeVar("T")


@dataclass(frozen=True)
class Token:
    """A word, or a mark."""

    kind: str  # name, number, string, mark or end
    text: str
    offset: int

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


class Wrong(Exception):
    """What is wrong, and at which word."""

    def __init__(self, token: Token, reason: str) -> None:
        super().__init__(reason)
        self.token = token
        self.reason = reason


class Reader:
    """Reads from the left; Wrong is raised at the word that cannot stand there."""

    def __init__(self, located: Located, source: Source) -> None:
        self._located = located
        self._source = source
        self._fortran = source.form.fortran
        self._tokens = _tokenise(located.text)
        self._at = 0

    # --- what they are made of ----------------------------------------------------------------------------

    def _subscripts(self, one: Callable[[], T]) -> tuple[T, ...]:
        """`(x, y)` in Fortran, `[x][y]` in C."""
        if self._fortran:
            if self._peek().text == "[":
                raise Wrong(self._peek(), "Fortran writes subscripts in parentheses")
            return self._parenthesised(one)
        if self._peek().text == "(":
            raise Wrong(self._peek(), "C writes subscripts in brackets, one pair a dimension")
        found: list[T] = []
        while self._peek().text == "[" or not found:
            self._expect("[")
            found.append(one())
            self._expect("]")
        return tuple(found)

    def _parenthesised(self, one: Callable[[], T], most: int = 0) -> tuple[T, ...]:
        self._expect("(")
        found = [one()]
        while len(found) != most and self._mark(","):
            found.append(one())
        self._expect(")")
        return tuple(found)

    def _names(self) -> list[Name]:
        found = [self._name("an array or template")]
        while self._mark(","):
            found.append(self._name("an array or template"))
        return found

    def _name(self, what: str, names_may_follow: bool = False) -> Name:
        """names_may_follow: behind `::`."""
        token = self._take()
        if not names_may_follow or self._tokens[min(self._at + 2, len(self._tokens) - 1)].text in ("(", "["):
            self._no_scope(token)
        if token.kind != "name":
            raise Wrong(token, f"must be {what}")
        if self._peek().text in ("%", ".", "->"):
            raise Wrong(token, "a component of a structure cannot be named in a directive")
        key = token.text.lower() if self._fortran else token.text
        return Name(token.text, self._located.position(token.offset), key)

    def _no_scope(self, token: Token) -> None:
        """Wrong: `sim::u`."""
        at = self._at if token.kind == "name" else self._at - 1
        if self._tokens[at].text != "::":
            return
        name = token
        while self._tokens[at].text == "::" and at + 2 < len(self._tokens):
            name, at = self._tokens[at + 1], at + 2
        if name is not token and name.kind == "name":
            reason = f"write '{name.text}' alone"
            if token.kind == "name":
                scope = "module" if self._fortran else "namespace"
                reason += f"; DISTRIBUTE stands in the {scope} that declares it"
            raise Wrong(token, reason)

    def _expression(self, colon: bool = False) -> Text:
        """Everything up to a comma, a closing bracket or (unless `colon`) a colon outside of brackets."""
        first, last = self._peek(), None
        open_: list[str] = []
        while True:
            token = self._peek()
            if token.kind == "end" or (token.text == "::" and self._fortran):
                break  # C++ has names with their namespaces
            if token.kind == "mark":
                if token.text in _OPENING:
                    open_.append(_OPENING[token.text])
                elif token.text in _CLOSING:
                    if not open_:
                        break
                    if open_.pop() != token.text:
                        raise Wrong(token, "does not close what is open")
                elif not open_ and (token.text == "," or (token.text == ":" and not colon)):
                    break
                elif token.text in ";{}":
                    raise Wrong(token, "cannot stand in an expression")
            last = self._take()
        if last is None:
            raise Wrong(self._peek(), "must be an expression")
        if open_:
            raise Wrong(self._peek(), f"`{open_[-1]}` is missing before {END}")
        return Text(self._located.text[first.offset : last.end], self._located.position(first.offset))

    def _text(self, token: Token) -> Text:
        return Text(token.text, self._located.position(token.offset))

    # --- tokens -------------------------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _word(self, ahead: int) -> str:
        token = self._tokens[min(self._at + ahead, len(self._tokens) - 1)]
        return token.text.lower() if token.kind == "name" else ""

    def _take(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _mark(self, text: str) -> bool:
        found = self._peek().kind == "mark" and self._peek().text == text
        self._at += found
        return found

    def _keyword(self, word: str) -> bool:
        found = self._word(0) == word
        self._at += found
        return found

    def _expect(self, mark: str) -> None:
        token = self._peek()
        if not self._mark(mark):
            ending = token.kind == "end"
            raise Wrong(token, f"`{mark}` is missing before {END}" if ending else f"must be `{mark}`")

    def _expect_end(self) -> None:
        if self._peek().kind != "end":
            raise Wrong(self._peek(), "the directive should have ended before this")


def _tokenise(text: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise Wrong(Token("mark", text[at], at), "this character has no meaning here")
        kind = found.lastgroup or ""
        if kind != "blank":
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens
