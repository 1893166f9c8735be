"""LASTPRIVATE and ORDERED: the values and the order of the program, in every target that can have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("last"))


@pytest.mark.parametrize("name", ["last_values.f90", "last_values.c"])
@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
def test_the_last_iteration_leaves_its_values(workshop: Workshop, target: str, name: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1",) if target == "mpi" else ("1", "4"):
        assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS=threads) == expected


IMPLICIT = """program p
!$homing distribute a(block)
  real(8) a(30)
  s = 0
!$omp parallel do lastprivate(x, m) reduction(+:s) private(y)
  do i = 1, 30
    x = i/4.
    m = i
    y = x
    a(i) = y + 1
    s = s + y
  end do
  print *, x, m, s, a(30)
end program
"""


@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
def test_variables_may_be_declared_by_their_first_letter(workshop: Workshop, target: str) -> None:
    source = workshop.place() / "p.f90"
    source.write_text(IMPLICIT)
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS="2") == expected


ORDERED = """program p
  implicit none
  integer, parameter :: n = 12
  real(8) :: a(n), c
  integer :: i
  !$homing distribute a(cyclic)
  c = 0
  !$omp parallel do ordered schedule(static)
  !$homing on home(a(i))
  do i = 1, n
    a(i) = i
    !$omp ordered
    c = c/2 + a(i)
    print *, i, c
    !$omp end ordered
  end do
end program
"""


def test_a_loop_in_its_order_stays_under_pages_and_it_is_said(workshop: Workshop) -> None:
    source = workshop.place() / "p.f90"
    source.write_text(ORDERED)
    expected = workshop.printed(source)
    made, result = workshop.translated(source, "pages")
    assert run_command([made], workshop.folder, OMP_NUM_THREADS="4") == expected
    assert [(note.position.line, note.reason) for note in result.notes] == [
        (8, "ORDERED: the loop's iterations stay where OpenMP puts them")
    ]


BEGIN = "program p\nimplicit none; integer :: i, j, m(3), k\nreal(8) :: a(9), b(9, 9)\n"
REFUSED = [
    ("a(cyclic)", "lastprivate(k)", "a(i)", "i = 9, 1, -1", "goes down through a CYCLIC dimension"),
    ("a(block)", "lastprivate(m)", "a(i)", "i = 1, 9", "'m' is not a plain variable"),
    ("a(block)", "lastprivate(q)", "a(i)", "i = 1, 9", "'q' is not declared here"),
    ("a(block)", "lastprivate(conditional: k)", "a(i)", "i = 1, 9", "CONDITIONAL"),
]


@pytest.mark.parametrize("target", ["spmd", "mpi", "pages"])
@pytest.mark.parametrize(("array", "clause", "home", "loop", "reason"), REFUSED)
def test_refused(
    tmp_path: Path, target: str, array: str, clause: str, home: str, loop: str, reason: str
) -> None:
    (tmp_path / "p.f90").write_text(
        f"{BEGIN}!$homing distribute {array}\n!$omp parallel do {clause}\n!$homing on home({home})\n"
        f"do {loop}\n{home} = i\nend do\nend program\n"
    )
    with pytest.raises(TranslationError, match=rf"p\.f90:5:1: LASTPRIVATE.*{reason}"):
        translate([str(tmp_path / "p.f90")], Options(target))


@pytest.mark.parametrize("target", ["spmd", "mpi", "pages"])
def test_a_counter_that_the_region_makes_private_is_refused(tmp_path: Path, target: str) -> None:
    """The value would go to the master's own copy: COLLAPSE's inner counter, too."""
    (tmp_path / "p.f90").write_text(
        f"{BEGIN}!$homing distribute b(*, block)\n!$omp parallel\n!$omp do collapse(2) lastprivate(i)\n"
        "!$homing on home(b(:, j))\ndo j = 1, 9\ndo i = 1, 9\nb(i, j) = i\nend do\nend do\n"
        "!$omp end parallel\nprint *, i\nend program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:6:1: LASTPRIVATE\(i\) of a loop's own counter"):
        translate([str(tmp_path / "p.f90")], Options(target))


def test_tasks_of_a_single_construct_are_refused(tmp_path: Path) -> None:
    """They may run when the array is in parts again."""
    (tmp_path / "p.f90").write_text(
        f"{BEGIN}!$homing distribute a(block)\n!$omp parallel\n!$omp single\ndo i = 1, 9\n!$omp task\n"
        "a(i) = i\n!$omp end task\nend do\n!$omp end single\n!$omp end parallel\nend program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:8:1: TASK in SINGLE"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


def test_a_region_that_shares_nothing_by_itself_shares_what_is_kept(tmp_path: Path) -> None:
    """`hm_ends_here` was not in its SHARED: it did not compile."""
    (tmp_path / "p.f90").write_text(
        f"{BEGIN}!$homing distribute a(block)\n!$omp parallel default(none) shared(a, k)\n"
        "!$omp do lastprivate(k)\n!$homing on home(a(i))\ndo i = 1, 9\na(i) = i\nk = 2*i\nend do\n"
        "!$omp end parallel\nend program\n"
    )
    text = translate([str(tmp_path / "p.f90")], Options("pages")).outputs[0].text
    region = next(line for line in text.splitlines() if line.startswith("!$omp parallel"))
    assert "hm_ends_here, hm_last_k" in region
