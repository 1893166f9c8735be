"""Procedures that regions call: behind a loop, threads wait for each other where another may write next what
the loop reads."""

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
    ("use", "last", "value", "waits"),
    [
        ("use data", "n", "2", True),
        ("", "40", "k", True),
        ("", "40", "p(i)", False),
    ],
)
def test_fortran(use: str, last: str, value: str, waits: bool, tmp_path: Path) -> None:
    assert _waits(FORTRAN.format(use=use, last=last, value=value), tmp_path / "p.f90") == waits


@pytest.mark.parametrize(
    ("argument", "given", "last", "value", "waits"),
    [
        ("double k", "k", "n", "k", True),
        ("const double &k", "k", "40", "k", True),
        ("const double *k", "&k", "40", "*k", True),
        ("struct box b", "box{&k}", "40", "*b.k", True),
        ("double k", "k", "40", "k", False),
    ],
)
def test_c(argument: str, given: str, last: str, value: str, waits: bool, tmp_path: Path) -> None:
    text = C.format(argument=argument, given=given, last=last, value=value)
    assert _waits(text, tmp_path / "p.cpp") == waits


def _waits(text: str, source: Path) -> bool:
    source.write_text(text)
    made = translate([str(source)], Options("spmd")).outputs[0].text
    return "omp barrier" in made[made.index("sweep") : made.index("main")]
