"""The examples of examples/, built as their first lines say, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compilers import why_not
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOMING_BUILD_DIR", ROOT / "build" / "release"))
LINK = [f"-I{ROOT / 'include'}", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}"]
MODULE = f"-I{BUILD / 'fortran'}"
CXX20 = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"]
EXAMPLES = {
    "openmp-gcc": ["g++", *CXX20, "-fopenmp", "tasks_openmp.cpp", "-lhoming"],
    "openmp-clang": ["clang++-19", *CXX20, "-fopenmp", "tasks_openmp.cpp", "-lhoming"],
    "tbb-gcc": ["g++", *CXX20, "tasks_tbb.cpp", "-lhoming", "-ltbb"],
    "tbb-clang": ["clang++-19", *CXX20, "tasks_tbb.cpp", "-lhoming", "-ltbb"],
    "c-gcc": ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "tasks.c", "-lhoming"],
    "fortran": ["gfortran", "-O2", "-fopenmp", MODULE, "tasks.f90", "-lhoming_fortran", "-lhoming"],
    "module-source": ["gfortran", "-O2", "-fopenmp", "../fortran/homing.f90", "tasks.f90", "-lhoming"],
    "phases": ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "phases.c", "-lhoming"],
    "laplace": ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "laplace.c"],
    "clause": ["clang-19", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "affinity_clause.c"],
}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def build(name: str, folders: Path) -> Path:
    compiler, *words = EXAMPLES[name]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    if "clang" in compiler and (reason := why_not(compiler)):
        pytest.skip(reason)
    folder = folders / name
    program = folder / "example"
    if program.exists():
        return program
    folder.mkdir()
    sources = ROOT / "examples"
    paths = [str(sources / word) if (sources / word).is_file() else word for word in words]
    done = subprocess.run(
        [compiler, *LINK, *paths, "-o", str(program)], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "module-source"])
def test_the_first_lines_name_the_libraries(name: str) -> None:
    words = EXAMPLES[name]
    at = max(at for at, word in enumerate(words) if (ROOT / "examples" / word).is_file())
    head = (ROOT / "examples" / words[at]).read_text().splitlines()[:8]
    assert any(re.search(rf" {re.escape(' '.join(words[at:]))}( |$)", line) for line in head), words


@pytest.mark.parametrize("nodes", ["0", "2"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_a_page(name: str, nodes: str, folders: Path, tmp_path: Path) -> None:
    source = next(word for word in reversed(EXAMPLES[name]) if (ROOT / "examples" / word).is_file())
    assert len((ROOT / "examples" / source).read_text().splitlines()) <= 66, "a page or less"
    variables = {**os.environ, "OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive", "HOMING_COSTS": ""}
    variables["HOMING_ASSUME_NODES"] = nodes
    done = subprocess.run(
        [build(name, folders)], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sum ")


def test_the_clause_is_followed_under_homing(folders: Path, tmp_path: Path) -> None:
    program = build("clause", folders)
    variables = {**os.environ, "OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive", "HOMING_COSTS": ""}
    variables.update(HOMING_ASSUME_NODES="2", PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "homing", "run", "--tasks", "affinity", "--", str(program)],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "sum 100000000\n"
    assert "10,000 affinity hints, 10,000 honoured (100 %)" in done.stderr
