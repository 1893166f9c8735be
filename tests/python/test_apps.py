"""The programs of apps/: their results verify, and do not depend on threads, initialisation or compiler."""

from __future__ import annotations

import functools
import itertools
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.rotation import EVERYTHING

ROOT = Path(__file__).resolve().parents[2]
APPS = ROOT / os.environ.get("HOMING_BUILD_DIR", "build/release") / "apps"

ZETA_OF_CLASS_S = 8.5971775078648
NORM_OF_CLASS_S = 5.307707005734e-05

COMPILERS = {
    "cg": ("gfortran", "flang"),
    "mg": ("gfortran", "flang"),
    "bt": ("gfortran", "flang"),
    "sp": ("gfortran", "flang"),
    "ft": ("gfortran", "flang"),
    "jacobi": ("gcc", "clang"),
    "drift": ("gcc", "clang"),
    "i_cg": ("gfortran", "flang"),
    "i_mg": ("gfortran", "flang"),
}
# Small sizes; those of jacobi and drift do not divide evenly among the threads.
SMALL = {
    "cg": (),
    "mg": (),
    "bt": (),
    "sp": (),
    "ft": (),
    "jacobi": ("--n", "33", "--iterations", "50"),
    "drift": ("--bytes", "2500K", "--iterations", "30", "--drift-pages-per-iteration", "7"),
    "i_mg": ("--n", "16"),
}
OTHER_INITIALISATIONS = {"cg": ("published",), "mg": ("first-use",)}
#: Of what LLVM's compilers make of these programs, `make test` builds these (apps/CMakeLists.txt).
LLVM_IN_SHORT = ("cg_flang", "jacobi_clang")


def in_short(name: str, compiler: str) -> bool:
    """Whether `make test` builds this program; `make test-all` builds every one."""
    return EVERYTHING or compiler in ("gcc", "gfortran") or f"{name}_{compiler}" in LLVM_IN_SHORT


def built_by(*programs: tuple[str, str], prefix: str = "") -> list[Any]:
    """Names and compilers for parametrize: what `make test` does not build is marked `full`."""
    return [
        pytest.param(name, compiler, marks=[] if in_short(prefix + name, compiler) else pytest.mark.full)
        for name, compiler in programs
    ]


PROGRAMS = built_by(*((name, compiler) for name, compilers in COMPILERS.items() for compiler in compilers))


#: Kept until the tests end.
FOLDER = tempfile.TemporaryDirectory(prefix="homing-test-apps-")


def small(name: str) -> tuple[str, ...]:
    """The arguments of a small run."""
    return ("--matrix", str(matrix_file(True))) if name == "i_cg" else SMALL[name]


