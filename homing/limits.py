"""A limit for work on input whose size says nothing about the time that it takes: damaged debug information,
sources made to be hard."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

#: Readers that catch everything get the exception again after so many seconds.
_AGAIN_SECONDS = 1.0


class TimeUp(BaseException):
    """The work took too long. Not an Exception: readers catch those where input is damaged, and go on."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """TimeUp in the block after so many seconds. No limit in threads other than the main one, where Python
    handles no signals. Within another limit, the one that ends first counts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeUp

    left, _ = signal.getitimer(signal.ITIMER_REAL)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left or seconds), _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # of the one around it
            signal.setitimer(signal.ITIMER_REAL, left, _AGAIN_SECONDS)
