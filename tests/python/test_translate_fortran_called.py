"""Fortran: procedures that use the distributed arrays around them, called in loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command

HEAD = """module fields
  implicit none
  integer, parameter :: dp = kind(1d0), n = 40, m = 6
  real(dp) :: u(n), v(n), w(n), a(m, n), b(m, n), c = 3
  integer :: kk = 2
!$homing distribute u(block), v(block), w(block), a(*, block), b(*, block)
contains
"""
PROCEDURES = """  ! Names that the caller has, too; a value that changes its type.
  pure integer function whole(i)
    integer, intent(in) :: i
    real(dp) :: s
    s = c
    if (i > 1) s = s + u(i - 1)
    whole = 2*u(i) + s
  end function
  function half(k) result(r)
    integer, intent(in) :: k
    integer, parameter :: two = 2
    real(dp) :: r, q(two)
    q(1) = u(k)/two
    q(2) = whole(k)
    r = sum(q) + 1/3
    return
  end function
  subroutine put(i, s, y)
    integer, intent(in) :: i
    real(dp), intent(inout) :: s
    real(dp), intent(out) :: y
    integer :: j
    y = 0
    if (mod(i, 7) == 0) return
    do j = 1, kk
      if (j > 5) exit
      y = y + u(i)*j
    end do
    if (i > n - 3) return
    s = s + y
  end subroutine
  subroutine choose(i, k)
    integer, intent(in) :: i, k
    integer :: t
    t = i + k
    select case (mod(i, 3))
    case (0)
      v(i) = u(i) + t
    case default
      v(i) = -u(i)
    end select
    where (b(:, i) < 1)
      b(:, i) = a(:, i)
    end where
  end subroutine
  subroutine row(x, j)
    real(dp), intent(inout) :: x(m, n)
    integer, intent(in) :: j
    integer :: i
    do i = 2, m - 1
      x(i, j) = a(i - 1, j) + a(i + 1, j)
    end do
  end subroutine
  subroutine column(x, j)
    real(dp), intent(inout) :: x(:, :)
    integer, intent(in) :: j
    x(:, j) = x(:, j) + a(:, j)
  end subroutine
  ! Its argument changes, and what was given by that argument's value does not.
  subroutine change(k, s, y)
    integer, intent(in) :: k
    real(dp), intent(inout) :: s
    real(dp), intent(in) :: y
    s = s + u(k)
    w(k) = w(k) + s + y
  end subroutine
end module
"""
MAIN = """program called
  use fields
  implicit none
  integer :: i, j, t
  real(dp) :: s, x
  s = 0
!$omp parallel do private(j)
  do i = 1, n
    u(i) = mod(i*7, 10)*0.37_dp
    v(i) = 0
    w(i) = i
    do j = 1, m
      a(j, i) = i + 2*j
      b(j, i) = mod(i + j, 2)
    end do
  end do
!$omp parallel do reduction(+:s)
  do i = 2, n - 1
    if (i > 3) then
      v(i) = whole(i)/2 + half(i)
    else
      v(i) = half(k=i) - half(i + 1)*whole(i)
    end if
    if (i > 5) s = s + whole(i)*w(i)
  end do
  print '(3es14.6)', s, v
!$omp parallel do reduction(+:s) private(t, x)
  do i = 1, n
    call put(i, s, w(i))
    t = 3
    if (i > 2) call choose(i, t*2 - 1)
    call row(b, i)
    call column(j=i, x=b)
    x = i
    call change(i, x, x + 1)
    call change(i, x, (x))
    w(i) = w(i) + twice(i)
  end do
  print '(3es14.6)', s, v, w, b
  print '(3es14.6)', half(4), real(whole(5), dp)
contains
  real(dp) function twice(l)
    integer, intent(in) :: l
    twice = v(l)*2
  end function
end program
"""


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_they_are_written_out(tmp_path_factory: pytest.TempPathFactory, target: str) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("called"))
    source = workshop.place() / "p.f90"
    source.write_text(HEAD + PROCEDURES + MAIN)
    program, _ = workshop.translated(source, target, checked=target == "spmd")
    start = [*MPIRUN, "-n", "3"] if target == "mpi" else []
    printed = run_command([*start, program], workshop.folder, OMP_NUM_THREADS="1" if start else "4")
    assert printed == workshop.printed(source)


STEP = """  subroutine step(i, alpha)
    integer, intent(in) :: i
    real(dp), intent(in) :: alpha
    if (i == 1 .or. i == n) return
    v(i) = u(i) + alpha*(u(i - 1) - 2*u(i) + u(i + 1))
  end subroutine
end module
"""
LOOP = """program p
  use fields
  implicit none
  integer :: i
!$omp parallel do
  do i = 1, n
    call step(i, 0.1_dp)
  end do
  print *, v
