"""How Fortran is read: words are names where they stand as names, and what two parsers read in two ways is
refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.front import fortran, second_opinion
from homing.translate.front.kinds import form
from homing.translate.front.tokens import tokens
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.translation import Options, translate
from homing.translate.tree import Access, Unit, references, statements
from tests.python.translate_programs import PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("front"))


def same_output(
    workshop: Workshop, source: Path, target: str = "spmd", threads: tuple[str, ...] = ("1", "3")
) -> None:
    """The program prints the same before and after its translation."""
    expected = workshop.printed(source)
    parts, _ = workshop.translated(source, target)
    for count in threads:
        assert run_command([parts], workshop.folder, OMP_NUM_THREADS=count) == expected


@pytest.fixture
def program(workshop: Workshop) -> Callable[..., Path]:
    def made(text: str, name: str = "p.f90") -> Path:
        path = workshop.place() / name
        path.write_text(text)
        return path

    return made


def read(text: str, shape: Form = Form.FREE) -> Unit:
    source = SourceFile("p.f90", text, shape)
    return fortran.read(source, scanner.scan(text, "p.f90", shape).directives)


def body(text: str) -> Unit:
    return read(f"subroutine s\nreal :: a(9), b(9), x\n{text}\nend subroutine\n")


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_words_of_the_language_are_names_of_arrays(workshop: Workshop, target: str) -> None:
    same_output(workshop, PROGRAMS / "words.f90", target, ("1",) if target == "mpi" else ("1", "3"))


@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
@pytest.mark.parametrize(
    "name", ["declared_twice.f90", "old_declarations.f", "own_block.f90", "intrinsic_names.f90"]
)
def test_declarations_of_every_kind(workshop: Workshop, target: str, name: str) -> None:
    """DIMENSION beside a type, variables of BLOCK constructs, procedures and variables called like intrinsic
    functions."""
    same_output(workshop, PROGRAMS / name, target, ("1",) if target == "mpi" else ("1", "3"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("if (a) = 3", "assignment"),
        ("if (a) b = 3", "if"),
        ("if (a > 1) then", "if then"),
        ("where(i) = 4", "assignment"),
        ("where (a > 1) a = 4", "where"),
        ("where (a > 1)", "where then"),
        ("do = 3", "assignment"),
        ("do i = 1, 3", "do"),
        ("do 10 i = 1, 3", "do"),
        ("do10i = 1", "assignment"),
        ("end = 3", "assignment"),
        ("end", "end"),
        ("data%x(3) = 4", "assignment"),
        ("data x /3/", "data"),
        ("type(3) = 2", "assignment"),
        ("type(t) :: x", "declaration"),
        ("type is (real)", "guard"),
        ("type :: is", "type definition"),
        ("real function f(x)", "function"),
        ("real function(10)", "declaration"),
        ("pure elemental real(8) function fn(x)", "function"),
        ("call(i) = 4", "assignment"),
        ("write(*, *) a", "write"),
        ("write(i) = 3", "assignment"),
        ("read = b", "assignment"),
        ("p => a(1:3)", "pointer"),
        ("outer: do i = 1, 3", "do"),
        ("go to 10", "goto"),
        ("elsewhere", "elsewhere"),
        ("enddo", "end"),
        ("endwhere(3) = 4", "assignment"),
        ("block data", "block data"),
        ("block", "block"),
        ("select type (x => a)", "select"),
        ("stop(2) = 3", "assignment"),
        ("double precision x", "declaration"),
        ("3.eq.x", "other"),
    ],
)  # fmt: skip
def test_which_statement_it_is(text: str, kind: str) -> None:
    assert form(tokens(text)).kind == kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if (data(i-1) > 0) then\nend if", ["data(i-1)", "i"]),
        ("x = is(3)%in(i) + lambda(if)", ["=x", "is(3)", "i", "lambda(if)", "if"]),
        ("print *, (a(i), i = 1, n)", ["n", "a(1:n)", "i"]),
        ("read *, x, (b(i), i = 1, 9)", ["=x", "=b(1:9)", "i"]),
        ("x = sum([(a(i), i = 1, 3)])", ["=x", "sum([(a(i), i = 1, 3)])", "a(1:3)", "i"]),
        ("forall (i = 1:n) a(i) = b(i + 1)", ["n", "=a(1:n)", "i", "b(:)", "i"]),
        ("x = 1.0_real64 + 2_c_int", ["=x"]),
        ("allocate (a(0:x), stat = is)", ["=a(0:x)", "x", "=is"]),
        ("open (newunit = in, file = 'data(3)')", ["=in"]),
        ("x = a(1); b(2) = 'it''s(3)'", ["=x", "a(1)", "=b(2)"]),
    ],
)
def test_what_is_accessed(text: str, found: list[str]) -> None:
    shown = []
    for statement in statements(body(text).routines[0].body):
        for one in statement.references:
            subscripts = one.subscripts
            sides = [f"{s.low or ''}:{s.high or ''}" if s.section else s.text for s in subscripts or ()]
            brackets = f"({','.join(sides)})" if subscripts is not None else ""
            shown.append(("=" if one.access is Access.WRITE else "") + one.name + brackets)
    assert shown == found


def test_an_array_is_told_from_a_function_of_the_language() -> None:
    unit = read("subroutine s\nreal :: scale(9)\nscale(1) = sqrt(scale(max(2, 3)))\nend subroutine\n")
    assert [r.name for r in references(unit.routines[0].body) if r.intrinsic] == ["sqrt", "max"]


def test_constructs_nest_as_they_are_written() -> None:
    text = "do 10 i = 1, 3\ndo 10 j = 1, 3\nif (x > 1) then\nx = 2\nend if\n10 x = x + 1\n"
    (outer,) = body(text).routines[0].body
    inner = outer.body[0]  # type: ignore[union-attr]
    assert [type(node).__name__ for node in inner.body] == ["Branch", "Statement"]  # type: ignore[union-attr]
    for wrong in ("do i = 1, 3\nif (x > 1) then\nend do\nend if\n", "do i = 1, 3\n", "end if\n"):
        with pytest.raises(TranslationError, match=r"p\.f90:[345]:1: "):
            body(wrong)


def test_two_readings_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        "program p\nreal :: a(9), b(9)\ninteger :: i\n!$homing distribute a(block), b(block)\n"
        "!$omp parallel do\ndo i = 2, 9\n  a(i) = b(i - 1)\nend do\nend program\n"
    )
    translate([str(path)], Options("spmd"))
    theirs = second_opinion._accesses
    monkeypatch.setattr(second_opinion, "_accesses", lambda tree: [r for r in theirs(tree) if r != "b(i-1)"])
    with pytest.raises(TranslationError, match=r"p\.f90:7:3: read in two ways: b\(i-1\) by tree-sitter"):
        translate([str(path)], Options("spmd"))


def test_what_is_newer_than_fortran_2008_may_stand_elsewhere(
    workshop: Workshop, program: Callable[..., Path]
) -> None:
    source = program(
        "module m\n  implicit none (type, external)\ncontains\n"
        "  subroutine any_rank(x)\n    real(8), intent(in) :: x(..)\n"
        "    select rank (x)\n    rank (1)\n      print *, 'one'\n    rank default\n      print *, 'more'\n"
        "    end select\n  end subroutine\nend module\n"
        "program p\n  use m\n  implicit none\n  real(8) :: a(20), b(20)\n  integer :: i, k\n"
        "  !$homing distribute a(block)\n  !$omp parallel do\n  do i = 1, 20\n    a(i) = i\n  end do\n"
        "  do concurrent (k = 1:20)\n    b(k) = k\n  end do\n  call any_rank(b)\n"
        "  print *, sum(a), sum(b)\nend program\n"
    )
    same_output(workshop, source)


def test_a_declaration_that_nobody_reads_has_a_place(program: Callable[..., Path]) -> None:
    with pytest.raises(TranslationError, match=r"p\.f90:2:3: a declaration that is not understood"):
        translate(
            [str(program("program p\n  real(,) :: x\n!$homing distribute a(block)\nend\n"))], Options("spmd")
        )


INCLUDING = """      program p
      implicit none
      include 'inner/size.h'
      integer i
      real*8 b(n)
