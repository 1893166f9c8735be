"""Table 1 and Figure 3 of Wittmann and Hager 2010 on their three machines, predicted; Figure 4 is in
wittmann_variability.py.

blocked_jacobi and copy, built by `homing cc`, run on the described machines (`homing run --on`), where misses
are counted by node of the thread and home node; homing/bench/bandwidth_model.py makes times of them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from homing.bench.bandwidth_model import MODEL, MODEL_NAME, bounds
from homing.bench.places import find_program, include_folder, kept_folder, sources_folder
from homing.bench.programs import Output, execute, parse_output
from homing.bench.results import Check, Parts, Results, Row, library_key
from homing.bench.task_runs import share_at_home
from homing.bench.wittmann_ways import WAYS, Way
from homing.errors import UserError
from homing.installation import find_library, python_path
from homing.options import load_options
from homing.simulate import machines
from homing.simulate.on_machine import find_simulator

#: Table 1: STREAM copy, GB/s, of the full system and of one socket.
PAPER_STREAM = {"istanbul": (38.6, 9.9), "nehalem-ep": (36.6, 18.9), "nehalem-ex": (33.4, 8.15)}
MACHINES = tuple(PAPER_STREAM)
_SOURCES = {
    "blocked_jacobi": ("blocked_jacobi.cpp", "variants_omp.cpp", "variants_tbb.cpp", "grid.cpp"),
    "copy": ("copy.cpp",),
    "temporal": ("temporal.cpp", "grid.cpp"),
}
_COMPILERS = {"clang": "clang++-19", "gcc": "g++"}
_TIMEOUT = 1800.0
#: The phase of apps/common/mark.h in which the one sweep is.
FIRST_HALF = 2


@dataclass(frozen=True)
class Size:
    """What is simulated. turn: accesses that a thread has before the next one's turn."""

    machines: tuple[str, ...]
    ways: tuple[str, ...]
    grid: tuple[str, ...]
    updates: int  #: sites that a sweep of that grid updates
    copy_bytes: int
    turn: int
    caches: tuple[str, ...] = ()  #: in place of the machine's, so that a small grid is large beside them


#: Figure 3, and ways of today. Not tbb-arena: hwloc, from which TBB has its NUMA nodes, sees this computer's;
#: nor nested teams, which want OMP_PLACES of their own.
_FULL = tuple(
    name
    for name in WAYS
    if name.startswith(("static.", "dynamic.", "tasks", "paper", "queues.s.", "clause.s.", "tbb"))
    and not name.endswith((".gcc", "arena"))
)
_SMALL: tuple[str, ...] = (
    "static.serial",
    "static.round-robin",
    "static.s",
    "tasks.s.ijk",
    "tasks.s.kji",
    "paper.s.ijk",
    "paper.s.kji",
    "paper.s1.ijk",
    "tbb.p.n-a",
    "tbb.p.a",
    "tbb-paper.p",
)


def _grid(k: int, blocks_j: int, blocks_i: int, block_j: int, block_i: int) -> tuple[tuple[str, ...], int]:
    """The program's words, and the sites that are updated: blocks cover the interior exactly."""
    j, i = blocks_j * block_j, blocks_i * block_i
    sizes = {
        "--sites-k": k,
        "--sites-j": j + 2,
        "--sites-i": i + 2,
        "--block-j": block_j,
        "--block-i": block_i,
    }
    return tuple(word for name, value in sizes.items() for word in (name, str(value))), (k - 2) * j * i


#: Many more blocks than the 256 tasks that libomp lets wait, and so many in each domain's part. The full size
#: has the paper's blocks (section 1.4: 10 x 100 lines of the inner dimension): with static,1 initialisation a
#: block's halo and the pages that it shares with the next one are remote, and small blocks have more of both.
SIZES = {
    "small": Size(
        ("nehalem-ep",), _SMALL, *_grid(128, 12, 50, 8, 5), 16 << 20, 2000,
        ("--cache", "64KiB:16", "--shared-cache", "512KiB:16"),
    ),
    "full": Size(MACHINES, _FULL, *_grid(130, 12, 120, 10, 100), 256 << 20, 5000),
}  # fmt: skip