@functools.cache
def matrix_file(symmetric: bool) -> Path:
    """A Matrix Market file of 11 x 11 x 11 points, each joined to six neighbours, in any order."""
    n = 11
    entries = {}
    for point in range(n**3):
        entries[point, point] = 7.0
        for step, place in ((1, point % n), (n, point // n % n), (n * n, point // n**2)):
            if place > 0:
                entries[point, point - step] = -1.0
                if not symmetric:
                    entries[point - step, point] = -1.0
    lines = [f"{row + 1} {column + 1} {value!r}" for (row, column), value in entries.items()]
    random.Random(3).shuffle(lines)
    kind = "symmetric" if symmetric else "general"
    path = Path(FOLDER.name) / f"{kind}.mtx"
    head = f"%%MatrixMarket matrix coordinate real {kind}\n% a comment\n\n{n**3} {n**3} {len(lines)}\n"
    path.write_text(head + "\n".join(lines) + "\n")
    return path


def program(name: str, compiler: str) -> Path:
    path = APPS / f"{name}_{compiler}"
    if not path.exists():
        if compiler in ("clang", "flang"):
            pytest.skip(f"{path.name} was not built: no {compiler} here, or no `make build`")
        pytest.fail(f"{path} is missing: build first, or set HOMING_BUILD_DIR")
    return path


def run(path: Path, *arguments: str, threads: int = 2) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMP_", "HOMING", "LD_PRELOAD"))
    }
    environment |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    return subprocess.run(
        [path, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )


def results(stdout: str) -> list[str]:
    return [line for line in stdout.splitlines() if line.startswith(("result", "verification"))]


def result(stdout: str, name: str) -> float:
    return float(re.search(rf"^result {name}: (\S+)$", stdout, re.MULTILINE)[1])  # type: ignore[index]


@pytest.mark.parametrize(("name", "compiler"), PROGRAMS)
def test_verifies_with_equal_results_for_any_threads_and_initialisation(name: str, compiler: str) -> None:
    path = program(name, compiler)
    seen = set()
    for threads in (1, 2, 4):
        for initialise in ("serial", "parallel", *OTHER_INITIALISATIONS.get(name, ())):
            done = run(path, *small(name), "--initialise", initialise, threads=threads)
            assert (done.returncode, done.stderr) == (0, "")
            lines = done.stdout.splitlines()
            assert f"program: {name}" in lines
            assert f"threads: {threads}" in lines
            assert f"initialise: {initialise}" in lines
            assert lines[-1] == "verification: successful"
            seen.add("\n".join(results(done.stdout)))
    assert len(seen) == 1


@pytest.mark.parametrize(("name", "compiler"), built_by(*(("cg", one) for one in COMPILERS["cg"])))
def test_cg_computes_the_published_eigenvalue(name: str, compiler: str) -> None:
    done = run(program(name, compiler))
    assert result(done.stdout, "zeta") == pytest.approx(ZETA_OF_CLASS_S, rel=1e-10)
    assert "size: class S, 1400 rows, 78148 nonzeros" in done.stdout.splitlines()


@pytest.mark.parametrize(("name", "compiler"), built_by(*(("mg", one) for one in COMPILERS["mg"])))
def test_mg_computes_the_published_norm(name: str, compiler: str) -> None:
    done = run(program(name, compiler))
    assert result(done.stdout, "norm of the residual") == pytest.approx(NORM_OF_CLASS_S, rel=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("name", ["bt", "sp", "ft"])
def test_class_w_verifies(name: str) -> None:
    done = run(program(name, "gfortran"), "--class", "W", "--initialise", "parallel")
    assert done.stdout.splitlines()[-1] == "verification: successful"


@pytest.mark.parametrize("name", ["bt", "sp"])
def test_more_work_repeats_the_solvers_with_the_same_results(name: str) -> None:
    done = run(program(name, "gfortran"), "--work", "4")
    assert done.stdout.splitlines()[-1] == "verification: successful"


@pytest.mark.parametrize(("name", "compiler"), PROGRAMS)
def test_only_lines_of_time_differ_between_runs(name: str, compiler: str) -> None:
    path = program(name, compiler)
    first, second = (
        [
            line
            for line in run(path, *small(name), threads=3).stdout.splitlines()
            if not line.startswith("time")
        ]
        for _ in range(2)
    )
    assert first == second
    assert not any(re.search(r"\d s\b|second", line) for line in first)


@pytest.mark.parametrize("name", ["cg", "mg"])
def test_other_iterations_than_the_published_are_not_verified(name: str) -> None:
    path = program(name, "gfortran")
    done = run(path, "--iterations", "3")
    assert done.returncode == 0
    assert "iterations: 3" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "verification: not applicable"
    value = "zeta" if name == "cg" else "norm of the residual"
    assert result(done.stdout, value) != result(run(path).stdout, value)


@pytest.mark.parametrize("name", ["cg", "mg"])
def test_the_published_number_of_iterations_may_be_given(name: str) -> None:
    published = {"cg": "15", "mg": "4"}[name]
    done = run(program(name, "gfortran"), f"--iterations={published}")
    assert done.stdout.splitlines()[-1] == "verification: successful"


@pytest.mark.parametrize(("name", "compiler"), PROGRAMS)
def test_lists_the_time_of_each_iteration(name: str, compiler: str) -> None:
    path = program(name, compiler)
    times = [
        float(time)
        for line in run(path, *small(name), "--iterations", "13").stdout.splitlines()
        if line.startswith("time iterations from")
        for time in line.split(":")[1].split()
    ]
    assert len(times) == 13
    verbose = run(path, *small(name), "--iterations", "13", "--verbose").stdout
    assert len(re.findall(r"^time iteration \d+: \d+\.\d{6} s$", verbose, re.MULTILINE)) == 13


@pytest.mark.parametrize("name", ["jacobi", pytest.param("drift", marks=pytest.mark.full)])
def test_c_programs_agree_between_compilers(name: str) -> None:
    done = [run(program(name, compiler), *small(name)) for compiler in COMPILERS[name]]
    assert results(done[0].stdout) == results(done[1].stdout)


def test_drift_ends_with_a_quarter_of_the_ring_by_default() -> None:
    stdout = run(program("drift", "gcc"), "--bytes", "16M", "--iterations", "64").stdout
    assert "size: 2 arrays of 2048 pages, drifting by 8 pages an iteration" in stdout.splitlines()


@pytest.mark.parametrize("drift", ["0", "1", "4096", "100000"])
def test_drift_verifies_at_any_speed(drift: str) -> None:
    done = run(program("drift", "gcc"), "--bytes", "1M", "--drift-pages-per-iteration", drift, threads=3)
    assert done.stdout.splitlines()[-1] == "verification: successful"


@pytest.mark.parametrize(
    ("name", "arguments", "names_what"),
    [
        ("cg", ["--class", "D"], "--class D: must be one of S|W|A|B|C"),
        ("mg", ["--class", ""], "--class"),
        ("cg", ["--iterations", "0"], "--iterations 0"),
        ("mg", ["--iterations", "4x"], "--iterations 4x"),
        ("mg", ["--initialise", "random"], "--initialise random: must be one of serial|parallel|first-use"),
        ("cg", ["--clas", "S"], "--clas"),
        ("cg", ["S"], "S"),
        ("cg", ["--place"], "--place: must be one of first-touch|round-robin|random"),
        ("bt", ["--place", "here"], "--place here: must be one of first-touch|round-robin|random"),
        ("jacobi", ["--n"], "--n: must be an integer from 3"),
        ("jacobi", ["--n", "2"], "--n 2: must be an integer from 3"),
        ("jacobi", ["--iterations", "99999999999999999999"], "--iterations 99999999999999999999"),
        ("i_cg", [], "--matrix: wants a Matrix Market file"),
        ("i_cg", ["--matrix"], "--matrix: wants a value"),
        ("i_mg", ["--n", "40"], "--n: must be a multiple of 16"),
        ("i_mg", ["--n", "8"], "--n 8: must be an integer from 16"),
        ("drift", ["--bytes", "10T"], "--bytes 10T"),
        ("drift", ["--bytes", "9000000000000G"], "--bytes 9000000000000G"),
        ("drift", ["--drift-pages-per-iteration", "-1"], "--drift-pages-per-iteration -1"),
    ],
)
def test_misuse_is_one_line_and_status_2(name: str, arguments: list[str], names_what: str) -> None:
    for compiler in (one for one in COMPILERS[name] if in_short(name, one)):
        done = run(program(name, compiler), *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"{name}: ")
        assert done.stderr.count("\n") == 1
        assert names_what in done.stderr


@pytest.mark.parametrize(("name", "compiler"), PROGRAMS)
def test_help_names_the_options(name: str, compiler: str) -> None:
    done = run(program(name, compiler), "--help")
    assert done.returncode == 0
    assert {"--iterations", "--initialise", "--place", "--verbose"} <= set(
        re.findall(r"--[a-z-]+", done.stdout)
    )


@pytest.mark.parametrize(("name", "compiler"), built_by(*(("i_cg", one) for one in COMPILERS["i_cg"])))
def test_i_cg_reads_symmetric_and_general_files_alike(name: str, compiler: str) -> None:
    path = program(name, compiler)
    done = [run(path, "--matrix", str(matrix_file(symmetric))) for symmetric in (True, False)]
    assert results(done[0].stdout) == results(done[1].stdout)
    assert "size: 1331 rows, 8591 nonzeros" in done[0].stdout.splitlines()
    assert result(done[0].stdout, "largest error") < 1e-6


@pytest.mark.parametrize(
    ("text", "names_what"),
    [
        ("", ":1: does not begin with %%MatrixMarket"),
        ("%%MatrixMarket matrix array real general\n", ":1: must hold a matrix in coordinate format"),
        ("%%MatrixMarket matrix coordinate complex general\n", ":1: must hold real or integer values"),
        ("%%MatrixMarket matrix coordinate real hermitian\n", ":1: must be general or symmetric"),
        ("%%MatrixMarket matrix coordinate real general\n% no more\n", ":3: ends before the line with"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 x\n", ":2: wants three positive numbers"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "the matrix must be square"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", ":4: ends before the last entry"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", ":3: wants a row, a column"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n", ":3: wants a row, a column"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1.5 1 1\n", ":3: wants a row, a column"),
        (
            "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n1 1 1\n",
            ":4: goes on after the last",
        ),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", ":3: has an entry above"),
    ],
)
def test_i_cg_says_where_a_file_is_wrong(text: str, names_what: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.mtx"
    file.write_text(text)
    done = run(program("i_cg", "gfortran"), "--matrix", str(file))
    assert done.returncode == 1
    assert done.stderr.startswith(f"i_cg: {file}")
    assert done.stderr.count("\n") == 1
    assert names_what in done.stderr


def test_i_cg_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run(program("i_cg", "gfortran"), "--matrix", str(tmp_path / "none.mtx"))
    assert (done.returncode, done.stderr) == (1, f"i_cg: {tmp_path}/none.mtx: No such file or directory\n")


def test_i_mg_converges_to_the_known_flow_with_order_one() -> None:
    found = {n: run(program("i_mg", "gfortran"), "--n", str(n), "--verbose").stdout for n in (16, 32)}
    coarse, fine = (result(stdout, "mean error of the density") for stdout in found.values())
    assert 1.8 < coarse / fine < 2.2
    for stdout in found.values():
        history = [float(one) for one in re.findall(r"^iteration \d+ residual: (\S+)$", stdout, re.MULTILINE)]
        assert len(history) == 10
        assert all(later < 0.7 * earlier for earlier, later in itertools.pairwise(history))


MARK_PAGE = re.compile(r"^5eed00000000-5eed00001000 rw-p", re.MULTILINE)
SHOW_MAPS_AT_EXIT = """
#include <stdio.h>
#include <stdint.h>
#include <string.h>
__attribute__((destructor)) static void show(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strncmp(line, "5eed00000000-", 13) == 0) {
            volatile uint64_t *page = (uint64_t *)0x5eed00000000;
            fputs(line, stderr);
            for (int phase = 0; phase < 8; phase++)
                fprintf(stderr, "%d", (int)page[phase]);
            fputs("\\n", stderr);
        }
    fclose(maps);
}
"""

# A runtime that loses one parallel region of the last iterations.
LOSE_REGION = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
void GOMP_parallel(void (*region)(void *), void *data, unsigned threads, unsigned flags) {
    static int calls;
    if (++calls == atoi(getenv("LOSE_REGION")))
        return;
    ((void (*)(void (*)(void *), void *, unsigned, unsigned))dlsym(RTLD_NEXT, "GOMP_parallel"))(
        region, data, threads, flags);
}
"""


def preloadable(folder: Path, name: str, source: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    library = folder / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, folder / f"{name}.c", "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("name", "region"),
    [
        *[("cg", 1587), ("mg", 150), ("bt", 61), ("sp", 98), ("ft", 11)],
        *[("jacobi", 30), ("drift", 50), ("i_cg", 188), ("i_mg", 1)],
    ],
)
def test_lost_work_fails_the_verification_and_status_is_1(name: str, region: int, tmp_path: Path) -> None:
    path = program(name, COMPILERS[name][0])
    library = preloadable(tmp_path, "lose_region", LOSE_REGION)
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    environment |= {"LD_PRELOAD": str(library), "LOSE_REGION": str(region)}
    done = subprocess.run(
        [path, *small(name)], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "verification: FAILED"
    environment["LOSE_REGION"] = "1000000"
    done = subprocess.run(
        [path, *small(name)], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert done.returncode == 0


@pytest.mark.parametrize("name", COMPILERS)
def test_marks_its_phases_in_the_lab_only(name: str, tmp_path: Path) -> None:
    path = program(name, COMPILERS[name][0])
    library = preloadable(tmp_path, "show_maps", SHOW_MAPS_AT_EXIT)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
        "LD_PRELOAD": str(library),
    }
    environment.pop("HOMING_LAB", None)
    command = [str(path), *small(name)]
    outside = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert outside.stderr == ""
    environment["HOMING_LAB"] = "1"
    inside = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert MARK_PAGE.search(inside.stderr)
    assert inside.stderr.splitlines()[1] == "11110000"  # phases 0 to 3 were marked, no other
    assert results(inside.stdout) == results(outside.stdout)
