"""C++ programs with directives: what is like C is translated, the rest is refused by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import MPIRUN, TREE, run_command

TARGETS = ("spmd", "pages", "mpi", "upm")
LIBRARY = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")

#: References to arrays, namespaces, range-for, auto, new and delete, std's functions and streams.
GRID = """\
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
namespace grid {
const int n = 20;
static double u[n + 2][n + 2], v[n + 2][n + 2];
#pragma homing distribute u[block][*], v[block][*]
inline double mean(double a, double b, double c, double d) { return 0.25 * (a + b + c + d); }
void sweep(double (&to)[n + 2][n + 2], const double (&from)[n + 2][n + 2], double &change)
{
    double most = 0;
#pragma omp parallel for reduction(max : most)
    for (int i = 1; i <= n; ++i)
        for (int j = 1; j <= n; j++) {
            to[i][j] = mean(from[i - 1][j], from[i + 1][j], from[i][j - 1], from[i][j + 1]);
            most = std::max(most, std::fabs(to[i][j] - from[i][j]));
        }
    change = most;
}
}
extern "C" {
static int parity(int i) { return i % 2; }
}
using namespace grid;
int main()
{
    double change = 0;
    auto steps = 5;
    for (int i = 0; i < n + 2; i++)
        for (int j = 0; j < n + 2; j++)
            u[i][j] = v[i][j] = (i * j) % 7;
    for (int t = 0; t < steps; t++) {
        grid::sweep(v, u, change);
        grid::sweep(u, v, change);
    }
    double w[4] = {1, 2, 3, 4}, sum = 0;
    for (auto &x : w)
        x *= 2;
    for (double x : w)
        sum += x;
    double *line = new double[n]();
#pragma homing distribute line[cyclic(2)] extent(n)
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        line[i] = line[i] + i + w[i % 4] + parity(i);
    for (int i = 0; i < n; i++)
        sum += line[i];
    std::cout << u[3][4] << ' ' << sum << " " << change << std::endl;
    std::printf("%.17g\\n", u[10][10]);
    delete[] line;
    return EXIT_SUCCESS;
}
"""
#: Arrays of a namespace that main does not open, and of one that the directive stands outside of, known by
#: `using`; memory from new in an anonymous one, and of `auto`.
APART = """\
#include <cstdio>
namespace store {
const int n = 16;
double a[n], b[n];
#pragma homing distribute a[block], b[block]
void fill()
{
    for (int i = 0; i < n; i++)
        a[i] = i * i, b[i] = 0;
}
void step()
{
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
        b[i] = a[i - 1] + a[i + 1];
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
        a[i] = b[i] / 2;
}
void show()
{
    for (int i = 0; i < n; i++)
        std::printf("%g ", a[i]);
}
}
namespace far {
const int m = 14;
namespace away { double d[m]; }
namespace near {
double e[m];
#pragma homing distribute e[block]
}
}
#pragma homing distribute d[block]
using far::away::d;
using far::near::e;
namespace {
int *marks, count = 11;
#pragma homing distribute marks[cyclic] extent(count)
}
int main()
{
    marks = new int[count];
    const auto lines = new double[store::n][2]();
    auto line = new float[count];
#pragma homing distribute lines[block][*] extent(store::n, 2), line[block] extent(count)
#pragma omp parallel for
    for (int i = 0; i < store::n; i++)
        lines[i][1] += i;
#pragma omp parallel for
    for (int i = 0; i < count; i++)
        line[i] = 0.5f * i;
    store::fill();
    for (int t = 0; t < 4; t++)
        store::step();
#pragma omp parallel for
    for (int i = 0; i < count; i++)
        marks[i] = 3 * i;
#pragma omp parallel for
    for (int i = 0; i < far::m; i++)
        d[i] = i;
#pragma omp parallel for
    for (int i = 1; i < far::m; i++)
        e[i] = d[i - 1];
    marks[0] = int(e[far::m - 1]);
    store::show();
    std::printf("%d %d %g %g\\n", marks[0], marks[10], lines[9][1], line[3]);
    delete[] marks;
    delete[] lines;
    delete[] line;
}
"""
#: Procedures that a region calls get their parts; a matrix that is cut in both dimensions; prototypes.
PARTS = """\
#include <cstdio>
struct cell { double value; int count; };
const int n = 12;
using row = double[n];
using matrix = row[n];
matrix a, b;
cell cells[n];
#pragma homing distribute a[block][block], b[block][block], cells[cyclic]
void add(double (&to)[n][n], const double from[][n], long by);
int main()
{
    for (int i = 0; i < n; i++) {
        cells[i] = cell{1.5 * i, i};
        for (int j = 0; j < n; j++) {
            a[i][j] = i - 2 * j;
            b[i][j] = i * j;
        }
    }
    double total = 0;
#pragma omp parallel
    {
        add(a, b, 3);
#pragma omp for reduction(+ : total)
        for (int i = 0; i < n; i++) {
            cells[i].value += 1;
            total += cells[i].value * cells[i].count;
        }
    }
    cell last = cells[n - 1];
    std::printf("%g %g %d\\n", total, last.value, last.count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            std::printf("%g ", a[i][j]);
}
void add(double (&to)[n][n], const double from[][n], long by)
{
    long half = by;
#pragma homing nest(i, j)
#pragma omp for
    for (int i = 1; i < n; i++)
        for (int j = 0; j < n; j++)
            to[i][j] += from[i - 1][j] + half;
}
"""


RANGES = """\
#include <cstdio>
#include <initializer_list>
constexpr int n = 20;
static double u[n];
static int k[n];
#pragma homing distribute u[block], k[block]
static double total()
{
    double s = 0;
    for (auto x : u) {
        if (x > 50)
            continue;
        s += x;
        if (s > 500)
            break;
    }
    return s;
}
int main()
{
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        u[i] = i * i;
        k[i] = i % 3;
    }
    for (int &x : k)
        if (x == 1)
            x = 7;
        else
            --x;
    for (const double &x : u)
        for (int j : k)
            if (j > 1)
                std::printf("%g %d\\n", x, j);
#pragma omp parallel for
    for (double &x : u)
        x = x * 2 + 1;
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; ++i) {
        for (int j : k)
            s += j;
        for (double w : {1., 2.})
            s += w * u[i];
    }
    std::printf("%g %g\\n", total(), s);
    for (int x : k) std::printf("%d ", x);
}
"""


#: These stay in `make test`; together the others take half a minute.
SHORT = {
    ("grid", "mpi"),
    ("parts", "spmd"),
    ("apart", "upm"),
    ("apart", "spmd"),
    ("ranges", "spmd"),
    ("ranges", "mpi"),
}
RUNS = [
    pytest.param(
        text,
        target,
        id=f"{name}-{target}",
        marks=[] if (name, target) in SHORT else pytest.mark.full,
    )
    for name, text in (("grid", GRID), ("parts", PARTS), ("apart", APART), ("ranges", RANGES))
    for target in TARGETS
]


@pytest.mark.parametrize(("text", "target"), RUNS)
def test_programs_like_c(text: str, target: str, tmp_path: Path, workshop_folder: Path) -> None:
    gives_the_same(text, target, tmp_path, workshop_folder)


def gives_the_same(text: str, target: str, tmp_path: Path, workshop_folder: Path) -> None:
    source = tmp_path / "p.cpp"
    source.write_text(text)
    run_command(["g++", "-O1", "-fopenmp", "p.cpp", "-o", "plain"], tmp_path)
    expected = run_command(["./plain"], tmp_path, OMP_NUM_THREADS="1")
    code = "import sys; from homing.cli import main; sys.exit(main(sys.argv[1:]))"
    compiler = "mpicxx" if target == "mpi" else "g++"
    words = ["translate", "--to", target, "--", compiler, "-O1", "-fopenmp", "-Wall", "-Wno-unknown-pragmas"]
    words += ["p.cpp", "-o", "parts"]
    cache = os.fspath(workshop_folder)
    environment = {"PYTHONPATH": str(TREE), "HOMING_LIBRARY": LIBRARY, "XDG_CACHE_HOME": cache}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1", "2") if target == "mpi" else ("1", "3", "5"):
        assert run_command([*start, "./parts"], tmp_path, OMP_NUM_THREADS=threads) == expected


@pytest.fixture(scope="module")
def workshop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


BODY = """\
#include <algorithm>
#include <vector>
#include <string>
%s
int main()
{
    static double a[9];
#pragma homing distribute a[block]
    int n = 9;
#pragma omp parallel for
    for (int i = 0; i < 9; i++)
        a[i] = i;
    %s
}
"""
REFUSED = [
    ("", "double &x = a[n - 2]; n = 3; x = 3;", "13:17", "another name"),
    ("", "double &x = a[2] > 1 ? a[2] : a[3]; x = 3;", "13:28", "another name"),
    ("", "const double &x = std::max(a[2], a[3]); a[2] = x;", "13:32", "another name"),
    ("struct R { double &x; };", "R r{a[2]}; r.x = 3;", "13:9", "another name"),
    (
        "namespace one { double g[9]; }\nnamespace two {\n#pragma homing distribute g[block]\n}",
        "one::g[2] = 3;",
        "4:24",
        "'g' stands in another namespace: write the directive there",
    ),
    ("namespace one { int k; }\nnamespace two { int k; }", "", "5:17", "'k' stands in two namespaces"),
]


@pytest.mark.parametrize(("before", "inside", "where", "reason"), REFUSED)
def test_what_is_not_like_c_is_refused(
    before: str, inside: str, where: str, reason: str, tmp_path: Path
) -> None:
    source = tmp_path / "p.cc"
    source.write_text(BODY % (before, inside))
    with pytest.raises(TranslationError) as error:
        translate([str(source)], Options("spmd"))
    places = {f"{one.position.line}:{one.position.column}": one.reason for one in error.value.problems}
    assert reason in places.get(where, ""), places


def test_a_name_with_its_namespace(tmp_path: Path) -> None:
    """In a region the array's own name means the part, one with a namespace the whole array."""
    source = tmp_path / "p.cpp"
    text = "namespace g { static double a[9];\n#pragma homing distribute a[block]\n}\nint main()\n{\n"
    text += "#pragma omp parallel for\n    for (int i = 0; i < 9; i++)\n        g::a[i] = i;\n}\n"
    source.write_text(text)
    with pytest.raises(TranslationError, match=r"p\.cpp:8:9: .*using namespace"):
        translate([str(source)], Options("spmd"))


def test_c_for_a_cxx_compiler(tmp_path: Path) -> None:
    """g++ takes x.c for C++."""
    source = tmp_path / "x.c"
    source.write_text(
        "#include <vector>\nstatic double a[9];\n#pragma homing distribute a[block]\nint main() {}\n"
    )
    assert translate([str(source)], Options("spmd", flags=("-xc++",))).outputs[0].changed
    with pytest.raises(TranslationError, match="vector"):
        translate([str(source)], Options("spmd"))


def test_a_file_without_directives_may_be_anything(tmp_path: Path) -> None:
    source = tmp_path / "x.cpp"
    source.write_text("#include <vector>\nint main() { std::vector<int> v; }\n")
    result = translate([str(source)], Options("spmd"))
    assert not result.outputs[0].changed
