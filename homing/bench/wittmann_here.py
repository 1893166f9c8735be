"""Experiments of `homing bench wittmann_why` on this machine: how sweeps vary (Figure 4), and temporal
blocking.

One domain: nothing here is placement.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from homing.bench.places import find_program
from homing.bench.programs import callgrind
from homing.bench.results import Check, Results, Row
from homing.bench.task_runs import numbers, run_here, variables
from homing.bench.undisturbed import MOST_OF_OTHERS, kept_alone, load, others_share
from homing.bench.wittmann_machines import SIZES, build, simulate
from homing.bench.wittmann_ways import WAYS

THREADS = 2

# --- Figure 4 -----------------------------------------------------------------------------------------------

_GRID = ("--sites-k", "600", "--sites-j", "302", "--sites-i", "102", "--samples", "20")
_SMALL_GRID = ("--sites-k", "300", "--sites-j", "122", "--sites-i", "122", "--samples", "10")
#: By name: the way, and the threads. static.s: no task is dealt out, its spread is the machine's own. One
#: thread: nobody waits for anybody.
_SPREADS = {
    "static.s": ("static.s", THREADS),
    "tasks.s.kji": ("tasks.s.kji", THREADS),
    "tasks.s.kji.gcc": ("tasks.s.kji.gcc", THREADS),
    "tbb.p.n-a": ("tbb.p.n-a", THREADS),
    "static.s.1_thread": ("static.s", 1),
    "tbb.p.n-a.1_thread": ("tbb.p.n-a", 1),
}
_ROUNDS = {"small": 2, "full": 7}

Run = tuple[Any, float]  #: what a run gave, and others' share of the CPUs meanwhile


def spread(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """By name of _SPREADS: the quantiles of each round, in which all took turns, with others' share."""
    found: dict[str, Any] = {name: [] for name in _SPREADS}
    grid = _SMALL_GRID if size == "small" else _GRID
    for turn in range(_ROUNDS[size]):
        for name, (way, threads) in _SPREADS.items():
            tell(f"{name}, round {turn + 1}")
            command = WAYS[way].command(grid)
            run = partial(run_here, command, threads=threads, bound=WAYS[way].bound)
            output, others = others_share(run)
            found[name].append((numbers(output, "time mlups 5 25 50 75 95 %"), others))
    return found


def _spreads(rounds: Sequence[Run]) -> list[float]:
    return sorted((one[4] - one[0]) / one[2] for one in kept_alone(rounds))


def add_spread(results: Results, found: Mapping[str, Any]) -> None:
    """5 to 95 % over the median, of each round."""
    own = _spreads(found["static.s"])
    for name, rounds in found.items():
        values = _spreads(rounds)
        middle = float(np.median(values))
        note = f"{len(values)} of {len(rounds)} rounds undisturbed, {values[0]:.3f} to {values[-1]:.3f}"
        results.rows.append(Row(f"here.spread.{name}", middle, "fraction", note))
    results.checks.append(
        Check(
            "here the spreads of Figure 4's two ways are not told apart from static first touch's own",
            all(
                _spreads(found[name])[0] <= own[-1] and _spreads(found[name])[-1] >= own[0]
                for name in ("tasks.s.kji", "tbb.p.n-a")
            ),
            ", ".join(
                f"{name} {_spreads(found[name])[0]:.3f} to {_spreads(found[name])[-1]:.3f}"
                for name in ("static.s", "tasks.s.kji", "tbb.p.n-a")
            ),
        )
    )
    results.notes.append(
        "Figure 4 here: one domain, where no sweep can differ from the next by the placement of its blocks, "
        "which is what makes TBB's vary in the paper. What is left is the machine's own unrest and what "
        "runtimes do when threads wait; each row has the rounds' least and largest spread. Of all rows "
        f"'here' those runs count during which others had at most {100 * MOST_OF_OTHERS:.0f} % of the CPUs."
    )


# --- temporal blocking --------------------------------------------------------------------------------------

