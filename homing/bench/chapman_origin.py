"""Speed-ups on the described Origin 2000, by a model of time on counted misses (figures 2, 4a and 5a).

The machine's second-level caches are simulated, every access of every thread; the model makes seconds of the
counts with the latencies that Chapman, Patil and Prabhakar give in section 2. Nothing in it is fitted.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from homing.bench.chapman_runs import MACHINE, quiet_environment
from homing.bench.programs import execute
from homing.bench.results import Check, Row
from homing.errors import UserError
from homing.installation import python_path
from homing.simulate import machines

#: Nanoseconds of an access that the first-level cache serves, the second-level one, and the own node's
#: memory: section 2 has 5.5 ns, ten times as much, and another six times as much.
FIRST_NS = 5.5
SECOND_NS = 10 * FIRST_NS
LOCAL_NS = 6 * SECOND_NS
#: The first-level cache of section 2. Its lines have 32 bytes, the simulator's 64 at least: the codes run
#: through memory in order, so that each miss of 64 bytes is two.
FIRST_CACHE = "32KiB:2"
_LEAST_LINE = 64
_FIRST_LINE = 32
#: A barrier: a tree whose every level costs two accesses to another node's memory, one up and one down (ours;
#: the paper gives none).
_ACCESSES_A_LEVEL = 2
#: A double-precision division: one every 21 cycles (SGI's table of the R12000's latencies) of 4 ns; what a
#: SINGLE or an owner divides, all others wait for.
DIVISION_NS = 84.0
#: Phases of the timed iterations (apps/common/mark.h).
_TIMED = (2, 3)
#: Barriers of a step, of LU of a column: at the ends of regions, DO and SINGLE in the plain programs; of
#: those in SPMD style (True) as the translator writes them, each exchange in which anybody gets anything has
#: one.
BARRIERS = {
    ("jacobi", False): 2,
    ("jacobi", True): 1,
    ("lu", False): 2,
    ("lu", True): 1,
    ("lbe", False): 6,
    ("lbe", True): 1,
}

MODEL = (
    f"T = a thread's accesses x {FIRST_NS:g} ns + those that miss {FIRST_CACHE} in lines of {_FIRST_LINE} x "
    f"{SECOND_NS:g} ns + its misses in 4MiB:2 in lines of 128 x {LOCAL_NS:g} ns x distance (1 at home, 1.7 "
    "at the next node, 0.5 more a hop) of the node that waits longest + barriers (2 log2 P accesses to "
    "another node's memory) + in LU the divisions of a column, for which all wait; at least what the busiest "
    "memory serves, over its bandwidth. Nothing overlaps, nothing is prefetched. 'queued': LU's readers of a "
    "pivot column are served one after the other, too"
)


def reduced(counts: Mapping[str, Any], threads: int) -> dict[str, float]:
    """Of a run's counts what the model needs, in its timed phases: `accesses`, `misses`, `remote`,
    `waiting_ns` of a thread of the node that waits longest, `served` by the busiest node, and of the whole
    run `remote_fraction`."""
    described = machines.find(MACHINE)
    phases = [one for one in counts["phases"] if one["phase"] in _TIMED]
    if not phases:
        raise UserError(f"the program marked no timed iterations on {MACHINE}", 1)
    nodes = described.nodes
    misses = [[sum(one["misses"][a][b] for one in phases) for b in range(nodes)] for a in range(nodes)]
    waiting, left = [], threads
    for node in range(nodes):
        here = min(described.cpus[node], left)
        left -= here
        ns = sum(
            count * LOCAL_NS * described.distances[node][home] / 10 for home, count in enumerate(misses[node])
        )
        waiting.append(ns / here if here else 0.0)
    total = sum(map(sum, misses))
    return {
        "accesses": sum(one["accesses"] for one in phases),
        "misses": total,
        "remote": total - sum(misses[node][node] for node in range(nodes)),
        "waiting_ns": max(waiting),
        "served": max(sum(row[home] for row in misses) for home in range(nodes)),
        "run_misses": counts["run"]["total_misses"],
        "run_remote": counts["run"]["remote_misses"],
        "remote_fraction": counts["run"]["remote_fraction"],
    }


def counted(machine: str, command: Sequence[str], threads: int, more: Sequence[str] = ()) -> dict[str, Any]:
    """The `counts` of a run on a machine (a name or a file). Threads fill one node after the other."""
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        path = os.path.join(folder, "run.json")
        words = [sys.executable, "-m", "homing", "run", "--on", machine, "--mechanism", "observe", *more]
        words += ["--summary", "none", "--json", path, "--", *command]
        binding = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores", "PYTHONPATH": python_path()}
        execute(words, {**quiet_environment(threads), **binding}, 7200.0)
        found: dict[str, Any] = json.loads(Path(path).read_text())["counts"]
    return found


def simulated(command: Sequence[str], threads: int, cache: str = "") -> dict[str, float]:
    """A run on the Origin 2000, reduced. cache: in place of the machine's, with pages of 8 KiB."""
    more = ["--cache", cache, "--page-size", "8KiB"] if cache else []
    return reduced(counted(MACHINE, command, threads, more), threads)


