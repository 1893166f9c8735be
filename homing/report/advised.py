"""A change of the program, or of how it is started, as reports tell it."""

from __future__ import annotations

from homing.report.words import percent
from homing.values import dataclass

#: A remote share below this is not worth a change of the program.
LITTLE = 0.05
#: A change that brings less of the run's remote share is not told.
LEAST_GAIN = 0.01
#: Owners that are believed with less are not advised.
SURE = 0.9


@dataclass(frozen=True)
class Gain:
    """The remote share of the run's touches without the change, and with it."""

    before: float
    after: float

    @property
    def words(self) -> str:
        """In per cent, with an arrow."""
        return f"{percent(self.before)} -> {percent(self.after)} remote"


@dataclass(frozen=True)
class Advice:
    """A thing to do, what it rests on, and the area (by its number in the report) that it is about. kind: a
    word for programs. gain: None where it is no share of touches that changes; the evidence has the number
    then."""

    kind: str
    text: str
    evidence: str
    area: int | None = None
    gain: Gain | None = None
    file: str = ""
    line: int = 0

    @property
    def words(self) -> str:
        """All of it on one line."""
        expected = f" Expected: {self.gain.words}." if self.gain is not None else ""
        return f"{self.text}{expected} {self.evidence}"
