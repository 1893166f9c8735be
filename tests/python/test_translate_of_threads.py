"""--to mpi: what each thread keeps (THREADPRIVATE, _Thread_local) has the values that it would have."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop

READ_UNSEEN = """module m
  integer, save :: own = 3
  !$omp threadprivate(own)
contains
  integer function plus(a, b)
    integer, intent(in) :: a, b
    plus = a + b + own
  end function
  subroutine other
  end subroutine
end module
program p
  use m
  real(8) :: a(40)
  integer :: i
  !$homing distribute a(block)
  !$omp parallel do
  do i = 1, 40
    own = i
    a(i) = plus(i, own)
  end do
end program
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  integer, save", "  namelist /group/ own\n  integer, save"),
        (
            "  integer, save",
            "  interface operator(.plus.)\n  module procedure plus\n  end interface\n  integer, save",
        ),
        ("other\n", "other\n  real :: x(Own)\n"),
        ("other\n", "other\n  character(own) :: x\n"),
        ("other\n", "other\n  integer :: f, x\n  f(x) = x + own\n"),
        ("end program", "!$omp parallel num_threads(OWN)\n  !$omp end parallel\nend program"),
    ],
)
def test_what_is_kept_for_each_thread_may_be_read_unseen(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(READ_UNSEEN)
    translate([str(path)], Options("mpi"))
    path.write_text(READ_UNSEEN.replace(old, new, 1))
    with pytest.raises(TranslationError, match="'own' is THREADPRIVATE and written in a loop"):
        translate([str(path)], Options("mpi"))


SERIAL = """module m
  integer, save :: own = 3
  real(8) :: scratch(2) = 1
  !$omp threadprivate(own, scratch)
contains
  subroutine put(k)
    integer, intent(in) :: k
    own = k
    scratch = k
  end subroutine
  subroutine uncalled
    own = 7
  end subroutine
end module
program p
  use m
  real(8) :: a(40)
  integer :: i
  !$homing distribute a(block)
  call put(5)
  !$omp parallel do COPIED
  do i = 1, 40
    BODY
  end do
  print *, a
end program
"""


@pytest.mark.parametrize(
    ("copied", "body"),
    [
        ("", "if (i > 7) own = i\n    a(i) = own"),
        ("", "a(i) = own"),
        ("copyin(own)", "a(i) = own + scratch(2)"),
        ("", "scratch(1) = i\n    a(i) = sum(scratch)"),
        ("", "if (i > 7) call put(i)\n    a(i) = scratch(1)"),
        ("", "a(i) = i\n    call more(a(i))"),
    ],
)
def test_what_the_first_thread_has_of_serial_code_alone(tmp_path: Path, copied: str, body: str) -> None:
    """Of the ranks' threads, each first one would have it."""
    path = tmp_path / "p.f90"
    more = "contains\n  subroutine more(x)\n    real(8) :: x\n    x = x + own\n  end subroutine\nend program"
    path.write_text(SERIAL.replace("COPIED", copied).replace("BODY", body).replace("end program", more))
    with pytest.raises(TranslationError, match="is THREADPRIVATE, and may have here what serial"):
        translate([str(path)], Options("mpi"))


@pytest.mark.parametrize(
    ("copied", "body"),
    [
        ("copyin(own, scratch)", "a(i) = own + scratch(2)"),
        ("", "own = i; scratch = own\n    a(i) = own + scratch(2)"),
        ("", "call put(i)\n    a(i) = own + scratch(2)"),
    ],
)
def test_what_every_thread_has_is_the_same_in_all_ranks(tmp_path: Path, copied: str, body: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(SERIAL.replace("COPIED", copied).replace("BODY", body))
    Workshop(tmp_path).expect_the_same(path, ("mpi",))


def test_what_serial_code_gives_in_c(tmp_path: Path) -> None:
    """A function that serial code does not come to gives nothing."""
    path = tmp_path / "p.c"
    program = """static _Thread_local int own;
double a[40];
#pragma homing distribute a[block]
void uncalled(void) { own = 4; }
int main(void) {
    SERIAL
    #pragma omp parallel for
    for (int i = 0; i < 40; i++)
        a[i] = own;
    return 0;
}
"""
    path.write_text(program.replace("SERIAL", ""))
    translate([str(path)], Options("mpi"))
    for serial in ("own = 4;", "int *p = &own; *p = 3;", "uncalled();"):
        path.write_text(program.replace("SERIAL", serial))
        with pytest.raises(TranslationError, match=r"p\.c:9:16: 'own' is THREADPRIVATE, and may have"):
            translate([str(path)], Options("mpi"))


@pytest.mark.parametrize(
    "read",
    [
        "int k = sizeof(char[own + 1]);",
        "typedef char row[own]; int k = sizeof(row);",
        "int k = sizeof(__typeof__(int[2][own]));",
    ],
)
def test_bounds_of_types_are_read_in_c(tmp_path: Path, read: str) -> None:
    path = tmp_path / "p.c"
    path.write_text(OF_TYPES.replace("READ", read))
    with pytest.raises(TranslationError, match=r"other values where \S*p\.c:9:\d+ reads it"):
        translate([str(path)], Options("mpi"))


OF_TYPES = """static _Thread_local int own;
double a[40];
#pragma homing distribute a[block]
static char plain[7];
int main(void) {
    #pragma omp parallel for
    for (int i = 0; i < 40; i++)
        a[i] = own = i + sizeof plain + sizeof(plain) + sizeof(int[3]);
    READ
    return k;
}
"""


def test_sizes_of_variables_are_no_reads_of_them(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text(OF_TYPES.replace("READ", "int k = sizeof(own) + sizeof own + sizeof(int) - 12;"))
    Workshop(tmp_path).expect_the_same(path, ("mpi",))
