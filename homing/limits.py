"""A limit for work on input whose size says nothing about the time that it takes: damaged debug information,
sources made to be hard."""

from __future__ import annotations

import time

from homing.light import contextmanager, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Readers that catch everything get the exception again after so many seconds of the same time.
_AGAIN_SECONDS = 1.0
#: A timer that came early is set again to no less than this: a setitimer(2) of 0 would switch it off.
_SHORTEST_SECONDS = 0.001


class TimeUp(BaseException):
    """The work took too long, or time passed (`waited`). Not an Exception: readers catch those where input is
    damaged, and go on."""

    def __init__(self, waited: bool) -> None:
        super().__init__()
        self.waited = waited


@contextmanager
def time_limit(work: float, wall: float | None = None) -> Iterator[None]:
    """TimeUp in the block after so many seconds of processor time (`work`), or of time that passes (`wall`,
    where the user's patience counts). A verdict on the input rests on `work` alone: on a busy machine what
    passes says nothing about it. No limit in threads other than the main one, where Python handles no
    signals. Within another limit, the one that ends first counts."""
    with _limit(signal.ITIMER_PROF, signal.SIGPROF, work):
        if wall is None:
            yield
            return
        with _limit(signal.ITIMER_REAL, signal.SIGALRM, wall):
            yield


@contextmanager
def _limit(timer: int, number: signal.Signals, seconds: float) -> Iterator[None]:
    import threading  # no summary needs it

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    clock = time.process_time if timer == signal.ITIMER_PROF else time.monotonic
    left, _ = signal.getitimer(timer)
    seconds = min(seconds, left or seconds)
    end = clock() + seconds

    def stop(*_: Any) -> None:
        # ITIMER_PROF counts whole ticks: one that comes late, as on a virtual machine whose host is busy, is
        # charged to the process that runs then, for all of the time since the last one.
        early = end - clock()
        if early > 0:
            signal.setitimer(timer, max(early, _SHORTEST_SECONDS), _AGAIN_SECONDS)
            return
        raise TimeUp(waited=timer == signal.ITIMER_REAL)

    before = signal.signal(number, stop)
    signal.setitimer(timer, seconds, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
        if left:  # of the one around it
            signal.setitimer(timer, left, _AGAIN_SECONDS)
