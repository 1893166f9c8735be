"""Signals that come while the lab works: kept in order, and taken where something can be done about them.

Nothing is torn away in the middle: a guest that runs a command passes them on to it, a guest that boots ends.
"""

from __future__ import annotations

import collections
import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

from .errors import LabInterrupted

#: They end a program that does not care about them.
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_OTHERS = (signal.SIGUSR1, signal.SIGUSR2)
#: A terminal sends them to all processes of the command, not to its first one alone.
TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)
# Seconds for a killed command to be gone and its files written; then the guest ends with it.
_KILL_TIMEOUT = 30.0


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


class Passed:
    """The signals that a step has passed on to its command, through QEMU's stdin."""

    def __init__(self, qemu: subprocess.Popen[bytes] | None, step: int) -> None:
        self._line = None if qemu is None else qemu.stdin
        self._step = step
        self._ending: list[signal.Signals] = []
        self._killed_at = 0.0

    def pass_on(self, interrupts: Interrupts, tell: Callable[[str], None]) -> None:
        """What has come since. LabInterrupted where the guest does not obey, or need not be waited for."""
        while (number := interrupts.take()) is not None:
            if number in ENDING:
                self._ending.append(number)
            if len(self._ending) > 2:
                raise LabInterrupted(number, "interrupted three times: the guest was ended at once")
            if len(self._ending) == 2 and number in ENDING:
                tell("interrupted again: the command is killed")
                self._killed_at = time.monotonic()
                self._send("KILL", "group")
            else:
                self._send(number.name.removeprefix("SIG"), "group" if number in TO_THE_GROUP else "first")
        if self._killed_at and time.monotonic() - self._killed_at > _KILL_TIMEOUT:
            raise LabInterrupted(
                self._ending[-1], f"the guest did not end its command in {_KILL_TIMEOUT:g} s: it was ended"
            )

    def _send(self, name: str, whom: str) -> None:
        if self._line is not None:
            with contextlib.suppress(OSError):  # QEMU has ended: that is reported elsewhere
                self._line.write(f"{self._step} {name} {whom}\n".encode())
                self._line.flush()

    def status(self, status: int) -> int:
        """The command's, but the signal's where it had to be killed."""
        return 128 + self._ending[-1] if self._killed_at and status == 128 + signal.SIGKILL else status


@contextlib.contextmanager
def no_interrupts() -> Iterator[None]:
    """Holds back the terminal's impatience while things are put away."""
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise LabInterrupted, so that a `with Guest` block ends in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise LabInterrupted(number)

    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
