"""Figure 4 of Wittmann and Hager 2010 on the described machines, predicted: how the rates of sweeps vary.

Of what makes the sweeps of a real machine differ one thing is here: which blocks run where, and in which
order. The program runs many sweeps, with turns of several lengths (threads do not stay equally fast against
each other on a real machine), and each sweep gets a rate of its own from the order of its blocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from homing.bench.bandwidth_model import bounds
from homing.bench.results import Check, Results, Row
from homing.bench.wittmann_machines import (
    FIRST_HALF,
    SIZES,
    Size,
    build,
    misses_of_phase,
    read_runs,
    simulate,
)
from homing.bench.wittmann_ways import WAYS
from homing.simulate import machines

#: The ways of Figure 4's two panels. OpenMP's is gcc's: before a second sweep clang's libomp lets threads
#: sleep, and does not wake all of them for the tasks that wait.
FIGURE_4 = ("tasks.s.kji", "tbb.p.n-a")
#: By size: accesses of a turn, and sweeps with each. The paper has 100 samples.
_TURNS = {"small": (2000,), "full": (1000, 2000, 4000)}
_SWEEPS = {"small": 4, "full": 12}
#: The grid and the caches, of both sizes.
_SIZE = SIZES["small"]


def run_sweeps(machine: str, name: str, size: str) -> dict[str, Any]:
    """`rates`, million updates a second: a list a length of turns, a rate a sweep. UserError where a run
    fails."""
    described = machines.find(machine)
    rates = []
    with tempfile.TemporaryDirectory(prefix="homing-wittmann-") as folder:
        path = Path(folder) / "runs"
        command = [str(build("blocked_jacobi", "gcc")), *WAYS[name].arguments, *_SIZE.grid]
        command += ["--stores", "normal", "--samples", str(_SWEEPS[size]), "--runs", str(path)]
        for turn in _TURNS[size]:
            counts, _ = simulate(machine, replace(_SIZE, turn=turn), command, described.cpu_count, [])
            runs = read_runs(path.read_text())
            halves = [misses_of_phase(counts, phase) for phase in (FIRST_HALF, FIRST_HALF + 1)]
            each = described.line * int(np.sum(halves)) / len(runs)
            rates.append(sweep_rates(machine, runs, each, _SWEEPS[size], _SIZE))
    return {"rates": rates}


def measure(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """By machine and way of Figure 4, what run_sweeps gives."""
    found: dict[str, Any] = {}
    for machine in SIZES[size].machines:
        for name in FIGURE_4:
            tell(f"{machine} {name}, many sweeps")
            found.setdefault(machine, {})[name] = run_sweeps(machine, name, size)
    return found


def sweep_rates(
    machine: str, runs: Sequence[Sequence[int]], block_bytes: float, sweeps: int, size: Size
) -> list[float]:
    """Million updates a second of each sweep, by the order of its blocks, which all have the same bytes.

    runs: as read_runs has them, of all sweeps one after the other."""
    described = machines.find(machine)
    blocks = len(runs) // sweeps
    rates = []
    for first in range(0, blocks * sweeps, blocks):
        own = [(node, home) for node, home in runs[first : first + blocks]]
        fetched = np.zeros((described.nodes, described.nodes))
        for node, home in own:
            fetched[node, home] += block_bytes
        bandwidth, link = 1e9 * described.bandwidth_gbs, 1e9 * described.link_gbs
        one = bounds(fetched.tolist(), bandwidth, link, own, described.cpus)
        rates.append(size.updates / one.seconds / 1e6)
    return rates


def add_rows(results: Results, found: Mapping[str, Mapping[str, Any]]) -> None:
    """found: by machine and way, what run_sweeps gave."""
    for machine, ways in found.items():
        spread = {}
        for name, one in ways.items():
            rates = np.concatenate(one["rates"])
            low, quarter, median, three, high = np.quantile(rates, (0.05, 0.25, 0.5, 0.75, 0.95))
            spread[name] = (high - low) / median
            note = (
                f"predicted, {len(rates)} sweeps; quantiles 5 25 50 75 95 %: "
                f"{low:.0f} {quarter:.0f} {median:.0f} {three:.0f} {high:.0f} MLUP/s"
            )
            results.rows.append(Row(f"{machine}.spread.{name}", float(spread[name]), "fraction", note))
        tasks = spread["tasks.s.kji"]
        results.checks.append(
            Check(
                f"predicted on {machine}: OpenMP tasking varies little (Figure 4, section 2.1; within 10 %)",
                bool(tasks <= 0.1),
                f"5 to 95 %: {100 * tasks:.1f} % of the median; oneTBB {100 * spread['tbb.p.n-a']:.1f} %",
            )
        )


def notes(size: str) -> list[str]:
    """What was simulated."""
    turns = ", ".join(map(str, _TURNS[size]))
    return [
        f"Figure 4 (spread) is predicted from {_SWEEPS[size]} sweeps with turns of {turns} accesses each, "
        f"{' '.join(_SIZE.grid)}, caches {' '.join(_SIZE.caches[1::2])}: what is in it is which blocks run "
        "where and in which order, nothing else. With turns of one length libgomp's tasks run the same in "
        "every sweep."
    ]
