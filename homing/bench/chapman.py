"""The codes of Chapman, Patil and Prabhakar (2001): plain, with directives, translated and by hand.

Natively: speed-ups (figures 2, 4, 5), LU without AFFINITY, and translated against hand-written SPMD by time
and by instructions. In the guest: Jacobi with pages migrated (figure 2a). Simulated, where this homing can:
remote misses and, by a model, speed-ups on the described Origin 2000. Between MPI ranks: messages and bytes a
step.
"""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from homing.bench import chapman_origin
from homing.bench.chapman_programs import (
    ARCHITECTURE,
    CODES,
    FLAGS,
    LANGUAGES,
    OF_LU,
    VERSIONS,
    Builder,
    digest,
)
from homing.bench.chapman_runs import (
    MACHINE,
    MPI_ARGUMENTS,
    bytes_a_step,
    counted_step,
    ranks_step,
    run_time,
)
from homing.bench.places import kept_folder, sources_folder
from homing.bench.programs import execute
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only
from homing.bench.undisturbed import MOST_OF_OTHERS, kept_alone, undisturbed
from homing.errors import UserError
from homing.installation import python_path
from homing.simulate.on_machine import find_simulator

SECTIONS = ("time", "instructions", "mpi", "translate", "guest", "origin")
#: Arguments of timed runs: long enough to be measured, and at full size those of the paper.
TIMED = {
    "small": {
        "jacobi": ("--n", "512", "--iterations", "5", "--steps", "20"),
        "lu": ("--n", "640"),
        "lbe": ("--nx", "128", "--ny", "128", "--iterations", "5", "--steps", "20"),
    },
    "full": {
        "jacobi": ("--n", "1024", "--iterations", "10", "--steps", "40"),
        "lu": ("--n", "2048"),
        "lbe": ("--nx", "256", "--ny", "256", "--iterations", "10", "--steps", "20"),
    },
}
ROUNDS = {"small": 5, "full": 7}
THREADS = (1, 2)
#: Arguments whose runs are counted, and by how many steps the second run is longer: what a step costs is
#: their difference. LU has no steps to repeat.
COUNTED: dict[str, dict[str, tuple[tuple[str, ...], int]]] = {
    "small": {
        "jacobi": (("--n", "512", "--iterations", "1", "--steps"), 4),
        "lu": (("--n", "320"), 0),
        "lbe": (("--nx", "128", "--ny", "128", "--iterations", "1", "--steps"), 4),
    },
    "full": {
        "jacobi": (("--n", "1024", "--iterations", "1", "--steps"), 4),
        "lu": (("--n", "1024"), 0),
        "lbe": (("--nx", "256", "--ny", "256", "--iterations", "1", "--steps"), 4),
    },
}
#: By version and threads: seconds of each round, and what others had of the CPUs meanwhile.
Timed = dict[tuple[str, int], list[tuple[float, float]]]
RANKS = (2, 4)
GUEST_ARGUMENTS = {
    "small": ("--n", "512", "--iterations", "24", "--steps", "1"),
    "full": ("--n", "1024", "--iterations", "24", "--steps", "2"),
}
#: Section 4.2: times without AFFINITY were approximately 40 % higher.
PAPER_NO_AFFINITY = 1.4
MOST_INSTRUCTIONS = 1.02
MOST_TIME = 1.05


@dataclass
class Bench:
    """The state of one call of the benchmark."""

    size: str
    parts: Parts
    progress: Progress
    builder: Builder
    codes: Sequence[str]
    results: Results
    refused: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def program(self, code: str, language: str, version: str) -> str | None:
        """A built program; None, and a note once, where the translation was refused."""
        built = self.builder.build(code, language, version)
        if built.refused and (name := f"{code}.{language}.{version}") not in self.refused:
            self.refused.add(name)
            self.results.notes.append(f"{name} is missing: it was refused: {built.refused}")
        return built.path or None

    def each(self) -> list[tuple[str, str]]:
        return [(code, language) for code in self.codes for language in LANGUAGES]

    def row(self, name: str, value: float, unit: str, note: str = "", paper: float | None = None) -> None:
        self.results.rows.append(Row(name, value, unit, note, paper))

    def kept(self, name: str, path: str, measure: Callable[[], Any], simulator: str = "") -> Any:
        """A part; measured unless an earlier run left it for a program, and a simulator, of the same code."""
        key = " ".join([name, *(digest(file) for file in (path, simulator) if file)])
        self.used.add(key)
        found = self.parts.get(key)
        if found is None:
            self.progress.step(name)
            found = measure()
            self.parts.put(key, found)
            self.progress.finished()
        else:
            self.progress.finished(skipped=True)
        return found


