"""Random programs, translated: they print what they printed before, or are refused.

Of 1,445 programs, each with four targets, sizes 1 and 6, 1 and 3 threads, 2 ranks (27 November 2026), none
printed something else. Same and refused: 750 in Fortran (seeds 10000 to 10449 and 20000 to 20299) with --to
spmd 569 and 179, pages 662 and 86, mpi 515 and 233, upm 723 and 22; 350 in C (from 20000) 304 and 46, 326 and
24, 255 and 95, 350 and 0; 345 in C++ 296 and 48, 329 and 15, 238 and 106, 344 and 0. Three of the first were
wrong with upm: linked without libgomp, they ran into themselves (tests/python/test_hooks.py). Three were no
programs to the compiler. Most were refused since ranks would write what is shared (--to mpi), no dimension
goes with a loop that has no ON HOME, or a subscript is no index plus a number.

Programs with the rest of the languages (seeds from 30000, tests/python/random_wider.py) were wrong 7 times
in 528: loops on one line, `double *p = a;`, a NAMELIST with a module's array, statements behind `!$ `, and
ON HOME of a private variable. Each kind was mended, and is a test of its own.
"""

from __future__ import annotations

import itertools

import pytest

from homing.translate.positions import TranslationError
from tests.python.random_programs import RandomProgram
from tests.python.translate_programs import MPIRUN, Workshop, run_command
from tests.python.whole_checks import REFUSED, SAME, TARGETS, WIDER
from tests.python.whole_checks import check as check_whole

SIZES = ("1", "2", "5", "8")
LONG_LINES = {".f90": ("-ffree-line-length-none",), ".c": ()}
#: In Fortran and in C, and in C++; together 40, of which the slowest kind has the fewest. `make test-all` has
#: four hundred more (below).
PROGRAMS = {"spmd": 6, "pages": 4, "mpi": 3, "upm": 3}
PROGRAMS_IN_CXX = dict.fromkeys(PROGRAMS, 2)
SUFFIXES = [".f90", ".c", ".cpp"]
#: Each language and each target (1.3 s a case).
IN_SHORT = {
    (".f90", "spmd"),
    (".c", "spmd"),
    (".c", "pages"),
    (".f90", "mpi"),
    (".cpp", "mpi"),
    (".f90", "upm"),
}
#: Of these, those that are translated must be at least so many of ten: the others show nothing.
TRANSLATED = {"spmd": 3, "pages": 4, "mpi": 2, "upm": 9}


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
def test_random_loops(workshop: Workshop, suffix: str) -> None:
    translated = [check(workshop, suffix, seed, "spmd") for seed in range(2)]
    assert any(translated)


@pytest.mark.parametrize(
    ("suffix", "target"),
    [
        pytest.param(*both, marks=[] if both in IN_SHORT else pytest.mark.full)
        for both in itertools.product(SUFFIXES, TARGETS)
    ],
)
def test_whole_programs(workshop: Workshop, suffix: str, target: str) -> None:
    first = 40 * TARGETS.index(target)
    count = (PROGRAMS_IN_CXX if suffix == ".cpp" else PROGRAMS)[target]
    seeds = [WIDER + one if one % 2 else one for one in range(first, first + count)]
    found = [check_whole(workshop, suffix, seed, [target], ["6"])[target] for seed in seeds]
    assert [one for one in found if one not in (SAME, REFUSED)] == []
    assert found.count(SAME) * 10 >= TRANSLATED[target] * len(found), "most show something"


@pytest.mark.full
@pytest.mark.parametrize("target", ["spmd", "mpi"])
@pytest.mark.parametrize("suffix", [".f90", ".c"])
@pytest.mark.parametrize("first", range(100, 200, 10))
def test_many_random_loops(workshop: Workshop, suffix: str, first: int, target: str) -> None:
    for seed in range(first, first + 10):
        check(workshop, suffix, seed, target)


@pytest.mark.full
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("first", [*range(1000, 1200, 10), *range(31000, 31200, 10)])
def test_many_whole_programs(workshop: Workshop, suffix: str, first: int) -> None:
    for seed in range(first, first + 10):
        found = check_whole(workshop, suffix, seed, TARGETS, ["1", "6"])
        assert [one for one in found.values() if one not in (SAME, REFUSED)] == []
