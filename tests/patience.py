"""How long a test waits for what never hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds. Two tests failed at 100 and 120 where a machine was so loaded, or halted, that three compilers
#: took longer. No test waits for it unless something hangs.
PATIENCE = 900.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """what: said where it does not come true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)
