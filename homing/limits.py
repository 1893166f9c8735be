"""A limit for work on input whose size says nothing about the time that it takes: damaged debug information,
sources made to be hard."""

from __future__ import annotations

from homing.light import contextmanager, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Readers that catch everything get the exception again after so many seconds of the same time.
_AGAIN_SECONDS = 1.0


class TimeUp(BaseException):
    """The work took too long. Not an Exception: readers catch those where input is damaged, and go on."""


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

    def stop(*_: Any) -> None:
        raise TimeUp

    left, _ = signal.getitimer(timer)
    before = signal.signal(number, stop)
    signal.setitimer(timer, min(seconds, left or seconds), _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
        if left:  # of the one around it
            signal.setitimer(timer, left, _AGAIN_SECONDS)
