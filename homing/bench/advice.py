"""Is the advice right? Programs of apps/patterns/ that one thread initialises run in the guest under homing,
whose advice says what initialisation in parallel brings; what it brings is counted where they run so."""

from __future__ import annotations

import glob
import math
import os
from dataclasses import asdict, dataclass
from typing import Any

from homing.bench.compared import PLAIN, Case
from homing.bench.guest_runs import GuestRuns
from homing.bench.patterns import PATTERNS, cases_of
from homing.bench.places import kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, content_key
from homing.installation import find_library
from homing.lab.built import find_built
from homing.records import Record
from homing.report.advised import Advice
from homing.report.recommend import advice_for
from homing.report.results import read_results

#: Prediction and count differ by no more (of one).
WITHIN = 0.05
REQUIRED, OF = 15, 20
#: Iterations, without the initialisation: touches are sampled there.
_ITERATIONS = (2, 3)
_TIMEOUT = 600.0


@dataclass(frozen=True)
class Checked:
    """A pattern: the remote share that the advice promises (NaN: it gives none), what it says the share is
    now, what is counted of the program as it is, and of the one that follows the advice."""

    name: str
    now: float
    promised: float
    counted_before: float
    counted_after: float
    text: str

    @property
    def right(self) -> bool:
        """Does the change bring what was said? No advice is right where the change brings nothing."""
        if math.isnan(self.promised):
            return self.counted_before - self.counted_after <= WITHIN
        return abs(self.promised - self.counted_after) <= WITHIN


class AdvisedRuns(GuestRuns):
    """Runs whose advice is kept."""

    advice: list[Advice]

    def _record(self, pattern: str) -> Record:
        paths = glob.glob(pattern.replace("%p", "*"))
        (process,) = read_results(paths, strict=True).processes
        self.advice = advice_for(process)
        os.unlink(paths[0])
        return process.record


def run(results: Results) -> None:
    """Adds rows and the check."""
    key = {
        "library": content_key(find_library()),
        "counter": content_key(str(find_built("libhoming_counter_plugin.so"))),
    }
    parts = Parts(kept_folder() / "advice.json", key)
    cases = {case.name: case for case in cases_of(list(PATTERNS), "small")}
    names = [name for name in PATTERNS if parts.get(name) is None]
    found = [Checked(**kept) for name in PATTERNS if (kept := parts.get(name)) is not None]
    progress = Progress("advice", [1.0] * len(names))
    try:
        if names:
            progress.step("booting the guest")
            with AdvisedRuns() as runs:
                for name in names:
                    progress.step(name)
                    one = _measure(runs, name, cases)
                    parts.put(name, asdict(one))
                    found.append(one)
                    progress.finished()
    finally:
        progress.close()
    add_rows(results, found)


def _measure(runs: AdvisedRuns, name: str, cases: dict[str, Case]) -> Checked:
    serial, parallel = cases[f"{name}.serial"], cases[f"{name}.parallel"]
    # The whole run is observed, and homing moves what it finds: its pages at the end are what it promises.
    runs.run(f"{name}.advised", serial.command, homing={"HOMING_REFERENCES": "windows"}, timeout=_TIMEOUT)
    advice = runs.advice
    plain = runs.run(f"{name}.serial.{PLAIN}", serial.command, timeout=_TIMEOUT)
    followed = runs.run(f"{name}.parallel.{PLAIN}", parallel.command, timeout=_TIMEOUT)
    best = promise(advice)
    return Checked(
        name,
        best.gain.before if best is not None and best.gain is not None else math.nan,
        best.gain.after if best is not None and best.gain is not None else math.nan,
        plain.remote_fraction(_ITERATIONS),
        followed.remote_fraction(_ITERATIONS),
        best.words if best is not None else "; ".join(one.words for one in advice),
    )


def promise(advice: list[Advice]) -> Advice | None:
    """The advice that is followed: that about first touch, all of it together."""
    touching = {one.kind: one for one in reversed(advice) if one.kind.startswith("first-touch")}
    return touching.get("first-touch-all") or touching.get("first-touch")


def add_rows(results: Results, found: list[Checked]) -> None:
    """A row for each pattern, their number, and the check."""
    right = sum(one.right for one in found)
    results.rows.append(Row("advice.right", right, "patterns", f"of {len(found)}"))
    for one in found:
        promised = "no advice" if math.isnan(one.promised) else f"{100 * one.promised:.1f} % promised"
        note = (
            f"{promised}, {100 * one.counted_after:.1f} % counted with parallel initialisation "
            f"({100 * one.counted_before:.1f} % with serial); {one.text}"
        )
        difference = 0.0 if math.isnan(one.promised) else 100 * (one.promised - one.counted_after)
        results.rows.append(Row(f"advice.{one.name}", difference, "points", note))
    results.details["advice"] = [_plain(asdict(one)) for one in found]
    enough = right * OF >= REQUIRED * len(found) and bool(found)
    text = f"{right} of {len(found)} within {100 * WITHIN:.0f} points"
    results.checks.append(
        Check(f"following the advice brings what it says on {REQUIRED} of {OF}", enough, text)
    )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: None if value != value else value for key, value in values.items()}