c$distribute b(block)
!$omp parallel do
      do i = 1, n
        a(i) = i
        b(i) = 2*i
      end do
      print *, sum(a), sum(b), m
{}
      end program
"""


def test_include_lines_are_read(workshop: Workshop, program: Callable[..., Path]) -> None:
    source = program(INCLUDING.format(""), "p.f")
    inner = source.parent / "inner"
    inner.mkdir()
    (inner / "size.h").write_text("      include 'inner/more.h'\n      real*8 a(n)\nc$distribute a(block)\n")
    (inner / "more.h").write_text("      integer n, m\n      parameter (n = 37, m = 3)\n")
    same_output(workshop, source)
    (inner / "more.h").write_text(
        "      integer n, m\n      parameter (n = 37, m = 3)\n      include 'inner/more.h'\n"
    )
    with pytest.raises(TranslationError, match="INCLUDE lines nest more than"):
        translate([str(source)], Options("spmd"))


def test_places_are_those_of_the_file_and_line_that_the_user_wrote(program: Callable[..., Path]) -> None:
    source = program(INCLUDING.format("      call x(a(2))").replace("'inner/", "'"), "p.f")
    (source.parent / "size.h").write_text(
        "      integer n, m\n      parameter (n = 37, m = 3)\n      real*8 a(n)\n\n"
        "      equivalence (a(1), m)\nc$distribute a(block)\n"
    )
    with pytest.raises(TranslationError) as raised:
        translate([str(source)], Options("spmd"))
    places = [str(problem.position) for problem in raised.value.problems]
    assert f"{source.parent}/size.h:6:1" in places


PREPROCESSED = """program p
  implicit none
