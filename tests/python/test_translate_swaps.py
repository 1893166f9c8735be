"""Distributed arrays that change places in serial code: by pointers, by MOVE_ALLOC, by std::swap."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import PROGRAMS, Workshop

C = """\
#include <stdio.h>
#include <stdlib.h>
#define CHANGE(x, y) do { __typeof__(x) kept = (x); (x) = (y); (y) = kept; } while (0)
static void flip(double **x, double **y)
{
    double *t = *x;
    *x = *y;
    *y = t;
}
enum { m = 8, rows = 40 };
static double (*um)[m], (*u)[m], (*up)[m];
#pragma homing distribute [block][*] extent(rows, m) :: um, u, up
static void rotate(void)
{
    double (*tmp)[m] = um;
    um = u;
    u = up;
    up = tmp;
}
static void wave(void)
{
    um = malloc(rows * sizeof *um);
    u = malloc(rows * sizeof *u);
    up = malloc(rows * sizeof *up);
#pragma omp parallel for
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < m; j++) {
            um[i][j] = u[i][j] = i * j % 7;
            up[i][j] = 0;
        }
    for (int t = 0; t < 7; t++) {
#pragma omp parallel for
        for (int i = 1; i < rows - 1; i++)
            for (int j = 1; j < m - 1; j++)
                up[i][j] = 2 * u[i][j] - um[i][j] + 0.125 * (u[i - 1][j] + u[i + 1][j] - 2 * u[i][j]);
        rotate();
    }
    printf("%.10g %.10g %.10g\\n", um[20][3], u[20][3], up[20][3]);
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 50, swaps = 0;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *tmp;
#pragma homing distribute a[cyclic(3)] extent(n), b[cyclic(3)] extent(n)
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        a[i] = i % 7;
        b[i] = 0;
    }
    for (int t = 0; t < 9; t++) {
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++)
            b[i] = 0.5 * (a[i - 1] + a[i + 1]);
        if (t % 3) {
            tmp = a; a = b; b = tmp;
            double *third;
            third = a;
            a = b;
            b = third;
            flip(&a, &b);
            swaps++;
            CHANGE(swaps, n);
            CHANGE(n, swaps);
        }
        b[0] += t;
        if (t == 5)
            CHANGE(a, b);
        if (t == 3) { double *x = a; a = b; b = x; }
    }
    for (int i = 0; i < n; i++)
        printf("%d %.10g %.10g\\n", swaps, a[i], b[i]);
    free(b);
    free(a);
    wave();
    return 0;
}
"""
FORTRAN = """\
module fields
  implicit none
  real(8), allocatable :: um(:, :), u(:, :), up(:, :)
  !$homing distribute um(*, block), u(*, block), up(*, block)
contains
  subroutine rotate()
    real(8), allocatable :: tmp(:, :)
    call move_alloc(um, tmp)
    call move_alloc(u, um)
    call move_alloc(up, u)
    call move_alloc(tmp, up)
  end subroutine
end module
program wave
  use fields
  implicit none
  integer, parameter :: n = 37
  integer :: t, i, j
  real(8), allocatable :: a(:), b(:), spare(:)
  !$homing distribute a(block), b(block)
  allocate(um(n, n), u(n, n), up(n, n), a(0:n), b(0:n))
  !$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      um(i, j) = mod(i*j, 7)
      u(i, j) = um(i, j)
      up(i, j) = 0
    end do
  end do
  !$omp parallel do
  do i = 0, n
    a(i) = mod(i, 5)
    b(i) = 0
  end do
  do t = 1, 7
    !$omp parallel do private(i)
    do j = 2, n - 1
      do i = 2, n - 1
        up(i, j) = 2*u(i, j) - um(i, j) + 0.125d0*(u(i, j - 1) + u(i, j + 1) - 2*u(i, j))
      end do
    end do
    call rotate()
    !$omp parallel do
    do i = 1, n - 1
      b(i) = a(i - 1) + a(i + 1)
    end do
    if (t /= 4) then
      call move_alloc(a, spare)
      call move_alloc(b, a)
      call move_alloc(spare, b)
    end if
    u(1, 1) = u(1, 1) + t
  end do
  print '(3f20.8)', u, um(5, 6), sum(up(:, n)), a, b
