"""Where something stands in the user's sources, and what is wrong there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from homing.errors import UserError


@dataclass(frozen=True, order=True)
class Position:
    """A place in a source file; line and column count from 1, a tab is one column."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Text:
    """The user's own text, such as an expression, and where it begins."""

    text: str
    position: Position

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name(Text):
    """An identifier. `key` is what names are compared by: lower case in Fortran, as written in C."""

    key: str


@dataclass(frozen=True, order=True)
class Problem:
    """What cannot be translated (or, as a note, what is ignored): the place, the text and the reason."""

    position: Position
    text: str
    reason: str

    def __str__(self) -> str:
        shown = " ".join(self.text.split())
        return f"{self.position}: {self.reason}" + (f": {shown}" if shown else "")


class TranslationError(UserError):
    """The problems that keep a translation from being written, in the order of the sources."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("; ".join(str(problem) for problem in self.problems))


@dataclass
class Findings:
    """What a pass over the directives of one kind found wrong, and what it has to say."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
