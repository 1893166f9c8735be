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


UPDATES = """#include <math.h>
double a[40], w[40], *q = w, *at, most;
int k, count[4], largest;
long double total;
extern int elsewhere[];
#define max(one, other) ((one) + 2 * (other))
#pragma homing distribute a[block]
int main(void) {
    #pragma omp parallel for private(k)
    for (int i = 0; i < 40; i++) {
        k = i;
        a[i] = i;
        BODY
    }
    return 0;
}
"""


def of_updates(folder: Path, body: str) -> None:
    path = folder / "p.c"
    path.write_text(UPDATES.replace("BODY", body))
    translate([str(path)], Options("mpi"))


@pytest.mark.parametrize(
    "body",
    [
        '_Pragma("omp atomic")\n    count[i % 4] += k & 3;',
        "most = fmax(most, a[i]);",
        "most = most > a[i] ? most : a[i];",
        "most = ((a[i]) <= most ? (a[i]) : (most));",
    ],
)
def test_updates_of_what_has_no_other_name_are_combined(tmp_path: Path, body: str) -> None:
    of_updates(tmp_path, body if "atomic" in body else f'_Pragma("omp critical")\n    {body}')


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('_Pragma("omp atomic")\n    w[i] += 1;', "w"),  # q is its other name
        ('_Pragma("omp atomic")\n    elsewhere[i % 4] += 1;', "elsewhere"),  # of no known size
        ('_Pragma("omp critical")\n    largest = max(largest, k);', "largest"),  # no maximum
        ('_Pragma("omp critical")\n    if (k++ > largest) largest = k++;', "largest"),  # two values
        ('_Pragma("omp critical")\n    most = a[i] > most ? a[i + 1] : most;', "most"),
        ('_Pragma("omp critical")\n    most = a[i] > most ? a[i] : 0;', "most"),
        ('_Pragma("omp critical")\n    most = most > fmax(a[i], 1) ? most : fmax(a[i], 1);', "most"),
        # Another rank's index would go with an extremum that this rank found; an address means nothing to it.
        ('_Pragma("omp critical")\n    if (a[i] >= most) { most = a[i]; largest = i; }', "most"),
        ('_Pragma("omp critical")\n    if (a[i] > most || i == 3) { most = a[i]; largest = i; }', "most"),
        ('_Pragma("omp critical")\n    if (a[i] > most) { most = a[i]; at = &w[i]; }', "most"),
    ],
)
def test_updates_that_are_none_of_one_variable_are_refused(tmp_path: Path, body: str, name: str) -> None:
    with pytest.raises(TranslationError, match=f"'{name}' is shared and written in a loop"):
        of_updates(tmp_path, body)


@pytest.mark.parametrize("kind", ["real(16)", "real*16", "integer(kind=16)"])
def test_sums_of_128_bits_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "p.f90"
    path.write_text(
        f"""program p
  {kind} :: s
  real(8) :: a(9)
  !$homing distribute a(block)
  s = 0
  !$omp parallel do reduction(+: s)
  do i = 1, 9
    a(i) = i
    s = s + i
  end do
  print *, s
end program
"""
    )
    with pytest.raises(TranslationError, match="numbers of 128 bits"):
        translate([str(path)], Options("mpi"))


def test_sums_of_long_double_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match="numbers of 128 bits"):
        of_updates(tmp_path, '_Pragma("omp atomic")\n    total += a[i];')


CHOSEN = """#include <stdio.h>
double a[30], low = 99, high = -99;
int whole = 7;
#pragma homing distribute a[block]
int main(void) {
    #pragma omp parallel for
    for (int i = 0; i < 30; i++) a[i] = (i * 7) % 30 - 4.5;
    #pragma omp parallel for
    for (int i = 0; i < 30; i++) {
        #pragma omp critical
        {
            low = (low < a[i]) ? low : a[i];
            high = high < a[i] ? a[i] : high;
            whole = i >= whole ? i : whole;
        }
    }
    printf("%g %g %d\\n", low, high, whole);
    return 0;
}
"""


