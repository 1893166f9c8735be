"""The guest's CPUs are threads of QEMU, and here each gets the same share of the host.

Where they outnumber the host's CPUs, a scheduler that moves them about lets some run half as fast again as
others, for seconds (measured: of four on two CPUs, two did 40 % more work). Fixed places are not enough, for
the host's CPUs differ in speed, too (by 8 % at rest, by more where others use the same cores). Then a load
that is balanced in the guest is not, and locality queues rightly steal. So all change places in turn.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

#: What QEMU calls a guest's CPU with -name ...,debug-threads=on.
_NAME = re.compile(r"CPU (\d+)/TCG")

#: Seconds between changes of places: many in a second, and a hundred times what a cold cache costs.
_TURN = 0.05


def even_shares(vcpus: int, host: Sequence[int], turn: int = 0) -> list[int]:
    """The host's CPU for each of the guest's in the turn of this number, or nothing where places help nobody.

    With as many CPUs as the guest has, each runs at full speed anyway (and a second guest's would be sent to
    the same ones); where the numbers do not divide, places would be unequal.
    """
    if vcpus <= len(host) or vcpus % len(host) != 0:
        return []
    return [host[(number + turn) % len(host)] for number in range(vcpus)]


class Turns:
    """Until stopped, the CPUs of a guest (process `qemu`) change places. It never fails: it only helps."""

    def __init__(self, qemu: int, vcpus: int) -> None:
        self._host = sorted(os.sched_getaffinity(0))
        self._vcpus = vcpus
        self._threads = threads(qemu) if even_shares(vcpus, self._host) else []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._change, name="guest's CPUs", daemon=True)
        if self._threads:
            self._place(0)
            self._thread.start()

    def stop(self) -> None:
        """Safe at any moment, more than once."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _change(self) -> None:
        turn = 1
        while not self._end.wait(_TURN) and self._place(turn):
            turn += 1

    def _place(self, turn: int) -> int:
        """How many were placed."""
        places = even_shares(self._vcpus, self._host, turn)
        placed = 0
        for number, thread in self._threads:
            try:
                os.sched_setaffinity(thread, {places[number]})
                placed += 1
            except OSError:
                continue
        return placed


def threads(qemu: int) -> list[tuple[int, int]]:
    """The guest's CPUs: number and thread."""
    found = []
    try:
        for folder in Path(f"/proc/{qemu}/task").iterdir():
            if name := _NAME.fullmatch((folder / "comm").read_text().strip()):
                found.append((int(name[1]), int(folder.name)))
    except OSError:
        return []
    return found
