"""--to mpi: what one rank does, and the others would not see, is refused; the rest is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command

HEAD = """module m
  implicit none
  integer, parameter :: n = 24
  integer :: total = 0, own = 0
  !$omp threadprivate(own)
contains
  subroutine count
    total = total + 1
  end subroutine
  integer function totalled(k)
    integer, intent(in) :: k
    totalled = total + k
  end function
  subroutine put(x, k)
    integer, intent(in) :: k
    real(8), intent(inout) :: x(:)
    x(k) = k
  end subroutine
  subroutine told
    print *, own
  end subroutine
  subroutine tell(x)
    real(8), intent(in) :: x
    print *, 'tells', x
  end subroutine
  subroutine set(x, k)
    real(8), intent(out) :: x
    integer, intent(in) :: k
    x = k
  end subroutine
  real(8) function mean(x, y)
    real(8), intent(in) :: x, y
    real(8) :: both(2)
    both = [x, y]
    mean = sum(both)/2
  end function
  real(8) function applied(f, x)
    interface
      real(8) function f(x, y)
        real(8), intent(in) :: x, y
      end function
    end interface
    real(8), intent(in) :: x
    applied = f(x, x)
  end function
end module
program p
  use m
  implicit none
  type pair
    real(8) :: most = 0
    integer :: at = 0
  end type
  real(8) :: a(n), b(n), w(n), s, t
  character(8) :: texts(n), text
  type(pair) :: best
  integer :: i, k
  real(8), external :: foreign
  interface
    real(8) function declared(k)
      integer, intent(in) :: k
    end function
  end interface
  procedure(set), pointer :: sub
  procedure(mean), pointer :: any
  !$homing distribute a(block), b(block)
  w = 0; k = 0; s = 0; texts = ' '
