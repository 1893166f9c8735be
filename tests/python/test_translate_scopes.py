"""Procedures that work on distributed arrays of a module, of the program around them, or of a C file."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("scopes"))


@pytest.mark.parametrize("name", ["orphaned.f90", "globals.f90", "globals.c", "names_of_loops.f90"])
@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
def test_arrays_of_other_scopes(workshop: Workshop, target: str, name: str) -> None:
    """Orphaned loops get the parts that their callers have; serial code around such calls is cut there."""
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS="3") == expected


C = """double a[9];
#pragma homing distribute a[block]
void sweep(void) {{
#pragma omp parallel for
    for (int i = 0; i < 9; i++) a[i] = i;
}}
int main(void) {{
    for (int t = 0; t < 3; t++) {body}
    return 0;
}}
"""
FORTRAN = """program p
  real(8) :: a(9), s
  !$homing distribute a(block)
  {line}
contains
  subroutine sweep
    integer :: i
    !$omp parallel do
    do i = 1, 9
      a(i) = i
    end do
  end subroutine
  real(8) function total()
    total = sum(a)
  end function
end program
"""
TWICE = """program p
  real(8) :: a(9), b(9), s
  !$homing distribute a(block), b(block)
  {line}
contains
  real(8) function dot(x, y)
    real(8), intent(in) :: x(9), y(9)
    integer :: i
    dot = 0
    !$omp parallel do reduction(+:dot)
    do i = 1, 9
      dot = dot + x(i)*y(i)
    end do
  end function
end program
"""
JUMPS = """program p
  real(8) :: a(9)
  real(8), allocatable :: b(:)
  !$homing distribute a(block), b(block)
  {line}
10 a(3) = 5
  if (a(3) < 4) goto 10
  {second}
end program
"""
POINTER = """#include <stdlib.h>
static int n = 9;
static double *g;
int main(void) {{
    double *a = {value};
#pragma homing distribute a[block] extent(9)
    a[1] = 2;
    {line}
    return 0;
}}
"""
REFUSED = [
    ("p.f90", JUMPS.format(line="", second="allocate (b(size(a)))"), r"p\.f90:8:3: asks the distributed 'a'"),
    ("p.c", POINTER.format(value="g", line=""), r"p\.c:5:13: 'a' gets memory that may have other names"),
    (
        "p.c",
        POINTER.format(value="malloc(72)", line="a = g;"),
        r"p\.c:8:5: gives the distributed array other",
    ),
    (
        "p.c",
        POINTER.format(value="malloc(72)", line="").replace(
            "n = 9;\nstatic double *g;",
            "n, m;\nstatic double *g;\n#pragma homing distribute g[block] extent(n)",
        ),
        r"p\.c:4:1: EXTENT at file scope holds when the program begins, and 'n' is a variable",
    ),
    (
        "p.f90",
        TWICE.format(line="s = dot(a, a)")
        .replace("intent(in)", "intent(inout)")
        .replace("= 0", "= 0; y(2) = 1"),
        r"p\.f90:4:3: passes the distributed 'a' twice to 'dot'",
    ),
    ("p.c", C.format(body="{ sweep(); a[1] = t; }"), r"p\.c:8:44: works on whole arrays beside"),
    ("p.c", C.format(body="{\n        if (t) sweep(); else a[1] = t;\n    }"), r"p\.c:9:30: works on whole"),
    ("p.c", C.format(body="{ double *q = a; q[1] = t; sweep(); }"), r"p\.c:8:\d+: may give the distributed"),
    (
        "p.c",
        "double a[9], *q = a + 1;\n#pragma homing distribute a[block]\nint main(void) { return a[0]; }\n",
        r"p\.c:1:19: 'q' is another name for 'a'",
    ),
]


@pytest.mark.parametrize(("name", "text", "reason"), REFUSED)
def test_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TranslationError, match=reason):
        translate([str(tmp_path / name)], Options("spmd"))


@pytest.mark.parametrize("target", ["spmd", "pages", "mpi"])
def test_functions_in_conditions_and_in_both_orders(workshop: Workshop, target: str) -> None:
    """With --to pages a condition may call what gets arrays with their layouts."""
    source = workshop.place() / "p.f90"
    head = "a = 2; b = 3; s = dot(a, b) + dot(b, a)"
    asked = (
        "if (dot(a, b) > 3) s = s + 1\n  if (s > 1e9) then\n  else if (dot(b, a) > 5) then; s = s + 2; end if"
    )
    source.write_text(TWICE.format(line=f"{head}\n  {asked if target == 'pages' else ''}\n  print *, s"))
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS="3") == expected


def test_arrays_allocated_elsewhere_are_compared_when_the_program_runs(workshop: Workshop) -> None:
    """Of arrays whose bounds the file does not give it is assumed that they lie together."""
    source = workshop.place() / "p.f90"
    text = (PROGRAMS / "orphaned.f90").read_text()
    source.write_text(text.replace("allocate (a(n), b(n))", "allocate (a(n), b(n + 1))"))
    made, _ = workshop.translated(source, "spmd")
    with pytest.raises(AssertionError, match="homing: "):
        run_command([made], workshop.folder, OMP_NUM_THREADS="2")


SUBMODULE = """module base
  implicit none
  real(8), allocatable :: f(:)
  !$homing distribute f(block)
  interface
    module subroutine work(k)
      integer, intent(in) :: k
    end subroutine
  end interface
end module
submodule (base) inner
contains
  module subroutine work(k)
    integer, intent(in) :: k
    {} = k
  end subroutine
end submodule
"""


def test_a_submodule_that_uses_an_array_of_its_module(tmp_path: Path) -> None:
    """It was translated as if it had no parts, and crashed."""
    path = tmp_path / "p.f90"
    path.write_text(SUBMODULE.format("if (k > 1) f(k)"))
    translate([str(path)], Options("pages"))
    with pytest.raises(
        TranslationError, match=r"p\.f90:15:16: a submodule's procedure uses the distributed 'f'"
    ):
        translate([str(path)], Options("spmd"))
    path.write_text(SUBMODULE.format("integer :: f(9)\n    f"))
    translate([str(path)], Options("spmd"))
