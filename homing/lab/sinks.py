"""Where the output of a guest's command goes while it runs."""

from __future__ import annotations

import os
from typing import Protocol

from homing.progress import Line
from homing.streams import OutputError

_CHUNK = 1 << 20


class Sink(Protocol):
    """Where a command's output goes while it runs."""

    def write(self, data: bytes, /) -> object: ...


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def forward(source: Readable, sink: Sink, line: Line) -> bool:
    """Passes on what was written since; False if there was nothing."""
    data = source.read(_CHUNK)
    if data:
        line.clear()
        sink.write(data)
        line.printed(data)
    return bool(data)


class Descriptor:
    """A sink that writes through to a file descriptor of ours.

    Where that fails (a full disk, a closed descriptor) the command runs on, as its exit status is worth more,
    and `error` says so. OutputError where the reader of stdout has gone: on the host that ends programs, too.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.error: OSError | None = None

    def write(self, data: bytes, /) -> None:
        view = memoryview(data)
        try:
            while view and self.error is None:
                view = view[os.write(self.descriptor, view) :]
        except OSError as error:
            if isinstance(error, BrokenPipeError) and self.descriptor == 1:
                raise OutputError(error) from error
            self.error = error
