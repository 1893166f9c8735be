"""Distributed arrays that assignments and calls allocate, and what about allocation is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("allocated"))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(("allocated.f90", target) for target in ("spmd", "pages", "mpi")),
        *(("allocated_from.f90", target) for target in ("spmd", "mpi")),
        ("allocated_by_operator.f90", "spmd"),
    ],
)
def test_arrays_that_are_allocated_unsaid(workshop: Workshop, name: str, target: str) -> None:
    source = PROGRAMS / name
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS="3") == expected


BEGIN = "program p\nreal(8), allocatable :: a(:)\nreal(8) :: b(9), s\ninteger :: i\n"
LOOP = "!$omp parallel do\n!$homing on home({0}(i))\ndo i = 1, 9\n{0}(i) = i\nend do\n"
REFUSED = [
    (
        BEGIN + "!$homing distribute a(block)\ncall make(a)\ncontains\nsubroutine make(x)\n"
        "real(8), allocatable, intent(out) :: x(:)\n!$homing distribute x(block)\nallocate (x(9))\n"
        + LOOP.format("x")
        + "end subroutine\nend program\n",
        r"p\.f90:11:1: 'x' is the caller's: ALLOCATE",
    ),
    (
        BEGIN
        + "namelist /n/ b\n!$homing distribute b(block)\nread (5, nml=n)\n"
        + LOOP.format("b")
        + "end\n",
        r"p\.f90:5:1: 'b' is in a NAMELIST",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=["in a callee", "namelist"])
def test_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "p.f90").write_text(text)
    with pytest.raises(TranslationError, match=reason):
        translate([str(tmp_path / "p.f90")], Options("spmd"))
