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
PROCEDURES += [("extrema.c", "mpi"), ("extrema.f90", "mpi")]
PROCEDURES += [("same_arguments.f", "spmd"), ("same_arguments.f", "mpi")]
PROCEDURES += [("pointers.f90", "spmd"), ("pointers.f90", "mpi")]


@pytest.mark.parametrize(("name", "target"), CASES + PROCEDURES)
def test_the_program_stays_what_it_is(workshop: Workshop, target: str, name: str) -> None:
    source = PROGRAMS / name
    made, _ = workshop.translated(source, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    threads = "2" if target == "mpi" else "3"  # four parts make a grid of 2 x 2
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
            "10 x = 1\n  do 20 i = 1, 3\n20 read (5, *, err=10) a(i)",
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


REGION = """program p
  use omp_lib
  implicit none
  integer :: a(30), x, i, me, low
!$homing distribute a(block)
  a = 1
!$omp parallel private(x, i, me, low)
  me = omp_get_thread_num()
  HERE
!$omp end parallel
end program
"""
C_REGION = """static int a[30];
#pragma homing distribute a[block]
int main(void) {
    int s = 0;
#pragma omp parallel reduction(+ : s)
    {
        HERE
    }
    return s;
}
"""
OFTEN, BRACES = "threads may come here differently often", "put the statement in braces"


@pytest.mark.parametrize(
    "text, here, reason",
    [
        (REGION, "if (me == 0) then\n x = a(3)\n end if", OFTEN),
        (REGION, "low = 2*me\n do i = low, 9\n x = a(i)\n end do", OFTEN),
        (REGION, "do i = 1, 9\n x = a(i)\n if (i > me) exit\n end do", OFTEN),
        (REGION, "!$omp do\n do i = 1, 9\n x = i\n end do\n do while (x < 9)\n x = a(3)\n end do", OFTEN),
        (REGION, "do i = 1, 9\n x = a(i)\n if (x > 1) exit\n end do", None),
        (C_REGION, "for (int i = 0; i < 30; i++) s += a[i];", BRACES),
        (C_REGION, "for (int i = 0; i < 30; i++)\ns += a[i];", BRACES),
        (C_REGION, "for (int i = 0; i < 30; i++) {\ns += a[i];\n}", None),
    ],
)
def test_elements_that_the_threads_of_a_region_read(
    tmp_path: Path, text: str, here: str, reason: str | None
) -> None:
    source = tmp_path / ("p.c" if text is C_REGION else "p.f90")
    source.write_text(text.replace("HERE", here))
    if reason is None:
        assert translate([str(source)], Options("spmd")).outputs[0].changed
        return
    with pytest.raises(TranslationError) as caught:
        translate([str(source)], Options("spmd"))
    assert reason in str(caught.value)
