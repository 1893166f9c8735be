"""The programs of apps/patterns/: equal results in every way of running them, and with homing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from homing.installation import find_library
from tests.patience import PATIENCE
from tests.python.test_apps import in_short, program, results, run

C_PATTERNS = (
    "block",
    "many_arrays",
    "rows",
    "pool",
    "temporaries",
    "cyclic",
    "csr --numbering lines",
    "csr --numbering curve",
    "csr --numbering random",
    "particles",
    "dynamic --schedule dynamic",
    "dynamic --schedule guided",
    "tasks",
    "nested",
    "half",
)
FORTRAN_PATTERNS = (
    "two_grids",
    "multigrid",
    "tiles",
    "halo",
    "transpose",
    "wavefront",
    "giant",
    "first_phase",
)
COMPILERS = dict.fromkeys(C_PATTERNS, ("gcc", "clang")) | dict.fromkeys(
    FORTRAN_PATTERNS, ("gfortran", "flang")
)


SMALL = ("--size", "1M")


def run_with_homing(path: Path, *arguments: str) -> str:
    """The program's output on four nodes that are only assumed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP")}
    environment |= {
        "OMP_NUM_THREADS": "4",
        "OMP_WAIT_POLICY": "passive",
        "LD_PRELOAD": find_library(),
        "HOMING_ASSUME_NODES": "4",
        "HOMING_COSTS": "",
        "HOMING_AREA_MINIMUM": "64KiB",
    }
    done = subprocess.run(
        [path, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("pattern", COMPILERS)
def test_a_pattern_has_the_same_checksum_in_every_way(pattern: str) -> None:
    name, *arguments = pattern.split()
    seen = set()
    for compiler in (one for one in COMPILERS[pattern] if in_short(f"pattern_{name}", one)):
        path = program(f"pattern_{name}", compiler)
        for threads, initialise in ((1, "serial"), (3, "parallel"), (4, "serial")):
            done = run(path, *arguments, *SMALL, "--initialise", initialise, threads=threads)
            assert (done.returncode, done.stderr) == (0, "")
            assert f"initialise: {initialise}" in done.stdout.splitlines()
            seen.add("\n".join(results(done.stdout)))
        for initialise in ("serial", "parallel"):
            stdout = run_with_homing(path, *arguments, *SMALL, "--initialise", initialise)
            seen.add("\n".join(results(stdout)))
    assert len(seen) == 1
    assert seen.pop().startswith("result checksum: ")


@pytest.mark.parametrize("pattern", COMPILERS)
def test_a_pattern_has_arrays_of_about_the_size_that_is_asked_for(pattern: str) -> None:
    name, *arguments = pattern.split()
    path = program(f"pattern_{name}", COMPILERS[pattern][0])
    lines = run(path, *arguments, "--size", "2M", "--iterations", "1").stdout.splitlines()
    (size,) = (int(line.split()[1]) for line in lines if line.startswith("bytes: "))
    # The points of the matrix's mesh are a power of four.
    assert (0.25 if name == "csr" else 0.9) * 2**21 <= size <= 1.05 * 2**21


def test_a_checksum_depends_on_the_iterations() -> None:
    for pattern in COMPILERS:
        name, *arguments = pattern.split()
        path = program(f"pattern_{name}", COMPILERS[pattern][0])
        once, twice = (run(path, *arguments, *SMALL, "--iterations", n).stdout for n in "12")
        assert results(once) != results(twice), pattern
