"""What homing costs programs that gain nothing from it, on this machine.

Two cases: `aside`, where the machine has one node and the library steps aside, and `working`, where it is
told to assume four nodes: observation and decisions are real, only the moves are simulated. What counts is
the median of paired ratios, with a bootstrap bound.

On a machine that is shared with others two runs of one program, one after the other, differ by a tenth. So
the two runs of a pair go on in turns of some milliseconds: one is stopped while the other runs, and both see
the same machine. Each is charged with the time in which it was not stopped. Which of them begins is still
worth up to a percent, so that a ratio is taken of two pairs, one begun by either.
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from homing import costs, environment
from homing.bench.places import find_bench_program, find_program, kept_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, library_key
from homing.errors import UserError
from homing.installation import find_library
from homing.records import Record, read_record

#: At least and at most so many pairs: more are taken until the median is known to _NARROW.
PAIRS = {"small": (60, 120), "full": (60, 200)}
REGION_PAIRS = {"small": (40, 40), "full": (100, 100)}
#: (most allowed bound, what is aimed at)
CASES = {"aside": 1.01, "working": 1.02}
ASSUMED = {"aside": {}, "working": {"HOMING_ASSUME_NODES": "4"}}
PROGRAMS = {
    "cg": ("cg_gfortran", "--class", "A"),
    "mg": ("mg_gfortran", "--class", "A"),
    "jacobi": ("jacobi_gcc", "--class", "A", "--iterations", "40"),
}
#: name: program, mode, most nanoseconds
REGIONS = {
    "region.libomp": ("regions_clang", "settled", 100),
    "region.libgomp": ("regions_gcc", "settled", 200),
    "region.searching.libomp": ("regions_clang", "searching", 1000),
    "region.searching.libgomp": ("regions_gcc", "searching", 1000),
}
#: Blocks that are all used in every iteration. name: least and most bytes, replaced in each iteration.
BLOCKS = {
    "blocks.below_pages": (64, 8192, 0),
    "blocks.above_pages": (4097, 8192, 0),
    "blocks.replaced": (64, 8192, 10_000),
}
LIVE_BLOCKS, BLOCK_ITERATIONS, BLOCK_RUNS = 100_000, 100, 5
#: Most milliseconds of homing's own time in an iteration of these.
MOST_BLOCK_MS = 1.0
#: Arrays that are areas of their own: words for blocks_gcc, and the most of the run that deciding may take. A
#: run of a minute and a half: in its first ten seconds (tuning::longest_wait) learning may take twice its
#: share.
ARRAYS = {"deciding.arrays": ("2000", "131072", "262144", "0", "3000")}
ARRAY_RUNS = 3
MOST_DECIDING = 0.003
_RESAMPLES = 10_000
#: How far the upper bound of a ratio may lie above its median. It says nothing of where the median lies, so
#: that stopping there favours no result. At 0.005, after 30 pairs, a row within half a percent of its limit
#: was on the other side of it in the next run.
_NARROW = 0.004


#: Seconds of a turn: many of them in a run, and few beside what filling the caches again takes.
_TURN = 0.02
KINDS = ("wall", "cpu")
#: Rows of runs with and without homing.
PAIRED = {f"{case}.{program}" for case in CASES for program in PROGRAMS}


class Turns:
    """A process that runs in turns. wall: seconds in which it was not stopped; cpu: its processor time.
    printed: the file that its output goes to."""

    def __init__(self, command: Sequence[str], chosen: dict[str, str], printed: Path) -> None:
        self.command = command
        self.wall = self.cpu = 0.0
        self.ended = False
        self.printed = printed
        self._chosen = chosen
        self._process: subprocess.Popen[bytes] | None = None
        self._end = select.poll()
        self._descriptor = -1

    def turn(self) -> None:
        """Start it, or let it go on, for a turn. UserError where it fails."""
        begin = time.perf_counter()
        if self._process is None:
            with open(self.printed, "wb") as printed:
                self._process = subprocess.Popen(
                    self.command, env=self._chosen, stdout=printed, stderr=subprocess.PIPE
                )
            self._descriptor = os.pidfd_open(self._process.pid)
            self._end.register(self._descriptor, select.POLLIN)
        else:
            os.kill(self._process.pid, signal.SIGCONT)
        if not self._end.poll(1000 * _TURN):
            os.kill(self._process.pid, signal.SIGSTOP)  # it is ours until wait4 says that it has ended
        _, status, used = os.wait4(self._process.pid, os.WUNTRACED)
        self.wall += time.perf_counter() - begin
        if os.WIFSTOPPED(status):
            return
        self.ended = True
        self.cpu = used.ru_utime + used.ru_stime
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != 0:
            assert self._process.stderr is not None
            words = " ".join(self._process.stderr.read().decode(errors="replace").split())
            raise UserError(f"{' '.join(self.command)} ended with {self._process.returncode}: {words}", 1)

    def close(self) -> None:
        """End it, wherever it is."""
        if self._process is None:
            return
        if not self.ended:
            self._process.kill()
            self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
        os.close(self._descriptor)


def upper_bound(ratios: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """The median and its upper 95 % bound (one-sided, percentile bootstrap)."""
    values = np.asarray(ratios, dtype=float)
    picks = np.random.default_rng(seed).integers(0, len(values), size=(_RESAMPLES, len(values)))
    medians = np.median(values[picks], axis=1)
    return float(np.median(values)), float(np.quantile(medians, 0.95))


def paired_ratios(pairs: Sequence[dict[str, list[float]]], kind: str) -> list[float]:
    """With homing over without, each the geometric mean of two pairs that follow each other: in every second
    one run_pair lets the other side begin. A last pair that has no partner is left out."""
    single = [pair[kind][1] / pair[kind][0] for pair in pairs]
    return [math.sqrt(even * odd) for even, odd in zip(single[::2], single[1::2], strict=False)]


def narrow(pairs: Sequence[dict[str, list[float]]]) -> bool:
    """Is the median of the ratios of the wall time known well enough?"""
    median, bound = upper_bound(paired_ratios(pairs, "wall"))
    return bound - median <= _NARROW


def variables(library: str, extra: dict[str, str] | None, folder: str) -> dict[str, str]:
    """The environment of a run; extra None: without homing. As `homing run` would set it."""
    chosen = {
        name: value for name, value in os.environ.items() if not name.startswith(("HOMING", "OMP_", "GOMP_"))
    }
    chosen.update(OMP_NUM_THREADS="2", OMP_PROC_BIND="true")
    if extra is not None:
        environment.preload(chosen, library, folder)
        chosen["HOMING_RECORD"] = os.path.join(folder, "record")
        chosen["HOMING_COSTS"] = costs.costs_file(instead=folder)
        chosen.update(extra)
    return chosen


def run_pair(
    command: Sequence[str], library: str, extra: dict[str, str], folder: str, turn: int
) -> dict[bool, Turns]:
    """A program without and with homing, in turns, to the end of both. Odd pairs begin with homing. As with
    `homing run`, whose runs have folders of their own, there is no record of an earlier run to be replaced:
    to remove one takes 3 to 12 ms where the file system discards the blocks at once (ext4, discard)."""
    Path(folder, "record").unlink(missing_ok=True)
    sides = {
        with_homing: Turns(
            command,
            variables(library, extra if with_homing else None, folder),
            Path(folder, f"printed-{int(with_homing)}"),
        )
        for with_homing in (False, True)
    }
    order = (False, True) if turn % 2 == 0 else (True, False)
    try:
        while not all(side.ended for side in sides.values()):
            for with_homing in order:
                if not sides[with_homing].ended:
                    sides[with_homing].turn()
    finally:
        for side in sides.values():
            side.close()
    return sides


def measure_pair(
    command: Sequence[str], library: str, extra: dict[str, str], folder: str, turn: int
) -> dict[str, list[float]]:
    """One pair: [without, with] of each kind of time."""
    sides = run_pair(command, library, extra, folder, turn)
    return {kind: [getattr(sides[side], kind) for side in (False, True)] for kind in KINDS}


def settled_ns(output: str) -> float:
    """The median time of an empty region in the second half of the iterations."""
    for line in output.splitlines():
        words = line.split()
        if words[:1] == ["ns"]:
            values = [float(word) for word in words[1:]]
            return float(np.median(values[len(values) // 2 :]))
    raise UserError("regions: no line that begins with ns", 1)


def measure_regions(program: str, mode: str, library: str, folder: str, turn: int) -> list[float]:
    """[without, with], in nanoseconds."""
    command = [find_bench_program(program), mode, "20000", "1"]
    sides = run_pair(command, library, ASSUMED["working"], folder, turn)
    return [settled_ns(sides[with_homing].printed.read_text()) for with_homing in (False, True)]


def record_of(words: Sequence[str], library: str, folder: str) -> Record:
    """What homing recorded of a run of blocks_gcc."""
    command = [find_bench_program("blocks_gcc"), *words]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        chosen = variables(library, ASSUMED["working"], own)
        subprocess.run(command, env=chosen, stdout=subprocess.DEVNULL, check=True)
        return read_record(chosen["HOMING_RECORD"])


def measure_blocks(name: str, library: str, folder: str) -> float:
    """Homing's own milliseconds in an iteration: what its record says that it took in all."""
    words = [LIVE_BLOCKS, *BLOCKS[name], BLOCK_ITERATIONS]
    took = record_of([str(word) for word in words], library, folder).overhead
    return 1e3 * (took.observing + took.deciding + took.moving) / BLOCK_ITERATIONS


