"""The statement of a source line, and the variables that it allocates."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.report.statements import last_component, statement, variables


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("double* u = malloc(n * sizeof *u);", ["u"]),
        ("double *u = malloc(8 * n), *v = malloc(8 * n);", ["u", "v"]),
        ("grid->cells[k] = calloc(n, 8);", ["grid->cells"]),
        ("allocate (u(total), r(max(n, 2), m), v(n))", ["u", "r", "v"]),
        ("allocate(level%x(0:n), stat=error)", ["level%x"]),
        ("if (a == b) run(n);", []),
        (
            "double (*u)[N] = malloc(sizeof(double[N][N])), (*v)[N] = malloc(sizeof(double[N][N]));",
            ["u", "v"],
        ),
        ("enum { N = 512 }; double (*u)[N] = malloc(sizeof *u * N);", ["u"]),
        ("if (posix_memalign((void**)&grid->cells, 64, bytes)) return 1;", ["grid->cells"]),
        ("std::vector<double> u(n), v(n, 1.0);", ["u", "v"]),
        ("std::vector<std::pair<int, double>> pairs{n};", ["pairs"]),
        ("auto* u = new double[n];", ["u"]),
        ("field = make_field(n);", ["field"]),
        ("allocate (u(n), rhs(n), stat = ios)", ["u", "rhs"]),
        ("ALLOCATE(real(8) :: a(n,m), b(0:n), STAT=ierr, ERRMSG=msg)", ["a", "b"]),
        ("allocate(blocks(i)%u(n), p, source=q)", ["blocks(i)%u", "p"]),
        ("allocate(a(n)[*])", ["a"]),
        ("real(8) :: work(n), scale", ["work"]),
        (": data(n, 1.0), more(n) {}", ["data", "more"]),
        ('Kokkos::View<double*> u("u", n);', ["u"]),
        ("state.u.resize(n);", ["state.u"]),
        ("return malloc(n);", []),
        ("return allocate(n);", []),
        ("upmlib_memrefcnt(u, n * sizeof *u);", ["u"]),
        ("upmlib_memrefcnt((char*)&grid->cells[k][0], bytes);", ["grid->cells"]),
        ("call upmlib_memrefcnt(u(1, 1), 8*n)", ["u"]),
        ("CALL UPMLIB_MEMREFCNT(level%rhs, storage_size(level%rhs)/8)", ["level%rhs"]),
        ("upmlib_memrefcnt(0, n);", []),
    ],
)
def test_the_variables_that_a_statement_allocates(text: str, names: list[str]) -> None:
    assert variables(text) == names


@pytest.mark.parametrize(
    ("text", "callee", "names"),
    [
        ("double *t = grid(n), *next = grid(n), k = 3;", "grid", ["t", "next"]),
        ("for (int i = 0; i < 3; i++) a[i] = grid(n);", "grid", ["a"]),
        ("status = create(&field, n);", "create", ["field"]),
        ("Field pressure(n), velocity(n);", "Field::Field", ["pressure", "velocity"]),
        ("double *q = grid<double>(n);", "grid<double>", ["q"]),
        ("return run_all();", "run_all", []),
        ("call work(first, 100000)", "work", []),
    ],
)
def test_the_variables_that_are_given_what_a_function_returns(
    text: str, callee: str, names: list[str]
) -> None:
    assert variables(text, callee) == names


@pytest.mark.parametrize("name", ["u", "grid%u", "s->u", "blocks(i)%u", "a.b.u", "mod::u", "s[3].u"])
def test_the_last_component(name: str) -> None:
    assert last_component(name) == "u"


FREE = """\
allocate (u(n), & ! of speeds
          ! a comment between
          text('&!', n), &

        & rhs(n), &
          stat = ios)
x = 1
"""
FIXED = """\
      real*8 a
C     a comment
      allocate(u(n),
     &         rhs(n),
c     between
     1         stat = ios)
      a = 1
"""
C = """\
#include <stdlib.h>
double *make(int n) {
    double *first = /* of n */
        malloc(n * sizeof *first); // here
    if (!first) abort();
    return first;
}
void keep(int n) {
    other = malloc(
        n);
}
"""


@pytest.mark.parametrize(
    ("name", "text", "lines", "expected"),
    [
        ("a.f90", FREE, range(1, 7), "allocate (u(n), text('&!', n), rhs(n), stat = ios)"),
        ("a.f90", FREE, [7], "x = 1"),
        ("a.f", FIXED, [3, 4, 6], "allocate(u(n), rhs(n), stat = ios)"),
        ("a.f", FIXED, [7], "a = 1"),
        ("a.c", C, [3, 4], "double *first = malloc(n * sizeof *first);"),
        ("a.c", C, [9, 10], "other = malloc( n);"),
        ("a.c", C, [0, 99], ""),
    ],
)
def test_a_statement_is_found_from_each_of_its_lines(
    name: str, text: str, lines: list[int], expected: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    for line in lines:
        assert statement(str(file), line).text == expected, line


LISTS = """\
struct Solver {
  explicit Solver(std::size_t n)
    : pressure(n),
      velocity(n)
    , work(new double[n * f(1,
                            2)]()) {}
};
void f(long n) {
  auto *first = new double[n], *second = new double[n],
       *third = new double[n];
  std::vector<double> u(n), v(n),
      w(n);
  one = malloc(n), two =
      malloc(n), three = malloc(n);
}
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (2, ["pressure", "velocity", "work"]),
        (3, ["pressure"]),
        (4, ["velocity"]),
        (5, ["work"]),
        (6, ["work"]),
        (9, ["first", "second"]),
        (10, ["third"]),
        (11, ["u", "v"]),
        (12, ["w"]),
        (13, ["one", "two"]),
        (14, ["two", "three"]),
    ],
)
def test_a_list_over_several_lines_has_the_variables_of_each_line(
    line: int, names: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.cpp"
    file.write_text(LISTS)
    assert variables(statement(str(file), line).text) == names


def test_an_allocator_returns_what_it_allocates(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text(C)
    assert statement(str(file), 4).returned
    assert not statement(str(file), 9).returned


def test_a_fortran_function_returns_its_result(tmp_path: Path) -> None:
    file = tmp_path / "a.f90"
    file.write_text(
        "function make(n) result(p)\nallocate(p(n))\nallocate(other(n))\nend function\n"
        "subroutine work\nallocate(p(3))\nend subroutine\n"
        "real function f(n)\nallocate(f(n))\nend function f\nallocate(f(3))\n"
    )
    returned = [line for line in range(1, 12) if statement(str(file), line).returned]
    assert returned == [2, 9]


def test_a_file_that_is_not_there_has_no_statements() -> None:
    assert statement("/nowhere/a.c", 3).text == ""