def test_the_larger_or_smaller_one_is_chosen(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("chosen"))
    source = workshop.place() / "p.c"
    source.write_text(CHOSEN)
    workshop.expect_the_same(source, ("mpi",))


@pytest.mark.parametrize(
    ("member", "suffix"), [("double *v", ".c"), ("struct in { int k; char *s[2]; } i", ".cpp")]
)
def test_addresses_mean_nothing_to_other_ranks(tmp_path: Path, member: str, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    struct = f"struct s {{ int n; {member}; }};\nstatic struct s x[9];\n#pragma homing distribute x[block]\n"
    path.write_text(struct + "int main(void) { x[1].n = 2; return x[2].n; }\n")
    translate([str(path)], Options("spmd"))
    with pytest.raises(TranslationError, match=r"2:17: the elements hold addresses"):
        translate([str(path)], Options("mpi"))


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


ALIASES = """#include <math.h>
#include <stdio.h>
struct par { double dt, w[3], *tab; };
static double a[30], b[30], w[30][3], four[4] = {1, 2, 3, 4};
static int at[30];
static _Thread_local double last[2];
#pragma homing distribute a[block], b[block]
static double dot(const double *x, const double *y) {
    for (int i = 0; i < 2; i++)
        last[i] = x[i] * y[i];
    return last[0] + last[1];
}
int main(void) {
    struct par par = {.5, {1, 2, 3}, four}, *p = &par;
    int m = 30, *pm = &m;
    for (int i = 0; i < m; i++)
        w[i][0] = i, w[i][1] = i / 2., at[i] = i % 4;
#pragma omp parallel for
    for (int i = 0; i < 30; i++)
        a[i] = i, b[i] = 0;
#pragma omp parallel for
    for (int i = 1; i < 29; i++) {
        double *row = w[i], *second = &w[i][1];
        const double *t = four;
        const int *k = &at[i];
        b[i] = row[0] * a[i - 1] + *second * a[i + 1] + p->dt + p->w[1] + p->tab[at[i]];
        b[i] += t[*k] + *pm + dot(w[i], t);
    }
    int many = 3, of[4] = {1};
    double all = 1, most = 3, least = 30, rows[2][3] = {{2}};
#pragma omp parallel for
    for (int i = 0; i < 30; i++) {
#pragma omp critical
        all += 2 * a[i];
        if (b[i] > 9) {
#pragma omp atomic
            many++;
        }
#pragma omp atomic
        of[i % 4]++;
#pragma omp critical
        {
            rows[i % 2][i % 3] += a[i];
            most = fmax(most, b[i]);
            if (least > b[i])
                least = b[i];
        }
    }
    printf("%.2f %.2f %.2f %d %.2f\\n", b[1], b[17], b[28], many, all);
    printf("%d %d %g %g %.2f %.2f\\n", of[0], of[3], rows[0][0], rows[1][2], most, least);
    return 0;
}
"""


def test_pointers_that_only_read_may_mean_what_is_shared(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("aliases"))
    source = workshop.place() / "p.c"
    source.write_text(ALIASES)
    program, _ = workshop.translated(source, "mpi", checked=False)
    assert run_command([*MPIRUN, "-n", "2", program], workshop.folder) == workshop.printed(source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p->w[1]", "(p->w[1] = 1)"),
        ("+ *pm", "+ (*pm)++"),
        ("b[i] += t", "row[0] = 1; b[i] += t"),
        ("b[i] += t", "++*row; b[i] += t"),
        ("b[i] += t", "second = row; *second = 2; b[i] += t"),
        ("b[i] += t", "row++; b[i] += t"),
    ],
)
def test_pointers_that_write_do_not(tmp_path: Path, old: str, new: str) -> None:
    assert old in ALIASES
    (tmp_path / "p.c").write_text(ALIASES.replace(old, new))
    with pytest.raises(TranslationError, match=r"p\.c:\d+:\d+: '\w+' is shared and written in a loop"):
        translate([str(tmp_path / "p.c")], Options("mpi"))


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
