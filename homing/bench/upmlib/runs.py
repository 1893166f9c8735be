"""The simulated runs: which there are, how one is made, and what is kept of it."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from homing.bench.programs import execute, parse_output
from homing.bench.upmlib import paper
from homing.errors import UserError
from homing.installation import python_path
from homing.options import load_options
from homing.simulate.on_machine import fixed_addresses

MACHINE, THREADS, NODES = "origin2000-16", 16, 8
_TIMEOUT = 6 * 3600.0
#: The marks of apps/common/mark.h.
_FIRST_HALF, _LAST_HALF = 2, 3
_OF_PHASES = (
    *("eligible", "planned", "replays", "moved", "undone", "calls", "references", "remote"),
    "remote_with_plan",
)
#: Placements: how the program initialises, and `--initial`.
_INITIAL = {
    "ft": ("parallel", "first-touch"),
    "rr": ("parallel", "round-robin"),
    "rand": ("parallel", "random"),
    "wc": ("serial", "first-touch"),  # the cold start in serial
}


@dataclass(frozen=True)
class Size:
    """The class, the placements and programs, iterations that are simulated, and options of the machine."""

    letter: str
    placements: tuple[str, ...]
    programs: tuple[str, ...]
    iterations: int
    options: tuple[str, ...]

    @property
    def page(self) -> int:
        """KiB."""
        return int(self.options[1].removesuffix("KiB"))


SIZES = {
    "small": Size(
        "S", ("ft", "wc"), ("bt", "cg"), 6,
        ("--page-size", "4KiB", "--cache", "32KiB:2", "--area-minimum", "12KiB"),
    ),
    "medium": Size(
        "W", ("ft", "rr", "rand", "wc"), tuple(paper.PROGRAMS), 12,
        ("--page-size", "4KiB", "--cache", "128KiB:2", "--area-minimum", "32KiB"),
    ),
    "paper": Size(
        "A", ("ft", "rr", "rand", "wc"), tuple(paper.PROGRAMS), 6, ("--page-size", "16KiB"),
    ),
}  # fmt: skip


#: The kernel scans a footprint in each iteration, in so many pieces (as in the guest).
SCAN_PIECES = 4
#: Of the experiments on critical pages.
CRITERIA, PLANS = (16.0, 1000.0), (100, 200)


@dataclass(frozen=True)
class Case:
    """One run: its program, placement, mechanism, and how often the solvers do their work."""

    program: str
    placement: str
    mechanism: str
    work: int = 1
    page: int = 0  #: KiB, in place of the size's
    plan: int = 0  #: pages of the plan, in place of the paper's 20
    threshold: float = 0.0  #: of the criterion, in place of homing's
    guard: bool = False  #: pages move where that pays, not at once as the paper's

    @property
    def name(self) -> str:
        """As rows name it."""
        program = self.program + (str(self.work) if self.work > 1 else "")
        page = f"@{self.page}KiB" if self.page else ""
        plan = f"@n{self.plan}" if self.plan else ""
        threshold = f"@thr{self.threshold:g}" if self.threshold else ""
        guard = "@guard" if self.guard else ""
        return f"{program}.{self.placement}.{self.mechanism}{page}{plan}{threshold}{guard}"

    @property
    def calls_upmlib(self) -> bool:
        """The program marks its phase by UPMlib's calls; otherwise its iterations are marked."""
        return self.program in paper.PHASED and self.mechanism in ("replay", "hybrid")

    @property
    def is_experiment(self) -> bool:
        """About critical pages, or the guard: no bar of a figure."""
        return bool(self.page or self.plan or self.threshold or self.guard)


