"""Runs on a machine that others use, too: how much of the CPUs they had meanwhile, and a load of our own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from homing.errors import UserError

#: The fields of /proc/stat's first line in which a CPU worked, or its host did: user, nice, system, irq,
#: softirq, steal.
_BUSY = (0, 1, 2, 5, 6, 7)

#: A run during which others had more of the CPUs is disturbed.
MOST_OF_OTHERS = 0.02
_TRIES = 3

T = TypeVar("T")

Timed = tuple[float, float]  # seconds that passed, seconds of processor time


def timed(command: Sequence[str], variables: dict[str, str]) -> Timed:
    """Run a command that prints nothing that matters. UserError where it fails."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    passed, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise UserError(f"{' '.join(command)} ended with {done.returncode}", 1)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return passed, worked


def busy_seconds(text: str) -> float:
    """From the text of /proc/stat."""
    words = text.splitlines()[0].split()[1:]
    return sum(int(words[at]) for at in _BUSY if at < len(words)) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    total = 0.0
    for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def others_share(run: Callable[[], T]) -> tuple[T, float]:
    """What `run` gives, which waits for its children, and the share of all CPUs that others had meanwhile."""
    stat = Path("/proc/stat")
    begin, busy, own = time.monotonic(), busy_seconds(stat.read_text()), _own_seconds()
    found = run()
    busy = busy_seconds(stat.read_text()) - busy
    elapsed = max(time.monotonic() - begin, 1e-9) * (os.cpu_count() or 1)
    return found, max(0.0, (busy - (_own_seconds() - own)) / elapsed)


def undisturbed(run: Callable[[], T]) -> tuple[T, float]:
    """others_share, again where others had too much of the CPUs, and what they had in the last one."""
    for _ in range(_TRIES):
        found, others = others_share(run)
        if others <= MOST_OF_OTHERS:
            break
    return found, others


def kept_alone(runs: Sequence[tuple[T, float]]) -> list[T]:
    """What the runs gave that others left alone; of all where there is none."""
    quiet = [value for value, others in runs if others <= MOST_OF_OTHERS]
    return quiet or [value for value, _ in runs]


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that compute all the time."""
    command = [sys.executable, "-c", "while True: pass"]
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.kill)
        yield
