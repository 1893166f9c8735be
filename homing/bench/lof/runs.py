"""The simulated runs: which there are, how one is made, and what is kept of it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from homing.bench.lof import copies, lean, paper
from homing.bench.places import kept_folder, sources_folder
from homing.bench.programs import execute, parse_output
from homing.bench.results import content_key
from homing.errors import UserError
from homing.installation import find_library, python_path
from homing.options import load_options
from homing.simulate.on_machine import find_simulator, fixed_addresses

_TIMEOUT = 6 * 3600.0  # on a busy machine, too


@dataclass(frozen=True)
class Case:
    """One run. cache, shared: "SIZE:WAYS" in place of the machine's own; page: bytes, likewise."""

    program: str
    initialise: str = "serial"
    mechanism: str = "observe"
    arm: str = "first-iteration"
    machine: str = "sf15k"
    threads: int = 4
    close: bool = False  #: all threads on one node
    page: int = paper.SMALL_PAGE
    cache: str = ""
    shared: str = ""
    order: str = "natural"  #: of I-CG's unknowns
    area_minimum: str = ""  #: smaller arrays are left alone
    iterations: int = 0  #: 0: the program's
    variant: str = ""  #: of the program, behind its file's name: copies.SUFFIX, or one of lean.VARIANTS
    daemon: float = 0.0  #: share of the arrays' pages that WildFire's daemon looks at in an iteration

    def words(self, bytes_of_run: int = 0) -> list[str]:
        """The options of `homing run`. bytes_of_run: of the arrays, where a daemon looks at them."""
        words = ["--on", self.machine, "--mechanism", self.mechanism, "--page-size", f"{self.page >> 10}KiB"]
        if self.mechanism == "next-touch":
            # As in Solaris: a page moves by itself.
            words += ["--arm", self.arm, "--granule", f"{self.page >> 10}KiB"]
        if self.daemon:
            words += ["--sampling-pages", str(max(1, round(self.daemon * bytes_of_run / self.page)))]
        if self.cache:
            words += ["--cache", self.cache]
        if self.shared:
            words += ["--shared-cache", self.shared]
        if self.area_minimum:
            words += ["--area-minimum", self.area_minimum]
        return words


@dataclass(frozen=True)
class Program:
    """A program at a size: its file in the build, its arguments, and how many iterations are simulated.

    cache: in place of the machine's own, so that data and cache have the paper's proportion; sweep: the
    caches of the sensitivity. above_v: NAS-MG: a size between that of v, which has the finest grid alone, and
    those of u and r. outside: share of the misses outside of the arrays above which a run is an accident of
    addresses, and made again: a line of a thread's stack and one that all read displace each other in a cache
    of one way, a thousand times an iteration or not at all.
    """

    file: str
    arguments: tuple[str, ...]
    iterations: int
    cache: str = ""
    sweep: tuple[str, ...] = ()
    unknowns: int = 0  #: I-CG: of the matrix that it needs
    above_v: str = ""
    outside: float = 1.0


@dataclass(frozen=True)
class Size:
    """The programs, and the pages of the SF15K and its large ones."""

    programs: Mapping[str, Program]
    page: int
    large_page: int
    threads: bool = False  #: what migration costs by threads is measured with these programs, too


