"""Time from remote fractions, and the cost of migration: what the tables and figures in seconds come from.

The model of time is T = 1 + m (R - 1) f: relative to all memory being local, a run takes longer by the
share m of its time that waits for memory, times what a remote access costs more (R: the NUMA ratio), times
the share f of remote accesses. m is a property of program and processor, and cannot be had from counts of
misses: it is calibrated from one ratio. paper_error says how well that explains the paper's Table 1 from
its own Table 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homing.bench.lof import paper

MODEL_NAME = "T = 1 + m (R - 1) f"


def calibrate(relative: float, remote: float, ratio: float) -> float:
    """The m for which a run with this remote fraction takes `relative` times as long as a local one."""
    if remote <= 0 or ratio <= 1:
        return 0.0
    return max(0.0, (relative - 1) / ((ratio - 1) * remote))


def relative_time(m: float, ratio: float, remote: float) -> float:
    """Time relative to all memory being local."""
    return 1 + m * (ratio - 1) * remote


@dataclass(frozen=True)
class MigrationCost:
    """Seconds of migrate-on-next-touch: for each page that is touched again after its translation was reset,
    and for each byte that is copied."""

    page: float
    byte: float

    def seconds(self, touched_pages: float, moved_bytes: float) -> float:
        """What so much migration costs."""
        return self.page * touched_pages + self.byte * moved_bytes


def fit_migration(samples: Sequence[tuple[float, float, float]]) -> MigrationCost:
    """Costs from (touched pages, moved bytes, seconds), by least squares of the relative error, none
    negative."""
    weighted = np.array([[pages / seconds, moved / seconds] for pages, moved, seconds in samples])
    ones = np.ones(len(samples))
    best: tuple[float, MigrationCost] | None = None
    # Two unknowns: the unconstrained optimum, or one on an axis.
    for columns in ([0, 1], [0], [1]):
        found, *_ = np.linalg.lstsq(weighted[:, columns], ones, rcond=None)
        if (found < 0).any():
            continue
        error = float(np.sum((weighted[:, columns] @ found - 1) ** 2))
        values = np.zeros(2)
        values[columns] = found
        if best is None or error < best[0]:
            best = (error, MigrationCost(float(values[0]), float(values[1])))
    assert best is not None
    return best[1]


def break_even(before: float, after: float, overhead: float) -> float:
    """Iterations after which migration has paid for itself; infinite where it never does.

    before, after: seconds an iteration; 1 where even the first iteration is faster.
    """
    gain = before - after
    return math.inf if gain <= 0 else max(1.0, math.ceil(overhead / gain))


def paper_error() -> float:
    """The rms error of Table 1's PI and SI+MIG, from the fractions of Table 2 and the seconds of Table 3."""
    errors = {}
    for program, seconds in paper.SECONDS.items():
        remote, uma = paper.REMOTE[program], seconds["uma"]
        m = calibrate(seconds["si"] / uma, remote["si"], paper.SF15K_RATIO)
        for placement in seconds.keys() - {"uma", "si"}:
            time = relative_time(m, paper.SF15K_RATIO, remote[placement])
            if placement == "si_mig":
                time += paper.MIGRATION[program]["t4"] / uma
            errors[f"{program} {placement}"] = time - seconds[placement] / uma
    return rms(errors)


def rms(errors: Mapping[str, float]) -> float:
    """The root of the mean square."""
    return math.sqrt(sum(error**2 for error in errors.values()) / len(errors)) if errors else 0.0
