"""Statements apart: whatever shares its line with something that lines are put around gets a line of its own.

The translation puts lines before and behind loops. Where one stands on a line with something else, the line
is broken first, into what the user could have written; each character keeps its column, and markers
(# 12 "x.c") keep its line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homing.translate.directives.model import Form
from homing.translate.front import lines
from homing.translate.front.expand import marker
from homing.translate.source import SourceFile
from homing.translate.tree import Construct, Kind, Loop, Routine, Statement, Unit, walk

_LOOP = re.compile(r"(for|while|do)\b")
_SEMICOLON = re.compile(r"\s*;")
#: What may stand behind the end of a loop on its last line.
_NOTHING_BEHIND = re.compile(r"[ \t]*(//.*|/\*[^\n]*\*/[ \t]*)?\r?$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class _Break:
    """A range of the text that a new line takes the place of; what is put before and behind that."""

    begin: int
    end: int
    before: str = ""
    behind: str = ""


def fortran_apart(source: SourceFile) -> SourceFile | None:
    """Fortran with one statement a line; None: it has."""
    if source.form is Form.C or ";" not in source.text:
        return None
    breaks = []
    for line in lines.split(source):
        start = source.line_start(line.begin)
        semicolon = source.text.rfind(";", start, line.begin)
        if line.openmp or line.alone or semicolon < 0:
            continue
        between = source.text[semicolon + 1 : line.begin].strip()
        if not between or (between == line.label and source.form is Form.FREE):
            breaks.append(_Break(semicolon, semicolon + 1))
    return _broken(source, breaks)


def c_apart(unit: Unit) -> SourceFile | None:
    """C with loops, allocations, jumps, calls of the file's functions and the braces of functions on lines
    of their own; None: they are, as far as lines can be broken here."""
    breaks: set[int] = set()
    functions = {routine.name for routine in unit.routines if not routine.module}
    commas: list[_Break] = []
    for routine in unit.routines:
        if not routine.module:
            breaks |= _braces(routine)
        for node in walk(routine.body):
            if isinstance(node, Loop | Construct):
                breaks |= _loop_breaks(unit.source, node)
            elif isinstance(node, Statement) and node.commas:
                commas += _comma_breaks(unit.source, node)
            elif isinstance(node, Statement) and _alone(node, functions):
                breaks |= _statement_breaks(unit.source, node)
    breaks -= {place for one in commas for place in (one.begin, one.end)}
    return _broken(unit.source, sorted([*(_Break(one, one) for one in breaks), *commas]))


def _alone(node: Statement, functions: set[str]) -> bool:
    """Is it one that may be translated otherwise than what stands beside it?"""
    if node.kind in (Kind.ALLOCATE, Kind.DEALLOCATE, Kind.JUMP):
        return True
    return any(name in functions or name.startswith("*") for name in node.calls)


def _braces(routine: Routine) -> set[int]:
    """Behind the brace that a function's body begins with, and before the one that ends it."""
    text, found = routine.source.text, set[int]()
    begin, end = text.find("{", routine.arguments_end, routine.end), routine.end - 1
    if begin < 0 or text[end : end + 1] != "}" or not any(True for _ in walk(routine.body)):
        return found
    if not _NOTHING_BEHIND.match(text, begin + 1):
        found.add(begin + 1)
    if text[routine.source.line_start(end) : end].strip():
        found.add(end)
    return found


def _loop_breaks(source: SourceFile, node: Loop | Construct) -> set[int]:
    text, found = source.text, set[int]()
    before = text[source.line_start(node.begin) : node.begin].strip()
    written = _LOOP.match(text, node.begin) is not None
    if isinstance(node, Loop) and written and before and not before.startswith("#"):
        found.add(node.begin)
    end = node.end
    if text[end - 1 : end] != ";":  # a body without braces may end before its semicolon, also with a brace
        behind = _SEMICOLON.match(text, end)
        if behind is None and text[end - 1 : end] != "}":
            return found
        end = behind.end() if behind is not None else end
    if not _NOTHING_BEHIND.match(text, end):
        found.add(end)
    return found


def _statement_breaks(source: SourceFile, node: Statement) -> set[int]:
    text, found = source.text, set[int]()
    before = text[source.line_start(node.begin) : node.begin].rstrip()
    if before.endswith((";", "{", "}")) and not before.lstrip().startswith("#"):
        found.add(node.begin)
    end = node.end
    if text[end - 1 : end] != ";":
        behind = _SEMICOLON.match(text, end)
        if behind is None:
            return set()
        end = behind.end()
    if not _NOTHING_BEHIND.match(text, end):
        found.add(end)
    return found


def _comma_breaks(source: SourceFile, node: Statement) -> list[_Break]:
    """`free(a), free(b);` as statements in braces, each on a line of its own."""
    behind = _SEMICOLON.match(source.text, node.end)
    if behind is None:
        return []
    end = behind.end()
    found = [_Break(node.begin, node.begin, "{"), *(_Break(one, one + 1, ";") for one in node.commas)]
    found.append(_Break(end - 1, end, ";", "}"))
    if not _NOTHING_BEHIND.match(source.text, end):
        found.append(_Break(end, end))
    return found


def _broken(source: SourceFile, breaks: Sequence[_Break]) -> SourceFile | None:
    """The source with new lines in place of these ranges."""
    if not breaks:
        return None
    text, out, at = source.text, [], 0
    newline = "\r\n" if "\r\n" in text else "\n"
    for one in breaks:
        path, line = source.origin(source.line_of(one.begin))
        blank = re.sub(r"[^\t]", " ", text[source.line_start(one.begin) : one.end])
        out += [text[at : one.begin], one.before, newline, marker(line, path), newline, blank, one.behind]
        at = one.end
    made = "".join([*out, text[at:]])
    return SourceFile(source.path, made, source.form, source.fixed_columns, marked=True, cxx=source.cxx)
