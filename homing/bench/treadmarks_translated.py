"""For `homing bench treadmarks`: what `homing translate --to mpi` makes of apps/chapman, on that memory.

Its MPI is apps/dsm/ranks: messages through buffers that are shared, as in the SPMD style of the paper's
section 5, with a barrier for each exchange.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homing.bench.chapman_programs import ARCHITECTURE, FLAGS
from homing.bench.chapman_runs import quiet_environment
from homing.bench.places import sources_folder
from homing.bench.programs import COMMON, execute
from homing.errors import UserError
from homing.installation import python_path

PROGRAMS = ("jacobi", "lu", "lbe", "cases", "program")
#: Steps of the shorter run, and of the longer one; what a step takes is their difference.
SHORT, LONG = 2, 12


def build(code: str, folder: Path, flags: Sequence[str] = (*FLAGS, *ARCHITECTURE)) -> str:
    """The translated program. UserError where it cannot be made."""
    apps = sources_folder() / "apps"
    folder.mkdir(parents=True, exist_ok=True)
    translate = [sys.executable, "-m", "homing", "translate", str(apps / "chapman" / f"{code}.c")]
    environment = {**os.environ, "PYTHONPATH": python_path()}
    execute([*translate, "--to", "mpi", "-I", str(apps / "common"), "-o", str(folder)], environment)
    memory = [path for path in sorted((apps / "dsm").glob("*.c")) if path.stem not in PROGRAMS]
    ours = [
        *memory,
        apps / "dsm" / "ranks" / "ranks.c",
        *(apps / "common" / f"{name}.c" for name in COMMON),
    ]
    target = folder / f"{code}-translated"
    command = ["gcc", *flags, "-DHOMING_MPI", f"-I{apps / 'dsm' / 'ranks'}"]
    command += [
        f"-I{apps / 'common'}",
        *map(str, ours),
        "homing_parts.c",
        f"{code}.c",
        "-lm",
        "-o",
        str(target),
    ]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"gcc: {error.strerror}; install it to measure its programs", 1) from error
    if done.returncode != 0:
        raise UserError(f"{' '.join(command)} failed: {' '.join(done.stderr.split())[:600]}", 1)
    return str(target)


def arguments(code: str, points: int) -> list[str]:
    """apps/chapman counts points without the boundary; LU has none."""
    if code == "lu":
        return ["--n", str(points)]
    inside = str(points - 2)
    return ["--n", inside] if code == "jacobi" else ["--nx", inside, "--ny", inside]


def _run(path: str, words: Sequence[str], processes: int, costs: str) -> tuple[str, dict[str, Any]]:
    """The results' lines, and the counts."""
    extra = {"DSM_PROCESSES": str(processes), "DSM_MEASURE": "1", "DSM_COSTS": costs}
    text = execute([path, *words], quiet_environment(1, **extra)).stdout
    if "verification: successful" not in text:
        raise UserError(f"{path}: not verified with {processes} processes", 1)
    results = "\n".join(line for line in text.splitlines() if line.startswith("result"))
    counts = re.findall(r"^count (\w+): (\d+) ", text, re.MULTILINE)
    times = re.findall(r"^predicted \d: ([0-9.]+) us$", text, re.MULTILINE)
    return results, {"sums": {name: int(number) for name, number in counts}, "us": [*map(float, times)]}


def count(path: str, code: str, points: int, processes: int, costs: str) -> dict[str, Any]:
    """Counts and predicted microseconds without computing: of a step; of LU as a whole, its begin and end
    included. The digits must be those of one process."""
    words = arguments(code, points)
    if code == "lu":
        first, found = _run(path, words, processes, costs)
        alone, _ = _run(path, words, 1, costs)
    else:
        words += ["--iterations", "1", "--steps"]
        alone, _ = _run(path, [*words, str(LONG)], 1, costs)
        _, short = _run(path, [*words, str(SHORT)], processes, costs)
        first, found = _run(path, [*words, str(LONG)], processes, costs)
        for name, number in short["sums"].items():
            found["sums"][name] = (found["sums"][name] - number) / (LONG - SHORT)
        found["us"] = [(b - a) / (LONG - SHORT) for a, b in zip(short["us"], found["us"], strict=True)]
    if first != alone:
        raise UserError(f"{path}: other digits with {processes} processes than alone", 1)
    return found


def work(code: str, points: int, processes: int) -> float:
    """Points of a step, or elements, of the process with most to do between two barriers."""
    if code == "lu":
        columns = range(1, points)
        return float(sum(left * (1 + -(-left // processes)) for left in columns))
    rows = min(-(-points // processes), points - 2)
    return float(rows * (points - 2))
