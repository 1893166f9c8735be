"""C and C++: functions that return what they compute of distributed arrays in serial code."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import Workshop, run_command

GETTERS = """#include <stdio.h>
#define N 40
static double a[N];
static int map[N];
#pragma homing distribute a[block], map[block]
static double get(int i) { return a[i]; }
static double both(int i, int j)
{
    return (a[i] +
            a[j]);
}
static int half(int i) { if (i > 3) return a[i] / 2; else return a[map[i]]; }
static double kind(int i)
{
    switch (i) {
    case 1: return a[1];
    case 2:
        a[2] += 5;
        /* fall through */
    default: return a[i] - 1;
    }
}
static double guarded(int i)
{
    if (i < 0 || i >= N)
        return -1;
    a[i] += 1;
    return a[i];
}
int main(void)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) { a[i] = i; map[i] = N - 1 - i; }
    double g = get(5);
    g += get(7) + both(1, 2);
    printf("%g %d %d %g %g\\n", g, half(7), half(2), guarded(-3), guarded(3));
    if (get(3) > 2) printf("yes %g %g %g\\n", get(4), kind(1), kind(9));
    printf("%g %g\\n", kind(2), get(2));
    return 0;
}
"""
REFERENCE = """static double a[40];
#pragma homing distribute a[block]
static {result} &at(int i) {{ return a[i]; }}
int main()
{{
#pragma omp parallel for
    for (int i = 0; i < 40; i++) a[i] = i;
    return at(3) > 7;
}}
"""


def test_functions_return_elements(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "built")
    source = tmp_path / "p.c"
    source.write_text(GETTERS)
    made, _ = workshop.translated(source, "spmd")
    assert run_command([made], tmp_path, OMP_NUM_THREADS="3") == workshop.printed(source)


@pytest.mark.parametrize("result", ["double", "const double"])
def test_references_to_elements_are_refused(tmp_path: Path, result: str) -> None:
    source = tmp_path / "p.cpp"
    source.write_text(REFERENCE.format(result=result))
    with pytest.raises(TranslationError, match="may give the distributed array another name"):
        translate([str(source)], Options("spmd"))
