"""Random programs, translated: they print what they printed before, or are refused."""

from __future__ import annotations

import pytest

from homing.translate.positions import TranslationError
from tests.python.random_programs import RandomProgram
from tests.python.translate_programs import MPIRUN, Workshop, run_command

SIZES = ("1", "2", "5", "8")
LONG_LINES = {".f90": ("-ffree-line-length-none",), ".c": ()}


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("random"))


def check(workshop: Workshop, suffix: str, seed: int, target: str) -> bool:
    """Is the program translated? If so, it prints the same for all sizes and numbers of parts."""
    source = workshop.place() / f"p{suffix}"
    source.write_text(RandomProgram(seed, suffix).text)
    plain = workshop.compile(source, workshop.place(), LONG_LINES[suffix])
    try:
        parts, _ = workshop.translated(source, target)
    except TranslationError:
        return False
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for size in SIZES:
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1")
        for threads in ("1", "2") if target == "mpi" else ("1", "2", "3", "6"):
            found = run_command([*start, parts, size], workshop.folder, OMP_NUM_THREADS=threads)
            assert found == expected, f"seed {seed}, size {size}, {threads} threads: {source}"
    return True


@pytest.mark.parametrize("suffix", [".f90", ".c"])
def test_random_programs(workshop: Workshop, suffix: str) -> None:
    translated = [check(workshop, suffix, seed, "spmd") for seed in range(7)]
    assert sum(translated) >= 3, "most of them can be translated"


@pytest.mark.full
@pytest.mark.parametrize("target", ["spmd", "mpi"])
@pytest.mark.parametrize("suffix", [".f90", ".c"])
@pytest.mark.parametrize("first", range(100, 200, 10))
def test_many_random_programs(workshop: Workshop, suffix: str, first: int, target: str) -> None:
    for seed in range(first, first + 10):
        check(workshop, suffix, seed, target)
