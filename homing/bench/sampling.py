"""Touches: how many it takes to know who owns an area, what they bring a program, and what they cost it.

The model is shown made-up areas whose owners are known (benchmarks/belief.cpp, borders.cpp, questions.cpp). A
run of a real program over 1 GiB with homing's real windows on this machine says how many faults that took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from homing.bench import belief
from homing.bench.places import find_bench_program, find_program
from homing.bench.programs import execute
from homing.bench.progress import Progress
from homing.bench.results import Results, Row, check_only
from homing.errors import UserError
from homing.installation import python_path
from homing.records import read_record
from homing.report.area_lines import owners

_PAGE = 4096
WINDOWS = "windows"
TOUCHES, BORDERS, AREAS = "touches", "borders", "areas"
#: Made-up areas for each pattern and number of touches (those that learner_of_0_1_0.json has), and made-up
#: programs.
MODEL_SIZES = {"small": ("24", "4"), "full": ("400", "20")}
#: Made-up areas of each kind that is nearly BLOCK: some 18 s.
BORDERED_AREAS = "200"


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: windows, touches, borders, areas."""
    check_only(only, (WINDOWS, TOUCHES, BORDERS, AREAS))
    results = Results(
        "sampling",
        "Sampling: touches that it takes to know who owns an area",
        tell(["sampling"]),
        notes=[
            "The model on areas whose owners are known, by the number of touches that it was shown "
            "(benchmarks/belief.cpp); the learner of 0.1.0 on the same areas and touches, as it was measured "
            "before it was deleted (homing/bench/learner_of_0_1_0.json). Areas that are nearly BLOCK, where "
            "the model chooses what is touched (benchmarks/borders.cpp). Programs of 60 areas, whose 200 "
            "touches are spent in several ways (benchmarks/questions.cpp). A program over 1 GiB with real "
            "windows, against one fault on each of 262,144 pages.",
        ],
    )
    areas, programs = MODEL_SIZES[size]
    progress = Progress("sampling", [2.0, 8.0, 10.0, 4.0])
    try:
        parts: tuple[tuple[str, str, Callable[[], None]], ...] = (
            (WINDOWS, "a program over 1 GiB with real windows", lambda: _windows(results)),
            (
                TOUCHES,
                "the belief, touch by touch",
                lambda: belief.touches(results, _output("belief", areas)),
            ),
            (
                BORDERS,
                "borders, where the model asks",
                lambda: belief.borders(results, _output("borders", BORDERED_AREAS)),
            ),
            (
                AREAS,
                "200 touches over 60 areas",
                lambda: belief.areas(results, _output("questions", programs)),
            ),
        )
        for name, what, part in parts:
            if not only or name in only:
                progress.step(what)
                part()
            progress.finished()
    finally:
        progress.close()
    return results


def _output(program: str, *words: str) -> dict[str, Any]:
    """The JSON object that a program of benchmarks/ prints."""
    path = find_bench_program(program)
    done = subprocess.run([path, *words], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise UserError(f"{path} ended with {done.returncode}", 1)
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def _windows(results: Results) -> None:
    """Real faults of real windows: two arrays of 512 MiB, each swept in blocks."""
    command = [
        find_program("drift_gcc"),
        "--bytes",
        "1G",
        "--iterations",
        "30",
        "--drift-pages-per-iteration",
        "0",
    ]
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        path = os.path.join(folder, "record")
        words = [sys.executable, "-m", "homing", "run", "--bind", "--summary", "none", "--record", path]
        own = {"HOMING_ASSUME_NODES": "4", "OMP_NUM_THREADS": "4", "PYTHONPATH": python_path()}
        variables = {**os.environ, **own}
        execute([*words, "--", *command], variables, name=command[0])
        record = read_record(path)
    found = "; ".join(owners(one) for one in record.ownerships.values())
    results.rows.append(
        Row(
            "windows.faults_ratio",
            record.overhead.faults * _PAGE / 2**30,
            "faults per page",
            f"{record.overhead.faults:,} faults in 30 iterations of drift with 4 assumed nodes: {found}",
        )
    )
