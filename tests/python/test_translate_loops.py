"""Loops that reach beyond their arrays, arguments, declarators and reductions: compiled, run and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("loops"))


def numbers(text: str) -> list[float]:
    found = []
    for word in text.replace("(", " ").replace(")", " ").replace(",", " ").split():
        try:
            found.append(float(word))
        except ValueError:
            found.append(float(sum(map(ord, word))))
    return found


def same(workshop: Workshop, suffix: str, text: str, target: str) -> None:
    """The translated program prints what the program prints."""
    source = workshop.place() / f"p{suffix}"
    source.write_text(text)
    expected = numbers(workshop.printed(source))
    program, _ = workshop.translated(source, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1", "2") if target == "mpi" else ("1", "3"):
        found = run_command([*start, program], workshop.folder, OMP_NUM_THREADS=threads)
        assert numbers(found) == pytest.approx(expected), f"{threads} threads"


BEYOND = """program p
  implicit none
  integer, parameter :: n = 20
  real(8) :: a(n), b(n)
  integer :: w(-2:n+3), i
  !$homing distribute a(cyclic(3)), b(block)
  w = 0
  !$omp parallel do
  !$homing on home(a(i))
  do i = -2, n + 3
    if (i >= 1 .and. i <= n) a(i) = i
    w(i) = w(i) + 2
  end do
  !$omp parallel do
  !$homing on home(b(i))
  do i = n + 3, -2, -1
    if (i >= 1 .and. i <= n) b(i) = i
    w(i) = w(i) + 3
  end do
  print *, sum(a), sum(b), w
end program
"""
BEYOND_C = """#include <stdio.h>
#define N 20
double a[N], b[N];
int w[N + 3];
#pragma homing distribute a[block], b[cyclic]
int main(void) {
#pragma omp parallel for
#pragma homing on home(a[i])
    for (int i = 0; i < N + 3; i++) { if (i < N) a[i] = i; w[i] += 1; }
#pragma omp parallel for
#pragma homing on home(b[i])
    for (int i = 0; i < N + 3; i++) { if (i < N) b[i] = i; w[i] += 1; }
    for (int i = 0; i < N + 3; i++) printf("%d ", w[i]);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["spmd", "pages"])
@pytest.mark.parametrize(("suffix", "text"), [(".f90", BEYOND), (".c", BEYOND_C)])
def test_iterations_beyond_the_array_are_run_once(
    workshop: Workshop, suffix: str, text: str, target: str
) -> None:
    same(workshop, suffix, text, target)


CALLEES = """module m
  implicit none
contains
  subroutine show(x, n)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    !$homing distribute x(block)
    print *, sum(x)
  end subroutine
end module
program p
  use m
  implicit none
  type point
    real(8) :: x, y
  end type
  integer, parameter :: n = 40
  real(8) :: a(n), plain(n)
  type(point) :: d(n)
  integer :: i
  !$homing distribute a(block), d(block)
  plain = 2
  !$omp parallel do
  do i = 1, n
    a(i) = i
    d(i)%x = 2*i
    d(i)%y = 1
  end do
  !$omp parallel do
  do i = 2, n
    d(i)%y = d(i - 1)%x
  end do
  call show(a, n)
  print *, sum(d%y)
end program
"""
DECLARATORS = """#include <stdio.h>
#include <stdlib.h>
static double total(const double *x, int n) {
#pragma homing distribute x[block] extent(n)
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    return s;
}
int main(void) {
    int n = 33;
    double *a = calloc(n, sizeof *a), *restrict b = malloc(n * sizeof *b), (*c)[n] = calloc(n, sizeof *c), s;
#pragma homing distribute a[block] extent(n), b[block] extent(n), c[block][*] extent(n, n)
#pragma omp parallel for
    for (int i = 0; i < n; ++i) { a[i] = i; b[i] = 2 * i; c[i][3] = i; }
#pragma omp parallel for
    for (int i = 1; i < n; ++i) b[i] += a[i - 1] + c[i][3];
    s = total(b, n);
    s += a[1] + c[1][3];
    printf("%g\\n", s);
    free(a); free(b); free(c);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["spmd", "pages"])
@pytest.mark.parametrize(("suffix", "text"), [(".f90", CALLEES), (".c", DECLARATORS)])
def test_callees_without_openmp_and_all_declarators(
    workshop: Workshop, suffix: str, text: str, target: str
) -> None:
    same(workshop, suffix, text, target)


def test_an_argument_that_is_no_distributed_array(tmp_path: Path) -> None:
    path = tmp_path / "p.f90"
    path.write_text(CALLEES.replace("call show(a, n)", "call show(a, n)\n  call show(plain, n)"))
    for target in ("spmd", "pages"):
        with pytest.raises(TranslationError, match="here one that is not: call show"):
            translate([str(path)], Options(target))


REDUCTIONS = """program p
  implicit none
  integer, parameter :: n = 64
  real(8) :: a(n), least, times, h(4), g(2, 3)
  integer :: i, bits, cnt(3), other, both
  integer(2) :: small
  logical :: ok, any1, odd
  complex(8) :: z
  real, allocatable :: d(:)
  !$homing distribute a(block)
  allocate (d(5))
  least = huge(least); times = 1; ok = .true.; any1 = .false.; bits = 0; h = 1; cnt = 2; z = (1, 2); g = 3
  small = 1; odd = .true.; d = 1; other = 5; both = 255
  !$omp parallel do
  do i = 1, n
    a(i) = 1 + mod(i*37, 64)
  end do
  !$omp parallel do reduction(min:least) reduction(*:times) reduction(.and.:ok) reduction(.or.:any1) &
  !$omp reduction(ior:bits) reduction(ieor:other) reduction(iand:both) reduction(.neqv.:odd) &
  !$omp reduction(+:h, cnt, z, g, small, d)
  do i = 1, n
    least = min(least, a(i))
    if (mod(i, 16) == 0) times = times*2
    ok = ok .and. a(i) > 0
    any1 = any1 .or. a(i) > 60
    bits = ior(bits, int(a(i)))
    other = ieor(other, i)
    both = iand(both, 251 + mod(i, 5))
    odd = odd .neqv. (mod(i, 3) == 0)
    h(1 + mod(i, 4)) = h(1 + mod(i, 4)) + a(i)
    cnt(1 + mod(i, 3)) = cnt(1 + mod(i, 3)) + 1
    g(1 + mod(i, 2), 1 + mod(i, 3)) = g(1 + mod(i, 2), 1 + mod(i, 3)) + i
    z = z + cmplx(i, 2*i, 8)
    small = small + 1_2
    d(2) = d(2) + i
  end do
  print *, least, times, ok, any1, bits, other, both, odd, h, cnt, z, g, small, d
  !$omp parallel
  !$omp do reduction(+: h) reduction(max: least)
  do i = 1, n
    h(1) = h(1) + a(i)
    least = max(least, a(i))
  end do
  !$omp end do
  !$omp end parallel
  print *, h, least
