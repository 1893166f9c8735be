"""--to spmd in Fortran: loops become internal procedures of the parts, so that compilers know them apart."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from homing.translate.translation import Options, TranslationError, translate
from tests.python.translate_programs import (
    APPS,
    PATIENCE,
    PROGRAMS,
    RUNTIME,
    Workshop,
    run_command,
    with_distribution,
    without_times,
)

COPY = """program p
  implicit none
  integer :: i, j, n
  real(8), allocatable :: a(:, :), b(:, :)
  character(8) :: word
!$homing distribute a(*, block), b(*, block)
  call get_command_argument(1, word)
  read (word, *) n
  allocate (a(n, n), b(n, n))
  a = 1
!$omp parallel do private(i)
  do j = 1, n
    do i = 1, n + BEYOND
      b(i, j) = a(i, j)
    end do
  end do
  print *, b(1, 1)
end program
"""
#: Loops that end at one label; the lines of the calls and heads are too long for 72 columns.
FIXED = """      program p
      implicit none
      integer i, j, n
      parameter (n = 9)
      integer counted
      real*8 first(0:n+1,0:n+1), second(0:n+1,0:n+1)
c$homing distribute first(*,block), second(*,block)
      counted = 0
c$omp parallel do private(i)
      do 20 j = 0, n+1
         do 10 i = 0, n+1
            first(i,j) = i + 7*j
            second(i,j) = 0
   10    continue
   20 continue
c$omp parallel do private(i) reduction(+:counted)
      do 30 j = 1, n
      do 30 i = 1, n
         second(i,j) = first(i-1,j) + first(i+1,j)
     &               + first(i,j+1)
         counted = counted + i
   30 continue
      print '(*(z17))', second
      print *, counted
      end