# --- time ---------------------------------------------------------------------------------------------------


def time_section(bench: Bench) -> None:
    """Speed-ups over the plain program with one thread; ratios of runs that took turns."""
    for code, language in bench.each():
        versions = [*VERSIONS, *(OF_LU if code == "lu" else ())]
        programs = {version: bench.program(code, language, version) for version in versions}
        seconds: Timed = {}
        for turn in range(ROUNDS[bench.size]):
            # Runs that are compared follow each other: this machine is faster at times than at others.
            for threads, version in itertools.product(THREADS, versions):
                path = programs[version]
                if path is None:
                    bench.progress.finished(skipped=True)
                    continue
                command = [path, *TIMED[bench.size][code]]
                name = f"{code}.{language}.{version}.t{threads} {turn + 1}"
                run = partial(undisturbed, partial(run_time, command, threads))
                total, others = bench.kept(name, path, run)
                seconds.setdefault((version, threads), []).append((float(total), float(others)))
        rounds = list(seconds.values())
        quiet = sum(others <= MOST_OF_OTHERS for runs in rounds for _, others in runs)
        bench.results.notes.append(
            f"{code}.{language}: during {quiet} of {sum(map(len, rounds))} timed runs others had at most "
            f"{100 * MOST_OF_OTHERS:.0f} % of the CPUs, in one of three tries; ratios are of rounds in which "
            "that is so of both runs, where there are any."
        )
        _time_rows(bench, code, language, seconds)


def _ratio(above: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]]) -> float:
    """The median of the rounds' ratios, of those in which nobody disturbed where there are any."""
    both = zip(above, below, strict=False)
    pairs = [(one / other, max(mine, its)) for (one, mine), (other, its) in both]
    return float(np.median(kept_alone(pairs)))


def _time_rows(bench: Bench, code: str, language: str, seconds: Timed) -> None:
    prefix = f"{code}.{language}"
    serial = seconds[("shared", 1)]
    for version, threads in seconds:
        if version not in OF_LU:
            value = _ratio(serial, seconds[(version, threads)])
            note = f"{float(np.median(kept_alone(seconds[(version, threads)]))):.3f} s"
            bench.row(f"{prefix}.{version}.speedup.t{threads}", value, "of 1 thread", note)
    if ("spmd", 2) in seconds:
        for other, name in (("hand", "spmd_vs_hand.time"), ("shared", "spmd_vs_shared.time")):
            value = _ratio(seconds[("spmd", 2)], seconds[(other, 2)])
            bench.row(f"{prefix}.{name}", value, "ratio", "2 threads, median of paired runs")
            bench.results.checks.append(
                Check(f"{prefix}.{name} at most {MOST_TIME}", value <= MOST_TIME, f"{value:.3f}")
            )
    if ("no_affinity", 2) in seconds and ("distribute", 2) in seconds:
        value = _ratio(seconds[("no_affinity", 2)], seconds[("distribute", 2)])
        note = "DISTRIBUTE without AFFINITY to with it, both translated; one node here"
        bench.row(f"{prefix}.no_affinity.time", value, "ratio", note, PAPER_NO_AFFINITY)
    if ("dealt_out", 2) in seconds and ("distribute", 2) in seconds:
        value = _ratio(seconds[("distribute", 2)], seconds[("dealt_out", 2)])
        note = "`--to pages` to the plain program with SCHEDULE(STATIC, 1), the same threads' columns"
        bench.row(f"{prefix}.distribute_vs_dealt_out.time", value, "ratio", note)


