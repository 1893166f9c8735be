"""Subscripts and loop bounds as sums of terms: what can be said about an index without running the
program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_KIND = re.compile(r"\b(\d+)_\w+")
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * term. Terms are names, or whole sub-expressions that are no sum of
    names (n/2, mod(i, 2)). names: every name in it, those inside such terms included."""

    constant: int
    terms: tuple[tuple[str, int], ...]
    names: frozenset[str]

    def coefficient(self, name: str) -> int:
        """How much the value grows with the name; 0 where it is none of the terms, or inside another one, too
        (i - mod(i, 4)): then it is hidden."""
        return 0 if self._inside(name) else dict(self.terms).get(name, 0)

    def without(self, name: str) -> Affine:
        """The same without the term `name`."""
        names = self.names if self._inside(name) else self.names - {name}
        return Affine(self.constant, tuple(t for t in self.terms if t[0] != name), names)

    def minus(self, other: Affine) -> int | None:
        """The difference, where it is a number."""
        return self.constant - other.constant if self.terms == other.terms else None

    def follows(self, name: str) -> int | None:
        """c where this is `name + c`."""
        return self.constant if self.terms == ((name, 1),) else None

    def scaled(self, name: str) -> tuple[int, int] | None:
        """f and c where this is `f*name + c`, and grows with the name."""
        factor = self.coefficient(name)
        return (factor, self.constant) if len(self.terms) == 1 and factor > 0 else None

    def hides(self, name: str) -> bool:
        """Is the name inside a term, so that nothing is known about how the value depends on it?"""
        return name in self.names and self.coefficient(name) == 0

    def _inside(self, name: str) -> bool:
        return any(term != name and name in names_in(term) for term, _ in self.terms)


def names_in(text: str) -> frozenset[str]:
    """Every identifier in an expression."""
    return frozenset(_NAME.findall(_KIND.sub(r"\1", text)))


@cache
def affine(text: str) -> Affine:
    """The expression `text` (names already in the form in which they are compared). Never fails: what is not
    understood is one term."""
    clean = _SUFFIX.sub(r"\1", _KIND.sub(r"\1", text))
    names = names_in(text)
    try:
        constant, terms = _Sum(clean).value()
    except (_NotRead, RecursionError):
        return Affine(0, ((" ".join(clean.split()), 1),), names)
    return Affine(constant, tuple(sorted((t, c) for t, c in terms.items() if c)), names)


def is_primary(text: str) -> bool:
    """Is the term a name, or a name with one pair of brackets behind it?"""
    words = _TOKEN.findall(text)
    if not words or not _NAME.fullmatch(words[0]):
        return False
    return len(words) == 1 or (words[1] in _OPENING and _behind(words, 1) == len(words))


class _NotRead(Exception):
    """No sum, product, name or number."""


_TOKEN = re.compile(
    r"""\w*'(?:[^'\\]|\\.)*'|\w*"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d\w*(?:\.\w*)?|\.\d\w*|\.[A-Za-z]+\."""
    r"""|\*\*|//|->|<<|>>|==|/=|!=|<=|>=|&&|\|\||\+\+|--|\S"""
)
_OPENING = {"(": ")", "[": "]"}
_NUMBER = re.compile(r"0|[1-9]\d*|0[xX][0-9a-fA-F]+")


def _behind(words: list[str], at: int) -> int:
    """The index behind the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index] in _OPENING) - (words[index] in _OPENING.values())
        if depth == 0:
            return index + 1
    raise _NotRead


class _Sum:
    """Reads sums of products. What no sum is (a quotient, a power, a function, an element) is one term, whose
    text is the same for the same tokens."""

    def __init__(self, text: str) -> None:
        self.words = _TOKEN.findall(text)
        self.at = 0

    def value(self) -> tuple[int, dict[str, int]]:
        constant, terms = self._sum()
        if self.at < len(self.words):
            raise _NotRead
        return constant, terms

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _sum(self) -> tuple[int, dict[str, int]]:
        constant, terms = 0, dict[str, int]()
        while True:
            sign = 1
            if self._next() in ("+", "-"):
                sign = -1 if self._next() == "-" else 1
                self.at += 1
            more, others = _scaled(*self._product(), sign)
            constant += more
            for term, factor in others.items():
                terms[term] = terms.get(term, 0) + factor
            if self._next() not in ("+", "-"):
                return constant, terms

    def _product(self) -> tuple[int, dict[str, int]]:
        begin = self.at
        constant, terms = self._power()
        while self._next() in ("*", "/", "%"):
            operator = self._next()
            self.at += 1
            more, others = self._power()
            if operator == "*" and not others:
                constant, terms = _scaled(constant, terms, more)
            elif operator == "*" and not terms:
                constant, terms = _scaled(more, others, constant)
            else:
                constant, terms = 0, {self._text(begin): 1}
        return constant, terms

    def _power(self) -> tuple[int, dict[str, int]]:
        begin = self.at
        found = self._primary()
        if self._next() == "**":
            self.at += 1
            if self._next() in ("+", "-"):
                self.at += 1
            self._power()
            return 0, {self._text(begin): 1}
        return found

    def _primary(self) -> tuple[int, dict[str, int]]:
        begin, word = self.at, self._next()
        if word == "(":
            self.at += 1
            found = self._sum()
            if self._next() != ")":
                raise _NotRead
            self.at += 1
            return found
        if _NUMBER.fullmatch(word):
            self.at += 1
            return int(word, 0), {}
        if not _NAME.fullmatch(word):
            raise _NotRead
        self.at += 1
        while self._next() in ("(", "[", ".", "->"):
            self.at = _behind(self.words, self.at) if self._next() in _OPENING else self.at + 2
        return 0, {self._text(begin): 1}

    def _text(self, begin: int) -> str:
        """The tokens up to here, with blanks around operators between two operands and behind commas."""
        text = ""
        operand = False
        for word in self.words[begin : self.at]:
            here = bool(re.match(r"[\w.'\"]", word)) and word != "."
            if word in ("+", "-", "*", "/", "%", "**", "//", "<<", ">>") and operand:
                text += f" {word} "
            elif word == ",":
                text += ", "
            else:
                text += f" {word}" if here and text[-1:].isalnum() else word
            operand = here or word in (")", "]")
        return text


def _scaled(constant: int, terms: dict[str, int], factor: int) -> tuple[int, dict[str, int]]:
    return constant * factor, {term: count * factor for term, count in terms.items()}


def shifted(text: str, by: int) -> str:
    """The expression plus a number, as text that both languages read."""
    if by == 0:
        return text
    value = affine(text)
    if not value.terms:
        return str(value.constant + by)
    simple = re.fullmatch(r"\w+", text.strip())
    inner = text.strip() if simple else f"({text.strip()})"
    if not simple and value.constant and len(value.terms) == 1 and value.terms[0][1] == 1:
        term, total = value.terms[0][0], value.constant + by
        return term if total == 0 else f"{term} {'+' if total > 0 else '-'} {abs(total)}"
    return f"{inner} {'+' if by > 0 else '-'} {abs(by)}"
