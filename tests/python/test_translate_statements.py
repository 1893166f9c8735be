"""Fortran: ATOMIC CAPTURE; whole arrays and several parts that are read in regions; heads of serial code that
read elements, and jumps out of code that works on gathered arrays; ALIGN with another module's array;
type-bound procedures; bounds of variables that change, and inquiries in calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("reads"))


NAMES = ("whole_reads.f90", "heads_read.f90", "leaving.f90", "atomic_capture.f90", "any_part.f90", "labels.f")


CASES = [(name, target) for name in NAMES for target in ("spmd", "mpi")]
PROCEDURES = [
    (name, target) for name in ("aligned_elsewhere.f90", "bound_calls.f90") for target in ("spmd", "pages")
]
PROCEDURES += [("passed_both.f90", "pages"), ("own_bounds.f90", "spmd")]


@pytest.mark.parametrize(("name", "target"), CASES + PROCEDURES)
def test_the_program_stays_what_it_is(workshop: Workshop, target: str, name: str) -> None:
    source = PROGRAMS / name
    made, _ = workshop.translated(source, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    threads = "1" if target == "mpi" else "3"
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS=threads) == workshop.printed(source)


PROGRAM = """program p
  implicit none
  real(8) :: a(30), x
  integer :: i
!$homing distribute a(block)
  do i = 1, 30
    a(i) = i
  end do
!$omp parallel do private(x)
!$homing on home(a(i))
  do i = 1, 30
    x = HERE
    a(i) = x
  end do
  TAIL
end program
"""


@pytest.mark.parametrize(
    "here, tail, reason",
    [
        ("sum(a)", "continue", "reads 'a' of several parts, and the loop writes it: read it before"),
        ("a(i) + a(3)*maxval(a(:i))", "continue", "reads 'a' of several parts"),
        (
            "a(i)",
            "10 x = 1\n  read (5, *, err=10) a(3)",
            "a gathered array",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, here: str, tail: str, reason: str) -> None:
    source = tmp_path / "p.f90"
    source.write_text(PROGRAM.replace("HERE", here).replace("TAIL", tail))
    with pytest.raises(TranslationError) as caught:
        translate([str(source)], Options("spmd"))
    assert reason in str(caught.value)
