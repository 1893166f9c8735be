"""Names that an earlier run of the same build found."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from homing.report import statements
from homing.report.known_names import KnownNames

CG, KEY = "/home/user/cg", ("/home/user/cg", 1, 31)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("HOMING_CACHE", str(folder))
    return folder


def of(identity: str, program: str = CG) -> KnownNames:
    record: Any = SimpleNamespace(program=program, objects={CG: identity})
    return KnownNames.of(record)


def test_what_a_run_found_is_known_to_the_next_one() -> None:
    of("build-id 12").keep({KEY: "[]"})
    assert of("build-id 12").found == {KEY: "[]"}
    of("build-id 12").keep({(CG, 1, 40): "[1]"})
    assert set(of("build-id 12").found) == {KEY, (CG, 1, 40)}


def test_the_variables_of_statements_are_known_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "parsed", {})
    known, text = of("build-id 12"), "double *u = malloc(n);"
    assert statements.variables(text) == ["u"]
    known.keep({KEY: "[]"})
    monkeypatch.setattr(statements, "parsed", {})
    monkeypatch.setattr(statements, "_variables", lambda *_: ["read again"])
    of("build-id 12")
    assert statements.variables(text) == ["u"]
    monkeypatch.setattr(statements, "parsed", {})
    of("build-id 13")
    assert statements.variables(text) == ["read again"]


@pytest.mark.parametrize("identity", ["build-id 13", "file 100 5", ""])
def test_another_build_knows_nothing(identity: str) -> None:
    of("build-id 12").keep({KEY: "[]"})
    assert of(identity).found == {}


def test_a_build_without_an_identity_is_not_kept(cache: Path) -> None:
    of("").keep({KEY: "[]"})
    assert of("").found == {}


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '[1, {"/home/user/cg": "build-id 12"}, [[1, 2]]]'])
def test_a_damaged_file_is_as_none(cache: Path, text: str) -> None:
    of("build-id 12").keep({KEY: "[]"})
    (file,) = (cache / "names").iterdir()
    file.write_text(text)
    assert of("build-id 12").found == {}


def test_a_cache_that_cannot_be_trusted_is_left_alone(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of("build-id 12").keep({KEY: "[]"})
    (cache / "names").chmod(0o777)
    known = of("build-id 12")
    assert known.found == {}
    known.keep({KEY: "[]"})
    assert capsys.readouterr().err == ""