#: Layers of 200 x 200 sites: two grids of 8 MB up to beyond every cache.
_LAYERS = {"small": ("12", "600"), "full": ("12", "24", "96", "600")}
#: Threads and groups: both threads take blocks from one queue, or each has a queue and blocks of its own.
_TEAMS = ((1, 1), (THREADS, 1), (THREADS, THREADS))
_DEPTHS = ("1", "2", "4", "8")
_LOADS = (1,)
_STEPS = 16  #: time steps of 600 layers; of fewer layers more
_COUNTED = ("--sites-k", "60", "--sites-j", "60", "--sites-i", "122")
#: Simulated on a node with this machine's caches.
_BOUNCED = ("--sites-k", "200", "--sites-j", "200", "--sites-i", "122")
_BOUNCED_MACHINE = "nehalem-ep"
_CACHES = ("--cache", "1MiB:16", "--shared-cache", "32MiB:16")


def _temporal(layers: str, depth: str, threads: int, groups: int) -> Run:
    """Million updates a second, and others' share of the CPUs."""
    steps = max(_STEPS, _STEPS * 600 // int(layers)) // int(depth)
    command = [find_program("temporal_gcc"), "--sites-i", layers, "--depth", depth]
    command += ["--samples", str(steps), "--groups", str(groups)]
    output, others = others_share(partial(run_here, command, threads=threads))
    return numbers(output, "time mlups")[0], others


def temporal(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """`layers`: plain sweeps by layers, threads and groups; `depths`: temporal blocking by groups and depth;
    `loaded`: the same beside processes that compute all the time, by their number; all take turns."""
    rounds = {"small": 1, "full": 7}[size]
    layers: dict[str, list[Run]] = {}
    depths: dict[str, list[Run]] = {}
    loaded: dict[str, list[Run]] = {}
    for turn in range(rounds):
        tell(f"temporal blocking, round {turn + 1}")
        for count in _LAYERS[size]:
            for threads, groups in _TEAMS:
                value = _temporal(count, "1", threads, groups)
                layers.setdefault(f"{count}.t{threads}.groups_{groups}", []).append(value)
        for depth in _DEPTHS:
            for groups in (1, THREADS):
                value = _temporal("600", depth, THREADS, groups)
                depths.setdefault(f"{groups}.{depth}", []).append(value)
        for others in _LOADS:
            with load(others):
                for depth in ("1", "4"):
                    for groups in (1, THREADS):
                        value = _temporal("600", depth, THREADS, groups)
                        loaded.setdefault(f"{others}.{groups}.{depth}", []).append(value)
    return {"layers": layers, "depths": depths, "loaded": loaded}


def temporal_counts(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """What a clock does not say: `instructions` of an update by depth; `bounced`, by groups and depth, the
    misses of an update whose line the other core had written."""
    tell("instructions")
    found = {"instructions": _instructions()}
    path = build("temporal", "gcc")
    k, j, i = (int(word) for word in _BOUNCED[1::2])
    updates = (k - 2) * (j - 2) * (i - 2) * _STEPS
    bounced = {}
    for depth in _DEPTHS if size == "full" else ("1", "4"):
        for groups in (1, THREADS):
            tell(f"simulated, depth {depth}, {groups} group(s)")
            command = [str(path), *_BOUNCED, "--depth", depth, "--groups", str(groups)]
            command += ["--samples", str(_STEPS // int(depth))]
            counts, _ = simulate(_BOUNCED_MACHINE, SIZES["full"], command, THREADS, _CACHES)
            bounced[f"{groups}.{depth}"] = counts["run"]["invalidation_misses"] / updates
    return {**found, "bounced": bounced}


def _instructions() -> dict[str, float]:
    """Of an update, by depth, with one thread: two runs of different length, counted by callgrind. Empty
    where that is not here."""
    if shutil.which("valgrind") is None:
        return {}
    k, j, i = (int(word) for word in _COUNTED[1::2])
    updates = (k - 2) * (j - 2) * (i - 2)
    chosen = {**variables(False, 0, True, "", {"PATH": "/usr/bin:/bin"}), "OMP_NUM_THREADS": "1"}
    found = {}
    for depth in _DEPTHS:
        command = [find_program("temporal_gcc"), *_COUNTED, "--depth", depth, "--groups", "1", "--samples"]
        few, many = (callgrind([*command, str(steps // int(depth))], chosen) for steps in (8, 24))
        found[depth] = (many - few) / (16 * updates)
    return found


def add_temporal(results: Results, found: Mapping[str, Any]) -> None:
    """What plain sweeps reach in each cache, which is all that temporal blocking could win, and what it wins
    by who works on the blocks of a window."""
    for name, runs in found["layers"].items():
        count, threads, groups = name.split(".")
        megabytes = 2 * 8 * 200 * 200 * int(count) / 1e6
        note = f"plain sweeps; two grids of together {megabytes:,.0f} MB; {_told(runs)}"
        row = Row(f"here.plain.layers_{count}.{threads}.{groups}", _median(runs), "MLUP/s", note)
        results.rows.append(row)
    for name, runs in found["depths"].items():
        groups, _, depth = name.partition(".")
        window = 2 * int(depth) + 1 + max(1, THREADS // int(groups))
        megabytes = 2 * 8 * 200 * 200 * 2 * window * int(groups) / 1e6
        ratio = _median(runs) / _median(found["depths"]["1.1"])
        note = f"{ratio:.2f} times plain sweeps; its windows hold {megabytes:.0f} MB; {_told(runs)}"
        row = Row(f"here.depth_{depth}.groups_{groups}", _median(runs), "MLUP/s", note)
        results.rows.append(row)
    loaded = {name: float(np.median([value for value, _ in runs])) for name, runs in found["loaded"].items()}
    for name, rate in loaded.items():
        others, groups, depth = name.split(".")
        note = f"{rate / loaded[f'{others}.1.1']:.2f} times plain sweeps beside as many that compute"
        row = Row(f"here.loaded_{others}.depth_{depth}.groups_{groups}", rate, "MLUP/s", note)
        results.rows.append(row)
    quiet = _median(found["depths"]["1.4"]) / _median(found["depths"]["1.1"])
    beside = {others: loaded[f"{others}.1.4"] / loaded[f"{others}.1.1"] for others in _LOADS}
    results.checks += [
        Check(
            "undisturbed, temporal blocking is faster than plain sweeps (depth 4; 1.1 times)",
            quiet >= 1.1,
            f"{quiet:.2f} times",
        ),
        Check(
            "beside a process that computes it is not (depth 4)",
            beside[1] < 1.0,
            ", ".join(f"{ratio:.2f} times beside {others}" for others, ratio in beside.items()),
        ),
    ]
    results.notes.append(
        "Temporal blocking was slower than plain sweeps in wittmann.md (0.81 to 0.87), on a machine whose "
        "load was 2.8. Undisturbed it is faster, so that the load is the likely reason: every step of a "
        "block waits for steps of its neighbours, and a window for its oldest block. Which load it takes is "
        "open: the rows 'loaded' have one process beside it that computes. groups_1: both threads take "
        "blocks from one queue, as they share the third-level cache; groups_2: each has blocks of its own."
    )


def _median(runs: Sequence[Run]) -> float:
    return float(np.median(kept_alone(runs)))


def _told(runs: Sequence[Run]) -> str:
    quiet = sum(others <= MOST_OF_OTHERS for _, others in runs)
    return f"{quiet} of {len(runs)} runs undisturbed"


def add_temporal_counts(results: Results, found: Mapping[str, Any]) -> None:
    """Instructions, and lines that went from core to core."""
    for depth, count in found["instructions"].items():
        name = f"here.instructions.depth_{depth}"
        results.rows.append(Row(name, count, "an update", "callgrind, 1 thread, all of the program's"))
    for name, count in found["bounced"].items():
        groups, _, depth = name.partition(".")
        note = f"misses on lines that the other core wrote; {_BOUNCED_MACHINE}'s node, {' '.join(_CACHES)}"
        row = Row(f"simulated.bounced.depth_{depth}.groups_{groups}", 1000 * count, "of 1,000 updates", note)
        results.rows.append(row)
    counts = found["instructions"].values()
    if counts:
        results.checks.append(
            Check(
                "the loops of temporal blocking cost no instructions (5 % of plain sweeps' at most)",
                max(counts) <= 1.05 * found["instructions"]["1"],
                ", ".join(f"{count:.2f}" for count in counts),
            )
        )
