"""C and C++: a distributed array that one file defines and others know by `extern`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.test_translate_program import Build
from tests.python.translate_programs import MPIRUN, homing, run_command

HEADER = """#ifndef GRID_H
#define GRID_H
#define N 61
#define M 12
extern double u[N][M], v[N][M];
extern int steps;
void set(void);
void relax(void);
double total(void);
#endif
"""
GRID = """#include "grid.h"
double u[N][M], v[N][M];
#pragma homing distribute u[block][*], v[block][*]
int steps = 5;
"""
SET = """#include "grid.h"
#include <string.h>
void set(void)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) { u[i][j] = i * 0.5 + j; v[i][j] = 0; }
    u[3][4] = 17;
    memcpy(v, u, sizeof u);
    v[5][5] = sizeof u / sizeof u[0][0];
    u[5][5] = v[5][5] + v[3][4];
}
"""
RELAX = """#include "grid.h"
void relax(void)
{
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < M - 1; j++) v[i][j] = 0.25 * (u[i-1][j] + u[i+1][j] + u[i][j-1] + u[i][j+1]);
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < M - 1; j++) u[i][j] = v[i][j];
}
double total(void)
{
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) s += u[i][j];
    return s;
}
"""
MAIN = """#include <stdio.h>
#include "grid.h"
int main(void)
{
    set();
    for (int t = 0; t < steps; t++) relax();
    printf("%.6f %.6f\\n", total(), u[10][7]);
    return 0;
}
"""
FILES = {"grid.h": HEADER, "grid.c": GRID, "set.c": SET, "relax.c": RELAX, "main.c": MAIN}
#: Each file declares what it uses; no header has an array.
_CONSTANTS = "\n".join(line for line in HEADER.splitlines() if "double u" not in line)
_EXTERN = '#include "grid.h"\nextern double u[N][M];\nextern double v[N][M];\n'
DECLARED = {
    name: text if name == "grid.c" else text.replace('#include "grid.h"\n', _EXTERN)
    for name, text in FILES.items()
} | {"grid.h": _CONSTANTS}
SOURCES = [name for name in FILES if name.endswith(".c")]


def _write(folder: Path, files: dict[str, str], suffix: str = ".c") -> list[str]:
    for name, text in files.items():
        (folder / name.replace(".c", suffix)).write_text(text)
    return [name.replace(".c", suffix) for name in SOURCES]


def _plain(folder: Path, files: list[str], compiler: str) -> str:
    command = [compiler, "-fopenmp", *files, "-o", "plain"]
    subprocess.run(command, cwd=folder, check=True, timeout=PATIENCE)
    return run_command([folder / "plain"], folder, OMP_NUM_THREADS="1")


def _compare(folder: Path, target: str, files: dict[str, str], compiler: str, suffix: str) -> None:
    """The program prints what it prints without a translation. Where the array is declared in its own file
    lies behind where the others use it, in letters of their files."""
    names = _write(folder, files | {"grid.c": f"/* {'far behind ' * 200}*/\n{files['grid.c']}"}, suffix)
    expected = _plain(folder, names, compiler)
    used = {"gcc": "mpicc", "g++": "mpicxx"}[compiler] if target == "mpi" else compiler
    flags = ["-fopenmp", "-Wall", "-Wextra", "-Werror"]
    done = homing(folder, "--to", target, "--", used, *flags, *names, "-o", "p")
    assert done.returncode == 0, done.stderr
    ranks = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1",) if target == "mpi" else ("1", "3"):
        assert run_command([*ranks, folder / "p"], folder, OMP_NUM_THREADS=threads) == expected


_FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("target", "compiler", "suffix", "files"),
    [
        pytest.param("spmd", "gcc", ".c", FILES, id="spmd, header"),
        pytest.param("mpi", "gcc", ".c", FILES, id="mpi, header", marks=_FULL),
        pytest.param("spmd", "gcc", ".c", DECLARED, id="spmd, declared", marks=_FULL),
        pytest.param("mpi", "gcc", ".c", DECLARED, id="mpi, declared"),
        pytest.param("spmd", "g++", ".cpp", FILES, id="spmd, c++"),
        pytest.param("mpi", "g++", ".cpp", FILES, id="mpi, c++", marks=_FULL),
    ],
)
def test_files_use_an_array_that_another_defines(
    tmp_path: Path, target: str, compiler: str, suffix: str, files: dict[str, str]
) -> None:
    _compare(tmp_path, target, files, compiler, suffix)


def test_the_halo_is_as_wide_as_any_file_needs(tmp_path: Path) -> None:
    names = _write(tmp_path, FILES)
    plan = translate([str(tmp_path / name) for name in names], Options("spmd")).plan
    assert {one.name: one.shadow for one in plan.arrays} == {"u": ((1, 1), (0, 0)), "v": ((0, 0), (0, 0))}


def test_each_file_is_compiled_by_a_command_of_its_own(tmp_path: Path) -> None:
    build = Build(tmp_path)
    _write(build.objects, FILES)
    for name in SOURCES:
        assert build.run(build.cc, "-fopenmp", "-c", name).returncode == 0
    objects = [name.replace(".c", ".o") for name in SOURCES]
    assert build.run(build.cc, "-fopenmp", *objects, "-o", "prog").returncode == 0
    expected = _plain(build.objects, SOURCES, "gcc").split()
    assert build.says().split() == expected
    # A wider stencil in one file: the array's own file has another halo now.
    text = RELAX.replace("i = 1; i < N - 1", "i = 2; i < N - 2").replace("u[i-1]", "u[i-2]")
    (build.objects / "relax.c").write_text(text)
    assert build.run(build.cc, "-fopenmp", "-c", "relax.c").returncode == 0
    said = build.run(build.cc, "-fopenmp", *objects, "-o", "prog").stderr
    assert "grid.c, relax.c: compiled again for this program" in said
    assert build.says().split() == _plain(build.objects, SOURCES, "gcc").split() != expected


_MEMBER = "struct s { int u; };\nint get(struct s *s);\nint get(struct s *s) { return s->u; }\nvoid set"
_BLOCK = "{ extern double u[N][M]; u[3][4] = 17; }"
_ANEW = "double s = 0;\n#pragma homing redistribute u[cyclic][*]\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("set.c", "extern double u[N]", "extern double u[61]", "write the same bounds here"),
        ("set.c", "extern double u", "double u", "declare it `extern` here"),
        ("set.c", "void set", _MEMBER, "a member has its name"),
        ("relax.c", "double s = 0;", _ANEW, "which know one distribution"),
    ],
    ids=["bounds", "twice", "member", "redistribute"],
)
def test_what_cannot_be_used_in_another_file(
    tmp_path: Path, file: str, old: str, new: str, reason: str
) -> None:
    assert old in DECLARED[file]
    names = _write(tmp_path, DECLARED | {file: DECLARED[file].replace(old, new)})
    with pytest.raises(TranslationError, match=reason):
        translate([str(tmp_path / name) for name in names], Options("spmd"))


def test_a_headers_array_that_a_function_declares_again(tmp_path: Path) -> None:
    names = _write(tmp_path, FILES | {"set.c": SET.replace("u[3][4] = 17;", _BLOCK)})
    with pytest.raises(TranslationError, match="declare it outside of functions"):
        translate([str(tmp_path / name) for name in names], Options("spmd"))


def test_a_constant_of_its_own_file_is_missing_behind_a_header(tmp_path: Path) -> None:
    grid = GRID.replace("double u", "enum { ROWS = 61 };\ndouble u").replace("u[N]", "u[ROWS]")
    names = _write(tmp_path, FILES | {"grid.c": grid})
    with pytest.raises(TranslationError, match="define 'ROWS', which its bounds name, in a header of both"):
        translate([str(tmp_path / name) for name in names], Options("spmd"))


MEMORY = {
    "grid.h": HEADER.replace("u[N][M], v[N][M]", "*u, *v").replace("#define M 12\n", "void end(void);\n"),
    "grid.c": """#include <stdlib.h>
