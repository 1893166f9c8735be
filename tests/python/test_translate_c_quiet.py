"""--to mpi, C and C++: functions of headers in loops whose iterations other ranks run."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate

PROGRAM = """#include "h.h"
static double a[40];
#pragma homing distribute a[block]
int main(void)
{
    double t[3] = {1, 2, 3};
    (void)t;
#pragma omp parallel for
    for (int i = 0; i < 40; i++)
        a[i] = f(VALUE);
    return 0;
}
"""
QUIET = [
    ("static inline double f(double x) { return x * x; }", "i"),
    ("#include <math.h>\nstatic inline double f(double x) { x += 1; return x > 2 ? sqrt(x) : x; }", "i"),
    (
        "static double g(int k) { return k; }\n"
        "static double f(int k) { double s = 0; while (k--) s += g(k); return s; }",
        "i",
    ),
    ("static double f(const double *p) { double v[2] = {0}; v[1] = p[1]; return v[1]; }", "t"),
    ("struct s { double x; };\nstatic double f(double y) { struct s q; q.x = y; return q.x; }", "i"),
    ("static const double scale = 2;\nstatic double f(double x) { return x * scale; }", "i"),
]
LOUD = [
    ("static int count;\nstatic double f(double x) { count++; return x; }", "i"),
    ("static double f(double x) { static double last; last = x; return last; }", "i"),
    ("static double f(double *p) { p[1] = 2; return *p; }", "t"),
    ("static double f(double *p) { return (*p)++; }", "t"),
    ("void other(double);\nstatic double f(double x) { other(x); return x; }", "i"),
    ("static double f(double x) { double y = 0, *p = &y; *p = x; return y; }", "i"),
    ("static double (*g)(double);\nstatic double f(double x) { return g(x); }", "i"),
    ("#include <string.h>\nstatic double f(double *p) { memset(p, 0, 8); return *p; }", "t"),
]


def _program(folder: Path, header: str, value: str, name: str = "p.c") -> str:
    (folder / "h.h").write_text(header + "\n")
    source = folder / name
    source.write_text(PROGRAM.replace("VALUE", value))
    return str(source)


@pytest.mark.parametrize(("header", "value"), QUIET)
def test_functions_that_compute(tmp_path: Path, header: str, value: str) -> None:
    translate([_program(tmp_path, header, value)], Options("mpi"))


@pytest.mark.parametrize(("header", "value"), LOUD)
def test_functions_that_write(tmp_path: Path, header: str, value: str) -> None:
    with pytest.raises(TranslationError, match=r"is not seen|may be any|may write|is shared and written"):
        translate([_program(tmp_path, header, value)], Options("mpi"))


def test_references_of_cxx(tmp_path: Path) -> None:
    translate(
        [_program(tmp_path, "inline double f(double x) { x += 1; return x; }", "i", "p.cpp")], Options("mpi")
    )
    with pytest.raises(TranslationError):
        header = "inline double f(double &x) { x += 1; return x; }"
        translate([_program(tmp_path, header, "t[0]", "p.cpp")], Options("mpi"))
