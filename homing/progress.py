"""What takes long says so on a terminal: one line with the seconds that passed, and those that are left by
what the same took before. Elsewhere nothing is written."""

from __future__ import annotations

import binascii
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from homing.paths import Cache

#: Seconds before the line appears, and between two of it.
QUIET, _EVERY = 2.0, 0.5
#: What takes so many times as long as before is no longer nearly done.
_LATE = 1.2
#: Columns; longer texts are cut.
_WIDTH = 78
#: Things whose duration is kept; the oldest goes.
_MOST = 200


class Line:
    """Appears below what was printed, and goes before something else is."""

    def __init__(
        self, title: str, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title = title
        self._file = file or sys.stderr
        self._clock = clock
        self._durations = Durations() if self._file.isatty() else None
        self._what = ""
        self._key: tuple[object, ...] = ()
        self._expected: float | None = None
        self._begin = self._next = 0.0
        self._shown = 0  # columns
        self._at_start = True  # is the cursor in the first column?

    def begin(self, what: str, *more: object) -> None:
        """Something begins. It takes as long as it took with the same `more`."""
        self.clear()
        self._what, self._key = what, (what, *more)
        self._expected = self._durations.of(*self._key) if self._durations else None
        self._begin = self._clock()
        self._next = self._begin + QUIET

    def change(self, what: str) -> None:
        """What began has come so far: other words for it, the same time."""
        self._what = what

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """In the block, which may be long in one call and prints nothing, the line follows by itself."""
        if not self._durations or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, lambda *_: self.tick())
        signal.setitimer(signal.ITIMER_REAL, _EVERY, _EVERY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self.clear()

    def tick(self) -> None:
        """It still goes on. Cheap."""
        if not self._durations or not self._what or not self._at_start or self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY
        text = f"{self._title}: {self._what}, {self._time()}"[:_WIDTH]
        self._file.write("\r" + text.ljust(self._shown))
        self._file.flush()
        self._shown = len(text)

    def _time(self) -> str:
        passed = self._clock() - self._begin
        if self._expected is None:
            return duration(passed)
        if passed < _LATE * self._expected:
            return f"{duration(passed)}, about {duration(max(1.0, self._expected - passed))} left"
        return f"{duration(passed)}, longer than the last time ({duration(self._expected)})"

    def clear(self) -> None:
        """Something else is printed now."""
        if self._shown:
            self._file.write("\r" + " " * self._shown + "\r")
            self._file.flush()
            self._shown = 0

    def printed(self, data: bytes) -> None:
        """This was printed: the line waits where it did not end in a new one."""
        self._at_start = data.endswith(b"\n")

    def say(self, text: str) -> None:
        """A line that stays, on a terminal or not."""
        self.clear()
        print(f"{self._title}: {text}", file=self._file, flush=True)

    def end(self, whole: bool = True) -> None:
        """It is over; whole: its time is that of another run."""
        self.clear()
        passed = self._clock() - self._begin
        if whole and self._what and self._durations and passed > QUIET:
            self._durations.keep(passed, *self._key)
        self._what = ""


@contextmanager
def long_step(title: str, what: str, *more: object) -> Iterator[Line]:
    """The block has a line on the terminal while it takes long, as begin() says. It prints nothing itself."""
    line = Line(title)
    line.begin(what, *more)
    with line.ticking():
        yield line
    line.end()


class Durations:
    """What things took the last time, in seconds, in homing's cache."""

    _NAME = "durations.json"

    def __init__(self) -> None:
        self._cache = Cache("lab", quiet=True)
        self._known: dict[str, float] = {}
        try:
            found = json.loads(self._cache.read(self._NAME) or b"{}")
            self._known = {name: float(value) for name, value in found.items()}
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass  # damaged: as if nothing were known

    def of(self, *what: object) -> float | None:
        """None: it was not done before."""
        return self._known.get(_key(what))

    def keep(self, seconds: float, *what: object) -> None:
        """It took so long this time."""
        self._known.pop(_key(what), None)
        self._known[_key(what)] = round(seconds, 1)
        newest = dict(list(self._known.items())[-_MOST:])
        if self._cache.folder:
            self._cache.write(self._NAME, json.dumps(newest).encode())


def _key(what: tuple[object, ...]) -> str:
    return f"{binascii.crc32(repr(what).encode('utf-8', 'replace')):08x}"


def duration(seconds: float) -> str:
    """12 s, 3 min 5 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
