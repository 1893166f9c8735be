"""Behind a loop, threads wait for each other where the region tells them something outside of its loops, and
in procedures that regions call."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.translation import Options, translate

FORTRAN = """\
module data
  implicit none
  integer :: n = 10
end module
module work
contains
  subroutine sweep(p, k)
    {use}
    implicit none
    real(8) :: p(40), k
    integer :: i
!$omp do
    do i = 1, {last}
      p(i) = p(i) + {value}
    end do
  end subroutine
end module
program main
  use data
  use work
  implicit none
  real(8) :: u(40), k
  integer :: t
!$homing distribute u(block)
  u = 0
  k = 1
!$omp parallel private(t)
  do t = 1, 5
    call sweep(u, k)
!$omp single
    n = n + 5
    k = k + 1
!$omp end single
  end do
!$omp end parallel
  print *, u
end program
"""
C = """\
#include <cstdio>
struct box {{ const double *k; }};
static int n = 10;
static double u[40];
#pragma homing distribute u[block]
static void sweep(double *p, {argument})
{{
#pragma omp for
    for (int i = 0; i < {last}; i++)
        p[i] += {value};
}}
int main()
{{
    double k = 1;
#pragma omp parallel
    for (int t = 0; t < 5; t++) {{
        sweep(u, {given});
#pragma omp single
        {{
            n += 5;
            k += 1;
        }}
    }}
    std::printf("%g\\n", u[3]);
}}
"""


@pytest.mark.parametrize(
    ("use", "last", "value"), [("use data", "n", "2"), ("", "40", "k"), ("", "40", "p(i)")]
)
def test_procedures_in_fortran(use: str, last: str, value: str, tmp_path: Path) -> None:
    text = _translated(FORTRAN.format(use=use, last=last, value=value), tmp_path / "p.f90")
    assert "omp barrier" in text[text.index("sweep") : text.index("main")]


@pytest.mark.parametrize(
    ("argument", "given", "last", "value"),
    [
        ("double k", "k", "n", "k"),
        ("const double &k", "k", "40", "k"),
        ("struct box b", "box{&k}", "40", "*b.k"),
        ("double k", "k", "40", "k"),
    ],
)
def test_procedures_in_c(argument: str, given: str, last: str, value: str, tmp_path: Path) -> None:
    text = C.format(argument=argument, given=given, last=last, value=value)
    text = _translated(text, tmp_path / "p.cpp")
    assert "omp barrier" in text[text.index("sweep") : text.index("main")]


#: What stands in a region before a loop and behind it, and whether threads tell each other something by it.
AROUND = {
    "nothing": ("", "", False),
    "own variables": ("const double h = t / 2.0;", "(void)h;", False),
    "a constant": ("const double h = size;", "(void)h;", False),
    "a bound that changes": ("const int m = n; (void)m;", '_Pragma("omp single") n += 5;', True),
    "a result": ('_Pragma("omp master") x = t;', "(void)(x != t);", True),
    "a pointer": ("", '_Pragma("omp single") *at += 5;', True),
    "a pointer in another loop": (
        "",
        '_Pragma("omp for") for (int k = 0; k < 9; k++) if (k == 3) *at += 5;',
        True,
    ),
    "a procedure": ("", "change();", True),
}


@pytest.mark.parametrize("case", AROUND)
def test_regions(case: str, tmp_path: Path) -> None:
    before, behind, waits = AROUND[case]
    text = f"""\
static double u[40], x;
static int n = 10;
#pragma homing distribute u[block]
void change(void);
int main(void)
{{
    int *at = &n;
    const int size = 3;
#pragma omp parallel
    for (int t = 0; t < 4; t++) {{
        {before}
#pragma omp for
        for (int i = 0; i < n; i++)
            u[i] += 1;
        {behind}
    }}
    return *at - size > 99 + x;
}}
"""
    assert ("omp barrier" in _translated(text, tmp_path / "p.c")) == waits


def test_a_pointer_of_fortran(tmp_path: Path) -> None:
    text = """\
program main
  implicit none
  integer, target :: n = 10
  integer, pointer :: m
  real(8) :: u(40)
  integer :: i, t
!$homing distribute u(block)
  m => n
!$omp parallel private(t)
  do t = 1, 4
!$omp do
    do i = 1, n
      u(i) = t
    end do
!$omp single
    m = m + 5
!$omp end single
  end do
!$omp end parallel
end program
"""
    text = _translated(text, tmp_path / "p.f90")
    assert "omp barrier" in text[text.index("u(") : text.index("omp single")]


def _translated(text: str, source: Path) -> str:
    source.write_text(text)
    return translate([str(source)], Options("spmd")).outputs[0].text


def test_what_code_of_classes_may_change(tmp_path: Path) -> None:
    source = tmp_path / "p.cpp"
    source.write_text("""\
struct config { int n; };
struct grow { config &c; void go() { c.n += 5; } };
static double u[40];
#pragma homing distribute u[block]
static void run(config &c, grow &g)
{
#pragma omp parallel
    for (int t = 0; t < 4; t++) {
#pragma omp for
        for (int i = 0; i < c.n; i++)
            u[i] += 1;
#pragma omp single
        g.go();
    }
}
int main()
{
    config c{10};
    grow g{c};
    run(c, g);
}
""")
    made = translate([str(source)], Options("spmd")).outputs[0].text
    assert "omp barrier" in made[made.index("u[i] += 1") : made.index("omp single")]
