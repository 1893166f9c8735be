"""Conditions of C's serial loops and branches that hold parallel code: where one stands, so that it can be
evaluated on gathered arrays in its own place, as often as the program does."""

from __future__ import annotations

import re

from homing.translate.code_text import blanked, closing
from homing.translate.source import SourceFile
from homing.translate.tree import Loop, Node, Statement

_HEAD = re.compile(r"(if|switch|while|for)\s*\(")


def condition(source: SourceFile, node: Node, head: Statement) -> tuple[int, int] | None:
    """Where the condition (of a SWITCH the value) stands; None where it cannot be told: behind a macro, or
    with a directive inside."""
    doing = isinstance(node, Loop) and source.text.startswith("while", node.end_begin)
    begin = node.end_begin if doing and isinstance(node, Loop) else head.begin
    code = blanked(source.text[begin : node.end], False, " ")
    found = _HEAD.match(code)
    if found is None:
        return None
    first, last = found.end(), closing(code, found.end()) - 1
    if found[1] == "for":
        ends = [at for at in range(first, last) if code[at] == ";" and _depth(code[first:at]) == 0]
        if len(ends) != 2:
            return None
        first, last = ends[0] + 1, ends[1]
    return None if "#" in code[first:last] or not code[first:last].strip() else (begin + first, begin + last)


def _depth(code: str) -> int:
    return sum((one in "([{") - (one in ")]}") for one in code)
