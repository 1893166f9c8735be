"""A Fortran statement's tokens: what they are is decided by their letters alone, never by a list of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$))
    |(?P<number>\d+\.?\d*(?:[edED][+-]?\d+)?(?:_\w+)?(?![A-Za-z])|\.\d+(?:[edED][+-]?\d+)?(?:_\w+)?|\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator>\.[A-Za-z]+\.|\*\*|//|==|/=|<=|>=|=>|::|\(/(?!=)|/\)|.))""",
    re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "(/": "/)"}
_CLOSING = frozenset(_OPENING.values())


@dataclass(frozen=True)
class Token:
    """begin and end count characters of the statement."""

    kind: str  # string, number, name, operator
    text: str  # in lower case, but for strings
    begin: int
    end: int


def tokens(code: str) -> list[Token]:
    """All tokens of a statement. `3.eq.x` is `3`, `.eq.`, `x`."""
    found = []
    at = 0
    while at < len(code):
        match = _TOKEN.match(code, at)
        if match is None:
            break
        kind = match.lastgroup or "operator"
        text, begin, end = match[kind], match.start(kind), match.end(kind)
        if kind == "number" and text.endswith(".") and re.match(r"[A-Za-z]+\.", code[end:]):
            text, end = text[:-1], end - 1
        found.append(Token(kind, text if kind == "string" else text.lower(), begin, end))
        at = end
    return found


def closing(words: list[Token], at: int) -> int:
    """The index of the bracket that closes the one at `at`; the number of tokens where none does."""
    depth = 0
    for index in range(at, len(words)):
        if words[index].kind == "operator":
            if words[index].text in _OPENING:
                depth += 1
            elif words[index].text in _CLOSING:
                depth -= 1
                if depth == 0:
                    return index
    return len(words)


def parts(words: list[Token], begin: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The stretches of words[begin:end] between separators outside brackets."""
    found = []
    start, at = begin, begin
    while at < end:
        word = words[at]
        if word.kind == "operator":
            if word.text in _OPENING:
                at = closing(words, at)
            elif word.text == separator:
                found.append((start, at))
                start = at + 1
        at += 1
    if start < end or found:
        found.append((start, end))
    return found


def outside(words: list[Token], begin: int, end: int) -> Iterator[int]:
    """The indices of words[begin:end] outside brackets, these included."""
    at = begin
    while at < end:
        yield at
        opens = words[at].kind == "operator" and words[at].text in _OPENING
        at = closing(words, at) if opens else at + 1


def without_strings(code: str, words: list[Token]) -> str:
    """The statement, with a 0 for each character inside a string, and a ? for each that is not ASCII."""
    if not any(word.kind == "string" for word in words):
        return code if code.isascii() else re.sub(r"[^\x00-\x7f]", "?", code)
    text = list(code)
    for word in words:
        if word.kind == "string" and word.end - word.begin > 2:
            text[word.begin + 1 : word.end - 1] = "0" * (word.end - word.begin - 2)
    return re.sub(r"[^\x00-\x7f]", "?", "".join(text))