# --- instructions -------------------------------------------------------------------------------------------


def instructions_section(bench: Bench) -> None:
    """Instructions of a step (LU: of the whole run), all threads together, counted by callgrind."""
    if shutil.which("valgrind") is None:
        bench.results.notes.append("Instructions were not counted: valgrind is not here.")
        return
    for code, language in bench.each():
        arguments, more = COUNTED[bench.size][code]
        counts = {}
        for version in ("shared", "spmd", "hand"):
            path = bench.program(code, language, version)
            if path is None:
                bench.progress.finished(skipped=True)
                continue
            counts[version] = bench.kept(
                f"instructions {code}.{language}.{version}",
                path,
                partial(counted_step, [path, *arguments], more),
            )
        if "spmd" not in counts:
            continue
        for other in ("hand", "shared"):
            value = counts["spmd"] / counts[other]
            name = f"{code}.{language}.spmd_vs_{other}.instructions"
            bench.row(
                name, value, "ratio", f"{counts['spmd']:,.0f} and {counts[other]:,.0f}, 2 threads together"
            )
            if other == "hand":
                bench.results.checks.append(
                    Check(f"{name} at most {MOST_INSTRUCTIONS}", value <= MOST_INSTRUCTIONS, f"{value:.4f}")
                )


# --- messages -----------------------------------------------------------------------------------------------


def mpi_section(bench: Bench) -> None:
    """Bytes and messages of a step between MPI ranks on this machine, against what the method needs."""
    if shutil.which("mpirun") is None:
        bench.results.notes.append("MPI was not measured: mpirun is not here (Debian: openmpi-bin).")
        return
    for code, language in bench.each():
        path = bench.program(code, language, "mpi")
        if path is None:
            bench.progress.finished(skipped=True)
            continue
        found = bench.kept(
            f"mpi {code}.{language}",
            path,
            partial(_ranks, path, code),
        )
        for ranks, (sent, messages, message_bytes) in zip(RANKS, found, strict=True):
            needed = bytes_a_step(code, ranks, MPI_ARGUMENTS[code])
            unit = "" if code == "lu" else " a step"
            suffix = "" if ranks == RANKS[-1] else f".r{ranks}"
            prefix = f"{code}.{language}.mpi"
            bench.row(f"{prefix}_bytes{suffix}", sent, f"bytes{unit}", f"{ranks} ranks; needed: {needed:,}")
            bench.row(
                f"{prefix}_messages{suffix}", messages, f"messages{unit}", f"{message_bytes:,.0f} bytes"
            )
            bench.results.checks.append(
                Check(f"{prefix}_bytes{suffix}: what is needed, each once", sent == needed, f"{sent:,.0f}")
            )


def _ranks(path: str, code: str) -> list[tuple[float, float, float]]:
    return [ranks_step(path, code, ranks) for ranks in RANKS]


# --- the translator -----------------------------------------------------------------------------------------


def translate_section(bench: Bench) -> None:
    """Lines a second of processor time of `homing translate`, the start of Python included."""
    folder = sources_folder() / "apps" / "chapman"
    sources = [str(folder / f"{code}.f90") for code in CODES]
    lines = sum(len(Path(source).read_text().splitlines()) for source in sources)

    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="homing-bench-") as output:
            chosen = {**os.environ, "PYTHONPATH": python_path()}
            seconds = []
            for _ in range(3):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                for source in sources:
                    words = ["translate", source, "--to", "spmd", "-o", output]
                    execute([sys.executable, "-m", "homing", *words], chosen)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return lines / min(seconds)

    value = bench.kept("translate", "", measure)
    note = f"{len(sources)} programs, {lines} lines, a command each; a second of processor time"
    bench.row("translate.lines_per_second", value, "lines/s", note)
    bench.results.checks.append(Check("translate: at least 300 lines a second", value >= 300, f"{value:.0f}"))


# --- the guest ----------------------------------------------------------------------------------------------

