"""Lines are put before and behind code that works on a whole array: does anything else share them?"""

from __future__ import annotations

import re
from collections.abc import Callable

from homing.translate.directives.model import Form
from homing.translate.tree import CASE, Branch, Construct, Loop, Node, Routine, Statement, walk

#: What a statement in C may stand behind, if it is no body without braces.
_BEHIND = re.compile(r"(?:^|[;{}:]|\*/|\n[ \t]*#[^\n]*|//[^\n]*)\s*\Z")


def crowded(routine: Routine, first: Node, last: Node, works_on_parts: Callable[[Node], bool]) -> bool:
    """Would a line before the line of `first`, or behind that of `last`, stand in the wrong place?"""
    source = routine.source
    begin, end = source.line_of(first.begin), source.line_of(max(last.end - 1, last.begin))

    def ends_on(offset: int) -> int:
        return source.line_of(max(offset - 1, 0))

    if source.form is Form.C:
        if not _BEHIND.search(source.text, source.line_start(routine.begin), first.begin):
            return True
        if source.line_of(routine.begin) == begin or ends_on(routine.end) == end:
            return True
    for node in walk(routine.body):
        if first.begin <= node.begin < last.end:
            continue
        around = node.begin < first.begin and last.end <= node.end
        if around and isinstance(node, Loop | Branch | Construct):
            if source.line_of(node.begin) == begin or ends_on(node.end) == end:
                return True
        elif not around:
            before = node.begin < first.begin and ends_on(node.end) == begin
            if before and isinstance(node, Statement) and node.label == CASE:
                return True
            behind = node.begin >= last.end and source.line_of(node.begin) == end
            if (before or behind) and works_on_parts(node):
                return True
    return False