def shaped(size: Size, k: int, blocks_j: int, blocks_i: int, block_j: int, block_i: int) -> Size:
    """A size with another grid."""
    grid, updates = _grid(k, blocks_j, blocks_i, block_j, block_i)
    return replace(size, grid=grid, updates=updates)


def compiler_of(way: Way) -> str:
    """Which compiler a way is simulated with.

    clang's libomp gives schedule(dynamic) no common order (it deals out and steals), and waits for a
    taskgroup in a loop without sleep, which costs 0.2 s each time and lets counts differ."""
    return "gcc" if way.name.startswith(("dynamic", "queues")) else way.compiler


def build(program: str, compiler: str) -> Path:
    """Build a program by `homing cc`; its path. Kept until a source or the simulator is newer. UserError
    where that fails."""
    folder = kept_folder() / "wittmann"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{program}_{compiler}"
    apps, simulator = sources_folder() / "apps", find_simulator()
    common = Path(find_program("copy_gcc")).parent / "libapps_common.a"
    sources = [apps / "wittmann" / name for name in _SOURCES[program]]
    used = [*sources, *(apps / "wittmann").glob("*.hpp"), include_folder() / "homing" / "tasks.hpp"]
    newest = max(os.stat(one).st_mtime for one in map(str, (*used, common, simulator)))
    if path.exists() and path.stat().st_mtime > newest:
        return path
    flags = ["-std=c++20", "-O3", "-g", "-fopenmp", "-I", str(include_folder()), "-I", str(apps / "common")]
    fresh = path.with_suffix(".new")
    # `homing run --on` preloads the simulator's library, which has the name of this one and stands for it.
    library = find_library()
    libraries = [str(common), library, f"-Wl,-rpath,{os.path.dirname(library)}", "-ltbb", "-lm"]
    words = [sys.executable, "-m", "homing", "cc", _COMPILERS[compiler], *flags]
    words += [*map(str, sources), *libraries, "-o", str(fresh)]
    execute(words, {**os.environ, "PYTHONPATH": python_path()})
    fresh.replace(path)
    return path


def simulate(
    machine: str, size: Size, command: Sequence[str], threads: int, more: Sequence[str]
) -> tuple[dict[str, Any], Output]:
    """The `counts` of a run, and the program's output. more: options of `homing run`, which overrule the
    size's. UserError where it fails.

    With turns: two CPUs that play 32 threads would let some run far ahead of others."""
    options = {option.env for option in load_options()}
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMP_", "GOMP_", "KMP_")) and name not in options
    }
    # Where there are fewer threads than CPUs, they fill the first node.
    variables |= {
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "cores",
        "PYTHONPATH": python_path(),
    }
    with tempfile.TemporaryDirectory(prefix="homing-wittmann-") as folder:
        path = Path(folder) / "run.json"
        words = [sys.executable, "-m", "homing", "run", "--on", machine, "--mechanism", "observe"]
        words += ["--turn", str(size.turn), *size.caches, *more, "--summary", "none", "--json", str(path)]
        name = f"{' '.join(command)} on {machine}"
        output = parse_output(execute([*words, "--", *command], variables, _TIMEOUT, name).stdout)
        if output.verification == "failed":
            raise UserError(f"{name}: its check failed", 1)
        return json.loads(path.read_text())["counts"], output


def misses_of_phase(counts: Mapping[str, Any], phase: int) -> list[list[int]]:
    """Misses of a phase that the program marked, [node of the thread][home node]. UserError where there is
    none."""
    for one in counts["phases"]:
        if one["phase"] == phase:
            misses: list[list[int]] = one["misses"]
            return misses
    raise UserError(f"phase {phase} was not counted", 1)


def read_runs(text: str) -> list[list[int]]:
    """The blocks in the order of their ends: [node of the thread, home], from what `--runs` wrote."""
    return [[int(word) for word in line.split()] for line in text.splitlines()]