"""
LOOP = "  !$omp parallel do private(t, text)\n  do i = 1, n\n    a(i) = i\n    {}\n  end do\n"
REGION = (
    "  !$omp parallel private(t)\n  t = 0\n  !$omp do\n  do i = 1, n\n    a(i) = i\n    t = t + a(i)\n"
    "  end do\n  !$omp end do\n  {}\n  !$omp end parallel\n"
)
REFUSED = [
    (LOOP.format("w(i) = i"), "'w' is shared and written in a loop"),
    (
        LOOP.format("own = i") + "print *, own\n",
        "'own' is THREADPRIVATE and written in a loop whose iterations other ranks run, too: ranks would "
        "have other values where ",
    ),
    (LOOP.format("own = i") + "call told\n", "'own' is THREADPRIVATE and written in a loop"),
    (LOOP.format("if (i == 15) k = i"), "'k' is shared and written in a loop"),
    (LOOP.format("total = i"), "'total' is shared and written in a loop"),
    (LOOP.format("best%at = i"), "'best' is shared and written in a loop"),
    (LOOP.format("write (texts(i), '(i0)') i"), "'texts' is shared and written in a loop"),
    (LOOP.format("call count"), "'total' is shared and written, by 'count', in a loop"),
    (LOOP.format("call put(w, i)"), "'w' is shared and written in a loop"),
    (LOOP.format("call tell(a(i))"), "input or output, by 'tell', in a loop"),
    (LOOP.format("print *, i"), "only rank 0 is heard"),
    (LOOP.format("if (a(i) > 20) stop 3"), "ends one rank"),
    (LOOP.format("a(i) = foreign(i)"), "what 'foreign' writes is not seen"),
    (LOOP.format("a(i) = any(dble(i))"), "'any' may be any procedure"),
    (LOOP.format("call sub(i)"), "'sub' may be any procedure"),
    (LOOP.format("a(i) = applied(mean, dble(i))"), "'f' may be any procedure"),
    (LOOP.format("a(i) = declared(i)"), "what 'declared' writes is not seen"),
    (LOOP.format("call elsewhere(t)"), "what 'elsewhere' writes is not seen"),
    (LOOP.format("!$omp atomic\n    k = k + i\n    b(i) = k"), "'k' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    k = k + i\n    !$omp atomic\n    k = k*2"), "'k' is shared and written"),
    (LOOP.format("!$omp atomic\n    k = k + 0.6"), "'k' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    k = k*i/2"), "'k' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    s = i - s"), "'s' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    total = total + 0.6"), "'total' is shared and written in a loop"),
    (LOOP.format("a(i) = totalled(i)\n    !$omp atomic\n    total = total + 1"), "'total' is shared"),
    (LOOP.format("!$omp atomic write\n    k = i"), "'k' is shared and written in a loop"),
    (
        LOOP.format("!$omp critical\n    s = s + i\n    t = s\n    !$omp end critical"),
        "'s' is shared and written",
    ),
    (LOOP.format("!$omp atomic\n    w(i) = w(i + 1) + 1"), "'w' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    w(int(w(i))) = w(int(w(i))) + 1"), "'w' is shared and written in a loop"),
    (
        LOOP.format("!$omp atomic\n    w(i) = w(i) + 1\n    b(i) = w(1)"),
        "'w' is shared and written in a loop",
    ),
    (LOOP.format("!$omp critical\n    if (a(i) > s) s = i\n    !$omp end critical"), "'s' is shared and"),
    (
        LOOP.format("!$omp critical\n    if (a(i) >= s) then\n    s = a(i)\n    k = i\n    end if\n").replace(
            "  end do", "    !$omp end critical\n  end do"
        ),
        "'k' is shared and written in a loop whose iterations other ranks run, too: say which of equal ones: "
        "a(i) > s .or. (a(i) == s .and. index < its index)",
    ),
    (LOOP.format("!$omp critical\n    if (s > 3) s = s + a(i)\n    !$omp end critical"), "'s' is shared and"),
    (LOOP.format("if (a(i) > s) s = a(i)"), "'s' is shared and written in a loop"),
    (LOOP.format("!$omp atomic\n    total = total + 1\n    call count"), "'total' is shared and written"),
    (
        REGION.format("!$omp critical\n  s = s + t + 1\n  !$omp end critical"),
        "'s' is shared and written in wh",
    ),
    (
        REGION.format(
            "!$omp do reduction(+:s)\n  do i = 1, n\n    s = s + a(i)\n  end do\n  !$omp atomic\n  s = s + t"
        ),
        "'s' is shared and written in what",
    ),
    (REGION.format("!$omp atomic\n  s = s + i"), "'s' is shared and written in what"),
    (REGION.format("!$omp atomic\n  s = s + t\n  w(1) = s"), "'s' is shared and written in what"),
    (REGION.format("t = t + omp_get_thread_num()\n  !$omp atomic\n  s = s + t"), "'s' is shared and written"),
    (REGION.format("k = 3"), "'k' is shared and written in what"),
    (REGION.format("call count"), "'total' is shared and written, by 'count', in what"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_what_other_ranks_would_not_see_is_refused(tmp_path: Path, body: str, reason: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(HEAD + body + "end program\n")
    with pytest.raises(TranslationError) as caught:
        translate([str(path)], Options("mpi"))
    assert any(reason in problem.reason for problem in caught.value.problems), str(caught.value)
    assert all(problem.position.line > 50 for problem in caught.value.problems)


C_HEAD = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define N 40
double a[N], w[N], *q = w;
struct pair { double most; int at; double list[N]; double (*each)(int); } best, *where = &best;
static int calls;
#pragma homing distribute a[block]
static double given(int i, double *out) { double t[3] = {1, 2, 3}; t[i % 3] += i; *out = t[i % 3]; return i; }
static double counted(int i) { calls++; return i; }
static double asked(void) { return calls; }
static double asks(void) { return asked(); }
double foreign(int i);
static double called(double (*f)(int), int i) { return f(i); }
int main(void) {
    #pragma omp parallel for
    for (int i = 0; i < N; i++) {
        double x = 0;
        a[i] = given(i, &x) + sqrt(fabs(x));
        BODY
    }
    return 0;
}
"""
C_REFUSED = [
    ("best.at = i;", "'best' is shared"),
    ("where->at = i;", "'where' is shared"),
    ("best.list[i] = i;", "'best' is shared"),
    ("where->list[i] = i;", "'where' is shared"),
    ("*(w + i) = i;", "'w' is shared"),
    ("*q++ = i;", "'q' is shared"),
    ("*q = i;", "'q' is shared"),
    ("q[0] = i;", "'q' is shared"),
    ("given(i, &best.most);", "'best' is shared"),
    ("given(i, best.list);", "'best' is shared"),
    ("a[i] += counted(i);", "'calls' is shared and written, by 'counted',"),
    ("a[i] += foreign(i);", "'foreign' writes is not seen"),
    ("double (*f)(int) = counted; a[i] = f(i);", "'f' may be any procedure"),
    ("double (*f[2])(int) = {counted, foreign}; a[i] = f[i % 2](i);", "'f[i % 2]' may be any procedure"),
    ("a[i] = (*best.each)(i);", "'(*best.each)' may be any procedure"),
    ("a[i] = where->each(i);", "'where->each' may be any procedure"),
    ('_Pragma("omp atomic")\n    where->at += i;', "'where' is shared"),
    ('_Pragma("omp atomic")\n    calls += i; a[i] += asks();', "'calls' is shared"),
    ("a[i] = called(counted, i);", "'f' may be any procedure"),
    ('if (i == 3) printf("x");', "only rank 0 is heard"),
    ("if (i == 99) exit(1);", "ends one rank"),
]


@pytest.mark.parametrize(("body", "reason"), C_REFUSED)
def test_the_same_in_c(tmp_path: Path, body: str, reason: str) -> None:
    path = tmp_path / "p.c"
    path.write_text(C_HEAD.replace("BODY", body))
    with pytest.raises(TranslationError) as caught:
        translate([str(path)], Options("mpi"))
    assert len(caught.value.problems) == 1, str(caught.value)
    assert reason in caught.value.problems[0].reason