#include "grid.h"
double *u, *v;
#pragma homing distribute u[block] extent(N), v[block] extent(N)
int steps = 5;
void end(void) { free(u); free(v); }
""",
    "set.c": """#include <stdlib.h>
#include "grid.h"
void set(void)
{
    u = malloc(N * sizeof *u);
    v = calloc(N, sizeof(double));
#pragma omp parallel for
    for (int i = 0; i < N; i++) u[i] = i * 0.5;
    u[3] = 17;
}
""",
    "relax.c": """#include "grid.h"
void relax(void)
{
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++) v[i] = 0.5 * (u[i - 1] + u[i + 1]);
    v[0] = u[0];
    v[N - 1] = u[N - 1];
    double *t = u;
    u = v;
    v = t;
}
double total(void)
{
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++) s += u[i];
    return s;
}
""",
    "main.c": """#include <stdio.h>
#include "grid.h"
int main(void)
{
    for (int i = 0; i < 2; i++) {
        set();
        for (int t = 0; t < steps; t++) relax();
        printf("%.6f %.6f\\n", total(), u[10]);
        end();
    }
    return 0;
}
""",
}
_POINTERS = '#include "grid.h"\nextern double *u, *v;\n'
MEMORY_DECLARED = {
    name: text.replace("extern double *u, *v;\n", "")
    if name == "grid.h"
    else text
    if name == "grid.c"
    else text.replace('#include "grid.h"\n', _POINTERS)
    for name, text in MEMORY.items()
}


@pytest.mark.parametrize(
    ("target", "files"),
    [
        pytest.param("spmd", MEMORY, id="spmd, header"),
        pytest.param("spmd", MEMORY_DECLARED, id="spmd, declared"),
        pytest.param("mpi", MEMORY, id="mpi, header", marks=_FULL),
    ],
)
def test_memory_is_taken_freed_and_changes_places_in_other_files(
    tmp_path: Path, target: str, files: dict[str, str]
) -> None:
    _compare(tmp_path, target, files, "gcc", ".c")


def test_memory_that_is_dealt_out_by_sizes_of_its_file_is_passed_on(tmp_path: Path) -> None:
    sizes = "static int sizes[2] = {30, 31};\ndouble *u"
    grid = MEMORY["grid.c"].replace("double *u", sizes).replace("u[block]", "u[gen_block(sizes)]")
    names = _write(tmp_path, MEMORY | {"grid.c": grid})
    with pytest.raises(TranslationError, match="whose parts no other file knows: pass it as an argument"):
        translate([str(tmp_path / name) for name in names], Options("spmd"))
