"""C: memory of distributed arrays, wherever in an expression it is taken, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop, run_command

UNSEEN = "is in no file given, and may free what it gets, here the distributed 'u': give its file, too"
#: Functions of which nothing but the prototype is seen, and their calls.
MAY_FREE = [
    ("void done(double *p);", "done(u);"),
    ("int done(void *p);", "ok = done(u) + 1;"),
    ("void grid_destroy(double *p, int n);", "grid_destroy(u, n);"),
    ("void releaseField(int n, double *p);", "if (n) releaseField(n, u);"),
    ("void cleanup(int n, double *p);", "cleanup(n, u);"),
    ("void done(double *p); static void end(int k, double *p) { if (k) done(p); }", "end(3, u);"),
]
MAY_NOT_FREE = [
    ("void daxpy(int n, double *p);", "daxpy(n, u);"),
    ("double norm(const double *p);", "s = norm(u);"),
    ("void degrees_of_freedom(int n, double *p);", "degrees_of_freedom(n, u);"),
    ("#include <string.h>", "memset(u, 0, 800);"),
]


PROGRAM = """#include <stdio.h>
#include <stdlib.h>
{before}
int main(void)
{{
    int n = 100, ok = 0;
    double s = 0;
    {line}
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        u[i] = i;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++)
        s += u[i];
    printf("%g %d\\n", s, ok);
    free(u);
    return 0;
}}
"""
DIRECTIVE = "\n#pragma homing distribute u[block] extent(n)\n"
#: In conditions of IF, where every target follows.
CONDITIONS = [
    "if ((u = malloc(n * sizeof *u)) == NULL) return 1;",
    "if (!(u = (double *)malloc(n * sizeof *u))) return 1; else ok = 2;",
    "if (ok > 3) ok = 4; else if (NULL == (u = calloc(n, sizeof *u))) { return 1; }",
    "if (ok == 0 && (u = malloc(n * sizeof *u)) == NULL) return 1;",
    "for (int k = 0; k < 3; k++)\n{\nif (!(u = malloc(n * sizeof *u))) return 1;\nif (k < 2)\nfree(u);\n}",
]
#: By the pointer's address.
FILLED = [
    "ok = posix_memalign((void **)&u, 64, n * sizeof *u);",
    "int rc = posix_memalign((void **)&u, 64, n * sizeof *u);\nok = rc;",
    "if (posix_memalign((void **)&u, 64, n * sizeof *u)) abort();",
    "fill(&u, n);",
    "if (!filled(n, &u)) return 1;",
    "ok++, fill(&u, n);",
    "GET(u, n);",
    "if (!ok) {\nGET2(u, n);\n}",
    "TRY(filled(n, &u));",
    "double *v = malloc(n * sizeof *v); u = v, ok++;",
    "double *v; ok = both(&v, &u, n);",
]
FILLS = """static void fill(double **p, int n) { *p = malloc(n * sizeof **p); }
static int filled(int n, double **p) { fill(p, n); return *p != NULL; }
static int both(double **p, double **q, int n) { fill(p, n); *q = *p; return 2; }
#define GET(p, n) do { if (!filled(n, &(p))) abort(); } while (0)
#define GET2(p, n) if (!filled(n, &p)) exit(2)
#define TRY(x) do { int rc_ = (x); if (!rc_) abort(); } while (0)
"""
UNSEEN_FILLS = """void unseen(void *p, int n);
static void exchange(double **p, double **q) { double *r = *p; *p = *q; *q = r; }
"""
#: Where pages are placed, and parts would have to know more.
EXPRESSIONS = [
    "while (!(u = malloc(n * sizeof *u))) ok++;",
    "ok = (u = malloc(n * sizeof *u)) != NULL;",
    "u = malloc(n * sizeof *u), ok = 2;",
    "u = realloc(NULL, n * sizeof *u);",
    "if (ok) ok = 3; else u = memory(n);",
    "ok = ok > 0 ? 4 : (u = memory(n)) != NULL;",
    "u = ok ? NULL : malloc(n * sizeof *u);",
    "u = (ok++, malloc(n * sizeof *u));",
    "u = (double *)(((size_t)malloc(n * sizeof *u + 63) + 63) & ~(size_t)63);",
    "for (u = malloc(n * sizeof *u); ok < 2; ok++) ;",
    "double *v = malloc(n * sizeof *v); u = v;",
    "struct { double *v; } grid = {malloc(n * sizeof *u)}; u = grid.v;",
    *FILLED,
]
MEMORY = FILLS + "static double *memory(int n) { return malloc(n * sizeof(double)); }"


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("memory"))


def _program(folder: Path, line: str, before: str = "") -> Path:
    source = folder / "p.c"
    source.write_text(PROGRAM.format(line=line, before=before))
    return source


@pytest.mark.parametrize("line", [*CONDITIONS, *EXPRESSIONS])
def test_memory_is_placed_where_it_is_taken(tmp_path: Path, line: str) -> None:
    source = _program(tmp_path, f"double *u;{DIRECTIVE}{line}", MEMORY)
    (made,) = translate([str(source)], Options("pages")).outputs
    assert "homing_place(hm_layout_u, u)" in made.text
    assert ("if (hm_value == 0)" in made.text) == ("posix_memalign" in line), "it may have failed"


@pytest.mark.parametrize(
    "declared", ["double *u; u = malloc(800);", "double *u; if (!(u = malloc(800))) return 1;"]
)
def test_memory_is_placed_where_it_was_taken_before_the_directive(tmp_path: Path, declared: str) -> None:
    result = translate([str(_program(tmp_path, declared + DIRECTIVE))], Options("pages"))
    assert "homing_place(hm_layout_u, u)" in result.outputs[0].text


def test_memory_that_pointers_get_by_their_addresses(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    body = PROGRAM.partition("int main(void)")[2]
    functions = [
        f"static int take{number}(void)" + body.format(line=f"double *u;{DIRECTIVE}{line}")
        for number, line in enumerate(FILLED)
    ]
    calls = " + ".join(f"take{number}()" for number in range(len(FILLED)))
    head = "#include <stdio.h>\n#include <stdlib.h>\n" + FILLS
    source.write_text("\n".join([head, *functions, f"int main(void) {{ return {calls}; }}", ""]))
    workshop.expect_the_same(source, ("pages",))


@pytest.mark.parametrize(
    ("line", "placed"),
    [("unseen(&u, n);", True), ("exchange(&u, &u);", False), ("double *t = u; u = t;", False)],
)
def test_what_may_give_a_pointer_memory(tmp_path: Path, line: str, placed: bool) -> None:
    source = _program(tmp_path, f"double *u = malloc(n * sizeof *u);{DIRECTIVE}{line}", UNSEEN_FILLS)
    result = translate([str(source)], Options("pages"))
    assert (result.outputs[0].text.count("homing_place(") > 1) == placed


def test_an_address_that_something_has(tmp_path: Path) -> None:
    source = _program(tmp_path, f"double *u;{DIRECTIVE}double **t = &u;\n*t = malloc(n * sizeof *u);")
    (note,) = translate([str(source)], Options("pages")).notes
    assert note.reason == "what gives 'u' memory by its address is not followed: it is not placed"


def test_memory_taken_in_conditions(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    body = PROGRAM.partition("int main(void)")[2]  # all in one program, to compile once
    functions = [
        f"static int take{number}(void)" + body.format(line=f"double *u = NULL;{DIRECTIVE}{line}")
        for number, line in enumerate(CONDITIONS)
    ]
    calls = " + ".join(f"take{number}()" for number in range(len(CONDITIONS)))
    main = f"int main(void) {{ return {calls}; }}"
    source.write_text("\n".join(["#include <stdio.h>", "#include <stdlib.h>", *functions, main, ""]))
    workshop.expect_the_same(source, ("spmd", "pages"))


@pytest.mark.parametrize("target", ["spmd", "mpi"])
@pytest.mark.parametrize(("before", "line"), MAY_FREE)
def test_functions_that_may_free(tmp_path: Path, before: str, line: str, target: str) -> None:
    source = _program(tmp_path, f"double *u = malloc(800);{DIRECTIVE}{line}", before)
    with pytest.raises(TranslationError) as error:
        translate([str(source)], Options(target))
    (problem,) = error.value.problems
    assert ("frees what it gets" if "end(" in line else UNSEEN) in problem.reason
    translate([str(source)], Options("pages"))  # memory is the program's own


@pytest.mark.parametrize(("before", "line"), MAY_NOT_FREE)
def test_functions_that_use_what_they_get(tmp_path: Path, before: str, line: str) -> None:
    translate(
        [str(_program(tmp_path, f"double *u = malloc(800);{DIRECTIVE}{line}", before))], Options("spmd")
    )


def test_functions_of_other_files_are_seen(tmp_path: Path) -> None:
    source = _program(tmp_path, f"double *u = malloc(800);{DIRECTIVE}done(u);", "void done(double *p);")
    (other := tmp_path / "q.c").write_text("void done(double *p) { p[3] = 4; }\n")
    translate([str(source), str(other)], Options("spmd"))


BYTES = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 40
static double v[N], w[N][3];
#pragma homing distribute v[block], w[block][*]
int main(void)
{
    double plain[N], s = 0;
    double *u = malloc(N * sizeof *u);
#pragma homing distribute u[block] extent(N)
    for (int i = 0; i < N; i++) plain[i] = v[i] = w[i][1] = i;
    memset(&v, 0, sizeof v);
    memset(&w, 0, sizeof w);
    memset(&u[0], 0, N * sizeof *u);
    memcpy(&u[0], &plain[0], sizeof plain);
    memmove(&w[ 0 ][0], & w, 3 * sizeof *w);
    memmove(&v, u, sizeof v);
#pragma omp parallel for
    for (int i = 0; i < N; i++) u[i] += v[i] + w[i][1];
    memcpy(&plain, &u[0], sizeof plain);
    for (int i = 0; i < N; i++) s += plain[i];
    printf("%g %d\\n", s, memcmp(&v, u, sizeof v) != 0);
    free(u);
    return 0;
}
"""


