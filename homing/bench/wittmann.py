"""`homing bench wittmann`: Table 1, Figures 3 and 4 of Wittmann and Hager 2010, and what they have come to.

Here, where there is one domain, all placements are alike: what differs is what the ways of tasking cost.
Where tasks run is counted in the guest with four nodes, whose time means nothing. What bandwidth the paper's
three machines would have is predicted from simulated runs (wittmann_machines.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from homing.bench import wittmann_machines, wittmann_variability
from homing.bench.places import find_program, kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only, library_key
from homing.bench.task_runs import TaskGuest, numbers, run_here, share_at_home
from homing.bench.wittmann_ways import WAYS
from homing.errors import UserError
from homing.installation import find_library
from homing.lab.errors import LabError
from homing.simulate.on_machine import find_simulator

#: Grids. Blocks of 600 x 10 x 10 sites, as in section 2.1, where there are 14,400 of them; here are fewer.
_HERE = {
    "small": ("--sites-k", "300", "--sites-j", "122", "--sites-i", "122", "--samples", "10"),
    "full": ("--sites-k", "600", "--sites-j", "302", "--sites-i", "102", "--samples", "20"),
}
#: In each round all ways take turns; what is told are the medians of the rounds.
_ROUNDS = {"small": 1, "full": 3}
#: Lines of whole pages; 640 and 1,280 blocks, more than the 256 tasks that a runtime lets wait.
_GUEST = {
    "small": ("--sites-k", "512", "--sites-j", "102", "--sites-i", "66", "--block-j", "5", "--block-i", "2"),
    "full": ("--sites-k", "512", "--sites-j", "102", "--sites-i", "130", "--block-j", "5", "--block-i", "2"),
}
#: Enough work for sweeps of a second and more: four virtual CPUs share what the machine has.
_GUEST_SAMPLES = {"small": ("--samples", "2", "--work", "4"), "full": ("--samples", "2", "--work", "5")}
#: In the guest: what the statements are about. The small size leaves out the rest.
_GUEST_SMALL = (
    "static.s",
    "tasks.s.ijk",
    "tasks.s.kji",
    "paper.s.ijk",
    "paper.s.kji",
    "paper.s1.ijk",
    "queues.s.ijk",
    "queues.s.kji",
    "clause.s.ijk",
    "tbb.p.n-a",
    "tbb.p.a",
    "tbb-queues.p",
    "tbb-arena",
)
PARTS = ("stream", "figure3", "machines", "variability", "guest", "temporal", "lanczos")
THREADS = 2


def _quantiles(
    command: list[str], line: str, clause: bool = False, threads: int = THREADS, bound: bool = True
) -> list[float]:
    """5, 25, 50, 75 and 95 % of the samples. Here one domain is all there is: two are pretended only where
    homing must work at all."""
    output = run_here(command, threads=threads, nodes=2 if clause else 0, clause=clause, bound=bound)
    return numbers(output, f"time {line} 5 25 50 75 95 %")


def _stream(size: str) -> dict[str, Any]:
    mib = {"small": "256M", "full": "1G"}[size]
    found = {}
    for stores in ("nontemporal", "normal"):
        for threads in (1, THREADS):
            command = [find_program("copy_gcc"), "--stores", stores, "--bytes", mib]
            found[f"{stores}.{threads}_threads"] = _quantiles(command, "gbytes_per_second", threads=threads)
    return found


def _figure3(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """By way: the quantiles of each round."""
    found: dict[str, Any] = {name: [] for name in WAYS}
    checksums = set()
    for turn in range(_ROUNDS[size]):
        for way in WAYS.values():
            tell(f"{way.name}, round {turn + 1}")
            rates = _quantiles(way.command(_HERE[size]), "mlups", way.clause, bound=way.bound)
            found[way.name].append(rates)
    for name in ("static.s", "queues.s.ijk"):
        output = run_here(WAYS[name].command(_HERE[size]), threads=THREADS)
        checksums.add(output.fields["result checksum"])
    if len(checksums) != 1:
        raise UserError("the variants' checksums differ", 1)
    return found


def _guest(size: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Share of tasks at home, by way; and the checksum, the same for all."""
    names = _GUEST_SMALL if size == "small" else tuple(WAYS)
    found: dict[str, Any] = {}
    checksums = set()
    with TaskGuest(tell) as guest:
        for name in names:
            way = WAYS[name]
            tell(name)
            shares = []
            for _ in range(_ROUNDS[size]):
                try:
                    command = way.command([*_GUEST[size], *_GUEST_SAMPLES[size]])
                    output = guest.run(command, clause=way.clause, bound=way.bound)
                except LabError as error:
                    raise LabError(f"{name}: {error.message}", 1) from error
                checksums.add(output.fields["result checksum"])
                shares.append(share_at_home(output))
            remark = output.fields.get("time remark", "")
            found[name] = {"home": float(np.median(shares)), "shares": shares, "remark": remark}
    if len(checksums) != 1:
        raise UserError(f"the variants' checksums differ in the guest: {checksums}", 1)
    return found


