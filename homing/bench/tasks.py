"""`homing bench tasks`: what locality queues cost and bring (benchmarks/tasks.cpp).

Costs and the imbalanced load are measured here, with two pretended domains of one core each; the share of
tasks at home is counted in the guest with four nodes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from homing.bench.overhead import upper_bound
from homing.bench.places import find_bench_program, kept_folder
from homing.bench.programs import Output
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, library_key
from homing.bench.task_runs import TaskGuest, numbers, run_here
from homing.errors import UserError
from homing.installation import find_library

THREADS = 2
RUNTIMES = {"gcc": "libgomp", "clang": "libomp"}
MICROSECONDS = (1, 10, 100)
#: Seconds of one kind of tasking in one round, all threads together.
_ROUND_SECONDS = {"small": 0.02, "full": 0.06}
_ROUNDS = {"small": 15, "full": 60}
#: Blocks, KiB a block, passes over a block, sweeps in the guest: sweeps of a second or more.
_HOME = {"small": (1200, 64, 16, 1), "full": (1200, 128, 32, 3)}
PARTS = (
    *(f"cost.{us}us.{runtime}" for us in MICROSECONDS for runtime in RUNTIMES),
    *(f"throughput.{threads}" for threads in (1, 2)),
    *(f"imbalanced.{runtime}" for runtime in RUNTIMES),
    "home",
)


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float]:
    """The median of the rounds' ratios, and its upper 95 % bound."""
    return upper_bound([one / other for one, other in zip(over, under, strict=True)])


def _table(output: Output) -> dict[str, list[float]]:
    return {
        name: numbers(output, name)
        for name in output.fields
        if name not in ("blocks", "at_home", "verification")
    }


def _measure(name: str, size: str) -> dict[str, Any]:
    """One part that is measured here."""
    kind, *rest = name.split(".")
    if kind == "throughput":
        program = find_bench_program("tasks_gcc")
        output = run_here([program, kind, rest[0], str(_ROUNDS[size])], threads=THREADS, nodes=THREADS)
        return {"blocks": numbers(output, "blocks")[0], "seconds": _table(output)}
    program = find_bench_program(f"tasks_{rest[-1]}")
    rounds = str(_ROUNDS[size])
    if kind == "imbalanced":
        command = [program, "imbalance", "20", "3000", rounds]
        output = run_here(command, threads=THREADS, nodes=THREADS)
        return {"at_home": numbers(output, "at_home")[0], "milliseconds": _table(output)}
    us = int(rest[0].removesuffix("us"))
    tasks = max(200, int(_ROUND_SECONDS[size] * 1e6 * THREADS / (us + 1)))
    command = [program, "cost", str(us), str(tasks), rounds]
    return {
        "nanoseconds": _table(
            run_here(command, threads=THREADS, nodes=THREADS, clause=RUNTIMES[rest[-1]] == "libomp")
        )
    }


