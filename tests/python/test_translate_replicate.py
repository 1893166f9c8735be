"""REPLICATE: one copy of an array on each node while a parallel construct reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, Result, translate
from tests.python.translate_programs import RUNTIME, run_command

#: The threads are on three nodes, as far as the runtime can see.
NODES = "-DHOMING_NODES_FOR_TESTS=3"

FORTRAN = """program gather
  implicit none
  integer, parameter :: n = 1000
  integer :: i, k, step, idx(n)
  real(8) :: table(0:n - 1), y(n), s
  do i = 0, n - 1
    table(i) = i
  end do
  do i = 1, n
    idx(i) = mod(i*37, n)
  end do
  s = 0
  do step = 1, 3
    !$homing replicate(table)
    !$omp parallel do default(none) shared(table, y, idx) private(k) reduction(+:s) schedule(static)
    do i = 1, n
      k = idx(i)
      y(i) = table(k) + sum(table(0:1))
      s = s + y(i)
    end do
    !$omp end parallel do
    table(step) = s
  end do
  do step = 1, 3
    !$homing replicate(table)
    !$omp parallel
    !$omp do
    do i = 1, n
      y(i) = y(i) + table(idx(i))
    end do
    !$omp end parallel
  end do
  print '(3f12.1)', s, y(1), y(n)
end program
"""
C = """#include <stdio.h>
#include <stdlib.h>
static double table[1000];
int main(void) {
    int n = 1000, k, last = 0;
    double *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z), s = 0;
    double local[5][4];
    for (int i = 0; i < n; i++)
        table[i] = i, y[i] = 0, z[i] = -i;
    for (int i = 0; i < 20; i++)
        local[i / 4][i % 4] = i;
    for (int step = 0; step < 3; step++) {
#pragma homing replicate(table)
#pragma omp parallel for private(k) reduction(+ : s) lastprivate(last) schedule(static)
        for (int i = 0; i < n; i++) {
            k = i * 37 % n;
            y[i] += table[k];
            s += y[i];
            last = i;
        }
        table[step] = s;
    }
    for (int step = 0; step < 3; step++)
#pragma homing replicate(local)
#pragma homing replicate(z) extent(n)
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < n; i++)
            y[i] += local[i % 5][i % 4] + z[n - 1 - i];
#pragma omp for
        for (int i = 0; i < n; i++)
            y[i] *= local[0][1];
    }
    printf("%.17g %.17g %.17g %d\\n", s, y[1], y[n - 1], last);
    free(y);
    free(z);
    return 0;
}
"""


PARAMETERS = """#include <stdio.h>
static void gather(double *restrict y, const double *table, int const *at, int n, int m)
{
    for (int step = 0; step < 2; step++)
#pragma homing replicate(table) extent(n)
#pragma homing replicate(at) extent(n)
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            y[i] += table[at[i]] * m;
}
int main(void)
{
    double y[40] = {0}, table[40], s = 0;
    int at[40];
    for (int i = 0; i < 40; i++)
        table[i] = i * i, at[i] = 7 * i % 9;
    gather(y, table, at, 40, 3);
    for (int i = 0; i < 40; i++)
        s += y[i];
    printf("%g\\n", s);
    return 0;
}
"""


def outputs(folder: Path, name: str, text: str) -> tuple[str, str, Result]:
    """What the program prints as it is, and translated, on three nodes."""
    (folder / name).write_text(text)
    result = translate([str(folder / name)], Options("pages"))
    made = folder / "made"
    made.mkdir()
    (made / name).write_text(result.outputs[0].text)
    shutil.copytree(RUNTIME, made, dirs_exist_ok=True)
    run_command(["gcc", "-O1", "-fopenmp", NODES, "-c", "homing_parts.c"], made)
    if name.endswith(".c"):
        compiler, runtime, checks = "gcc", ["homing_parts.o"], ["-Wall", "-Werror", "-fsanitize=address"]
    else:
        compiler, runtime, checks = "gfortran", ["homing_parts.f90", "homing_parts.o"], ["-fcheck=all"]
    run_command([compiler, "-fopenmp", "-w", name, "-o", "program"], folder)
    run_command([compiler, "-fopenmp", *checks, *[f for f in runtime if f.endswith("90")], name,
                 *[f for f in runtime if f.endswith(".o")], "-o", "program"], made)  # fmt: skip
    environment = {"OMP_NUM_THREADS": "4", "ASAN_OPTIONS": "detect_leaks=0"}
    plain = run_command(["./program"], folder, OMP_NUM_THREADS="4")
    return plain, run_command(["./program"], made, **environment), result


@pytest.mark.parametrize(("name", "text"), [("gather.f90", FORTRAN), ("gather.c", C), ("p.c", PARAMETERS)])
def test_copies_hold_what_the_array_holds(name: str, text: str, tmp_path: Path) -> None:
    plain, made, _ = outputs(tmp_path, name, text)
    assert made == plain


def test_fixed_form(tmp_path: Path) -> None:
    lines = [line.strip() for line in FORTRAN.splitlines()]
    lines = [line if line.startswith("!") else "      " + line for line in lines]
    text = "\n".join(lines).replace("private(k) reduction", "private(k)\n!$omp&reduction") + "\n"
    plain, made, _ = outputs(tmp_path, "gather.f", text)
    assert made == plain


def test_an_array_that_a_loop_leaves_alone_is_copied_before_it(tmp_path: Path) -> None:
    (tmp_path / "gather.f90").write_text(FORTRAN)
    lines = translate([str(tmp_path / "gather.f90")], Options("pages")).outputs[0].text.splitlines()
    lines = [line.strip() for line in lines if not line.startswith("#")]
    copied = [number for number, line in enumerate(lines) if line.startswith("call homing_replicate")]
    assert lines[copied[0] - 1] == "!$homing replicate(table)"  # the loop writes it
    assert lines[copied[1] + 1] == "do step = 1, 3"


def test_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "copies.c").write_text("""#include "homing_parts.h"
#include <omp.h>
#include <stdio.h>
static double x[100000];
int main(void) {
    for (int round = 1; round < 4; round++) {
        const int n = round < 3 ? 100000 : 1000;
        for (int i = 0; i < n; i++)
            x[i] = i * round;
        homing_replicate(x, n * sizeof *x);
        const double* seen[6];
        int wrong = 0;
#pragma omp parallel reduction(+ : wrong)
        {
            const double* copy = seen[omp_get_thread_num()] = homing_replica(x);
            for (int i = 0; i < n; i++)
                wrong += copy[i] != i * round;
        }
        int shared = 0, own = 0;
        for (int t = 0; t < 3; t++) {
            shared += seen[t] == seen[t + 3];
            own += seen[t] != x && seen[t] != seen[(t + 1) % 3];
        }
        printf("%d %d %d\\n", wrong, shared, own);
    }
    return 0;
}
""")
    command = [
        "gcc",
        "-fopenmp",
        NODES,
        f"-I{RUNTIME}",
        "copies.c",
        RUNTIME / "homing_parts.c",
        "-o",
        "copies",
    ]
    run_command([str(word) for word in command], tmp_path)
    assert run_command(["./copies"], tmp_path, OMP_NUM_THREADS="6") == "0 3 3\n" * 3


def changed(text: str, before: str, behind: str) -> str:
    assert before in text
    return text.replace(before, behind, 1)


WRITES = """module m
  real(8) :: table(0:999)