end program
"""


def test_of_another_file_with_the_lines_it_has_there(tmp_path: Path) -> None:
    (tmp_path / "fields.f90").write_text(HEAD + STEP)
    (tmp_path / "p.f90").write_text(LOOP)
    result = translate([str(tmp_path / "fields.f90"), str(tmp_path / "p.f90")], Options("spmd"))
    text = next(one.text for one in result.outputs if one.path.endswith("p.f90"))
    assert "call step" not in text and "v(i) = u(i) + (0.1_dp)*" in text
    line = (HEAD + STEP).splitlines().index("    v(i) = u(i) + alpha*(u(i - 1) - 2*u(i) + u(i + 1))") + 1
    assert f'# {line} "{tmp_path / "fields.f90"}"' in text


def test_fixed_form_breaks_what_is_too_long(tmp_path: Path) -> None:
    text = (
        (HEAD + STEP + LOOP)
        .replace(", w(block), a(*, block), b(*, block)", "")
        .replace(", a(m, n)", ", w(n)")
    )
    text = text.replace("real(dp) :: u(n), v(n), w(n), w(n), b(m, n), c = 3", "real(dp) :: u(n), v(n)")
    text = text.replace("0.1_dp", "0.1_dp*(1.0_dp + 2)/3.0_dp")
    lines = [f"      {line}" if line[:1] != "!" else line for line in text.splitlines()]
    (tmp_path / "p.f").write_text("\n".join(lines) + "\n")
    output = translate([str(tmp_path / "p.f")], Options("spmd")).outputs[0].text.splitlines()
    made = next(line for line in output if "(0.1_dp*" in line)
    assert made.startswith("      ") and "CALL STEP" not in "".join(output).upper()
    assert all(len(line) <= 72 for line in output if not line.startswith("# "))


#: A procedure, what the program declares, a clause, and the body of the loop: the call would mean something
#: else in the loop, or the procedure cannot be said there.
REFUSED = [
    ("real(dp) function f(i)|integer :: i|f = u(i) + c", "", "private(c)", "c = i|v(i) = f(i)"),
    ("real(dp) function f(i)|integer :: i|f = u(i) + kk", "", "default(private) shared(v)", "v(i) = f(i)"),
    ("real(dp) function f(k)|integer :: k|f = u(k)|u(k) = 1", "", "", "v(i) = f(i)"),
    ("real(dp) function f(k)|integer :: k|real(dp), save :: s = 0|f = u(k) + s", "", "", "v(i) = f(i)"),
    ("real(dp) function f(k)|integer :: k|f = u(k)|if (k > 3) f = f(1)", "", "", "v(i) = f(i)"),
    ("real(dp) function f(k)|integer :: k|f = u(k)", "", "", "if (f(i) > 3) v(i) = 1"),
    (
        "real(dp) function f(k)|integer :: k|f = u(k)",
        "",
        "",
        "block|real(dp) :: u|u = 1|v(i) = f(i) + u|end block",
    ),
    ("subroutine f(k)|integer :: k|v(k) = u(k)|print *, k", "", "", "call f(i)"),
    (
        "subroutine f(k)|integer :: k|if (k > 1) then|if (k > 2) return|end if|v(k) = u(k)",
        "",
        "",
        "call f(i)",
    ),
    ("subroutine f(k, y)|integer :: k|real(dp) :: y|w(k) = 2|v(k) = u(k) + y", "", "", "call f(i, w(i))"),
    (
        "subroutine f(x, k, n)|integer :: k, n|real(dp) :: x(m, n)|x(1, k) = u(k)",
        "",
        "",
        "call f(b, i, 3)",
    ),
    (
        "real(dp) function f(k)|integer :: k|integer, parameter :: sp = 4|f = u(k)/3.0_sp",
        "",
        "",
        "v(i) = f(i)",
    ),
    (
        "subroutine f(k, y)|integer :: k|real(dp) :: y|v(k) = u(k) + g(y)|end subroutine|"
        "real(dp) function g(y)|real(dp) :: y|y = y + 1|g = y",
        "",
        "",
        "call f(i, 2*w(i))",
    ),
    (
        "subroutine f(k, y)|integer :: k|real(dp) :: y|k = 1|y = u(k)",
        "integer :: k",
        "private(k)",
        "k = i|call f(k, v(k))",
    ),
]


@pytest.mark.parametrize(("procedure", "declared", "clause", "body"), REFUSED)
def test_calls_that_would_mean_something_else_are_refused(
    tmp_path: Path, procedure: str, declared: str, clause: str, body: str
) -> None:
    last = procedure.rpartition("end subroutine|")[2]
    end = "end subroutine" if last.startswith("subroutine") else "end function"
    program = f"program p\nuse fields\nimplicit none\ninteger :: i\n{declared}\n!$omp parallel do {clause}\n"
    program += f"do i = 1, n\n{body}\nend do\nprint *, v\nend program\n"
    text = f"{HEAD}{procedure}\n{end}\nend module\n{program}"
    (tmp_path / "p.f90").write_text(text.replace("|", "\n"))
    with pytest.raises(TranslationError):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


FUNCTION = "real(dp) function f(k)\ninteger :: k\nf = u(k) + c\nend function\nend module\n"


def calling(use: str, declared: str = "") -> str:
    program = f"program p\n{use}\nimplicit none\ninteger :: i\n{declared}\n!$omp parallel do\n"
    return program + "do i = 1, n\nv(i) = f(i)\nend do\nprint *, v\nend program\n"


@pytest.mark.parametrize(
    ("specification", "use", "declared"),
    [
        ("", "use fields, only: n, dp, v, f", ""),
        ("", "use fields, cc => c", "real(dp) :: c = 9"),
        ("private :: c", "use fields", ""),
        ("private\npublic :: n, dp, u, v, f", "use fields", ""),
    ],
)
def test_names_that_the_caller_does_not_have_are_not_brought(
    tmp_path: Path, specification: str, use: str, declared: str
) -> None:
    head = HEAD.replace("contains\n", f"{specification}\ncontains\n")
    (tmp_path / "p.f90").write_text(head + FUNCTION + calling(use, declared))
    with pytest.raises(TranslationError, match="called inside a parallel region"):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


@pytest.mark.parametrize(
    ("specification", "use"),
    [
        ("private\npublic :: n, dp, u, v, f, c", "use fields"),
        ("integer, private :: hidden", "use fields, only: n, dp, u, v, f, c"),
    ],
)
def test_names_that_the_caller_has_are_enough(tmp_path: Path, specification: str, use: str) -> None:
    head = HEAD.replace("contains\n", f"{specification}\ncontains\n")
    (tmp_path / "p.f90").write_text(head + FUNCTION + calling(use))
    text = translate([str(tmp_path / "p.f90")], Options("spmd")).outputs[0].text
    assert "f_1 = u(i) + c" in text


def test_an_array_may_have_the_name_of_a_function_that_is_not_brought(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    inside = """  subroutine twice
    integer :: i
