"""The guest's CPUs are threads of QEMU, and here each gets the same share of the host.

Where they outnumber the host's CPUs, a scheduler that moves them about lets some run half as fast again as
others, for seconds (measured: of four on two CPUs, two did 40 % more work). Then a load that is balanced in
the guest is not, and locality queues rightly steal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

#: What QEMU calls a guest's CPU with -name ...,debug-threads=on.
_NAME = re.compile(r"CPU (\d+)/TCG")


def even_shares(vcpus: int, host: Sequence[int]) -> list[int]:
    """The host's CPU for each of the guest's, or nothing where fixed places help nobody.

    With as many CPUs as the guest has, each runs at full speed anyway (and a second guest's would be fixed to
    the same ones); where the numbers do not divide, fixed places would be unequal.
    """
    if vcpus <= len(host) or vcpus % len(host) != 0:
        return []
    return [host[number % len(host)] for number in range(vcpus)]


def share_evenly(qemu: int, vcpus: int) -> int:
    """Binds the CPUs of a guest that runs as process `qemu`; returns how many. Never fails: it only helps."""
    places = even_shares(vcpus, sorted(os.sched_getaffinity(0)))
    bound = 0
    for number, thread in threads(qemu) if places else ():
        try:
            os.sched_setaffinity(thread, {places[number]})
            bound += 1
        except OSError:
            continue
    return bound


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
