"""C: elements by their addresses (`move(&ps[i], dt)`), and by macros (`#define U(i, j) u[i][j]`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop

ADDRESSES = """\
#include <stdio.h>
#include <stdlib.h>
#define N 60
typedef struct { double x, v[3]; struct { int k; } in; } part;
static part ps[N];
static double u[N], w[N][4];
#pragma homing distribute ps[block], u[block], w[block][*]
static void kick(part *p, double dt) { p->v[0] += dt; p->v[1] = p->v[0] * 2; p->in.k++; }
static void move(part *p, double dt) { kick(p, dt); (*p).x += p->v[0] * dt + p->v[1]; }
static double energy(const part *p) { return p->v[0] * p->v[0] + p[0].x; }
static void set(double *p, double x) { *p = x; }
static double get(const double *p) { return *p; }
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        set(&u[i], i * 0.5); set(&w[i][2], i);
        ps[i].x = i; ps[i].v[0] = 1; ps[i].in.k = i;
    }
    for (int t = 0; t < 3; t++) {
#pragma omp parallel for
        for (int i = 0; i < N; i++) { part *p = &ps[i]; move(p, 0.25); }
#pragma omp parallel for
        for (int i = 1; i < N - 1; i++) u[i] = get(&w[i][2]) + energy(&ps[i - 1]) + energy(&ps[i + 1]);
    }
    set(&u[5], 7);
    set(&u[N - 1], get(&u[3]));
    double s = 0;
#pragma omp parallel for reduction(+:s)
    for (int i = 0; i < N; i++) s += energy(&ps[i]) + get(&u[i]);
    printf("%.10g %d\\n", s, ps[7].in.k);
    return 0;
}
"""
MACROS = """\
#include <stdio.h>
#define N 24
#define U(i, j) u[i][j]
#define UP(i, j) U((i) - 1, j)
#define AT(a, k) (a)[(k)]
#define CUR f[c]
#define LAP(a, i, j) (a[(i) - 1][j] + a[(i) + 1][j] + a[i][(j) - 1] + a[i][(j) + 1] - 4 * a[i][j])
#define STR(x) #x
double u[N][N], w[N][N], f[N];
#pragma homing distribute u[block][*], w[block][*], f[block]
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) { U(i, j) = i * j % 5; w[i][j] = 0; }
        AT(f, i) = i;
    }
    for (int t = 0; t < 3; t++) {
#pragma omp parallel for
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) w[i][j] = LAP(u, i, j) + UP(i, j) * AT(f, i + 1);
#pragma omp parallel for
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) U(i, j) += 0.125 * w[i][j];
    }
    int c = 3;
    CUR += 2;
    double s = 0;
#pragma omp parallel for reduction(+:s)
    for (int i = 0; i < N; i++) s += AT(f, i) + U(i, (i + 1) % N);
    printf("%.10g %s %g\\n", s, STR(U(1, 2)), U(2, 3));
    return 0;
}
"""
REFUSED = """\
#include <assert.h>
#define N 60
#define U(i) u[i]
static double u[N], *keep;
#pragma homing distribute u[block]
static void before(const double *p) { keep[0] = p[-1]; }
static void kept(double *p) { keep = p; *p = 1; }
static double *given_back(double *p) { *p = 2; return p; }
static void counted(double *p) { p++; *p = 2; }
static void through(double *p) { kept(p); }
int main(void)
{
    for (int i = 1; i < N - 1; i++)
        {line};
}
"""


#: Macros that name variables, or have no brackets. The index is declared before its loop, with a value.
VARIABLES = """\
#include <stdio.h>
#define N 60
static double u[N], v[N];
#pragma homing distribute u[block], v[block]
#define HERE i
#define NEXT (HERE + 1)
#define BACK(n) (i - (n))
#define LAST (last - 1)
#define SIZE_OF_N N
#define TWO 1 + 1
static void smooth(double *x, double *y, int last)
{
    int i = 3;
#pragma omp parallel for
    for (i = 2; i < LAST; i++) {
        y[HERE] = x[NEXT] + 2 * x[BACK(1)] - x[i - (TWO)];
#ifdef HERE
        y[i] += HERE * SIZE_OF_N;
#endif
    }
}
int main(void)
{
    int i = 5, last = N;
# pragma omp parallel for
    for (i = 0; i < last; i++)
        u[HERE] = v[i] = i * i % 7;
#pragma omp parallel for
    for (i = 1; i < LAST; i++)
        v[i] = u[HERE] * 3 - u[NEXT] + u[BACK(1)];
    smooth(v, u, last);
    for (i = 0; i < N; i++)
        printf("%g %g\\n", u[i], v[HERE]);
    return 0;
}
"""


@pytest.mark.parametrize("program", [ADDRESSES, MACROS, VARIABLES])
def test_elements_by_addresses_and_macros(tmp_path: Path, program: str) -> None:
    source = tmp_path / "p.c"
    source.write_text(program)
    Workshop(tmp_path).expect_the_same(source, ("spmd", "mpi"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("before(&u[i])", "may give the distributed array another name"),
        ("kept(&u[i])", "may give the distributed array another name"),
        ("given_back(&u[i])", "may give the distributed array another name"),
        ("counted(&u[i])", "may give the distributed array another name"),
        ("through(&u[i])", "may give the distributed array another name"),
        ("assert(U(i) == 0)", "through the macro 'assert': write it out"),
    ],
)
def test_what_is_more_than_an_element(tmp_path: Path, line: str, reason: str) -> None:
    source = tmp_path / "p.c"
    source.write_text(REFUSED.replace("{line}", line))
    with pytest.raises(TranslationError, match=reason):
        translate([str(source)], Options("spmd"))
