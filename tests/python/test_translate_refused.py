"""What cannot be translated is an error with its place; what is not concerned stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, Result, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import PROGRAMS, Workshop, homing

HEAD = """program p
  implicit none
  integer, parameter :: n = 9
  integer :: i, j, k, index(n)
  real(8) :: a(n, n), b(n, n), s
{declarations}
!$homing distribute (*, block) :: a
"""


def fortran(folder: Path, declarations: str, body: str, target: str = "spmd") -> Result:
    path = folder / "p.f90"
    path.write_text(HEAD.format(declarations=declarations) + body + "end program\n")
    return translate([str(path)], Options(target))


#: Types of which parts, as bytes, are not all; names of components, and comments, mean nothing.
TYPES = """  type :: plain
    integer :: pointer = 1 ! , allocatable :: no
  end type
  type :: list
    type(plain) :: first
    real, &
      allocatable :: more(:)
  end type list
  type, extends(list) :: longer
  end type
  type holder
    type(longer) :: inner(2)
  end type
  type :: able
    integer :: k
  contains
    procedure, nopass :: act => sub
  end type
  type, extends(able) :: abler
  end type
  {} :: z(n)
!$homing distribute z(block)"""
ROWS = "!$homing distribute (block, *) :: b"
LOOP = "!$omp parallel do private(i)\n do j = 1, n\n  do i = 1, n\n   {}\n  end do\n end do\n"
REFUSED = [
    ("", LOOP.format("a(i, j*j) = 0"), "not a loop's index plus a number"),
    ("", LOOP.format("a(i, index(j)) = 0"), "not a loop's index plus a number"),
    (
        "real :: row(n*n)\n!$homing distribute row(block)",
        LOOP.format("row((j - 1)*n + i) = 0"),
        "declare rows as a dimension, row(i, j)",
    ),
    ("", LOOP.format("s = s + a(1, j + i)").replace("(i)", "(i) reduction(+:s)"), "say ON HOME(a(1, j))"),
    ("", LOOP.format("a(2, j + i) = 1"), "plus a number: write at 'j' alone, and read around it"),
    ("", LOOP.format("a(i, j) = 0; a(i, 2*j) = 1"), "not the index of a shared-out loop plus a number"),
    ("!$homing distribute (*, cyclic) :: b", LOOP.format("b(i, 2*j) = 1"), "not a loop's index plus"),
    ("", LOOP.format("a(i, j) = a(i, index(j))"), "'index(j)'"),
    ("  equivalence (a(1, 1), s)", "", "EQUIVALENCE"),
    (TYPES.format("type(holder)"), "", "'z' has components with memory of their own (ALLOCATABLE 'more')"),
    (TYPES.format("type(plain)"), "", None),
    (TYPES.format("type(abler)"), "", "'z' is of a type with procedures of its own"),
    (TYPES.format("class(plain), allocatable").replace("z(n)", "z(:)"), "", "'z' is polymorphic"),
    ("  common /blk/ a\n!$homing processors p(2)", "", "COMMON"),
    ("!$homing distribute a(block, *)", "", "twice"),
    ("!$homing distribute b(cyclic(3 + unknown), *)", "", "'unknown' is not declared"),
    ("!$homing distribute b(gen_block(sizes), *)", "", "'sizes' is not declared"),
    ("integer :: w(8)\n!$homing distribute b(gen_block(w), *)", "w = 9\n", "'w' has no value yet when"),
    ("!$homing processors p(q)\n!$homing distribute b(block, *) onto p", "", "'q' is not declared"),
    ("", "!$homing redistribute a(*, cyclic(n*m))\n", "'m' is not declared"),
    (
        "",
        "associate (a => b + 1)\n!$omp parallel do\ndo j = 1, n\n b(j, 1) = a(j, 1)\nend do\nend associate\n",
        "means something else by the name of the distributed 'a'",
    ),
    (
        "",
        "associate (c => a(1:2, :))\n!$omp parallel do\ndo j = 1, n\n a(1, j) = 1\nend do\nend associate\n",
        "ASSOCIATE around parallel code names a value or piece of a distributed array",
    ),
    (
        "",
        "block\nreal :: c(n)\n!$homing distribute c(block)\nc = 1\nend block\n",
        "'c' is declared in a BLOCK",
    ),
    (
        "  real, allocatable :: c(:)\n  real :: d(n)\n!$homing distribute c(block)\n!$homing align d with c",
        "",
        "'d' is there before 'c' is: make it ALLOCATABLE, too",
    ),
    ("!$homing distribute b(block)", "", "2 dimensions, not 1"),
    ("!$homing distribute c(block)", "", "not declared"),
    ("!$homing align b(i, j) with c(i, j)", "", "has no distribution"),
    ("!$homing align b(i, j) with a(i, 2*j)", "", "index plus a number"),
    ("!$homing shadow a(0, 1)", LOOP.format("if (j > 2) a(i, j) = a(i, j - 2)"), "SHADOW allows"),
    ("", "  call part(a(1, 2))\n", None),
    ("", "!$omp parallel\n goto 10\n a(1,1) = 0\n!$omp end parallel\n10 continue\n", "jumps out"),
    (
        "",
        "!$omp parallel do\n do j = 1, n\n  if (j > 3) goto 10\n  a(1,j) = 0\n end do\n10 continue\n",
        "jumps out",
    ),
    ("  integer :: hm_part", "", "names that begin with hm_"),
    ("", "!$omp parallel do ordered(1)\n do j = 1, n\n  a(1,j) = s\n end do\n", "ORDERED"),
    ("", "!$omp parallel default(private) shared(n)\n a = 0\n!$omp end parallel\n", "SHARED"),
    ("", "!$omp parallel private(a)\n a = 0\n!$omp end parallel\n", "PRIVATE"),
    ("", "!$omp parallel\n a(1, 2) = 0\n!$omp end parallel\n", "SINGLE"),
    (
        "",
        "!$omp parallel\n!$omp critical\n a(1, 2) = 0\n!$omp end critical\n!$omp end parallel\n",
        "CRITICAL",
    ),
    ("", LOOP.format("a(i, 3) = 0; b(i, j) = a(i, j)"), "same owner's element"),
    (ROWS, LOOP.format("b(i, j) = b(i - 1, j)"), "over 'i' may need what an earlier one wrote"),
    (ROWS, LOOP.format("b(i, j) = b(1, j)"), "over 'i' may need what an earlier one wrote"),
    (ROWS, LOOP.format("s = s + b(i, j); b(i, j) = s"), "leaves a value in 's' for the next one"),
    *(
        (ROWS, LOOP.format(f"{ways}; b(i, j) = s"), "leaves a value in 's' for the next one")
        for ways in [
            "if (i > 3) then; s = 1; else if (i > 5) then; s = 2; end if",
            "if (i > 3) then; s = 1; else; k = 2; end if",
            "select case (i); case (1); s = 2; case (2:); s = 3; end select",
        ]
    ),
    (
        ROWS,
        LOOP.format("b(i, j) = 0; s = i\n  end do\n  do k = 1, 2\n   index(k) = int(s)"),
        "comes behind the loop",
    ),
    (
        ROWS,
        LOOP.format("b(i, j) = 0\n  end do\n  do k = 1, 2\n   index(k) = j"),
        "would be done by each part",
    ),
    (ROWS, LOOP.format("b(i, j) = 0\n  end do\n  do k = 1, 2\n   print *, k"), "would be done by each part"),
    (ROWS, LOOP.format("b(i, j) = 0\n   if (i > 3) exit"), "leaves the loop over 'i'"),
    ("", LOOP.replace("1, n", "1, n, index(3)", 1).format("a(i, j) = 0"), "neither a number nor a variable"),
    (
        "",
        LOOP.replace("1, n", "1, n, k", 1).format("a(i, j) = 0; k = 2"),
        "'k' of the loop over 'j' is changed in",
    ),
    (
        "",
        LOOP.replace("1, n", "1, n, s", 1).format("a(i, j) = 0"),
        "'s' of the loop over 'j' is no integer variable",
    ),
    ("", "do k = 1, 2\n!$homing redistribute a(block, *)\nend do\n", "REDISTRIBUTE it back"),
    ("", "if (n > 2) then\n!$homing redistribute a(block, *)\nend if\n", "REDISTRIBUTE it back"),
    (
        "",
        "do k = 1, 2\n!$homing redistribute a(block, *)\nif (k > 1) exit\n"
        "!$homing redistribute a(*, block)\nend do\n",
        "where it leads",
    ),
    (
        "",
        "!$homing redistribute a(block, *)\ngoto 10\n!$homing redistribute a(*, block)\n10 continue\n",
        "where it leads",
    ),
    ("", "!$homing redistribute b(block, *)\n", "not distributed"),
    ("", "!$homing on home(a(1, j))\n do j = 1, n\n  b(1, j) = 0\n end do\n a(1,1) = 0\n", None),
]


def test_a_home_of_what_has_no_value_before_the_loop(tmp_path: Path) -> None:
    """NEST names a loop that is not there: each thread has another value in `i`, or none."""
    loop = "!$homing nest(j, i), on home(b(i, j))\n!$omp parallel do private(i)\n"
    loop += " do j = 1, n\n  b(:, j) = 0\n end do\n"
    with pytest.raises(TranslationError, match=r"p\.f90:8:1: a distributed dimension's subscript is not"):
        fortran(tmp_path, "!$homing distribute (block, block) :: b", loop, "pages")


@pytest.mark.parametrize(
    ("head", "declarations", "more"),
    [
        ("", "save\ninteger :: k", ""),
        ("", "save :: k\ninteger :: k", ""),
        ("", "data k /0/", ""),
        ("", "", "block\ninteger, save :: calls = 0\nend block\n"),
        (" bind(c)", "", ""),
        ("", "", "end\nsubroutine other\ncontains\nsubroutine sweep\nend subroutine\n"),
    ],
)
def test_procedures_that_have_no_copies(tmp_path: Path, head: str, declarations: str, more: str) -> None:
    """What they keep would be there several times, or another procedure has the name."""
    (tmp_path / "p.f90").write_text(
        "program p\nreal :: x(9), y(9)\n!$homing distribute x(block), y(cyclic)\ncall sweep(x)\n"
        f"call sweep(y)\nend program\nsubroutine sweep(a){head}\n{declarations}\nreal :: a(9)\n"
        f"!$omp parallel do\ndo i = 1, 9\na(i) = a(i) + k\nend do\n{more}end subroutine\n"
    )
    with pytest.raises(TranslationError, match="differently distributed arrays"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


def test_what_a_call_has_anew_where_save_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.f90").write_text(
        "subroutine s(n)\nsave\nreal :: w(n)\n!$homing distribute w(block)\nw = 0\nend subroutine\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:3:9: 'w' begins anew in each call: SAVE"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


@pytest.mark.parametrize(("declarations", "body", "reason"), REFUSED)
def test_refused_with_place_and_reason(
    tmp_path: Path, declarations: str, body: str, reason: str | None
) -> None:
    if reason is None:
        fortran(tmp_path, declarations, body)
        return
    with pytest.raises(TranslationError) as caught:
        fortran(tmp_path, declarations, body)
    assert any(reason in problem.reason for problem in caught.value.problems), str(caught.value)
    for problem in caught.value.problems:
        assert problem.position.file.endswith("p.f90")
        assert problem.position.line > 1
        assert problem.text


def test_a_step_is_found_not_positive_when_the_program_runs(tmp_path: Path) -> None:
    """Which way a loop goes is decided before: a variable's sign is not known then."""
    loop = LOOP.replace("1, n", "n, 1, k", 1).format("a(i, j) = j")
    text = HEAD.format(declarations="") + "  k = -1\n" + loop + "  print *, sum(a)\nend program\n"
    (tmp_path / "p.f90").write_text(text)
    done = homing(tmp_path, "--to", "spmd", "--", "gfortran", "-fopenmp", "p.f90", "-o", "p")
    assert done.returncode == 0, done.stderr
    run = subprocess.run([tmp_path / "p"], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode != 0 and not run.stdout
    assert "p.f90:10: the step k is not positive" in run.stderr


SHARE = "do k = 1 + omp_get_thread_num(), n, omp_get_num_threads()\n{0} = {0} + k\nend do\n"
EVERY_RANK = [
    "!$omp do\ndo k = 1, n\n s = s + index(k)\nend do\n",
    SHARE.format("s"),
    SHARE.format("t") + "s = s + t\n",
    "s = s + t + 1\n",
    "!$omp master\ns = s + 2\n!$omp end master\n",
    "call add(s)\n",
    "call add(t)\ns = s + t\n",
]


@pytest.mark.parametrize("rest", EVERY_RANK)
def test_a_sum_that_every_rank_would_add(tmp_path: Path, rest: str) -> None:
    """Ranks were added up that had all added the same: a sum was twice what it is, with two."""
    declared = "  real(8) :: t\n  integer, external :: omp_get_thread_num, omp_get_num_threads\n"
    body = (
        "!$omp parallel reduction(+:s) private(t)\nt = 0\n!$omp do\ndo j = 1, n\n a(1, j) = j\n s = s + 1\n"
        f" t = t + j\nend do\n{rest}!$omp end parallel\ncontains\nsubroutine add(x)\nreal(8) :: x\n"
        "x = x + 1\nend subroutine\n"
    )
    fortran(tmp_path, declared, body)
    with pytest.raises(TranslationError, match="every rank adds to 's' here") as caught:
        fortran(tmp_path, declared, body, "mpi")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "rest", ["s += omp_get_thread_num();", "add(&s);", "t++; s += t;", "s -= *w * t - 1;"]
)
def test_the_same_in_c(tmp_path: Path, rest: str) -> None:
    (tmp_path / "p.c").write_text(
        "#include <omp.h>\ndouble a[9], w[9];\n#pragma homing distribute a[block]\n"
        "static void add(double *x) { *x += 1; }\n"
        "int main(void) {\ndouble s = 0;\n#pragma omp parallel reduction(+ : s)\n{\n"
        "double t = 0, u[2] = {0};\n"
        f"#pragma omp for\nfor (int i = 0; i < 9; i++) a[i] = i, t += i, u[0] += 1;\n{rest}\n"
        "s += 2 * t - u[0];\n}\nreturn s > 0;\n}\n"
    )
    with pytest.raises(TranslationError, match=r"^\S+p\.c:12:\d+: every rank adds to 's' here") as caught:
        translate([str(tmp_path / "p.c")], Options("mpi"))
    assert len(caught.value.problems) == 1


