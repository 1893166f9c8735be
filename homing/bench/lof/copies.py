"""I-CG with a copy of p on each node, made by `homing translate --to pages` from REPLICATE(p): what the
daemon of WildFire does with the pages of p (Figure 3), done by the program, its costs counted.

Every access of the copying is counted as the program's own are: reading p from where it lies, writing each
node's copy.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from homing.bench.places import sources_folder
from homing.bench.programs import COMMON
from homing.errors import UserError
from homing.installation import python_path

#: Behind the name of the program as it is.
SUFFIX = "_copies"
#: The product in an iteration, which passes p on; REPLICATE wants to see its accesses.
_CALLED = """\
    !$omp parallel do schedule(static)
    do block = 1, blocks
      call multiply_block(block, p, q)
    end do
"""
_WRITTEN_OUT = """\
    !$homing replicate(p)
    !$omp parallel do schedule(static) private(row, k, total)
    do block = 1, blocks
      do row = block_first(block), block_last(block)
        total = 0
        do k = row_start(row), row_start(row + 1) - 1
          total = total + element(k)*p(column(k))
        end do
        q(row) = total
      end do
    end do
"""
_DECLARED = "    real(real64) :: rho_before, alpha, beta\n    integer :: block, row\n"
_MORE = "    real(real64) :: rho_before, alpha, beta, total\n    integer :: block, row, k\n"
FLAGS = ("-O2", "-g", "-fopenmp")


def with_copies(text: str) -> str:
    """apps/common/conjugate_gradients.f90 with p replicated in its iterations."""
    if text.count(_CALLED) != 1 or text.count(_DECLARED) != 1:
        raise UserError("lof: conjugate_gradients.f90 has changed: the program with copies cannot be made", 1)
    return text.replace(_CALLED, _WRITTEN_OUT).replace(_DECLARED, _MORE)


def build(folder: Path, program: str, c_compiler: str, fortran_compiler: str) -> Path:
    """The program, with compilers that count. folder: where the program as it is lies; its file's name."""
    apps = sources_folder() / "apps"
    target, made = folder / f"{program}{SUFFIX}", folder / "copies"
    if is_newer(target, apps, Path(__file__)):
        return target
    translated = made / "translated"
    translated.mkdir(parents=True, exist_ok=True)
    source = made / "conjugate_gradients.f90"
    source.write_text(with_copies((apps / "common" / source.name).read_text()))
    translate = [sys.executable, "-m", "homing", "translate", str(source), "--to", "pages"]
    run([*translate, "-o", str(translated)], made)
    objects = []
    for path in (
        *(apps / "common" / f"{name}.c" for name in (*COMMON, "matrix_market")),
        translated / "homing_parts.c",
    ):
        run([c_compiler, *FLAGS, f"-I{apps / 'common'}", "-c", str(path)], made)
        objects.append(f"{path.stem}.o")
    sources = [
        apps / "common" / "app.f90",
        apps / "common" / "sparse_rows.f90",
        translated / "homing_parts.f90",
        translated / source.name,
        apps / "lof" / "matrix_file.f90",
        apps / "lof" / "i_cg.f90",
    ]
    run([fortran_compiler, *FLAGS, *map(str, sources), *objects, "-lm", "-o", str(target)], made)
    return target


def is_newer(target: Path, apps: Path, maker: Path) -> bool:
    """A program that is younger than the sources and than what makes it stays, and so do its runs."""
    sources = [maker, *apps.glob("common/*"), *apps.glob("lof/*")]
    return target.exists() and target.stat().st_mtime > max(one.stat().st_mtime for one in sources)


def run(command: Sequence[str], folder: Path) -> None:
    """UserError where it fails. `python -m homing` in it is this one."""
    environment = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"lof: {' '.join(command)} failed: {' '.join(done.stderr.split())[:600]}", 1)
