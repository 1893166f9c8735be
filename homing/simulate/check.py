"""The exam of a compiler and its flags: a program whose accesses are known must give exactly that many.

It is compiled the way the user's source is about to be, and run; what it counts is remembered in the cache
folder, until the compiler, the flags or our callbacks change.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from homing.errors import UserError
from homing.installation import find_callbacks, python_path

if TYPE_CHECKING:
    from homing.simulate.cc import Job

N = 1000
#: Loops 1 and 2 read two elements and write one of each N, loop 3 reads one and writes one of N / 2.
READS, WRITES = 4 * N + N // 2, 2 * N + N // 2

MISCOUNTED = "a loop with"

_C = """
extern void homing_check_array(void*, long);
extern void homing_check_tell(void);
enum { n = %d };
static double a[n], b[n], c[n];
__attribute__((noinline)) static void work(double* x, const double* y, const double* z) {
    for (int i = 0; i < n; ++i) x[i] = y[i] + 2 * z[i];
    for (int i = 0; i < n; ++i) x[i] += y[i];
    for (int i = 0; i < n; i += 2) x[i] = y[n - 1 - i];
}
int main(void) {
    homing_check_array(a, sizeof a);
    homing_check_array(b, sizeof b);
    homing_check_array(c, sizeof c);
    work(a, b, c);
    homing_check_tell();
    return 0;
}
"""

_FORTRAN = """
module work_on
contains
subroutine work(n, x, y, z)
  integer, value :: n
  real(8), intent(inout) :: x(n)
  real(8), intent(in) :: y(n), z(n)
  integer :: i
  do i = 1, n
    x(i) = y(i) + 2 * z(i)
  end do
  do i = 1, n
    x(i) = x(i) + y(i)
  end do
  do i = 1, n, 2
    x(i) = y(n + 1 - i)
  end do
end subroutine
end module
program exam
  use iso_c_binding
  use work_on
  implicit none
  integer, parameter :: n = %d
  real(8), target, save :: a(n), b(n), c(n)
  interface
    subroutine array(begin, bytes) bind(c, name="homing_check_array")
      import
      type(c_ptr), value :: begin
      integer(c_long), value :: bytes
    end subroutine
    subroutine tell() bind(c, name="homing_check_tell")
    end subroutine
  end interface
  call array(c_loc(a), 8_c_long * n)
  call array(c_loc(b), 8_c_long * n)
  call array(c_loc(c), 8_c_long * n)
  call work(n, a, b, c)
  call tell()
end program
"""

#: Flags that have no part in which accesses there are.
_IRRELEVANT = re.compile(
    r"-f(openmp.*|PIC|pic|PIE|pie|visibility.*|diagnostics.*|color.*|module.*|max-errors.*)$"
)


def relevant(arguments: Sequence[str]) -> list[str]:
    """The flags that may change what accesses are made and instrumented."""
    from homing.compilers import WITH_VALUE

    words: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word in ("--param", "-mllvm", "-Xclang", "-target", "--sysroot") and at + 1 < len(arguments):
            words += arguments[at : at + 2]
        elif word not in WITH_VALUE and re.match(r"-(O|f|m|std=|march=|--param=|g\d?$)", word):
            words += [] if _IRRELEVANT.match(word) else [word]
        at += 2 if word in WITH_VALUE else 1
    return words


def examine(compiler: str, kind: str, arguments: Sequence[str], job: Job) -> None:
    """UserError with the numbers where accesses are lost."""
    from homing.simulate import cc

    language = _language(compiler, job)
    # A standard of one language is an error in another one's exam.
    flags = [word for word in relevant(arguments) if not (word.startswith("-std=") and language != "c")]
    flags = [word for word in flags if language != "fortran" or word not in ("-ffree-form", "-ffixed-form")]
    library = os.path.join(find_callbacks(), "libhoming_check.a")
    identity = " ".join(
        [cc.stamp(compiler, library, os.path.join(find_callbacks(), "libtsan.a")), language, *flags]
    )
    verdict = hashlib.sha256(identity.encode()).hexdigest()[:32]
    text = (cc.cache().read(verdict) or b"").decode("utf-8", "replace")
    if not _lasting(text):
        text = _exam(compiler, language, flags, library)
        if _lasting(text):
            cc.cache().write(verdict, text.encode())
    if text != "exact":
        raise UserError(f"{os.path.basename(compiler)} {' '.join(flags)}: {text}")


def _lasting(text: str) -> bool:
    """A verdict that stays; a missing library may come by tomorrow."""
    return text == "exact" or text.startswith(MISCOUNTED)


def _language(compiler: str, job: Job) -> str:
    from homing.compilers import CXX_SOURCES, FORTRAN_SOURCES

    endings = [job.arguments[at] for at in job.sources]
    if any(one.endswith(FORTRAN_SOURCES) for one in endings) or "f95" in job.language:
        return "fortran"
    name = os.path.basename(compiler)
    if "++" in name or any(one.endswith(CXX_SOURCES) for one in endings) or "c++" in job.language:
        return "c++"
    return "fortran" if "gfortran" in name or "flang" in name else "c"


def _exam(compiler: str, language: str, flags: list[str], library: str) -> str:
    """ "exact", or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="homing-exam-") as folder:
        source = os.path.join(folder, {"c": "exam.c", "c++": "exam.cpp", "fortran": "exam.f90"}[language])
        text = (_FORTRAN if language == "fortran" else _C) % N
        if language == "c++":
            text = text.replace("extern void", 'extern "C" void')
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        program = os.path.join(folder, "exam")
        command = [
            *flags,
            source,
            "-o",
            program,
            "-rdynamic",
            f"-Wl,--whole-archive,{library},--no-whole-archive",
        ]
        if language == "fortran":
            command += ["-J" if "gfortran" in compiler else "-module-dir", folder]
        environment = {**os.environ, "HOMING_CC_EXAM": "1", "LANG": "C", "PYTHONPATH": python_path()}
        made = subprocess.run(
            [*_self(), compiler, *command], capture_output=True, text=True, check=False, env=environment
        )
        if made.returncode != 0:
            lines = (made.stderr or made.stdout).strip().splitlines() or ["no reason given"]
            telling = [line for line in lines if re.search(r"error:|undefined|cannot|homing cc:", line)]
            reason = (telling or lines)[0].strip()
            return f"a small program cannot be compiled with the instrumentation: {reason}"
        environment.pop("LD_PRELOAD", None)
        ran = subprocess.run([program], capture_output=True, text=True, check=False, env=environment)
        found = re.match(r"(\d+) (\d+)$", ran.stdout.strip())
        if ran.returncode != 0 or not found:
            return f"a small program with the instrumentation does not run (status {ran.returncode})"
        reads, writes = int(found[1]), int(found[2])
        if (reads, writes) == (READS, WRITES):
            return "exact"
        return (
            f"{MISCOUNTED} {READS} reads and {WRITES} writes was seen to make {reads} and {writes}: the "
            "instrumentation misses accesses with these flags (vector instructions, link-time optimisation?)"
        )


def _self() -> list[str]:
    import sys

    return [sys.executable, "-m", "homing.simulate.cc"]