"""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("procedures"))


def spmd(source: Path) -> str:
    return translate([str(source)], Options("spmd")).outputs[0].text


def written(folder: Path, text: str) -> Path:
    source = folder / "p.f90"
    source.write_text(text)
    return source


def moved(text: str) -> list[int]:
    """The lines of the loops that became procedures."""
    return sorted(int(line) for line in re.findall(r"^ *recursive subroutine hm_loop_(\d+)\(", text, re.M))


def line_of(source: Path, words: str, after: str) -> int:
    """The line with these words, behind the comment."""
    lines = source.read_text().splitlines()
    first = next(index for index, line in enumerate(lines) if after in line)
    return next(index + 1 for index in range(first, len(lines)) if words in lines[index])


def test_which_loops_move(tmp_path: Path) -> None:
    source = with_distribution(PROGRAMS / "procedures.f90", "*, block", tmp_path)
    text = spmd(source)
    wanted = [
        line_of(source, "do j", "Moves: private arrays"),
        line_of(source, "do j", "Moves: a loop in a region"),
        line_of(source, "do j", "Both move"),
        line_of(source, "do 10 j", "Both move"),
        line_of(source, "do j", "distribute (*, block)"),
    ]
    assert moved(text) == wanted


@pytest.mark.parametrize("distribution", ["*, block", "*, gen_block(3, 0, 1, 9, 7, 6, 5)"])
def test_same_bits(workshop: Workshop, distribution: str) -> None:
    source = with_distribution(PROGRAMS / "procedures.f90", distribution, workshop.place())
    plain = workshop.plain(source)
    parts, _ = workshop.translated(source, "spmd")
    for size in ("1", "2", "5", "12"):
        expected = run_command([plain, size], workshop.folder, OMP_NUM_THREADS="1")
        for threads in ("1", "2", "3", "8"):
            assert run_command([parts, size], workshop.folder, OMP_NUM_THREADS=threads) == expected


@pytest.mark.parametrize("name", ["jacobi", "lu", "lbe"])
def test_papers_loops_move(name: str) -> None:
    source = APPS / "chapman" / f"{name}.f90"
    lines = source.read_text().splitlines()
    found = moved(spmd(source))
    assert found
    assert all(lines[line - 1].strip().startswith("do j") for line in found)
    if name == "jacobi":
        assert len(found) == 4  # every loop


def test_a_copying_loop_is_one_call(tmp_path: Path) -> None:
    """gfortran makes one of it only where it knows that the parts lie apart."""
    source = written(tmp_path, COPY.replace(" + BEYOND", ""))
    target = tmp_path / "parts.f90"
    target.write_text(spmd(source))
    assert moved(target.read_text()) == [12]
    flags = ["gfortran", "-O3", "-fopenmp", "-S"]
    run_command([*flags, RUNTIME / "homing_parts.f90", "-o", "module.s"], tmp_path)
    run_command([*flags, target, "-o", "parts.s"], tmp_path)
    assert re.search(r"\bmem(cpy|move)\b", (tmp_path / "parts.s").read_text())


def test_the_code_around_is_compiled_as_before(workshop: Workshop) -> None:
    """An internal procedure uses nothing of its host's, which would have to lie in memory: a loop there is
    vectorised as in the program itself. It has other digits if not, where glibc has a vector function."""
    source = APPS / "chapman" / "jacobi.f90"
    text = spmd(source)
    assert "integer, value :: n" in text
    target = workshop.place() / "jacobi.f90"
    target.write_text(text)
    parts = workshop.compile(target, target.parent, ["-O3", "../homing_parts.o", "../module.o"])
    plain = workshop.compile(source, workshop.place(), ["-O3"])
    expected = without_times(run_command([plain, "--n", "37"], workshop.folder, OMP_NUM_THREADS="1"))
    for threads in ("1", "3"):
        found = run_command([parts, "--n", "37"], workshop.folder, OMP_NUM_THREADS=threads)
        assert without_times(found) == expected


def test_lines_of_a_loop_that_moved(workshop: Workshop, tmp_path: Path) -> None:
    """What is wrong at run time is wrong at the user's line."""
    parts, _ = workshop.translated(written(tmp_path, COPY.replace("BEYOND", "1")), "spmd")
    done = subprocess.run([parts, "5"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    assert re.search(r"At line 14 of file .*p\.f90\n", done.stderr)
    assert "above upper bound of 5" in done.stderr


def test_a_preprocessed_routine_keeps_its_loops(tmp_path: Path) -> None:
    text = COPY.replace(" + BEYOND", "").replace("  a = 1\n", "#ifdef ONE\n  a = 1\n#endif\n")
    assert moved(spmd(written(tmp_path, text))) == []


def test_fixed_form(workshop: Workshop) -> None:
    source = workshop.place() / "p.f"
    source.write_text(FIXED)
    text = spmd(source)
    assert len(moved(text)) == 2
    assert all(len(line) <= 72 for line in text.splitlines() if not line.startswith("#"))
    plain = workshop.plain(source)
    target = workshop.place() / "p.f"
    target.write_text(text)
    more = ["-fcheck=all", "../homing_parts.o", "../module.o"]
    parts = workshop.compile(target, target.parent, more)
    expected = run_command([plain], workshop.folder, OMP_NUM_THREADS="1")
    for threads in ("1", "3", "8"):
        assert run_command([parts], workshop.folder, OMP_NUM_THREADS=threads) == expected


def test_an_internal_procedure_has_none_of_its_own() -> None:
    assert moved(spmd(PROGRAMS / "inner.f90")) == []


@pytest.mark.skipif(shutil.which("flang-new-19") is None, reason="no flang")
def test_flang_takes_it(tmp_path: Path) -> None:
    source = with_distribution(PROGRAMS / "procedures.f90", "*, block", tmp_path)
    target = tmp_path / "parts.f90"
    target.write_text(spmd(source))
    run_command(["gcc", "-O1", "-fopenmp", "-c", RUNTIME / "homing_parts.c"], tmp_path)
    flang = ["flang-new-19", "-O1", "-fopenmp", "-ffp-contract=off"]
    run_command([*flang, source, "-o", "plain"], tmp_path)
    run_command(
        [*flang, RUNTIME / "homing_parts.f90", target, "homing_parts.o", "-o", "program"],
        tmp_path,
    )
    expected = run_command([tmp_path / "plain", "7"], tmp_path, OMP_NUM_THREADS="1")
    for threads in ("1", "3"):
        assert run_command([tmp_path / "program", "7"], tmp_path, OMP_NUM_THREADS=threads) == expected


FIRST = """module m
  implicit none
  integer :: lo = 0, top = 9
contains
  real(8) function total(a)
    real(8), intent(in) :: a(SHAPE)
    integer :: j
    total = 0
    !$omp parallel do reduction(+:total)
    do j = lbound(a, 1), ubound(a, 1)
      total = total + a(j)
    end do
  end function
end module
program p
  use m
  implicit none
  integer :: j
  DECLARED
  !$homing distribute u(block)
  ALLOCATED
  do j = 0, 13
    u(j) = j + 1
  end do
  print *, total(u)
end program
"""
ALLOCATABLE = "real(8), allocatable :: u(:)"


@pytest.mark.parametrize(
    ("shape", "declared", "allocated", "said"),
    [
        (":", "real(8) :: u(0:13)", "", "begins at 1, that of 'u' at 0"),
        ("13", ALLOCATABLE, "allocate (u(0:13))", "begins at 1, that of 'u' at 0"),
        (":", ALLOCATABLE, "allocate (u(lo:13))", "begins at 0"),
        ("lo:", ALLOCATABLE, "allocate (u(0:13))", "105.0"),
        ("0:9", "real(8) :: u(0:13)", "", "ends at 9, that of 'u' at 13"),
        ("0:top", "real(8) :: u(0:13)", "", "ends at 13"),
        ("0:top + 4", "real(8) :: u(0:13)", "", "105.0"),
    ],
)
def test_dummies_begin_and_end_where_their_arrays_do(
    tmp_path_factory: pytest.TempPathFactory, shape: str, declared: str, allocated: str, said: str
) -> None:
    """Parts have the indices of what is passed: by others, the elements before the first were left out. A
    dummy may end before the array where nothing means the whole of it (`size`, or its name)."""
    workshop = Workshop(tmp_path_factory.mktemp("first"))
    source = workshop.place() / "p.f90"
    text = FIRST.replace("SHAPE", shape).replace("DECLARED", declared)
    source.write_text(text.replace("ALLOCATED", allocated))
    if "that of 'u'" in said:
        with pytest.raises(TranslationError, match=said):
            translate([str(source)], Options("spmd"))
        return
    program, _ = workshop.translated(source, "spmd")
    done = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
    if said == "105.0":
        assert said in done.stdout
    else:
        assert (done.returncode, done.stdout) == (3, "")
        assert f"p.f90:6:28: 'u', dimension 1, {said}" in done.stderr
        assert "declare it with the bounds of what is passed" in done.stderr
