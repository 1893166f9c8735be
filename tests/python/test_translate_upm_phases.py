"""--to upm --phases where the phases lie in procedures that the time loop calls, as in NAS BT and FT."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from homing.translate.translation import Options, Result, translate
from tests.python.translate_programs import TREE, run_command

#: step -> advance -> sweep_z; HERE is one more statement of the main program.
FORTRAN = """program main
  use fields
  implicit none
  integer :: step
  u = 1
  rhs = 0
  call advance
  do step = 1, 4
    call advance
  end do
HERE
  print '(es24.16)', sum(u)
end program
"""
FIELDS = """module fields
  implicit none
  integer, parameter :: n = 12
  real(8) :: u(n, n, n), rhs(n, n, n)
end module
"""
ADVANCE = """subroutine advance
  implicit none
  call sweep_x
  call sweep_z
  call add
end subroutine
"""


def sweep(name: str, outer: str, inner: str, left: str, update: str = "") -> str:
    """A parallel loop over `outer`; `left` is the element before this one."""
    statement = update or f"rhs(i, j, k) = {left}*0.1d0 + u(i, j, k)"
    return f"""subroutine {name}
  use fields
  implicit none
  integer :: i, j, k
  !$omp parallel do private(i, {inner})
  do {outer} = 2, n
    do {inner} = 2, n
      do i = 2, n
        {statement}
      end do
    end do
  end do
end subroutine
"""


FILES = {
    "fields.f90": FIELDS,
    "main.f90": FORTRAN.replace("HERE\n", ""),
    "advance.f90": ADVANCE,
    "sweep_x.f90": sweep("sweep_x", "k", "j", "rhs(i - 1, j, k)"),
    "sweep_z.f90": sweep("sweep_z", "j", "k", "rhs(i, j, k - 1)"),
    "add.f90": sweep("add", "k", "j", "", "u(i, j, k) = u(i, j, k) + rhs(i, j, k)*0.01d0"),
}
#: In the place of the library: what was called, in its order.
TOLD = """#include <stddef.h>
#include <stdio.h>
void upmlib_init(void) { fputs("init ", stderr); }
void upmlib_memrefcnt(const void* start, size_t bytes) { fprintf(stderr, "hot:%zu ", start ? bytes : 0); }
void upmlib_migrate_memory(void) { fputs("migrate ", stderr); }
void upmlib_record(void) { fputs("record ", stderr); }
void upmlib_replay(void) { fputs("replay ", stderr); }
void upmlib_undo(void) { fputs("undo ", stderr); }
"""


def write(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in files]


def outputs(folder: Path, result: Result) -> tuple[str, str, str]:
    """What the program prints as it is, and translated; and the calls that were made."""
    (folder / "told.c").write_text(TOLD)
    run_command(["gcc", "-c", "told.c"], folder)
    found = []
    for made in (False, True):
        place = folder / str(made)
        place.mkdir(exist_ok=True)
        for output in result.outputs:
            (place / Path(output.path).name).write_text(
                output.text if made else Path(output.path).read_text()
            )
        names = [Path(output.path).name for output in result.outputs]
        compiler = "gcc" if names[0].endswith(".c") else "gfortran"
        flags = ["-Wall", "-Werror", f"-I{TREE / 'include'}"] if compiler == "gcc" else []
        run_command([compiler, "-fopenmp", *flags, *names, "../told.o", "-o", "program"], place)
        found.append(run_command(["sh", "-c", "./program 2>calls"], place, OMP_NUM_THREADS="2"))
    return found[0], found[1], (folder / "True" / "calls").read_text()


SIZE = 12**3 * 8
EXPECTED = f"init hot:{SIZE} hot:{SIZE} record record replay undo replay undo replay undo "


def test_a_phase_in_a_callees_callee(tmp_path: Path) -> None:
    result = translate(write(tmp_path, FILES), Options("upm", phases=True))
    changed = {Path(output.path).name for output in result.outputs if output.changed}
    assert changed == {"main.f90", "advance.f90"}
    assert f"upm: {tmp_path / 'advance.f90'}:4: a phase: recorded, replayed and undone" in result.report
    assert (
        f"upm: {tmp_path / 'sweep_z.f90'}:5 goes through rhs along dimension 2, most others along "
        "dimension 3" in result.report
    )
    plain, made, calls = outputs(tmp_path, result)
    assert made == plain
    assert calls == EXPECTED


def test_the_call_before_the_loop_and_the_one_behind_it_are_no_iterations(tmp_path: Path) -> None:
    files = FILES | {"main.f90": FORTRAN.replace("HERE", "  call advance")}
    result = translate(write(tmp_path, files), Options("upm", phases=True))
    plain, made, calls = outputs(tmp_path, result)
    assert (made, calls) == (plain, EXPECTED)


COMMON = """      integer n
      parameter (n = 12)
      real*8 u(n,n,n), rhs(n,n,n)
      common /fields/ u, rhs
