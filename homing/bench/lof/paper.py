"""The numbers of Löf, Nordén, Holmgren 2004 (long form; the short form's Table 1 has the same, rounded).

The curves of Figures 1 to 3 are not printed as numbers. What they must show follows from the tables: seconds
an iteration are those of Table 1 over the number of iterations, and the first iteration under SI+MIG takes
longer by the overhead of Table 3.
"""

from __future__ import annotations

PROGRAMS = ("nas_cg", "nas_mg", "i_cg", "i_mg")
TITLES = {"nas_cg": "NAS-CG", "nas_mg": "NAS-MG", "i_cg": "I-CG", "i_mg": "I-MG"}
PLACEMENTS = ("uma", "si", "pi", "si_mig")
PLACEMENT_TITLES = {"uma": "UMA", "si": "SI", "pi": "PI", "si_mig": "SI+MIG"}

#: Section 3: iterations of each program.
ITERATIONS = {"nas_cg": 75, "nas_mg": 20, "i_cg": 47, "i_mg": 10}

#: Section 4: the NUMA ratio of the SF15K; section 5: WildFire's is about three times as large.
SF15K_RATIO = 2.0
WILDFIRE_RATIO = 6.0

#: Table 1, seconds. There is no PI version of I-CG.
SECONDS = {
    "nas_cg": {"uma": 233.94, "si": 261.48, "pi": 253.31, "si_mig": 243.31},
    "nas_mg": {"uma": 20.76, "si": 32.75, "pi": 29.73, "si_mig": 23.88},
    "i_cg": {"uma": 39.91, "si": 63.15, "si_mig": 46.17},
    "i_mg": {"uma": 219.05, "si": 258.91, "pi": 219.83, "si_mig": 222.22},
}

#: Table 1, normalised to UMA as printed.
RELATIVE = {
    "nas_cg": {"uma": 1.00, "si": 1.12, "pi": 1.08, "si_mig": 1.04},
    "nas_mg": {"uma": 1.00, "si": 1.58, "pi": 1.43, "si_mig": 1.15},
    "i_cg": {"uma": 1.00, "si": 1.58, "si_mig": 1.15},
    "i_mg": {"uma": 1.00, "si": 1.18, "pi": 1.00, "si_mig": 1.01},
}

#: Table 2: share of the second-level cache's misses that remote memory served.
REMOTE = {
    "nas_cg": {"uma": 0.0001, "si": 0.7507, "pi": 0.3593, "si_mig": 0.0617},
    "nas_mg": {"uma": 0.0001, "si": 0.7238, "pi": 0.4853, "si_mig": 0.1103},
    "i_cg": {"uma": 0.0001, "si": 0.6785, "si_mig": 0.3139},
    "i_mg": {"uma": 0.0009, "si": 0.7711, "pi": 0.0428, "si_mig": 0.0358},
}

#: Table 3: seconds by which the first iteration under SI+MIG exceeds the second.
OVERHEADS = ("t4", "t12", "t12_large")
OVERHEAD_TITLES = {"t4": "4 threads", "t12": "12 threads", "t12_large": "12 threads, 512K pages"}
MIGRATION = {
    "nas_cg": {"t4": 0.80, "t12": 0.77, "t12_large": 0.16},
    "nas_mg": {"t4": 2.77, "t12": 2.52, "t12_large": 1.20},
    "i_cg": {"t4": 1.72, "t12": 1.94, "t12_large": 0.60},
    "i_mg": {"t4": 3.09, "t12": 2.71, "t12_large": 1.10},
}

#: Section 5: so many iterations must be made before SI+MIG is ahead of SI.
BREAK_EVEN = {"nas_cg": 2, "nas_mg": 5, "i_cg": 5, "i_mg": 1}

#: Pages a second that we let WildFire's daemon look at; the paper does not say how many. With 200 it is
#: "active during several iterations" of I-MG, as in Figure 3.
DAEMON_PAGES = 200
#: UltraSPARC-II at 250 MHz on 8 CPUs against UltraSPARC-III at 900 MHz on 4: WildFire's iterations in those
#: of the SF15K, by clock rates alone.
WILDFIRE_SLOWDOWN = 900 * 4 / (250 * 8)
#: Iterations of the figures' curves at the most.
SHOWN = 25

SMALL_PAGE = 8 << 10
LARGE_PAGE = 512 << 10

#: Bytes of the large arrays at the paper's sizes (apps/README.md), by which a smaller run is scaled.
BYTES = {"nas_cg": 167_796_868, "nas_mg": 452_658_880, "i_cg": 426_500_000, "i_mg": 578_518_528}


def seconds_an_iteration(program: str, placement: str) -> float:
    """Of the later iterations: Table 1 without the overhead of Table 3."""
    overhead = MIGRATION[program]["t4"] if placement == "si_mig" else 0.0
    return (SECONDS[program][placement] - overhead) / ITERATIONS[program]


def daemon_share(program: str) -> float:
    """Of a program's pages, those that WildFire's daemon looks at in an iteration."""
    return min(1.0, DAEMON_PAGES * wildfire_seconds(program) / (BYTES[program] / SMALL_PAGE))


def wildfire_seconds(program: str) -> float:
    """Of an iteration on WildFire without any remote access."""
    return seconds_an_iteration(program, "uma") * WILDFIRE_SLOWDOWN
