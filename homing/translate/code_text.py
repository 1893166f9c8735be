"""Code as text: what of it is code, and which brackets belong together. Strings and comments are blanked
first: a bracket in them is none."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Where a text changes, and into what.
Edit = tuple[int, int, str]

_NO_CODE = {
    True: re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|![^\n]*"""),
    # Raw texts of C++ end at their own marks; a quote behind a digit (1'000) begins no character.
    False: re.compile(
        r"""\b(?:u8|[uUL])?R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\])*"|"""
        r"""(?:\bu8|(?<![0-9]))'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*""",
        re.DOTALL,
    ),
}
_IF = re.compile(r"\s*if\s*\(", re.IGNORECASE)
_VARIABLE = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_COMPONENT = re.compile(r"\s*[.%]\s*[A-Za-z_]\w*\s*")


def blanked(text: str, fortran: bool, blank: str) -> str:
    """The text with `blank` for each character of its strings and comments; lines end where they did."""
    return _NO_CODE[fortran].sub(lambda match: re.sub(r"[^\n]", blank, match[0]), text)


def without_comments(text: str) -> str:
    """C: the text with a blank for each comment."""
    return _NO_CODE[False].sub(lambda match: " " if match[0].startswith("/") else match[0], text)


def edited(text: str, edits: Iterable[Edit]) -> str | None:
    """The text with its changes; None: there are none, or one lies inside another."""
    out, at = [], 0
    for begin, end, new in sorted(set(edits)):
        if begin < at:
            return None
        out += [text[at:begin], new]
        at = end
    return "".join([*out, text[at:]]) if out else None


def unused_name(stem: str, words: set[str]) -> str:
    """The stem with the first number that makes it none of the words, which it is from now on."""
    number = 1
    while (made := f"{stem}_{number}") in words:
        number += 1
    words.add(made)
    return made


def closing(code: str, at: int) -> int:
    """Behind the bracket that closes the one before `at`; the end where none does."""
    depth = 1
    while depth and at < len(code):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        at += 1
    return at


def condition_of_if(code: str) -> tuple[int, int]:
    """Fortran: where the condition of the IF that begins the code stands, without its brackets; (0, 0) where
    there is no IF."""
    begin = _IF.match(code)
    return (begin.end(), closing(code, begin.end()) - 1) if begin else (0, 0)


def outside_brackets(code: str, chars: str) -> bool:
    """Does one of the characters stand outside of all brackets?"""
    depth = 0
    for char in code:
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in chars:
            return True
    return False


def leading_variable(text: str) -> tuple[str, str, str]:
    """The variable at the beginning of a text, with its subscripts, without them, and what follows."""
    named = _VARIABLE.match(text)
    if named is None:
        return "", "", text
    at = named.end()
    while at < len(text) and text[at] in "([":
        at = closing(text, at + 1)
    return "".join(text[:at].split()), named[1], text[at:]


def leading_component(text: str) -> tuple[str, str, str]:
    """leading_variable, with the components behind it (`best.at`, `best%at`)."""
    target, name, rest = leading_variable(text)
    while name and (more := _COMPONENT.match(rest)):
        at = more.end()
        while at < len(rest) and rest[at] in "([":
            at = closing(rest, at + 1)
        target, rest = target + "".join(rest[:at].split()), rest[at:]
    return target, name, rest