PIECES = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 40
static double v[N], w[N][3];
#pragma homing distribute v[block], w[block][*]
int main(void)
{
    double plain[N], s = 0;
    int k = 5;
    double *u = malloc(N * sizeof *u);
#pragma homing distribute u[block] extent(N)
#pragma omp parallel for
    for (int i = 0; i < N; i++) { u[i] = i; v[i] = 2 * i; w[i][0] = w[i][1] = w[i][2] = i; }
    for (int i = 0; i < N; i++) plain[i] = 100 + i;
    memset(&v[k], 0, 4 * sizeof *v);
    memset(u + k, 0, 4 * sizeof *u);
    memcpy(&v[N - 4], &u[(int)v[6] + 20], 2 * sizeof *v);
    memmove(&u[1], &u[0], 10 * sizeof *u);
    memcpy(plain + 3, w[7], 3 * sizeof(double));
    memcpy(&w[8][1], &plain[20], 2 * sizeof(double));
    if (memcmp(&u[3], &u[4], 8)) s = 1000;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++) s += (i + 1) * (u[i] + v[i] + w[i][1]);
    fwrite(&"abc"[1], 1, 2, stdout);
    printf("%g %g %g\\n", s, plain[3], plain[5]);
    free(u);
    return 0;
}
"""
VALUES = """#include <stdio.h>
static double g[40] = {0}, h[40][3] = {{0.0, 0}, {0}};
#pragma homing distribute g[block], h[block][*]
#define ONES {1, 1, 1}
int main(void)
{
    double x = 7, s = 0;
    double u[40] = {x, [30] = 2, 3};
    int v[12][3] = {{1, 2}, ONES, {4}}, w[9] = { 0 };
    static float z[12] = {1, 2,
        3, 4};
    static double big[1200000] = {1}, late[33] = {
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1};
#pragma homing distribute big[block], late[block]
#pragma homing distribute u[block], v[block][*], w[cyclic], z[block]
#pragma omp parallel for
    for (int i = 1; i < 40; i++) g[i] += u[i] + h[i][1];
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 12; i++) s += v[i][1] + z[i];
    s += big[0] + late[32];
    printf("%g %g %g %g %d %g\\n", g[30], g[31], u[0], s, w[2] + v[2][0], z[3]);
    return 0;
}
"""


#: What an extent is made of changes later; pointers that are constants; arrays that only regions use.
LATER = """#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int n = 40, at[40];
    double s = 0, *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    double *const c = malloc(n * sizeof *c), *restrict const d = malloc(n * sizeof *d);
    double (*const m)[4] = malloc(n * sizeof *m);
