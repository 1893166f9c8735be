"""What takes long says how far it is: one line that is written again on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from homing.progress import duration

_QUIET_SECONDS = 10.0  # between two plain lines of the same stage


class Progress:
    """Progress over steps whose shares of the work are known only roughly (`weights`)."""

    def __init__(self, title: str, weights: list[float], file: TextIO | None = None) -> None:
        self._title = title
        self._weights = weights
        self._file = file or sys.stderr
        self._terminal = self._file.isatty()
        self._done = 0
        self._begin = time.monotonic()
        self._skipped = 0.0
        self._last = -_QUIET_SECONDS
        self._width = 0

    def step(self, text: str) -> None:
        """The next step begins; what it does."""
        self._write(text, always=True)

    def note(self, text: str) -> None:
        """Within a step."""
        self._write(text, always=False)

    def finished(self, skipped: bool = False) -> None:
        """The step has ended. `skipped`: it took no time, because its result was there already."""
        if self._done < len(self._weights):
            if skipped:
                self._skipped += self._weights[self._done]
            self._done += 1

    def close(self) -> None:
        """Leave the terminal's line."""
        if self._terminal and self._width:
            self._file.write("\r" + " " * self._width + "\r")
            self._file.flush()
            self._width = 0

    @property
    def seconds_left(self) -> float | None:
        """An estimate from what has been done; None while nothing has."""
        done = sum(self._weights[: self._done]) - self._skipped
        if done <= 0:
            return None
        return (time.monotonic() - self._begin) / done * sum(self._weights[self._done :])

    def _write(self, text: str, always: bool) -> None:
        now = time.monotonic()
        if not self._terminal and not always and now - self._last < _QUIET_SECONDS:
            return
        self._last = now
        left = self.seconds_left
        ending = "" if left is None else f", {duration(left)} left"
        line = f"{self._title}: {min(self._done + 1, len(self._weights))}/{len(self._weights)} {text}{ending}"
        if self._terminal:
            line = line[:118]
            self._file.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._file.write(line + "\n")
        self._file.flush()
