"""What Nikolopoulos et al. 2000 say of their Figures 3 to 6, and what the model of time assumes."""

from __future__ import annotations

from dataclasses import dataclass

#: Pages that move for a phase in all their experiments with record and replay.
REPLAY_PAGES = 20
#: A page of 16 KiB took 1 to 1.3 ms; the described machine has the middle, and so much a call.
PAGE_SECONDS, CALL_SECONDS = 1.15e-3, 1e-4
#: Of the described machine: a line of its caches, and what one node's memory delivers.
LINE_BYTES, NODE_BYTES_A_SECOND = 128, 0.78e9
#: Remote over local latency of the described machine.
RATIO = 2.3
#: T = 1 + m (R - 1) f: how much of a miss nothing hides. Their text has no number: the middle of what Löf's
#: programs showed (0.1 to 0.9).
M = 0.5
#: Pages that they identified for z_solve of BT and SP.
CRITICAL = (160, 250)
#: Of the problem with quadrupled work: record/replay over the iterative mechanism alone.
QUADRUPLED = 0.95


@dataclass(frozen=True)
class Program:
    """A program at the paper's size, class A: seconds of an iteration placed by first touch on 16 CPUs, and
    MiB of its arrays. BT: "one and a half minutes" for 200 iterations, CG "a few seconds" for 15; the others'
    seconds are guesses of the same kind. sampled: pages that their thread scans in a second."""

    seconds: float
    mib: float
    steps: int
    sampled: float


PROGRAMS = {
    "bt": Program(0.45, 42.0, 200, 100),
    "sp": Program(0.3, 42.0, 400, 100),
    "cg": Program(0.3, 24.0, 15, 100 / 0.3),
    "mg": Program(1.0, 438.0, 4, 100 / 0.3),
    "ft": Program(1.5, 384.0, 6, 100 / 0.3),
}

#: Programs whose z_solve is the phase that they record and replay (their Figures 5 and 6).
PHASED = ("bt", "sp")
#: The mechanisms of the others, by phases that homing finds: `--mechanism`.
FOUND_PHASES = {"replay": "record-replay", "hybrid": "hybrid"}

PLACEMENTS = {"ft": "first touch", "rr": "round robin", "rand": "random", "wc": "worst case"}
MECHANISMS = {
    "nothing": "nothing",
    "kernel": "kernel migration",
    "iterative": "iterative (upmlib)",
    "sampling": "sampling",
    "replay": "record/replay",
    "hybrid": "hybrid",
}
