"""`homing bench wittmann_why`: an experiment for each statement of Wittmann and Hager 2010 that `homing bench
wittmann` does not confirm, for Figure 4 and temporal blocking on this machine, and the ways that the paper
mentions without a bar: tasks submitted by all threads, and blocks as a line for TBB.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from homing.bench import wittmann_here
from homing.bench.bandwidth_model import MODEL_NAME, bounds, cores_seconds, order_seconds
from homing.bench.places import find_program, kept_folder, results_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only, library_key
from homing.bench.wittmann_machines import SIZES, Size, build, run_way, shaped
from homing.bench.wittmann_ways import WAYS
from homing.simulate import machines
from homing.simulate.on_machine import find_simulator

#: 60 x 24 blocks, as in the paper (section 1.4), where `bench wittmann` has 12 x 120; each 10 x 25 lines, so
#: that a run takes a quarter of the time.
_PAPER_SHAPE = shaped(SIZES["full"], 130, 60, 24, 10, 25)
#: Of the other experiments, with the caches of the small size: as many blocks as its grid has; few but thick
#: blocks, and such as are twice as wide, which share half as many lines.
_SMALL = SIZES["small"]
_THICK = shaped(_SMALL, 128, 12, 16, 8, 50)
_WIDE = shaped(_SMALL, 128, 6, 16, 16, 50)

#: Ways without a bar in Figure 3.
_NEW = (
    "tasks-all.s.ijk",
    "tasks-all.s.kji",
    "paper-all.s.ijk",
    "paper-all.s.kji",
    "tbb-1d.p.n-a",
    "tbb-1d.p.a",
    "tbb-1d-paper.p",
)
_LEVELS = ("static.round-robin", "static.s")
#: By machine: what `bench wittmann` says "no" of, and where the shape of the grid may be why. The others are
#: those of "model".
_DOUBTED = {"istanbul": ("paper.s1.kji",)}
_COMPARED = ("tasks.s.ijk", "tasks.s.kji", "paper.s.ijk", "tbb.p.n-a", "tbb.p.a", "tbb-paper.p")
_HALO_WAYS = ("queues.s.ijk", "queues.s.kji")
#: Orders of blocks that are drawn for one machine.
_DRAWS = 20
_BLOCKS = 1440  #: of the full size of `bench wittmann`
PARTS = ("model", "shape", "new", "halo", "spread", "temporal", "temporal_counts")


def _shape_runs(size: str) -> list[tuple[str, str, Size]]:
    if size == "small":
        return [("nehalem-ep", name, _SMALL) for name in _LEVELS]
    return [
        (machine, name, _PAPER_SHAPE)
        for machine, doubted in _DOUBTED.items()
        for name in (*_LEVELS, *doubted)
    ]


def _new_runs(size: str) -> list[tuple[str, str, Size]]:
    chosen = ("nehalem-ep",) if size == "small" else tuple(_DOUBTED)
    names = (*_LEVELS, *_COMPARED, *_NEW)
    return [(machine, name, _SMALL) for machine in chosen for name in names]


def _halo_runs(size: str) -> list[tuple[str, str, Size]]:
    shapes = (_THICK,) if size == "small" else (_THICK, _WIDE)
    return [("nehalem-ex", name, shape) for shape in shapes for name in _HALO_WAYS]


def _published() -> dict[str, dict[str, Any]]:
    """By machine and way: the misses of the runs of `bench wittmann --size full`, from its results."""
    data = json.loads((results_folder() / "wittmann.json").read_text())
    names = ("static.round-robin", "static.s", "queues.s.ijk", "queues.s.kji")
    return {
        machine: {name: {"misses": ways[name]["misses"]} for name in names}
        for machine, ways in data["details"]["machines"].items()
    }


def _simulated(runs: Sequence[tuple[str, str, Size]], kept: Parts, tell: Callable[[str], None]) -> Any:
    """The runs, each kept by its machine, way and grid. Their blocks' order is not in the results, only what
    was made of it."""
    found = []
    for machine, name, shape in runs:
        label = f"{machine} {name} {' '.join(shape.grid)}"
        one: dict[str, Any] | None = kept.get(label)
        if one is None:
            tell(label)
            one = _reduced(machine, shape, run_way(machine, WAYS[name], shape))
            kept.put(label, one)
        found.append({"machine": machine, "way": name, "grid": list(shape.grid), **one})
    return found


def _reduced(machine: str, shape: Size, run: Mapping[str, Any]) -> dict[str, Any]:
    described = machines.find(machine)
    fetched = [[described.line * misses for misses in row] for row in run["misses"]]
    runs = [(node, home) for node, home in run["runs"]]
    one = bounds(fetched, 1e9 * described.bandwidth_gbs, 1e9 * described.link_gbs, runs, described.cpus)
    return {
        "misses": run["misses"],
        "home": run["home"],
        "blocks": len(runs),
        "mlups": shape.updates / one.seconds / 1e6,
        "bound": max(("memory", "order", "cores"), key=lambda name: float(getattr(one, name))),
    }


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names of parts."""
    check_only(only, PARTS)
    chosen = [name for name in PARTS if not only or name in only]
    programs = ("blocked_jacobi_gcc", "blocked_jacobi_clang", "temporal_gcc")
    parts = Parts(
        kept_folder() / f"wittmann_why-{size}.json",
        {"built": [library_key(path) for path in map(find_program, programs)]},
    )
    if redo:
        parts.drop(chosen)
    progress = Progress("wittmann_why", [{"shape": 10.0, "new": 8.0}.get(name, 3.0) for name in chosen])
    if {"shape", "new", "halo"} & set(chosen):
        parts.drop(["shape", "new", "halo"])  # their runs are kept by themselves
        progress.note("building with homing cc")
        built = [build("blocked_jacobi", one) for one in ("clang", "gcc")]
        key = {"built": [library_key(str(path)) for path in (*built, find_simulator())]}
        kept = Parts(kept_folder() / f"wittmann_why-runs-{size}.json", key)
        if redo:
            kept.drop(kept.names())
    measured: dict[str, Callable[[], Any]] = {
        "model": _published,
        "shape": lambda: _simulated(_shape_runs(size), kept, progress.note),
        "new": lambda: _simulated(_new_runs(size), kept, progress.note),
        "halo": lambda: _simulated(_halo_runs(size), kept, progress.note),
        "spread": lambda: wittmann_here.spread(size, progress.note),
        "temporal": lambda: wittmann_here.temporal(size, progress.note),
        "temporal_counts": lambda: wittmann_here.temporal_counts(size, progress.note),
    }
    parts.measure(chosen, progress, lambda name: measured[name]())
    results = Results(
        "wittmann_why",
        "Wittmann and Hager 2010: experiments on what `homing bench wittmann` does not confirm",
        tell(["wittmann_why"]),
    )
    add: dict[str, Callable[[Results, Any], None]] = {
        "model": add_model,
        "shape": add_shape,
        "new": add_new,
        "halo": add_halo,
        "spread": wittmann_here.add_spread,
        "temporal": wittmann_here.add_temporal,
        "temporal_counts": wittmann_here.add_temporal_counts,
    }
    for name in chosen:
        add[name](results, parts.get(name))
    results.details = {name: parts.get(name) for name in chosen}
    results.notes.append(f"The load was {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs when it ended.")
    return results