"""


def test_common_blocks_and_fixed_form(tmp_path: Path) -> None:
    files = {}
    for name, text in FILES.items():
        if name != "fields.f90":
            text = text.replace("  use fields\n  implicit none\n", "  implicit none\n  include 'fields.h'\n")
            lines = [line.strip() for line in text.splitlines()]
            lines = [line if line.startswith("!$") else "      " + line for line in lines]
            files[name.replace(".f90", ".f")] = "\n".join(lines) + "\n"
    (tmp_path / "fields.h").write_text(COMMON)
    result = translate(write(tmp_path, files), Options("upm", phases=True))
    assert "upm: hot: u (/fields/)" in "\n".join(result.report)
    for place in ("True", "False"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "fields.h").write_text(COMMON)
    plain, made, calls = outputs(tmp_path, result)
    assert (made, calls) == (plain, EXPECTED)


C = {
    "main.c": """#include <stdio.h>
#include "fields.h"
double u[N][N], v[N][N];
int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = i - j;
    for (int t = 0; t < 3; t++)
        advance();
    printf("%.15g\\n", u[3][4]);
    return 0;
}
""",
    "advance.c": """#include "fields.h"
static void rows(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            v[i][j] = u[i][j] + 1;
}
static void columns(void) {
#pragma omp parallel for
    for (int j = 0; j < N; j++)
        for (int i = 1; i < N; i++)
            v[i][j] = v[i - 1][j] * 0.5 + u[i][j];
}
static void add(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            u[i][j] = u[i][j] + v[i][j];
}
void advance(void) {
    rows();
    if (N > 3)
        columns();
    add();
}
""",
}


def test_c(tmp_path: Path) -> None:
    header = "#define N 30\nextern double u[N][N], v[N][N];\nvoid advance(void);\n"
    paths = write(tmp_path, C)
    (tmp_path / "fields.h").write_text(header)
    result = translate(paths, Options("upm", phases=True))
    for output in result.outputs:  # they are compiled in other folders
        output.text = output.text.replace('#include "fields.h"', header)
        path = Path(output.path)
        path.write_text(path.read_text().replace('#include "fields.h"', header))
    plain, made, calls = outputs(tmp_path, result)
    assert made == plain
    assert calls.split()[3:] == ["record", "record", "replay", "undo", "replay", "undo"]


def test_a_procedure_that_a_region_calls_too_gets_no_calls(tmp_path: Path) -> None:
    here = "  !$omp parallel\n  !$omp single\n  call advance\n  !$omp end single\n  !$omp end parallel"
    files = FILES | {"main.f90": FORTRAN.replace("HERE", here)}
    result = translate(write(tmp_path, files), Options("upm", phases=True))
    assert any(
        "upm: advance: no calls: it is also called inside the parallel" in line for line in result.report
    )
    changed = {Path(output.path).name for output in result.outputs if output.changed}
    assert changed == {"main.f90"}
    assert "upmlib_migrate_memory" in result.outputs[1].text


@pytest.mark.parametrize(
    ("collapse", "loops"),
    [("", 1), (" collapse(2)", 1)],
)
def test_collapsed_loops_go_along_the_outer_ones_dimension(collapse: str, loops: int, tmp_path: Path) -> None:
    text = FILES["sweep_z.f90"].replace("private(i, k)", f"private(i, k){collapse}")
    result = translate(write(tmp_path, FILES | {"sweep_z.f90": text}), Options("upm", phases=True))
    found = [line for line in result.report if re.search("a phase: recorded", line)]
    assert len(found) == loops