#pragma homing distribute a[block] extent(n), b[block] extent(n), c[block] extent(n), d[block] extent(n)
#pragma homing distribute m[block][*] extent(n, 4)
#pragma omp parallel for
    for (int i = 0; i < 40; i++) a[i] = i;
#pragma omp parallel for
    for (int i = 0; i < 40; i++) { c[i] = i; d[i] = 1; m[i][2] = 2; }
    for (int i = 0; i < 40; i++) at[i] = 39 - i;
    n = 7;
#pragma omp parallel for
    for (int i = 0; i < n; i++) b[i] = a[at[i]] + a[i + 1];
    for (int i = 0; i < n; i++) s += b[i];
    printf("%g %g\\n", s, c[39] + d[3] + m[8][2]);
    free(a); free(b); free(c); free(d); free(m);
    return 0;
}
"""


@pytest.mark.parametrize("program", [BYTES, PIECES, VALUES, LATER])
def test_bytes_and_initial_values(workshop: Workshop, tmp_path: Path, program: str) -> None:
    source = tmp_path / "p.c"
    source.write_text(program)
    workshop.expect_the_same(source, ("spmd", "pages"))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("double v[2] = {u[3], 1};\n#pragma homing distribute v[block]", "reads the distributed 'u'"),
        ("double v[2] = {ok, 1}; ok = 3;\n#pragma homing distribute v[block]", "behind the declaration"),
    ],
)
def test_initial_values_that_are_others_later(tmp_path: Path, lines: str, reason: str) -> None:
    source = _program(tmp_path, f"double *u = malloc(n * sizeof *u);{DIRECTIVE}{lines}")
    translate([str(source)], Options("pages"))
    with pytest.raises(TranslationError, match=reason):
        translate([str(source)], Options("spmd"))


AGAIN = """#include <stdio.h>
#include <stdlib.h>
#define N 30
static double *a, *b;
#pragma homing distribute a[block] extent(N), b[block] extent(N)
static void grow(void)
{
    if (a == NULL) a = malloc(N * sizeof *a);
    if (!b) b = calloc(N, sizeof *b);
}
static void drop(void)
{
    free(a);
    free(b);
    a = NULL;
    b = NULL;
}
int main(void)
{
    double s = 0;
    grow();
    grow();
    for (int step = 0; step < 2; step++) {
#pragma omp parallel for
        for (int i = 0; i < N; i++) a[i] = i;
#pragma omp parallel for
        for (int i = 0; i < N; i++) b[i] += a[i];
        for (int i = 0; i < N; i++) s += b[i];
        drop();
        grow();
    }
    printf("%g\\n", s);
    drop();
    return 0;
}
"""


def test_memory_that_functions_free_and_take_again(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text(AGAIN)
    workshop.expect_the_same(source, ("spmd", "pages"))


ZEROS = """{declared}
#pragma homing distribute u[block] extent(n)
    for (int k = 0; k < 2; k++) {{
        free(u);
        u = calloc(n, sizeof *u);
        for (int i = 0; i < n; i++) ok += u[i] != 0;
        for (int i = 0; i < n; i++) u[i] = 7;
    }}"""


@pytest.mark.parametrize("declared", ["double *u = malloc(n * sizeof *u);", "double *u = NULL;"])
def test_memory_of_calloc_is_zero(workshop: Workshop, tmp_path: Path, declared: str) -> None:
    source = _program(tmp_path, ZEROS.format(declared=declared))
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, "spmd")  # with a sanitizer that gives memory other values
    assert run_command([made], workshop.folder, OMP_NUM_THREADS="3") == expected


VALUE = "the value of '{}' may be the address of what it gets, here the distributed 'u': parts have others"
KEEPS = "'keep' keeps the address of what it gets, here the distributed 'u': parts have others"
MAY = (
    "'{}' is in no file given, and may keep the address of what it gets, here the distributed 'u': "
    "parts have others"
).format
STRUCT = "struct s { double *p; };\n"
OWN = "static double *g; static void own(double *p) { g = p; }"
#: Functions by which an address outlives the statement, and those that only work with it.
OUTLIVES = [
    ("", "double *p = memset(u, 0, 800); p[3] = 4;", VALUE.format("memset")),
    ("", "double *p; if ((p = memcpy(u, u + 1, 8))) p[3] = 4;", VALUE.format("memcpy")),
    ("static double *keep(double *p) { double *q = p + 1; return q; }", "double *q = keep(u); *q = 4;",
     VALUE.format("keep")),
    ("double *keep(double *p, int n);", "double *q = keep(u, n) + 3; *q = 4;", VALUE.format("keep")),
    (STRUCT + "static struct s keep(double *p) { struct s z; z.p = p; return z; }",
     "struct s z = keep(u); *z.p = 4;", VALUE.format("keep")),
    ("static size_t keep(double *p) { return (size_t)p; }", "ok = keep(u) != 0;", None),
    ("static double *g; static void keep(double *p) { double *q = &p[1]; g = q; }", "keep(u);", KEEPS),
    ("static void keep(double *p) { static double *g; if (!g) g = p; }", "keep(u);", KEEPS),
    (STRUCT + "static void keep(struct s *z, double *p) { z->p = p; }", "struct s z; keep(&z, u);", KEEPS),
    ("static double *g; static void own(double *p) { g = p; }\n"
     "static void keep(int n, double *p) { if (n) own(p); }", "keep(1, u);", KEEPS),
    ("", "(void)memset(u, 0, 800), ok++;", None),
    ("static double keep(double *p, int n) { double s = 0, *e = p + n; while (p < e) s += *p++; return s; }",
     "s += keep(u, n);", None),
    ("static int most(double *p, int n) { double *m = p; for (int i = 1; i < n; i++) if (p[i] > *m) m = p+i;"
     " return m - p; }", "ok += most(u, n);", None),
    ("static int m; static void keep(double *p, int n) { p[0] = 3; m = n; }", "keep(u, n);", None),
    ("static void keep(double *p, double *t) { *t = p[0]; }", "double t; keep(u, &t); s += t;", None),
    ("static double *keep(double *p) { p[0] = 1; return p; }", "keep(u);", None),
    ("typedef double real; typedef int at; static real m; static at k;\n"
     "static void keep(real *u, int n) { for (real *p = u; p < u + n; p++) if (*p > m) m = *p, k = p - u; }",
     "keep(u, n);", None),
    ("struct s { double *p; int n; }; static struct s keep(double *u) { struct s r = {0, 0}; double *p = u;"
     " r.n = (int)(p - u); return r; }", "struct s r = keep(u); ok = r.n;", None),
    ("struct s { double a; int n; }; static struct s z; static void keep(double *p) { z.a = *p; }",
     "keep(u);", None),
    ("static double *keep(double *p) { double *r = malloc(80); return memcpy(r, p, 80); }",
     "double *r = keep(u); free(r);", None),
    ("", "if (memchr(u, 1, 80) != NULL) ok = 1; if (!memchr(u, 2, 80)) ok++;", None),
    ("double *keep(double *p, int n);", "keep(u, n)[3] = 4;", None),
    ("double *keep(double *p, int n);", "s += *keep(u, n) + keep(u, 3)[2];", None),
    (STRUCT + "static struct s z; static struct s *get(void) { return &z; }\n"
     "static void keep(double *p) { get()->p = p; }",
     "keep(u);", KEEPS),
    (STRUCT + "static struct s z; static void keep(double *p) { struct s *h = &z; h->p = p; }", "keep(u);",
     KEEPS),
    ("static double *g; static void keep(double *p) { double **w = &g; *w = p; }", "keep(u);", KEEPS),
    ("static void keep(double *p) { double **w = malloc(80), *t[4]; *w = t[0] = p; t[0][3] = 4; }",
     "keep(u);", None),
    ("static double *g; static void swap(double **x, double **y) { double *t = *x; *x = *y; *y = t; }\n"
     "static void keep(double *p) { double *t = p; swap(&t, &g); }", "keep(u);", KEEPS),
    ("struct s { double s, *p; }; static double sum(double *p) { return *p; }\n"
     "static void keep(struct s *z, double *p) { z->s = sum(p + 1); }", "struct s z; keep(&z, u);", None),
    ("static double *g; static void keep(double *p) { if (!memcpy(&g, &p, 8)) return; }", "keep(u);", KEEPS),
    ("static double *g; static void keep(double *p) { memcpy(&g, &p, sizeof p); }", "keep(u);", KEEPS),
    ("static double *g; static void own(double *p) { g = p; }",
     "void (*keep)(double *) = own; keep(u);", KEEPS),
    ("static double *g; void own(double *p, int n) { g = p + n; } void (*other)(double *, int) = own;\n"
     "static void less(double *p) { *p = 3; }", "void (*keep)(double *) = less; keep(u);", None),
    (f"{OWN} static void keep(double *p) {{ own(p + 1); }}", "keep(u);", KEEPS),
    (f"{OWN} static double *at(double *p) {{ return &p[1]; }}\n"
     "static void keep(double *p) { own(at((double *)((char *)p + 8))); }", "keep(u);", KEEPS),
    (f"{OWN} static double sum(double *p) {{ return *p; }}\n"
     "static double keep(double *p) { double q[3]; own(q + (int)p[1]); return sum(p + 1) + sum(&p[2]); }",
     "s += keep(u);", None),
    (f"{STRUCT}{OWN} static void own_of(struct s *z) {{ own(z->p); }}\n"
     "static void keep(double *p) { struct s z = { p }; own_of(&z); }", "keep(u);", KEEPS),
    (STRUCT + "static struct s g; static void own(struct s z) { g = z; }\n"
     "static void keep(double *p) { own((struct s){ p }); }", "keep(u);", KEEPS),
    ("static double *g; static void own(double **p) { g = p[0]; }\n"
     "static void keep(double *p) { double *q = p + 1; own(&q); }", "keep(u);", KEEPS),
    (STRUCT + "static double own(struct s *z) { return z->p[0]; }\n"
     "static double keep(double *p) { struct s z; z.p = p; return own(&z); }", "s += keep(u);", None),
    ("int MPI_Isend(const void *p, int n, int to, int *r);", "MPI_Isend(u, n, 1, &ok);", MAY("MPI_Isend")),
    ("void field_attach(double *p, int n);", "field_attach(u, n);", MAY("field_attach")),
    ("int MPI_Send(const void *p, int n, int to); void detach(double *p, int n);\n"
     "static void attach(double *p) { *p = 3; }", "MPI_Send(u, n, 1), detach(u, n), attach(u);", None),
]  # fmt: skip


@pytest.mark.parametrize(("before", "line", "reason"), OUTLIVES)
def test_addresses_that_functions_keep(tmp_path: Path, before: str, line: str, reason: str | None) -> None:
    before = f"#include <string.h>\n{before}"
    source = _program(tmp_path, f"double *u = malloc(800);{DIRECTIVE}{line}", before)
    translate([str(source)], Options("pages"))
    if reason is None:
        translate([str(source)], Options("spmd"))
        return
    with pytest.raises(TranslationError) as error:
        translate([str(source)], Options("spmd"))
    assert reason in [problem.reason for problem in error.value.problems]


HEADER = """static double *kept_by_header, sum_of_header;
static inline double *at(double *p, int n) { double *q = p + n; return q; }
static inline void sum_up(const double *p) { const double *q = p; sum_of_header += *q + p[1]; }
static inline void keep(double *p) { struct { double *q; } s; s.q = at(p, 1); kept_by_header = s.q; }
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("keep(u);", KEEPS),
        ("own(u);", KEEPS.replace("keep", "own", 1)),
        ("sum_up(u); *at(u, 2) = 3;", None),
        ("double *q = at(u, 1); *q = 2;", VALUE.format("at")),
    ],
)
def test_addresses_that_functions_of_headers_keep(tmp_path: Path, line: str, reason: str | None) -> None:
    (tmp_path / "h.h").write_text(HEADER)
    before = '#include "h.h"\nstatic void own(double *p) { if (p[0] < 9) keep(p); }'
    source = _program(tmp_path, f"double *u = malloc(800);{DIRECTIVE}{line}", before)
    if reason is None:
        translate([str(source)], Options("spmd"))
        return
    with pytest.raises(TranslationError) as error:
        translate([str(source)], Options("spmd"))
    assert [problem.reason for problem in error.value.problems] == [reason]


