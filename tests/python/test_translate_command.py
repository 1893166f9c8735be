"""What a compiler's command holds that is not translated is said; a directive in it is an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from homing.translate.directives.model import Form
from homing.translate.not_translated import said_of, sources_of
from homing.translate.translation import Options, translate
from tests.patience import PATIENCE
from tests.python.translate_programs import homing

C = """#include <stdio.h>
HEADER
static double x[64];
DIRECTIVE
int main(void) {
    double sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 64; ++i) x[i] = i;
    for (int i = 0; i < 64; ++i) sum += x[i];
    printf("%g\\n", sum);
}
"""
DIRECTIVE = "#pragma homing distribute x[block]"


def program(folder: Path, name: str, directive: str = DIRECTIVE, header: str = "") -> Path:
    path = folder / name
    path.write_text(C.replace("DIRECTIVE", directive).replace("HEADER", header))
    return path


def test_response_files_are_read(tmp_path: Path) -> None:
    program(tmp_path, "x.c")
    (tmp_path / "inner").write_text("-o x")
    (tmp_path / "args.rsp").write_text("-O1 -fopenmp 'x.c' @inner")
    done = homing(tmp_path, "--to", "spmd", "--", "gcc", "@args.rsp")
    assert done.returncode == 0, done.stderr
    symbols = subprocess.run(["nm", "x"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "homing_layout_create" in symbols


@pytest.mark.parametrize(
    "words",
    [
        ("g++", "-fopenmp", "x.ii", "-o", "x"),
        ("gcc", "-fopenmp", "-xc", "x.txt", "-o", "x"),
        ("gcc", "-fopenmp", "-include", "x.h", "plain.c", "-o", "x"),
        ("gcc", "-fopenmp", "includes.c", "-o", "x"),
        ("gcc", "-fopenmp", "-Ifolder", "elsewhere.c", "-o", "x"),
        ("gcc", "-fopenmp", "-I", "folder", "elsewhere.c", "-o", "x"),
    ],
)
def test_a_directive_in_vain_is_an_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in ("x.ii", "x.c", "x.txt"):
        program(tmp_path, name)
    (tmp_path / "x.h").write_text(f"/* kept */\n{DIRECTIVE}\n")
    program(tmp_path, "plain.c", "")
    program(tmp_path, "includes.c", "", '#include "x.h"')
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "y.h").write_text(f"/* kept */\n{DIRECTIVE}\n")
    program(tmp_path, "elsewhere.c", "", '#include "y.h"')
    done = homing(tmp_path, "--to", "spmd", "--", *words)
    assert done.returncode in (1, 2)
    assert f": {DIRECTIVE}\n" in done.stderr
    assert "not translated" in done.stderr
    assert not (tmp_path / "x").exists()


def test_files_of_other_languages(tmp_path: Path) -> None:
    program(tmp_path, "x.ii")
    done = homing(tmp_path, "--to", "pages", "x.ii")
    assert done.returncode == 1
    assert done.stderr.startswith("x.ii:4:1: ")
    program(tmp_path, "y.cpp", "")
    done = homing(tmp_path, "--to", "pages", "--", "g++", "-fopenmp", "-c", "y.cpp")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "y.o").exists()


def test_what_a_command_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.c", "b.f90", "c.cc", "D.C", "e.o", "libf.so.1", "g.inc", "h.ii"):
        Path(name).write_text("")
    words = ["-o", "a.c", "a.c", "b.f90", "--param", "b.f90", "c.cc", "D.C", "e.o", "libf.so.1", "g.inc"]
    found = sources_of("/usr/bin/gcc", [*words, "h.ii"])
    assert [words[at] for at in found.translated] == ["a.c", "b.f90", "c.cc", "D.C"]
    assert [name for name, _ in found.others] == ["g.inc", "h.ii"]
    assert not found.cxx, "gcc takes each file for what its name says"
    assert sources_of("x86_64-linux-gnu-g++-12", ["a.c", "b.f90"]).translated == [0, 1]
    assert sources_of("x86_64-linux-gnu-g++-12", ["a.c", "b.f90"]).cxx
    assert sources_of("gcc", ["-x", "c", "-"]).others[0][0] == "-"


def test_a_directive_in_a_fortran_include(tmp_path: Path) -> None:
    (tmp_path / "x.inc").write_text("  real(8) :: a(9)\n  !$homing distribute a(block)\n")
    path = tmp_path / "p.f90"
    path.write_text("program p\n  include 'x.inc'\n  a = 1\n  print *, a\nend program\n")
    text = translate([str(path)], Options("spmd")).outputs[0].text
    assert f'# 1 "{tmp_path}/x.inc"\n' in text and "hm_parts_a" in text
    assert len(list(said_of("x.inc", (tmp_path / "x.inc").read_text(), "", Form.FREE))) == 1


def test_upm_compiles_without_being_told_where_homing_lies(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(
        "#include <stdio.h>\ndouble u[64], v[64], *rows[8];\nstruct { double w[64]; } s;\nint main(void) {\n"
        "    for (int t = 0; t < 3; t++) {\n#pragma omp parallel for\n"
        "        for (int i = 0; i < 64; ++i) { u[i] = v[i] + i; s.w[i] += 1; rows[0] = u; }\n"
        "#pragma omp parallel for\n        for (int i = 0; i < 64; ++i) v[i] = u[i] + 1;\n    }\n"
        '    printf("%g\\n", v[63]);\n}\n'
    )
    done = homing(tmp_path, "--to", "upm", "--", "gcc", "-fopenmp", "x.c", "-o", "x")
    assert done.returncode == 0, done.stderr
    assert "upm: not followed: s (main): members of structures" in done.stderr
    assert "upm: not followed: rows (main): only the pointers in it" in done.stderr
    out = subprocess.run(
        [tmp_path / "x"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert out == "192\n"