def _temporal(size: str) -> dict[str, Any]:
    layers = {"small": "600", "full": "2400"}[size]
    found = {}
    for depth in ("1", "2", "4", "8"):
        command = [find_program("temporal_gcc"), "--depth", depth, "--sites-i", layers]
        command += ["--samples", str(16 // int(depth))]
        found[depth] = numbers(run_here(command, threads=THREADS), "time mlups")[0]
    return found


def _lanczos(size: str) -> dict[str, Any]:
    side = {"small": "100", "full": "300"}[size]
    found: dict[str, Any] = {}
    for variant in ("static", "tasks", "queues"):
        command = [find_program("lanczos_gcc"), "--laplace", side, "--variant", variant]
        output = run_here(command, threads=THREADS)
        found[variant] = {"seconds": output.total, "results": output.results}
    if len({str(one["results"]) for one in found.values()}) != 1:
        raise UserError("Lanczos: the variants' digits differ", 1)
    return found


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names of parts."""
    check_only(only, PARTS)
    chosen = [name for name in PARTS if not only or name in only]
    library = find_library()
    programs = ("blocked_jacobi_gcc", "blocked_jacobi_clang", "copy_gcc", "temporal_gcc", "lanczos_gcc")
    built = (library, find_simulator(), *map(find_program, programs))
    key = {"built": [library_key(path) for path in built]}
    parts = Parts(kept_folder() / f"wittmann-{size}.json", key)
    if redo:
        parts.drop(chosen)
    parts.drop(["machines"])  # it keeps its runs itself, by what they were made with
    weights = {"stream": 2.0, "figure3": 8.0, "machines": 5.0 if size == "small" else 60.0}
    weights["variability"] = 0.5 if size == "small" else 15.0
    weights |= {"guest": 15.0, "temporal": 2.0, "lanczos": 1.0}
    progress = Progress("wittmann", [weights[name] for name in chosen])
    load = os.getloadavg()[0]
    measured: dict[str, Callable[[], dict[str, Any]]] = {
        "stream": lambda: _stream(size),
        "figure3": lambda: _figure3(size, progress.note),
        "machines": lambda: wittmann_machines.measure(size, progress.note, redo),
        "variability": lambda: wittmann_variability.measure(size, progress.note),
        "guest": lambda: _guest(size, progress.note),
        "temporal": lambda: _temporal(size),
        "lanczos": lambda: _lanczos(size),
    }
    parts.measure(chosen, progress, lambda name: measured[name]())
    results = Results(
        "wittmann", "Locality queues: the programs of Wittmann and Hager 2010", tell(["wittmann"])
    )
    for name in chosen:
        found: dict[str, Any] = parts.get(name) or {}
        {
            "stream": _stream_rows,
            "figure3": _figure3_rows,
            "machines": wittmann_machines.add_rows,
            "variability": wittmann_variability.add_rows,
            "guest": _guest_rows,
            "temporal": _temporal_rows,
            "lanczos": _lanczos_rows,
        }[name](results, found)
    load = max(load, os.getloadavg()[0])
    results.notes += [
        f"Here: {THREADS} threads on one domain, so all placements are alike and Figure 3's bars show what "
        "each way of tasking costs; mlups: million lattice-site updates a second, the median of "
        f"{_ROUNDS[size]} rounds in which all took turns, "
        "with its distance to static first touch. The load was up to "
        f"{load:.1f} on {os.cpu_count()} CPUs.",
        "Guest: the share of blocks that ran on the node of their pages, counted by the program, 4 nodes of "
        "one CPU.",
    ]
    if "machines" in chosen:
        results.notes += wittmann_machines.notes(size)
    if "variability" in chosen:
        results.notes += wittmann_variability.notes(size)
    results.details = {
        name: wittmann_machines.without_runs(parts.get(name) or {}) if name == "machines" else parts.get(name)
        for name in chosen
    }
    return results


def _stream_rows(results: Results, found: dict[str, Any]) -> None:
    for name, quantiles in found.items():
        note = "the full system is one domain here" if name.endswith(f"{THREADS}_threads") else ""
        results.rows.append(Row(f"stream.copy.{name}", quantiles[2], "GB/s", note))


def _figure3_rows(results: Results, found: dict[str, Any]) -> None:
    typical = {name: np.median(rounds, axis=0) for name, rounds in found.items()}
    best = typical["static.s"][2]
    for name, quantiles in typical.items():
        note = (
            f"{100 * (quantiles[2] / best - 1):+.0f} %; 5 to 95 %: {quantiles[0]:.0f} to {quantiles[4]:.0f}"
        )
        results.rows.append(Row(f"mlups.{name}", quantiles[2], "MLUP/s", note))
    for name in wittmann_variability.FIGURE_4:
        low, quarter, median, three, high = typical[name]
        note = f"quantiles 5 25 50 75 95 %: {low:.0f} {quarter:.0f} {median:.0f} {three:.0f} {high:.0f}"
        results.rows.append(Row(f"spread.{name}", (high - low) / median, "fraction", note))
    pairs = zip(found["queues.s.kji"], found["static.s"], strict=True)
    ratio = float(np.median([queues[2] / static[2] for queues, static in pairs]))
    results.checks.append(
        Check(
            "queues within 10 % of static first touch (one domain: their cost)",
            ratio >= 0.9,
            f"{ratio:.2f} times, {typical['queues.s.kji'][2]:.0f} against {best:.0f} MLUP/s",
        )
    )


def _guest_rows(results: Results, found: dict[str, Any]) -> None:
    for name, one in found.items():
        results.rows.append(Row(f"home.{name}", one["home"], "fraction", one["remark"]))

    def home(name: str) -> float:
        return float(found[name]["home"])

    plain = max(home(name) for name in found if name.startswith("tasks."))
    checks = [
        (
            "plain tasking never beats round robin: no more at home than dealt-out pages, a quarter (+ 0.15)",
            plain <= 0.40,
            f"at most {100 * plain:.0f} %",
        ),
        (
            "queues with kji order are at home as static first touch is (within 10 %)",
            home("queues.s.kji") >= 0.9,
            f"{100 * home('queues.s.kji'):.1f} %",
        ),
        (
            "with all blocks queued before, ijk is as good",
            home("queues.s.ijk") >= 0.9,
            f"{100 * home('queues.s.ijk'):.1f} %",
        ),
        (
            "the paper's variant: ijk with static initialisation is the unfortunate one",
            home("paper.s.ijk") < min(home("paper.s.kji"), home("paper.s1.ijk")),
            f"{100 * home('paper.s.ijk'):.0f} % at home, with kji {100 * home('paper.s.kji'):.0f} %, with "
            f"static,1 {100 * home('paper.s1.ijk'):.0f} %",
        ),
        (
            "the affinity clause: at least 90 % at home",
            home("clause.s.ijk") >= 0.9,
            f"{100 * home('clause.s.ijk'):.1f} %",
        ),
    ]
    results.checks += [Check(*check) for check in checks]


def _temporal_rows(results: Results, found: dict[str, Any]) -> None:
    for depth, rate in found.items():
        note = f"{rate / found['1']:.2f} times plain sweeps"
        results.rows.append(Row(f"temporal.depth_{depth}", rate, "MLUP/s", note))


def _lanczos_rows(results: Results, found: dict[str, Any]) -> None:
    for variant, one in found.items():
        value = one["results"]["result largest eigenvalue"]
        note = f"largest eigenvalue {value}, the same digits in all variants"
        results.rows.append(Row(f"lanczos.{variant}", one["seconds"], "s", note))
