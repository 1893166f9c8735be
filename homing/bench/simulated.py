"""The programs of the benches simulator_speed and agreement: each built plainly and by `homing cc`."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.bench.places import kept_folder, sources_folder
from homing.bench.programs import COMMON
from homing.errors import UserError
from homing.installation import find_callbacks, python_path
from homing.run_end import Request
from homing.simulate import machines, places
from homing.simulate.description import Wishes
from homing.simulate.on_machine import find_simulator, simulate

_COMMON = tuple(f"apps/common/{name}.c" for name in (*COMMON, "upmlib"))
SOURCES = {
    "jacobi": (*_COMMON, "apps/jacobi/jacobi.c"),
    "cg": (
        *_COMMON,
        "apps/common/matrix_market.c",
        "apps/common/app.f90",
        "apps/common/sparse_rows.f90",
        "apps/common/conjugate_gradients.f90",
        "apps/nas/common.f90",
        "apps/nas/cg_matrix.f90",
        "apps/nas/cg.f90",
    ),
    "mg": (
        *_COMMON,
        "apps/common/matrix_market.c",
        "apps/common/app.f90",
        "apps/nas/common.f90",
        "apps/nas/mg_grids.f90",
        "apps/nas/mg_charges.f90",
        "apps/nas/mg.f90",
    ),
    "lu": ("benchmarks/lu.c",),
}
COMPILERS = {"gcc": ("gcc", "gfortran"), "clang": ("clang-19", "flang-new-19")}


def build(program: str, compiler: str, instrumented: bool) -> str:
    """Compile a program; its path. Built anew where a source is newer."""
    folder = kept_folder() / "simulated"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [str(sources_folder() / source) for source in SOURCES[program]]
    path = folder / f"{program}_{compiler}{'' if instrumented else '_plain'}"
    library = [find_simulator(), os.path.join(find_callbacks(), "libtsan.a")]
    newest = max(os.stat(one).st_mtime for one in (*sources, *(library if instrumented else [])))
    if path.exists() and path.stat().st_mtime > newest:
        return str(path)
    fortran = any(source.endswith(".f90") for source in sources)
    name = COMPILERS[compiler][1 if fortran else 0]
    if shutil.which(name) is None:
        raise UserError(f"{name} is not installed")
    cc = [sys.executable, "-m", "homing.simulate.cc"] if instrumented else []
    flags = ["-O2", "-g", "-fopenmp", "-I", str(sources_folder() / "apps" / "common")]
    with tempfile.TemporaryDirectory() as modules:
        done = subprocess.run(
            [*cc, name, *flags, *sources, "-lm", "-o", str(path)],
            cwd=modules,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
    if done.returncode != 0:
        raise UserError(f"{program} by {name}: {done.stderr.strip().splitlines()[-1:]}", 1)
    return str(path)


@dataclass(frozen=True)
class Measured:
    """A simulated run: its counts, and the processor time of the program alone."""

    counts: dict[str, Any]
    seconds: float


def run(
    path: str,
    arguments: list[str],
    threads: int,
    machine: str = "sf15k",
    cache: str | None = None,
    page: str | None = None,
    initial: str = "first-touch",
    turn: int = 0,
    seed: int = 1,
) -> Measured:
    """Simulate a program that was built by `homing cc`; nothing moves."""
    described = machines.changed(machines.find(machine), page, cache, None)
    wishes = Wishes(
        initial=initial,
        seed=seed,
        placements={one: places.placement({}, described, one) for one in places.RUNTIMES},
        turn=turn,
    )
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    folder = tempfile.mkdtemp(prefix="homing-bench-")
    try:
        request = Request([path, *arguments], {"HOMING_MECHANISM": "observe"})
        begin = _child_seconds()
        done = simulate(request, path, find_simulator(), described, wishes, folder, quiet=True)
        seconds = _child_seconds() - begin
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    if done.status != 0 or done.results.counts is None:
        raise UserError(f"{Path(path).name} ended with wait status {done.status} on {machine}", 1)
    return Measured(done.results.counts, seconds)


def _child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Grind:
    """A run under cachegrind: data references, last-level misses of data, processor seconds."""

    references: int
    misses: int
    seconds: float


def cachegrind(path: str, arguments: list[str], cache_bytes: int, ways: int) -> Grind:
    """The program as it is under `valgrind --tool=cachegrind`, with this last level."""
    begin = _child_seconds()
    done = subprocess.run(
        [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            "--cachegrind-out-file=/dev/null",
            "--D1=32768,8,64",
            f"--LL={cache_bytes},{ways},64",
            path,
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    seconds = _child_seconds() - begin
    numbers = {}
    for line in done.stderr.splitlines():
        text = line.split("==")[-1].strip()
        for label in ("D   refs", "D refs", "LLd misses"):
            if text.startswith(label):
                numbers[label[:1]] = int(text.split(":")[1].split("(")[0].replace(",", ""))
    if done.returncode != 0 or set(numbers) != {"D", "L"}:
        raise UserError(f"cachegrind of {Path(path).name}: {done.stderr.strip().splitlines()[-1:]}", 1)
    return Grind(numbers["D"], numbers["L"], seconds)


def lackey(path: str, arguments: list[str]) -> float:
    """Processor seconds of the program under lackey's trace, which goes nowhere."""
    begin = _child_seconds()
    done = subprocess.run(
        ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null", path, *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode != 0:
        raise UserError(f"lackey of {Path(path).name} ended with {done.returncode}", 1)
    return _child_seconds() - begin
