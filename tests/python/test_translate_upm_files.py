"""--to upm where a build compiles one file at a time: each is translated in view of the program's others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homing.translate.program.files import others_of
from tests.patience import PATIENCE
from tests.python.test_translate_upm_phases import EXPECTED, FILES, TOLD, TREE, C, write
from tests.python.translate_programs import run_command

LIBRARY = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")


def names_beside(folder: Path, *given: str) -> list[str]:
    return [Path(path).name for path in others_of([str(folder / name) for name in given]).paths]


def front(which: str, folder: Path, *arguments: str, target: str = "upm") -> subprocess.CompletedProcess[str]:
    """homing-translate-fc or -cc in the place of a compiler."""
    code = f"import sys; from homing.translate.compile import {which}_main; sys.exit({which}_main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TREE), "HOMING_TRANSLATE": target, "HOMING_LIBRARY": LIBRARY},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", FILES)
def test_from_every_file_the_program_is_found(name: str, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "unused.f90").write_text("subroutine unused\nend subroutine\n")
    assert names_beside(tmp_path, name) == sorted(set(FILES) - {name})


def test_variants_of_a_file(tmp_path: Path) -> None:
    write(tmp_path, FILES | {"sweep_z_blk.f90": FILES["sweep_z.f90"]})
    assert "sweep_z_blk.f90" not in names_beside(tmp_path, "main.f90")
    assert "sweep_z.f90" not in names_beside(tmp_path, "sweep_z_blk.f90")


def test_several_programs_in_a_folder(tmp_path: Path) -> None:
    other = FILES["main.f90"].replace("program main", "program other")
    write(tmp_path, FILES | {"other.f90": other})
    assert "main.f90" not in names_beside(tmp_path, "other.f90")
    assert "part of several programs" in others_of([str(tmp_path / "advance.f90")]).lines[0]


def test_functions_prefixes_and_comments(tmp_path: Path) -> None:
    files = {
        "main.f": "      real*8 f\nc     call unused\n      print *, f(1) ! call unused\n      end\n",
        "f.f": "      double precision function f(i)\n      f = i\n      end\n",
        "unused.f": "      subroutine unused\n      end\n",
    }
    write(tmp_path, files)
    assert names_beside(tmp_path, "main.f") == ["f.f"]


def test_a_build_of_fortran_with_phases(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / "told.c").write_text(TOLD)
    run_command(["gcc", "-c", "told.c"], tmp_path)
    for name in FILES:
        done = front("fortran", tmp_path, "-c", "-fopenmp", name, target="upm --phases")
        assert done.returncode == 0, done.stderr
        assert ("time loop over step" in done.stderr) == (name in ("main.f90", "advance.f90"))
    objects = [name.replace(".f90", ".o") for name in FILES]
    run_command(["gfortran", "-fopenmp", *objects, "told.o", "-o", "program"], tmp_path)
    run_command(["sh", "-c", "./program 2>calls"], tmp_path, OMP_NUM_THREADS="2")
    assert (tmp_path / "calls").read_text() == EXPECTED


def test_objects_with_calls_are_linked_with_the_library(tmp_path: Path) -> None:
    header = "#define N 30\nextern double u[N][N], v[N][N];\nvoid advance(void);\n"
    write(tmp_path, C | {"fields.h": header, "plain.c": "int main(void) { return 0; }\n"})
    for name in C:
        assert front("c", tmp_path, "-c", "-fopenmp", name).returncode == 0
    assert front("c", tmp_path, "-fopenmp", "main.o", "advance.o", "-o", "program").returncode == 0
    assert run_command(["./program"], tmp_path, HOMING_ENABLED="0")
    assert "libhoming" in run_command(["ldd", "program"], tmp_path)
    front("c", tmp_path, "-c", "plain.c")
    assert front("c", tmp_path, "plain.o", "-o", "plain").returncode == 0
    assert "libhoming" not in run_command(["ldd", "plain"], tmp_path)


def test_a_file_beside_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    broken = FILES["sweep_x.f90"].replace("  end do\nend subroutine", "end subroutine")
    write(tmp_path, FILES | {"sweep_x.f90": broken})
    front("fortran", tmp_path, "-c", "-fopenmp", "fields.f90")
    done = front("fortran", tmp_path, "-c", "-fopenmp", "main.f90")
    assert done.returncode == 0, done.stderr
    assert "upm: sweep_x.f90 cannot be read, and is not followed" in done.stderr


STRUCTURES = {
    "x.c": """struct grid { double u[64]; } g;
int main(void) {
    for (int t = 0; t < 3; t++) {
#pragma omp parallel for
        for (int i = 0; i < 64; ++i) g.u[i] += 1;
    }
}
""",
    "x.f90": """program x
  implicit none
  type :: grid
    real(8) :: u(64)
  end type
  type(grid) :: g
  integer :: i, t
  g%u = 0
  do t = 1, 3
    !$omp parallel do
    do i = 1, 64
      g%u(i) = g%u(i) + 1
    end do
  end do
end program
""",
}


@pytest.mark.parametrize(("name", "where"), [("x.c", "x.c:5:38: "), ("x.f90", "x.f90:12:7: ")])
def test_a_program_with_nothing_but_structures(name: str, where: str, tmp_path: Path) -> None:
    write(tmp_path, STRUCTURES)
    done = front("c" if name.endswith(".c") else "fortran", tmp_path, "-fopenmp", name, "-o", "x")
    assert done.returncode == 1
    assert where in done.stderr and "members of structures: no calls are inserted" in done.stderr
    assert not (tmp_path / "x").exists()


def test_cxx(tmp_path: Path) -> None:
    parallel = "int main() {\n    auto f = [](int i) { a[i] = 1; };\n#pragma omp parallel for\n"
    parallel += "    for (int i = 0; i < 9; i++) f(i);\n}\n"
    serial = "double a[9];\n" + parallel.replace("#pragma omp parallel for", "")
    write(
        tmp_path,
        {"x.cpp": f"double a[9];\n#pragma homing distribute a[block]\n{parallel}", "serial.cpp": serial},
    )
    done = front("cxx", tmp_path, "-fopenmp", "-c", "x.cpp", target="spmd")
    assert done.returncode == 1
    assert "x.cpp:4:26: a lambda names the distributed 'a'" in done.stderr
    assert not (tmp_path / "x.o").exists()
    assert front("cxx", tmp_path, "-c", "serial.cpp").returncode == 0