def first_level(command: Sequence[str]) -> float:
    """Of one thread's accesses in the timed phases, the share that misses the first-level cache."""
    described = machines.find(MACHINE)
    text = Path(described.path).read_text()
    text = text.replace("line = 128", f"line = {_LEAST_LINE}")
    text = text.replace('{ size = "4MiB", ways = 2 }', '{ size = "32KiB", ways = 2 }')
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        path = Path(folder) / "first_level.toml"
        path.write_text(text)
        one = reduced(counted(str(path), command, 1), 1)
    return _LEAST_LINE / _FIRST_LINE * one["misses"] / one["accesses"]


def largest_share(code: str, threads: int, size: int) -> float:
    """The busiest thread's part of the accesses, in parts of 1/threads, where columns are dealt out whole: in
    equal blocks or in turn, a thread has at most ceil(columns/threads)."""
    if code != "lu":
        return math.ceil(size / threads) * threads / size
    left = range(1, size)
    return threads * sum(math.ceil(m / threads) * m for m in left) / sum(m * m for m in left)


def barrier_ns(threads: int) -> float:
    """One barrier of so many threads; none of one."""
    if threads == 1:
        return 0.0
    described = machines.find(MACHINE)
    nodes = math.ceil(threads / described.cpus[0])
    far = [described.distances[0][home] for home in range(1, nodes)] or [10.0]
    return _ACCESSES_A_LEVEL * math.ceil(math.log2(threads)) * LOCAL_NS * sum(far) / len(far) / 10


def queued_seconds(threads: int, size: int) -> float:
    """LU: what the memory of the pivot columns needs to serve all threads but one, each column a step of its
    own."""
    described = machines.find(MACHINE)
    lines = sum(math.ceil(8 * (size - k) / described.line) for k in range(1, size))
    return (threads - 1) * lines * described.line / (1e9 * described.bandwidth_gbs)


def seconds(
    one: Mapping[str, float], code: str, spmd: bool, threads: int, size: int, steps: int, first: float
) -> float:
    """The model, without queues at pivot columns. one: what simulated() gave; steps: timed steps (LU:
    columns); first: what first_level() gave."""
    described = machines.find(MACHINE)
    accesses = one["accesses"] / threads * largest_share(code, threads, size)
    time = 1e-9 * (accesses * (FIRST_NS + first * SECOND_NS) + one["waiting_ns"])
    time += 1e-9 * steps * BARRIERS[(code, spmd)] * barrier_ns(threads)
    if code == "lu":
        time += 1e-9 * DIVISION_NS * sum(range(1, size))
    return max(time, one["served"] * described.line / (1e9 * described.bandwidth_gbs))


# --- what is run --------------------------------------------------------------------------------------------

#: By size: arguments, and threads. The paper's sizes (sections 4.1 to 4.3); its LU matrix is `real`, 8 bytes
#: here. Steps are alike, so that four of Jacobi and LBE stand for all; LU is whole.
ARGUMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "small": {
        "jacobi": ("--n", "256", "--iterations", "2", "--steps", "2"),
        "lu": ("--n", "128"),
        "lbe": ("--nx", "64", "--ny", "64", "--iterations", "2", "--steps", "2"),
    },
    "full": {
        "jacobi": ("--n", "1024", "--iterations", "2", "--steps", "2"),
        "lu": ("--n", "2048"),
        "lbe": ("--nx", "256", "--ny", "256", "--iterations", "2", "--steps", "2"),
    },
}
THREADS = {"small": (1, 4, 16), "full": (1, 2, 4, 8, 16, 32, 64, 128)}
#: LU's runs take minutes each; the paper's curves of it end with 32.
_LU_THREADS = (1, 4, 16, 32, 64, 128)
#: Of a smaller matrix, whose columns lie in the first-level cache as the large one's do: two at a time.
_LU_FIRST_LEVEL = ("--n", "1024")
#: distribute and reshape are one program under --to pages; no_affinity is LU's alone.
VERSIONS = {
    "jacobi": ("shared", "distribute", "spmd"),
    "lu": ("shared", "distribute", "no_affinity", "spmd"),
    "lbe": ("shared", "distribute", "spmd"),
}


