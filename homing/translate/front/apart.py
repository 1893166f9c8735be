"""Statements apart: whatever shares its line with something that lines are put around gets a line of its own.

The translation puts lines before and behind loops. Where one stands on a line with something else, the line
is broken first, into what the user could have written; each character keeps its column, and markers
(# 12 "x.c") keep its line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.directives.model import Form
from homing.translate.front import lines
from homing.translate.front.expand import marker
from homing.translate.source import SourceFile
from homing.translate.tree import Construct, Loop, Unit, walk

_LOOP = re.compile(r"(for|while|do)\b")
#: What may stand behind the end of a loop on its last line.
_NOTHING_BEHIND = re.compile(r"[ \t]*(//.*|/\*[^\n]*\*/[ \t]*)?\r?$", re.MULTILINE)


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
            breaks.append((semicolon, semicolon + 1))
    return _broken(source, breaks)


def c_apart(unit: Unit) -> SourceFile | None:
    """C with each loop on lines of its own; None: they are, as far as lines can be broken here."""
    source, text = unit.source, unit.source.text
    breaks = set()
    for routine in unit.routines:
        for node in walk(routine.body):
            if not isinstance(node, Loop | Construct):
                continue
            before = text[source.line_start(node.begin) : node.begin]
            written = _LOOP.match(text, node.begin) is not None
            if isinstance(node, Loop) and written and before.strip() and before.lstrip()[:1] != "#":
                breaks.add((node.begin, node.begin))
            closed = text[node.end - 1 : node.end] in (";", "}")
            if closed and not _NOTHING_BEHIND.match(text, node.end):
                breaks.add((node.end, node.end))
    return _broken(source, sorted(breaks))


def _broken(source: SourceFile, breaks: Sequence[tuple[int, int]]) -> SourceFile | None:
    """The source with new lines in place of these ranges."""
    if not breaks:
        return None
    text, out, at = source.text, [], 0
    newline = "\r\n" if "\r\n" in text else "\n"
    for begin, end in breaks:
        path, line = source.origin(source.line_of(begin))
        blank = re.sub(r"[^\t]", " ", text[source.line_start(begin) : end])
        out += [text[at:begin], newline, marker(line, path), newline, blank]
        at = end
    made = "".join([*out, text[at:]])
    return SourceFile(source.path, made, source.form, source.fixed_columns, marked=True, cxx=source.cxx)
