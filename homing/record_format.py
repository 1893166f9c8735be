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


#: The names of files by how they are shown; empty where two are shown alike.
_named: dict[str, str] = {}


def shown(name: str) -> str:
    """How the name of a file is shown, which may be no UTF-8 (surrogateescape) and hold any character."""
    text = printable(name)
    if text != name and _named.setdefault(text, name) != name:
        _named[text] = ""
    return text


def named(text: str) -> str:
    """The name of the file that is shown so, to open it."""
    return _named.get(text) or text


def printable(text: str) -> str:
    """Without control characters: names come from programs and must not drive a terminal."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else "?" for mark in text)
