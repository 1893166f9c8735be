"""Runs under the kernel's NUMA balancing at a stated rate: so many footprints scanned in an iteration.

The kernel scans by time, and time means nothing in the guest. It counts a thread's run time, slows down where
scans are dear, and scans less once nothing moves any more: so the scan period that gives the rate is searched
for in runs of the first iterations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from homing.bench.guest_runs import Outcome

#: What a run's settings tell besides the kernel's knobs: footprints scanned an iteration, in it and in the
#: run of the first iterations by which its knobs were chosen, and how many those were.
SCANNED = "scanned_footprints_an_iteration"
SCANNED_FIRST = "scanned_footprints_an_iteration_at_first"
FIRST = "first_iterations"
STEP_TIMEOUT = 1200.0

#: A scan of one footprint is cut into so many pieces at least where time allows (into an iteration's each, if
#: that is more), at least two timer ticks apart.
_SCAN_PIECES = 4
_LEAST_MS = 8
#: The rate is that of so many first iterations, in which so many footprints would be scanned: later the
#: kernel scans less, for nothing moves any more.
_LEAST_FIRST = 12
_FIRST_FOOTPRINTS = 2
#: Runs of the first iterations under one setting at the most, and how near to its rate is near enough (a
#: factor).
_TRIES = 6
_NEAR = 1.2


class Runs(Protocol):
    """Runs commands in a guest (guest_runs.GuestRuns)."""

    def run(
        self,
        name: str,
        command: Sequence[str],
        *,
        homing: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **settings: Any,
    ) -> Outcome: ...

    def vmstat(self, name: str) -> int: ...


def balancing_settings(footprints: float, iteration_seconds: float, footprint_bytes: int) -> dict[str, int]:
    """The kernel's knobs for so many footprints scanned in an iteration.

    The kernel spreads one scan of a process's resident memory over scan_period_min_ms of a thread's run time,
    in pieces of scan_size_mb; minimum and maximum are the same so that it does not adapt. A piece is no more
    than what is to be scanned in an iteration, however short the period: all at once, and then nothing for
    many iterations, is another rate.
    """
    least = math.ceil(1 / footprints)
    scan_ms = max(least * _LEAST_MS, round(1000 * iteration_seconds / footprints))
    pieces = min(max(_SCAN_PIECES, least), scan_ms // _LEAST_MS)
    size = max(1, math.ceil(footprint_bytes / pieces / 2**20))
    pieces = max(1, math.ceil(footprint_bytes / size / 2**20))
    return {
        "numa_balancing": 1,
        "scan_period_min_ms": scan_ms,
        "scan_period_max_ms": scan_ms,
        "scan_size_mb": size,
        "scan_delay_ms": max(1, scan_ms // pieces),
    }


@dataclass
class PeriodSearch:
    """Finds the correction of a scan period at which the kernel scans at the rate wanted (ratio 1)."""

    correction: float = 1.0
    too_slow: float = math.inf  #: the least correction (period) that scanned too little
    too_fast: float = 0.0  #: the greatest that scanned too much

    def next(self, ratio: float) -> bool:
        """Take in what the present correction gave; False where there is nothing left to try."""
        if ratio < 1:
            self.too_slow = min(self.too_slow, self.correction)
        else:
            self.too_fast = max(self.too_fast, self.correction)
        before = self.correction
        if self.too_fast > 0 and self.too_slow < math.inf:
            self.correction = math.sqrt(self.too_fast * self.too_slow)
        else:
            self.correction *= min(max(ratio, 0.05), 20.0)
        return not math.isclose(self.correction, before, rel_tol=0.02)


def run_at_rate(
    runs: Runs, name: str, words: Sequence[str], footprints: float, plain: Outcome, first: Sequence[str] = ()
) -> Outcome:
    """A run of which so many `footprints` are scanned in an iteration.

    plain: the run without balancing, which tells how long an iteration takes. first: the command for few
    iterations; without it, `words` with fewer of them.
    """
    count = max(_LEAST_FIRST, round(_FIRST_FOOTPRINTS / footprints))
    tried, correction = _search(runs, name, first or shortened(words, count), footprints, plain)
    found = _run_corrected(runs, name, words, footprints, plain, correction)
    found.settings[FIRST] = tried.output.count
    found.settings[SCANNED_FIRST] = tried.settings[SCANNED]
    return found


def run_scanned(
    runs: Runs,
    name: str,
    words: Sequence[str],
    plain: Outcome,
    knobs: Mapping[str, Any],
    homing: Mapping[str, str] | None = None,
) -> Outcome:
    """A run with these knobs, and how much the kernel scanned in it."""
    before = runs.vmstat("numa_pte_updates")
    found = runs.run(name, words, homing=homing, timeout=STEP_TIMEOUT, **knobs)
    updates = runs.vmstat("numa_pte_updates") - before
    # Memory is scanned during initialisation, too: take the share of the iterations in the run's time.
    share = found.output.total / max(found.seconds, found.output.total)
    found.settings[SCANNED] = 4096 * updates / plain.output.bytes * share / found.output.count
    return found


def knobs_of(found: Outcome) -> dict[str, Any]:
    """The kernel's knobs under which this was found."""
    told = (SCANNED, SCANNED_FIRST, FIRST)
    return {knob: value for knob, value in found.settings.items() if knob not in told}


def describe_rate(found: Outcome) -> str:
    """The knobs of a run at a rate, and what was scanned."""
    knobs = found.settings
    return (
        f"scan_size {knobs['scan_size_mb']} MB, period {knobs['scan_period_min_ms']} ms: "
        f"{knobs[SCANNED_FIRST]:.2g} footprints an iteration were scanned in runs of the first "
        f"{knobs[FIRST]} iterations, {knobs[SCANNED]:.2g} in this run"
    )


def _search(
    runs: Runs, name: str, words: Sequence[str], footprints: float, plain: Outcome
) -> tuple[Outcome, float]:
    """The run whose scan rate comes nearest, and its period's correction."""
    search = PeriodSearch()
    best: tuple[float, Outcome, float] | None = None
    for _ in range(_TRIES):
        tried = _run_corrected(runs, name, words, footprints, plain, search.correction)
        ratio = max(tried.settings[SCANNED], 1e-6) / footprints
        if best is None or abs(math.log(ratio)) < best[0]:
            best = (abs(math.log(ratio)), tried, search.correction)
        if best[0] <= math.log(_NEAR) or not search.next(ratio):
            break
    assert best is not None
    return best[1], best[2]


def _run_corrected(
    runs: Runs, name: str, words: Sequence[str], footprints: float, plain: Outcome, correction: float
) -> Outcome:
    """correction: of the period, for the rate that is wanted."""
    knobs = balancing_settings(footprints, plain.output.median * correction, plain.output.bytes)
    return run_scanned(runs, name, words, plain, knobs)


def shortened(words: Sequence[str], iterations: int) -> list[str]:
    """The command with fewer iterations."""
    if "--iterations" not in words:
        return [*words, "--iterations", str(iterations)]
    at = list(words).index("--iterations") + 1
    return [*words[:at], str(min(int(words[at]), iterations)), *words[at + 1 :]]
