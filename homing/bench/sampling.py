"""The cost of sending 1 GiB home: sampled pages and inferred owners, against a fault on every page.

The owners are known in benchmarks/sampling.cpp, which samples and infers with the library's own policy code.
A run of a real program over 1 GiB with homing's real windows on this machine says how many faults those took.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from homing.bench import belief
from homing.bench.places import find_bench_program, find_program
from homing.bench.programs import execute
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.errors import UserError
from homing.records import read_record

_PAGE = 4096
_SEEDS = {"small": 20, "full": 200}
PATTERNS = ("block", "cyclic", "narrow", "tiles", "mixed", "shared")
#: The share of right owners that is required at a tenth of the faults. Nothing is of narrow: it shows what
#: pages of two owners cost; they cost the tiles the rest.
REQUIRED = {"block": 0.99, "cyclic": 0.99, "tiles": 0.95, "shared": 0.99}
#: Where there is no pattern: the share of pages that may go to a node that does not own them.
MOST_WRONG = {"mixed": 0.01}
WINDOWS = "windows"
TOUCHES, AREAS = "touches", "areas"
#: Made-up areas for each pattern and number of touches, and made-up programs.
_MODEL_SIZES = {"small": ("24", "4"), "full": ("400", "20")}


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names in PATTERNS, or windows, touches, areas."""
    check_only(only, (*PATTERNS, WINDOWS, TOUCHES, AREAS))
    results = Results(
        "sampling",
        "Sampling: faults that it takes to find the owners of 1 GiB",
        tell(["sampling"]),
        notes=[
            "Against one fault on every one of 262,144 pages. Patterns of 4 nodes over an array that does "
            "not begin at a page's border, read by neighbours near the borders (benchmarks/sampling.cpp), "
            "sampled and inferred by the library's own code until its own rule says that it has settled. "
            "Medians over seeds, the worst beside them. Blocks of cyclic are 97.66 pages, of narrow 39.06: "
            "there one page in 39 holds elements of two owners, is first touched by either, and counts as "
            "right only on the node of the element in its middle. Rows of the square array that is cut into "
            "2 x 2 tiles are 22.6 pages. In mixed, pages of two nodes lie at random: there is no pattern.",
        ],
    )
    areas, programs = _MODEL_SIZES[size]
    progress = Progress("sampling", [1.0, 2.0, 8.0, 4.0])
    try:
        parts: tuple[tuple[Sequence[str], str, Callable[[], None]], ...] = (
            (PATTERNS, "patterns", lambda: _patterns(results, size, only)),
            ((WINDOWS,), "a program over 1 GiB with real windows", lambda: _windows(results)),
            (
                (TOUCHES,),
                "the belief, touch by touch",
                lambda: belief.touches(results, _output("belief", areas)),
            ),
            (
                (AREAS,),
                "200 touches over 60 areas",
                lambda: belief.areas(results, _output("questions", programs)),
            ),
        )
        for names, what, part in parts:
            if not only or set(only) & set(names):
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


def _patterns(results: Results, size: str, only: Sequence[str]) -> None:
    data = _output("sampling", "1024", str(_SEEDS[size]))
    for pattern in PATTERNS:
        if not only or pattern in only:
            _pattern(results, pattern, data)
    results.details = data


def _pattern(results: Results, name: str, data: dict[str, Any]) -> None:
    pages = data["pages"]
    faults = [entry["faults"] / pages for entry in data["patterns"][name]]
    right = [entry["right"] / pages for entry in data["patterns"][name]]
    ratio, share = statistics.median(faults), statistics.median(right)
    results.rows += [
        Row(
            f"{name}.faults_ratio",
            ratio,
            "faults per page",
            f"worst of {len(faults)} seeds {max(faults):.4f}",
        ),
        Row(
            f"{name}.right_owners",
            share,
            "fraction of pages",
            f"worst of {len(right)} seeds {min(right):.4f}",
        ),
    ]
    if name in REQUIRED:
        results.checks.append(
            Check(
                f"{name}: at most a tenth of the faults at {REQUIRED[name]:.0%} right owners",
                ratio <= 0.1 and share >= REQUIRED[name],
                f"{ratio:.2%} of the faults, {share:.2%} right",
            )
        )
    if name in MOST_WRONG:
        wrong = [entry["wrong"] / pages for entry in data["patterns"][name]]
        astray = statistics.median(wrong)
        worst = f"worst of {len(wrong)} seeds {max(wrong):.4f}"
        results.rows.append(Row(f"{name}.wrong_owners", astray, "fraction of pages", worst))
        results.checks.append(
            Check(
                f"{name}: at most {MOST_WRONG[name]:.0%} of the pages go to wrong owners",
                astray <= MOST_WRONG[name],
                f"{astray:.2%} wrong",
            )
        )


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
        variables = {**os.environ, "HOMING_ASSUME_NODES": "4", "OMP_NUM_THREADS": "4"}
        execute([*words, "--", *command], variables, name=command[0])
        record = read_record(path)
    owners = list(record.ownerships.values())
    found = ", ".join(f"{one.kind} in {one.runs} runs, confidence {one.confidence:.2f}" for one in owners)
    results.rows.append(
        Row(
            "windows.faults_ratio",
            record.overhead.faults * _PAGE / 2**30,
            "faults per page",
            f"{record.overhead.faults:,} faults in 30 iterations of drift with 4 assumed nodes: {found}",
        )
    )