VALUES = [
    ("f90", "s = cleared(a) + a(1)", "it changes 'a', which stands there, too"),
    ("f90", "b(3) = cleared(b)", "it changes 'b'"),
    ("f90", "if (n > 3) s = total(a) + a(1)", "a condition may leave the call out"),
    ("f90", "if (n > 3 .and. total(a) > a(1)) s = 2", "a condition may leave the call out"),
    ("f90", "s = merge(total(a), 0d0, k > 1) + a(2)", "a condition may leave the call out"),
    ("f90", "print *, (total(a, dble(k)), a(k), k = 1, 3)", "depends on an implied DO"),
    ("f90", "print *, (most(a), a(k), k = 1, 3)", "may stand in an implied DO"),
    ("f90", "s = total(a, a(2)) + a(3)", "among its arguments"),
    ("f90", "print *, calls, most(a), a(1)", "it changes 'calls'"),
    ("f90", "s = most(a) + bump(s) + a(1)", "the calls of it and of 'bump' may matter"),
    ("f90", "print *, each(a), a(1)", "its value is no number"),
    ("f90", "s = total(a, &\n2d0) + a(1)", "goes over several lines"),
    ("f90", "s = foreign(k) + total(a) + a(1)", "what 'foreign' writes is not seen"),
    ("f90", "call tell(a(1), total(a, a(2)))", "among its arguments"),
    ("c", "s = k && total(a, 2) > a[3];", "a condition may leave the call out"),
    ("c", "s = k ? total(a, 2) : a[1];", "a condition may leave the call out"),
    ("c", "k = 1, s = total(a, k) + a[1];", "other expressions come before it"),
    ("c", "s = total(a, k) + (k = 4) + a[1];", "the statement changes 'k', which it gets"),
    ("c", "s = TOTAL(a) + a[1];", "read them into variables before"),
    ("c", "s = cleared(b) + b[1];", "it changes 'b'"),
    ("c", "s = norm() + cleared(b) + a[1];", "the order of the calls may matter"),
    ("c", "s = *where(a) + a[1];", "its value is a pointer"),
]
MORE_VALUES = {
    "f90": """  function cleared(x) result(m)
    real(dp), intent(inout) :: x(:)
    real(dp) :: m
    !$homing distribute x(block)
    integer :: k
    !$omp parallel do
    do k = 1, size(x)
      x(k) = 0
    end do
    m = 1
  end function
  function each(x) result(m)
    real(dp), intent(in) :: x(:)
    real(dp) :: m(2)
    !$homing distribute x(block)
    m = 0
  end function
  real(dp) function bump(y)
    real(dp), intent(in) :: y
    calls = calls + 1
    bump = y
  end function
  subroutine tell""",
    "c": """#define TOTAL(x) total(x, 1)
static double cleared(double x[N]) {
#pragma homing distribute x[block]
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        x[i] = 0;
    return 1;
}
static double kept;
static double *where(double x[N]) {
#pragma homing distribute x[block]
    kept = 0;
#pragma omp parallel for reduction(+ : kept)
    for (int i = 0; i < N; i++)
        kept += x[i];
    return &kept;
}
int main(void) {
    double s = cleared(a) + *where(a);
    int k = 1;
    (void)s, (void)k;""",
}


