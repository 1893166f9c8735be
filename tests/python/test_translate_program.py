"""A program of several files, each compiled by a command of its own, as make and CMake do it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homing.translate.program.record import records_of
from homing.translate.translation import Options, translate
from tests.python.translate_programs import (
    MPIRUN,
    PATIENCE,
    PROGRAMS,
    TREE,
    Workshop,
    kept_runtimes,
    run_command,
)

PROGRAM = PROGRAMS / "program"
#: Where what differs between targets is tested elsewhere: each of the others takes another 4 to 7 s.
ONE_OF_THREE = ["spmd", *(pytest.param(one, marks=pytest.mark.full) for one in ("pages", "mpi"))]
EXPECTED = "0.920411 0.368202 0.088626 0.012033 0.000873"
LIBRARY = os.environ.get("HOMING_LIBRARY") or str(TREE / "build" / "release" / "libhoming.so")


class Build:
    """A copy of the program, and a compiler that translates."""

    def __init__(self, folder: Path, target: str = "spmd") -> None:
        self.top = folder / "top"
        shutil.copytree(PROGRAM, self.top)
        self.objects = self.top / "build"
        self.objects.mkdir()
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(TREE),
            "HOMING_CACHE": str(folder / "cache"),
            "HOMING_TRANSLATE": target,
            "HOMING_LIBRARY": LIBRARY,
            "OMP_NUM_THREADS": "1" if target == "mpi" else "3",
        }
        self.fc = self._front(folder / "fc", "fortran_main")
        self.cc = self._front(folder / "cc", "c_main")
        self.states = folder / "cache" / "translate" / "programs"

    def _front(self, path: Path, main: str) -> str:
        code = f"import sys; from homing.translate.compile import {main} as main; sys.exit(main())"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
        path.chmod(0o755)
        return str(path)

    def run(self, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        with kept_runtimes(Path(self.environment["HOMING_CACHE"])):
            return subprocess.run(
                words,
                cwd=folder or self.objects,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )

    def make(self, *words: str) -> str:
        """Build; what is said."""
        done = self.run("make", "-f", "../Makefile", f"FC={self.fc}", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def says(self, *words: str) -> str:
        done = self.run(*(words or ("./prog",)))
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    def refuses(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def edit(self, path: str, old: str, new: str) -> None:
        """A change that make sees."""
        file = self.top / path
        text = file.read_text()
        assert old in text
        time.sleep(0.05)  # a file's time is that of the kernel's last tick
        file.write_text(text.replace(old, new))

    def plain(self) -> str:
        """What the program says without any translation."""
        folder = self.top / "plain"
        folder.mkdir(exist_ok=True)
        assert self.run("make", "-f", "../Makefile", folder=folder).returncode == 0
        return " ".join(self.run("./prog", folder=folder).stdout.split())


@pytest.fixture(scope="module")
def first_build(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Path]:
    """Built by make, and a copy of it all."""
    folder = tmp_path_factory.mktemp("made")
    build = Build(folder / "build")
    build.make()
    return build, shutil.copytree(folder / "build", folder / "kept", symlinks=True)


@pytest.fixture
def made(first_build: tuple[Build, Path]) -> Build:
    """The program as make left it, at the same place: the records have paths. 2 s of a processor sooner than
    by make."""
    build, kept = first_build
    shutil.rmtree(build.top.parent)
    shutil.copytree(kept, build.top.parent, symlinks=True)
    build.environment["HOMING_TRANSLATE"] = "spmd"
    return build


@pytest.mark.parametrize("target", ONE_OF_THREE)
def test_parallel_make_over_folders(tmp_path: Path, target: str) -> None:
    """The sources lie in two folders, the objects in a third; the module's array is distributed, the
    procedure that gets it is compiled alone."""
    build = Build(tmp_path, target)
    build.make("-j4")
    command = [*MPIRUN, "-n", "3", "./prog"] if target == "mpi" else ["./prog"]
    assert build.says(*command) == EXPECTED
    assert len([one for one in build.states.iterdir() if not one.name.startswith("lock")]) == 1
    records = {Path(one.source).name: one for one in records_of(str(build.objects / "prog")).records}
    assert sorted(records) == ["fields.f90", "main.f90", "relax.f90", "step.f90"]
    assert len({one.state for one in records.values()}) == 1


def test_an_edited_file_changes_what_others_should_be(made: Build) -> None:
    """A wider stencil in one file widens the array that another one allocates: make does not know, the
    link does, and the build's objects stay."""
    build = made
    before = (build.objects / "fields.o").read_bytes()
    build.edit("src/mod/relax.f90", "do i = 1, n", "do i = 2, n")
    build.edit("src/mod/relax.f90", "a(i - 1)", "a(i - 2)")
    said = build.make()
    assert "relax.f90 -o relax.o" in said and "fields.f90 -o" not in said
    assert "../src/mod/fields.f90: compiled again for this program" in said
    assert build.says() == build.plain() != EXPECTED
    assert (build.objects / "fields.o").read_bytes() == before
    assert "up to date" in build.make()
    expected = build.says()
    build.edit("src/mod/relax.f90", "end subroutine", "end subroutine relax")
    said = build.make()
    assert "relax.f90 -o relax.o" in said and "again" not in said  # kept from the link before
    assert build.says() == expected
    build.edit("src/mod/relax.f90", "a(i - 2)", "a(i - 3)")
    build.edit("src/mod/relax.f90", "do i = 2, n", "do i = 3, n")
    assert "fields.f90: compiled again" in build.make()
    assert build.says() == build.plain() != expected
    build.edit("src/mod/fields.f90", "u(0) = 1", "u(0) = 2")
    assert "again" not in build.make()


