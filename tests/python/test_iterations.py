"""Which loops' iterations are seen to need each other, by the loop's text."""

from __future__ import annotations

import pytest

from homing.report.iterations import Iterations, iterations_of_c, iterations_of_fortran


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("for (int i = 1; i < n; i++) a[i] = a[i - 1] + 0.25;", ["a"]),
        ("for (int i = 0; i < n; i++) { a[i] = 0; a[i + 1] = 2; }", ["a"]),
        ("for (int i = 0; i < n; i++) { seed = seed * 5; a[i] = seed >> 11; }", ["seed"]),
        ("for (int i = 0; i < n; i++) { s.x += i; a[i] = s.x; }", ["s.x"]),
        ("for (int i = 0; i < n; i++) a[i] = k++;", ["k"]),
        ("for (int i = 0; i < n; i++) { k = 2 * i; a[k] = 1; }", ["k"]),
        ("for (int i = 0; i < n; i++) { static int k = 1; k *= 3; a[i] = k; }", ["k"]),
        ("for (int i = 0; i < n; i++) a[i] = rand() / 2;", ["rand"]),
        ("for (int i = 0; i < n; i++)\n  for (int j = 0; j < n; j++)\n    u[i][j] = i == 0 ? 1. : 0.;", []),
        ("for (int i = 0; i < n; i++) { double x = i, y = 2; x += y; a[i] = x; b[i] = a[i]; }", []),
        ("for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) a[i][j] = a[i][j - 1];", []),
        ("for (int i = 0; i < n; i++) { a[i] = x; last = i; }", []),
        ("for (int i = 0; i < n; i++) { std::vector<int> q(3), r; r = q; unsigned s = i; s ^= 3; }", []),
        ("for (int i = 0; i < n; i++) if (i % 2) { a[i] = 1; } else a[i] = b[i - 1]; k = k + 1;", []),
        ("for (double *p = u; p < u + n; p++) *p = 0;", []),
        ("for (auto &x : a) x = 1; // y += x", []),
        ("for (int i = 0; i < n; i++) a[i] = 0; /* a[i - 1] */", []),
        ("while (n--) *u++ = 0;", []),
    ],
)
def test_loops_of_c(text: str, shared: list[str]) -> None:
    assert iterations_of_c(text.splitlines(), 1) == Iterations(tuple(shared))


def test_each_thread_needs_its_own_variable_of_an_inner_loop() -> None:
    text = "for (i = 0; i < n; i++) for (j = 0; j < n; j++) { int k; for (k = 0; k < 3; k++) a[i][j] += k; }"
    assert iterations_of_c([text], 1) == Iterations((), ("j",))


@pytest.mark.parametrize(
    ("lines", "fixed", "shared"),
    [
        (["do i = 2, n", "  A(i) = a(i - 1) + 1", "end do"], False, ["a"]),
        (["do i = 1, n", "  call random_number(x)", "  a(i) = x", "end do"], False, ["random_number"]),
        (["do i = 1, n", "  s = s * 5", "  a(i) = s", "end do"], False, ["s"]),
        (["do i = 1, n", "  if (b) s = s + 1", "end do"], False, ["s"]),
        (
            ["do j = 1, n", " do i = 2, n", "  q(i, j) = q(i - 1, j) &", "    + 3", " end do", "end do"],
            False,
            [],
        ),
        (["do i = 1, n", "  a(i) = 1 ! a(i - 1)", "end do", "s = s + 1"], False, []),
        (
            ["      do 10 i=1,n", "      a(i) = 3", "     & + a(i-1)", "   10 continue", "      s = s+1"],
            True,
            ["a"],
        ),
    ],
)
def test_loops_of_fortran(lines: list[str], fixed: bool, shared: list[str]) -> None:
    assert iterations_of_fortran(lines, 1, fixed) == Iterations(tuple(shared))