@pytest.mark.parametrize(("suffix", "statement", "reason"), VALUES)
def test_a_function_that_cannot_be_called_before(
    tmp_path: Path, suffix: str, statement: str, reason: str
) -> None:
    text = (PROGRAMS / f"function_values.{suffix}").read_text()
    if suffix == "c":
        text = text.replace("int main(void) {", MORE_VALUES[suffix]).replace("double s = total", "s = total")
        text = text.replace('    printf("total', statement + '\n    printf("total')
    else:
        text = text.replace("  subroutine tell", MORE_VALUES[suffix], 1).replace(
            "only: total", "only: calls, bump, cleared, each, total"
        )
        text = text.replace("  print *, total(a), a(1)", f"{statement}\n  print *, total(a), a(1)")
        text = text.replace("b(n), s\n", "b(n), s\n  real(8), external :: foreign\n")
    assert statement in text
    path = tmp_path / f"p.{suffix}"
    path.write_text(text)
    with pytest.raises(TranslationError) as caught:
        translate([str(path)], Options("spmd"))
    assert [reason in problem.reason for problem in caught.value.problems] == [True], str(caught.value)


def test_standard_input_over_ranks(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match="rank 0"):
        fortran(tmp_path, "", "  read *, s\n  a = s\n", "mpi")