end program
"""


@pytest.mark.parametrize(("name", "program", "swaps"), [("p.c", C, 7), ("p.f90", FORTRAN, 3)])
def test_arrays_change_places_and_nothing_is_copied(
    tmp_path: Path, name: str, program: str, swaps: int
) -> None:
    source = tmp_path / name
    source.write_text(program)
    text = translate([str(source)], Options("spmd")).outputs[0].text
    assert text.count("homing_layout_swap(") == swaps
    Workshop(tmp_path).expect_the_same(source, ("spmd", "mpi"))


def test_std_swap_of_pointers(tmp_path: Path) -> None:
    source = tmp_path / "p.cpp"
    program = C[C.index("int main") :].replace("double *x = a; a = b; b = x;", "std::swap(a, b);")
    program = program.replace("malloc", "(double *)malloc").replace("wave();", "").replace("&a, &b", "a, b")
    program = program.replace("CHANGE(a, b)", "a[1] = 7")
    flip = C[C.index("#define") : C.index("enum")].replace("**", "*&").replace("*x", "x").replace("*y", "y")
    head = "#include <cstdio>\n#include <cstdlib>\n#include <utility>\n"
    source.write_text(f"{head}template <class T> T own(T a) {{ return a; }}\n{flip}{program}")
    text = translate([str(source)], Options("spmd")).outputs[0].text
    assert text.count("homing_layout_swap(&hm_layout_a, &hm_layout_b);") == 4


ANOTHER_USE = C.replace("free(b);", "tmp[1] = 2; free(b);")
COMPARED = C.replace("free(b);", "if (tmp == 0) n++; free(b);")
OTHER_DISTRIBUTION = C.replace("b[cyclic(3)]", "b[cyclic(2)]").replace("b[i] = 0;", "")
IN_A_REGION = C.replace("            tmp = a;", "#pragma omp parallel\n            tmp = a;")


@pytest.mark.parametrize("program", [ANOTHER_USE, COMPARED, OTHER_DISTRIBUTION, IN_A_REGION])
def test_pointers_that_may_mean_both_arrays_are_refused(tmp_path: Path, program: str) -> None:
    source = tmp_path / "p.c"
    source.write_text(program)
    with pytest.raises(TranslationError, match="another name"):
        translate([str(source)], Options("spmd"))


def test_the_function_of_its_own_file_is_meant(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(C.replace("static void flip", "void flip"))
    (tmp_path / "q.c").write_text(
        "#include <stdlib.h>\nstatic void flip(double **x, double **y) { (*x)[3] += (*y)[4]; }\n"
        "void other(void) {\ndouble *a = malloc(72), *b = malloc(72);\n"
        "#pragma homing distribute a[block] extent(9), b[block] extent(9)\nflip(&a, &b);\n}\n"
    )
    with pytest.raises(TranslationError, match=r"q\.c:6:7: may give the distributed array another name"):
        translate([str(tmp_path / "p.c"), str(tmp_path / "q.c")], Options("spmd"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unew => swap\n", "unew => swap\n    swap => u\n"),
        ("    unew => swap\n", "    if (c > 0) unew => swap\n"),
        ("  call setup\n", "  call setup\n  w => u\n"),
        ("intent(in) :: a(:, 0:)", "intent(in), pointer :: a(:, :)"),
        ("  deallocate (u)\n", "  nullify (u)\n"),
        ("  call setup\n", "  call setup\n  deallocate (u)\n  allocate (u(m, 0:31))\n"),
        ("  call setup\n", "  call setup\n  if (associated(u, unew)) stop 3\n"),
    ],
)
def test_pointers_that_get_other_memory_stay_what_they_are(tmp_path: Path, old: str, new: str) -> None:
    text = (PROGRAMS / "pointers.f90").read_text()
    assert old in text
    (tmp_path / "p.f90").write_text(text.replace(old, new, 1))
    with pytest.raises(TranslationError, match="'u' is a POINTER"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))
