"""stdout and stderr of the command, which may be closed, full, or a pipe whose reader has gone.

What is said on stderr never decides anything: where it cannot be said, the command goes on. What is printed
on stdout was asked for: where it cannot be printed, that is the user's error message, and the command ends.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from homing.errors import UserError, os_reason
from homing.light import contextmanager, signal, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

#: A shell's status for a command that a missing reader ended.
READER_GONE = 128 + signal.SIGPIPE
#: Not misuse: the command was right, its output is not where it belongs.
OUTPUT_LOST = 1


class OutputError(UserError):
    """Standard output cannot be written. The reader of a pipe who went away (head, less) is no news to
    anybody: no message, and the status of a command that SIGPIPE ended."""

    def __init__(self, error: OSError) -> None:
        gone = error.errno == errno.EPIPE
        message = "" if gone else f"standard output: {os_reason(error)}"
        super().__init__(message, READER_GONE if gone else OUTPUT_LOST)


class _Stream:
    """A text stream whose failures are ours to judge; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except OSError as error:
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.failed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Output(_Stream):
    def _fail(self, error: OSError) -> None:
        super()._fail(error)
        raise OutputError(error) from error


def _closed(flags: int) -> TextIO:
    """Stands for a descriptor that was closed before we began, and lies at its number: a file that we open
    later must not get it. The program does not inherit it. flags: O_WRONLY, or O_RDONLY: writing fails as it
    would on the closed one (EBADF)."""
    raw = io.FileIO(os.open(os.devnull, flags), "w")
    return io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True)


def _put_away(stream: _Stream) -> None:
    """Python writes what is left when it ends, and would change the exit status where it cannot."""
    if not stream.failed:
        return
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.stream.flush()


@contextmanager
def guarded() -> Iterator[None]:
    """sys.stdout and sys.stderr as the head of this file says, inside the block. Its last act must be to
    flush sys.stdout, so that it can still say what could not be printed."""
    before = sys.stdout, sys.stderr
    # Python has None for what was closed; the lower number first, as open() gives them out.
    output = _Output(sys.stdout or _closed(os.O_RDONLY))
    said = _Stream(sys.stderr or _closed(os.O_WRONLY))
    sys.stdout, sys.stderr = output, said
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        _put_away(output)
        _put_away(said)
