"""What stands in the source where memory was first touched: a loop is named only where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.report import touch_site
from homing.report.first_touch import FirstTouch
from homing.report.statements import statement
from homing.report.touch_site import (
    CONTAINER,
    FILL,
    LOOP,
    ONE_OF_REGION,
    PARALLEL,
    SOURCE,
    UNKNOWN,
    WHOLE,
    Site,
)

C = """
void serial(double *u, int n) {
  for (int t = 0; t < 3; t++)
    for (int i = 0; i < n; i++) { /* { */
      u[i] = 0;               // @element, 4
    }
  for (int i = 0; i < n; i++) { u[i] = 0; } // @line, 7
  for (int i = 0; i < n; i++) // @head, 8
    u[i] = 0;
  for (double *p = u; p < u + n; p++) *p = 0; // @pointer, 10
  while (n--) *u++ = 0;       // @while, 0
  memset(u, 0, n * 8);        // @memset, 12
  u[0] = 1;                   // @one, 0
  f(u);                       // @call, 0
}
void parallel(double *u, int n) {
#pragma omp parallel for \\
    schedule(static)
  for (int i = 0; i < n; i++)
    u[i] = 0;                 // @shared, 20
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < n; i++) u[i] = 0; // @for, 24
#pragma omp single
    for (int i = 0; i < n; i++) u[i] = 0; // @single, 26
  }
#pragma omp simd
  for (int i = 0; i < n; i++) u[i] = 0; // @simd, 29