#: name: (version, initialisation, homing, kernel balancing)
GUEST_RUNS: dict[str, tuple[str, str, bool, bool]] = {
    "serial": ("shared", "serial", False, False),
    "first_touch": ("shared", "parallel", False, False),
    "distribute": ("distribute", "serial", False, False),
    "spmd": ("spmd", "", False, False),
    "balancing": ("shared", "serial", False, True),
    "homing": ("shared", "serial", True, False),
}


def guest_section(bench: Bench) -> None:
    """Figure 2: Jacobi on 4 nodes, remote misses counted; (a) with migration by the kernel and by homing."""
    from homing.bench.balancing import balancing_settings
    from homing.bench.guest_runs import LAST_HALF, RUN, GuestRuns, Outcome
    from homing.lab.errors import LabError

    keys: dict[str, str] = {}
    for name, (version, *_) in GUEST_RUNS.items():
        if (path := bench.program("jacobi", "fortran", version)) is not None:
            keys[name] = f"guest {name} {digest(path)}"
    missing = [name for name, key in keys.items() if bench.parts.get(key) is None]
    try:
        if missing:
            bench.progress.step("guest: booting")
            with GuestRuns() as runs:
                for name in missing:
                    version, initialise, homing, balancing = GUEST_RUNS[name]
                    words = [str(bench.program("jacobi", "fortran", version)), *GUEST_ARGUMENTS[bench.size]]
                    words += ["--initialise", initialise] if initialise else []
                    settings: dict[str, Any] = {}
                    if balancing:
                        output = Outcome.from_dict(bench.parts.get(keys["serial"]) or {}).output
                        settings = balancing_settings(1.0, output.median, output.bytes)
                    bench.progress.step(f"guest {name}")
                    found = runs.run(name, words, homing={} if homing else None, timeout=900.0, **settings)
                    bench.parts.put(keys[name], found.to_dict())
    except (LabError, UserError) as error:
        bench.results.notes.append(f"Runs in the guest are missing: {error.message}")
    bench.progress.finished(skipped=not missing)
    outcomes = {
        name: Outcome.from_dict(kept)
        for name, key in keys.items()
        if (kept := bench.parts.get(key)) is not None
    }
    bench.used.update(keys[name] for name in outcomes)
    for name, found in outcomes.items():
        prefix = f"jacobi.fortran.guest.{name}"
        misses = sum(found.misses.get(phase, 0) for phase in RUN)
        last = f"4 nodes; last half {found.remote_fraction(LAST_HALF):.1%}"
        bench.row(f"{prefix}.remote_fraction", found.remote_fraction(), "fraction", last)
        bench.row(f"{prefix}.remote_misses", found.remote_misses(RUN), "misses", f"of {misses:,}")


# --- the described machine ----------------------------------------------------------------------------------


def origin_section(bench: Bench) -> None:
    """Remote misses and speed-ups on the described Origin 2000."""
    builder = Builder(kept_folder() / "chapman-simulated", [sys.executable, "-m", "homing", "cc"])
    bench.results.notes.append(chapman_origin.note(bench.size))
    simulator = find_simulator()
    for code in bench.codes:
        runs: dict[tuple[str, int], dict[str, float]] = {}
        first: dict[str, float] = {}
        for version, count in chapman_origin.planned(code, bench.size):
            built = builder.build(code, "fortran", version)
            if built.refused:
                bench.results.notes.append(f"{code}.{version} on {MACHINE} is missing: {built.refused}")
                bench.progress.finished(skipped=True)
                continue
            command = [built.path, *chapman_origin.arguments(code, version, bench.size)]
            if version not in first:
                name = f"origin {code}.{version} first level"
                own = [built.path, *chapman_origin.first_level_arguments(code, version, bench.size)]
                first[version] = bench.kept(
                    name, built.path, partial(chapman_origin.first_level, own), simulator
                )
            name = f"origin {code}.{version}.t{count}"
            run = partial(chapman_origin.simulated, command, count)
            runs[(version, count)] = bench.kept(name, built.path, run, simulator)
        others = {}
        for version, count, cache in chapman_origin.others_planned(code, bench.size):
            if version in first:
                built = builder.build(code, "fortran", version)
                command = [built.path, *chapman_origin.other_arguments(version)]
                run = partial(chapman_origin.simulated, command, count, cache)
                name = f"origin {code}.{version}.t{count} {cache}"
                others[(version, count, cache)] = bench.kept(name, built.path, run, simulator)
        if others:
            bench.results.rows += chapman_origin.other_rows(others, first)
        bench.results.rows += chapman_origin.rows(code, bench.size, runs, first)
        bench.results.checks += chapman_origin.checks(code, bench.size, runs, first)


