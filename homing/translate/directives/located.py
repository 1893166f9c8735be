"""A directive's text without comments and line ends, where each character still knows its place."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from homing.translate.positions import Position


@dataclass
class Located:
    """Text put together from pieces of lines. Only grows at its end."""

    file: str
    text: str = ""
    _starts: list[int] = field(default_factory=list)
    _places: list[tuple[int, int]] = field(default_factory=list)  # line, column of each start

    def add(self, piece: str, line: int, column: int) -> None:
        """Append characters that stand side by side from this place on."""
        if piece:
            self._starts.append(len(self.text))
            self._places.append((line, column))
            self.text += piece

    def separate(self) -> None:
        """Append a blank that stands nowhere, as between two lines."""
        self.text += " "

    def position(self, offset: int) -> Position:
        """Where a character stands; of the end of the text, the place behind its last character."""
        if not self._starts:
            return Position(self.file, 1, 1)
        end = len(self.text.rstrip())
        return self.position_behind(end) if offset >= end else self._place(offset)

    def position_behind(self, end: int) -> Position:
        """The place behind the character before `end`."""
        place = self._place(max(end - 1, 0))
        return Position(self.file, place.line, place.column + 1)

    def part(self, begin: int, end: int) -> Located:
        """The characters from begin up to end, each with its place."""
        result = Located(self.file)
        for start, stop, (line, column) in zip(
            self._starts, [*self._starts[1:], len(self.text)], self._places, strict=True
        ):
            low, high = max(start, begin), min(stop, end)
            if low < high:
                result.add(self.text[low:high], line, column + low - start)
        return result

    def after(self, begin: int) -> Located:
        """The characters from begin on."""
        return self.part(begin, len(self.text))

    def _place(self, offset: int) -> Position:
        piece = max(bisect.bisect_right(self._starts, offset) - 1, 0)
        line, column = self._places[piece]
        return Position(self.file, line, column + offset - self._starts[piece])