#: LU on other second-level caches, (cache, threads), and a matrix of a quarter of the size, whose columns are
#: pages of 8 KiB: 1 MiB is to it what 4 MiB are to the large one. 32 ways: the machine's cache is indexed by
#: physical addresses, which the simulator has not; by virtual ones the columns of a thread, a power of two
#: apart, lie upon one another. 256 KiB stand for 1 MiB: section 2 has caches of 1 to 4 MB, and in 4 MiB each
#: of 16 threads keeps its part.
OTHER_CACHES = {"small": (), "full": (("1MiB:2", 32), ("1MiB:32", 32), ("256KiB:32", 16))}
_OTHER_SIZE = 1024


def others_planned(code: str, size: str) -> list[tuple[str, int, str]]:
    """The runs with other caches: (version, threads, cache)."""
    if code != "lu":
        return []
    return [(version, count, cache) for cache, count in OTHER_CACHES[size] for version in VERSIONS[code]]


def other_rows(
    runs: Mapping[tuple[str, int, str], Mapping[str, float]], first: Mapping[str, float]
) -> list[Row]:
    """LU on other caches: the model's seconds, beside those of DISTRIBUTE."""
    made = []
    for (version, threads, cache), one in runs.items():

        def time(name: str, threads: int = threads, cache: str = cache) -> float:
            run = runs.get((name, threads, cache))
            if run is None:
                return math.nan
            spmd = name == "spmd"
            return seconds(run, "lu", spmd, threads, _OTHER_SIZE, _OTHER_SIZE - 1, first[name])

        note = (
            f"model; {time(version) / time('distribute'):.2f} times DISTRIBUTE's; {one['remote']:,.0f} of "
            f"{one['misses']:,.0f} misses remote"
        )
        name = f"lu.fortran.origin.n1024.{version}.t{threads}.cache_{cache.replace(':', '_')}"
        made.append(Row(name, time(version), "s", note))
    return made


def planned(code: str, size: str) -> list[tuple[str, int]]:
    """The runs: (version, threads). One thread's run is the plain program's alone in LU."""
    if (code, size) != ("lu", "full"):
        return [(version, count) for version in VERSIONS[code] for count in THREADS[size]]
    chosen = [(version, count) for count in _LU_THREADS for version in VERSIONS[code]]
    return [(version, count) for version, count in chosen if count > 1 or version == "shared"]


def steps_of_progress(code: str, size: str) -> int:
    return len(planned(code, size)) + len(VERSIONS[code]) + len(others_planned(code, size))


def arguments(code: str, version: str, size: str) -> tuple[str, ...]:
    """The plain program touches its pages first in parallel (section 4: first touch)."""
    return (*ARGUMENTS[size][code], *(("--initialise", "parallel") if version == "shared" else ()))


def other_arguments(version: str) -> tuple[str, ...]:
    """Of the runs with other caches."""
    first_touch = ("--initialise", "parallel") if version == "shared" else ()
    return ("--n", str(_OTHER_SIZE), *first_touch)


def first_level_arguments(code: str, version: str, size: str) -> tuple[str, ...]:
    """Of the run of one thread that first_level() counts."""
    if (code, size) != ("lu", "full"):
        return arguments(code, version, size)
    return _LU_FIRST_LEVEL


def _dimensions(code: str, size: str) -> tuple[int, int]:
    """Columns that are dealt out, and timed steps."""
    words = ARGUMENTS[size][code]
    columns = int(words[words.index("--ny" if code == "lbe" else "--n") + 1])
    return columns, columns - 1 if code == "lu" else 4


def speedups(
    code: str, size: str, runs: Mapping[tuple[str, int], Mapping[str, float]], first: Mapping[str, float]
) -> dict[tuple[str, int], tuple[float, float]]:
    """By (version, threads): the speed-up over the plain program with one thread, without and with LU's
    queues at pivot columns."""
    if ("shared", 1) not in runs:
        return {}
    columns, steps = _dimensions(code, size)

    def time(version: str, threads: int) -> float:
        one = runs[(version, threads)]
        return seconds(one, code, version == "spmd", threads, columns, steps, first[version])

    serial = time("shared", 1)
    found = {}
    for version, threads in runs:
        plain = time(version, threads)
        queued = plain + (queued_seconds(threads, columns) if code == "lu" else 0.0)
        found[(version, threads)] = (serial / plain, serial / queued)
    return found


