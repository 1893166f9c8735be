"""Translated programs: translate, compile, run, compare."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from homing.bench.programs import COMMON
from homing.translate.translation import Options, Result, translate
from tests.patience import PATIENCE
from tests.rotation import EVERYTHING

TREE = Path(__file__).resolve().parents[2]
APPS = TREE / "apps"
PROGRAMS = TREE / "tests" / "translate"
RUNTIME = TREE / "homing" / "translate" / "runtime"
#: Optimised code, which compilers warn more about; Fortran's takes them three times as long as what is not
#: optimised (multigrid.f90: 0.8 and 0.3 s), so that is left to `make test-all`.
OPTIMISED = ("-O1", "-fopenmp", "-ffp-contract=off")
FLAGS = {".c": OPTIMISED, ".cpp": OPTIMISED}
FLAGS[".f90"] = FLAGS[".F90"] = FLAGS[".f"] = OPTIMISED if EVERYTHING else ("-O0", *OPTIMISED[1:])
#: Bounds of every array are checked; C's memory, too.
CHECKS = {
    ".f90": ("-fcheck=all",),
    ".f": ("-fcheck=all",),
    ".c": ("-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsanitize=address"),
    ".cpp": ("-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-fsanitize=address"),
}
#: Open MPI makes one folder for all of a user's runs: test workers that begin at once fail over it.
_SESSIONS = tempfile.TemporaryDirectory(prefix="ompi-")
_BUILT = tempfile.TemporaryDirectory(prefix="homing-runtime-")
#: What commands compiled of the runtime, by the name that it has in homing's cache.
_KEPT = tempfile.TemporaryDirectory(prefix="homing-kept-")
MPIRUN = [
    "mpirun",
    "--mca",
    "orte_tmpdir_base",
    _SESSIONS.name,
    "--allow-run-as-root",
    "--oversubscribe",
    "--bind-to",
    "none",
    "--mca",
    "btl",
    "self,vader,tcp",
    "--mca",
    "btl_tcp_if_include",
    "lo",
    "--mca",
    "btl_vader_single_copy_mechanism",
    "none",
]


def run_command(command: Sequence[str], folder: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


@contextmanager
def kept_runtimes(cache: Path) -> Iterator[None]:
    """Around commands with a cache of their own: it begins with the runtimes that commands before them
    compiled (a second each), and with nothing else."""
    kept, own = Path(_KEPT.name), cache / "translate"
    own.mkdir(parents=True, exist_ok=True)
    _copy_runtimes(kept, own)
    yield
    _copy_runtimes(own, kept)


def _copy_runtimes(source: Path, target: Path) -> None:
    for one in source.glob("?" * 24):
        if not (target / one.name).exists():
            shutil.copytree(one, target / one.name)


def homing(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`homing translate` with these words, in a folder and with a cache of its own there."""
    environment = {**os.environ, "PYTHONPATH": str(TREE), "HOMING_CACHE": str(folder / "cache")}
    with kept_runtimes(folder / "cache"):
        return subprocess.run(
            [sys.executable, "-m", "homing", "translate", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


@cache
def _runtime() -> Path:
    """The runtime and what the apps have in common, compiled; once for all workshops of a process."""
    folder = Path(_BUILT.name)
    shutil.copytree(RUNTIME, folder, dirs_exist_ok=True)
    shutil.copy(APPS / "common" / "app.f90", folder)
    strict = ("-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fopenmp")
    run_command(["gcc", *strict, "-std=c11", "-c", "homing_parts.c"], folder)
    run_command(["gfortran", *strict, "-std=f2018", "-c", "homing_parts.f90", "-o", "module.o"], folder)
    run_command(["gfortran", "-O1", "-c", "app.f90", "-o", "app_module.o"], folder)
    for name in COMMON:
        run_command(["gcc", "-O1", "-c", str(APPS / "common" / f"{name}.c")], folder)
    return folder


@cache
def _mpi_runtime() -> Path:
    flags = ("-DHOMING_MPI", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fopenmp")
    made = _runtime() / "parts_mpi.o"
    run_command(["mpicc", *flags, "-c", "homing_parts.c", "-o", made.name], made.parent)
    return made


class Workshop:
    """A folder with the runtime compiled once, in which programs are translated and compiled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._printed: dict[Path, str] = {}
        shutil.copytree(_runtime(), folder, dirs_exist_ok=True)

    def mpi_object(self) -> str:
        """The runtime for ranks."""
        if not (self.folder / "parts_mpi.o").exists():
            shutil.copy(_mpi_runtime(), self.folder)
        return "parts_mpi.o"

    def place(self) -> Path:
        self.count += 1
        made = self.folder / str(self.count)
        made.mkdir()
        return made

    def plain(self, source: Path) -> Path:
        """The program as it is."""
        return self.compile(source, self.place(), ())

    def printed(self, source: Path) -> str:
        """What the program prints as it is, with one thread; found out once."""
        if source not in self._printed:
            self._printed[source] = run_command([self.plain(source)], self.folder, OMP_NUM_THREADS="1")
        return self._printed[source]

    def compile(self, source: Path, folder: Path, more: Sequence[str | Path], mpi: bool = False) -> Path:
        target = folder / "program"
        common = [f"../{name}.o" for name in COMMON]
        if source.suffix == ".c":
            compiler = "mpicc" if mpi else "gcc"
            objects = common
        else:
            compiler = "mpifort" if mpi else "gfortran"
            objects = ["../app_module.o", *common]
        includes = ["-I..", f"-I{APPS / 'common'}", f"-I{TREE / 'include'}"]
        command = [compiler, *FLAGS[source.suffix], *includes, source, *more, *objects, "-o", target, "-lm"]
        run_command([str(word) for word in command], folder)
        return target

    def translated(self, source: Path, target: str, checked: bool = True) -> tuple[Path, Result]:
        """Translate and compile; the program, and what the translation said."""
        folder = self.place()
        result = translate([str(source)], Options(target, flags=(f"-I{APPS / 'common'}",)))
        output = folder / source.name
        output.write_text(result.outputs[0].text)
        more: list[str | Path] = list(CHECKS[source.suffix]) if checked else []
        if target == "upm":
            library = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")
            more += [library, f"-Wl,-rpath,{os.path.dirname(library)}"]
        elif result.runtime:
            more += ["../" + (self.mpi_object() if target == "mpi" else "homing_parts.o"), "../module.o"]
        if source.suffix == ".c" and "../module.o" in more:
            more.remove("../module.o")
        if target == "mpi" and "-fsanitize=address" in more:
            more.remove("-fsanitize=address")  # Open MPI itself leaks
        return self.compile(output, folder, more, target == "mpi"), result

    def expect_the_same(self, source: Path, targets: Sequence[str]) -> None:
        """The program prints what it prints as it is, with three threads or on two ranks."""
        expected = self.printed(source)
        for target in targets:
            ranks = target == "mpi"
            made, _ = self.translated(source, target, checked=not ranks)
            start = [*MPIRUN, "-n", "2"] if ranks else []
            assert run_command([*start, str(made)], self.folder, OMP_NUM_THREADS="3") == expected, target


def without_times(text: str) -> list[str]:
    """An app's output without what differs from run to run."""
    return [line for line in text.splitlines() if not re.match(r"time|threads", line)]


def with_distribution(source: Path, distribution: str, folder: Path) -> Path:
    """A copy of a program with DIST replaced."""
    made = folder / source.name
    made.write_text(source.read_text().replace("DIST", distribution))
    return made
