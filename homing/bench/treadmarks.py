"""`homing bench treadmarks`: Jacobi, LU and LBE on a page-based shared memory between processes (apps/dsm).

For Figures 3, 4b and 5b of Chapman, Patil and Prabhakar (2001). Faults, twins, diffs, notices, messages and
bytes are counted, exactly; times are predicted from them by costs of an SP2 (treadmarks_costs.py). Beside
them: MPI ranks on this machine, translated from the same codes.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from homing.bench import treadmarks_translated as translated
from homing.bench.chapman_programs import LANGUAGES, Builder, digest
from homing.bench.chapman_runs import quiet_environment
from homing.bench.places import find_program, kept_folder
from homing.bench.programs import execute, parse_output
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, check_only
from homing.bench.treadmarks_costs import COSTS, KINDS, WORK, costs_text, described, standing
from homing.errors import UserError

CODES = ("jacobi", "lu", "lbe")
SECTIONS = ("counts", "mpi")
#: The paper's sizes; its steps are not stated.
SIZES = {
    "small": {"jacobi": ("--n", "512"), "lu": ("--n", "256"), "lbe": ("--n", "128")},
    "full": {"jacobi": ("--n", "1024"), "lu": ("--n", "2048"), "lbe": ("--n", "256")},
}
STEPS = 10
PROCESSES = {"small": (1, 2, 4, 8, 16), "full": (1, 2, 4, 8, 16, 32)}
#: By code: the ways of running it, shared ones first. eager: all diffs at the end of each interval.
WAYS = {
    "jacobi": {
        "shared": ("--version", "shared"),
        "shared_eager": ("--version", "shared", "--diffs", "eager"),
        "private": ("--version", "private"),
    },
    "lu": {
        "shared": ("--version", "shared"),
        "shared_first": ("--version", "shared", "--single", "first"),
        "private": ("--version", "private"),
    },
    "lbe": {
        "shared": ("--version", "shared"),
        "shared_eager": ("--version", "shared", "--diffs", "eager"),
        "private": ("--version", "private"),
    },
}
#: The last way: what the translator makes of apps/chapman.
TRANSLATED = "translated"
COUNTED = ("read_faults", "write_faults", "twins", "diffs", "notices", "protections", "messages", "bytes")
MPI_SIZES = {
    "small": {
        "jacobi": ("--n", "512", "--iterations", "5", "--steps", "20"),
        "lu": ("--n", "640"),
        "lbe": ("--nx", "128", "--ny", "128", "--iterations", "5", "--steps", "20"),
    },
    "full": {
        "jacobi": ("--n", "1024", "--iterations", "10", "--steps", "20"),
        "lu": ("--n", "2048"),
        "lbe": ("--nx", "256", "--ny", "256", "--iterations", "10", "--steps", "10"),
    },
}
RANKS = (1, 2, 3, 4)
MPI_ROUNDS = {"small": 2, "full": 5}
#: What the paper's text says of a figure at 16 processes: private over shared.
PAPER_RATIO = {"jacobi": 5.0, "lu": 4.0}


@dataclass(frozen=True)
class Found:
    """What a run counted (sums over the processes), the largest of one process, and predicted times in us."""

    sums: dict[str, float]
    largest: dict[str, float]
    predicted: tuple[float, ...]

    @staticmethod
    def parse(text: str) -> Found:
        counts = re.findall(r"^count (\w+): (\d+) (\d+) of", text, re.MULTILINE)
        times = re.findall(r"^predicted \d: ([0-9.]+) us$", text, re.MULTILINE)
        if not counts or len(times) != len(KINDS):
            raise UserError("a program of apps/dsm printed no counts", 1)
        return Found(
            {name: int(total) for name, total, _ in counts},
            {name: int(most) for name, _, most in counts},
            tuple(map(float, times)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {"sums": self.sums, "largest": self.largest, "predicted_us": list(self.predicted)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Found:
        return Found(data["sums"], data["largest"], tuple(data["predicted_us"]))


def pages_in_use(code: str, way: str, arguments: Sequence[str], processes: int) -> int:
    """Shared pages that a process may have protected: what a change of protection costs depends on it."""
    n = int(dict(itertools.pairwise(arguments))["--n"])
    if way in ("private", TRANSLATED):
        row = {"jacobi": 4 * n * 8 * processes, "lu": n * 4, "lbe": 4 * 4 * n * 8 * processes}
        return -(-row[code] // 4096)
    whole = {"jacobi": 2 * n * n * 8, "lu": n * n * 4, "lbe": (18 + 3) * n * n * 8}
    return -(-whole[code] // 4096)


def count(code: str, way: str, arguments: Sequence[str], processes: int) -> dict[str, Any]:
    """One run; the program itself compares its result with the serial run's, bit by bit."""
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        costs = Path(folder) / "costs"
        costs.write_text(costs_text(code, pages_in_use(code, way, arguments, processes)))
        command = [
            find_program(f"dsm_{code}_gcc"),
            "--processes",
            str(processes),
            *WAYS[code][way],
            *arguments,
        ]
        steps = [] if code == "lu" else ["--steps", str(STEPS)]
        done = execute([*command, *steps, "--costs", str(costs)], quiet_environment(1))
    return Found.parse(done.stdout).to_dict()


