"""Distributed arrays at file scope in C and C++, their other declarations, and memory that is freed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import MPIRUN, homing, run_command

#: A file's own arrays and memory, with an alignment; another file has the same names.
OWNER = """#include <stdlib.h>
enum { N = 20 };
static int field[N], beside[N];
#pragma homing distribute field[block]
#pragma homing align beside[i] with field[i]
static int *memory;
#pragma homing distribute memory[block] extent(N)
void set(void)
{
    memory = malloc(N * sizeof *memory);
#pragma omp parallel for
    for (int i = 0; i < N; i++) field[i] = beside[i] = i;
#pragma omp parallel for
    for (int i = 0; i < N; i++) memory[i] = i;
}
int get(void)
{
    int s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 1; i < N; i++) s += field[i - 1] + beside[i];
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++) s += memory[i];
    for (int i = 0; i < N; i++) s += field[i];
    free(memory);
    return s;
}"""
#: Its array has a name that main hides.
MAIN = """#include <stdio.h>
void set(void);
int get(void);
void set2(void);
int get2(void);
static int own[9];
#pragma homing distribute own[block]
static void fill(void)
{
#pragma omp parallel for
    for (int i = 0; i < 9; i++) own[i] = i;
}
static int sum(void)
{
    int s = 0;
    for (int i = 0; i < 9; i++) s += own[i];
    return s;
}
int main(void)
{
    int own = 3;
    set(), set2();
    fill();
    printf("%d %d %d %d\\n", get(), get2(), own, sum());
    return 0;
}
"""
NAMESPACES = """namespace store {
const int n = 16;
double a[n];
#pragma homing distribute a[block]
namespace { int hidden[n]; }
#pragma homing distribute hidden[block]
}
static int wide[20][4];
#pragma homing distribute wide[block][*]
int all()
{
    using namespace store;
    int s = 0;
#pragma omp parallel for
    for (int i = 0; i < n; i++) a[i] = i;
#pragma omp parallel for
    for (int i = 0; i < n; i++) hidden[i] = 2 * i;
#pragma omp parallel for
    for (int i = 0; i < 20; i++) wide[i][2] = i;
    for (int i = 0; i < n; i++) s += (int)a[i] + hidden[i];
    for (int i = 0; i < 20; i++) s += wide[i][2];
    return s;
}
"""
CXX_MAIN = """#include <cstdio>
int all();
int main()
{
    std::printf("%d\\n", all());
}
"""
TARGETS = ("spmd", "mpi")


def _files(folder: Path) -> list[str]:
    (folder / "one.c").write_text(OWNER)
    (folder / "two.c").write_text(OWNER.replace("set", "set2").replace("get", "get2"))
    (folder / "m.c").write_text(MAIN)
    return ["one.c", "two.c", "m.c"]


def _build(folder: Path, target: str, *words: str, compiler: str = "gcc") -> None:
    if target == "mpi":
        compiler = {"gcc": "mpicc", "g++": "mpicxx"}[compiler]
    flags = ("-fopenmp", "-Wall", "-Wextra", "-Werror") if "-c" not in words else ("-fopenmp",)
    done = homing(folder, "--to", target, "--", compiler, *flags, *words)
    assert done.returncode == 0, done.stderr


def _printed(folder: Path, target: str) -> str:
    ranks = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    return run_command([*ranks, folder / "p"], folder, OMP_NUM_THREADS="3")


@pytest.mark.parametrize("target", TARGETS)
def test_files_without_main_have_arrays(tmp_path: Path, target: str) -> None:
    _build(tmp_path, target, *_files(tmp_path), "-o", "p")
    assert _printed(tmp_path, target) == "741 741 3 36\n"


def test_they_are_compiled_one_by_one(tmp_path: Path) -> None:
    for name in (files := _files(tmp_path)):
        _build(tmp_path, "spmd", "-c", name)
    _build(tmp_path, "spmd", *(name.replace(".c", ".o") for name in files), "-o", "p")
    assert _printed(tmp_path, "spmd") == "741 741 3 36\n"


@pytest.mark.parametrize("target", TARGETS)
def test_namespaces_of_files_without_main(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.cpp").write_text(NAMESPACES)
    (tmp_path / "m.cpp").write_text(CXX_MAIN)
    _build(tmp_path, target, "a.cpp", "m.cpp", "-o", "p", compiler="g++")
    assert _printed(tmp_path, target) == "550\n"


def test_pages_places_arrays_of_other_files(tmp_path: Path) -> None:
    _build(tmp_path, "pages", *_files(tmp_path), "-o", "p")
    environment = {**os.environ, "HOMING_PARTS": "statistics", "OMP_NUM_THREADS": "3"}
    done = subprocess.run(
        [tmp_path / "p"], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == "741 741 3 36\n"
    assert [done.stderr.count(f"'{name}' has no page") for name in ("field", "memory", "own")] == [2, 2, 1]


@pytest.mark.parametrize("target", ["spmd", "pages"])
def test_where_no_main_is_given_functions_begin_the_program(tmp_path: Path, target: str) -> None:
    (tmp_path / "one.c").write_text(OWNER)
    text = translate([str(tmp_path / "one.c")], Options(target)).outputs[0].text
    assert text.count("homing_start();") == 2


#: Memory of distributed arrays; what is done with it takes the place of the line of dots.
MEMORY = """#include <stdio.h>
#include <stdlib.h>
...
int main(void)
{
    int n = 29, s = 0;
    int *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v), *w = malloc(n * sizeof *w);