# --- the machines -------------------------------------------------------------------------------------------


def _rates(found: Sequence[Mapping[str, Any]], machine: str) -> dict[str, float]:
    return {one["way"]: one["mlups"] for one in found if one["machine"] == machine}


def add_shape(results: Results, found: Sequence[Mapping[str, Any]]) -> None:
    """Rows of the paper's grid, and what became of each "no"."""
    results.notes.append(
        f"Rows with a machine's name are predicted by the model '{MODEL_NAME}' (see wittmann.md) from "
        "simulated runs. shape: the paper's own shape of the grid, 60 x 24 blocks, where `bench wittmann` "
        "has 12 x 120, as many; they have 10 x 25 lines of 130 sites (the paper: 10 x 100 of 600)."
    )
    _add_rates(results, "shape", found)
    for machine in dict.fromkeys(one["machine"] for one in found):
        rates = _rates(found, machine)
        best, dealt = rates["static.s"], rates["static.round-robin"]
        for name in ("paper.s.kji", "paper.s1.kji"):
            if name in rates:
                text = f"{machine}: {name} is within 10 % of static first touch with the paper's shape"
                passed = rates[name] >= 0.9 * best
                results.checks.append(Check(text, passed, f"{rates[name]:,.0f} against {best:,.0f} MLUP/s"))
        filled = {name: rates[name] for name in rates if name.startswith(("queues.", "clause."))}
        if filled:
            text = f"{machine}: filled queues and the clause are within 10 % with the paper's shape"
            told = ", ".join(f"{name} {rate:,.0f}" for name, rate in filled.items())
            passed = min(filled.values()) >= 0.9 * best
            results.checks.append(Check(text, passed, f"{told} against {best:,.0f} MLUP/s"))
        if "tbb.p.n-a" in rates:
            off = rates["tbb.p.n-a"] / dealt - 1
            text = f"{machine}: oneTBB without the partitioner is close to round robin with the paper's shape"
            results.checks.append(Check(text, abs(off) <= 0.2, f"{100 * off:+.0f} %"))


