"""Builds the hostile programs of this folder with all compilers; what is up to date by contents stays.

`build()` returns the path of one program; `build_all()` builds many, two at a time. Programs lie in
build/programs/VARIANT/NAME, so that a script finds its neighbours.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.compilers import why_not, why_not_any

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
OUTPUT = Path(os.environ.get("HOMING_TEST_PROGRAMS", TREE / "build" / "programs"))

C_FLAGS = ("-std=gnu11", "-O1", "-g", "-fopenmp", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")
CXX_FLAGS = ("-std=c++17", "-O1", "-g", "-fopenmp", "-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True)
class Variant:
    """One way to build: a compiler (candidates in order) and flags."""

    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    language: str = "c"
    runtime: str = "libgomp"

    @property
    def compiler(self) -> str | None:
        """The first of the candidates that is installed; of LLVM's, that builds OpenMP programs."""
        if self.runtime == "libomp":
            return why_not_any(self.compilers)[0] or None
        return next((path for name in self.compilers if (path := shutil.which(name))), None)


_GCC, _GXX, _GFORTRAN = ("gcc",), ("g++",), ("gfortran",)
_CLANG, _CLANGXX, _FLANG = (
    ("clang-19", "clang"),
    ("clang++-19", "clang++"),
    ("flang-new-19", "flang-new", "flang"),
)

VARIANTS = {
    "gcc": Variant(_GCC, C_FLAGS),
    "clang": Variant(_CLANG, C_FLAGS, runtime="libomp"),
    "g++": Variant(_GXX, CXX_FLAGS, "c++"),
    "clang++": Variant(_CLANGXX, CXX_FLAGS, "c++", "libomp"),
    "gfortran": Variant(_GFORTRAN, ("-O1", "-g", "-fopenmp", "-Wall"), "fortran"),
    "flang": Variant(_FLANG, ("-O1", "-g", "-fopenmp"), "fortran", "libomp"),
    # the same source in other clothes
    "gcc-nopie": Variant(_GCC, (*C_FLAGS, "-no-pie", "-fno-pie")),
    "clang-nopie": Variant(_CLANG, (*C_FLAGS, "-no-pie", "-fno-pie"), runtime="libomp"),
    "gcc-stripped": Variant(_GCC, (*C_FLAGS, "-s")),
    "clang-stripped": Variant(_CLANG, (*C_FLAGS, "-s"), runtime="libomp"),
    "gcc-O0": Variant(_GCC, (*C_FLAGS, "-O0")),
    "gcc-O3-lto": Variant(_GCC, (*C_FLAGS, "-O3", "-flto")),
    "clang-O3": Variant(_CLANG, (*C_FLAGS, "-O3"), runtime="libomp"),
    "gcc-fortify": Variant(_GCC, (*C_FLAGS, "-O2", "-D_FORTIFY_SOURCE=2")),
    "gcc-now": Variant(_GCC, (*C_FLAGS, "-Wl,-z,now", "-Wl,-z,relro", "-fcf-protection=full")),
    "gcc-gprof": Variant(_GCC, (*C_FLAGS, "-pg")),
    "gcc-static": Variant(_GCC, (*C_FLAGS, "-static")),
    "gcc-static-pie": Variant(_GCC, (*C_FLAGS, "-static-pie")),
    "gcc-asan": Variant(_GCC, (*C_FLAGS, "-fsanitize=address")),
    "clang-asan": Variant(_CLANG, (*C_FLAGS, "-fsanitize=address"), runtime="libomp"),
    "gcc-tsan": Variant(_GCC, (*C_FLAGS, "-fsanitize=thread")),
    "gcc-ubsan": Variant(_GCC, (*C_FLAGS, "-fsanitize=undefined")),
    "gcc-trap": Variant(_GFORTRAN, ("-O1", "-g", "-fopenmp", "-ffpe-trap=invalid,zero,overflow"), "fortran"),
    # objects of gcc on LLVM's runtime, which has libgomp's entry points too
    "gcc-on-libomp": Variant(_CLANG, ("-fopenmp",), runtime="libomp"),
    # no OpenMP in the executable
    "plain": Variant(_GCC, ("-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")),
    "gcc-library": Variant(_GCC, (*C_FLAGS, "-shared", "-fPIC")),
    "clang-library": Variant(_CLANG, (*C_FLAGS, "-shared", "-fPIC"), runtime="libomp"),
}


@dataclass(frozen=True)
class Program:
    """What differs from NAME.c built alone."""

    source: str = ""
    flags: tuple[str, ...] = ()
    clang_flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    #: built before, and linked
    needs: tuple[tuple[str, str], ...] = field(default=())


