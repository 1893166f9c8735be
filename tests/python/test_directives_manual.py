"""docs/directives.md: every example is a program that runs, and says the same after translation."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homing.translate.directives.model import Form
from homing.translate.directives.scanner import scan
from tests.patience import PATIENCE
from tests.python.test_apps import ROOT, run

MANUAL = (ROOT / "docs" / "directives.md").read_text()
EXAMPLES = [
    (f"{number}-{language}", language, text)
    for number, (language, text) in enumerate(re.findall(r"```(fortran|c)\n(.*?)```", MANUAL, re.DOTALL))
]
WORDS = [
    "distribute",
    "distribute_reshape",
    "redistribute",
    "next_touch",
    "replicate",
    "align",
    "template",
    "processors",
    "memories",
    "shadow",
    "home",
    "affinity",
    "nest",
    "gen_block",
    "cyclic",
    "extent",
    "onto",
    "nosequence",
    "numa",
]
parametrized = pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for _, language, text in EXAMPLES],
    ids=[name for name, _, _ in EXAMPLES],
)


def compiled(source: Path, *flags: str) -> Path:
    target = source.with_suffix("")
    compiler = (
        ["gcc", "-std=c11"] if source.suffix == ".c" else ["gfortran", "-std=f2018", f"-J{source.parent}"]
    )
    command = [*compiler, "-O1", "-fopenmp", *flags, str(source), "-o", str(target)]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return target


def test_every_directive_has_an_example() -> None:
    examples = " ".join(text.lower() for _, _, text in EXAMPLES)
    assert [word for word in WORDS if word not in examples] == []


def test_the_table_of_clauses_is_that_of_the_translator() -> None:
    """Else: python tools/clause_table.py."""
    spec = importlib.util.spec_from_file_location("clause_table", ROOT / "tools" / "clause_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.BEGIN in MANUAL and module.with_table(MANUAL) == MANUAL


@parametrized
def test_examples_are_read(language: str, text: str) -> None:
    scanned = scan(text, "x", Form.C if language == "c" else Form.FREE)
    assert scanned.directives
    assert not scanned.problems
    assert not scanned.notes


def translated(folder: Path, language: str, text: str, target: str) -> Path:
    """The example's translation, compiled."""
    source = folder / f"example.{'c' if language == 'c' else 'f90'}"
    source.write_text(text)
    compiler = {"fortran": ["gfortran", f"-J{folder}"], "c": ["gcc", "-std=gnu11"]}[language]
    if target == "mpi":
        compiler[0] = {"fortran": "mpif90", "c": "mpicc"}[language]
    program = folder / target
    command = [sys.executable, "-m", "homing", "translate", "--to", target, "--", *compiler, "-O1", "-g"]
    command += ["-fopenmp", str(source), "-o", str(program)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture
def plain(tmp_path: Path, language: str, text: str) -> str:
    """What the example prints when no directive is read."""
    folder = tmp_path / "plain"
    folder.mkdir()
    source = folder / f"example.{'c' if language == 'c' else 'f90'}"
    # SGI's clause is nothing that a compiler of today knows.
    source.write_text(text.replace(", affinity(i) = data(a(i))", "") if "$SGI" in text else text)
    return run(compiled(source), threads=2).stdout


@parametrized
def test_examples_in_spmd_style(plain: str, language: str, text: str, tmp_path: Path) -> None:
    program = translated(tmp_path, language, text, "spmd")
    for threads in (1, 3, 8):
        done = run(program, threads=threads)
        assert (done.returncode, done.stdout) == (0, plain), (threads, done.stderr)


@pytest.mark.full
@parametrized
def test_examples_with_pages_placed(plain: str, language: str, text: str, tmp_path: Path) -> None:
    program = translated(tmp_path, language, text, "pages")
    for threads in (1, 3):
        done = run(program, threads=threads)
        assert (done.returncode, done.stdout) == (0, plain), (threads, done.stderr)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no Open MPI here")
@parametrized
def test_examples_between_ranks(plain: str, language: str, text: str, tmp_path: Path) -> None:
    program = translated(tmp_path, language, text, "mpi")
    # Ranks that wait give way to those that work: there may be fewer processors.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    for ranks in (1, 3):
        done = subprocess.run(
            [
                "mpirun",
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
                "-n",
                str(ranks),
                str(program),
            ],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stdout) == (0, plain), (ranks, done.stderr)
