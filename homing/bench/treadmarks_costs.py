"""What faults, twins, diffs and messages took on an IBM SP2, for `homing bench treadmarks`: where each number
comes from, and how little is known of it.

The machine of Chapman, Patil and Prabhakar (2001, section 4): thin nodes at 120 MHz with 128 MB, TreadMarks
1.0.3.3-BETA. Nobody published these costs for it. [A] to [D] are of other SP2s:

[A] Dwarkadas, Cox, Zwaenepoel, ASPLOS VII, 1996, and Lu et al., PPoPP 1997: TreadMarks on thin nodes with AIX
    3.2.5 and user-level MPL: 365 us for the shortest message and its answer, interrupt included; 893 us for a
    barrier of 8 processes; 18 us for one change of protection, 800 us with 2,000 pages in use. Recalled:
    their text could not be had here, so look these numbers up before you rely on them (looked for again in
    November 2026: what could be searched has the papers' abstracts, without these numbers).
[B] Cornell Theory Center, "What Is the IBM SP2?": thin nodes at 120 MHz; about 50 us and 35 MB/s by libraries
    made for the switch and its earlier adapter.
[C] Majumdar's thesis (San Diego Supercomputer Center), SP2 of the University of Michigan: 40 us, 40 MB/s
    by MPL.
[D] STREAM, 7 April 1997: RS/6000 595 (P2SC, 135 MHz, memory bus of 256 bits): 621 to 690 MB/s. Thin nodes of
    66 MHz had buses of 64 bits, "thin 2" of 128 bits (Lysator, "SP2").

Each cost has three values: as favourable to the speed-up as may be, as believed, and as unfavourable.
Computing is the other way round: the slower it is, the better programs scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Microseconds: favourable, believed, unfavourable to the speed-up; and why."""

    favourable: float
    believed: float
    unfavourable: float
    why: str

    @property
    def values(self) -> tuple[float, float, float]:
        return self.favourable, self.believed, self.unfavourable


KINDS = ("favourable", "believed", "unfavourable")

#: Memory traffic of an iteration over what the widest bus gives, half of it, and 1.3 of it [D].
WORK = {
    "jacobi": Cost(0.155, 0.1, 0.06, "a point of both loops: 48 bytes at 310, 480 and 800 MB/s [D]"),
    "lu": Cost(0.026, 0.0165, 0.01, "an element: 8 bytes at 310, 480 and 800 MB/s [D]"),
    "lbe": Cost(
        6.0, 3.0, 1.5, "a point: 580 bytes at 480 MB/s [D], some 250 operations and 11 divisions; assumed"
    ),
}
COSTS = {
    "fault": Cost(20, 50, 150, "a signal and its return; assumed"),
    "twin": Cost(13, 25, 50, "4 KiB copied: 8 KiB of traffic at 620 to 160 MB/s [D]"),
    "diff": Cost(20, 50, 150, "1,024 words compared at 120 MHz: 2.4 to 18 cycles each; assumed"),
    "apply": Cost(0.0016, 0.005, 0.01, "a byte: 620 to 100 MB/s [D]"),
    "roundtrip": Cost(200, 365, 1000, "[A]; favourable: [B] and an interrupt; unfavourable: UDP, assumed"),
    "serve": Cost(60, 120, 330, "a third of the round trip; assumed"),
    "byte": Cost(0.025, 0.0286, 0.1, "40 MB/s [C], 35 MB/s [B]; 10 MB/s by UDP, assumed"),
    "client": Cost(40, 75, 200, "(893 - 365) / 7 us [A], and about half and thrice as much"),
}
LEAST_PROTECT, MOST_PROTECT, PAGES_OF_MOST = 18.0, 800.0, 2000.0


def protect(pages: int) -> Cost:
    """One mprotect where so many pages are in use: [A] has two points, taken as a line up to its end."""
    most = LEAST_PROTECT + (MOST_PROTECT - LEAST_PROTECT) * min(pages / PAGES_OF_MOST, 1)
    believed = (LEAST_PROTECT * most) ** 0.5
    return Cost(LEAST_PROTECT, believed, most, f"{pages:,} pages in use [A]; believed: the geometric mean")


def costs_text(code: str, pages: int) -> str:
    """The file for a program's --costs."""
    costs: Mapping[str, Cost] = {**COSTS, "work": WORK[code], "protect": protect(pages)}
    return "".join(f"{name} {' '.join(map(str, cost.values))}\n" for name, cost in costs.items())


def standing() -> str:
    """What the costs stand on, for people."""
    costs = {**{f"work {code}": cost for code, cost in WORK.items()}, **COSTS, "protect": protect(1)}
    recalled = [name for name, cost in costs.items() if "[A]" in cost.why]
    assumed = [name for name, cost in costs.items() if "assumed" in cost.why and name not in recalled]
    read = [name for name in costs if name not in (*recalled, *assumed)]
    return (
        f"Costs from sources that were read: {', '.join(read)}. Recalled from [A], whose text was not to be "
        f"had: {', '.join(recalled)}. Assumed, wholly or in part: {', '.join(assumed)}."
    )


def described() -> str:
    """A table for people."""
    lines = [f"{'cost':<10} {'favourable':>10} {'believed':>9} {'unfavourable':>12} us, and where from"]
    works = {f"work {code}": cost for code, cost in WORK.items()}
    for name, cost in {**works, **COSTS, "protect": protect(int(PAGES_OF_MOST))}.items():
        low, middle, high = (f"{value:.4g}" for value in cost.values)
        lines.append(f"{name:<10} {low:>10} {middle:>9} {high:>12} {cost.why}")
    return "\n".join(lines)