def test_what_an_external_procedure_of_fortran_keeps(tmp_path: Path) -> None:
    lines = (
        "program p\nreal a(9)\ninteger r, e\n!$homing distribute a(block)\ncall mpi_{}(a, 9, 1, r, e)\nend\n"
    )
    (tmp_path / "p.f90").write_text(lines.format("send"))
    translate([str(tmp_path / "p.f90")], Options("spmd"))
    (tmp_path / "p.f90").write_text(lines.format("isend"))
    with pytest.raises(
        TranslationError, match="may keep the address of what it gets, here the distributed 'a'"
    ):
        translate([str(tmp_path / "p.f90")], Options("spmd"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("double &r = at(u, 3); r = 4;", "the value of 'at' may be the address"),
        ("keep(g, u);", "'keep' keeps the address"),
        ("at(u, 3) = at(u, 2) + 1;", None),
    ],
)
def test_references_that_functions_return(tmp_path: Path, line: str, reason: str | None) -> None:
    (tmp_path / "p.cpp").write_text(
        "static double u[9], *g;\n#pragma homing distribute u[block]\n"
        "static double &at(double *p, int i) { return p[i]; }\n"
        "static void keep(double *&r, double *p) { r = p; }\n"
        f"int main() {{ {line} return 0; }}\n"
    )
    if reason is None:
        translate([str(tmp_path / "p.cpp")], Options("spmd"))
        return
    with pytest.raises(TranslationError, match=reason):
        translate([str(tmp_path / "p.cpp")], Options("spmd"))
