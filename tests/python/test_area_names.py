"""Names of areas of real runs: compilers, levels of optimisation, languages; programs that are rebuilt,
moved or deleted after the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from homing.records import read_record
from tests.patience import PATIENCE
from tests.python.conftest import TREE, environment
from tests.rotation import in_rotation

LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))

pytestmark = pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY} is not built")

#: A region that repeats, in C and C++.
SWEEP = """
static void sweep(double *a, long n) {
    for (int s = 0; s < 6; s++) {
#pragma omp parallel for
        for (long i = 0; i < n; i++) a[i] += 1;
    }
}
"""

CALLERS = (
    r"""#include <stdio.h>
#include <stdlib.h>
static double *grid(long n) {
    double *g = malloc(n * sizeof *g);
    if (!g) abort();
    return g;
}
"""
    + SWEEP
    + r"""
int main(void) {
    long n = 1 << 17;
    double *pressure = grid(n);
    double *velocity = grid(n);
    double *t = grid(n), *next = grid(n);
    double *rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = grid(n);
    sweep(pressure, n); sweep(velocity, n); sweep(t, n); sweep(next, n);
    for (int i = 0; i < 3; i++) sweep(rows[i], n);
    printf("%g\n", pressure[5]);
}
"""
)

FORTRAN = """\
module fields
  real(8), allocatable :: density(:)
  real(8) :: inside(100000)
  type grid_t
    real(8), allocatable :: u(:)
    real(8), pointer :: p(:)
  end type
end module
subroutine work(n)
  use fields
  integer :: n, i, ios
  real(8), allocatable :: u(:), rhs(:), small(:)
  type(grid_t) :: grid
  real(8) :: a(80000), b(80000)
  common /blk/ a, b
  real(8), save :: kept(70000)
  allocate (u(n), small(3), &
            rhs(n), &
            stat = ios)
  allocate(grid%u(n), density(n))
  allocate(grid%p(n))
  u = 0; rhs = 0; grid%u = 0; grid%p = 0; density = 0; kept = 0; a = 0; b = 0; inside = 0; small = 0
  do i = 1, 6
    call sweep(u, n); call sweep(rhs, n); call sweep(grid%u, n); call sweep(grid%p, n)
    call sweep(density, n); call sweep(kept, 70000); call sweep(a, 80000); call sweep(inside, 100000)
  end do
  print *, u(3) + rhs(3) + grid%u(3) + grid%p(3) + density(3) + kept(3) + a(3) + b(3) + small(2) + inside(1)
end subroutine
subroutine sweep(x, n)
  integer :: n, i
  real(8) :: x(n)
  !$omp parallel do
  do i = 1, n
    x(i) = x(i) + 1
  end do
end subroutine
program p
  call work(100000)
end program
"""

AUTOMATIC = """\
module m
contains
  function make(n) result(p)
    integer :: n
    real(8), pointer :: p(:)
    allocate(p(n))
    p = 0
  end function
  subroutine work(x, n)
    integer :: n, i, k; real(8) :: x(n)
    real(8) :: tmp(n)
    real(8), allocatable :: copy(:)
    tmp = 1
    copy = tmp * 2
    do k = 1, 6
      !$omp parallel do
      do i = 1, n
        x(i) = x(i) + tmp(i)
        copy(i) = copy(i) + 1
      end do
    end do
    print *, copy(3)
  end subroutine
end module
program a
  use m
  real(8), pointer :: first(:), second(:)
  first => make(100000)
  second => make(100000)
  call work(first, 100000)
  call work(second, 100000)
  print *, first(3), second(3)
end program
"""

CXX = (
    r"""#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>
namespace flow { double field[100000]; namespace { double hidden[100000]; } }
template <class T, int N> struct Table { static double data[100000]; };
template <class T, int N> double Table<T, N>::data[100000];
template <class T> struct Block {
    explicit Block(long n) : cells(n) {}
    std::vector<T> cells;
};
"""
    + SWEEP
    + r"""
