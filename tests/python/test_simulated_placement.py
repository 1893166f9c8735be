"""Where pages, threads and tasks are on a described machine when the program says it: by OpenMP's places, by
the kernel's calls, by homing's translation, and by the affinity clause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.python.test_simulator import PROGRAMS, TREE, build, homing, simulate

__all__ = ["build"]

OBSERVE = ("--mechanism", "observe")

PAGES = """program pp
  implicit none
  integer, parameter :: n = 512
  real(8), allocatable :: a(:, :)
  integer :: i, j, k
  !$homing distribute a(*, block)
  allocate (a(n, n))
  a = 0
  do k = 1, 3
    !$omp parallel do private(i)
    !$homing on home(a(:, j))
    do j = 1, n
      do i = 1, n
        a(i, j) = a(i, j) + i
      end do
    end do
  end do
  print *, sum(a)
end program
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_threads_are_where_their_runtime_would_put_them(
    tmp_path: Path, build: Callable[..., Path], compiler: str
) -> None:
    program = build("sweep.c", compiler)

    def misses(**more: str) -> list[bool]:
        """Do threads on this node miss?"""
        run = simulate(tmp_path, program, "2", on="sf15k", flags=(*OBSERVE, "--cache", "64KiB:4"), **more)
        return [sum(row) > 1000 for row in run["counts"]["run"]["misses"]]

    # Places that begin on CPUs 0 to 3 are all on node 0 of four with four CPUs each.
    assert misses(OMP_PLACES="{0:4}:4") == [True, False, False, False]
    assert misses(OMP_PLACES="{0:4}:4:4") == [True, True, True, True]
    assert misses(OMP_PLACES="0,4,8", OMP_NUM_THREADS="3") == [True, True, True, False]
    assert misses(OMP_PLACES="{12}:4:-4", OMP_PROC_BIND="close") == [True] * 4
    # "true" is close to libgomp, and spread to libomp.
    assert misses(OMP_PLACES="threads") == [True, *[compiler == "clang"] * 3]
    assert misses(GOMP_CPU_AFFINITY="8-15") == [False, False, True, False]


def test_what_is_not_used_is_said(tmp_path: Path, build: Callable[..., Path]) -> None:
    run = simulate(tmp_path, build("sweep.c"), "2", flags=OBSERVE, KMP_AFFINITY="compact", OMP_PLACES="{0")
    assert run["status"] == 0
    assert "homing run: KMP_AFFINITY=compact is not used on a described machine" in run["said"]
    assert "homing run: OMP_PLACES={0: cannot be read at its end; libgomp does without it" in run["said"]
    assert "libomp" not in run["said"], "the program is linked with libgomp"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_programs_own_calls_are_answered_for_the_described_machine(
    tmp_path: Path, build: Callable[..., Path], compiler: str
) -> None:
    assert simulate(tmp_path, build("placed.c", compiler), flags=OBSERVE)["output"] == "done\n"


def test_pages_that_a_translation_places(tmp_path: Path) -> None:
    (tmp_path / "pp.f90").write_text(PAGES)
    program = tmp_path / "pp"
    compiler = tmp_path / "homing-gfortran"
    compiler.write_text(f'#!/bin/sh\nexec "{TREE}/.venv/bin/python" -m homing cc gfortran "$@"\n')
    compiler.chmod(0o755)
    words = ("--to", "pages", "--", compiler, "-O2", "-fopenmp", tmp_path / "pp.f90", "-o", program)
    made = homing("translate", *words, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert made.returncode == 0, made.stderr
    run = simulate(tmp_path, program, flags=(*OBSERVE, "--cache", "64KiB:4"))
    assert run["status"] == 0, run["said"]
    shares = run["counts"]["run"]["home_shares"]
    assert min(shares) > 0.1, "each node serves its block"
    last = run["counts"]["regions"][-1]
    assert last["remote_fraction"] < 0.1


def test_hints_of_the_affinity_clause(tmp_path: Path, build: Callable[..., Path]) -> None:
    program = build("../../examples/affinity_clause.c", "clang")
    run = simulate(tmp_path, program, flags=("--tasks", "affinity"))
    assert run["status"] == 0, run["said"]
    assert run["processes"][0]["tasks"]["honoured"] > 0, run["said"]
    assert "tasks " in run["said"] and "hints" in run["said"]


@pytest.mark.parametrize("how", ["round-robin", "random"])
def test_pages_that_programs_deal_out(tmp_path: Path, build: Callable[..., Path], how: str) -> None:
    common = TREE / "apps" / "common"
    program = build("dealt.c", "gcc", f"-I{common}", str(common / "place.c"))
    lines = dict(line.split(" ", 1) for line in simulate(tmp_path, program, how)["output"].splitlines())
    counts = [int(one) for one in lines["array"].split()]
    assert sum(counts) == 256
    if how == "round-robin":
        assert counts == [64] * 4
    else:
        assert all(32 < one < 96 for one in counts) and counts != [64] * 4


def test_a_task_policy_is_respected(tmp_path: Path, build: Callable[..., Path]) -> None:
    assert (PROGRAMS / "placed.c").is_file()
    run = simulate(tmp_path, build("placed.c"), flags=("--initial", "round-robin", *OBSERVE))
    assert run["output"] == "done\n", "policies of the program come before --initial"