PROGRAMS: dict[str, Program] = {
    # gcc drops the affinity clause, and with it the only use of some variables
    "affinity": Program(flags=("-Wno-unused-variable",)),
    "affinity_objects": Program(flags=("-std=c++20", "-Wno-unused-variable")),
    "constructs": Program(clang_flags=("-Wno-pass-failed",)),
    "cxx_replaced": Program(source="cxx_new.cpp", flags=("-DREPLACE",)),
    "fortran_io_trap": Program(source="fortran_io.f90"),
    "segv_throw": Program(flags=("-fnon-call-exceptions",)),
    "serial_raw": Program(source="serial.c", flags=("-DRAW",)),
    # functions that nobody should use are called, too; some were in libraries of their own before glibc 2.34
    **{
        f"calls_{group}": Program(
            flags=("-Wno-deprecated-declarations",), libraries=("-lrt", "-lutil", "-lpthread")
        )
        for group in ("data", "names", "files", "waiting", "system", "processes")
    },
    "timer": Program(libraries=("-lrt",)),
    "errno": Program(libraries=("-lm",)),
    "own_names": Program(
        flags=("-fno-builtin", "-Wno-builtin-declaration-mismatch", "-Wl,--no-as-needed", "-lm")
    ),
    "library_names": Program(flags=("-fno-builtin", "-Wno-builtin-declaration-mismatch")),
    "library_early": Program(source="library.c", flags=("-DEARLY",)),
}

_SUFFIXES = {"c": ".c", "c++": ".cpp", "fortran": ".f90"}


class CannotBuild(Exception):
    """The compiler is missing or refuses; the text says which and why."""


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


@cache
def _resources(compiler: str) -> str:
    """Where clang keeps libomp.so, to be found at run time too. Empty: the linker knows."""
    run = subprocess.run([compiler, "-print-file-name=libomp.so"], capture_output=True, text=True)
    path = Path(run.stdout.strip() if run.returncode == 0 else "")
    return str(path.resolve().parent) if path.is_absolute() and path.exists() else ""


def _command(name: str, variant_name: str, target: Path) -> tuple[list[str], Path]:
    variant = VARIANTS[variant_name]
    program = PROGRAMS.get(name, Program())
    compiler = variant.compiler
    if compiler is None:
        raise CannotBuild(why_not(variant.compilers[0]) or f"no {variant.compilers[0]} here")
    source = HERE / (program.source or name + _SUFFIXES[variant.language])
    command = [compiler, *variant.flags, *program.flags]
    if variant.language == "c++" and not source.exists():  # the same source serves both languages
        source = source.with_suffix(".c")
        command += ["-x", "c++"]
    if variant.runtime == "libomp":
        command += program.clang_flags
        if folder := _resources(compiler):
            command += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    if variant.language == "fortran":
        command += (
            ["-J" + str(target.parent)]
            if variant.runtime == "libgomp"
            else ["-module-dir", str(target.parent)]
        )
    command += [str(source), "-o", str(target), *program.libraries]
    return command, source


def build(name: str, variant_name: str = "gcc") -> Path:
    """The path of a program, built if it must be. CannotBuild: with the compiler's words."""
    target = OUTPUT / variant_name / name
    target.parent.mkdir(parents=True, exist_ok=True)
    command, source = _command(name, variant_name, target)
    key = hashlib.sha256("\0".join([*command, _version(command[0])]).encode())
    for file in (source, *sorted(HERE.glob("*.h"))):
        key.update(file.read_bytes())
    stamp = target.with_name(f".{name}.key")
    if target.exists() and stamp.exists() and stamp.read_text() == key.hexdigest():
        return target
    steps = [command]
    if variant_name == "gcc-on-libomp":
        gcc = VARIANTS["gcc"].compiler
        if gcc is None:
            raise CannotBuild("no gcc here")
        middle = target.with_suffix(".o")
        steps = [
            [gcc, *C_FLAGS, "-c", str(source), "-o", str(middle)],
            [str(middle) if a == str(source) else a for a in command],
        ]
    for step in steps:
        # One's own folder: .mod files and temporary names of parallel builds must not meet.
        run = subprocess.run(step, capture_output=True, text=True, cwd=target.parent)
        if run.returncode != 0:
            raise CannotBuild(f"{' '.join(step)}\n{run.stderr[-4000:]}")
    stamp.write_text(key.hexdigest())
    return target


def build_all(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Path | CannotBuild]:
    """Build many, two at a time; what cannot be built keeps its reason."""
    unique = sorted(set(wanted))

    def attempt(pair: tuple[str, str]) -> Path | CannotBuild:
        try:
            return build(*pair)
        except CannotBuild as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(unique, pool.map(attempt, unique), strict=True))


def second_libgomp(folder: Path) -> Path:
    """A copy of libgomp under another name inside and out, as wheels bring it: libgomq.so.1 in `folder`."""
    compiler = VARIANTS["gcc"].compiler
    if compiler is None:
        raise CannotBuild("no gcc here")
    found = subprocess.run(
        [compiler, "-print-file-name=libgomp.so.1"], capture_output=True, text=True, check=True
    )
    original = Path(found.stdout.strip())
    if not original.is_absolute():
        original = Path(
            subprocess.run(
                [compiler, "-print-file-name=libgomp.so"], capture_output=True, text=True, check=True
            ).stdout.strip()
        )
    copy = folder / "libgomq.so.1"
    copy.write_bytes(original.resolve().read_bytes().replace(b"libgomp.so.1\0", b"libgomq.so.1\0"))
    return copy