#define SIZE 40
  integer, parameter :: n = SIZE
  integer :: i
  real(8) :: a(n)
  !$homing distribute a(block)
  !$omp parallel do
#ifdef FAST
  do i = 1, n
#else
  do i = 1, n - 1
#endif
    a(i) = i
  end do
  print *, sum(a)
end program
"""


@pytest.mark.parametrize(("flags", "expected"), [((), 780), (("-DFAST",), 820)])
def test_the_preprocessor_runs_first(
    workshop: Workshop, program: Callable[..., Path], flags: tuple[str, ...], expected: int
) -> None:
    source = program(PREPROCESSED, "p.F90")
    text = translate([str(source)], Options("spmd", flags=flags)).outputs[0].text
    assert "#if" not in text and f'# 17 "{source}"\nend program' in text
    target = workshop.place() / "p.F90"
    target.write_text(text)
    made = workshop.compile(target, target.parent, ["../homing_parts.o", "../module.o"])
    assert float(run_command([made], workshop.folder, OMP_NUM_THREADS="3")) == expected


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_inquiries_keywords_and_the_end_of_a_loop(workshop: Workshop, target: str) -> None:
    same_output(workshop, PROGRAMS / "asked.f90", target, ("1",) if target == "mpi" else ("1", "3"))


UNSEEN = """program p
  implicit none
  real(8) :: a(9), b(9), f
  integer :: i, k
  !$homing distribute a(block), b(block)
  f(k) = {function}
  !$omp parallel do
  do i = 2, 9
    b(i) = {value}
  end do
contains
  real(8) function g(k)
    integer, intent(in) :: k
    g = h(k)
  end function
  real(8) function h(k)
    integer, intent(in) :: k
    real(8), save :: last = 0
    h = a(k) + last
  end function
end program
"""


@pytest.mark.parametrize(
    ("function", "value", "reason"),
    [
        ("2*a(k)", "1", r"p\.f90:6:12: a distributed array in a statement function: a\(k\)"),
        ("2*k", "f(i) + g(i)", r"p\.f90:19:9: a distributed array in a procedure that is called inside"),
    ],
)
def test_accesses_that_a_loop_does_not_show(
    program: Callable[..., Path], function: str, value: str, reason: str
) -> None:
    with pytest.raises(TranslationError, match=reason):
        translate([str(program(UNSEEN.format(function=function, value=value)))], Options("spmd"))


EVERY_STATEMENT = """
200 format (' step ', i4, a(3))
entry other(x)
if (x > 1) return
if (x - 1) 10, 20, 30
10 continue
20 goto (10, 30), i
30 go to 40
40 assign 10 to i
i = 1; goto i
stop 'a(1)'
error stop 2, quiet=.true.
pause
return
print *
print 200, x
print '(a)', a(1)
write (*, 200)
write (6, fmt=200, advance='no', err=10, iostat=i) x, (a(i), b(i), i = 1, 3)
read *, x
read 200, a(1)
read (5, *, end=20) x, b
open (unit=10, file='a(1)', iostat=i)
inquire (unit=10, exist=l, number=i)
inquire (iolength=i) a
close (10)
rewind 10
rewind (10)
backspace 10
endfile 10
flush (6)
wait (10)
allocate (q(0:9, x), r, stat=i, errmsg=c)
allocate (real(8) :: q(3))
allocate (type(t) :: r)
deallocate (q, stat=i)
nullify (p, t%p)
p => null()
p(1:) => a(2:9)
call s
call s()
call t%method(a, n=3)
call s(a, *10)
data x /3/
namelist /n/ a, b
sync all
where (a > 1) a = 2
where (a > 1)
  a = 3