def rows(
    code: str, size: str, runs: Mapping[tuple[str, int], Mapping[str, float]], first: Mapping[str, float]
) -> list[Row]:
    """Remote misses, counted, and speed-ups, by the model."""
    made = []
    for (version, threads), one in runs.items():
        name = f"{code}.fortran.origin.{version}.remote_fraction.t{threads}"
        note = (
            f"{one['run_remote']:,.0f} of {one['run_misses']:,.0f} misses of the run; timed steps "
            f"{one['remote']:,.0f} of {one['misses']:,.0f}, {one['accesses']:,.0f} accesses"
        )
        made.append(Row(name, one["remote_fraction"], "fraction", note))
    for (version, threads), (plain, queued) in speedups(code, size, runs, first).items():
        name = f"{code}.fortran.origin.{version}.speedup.t{threads}"
        note = f"model; queued: {queued:.3g}" if code == "lu" else "model"
        made.append(Row(name, plain, "of 1 thread", note))
    return made


def checks(
    code: str, size: str, runs: Mapping[tuple[str, int], Mapping[str, float]], first: Mapping[str, float]
) -> list[Check]:
    """What the paper says of its curves (it prints no numbers), of the paper's sizes."""
    found = {key: plain for key, (plain, _) in speedups(code, size, runs, first).items()}
    if size != "full" or not found:
        return []

    def of(version: str, threads: int) -> float:
        return found.get((version, threads), math.nan)

    def told(threads: int) -> str:
        parts = (f"{version} {of(version, threads):.3g}" for version in VERSIONS[code])
        return f"with {threads}: " + ", ".join(parts)

    def best(versions: Sequence[str], threads: int) -> bool:
        return all(of("spmd", threads) > of(version, threads) for version in versions)

    others = tuple(version for version in VERSIONS[code] if version != "spmd")
    said: list[tuple[str, bool, str]] = [
        (
            "SPMD is faster than all others from 16 threads to the paper's most (section 5)",
            all(best(others, threads) for threads in (16, 32)),
            f"{told(16)}; {told(32)}",
        )
    ]
    if code == "jacobi":
        said += [
            (
                "first touch and DISTRIBUTE are alike up to 64 threads (section 4.1; within 10 %)",
                all(abs(of("distribute", one) / of("shared", one) - 1) <= 0.1 for one in (16, 32, 64)),
                told(64),
            ),
            ("SPMD is superlinear (section 5; with 16)", of("spmd", 16) > 16, told(16)),
            (
                "SPMD is good up to 128 threads, no longer linear (section 5)",
                of("spmd", 64) < of("spmd", 128) < 128,
                f"{told(64)}; {told(128)}",
            ),
        ]
    if code == "lu":
        said += [
            (
                "without directives less than linear after 16 threads (section 4.2)",
                of("shared", 32) < 32,
                f"{told(16)}; {told(32)}",
            ),
            (
                "DISTRIBUTE is nearly linear with 32 threads (section 4.2; 0.8)",
                of("distribute", 32) >= 0.8 * 32,
                told(32),
            ),
            (
                "DISTRIBUTE without AFFINITY takes about 1.4 times as long (section 4.2; 1.2 to 1.6 with 16)",
                1.2 <= of("distribute", 16) / of("no_affinity", 16) <= 1.6,
                ", ".join(
                    f"{of('distribute', one) / of('no_affinity', one):.3g} with {one}"
                    for one in _LU_THREADS[1:]
                ),
            ),
            ("SPMD is superlinear (section 5; with 16)", of("spmd", 16) > 16, told(16)),
        ]
    if code == "lbe":
        said.append(
            (
                "all but SPMD are alike up to 32 threads (section 4.3; within 10 %)",
                all(abs(of("distribute", one) / of("shared", one) - 1) <= 0.1 for one in (8, 16, 32)),
                f"{told(8)}; {told(32)}",
            )
        )
    return [Check(f"{code} on {MACHINE}: {name}", passed, text) for name, passed, text in said]


def note(size: str) -> str:
    """What was simulated, and the model."""
    sizes = "; ".join(f"{code} {' '.join(words)}" for code, words in ARGUMENTS[size].items())
    return (
        f"{MACHINE}: {sizes}; threads fill one node after the other, pages of 16 KiB. Speed-ups there (over "
        "the plain program with one thread, pages touched first in parallel) are of a model, not of a clock: "
        f"{MODEL}. The caches are indexed by virtual addresses (the real ones by physical): the columns that "
        "`--to pages` leaves a thread of LU, a power of two apart, lie upon one another, and miss. "
        "The paper prints its curves as pictures: what its text says of them is checked."
    )