def test_an_entry_of_a_procedure_with_distributed_arrays(tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        "subroutine first(x, n)\n integer :: n, x(n), i\n!$omp parallel do\n do i = 1, n\n  x(i) = i\n"
        " end do\n return\n entry second(x, n)\n print *, x(n)\nend subroutine\n"
        "program p\n integer :: a(9)\n!$homing distribute a(block)\n call first(a, 9)\n call second(a, 9)\n"
        "end program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:8:2: an ENTRY of a procedure"):
        translate([str(path)], Options("spmd"))
    translate([str(path)], Options("pages"))  # where arguments stay what they are


@pytest.mark.parametrize("length", ["*", "m", "n"])
def test_a_length_that_is_known_when_the_program_runs(tmp_path: Path, length: str) -> None:
    """The type of the parts cannot have it; that of a constant is everywhere the same."""
    path = tmp_path / "p.f90"
    path.write_text(
        "program p\n integer, parameter :: n = 3\n character(3) :: c(5)\n!$homing distribute c(block)\n"
        f" call cut(c, 3)\n print *, c\ncontains\n subroutine cut(s, m)\n  integer :: m, i\n"
        f"  character({length}) :: s(:)\n!$omp parallel do\n  do i = 1, size(s)\n   s(i) = 'xyz'\n  end do\n"
        " end subroutine\nend program\n"
    )
    if length == "n":
        translate([str(path)], Options("spmd"))
        return
    with pytest.raises(TranslationError, match=r"p\.f90:10:\d+: the length of 's' is known when"):
        translate([str(path)], Options("spmd"))


