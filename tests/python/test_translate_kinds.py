"""Kinds of programs that users have, each on every target: they print what they printed before."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command

KINDS = (
    "allocated_by_procedures.f90",
    "allocated_if.f90",
    "allocated_like.f90",
    "associated_names.f90",
    "block_data.f",
    "both_declared.f90",
    "combined.f90",
    "common.f",
    "commons.f90",
    "changed_neighbours.c",
    "changed_neighbours.f90",
    "columns_of_parts.c",
    "columns_of_parts.f90",
    "cyclic_scopes.f90",
    "eliminated.c",
    "eliminated.f90",
    "function_values.c",
    "function_values.f90",
    "generic.f90",
    "heads.c",
    "heads.f90",
    "initial_values.f90",
    "inner_counters.c",
    "inner_counters.f90",
    "left_procedures.f90",
    "lengths.f90",
    "macro_arguments.c",
    "modules_hidden.f90",
    "multigrid.c",
    "multigrid.f90",
    "none_shared.f90",
    "one_line.c",
    "one_line.f90",
    "other_sizes.c",
    "prototypes.c",
    "reallocated.f90",
    "returns.c",
    "rows.c",
    "several_kinds.f90",
    "squeezed.f",
    "static_of_module.f90",
    "sums_in_regions.c",
    "sums_in_regions.f90",
    "sums_of_both.c",
    "sums_of_both.f90",
    "taken_again.c",
    "turned_round.c",
    "turned_round.f90",
    "untyped.f",
    "untyped.f90",
    "whole_constructs.c",
    "whole_constructs.f90",
    "written_either_way.c",
    "written_either_way.f90",
)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("kinds"))


#: Each in parts, of which ranks have the same; every second one with one of the others (0.3 and 0.6 s each).
IN_TURN = [
    pytest.param(target, name, marks=[] if target == "spmd" or target == also else pytest.mark.full)
    for target in ("spmd", "pages", "mpi")
    for also, name in zip(itertools.cycle(("pages", "mpi", "", "")), KINDS, strict=False)
]


@pytest.mark.parametrize(("target", "name"), IN_TURN)
def test_the_same_is_printed(workshop: Workshop, target: str, name: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "3"] if target == "mpi" else []
    for threads in ("1",) if target == "mpi" else ("1", "4"):
        assert run_command([*start, str(made)], workshop.folder, OMP_NUM_THREADS=threads) == expected


def test_constructs_on_whole_arrays_are_said() -> None:
    notes = translate([str(PROGRAMS / "whole_constructs.f90")], Options("spmd")).notes
    assert [(note.position.line, note.reason.partition(":")[0]) for note in notes] == [
        (14, "SECTIONS inside a region"),
        (27, "WORKSHARE inside a region"),
        (31, "ORDERED inside a region"),
    ]


@pytest.mark.parametrize("directive", ["parallel num_threads(2)", "parallel do num_threads(2)"])
def test_a_number_of_threads_goes_where_nothing_shows_it(tmp_path: Path, directive: str) -> None:
    """A region's threads may be counted; a loop's iterations are the same for any number of them."""
    inner, end = ("", "") if "do" in directive else ("!$omp do\n", "!$omp end parallel\n")
    (tmp_path / "p.f90").write_text(
        "program p\ninteger :: i\nreal(8) :: a(9)\n!$homing distribute a(block)\n"
        f"!$omp {directive}\n{inner}do i = 1, 9\na(i) = i\nend do\n{end}print *, sum(a)\nend program\n"
    )
    if "do" in directive:
        assert "num_threads(2)" not in translate([str(tmp_path / "p.f90")], Options("spmd")).outputs[0].text
    else:
        with pytest.raises(TranslationError, match=r"p\.f90:5:16: NUM_THREADS"):
            translate([str(tmp_path / "p.f90")], Options("spmd"))


@pytest.mark.parametrize("reading", ["if (i == 3) b(i) = a(3)", "if (i /= 4) b(i) = a(3)"])
def test_what_an_iteration_may_have_written_itself_is_no_copy_s(tmp_path: Path, reading: str) -> None:
    """The copies were made before the loop: zeros were read in silence."""
    (tmp_path / "p.f90").write_text(
        "program p\ninteger :: i\nreal(8) :: a(9), b(9)\n!$homing distribute a(block), b(block)\na = 0\n"
        f"b = 0\n!$omp parallel do\ndo i = 1, 9\na(i) = i\n{reading}\nend do\nprint *, b(3)\nend program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:10:\d+: all parts get it before the loop"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


def test_a_generic_name_with_several_procedures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.f90").write_text(
        (PROGRAMS / "generic.f90").read_text().replace("smooth_one\n  end", "smooth_one, peak\n  end", 1)
    )
    with pytest.raises(TranslationError, match=r"p\.f90:\d+:\d+: a generic name, one of whose"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


@pytest.mark.parametrize(("shape", "last"), [(":", "n"), ("n", "n=n"), ("n", "n")])
def test_external_procedures_that_need_their_interfaces_are_not_copied(
    tmp_path: Path, shape: str, last: str
) -> None:
    head = f"subroutine in(x, n)\ninteger n\nreal(8) x({shape})\n"
    source = tmp_path / "p.f90"
    source.write_text(
        f"{head}integer i\n!$omp parallel do\ndo i = 1, n\nx(i) = i\nend do\nend\n"
        f"program p\ninterface\n{head}end subroutine\nend interface\ninteger, parameter :: n = 9\n"
        "real(8) a(n), b(n), c(n)\n!$homing distribute a(block), b(cyclic)\n"
        f"call in(a, n)\ncall in(b, {last})\ncall in(c, n)\nprint *, a, b, c\nend\n"
    )
    if (shape, last) == ("n", "n"):
        assert "call in_of_kind_2(" in translate([str(source)], Options("spmd")).outputs[0].text
        return
    with pytest.raises(
        TranslationError, match=r"p\.f90:12:12: 'in' gets .* whose layouts this interface lacks"
    ):
        translate([str(source)], Options("spmd"))


def test_interfaces_of_external_procedures_go_where_they_lack_layouts(workshop: Workshop) -> None:
    source = workshop.place() / "p.f90"
    head = "subroutine fill(x, n)\nimplicit none\ninteger, intent(in) :: n\nreal(8), intent(inout) :: x(n)\n"
    source.write_text(
        f"{head}integer i\n!$omp parallel do\ndo i = 1, n\nx(i) = x(i)*i\nend do\nend subroutine\n"
        f"program p\nimplicit none\ninterface\n{head}end subroutine fill\nend interface\n"
        "integer, parameter :: n = 9\nreal(8) a(n)\n!$homing distribute a(block)\n"
        "a = 2\ncall fill(a, n)\nprint *, a\nend\n"
    )
    workshop.expect_the_same(source, ["spmd"])


def test_internal_files_are_written(tmp_path: Path) -> None:
    """Rank by rank, a WRITE to a unit's number changes nothing, one to a text does."""
    source = tmp_path / "p.f90"
    text = """program p
      implicit none
      integer :: i, unit(4) = 6
      character(3) :: word
      real :: a(9)
!$homing distribute a(block)
      a = 1
!$omp parallel do
      do i = 1, 4
        write (word, '(i3)') unit(i)
        a(i) = len_trim(word)
      end do
      print *, a
end program
"""
    source.write_text(text)
    with pytest.raises(TranslationError, match="'word' is shared and written in a loop"):
        translate([str(source)], Options("mpi"))
    source.write_text(text.replace("write (word", "write (unit(i)"))
    plan = translate([str(source)], Options("spmd")).plan
    assert "unit" not in str(plan.refused)


