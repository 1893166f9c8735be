"""Fortran statements taken apart into names, subscripts and lists: no more grammar than accesses need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from homing.translate.tree import Access, Bound, Reference, Subscript

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<number>\d+\.?\d*(?:[edED][+-]?\d+)?(?:_\w+)?(?![A-Za-z])|\.\d+(?:[edED][+-]?\d+)?(?:_\w+)?)
    |(?P<name>[A-Za-z]\w*)
    |(?P<operator>\.[A-Za-z]+\.|\*\*|//|==|/=|<=|>=|=>|::|\(/|/\)|.))""",
    re.VERBOSE,
)
INTRINSICS = frozenset(
    [
        "abs",
        "achar",
        "acos",
        "aint",
        "all",
        "anint",
        "any",
        "asin",
        "atan",
        "atan2",
        "ceiling",
        "char",
        "cmplx",
        "conjg",
        "cos",
        "cosh",
        "count",
        "cshift",
        "dabs",
        "dble",
        "dcos",
        "dexp",
        "dim",
        "dlog",
        "dmax1",
        "dmin1",
        "dot_product",
        "dsin",
        "dsqrt",
        "eoshift",
        "epsilon",
        "exp",
        "exponent",
        "float",
        "floor",
        "fraction",
        "huge",
        "iachar",
        "iand",
        "ichar",
        "ieor",
        "int",
        "ior",
        "kind",
        "lbound",
        "len",
        "log",
        "log10",
        "logical",
        "matmul",
        "max",
        "maxloc",
        "maxval",
        "merge",
        "min",
        "minloc",
        "minval",
        "mod",
        "modulo",
        "nint",
        "norm2",
        "not",
        "pack",
        "product",
        "real",
        "reshape",
        "scale",
        "selected_int_kind",
        "selected_real_kind",
        "shape",
        "sign",
        "sin",
        "sinh",
        "size",
        "spread",
        "sqrt",
        "storage_size",
        "sum",
        "tan",
        "tanh",
        "tiny",
        "transfer",
        "transpose",
        "trim",
        "ubound",
        "unpack",
        "ieee_is_nan",
        "isnan",
        "is_contiguous",
        "allocated",
        "associated",
        "present",
        "c_loc",
        "loc",
        "hypot",
    ]
)
#: Functions of an array's shape; they read no element.
INQUIRIES = frozenset({"size", "lbound", "ubound", "shape", "storage_size", "kind", "allocated", "present"})


@dataclass
class Token:
    kind: str
    text: str
    begin: int
    end: int


def tokens(code: str) -> list[Token]:
    """The words of a statement; begin and end count characters of `code`."""
    found = []
    at = 0
    while at < len(code):
        match = _TOKEN.match(code, at)
        if match is None:
            break
        kind = match.lastgroup or "operator"
        found.append(Token(kind, match[kind], match.start(kind), match.end(kind)))
        at = match.end()
    return found


def closing(words: list[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at` (or the last word)."""
    depth = 0
    for index in range(at, len(words)):
        if words[index].text in ("(", "[", "(/"):
            depth += 1
        elif words[index].text in (")", "]", "/)"):
            depth -= 1
            if depth == 0:
                return index
    return len(words) - 1


def top_level(words: list[Token], begin: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The stretches of words[begin:end] between separators outside brackets."""
    parts = []
    start, at = begin, begin
    while at < end:
        if words[at].text in ("(", "[", "(/"):
            at = closing(words, at)
        elif words[at].text == separator:
            parts.append((start, at))
            start = at + 1
        at += 1
    if start < end or parts:
        parts.append((start, end))
    return parts


class Words:
    """A statement's words with their places in the file."""

    def __init__(self, code: str, places: list[int]) -> None:
        self.code = code
        self.places = places
        self.words = tokens(code)

    def place(self, index: int) -> int:
        """Offset of a word in the file."""
        return self.places[self.words[index].begin]

    def place_end(self, index: int) -> int:
        """Offset behind a word."""
        return self.places[self.words[index].end - 1] + 1

    def text(self, begin: int, end: int) -> str:
        """words[begin:end], normalised."""
        if begin >= end:
            return ""
        return self.code[self.words[begin].begin : self.words[end - 1].end].lower()

    def subscript(self, begin: int, end: int) -> Subscript:
        """The subscript words[begin:end]."""
        if begin >= end:
            place = self.place_end(begin - 1)
            return Subscript(place, place, "")
        made = Subscript(self.place(begin), self.place_end(end - 1), self.text(begin, end))
        parts = top_level(self.words, begin, end, ":")
        if len(parts) > 1:
            made.section = True
            made.low = self.text(*parts[0]) or None
            made.high = self.text(*parts[1]) or None
            if len(parts) > 2:
                made.step = self.text(*parts[2])
        return made

    def designator(self, at: int) -> tuple[Reference, int]:
        """The name at `at` with its subscripts as a reference, and the index behind it."""
        word = self.words[at]
        after = at + 1
        subscripts = None
        if after < len(self.words) and self.words[after].text == "(":
            stop = closing(self.words, after)
            subscripts = [self.subscript(*part) for part in top_level(self.words, after + 1, stop, ",")]
            after = stop + 1
        reference = Reference(
            word.text.lower(),
            self.place(at),
            self.place_end(at),
            self.place_end(after - 1),
            subscripts,
            Access.READ,
        )
        return reference, after

    def reads(self, begin: int, end: int) -> Iterator[Reference]:
        """Every name in words[begin:end] that is not a keyword or component; names in subscripts as well."""
        at = begin
        while at < end:
            word = self.words[at]
            if word.kind != "name" or (at > 0 and self.words[at - 1].text == "%"):
                at += 1
                continue
            if at + 1 < end and self.words[at + 1].text == "=" and at > begin:
                at += 2  # keyword = value
                continue
            reference, after = self.designator(at)
            after = min(after, end)
            yield reference
            if after > at + 1:
                yield from self.arguments(reference.name, at + 2, after - 1)
            at = after

    def arguments(self, name: str, begin: int, end: int) -> Iterator[Reference]:
        """The names in the list words[begin:end] of a function or array; bare ones know whose they are."""
        for index, (first, last) in enumerate(top_level(self.words, begin, end, ",")):
            if first + 1 < last and self.words[first].kind == "name" and self.words[first + 1].text == "=":
                first += 2
            for reference in self.reads(first, last):
                whole = self.place(first) == reference.begin and self.place_end(last - 1) == reference.end
                if whole and name not in INTRINSICS:
                    reference.argument_of = name
                    reference.argument_index = index
                elif whole and name in INQUIRIES:
                    reference.argument_of = name
                yield reference


def bounds(words: Words, begin: int, end: int) -> list[Bound]:
    """The array specification words[begin:end], without its brackets."""
    made = []
    for first, last in top_level(words.words, begin, end, ","):
        parts = top_level(words.words, first, last, ":")
        if len(parts) == 1:
            text = words.text(first, last)
            made.append(Bound("1", None if text == "*" else text))
            continue
        low, high = words.text(*parts[0]), words.text(*parts[1])
        made.append(Bound(low or "1", high if high and high != "*" else None, deferred=not high))
    return made