@pytest.mark.parametrize("dealt", ["gen_block(s)", "cyclic(k)"])
def test_what_was_dealt_out_anew_by_other_numbers_is_not_taken_for_aligned(
    tmp_path_factory: pytest.TempPathFactory, dealt: str
) -> None:
    """The words are the same, the parts are not: elements of other parts were written in silence."""
    workshop = Workshop(tmp_path_factory.mktemp("anew"))
    path = workshop.place() / "p.f90"
    path.write_text(
        "program p\n integer :: s(4) = 3, k = 2, a(12), b(12), i\n"
        f"!$homing distribute a({dealt})\n!$homing align b(i) with a(i)\n"
        "!$omp parallel do\n do i = 1, 12\n  a(i) = i\n  b(i) = 0\n end do\n"
        f" s(1) = 2\n s(2) = 4\n k = 3\n!$homing redistribute a({dealt})\n"
        "!$omp parallel do\n do i = 2, 12\n  b(i) = a(i) + a(i - 1)\n end do\n"
        " print *, sum(a), sum(b)\nend program\n"
    )
    program, _ = workshop.translated(path, "spmd")
    environment = {**os.environ, "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3
    assert "'a', dimension 1, and 'b', dimension 1, are used together and lie apart" in done.stderr


def test_a_directive_for_an_array_of_a_module_names_the_module(tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        "module sim\n  real(8) :: u(9)\nend module\nprogram p\n  use sim, only: v => u\n"
        "  !$homing distribute v(block)\n  v = 1\n  print *, v(3)\nend program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:6:3: 'v' is declared in 'sim': distribute it there"):
        translate([str(path)], Options("spmd"))
