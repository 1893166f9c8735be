"""What sampling first touches costs: programs that mostly touch memory for the first time, which is the worst
case, and CG, with --first-touch on and off in turn."""

from __future__ import annotations

import os
import statistics
import tempfile

from homing.bench.places import find_program
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row
from homing.bench.undisturbed import Timed, kept_alone, others_share, timed
from homing.installation import find_library
from homing.records import read_record

TURNS = {"small": 11, "full": 41}
#: Of a run's time.
MOST = 0.01
PROGRAMS = {
    "first_touch.overhead": ("cg_gfortran", "--class", "A"),
    "first_touch.overhead_touching": ("pattern_block_gcc", "--size", "512M", "--iterations", "1"),
}


def run(results: Results, size: str) -> None:
    """Adds rows and the check."""
    progress = Progress("first touch", [1.0] * len(PROGRAMS))
    try:
        for name, (program, *words) in PROGRAMS.items():
            progress.step(name)
            command = [find_program(program), *words]
            if program.startswith("pattern"):
                command += ["--initialise", "serial"]
            _measure(results, name, command, TURNS[size])
            progress.finished()
    finally:
        progress.close()
    values = {row.name: row.value for row in results.rows}
    worked, passed = values["first_touch.overhead"], values["first_touch.overhead.passed"]
    text = (
        f"{100 * worked:.2f} % of processor time, {100 * passed:.2f} % of what passes; most: {100 * MOST:g}"
    )
    results.checks.append(Check("first touch at under 1 % of the run", max(worked, passed) <= MOST, text))


def _measure(results: Results, name: str, command: list[str], turns: int) -> None:
    found: dict[str, list[tuple[Timed, float]]] = {"on": [], "off": []}
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        variables = {
            **os.environ,
            "OMP_NUM_THREADS": "2",
            "OMP_WAIT_POLICY": "passive",
            "HOMING_ASSUME_NODES": "4",
            "LD_PRELOAD": find_library(),
            "HOMING_MECHANISM": "observe",
        }
        for turn in range(turns):
            for way in ("on", "off") if turn % 2 else ("off", "on"):
                given = {**variables, "HOMING_FIRST_TOUCH": way, "HOMING_RECORD": f"{folder}/{way}"}
                found[way].append(others_share(lambda given=given: timed(command, given)))  # type: ignore[misc]
        samples = sum(row["samples"] for row in read_record(f"{folder}/on").dicts("first_touch", "samples"))
    on, off = (kept_alone(found[way]) for way in ("on", "off"))
    words = f"{os.path.basename(command[0])} {' '.join(command[1:])}"
    kept = f"medians of {len(on)} and {len(off)} of {turns} turns"
    for at, ending, what in ((1, "", "of processor time"), (0, ".passed", "that pass")):
        seconds = [statistics.median(one[at] for one in some) for some in (on, off)]
        least = [min(one[at] for one in some) for some in (on, off)]
        note = (
            f"{words}: {seconds[0]:.3f} s {what} to {seconds[1]:.3f} s, {kept} (the least {least[0]:.3f} "
            f"and {least[1]:.3f}), {samples:,} page faults sampled"
        )
        results.rows.append(Row(f"{name}{ending}", seconds[0] / seconds[1] - 1, "ratio", note))
