"""What the launcher needs to know of a record before a program runs, when NumPy is not imported yet: it would
start a thread for each core."""

from __future__ import annotations

from homing.errors import UserError

MAGIC = b"homing-record "
FORMAT = 1
#: A process at work has reserved so much at a time for rows to come (src/record/record.cpp: piece_bytes).
PIECE_BYTES = 1 << 20


class RecordError(UserError):
    """The file is no record, or nothing in it can be read."""


def printable(text: str) -> str:
    """Without control characters: names come from programs and must not drive a terminal."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else "?" for mark in text)
