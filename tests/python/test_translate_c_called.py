"""C: functions that use elements of the file's distributed arrays, called in loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command

HEAD = """#include <math.h>
#include <stdio.h>
#define N 40
#define M 6
#define SQ(x) ((x) * (x))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static double u[N], v[N], w[N], m[N][M];
int k = 3, i, calls;
#pragma homing distribute u[block], v[block], w[block], m[block][*]
"""
FUNCTIONS = """
/* Values of other types than what they are made of, and macros. */
static int whole(int i) { return u[i] * 1.7; }
static float single(const int i) { return u[i] / 3; }
static unsigned char byte(int i) { return u[i] * 100; }
static double neg(int i, int j) { return -u[i - j] - -u[i + j]; }
static double square(int i) { return SQ(u[i] + u[i + 1]) + MAX(u[i], u[i - 1]); }
static double flux(int i) { double l = u[i], r = u[i + 1]; return l > r ? l : r; }
static double between(int i) { return flux(i) - flux(i - 1); }
/* Statements: they return early, and have names of their own. */
static double third(double x, int i) {
    if (x < 1) return 1;
    if (x < 2) {
        double y = u[i] + x; // the same name as elsewhere
        y *= x;
        return y * y;
    } else if (x < 3)
        return 7;
    return x;
}
static double sum3(int j) {
    double s = 0, t[3] = {u[j - 1], u[j], u[j + 1]};
    for (int i = 0; i < 3; i++) { double s2 = t[i]; s += s2; }
    return s;
}
static int count(int j) { int n = 0; while (n < 5 && u[j] > n) n++; return n; }
static double row(int i) { double s = 0; for (int j = 0; j < M; j++) s += m[i][j]; return s; }
static void put(int j, double x) {
    double a = x; /* comments
                     of two lines, */
    a *= 2; // and "texts": not a -= 1
    a += "/*  b"/* c */[4] - 'b';
    v[j] = a;
    w[j] = x;
    if (j % 3 == 0) return;
    v[j] += 1;
    if (j % 3 == 1) { w[j] = 0; return; }
    else w[j] -= 1;
}
static void set(int i) { for (int j = 0; j < M; j++) m[i][j] = u[i] * j; }
static double scaled(int i) { return k * u[i]; }
"""
MAIN = """
int main(void) {
    double sum = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++) { u[i] = i * 7 % 10 * 0.37; v[i] = w[i] = 0; set(i); }
#pragma omp parallel for reduction(+ : sum)
    for (int i = 2; i < N - 2; i++) {
        const double x = 100;
        v[i] = whole(i) + single(i + 1) * 3 + byte(i) + square(i) - neg(i, 1) * 2 + between(i);
        v[i] += third(v[i] - x, i) / 2 - third(i & 3, i);
        sum += whole(i) / 2 + row(i - 1);
    }
    printf("%.10g\\n", sum);
    for (int i = 0; i < N; i += 5) printf("%.10g\\n", v[i]);