def _add_rates(results: Results, part: str, found: Sequence[Mapping[str, Any]]) -> None:
    for one in found:
        best = _rates(found, one["machine"])["static.s"]
        note = (
            f"predicted; {100 * (one['mlups'] / best - 1):+.0f} % of static first touch; bound by "
            f"{one['bound']}; {100 * one['home']:.0f} % of the blocks at home"
        )
        name = f"{one['machine']}.{part}.mlups.{one['way']}"
        results.rows.append(Row(name, one["mlups"], "MLUP/s", note))


def add_new(results: Results, found: Sequence[Mapping[str, Any]]) -> None:
    """The ways without a bar in Figure 3, beside those that have one."""
    results.notes.append(
        f"new: ways that the paper mentions without a bar, and bars beside them; {' '.join(_SMALL.grid)}, "
        f"caches {' '.join(_SMALL.caches[1::2])}. tasks-all, paper-all: all threads submit, each its part of "
        "the blocks. tbb-1d: blocks as a line instead of a space."
    )
    _add_rates(results, "new", found)
    for machine in dict.fromkeys(one["machine"] for one in found):
        rates = _rates(found, machine)
        if "tasks-all.s.ijk" in rates and "tasks.s.ijk" in rates:
            gain = {
                order: rates[f"tasks-all.s.{order}"] / rates[f"tasks.s.{order}"] for order in ("ijk", "kji")
            }
            told = ", ".join(f"{order} {ratio:.2f} times" for order, ratio in gain.items())
            text = f"{machine}: parallel submission makes no difference (section 2.1; within 10 %)"
            passed = all(0.9 <= ratio <= 1.1 for ratio in gain.values())
            results.checks.append(Check(text, passed, told))
        if "tbb-1d-paper.p" in rates and "tbb-paper.p" in rates:
            ratio = rates["tbb-1d-paper.p"] / rates["tbb-paper.p"]
            text = f"{machine}: queues gain little by a one-dimensional range (section 3.2; at most 10 %)"
            results.checks.append(Check(text, ratio <= 1.1, f"{ratio:.2f} times"))


def _loss(machine: str, one: Mapping[str, Any], link: float) -> float:
    """What round robin loses to static first touch where the link has so many GB/s: both are bound by what
    the threads of a node fetch."""
    described = machines.find(machine)
    fetched = [[described.line * misses for misses in row] for row in one["misses"]]
    local = cores_seconds(
        [[sum(row) if a == b else 0.0 for b in range(len(row))] for a, row in enumerate(fetched)],
        1e9 * described.bandwidth_gbs,
        1e9 * link,
    )
    return 1 - local / cores_seconds(fetched, 1e9 * described.bandwidth_gbs, 1e9 * link)


