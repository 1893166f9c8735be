"""What `homing translate` writes and says: nothing on an error, what is not concerned as it was."""

from __future__ import annotations

import subprocess
from pathlib import Path

from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.test_translate_refused import HEAD, LOOP
from tests.python.translate_programs import homing

PLAIN = "program q\n  implicit none\n  ! no directive\n  print *, 1\nend program\n"
KEPT = """      program fixed
      integer i, j
#ifdef NEVER
      real*8 c(3)
#endif
c     A comment of the user's.
      real*8 a(20, 20)
c$homing distribute a(*, block)
!$omp parallel do
!$omp& private(i)
      do 10 j = 1, 20
      do 10 i = 1, 20
   10 a(i, j) = i + j
      print *, a(3, 4),
     &  a(5, 6)
      end
"""


def test_nothing_is_written_on_error(tmp_path: Path) -> None:
    (tmp_path / "bad.f90").write_text(
        HEAD.format(declarations="") + LOOP.format("a(i, j*j) = 0") + "end program\n"
    )
    (tmp_path / "good.f90").write_text(PLAIN)
    done = homing(tmp_path, "good.f90", "bad.f90", "--to", "spmd", "-o", "out")
    assert done.returncode == 1
    assert "bad.f90:11:9: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_not_concerned_stays(tmp_path: Path) -> None:
    (tmp_path / "q.f90").write_text(PLAIN)
    done = homing(tmp_path, "q.f90", "--to", "spmd", "-o", "out")
    assert done.returncode == 0
    assert (tmp_path / "out" / "q.f90").read_text() == PLAIN


def test_fixed_form_keeps_comments_and_is_preprocessed(tmp_path: Path) -> None:
    path = tmp_path / "fixed.F"
    path.write_text(KEPT)
    text = translate([str(path)], Options("spmd")).outputs[0].text
    assert "NEVER" not in text and "real*8 c(3)" not in text
    for line in (
        "c     A comment of the user's.",
        "   10 a(i, j) = i + j",
    ):
        assert f"\n{line}\n" in text
    assert all(len(line) <= 72 or line[0] in "#cC!*" for line in text.splitlines())
    done = homing(tmp_path, "--to", "spmd", "--", "gfortran", "-cpp", "-fopenmp", "fixed.F", "-o", "fixed")
    assert done.returncode == 0, done.stderr
    out = subprocess.run(
        [tmp_path / "fixed"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert out.split() == ["7.0000000000000000", "11.000000000000000"]


def test_compiler_messages_point_to_the_source(tmp_path: Path) -> None:
    body = LOOP.format("a(i, j) = 1").replace("a(i, j) = 1", "a(i, j) = undeclared_name")
    (tmp_path / "p.f90").write_text(HEAD.format(declarations="") + body + "end program\n")
    done = homing(tmp_path, "--to", "spmd", "--", "gfortran", "-fopenmp", "-c", "p.f90")
    assert done.returncode != 0
    assert "p.f90:11:" in done.stderr


def test_explained(tmp_path: Path) -> None:
    (tmp_path / "p.f90").write_text(
        HEAD.format(declarations="!$homing align b(i, j) with a(i, j)")
        + LOOP.format("if (j > 1) b(i, j) = a(i, j - 1)")
        + "end program\n"
    )
    done = homing(tmp_path, "p.f90", "--to", "spmd", "--explain")
    assert done.returncode == 0, done.stderr
    assert "a(*, block), shadow (0:0, 1:0)" in done.stdout
    assert "fetch the shadow of a(" in done.stdout
    assert (tmp_path / "spmd" / "homing_parts.c").exists()


def test_misuse(tmp_path: Path) -> None:
    for words in (
        ("--to", "gpu", "x.f90"),
        ("--to", "spmd"),
        ("--to", "spmd", "missing.f90"),
        ("--to", "upm", "x.txt"),
    ):
        done = homing(tmp_path, *words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
