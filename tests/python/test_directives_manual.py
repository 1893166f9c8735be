"""docs/directives.md: every example is a program that runs, and says the same after translation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from homing.translate.directives import Form
from homing.translate.scanner import scan
from tests.python.test_apps import ROOT

MANUAL = (ROOT / "docs" / "directives.md").read_text()
EXAMPLES = [
    (f"{number}-{language}", language, text)
    for number, (language, text) in enumerate(re.findall(r"```(fortran|c)\n(.*?)```", MANUAL, re.DOTALL))
]
WORDS = ("distribute", "distribute_reshape", "redistribute", "align", "template", "processors", "memories", "shadow",
         "on home", "affinity", "nest", "gen_block", "cyclic", "extent", "onto", "nosequence", "numa")  # fmt: skip
parametrized = pytest.mark.parametrize(
    ("language", "text"), [(language, text) for _, language, text in EXAMPLES], ids=[name for name, _, _ in EXAMPLES]
)


def compiled(source: Path, *flags: str) -> Path:
    target = source.with_suffix("")
    compiler = ["gcc", "-std=c11"] if source.suffix == ".c" else ["gfortran", "-std=f2018", f"-J{source.parent}"]
    command = [*compiler, "-O1", "-fopenmp", *flags, str(source), "-o", str(target)]
    subprocess.run(command, check=True, timeout=60)
    return target


def output(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout


def test_every_directive_has_an_example() -> None:
    examples = " ".join(text.lower() for _, _, text in EXAMPLES)
    assert [word for word in WORDS if word not in examples] == []


@parametrized
def test_examples_are_read(language: str, text: str) -> None:
    scanned = scan(text, "x", Form.C if language == "c" else Form.FREE)
    assert scanned.directives
    assert not scanned.problems
    assert not scanned.notes