def count_translated(path: str, code: str, points: int, processes: int, costs: str) -> dict[str, Any]:
    """The same of a translated program, for as many steps."""
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        file = Path(folder) / "costs"
        file.write_text(costs)
        found = translated.count(path, code, points, processes, str(file))
    steps = 1 if code == "lu" else STEPS
    units = translated.work(code, points, processes)
    times = [us + units * cost for us, cost in zip(found["us"], WORK[code].values, strict=True)]
    sums = {name: number * steps for name, number in found["sums"].items()}
    return Found(sums, {}, tuple(steps * time for time in times)).to_dict()


def rank_seconds(path: str, arguments: Sequence[str], ranks: int) -> float:
    """Seconds of all iterations between so many ranks of one thread each."""
    command = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe"]
    command += ["--bind-to", "none", "-n", str(ranks), path, *arguments]
    # Bound, each rank's one thread would be on the first CPU, all ranks on the same.
    extra = {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_PROC_BIND": "false"}
    output = parse_output(execute(command, quiet_environment(1, **extra)).stdout)
    if output.verification != "successful":
        raise UserError(f"{' '.join(command)}: verification {output.verification}", 1)
    return output.total


# --- rows ---------------------------------------------------------------------------------------------------


Table = dict[tuple[str, int], Found]  # by way and processes


def speedup(found: Table, way: str, processes: int, kind: int) -> float:
    """Over the shared program with one process, by the same costs."""
    return found["shared", 1].predicted[kind] / found[way, processes].predicted[kind]


def count_rows(results: Results, code: str, found: Table) -> None:
    steps = 1 if code == "lu" else STEPS
    unit = "" if code == "lu" else " a step"
    for (way, processes), one in found.items():
        prefix = f"{code}.{way}.p{processes}"
        if processes > 1:
            for name in ("messages", "bytes"):
                results.rows.append(Row(f"{prefix}.{name}", one.sums[name] / steps, f"{name}{unit}"))
        best, believed, worst = (speedup(found, way, processes, kind) for kind in range(len(KINDS)))
        note = f"predicted; {worst:.2f} to {best:.2f} by the costs"
        results.rows.append(Row(f"{prefix}.speedup", believed, "of 1 process", note))
    if (("shared", 16) in found) and (paper := PAPER_RATIO.get(code)) is not None:
        for way in [way for way in WAYS[code] if way != "private"]:
            ratios = [
                found[way, 16].predicted[kind] / found["private", 16].predicted[kind] for kind in range(3)
            ]
            note = f"predicted; {ratios[0]:.2f} to {ratios[2]:.2f} by the costs"
            results.rows.append(
                Row(f"{code}.private_over_{way}.p16", ratios[1], "of speed-ups", note, paper=paper)
            )


def count_table(code: str, found: Table, arguments: Sequence[str]) -> str:
    """Sums over all processes."""
    steps = 1 if code == "lu" else STEPS
    per = "the whole factorisation" if code == "lu" else f"a step ({STEPS} counted)"
    lines = [f"{code} {' '.join(arguments)}: counts of all processes, {per}"]
    lines.append(f"{'way':<13} {'P':>2}" + "".join(f" {name:>12}" for name in COUNTED))
    for (way, processes), one in found.items():
        numbers = "".join(f" {one.sums[name] / steps:>12,.10g}" for name in COUNTED)
        lines.append(f"{way:<13} {processes:>2}{numbers}")
    return "\n".join(lines)


def speedup_table(code: str, found: Table) -> str:
    """Predicted, with the range of the costs."""
    processes = sorted({each for _, each in found})
    head = "".join(f" {f'P={each}':>20}" for each in processes)
    lines = [
        f"{code}: predicted speed-ups, as believed (unfavourable to favourable costs)",
        f"{'way':<13}{head}",
    ]
    for way in dict.fromkeys(way for way, _ in found):
        cells = []
        for each in processes:
            best, believed, worst = (speedup(found, way, each, kind) for kind in range(len(KINDS)))
            cells.append(f"{believed:.2f} ({worst:.2f} to {best:.2f})")
        lines.append(f"{way:<13}" + "".join(f" {cell:>20}" for cell in cells))
    return "\n".join(lines)


def statements(code: str, found: Table) -> list[tuple[str, Callable[[str, int], bool]]]:
    """What the paper's text says of a figure, and whether a way of sharing has it by one kind of costs."""

    def of(way: str, processes: int, kind: int) -> float:
        return speedup(found, way, processes, kind)

    return {
        "jacobi": [
            (
                "4.1: shared is slower with 32 processes than with 16",
                lambda way, kind: of(way, 32, kind) < of(way, 16, kind),
            ),
            (
                "5: private is almost linear up to 16 (at least 12 of 16)",
                lambda way, kind: of("private", 16, kind) >= 12,
            ),
            (
                "5: private has less speed-up with 32 than with 16",
                lambda way, kind: of("private", 32, kind) < of("private", 16, kind),
            ),
            (
                "5: private is more than 5 times as fast with 16",
                lambda way, kind: of("private", 16, kind) > 5 * of(way, 16, kind),
            ),
        ],
        "lu": [
            (
                "5: private is always faster (2 to 32 processes)",
                lambda way, kind: all(of("private", p, kind) > of(way, p, kind) for p in (2, 4, 8, 16, 32)),
            ),
            (
                "5: private is 4 times as fast with 16 (3 to 5.5 times)",
                lambda way, kind: 3 <= of("private", 16, kind) / of(way, 16, kind) <= 5.5,
            ),
        ],
        "lbe": [
            (
                "4.3: shared gains up to 16 processes",
                lambda way, kind: of(way, 2, kind) < of(way, 4, kind) < of(way, 8, kind) < of(way, 16, kind),
            ),
            (
                "4.3: it gains nothing from 16 to 32",
                lambda way, kind: of(way, 32, kind) <= of(way, 16, kind),
            ),
            (
                "5: private gains not so much (less than 3 times as fast with 16)",
                lambda way, kind: of("private", 16, kind) < 3 * of(way, 16, kind),
            ),
        ],
    }[code]


def statement_table(code: str, found: Table) -> str:
    """The paper's statements beside the predictions."""
    ways = [way for way in WAYS[code] if way != "private"]
    head = "".join(f" {way:>30}" for way in ways)
    lines = [
        f"{code}: what the paper's text says; found by {', '.join(KINDS)} costs",
        f"{'':<76}{head}",
    ]
    for text, holds in statements(code, found):
        cells = [
            " / ".join("yes" if holds(way, kind) else "no" for kind in range(len(KINDS))) for way in ways
        ]
        lines.append(f"{text:<76}" + "".join(f" {cell:>30}" for cell in cells))
    return "\n".join(lines)


def across(found: dict[str, Table]) -> str:
    """What the text says of the three codes together."""

    def cell(lbe: str, jacobi: str) -> str:
        answers = []
        for kind in range(len(KINDS)):
            others = speedup(found["jacobi"], jacobi, 16, kind), speedup(found["lu"], "shared", 16, kind)
            answers.append("yes" if speedup(found["lbe"], lbe, 16, kind) > max(others) else "no")
        return " / ".join(answers)

    text = "4.3: shared LBE has more speed-up than shared Jacobi and LU (with 16)"
    return f"{text:<76} {cell('shared', 'shared'):>30} {cell('shared_eager', 'shared_eager'):>30}"


# --- sections -----------------------------------------------------------------------------------------------


def counts_section(
    size: str, codes: Sequence[str], parts: Parts, progress: Progress, results: Results
) -> None:
    tables: dict[str, Table] = {}
    for code in codes:
        arguments = SIZES[size][code]
        points = int(arguments[-1])
        path = translated.build(code, kept_folder() / "treadmarks-translated" / code)
        program = {way: digest(find_program(f"dsm_{code}_gcc")) for way in WAYS[code]}
        program[TRANSLATED] = digest(path)
        found: Table = {}
        for way, processes in itertools.product(program, PROCESSES[size]):
            costs = costs_text(code, pages_in_use(code, way, arguments, processes))
            key = f"{code}.{way}.p{processes} {program[way]} {costs}"
            if (kept := parts.get(key)) is None:
                progress.step(f"{code} {way}, {processes} processes")
                if way == TRANSLATED:
                    kept = count_translated(path, code, points, processes, costs)
                else:
                    kept = count(code, way, arguments, processes)
                parts.put(key, kept)
                progress.finished()
            else:
                progress.finished(skipped=True)
            found[way, processes] = Found.from_dict(kept)
            results.details[f"{code}.{way}.p{processes}"] = kept
        again = count(code, "shared", arguments, 4)
        same = again["sums"] == found["shared", 4].sums and again["largest"] == found["shared", 4].largest
        results.checks.append(
            Check(
                f"{code}: the bits of the serial run; translated: the digits of one process",
                True,
                f"compared by each of {len(found)} runs",
            )
        )
        results.checks.append(
            Check(f"{code}: a second run counts the same", same, f"{again['sums']['messages']:,} messages")
        )
        tables[code] = found
        count_rows(results, code, found)
        results.texts += [count_table(code, found, arguments), speedup_table(code, found)]
        if 32 in PROCESSES[size]:
            results.texts.append(statement_table(code, found))
    if len(tables) == len(CODES):
        results.texts.append(f"all, columns as above\n{across(tables)}")
    results.texts.append(described())


def mpi_section(size: str, codes: Sequence[str], parts: Parts, progress: Progress, results: Results) -> None:
    """Ratios of times, ranks against one rank; the ranks take turns in each round."""
    if shutil.which("mpirun") is None:
        results.notes.append("MPI was not measured: mpirun is not here (Debian: openmpi-bin).")
        return
    builder = Builder(kept_folder() / "treadmarks-mpi")
    loads: list[float] = []
    for code, language in itertools.product(codes, LANGUAGES):
        progress.step(f"mpi {code} in {language}")
        built = builder.build(code, language, "mpi")
        if built.refused:
            results.notes.append(f"mpi.{code}.{language} is missing: it was refused: {built.refused}")
            progress.finished(skipped=True)
            continue
        key = f"mpi.{code}.{language} {digest(built.path)}"
        kept = parts.get(key)
        if kept is None:
            load = os.getloadavg()[0]
            rounds = [
                [rank_seconds(built.path, MPI_SIZES[size][code], ranks) for ranks in RANKS]
                for _ in range(MPI_ROUNDS[size])
            ]
            kept = {"seconds": rounds, "load": max(load, os.getloadavg()[0])}
            parts.put(key, kept)
        progress.finished()
        results.details[f"mpi.{code}.{language}"] = kept
        rounds, loads = kept["seconds"], [*loads, kept["load"]]
        for place, ranks in enumerate(RANKS):
            seconds = [each[place] for each in rounds]
            ratio = min(each[0] for each in rounds) / min(seconds)
            note = f"{min(seconds):.3f} s; median {float(np.median(seconds)):.3f}, most {max(seconds):.3f}"
            results.rows.append(Row(f"mpi.{code}.{language}.r{ranks}.speedup", ratio, "of 1 rank", note))
    if loads:
        results.notes.append(
            f"MPI's times were taken at a load of up to {max(loads):.1f} on {os.cpu_count()} CPUs. Where it "
            "is more than the ranks, other programs took part of the machine, and the ratios are too small."
        )


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: codes (jacobi, lu, lbe) and sections (counts, mpi)."""
    check_only(only, (*CODES, *SECTIONS))
    codes = [code for code in CODES if code in only] or list(CODES)
    sections = [section for section in SECTIONS if section in only] or list(SECTIONS)
    parts = Parts(kept_folder() / f"treadmarks-{size}.json", {"size": size, "steps": STEPS})
    if redo:
        parts.drop([name for name in parts.names() if _chosen(name, codes, sections)])
    results = Results(
        "treadmarks",
        "Jacobi, LU and LBE on shared memory between processes, after TreadMarks",
        tell(["treadmarks"]),
    )
    runs = {code: (len(WAYS[code]) + 1) * len(PROCESSES[size]) for code in codes}
    weights = {
        "counts": [10.0 if code == "lu" else 1.0 for code in codes for _ in range(runs[code])],
        "mpi": [20.0] * (len(codes) * len(LANGUAGES)),
    }
    progress = Progress("treadmarks", [weight for section in sections for weight in weights[section]])
    try:
        for section in sections:
            runner = counts_section if section == "counts" else mpi_section
            runner(size, codes, parts, progress, results)
    finally:
        progress.close()
    results.notes += _notes(sections)
    results.details["costs_us"] = {
        name: dict(zip(KINDS, cost.values, strict=True))
        for name, cost in {**COSTS, **{f"work.{code}": cost for code, cost in WORK.items()}}.items()
    }
    return results


def _chosen(part: str, codes: Sequence[str], sections: Sequence[str]) -> bool:
    """Is a kept part one of these codes and sections?"""
    section, code = ("mpi", part.split(".")[1]) if part.startswith("mpi.") else ("counts", part.split(".")[0])
    return section in sections and code in codes


def _notes(sections: Sequence[str]) -> list[str]:
    notes = []
    if "counts" in sections:
        notes += [
            "Counts are exact: processes with a copy of each page each, real page faults, twins and "
            "diffs; one process runs at a time, and each message that TreadMarks would send is counted "
            "(apps/dsm/dsm.h says by which publications, apps/dsm/wire.h how large messages are). "
            "Jacobi and LBE: steps after two that are not counted. Each run's result has the bits of "
            "the serial run.",
            "shared: the OpenMP program as it is, blocks of iterations (LU dealt out anew in each step;"
            " its normalisation under a lock that all processes take, or, shared_first, process 0 "
            "alone: the paper does not print it). private: SPMD by hand after Programs 4 (buffers "
            "doubled: as printed it races) and 6, LBE after section 5. translated: what `homing "
            "translate --to mpi` makes of apps/chapman, its messages through shared buffers "
            "(apps/dsm/ranks); LU in double precision, with its begin and end. shared_eager: diffs "
            "made, pages protected and notices sent for all written pages in every interval, instead of"
            " when they are asked for; LU is not run so, because it needs more memory for diffs than "
            "there is (TreadMarks collects them).",
            "Times are predictions: a clock for each process that goes on by the costs below, of other "
            "SP2s than the paper's; barriers and locks wait. Not in them: collisions on the switch, "
            f"garbage collection of diffs, caches. {standing()}",
            "The paper's bars (Figures 3, 4b and 5b) are not beside them: the figures were not to be "
            "had, only the paper's text. What the text says about them is compared, by all three kinds "
            "of costs.",
        ]
    if "mpi" in sections:
        notes.append(
            "MPI: the codes of apps/chapman by `homing translate --to mpi`, ranks of one thread on this "
            "machine; the least times of rounds in which 1 to 4 ranks took turns. **This machine has "
            f"{os.cpu_count()} CPUs**: with 3 and 4 ranks several share one, so those ratios say what "
            "sharing costs, not how the programs scale."
        )
    return notes
