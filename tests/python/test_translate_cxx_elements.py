"""C++: elements under references of a block (`P &p = ps[i];`), and given to functions by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.test_translate_cxx import gives_the_same, workshop_folder

__all__ = ["workshop_folder"]

REFERENCES = """\
#include <cstdio>
#include <utility>
constexpr int N = 32, M = 4;
struct V3 { double x, y, z; };
struct Box { V3 lo; double m[3]; int n; };
static V3 p[N], q[N];
static Box bx[N];
static double u[N], g[N][M];
#pragma homing distribute p[block], q[block], bx[block], u[block], g[block][*]
static double len(const V3 &v) { return v.x * v.x + v.y * v.y + v.z * v.z; }
static void bump(V3 &v, double d) { v.x += d; v.y = len(v); }
static void twice(double &x) { x *= 2; }
static void all(V3 &v) { twice(v.x); bump(v, 1); V3 w = v; w.x++; v = w; }
static void box(Box &b, const V3 &v)
{
    b.lo = v; b.n++;
    for (int k = 0; k < 3; k++) b.m[k] += k;
    if (b.n > 3) b.n--;
}
namespace deep {
static void fill()
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        V3 &a = p[i];
        auto &b = q[i];
        auto &row = g[i];
        const V3 &c = a;
        a = V3{1.0 * i, 2, 3};
        b = c;
        u[i] = i;
        for (int k = 0; k < M; k++) {
            double &e = g[i][k];
            e = k + a.x;
            row[k] *= 2;
        }
        Box &x = bx[i];
        x.lo = a; x.m[0] = 1; x.m[1] = 2; x.m[2] = 3; x.n = i;
    }
}
}
int main()
{
    deep::fill();
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        bump(p[i], 0.5); all(q[i]); twice(u[i]); twice(bx[i].m[1]); box(bx[i], p[i]);
        std::swap(p[i].x, p[i].y);
        std::swap(p[i], q[i]);
        u[i] += std::exchange(bx[i].m[2], 5.0);
    }
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++) {
        const V3 &l = p[i - 1], &r = p[i + 1];
        V3 *m = &q[i];
        m->x = 0.5 * (l.x + r.x);
    }
    std::swap(u[0], u[1]);
    std::swap(p[3], p[N - 1]);
    double old = std::exchange(u[7], 99.0), s = 0;
    V3 &first = p[0];
    first.x = 100;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++) {
        const Box &b = bx[i];
        s += len(p[i]) * i + q[i].x + u[i] * (i + 1) + b.n + b.m[1] + b.m[2] + b.lo.y + g[i][3];
    }
    std::printf("%.6f %g %g\\n", s, old, p[0].x);
}
"""
REFUSED = """\
#include <vector>
constexpr int N = 12;
struct V3 { double x, y, z; };
struct R { const double &x; };
static V3 p[N];
#pragma homing distribute p[block]
static V3 *kept; static const V3 *ck; static double *kx;
static void keeps(V3 &v) { kept = &v; }
static void names(V3 &v) { V3 &w = v; w.x++; }
static V3 &gives(V3 &v) { return v; }
static void captures(V3 &v) { auto f = [&] { v.x = 1; }; f(); }
static void inner(const V3 &v) { ck = &v; }
static void passes(V3 &v) { inner(v); }
static void holds(V3 &v) { R r{v.x}; v.y = r.x; }
static void assigns(V3 &v) { kx = &(v.x = 3); }
static void casts(V3 &v) { static_cast<V3 &>(v).x = 2; }
static void chooses(V3 &v) { V3 o{1, 2, 3}; (v.x > 1 ? v : o).x = 5; }
static void pushes(double &x) { std::vector<double *> w; w.push_back(&x); }
static void counts(double &x) { kx = &++x; }
static void binds(V3 &v) { const double &e = v.x; v.x = e; }
static void inc(int &i) { i++; }
int main()
{
    for (int i = 1; i < N - 1; i++) {
        p[i].x = i;
        {line};
    }
}
"""


@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_elements_by_references(target: str, tmp_path: Path, workshop_folder: Path) -> None:
    gives_the_same(REFERENCES, target, tmp_path, workshop_folder)


KEEPING = ("keeps", "names", "gives", "captures", "passes", "holds", "assigns", "casts", "chooses", "binds")


@pytest.mark.parametrize(
    "line",
    [
        *(f"{name}(p[i])" for name in KEEPING),
        "pushes(p[i].x)",
        "counts(p[i].y)",
        "V3 &r = p[i]; inc(i); r.x = 1",
        "int &k = i; V3 &r = p[i]; k++; r.x = 1",
        "auto f = [&] { i++; }; V3 &r = p[i]; f(); r.x = 1",
        "V3 &r = p[i]; auto f = [&] { r.x = 1; }; f()",
    ],
)
def test_what_may_be_more_than_an_element(tmp_path: Path, line: str) -> None:
    source = tmp_path / "p.cpp"
    source.write_text(REFUSED.replace("{line}", line))
    with pytest.raises(TranslationError, match="may give the distributed array another name"):
        translate([str(source)], Options("spmd"))
