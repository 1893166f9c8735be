"""Type-bound procedures: what `q%at(i)` and `call q%put(i)` do is what the procedures behind them do."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop

PROGRAM = """module shapes
  implicit none
  integer, parameter :: n = 20
  real(8) :: g(n)
!$homing distribute g(block)
  integer :: calls = 0
  type :: quad
    real(8) :: w = 2, v(n) = 1
    integer :: used = 0
  contains
    procedure :: at => at_place
    procedure, pass :: bump, area
    procedure, nopass :: half
    procedure :: put, &
      tell
    generic :: size_of => area
  end type
contains
  real(8) function at_place(self, i)
    class(quad), intent(in) :: self
    integer, intent(in) :: i
    at_place = self%w*g(i)
  end function
  real(8) function bump(self, i)
    class(quad), intent(inout) :: self
    integer, intent(in) :: i
    self%used = self%used + 1
    calls = calls + 1
    bump = i*self%w
  end function
  pure real(8) function area(self)
    class(quad), intent(in) :: self
    area = self%w**2
  end function
  pure real(8) function half(x)
    real(8), intent(in) :: x
    half = x/2
  end function
  subroutine put(self, i)
    class(quad), intent(in) :: self
    integer, intent(in) :: i
    g(i) = self%w*i
  end subroutine
  subroutine tell(self, x, y)
    class(quad), intent(in) :: self
    real(8), intent(in) :: x
    real(8), intent(out) :: y
    y = x*self%w
  end subroutine
end module
program main
  use shapes
  implicit none
  real(8) :: a(n), y
  type(quad) :: q
  integer :: i
!$homing distribute a(block)
!$omp parallel do
  do i = 1, n
    g(i) = i
  end do
  y = 0
!$omp parallel do private(y)
  do i = 1, n
    BODY
  end do
  call q%put(3)
  print *, q%at(4)
  print *, sum(a), sum(g), q%size_of()
end program
"""
SAME = "a(i) = i*q%area() + q%size_of() + q%half(q%w) + q%v(i)\n    call q%tell(q%w, y)\n    a(i) = a(i) + y"


def test_the_same_is_printed(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("bound"))
    source = workshop.place() / "p.f90"
    source.write_text(PROGRAM.replace("BODY", SAME))
    workshop.expect_the_same(source, ("spmd", "mpi"))


@pytest.mark.parametrize(
    ("target", "body", "reason"),
    [
        ("spmd", "a(i) = q%at(i)", "22:23: a distributed array in a procedure that is called inside a par"),
        ("spmd", "a(i) = i; call q%put(i)", "42:5: a distributed array in a procedure that is called ins"),
        ("mpi", "a(i) = q%bump(i)", "65:5: 'calls' is shared and written, by 'bump', in a loop"),
        ("mpi", "a(i) = i; call q%tell(y, q%w)", "65:30: 'q' is shared and written in a loop"),
    ],
)
def test_what_is_wrong_in_them_is_refused(tmp_path: Path, target: str, body: str, reason: str) -> None:
    """`g(i)` was the whole array, which is not there in a region: the program crashed."""
    (tmp_path / "p.f90").write_text(PROGRAM.replace("BODY", body))
    with pytest.raises(TranslationError) as caught:
        translate([str(tmp_path / "p.f90")], Options(target))
    assert f"p.f90:{reason}" in str(caught.value)


COMPONENTS = """module m
  implicit none
  type t
    sequence
    real(8) :: w = 1
    integer :: k = 0
  end type
contains
  subroutine set(x, y)
    real(8), intent(in) :: x
    real(8), intent(out) :: y
    y = x
  end subroutine
  subroutine old(y, k)
    real(8) y
    integer k
    y = y + k
  end
end module
program p
  use m
  implicit none
  integer, parameter :: n = 20
  type(t) :: q, cells(n)
  real(8) :: a(n)
  integer :: i
!$homing distribute a(block), cells(block)
!$omp parallel do
  do i = 1, n
    a(i) = i
    cells(i)%w = i
    cells(i)%k = 3
    BODY
  end do
  call set(7d0, q%w)
  call set(q%w, cells(4)%w)
  call old(cells(7)%w, cells(7)%k)
!$omp parallel do
  do i = 1, n
    call old(cells(i)%w, cells(i)%k)
    call set(cells(i)%w, a(i))
  end do
  print *, sum(a), sum(cells%w), q%w
end program
"""


MEMBERS = """#include <stdio.h>
#include <string.h>
#define N 20
struct cell { double u[3]; char name[8]; };
static struct cell c[N];
#pragma homing distribute c[block]
static void scale(double *u, double f) { for (int k = 0; k < 3; k++) u[k] *= f; }
static double norm(const double *u) { return u[0] + u[1] + u[2]; }
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++)
            c[i].u[k] = i + k;
        memset(c[i].name, 0, sizeof c[i].name);
        strcpy(c[i].name, "x");
    }
    scale(c[3].u, 10);
    strcpy(c[4].name, "four");
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        scale(c[i].u, norm(c[i].u));
    double s = 0;
    for (int i = 0; i < N; i++)
        s += norm(c[i].u);
    printf("%.1f %s %s\\n", s, c[4].name, c[5].name);
    return 0;
}
"""


@pytest.mark.parametrize(("name", "text"), [("p.f90", COMPONENTS), ("p.c", MEMBERS)])
def test_what_is_passed_by_a_component_is_changed(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("components"))
    source = workshop.place() / name
    source.write_text(text.replace("BODY", ""))
    workshop.expect_the_same(source, ("spmd", "mpi"))


@pytest.mark.parametrize("call", ["call set(7d0, q%w)", "call set(y=q%w, x=7d0)", "call old(q%w, q%k)"])
def test_a_component_that_other_ranks_would_not_see(tmp_path: Path, call: str) -> None:
    """Every rank but one printed what was there before."""
    (tmp_path / "p.f90").write_text(COMPONENTS.replace("BODY", f"if (i == n) {call}"))
    with pytest.raises(TranslationError, match=r"p\.f90:33:\d+: 'q' is shared and written in a loop"):
        translate([str(tmp_path / "p.f90")], Options("mpi"))
