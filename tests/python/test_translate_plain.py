"""C: directives of _Pragma and macros, arrays with typedefs, or measured by sizeof."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", ["row_types.c", "pragma_operators.c", "sizes.c"])
@pytest.mark.parametrize("target", ["spmd", "pages", pytest.param("mpi", marks=pytest.mark.full)])
def test_the_same_is_printed(workshop: Workshop, target: str, name: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, result = workshop.translated(source, target, checked=target != "mpi")
    assert target == "pages" or [loop for loop in result.plan.loops() if loop.follows]
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1",) if target == "mpi" else ("1", "4"):
        assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS=threads) == expected


def refusal(folder: Path, text: str) -> str:
    (folder / "p.c").write_text(text)
    with pytest.raises(TranslationError) as caught:
        translate([str(folder / "p.c")], Options("spmd"))
    return str(caught.value).split(str(folder) + "/")[1]


def test_a_directive_inside_another_macro_is_refused(tmp_path: Path) -> None:
    text = """#define EACH(i, n) _Pragma("omp parallel") _Pragma("omp for") for (int i = 0; i < n; i++)
static double a[9];
#pragma homing distribute a[block]
int main(void) {
    EACH(i, 9) a[i] = i;
}
"""
    assert "p.c:5:5: the macro EACH holds an OpenMP directive" in refusal(tmp_path, text)


def test_a_refusal_tells_the_users_line_and_text(tmp_path: Path) -> None:
    text = """typedef double row[3];
row a[9]; static int n; row *b = a;
#pragma homing distribute a[block][*]
int main(void) {
    n = 1; _Pragma("omp parallel for") for (int i = 0; i < 9; i++) a[i][0] = i;
}
"""
    assert refusal(tmp_path, text).startswith("p.c:2:")


def test_no_other_macro_matters(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text("""#define UNROLL _Pragma("GCC unroll 4")
typedef int pair[2];
static double a[9];
#pragma homing distribute a[block]
pair *both(pair *one, int (*done)(pair)) { return done(*one) ? one : 0; }
int main(void) {
    UNROLL
    for (int i = 0; i < 9; i++)
        a[i] = i;
}
""")
    result = translate([str(tmp_path / "p.c")], Options("spmd"))
    assert "    UNROLL\n" in result.outputs[0].text


def test_a_task_has_the_pointer_that_was_when_it_was_made(tmp_path: Path) -> None:
    """What is in its value is shared, and may be another when the task runs."""
    text = """static double a[9];
#pragma homing distribute a[block]
int main(void) {
    int i;
#pragma omp parallel
#pragma omp single
    for (i = 0; i < 9; i++) {
        double *p = &a[i];
#pragma omp task
        *p += 1;
    }
}
"""
    (tmp_path / "p.c").write_text(text)
    assert "*p += 1" in translate([str(tmp_path / "p.c")], Options("pages")).outputs[0].text