#: I-MG has .7 to 2 % outside of its arrays; 10 % where such lines meet.
_ACCIDENT = 0.05
_TRIES = 4
_PAPER_SWEEP = ("8MiB:2", "1MiB:1", "32MiB:1")
_PAPER_PROGRAMS = {
    "nas_cg": Program("cg_gfortran", ("--class", "B"), 2, sweep=_PAPER_SWEEP),
    "nas_mg": Program("mg_gfortran", ("--class", "B"), 2, sweep=_PAPER_SWEEP, above_v="140MiB"),
    "i_cg": Program("i_cg_gfortran", (), 6, sweep=_PAPER_SWEEP, unknowns=1_794_058),
    "i_mg": Program("i_mg_gfortran", ("--n", "128"), 2, sweep=_PAPER_SWEEP, outside=_ACCIDENT),
    "drift": Program("drift_gcc", ("--bytes", "256M"), 24),
}
_SMALL = "256KiB:1"
_MEDIUM, _MEDIUM_SWEEP = "1MiB:1", ("1MiB:2", "256KiB:1", "4MiB:1")
SIZES = {
    "small": Size(
        {
            "nas_cg": Program("cg_gfortran", ("--class", "W"), 2, _SMALL),
            "nas_mg": Program("mg_gfortran", ("--class", "W"), 2, _SMALL),
            "i_cg": Program("i_cg_gfortran", (), 6, _SMALL, unknowns=20_000),
            "i_mg": Program("i_mg_gfortran", ("--n", "32"), 2, _SMALL),
            "drift": Program("drift_gcc", ("--bytes", "16M"), 16, _SMALL),
        },
        page=4 << 10,
        large_page=64 << 10,
    ),
    # An eighth of the paper's data, or near to it, and of its cache.
    "medium": Size(
        {
            "nas_cg": Program("cg_gfortran", ("--class", "A"), 2, _MEDIUM, _MEDIUM_SWEEP),
            "nas_mg": Program("mg_gfortran", ("--class", "W"), 2, _MEDIUM, _MEDIUM_SWEEP, above_v="18MiB"),
            "i_cg": Program("i_cg_gfortran", (), 6, _MEDIUM, _MEDIUM_SWEEP, unknowns=200_000),
            "i_mg": Program("i_mg_gfortran", ("--n", "64"), 2, _MEDIUM, _MEDIUM_SWEEP[:1], outside=_ACCIDENT),
            "drift": Program("drift_gcc", ("--bytes", "64M"), 16, _MEDIUM),
        },
        page=4 << 10,
        large_page=256 << 10,
        threads=True,
    ),
    "paper": Size(_PAPER_PROGRAMS, page=paper.SMALL_PAGE, large_page=paper.LARGE_PAGE),
}


#: Numberings of I-CG's unknowns besides its own; names of their runs end in "@" and the order.
OTHER_ORDERS = ("rcm", "random")
#: What the paper's I-CG runs: Table 1's seconds over Figure 2's an iteration.
_PAPER_I_CG_ITERATIONS = 47
#: The paper's PI of the NAS programs is that of "the standard codes", which do not initialise each thread's
#: own part; ours does in pi_own. What NAS-MG's code did is not known; this comes nearest.
_STANDARD = {"nas_cg": "published", "nas_mg": "first-use"}


def cases(program: str, size: Size) -> dict[str, Case]:
    """The runs of a program by name, the most needed first."""
    first = Case(program, page=size.page, cache=size.programs[program].cache)
    moving = {"mechanism": "next-touch"}
    found = {"si": first, "si_mig": _with(first, **moving)}
    every = _with(first, arm="every-region", **moving)
    if program not in paper.PROGRAMS:
        return found | {"every_region": every}
    found |= {
        "pi": _with(first, initialise=_STANDARD.get(program, "parallel")),
        "uma": _with(first, close=True),
        "t12": _with(first, threads=12, **moving),
        "t12_large": _with(first, threads=12, page=size.large_page, **moving),
    }
    if program in _STANDARD:
        found["pi_own"] = _with(first, initialise="parallel")
    if program in ("i_cg", "i_mg"):
        wild = _with(first, machine="wildfire", threads=8)
        found["wildfire_si"] = wild
        found["wildfire_mig"] = _with(wild, **moving)
        # What one node has fetched stays in its memory until another node writes the line: a node's replicas
        # are a shared cache that holds everything.
        # The daemon at work: it looks at so many pages in an iteration of the paper's size, in turn.
        length = 6 if size.page != paper.SMALL_PAGE and not size.programs[program].sweep else paper.SHOWN
        daemon = {
            "mechanism": "sampling",
            "daemon": paper.daemon_share(program),
            "iterations": min(length, paper.ITERATIONS[program]),
        }
        found["wildfire_daemon"] = _with(wild, **daemon)
        found["wildfire_daemon_replicated"] = _with(found["wildfire_daemon"], shared="1GiB:16")
    if program == "i_cg":
        # By first touch: each thread's own rows are at home, and what is remote is p.
        found["copies"] = _with(found["pi"], variant=copies.SUFFIX)
        found["wildfire_pi"] = _with(found["wildfire_si"], initialise="parallel")
        found["wildfire_copies"] = _with(found["wildfire_pi"], variant=copies.SUFFIX)
    found["every_region"] = every
    if above_v := size.programs[program].above_v:
        found["si_mig_without_v"] = _with(found["si_mig"], area_minimum=above_v)
    if program == "i_cg" and size.programs[program].sweep:
        found["si_whole"] = _with(first, iterations=_PAPER_I_CG_ITERATIONS)
        found["si_whole@rcm"] = _with(found["si_whole"], order="rcm")
        # The paper's numbering is not known: one of the least bandwidth, and none at all.
        for order in OTHER_ORDERS:
            for name in ("si", "pi", "si_mig"):
                found[f"{name}@{order}"] = _with(found[name], order=order)
    if program == "i_mg" and size.programs[program].sweep:
        for variant in lean.VARIANTS:
            for name in ("pi", "si_mig"):
                found[name + variant] = _with(found[name], variant=variant)
    for cache in size.programs[program].sweep:
        for name in ("si", "pi", "si_mig"):
            found[f"{name}@{cache}"] = _with(found[name], cache=cache)
    return found


