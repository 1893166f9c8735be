"""homing/tasks.hpp under ThreadSanitizer: plainly for threads and oneTBB, with Archer for OpenMP tasks.

Reports about the runtimes' own memory are left out (`reports_of`); those about queues and blocks are not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compilers import why_not
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
ARCHER = Path("/usr/lib/llvm-19/lib/libarcher.so")
KINDS = {"threads": ["-pthread"], "tbb": ["-DUSE_TBB", "-ltbb"], "openmp": ["-fopenmp"]}


def build(kind: str, folder: Path, *flags: str) -> Path:
    compiler = shutil.which("clang++-19")
    if compiler is None or (reason := why_not("clang++-19", "-fsanitize=thread")):
        pytest.skip("clang++-19 is not installed" if compiler is None else reason)
    program = folder / "queues"
    command = [compiler, "-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *flags]
    command += [f"-I{ROOT / 'include'}", str(ROOT / "tests" / "programs" / "queues.cpp"), *KINDS[kind]]
    done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def reports_of(stderr: str) -> list[str]:
    """Reports of races, without those about the runtimes' own memory.

    libomp gives the memory of a task that has run to the next one without telling anybody (Archer does not
    know either); TBB's library hands tasks on without instrumentation.
    """
    kept = []
    for report in re.split("=={10,}", stderr):
        summary = re.search("^SUMMARY.*", report, re.MULTILINE)
        if not summary:
            continue
        place = re.search(r"Location is heap block.*\n.*\n +#1 .*libomp", report)
        if not place and "oneapi/tbb/" not in summary[0] and "QueueBody" not in summary[0]:
            kept.append(report)
    return kept


@pytest.mark.parametrize("kind", KINDS)
def test_no_race(kind: str, tmp_path: Path) -> None:
    if kind == "openmp" and not ARCHER.exists():
        pytest.skip("libarcher.so is not installed")
    program = build(kind, tmp_path, "-fsanitize=thread")
    variables = {**os.environ, "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
    # What the runtimes do inside is theirs: they are not instrumented.
    variables["TSAN_OPTIONS"] = "ignore_noninstrumented_modules=1:exitcode=66"
    if kind == "openmp":
        variables["OMP_TOOL_LIBRARIES"] = str(ARCHER)
    done = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=PATIENCE)
    reports = reports_of(done.stderr)
    if kind != "tbb" and not done.stderr:
        assert done.returncode == 0
    assert not reports, reports[0]
    assert done.stdout.startswith("right")


def test_archer_sees_a_race(tmp_path: Path) -> None:
    """The check above can fail: the same program with a shared counter that nothing protects."""
    if not ARCHER.exists():
        pytest.skip("libarcher.so is not installed")
    source = (ROOT / "tests" / "programs" / "queues.cpp").read_text()
    spoilt = tmp_path / "spoilt.cpp"
    spoilt.write_text(
        source.replace("++value;", "++value, ++turns;").replace("namespace {", "namespace { long turns = 0;")
    )
    if reason := why_not("clang++-19", "-fsanitize=thread"):
        pytest.skip(reason)
    compiler = shutil.which("clang++-19")
    assert compiler is not None
    program = tmp_path / "spoilt"
    command = [compiler, "-std=c++20", "-O1", "-g", "-fsanitize=thread", "-fopenmp", f"-I{ROOT / 'include'}"]
    subprocess.run([*command, str(spoilt), "-o", str(program)], check=True)
    variables = {**os.environ, "OMP_NUM_THREADS": "4", "OMP_WAIT_POLICY": "passive"}
    variables.update(
        TSAN_OPTIONS="ignore_noninstrumented_modules=1:exitcode=66", OMP_TOOL_LIBRARIES=str(ARCHER)
    )
    done = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 66
    assert reports_of(done.stderr)
