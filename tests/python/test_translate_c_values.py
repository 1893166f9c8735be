"""C and C++: functions that return what they compute of distributed arrays in serial code."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop, run_command

GETTERS = """#include <stdio.h>
#define N 40
static double a[N];
static int map[N];
#pragma homing distribute a[block], map[block]
static double get(int i) { return a[i]; }
static double both(int i, int j)
{
    return (a[i] +
            a[j]);
}
static int half(int i) { if (i > 3) return a[i] / 2; else return a[map[i]]; }
static double kind(int i)
{
    switch (i) {
    case 1: return a[1];
    case 2:
        a[2] += 5;
        /* fall through */
    default: return a[i] - 1;
    }
}
static double guarded(int i)
{
    if (i < 0 || i >= N)
        return -1;
    a[i] += 1;
    return a[i];
}
int main(void)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) { a[i] = i; map[i] = N - 1 - i; }
    double g = get(5);
    g += get(7) + both(1, 2);
    printf("%g %d %d %g %g\\n", g, half(7), half(2), guarded(-3), guarded(3));
    if (get(3) > 2) printf("yes %g %g %g\\n", get(4), kind(1), kind(9));
    printf("%g %g\\n", kind(2), get(2));
    return 0;
}
"""
REFERENCE = """static double a[40];
#pragma homing distribute a[block]
static {result} &at(int i) {{ return a[i]; }}
int main()
{{
#pragma omp parallel for
    for (int i = 0; i < 40; i++) a[i] = i;
    return at(3) > 7;
}}
"""


def test_functions_return_elements(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "built")
    source = tmp_path / "p.c"
    source.write_text(GETTERS)
    made, _ = workshop.translated(source, "spmd")
    assert run_command([made], tmp_path, OMP_NUM_THREADS="3") == workshop.printed(source)


@pytest.mark.parametrize("result", ["double", "const double"])
def test_references_to_elements_are_refused(tmp_path: Path, result: str) -> None:
    source = tmp_path / "p.cpp"
    source.write_text(REFERENCE.format(result=result))
    with pytest.raises(TranslationError, match="may give the distributed array another name"):
        translate([str(source)], Options("spmd"))


#: Jumps out of serial code on gathered arrays.
JUMPS = """#include <stdio.h>
#include <stdlib.h>
static double u[20];
static int n = 20;
#pragma homing distribute u[block]
static void fill(void)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        u[i] += i;
}
static int find(double x)
{
    fill();
    for (int i = 0; i < n; i++) {
        u[i] += 1;
        if (u[i] > x)
            return i;
    }
    if (x < 0) {
        u[0] = x;
        return -1;
    }
    fill();
    return -2;
}
int main(void)
{
    int k, all = 0;
    for (k = 0; k < 9; k++) {
        fill();
        double x = u[3] + k;
        u[7] = 0;
        if (k == 1) {
            u[8] = 3;
            continue;
        }
        if (x > 17) {
            u[4] = 99;
            break;
        }
        switch (k) {
        case 2:
            u[5] += 1;
            break;
        default:
            u[6] = k;
        }
        for (int j = 0; j < 5; j++) {
            u[j] *= 2;
            if (j == 3)
                break;
        }
        fill();
    }
    all = find(40) + 100 * find(1e9);
    u[2] = 5;
    if (all > 1e6)
        goto out;
    u[3] = 6;
    fill();
out:
    printf("%d %d", k, all);
    for (int i = 0; i < n; i++)
        printf(" %g", u[i]);
    return 0;
}
"""
#: Calls through pointers; a function's statements on one line.
POINTERS = """#include <stdio.h>
#include <stdlib.h>
static double u[20];
#pragma homing distribute u[block]
static double first(const double *p, int n) { return p[n - 1]; }
static double bump(int i) { u[i] += 10; return u[i]; }
static int cmp(const void *a, const void *b)
{ double x = u[*(const int *)a], y = u[*(const int *)b]; return (x > y) - (x < y); }
static void at_end(void) { u[1] = 5; }
struct op { const char *name; double (*f)(int); };
static const struct op ops[] = {{"bump", bump}};
int main(void) {
    double (*f)(int) = bump; int idx[20]; double s = 0;
#pragma omp parallel for
    for (int i = 0; i < 20; i++) u[i] = (i * 7) % 20;
    for (int i = 0; i < 20; i++) idx[i] = i;
    s = f(3);
    s = s + u[3];
    u[4] = 1;
    f(4);
    printf("%g %g\\n", s, u[4]);
    u[5] = 60;
    ops[0].f(5);
    qsort(idx, 20, sizeof(int), cmp);
    u[6] = 2;
    double (*sum)(const double *, int) = first;
    s = sum(u, 20);
    if (s < -1) atexit(at_end);
    printf("%d %d %g\\n", idx[0], idx[19], u[5]);
}
"""


@pytest.mark.parametrize("program", [JUMPS, POINTERS])
def test_what_leaves_gathered_arrays(tmp_path: Path, program: str) -> None:
    source = tmp_path / "p.c"
    source.write_text(program)
    Workshop(tmp_path).expect_the_same(source, ("spmd",))