@dataclass
class Outcome:
    """What is kept of a run: misses and remote ones of both halves of its iterations, pages and calls."""

    accesses: int  #: of all threads, in an iteration
    misses: tuple[int, int]
    remote: tuple[int, int]
    z_solve: tuple[int, int]  #: misses of the phase, remote ones
    iterations: list[float]  #: remote fraction of each that homing found
    moved: int
    calls: int
    #: Of the phase, in all: critical pages, those of the plan, replays, pages they moved and that went back,
    #: calls, and misses of the recorded iteration by the plan.
    phase: dict[str, float]
    bytes: int
    verification: str
    results: dict[str, str]
    simulated: int  #: iterations
    #: Of each phase that homing found: its region, critical pages, seconds that moving the plan there and
    #: back takes and brings in an iteration, and whether it moves.
    found: list[tuple[str, float, float, float, bool]] = field(default_factory=list)

    @property
    def fraction(self) -> float:
        """Remote misses among all of the iterations."""
        return sum(self.remote) / max(1, sum(self.misses))

    @property
    def last_half(self) -> float:
        """The same of the last half of the iterations."""
        return self.remote[1] / max(1, self.misses[1])

    def seconds(self, case: Case) -> tuple[float, float]:
        """Model time of the whole run at its published length, and what of it is moves on the critical path.

        What was not simulated goes on as the last half; with sampling each simulated iteration stands for
        several (sampled_pages). The sampling thread moves beside the program. The kernel moves in faults of
        all threads, each of which waits for its own.
        """
        program = paper.PROGRAMS[case.program]
        each = program.seconds * (self.bytes / 2**20 / program.mib) * _work_of(case)
        first = self.remote[0] / max(1, self.misses[0])
        stretch = paper.M * (paper.RATIO - 1)
        head = min(program.steps, self.simulated) / 2
        if case.mechanism == "sampling":
            head = program.steps / 2
        useful = each * (
            head * (1 + stretch * first) + (program.steps - head) * (1 + stretch * self.last_half)
        )
        replays = self.phase.get("replays", 0)
        sent = self.phase.get("moved", 0) + self.phase.get("undone", 0)
        returning = sent * paper.PAGE_SECONDS + self.phase.get("calls", 0) * paper.CALL_SECONDS
        each_replay = returning / replays if replays else 0.0
        once_pages, once_calls = self.moved - sent, self.calls - self.phase.get("calls", 0)
        once = 0.0
        if case.mechanism != "sampling":
            once = max(0.0, once_pages) * paper.PAGE_SECONDS + max(0.0, once_calls) * paper.CALL_SECONDS
        if case.mechanism == "kernel":
            once /= THREADS
        moves = once + each_replay * (program.steps - self.simulated + replays)
        return useful + moves, moves

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Outcome:
        """The inverse of to_dict."""
        pairs = {name: tuple(kept[name]) for name in ("misses", "remote", "z_solve")}
        found = [tuple(one) for one in kept.get("found", [])]
        return Outcome(**{**kept, **pairs, "found": found})


def _work_of(case: Case) -> float:
    """compute_rhs, a fifth of an iteration, is not repeated."""
    return 0.2 + 0.8 * case.work


def cases(size: Size, only: Sequence[str]) -> list[Case]:
    """The runs of the four figures, each once."""
    found = []
    for program in size.programs:
        compared = program not in ("sp",) or size.letter != "S"  # Figures 3 and 4 show BT and CG
        for placement in size.placements if compared else ("ft",):
            mechanisms = (
                ("nothing", "kernel", "iterative", "sampling") if compared else ("nothing", "iterative")
            )
            found += [Case(program, placement, mechanism) for mechanism in mechanisms]
            # Figure 5, whose placement is first touch, and shows BT and SP.
            if program in paper.PHASED or size.letter != "S":
                found += [Case(program, placement, mechanism) for mechanism in ("replay", "hybrid")]
        if program == "bt":  # Figure 6
            found += [Case(program, "ft", one, 4) for one in ("nothing", "iterative", "replay", "hybrid")]
            # How many critical pages there are, by what a page is and by the criterion; and what they gain.
            if size.letter != "S":
                found += [Case(program, "ft", "replay", page=4 * size.page)]
                found += [Case(program, "ft", "replay", threshold=one) for one in CRITERIA]
                found += [Case(program, "ft", "replay", plan=one) for one in PLANS]
                found.append(Case(program, "wc", "iterative", guard=True))
    return [case for case in found if not only or case.program in only]


def sampled_pages(case: Case, bytes_of_run: float, page: int, simulated: int) -> int:
    """Pages of a scan at the end of an iteration: as many as the paper's thread scans in all the iterations
    that a simulated one stands for, as a share of all pages (the machine's are of 16 KiB)."""
    program = paper.PROGRAMS[case.program]
    share = program.sampled * program.seconds / (program.mib * 64)
    each = max(1.0, program.steps / simulated)
    return max(1, round(each * share * bytes_of_run / page))


