"""Distributed arrays that assignments and calls allocate, and what about allocation is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("allocated"))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(("allocated.f90", target) for target in ("spmd", "pages", "mpi")),
        *(("allocated_from.f90", target) for target in ("spmd", "mpi")),
        ("allocated_by_operator.f90", "spmd"),
    ],
)
def test_arrays_that_are_allocated_unsaid(workshop: Workshop, name: str, target: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS="3") == expected


SECTIONS = """program p
  implicit none
  integer, parameter :: n = 12
  real(8), allocatable :: c(:), d(:, :), g(:), h(:), z(:)
  real(8) :: b(0:n + 1), m(4, n)
  integer :: i, q
  !$homing distribute c(block), d(*, block), g(cyclic), h(block), z(block)
  b = [(i*1.5d0, i = 0, n + 1)]
  m = reshape([(i*1d0, i = 1, 4*n)], [4, n])
  q = 3
  allocate (c, source=b(2:11))
  allocate (d, SOURCE = m(2:3, q:))
  if (q > 2) allocate (g, source=c(9:2:-3), stat=i)
  allocate (h, mold=m(q, ::2))
  allocate (z, source=b(7:q))
  !$omp parallel do
  do i = 1, 10
    c(i) = c(i) + i
  end do
  !$omp parallel do
  do i = 1, 10
    d(1, i) = d(2, i) + i
  end do
  h = 1
  print *, c, d, g, h, lbound(c), ubound(d), size(g), size(h), size(z), ubound(z)
  deallocate (c)
  allocate (c, source=d(1, :))
  print *, c
end program
"""


def test_sections_say_how_large_an_array_is(tmp_path: Path) -> None:
    (tmp_path / "p.f90").write_text(SECTIONS)
    Workshop(tmp_path).expect_the_same(tmp_path / "p.f90", ("spmd", "mpi"))


@pytest.mark.parametrize("source", ["b([2, 3])", "b(where)", "m(2, 3)", "b(c(1):)", "b(int(sum(b(1:2))):5)"])
def test_what_does_not_say_how_large_it_is(tmp_path: Path, source: str) -> None:
    text = SECTIONS.replace("i, q", "i, q, where(2) = 3").replace("=b(7:q)", f"={source}")
    (tmp_path / "p.f90").write_text(text)
    with pytest.raises(TranslationError, match=r"p\.f90:15:3: ALLOCATE without bounds: give them, z\(n\)"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


BEGIN = "program p\nreal(8), allocatable :: a(:)\nreal(8) :: b(9), s\ninteger :: i\n"
LOOP = "!$omp parallel do\n!$homing on home({0}(i))\ndo i = 1, 9\n{0}(i) = i\nend do\n"
REFUSED = [
    (
        BEGIN + "!$homing distribute a(block)\ncall make(a)\ncontains\nsubroutine make(x)\n"
        "real(8), allocatable, intent(out) :: x(:)\n!$homing distribute x(block)\nallocate (x(9))\n"
        + LOOP.format("x")
        + "end subroutine\nend program\n",
        r"p\.f90:11:1: 'x' is the caller's: ALLOCATE",
    ),
    (
        BEGIN
        + "namelist /n/ b\n!$homing distribute b(block)\nread (5, nml=n)\n"
        + LOOP.format("b")
        + "end\n",
        r"p\.f90:5:1: 'b' is in a NAMELIST",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=["in a callee", "namelist"])
def test_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "p.f90").write_text(text)
    with pytest.raises(TranslationError, match=reason):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


DEFAULTS = """module types
  implicit none
  type :: base
    integer :: tag = 4
    real(8) :: flux
  end type
  type, extends(base) :: cell
    type(base) :: inner(2)
    integer :: count
  end type
end module
program defaults
  use types, other => cell
  implicit none
  integer, parameter :: n = 11
  type(base) :: still(n)
  type(other), allocatable :: a(:)
  integer :: i
!$homing distribute still(block), a(block)
  allocate (a(n))
!$omp parallel do
  do i = 1, n
    still(i)%flux = 0.5d0*i
    a(i)%inner(2)%flux = i
  end do
  print *, still%tag, sum(still%flux), a%tag, (a(i)%inner%tag, a(i)%inner(2)%flux, i = 1, n)
end program
"""


@pytest.mark.parametrize("target", ["spmd", "mpi", "pages"])
def test_components_have_their_default_values(tmp_path_factory: pytest.TempPathFactory, target: str) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("defaults"))
    source = workshop.place() / "p.f90"
    source.write_text(DEFAULTS)
    workshop.expect_the_same(source, [target])
