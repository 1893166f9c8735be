"""Columns of distributed arrays as arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import MPIRUN, PROGRAMS, Workshop, run_command, with_distribution


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("columns"))


@pytest.mark.parametrize(
    ("target", "distribution"),
    [("spmd", "block"), ("spmd", "cyclic(2)"), ("pages", "block"), ("mpi", "block")],
)
def test_columns_are_passed_on(workshop: Workshop, target: str, distribution: str) -> None:
    source = with_distribution(PROGRAMS / "columns.f90", distribution, workshop.place())
    expected = workshop.printed(source)
    made, _ = workshop.translated(source, target, checked=target != "mpi")
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for threads in ("1",) if target == "mpi" else ("1", "3"):
        assert run_command([*start, made], workshop.folder, OMP_NUM_THREADS=threads) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sweep(a(1, j), n)", "sweep(a(1, j), n + 1)"),
        ("sweep(a(1, j), n)", "sweep(a(2, j), n)"),
        ("sweep(a(1, j), n)", "sweep(a(1, j), 2*n)"),
        ("fill(a(:, j), j)", "fill(a(1, :), j)"),
    ],
)
def test_what_lies_in_several_parts_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = (PROGRAMS / "columns.f90").read_text().replace("DIST", "block")
    assert old in text
    (tmp_path / "p.f90").write_text(text.replace(old, new, 1))
    with pytest.raises(
        TranslationError, match=r"p\.f90:\d+:\d+: a piece of the distributed 'a' is passed on"
    ):
        translate([str(tmp_path / "p.f90")], Options("spmd"))
