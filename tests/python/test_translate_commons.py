"""Distributed arrays of COMMON blocks: their DATA, and blocks that are not the same to all that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.translate.positions import TranslationError
from homing.translate.translation import Options, translate
from tests.python.translate_programs import PROGRAMS, Workshop

IN_COMMON = """      program c
      integer n, i
      parameter (n = 2000)
      real*8 a, b, s, e(7), f, g(6), z(7)
      common /blk/ a(n), s, b(n)
      common /set/ e, f
      common /more/ g
c$distribute a(block), b(block), e(block), z(block)
c$omp parallel do
c$sgi+affinity(i) = data(a(i))
      do i = 1, n
        a(i) = i
        b(i) = 2*i
      end do
      s = 0
      call twice
c$omp parallel do
      do i = 1, 7
        e(i) = e(i)*2
        z(i) = e(i)
      end do
      print *, a(3), b(4), s, e, f, g, z
      end
      block data
      integer i, m
      parameter (m = 3)
      real*8 e, f, g(2*m)
      common /set/ e(7), f /more/ g
      data (e(i), i = 1, m + 1) /m*-1d0, 8d0/, f, g /m*2d0, m*5d0,
     &  9d0/, e(5) /4/
      data (e(i), i = 6, 7) /2*3d0/
      end
      subroutine twice
      integer i
      real*8 a, b, s
      common /blk/ a(2000), s, b(2000)
c$omp parallel do reduction(+:s)
      do i = 2, 2000
        b(i) = b(i) + a(i - 1)
        s = s + a(i)
      end do
      end
"""


@pytest.mark.parametrize("target", ["pages", "spmd"])
def test_arrays_of_a_common_block(tmp_path: Path, target: str) -> None:
    source = tmp_path / "c.f"
    source.write_text(IN_COMMON)
    Workshop(tmp_path).expect_the_same(source, (target,))
    text = translate([str(source)], Options(target)).outputs[0].text
    assert target == "pages" or ("module hm_common_set" in text and "hm_layout_z" in text)


DATA = """      program p
      integer n, neg
      parameter (n = 14, neg = -2)
      real*8 a(n), b(n), d(0:3)
      integer i, k(0:n), cnt
      character*3 c(2), e
      common /c1/ a, k, cnt
      common /c2/ b, d
      common /c3/ c
c$homing distribute a(block), b(cyclic), k(block), d(block)
      data a, b /20*1.d0, 8*2.d0/, k, cnt, c, e /3*neg, 12*4, neg,
     & 'a,b', 2*'c/d'/,
     & d(0), d(3), d(1), d(2) /1.25d0, 2*2.25d0, 4.25d0/
c$omp parallel do
      do 10 i = 1, n
   10 a(i) = a(i) + i + k(i)
c$omp parallel do
      do 20 i = 1, n
        b(i) = b(i)*i
   20 continue
      print *, a, b, k, cnt, c, e, d
      end
"""


def test_data_gives_values_to_arrays_of_several_blocks_and_to_others(tmp_path: Path) -> None:
    """By one list, with constants below zero."""
    source = tmp_path / "d.f"
    source.write_text(DATA)
    Workshop(tmp_path).expect_the_same(source, ("spmd", "mpi"))


@pytest.mark.parametrize("values", ["a(1:3), cnt /3*1, 4/", "(a(i), i = 1, 3), cnt /3*1, 4/", "a /n*h/"])
def test_data_that_a_module_could_not_say_is_refused_by_its_name(tmp_path: Path, values: str) -> None:
    source = tmp_path / "d.f"
    before, _, behind = DATA.partition("      data a, b")
    text = f"{before}      real*8 h\n      parameter (h = 1.5d0)\n      data {values}\n"
    source.write_text(text + behind[behind.index("c$omp") :])
    with pytest.raises(TranslationError, match=r"d\.f:10:1: 'a' is in a COMMON block, .* DATA of plain"):
        translate([str(source)], Options("spmd"))


FUNCTIONS = """      module own
      real*8 :: factor = 3
      end module
      program c
      use own
      implicit real*8 (a-h, o-z)
      parameter (n = 30)
      common /blk/ a(n), w
c$distribute a(block)
      f2(x) = x*factor + w
      w = 2
      call fill
      print *, f2(w), a(3), a(n)
      end
"""
FILL = """      subroutine fill
      implicit real*8 (a-h, o-z)
      parameter (n = 30)
      common /blk/ a(n), w
c$distribute a(block)
      f2(x, y) = x*x + y
c$omp parallel do
      do i = 1, n
        a(i) = f2(dble(i), w)
      end do
      end
"""


def test_statement_functions_without_a_type_stay_before_the_arrays_are_made(tmp_path: Path) -> None:
    """Beside a module that has no array of the name: the program's own, and the one made of the block."""
    sources = [tmp_path / "c.f", tmp_path / "fill.f"]
    for source, text in zip(sources, (FUNCTIONS, FILL), strict=True):
        source.write_text(text)
    done = translate([str(source) for source in sources], Options("spmd"))
    for output in done.outputs[:2]:
        assert output.text.index("f2(x") < (output.text + "homing_layout_create").index(
            "homing_layout_create"
        )
    source = tmp_path / "both.f"
    source.write_text(FUNCTIONS + FILL)
    Workshop(tmp_path).expect_the_same(source, ("spmd", "mpi"))


OTHER_BLOCKS = {
    "START": ("A(12,12), B(12,12)", "A(12,12), B(6,24)"),
    "BACK": ("A(12,12), STEP, B(12,12)", "B(12,12), STEP, A(12,12)"),
    "RELAX": ("A(*,BLOCK)", "A(BLOCK,*)"),
    "SHOW": ("PRINT", "EQUIVALENCE (A(3,3), X)\n      PRINT"),
}


@pytest.mark.parametrize("name", OTHER_BLOCKS)
def test_a_block_that_is_not_the_same_to_all_is_refused(tmp_path: Path, name: str) -> None:
    before, head, behind = (PROGRAMS / "common.f").read_text().partition(f"SUBROUTINE {name}\n")
    assert OTHER_BLOCKS[name][0] in behind
    source = tmp_path / "common.f"
    source.write_text(before + head + behind.replace(*OTHER_BLOCKS[name], 1))
    with pytest.raises(TranslationError, match=r"common\.f:\d+:1: '[ABab]' is in a COMMON block"):
        translate([str(source)], Options("spmd"))


def test_modules_of_blocks_hide_no_variable_that_no_statement_declares() -> None:
    text = translate([str(PROGRAMS / "common.f")], Options("mpi")).outputs[0].text
    assert "call homing_combine_one(total" in text
