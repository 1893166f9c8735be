"""`homing translate --to T -- COMPILER ARGS` in the place of a build's compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from homing.translate.compile import _launcher
from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import homing

#: gcc's nested functions: clang calls them errors.
NESTED = """int twice(int x) {
    int add(int y) { return x + y; }
    return add(x);
}
"""
DISTRIBUTED = """#include <stdio.h>
#ifdef _OPENMP
static double x[64];
#endif
#pragma homing distribute x[block]
int main(void) {
    double sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 64; ++i)
        x[i] = i;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 64; ++i)
        sum += x[i];
    printf("%g\\n", sum);
}
"""


def test_a_source_without_directives_is_the_compilers_alone(tmp_path: Path) -> None:
    (tmp_path / "nested.c").write_text(NESTED)
    done = homing(tmp_path, "--to", "spmd", "--", "gcc", "-c", "nested.c")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "nested.o").exists()
    result = translate([str(tmp_path / "nested.c")], Options("pages"))
    assert [(output.text, output.changed) for output in result.outputs] == [(NESTED, False)]


def test_beside_a_directive_all_must_be_understood(tmp_path: Path) -> None:
    (tmp_path / "nested.c").write_text(NESTED + "double x[9];\n#pragma homing distribute x[block]\n")
    with pytest.raises(TranslationError):
        translate([str(tmp_path / "nested.c")], Options("spmd"))


def test_what_the_program_has_for_openmp_only_is_seen(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(DISTRIBUTED)
    done = homing(tmp_path, "--to", "spmd", "--", "gcc", "-fopenmp", "-o", "x", "x.c")
    assert done.returncode == 0, done.stderr
    out = subprocess.run(
        [tmp_path / "x"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert out == "2016\n"
    without = homing(tmp_path, "--to", "spmd", "--", "gcc", "-o", "x", "x.c")
    assert without.returncode == 1
    assert "x.c:" in without.stderr


def test_preprocessed_sources_are_translated_once(tmp_path: Path) -> None:
    """As CMake with Ninja does it: the preprocessor first, its output to the compiler."""
    (tmp_path / "y.f90").write_text(
        "program p\n  real(8) :: y(9)\n  integer :: i\n!$homing distribute y(block)\n!$omp parallel do\n"
        "  do i = 1, 9\n    y(i) = i\n  end do\n  print *, nint(sum(y))\nend program\n"
    )
    gfortran = ("--to", "spmd", "--", "gfortran", "-fopenmp")
    done = homing(tmp_path, *gfortran, "-cpp", "-E", "y.f90", "-o", "y-pp.f90")
    assert done.returncode == 0, done.stderr
    assert "!$homing distribute y(block)" in (tmp_path / "y-pp.f90").read_text()
    done = homing(tmp_path, *gfortran, "-fpreprocessed", "y-pp.f90", "-o", "y")
    assert done.returncode == 0, done.stderr
    out = subprocess.run(
        [tmp_path / "y"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert out.split() == ["45"]


FORTRAN = """program p
  integer :: i
  real(8) :: x(64)
  !$homing distribute x(block)
  !$omp parallel do
  do i = 1, 64
    x(i) = i
  end do
  print '(f6.1)', sum(x)
end program p
"""


def test_a_command_in_front_of_the_compiler(tmp_path: Path) -> None:
    """`ccache gfortran`, `homing cc gfortran`: the Fortran module is the compiler's, which is not the first
    word."""
    (tmp_path / "x.f90").write_text(FORTRAN)
    launcher = tmp_path / "ccache"
    launcher.write_text('#!/bin/sh\ntouch launched\nexec "$@"\n')
    launcher.chmod(0o755)
    done = homing(tmp_path, "--to", "pages", "--", str(launcher), "gfortran", "-fopenmp", "-o", "x", "x.f90")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "launched").exists()
    without = homing(tmp_path, "--to", "pages", "--", "gfortran", "-fopenmp-simd", "-o", "y", "x.f90")
    assert without.returncode == 2 and without.stderr.count("\n") == 1 and "add -fopenmp" in without.stderr
    out = subprocess.run(
        [tmp_path / "x"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert out.strip() == "2080.0"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["gfortran", "x.f90"], 0),
        (["homing", "cc", "gfortran", "x.f90"], 2),
        (["/usr/bin/ccache", "/opt/bin/homing", "cc", "gfortran-12"], 3),
        (["homing", "cc"], 0),
        (["ccache"], 0),
    ],
)
def test_where_the_compilers_name_is(words: list[str], count: int) -> None:
    assert _launcher(words) == count


def test_cpp_of_the_command_reaches_the_reading(tmp_path: Path) -> None:
    """A .f90 with -cpp was read with both branches of its #if."""
    (tmp_path / "x.f90").write_text(
        "program p\n  real(8) :: a(9)\n  integer :: i\n  !$homing distribute a(block)\n#ifdef TWICE\n"
        "  !$omp parallel do\n  do i = 1, 9\n    a(i) = 2*i\n  end do\n#else\n  goto (1, 2)\n#endif\n"
        "  print *, sum(a)\nend program\n"
    )
    words = ("--to", "spmd", "--", "gfortran", "-fopenmp", "-cpp", "-DTWICE", "-o", "x", "x.f90")
    done = homing(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    run = subprocess.run([tmp_path / "x"], capture_output=True, text=True, check=True)
    assert float(run.stdout) == 90


def test_a_malformed_directive_of_an_included_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.h").write_text("#pragma homing distribute a[blok]\n")
    (tmp_path / "m.c").write_text('#include "bad.h"\ndouble a[9];\nint main(void) { return 0; }\n')
    done = homing(tmp_path, "--to", "spmd", "--", "gcc", "-fopenmp", "m.c", "-o", "m")
    assert done.returncode == 1 and "bad.h:1:29: stands in a file that m.c includes" in done.stderr
    assert "blok" in done.stderr and not (tmp_path / "m").exists()