def test_names_that_blocks_declare_anew_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text("""static double x[20], y[20];
#pragma homing distribute x[block], y[block]
int main(void)
{
    for (int i = 0; i < 20; i++) {
        x[i] = i;
        double y = 3;
        x[i] += y;
    }
#pragma omp parallel for
    for (int i = 0; i < 20; i++)
        y[i] = x[i];
    return (int)y[3];
}
""")
    with pytest.raises(TranslationError) as raised:
        translate([str(source)], Options("spmd"))
    problem = raised.value.problems[0]
    assert (problem.position.line, problem.position.column) == (7, 16)
    assert problem.reason.startswith("declares the distributed 'y' anew in a block")


BLOCKS = """#include <stdio.h>
#include <stdlib.h>
#pragma GCC diagnostic ignored "-Wunused-variable"
int main(void)
{
    int n = 50;
    double *first = malloc(n * sizeof *first);
#pragma homing distribute first[block] extent(n)
#pragma omp parallel for default(none) shared(first, n)
#pragma homing on home(first[i])
    for (int i = 0; i < n; i++) first[i] = i;
    for (int rep = 0; rep < 2; rep++) {
        double *u = malloc(n * sizeof *u), s = 0;
#pragma homing distribute u[block] extent(n)
#pragma omp parallel for
#pragma homing on home(u[i])
        for (int i = 0; i < n; i++) u[i] = first[i] + rep;
        for (int i = 0; i < n; i++) s += u[i];
        printf("%g\\n", s);
        free(u);
    }
    double *behind = malloc(n * sizeof *behind);
#pragma homing distribute behind[block] extent(n)
#pragma omp parallel for default(none) shared(first, behind, n)
#pragma homing on home(first[i])
    for (int i = 0; i < n; i++) behind[i] = first[i];
    if (n > 3) {
        double w[50];
#pragma homing distribute w[block]
        for (int i = 0; i < n; i++) w[i] = behind[i];
        printf("%g\\n", w[n - 1]);
    } else {
#pragma omp parallel for default(none) shared(first, behind, n)
#pragma homing on home(first[i])
        for (int i = 0; i < n; i++) behind[i] = first[i];
    }
    free(first);
    free(behind);
    return 0;
}
"""