def add_model(results: Results, found: Mapping[str, Mapping[str, Any]]) -> None:
    """What follows from the runs of `bench wittmann`. found: by machine and way."""
    _add_links(results, {machine: ways["static.round-robin"] for machine, ways in found.items()})
    for machine, ways in found.items():
        _add_random(results, machine, ways["static.s"]["misses"])
        lines = {name: sum(map(sum, ways[name]["misses"])) for name in ("queues.s.kji", "queues.s.ijk")}
        note = f"{lines['queues.s.kji']:,} and {lines['queues.s.ijk']:,} lines in the runs of bench wittmann"
        more = lines["queues.s.kji"] / lines["queues.s.ijk"]
        results.rows.append(Row(f"{machine}.model.lines_of_kji_to_ijk", more, "ratio", note))


def _add_links(results: Results, dealt: Mapping[str, Mapping[str, Any]]) -> None:
    """From which link's bandwidth on a machine's round robin loses less than that of the Nehalem EP does."""
    asked = _loss("nehalem-ep", dealt["nehalem-ep"], machines.find("nehalem-ep").link_gbs)
    for machine, one in dealt.items():
        described = machines.find(machine)
        if machine == "nehalem-ep":
            continue
        links = np.arange(0.1, described.bandwidth_gbs + 0.05, 0.05)
        enough = next(float(link) for link in links if _loss(machine, one, float(link)) <= asked)
        ours = _loss(machine, one, described.link_gbs)
        note = (
            f"from this bandwidth on, round robin loses no more than the Nehalem EP's {100 * asked:.0f} %; "
            f"the machine file has {described.link_gbs:g}, where it loses {100 * ours:.0f} %; the paper "
            "has none"
        )
        results.rows.append(Row(f"{machine}.model.link_for_the_papers_order", enough, "GB/s", note))


def _add_random(results: Results, machine: str, misses: Sequence[Sequence[int]]) -> None:
    """What tasks in no order at all would reach: the model's own level for dynamic work on placed blocks."""
    described = machines.find(machine)
    each = sum(map(sum, misses)) * described.line / _BLOCKS
    ratios = []
    for seed in range(_DRAWS):
        homes = [n * described.nodes // _BLOCKS for n in range(_BLOCKS)]
        random.Random(seed).shuffle(homes)
        runs = [(n % described.nodes, home) for n, home in enumerate(homes)]
        took = order_seconds(runs, described.cpus, each, 1e9 * described.bandwidth_gbs)
        ratios.append(each * _BLOCKS / (described.nodes * 1e9 * described.bandwidth_gbs) / took)
    note = (
        f"of {_DRAWS} drawn orders: threads ask for whole blocks, at times more of them of one memory; "
        "pages dealt out ask all memories alike"
    )
    value = float(np.median(ratios))
    results.rows.append(Row(f"{machine}.model.random_order", value, "of all bandwidth", note))


def add_halo(results: Results, found: Sequence[Mapping[str, Any]]) -> None:
    """How many more lines blocks fetch that do not run beside their neighbours."""
    widths = dict.fromkeys(one["grid"][one["grid"].index("--block-j") + 1] for one in found)
    for width in widths:
        one = {run["way"]: run for run in found if run["grid"][run["grid"].index("--block-j") + 1] == width}
        machine = next(iter(one.values()))["machine"]
        misses = {name: sum(map(sum, run["misses"])) for name, run in one.items()}
        more = misses["queues.s.kji"] / misses["queues.s.ijk"]
        note = (
            f"{misses['queues.s.kji']:,} and {misses['queues.s.ijk']:,} lines; at most "
            f"{(1 + 2 / int(width)) / 2 + 0.5:.2f} where no line of a neighbour is in the cache; rates "
            f"{one['queues.s.kji']['mlups']:,.0f} and {one['queues.s.ijk']['mlups']:,.0f} MLUP/s"
        )
        name = f"{machine}.lines_of_kji_to_ijk.blocks_of_{width}"
        results.rows.append(Row(name, more, "ratio", note))
    if len(widths) > 1:
        values = [row.value - 1 for row in results.rows if ".lines_of_kji_to_ijk." in row.name]
        results.checks.append(
            Check(
                "kji costs the lines that neighbours share: half as many in blocks twice as wide",
                0.3 <= values[1] / values[0] <= 0.7,
                f"{100 * values[0]:.1f} % and {100 * values[1]:.1f} % more",
            )
        )