int main() {
    long n = 1 << 17;
    std::vector<double> speeds(n);
    std::vector<double> grown;
    grown.resize(n);
    Block<double> left(n);
    Block<double> right(n);
    auto owned = std::make_unique<double[]>(n);
    double *raw = new double[n]();
    void *aligned;
    if (posix_memalign(&aligned, 64, n * sizeof(double))) return 1;
    double *more = static_cast<double *>(std::calloc(n, sizeof(double)));
    auto make = [n] { return new double[n](); };
    double *made = make();
    for (long i = 0; i < n; i++) static_cast<double *>(aligned)[i] = 0;
    double *all[] = {speeds.data(), grown.data(), left.cells.data(), right.cells.data(), owned.get(), raw,
                     static_cast<double *>(aligned), more, made};
    for (double *one : all) sweep(one, n);
    sweep(flow::field, 100000); sweep(flow::hidden, 100000);
    sweep(Table<float, 3>::data, 100000); sweep(Table<int, 4>::data, 100000);
    std::printf("%g\n", raw[3]);
}
"""
)


def compiled(folder: Path, name: str, text: str, compiler: str, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    (folder / name).write_text(text)
    program = folder / "program"
    words = [compiler, "-fopenmp", *flags, name, "-o", "program"]
    subprocess.run(words, check=True, cwd=folder, timeout=PATIENCE)
    return program


def run(folder: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    variables = environment(
        LIBRARY, folder, HOMING_ASSUME_NODES="2", OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive", **more
    )
    return subprocess.run(
        [sys.executable, "-m", "homing", *map(str, words)],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def titles(file: Path) -> set[str]:
    (process,) = json.loads(file.read_text())["processes"]
    return {area["title"] for area in process["areas"]}


def areas(folder: Path, program: Path, *words: str, **more: str) -> dict[str, dict[str, Any]]:
    """The areas of a run by their titles, which are all different."""
    done = run(folder, "run", "--json", "out.json", "--record", "r", *words, "--", program, **more)
    assert done.returncode == 0, done.stderr
    (process,) = json.loads((folder / "out.json").read_text())["processes"]
    titles = [area["title"] for area in process["areas"]]
    assert len(set(titles)) == len(titles), titles
    return {area["title"]: area for area in process["areas"]}


@pytest.mark.parametrize(
    ("flags", "compiler"),
    in_rotation([["-O0", "-gdwarf-4"], ["-O3", "-gdwarf-5"]], ["gcc", "clang-19"]),
)
def test_blocks_of_one_allocator_are_told_apart_by_their_callers(
    compiler: str, flags: list[str], tmp_path: Path
) -> None:
    found = areas(tmp_path, compiled(tmp_path, "two.c", CALLERS, compiler, *flags))
    lines = CALLERS.splitlines()
    at = {
        name: next(i for i, line in enumerate(lines, 1) if f"*{name} = grid" in line)
        for name in ("pressure", "velocity", "t", "next")
    }
    expected = {f"{name}: grid (two.c:4) from main (two.c:{line})" for name, line in at.items()}
    loop = next(i for i, line in enumerate(lines, 1) if "rows[i] = grid" in line)
    rows = f"rows: grid (two.c:4) from main (two.c:{loop})"
    assert set(found) == expected | {rows}
    assert found[rows]["count"] == 3


@pytest.mark.parametrize(
    ("compiler", "level"), [("gfortran", "-O0"), ("gfortran", "-O2"), ("flang-new-19", "-O2")]
)
def test_each_array_of_an_allocate_statement_has_its_own_name(
    compiler: str, level: str, tmp_path: Path
) -> None:
    found = areas(tmp_path, compiled(tmp_path, "w.f90", FORTRAN, compiler, "-g", level))
    names = {title.split(" (")[0] for title in found}
    own = {"u", "rhs", "grid%u", "density", "grid%p", "/blk/", "fields::inside"}
    assert own <= names and not any("stat" in name for name in names), found
    assert {"kept", "work::kept"} & names
    block = next(area for title, area in found.items() if title.startswith("/blk/"))
    if compiler == "gfortran":  # flang 19 tells nothing of COMMON blocks
        assert [(one["name"], one["offset"], one["bytes"]) for one in block["members"]] == [
            ("a", 0, 640000),
            ("b", 640000, 640000),
        ]
    assert all(area["source"]["line"] for area in found.values() if area is not block)


def test_automatic_arrays_and_what_functions_return(tmp_path: Path) -> None:
    found = areas(tmp_path, compiled(tmp_path, "a.f90", AUTOMATIC, "gfortran", "-g", "-O1"))
    assert set(found) == {
        *(
            f"{name}: m::work (a.f90:{line}) from main program (a.f90:{caller})"
            for name, line in (("tmp", 11), ("copy", 14))
            for caller in (30, 31)
        ),
        "first: m::make (a.f90:6) from main program (a.f90:28)",
        "second: m::make (a.f90:6) from main program (a.f90:29)",
    }


@pytest.mark.parametrize(("compiler", "level"), in_rotation(["g++", "clang++-19"], ["-O0", "-O2"]))
def test_names_of_cxx_are_the_authors(compiler: str, level: str, tmp_path: Path) -> None:
    found = areas(tmp_path, compiled(tmp_path, "c.cpp", CXX, compiler, "-g", level))
    names = {title.split(" (c.cpp")[0] for title in found}
    for name in ("field", "(anonymous namespace)::hidden"):
        assert f"flow::{name}" in names, found
    for name in ("Table<float, 3>::data", "Table<int, 4>::data"):
        assert name in names, found
    for name in ("speeds", "grown", "owned", "raw", "aligned", "more"):
        assert name in names, found
    for name in ("left.cells: Block", "right.cells: Block", "made: "):
        assert any(one.startswith(name) for one in names), found


MEMBERS = (
    """#include <cstdio>