!$omp parallel do
    do i = 1, n
      w(i) = f(i)
    end do
  end subroutine
end module
"""
    workshop = Workshop(tmp_path_factory.mktemp("array"))
    source = workshop.place() / "p.f90"
    main = calling("use fields, only: n, dp, u, v, w, c, twice", "real(dp) :: f(n) = 7")
    source.write_text(
        HEAD + FUNCTION.replace("end module\n", inside) + main.replace("print *", "call twice\n  print *, w")
    )
    translated, _ = workshop.translated(source, "spmd")
    assert run_command([translated], workshop.folder, OMP_NUM_THREADS="4") == workshop.printed(source)


#: {c}: what breaks a directive; {n}: what goes on with it.
LISTED = """      module base
        implicit none
        real(8) :: c = 3, d = 2
        real(8), save :: each = 1
!$omp threadprivate(each)
      end module
      module fields
        use base
        implicit none
        integer, parameter :: n = 40
        integer :: limit = 30
        real(8) :: u(n), v(n)
!$homing distribute u(block), v(block)
      contains
        real(8) function flux(i)
          integer, intent(in) :: i
          flux = u(i)*2 + c
          if (i > limit) flux = flux + d*each
        end function
        subroutine add(i, s)
          integer, intent(in) :: i
          real(8), intent(inout) :: s
          s = s + u(i)*d
        end subroutine
      end module
      program p
      use fields
      implicit none
      integer :: i
      real(8) :: s
      do i = 1, n
        u(i) = i
      end do
      s = 0
!$omp parallel default(none) {c}! first
!$omp{n} shared(v) {c}
!$omp{n} reduction(+: s)
!$omp do private(i)
      do i = 1, n
        v(i) = flux(i) + flux(i)
        call add(i, s)
      end do
!$omp end do
!$omp end parallel
!$omp parallel do default(none) private(i) shared(v)
      do i = 1, n
        v(i) = v(i) + flux(i)
      end do
      print *, v, s
      end program
"""


@pytest.mark.parametrize(("target", "suffix"), [("spmd", ".f90"), ("spmd", ".f"), ("mpi", ".f90")])
def test_default_none_lists_the_variables_that_they_bring(
    tmp_path_factory: pytest.TempPathFactory, target: str, suffix: str
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("listed"))
    source = workshop.place() / f"p{suffix}"
    free = suffix == ".f90"
    source.write_text(LISTED.replace("{c}", "&" if free else "").replace("{n}", "" if free else "&"))
    text = translate([str(source)], Options(target)).outputs[0].text
    assert "call add" not in text and "= flux(i)" not in text
    workshop.expect_the_same(source, [target])


def test_pure_functions_in_serial_code_may_bring_elements(tmp_path_factory: pytest.TempPathFactory) -> None:
    functions = """  pure real(dp) function total(x)
    real(dp), intent(in) :: x
    total = x*sum(u) + at(3)
  end function
  pure real(dp) function at(i)
    integer, intent(in) :: i
    at = u(i)
  end function
  pure real(dp) function both()
    both = total(2.0_dp) + at(4)
  end function
end module
"""
    program = LOOP.replace("call step(i, 0.1_dp)", "u(i) = i").replace("print *, v", "print *, both(), at(n)")
    workshop = Workshop(tmp_path_factory.mktemp("pure"))
    source = workshop.place() / "p.f90"
    source.write_text(HEAD + functions + program)
    translated, _ = workshop.translated(source, "spmd")
    assert run_command([translated], workshop.folder, OMP_NUM_THREADS="4") == workshop.printed(source)
