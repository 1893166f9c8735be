"""--to mpi: C's pointers may read what is shared, and not write it; addresses are one rank's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, Workshop, run_command


@pytest.mark.parametrize(
    ("member", "suffix"), [("double *v", ".c"), ("struct in { int k; char *s[2]; } i", ".cpp")]
)
def test_addresses_mean_nothing_to_other_ranks(tmp_path: Path, member: str, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    struct = f"struct s {{ int n; {member}; }};\nstatic struct s x[9];\n#pragma homing distribute x[block]\n"
    path.write_text(struct + "int main(void) { x[1].n = 2; return x[2].n; }\n")
    translate([str(path)], Options("spmd"))
    with pytest.raises(TranslationError, match=r"2:17: the elements hold addresses"):
        translate([str(path)], Options("mpi"))


ALIASES = """#include <math.h>
#include <stdio.h>
struct par { double dt, w[3], *tab; };
static double a[30], b[30], w[30][3], four[4] = {1, 2, 3, 4};
static int at[30];
static _Thread_local double last[2];
#pragma homing distribute a[block], b[block]
static double dot(const double *x, const double *y) {
    for (int i = 0; i < 2; i++)
        last[i] = x[i] * y[i];
    return last[0] + last[1];
}
int main(void) {
    struct par par = {.5, {1, 2, 3}, four}, *p = &par;
    int m = 30, *pm = &m;
    for (int i = 0; i < m; i++)
        w[i][0] = i, w[i][1] = i / 2., at[i] = i % 4;
#pragma omp parallel for
    for (int i = 0; i < 30; i++)
        a[i] = i, b[i] = 0;
#pragma omp parallel for
    for (int i = 1; i < 29; i++) {
        double *row = w[i], *second = &w[i][1];
        const double *t = four;
        const int *k = &at[i];
        b[i] = row[0] * a[i - 1] + *second * a[i + 1] + p->dt + p->w[1] + p->tab[at[i]];
        b[i] += t[*k] + *pm + dot(w[i], t);
    }
    int many = 3, of[4] = {1};
    double all = 1, most = 3, least = 30, rows[2][3] = {{2}};
#pragma omp parallel for
    for (int i = 0; i < 30; i++) {
#pragma omp critical
        all += 2 * a[i];
        if (b[i] > 9) {
#pragma omp atomic
            many++;
        }
#pragma omp atomic
        of[i % 4]++;
#pragma omp critical
        {
            rows[i % 2][i % 3] += a[i];
            most = fmax(most, b[i]);
            if (least > b[i])
                least = b[i];
        }
    }
    printf("%.2f %.2f %.2f %d %.2f\\n", b[1], b[17], b[28], many, all);
    printf("%d %d %g %g %.2f %.2f\\n", of[0], of[3], rows[0][0], rows[1][2], most, least);
    return 0;
}
"""


def test_pointers_that_only_read_may_mean_what_is_shared(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("aliases"))
    source = workshop.place() / "p.c"
    source.write_text(ALIASES)
    program, _ = workshop.translated(source, "mpi", checked=False)
    assert run_command([*MPIRUN, "-n", "2", program], workshop.folder) == workshop.printed(source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p->w[1]", "(p->w[1] = 1)"),
        ("+ *pm", "+ (*pm)++"),
        ("b[i] += t", "row[0] = 1; b[i] += t"),
        ("b[i] += t", "++*row; b[i] += t"),
        ("b[i] += t", "second = row; *second = 2; b[i] += t"),
        ("b[i] += t", "row++; b[i] += t"),
    ],
)
def test_pointers_that_write_do_not(tmp_path: Path, old: str, new: str) -> None:
    assert old in ALIASES
    (tmp_path / "p.c").write_text(ALIASES.replace(old, new))
    with pytest.raises(TranslationError, match=r"p\.c:\d+:\d+: '\w+' is shared and written in a loop"):
        translate([str(tmp_path / "p.c")], Options("mpi"))