def _with(case: Case, **changed: Any) -> Case:
    return Case(**{**asdict(case), **changed})


@dataclass
class Iteration:
    """misses: [node of the thread][home node]."""

    misses: list[list[int]]

    @property
    def total(self) -> int:
        """All misses."""
        return sum(map(sum, self.misses))

    @property
    def remote(self) -> int:
        """Misses to another node's memory."""
        return self.total - sum(row[i] for i, row in enumerate(self.misses))

    @property
    def fraction(self) -> float:
        """The share of remote ones; 0 where nothing missed."""
        return self.remote / self.total if self.total else 0.0


@dataclass
class Outcome:
    """What is kept of a run."""

    iterations: list[Iteration]  #: in the order of time; what came before the first one is not among them
    moved_bytes: int
    faults: int  #: pages that were touched after they had been armed
    bytes: int  #: of the large arrays
    page: int
    verification: str
    results: dict[str, str]
    accesses: int
    seconds: float  #: the simulation took
    areas: dict[str, list[int]] = field(default_factory=dict)  #: by title: all misses, remote misses
    whole: Iteration | None = None  #: the process from its start to its end

    @property
    def fraction(self) -> float:
        """Remote share of the last iteration, where nothing moves any more."""
        return self.iterations[-1].fraction if self.iterations else 0.0

    @property
    def outside(self) -> float:
        """Share of the misses that no array had."""
        inside = sum(misses for misses, _ in self.areas.values())
        return 1 - inside / self.whole.total if self.whole is not None and self.whole.total else 0.0

    def whole_run(self, iterations: int) -> float:
        """Remote share of a process that makes so many: those that were not simulated are as the last one."""
        if self.whole is None or not self.iterations:
            return self.fraction
        more, last = max(0, iterations - len(self.iterations)), self.iterations[-1]
        total = self.whole.total + more * last.total
        return (self.whole.remote + more * last.remote) / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Outcome:
        """The inverse of to_dict."""
        iterations = [Iteration(**one) for one in kept["iterations"]]
        whole = Iteration(**kept["whole"]) if kept.get("whole") else None
        return Outcome(**{**kept, "iterations": iterations, "whole": whole})


def measured_with() -> dict[str, str]:
    """What simulated runs are made with, beside their programs: kept results hold for these alone."""
    return {"library": content_key(find_library()), "simulator": content_key(find_simulator())}


def build_programs(programs: Iterable[Program]) -> Path:
    """Build programs of apps/ as `homing cc` does; their folder. UserError where that fails.

    HOMING_SIMULATED_APPS names a folder where they are already.
    """
    if stated := os.environ.get("HOMING_SIMULATED_APPS"):
        return Path(stated)
    folder = kept_folder() / "lof"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("gcc", "gfortran"):
        wrapper = folder / f"homing-{name}"
        paths = f"PYTHONPATH={shlex.quote(python_path())} exec {shlex.quote(sys.executable)}"
        # Without the modules of the command line: loading them takes longer than most of the files.
        code = f"import sys; from homing.simulate.cc import main; sys.exit(main({name!r}))"
        wrapper.write_text(f'#!/bin/sh\n{paths} -c {shlex.quote(code)} "$@"\n')
        wrapper.chmod(0o755)
    build = folder / "apps"
    programs = list(programs)
    targets = sorted({program.file for program in programs})
    cmake = shutil.which("cmake")
    if cmake is None:
        raise UserError("lof: needs cmake to build the programs")
    configure = [cmake, "-S", str(sources_folder() / "apps"), "-B", str(build), "-G", "Ninja"]
    configure += [
        f"-DCMAKE_C_COMPILER={folder}/homing-gcc",
        f"-DCMAKE_Fortran_COMPILER={folder}/homing-gfortran",
    ]
    configure += ["-DHOMING_CLANG=OFF", "-DHOMING_FLANG=OFF"]
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another benchmark builds its programs here
        for words in (configure, [cmake, "--build", str(build), "--target", *targets]):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                log = folder / "build.log"
                log.write_text(done.stdout + done.stderr)
                raise UserError(f"the programs could not be built with homing cc: see {log}", 1)
    compilers = f"{folder}/homing-gcc", f"{folder}/homing-gfortran"
    for program in programs:
        if program.file.startswith("i_cg_"):
            copies.build(build / "apps", program.file, *compilers)
        elif program.file.startswith("i_mg_") and program.sweep:
            lean.build(build / "apps", program.file, *compilers)
    return build / "apps"