def run_way(machine: str, way: Way, size: Size) -> dict[str, Any]:
    """One column of Figure 3 on a machine: `misses` of a sweep, [node of the thread][home node]; `runs` as
    read_runs has them, none where pages, not blocks, were dealt out; `home`, the share of blocks at home.

    The first sweep: before later ones libomp lets threads sleep, and does not wake all of them for the tasks
    that wait, as it would on a machine with a CPU for each."""
    described = machines.find(machine)
    with tempfile.TemporaryDirectory(prefix="homing-wittmann-") as folder:
        path = Path(folder) / "runs"
        command = [str(build("blocked_jacobi", compiler_of(way))), *way.arguments, *size.grid]
        command += ["--stores", "normal", "--samples", "1", "--runs", str(path)]
        more = ["--tasks", "affinity", "--no-signals"] if way.clause else []
        counts, output = simulate(machine, size, command, described.cpu_count, more)
        runs = read_runs(path.read_text())
    placed_by_page = "round-robin" in way.name
    return {
        "misses": misses_of_phase(counts, FIRST_HALF),
        "runs": [] if placed_by_page else runs,
        "home": share_at_home(output),
    }


def run_copy(machine: str, size: Size, domain: bool) -> dict[str, Any]:
    """STREAM copy on the full system, or by the threads of one domain."""
    described = machines.find(machine)
    threads = described.cpus[0] if domain else described.cpu_count
    command = [str(build("copy", "clang")), "--stores", "normal", "--bytes", str(size.copy_bytes)]
    counts, _ = simulate(machine, size, [*command, "--samples", "1"], threads, [])
    return {"misses": misses_of_phase(counts, FIRST_HALF)}


def measure(size: str, tell: Callable[[str], None], redo: bool = False) -> dict[str, Any]:
    """All runs of a size, {machine: {"stream": ..., way: ...}}; those that were made before by the same
    simulator and programs are kept. UserError where one fails."""
    chosen = SIZES[size]
    tell("building with homing cc")
    compilers = {compiler_of(WAYS[name]) for name in chosen.ways}
    built = [build("copy", "clang"), *(build("blocked_jacobi", one) for one in sorted(compilers))]
    made_with = [chosen.grid, chosen.copy_bytes, chosen.turn, chosen.caches]
    key = {"size": repr(made_with), "built": [library_key(str(path)) for path in (*built, find_simulator())]}
    kept = Parts(kept_folder() / f"wittmann-machines-{size}.json", key)
    if redo:
        kept.drop(kept.names())
    found: dict[str, Any] = {}
    for machine in chosen.machines:
        made: dict[str, Callable[[], dict[str, Any]]] = {
            "stream.full": partial(run_copy, machine, chosen, False),
            "stream.domain": partial(run_copy, machine, chosen, True),
        }
        for name in chosen.ways:
            made[name] = partial(run_way, machine, WAYS[name], chosen)
        for name, run in made.items():
            label = f"{machine} {name}"
            if kept.get(label) is None:
                tell(label)
                kept.put(label, run())
            found.setdefault(machine, {})[name] = kept.get(label)
    return {"size": size, "runs": found}


@dataclass(frozen=True)
class Predicted:
    """What the model says of a machine: GB/s of STREAM copy, and million updates a second by way."""

    full: float
    domain: float
    mlups: dict[str, float]
    why: dict[str, str]  #: by way: which bound it is
    error: float  #: the largest relative error of the two bandwidths


def predict(machine: str, runs: Mapping[str, Any], size: Size) -> Predicted:
    """The model on a machine's runs. A line is counted once, when it is fetched: with non-temporal stores,
    and in STREAM's own account, that is all of its traffic."""
    described = machines.find(machine)
    bandwidth, link = 1e9 * described.bandwidth_gbs, 1e9 * described.link_gbs

    def fetched(run: Mapping[str, Any]) -> list[list[float]]:
        return [[described.line * misses for misses in row] for row in run["misses"]]

    copies = [
        size.copy_bytes / bounds(fetched(runs[name]), bandwidth, link).seconds / 1e9
        for name in ("stream.full", "stream.domain")
    ]
    errors = [abs(ours / paper - 1) for ours, paper in zip(copies, PAPER_STREAM[machine], strict=True)]
    mlups, why = {}, {}
    for name in runs.keys() - {"stream.full", "stream.domain"}:
        own = fetched(runs[name])
        runs_of = [(node, home) for node, home in runs[name]["runs"]]
        one = bounds(own, bandwidth, link, runs_of, described.cpus)
        mlups[name] = size.updates / one.seconds / 1e6
        remote = sum(map(sum, own)) - sum(row[node] for node, row in enumerate(own))
        bound = max(("memory", "order", "cores"), key=partial(getattr, one))
        why[name] = (
            f"bound by {bound}; {100 * remote / sum(map(sum, own)):.0f} % of the bytes remote, "
            f"{100 * runs[name]['home']:.0f} % of the blocks at home"
        )
    return Predicted(copies[0], copies[1], mlups, why, max(errors))