def _count_homes(size: str, progress: Progress) -> dict[str, Any]:
    """At home in the guest: by load, [kind -> shares of the sweeps]."""
    found = {}
    with TaskGuest(progress.note) as guest:
        for load, weight in (("balanced", "1"), ("imbalanced", "2")):
            command = [find_bench_program("tasks_clang"), "home", *map(str, _HOME[size]), weight]
            output = guest.run(command, clause=True)
            found[load] = {
                kind: {"shares": numbers(output, kind), "seconds": numbers(output, f"time {kind}")}
                for kind in ("omp", "queues", "clause")
            }
    return found


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names of parts, such as cost.10us.gcc or home, or their beginnings."""
    chosen = [name for name in PARTS if not only or any(name.startswith(part) for part in only)]
    if not chosen:
        raise UserError(f"--only {','.join(only)}: no such parts; there are {', '.join(PARTS)}")
    library = find_library()
    programs = [library, *(find_bench_program(f"tasks_{runtime}") for runtime in RUNTIMES)]
    key = {"built": [library_key(path) for path in programs]}
    parts = Parts(kept_folder() / f"tasks-{size}.json", key)
    if redo:
        parts.drop(chosen)
    progress = Progress("tasks", [15.0 if name == "home" else 2.0 for name in chosen])
    load = os.getloadavg()[0]
    parts.measure(
        chosen,
        progress,
        lambda name: _count_homes(size, progress) if name == "home" else _measure(name, size),
    )
    results = Results("tasks", "Locality queues: what they cost and bring", tell(["tasks"]))
    for name in chosen:
        found: dict[str, Any] = parts.get(name) or {}
        if name.startswith("cost."):
            _cost_rows(results, name, found["nanoseconds"])
        elif name.startswith("throughput."):
            _throughput_rows(results, name, found)
        elif name.startswith("imbalanced."):
            _imbalance_rows(results, name, found)
        else:
            _home_rows(results, found)
    _worst(results)
    load = max(load, os.getloadavg()[0])
    results.notes.append(
        f"{THREADS} threads, bound, on {THREADS} pretended domains of one CPU each. Ratios are medians of "
        "rounds in which all kinds took turns within one process. `vs_omp`: locality queues over plain tasks "
        "of the same runtime, which submit the same number of tasks; `vs_tbb`: queues in parallel_for over "
        "parallel_for, both with the affinity partitioner; `clause`: tasks with the affinity clause, "
        "followed by homing, over plain tasks. Shares at home were counted by the program in the guest with "
        f"4 nodes of one CPU. The load was up to {load:.1f} on {os.cpu_count()} CPUs."
    )
    results.details = {name: parts.get(name) for name in chosen}
    return results


def _ratio_row(
    results: Results, name: str, over: Sequence[float], under: Sequence[float], note: str
) -> float:
    median, bound = ratio(over, under)
    results.rows.append(Row(name, median, "ratio", f"upper 95 % bound {bound:.3f}; {note}"))
    return median


def _cost_rows(results: Results, name: str, found: dict[str, list[float]]) -> None:
    _, us, runtime = name.split(".")
    plain = f"plain {np.median(found['omp']):.0f} ns a task, queues {np.median(found['queues']):.0f} ns"
    _ratio_row(results, f"cost.{us}.vs_omp.{runtime}", found["queues"], found["omp"], plain)
    plain = f"plain {np.median(found['tbb']):.0f} ns a task, queues {np.median(found['tbb_queues']):.0f} ns"
    _ratio_row(results, f"cost.{us}.vs_tbb.{runtime}", found["tbb_queues"], found["tbb"], plain)
    if "clause" in found:
        _ratio_row(
            results,
            f"clause.{us}.vs_omp.{runtime}",
            found["clause"],
            found["omp"],
            f"{np.median(found['clause']):.0f} ns a task",
        )


def _worst(results: Results) -> None:
    """cost.10us.vs_omp and the like: the dearer of the two runtimes."""
    for us in MICROSECONDS:
        for peer in ("omp", "tbb"):
            name = f"cost.{us}us.vs_{peer}"
            both = [row for row in results.rows if row.name.startswith(name + ".")]
            if not both:
                continue
            worst = max(both, key=lambda row: row.value)
            runtime = RUNTIMES[worst.name.split(".")[-1]]
            results.rows.append(Row(name, worst.value, "ratio", f"the dearer: with {runtime}"))
            if us == 10:
                results.checks.append(
                    Check(f"{name}: at most 1.1", worst.value <= 1.1, f"{worst.value:.3f} with {runtime}")
                )


def _throughput_rows(results: Results, name: str, found: dict[str, Any]) -> None:
    for kind, seconds in found["seconds"].items():
        rate = found["blocks"] / float(np.median(seconds)) / 1e6
        results.rows.append(Row(f"{name}_threads.{kind}", rate, "million/s", "blocks put and taken"))


def _imbalance_rows(results: Results, name: str, found: dict[str, Any]) -> None:
    times = found["milliseconds"]
    runtime = name.split(".")[1]
    note = f"{100 * found['at_home']:.0f} % of the tasks at home"
    row = f"imbalanced.time_ratio.{runtime}"
    median = _ratio_row(results, row, times["queues"], times["omp"], note)
    results.checks.append(
        Check(f"{row}: within 10 % of plain tasking", median <= 1.1, f"{median:.3f}; {note}")
    )


def _home_rows(results: Results, found: dict[str, Any]) -> None:
    shares = {
        load: {kind: float(np.mean(one["shares"])) for kind, one in kinds.items()}
        for load, kinds in found.items()
    }
    for load, kinds in shares.items():
        for kind, share in kinds.items():
            name = f"home.{load}" + ("" if kind == "queues" else f".{kind}")
            seconds = float(np.median(found[load][kind]["seconds"]))
            results.rows.append(Row(name, share, "fraction", f"sweeps of {seconds:.1f} s in the guest"))
    for kind in ("queues", "clause"):
        share = shares["balanced"][kind]
        results.checks.append(
            Check(f"home.balanced, {kind}: at least 95 %", share >= 0.95, f"{100 * share:.1f} %")
        )
        mine, plain = shares["imbalanced"][kind], shares["imbalanced"]["omp"]
        times = mine / plain if plain else math.inf
        results.checks.append(
            Check(
                f"home.imbalanced, {kind}: at least twice plain tasking's",
                times >= 2,
                f"{100 * mine:.1f} % against {100 * plain:.1f} %",
            )
        )