def measure_deciding(name: str, library: str, folder: str) -> float:
    """The share of a run's seconds that deciding took."""
    record = record_of(ARRAYS[name], library, folder)
    if len(record.areas) < 0.95 * int(ARRAYS[name][0]):
        raise UserError(f"{name}: {len(record.areas)} areas only", 1)
    return record.overhead.deciding / record.iterations[-1].time


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names of rows, such as aside.cg or region.libomp, or their beginnings."""
    library = find_library()
    names = [f"{case}.{program}" for case in CASES for program in PROGRAMS]
    names += [*REGIONS, *BLOCKS, *ARRAYS]
    chosen = [name for name in names if not only or any(name.startswith(part) for part in only)]
    if not chosen:
        raise UserError(f"--only {','.join(only)}: no such rows; there are {', '.join(names)}")
    parts = Parts(kept_folder() / f"overhead-{size}.json", {"library": library_key(library)})
    if redo:
        parts.drop(chosen)
    pairs = {name: _pairs(name)[size] for name in chosen}
    weights = [1.0 if name in PAIRED else 0.3 for name in chosen for _ in range(pairs[name][1])]
    progress = Progress("overhead", weights)
    load = os.getloadavg()[0]
    results = Results("overhead", "Overhead on a machine with one node", tell(["overhead"]))
    try:
        with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
            for turn in range(max(most for _, most in pairs.values())):
                # All rows take turns, so that what disturbs the machine for a while disturbs them alike.
                for name in chosen:
                    least, most = pairs[name]
                    if turn >= most:
                        continue
                    kept: list[Any] = list(parts.get(name) or [])
                    if len(kept) > turn or (turn >= least and name in PAIRED and narrow(kept)):
                        progress.finished(skipped=True)
                        continue
                    progress.step(f"pair {turn + 1} of {name}")
                    kept.append(_measure(name, library, folder, turn))
                    parts.put(name, kept)
                    progress.finished()
    finally:
        progress.close()
    load = max(load, os.getloadavg()[0])
    for name in chosen:
        pairs_found = list(parts.get(name) or [])
        if name in REGIONS:
            _region_rows(results, name, pairs_found)
        elif name in BLOCKS:
            _block_rows(results, name, pairs_found)
        elif name in ARRAYS:
            _deciding_rows(results, name, pairs_found)
        else:
            _ratio_rows(results, name, pairs_found)
    _searching(results)
    results.notes.append(
        "2 threads, bound. Ratios: with homing over without, of the wall time of the whole process (cpu: its "
        "processor time); the two runs of a pair go on in turns of "
        f"{1000 * _TURN:g} ms, each charged with its own, so that both see the same machine. The "
        "row's value is the upper 95 % bound of the median of the ratios, each of two pairs, one begun by "
        "either side. Regions: nanoseconds that "
        "an empty parallel region takes longer, between sweeps over 1 MiB, with 4 assumed nodes; settled, "
        "and while no period is found. Blocks: homing's own milliseconds in an iteration of a program that "
        f"uses {LIVE_BLOCKS:,} blocks in each of {BLOCK_ITERATIONS} iterations, by its record. Deciding: of "
        "the seconds of a run with 2,000 arrays, by its record. The machine's load was up to "
        f"{load:.1f} on {os.cpu_count()} CPUs"
        + (
            "."
            if load < 2.5
            else ": it was BUSY, so wall times are disturbed; processor time (.cpu) less so."
        )
    )
    results.details = {name: parts.get(name) for name in chosen}
    return results


def _pairs(name: str) -> dict[str, tuple[int, int]]:
    if name in BLOCKS or name in ARRAYS:
        runs = BLOCK_RUNS if name in BLOCKS else ARRAY_RUNS
        return {"small": (runs, runs), "full": (runs, runs)}
    return REGION_PAIRS if name in REGIONS else PAIRS


def _measure(name: str, library: str, folder: str, turn: int) -> object:
    if name in BLOCKS:
        return measure_blocks(name, library, folder)
    if name in ARRAYS:
        return measure_deciding(name, library, folder)
    if name in REGIONS:
        program, mode, _ = REGIONS[name]
        return measure_regions(program, mode, library, folder, turn)
    case, program = name.split(".")
    binary, *arguments = PROGRAMS[program]
    return measure_pair([find_program(binary), *arguments], library, ASSUMED[case], folder, turn)


def _ratio_rows(results: Results, name: str, pairs: list[dict[str, list[float]]]) -> None:
    most = CASES[name.split(".")[0]]
    for kind in KINDS:
        ratios = paired_ratios(pairs, kind)
        median, bound = upper_bound(ratios)
        without = float(np.median([pair[kind][0] for pair in pairs]))
        label = name if kind == "wall" else f"{name}.{kind}"
        note = f"median {median:.4f} of {len(pairs)} pairs; {without:.2f} s without homing"
        results.rows.append(Row(label, bound, "ratio", note))
        if kind == "wall":
            results.checks.append(
                Check(f"{name}: at most {most}", bound <= most, f"bound {bound:.4f}, median {median:.4f}")
            )


def _block_rows(results: Results, name: str, runs: list[float]) -> None:
    least, most, replaced = BLOCKS[name]
    median = float(np.median(runs))
    again = f", {replaced:,} of them replaced in each iteration" if replaced else ""
    note = f"{LIVE_BLOCKS:,} blocks of {least} to {most} bytes{again}; {min(runs):.2f} to {max(runs):.2f}"
    results.rows.append(Row(name, median, "ms an iteration", note))
    check = f"{name}: at most {MOST_BLOCK_MS:g} ms an iteration"
    results.checks.append(Check(check, median <= MOST_BLOCK_MS, f"{median:.2f} ms"))


def _deciding_rows(results: Results, name: str, runs: list[float]) -> None:
    median = float(np.median(runs))
    note = f"{ARRAYS[name][0]} arrays; {min(runs):.2%} to {max(runs):.2%} in {len(runs)} runs"
    results.rows.append(Row(name, median, "of the run", note))
    check = f"{name}: at most {MOST_DECIDING:.1%} of the run"
    results.checks.append(Check(check, median <= MOST_DECIDING, f"{median:.2%}"))


def _region_rows(results: Results, name: str, pairs: list[list[float]]) -> None:
    extra = [with_homing - without for without, with_homing in pairs]
    median, bound = upper_bound(extra)
    without = float(np.median([pair[0] for pair in pairs]))
    most = REGIONS[name][2]
    results.rows.append(
        Row(
            name,
            median,
            "ns",
            f"upper 95 % bound {bound:.0f} of {len(extra)} pairs; {without:.0f} ns without homing",
        )
    )
    results.checks.append(
        Check(f"{name}: at most {most} ns", median <= most, f"{median:.0f} ns, bound {bound:.0f}")
    )


def _searching(results: Results) -> None:
    """region.searching: the dearer of the two runtimes."""
    both = [row for row in results.rows if row.name.startswith("region.searching.")]
    if both:
        worst = max(both, key=lambda row: row.value)
        results.rows.append(
            Row("region.searching", worst.value, "ns", f"the dearer: {worst.name.split('.')[-1]}")
        )