def test_arrays_of_blocks_and_between_loops(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text(BLOCKS)
    workshop.expect_the_same(source, ("spmd", "pages"))


def test_an_array_that_each_iteration_makes_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    lines = "int main(void) {\n for (int k = 0; k < 9; k++) {\n double w[50];\n"
    loop = "#pragma omp parallel for\n for (int i = 0; i < 50; i++) w[i] = k;\n"
    source.write_text(f"{lines}#pragma homing distribute w[block]\n{loop}}} }}\n")
    with pytest.raises(TranslationError, match="in every iteration: declare it before the loop"):
        translate([str(source)], Options("spmd"))


def test_arrays_that_are_called_like_types_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.f90"
    source.write_text("program p\n  integer integer(9)\n!$homing distribute integer(block)\nend program\n")
    with pytest.raises(TranslationError, match=r"p\.f90:3:\d+: 'integer': ALLOCATE"):
        translate([str(source)], Options("spmd"))


#: Of which the text is, in one procedure, and what makes that another block than that of the others.
def test_a_pointer_reaches_as_far_as_what_it_is_aligned_with(tmp_path: Path) -> None:
    """In the dimensions that are not cut, too."""
    source = tmp_path / "p.c"
    source.write_text("""#include <stdlib.h>
int main(void) {
    int n = 9;
    double (*x)[n + 4] = calloc(n + 2, sizeof *x), (*y)[n + 4] = calloc(n + 2, sizeof *y);
#pragma homing distribute x[*][cyclic] extent(n + 2, n + 4)
#pragma homing align y[i][j] with x[i][j]
#pragma omp parallel for
    for (int j = 0; j < n; j++) y[2][j] = x[1][j];
    return (int)y[2][2];
}
""")
    plan = translate([str(source)], Options("spmd")).plan
    assert [one.formats() for one in plan.arrays] == ["x(*, cyclic)", "y(*, cyclic)"]


@pytest.mark.parametrize(
    "change",
    [("b(i) = b(i) + a(i + k)", "b(i + k) = a(i)"), ("a(i + k)", "b(i + m)")],
)
def test_an_inner_counter_that_may_be_anywhere_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    """In what is written the element is not known where it is sent; a copy would be too old."""
    text = (
        "program p\ninteger :: i, k, m = 1\nreal(8) :: a(9), b(9)\n!$homing distribute a(block), b(block)\n"
        "!$omp parallel do private(k)\n!$homing on home(b(i))\ndo i = 2, 8\ndo k = -1, 1\n"
        "b(i) = b(i) + a(i + k)\nend do\nend do\nprint *, b(3)\nend program\n"
    )
    source = tmp_path / "p.f90"
    source.write_text(text)
    translate([str(source)], Options("spmd"))
    source.write_text(text.replace(*change))
    with pytest.raises(TranslationError, match=r"p\.f90:9:\d+: the distributed subscript 'i \+ [km]'"):
        translate([str(source)], Options("spmd"))


CUT_NOWHERE = """\
program multiply
  implicit none
  integer, parameter :: n = 24
  integer :: i, j, k
  real(8) :: a(n, n), b(n, n), c(n, n), d(n)
  !$homing distribute a(*, block), b(*, *), c(*, block)
  !$homing align d(i) with b(i, 1)
  do i = 1, n
    b(i, :) = i
  end do
  d = 2
  !$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      a(i, j) = i - j
      c(i, j) = 0
    end do
  end do
  !$omp parallel do private(i, k)
  do j = 1, n
    do i = 1, n
      do k = 1, n
        c(i, j) = c(i, j) + b(i, k)*a(k, j)*d(k)
      end do
    end do
  end do
  print *, sum(c), c(3, 4)
end program
"""


def test_arrays_that_are_cut_nowhere_stay_whole(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "multiply.f90"
    source.write_text(CUT_NOWHERE)
    said = [note.reason for note in translate([str(source)], Options("spmd")).notes]
    assert "'b' is cut nowhere: it stays one array of all threads" in said
    workshop.expect_the_same(source, ("spmd", "mpi"))
    source.write_text(CUT_NOWHERE.replace("  print", "  !$homing redistribute a(*, *)\n  print"))
    with pytest.raises(TranslationError, match="'a' would be cut nowhere"):
        translate([str(source)], Options("spmd"))


def test_parts_that_own_nothing_of_an_aligned_array_have_its_border(
    workshop: Workshop, tmp_path: Path
) -> None:
    """Of three parts of t the last one has no element of a, and reads the last of these for c."""
    source = tmp_path / "border.f90"
    source.write_text("""\
program border
  implicit none
  integer :: i
  real(8) :: a(1:8), c(5:13), d(3:7)
  !$homing template t(-1:15)
  !$homing distribute t(block)
  !$homing align a(i) with t(i + 2)
  !$homing align c(i) with t(i)
  !$homing align d(i) with t(i + 8)
  !$omp parallel do
  do i = 1, 8
    a(i) = i*i
  end do
  !$omp parallel do
  do i = 5, 11
    c(i) = a(i - 3)
  end do
  !$omp parallel do
  do i = 3, 7
    d(i) = 2*i
  end do
  c(12:13) = 0
  !$omp parallel do
  do i = 6, 10
    c(i) = c(i) + d(i - 3)
  end do
  print *, c
end program
""")
    workshop.expect_the_same(source, ("spmd", "mpi"))
