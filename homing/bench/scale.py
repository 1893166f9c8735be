"""What homing's engine takes on a machine that is not there: 64 nodes, 1,024 threads, 10 TiB.

The engine that ships runs over a kernel that answers from a table (benchmarks/scale.cpp). Sweeps of the
program take pretended time; what homing's own code takes is real.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from homing.bench.places import find_bench_program
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.errors import UserError

GIB = 1 << 30
TIB = 1 << 40
#: Of homing's own memory, for 10 GiB of the program's.
MOST_MEMORY = 1 << 20
#: Of the time of the program's sweeps, in the whole run and in an iteration of its second half.
MOST_OF_RUN, MOST_LATER = 0.03, 0.01
ITERATIONS = {"small": 40, "full": 200}


@dataclass(frozen=True)
class Part:
    """The words for benchmarks/scale.cpp, and what they say. limits: is it held against them?"""

    bytes: int
    areas: int
    page: str
    begin: str
    what: str
    limits: bool = True


PARTS = {
    "found": Part(10 * TIB, 40, "base", "found", "10 TiB in 40 arrays, base pages, all with their owners"),
    "many": Part(
        10 * TIB, 2000, "base", "found", "10 TiB in 2,000 arrays, base pages, all with their owners"
    ),
    "huge": Part(10 * TIB, 40, "huge", "found", "10 TiB in 40 arrays, huge pages, all with their owners"),
    "spilled": Part(
        10 * TIB, 40, "huge", "spilled", "10 TiB in 40 arrays, huge pages, filled node after node"
    ),
    "small": Part(
        64 * GIB,
        40,
        "base",
        "spilled",
        "64 GiB in 40 arrays, base pages, filled node after node: sweeps of 11 ms",
        limits=False,
    ),
}


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names in PARTS."""
    check_only(only, PARTS)
    iterations = ITERATIONS[size]
    results = Results(
        "scale",
        "Scale: the engine over 64 nodes, 1,024 threads and 10 TiB",
        tell(["scale"]),
        notes=[
            "The engine that ships, with windows as its source, over a kernel that answers from a table "
            "(benchmarks/scale.cpp): no memory is there. Arrays are BLOCK over 1,024 threads. Each iteration "
            "has three regions; a sweep over all arrays takes pretended time, at 100 GB/s a node. Own time "
            "is the processor time of homing's code on the thread that drives it, without what the kernel "
            "takes for its calls, nor the fault of a touch. Memory is what the process has more at the end "
            f"than before the engine was made. {iterations} iterations.",
        ],
    )
    chosen = [name for name in PARTS if not only or name in only]
    progress = Progress("scale", [1.0 for _ in chosen])
    try:
        for name in chosen:
            progress.step(PARTS[name].what)
            data = measure(PARTS[name], iterations)
            results.details[name] = data
            add_rows(results, name, data)
            progress.finished()
    finally:
        progress.close()
    return results


def measure(part: Part, iterations: int) -> dict[str, Any]:
    """The JSON object that benchmarks/scale.cpp prints."""
    path = find_bench_program("scale")
    words = [str(part.bytes), str(part.areas), part.page, part.begin, str(iterations)]
    done = subprocess.run([path, *words], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise UserError(f"{path} {' '.join(words)} ended with {done.returncode}", 1)
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def add_rows(results: Results, name: str, data: dict[str, Any]) -> None:
    """Rows and checks of one part."""
    part = PARTS[name]
    own: list[float] = data["own_seconds"]
    sweep: float = data["sweep_seconds"]
    later = own[len(own) // 2 :]
    of_run = sum(own) / (len(own) * sweep)
    of_later = statistics.fmean(later) / sweep
    memory = data["resident_bytes"] * 10 * GIB / data["bytes"]
    moved = f"{data['moved']:,} of {data['bytes'] // data['granule']:,} granules moved"
    right = f"{data['right_before']:.1%} at home before, {data['right']:.1%} then; {moved}"
    results.rows += [
        Row(
            f"{name}.iteration.mean",
            1e3 * statistics.fmean(own),
            "ms",
            f"{part.what}; {1e3 * sweep:.0f} ms of sweeps",
        ),
        Row(f"{name}.iteration.median", 1e3 * statistics.median(own), "ms"),
        Row(f"{name}.iteration.most", 1e3 * max(own), "ms", f"in iteration {own.index(max(own)) + 1}"),
        Row(f"{name}.iteration.later", 1e3 * statistics.fmean(later), "ms", "mean of the second half"),
        Row(f"{name}.of_run", of_run, "of the sweeps' time"),
        Row(
            f"{name}.memory",
            data["resident_bytes"] / (1 << 20),
            "MiB",
            f"{memory / (1 << 20):.3f} MiB for 10 GiB",
        ),
        Row(f"{name}.right", data["right"], "fraction of pages", right),
    ]
    if not part.limits:
        return
    results.checks += [
        Check(
            f"{name}: at most 1 MiB of homing's own memory for 10 GiB",
            memory <= MOST_MEMORY,
            f"{memory / (1 << 20):.3f} MiB",
        ),
        Check(f"{name}: at most {MOST_OF_RUN:.0%} of the run", of_run <= MOST_OF_RUN, f"{of_run:.2%}"),
        Check(
            f"{name}: at most {MOST_LATER:.0%} in the second half",
            of_later <= MOST_LATER,
            f"{of_later:.2%}",
        ),
    ]
