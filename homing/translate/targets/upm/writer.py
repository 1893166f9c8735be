"""Puts calls into one file, in its language and its form."""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.directives.model import Form
from homing.translate.source import Edits, SourceFile, wrap
from homing.translate.tree import Branch, Construct, Loop, Node, Routine, walk


class FileWriter:
    """Inserts lines where the program's own statements stand."""

    def __init__(self, source: SourceFile, edits: Edits, header: str = "homing/homing.h") -> None:
        self.source = source
        self.edits = edits
        self.in_c = source.form is Form.C
        include = f"#include <{header}>"
        if self.in_c and header and include not in edits.lines_before(0):
            edits.insert_lines(0, [include], first=True)

    def call(self, text: str) -> str:
        return f"{text};" if self.in_c else f"call {text}"

    def put(self, offset: int, texts: Sequence[str], like: int, first: bool = False) -> None:
        """Lines before the one at `offset`, indented like another; directives as the form asks for."""
        indent = self.source.indent(like)
        if self.source.form is Form.FIXED:
            indent = " " * max(6, len(indent.expandtabs()))
        lines = []
        for text in texts:
            outermost = text.startswith("#") or (self.source.form is Form.FIXED and text.startswith("!$"))
            lines += wrap(text if outermost else indent + text, self.source)
        self.edits.insert_lines(offset, lines, first)

    def around(
        self, routine: Routine, first: Node, last: Node, before: Sequence[str], behind: Sequence[str]
    ) -> None:
        """C: what may be the one statement of an `if` or a loop gets braces around it and the lines."""
        like = _indented(first)
        alone = self.in_c and _alone(routine, first)
        self.put(self.source.line_start(first.begin), [*(["{"] if alone else []), *before], like)
        if alone or behind:
            end = self.source.next_line(max(last.end - 1, last.begin))
            self.put(end, [*behind, *(["}"] if alone else [])], like, first=True)

    def _braced(self, loop: Loop) -> bool:
        """Is the body one in braces, and not those of a construct on it?"""
        return self.source.text[loop.body_begin] == "{" and loop.body[0].begin > loop.body_begin

    def at_begin(self, loop: Loop, lines: Sequence[str]) -> None:
        """Before the first statement of a loop's body, to which at_end adds braces where it has none."""
        if not self.in_c:
            self.put(loop.body_begin, lines, _indented(loop.body[0]))
        elif self._braced(loop):
            at = loop.body_begin + 1
            self.edits.replace(at, at, " " + " ".join(lines))
        else:
            at = loop.body[0].begin
            self.edits.replace(at, at, "{ " + " ".join(lines) + " ")

    def at_end(self, loop: Loop, lines: Sequence[str], opened: bool = False) -> None:
        """Behind the last statement of the loop's body. opened: at_begin was there."""
        source, text = self.source, self.source.text
        like = _indented(loop.body[0])
        if not self.in_c:
            self.put(source.line_start(loop.end_begin), lines, like)
            return
        if not self._braced(loop):
            begin = loop.body[0].begin
            if not opened and source.line_of(begin) == source.line_of(loop.begin):
                self.edits.replace(begin, begin, "{ ")
            elif not opened:
                self.put(source.line_start(begin), ["{"], loop.begin)
            if loop.end_begin < loop.end:  # `do x(); while (y);`
                self.edits.replace(loop.end_begin, loop.end_begin, "\n" + "\n".join([*lines, "} "]))
            else:
                self.put(source.next_line(loop.end - 1), [*lines, "}"], like, first=True)
            return
        end = text.rindex("}", loop.body_begin, loop.end_begin)
        if text[source.line_start(end) : end].strip():  # the line ends more than the body
            self.edits.replace(end, end, "\n" + "\n".join(lines) + "\n")
        elif lines:
            self.put(source.line_start(end), lines, like)


def _indented(node: Node) -> int:
    """Where the first statement stands: C's directives begin further left."""
    while isinstance(node, Construct) and node.body:
        node = node.body[0]
    return node.begin


def _alone(routine: Routine, node: Node) -> bool:
    for parent in walk(routine.body):
        bodies = (
            [body for _, body in parent.arms] if isinstance(parent, Branch) and parent.conditional else []
        )
        if isinstance(parent, Loop):
            bodies = [parent.body]
        if any(len(body) == 1 and body[0] is node for body in bodies):
            return True
    return False