# --- all ----------------------------------------------------------------------------------------------------


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: codes (jacobi, lu, lbe) and sections (time, instructions, mpi, translate, guest,
    origin)."""
    check_only(only, (*CODES, *SECTIONS))
    codes = [code for code in CODES if code in only] or list(CODES)
    sections = [section for section in SECTIONS if section in only] or list(SECTIONS)
    parts = Parts(kept_folder() / f"chapman-{size}.json", {"size": size})
    if redo:
        parts.drop(parts.names())
    results = Results(
        "chapman",
        "Chapman, Patil and Prabhakar: directives translated to SPMD OpenMP and MPI",
        tell(["chapman"]),
    )
    progress = Progress("chapman", _weights(size, codes, sections))
    folder = kept_folder() / "chapman"
    bench = Bench(size, parts, progress, Builder(folder), codes, results)
    runners = {
        "time": time_section,
        "instructions": instructions_section,
        "mpi": mpi_section,
        "translate": translate_section,
        "guest": guest_section,
        "origin": origin_section,
    }
    try:
        for section in sections:
            runners[section](bench)
    finally:
        progress.close()
    results.notes += _notes(size, codes)
    results.details = {name: _portable(parts.get(name)) for name in sorted(bench.used)}
    return results


def _portable(kept: Any) -> Any:
    """A part without the folder of its program."""
    if isinstance(kept, dict) and "command" in kept:
        path, *arguments = kept["command"]
        return {**kept, "command": ["/".join(Path(path).parts[-2:]), *arguments]}
    return kept


def _weights(size: str, codes: Sequence[str], sections: Sequence[str]) -> list[float]:
    """Of the steps, in seconds of this machine."""
    programs = len(codes) * len(LANGUAGES)
    timed = programs * len(VERSIONS) + (len(LANGUAGES) * len(OF_LU) if "lu" in codes else 0)
    weights = {
        "time": [0.5] * (timed * len(THREADS) * ROUNDS[size]),
        "instructions": [20.0] * (3 * programs),
        "mpi": [4.0] * programs,
        "translate": [6.0],
        "guest": [120.0],
        "origin": [
            60.0 if code == "lu" and size == "full" else 3.0
            for code in codes
            for _ in range(chapman_origin.steps_of_progress(code, size))
        ],
    }
    return [weight for section in sections for weight in weights[section]]


def _notes(size: str, codes: Sequence[str]) -> list[str]:
    sizes = "; ".join(f"{code} {' '.join(TIMED[size][code])}" for code in codes)
    flags = " ".join((*FLAGS, *ARCHITECTURE))
    return [
        f"Compiled with {flags}, all versions alike. {sizes}. Times: the iterations alone, the median of "
        f"{ROUNDS[size]} rounds in which all versions took turns; speed-up: over the plain program with 1 "
        "thread. This machine has one NUMA node, so what page placement wins does not show here.",
        "shared: the program as it is. distribute, reshape: its pages placed by DISTRIBUTE and "
        "DISTRIBUTE_RESHAPE (`--to pages`, which keeps the layout; `--to spmd` lays arrays out anew). "
        "spmd: translated. hand: SPMD by hand after the paper's programs 4 and 5, with their races mended. "
        "Figures 3, 4b and 5b of the paper are of TreadMarks on an SP2: `homing bench treadmarks`.",
        "Instructions: of a step, from two runs of different length (LU: of the whole run), by callgrind "
        "with 2 threads that do not spin.",
    ]
