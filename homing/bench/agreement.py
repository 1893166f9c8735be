"""Two independent instruments: the simulator, and the guest's counter in QEMU, on the same programs.

Both model a private cache of 1 MiB and 16 ways a CPU, indexed by virtual address, from which a remote write
takes lines, in two separate codes (simulator/model.cpp, lab/counter_model.c). The simulator sees what the
compiler instrumented; the counter sees every load and store of the guest's user space, and the kernel's own
placement of pages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from homing.bench import simulated
from homing.bench.places import find_program, kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.errors import UserError
from homing.installation import python_path

CACHE = "1024:16"
POINTS = 2.0
PLACEMENTS = ("first-touch", "round-robin", "single-node", "random")
#: Program, its name in apps/, and its arguments by size.
PROGRAMS = {
    "mg": ("mg_gfortran", {"small": ["--class", "W"], "full": ["--class", "W"]}),
    "cg": ("cg_gfortran", {"small": ["--class", "W"], "full": ["--class", "W"]}),
    "jacobi": (
        "jacobi_gcc",
        {"small": ["--class", "W", "--iterations", "6"], "full": ["--class", "W", "--iterations", "6"]},
    ),
}
#: Where pages lie by chance, a few of them may have many misses: one draw says little.
RANDOM_SEEDS = (1, 2, 3, 4, 5)
#: The guest's phases that count: the first one has initialisation, and the pages on their way to where they
#: are to be placed.
FIRST_PHASE = 2


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names in PROGRAMS. Runs of the guest are kept in build/bench/agreement."""
    check_only(only, PROGRAMS)
    results = Results(
        "agreement",
        "Remote fractions: the simulator, and the guest's counter",
        tell(["agreement"]),
        notes=[
            "4 threads on 4 nodes, a private cache of 1 MiB and 16 ways, pages of 4 KiB. first-touch: the "
            "program's parallel initialisation; the other placements: its serial one, and all pages placed "
            "so. The guest's fraction is that of the phases after the first (initialisation and placing are "
            "in it); the simulator's that of the parallel regions that were entered more than once.",
        ],
    )
    chosen = [name for name in PROGRAMS if not only or name in only]
    progress = Progress("agreement", [1.0] * len(chosen) * len(PLACEMENTS))
    try:
        for name in chosen:
            for placement in PLACEMENTS:
                progress.step(f"{name}, {placement}")
                _compare(results, name, placement, size, redo)
                progress.finished()
    finally:
        progress.close()
    return results


def _compare(results: Results, name: str, placement: str, size: str, redo: bool) -> None:
    file, sizes = PROGRAMS[name]
    initialise = "parallel" if placement == "first-touch" else "serial"
    arguments = [*sizes[size], "--initialise", initialise]
    lab = _lab(name, file, arguments, placement, redo)
    path = simulated.build(name, "gcc", True)
    seeds = RANDOM_SEEDS if placement == "random" else (1,)
    found = [
        simulated.run(path, arguments, 4, cache=CACHE, page="4KiB", initial=placement, seed=seed).counts
        for seed in seeds
    ]
    fractions = [_repeated_regions(counts) for counts in found]
    ours = sum(fractions) / len(fractions)
    label = f"{name}.{placement.replace('-', '_')}"
    difference = 100 * (ours - lab)
    results.rows += [
        Row(
            f"{label}.simulated",
            ours,
            "remote fraction",
            f"mean of {len(seeds)} draws, {min(fractions):.3f} to {max(fractions):.3f}"
            if len(seeds) > 1
            else "",
        ),
        Row(f"{label}.lab", lab, "remote fraction"),
        Row(f"{label}.difference", difference, "percentage points"),
    ]
    results.checks.append(
        Check(
            f"{name}, {placement}: within {POINTS:g} percentage points",
            abs(difference) <= POINTS,
            f"{100 * ours:.1f} % and {100 * lab:.1f} %",
        )
    )


def _repeated_regions(counts: dict[str, Any]) -> float:
    regions = [one for one in counts["regions"] if one["count"] > 1]
    misses = sum(one["total_misses"] for one in regions)
    return sum(one["remote_misses"] for one in regions) / misses if misses else 0.0


def _lab(name: str, file: str, arguments: list[str], placement: str, redo: bool) -> float:
    """The guest's remote fraction; runs that were made are kept."""
    folder = kept_folder() / "agreement"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_{placement}.json"
    if redo or not path.exists():
        fresh = path.with_suffix(".new")
        words = ["run", "--on", "lab", "--count", "--cache", CACHE, "--bind", "--mechanism", "observe"]
        words += ["--initial", placement, "--summary", "none", "--json", str(fresh), "--", find_program(file)]
        own = {"OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": python_path()}
        done = subprocess.run(
            [sys.executable, "-m", "homing", *words, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **own},
        )
        if done.returncode != 0:
            raise UserError(f"{file} in the guest: {done.stderr.strip().splitlines()[-1:]}", 1)
        fresh.replace(path)
    return _guest_fraction(path)


def _guest_fraction(path: Path) -> float:
    with open(path, encoding="utf-8") as file:
        counts = json.load(file)["counts"]
    phases = [one for one in counts["phases"] if one["phase"] >= FIRST_PHASE]
    misses = sum(one["total_misses"] for one in phases)
    if not misses:
        raise UserError(f"{path}: the program marked no phases", 1)
    remote = sum(one["remote_misses"] for one in phases)
    return float(remote / misses)
