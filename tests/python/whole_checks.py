"""A random whole program, translated: it prints what it printed before, or is refused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from homing.errors import UserError
from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.random_whole import WholeProgram
from tests.python.random_wider import WiderProgram
from tests.python.translate_programs import CHECKS, MPIRUN, TREE, Workshop, run_command

TARGETS = ("spmd", "pages", "mpi", "upm")
FLAGS = ("-O0", "-fopenmp", "-ffp-contract=off")
#: gfortran's warnings about what random programs are like are not wanted.
FREE = ("-ffree-line-length-none",)
MORE = {".f90": FREE, ".F90": FREE, ".f": ("-std=legacy",), ".c": ("-w",), ".cpp": ("-w",)}
#: Each language's compiler, as it is and for ranks.
COMPILERS = {"f": ("gfortran", "mpifort"), "c": ("gcc", "mpicc"), "cpp": ("g++", "mpicxx")}
#: From this seed on programs have the rest of the language, too.
WIDER = 30000


SAME, REFUSED = "same", "refused"


def sources(folder: Path, seed: int, suffix: str) -> list[Path]:
    """The program's files, in a folder of its own, in the order of their compilation."""
    program = (WiderProgram if seed >= WIDER else WholeProgram)(seed, suffix)
    for name, text in {**program.files, **program.included}.items():
        (folder / name).write_text(text)
    return [folder / name for name in program.files]


def compiled(workshop: Workshop, files: Sequence[Path], target: str = "", runtime: bool = False) -> Path:
    """The program of these files in their folder."""
    folder, suffix = files[0].parent, files[0].suffix
    fortran = suffix.lower().startswith(".f")
    mpi = target == "mpi"
    language = "f" if fortran else suffix[1:]
    compiler = COMPILERS[language][mpi]
    known = CHECKS[".f90" if fortran else suffix] if target else ()
    checks = [flag for flag in known if flag not in ("-Wall", "-Wextra", "-Werror")]
    if mpi and "-fsanitize=address" in checks:
        checks.remove("-fsanitize=address")  # Open MPI itself leaks
    more: list[str] = []
    if target == "upm":
        library = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")
        more += [library, f"-Wl,-rpath,{os.path.dirname(library)}"]
    elif runtime:
        more.append(str(workshop.folder / (workshop.mpi_object() if mpi else "homing_parts.o")))
        more += [str(workshop.folder / "module.o")] if fortran else []
    words = [compiler, *FLAGS, *MORE[suffix], *checks, f"-I{workshop.folder}", f"-I{TREE / 'include'}"]
    run_command([*words, *(one.name for one in files), *more, "-o", "program", "-lm"], folder)
    return folder / "program"


def check(
    workshop: Workshop, suffix: str, seed: int, targets: Sequence[str], sizes: Sequence[str]
) -> dict[str, str]:
    """What became of the program, by target: SAME, REFUSED, or what is wrong: it prints something else, does
    not compile, or fails."""
    place = workshop.place()
    files = sources(place, seed, suffix)
    plain = compiled(workshop, files)
    expected = {size: run_command([plain, size], place, OMP_NUM_THREADS="1") for size in sizes}
    found = {}
    for target in targets:
        try:
            found[target] = _checked(workshop, files, target, expected)
        except (AssertionError, UserError, subprocess.TimeoutExpired) as error:
            found[target] = f"seed {seed}, {suffix}, {target}: {error}"
    return found


def _checked(workshop: Workshop, files: Sequence[Path], target: str, expected: Mapping[str, str]) -> str:
    try:
        result = translate([str(one) for one in files], Options(target, processes=1))
    except TranslationError:
        return REFUSED
    folder = files[0].parent / target
    folder.mkdir()
    for one in files[0].parent.iterdir():
        if one.suffix in (".inc", ".h"):
            (folder / one.name).write_text(one.read_text())
    for one, output in zip(files, result.outputs, strict=True):
        (folder / one.name).write_text(output.text)
    program = compiled(workshop, [folder / one.name for one in files], target, result.runtime)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for size, text in expected.items():
        for threads in ("2",) if target == "mpi" else ("1", "3"):
            printed = run_command([*start, program, size], folder, OMP_NUM_THREADS=threads)
            assert printed == text, f"other digits: size {size}, {threads} threads: {folder}"
    return SAME
