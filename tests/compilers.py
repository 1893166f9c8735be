"""Which of LLVM's compilers build OpenMP programs here: one may be there without its
runtime (on Debian the packages of two versions exclude one another), or not at all. What needs it is skipped,
with the reason."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache

from tests.patience import PATIENCE

_C = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
_FORTRAN = "use omp_lib\nif (omp_get_max_threads() < 1) stop 1\nend\n"


@cache
def why_not(compiler: str, *flags: str) -> str:
    """Why this compiler builds no OpenMP program here (with these flags); empty: it does."""
    path = shutil.which(compiler)
    if path is None:
        return f"no {compiler} here"
    fortran = "flang" in os.path.basename(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "try.f90" if fortran else "try.cpp" if "++" in compiler else "try.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(_FORTRAN if fortran else _C)
        command = [path, "-fopenmp", *flags, source, "-o", os.path.join(folder, "try")]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    if done.returncode == 0:
        return ""
    reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-200:])
    return f"no OpenMP programs by {' '.join([compiler, *flags])}: {reason.strip()}"


@cache
def why_not_any(compilers: tuple[str, ...]) -> tuple[str, str]:
    """The path of the first that builds OpenMP programs; or no path, and the first's reason."""
    for name in compilers:
        if not why_not(name):
            return shutil.which(name) or "", ""
    return "", why_not(compilers[0])


def missing_for(values: Iterable[object]) -> str:
    """Why a test with these parameters cannot run: they name clang or flang, which does not work here."""
    words = " ".join(value for value in values if isinstance(value, str))
    if re.search(r"\bflang|_flang|\bllvm", words) and (reason := why_not("flang-new-19")):
        return reason
    if re.search(r"\bclang\+\+|\bllvm", words) and (reason := why_not("clang++-19")):
        return reason
    if re.search(r"\bclang|_clang|\bllvm|on-libomp", words) and (reason := why_not("clang-19")):
        return reason
    return why_not("clang-19", "-fsanitize=address") if "clang-asan" in words else ""