def test_an_edit_that_concerns_nobody_else(made: Build) -> None:
    build = made
    build.edit("src/app/main.f90", "0, 99", "0, 9")
    said = build.make()
    assert said.count(" -c ") == 1 and "again" not in said
    assert build.says() == build.plain() != EXPECTED


@pytest.mark.parametrize("generator", [pytest.param("Unix Makefiles", marks=pytest.mark.full), "Ninja"])
def test_cmake(tmp_path: Path, generator: str) -> None:
    """With a static library, a member of which is out of date after an edit of the program."""
    if shutil.which("cmake") is None or (generator == "Ninja" and shutil.which("ninja") is None):
        pytest.skip("not here")
    build = Build(tmp_path)
    words = ("-G", generator, "-S", "..", "-B", ".", f"-DCMAKE_Fortran_COMPILER={build.fc}")
    done = build.run("cmake", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    done = build.run("cmake", "--build", ".", "-j4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert build.says() == EXPECTED
    assert len(records_of(str(build.objects / "libkernels.a")).records) == 2
    build.edit("src/app/main.f90", "call setup", "call setup\n  v(3) = u(1) + 1\n  call step(1)")
    build.edit("src/app/step.f90", "call relax(v, u, n)", "call relax(v, u, n)\n      v(2:n - 1) = u(3:n)")
    done = build.run("cmake", "--build", ".", "-j4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert build.says() == build.plain() != EXPECTED


def test_an_object_of_another_compiler(made: Build) -> None:
    build = made
    step = build.objects / "step.o"
    assert build.run("gfortran", "-fopenmp", "-c", "../src/app/step.f90", "-o", "step.o").returncode == 0
    assert records_of(str(step)).without == 1
    objects = ("fields.o", "relax.o", "step.o", "main.o")
    said = build.refuses(build.fc, "-fopenmp", *objects, "-o", "prog2")
    assert "src/mod/fields.f90:4:27: step.o was compiled without the translation, and uses" in said
    assert "'u' of module 'fields', which is distributed" in said and "homing-translate-fc" in said
    assert not (build.objects / "prog2").exists()


def test_a_callee_of_another_compiler_gets_whole_arrays(made: Build) -> None:
    build = made
    assert build.run("gfortran", "-fopenmp", "-c", "../src/mod/relax.f90", "-o", "relax.o").returncode == 0
    done = build.run(build.fc, "-fopenmp", "fields.o", "relax.o", "step.o", "main.o", "-o", "prog")
    assert done.returncode == 0 and "step.f90" in done.stderr
    assert build.says() == EXPECTED


OTHER = """program other
  implicit none
  real(8) :: p(0:21), q(0:21)
  p = 1
  q = 0
  call relax(p, q, 20)
  print '(f9.4)', sum(q)
end program
"""


def test_two_programs_share_an_object(made: Build) -> None:
    """One passes distributed arrays, the other does not: each link gets what it needs. A shared library can
    be only one of the two."""
    build = made
    (build.top / "src" / "app" / "other.f90").write_text(OTHER)
    assert build.run(build.fc, "-fopenmp", "-c", "../src/app/other.f90").returncode == 0
    done = build.run(build.fc, "-fopenmp", "other.o", "relax.o", "-o", "other")
    assert done.returncode == 0 and "../src/mod/relax.f90: compiled again for this program" in done.stderr
    assert build.says("./other") == "20.0000"
    assert build.says() == EXPECTED
    assert build.run(build.fc, "-fopenmp", "-fPIC", "-c", "../src/mod/relax.f90").returncode == 0
    made = ("relax.o", "../src/mod/fields.f90", "-o", "libk.so")
    assert build.run(build.fc, "-shared", "-fPIC", "-fopenmp", *made).returncode == 0
    assert len(records_of(str(build.objects / "libk.so")).records) == 2
    link = (build.fc, "-fopenmp", "-L.", "-Wl,-rpath,.")
    assert build.run(*link, "main.o", "step.o", "-l:libk.so", "-o", "prog").returncode == 0
    assert build.says() == EXPECTED
    said = build.refuses(*link, "other.o", "-l", "k", "-o", "other")
    assert "src/mod/relax.f90:1:1: ./libk.so holds it as it was translated in view of other files" in said


def test_objects_of_two_targets(made: Build) -> None:
    build = made
    build.environment["HOMING_TRANSLATE"] = "pages"
    assert build.run(build.fc, "-fopenmp", "-c", "../src/mod/relax.f90", "-o", "relax.o").returncode == 0
    said = build.refuses(build.fc, "-fopenmp", "fields.o", "relax.o", "step.o", "main.o", "-o", "prog2")
    assert "fields.o was translated with --to spmd, this command has --to pages: give both the same" in said


def test_a_source_that_is_not_what_its_object_was_made_of(made: Build) -> None:
    build = made
    build.edit("src/mod/fields.f90", "n = 40", "n = 50")
    build.edit("src/mod/relax.f90", "a(i - 1)", "a(i)")
    assert build.run(build.fc, "-fopenmp", "-c", "../src/mod/relax.f90", "-o", "relax.o").returncode == 0
    said = build.refuses(build.fc, "-fopenmp", "fields.o", "relax.o", "step.o", "main.o", "-o", "prog2")
    assert "src/mod/fields.f90:1:1: is not what fields.o was compiled from: build that again" in said


def test_a_callee_that_says_otherwise_than_its_caller(made: Build) -> None:
    """Whoever is compiled first: the file with the contradiction is refused, and so is the link."""
    build = made
    build.edit("src/mod/relax.f90", "  integer :: i\n", "  !$homing distribute a(cyclic)\n  integer :: i\n")
    done = build.run("make", "-f", "../Makefile", f"FC={build.fc}")
    assert done.returncode == 2
    assert "'a' is distributed otherwise in 'relax'" in done.stderr
    assert "src/app/step.f90:9:18: " in done.stderr, done.stderr


def test_ranks_without_any_distributed_array_are_told(tmp_path: Path) -> None:
    build = Build(tmp_path, "mpi")
    (build.objects / "p.f90").write_text("print *, 1\nend\n")
    told = "no array is distributed: every rank runs the whole program"
    assert told in build.run(build.fc, "p.f90", "-o", "p").stderr
    assert told not in build.run(build.fc, "-c", "p.f90").stderr
    assert told in build.run(build.fc, "p.o", "-o", "p").stderr


C = {
    "relax.h": "#define N 64\nvoid relax(const double *a, double *b, int n);\n",
    "relax.c": """#include "relax.h"
void relax(const double *a, double *b, int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) b[i] = (a[i - 1] + a[i + 1]) / 2;
}
""",
    "main.c": """#include <stdio.h>
#include "relax.h"
double a[N], b[N];
#pragma homing distribute a[block], b[block]
int main(void) {
    for (int i = 0; i < N; i++) a[i] = b[i] = i % 7;
    for (int t = 0; t < 5; t++) {
        relax(a, b, N);
        relax(b, a, N);
    }
    double s = 0;
    for (int i = 0; i < N; i++) s += a[i];
    printf("%.9g\\n", s);
    return 0;
}
""",
}


@pytest.mark.parametrize("target", ONE_OF_THREE)
def test_c_with_a_prototype_in_a_header(tmp_path: Path, target: str) -> None:
    build = Build(tmp_path, target)
    for name, text in C.items():
        (build.objects / name).write_text(text)
    for name in ("main.c", "relax.c"):
        done = build.run(build.cc, "-Wall", "-Werror", "-fopenmp", "-c", name)
        assert done.returncode == 0, done.stderr
    assert build.run(build.cc, "-fopenmp", "main.o", "relax.o", "-o", "prog").returncode == 0
    command = [*MPIRUN, "-n", "2", "./prog"] if target == "mpi" else ["./prog"]
    assert build.says(*command) == "174.5625"


def test_a_stale_object_is_compiled_once(tmp_path: Path) -> None:
    """Compiled before the program was there, it is none of the program's; each link would need another."""
    build = Build(tmp_path)
    shutil.rmtree(build.top / "src")
    link = (build.cc, "-fopenmp", "main.o", "relax.o", "-o", "prog")
    for name in ("relax.h", "relax.c", "main.c"):
        (build.objects / name).write_text(C[name])
        if name.endswith(".c"):
            assert build.run(build.cc, "-fopenmp", "-c", name).returncode == 0
    said = [build.run(*link).stderr for _ in range(2)]
    assert "relax.c: compiled again for this program" in said[0] and said[1] == ""
    assert build.says() == "174.5625"
    shutil.rmtree(tmp_path / "cache")
    assert build.run(*link).stderr == said[0]


def test_c_arrays_of_another_file(tmp_path: Path) -> None:
    """In a file of its own, `extern double a[N]` was another array."""
    build = Build(tmp_path)
    for name, text in C.items():
        (build.objects / name).write_text(text)
    other = "extern double a[64];\nvoid spoil(void);\nvoid spoil(void) { a[3] = -1; }\n"
    (build.objects / "other.c").write_text(other)
    main = (
        C["main.c"]
        .replace("double s = 0", "spoil(); double s = 0")
        .replace("int main", "void spoil(void);\nint main")
    )
    (build.objects / "main.c").write_text(main)
    said = build.refuses(build.cc, "-fopenmp", "-c", "other.c")
    assert "other.c:1:15: 'a' is distributed in main.c:3:8, whose parts no other file knows" in said
    assert build.run(build.cc, "-fopenmp", "-c", "main.c").returncode == 0
    said = build.refuses(build.cc, "-fopenmp", "main.o", "relax.c", "other.c", "-o", "prog")
    assert "other.c:1:15: " in said


def test_what_cannot_be_read_must_not_name_what_is_shared(tmp_path: Path) -> None:
    """GNU's nested functions are read by nobody here; a file without directives may have them."""
    build = Build(tmp_path)
    nested = "int twice(int x) { int add(int y) { return x + y; } return add(x); }\n"
    calls = '#include "relax.h"\nvoid more(double *x);\nvoid more(double *x) { relax(x, x + 9, 5); }\n'
    for name, text in (C | {"nested.c": nested, "both.c": nested + calls}).items():
        (build.objects / name).write_text(text)
    assert build.run(build.cc, "-fopenmp", "main.c", "relax.c", "nested.c", "-o", "prog").returncode == 0
    assert build.says() == "174.5625"
    said = build.refuses(build.cc, "-fopenmp", "main.c", "relax.c", "both.c", "-o", "prog")
    assert "both.c:1:1: is not translated because of its problems, and names procedure 'relax'" in said


STATIC = {
    "a.c": """#include <stdio.h>
static void scale(double *x, int n) {
    for (int i = 0; i < n; i++) x[i] *= 2;
}
double other(void);
int main(void) {
    double x[5] = {1, 1, 1, 1, 1};
    scale(x, 5);
    printf("%g %g\\n", x[3], other());
    return 0;
}
""",
    "b.c": """#include <stdlib.h>
static void scale(double *x, int n) {
#pragma homing distribute x[block] extent(n)
#pragma omp parallel for
#pragma homing on home(x[i])
    for (int i = 0; i < n; i++) x[i] *= 3;
}
double other(void) {
    double *y = malloc(5 * sizeof *y), value;
#pragma homing distribute y[block] extent(5)
#pragma omp parallel for
#pragma homing on home(y[i])
    for (int i = 0; i < 5; i++) y[i] = 1;
    scale(y, 5);
    value = y[2];
    free(y);
    return value;
}
""",
}


def test_static_functions_of_one_name_are_their_files_own(tmp_path: Path) -> None:
    build = Build(tmp_path)
    for name, text in STATIC.items():
        (build.objects / name).write_text(text)
    for files in (("a.c", "b.c"), ("b.c", "a.c")):
        done = build.run(build.cc, "-fopenmp", *files, "-o", "prog")
        assert done.returncode == 0, done.stderr
        assert build.says() == "2 3"


COMMON = {
    "sizes.inc": """      integer n, steps
      parameter (n = 22, steps = 3)
      real*8 u, v, h
      common /fld/ u(n, n), v(n, n), h
!$homing distribute u(*, block), v(*, block)
""",
    "main.f": """      program main
      implicit none
      include 'sizes.inc'
      integer k
      call init
      do k = 1, steps
        call sweep
      end do
      print '(3f14.8)', u(5, 7), sum(v), h
      end
""",
    "init.f": """      subroutine init
      implicit none
      include 'sizes.inc'
      integer i, j
      h = 0.25d0
!$omp parallel do private(i)
      do j = 1, n
        do i = 1, n
          u(i, j) = i*0.5d0 + mod(j, 3)
          v(i, j) = 0
        end do
      end do
      end
""",
    "sweep.f": """      subroutine sweep
      implicit none
      include 'sizes.inc'
      integer i, j
!$omp parallel do private(i)
      do j = 3, n - 2
        do i = 2, n - 1
          v(i, j) = h*(u(i-1, j) + u(i, j-1) + u(i, j+1))
        end do
      end do
!$omp parallel do private(i)
      do j = 3, n - 2
        do i = 2, n - 1
          u(i, j) = v(i, j) + 0.5d0
        end do
      end do
      end
""",
}


def of_blocks(folder: Path, target: str) -> tuple[Build, list[str]]:
    """Files that share a COMMON block, and their objects in an order in which the main program is last."""
    build = Build(folder, target)
    for name, text in COMMON.items():
        (build.objects / name).write_text(text)
    return build, ["sweep.o", "init.o", "main.o"]


def test_a_common_block_of_files_given_together(tmp_path_factory: pytest.TempPathFactory) -> None:
    workshop = Workshop(tmp_path_factory.mktemp("blocks"))
    folder = workshop.place()
    for name, text in COMMON.items():
        (folder / name).write_text(text)
    names = [name for name in COMMON if name.endswith(".f")]
    plain = workshop.compile(folder / names[0], folder, names[1:])
    expected = run_command([plain], folder, OMP_NUM_THREADS="1")
    result = translate([str(folder / name) for name in names], Options("spmd"))
    for name, output in zip(names, result.outputs, strict=True):
        (folder / name).write_text(output.text)
    objects = ["../homing_parts.o", "../module.o"]
    made = workshop.compile(folder / names[0], folder, ["-fcheck=all", *names[1:], *objects])
    assert run_command([made], folder, OMP_NUM_THREADS="3") == expected


@pytest.mark.full
@pytest.mark.parametrize("target", ["spmd", "mpi"])
def test_a_common_block_of_several_files(tmp_path: Path, target: str) -> None:
    """Its arrays are a module's of the main program's file, which is compiled last; a wider stencil in
    another file makes that anew when it is linked."""
    build, objects = of_blocks(tmp_path, target)

    def plain() -> str:
        flags = ("-O1", "-fopenmp", "-o", "plain")
        assert build.run("gfortran", *flags, "main.f", "init.f", "sweep.f").returncode == 0
        return " ".join(build.run("./plain").stdout.split())

    for name in objects:
        done = build.run(build.fc, "-O1", "-fopenmp", "-c", name.replace(".o", ".f"))
        assert done.returncode == 0, done.stderr
    link = (build.fc, "-fopenmp", *objects, "-o", "prog")
    assert build.run(*link).stderr == ""
    command = [*MPIRUN, "-n", "2", "./prog"] if target == "mpi" else ["./prog"]
    assert build.says(*command) == plain()
    (build.objects / "sweep.f").write_text(COMMON["sweep.f"].replace("j+1))", "j+2))"))
    assert build.run(build.fc, "-O1", "-fopenmp", "-c", "sweep.f").returncode == 0
    assert "main.f: compiled again for this program" in build.run(*link).stderr
    assert build.says(*command) == plain()


def test_a_common_block_that_another_file_means_otherwise(tmp_path: Path) -> None:
    build, _ = of_blocks(tmp_path, "spmd")
    other = COMMON["sizes.inc"].replace("u(n, n), v(n, n)", "v(n, n), u(n, n)")
    text = COMMON["init.f"].replace("      include 'sizes.inc'\n", other)
    (build.objects / "init.f").write_text(text)
    said = build.refuses(build.fc, "-fopenmp", "-c", "sweep.f")
    assert (
        "sizes.inc:5:1: 'u' is in a COMMON block, where sequence matters: all that name it must mean" in said
    )
