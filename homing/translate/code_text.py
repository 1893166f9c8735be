"""Code as text: what of it is code, and which brackets belong together. Strings and comments are blanked
first: a bracket in them is none."""

from __future__ import annotations

import re

_NO_CODE = {
    True: re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|![^\n]*"""),
    False: re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*""", re.DOTALL),
}


def blanked(text: str, fortran: bool, blank: str) -> str:
    """The text with `blank` for each character of its strings and comments; lines end where they did."""
    return _NO_CODE[fortran].sub(lambda match: re.sub(r"[^\n]", blank, match[0]), text)


def closing(code: str, at: int) -> int:
    """Behind the bracket that closes the one before `at`; the end where none does."""
    depth = 1
    while depth and at < len(code):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        at += 1
    return at


def outside_brackets(code: str, chars: str) -> bool:
    """Does one of the characters stand outside of all brackets?"""
    depth = 0
    for char in code:
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in chars:
            return True
    return False
