"""A source file and the changes to it. What is not changed stays byte for byte."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from homing.translate.directives.model import Form
from homing.translate.positions import Position, Problem


@dataclass
class SourceFile:
    """The text of a file; offsets count characters from 0."""

    path: str
    text: str
    form: Form
    fixed_columns: int = 72
    marked: bool = False  # C: it has line markers of ours (Fortran's are always read)
    cxx: bool = False  # form C, and C++
    _starts: list[int] = field(default_factory=list)
    _marks: list[tuple[int, int, str]] = field(default_factory=list)  # line of text, what it says to be

    def __post_init__(self) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        if (self.marked or self.form is not Form.C) and re.search(r'^# \d+ "', self.text, re.MULTILINE):
            for found in re.finditer(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"', self.text, re.MULTILINE):
                name = found[2].replace('\\"', '"').replace("\\\\", "\\")
                self._marks.append((self.line_of(found.start()) + 1, int(found[1]), name))

    def line_of(self, offset: int) -> int:
        """The line, counted from 1."""
        return bisect.bisect_right(self._starts, offset)

    def origin(self, line: int) -> tuple[str, int]:
        """Which file's line the text's line is: with INCLUDE lines and a preprocessor, not the same line."""
        index = bisect.bisect_right(self._marks, (line, 10**9, "")) - 1
        if index < 0:
            return self.path, line
        begin, number, name = self._marks[index]
        return name, number + line - begin

    def user_line(self, offset: int) -> int:
        """The number that the line of an offset has for the user."""
        return self.origin(self.line_of(offset))[1]

    def place(self, offset: int) -> Position:
        """Where the user finds what stands at an offset."""
        place = self.position(offset)
        name, line = self.origin(place.line)
        return Position(name, line, place.column)

    def shown(self, problem: Problem) -> Problem:
        """The problem where the user finds it."""
        place = problem.position
        if place.file != self.path:
            return problem
        name, line = self.origin(place.line)
        return Problem(Position(name, line, place.column), problem.text, problem.reason)

    def line_start(self, offset: int) -> int:
        """Where the line of this offset begins."""
        return self._starts[self.line_of(offset) - 1]

    def next_line(self, offset: int) -> int:
        """Where the line after that of this offset begins (or the end of the text)."""
        line = self.line_of(offset)
        return self._starts[line] if line < len(self._starts) else len(self.text)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position, both counted from 1."""
        return self._starts[min(line, len(self._starts)) - 1] + column - 1

    def position(self, offset: int) -> Position:
        line = self.line_of(offset)
        return Position(self.path, line, offset - self._starts[line - 1] + 1)

    def indent(self, offset: int) -> str:
        """The blanks that the line of this offset begins with."""
        start = self.line_start(offset)
        match = re.compile(r"[ \t]*").match(self.text, start)
        return match.group() if match else ""

    def problem(self, begin: int, end: int, reason: str) -> Problem:
        """Something wrong with a piece of the text."""
        text = self.text[begin:end]
        if len(text) > 120:
            text = text[:117] + "..."
        return Problem(self.position(begin), text, reason)


class Plainer(Exception):
    """There are plainer words: the file is to be read once more, with these."""

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source.path)
        self.source = source


@dataclass(frozen=True)
class Move:
    """Lines that stand elsewhere in the new text: instead of them `instead`, around them head and tail."""

    begin: int
    end: int
    to: int
    instead: list[str]
    head: list[str]
    tail: list[str]


