"""What sampling first touches costs: programs that mostly touch memory for the first time, which is the worst
case, and CG, with --first-touch on and off in turn."""

from __future__ import annotations

import os
import tempfile

from homing.bench.launcher import _time
from homing.bench.places import find_program
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row
from homing.bench.undisturbed import kept_alone, others_share
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
    value = next(row.value for row in results.rows if row.name == "first_touch.overhead")
    text = f"{100 * value:.2f} % of processor time, at most {100 * MOST:g} wanted"
    results.checks.append(Check("first touch at under 1 % of the run", value <= MOST, text))


def _measure(results: Results, name: str, command: list[str], turns: int) -> None:
    found: dict[str, list[tuple[float, float]]] = {"on": [], "off": []}
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
                (_, worked), others = others_share(lambda given=given: _time(command, given))  # type: ignore[misc]
                found[way].append((worked, others))
        samples = sum(row["samples"] for row in read_record(f"{folder}/on").dicts("first_touch", "samples"))
    # The least: what others make a run wait for is in the others.
    on, off = (min(kept_alone(found[way])) for way in ("on", "off"))
    note = (
        f"{os.path.basename(command[0])} {' '.join(command[1:])}: {on:.3f} s of processor time to "
        f"{off:.3f} s, "
        f"the least of {turns} in turn, {samples:,} page faults sampled"
    )
    results.rows.append(Row(name, on / off - 1, "ratio", note))
