"""The codes of apps/chapman in all the versions that are compared, built by one set of flags."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from homing.bench.places import sources_folder
from homing.bench.programs import COMMON
from homing.errors import UserError
from homing.installation import python_path

CODES = ("jacobi", "lu", "lbe")
LANGUAGES = {"fortran": ("gfortran", "f90", "mpif90"), "c": ("gcc", "c", "mpicc")}
#: What people who count their cycles compile with, as far as callgrind knows the instructions.
FLAGS = ("-O3", "-g", "-ffp-contract=off", "-fopenmp")
ARCHITECTURE = ("-march=x86-64-v3",) if platform.machine() == "x86_64" else ()
#: shared: the program as it is. distribute: its pages placed. reshape: the same for DISTRIBUTE_RESHAPE.
#: spmd, mpi: translated. hand: SPMD by hand. no_affinity: LU's pages placed, its loops without AFFINITY, so
#: that their iterations go to the threads in blocks (section 4.2). dealt_out: LU as it is, its columns dealt
#: out by OpenMP as DISTRIBUTE(*, CYCLIC) and AFFINITY deal them out.
VERSIONS = ("shared", "distribute", "reshape", "spmd", "hand")
OF_LU = ("no_affinity", "dealt_out")
TARGETS = {
    "distribute": "pages",
    "reshape": "pages",
    "no_affinity": "pages",
    "spmd": "spmd",
    "mpi": "mpi",
}


@dataclass(frozen=True)
class Built:
    """A program, or the words of the tool that refused to make it."""

    path: str
    refused: str = ""


class Builder:
    """Builds versions into a folder, each once. wrapper: words before each compiler, which then compiles the
    translation's runtime, too."""

    def __init__(self, folder: Path, wrapper: Sequence[str] = ()) -> None:
        self._folder = folder
        self._wrapper = list(wrapper)
        self._built: dict[tuple[str, str, str], Built] = {}
        self._apps = sources_folder() / "apps"

    def build(self, code: str, language: str, version: str) -> Built:
        """One program. UserError where a compiler fails; a translation that is refused is in the result."""
        key = (code, language, version)
        if key not in self._built:
            self._built[key] = self._build(*key)
        return self._built[key]

    def _build(self, code: str, language: str, version: str) -> Built:
        own, suffix, mpi = LANGUAGES[language]
        folder = self._folder / f"{code}-{language}-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source = self._apps / "chapman" / f"{code}{'_spmd' if version == 'hand' else ''}.{suffix}"
        if version in ("reshape", *OF_LU):
            changed = folder / "changed" / source.name  # a translation of the same name lies beside
            changed.parent.mkdir()
            changed.write_text(changed_text(source.read_text(), version))
            source = changed
        common = self._apps / "common"
        for name in COMMON:
            _run(
                [*self._compiler("gcc"), "-O2", "-g", f"-I{common}", "-c", str(common / f"{name}.c")],
                folder,
            )
        compiler = self._compiler(mpi if version == "mpi" else own)
        first = [str(common / "app.f90"), f"-J{folder}"] if language == "fortran" else [f"-I{common}"]
        target = folder / code
        command = [
            *compiler,
            *FLAGS,
            *ARCHITECTURE,
            *first,
            str(source),
            *(f"{name}.o" for name in COMMON),
            "-lm",
            "-o",
            str(target),
        ]
        if version in TARGETS and self._wrapper:
            translate = [sys.executable, "-m", "homing", "translate", str(source), "--to", TARGETS[version]]
            done = _try([*translate, "-o", str(folder)], folder)
            if done.returncode != 0:
                return Built("", " ".join(done.stderr.split())[:300])
            _run([*self._compiler("gcc"), *FLAGS, "-c", "homing_parts.c"], folder)
            module = ["homing_parts.f90"] if language == "fortran" else []
            command[command.index(str(source)) : command.index("app.o")] = [
                *module,
                source.name,
                "homing_parts.o",
            ]
            _run(command, folder)
        elif version in TARGETS:
            command = [sys.executable, "-m", "homing", "translate", "--to", TARGETS[version], "--", *command]
            done = _try(command, folder)
            if done.returncode != 0:
                return Built("", " ".join(done.stderr.split())[:300])
        else:
            _run(command, folder)
        return Built(str(target))

    def _compiler(self, name: str) -> list[str]:
        if shutil.which(name) is None:
            raise UserError(f"{name}: not found; install it to measure its programs")
        return [*self._wrapper, name]


def digest(path: str) -> str:
    """Tells one program from another by its code; where it was built does not count."""
    with open(path, "rb") as file:
        section = ELFFile(file).get_section_by_name(".text")
        code = section.data() if section is not None else b""
    return hashlib.sha256(code).hexdigest()[:12]


def changed_text(text: str, version: str) -> str:
    """A source with DISTRIBUTE_RESHAPE for DISTRIBUTE, without AFFINITY, or with SCHEDULE(STATIC, 1)."""
    if version == "dealt_out":
        return re.sub(
            r"^(\s*(!\$omp do|#pragma omp for))$", r"\1 schedule(static, 1)", text, flags=re.MULTILINE
        )
    if version == "reshape":
        return text.replace("homing distribute ", "homing distribute_reshape ")
    return "".join(line for line in text.splitlines(keepends=True) if "homing affinity(" not in line)


def _try(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    chosen = {**os.environ, "PYTHONPATH": python_path()}
    return subprocess.run(command, cwd=folder, env=chosen, capture_output=True, text=True, check=False)


def _run(command: Sequence[str], folder: Path) -> None:
    done = _try(command, folder)
    if done.returncode != 0:
        raise UserError(f"{' '.join(command)} failed: {' '.join(done.stderr.split())[:600]}", 1)