RIGHT = (
    HEAD.replace(
        "  real(8), external :: foreign\n",
        "  real(8) :: most = 3, added = 2, top = 4, low(2) = 30\n"
        "  integer :: count9 = 5, least = 4, many(0:3) = 1\n",
    ).replace("    print *, own\n", "")
    + """
  !$omp parallel do private(t, text)
  do i = 1, n
    call set(a(i), i)
    write (text, '(i0)') i
    t = mean(a(i), dble(len_trim(text)))
    a(i) = a(i) + t
  end do
  !$omp parallel do
  do i = 2, n - 1
    own = i
    b(i) = mean(a(i - 1), a(i + 1)) + own
  end do
  !$omp parallel do
  do i = 1, n
    if (a(i) > 9) then
      !$omp atomic
      count9 = count9 + 1
    end if
    !$omp critical
    most = max(most, a(i)*2)
    least = min(least, i)
    if (a(i) >= top) top = a(i)
    if (low(1 + mod(i, 2)) .gt. a(i)*2) then
      low(1 + mod(i, 2)) = a(i)*2
    end if
    !$omp end critical
    !$omp atomic update
    added = added - a(i)
    !$omp atomic
    many(mod(i, 4)) = many(mod(i, 4)) + i
  end do
  print *, count9, most, least, added, top, low, many
  call set(b(1), 9)
  call set(b(n), 8)
  s = mean(a(3), b(4))
  !$omp parallel
  !$omp single
  print *, 'first', a(20)
  !$omp end single
  !$omp master
  print *, 'second', b(3)
  !$omp end master
  !$omp barrier
  !$omp single
  call tell(b(21))
  !$omp end single
  !$omp master
  call tell(a(5))
  !$omp end master
  !$omp do
  do i = 1, n
    w(i) = i
  end do
  !$omp end do
  !$omp single
  k = 7
  !$omp end single
  !$omp end parallel
  print *, sum(a), sum(b), s, sum(w), k
end program
"""
)


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_calls_and_output_come_as_in_the_program(
    tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("calls"))
    source = workshop.place() / "p.f90"
    source.write_text(RIGHT)
    expected = workshop.printed(source)
    program, _ = workshop.translated(source, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1", "2") if target == "mpi" else ("1", "3", "4"):
        assert run_command([*start, program], workshop.folder, OMP_NUM_THREADS=threads) == expected


def test_what_an_internal_procedure_writes_of_a_module_is_seen(tmp_path: Path) -> None:
    """IMPLICIT NONE and USE stand in the program around it; it was taken for a variable of the procedure."""
    (tmp_path / "p.f90").write_text(
        "module m\ninteger :: calls = 0\nend module\nprogram p\nuse m\nimplicit none\nreal(8) :: a(9)\n"
        "integer :: i\n!$homing distribute a(block)\n!$omp parallel do\ndo i = 1, 9\na(i) = i\n"
        "call note\nend do\nprint *, calls\ncontains\nsubroutine note\ncalls = calls + 1\n"
        "end subroutine\nend program\n"
    )
    with pytest.raises(TranslationError, match=r"p\.f90:13:1: 'calls' is shared and written, by 'note'"):
        translate([str(tmp_path / "p.f90")], Options("mpi"))


@pytest.mark.parametrize("name", ["next_touch", "replicate"])
def test_what_has_no_distributed_array_is_said_once(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """No part is made, but of the ranks one is heard, as always."""
    workshop = Workshop(tmp_path_factory.mktemp("once"))
    fortran, c = workshop.place() / "p.f90", workshop.place() / "p.c"
    fortran.write_text(
        f"program p\nreal(8) :: t(9), y(9)\nt = 2\n!$homing {name}(t)\n!$omp parallel do\n"
        "do i = 1, 9\ny(i) = t(i)*i\nend do\nprint *, sum(y)\nend program\n"
    )
    c.write_text(
        f"#include <stdio.h>\nstatic double t[9], y[9];\nint main(void) {{\n#pragma homing {name}(t)\n"
        "#pragma omp parallel for\nfor (int i = 0; i < 9; i++)\ny[i] = t[i] + i;\n"
        'printf("%g\\n", y[8]);\n}\n'
    )
    for source in (fortran, c):
        program, _ = workshop.translated(source, "mpi", checked=False)
        assert run_command([*MPIRUN, "-n", "2", program], workshop.folder) == workshop.printed(source)


def test_a_reduction_in_a_procedure_that_a_region_calls_adds_up_one_rank(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\n"
        "static double a[20];\n"
        "#pragma homing distribute a[block]\n"
        "static double sum;\n"
        "static void add(void) {\n"
        "#pragma omp for reduction(+ : sum)\n"
        "    for (int i = 0; i < 20; i++) sum += a[i];\n"
        "}\n"
        "int main(void) {\n"
        "#pragma omp parallel\n"
        "    add();\n"
        '    printf("%g\\n", sum);\n'
        "}\n"
    )
    said = "its REDUCTION there adds up one rank: write the loop of 'add' here"
    with pytest.raises(TranslationError, match=said):
        translate([str(tmp_path / "p.c")], Options("mpi"))
