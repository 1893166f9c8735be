"""--to mpi: rank 0 has the program's files, every other rank has copies, and all do what the program does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command

FORTRAN = """program io
  implicit none
  integer, parameter :: n = 30
  real(8) :: a(n), b(n)
  integer :: i, u, k, ios
  logical :: there
  character(20) :: line, name
  !$homing distribute a(block), b(block)
  !$omp parallel do
  do i = 1, n
    a(i) = i*1.5d0
  end do
  inquire (file='made.txt', exist=there)
  print *, 'before', there
  open (newunit=u, file='made.txt', status='new', action='write', form='formatted')
  do i = 1, n
    write (u, '(f10.3)') a(i)
  end do
  close (u)
  inquire (file='made.txt', exist=there)
  print *, 'after', there
  open (newunit=u, file='made.txt', status='old', action='read')
  do i = 1, n
    read (u, *) b(i)
  end do
  close (u)
  print *, sum(b)
  name = 'made.txt'
  open (10, file=trim(name), position='append', status='old')
  write (10, '(a)') 'more'
  close (10)
  open (10, file=name)
  k = 0
  do
    read (10, '(a)', iostat=ios) line
    if (ios /= 0) exit
    k = k + 1
  end do
  print *, k, trim(line)
  close (10)
  open (newunit=u, status='scratch', form='unformatted')
  write (u) a
  rewind (u)
  read (u) b
  close (u)
  open (newunit=u, file='nowhere/f', iostat=ios, status='old')
  print *, sum(b), ios /= 0
  if (n > 3) open (11, file='direct', access='direct', recl=8, form='unformatted')
  call save(11, a(4))
  close (11, status='delete')
contains
  subroutine save(unit, x)
    integer, intent(in) :: unit
    real(8), intent(in) :: x
    real(8) :: y
    write (unit, rec=3) x
    read (unit, rec=3) y
    print *, y
  end subroutine
end program
"""
C = """#include <stdio.h>
#define N 40
double a[N], b[N];
#pragma homing distribute a[block], b[block]
static int lines(const char *name) {
    FILE *f = fopen(name, "r");
    int c, k = 0;
    if (!f) return -1;
    while ((c = fgetc(f)) != EOF) k += c == '\\n';
    fclose(f);
    return k;
}
int main(void) {
    const char *name = "made.txt";
    FILE *f;
    double x, s = 0;
    int bad = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++) a[i] = i;
    printf("%d\\n", lines(name));
    if ((f = fopen(name, "w")) == NULL) return 1;
    for (int i = 0; i < N; i++) fprintf(f, "%g\\n", a[i]);
    fclose(f);
    f = fopen(name, "a");
    fprintf(f, "x\\n");
    fclose(f);
    printf("%d\\n", lines(name));
    f = fopen(name, "r");
    for (int i = 0; i < N; i++) {
        if (fscanf(f, "%lf", &x) != 1) bad = 1;
        b[i] = x;
    }
    fclose(f);
    f = fopen("gone.txt", "w");
    fclose(f);
    remove("gone.txt");
    printf("%d\\n", lines("gone.txt"));
    for (int i = 0; i < N; i++) s += b[i];
    printf("%g %d\\n", s, bad);
    return 0;
}
"""


@pytest.mark.parametrize(("suffix", "text"), [(".f90", FORTRAN), (".c", C)])
def test_files_are_as_without_ranks(tmp_path_factory: pytest.TempPathFactory, suffix: str, text: str) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("files"))
    source = workshop.place() / f"p{suffix}"
    source.write_text(text)
    plain, ranks, temporary = workshop.place(), workshop.place(), workshop.place()
    expected = run_command([workshop.plain(source)], plain, OMP_NUM_THREADS="1")
    program, _ = workshop.translated(source, "mpi", checked=False)
    found = run_command([*MPIRUN, "-n", "3", program], ranks, OMP_NUM_THREADS="1", TMPDIR=str(temporary))
    assert found == expected
    assert os.listdir(ranks) == os.listdir(plain) == ["made.txt"]
    assert (ranks / "made.txt").read_text() == (plain / "made.txt").read_text()
    assert not [name for name in os.listdir(temporary) if name.startswith("homing")]


HEAD = """program p
  real(8) :: a(10), x
  integer :: i
  !$homing distribute a(block)
  !$omp parallel do
  do i = 1, 10
    a(i) = i
  end do
  {}
end program
"""
REFUSED = [
    ("write (10, *) a", "unit 10 is opened by no OPEN statement"),
    ("open (12)", "OPEN without FILE"),
    ("call random_number(x)", "other numbers"),
    ("call execute_command_line('true')", "EXECUTE_COMMAND_LINE: every rank"),
    (
        "!$omp parallel\n!$omp master\n open (9, file='x')\n!$omp end master\n!$omp end parallel",
        "parallel code",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_every_rank_would_do_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(HEAD.format(text))
    translate([str(path)], Options("spmd"))
    with pytest.raises(TranslationError, match=reason):
        translate([str(path)], Options("mpi"))


def test_names_of_files_in_macros_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text(C.replace("#define N 40", '#define N 40\n#define OPEN(x) fopen(x, "r")'))
    with pytest.raises(TranslationError, match="FOPEN where it cannot be followed"):
        translate([str(path)], Options("mpi"))


def test_a_file_that_is_read_and_removed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """CLOSE(STATUS='DELETE') of a file that ranks had open by another name ended them; rank 0 waited."""
    workshop = Workshop(tmp_path_factory.mktemp("removed"))
    source = workshop.place() / "p.f90"
    source.write_text(
        "program p\n  real(8) :: a(9), s\n  integer :: i, u\n  !$homing distribute a(block)\n"
        "  !$omp parallel do\n  do i = 1, 9\n    a(i) = i\n  end do\n"
        "  open (newunit=u, file='f.txt', action='write')\n  write (u, *) sum(a)\n  close (u)\n"
        "  open (newunit=u, file='f.txt', action='read')\n  read (u, *) s\n  close (u, status='delete')\n"
        "  print *, s\nend program\n"
    )
    made, _ = workshop.translated(source, "mpi", checked=False)
    found = run_command([*MPIRUN, "-n", "2", made], workshop.folder, OMP_NUM_THREADS="1")
    assert float(found) == 45 and not (workshop.folder / "f.txt").exists()


COMPONENTS = """module cells
  type label
    character(4) :: tag, other(2)
    integer :: unit
  end type
  type, extends(label) :: cell
    type(label) :: inner(2)
    integer :: k
  end type
end module
program p
  use cells
  type(cell) :: c(9), one
  !$homing distribute c(block)
  !$omp parallel do private(one)
  do i = 1, 9
    write (one%tag, '(i2)') i
    c(i) = one
    write (c(i)%inner(2)%other(1)(2:3), '(i2.2)') i
    read (UNIT=c(i)%inner(2)%other(1)(2:3), fmt=*) c(i)%k
  end do
  print *, (c(i)%tag, c(i)%inner(2)%other(1)(2:3), c(i)%k, i = 1, 9)
end program
"""


def test_texts_in_components_are_no_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("components"))
    source = workshop.place() / "p.f90"
    source.write_text(COMPONENTS)
    workshop.expect_the_same(source, ("mpi",))


def test_a_unit_in_a_component_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(COMPONENTS.replace("write (one%tag, '(i2)') i", "write (one%unit, '(i2)') i"))
    with pytest.raises(TranslationError, match="input or output in a loop"):
        translate([str(path)], Options("mpi"))
