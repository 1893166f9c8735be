"""Lines and tables of text for terminals and files. A library for terminals takes longer to import than a
summary takes to print."""

from __future__ import annotations

import os

from homing.values import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TextIO

#: ANSI's numbers for the words of a style.
_CODES = {"bold": "1", "dim": "2", "yellow": "33"}


class Text:
    """A text of parts, each with a style: words of _CODES, or none."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.parts = [(text, style)] if text else []

    @classmethod
    def assemble(cls, *parts: str | Text | tuple[str, str]) -> Text:
        """The parts, one after the other."""
        whole = cls()
        for part in parts:
            if isinstance(part, Text):
                whole.parts += part.parts
            else:
                whole.append(*((part, "") if isinstance(part, str) else part))
        return whole

    def append(self, text: str, style: str = "") -> None:
        if text:
            self.parts.append((text, style))

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.parts)

    def __str__(self) -> str:
        return self.plain

    def __bool__(self) -> bool:
        return bool(self.parts)

    def cut(self, begin: int, end: int) -> Text:
        """The characters from begin to end."""
        whole, at = Text(), 0
        for text, style in self.parts:
            whole.append(text[max(0, begin - at) : max(0, end - at)], style)
            at += len(text)
        return whole

    def split(self, mark: str) -> list[Text]:
        """As str.split."""
        lines, at = [], 0
        for line in self.plain.split(mark):
            lines.append(self.cut(at, at + len(line)))
            at += len(line) + len(mark)
        return lines

    def shown(self, styled: bool) -> str:
        """For a terminal that knows styles, or plain."""
        if not styled:
            return self.plain
        return "".join(_styled(text, style) for text, style in self.parts)


def _styled(text: str, style: str) -> str:
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def labelled(label: str, text: str, style: str = "") -> Text:
    """A line of a report: the label in its column, and what it says."""
    return Text.assemble((f"{label:<11}", "dim"), (text, style))


def cell_len(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(letter) for letter in text)


def _cells(letter: str) -> int:
    if letter.isascii():
        return 1
    import unicodedata  # most summaries are ASCII

    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def folded(text: Text, width: int) -> list[Text]:
    """Lines of at most `width` cells, broken between words where that is possible. Nothing is lost."""
    found = []
    for line in text.split("\n"):
        if cell_len(line.plain) <= width:
            found.append(line)
            continue
        begin = at = cells = 0
        for whole in _words(line.plain):
            bare = cell_len(whole.rstrip())
            if cells and cells + bare > width:
                found.append(line.cut(begin, at))
                begin, cells = at, 0
            for letter in whole:
                size = _cells(letter)
                if cells + size > width and not letter.isspace():
                    found.append(line.cut(begin, at))
                    begin, cells = at, 0
                at += 1
                cells += size
        found.append(line.cut(begin, at))
    return [_without_end(one) for one in found]


def _words(text: str) -> Iterator[str]:
    """The words of a text with the spaces behind them, the first one also with those before it."""
    spaces = [letter.isspace() for letter in text]
    begin = 0
    while begin < len(text):
        first = spaces.index(False, begin) if False in spaces[begin:] else len(text)
        last = spaces.index(True, first) if True in spaces[first:] else len(text)
        end = spaces.index(False, last) if False in spaces[last:] else len(text)
        yield text[begin:end]
        begin = end


def _without_end(line: Text) -> Text:
    return line.cut(0, len(line.plain.rstrip()))


@dataclass
class Table:
    """Columns of the given widths, with `gap` spaces between them; headers are bold."""

    gap: int
    headers: list[str] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    rows: list[list[str | Text]] = field(default_factory=list)

    def add_column(self, header: str, width: int, right: bool) -> None:
        self.headers.append(header)
        self.widths.append(width)
        self.right.append(right)

    def lines(self) -> Iterable[Text]:
        """Headers stand at the bottom of their lines, cells at the top."""
        heads = self._folded([Text(header, "bold") for header in self.headers])
        most = max((len(head) for head in heads), default=0)
        yield from self._row([[Text()] * (most - len(head)) + head for head in heads])
        for row in self.rows:
            cells = [Text(cell) if isinstance(cell, str) else cell for cell in row]
            yield from self._row(self._folded(cells))

    def _folded(self, cells: list[Text]) -> list[list[Text]]:
        return [folded(cell, width) for cell, width in zip(cells, self.widths, strict=True)]

    def _row(self, cells: list[list[Text]]) -> Iterable[Text]:
        for number in range(max((len(cell) for cell in cells), default=0)):
            line = Text()
            for at, (cell, width, right) in enumerate(zip(cells, self.widths, self.right, strict=True)):
                text = cell[number] if number < len(cell) else Text()
                room = " " * (width - cell_len(text.plain))
                gap = " " * self.gap if at else ""
                line = Text.assemble(line, gap + (room if right else ""), text, "" if right else room)
            yield _without_end(line)


def terminal_width(file: TextIO, environment: Mapping[str, str]) -> int:
    """Of the terminal that the file is; COLUMNS is stronger."""
    stated = environment.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and int(stated[:9]) > 0:
        return int(stated[:9])
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def knows_styles(file: TextIO, environment: Mapping[str, str]) -> bool:
    """Is the file a terminal whose user wants styles? NO_COLOR (https://no-color.org) switches them off."""
    dumb = environment.get("TERM", "") in ("dumb", "unknown")
    return file.isatty() and not dumb and not environment.get("NO_COLOR")