#pragma homing distribute u[block] extent(n), v[block] extent(n), w[block] extent(n)
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        u[i] = v[i] = w[i] = i;
    ...
    printf("%d %d\\n", s, n);
    return 0;
}
"""
ONE_BY_ONE = """if (n > 3) s++, free(u), n--; else s--;
    switch (n) { case 28: s += v[3], free(v); break; default: ; }
    for (int k = 0; k < 1; k++) free(w), s += 4; s *= 2;"""
ANEW = "u = malloc(n * sizeof *u), v = malloc(n * sizeof *v); free(u), free(v); free(w);"
CXX_FREED = """#include <cstdio>
int main()
{
    const int n = 29;
    int s = 0, *u = new int[n], (*m)[4] = new int[n][4];
#pragma homing distribute u[block] extent(n), m[block][*] extent(n, 4)
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        u[i] = m[i][2] = i;
    s += u[7], delete[] u, delete[] m;
    std::printf("%d\\n", s);
}
"""


def _freed(what: str, before: str = "") -> str:
    head, middle, end = MEMORY.split("...")
    return head + before + middle + what + end


@pytest.mark.parametrize(
    ("name", "text", "printed"),
    [
        ("p.c", _freed(ONE_BY_ONE), "16 28\n"),
        ("p.c", _freed(ANEW), "0 29\n"),
        ("p.cpp", CXX_FREED, "7\n"),
    ],
)
def test_memory_is_freed_between_commas(tmp_path: Path, name: str, text: str, printed: str) -> None:
    (tmp_path / name).write_text(text)
    compiler = "gcc" if name == "p.c" else "g++"
    _build(
        tmp_path,
        "spmd",
        "-fsanitize=address",
        *("-Wno-unused-variable", "-Wno-unused-but-set-variable"),
        name,
        "-o",
        "p",
        compiler=compiler,
    )
    assert _printed(tmp_path, "spmd") == printed


LARGER = "frees the distributed 'u' in a larger expression"
TAKEN = "takes memory for the distributed 'u' in a larger expression"
HELPER = "static void done(int n, void *p) { void *q = p; if (n) free(q); }"
CALLS = f"{HELPER}\nstatic void all(int *p) {{ done(1, p); }}"


@pytest.mark.parametrize(
    ("what", "before", "reason"),
    [
        ("for (int q = 0; q < 1; q++, free(u)) ;", "", LARGER),
        ("while (free(u), s) ;", "", LARGER),
        ("if (free(u), s) n = 4;", "", LARGER),
        ("n > 3 ? free(u) : (void)0;", "", LARGER),
        ("(void)(s && (free(u), 1));", "", LARGER),
        ("int k = (free(u), 1); s += k;", "", LARGER),
        ("return free(u), 0;", "", LARGER),
        ("BOTH(u, v);", "#define BOTH(a, b) free(a), free(b)", LARGER),
        ("free(n > 3 ? u : v);", "", "may give the distributed array another name"),
        ("n = (u = malloc(4), 3);", "", TAKEN),
        ("u = v = malloc(4);", "", TAKEN),
        ("n > 3 ? (u = malloc(4)) : 0;", "", TAKEN),
        ("int *k = realloc(u, 4); free(k);", "", "'realloc' gets the distributed 'u'"),
        ("done(1, u);", HELPER, "'done' frees what it gets, here the distributed 'u'"),
        ("all(u);", CALLS, "'all' frees what it gets, here the distributed 'u'"),
        ("gone(u);", '#include "gone.h"', "'gone' frees what it gets, here the distributed 'u'"),
        (
            "\n#pragma omp parallel\n{\n#pragma omp single\nfree(u);\n}\n",
            "",
            "takes or frees memory of the distributed 'u' in a parallel region",
        ),
    ],
)
def test_memory_that_is_lost_sight_of(tmp_path: Path, what: str, before: str, reason: str) -> None:
    (tmp_path / "gone.h").write_text("static inline void gone(int *p) { free((void *)p); }\n")
    (tmp_path / "p.c").write_text(_freed(what, before))
    with pytest.raises(TranslationError) as error:
        translate([str(tmp_path / "p.c")], Options("spmd"))
    assert any(reason in one.reason for one in error.value.problems), str(error.value)
    assert all(one.position.line > 11 for one in error.value.problems)


#: Declarations of one array before and behind its definition, and in functions.
AGAIN = """#include <stdio.h>
#define N 33
extern int field[N], grid[][4];
static void set(void)
{
    extern int late[N];
#pragma omp parallel for
    for (int i = 0; i < N; i++) late[i] = field[i] = i;
}
int field[N];
int late[N], grid[9][4];
static int twice[5][6], twice[5][6];
#pragma homing distribute field[block], grid[block][*], late[block], twice[block][*]
extern int field[N], grid[9][4];
int main(void)
{
    extern int grid[][4];
    set();
#pragma omp parallel for
    for (int i = 0; i < 9; i++) grid[i][2] = i;
#pragma omp parallel for
    for (int i = 0; i < 5; i++) twice[i][3] = i;
    printf("%d %d %d %d\\n", field[N - 1], late[7], grid[8][2], twice[4][3]);
    return 0;
}
"""
HEADER = """#define N 20
extern int field[N], grid[N][4];
void set(void);
int get(void);
"""
DEFINED = """#include "d.h"
void set(void)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) field[i] = grid[i][2] = i;
}
int field[N], grid[N][4];
#pragma homing distribute field[block], grid[block][*]
int get(void)
{
    int s = grid[3][2];
    for (int i = 0; i < N; i++) s += field[i];
    return s;
}
"""
USER = """#include <stdio.h>
#include "d.h"
int main(void)
{
    set();
    printf("%d\\n", get());
    return 0;
}
"""


def test_declared_again_in_the_same_text(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(AGAIN)
    _build(tmp_path, "spmd", "p.c", "-o", "p")
    assert _printed(tmp_path, "spmd") == "32 7 8 4\n"


@pytest.mark.parametrize(("compiler", "suffix"), [("gcc", "c"), ("g++", "cpp")])
def test_declared_in_a_header(tmp_path: Path, compiler: str, suffix: str) -> None:
    (tmp_path / "d.h").write_text(HEADER)
    (tmp_path / f"d.{suffix}").write_text(DEFINED)
    (tmp_path / f"m.{suffix}").write_text(USER)
    _build(tmp_path, "spmd", f"d.{suffix}", f"m.{suffix}", "-o", "p", compiler=compiler)
    assert _printed(tmp_path, "spmd") == "193\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("extern int field[9];\n#pragma homing distribute field[block]\n", "another file defines the array"),
        (
            DEFINED.replace("int s =", "struct { int field; } t = {1}; int s = t.field +"),
            "a header declares the distributed 'field', and a member has its name",
        ),
        (
            DEFINED.replace("int get", '#include "e.h"\nint get'),
            "a header that declares 'field' is included behind declarations",
        ),
    ],
)
def test_declarations_that_cannot_be_followed(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "d.h").write_text(HEADER)
    (tmp_path / "e.h").write_text("extern int field[N];\n")
    (tmp_path / "d.c").write_text(text)
    with pytest.raises(TranslationError) as error:
        translate([str(tmp_path / "d.c")], Options("spmd"))
    assert any(reason in one.reason for one in error.value.problems), str(error.value)


@pytest.mark.parametrize("target", ["spmd", "pages"])
def test_defined_outside_of_its_namespace(tmp_path: Path, target: str) -> None:
    text = "namespace s { extern int field[9]; }\nint s::field[9];\n#pragma homing distribute field[block]\n"
    (tmp_path / "p.cpp").write_text(text)
    with pytest.raises(TranslationError, match="define it inside"):
        translate([str(tmp_path / "p.cpp")], Options(target))


def test_another_files_array_in_a_function(tmp_path: Path) -> None:
    user = "int main(void)\n{\n    extern int field[20];\n    set();\n    return field[3];\n}\n"
    (tmp_path / "d.h").write_text("enum { N = 20 };\n")
    (tmp_path / "d.c").write_text(DEFINED.replace("void set", "extern int field[N], grid[N][4];\nvoid set"))
    (tmp_path / "m.c").write_text(f"void set(void);\n{user}")
    with pytest.raises(TranslationError, match="whose parts no other file knows"):
        translate([str(tmp_path / name) for name in ("d.c", "m.c")], Options("spmd"))


FIELD_H = """#include <stdio.h>
extern double *field;
static inline double at(int i) { return field[i]; }
"""
FIELD_C = """#include <stdlib.h>
HEADER
double *field;
#pragma homing distribute field[block] extent(64)
double last(void);
int main(void) {
    field = malloc(64 * sizeof *field);
#pragma omp parallel for
    for (int i = 0; i < 64; i++) field[i] = i * 0.5;
    return last() + USE > 31;
}
"""
#: What a header's function may be used by: a file that is read, and one that is not (the function is nested).
LAST_C = '#include "at.h"\ndouble last(void) { return at(63); }\n'
NESTED_C = '#include "at.h"\ndouble last(void) { double inner(int i) { return at(i); } return inner(63); }\n'


def test_functions_of_headers_do_not_see_parts(tmp_path: Path) -> None:
    """The program read a pointer that got no memory."""
    (tmp_path / "at.h").write_text(FIELD_H)
    (tmp_path / "p.c").write_text(FIELD_C.replace("HEADER", '#include "at.h"').replace("USE", "at(1)"))
    with pytest.raises(TranslationError, match=r"'at' \(.*at\.h:3\) uses the distributed 'field', and"):
        translate([str(tmp_path / "p.c")], Options("spmd"))
    translate([str(tmp_path / "p.c")], Options("pages"))


@pytest.mark.parametrize("other", [LAST_C, NESTED_C])
def test_nor_do_they_in_other_files(tmp_path: Path, other: str) -> None:
    (tmp_path / "at.h").write_text(FIELD_H)
    (tmp_path / "p.c").write_text(FIELD_C.replace("HEADER", "").replace("USE", "0"))
    (tmp_path / "last.c").write_text(other)
    compile_one = ("--to", "spmd", "--", "gcc", "-fopenmp", "-c")
    assert homing(tmp_path, *compile_one, "p.c").returncode == 0
    done = homing(tmp_path, *compile_one, "last.c")
    assert done.returncode == 1
    assert "last.c:1:1: is not translated because of its problems, and names 'field'" in done.stderr