end program
"""
REDUCTIONS_C = """#include <complex.h>
#include <stdbool.h>
#include <stdio.h>
#define N 64
double a[N];
#pragma homing distribute a[block]
typedef double real;
int main(void) {
    double h[4] = {1, 1, 1, 1}, most = -1;
    double complex z = 1;
    long long big = 3;
    unsigned u = 0, x = 5;
    bool ok = true;
    short s = 0;
    real r = 0;
    unsigned char c = 255;
#pragma omp parallel for
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp parallel for reduction(+:h[:4], big, z, r, s) reduction(max: most) reduction(|:u) \\
    reduction(^:x) reduction(&&:ok) reduction(&:c)
    for (int i = 0; i < N; i++) {
        h[i % 4] += a[i]; big += i; z += a[i] * I; r += a[i]; s++;
        if (a[i] > most) most = a[i];
        u |= i; x ^= i; ok = ok && a[i] >= 0; c &= 250 + i % 6;
    }
#pragma omp parallel for reduction(+:h)
    for (int i = 0; i < N; i++) h[i % 4] += a[i];
    printf("%g %g %g %g %lld %u %u %d %d %g %g %d %g\\n", h[0], h[1], h[2], h[3], big, u, x, ok, s, cimag(z),
           r, c, most);
    return 0;
}
"""


@pytest.mark.parametrize(("suffix", "text"), [(".f90", REDUCTIONS), (".c", REDUCTIONS_C)])
def test_reductions_over_ranks(workshop: Workshop, suffix: str, text: str) -> None:
    same(workshop, suffix, text, "mpi")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("type(t) :: s\n  !$omp declare reduction(plus: t: omp_out = omp_out)", "no sum, product"),
        ("character :: s", "a sum or product of complex numbers"),
    ],
)
def test_reductions_that_ranks_do_not_know(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "p.f90"
    operator = "plus" if "type" in text else "*"
    path.write_text(
        "program p\n  type t\n    integer :: k = 0\n  end type\n  real(8) :: a(9)\n  integer :: i\n"
        f"  {text}\n  !$homing distribute a(block)\n  !$omp parallel do reduction({operator}: s)\n"
        "  do i = 1, 9\n    a(i) = i\n  end do\nend program\n"
    )
    with pytest.raises(TranslationError, match=reason):
        translate([str(path)], Options("mpi"))


COUNTERS = """#include <stddef.h>
#include <stdio.h>
#define N 2
double a[N], b[3], c[9];
#pragma homing distribute a[block], b[cyclic], c[block]
int main(void) {
    unsigned n = N;
#pragma omp parallel for
    for (size_t i = 0; i < N; i++) a[i] = i + 1;
#pragma omp parallel for
    for (unsigned i = 1; n > i; ++i) a[i] += 1;
#pragma omp parallel for
    for (unsigned char i = 0; i < 3; ++i) b[i] = 1;
#pragma omp parallel for
    for (size_t i = 2; i > 0; --i) a[i - 1] += 3;
#pragma omp parallel for
    for (size_t i = 0; i != 9; ++i) {
        switch (i % 3) {
        case 0: c[i] = 1; break;
        case 1: c[i] = 2; /* fall through */
        default: c[i] += 3;
        }
    }
    printf("%g %g %g\\n", a[0], a[1], b[2]);
    for (int i = 0; i < 9; i++) printf("%g ", c[i]);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_c_loops_as_users_write_them(workshop: Workshop, target: str) -> None:
    """Unsigned counters where parts have nothing, `i != n`, `n > i`, the break of a switch."""
    same(workshop, ".c", COUNTERS, target)


def test_a_loop_from_a_macro_is_written_out_or_refused_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    program = (
        "#define FOR(i, n) for (int i = 0; i < (n); i++)\ndouble a[9];\n#pragma homing distribute a[block]\n"
        "int main(void) {\n#pragma omp parallel for\n    FOR(i, 9) a[i] = i;\n    return 0;\n}\n"
    )
    path.write_text(program)
    (loop,) = translate([str(path)], Options("spmd")).plan.loops()
    assert (loop.variable, loop.place.line) == ("i", 6)
    path.write_text(program.replace("FOR(i, 9)", "FOR(i,\n9)"))
    with pytest.raises(TranslationError, match=r"p.c:6:5: .*its head comes from the macro"):
        translate([str(path)], Options("spmd"))


GRID = """program p
  implicit none
  integer, parameter :: n = 18
  real(8) :: a(n, n), b(n, n), s, t
  integer :: i, j
  !$homing distribute a(block, block), b(block, cyclic)
  s = 0
  !$omp parallel do collapse(2) schedule(static)
  !$homing on home(a(i, j))
  do j = 1, n
    do i = 1, n
      a(i, j) = i + j*0.5d0
    end do
  end do
!DEC$ OMP NUMA
  !$omp parallel do private(i, t)
  do j = 1, n
    do i = 1, n
      t = sqrt(a(i, j))
      b(i, j) = t
    end do
  end do
  !$omp parallel do reduction(+:s)
  !$homing on home(b(i, j))
  do j = 1, n
    do i = 1, n
      s = s + b(i, j)
    end do
  end do
  print *, b(1, 1), b(n, n), sum(b), s
end program
"""


def test_grids_under_pages(workshop: Workshop, tmp_path: Path) -> None:
    same(workshop, ".f90", GRID, "pages")
    path = tmp_path / "p.f90"
    path.write_text(
        GRID.replace(
            "on home(b(i, j))\n  do j = 1, n", "nest(j, i), on home(b(i, j))\n  do j = 1, n\n    kept(j) = j"
        )
    )
    with pytest.raises(TranslationError, match="would be done by each part"):
        translate([str(path)], Options("pages"))


def test_a_last_line_that_goes_on_in_none(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text("double a[9];\n#pragma homing\\\n")
    with pytest.raises(TranslationError, match=r"p.c:2:1: a directive is missing"):
        translate([str(path)], Options("spmd"))


#: The index is inside a quotient, too; it is declared before the loop, and has a value there.
GROUPS = {
    "p.f90": """\
program p
  integer, parameter :: n = 60
  integer :: i
  real(8) :: u(n), v(n)
!$homing distribute u(block), v(block)
  i = 5
!$omp parallel do
  do i = 1, n
    u(i) = i*i
    v(i) = 0
  end do
!$omp parallel do
  do i = 5, n - 5
    v(i) = u(i - mod(i, 4)) + u(i + 3*i/40)
  end do
  print '(f9.2)', v
end program
""",
    "p.c": """\
#include <stdio.h>
#define N 60
static double u[N], v[N];
#pragma homing distribute u[block], v[block]
int main(void)
{
    int i = 5;
#pragma omp parallel for
    for (i = 0; i < N; i++)
        u[i] = i * i;
#pragma omp parallel for
    for (i = 3; i < N - 4; i++)
        v[i] = u[i - i % 4] + u[i + 3 * i % 4];
    for (i = 0; i < N; i++)
        printf("%g\\n", v[i]);
    return 0;
}
""",
}


@pytest.mark.parametrize("name", GROUPS)
def test_an_element_by_the_index_and_a_quotient_of_it(workshop: Workshop, name: str) -> None:
    source = workshop.place() / name
    source.write_text(GROUPS[name])
    workshop.expect_the_same(source, ("spmd", "mpi"))


@pytest.mark.parametrize("inside", ["for (int j = 0; j < 2; j++) { int i = j; v[j] = u[i]; }", "i += i % 2;"])
def test_an_index_that_is_something_else_inside_the_loop_is_no_index(tmp_path: Path, inside: str) -> None:
    source = tmp_path / "p.c"
    text = GROUPS["p.c"].replace("v[i] = u[i - i % 4] + u[i + 3 * i % 4];", f"{{ {inside} v[i] = u[i]; }}")
    source.write_text(text)
    reason = "its index 'i' is written or declared anew inside: use another name"
    with pytest.raises(TranslationError, match=reason):
        translate([str(source)], Options("spmd"))
