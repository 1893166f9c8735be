"""The C interface, the Fortran module and the names of UPMlib, as programs use them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from homing.records import read_record

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOMING_BUILD_DIR", ROOT / "build" / "release"))
SOURCES = ROOT / "tests" / "api"


def compile_program(compiler: str, source: str, folder: Path, *more: str) -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    program = folder / source.split(".")[0]
    command = [compiler, "-O1", "-g", "-fopenmp", *more, str(SOURCES / source), "-o", str(program)]
    command += [f"-I{ROOT / 'include'}", f"-L{BUILD}", "-lhoming", f"-Wl,-rpath,{BUILD}"]
    subprocess.run(command, check=True, cwd=folder)
    return program


def run(program: Path, *arguments: str, nodes: int, record: Path | None = None) -> str:
    environment = dict(os.environ, OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive", OMP_PROC_BIND="true")
    environment["HOMING_ASSUME_NODES"] = str(nodes)
    environment["HOMING_COSTS"] = ""
    if record:
        environment["HOMING_RECORD"] = str(record)
    done = subprocess.run(
        [str(program), *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("nodes", [4, 0])
def test_every_call_keeps_its_promise(compiler: str, nodes: int, tmp_path: Path) -> None:
    program = compile_program(compiler, "calls.c", tmp_path)
    assert run(program, str(nodes), nodes=nodes) == "passed\n"


@pytest.mark.parametrize("compiler", ["gfortran", "flang-new-19"])
def test_figure_1_of_upmlib_works_as_printed(compiler: str, tmp_path: Path) -> None:
    program = compile_program(compiler, "figure1.f90", tmp_path)
    record = tmp_path / "r.homing"
    alone = run(program, nodes=0)
    assert run(program, nodes=4, record=record) == alone
    seen = read_record(record)
    assert {one.basis for one in seen.iterations[1:]} == {"call"}
    assert sum(area.name == "upmlib" for area in seen.areas) == 3, "the three arrays are named"


def test_the_fortran_module(tmp_path: Path) -> None:
    program = compile_program(
        "gfortran", "module.f90", tmp_path, str(ROOT / "fortran" / "homing.f90"), f"-J{tmp_path}"
    )
    lines = run(program, nodes=4).splitlines()
    assert lines[0] == "active 1"
    assert lines[1].split() == ["sum", f"{512 * sum(10 * j for j in range(1, 513)):.1f}"]
