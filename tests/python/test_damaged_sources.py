"""Sources that no compiler would take, for `homing translate`: one line each with the file, no traceback,
and no output that lacks a part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homing.errors import UserError
from homing.translate import reading, translation
from homing.translate.translation import TARGETS, Options, translate

FORTRAN = "program p\n!$homing distribute a(block)\nreal a(10)\n{}\nend program\n"
C = "double a[10];\n#pragma homing distribute a[block]\nint main(void) {{\n{}\nreturn 0; }}\n"

REFUSED = {
    "parentheses.f90": FORTRAN.format("a(1) = " + "(" * 400 + "1" + ")" * 400),
    "sum.f90": FORTRAN.format("a(1) = " + "&\n".join(["1+" * 50] * 30) + "1"),
    "blocks.f90": FORTRAN.format("if (a(1) > 0) then\n" * 500 + "a(1) = 1\n" + "end if\n" * 500),
    "zero.f90": FORTRAN.format("a(1) = \0"),
    "open.f90": FORTRAN.format("a(1) = 'x"),
    "sum.c": C.format("a[1] = " + "1+" * 30_000 + "1;"),
    "braces.c": C.format("{" * 3000 + "a[1] = 1;" + "}" * 3000),
    "plus.c": C.format("a[1] = " + "+ " * 20_000 + "1;"),
    "casts.c": C.format("a[1] = " + "(int)" * 20_000 + "1;"),
    "if.c": C.format("if (a[1] > 0) " * 20_000 + ";"),
    "conditions.c": C.format("a[1] = " + "a[1] ? 1 : " * 5000 + "1;"),
    "open.c": C.format("return ((((((("),
    "backslash.c": "double a[10];\n#pragma homing\\",
    "backslash and line.c": "double a[10];\n#pragma homing\\\n",
    "empty directive.f90": FORTRAN.format("!$homing\n!$homing &"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said_with_its_file(name: str, tmp_path: Path, capfd: object) -> None:
    path = tmp_path / name
    path.write_text(REFUSED[name])
    with pytest.raises(UserError) as raised:
        translate([str(path)], Options("spmd", processes=1))
    assert str(path) in raised.value.message
    assert "\n" not in raised.value.message
    printed = capfd.readouterr()  # type: ignore[attr-defined]
    assert "Traceback" not in printed.err


READ = {
    "what only the compiler refuses.f90": FORTRAN.format("implicit :"),
    "no name.c": C.format("#pragma omp\nfor (int i = 0; i < 10; i++) a[i] = 1;"),
    "no name, continued.c": C.format("#pragma omp \\\n\nfor (int i = 0; i < 10; i++) a[i] = 1;"),
    "no name.f90": FORTRAN.format("!$omp\na(1) = 1"),
    "no utf-8.f90": FORTRAN.format("! \udcff\na(1) = 1"),
    "long line.c": C.format("a[1] = 1; /*" + "x" * 200_000 + "*/"),
    "nothing.c": "",
    "nothing.f90": "",
    "no line end.c": "double a[10];",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", READ)
def test_what_is_odd_but_sound_is_read(name: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(READ[name].encode("utf-8", "surrogateescape"))
    try:
        translate([str(path)], Options(target, processes=1))
    except UserError as error:
        assert "a defect of homing" not in error.message
        assert "nested" not in error.message


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('#include "/dev/zero"', ""),
        ('#  include "pipe"', ""),
        ("#include <pipe>", ""),
        ('#inc\\\nlude \\\n "pipe"', ""),
        ('#include "header.h"', '#include "pipe"\n'),
        ('#define FILE "/dev/zero"\n#include FILE', ""),
        ("#include NAME", ""),
        ('#include "link"', ""),
    ],
    ids=["device", "pipe", "brackets", "continued", "in a header", "macro", "flag", "link"],
)
def test_what_a_c_source_includes_must_be_a_file(line: str, header: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "header.h").write_text(header)
    path = tmp_path / "source.c"
    path.write_text(
        f"{line}\nint main(void) {{ return 0; }}\n#pragma homing distribute a[block]\ndouble a[9];\n"
    )
    joined = (f"-I{tmp_path}", '-DNAME="pipe"')
    for flags in (joined, tuple(part for flag in joined for part in (flag[:2], flag[2:]))):
        with pytest.raises(UserError, match=r"source.c:[1-3]:1: .* is a (device|pipe), not a file"):
            translate([str(path)], Options("spmd", processes=1, flags=flags))


def test_headers_in_a_circle_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text('#pragma once\n#include "two.h"\n')
    (tmp_path / "two.h").write_text('#pragma once\n#include "one.h"\n#include <stdio.h>\n')
    path = tmp_path / "source.c"
    path.write_text('#include "one.h"\n#if 0\n#include "nowhere.h"\n#endif\nint main(void) { return 0; }\n')
    translate([str(path)], Options("spmd", processes=1))


def test_a_file_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.f90"
    path.write_text(FORTRAN.format("a(1) = 1"))
    monkeypatch.setattr(reading, "_LEAST_SECONDS", 0.05)

    def parse(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(reading, "_parse", parse)
    with pytest.raises(UserError, match="takes too long to read"):
        translate([str(path)], Options("spmd", processes=1))


def test_a_defect_of_a_parser_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "source.f90"
    path.write_text(FORTRAN.format("a(1) = 1"))

    def parse(*_: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'items'")

    monkeypatch.setattr(reading, "_parse", parse)
    with pytest.raises(UserError, match=r"source.f90:1:1: a defect of homing \(AttributeError"):
        translate([str(path)], Options("spmd", processes=1))
    monkeypatch.undo()
    monkeypatch.setattr(translation, "translate_parts", parse)
    with pytest.raises(UserError, match=r"source.f90: a defect of homing \(AttributeError"):
        translate([str(path)], Options("spmd", processes=1))
