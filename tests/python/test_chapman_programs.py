"""apps/chapman: the codes verify, plain and by hand in SPMD style, with the same digits for any threads."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from homing.bench.programs import COMMON
from tests.patience import PATIENCE
from tests.python.test_apps import ROOT, built_by, program, result, results, run

SOURCES = ROOT / "apps" / "chapman"
COMPILERS = ("gcc", "gfortran", "clang", "flang")
# From one point to sizes that nothing divides; more threads than columns among them.
SIZES = {
    "jacobi": [("--n", n, "--iterations", "3", "--steps", "5") for n in ("1", "2", "5", "33")],
    "lu": [("--n", n) for n in ("1", "2", "7", "65")],
    "lbe": [
        ("--nx", nx, "--ny", ny, "--iterations", "3", "--steps", "7")
        for nx, ny in (("1", "1"), ("5", "2"), ("3", "4"), ("33", "16"))
    ],
}


@pytest.mark.parametrize(
    ("name", "compiler"), built_by(*itertools.product(SIZES, COMPILERS), prefix="chapman_")
)
def test_plain_and_spmd_have_the_same_digits(name: str, compiler: str) -> None:
    plain, spmd = program(f"chapman_{name}", compiler), program(f"chapman_{name}_spmd", compiler)
    for size in SIZES[name]:
        wanted = run(plain, *size, threads=1)
        assert (wanted.returncode, wanted.stderr) == (0, "")
        assert wanted.stdout.splitlines()[-1] == "verification: successful"
        for threads in (1, 2, 3, 8):
            done = run(spmd, *size, threads=threads)
            assert (done.returncode, done.stderr) == (0, "")
            assert results(done.stdout) == results(wanted.stdout), (size, threads)
        for initialise in ("serial", "parallel"):
            done = run(plain, *size, "--initialise", initialise, threads=3)
            assert results(done.stdout) == results(wanted.stdout), (size, initialise)


@pytest.mark.parametrize(
    ("name", "compiler"), built_by(*itertools.product(["lbe"], COMPILERS), prefix="chapman_")
)
def test_the_flow_becomes_stationary_as_the_theory_says(name: str, compiler: str) -> None:
    """After a long time the profile is the parabola but for rounding, since the walls lie exactly halfway."""
    words = ("--nx", "3", "--ny", "12", "--iterations", "40", "--steps", "100")
    done = run(program(f"chapman_{name}", compiler), *words)
    assert result(done.stdout, "difference from the series") < 1e-11


# What a wrong translation might do, and whether the program notices.
MUTATIONS = {
    "jacobi.c": ("b[j - 1][i]", "b[j][i]"),
    "lu.c": ("lu[j][k] * lu[k][i]", "lu[j][k] * lu[k + 1][i]"),
    "lbe.c": ("f[1][5][i] = f[0][7][i - 1]", "f[1][5][i] = f[0][7][i]"),
    "jacobi.f90": ("b(i, j - 1) + b(i, j + 1)", "b(i, j + 1) + b(i, j + 1)"),
    "lu.f90": ("do j = k + 1, n", "do j = k + 2, n"),
    "lbe.f90": ("f(i - 1, 6, j + 1) =", "f(i - 1, 6, j) ="),
}


@pytest.mark.parametrize("file", MUTATIONS)
def test_verification_can_fail(file: str, tmp_path: Path) -> None:
    right, wrong = MUTATIONS[file]
    text = (SOURCES / file).read_text()
    assert text.count(right) == 1
    source = tmp_path / file
    source.write_text(text.replace(right, wrong))
    done = run(build(tmp_path, source), *SIZES[source.stem][-1])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "verification: FAILED"


def build(folder: Path, source: Path, *flags: str) -> Path:
    """A program of this folder, built by itself."""
    common = ROOT / "apps" / "common"
    fortran = source.suffix == ".f90"
    compiler = "gfortran" if fortran else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    target = folder / source.stem
    first = [
        "gcc",
        "-O1",
        "-c",
        f"-I{common}",
        *(str(common / f"{name}.c") for name in COMMON),
    ]
    subprocess.run(
        [*first, *(flag for flag in flags if "check" not in flag)], check=True, cwd=folder, timeout=PATIENCE
    )
    sources = [str(common / "app.f90")] if fortran else [f"-I{common}"]
    objects = [*(f"{name}.o" for name in COMMON), "-lm", "-o", str(target)]
    subprocess.run(
        [compiler, "-O1", "-fopenmp", *flags, *sources, str(source), *objects],
        check=True,
        cwd=folder,
        timeout=PATIENCE,
    )
    return target


@pytest.mark.full
@pytest.mark.parametrize("version", ["", "_spmd"])
@pytest.mark.parametrize("suffix", ["c", "f90"])
@pytest.mark.parametrize("name", SIZES)
def test_with_checks(
    name: str, suffix: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No access is out of bounds, for more threads than rows either."""
    # app.f90 keeps what C refers to until the end.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    flags = ["-g", "-fsanitize=address,undefined", *(["-fcheck=all"] if suffix == "f90" else [])]
    path = build(tmp_path, SOURCES / f"{name}{version}.{suffix}", *flags)
    for size in SIZES[name]:
        for threads in (1, 3, 8):
            done = run(path, *size, threads=threads)
            assert (done.returncode, done.stderr) == (0, ""), (size, threads)