#pragma omp barrier
  for (int i = 0; i < n; i++) u[i] = 0; // @barrier, 31
}
"""
CXX = """
struct Field {
  std::vector<double> d; double *m;
  Field(long n) : d(n, 1.0),  // @list, 4
    m(new double[n]()) {}     // @second, 5
};
int main() {
  for (int k = 0; k < 3; k++) {
    std::vector<double> a(n, 1.0), b(n); // @vector, 9
    a.resize(n * 2);          // @resize, 10
    auto c = new double[n](); // @new, 11
    for (auto &x : a) x = 1;  // @range, 12
    std::fill(a.begin(), a.end(), 1.0); // @fill, 13
    each(n, [&](int i) { for (int j = 0; j < n; j++) { a[i + 1'000 * j] = 1; } }); // @lambda, 14
  }
}
"""
FREE = """
subroutine fill(q, w, n)
  do s = 1, 3
    do j = 1, n
      do i = 1, n
        q(i, j) = i; w(i, j) = 0  ! @elements, 4
      end do
    end do
    w = 1                         ! @whole, 9
  end do
  w(:, 1) = 0                     ! @section, 11
  allocate (z(n), source = 2d0)   ! @source, 12
  read (10) w                     ! @read, 0
  w(1, 1) = 0                     ! @one, 0
  do i = 1, n
    t = t + q(i, 1)               ! @sum, 0
  end do
  !$omp parallel do
  do i = 1, n
    q(i, 1) = 0                   ! @shared, 20
  end do
  do i = 1, n
    q(i, 1) = 0                   ! @behind, 22
  end do
  !$omp parallel private(i)
  !$omp do
  do i = 1, n
    q(i, 1) = 0                   ! @do, 28
  end do
  !$omp single
  do i = 1, n
    q(i, 1) = 0                   ! @single, 32
  end do
  !$omp end single
  !$omp workshare
  w = 0                           ! @workshare, 36
  !$omp end workshare
  !$omp end parallel
  w = 0                           ! @last, 39
end subroutine
"""
FIXED = """
      subroutine fill(q, n)
      do 10 j = 1, n
      do 10 i = 1, n
      q(i, j) = 0                 ! @label, 3
   10 continue
      do 20 i = 1, n
   20 q(i, 1) = 0                 ! @on, 7
c$omp parallel do
      do i = 1, n
      q(i, 1) = 0                 ! @shared, 11
      end do
      end
"""
CASES = [
    *(("a.c", C, name, LOOP) for name in ("element", "line", "head", "pointer", "simd", "barrier")),
    *(("a.c", C, name, UNKNOWN) for name in ("while", "one", "call")),
    *(("a.c", C, name, PARALLEL) for name in ("shared", "for")),
    ("a.c", C, "memset", FILL),
    ("a.c", C, "single", ONE_OF_REGION),
    *(("a.cpp", CXX, name, CONTAINER) for name in ("list", "second", "vector", "resize", "new")),
    *(("a.cpp", CXX, name, LOOP) for name in ("range", "lambda")),
    ("a.cpp", CXX, "fill", FILL),
    *(("a.f90", FREE, name, LOOP) for name in ("elements", "behind")),
    *(("a.f90", FREE, name, WHOLE) for name in ("whole", "section", "last")),
    ("a.f90", FREE, "source", SOURCE),
    *(("a.f90", FREE, name, UNKNOWN) for name in ("read", "one", "sum")),
    *(("a.f90", FREE, name, PARALLEL) for name in ("shared", "do", "workshare")),
    ("a.f90", FREE, "single", ONE_OF_REGION),
    *(("a.f", FIXED, name, LOOP) for name in ("label", "on")),
    ("a.f", FIXED, "shared", PARALLEL),
]


def found(file: Path, line: int, text: str | None = None) -> Site:
    words = statement(str(file), line).text if text is None else text
    touch = FirstTouch("init", str(file), line, words, (1,), (0,), 1.0, 9)
    return touch_site.site(touch, ["q", "w", "z", "u"], ("", 0, ""))


@pytest.mark.parametrize(
    ("file", "source", "name", "kind"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES]
)
def test_what_stands_at_a_line_is_known(tmp_path: Path, file: str, source: str, name: str, kind: int) -> None:
    path = tmp_path / file
    path.write_text(source)
    lines = source.splitlines()
    (at,) = (number for number, text in enumerate(lines, start=1) if f"@{name}," in text)
    named = int(lines[at - 1].partition(f"@{name},")[2])
    one = found(path, at)
    assert (one.kind, one.line) == (kind, named)


def test_lines_of_headers_are_not_named_but_what_allocates() -> None:
    touch = FirstTouch(
        "std::fill", "/usr/include/c++/13/bits/stl_algobase.h", 922, "*first = tmp;", (1,), (0,), 1, 9
    )
    vector = ("/src/a.cpp", 4, "std::vector<double> a(n, 1.0), b(n);")
    assert touch_site.site(touch, ["a"], vector) == Site(CONTAINER, "/src/a.cpp", 4)
    assert touch_site.site(touch, ["a"], ("/src/a.cpp", 4, "a = make(n);")) == Site()


def test_without_the_source_the_statement_tells(tmp_path: Path) -> None:
    assert found(tmp_path / "gone.c", 3, "u[i] = 0;") == Site(LOOP, str(tmp_path / "gone.c"), 3)
    assert found(tmp_path / "gone.c", 3, "").kind == UNKNOWN
    assert found(tmp_path / "gone.f90", 3, "u(i) = 0").kind == LOOP
    assert found(tmp_path / "gone.f90", 3, "u = 0").kind == WHOLE


def test_a_source_that_was_changed_tells_nothing_of_loops(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text("#pragma omp parallel for\nfor (int i = 0; i < n; i++)\n  v[i] = 1;\n")
    assert found(path, 3, "u[i] = 0;") == Site(LOOP, str(path), 3)


IFDEF_C = """
#ifndef FILE_H
#define FILE_H
void f(double *u, int n) {
#ifdef PARALLEL
#pragma omp parallel for
#endif
  for (int i = 0; i < n; i++)
    u[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    u[i] = 0;
}
#endif
#if ONE
#pragma omp parallel for
void g(double *u, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    u[i] = 0;
}
#endif
"""
IFDEF_FORTRAN = """
#ifdef PARALLEL
!$omp parallel do
#endif
do i = 1, n
  u(i) = 0
end do
"""


@pytest.mark.parametrize(
    ("file", "source", "line", "kind", "directive"),
    [
        ("a.c", IFDEF_C, 9, LOOP, 6),
        ("a.c", IFDEF_C, 12, PARALLEL, 0),  # what guards a header was compiled
        ("a.c", IFDEF_C, 20, PARALLEL, 0),  # and what is in one part with the line
        ("a.F90", IFDEF_FORTRAN, 6, LOOP, 3),
    ],
)
def test_a_directive_that_may_not_have_been_compiled_is_none(
    tmp_path: Path, file: str, source: str, line: int, kind: int, directive: int
) -> None:
    path = tmp_path / file
    path.write_text(source)
    one = found(path, line)
    assert (one.kind, one.directive) == (kind, directive)


def test_threads_that_touch_together_tell_that_a_directive_was_compiled(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text(IFDEF_C)
    words = statement(str(path), 9).text
    touch = FirstTouch("f", str(path), 9, words, (1, 2), (0, 1), 1.0, 9)
    assert touch_site.site(touch, ["u"], ("", 0, "")).kind == PARALLEL


def test_what_a_loops_iterations_share_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text("for (int i = 1; i < n; i++)\n  a[i] = a[i - 1] + 0.25;\n")
    assert found(path, 2) == Site(LOOP, str(path), 1, shared=("a",))
    path = tmp_path / "b.f90"
    path.write_text("do i = 2, n\n  q(i) = q(i - 1) + 0.25\nend do\n")
    assert found(path, 2) == Site(LOOP, str(path), 1, shared=("q",))