elsewhere (a < 0)
  a = 4
elsewhere
  a = 5
end where
forall (i = 1:9, j = 1:3, a(i) > 0) b(i) = a(j)
forall (i = 1:9)
  a(i) = i
end forall
select case (i)
case (1, 3:4, :0)
case default
end select
select type (y => x)
type is (real)
class is (t)
class default
end select
select rank (x)
rank (1)
rank default
end select
associate (y => a(1), z => x + 1)
end associate
block
  real :: z(3)
  z = 1
end block
critical
end critical
do
  exit
end do
do while (x > a(1))
  cycle
end do
do concurrent (i = 1:3, x > 1)
end do
do, i = 1, 3
enddo
named: if (x > 1) then
else if (x > 2) then named
elseif (x > a(3)) then
else
endif named
x = a(1)%y(2)%z + t(1)(2:3) // "it's" // 'a'
x = (/ 1, 2 /) + [real :: 1, 2] - (1.0, 2.0) + int(z'1F')
l = .not. l .and. x .myop. 2 .eqv. 3.eq.i
"""


def test_every_statement_is_read() -> None:
    unit = body(EVERY_STATEMENT)
    unread = [one.code for one in statements(unit.routines[0].body) if one.unread is not None]
    assert not unread


NAS = """      program bt
      include 'header.h'
      integer step
 1000 format(//, ' NAS (of their form)', /)
      write(*, 1000)
      do step = 1, 3
         if (step .gt. 99 .or.
     >       n .gt. 99) goto 999
         call adi
      end do
 999  continue
      end
      subroutine adi
      call x_solve
      return
      end
      subroutine x_solve
      include 'header.h'
      integer i, j
!$omp parallel do default(shared) private(i,j)
      do 10 j = 2, n
      do 10 i = 1, n
         rhs(i,j) = rhs(i,j-1)*dt + u(i,j)
 10   continue
      end
"""


def test_programs_of_the_nas_form_are_read(program: Callable[..., Path]) -> None:
    source = program(NAS, "bt.f")
    (source.parent / "header.h").write_text(
        "      integer n\n      parameter (n=12)\n      double precision u(n,\n     >     n), rhs(n,n), dt\n"
        "      common /fields/ u, rhs\n      common /global/ dt\n"
    )
    result = translate([str(source)], Options("upm"))
    assert f"upm: {source}:6: time loop over step in bt, 1 parallel construct in it" in result.report
    assert any("hot: rhs (/fields/)" in line and "x_solve:23" in line for line in result.report)


MODULE = """module grid
  implicit none
  integer, parameter :: n = 30
  real(8), allocatable :: u(:), v(:)
  !$homing distribute u(block), v(block)
contains
  subroutine init
    allocate (u(n), v(n))
    u = 1; v = 0; u(3) = 5
  end subroutine
  subroutine step
    integer :: i
    !$omp parallel do
    do i = 2, n - 1
      v(i) = u(i - 1) + u(i + 1)
    end do
    u = v
  end subroutine
end module
"""
USER = """module more
  use grid
end module
program p
  use more
  use grid, only: u
  use grid, only: w => v, step
  implicit none
  call init
  call step
  print *, sum(u)
end program
"""


def test_modules_are_used_in_pieces_and_through_others(
    workshop: Workshop, program: Callable[..., Path]
) -> None:
    user = USER.replace("w => v", "v")
    source = program(MODULE + user)
    same_output(workshop, source)
    (source.parent / "user.f90").write_text(user)
    (source.parent / "grid.f90").write_text(MODULE)
    paths = [str(source.parent / name) for name in ("user.f90", "grid.f90")]
    texts = [output.text for output in translate(paths, Options("spmd")).outputs]
    assert "call homing_collect" in texts[0]
    with pytest.raises(
        TranslationError, match=r"p\.f90:26:19: gives the distributed 'v' another name: w => v"
    ):
        translate([str(program(MODULE + USER))], Options("spmd"))
