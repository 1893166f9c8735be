"""Signals that come while the lab works: kept in order, and taken where something can be done about them.

Nothing is torn away in the middle: a guest that runs a command passes them on to it, a guest that boots ends.
"""

from __future__ import annotations

import collections
import signal
import threading
from types import FrameType, TracebackType

#: They end a program that does not care about them.
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_OTHERS = (signal.SIGUSR1, signal.SIGUSR2)
#: A terminal sends them to all processes of the command, not to its first one alone.
TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)


class Interrupts:
    """While it is entered, signals are kept. One that was ignored stays so (nohup); outside the main thread
    none comes."""

    def __init__(self) -> None:
        self._came: collections.deque[signal.Signals] = collections.deque()
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (*ENDING, *_OTHERS):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._keep)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._came.append(signal.Signals(number))

    def take(self) -> signal.Signals | None:
        """The next one that came."""
        return self._came.popleft() if self._came else None

    def take_ending(self) -> signal.Signals | None:
        """The next one that ends a program, where there is none to be told of the others."""
        while (number := self.take()) is not None:
            if number in ENDING:
                return number
        return None