def words_of(case: Case, size: Size, plain: Outcome | None) -> list[str]:
    """The options of `homing run`. plain: the run placed by first touch with nothing at work."""
    bytes_of_run, accesses = (plain.bytes, plain.accesses) if plain else (0, 0)
    initial = _INITIAL[case.placement][1]
    options = list(size.options)
    if case.page:
        options[1] = f"{case.page}KiB"
    words = ["--on", MACHINE, *options, "--initial", initial]
    words += ["--guard", "on" if case.guard else "off"]
    words += ["--replay-pages", str(case.plan or paper.REPLAY_PAGES)]
    if case.threshold:
        words += ["--threshold", f"{case.threshold:g}"]
    others = {"nothing": "observe", "kernel": "observe", "sampling": "sampling"}
    if case.program not in paper.PHASED:
        others |= paper.FOUND_PHASES
    mechanism = others.get(case.mechanism, "iterative")
    words += ["--mechanism", mechanism]
    if case.mechanism == "sampling":
        page = size.page << 10
        words += ["--sampling-pages", str(sampled_pages(case, bytes_of_run, page, size.iterations))]
    if case.mechanism == "kernel":
        pages = max(1, math.ceil(bytes_of_run / (size.page << 10) / SCAN_PIECES))
        each = max(1, round(accesses / THREADS / SCAN_PIECES))
        words += ["--balancing", "1", "--balancing-scan", f"{pages * size.page}KiB:{each}"]
    return words


def run_case(case: Case, size: Size, folder: Path, plain: Outcome | None) -> Outcome:
    """Run one case. UserError where it fails."""
    program = [str(folder / f"{case.program}_gfortran"), "--class", size.letter]
    program += ["--iterations", str(size.iterations), "--initialise", _INITIAL[case.placement][0]]
    if case.work > 1:
        program += ["--work", str(case.work)]
    if case.calls_upmlib:
        program += ["--upmlib", case.mechanism]
    else:
        program += ["--mark-iterations"]
    options = {option.env for option in load_options()}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OMP_") and k not in options}
    variables = kept | {
        "OMP_NUM_THREADS": str(THREADS),
        "OMP_WAIT_POLICY": "passive",
        "OMP_PROC_BIND": "spread",
        "OMP_PLACES": "cores",
        "PYTHONPATH": python_path(),
    }
    with tempfile.TemporaryDirectory(prefix="homing-upmlib-") as temporary:
        path = Path(temporary) / "run.json"
        words = [sys.executable, "-m", "homing", "run", *words_of(case, size, plain)]
        words += ["--summary", "none", "--json", str(path), "--", *program]
        # Where arrays lie decides which of their lines share a set of a cache: the same in all cases.
        with fixed_addresses():
            done = execute(words, variables, _TIMEOUT, case.name)
        found = json.loads(path.read_text())
        if not found["processes"] or not found["counts"]:
            raise UserError(f"{case.name}: nothing was counted: {' '.join(done.stderr.split())}", 1)
        return read_outcome(found, done.stdout, size)


def read_outcome(found: Mapping[str, Any], stdout: str, size: Size) -> Outcome:
    """What is kept, from the JSON of `homing run` and the program's output."""
    counts, output, process = found["counts"], parse_output(stdout), found["processes"][0]
    halves = {one["phase"]: one for one in counts["phases"]}
    parts = [halves[_FIRST_HALF], halves[_LAST_HALF]]
    solver = [one for one in counts["regions"] if str(one["symbol"]).endswith("z_solve")]
    phases = process["phases"]
    kernel = counts["balancing"] or {"moved_pages": 0}
    return Outcome(
        accesses=round(sum(one["accesses"] for one in parts) / size.iterations),
        misses=(parts[0]["total_misses"], parts[1]["total_misses"]),
        remote=(parts[0]["remote_misses"], parts[1]["remote_misses"]),
        z_solve=(
            sum(one["total_misses"] for one in solver),
            sum(one["remote_misses"] for one in solver),
        ),
        iterations=[one["remote_fraction"] for one in counts["iterations"]],
        moved=process["moved_pages"] + kernel["moved_pages"],
        calls=sum(one["calls"] for one in process["moves"]),
        phase={name: sum(one[name] for one in phases) for name in _OF_PHASES} if phases else {},
        bytes=output.bytes,
        verification=output.verification,
        results=output.results,
        simulated=size.iterations,
        found=[
            (one["name"], one["eligible"], one["price"], one["gain"], one["moves"])
            for one in phases
            if one["region"] is not None
        ],
    )