#include <memory>
#include <vector>
"""
    + SWEEP
    + """
struct Field {
    std::vector<double> data;
    explicit Field(std::size_t n) : data(n, 1.0) {}
};
struct Solver {
    Field pressure, velocity;
    std::unique_ptr<double[]> work;
    explicit Solver(std::size_t n)
        : pressure(n),
          velocity(n),
          work(new double[n]()) {}
};
int main() {
    const long n = 1 << 17;
    Solver solver(n);
    sweep(solver.pressure.data.data(), n); sweep(solver.velocity.data.data(), n); sweep(solver.work.get(), n);
    std::printf("%g\\n", solver.work[5] + solver.velocity.data[5] + solver.pressure.data[5]);
}
"""
)


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++-19", marks=pytest.mark.full)])
def test_members_of_a_list_over_several_lines(compiler: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, "m.cpp", MEMBERS, compiler, "-g", "-O1")
    found = {title.partition(":")[0]: title for title in areas(tmp_path, program)}
    assert set(found) == {"pressure.data", "velocity.data", "solver.work"}
    for name, rules in {
        "velocity.data": ("velocity", "velocity.data", "vel*.data", found["velocity.data"]),
        "solver.work": ("work", "solver.work", found["solver.work"]),
    }.items():
        for rule in rules:
            chosen = areas(tmp_path, program, "--areas", f"include={rule}")
            assert [title.partition(":")[0] for title in chosen] == [name], rule


def test_statics_of_one_name_in_two_files(tmp_path: Path) -> None:
    part = "static double x[100000];\n{} double *get_{}(void) {{ return x; }}\n"
    (tmp_path / "a.c").write_text(part.format("", "a"))
    (tmp_path / "b.c").write_text("/* b */\n\n" + part.format("", "b"))
    main = (
        "#include <stdio.h>\ndouble *get_a(void), *get_b(void);\n"
        + SWEEP
        + "int main(void) { sweep(get_a(), 100000); sweep(get_b(), 100000);"
        + 'printf("%g\\n", get_a()[3]); }\n'
    )
    program = compiled(tmp_path, "main.c", main, "gcc", "-g", "-O1", "a.c", "b.c")
    assert {"x (a.c:1)", "x (b.c:3)"} == set(areas(tmp_path, program))
    program = compiled(tmp_path, "main.c", main, "gcc", "-O1", "a.c", "b.c")
    assert {"x #1", "x #2"} == set(areas(tmp_path, program))


def test_without_debug_information_functions_and_offsets_are_told(tmp_path: Path) -> None:
    found = areas(tmp_path, compiled(tmp_path, "two.c", CALLERS, "gcc", "-O0"))
    assert len(found) >= 4
    assert all(title.startswith("heap@program+0x") and "in grid" in title for title in found), found


def rebuilt(folder: Path, program: Path) -> None:
    """The program again, from a source whose lines have moved."""
    source = folder / "two.c"
    source.write_text("\n\n\n" + source.read_text())
    flags = ["-O2", "-g", "-fopenmp"]
    subprocess.run(["gcc", *flags, "two.c", "-o", program], check=True, cwd=folder, timeout=PATIENCE)


def test_the_names_of_a_run_stay_when_the_program_is_rebuilt_or_deleted(tmp_path: Path) -> None:
    program = compiled(tmp_path, "two.c", CALLERS, "gcc", "-O2", "-g")
    before = set(areas(tmp_path, program))
    rebuilt(tmp_path, program)
    done = run(tmp_path, "report", "r", "--json", "again.json")
    assert titles(tmp_path / "again.json") == before
    assert "program was rebuilt since this run (build-id differs)" in done.stdout
    program.unlink()
    (tmp_path / "two.c").unlink()
    done = run(tmp_path, "report", "r", "--json", "again.json")
    assert titles(tmp_path / "again.json") == before
    assert "rebuilt" not in done.stdout


@pytest.mark.parametrize("link", [[], ["-Wl,--build-id=none"]])
def test_a_record_without_names_takes_none_of_another_build(link: list[str], tmp_path: Path) -> None:
    program = compiled(tmp_path, "two.c", CALLERS, "gcc", "-O2", "-g", *link)
    variables = environment(
        LIBRARY, tmp_path, HOMING_ASSUME_NODES="2", OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive"
    )
    variables |= {"LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(tmp_path / "r")}
    subprocess.run([program], env=variables, check=True, cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert "pressure: grid (two.c:4)" in run(tmp_path, "report", "r").stdout
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.copy(program, moved / "program")
    rebuilt(tmp_path, program)
    done = run(tmp_path, "report", "r")
    assert "two.c:" not in done.stdout and "heap@program+0x" in done.stdout, done.stdout
    why = "no build-id, and" if link else "build-id differs"
    assert f"program was rebuilt since this run ({why}" in done.stdout
    assert "no source lines" in done.stdout
    if not link:  # it is found by its build id where the report is asked for
        shutil.copy(tmp_path / "r", moved / "r")
        said = run(moved, "report", "r").stdout
        assert "grid (two.c:4) from main" in said and "pressure" not in said
        assert "two.c was changed after program was built: its text is not used" in said


def test_a_killed_processes_record_has_the_names_too(tmp_path: Path) -> None:
    text = CALLERS.replace('printf("%g\\n", pressure[5]);', "abort();")
    program = compiled(tmp_path, "two.c", text, "gcc", "-O2", "-g")
    done = run(tmp_path, "run", "--record", "r", "--", program)
    assert done.returncode != 0
    record = read_record(str(tmp_path / "r"))
    assert record.end is None and not record.truncated
    assert record.sources
    rebuilt(tmp_path, program)
    # The summary shows those areas alone of which it was seen where they lie, which takes time.
    run(tmp_path, "report", "r", "--json", "r.json")
    (process,) = json.loads((tmp_path / "r.json").read_text())["processes"]
    assert "pressure: grid (two.c:4) from main (two.c:18)" in [area["title"] for area in process["areas"]]


PLUGIN = """\
#include <stdlib.h>
double *xmalloc(long n) { double *fresh = malloc(n * sizeof *fresh); return fresh; }
"""
HOST = (
    "#include <dlfcn.h>\n#include <stdio.h>\n"
    + SWEEP
    + r"""
