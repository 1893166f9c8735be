"""C++ programs with classes, templates and lambdas beside distributed arrays: that code stays as it is, and
may not meet an array."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.test_translate_cxx import gives_the_same, workshop_folder

__all__ = ["workshop_folder"]

#: Objects, templates and lambdas that hold and compute numbers; what they are called is no array.
BESIDE = """\
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>
const int n = 40;
double u[n], v[n];
namespace physics { const double g = 9.5; double scale = 2, table[2] = {3, 6}; }
template <class T> struct Limits { static constexpr T tiny = std::numeric_limits<T>::min(); };
struct Factor { const char *name; double value; operator double() const { return value; } };
struct Vec { double x = 0, y = 0; Vec &operator+=(const Vec &o) { x += o.x; y += o.y; return *this; } };
std::vector<std::string> names{"u", "v"};
struct Settings { int more = 2; std::string title = "s"; int twice() const { return 2 * more; } } settings;
#define NOTE(x) Log::of_all().note(x)
struct cell { double a; int b; } c[n];
#pragma homing distribute u[block], v[block], c[block]
template <class T> T average(T x, T y) { return (x + y) / T(2); }
template <class T> struct Line { T a, b; T at(int i) const { return a + b * i; } };
struct Shape { virtual ~Shape() = default; virtual double of(int i) const { return i; } };
struct Square : Shape { double of(int i) const override { return 1.0 * i * i; } };
class Log {
    std::vector<double> all;
    std::string title;

public:
    double u = 0; // a member has an array's name
    explicit Log(std::string text) : title(std::move(text)) {}
    ~Log() { std::printf("%s: %zu entries\\n", title.c_str(), all.size()); }
    Log &operator<<(double x) { u += x; all.push_back(x); return *this; }
    template <class T> void note(const T &x) { all.push_back(x); }
    static Log &of_all() { static Log it("all"); return it; }
    double least() const { return *std::min_element(all.begin(), all.end()); }
};
namespace physics { void halve() { for (int i = 0; i < n; i++) v[i] /= 2; } }
static int parse(const char *text)
{
    try {
        return std::stoi(text);
    } catch (const std::invalid_argument &) {
        return 7;
    }
}
static double sum()
{
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++)
        s += u[i] * v[i];
    return s;
}
int main()
{
    Log log("sums");
    const Line<double> line{1.5, 0.25};
    const Factor factor{"factor", 0.5};
    auto square = [](double x) { return x * x; };
    std::vector<double> w(n, 0.5);
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>());
    shapes.emplace_back(new Shape);
    int k = parse("x") + parse("12") + 1'000;
    auto more = [&k] { k += 3; };
    for (auto &shape : shapes)
        for (int i = 0; i < n; i++)
            v[i] += shape->of(i);
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        c[i] = cell{1.0 * i, i};
    for (int t = 0; t < 3; t++) {
        more();
#pragma omp parallel for
        for (int i = 1; i < n; i++)
            u[i] = average(w[i - 1], w[i]) + line.at(i) + square(i) + k
                + factor * physics::g * physics::scale + Limits<double>::tiny
                + std::min({w[i], 4.5, physics::table[i % 2]});
        log << sum() << u[t];
        NOTE(double(u[t]));
        w.emplace_back(u[t]);
        w[t] = v[t + 1];
    }
    Vec total;
    total += Vec{u[7], 1};
    physics::halve();
    std::fill(u, u + 3, 2.5);
    std::sort(v + 1, v + n, [](double x, double y) { return x > y; });
    double most = *std::max_element(u, u + n), all = std::accumulate(u, u + n, 0.0);
    std::map<int, double> found;
    found[3] = c[3].a;
    for (auto &[key, value] : found)
        std::printf("%d %g ", key, value += u[key]);
    auto [a, b] = c[5];
    std::printf("%g %d %g %.12g %.12g %.12g\\n", a, b, most, all, log.least(), log.u);
    std::printf("%g %g %zu\\n", total.x, total.y, names.size() + settings.twice());
    for (int i = 0; i < n; i++)
        std::printf("%.12g %g ", u[i], v[i]);
}
"""


@pytest.mark.parametrize(
    "target",
    [
        "spmd",
        "mpi",
        pytest.param("pages", marks=pytest.mark.full),
        pytest.param("upm", marks=pytest.mark.full),
    ],
)
def test_classes_beside_arrays(target: str, tmp_path: Path, workshop_folder: Path) -> None:
    gives_the_same(BESIDE, target, tmp_path, workshop_folder)


FILE = """\
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>
double a[9];
#pragma homing distribute a[block]
static double sum()
{
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 9; i++)
        s += a[i];
    return s;
}
%s
int main()
{
    sum();
    %s
}
"""
#: Parallel code.
LOOP = "\n#pragma omp parallel for\n    for (int i = 0; i < 9; i++)\n        a[i] += 1;\n"
REFUSED = [
    ("struct S { void f() { a[1] = 2; } };", "", "16:23", "the class 'S' names the distributed 'a'"),
    ("struct S { double f() { return sum(); } };", "", "16:32", "the class 'S' may call 'sum'"),
    ("struct S { double x = sum(); };", "", "16:23", "the class 'S' may call 'sum'"),
    (
        "template <class T> void f(T x) { a[1] = x; }",
        "",
        "16:34",
        "the template 'f' names the distributed 'a'",
    ),
    ("#define SET a[1] = 2\nstruct S { void f() { SET; } };", "", "17:23", "names the distributed 'a'"),
    ("void f(int, double x = a[1]) {}", "f(1);", "16:24", "a default argument names"),
    (
        "template <double *P> struct S { static void f() {} };",
        "S<a>::f();",
        "20:7",
        "'a' is named where it is not followed",
    ),
    ("template <double (*F)()> double f() { return F(); }", "f<sum>();", "20:7", "the address of 'sum'"),
    ("double x = sum();\nstruct S { S() {} } s;", "", "16:1", "runs before main"),
    (
        "void f(double *p, int) {}\nvoid f(double *p) {\n#pragma omp parallel for\n"
        "for (int i = 0; i < 9; i++) p[i] = 2; }",
        "f(a);",
        "17:1",
        "'f' gets distributed arrays, and is overloaded",
    ),
    (
        "double b[9];\n#pragma distribute_reshape b[block]\nstruct S { void f() { b[1] = 2; } };",
        "",
        "18:23",
        "the class 'S' names the distributed 'b'",
    ),
    ("void *operator new[](std::size_t);", "", "16:1", "of the program's own"),
    (
        "struct P { double x = 3; };\nP b[9];\n#pragma homing distribute b[block]",
        "",
        "17:1",
        "objects of a class",
    ),
    ("", "std::function<double()> f = sum;", "20:33", "the address of 'sum'"),
    ("", "auto f = [&](int i) { return a[i]; }; f(3);", "20:34", "a lambda names the distributed"),
    ("#define TWICE(x) (x + [] { return x; }())", "TWICE(sum());", "20:11", "a lambda may call 'sum'"),
    ("template <class T> void f(const T &) {}", "f((double &)a[1]);", "20:17", "'f' comes from a template"),
    ("", "auto f = [] { return sum(); }; f();", "20:26", "a lambda may call 'sum'"),
    ("template <class T> void f(T *) {}", "f(a);", "20:7", "'f' comes from a template"),
    ("struct S { S(double *) {} };", "S s(a);", "20:9", "a constructor of 'S'"),
    ("", "std::vector<double> w(a, a + 9);", "20:27", "a constructor of 'vector' is not followed"),
    ("", "std::unique_ptr<double[]> p(a);", "20:33", "a constructor of 'unique_ptr'"),
    ("", "try { a[1] = 2; throw 3; } catch (int) { }", "20:5", "exceptions are not followed"),
    ("void f() try { a[1] = 2; } catch (...) {}", "", "16:16", "'f', whose body is a TRY, names the distr"),
    ("", "try { sum(); } catch (...) { }", "20:5", "exceptions are not followed: 'sum()'"),
    ("", f"if (double x = a[1]; x > 2) {{ {LOOP} }}", "20:5", "decides about parallel code"),
    ("", f"if (double x = a[1]) {{ {LOOP} }}", "20:5", "decides about parallel code"),
]


@pytest.mark.parametrize(("before", "inside", "where", "reason"), REFUSED)
def test_classes_that_meet_arrays_are_refused(
    before: str, inside: str, where: str, reason: str, tmp_path: Path
) -> None:
    found = _refused(before, inside, "spmd", tmp_path)
    assert reason in found.get(where, ""), found


#: What other ranks would not see, or all would do: state that a loop over own iterations changes.
OF_RANKS = [
    ("struct S { int k = 0; int f() { return ++k; } };", "S s;", "s.f()"),
    ("struct S { virtual int f() const { return 1; } };", "S t; const S &s = t;", "s.f()"),
    ("template <class T> T f(T x) { static T k; return k = x; }", "", "f(i)"),
    ("template <class T> T f(T x) { thread_local T k; return k = x; }", "", "f(i)"),
    ("struct S { int *p; int f() const { return *p; } };", "int k = 2; S s{&k};", "s.f()"),
    ("", "int k = 2; auto f = [k]() mutable { return k++; };", "f()"),
    ("", "int k = 2; auto f = [&k] { return k; };", "f()"),
    ("", "std::atomic<int> k{0};", "k++"),
    (
        "int g(int x) { return x; }",
        "int (*f)(int) = g; f = [](int x) { static int k; return k += x; };",
        "f(i)",
    ),
]


@pytest.mark.parametrize(("before", "inside", "value"), OF_RANKS)
def test_state_of_objects_is_not_divided_among_ranks(
    before: str, inside: str, value: str, tmp_path: Path
) -> None:
    loop = f"{inside}\n#pragma omp parallel for\n    for (int i = 0; i < 9; i++)\n        a[i] = {value};"
    found = _refused(before, loop, "mpi", tmp_path)
    assert any("what code of classes writes is not followed" in one for one in found.values()), found
    assert not any("is shared and written" in one for one in found.values()), found


EARLY = [
    "struct A { A() {} } a1;",
    "struct B { ~B() {} } b1;",
    "struct C { A a; } c1;",
    "int f(); struct D { int k = f(); } d1;",
    "std::vector<int> e1(f());",
    "struct G { bool operator()(int, int) const; }; std::set<int, G> g1;",
    "struct H { operator int() const; }; const H h1; std::vector<int> h2(h1);",
    "struct I { void operator()() const; }; std::function<void()> i1(I{});",
]


def test_objects_that_ranks_would_make_before_main(tmp_path: Path) -> None:
    found = _refused("\n".join(("#include <set>", *EARLY)), "", "mpi", tmp_path)
    early = {where.partition(":")[0] for where, why in found.items() if "runs before main begins" in why}
    assert early == {str(17 + at) for at in range(len(EARLY))}, found


def test_pointers_in_files_without_classes(tmp_path: Path) -> None:
    loop = "#pragma omp parallel for\n    for (int i = 0; i < 9; i++)\n        a[i] = f(i);"
    source = tmp_path / "p.cc"
    source.write_text(FILE % ("static int g(int x) { return x; }", f"int (*f)(int) = g;\n{loop}"))
    assert translate([str(source)], Options("mpi")).outputs


def _refused(before: str, inside: str, target: str, folder: Path) -> dict[str, str]:
    source = folder / "p.cc"
    source.write_text(FILE % (before, inside))
    with pytest.raises(TranslationError) as error:
        translate([str(source)], Options(target))
    return {f"{one.position.line}:{one.position.column}": one.reason for one in error.value.problems}
