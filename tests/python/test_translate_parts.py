"""--to spmd, mpi, pages and upm: the same output, bit for bit, for every distribution, size and number of
parts."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.python.translate_programs import (
    APPS,
    MPIRUN,
    PATIENCE,
    PROGRAMS,
    TREE,
    Workshop,
    run_command,
    with_distribution,
    without_times,
)
from tests.rotation import in_rotation

SIZES = ("1", "2", "5", "12")
THREADS = ("1", "2", "3", "8")
ALL_THREADS = tuple(str(count) for count in range(1, 9))
APP_SIZES = {
    "jacobi": (("--n", "1"), ("--n", "37")),
    "lu": (("--n", "1"), ("--n", "37")),
    "lbe": (("--nx", "1", "--ny", "1"), ("--nx", "13", "--ny", "17")),
}
#: The paper's codes over ranks, each in one of its languages: the other one takes another 4 s.
IN_TURN = [
    *zip(APP_SIZES, (".c", ".f90", ".c"), strict=True),
    *(
        pytest.param(*both, marks=pytest.mark.full)
        for both in zip(APP_SIZES, (".f90", ".c", ".f90"), strict=True)
    ),
]
STENCIL = {
    ".f90": (
        "*,block",
        "block,*",
        "block,block",
        "*,gen_block(3,0,1,9,7,6,5)",
        "*,cyclic",
        "block,cyclic",
        "cyclic(2),cyclic(3)",
    ),
    ".c": (
        "[block][*]",
        "[*][block]",
        "[block][block]",
        "[gen_block(3,0,1,9,7,6,5)][*]",
        "[*][cyclic]",
        "[cyclic(2)][block]",
    ),
}
LOCAL = {
    ".f90": (
        "*,cyclic",
        "*,cyclic(2)",
        "cyclic(3),*",
        "cyclic(2),cyclic",
        "block,cyclic",
        "*,gen_block(0,3,9)",
    ),
    ".c": ("[cyclic][*]", "[cyclic(2)][*]", "[*][cyclic(3)]", "[cyclic][cyclic(2)]", "[block][cyclic]"),
}
STRIDES = {
    ".f90": ("block", "gen_block(4,0,1,9,7,6,5,2)", "cyclic", "cyclic(3)"),
    ".c": ("[block]", "[cyclic]", "[cyclic(2)]"),
}


def in_turn(name: str, distributions: dict[str, tuple[str, ...]]) -> list[Any]:
    """A program in both languages: every second distribution in Fortran, the others in C (0.4 s a case)."""
    return [
        pytest.param(name + suffix, text, marks=[] if (number + turn) % 2 == 0 else pytest.mark.full)
        for turn, (suffix, texts) in enumerate(distributions.items())
        for number, text in enumerate(texts)
    ]


CASES = [
    *in_turn("stencil", STENCIL),
    *in_turn("strides", STRIDES),
    *in_turn("local", LOCAL),
    ("fresh.f90", "block"),
    ("shares.f90", "block"),
    ("directions.f90", ""),
    ("directions.c", ""),
    ("modules.f90", ""),
    ("inner.f90", ""),
]
needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
LIBRARY = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("translate"))


@pytest.mark.parametrize(("name", "distribution"), CASES)
def test_same_bits_for_every_distribution(workshop: Workshop, name: str, distribution: str) -> None:
    source = with_distribution(PROGRAMS / name, distribution, workshop.place())
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "spmd")
    for size in SIZES:
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1")
        for threads in THREADS:
            found = run_command([parts, size], workshop.folder, OMP_NUM_THREADS=threads)
            assert _same(expected, found), f"size {size}, {threads} threads"


@pytest.mark.parametrize(
    ("target", "name"), in_rotation(["spmd", "pages", "mpi"], ["threads.f90", "threads.c"])
)
def test_iterations_on_threads_by_number(workshop: Workshop, name: str, target: str) -> None:
    if target == "mpi" and shutil.which("mpirun") is None:
        pytest.skip("no mpirun")
    plain = workshop.plain(PROGRAMS / name)
    made, _ = workshop.translated(PROGRAMS / name, target)
    start = [*MPIRUN, "-n", "2"] if target == "mpi" else []
    for size in ("1", "7"):
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1", OMP_THREAD_LIMIT="1")
        for threads in ("1", "3", "4"):
            found = run_command([*start, made, size], workshop.folder, OMP_NUM_THREADS=threads)
            assert found == expected, f"size {size}, {threads} threads"


@pytest.mark.parametrize("name", ["jacobi", "lu", "lbe"])
@pytest.mark.parametrize("suffix", [".f90", ".c"])
def test_papers_codes_in_parts(workshop: Workshop, name: str, suffix: str) -> None:
    source = APPS / "chapman" / f"{name}{suffix}"
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "spmd")
    for size in APP_SIZES[name]:
        expected = run_command([plain, *size], workshop.folder, OMP_NUM_THREADS="1")
        assert "verification: successful" in expected
        for threads in ALL_THREADS:
            found = run_command([parts, *size], workshop.folder, OMP_NUM_THREADS=threads)
            assert without_times(found) == without_times(expected), f"{size}, {threads} threads"


@pytest.mark.parametrize(("target", "suffix"), in_rotation(["pages", "upm"], [".f90", ".c"]))
@pytest.mark.parametrize("name", ["jacobi", "lu", "lbe"])
def test_papers_codes_with_shared_arrays(workshop: Workshop, name: str, suffix: str, target: str) -> None:
    if target == "upm" and not os.path.exists(LIBRARY):
        pytest.skip("libhoming.so is not built")
    source = APPS / "chapman" / f"{name}{suffix}"
    plain = workshop.plain(source)
    made, result = workshop.translated(source, target, checked=suffix == ".f90")
    size = APP_SIZES[name][1]
    expected = run_command([plain, *size], workshop.folder, OMP_NUM_THREADS="1")
    for threads in ("1", "3", "8"):
        found = run_command([made, *size], workshop.folder, OMP_NUM_THREADS=threads)
        assert without_times(found) == without_times(expected)
    if target == "upm":
        assert "upmlib_migrate_memory()" in result.outputs[0].text
        assert any("hot: " in line for line in result.report)
        inside = f"{name}{suffix}:{57 if suffix == '.f90' else 47}, 1 worksharing construct in it"
        assert any(line.endswith(inside) for line in result.report) == (name == "lu")


@needs_mpi
@pytest.mark.parametrize(("name", "suffix"), IN_TURN)
def test_papers_codes_over_ranks(workshop: Workshop, name: str, suffix: str) -> None:
    source = APPS / "chapman" / f"{name}{suffix}"
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "mpi")
    size = APP_SIZES[name][1]
    expected = run_command([plain, *size], workshop.folder, OMP_NUM_THREADS="1")
    for ranks, threads in (("1", "2"), ("3", "1"), ("2", "2"), ("4", "1")):
        found = run_command([*MPIRUN, "-n", ranks, parts, *size], workshop.folder, OMP_NUM_THREADS=threads)
        assert without_times(found) == without_times(expected), f"{ranks} ranks of {threads} threads"


@needs_mpi
@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("stencil.c", "[block][block]"),
        ("stencil.f90", "cyclic(2),cyclic(3)"),
        ("strides.f90", "block"),
        ("directions.f90", ""),
        ("local.c", "[*][cyclic(3)]"),
        *(
            pytest.param(*both, marks=pytest.mark.full)
            for both in (
                ("stencil.f90", "block,block"),
                ("strides.f90", "cyclic"),
                ("local.f90", "cyclic(3),*"),
            )
        ),
    ],
)
def test_same_bits_over_ranks(workshop: Workshop, name: str, distribution: str) -> None:
    source = with_distribution(PROGRAMS / name, distribution, workshop.place())
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "mpi")
    for size in ("1", "12"):
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1")
        for ranks, threads in (("2", "2"), ("3", "1")):
            found = run_command([*MPIRUN, "-n", ranks, parts, size], workshop.folder, OMP_NUM_THREADS=threads)
            assert _same(expected, found), f"size {size}, {ranks} ranks of {threads} threads"


@pytest.mark.full
@pytest.mark.parametrize(("name", "distribution"), CASES)
def test_same_bits_for_many_sizes(workshop: Workshop, name: str, distribution: str) -> None:
    source = with_distribution(PROGRAMS / name, distribution, workshop.place())
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "spmd")
    for size in map(str, range(1, 20)):
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1")
        for threads in ALL_THREADS:
            found = run_command([parts, size], workshop.folder, OMP_NUM_THREADS=threads)
            assert _same(expected, found), f"size {size}, {threads} threads"


def _exchanged(program: Path, size: tuple[str, ...], threads: int) -> int:
    import subprocess

    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HOMING_PARTS": "statistics"}
    done = subprocess.run([program, *size], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    match = re.search(r"exchanges \d+ bytes (\d+)", done.stderr)
    assert match is not None
    return int(match[1])


@pytest.mark.parametrize("suffix", [".f90", ".c"])
def test_only_what_is_needed_is_sent_once(workshop: Workshop, suffix: str) -> None:
    steps = 20
    for threads in (1, 2, 5):
        for name, size, expected in (
            ("jacobi", ("--n", "37"), 16 * (threads - 1) * 37 * steps),
            ("lu", ("--n", "37"), sum(8 * (37 - k) for k in range(1, 37))),
            ("lbe", ("--nx", "13", "--ny", "17"), 48 * (threads - 1) * 13 * steps),
        ):
            source = APPS / "chapman" / f"{name}{suffix}"
            parts = _once(workshop, source)
            more = () if name == "lu" else ("--iterations", "2", "--steps", "10")
            assert _exchanged(parts, (*size, *more), threads) == expected, f"{name}, {threads} threads"


_MADE: dict[Path, Path] = {}


def _once(workshop: Workshop, source: Path) -> Path:
    if source not in _MADE:
        _MADE[source] = workshop.translated(source, "spmd", checked=False)[0]
    return _MADE[source]


def _same(expected: str, found: str) -> bool:
    """Bit for bit but for sums over threads, which have another order."""
    mine, its = expected.splitlines(), found.splitlines()
    if len(mine) != len(its):
        return False
    for a, b in zip(mine, its, strict=True):
        if a == b:
            continue
        if not a.startswith("total") or not b.startswith("total"):
            return False
        x, y = float(a.split()[-1]), float(b.split()[-1])
        if abs(x - y) > 1e-12 * max(abs(x), 1):
            return False
    return True