def without_runs(found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found but for the order of the blocks: half a megabyte, which nobody reads."""
    return {
        machine: {name: {**run, "runs": len(run.get("runs", ()))} for name, run in ways.items()}
        for machine, ways in found.get("runs", {}).items()
    }


def add_rows(results: Results, found: Mapping[str, Any]) -> None:
    """Rows and checks of all machines that were simulated."""
    size = SIZES[found["size"]]
    predicted = {machine: predict(machine, runs, size) for machine, runs in found["runs"].items()}
    for machine, one in predicted.items():
        paper = PAPER_STREAM[machine]
        tag = f"predicted by {MODEL_NAME}, error on STREAM copy {100 * one.error:.0f} %"
        results.rows += [
            Row(f"{machine}.stream.copy.full_system", one.full, "GB/s", tag, paper[0]),
            Row(f"{machine}.stream.copy.one_domain", one.domain, "GB/s", tag, paper[1]),
        ]
        for name in size.ways:
            relative = f"{100 * (one.mlups[name] / one.mlups['static.s'] - 1):+.0f} %"
            note = f"{tag}; {relative} of static first touch; {one.why[name]}"
            results.rows.append(Row(f"{machine}.mlups.{name}", one.mlups[name], "MLUP/s", note))
        results.checks += statements(machine, one.mlups)
    if set(predicted) == set(MACHINES):
        loss = {
            machine: 1 - one.mlups["static.round-robin"] / one.mlups["static.s"]
            for machine, one in predicted.items()
        }
        text = ", ".join(f"{machine} {100 * part:.0f} %" for machine, part in loss.items())
        name = "predicted: round robin loses most on nehalem-ep (section 1.4)"
        results.checks.append(Check(name, max(loss, key=lambda one: loss[one]) == "nehalem-ep", text))


def _told(rates: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {rate:,.0f}" for name, rate in sorted(rates.items()))


def statements(machine: str, mlups: Mapping[str, float]) -> list[Check]:
    """The paper's statements, judged by the predicted million updates a second of the ways that there are."""
    tasks = {name: rate for name, rate in mlups.items() if name.startswith("tasks.")}
    good = {name: rate for name, rate in mlups.items() if name.startswith("paper.") and name != "paper.s.ijk"}
    serial, dealt, best = (mlups[f"static.{one}"] for one in ("serial", "round-robin", "s"))
    unfortunate = mlups["paper.s.ijk"]

    checks = [
        (
            "serial initialisation, round robin, static first touch in this order (section 1.4)",
            serial < dealt < best,
            f"{serial:,.0f}, {dealt:,.0f}, {best:,.0f} MLUP/s",
        ),
        (
            "plain tasking never beats round robin (section 2.1)",
            max(tasks.values()) <= dealt,
            f"{_told(tasks)} against {dealt:,.0f} MLUP/s",
        ),
        (
            "of plain tasks, ijk with static initialisation is the unfortunate one (section 2.1)",
            tasks["tasks.s.ijk"] <= min(tasks.values()),
            _told(tasks),
        ),
        (
            "of the paper's queues, ijk with static initialisation is the unfortunate one (section 2.2)",
            unfortunate < 0.9 * min(good.values()),
            f"{unfortunate:,.0f} against {_told(good)} MLUP/s",
        ),
    ]
    ways = {"s.kji": "kji", "s1.ijk": "static,1", "s1.kji": "kji and static,1"}
    for way, text in ways.items():
        if rate := mlups.get(f"paper.{way}"):
            name = f"the paper's queues with {text} are within 10 % of static first touch (section 2.2)"
            checks.append((name, rate >= 0.9 * best, f"{rate:,.0f} against {best:,.0f} MLUP/s"))
    filled = ("queues.", "clause.", "tbb-queues.", "tbb-for-each.")
    today = {name: rate for name, rate in mlups.items() if name.startswith(filled)}
    if today:
        name = (
            "queues that are filled first (oneTBB's, too), and the affinity clause, are within 10 % of "
            "static first touch"
        )
        checks.append((name, min(today.values()) >= 0.9 * best, f"{_told(today)} against {best:,.0f} MLUP/s"))
    checks += _tbb_statements(mlups)
    return [Check(f"predicted on {machine}: {name}", passed, text) for name, passed, text in checks]


def _tbb_statements(mlups: Mapping[str, float]) -> list[tuple[str, bool, str]]:
    """Sections 3.1 and 3.2, of those of oneTBB's ways that there are."""
    dealt, queues = mlups["static.round-robin"], mlups["paper.s.kji"]
    plain = {name: rate for name, rate in mlups.items() if name in ("tbb.p.n-a", "tbb.n-p.n-a")}
    partitioner = {name: rate for name, rate in mlups.items() if name in ("tbb.p.a", "tbb.n-p.a")}
    checks = []
    if plain:
        checks.append(
            (
                "oneTBB without the affinity partitioner is close to round robin (section 3.1; within 20 %)",
                all(abs(rate / dealt - 1) <= 0.2 for rate in plain.values()),
                f"{_told(plain)} against {dealt:,.0f} MLUP/s",
            )
        )
    if partitioner:
        checks.append(
            (
                "the affinity partitioner matches OpenMP's tasks with queues (section 3.1; within 10 %)",
                min(partitioner.values()) >= 0.9 * queues,
                f"{_told(partitioner)} against {queues:,.0f} MLUP/s",
            )
        )
    if partitioner and "tbb-paper.p" in mlups:
        own = mlups["tbb-paper.p"]
        checks.append(
            (
                "queues in parallel_for do not outperform the affinity partitioner (section 4; by 10 %)",
                own <= 1.1 * max(partitioner.values()),
                f"{own:,.0f} against {_told(partitioner)} MLUP/s",
            )
        )
    return checks


def notes(size: str) -> list[str]:
    """What was simulated, and by which model numbers were made of it."""
    chosen = SIZES[size]
    caches = "caches " + " ".join(chosen.caches[1::2]) if chosen.caches else "the machines' own caches"
    return [
        f"Rows that begin with a machine's name ({', '.join(chosen.machines)}) are predicted, not measured, "
        f"by the model '{MODEL_NAME}': {MODEL}. Bytes are the misses of blocked_jacobi "
        f"{' '.join(chosen.grid)} and of copy under `homing run --on`, {caches}, all of the machine's "
        f"threads, in turns of {chosen.turn} accesses. bandwidth_gbs and link_gbs are those of the machine's "
        "file, the former close to Table 1's STREAM copy: its error says how well Table 1 is met, not how "
        "well Figure 3 is, whose bars the paper does not print as numbers.",
        "Not predicted: nested teams, tbb-arena (hwloc, from which oneTBB has its NUMA nodes, sees this "
        "computer's), and what tasks cost. The first sweep alone is simulated, as libomp lets threads sleep "
        "before the next one. With turns all threads are equally fast: schedule(dynamic) deals blocks of "
        "static,1 out as they lie. dynamic, queues and oneTBB's are gcc's there, the others clang's.",
        "The paper gives blocks of 10 x 100 lines (section 1.4) and 14,400 tasks (section 2.1), which are "
        "blocks of 10 x 10. The full size has the former. With 10 x 10 lines of 128 sites the paper's queues "
        "with static,1 lose 12 to 18 % to static first touch: a fifth of what such a block reads belongs to "
        "its neighbours, and pages are shared with them. How much round robin loses depends on the links' "
        "bandwidth, of which the paper has no number; that of the machine files is ours.",
    ]