int main(void) {
    void *plugin = dlopen("./libplugin.so", RTLD_NOW);
    double *(*xmalloc)(long) = (double *(*)(long))dlsym(plugin, "xmalloc");
    double *u = xmalloc(100000);
    sweep(u, 100000);
    dlclose(plugin);
    sweep(u, 100000);
    printf("%g\n", u[3]);
}
"""
)


def test_an_allocator_in_a_library_that_was_closed(tmp_path: Path) -> None:
    (tmp_path / "plugin.c").write_text(PLUGIN)
    library = ["gcc", "-g", "-O0", "-shared", "-fPIC", "plugin.c", "-o", "libplugin.so"]
    subprocess.run(library, check=True, cwd=tmp_path, timeout=PATIENCE)
    program = compiled(tmp_path, "host.c", HOST, "gcc", "-g", "-O1", "-ldl")
    line = next(at for at, text in enumerate(HOST.splitlines(), 1) if "u = xmalloc" in text)
    assert set(areas(tmp_path, program)) == {f"u: xmalloc (plugin.c:2) from main (host.c:{line})"}
    objects = read_record(str(tmp_path / "r")).objects
    assert objects[str(tmp_path / "libplugin.so")].startswith("build-id ")


@pytest.mark.parametrize(("compiler", "level"), [("gcc", "-O0"), ("clang-19", "-O2")])
def test_rules_select_by_the_names_that_are_printed(compiler: str, level: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, "two.c", CALLERS, compiler, "-g", level)
    every = set(areas(tmp_path, program))
    (pressure,) = [title for title in every if title.startswith("pressure: ")]
    line = pressure.rpartition(":")[2].rstrip(")")
    for rule in (pressure, f"two.c:{line}", "press*"):
        assert set(areas(tmp_path, program, "--areas", f"include={rule}")) == {pressure}, rule
    assert set(areas(tmp_path, program, "--areas", "exclude=pressure")) == every - {pressure}
    (other,) = [title for title in every if title.startswith("next: ")]  # beside another in its line
    for rule in ("next", other):
        assert set(areas(tmp_path, program, "--areas", f"include={rule}")) == {other}, rule


def test_a_rule_of_several_areas_and_one_of_none_are_told(tmp_path: Path) -> None:
    program = compiled(tmp_path, "two.c", CALLERS, "gcc", "-g", "-O1")
    done = run(tmp_path, "run", "--areas", "include=presure,include=two.c:4", "--", program)
    assert "--areas include=presure: there is no such name; the nearest are pressure" in done.stderr
    assert "--areas include=two.c:4: 7 areas" in done.stderr
    done = run(tmp_path, "run", "--areas", "include=velocty", "--", program)
    assert "the nearest are velocity" in done.stderr


def test_rules_for_fortran(tmp_path: Path) -> None:
    program = compiled(tmp_path, "w.f90", FORTRAN, "gfortran", "-g", "-O1")
    for rule, names in {
        "U,include=b": {"u", "grid%u", "/blk/"},
        "grid%*,include=rhs": {"grid%u", "grid%p", "rhs"},
        "fields::*,include=density,include=/blk/": {"fields::inside", "density", "/blk/"},
    }.items():
        found = areas(tmp_path, program, "--areas", f"include={rule}")
        assert {title.partition(" (")[0] for title in found} == names, rule


def test_rules_for_cxx(tmp_path: Path) -> None:
    program = compiled(tmp_path, "c.cpp", CXX, "g++", "-g", "-O2")
    for rule, names in {
        "Table<float, 3>::data,include=left": {"Table<float, 3>::data", "left.cells: Block"},
        "flow::*,include=grown": {"flow::field", "flow::(anonymous namespace)::hidden", "grown"},
    }.items():
        found = areas(tmp_path, program, "--areas", f"include={rule}")
        assert {title.split(" (c.cpp")[0] for title in found} == names, rule


def test_rules_for_statics_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("static double x[100000];\ndouble *get_a(void) { return x; }\n")
    main = (
        "#include <stdio.h>\nstatic double x[100000];\ndouble *get_a(void);\n"
        + SWEEP
        + 'int main(void) { sweep(get_a(), 100000); sweep(x, 100000); printf("%g\\n", x[3]); }\n'
    )
    program = compiled(tmp_path, "main.c", main, "gcc", "-g", "-O1", "a.c")
    assert set(areas(tmp_path, program, "--areas", "include=x (main.c:2)")) == {"x (main.c:2)"}
    assert len(areas(tmp_path, program, "--areas", "include=x")) == 2