class Edits:
    """Changes to a file, in any order; they must not overlap."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._replaced: dict[int, tuple[int, str]] = {}
        self._before: dict[int, list[str]] = {}
        self._moves: dict[int, Move] = {}
        self._late: list[Callable[[], str]] = []

    def late(self, text: Callable[[], str]) -> str:
        """What stands in an inserted line for text that is known when all is."""
        self._late.append(text)
        return f"\x03{len(self._late) - 1}\x04"

    def _known(self, line: str) -> str:
        return re.sub(r"\x03(\d+)\x04", lambda match: self._late[int(match[1])](), line)

    @property
    def any(self) -> bool:
        return bool(self._replaced or self._before or self._moves)

    def replace(self, begin: int, end: int, text: str) -> None:
        """Put text in place of the characters from begin up to end. The same change twice is one."""
        self._replaced[begin] = (end, text)

    def insert_lines(self, offset: int, lines: list[str], first: bool = False) -> None:
        """Put whole lines before the line that begins at `offset`; the end of the text is such a line,
        too."""
        if not lines:
            return
        at = self._before.setdefault(offset, [])
        if first:
            at[:0] = lines
        else:
            at.extend(lines)

    def lines_before(self, offset: int) -> list[str]:
        """What is inserted before the line that begins at `offset`."""
        return list(self._before.get(offset, ()))

    def move_lines(self, move: Move) -> None:
        """Take whole lines to before the line that begins at `to`, with what changes inside them; lines that
        are inserted before the first of them or behind the last stay where they are."""
        self._moves[move.begin] = move

    def texts(self, begin: int, end: int) -> Iterator[str]:
        """What is put into a range of the text."""
        for at, (_, text) in self._replaced.items():
            if begin <= at < end:
                yield text
        for at, lines in self._before.items():
            if begin <= at <= end:
                yield from lines

    def covered(self, begin: int, end: int) -> bool:
        """Is some character of the range replaced already?"""
        return any(b < end and begin < e for b, (e, _) in self._replaced.items())

    def changed(self, begin: int, end: int) -> str:
        """The lines of this range with what changes inside them, and with markers."""
        return self._piece(begin, end, ()).replace("\x01", "").replace("\x02", "")

    def take(self, begin: int, end: int) -> str:
        """The text of a range with what changes inside it, which is forgotten: it goes elsewhere."""
        text = self.changed(begin, end)
        for at in [at for at in self._replaced if begin <= at < end]:
            del self._replaced[at]
        return text

    def apply(self, statement_lines: Sequence[int]) -> str:
        """The new text. statement_lines: ascending offsets of lines at which a statement begins; there, and
        around inserted lines, markers tell the compiler where the user's line stands."""
        length = len(self.source.text)
        text = _rewrap(self._piece(0, length, statement_lines, whole=True), self.source)
        return _C_MARKER.sub(r"#line \1", text) if self.source.form is Form.C else text

    def _marker(self, offset: int) -> str:
        path, line = self.source.origin(self.source.line_of(offset))
        name = path.replace("\\", "\\\\").replace('"', '\\"')
        return f'# {line} "{name}"{self._newline()}'

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.source.text else "\n"

    def _inserted(self, lines: Sequence[str]) -> str:
        return "".join(
            piece + self._newline() for line in lines for piece in wrap(self._known(line), self.source)
        )

    def _piece(self, begin: int, stop: int, statement_lines: Sequence[int], whole: bool = False) -> str:
        """The new text of a range of lines, and (whole) what is inserted before and behind it."""
        text = self.source.text
        newline = self._newline()
        out: list[str] = []
        at = begin
        moved = False  # the compiler counts lines wrongly since a change

        def copy(end: int) -> None:
            nonlocal at, moved
            if moved:
                index = bisect.bisect_left(statement_lines, at)
                if index < len(statement_lines) and statement_lines[index] < end:
                    line = statement_lines[index]
                    out.append(text[at:line] + self._marker(line))
                    at, moved = line, False
            out.append(text[at:end])
            at = end

        arrivals: dict[int, list[Move]] = {}
        for move in self._moves.values() if whole else ():
            arrivals.setdefault(move.to, []).append(move)
        left = begin  # behind the lines that were moved away last
        for event in sorted({*self._replaced, *self._before, *arrivals, *(self._moves if whole else ())}):
            if event < left or not (whole or begin <= event < stop):
                continue
            if event < at:
                raise AssertionError(f"overlapping changes at {self.source.position(event)}")
            copy(event)
            lines = self._before.get(event) if whole or event > begin else None
            if (lines or event in arrivals) and event == len(text) and text and not text.endswith("\n"):
                out.append(newline)
            if lines:
                out.append(self._marker(event) + self._inserted(lines) + self._marker(event))
                moved = False
            for move in sorted(arrivals.get(event, ()), key=lambda move: move.begin):
                marker = self._marker(move.begin)
                inside = self._piece(move.begin, move.end, statement_lines)
                out += [marker, self._inserted(move.head), marker, inside, self._inserted(move.tail)]
                out.append(self._marker(event))
                moved = False
            if whole and event in self._moves:
                move = self._moves[event]
                out += [self._marker(event), self._inserted(move.instead), self._marker(move.end)]
                at = left = move.end
                moved = False
            elif event in self._replaced:
                end, new = self._replaced[event]
                out.append("\x01" + new.replace("\n", newline) + "\x02")
                moved |= new.count("\n") != text.count("\n", event, end)
                at = end
        copy(stop)
        return "".join(out)