end module
subroutine change
  use m
  table(3) = 1
end subroutine
"""
IN_MODULE = FORTRAN.replace("program gather\n", WRITES + "program gather\n  use m\n").replace(
    "table(0:n - 1), y", "y"
)
WRONG = {
    "written": (
        "f90",
        changed(FORTRAN, "y(i) = table(k)", "table(k) = y(i)"),
        "18:7: 'table' is written inside",
    ),
    "passed on": (
        "f90",
        changed(FORTRAN, "k = idx(i)", "k = idx(i)\n      call change(table)"),
        "'table' is passed on, and may be written",
    ),
    "by a callee": (
        "f90",
        changed(IN_MODULE, "k = idx(i)", "k = idx(i)\n      call change"),
        "'table' is written by change, which is called here",
    ),
    "by who knows whom": (
        "f90",
        changed(IN_MODULE, "k = idx(i)", "k = idx(i)\n      call elsewhere"),
        "'table' may be written by elsewhere, whose file is not given",
    ),
    "private": ("f90", changed(FORTRAN, "private(k)", "private(k, table)"), "'table' is each thread's own"),
    "pointers": ("f90", changed(FORTRAN, "real(8) ::", "real(8), target ::"), "may be reached by pointers"),
    "a scalar": ("f90", changed(FORTRAN, "replicate(table)", "replicate(s)"), "'s' is no array"),
    "no construct": ("f90", changed(FORTRAN, "!$omp parallel\n", ""), "stands before no parallel"),
    "ON HOME": (
        "f90",
        changed(FORTRAN, "!$homing replicate(table)", "!$homing replicate(table)\n!$homing on home(y(i))"),
        "REPLICATE with ON HOME",
    ),
    "written in C": ("c", changed(C, "y[i] += table[k]", "table[k] += y[i]"), "'table' is written inside"),
    "address in C": ("c", changed(C, "k = i * 37 % n", "k = *(int*)&table[3]"), "'table' is passed on"),
    "no length": (
        "c",
        changed(C, "replicate(z) extent(n)", "replicate(z)"),
        "how long 'z' is cannot be known",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused(case: str, tmp_path: Path) -> None:
    suffix, text, reason = WRONG[case]
    if case == "no construct":
        text = text.replace("    !$omp end parallel\n", "").replace(
            "    !$omp do\n    do i = 1, n\n      y(i) = y(i)", "    do i = 1, n\n      y(i) = y(i)"
        )
    path = tmp_path / f"gather.{suffix}"
    path.write_text(text)
    with pytest.raises(TranslationError) as error:
        translate([str(path)], Options("pages"))
    assert any(reason in str(problem) for problem in error.value.problems), error.value.problems


@pytest.mark.parametrize("target", ["spmd", "mpi", "upm"])
def test_other_targets_say_that_they_do_not_use_it(target: str, tmp_path: Path) -> None:
    (tmp_path / "gather.f90").write_text(FORTRAN)
    result = translate([str(tmp_path / "gather.f90")], Options(target))
    notes = {note.reason for note in result.notes}
    assert f"not used with --to {target}: copies are made with --to pages" in notes
