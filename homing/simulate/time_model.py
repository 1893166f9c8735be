"""Time from remote fractions: T = 1 + m (R - 1) f, relative to the same program with all its pages local.

R is the ratio of remote to local latency, f the remote fraction of the misses, m how much of the time is
waiting for memory. The eleven ratios of Löf, Nordén and Holmgren's Table 1 (2004) follow it with one m for
each program, to a root mean square error of 0.04. m is not in the counts (misses overlap, and are
prefetched): it comes from one measured ratio, or it is a range.
"""

from __future__ import annotations

import re
from typing import Any

from homing.errors import UserError
from homing.values import dataclass

MODEL = "T = 1 + m (R - 1) f"
ERROR = 0.04
ERROR_TEXT = "0.04 rms on the eleven ratios of Löf, Nordén and Holmgren's Table 1"


@dataclass(frozen=True)
class Calibration:
    """One measurement: the time at a remote fraction, over the time with all pages local."""

    time: float
    fraction: float

    def m(self, ratio: float) -> tuple[float, float]:
        """m, as a range without width; within 0 and 1."""
        found = (self.time - 1) / ((ratio - 1) * self.fraction) if ratio > 1 else 0.0
        found = min(max(found, 0.0), 1.0)
        return found, found


def parse_calibration(text: str | None) -> Calibration | None:
    """TIME:FRACTION, for example 1.58:0.724."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9.]+):([0-9.]+)", text)
    try:
        time, fraction = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
    except ValueError:
        time, fraction = 0.0, 0.0
    if time < 1 or not 0 < fraction <= 1:
        raise UserError(
            f"--calibrate {text}: must be TIME:FRACTION, such as 1.58:0.724 (1.58 times as long as with all "
            "pages local, where 72.4 % of the misses were remote)"
        )
    return Calibration(time, fraction)


def relative_time(m: float, ratio: float, fraction: float) -> float:
    """The model."""
    return 1 + m * (ratio - 1) * fraction


def estimate(stated: dict[str, Any], fraction: float, calls: int, pages: int) -> dict[str, Any]:
    """The `time` of the counts: stated has ratio, m (least and most), the costs of moves."""
    ratio = float(stated["ratio"])
    least, most = (float(one) for one in stated["m"])
    return {
        "model": MODEL,
        "ratio": ratio,
        "m": [least, most],
        "calibrated": bool(stated.get("calibrated")),
        "relative": [relative_time(least, ratio, fraction), relative_time(most, ratio, fraction)],
        "migration_seconds": 1e-6
        * (calls * float(stated["migration_call_us"]) + pages * float(stated["migration_page_us"])),
        "error": ERROR,
        "error_text": ERROR_TEXT,
    }