_MARKER = re.compile(r'# (\d+) (".*")')
#: In C as its standard has it, for -pedantic-errors.
_C_MARKER = re.compile(r'^# (\d+ "(?:[^"\\\n]|\\.)*")(?=\r?$)', re.MULTILINE)


def _rewrap(text: str, source: SourceFile) -> str:
    """Takes the marks of changed places out, and breaks changed lines that became too long."""
    if "\x01" not in text:
        return text
    lines = []
    number, name = 1, '"' + source.path + '"'
    for line in re.split(r"(?<=\n)", text):
        marked = _MARKER.match(line)
        if marked:
            number, name = int(marked[1]), marked[2]
            lines.append(line)
            continue
        changed = "\x01" in line or "\x02" in line
        clean = line.replace("\x01", "").replace("\x02", "")
        number += 1
        if changed:
            code = clean.rstrip("\r\n")
            ending = clean[len(code) :]
            pieces = wrap(code, source)
            clean = (ending or "\n").join(pieces) + ending
            if len(pieces) > 1 and not code.rstrip().endswith("&") and source.form is Form.FREE:
                clean += f"# {number} {name}{ending}"
        lines.append(clean)
    return "".join(lines)


_BREAK = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z0-9_.%]+|::|=>|\*\*|//|==|/=|<=|>=|\s+|.""")


def wrap(line: str, source: SourceFile) -> list[str]:
    """A line of code, broken where the source form asks for it. OpenMP directives keep their sentinel."""
    if source.form is Form.C:
        return [line]
    fixed = source.form is Form.FIXED
    limit = source.fixed_columns or 10**6 if fixed else 120
    if len(line) <= (limit if fixed else 132):
        return [line]
    stripped = line.lstrip()
    directive = re.match(r"[!cC*]\$(omp|OMP)\b", stripped)
    if (stripped[:1] == "!" and not directive) or (fixed and line[:1] in "cC*" and not directive):
        return [line]
    if fixed:
        head, body = (line[:6], line[6:]) if not directive else (f"{stripped[:5]} ", stripped[6:])
        more = "     &" if not directive else f"{stripped[:5]}&"
        tail = ""
    else:
        indent = line[: len(line) - len(stripped)]
        head, body = (
            (indent, stripped) if not directive else (f"{indent}{stripped[:5]} ", stripped[5:].lstrip())
        )
        more = f"{indent}    & " if not directive else f"{indent}{stripped[:5]}& "
        tail = " &"
    pieces: list[str] = []
    current = head
    room = limit - len(tail)
    for token in _BREAK.findall(body):
        if len(current) + len(token) > room:
            begin = more if pieces else head
            if current.strip() in ("", begin.strip()):
                current = begin  # what is far to the right goes to the left
            else:
                pieces.append(current.rstrip() + tail if not fixed else current)
                current = more
                if token.isspace():
                    continue
        current += token
    pieces.append(current)
    return pieces
