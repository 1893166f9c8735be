"""Statements of Fortran that may go on at several labels (READ with END= and ERR=, calls with alternate
returns, computed GOTO, arithmetic IF) and leave code that works on gathered arrays: each label outside gets
one behind the statement in its place, where the arrays are dealt out before the jump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set

from homing.translate.code_text import blanked, condition_of_if
from homing.translate.targets.routine import Work
from homing.translate.tree import Kind, Loop, Statement, walk

_NUMBER = re.compile(r"\d+")
_OF_IO = re.compile(r"[(,]\s*(?:e\s*r\s*r|e\s*n\s*d|e\s*o\s*r)\s*=\s*(\d+)(?=\s*[,)])", re.IGNORECASE)
_OF_CALL = re.compile(r"[(,]\s*\*\s*(\d+)(?=\s*[,)])")
_OF_GOTO = re.compile(r"\bgo\s*to\s*(?:\(([\d\s,]+)\)|(\d+)\s*$)", re.IGNORECASE)


def redirected(work: Work, one: Statement, outside: Set[str], lines: Callable[[], list[str]]) -> bool:
    """Put the lines before each way from the statement to a label outside. False: where these are named
    cannot be told, or the statement ends a loop."""
    places = list(_labels(one))
    ends_loop = any(isinstance(loop, Loop) and loop.label == one.label for loop in walk(work.routine.body))
    found = {one.code[begin:end] for begin, end in places}
    if not outside or not outside <= found or (one.label and ends_loop):
        return False
    behind = work.spare_label()
    taken: dict[str, str] = {}
    for begin, end in places:
        label = one.code[begin:end]
        if label in outside:
            taken[label] = taken.get(label) or work.spare_label()
            work.writer.edits.replace(one.places[begin], one.places[end - 1] + 1, taken[label])
    work.after(one.end, [f"goto {behind}"], one.begin)
    for label, instead in taken.items():
        _labelled(work, one, instead)
        work.after(one.end, [*lines(), f"goto {label}"], one.begin)
    _labelled(work, one, behind)
    return True


def _labels(one: Statement) -> Iterator[tuple[int, int]]:
    """Where the labels stand in the statement's code."""
    code = blanked(one.code, True, "'")
    if one.form == "arithmetic if":
        yield from (found.span() for found in _NUMBER.finditer(code, condition_of_if(code)[1]))
    elif one.jump == "goto":
        for found in _OF_GOTO.finditer(code):
            group = 1 if found[1] else 2
            yield from (each.span() for each in _NUMBER.finditer(code, *found.span(group)))
    else:
        pattern = _OF_CALL if one.kind is Kind.CALL else _OF_IO
        yield from (found.span(1) for found in pattern.finditer(code))


def _labelled(work: Work, one: Statement, label: str) -> None:
    at = work.source.next_line(max(one.end - 1, 0))
    work.writer.edits.insert_lines(at, [f"{label:<5} continue"])
