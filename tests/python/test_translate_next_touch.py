"""NEXT_TOUCH and Compaq's MIGRATE_NEXT_TOUCH: calls of homing_next_touch, or an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import TREE, run_command

FORTRAN = """program touch
  implicit none
  integer, parameter :: n = 1000
  integer :: i, k, scalar
  real(8) :: a(n)
  integer, allocatable :: b(:, :)
  allocate (b(n, 3))
  a = 1
  b = 2
BEFORE
  do k = 1, 3
    !$omp parallel do
    do i = 1, n
INSIDE
      a(i) = a(i) + b(i, 2)
    end do
  end do
  print '(f0.1)', sum(a)
end program
"""
C = """#include <stdio.h>
#include <stdlib.h>
static double a[4000];
int main(int argc, char** argv) {
    int n = 1000;
    double (*b)[5] = malloc(sizeof(double[n][5]));
    double *c = malloc(n * sizeof *c);
    (void)argv;
BEFORE
    for (int k = 0; k < 3; k++) {
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            a[i] = b[i][2] = c[i] = i;
    }
    printf("%g %d\\n", a[5], argc);
    free(b);
    free(c);
    return 0;
}
"""
#: In the place of the library.
TOLD = """#include <stddef.h>
#include <stdio.h>
int homing_next_touch(const void* start, size_t bytes) { return fprintf(stderr, "%zu ", bytes), !start; }
int homing_place_on_node(const void* start, size_t bytes, int node) { return !start || !bytes || node < 0; }
void upmlib_init(void) {}
void upmlib_memrefcnt(const void* start, size_t bytes) { (void)start; (void)bytes; }
void upmlib_migrate_memory(void) {}
"""


def calls(folder: Path, name: str, text: str, target: str) -> tuple[str, str]:
    """What the translated program prints, and the sizes that were sent."""
    (folder / name).write_text(text)
    (folder / "told.c").write_text(TOLD)
    result = translate([str(folder / name)], Options(target))
    made = folder / "made"
    made.mkdir()
    (made / name).write_text(result.outputs[0].text)
    compiler = ["gcc", "-Wall", "-Werror"] if name.endswith(".c") else ["gfortran"]
    include = f"-I{Path(__file__).parents[2] / 'include'}"
    run_command([*compiler, "-fopenmp", include, name, "../told.c", "-o", "program"], made)
    done = subprocess.run([made / "program"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return done.stdout, done.stderr


@pytest.mark.parametrize("directive", ["!$homing next_touch(b, a)", "!DEC$ MIGRATE_NEXT_TOUCH (b, a)",
                                       "!dec$ migrate_next_touch_nopreserve(B, A)"])  # fmt: skip
def test_fortran(directive: str, tmp_path: Path) -> None:
    text = FORTRAN.replace("BEFORE", directive).replace("INSIDE\n", "")
    assert calls(tmp_path, "touch.f90", text, "upm") == ("7000.0\n", "12000 8000 ")


def test_fortran_in_fixed_form_and_in_every_iteration(tmp_path: Path) -> None:
    text = FORTRAN.replace("INSIDE\n", "").replace("BEFORE\n", "")
    text = text.replace("  do k = 1, 3\n", "  do k = 1, 3\n!$homing next_touch(a)\n").replace("(es", "(1pe")
    lines = [
        line.strip() if line.strip().startswith("!") else "      " + line.strip()
        for line in text.splitlines()
    ]
    assert calls(tmp_path, "touch.f", "\n".join(lines) + "\n", "upm") == ("7000.0\n", "8000 8000 8000 ")


def test_beside_the_module_homing(tmp_path: Path) -> None:
    text = FORTRAN.replace("INSIDE\n", "").replace("BEFORE", "!$homing next_touch(a)")
    path = tmp_path / "touch.f90"
    path.write_text(text.replace("  implicit none\n", "  use homing\n  implicit none\n", 1))
    made = translate([str(path)], Options("upm")).outputs[0].text
    assert "if (homing_next_touch(a, storage_size(a, 8)/8*size(a, kind=8)) /= 0) continue" in made
    assert "interface" not in made


def test_c(tmp_path: Path) -> None:
    lines = "#pragma homing next_touch(a, a)\n#pragma homing next_touch(b) extent(n, 5)\n"
    lines += "#pragma homing next_touch(c) extent(n)"
    assert calls(tmp_path, "touch.c", C.replace("BEFORE", lines), "upm") == (
        "5 1\n",
        "32000 32000 40000 8000 ",
    )


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_beside_the_calls_of_upmlib(tmp_path: Path, suffix: str) -> None:
    """Its header is there, too."""
    path = tmp_path / f"p{suffix}"
    path.write_text(
        "static int y[300], x[300];\nint main(void) {\n#pragma homing next_touch(y)\n"
        "    for (int t = 0; t < 3; t++) {\n#pragma omp parallel for\n"
        "        for (int i = 0; i < 300; i++) y[i] = x[i] + 1;\n#pragma omp parallel for\n"
        "        for (int i = 0; i < 300; i++) x[i] = y[i] ^ t;\n    }\n    return y[5];\n}\n"
    )
    made = translate([str(path)], Options("upm")).outputs[0].text
    assert "upmlib_init();" in made and "homing_next_touch(y" in made
    path.write_text(made)
    compiler = "gcc" if suffix == ".c" else "g++"
    run_command([compiler, "-fsyntax-only", "-Wall", "-Werror", "-pedantic-errors", "-fopenmp",
                 f"-I{TREE / 'include'}", path], tmp_path)  # fmt: skip


def test_pages(tmp_path: Path) -> None:
    text = C.replace("BEFORE", "#pragma homing next_touch(a)")
    (tmp_path / "touch.c").write_text(text)
    made = translate([str(tmp_path / "touch.c")], Options("pages")).outputs[0].text
    assert "homing_next_touch(a, sizeof a);" in made and "#pragma homing" not in made


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_targets_in_parts_say_that_it_does_nothing(target: str, tmp_path: Path) -> None:
    (tmp_path / "touch.c").write_text(C.replace("BEFORE", "#pragma homing next_touch(a)"))
    result = translate([str(tmp_path / "touch.c")], Options(target))
    assert [note.reason for note in result.notes] == [
        f"not used with --to {target}: parts lie at their owners"
    ]


WRONG = [
    ("touch.f90", "!$homing next_touch(other)", "BEFORE", "'other' is not declared here"),
    ("touch.f90", "!$homing next_touch(scalar)", "BEFORE", "'scalar' is no array"),
    ("touch.f90", "!$homing next_touch(a%x)", "BEFORE", "a component of a structure cannot be named"),
    ("touch.f90", "!$homing next_touch(a)", "INSIDE", "stands inside the parallel do construct"),
    ("touch.c", "#pragma homing next_touch(c)", "BEFORE", "how long 'c' is cannot be known here: say EXTENT"),
    ("touch.c", "if (n)\n#pragma homing next_touch(a)", "BEFORE", "would be the one statement"),
    ("touch.c", "#pragma homing next_touch(a, c) extent(n)", "BEFORE", "EXTENT goes with one array"),
]


@pytest.mark.parametrize(("name", "directive", "where", "reason"), WRONG)
def test_refused(name: str, directive: str, where: str, reason: str, tmp_path: Path) -> None:
    text = FORTRAN if name.endswith(".f90") else C
    text = text.replace(where, directive)
    for other in ("BEFORE\n", "INSIDE\n"):
        text = text.replace(other, "")
    (tmp_path / name).write_text(text)
    with pytest.raises(TranslationError) as error:
        translate([str(tmp_path / name)], Options("upm"))
    (problem,) = error.value.problems
    assert reason in problem.reason
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "next_touch" in line)
    assert problem.position.line == line