#pragma omp parallel for
    for (int j = 1; j < N - 1; j++) {
        if (j % 2) put(j, sum3(j)); else put(j, count(j) + 0.5);
        if (sum3(j) > 6) w[j] += sum3(j) * count(j);
        else if (j % 5) w[j] -= 1;
        double a = count(j), b = a + 1;
        for (int r = 0; r < 2; r++) v[j] += sum3(j) * r;
        w[j] += a * b;
#pragma omp critical
        sum += byte(j) - scaled(j);
    }
    printf("%.10g %.10g %d\\n", sum, scaled(3), count(4));
    for (int j = 0; j < N; j += 3) printf("%.10g %.10g\\n", v[j], w[j]);
    return 0;
}
"""


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_they_are_written_out(tmp_path_factory: pytest.TempPathFactory, target: str) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("called"))
    source = workshop.place() / "p.c"
    source.write_text(HEAD + FUNCTIONS + MAIN)
    program, _ = workshop.translated(source, target, checked=target == "spmd")
    start = [*MPIRUN, "-n", "3"] if target == "mpi" else []
    printed = run_command([*start, program], workshop.folder, OMP_NUM_THREADS="1" if start else "4")
    assert printed == workshop.printed(source)


#: Functions, and the body of the loop: the call would mean something else in the loop, or cannot be told.
REFUSED = [
    ("double by_k(int i) { return k * u[i]; }", "firstprivate(k)", "v[i] = by_k(i) + k;"),
    ("double by_k(int i) { return k * u[i]; }", "", "int k = 9; v[i] = by_k(i) + k;"),
    ("double by_i(int j) { return u[j] + i; }", "private(i)", "v[j] = by_i(j); i = 1;"),
    (
        "int find(int i) { for (int j = 0; j < 9; j++) if (m[i][j] > 4) return j; return -1; }",
        "",
        "v[i] = find(i);",
    ),
    ("double kept(int i) { static double last; last += 1; return u[i] + last; }", "", "v[i] = kept(i);"),
    ("double noted(int i) { calls++; return u[i]; }", "", "v[i] = noted(i);"),
    ("double added(int i) { return u[i] + calls++; }", "", "v[i] = added(i);"),
    ("double fall(int i) { return i > 1 ? fall(i - 1) : u[i]; }", "", "v[i] = fall(i);"),
    ("double line(int i) { return u[i] + __LINE__; }", "", "v[i] = line(i);"),
    ("double late(int i) { double s = 0; s += u[i]; return s; }", "", "v[i] = i > 3 ? late(i) : 0;"),
    ("double by_m(int i) { return u[i] * M; }", "", "v[i] = by_m(i);\n#undef M\n#define M 9\n"),
]


@pytest.mark.parametrize(("function", "clause", "body"), REFUSED)
def test_calls_that_would_mean_something_else_are_refused(
    tmp_path: Path, function: str, clause: str, body: str
) -> None:
    variable = "j" if "[j]" in body else "i"
    loop = f"for (int {variable} = 2; {variable} < N - 2; {variable}++) {{\n{body}\n}}"
    text = f"{HEAD}static {function}\nint main(void) {{\n#pragma omp parallel for {clause}\n{loop}\n}}\n"
    (tmp_path / "p.c").write_text(text)
    name = function.partition("(")[0].split()[-1]
    with pytest.raises(TranslationError, match=f"or write what '{name}' does into the loop"):
        translate([str(tmp_path / "p.c")], Options("spmd"))


@pytest.mark.parametrize("target", ["pages", "upm"])
def test_where_arrays_stay_whole_calls_stay(tmp_path: Path, target: str) -> None:
    (tmp_path / "p.c").write_text(HEAD + FUNCTIONS + MAIN)
    output = translate([str(tmp_path / "p.c")], Options(target)).outputs[0].text
    assert "put(j, sum3(j))" in output


def test_functions_that_nothing_calls_any_more_go(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(HEAD + FUNCTIONS + MAIN)
    output = translate([str(tmp_path / "p.c")], Options("spmd")).outputs[0].text
    assert "flux(" not in output
    assert "scaled(" in output


LISTED = """#include <stdio.h>
#include <math.h>
#define N 100
static double u[N], v[N];
#pragma homing distribute u[block], v[block]
static double c = 3, d = 2;
static const double k = 1.5;
enum { LIM = 90 };
static int each = 1;
#pragma omp threadprivate(each)
static double flux(int i) { return u[i] * 2 + c + k; }
static double mean(int i) { double t = u[i] * d; if (i > LIM) t += sqrt(c) * each; return t; }
static void relax(int i) { v[i] += u[i] * k; }
int main(void) {
    double s = 0;
    int i;
    for (i = 0; i < N; i++) u[i] = i;
#pragma omp parallel for default(none) private(i) shared(v)
    for (i = 0; i < N; i++) v[i] = flux(i);
#pragma omp parallel default(none) shared(v) \\
    reduction(+ : s)
    {
#pragma omp for private(i)
        for (i = 0; i < N; i++) {
            double m = mean(i);
            relax(i);
            s += m + flux(i);
        }
    }
    double t = 0;
    for (i = 0; i < N; i++) t += v[i];
    printf("%.6f %.6f\\n", s, t);
}
"""


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_default_none_lists_the_variables_that_they_bring(
    tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("listed"))
    source = workshop.place() / "p.c"
    source.write_text(LISTED)
    assert "flux(i)" not in translate([str(source)], Options(target)).outputs[0].text
    workshop.expect_the_same(source, [target])


@pytest.mark.parametrize("clauses", ["private(c) shared(v)", "firstprivate(c) shared(v)"])
def test_default_none_lists_none_that_means_something_else(tmp_path: Path, clauses: str) -> None:
    text = LISTED.replace("private(i) shared(v)", f"private(i) {clauses}")
    (tmp_path / "p.c").write_text(text)
    with pytest.raises(TranslationError, match="or write what 'flux' does into the loop"):
        translate([str(tmp_path / "p.c")], Options("spmd"))