def matrix_file(unknowns: int, order: str, tell: Callable[[str], None]) -> Path:
    """I-CG's matrix; made where it is not there yet."""
    from homing.bench import maxwell

    folder = kept_folder() / "lof"
    path = folder / f"maxwell_{unknowns}.mtx"
    if not path.exists():
        maxwell.write_matrix(maxwell.make_matrix(unknowns, tell), path)
    if order == "natural":
        return path
    other = folder / f"maxwell_{unknowns}_{order}.mtx"
    if not other.exists():
        maxwell.write_matrix(maxwell.reordered(maxwell.read_matrix(path), order), other)
    return other


def file_of(case: Case, program: Program) -> str:
    """The program's file in the build."""
    return program.file + case.variant


def run_case(
    case: Case, program: Program, folder: Path, tell: Callable[[str], None], bytes_of_run: int = 0
) -> Outcome:
    """Run one case, again where addresses fell unluckily. UserError where it fails."""
    for _ in range(_TRIES):
        outcome = _run_once(case, program, folder, tell, bytes_of_run)
        if outcome.outside <= program.outside:
            break
    return outcome


def _run_once(
    case: Case, program: Program, folder: Path, tell: Callable[[str], None], bytes_of_run: int
) -> Outcome:
    command = [str(folder / file_of(case, program)), *program.arguments]
    if program.unknowns:
        command += ["--matrix", str(matrix_file(program.unknowns, case.order, tell))]
    iterations = case.iterations or program.iterations
    command += ["--iterations", str(iterations), "--initialise", case.initialise]
    # The paper's directive stands in the first iteration: the program says where that is.
    command += ["--mark-iterations"]
    options = {option.env for option in load_options()}
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OMP_") and name not in options
    }
    variables |= {
        "OMP_NUM_THREADS": str(case.threads),
        "OMP_WAIT_POLICY": "passive",
        "OMP_PROC_BIND": "close" if case.close else "spread",
        "OMP_PLACES": "cores",
        "PYTHONPATH": python_path(),
    }
    with tempfile.TemporaryDirectory(prefix="homing-lof-") as temporary:
        path = Path(temporary) / "run.json"
        words = [
            sys.executable,
            "-m",
            "homing",
            "run",
            *case.words(bytes_of_run),
            "--summary",
            "none",
            "--json",
            str(path),
        ]
        begin = time.monotonic()
        # Where arrays lie decides which of their lines share a set of a cache: the same in all cases.
        with fixed_addresses():
            done = execute([*words, "--", *command], variables, _TIMEOUT, " ".join(command))
        seconds = time.monotonic() - begin
        found = json.loads(path.read_text())
        if not found["processes"] or not found["counts"]:
            raise UserError(f"{' '.join(command)}: nothing was counted: {' '.join(done.stderr.split())}", 1)
        return read_outcome(found, done.stdout, case, seconds)


def read_outcome(found: Mapping[str, Any], stdout: str, case: Case, seconds: float) -> Outcome:
    """What is kept, from the JSON of `homing run` and the program's output.

    Of the iterations those that the program marked: they end with the last but one, since the last mark
    begins one more. Before the first mark homing may have found some of its own.
    """
    counts, output = found["counts"], parse_output(stdout)
    process = found["processes"][0]
    end = int(process["iterations"]["count"])
    marked = {int(one["number"]): one["misses"] for one in counts["iterations"]}
    return Outcome(
        iterations=[Iteration(marked[at]) for at in range(end - output.count, end) if at in marked],
        moved_bytes=int(process["moved_bytes"]),
        faults=int(process["faults"]),
        bytes=output.bytes,
        page=case.page,
        verification=output.verification,
        results=output.results,
        accesses=int(counts["run"]["accesses"]),
        seconds=seconds,
        areas={
            str(area["title"] or area["name"]): [int(area["total_misses"]), int(area["remote_misses"])]
            for area in counts["areas"]
        },
        whole=Iteration(counts["run"]["misses"]),
    )
