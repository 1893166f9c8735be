"""What translated sources are compiled and linked with: the runtime, made once for each compiler, or homing's
library."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from homing.compilers import NOT_LINKING
from homing.errors import UserError
from homing.installation import find_headers
from homing.paths import Cache
from homing.translate.directives import scanner
from homing.translate.directives.model import Form

RUNTIME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime")
#: Fortran that has no arrays of any type.
_OLD_FORTRAN = frozenset({"-std=f95", "-std=f2003", "-std=f2008"})


def runtime_files(fortran: bool) -> list[str]:
    """The runtime's sources that a translated program needs, in the order of their compilation."""
    pieces = sorted(os.listdir(os.path.join(RUNTIME, "homing_parts")))
    inner = [f"homing_parts/{name}" for name in pieces if name.endswith(".h")]
    return ["homing_parts.h", *inner, "homing_parts.c", *(["homing_parts.f90"] if fortran else [])]


def more_arguments(
    compiler: str, arguments: Sequence[str], sources: Sequence[int], target: str, changed: bool
) -> list[str]:
    """The compiler's arguments for the runtime, or for homing's library. changed: some source was
    translated."""
    more: list[str] = []
    links = NOT_LINKING.isdisjoint(arguments)
    objects = any(word.endswith((".o", ".a")) for word in arguments)
    if target == "upm":
        if changed and (headers := find_headers()):
            more.append(f"-I{headers}")
        if changed and not _OLD_FORTRAN.isdisjoint(arguments):
            more.append("-std=gnu")  # the calls' interfaces are of a later Fortran
        if links and changed:
            more += _homing_library()
        elif links and objects:
            # Objects of an earlier command may have calls; without any, the program does without homing.
            more += ["-Wl,--push-state,--as-needed", *_homing_library(), "-Wl,--pop-state"]
    elif changed or links:
        c_only = all(scanner.form_of(arguments[i]) is Form.C for i in sources) if sources else False
        where = runtime(compiler, target, fortran=not c_only)
        more.append(f"-I{where}")
        if links and (sources or objects):
            more += [os.path.join(where, "libhoming_parts.a"), *_link_flags(target)]
    return more


def is_fortran(compiler: str) -> bool:
    name = os.path.basename(compiler)
    return any(word in name for word in ("gfortran", "flang", "mpif", "fort"))


def _companion(compiler: str) -> str:
    """The C compiler that shares an OpenMP runtime with this compiler."""
    name = os.path.basename(compiler)
    if "flang" in name or "clang" in name:
        if "clang" in name:
            return os.path.join(os.path.dirname(compiler), name.replace("clang++", "clang"))
        version = name.rpartition("-")[2]
        for candidate in (f"clang-{version}" if version.isdigit() else "clang", "clang"):
            if shutil.which(candidate):
                return candidate
        raise UserError(f"{compiler}: no clang beside it, which its OpenMP needs")
    return "gcc"


def _mpi_flags(what: str) -> list[str]:
    """--showme:compile or --showme:link of Open MPI."""
    wrapper = shutil.which("mpicc")
    if wrapper is None:
        raise UserError("--to mpi: mpicc is not here (Debian: openmpi-bin, libopenmpi-dev)")
    done = subprocess.run([wrapper, f"--showme:{what}"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError("--to mpi: 'mpicc --showme' fails; only Open MPI is supported")
    return shlex.split(done.stdout)


def _link_flags(target: str) -> list[str]:
    if target == "mpi":
        return _mpi_flags("link")
    if target == "pages":
        return _homing_library()
    return []


def _homing_library() -> list[str]:
    from homing.installation import find_library

    library = find_library()
    return [library, f"-Wl,-rpath,{os.path.dirname(library)}"]


def _run(command: Sequence[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr, end="")
        raise UserError(f"the runtime cannot be compiled: {' '.join(command)}")


def runtime(compiler: str, target: str, fortran: bool) -> str:
    """A folder with libhoming_parts.a, and with its Fortran module where that is wanted: made once for each
    compiler and kept in homing's cache."""
    base = "homing_parts"
    with_fortran = fortran and is_fortran(compiler)
    digest = hashlib.sha256()
    sources = runtime_files(fortran=True)
    for name in sources:
        with open(os.path.join(RUNTIME, name), "rb") as file:
            digest.update(file.read())
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    digest.update(f"{shutil.which(compiler)}\n{version}\n{target}\n{with_fortran}".encode())
    cache = Cache("translate")
    name = digest.hexdigest()[:24]
    place = cache.find(name)
    if place and os.path.exists(os.path.join(place, "libhoming_parts.a")):
        return place

    def build(building: str) -> None:
        os.makedirs(os.path.join(building, base), exist_ok=True)
        for source in sources:
            shutil.copy(os.path.join(RUNTIME, source), os.path.join(building, source))
        c_compiler = _companion(compiler)
        c_flags = ["-DHOMING_MPI", *_mpi_flags("compile")] if target == "mpi" else []
        objects = [f"{base}.o"]
        _run([c_compiler, "-O2", "-g", "-fPIC", "-fopenmp", *c_flags, "-c", f"{base}.c"], building)
        if with_fortran:
            _run(
                [compiler, "-O2", "-g", "-fPIC", "-fopenmp", "-c", f"{base}.f90", "-o", "module.o"], building
            )
            objects.append("module.o")
        _run(["ar", "crs", "libhoming_parts.a", *objects], building)

    return cache.make(f"{name}/", build)
