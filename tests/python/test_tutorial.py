"""The tutorial's commands, and what it says that they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.places import TREE

PAGE = (TREE / "docs/tutorial/index.md").read_text(encoding="utf-8")
#: Runs of four threads differ in what they meet first: points of a remote share.
_POINTS = 6


def said(place: str, folder: Path) -> str:
    command = f"{sys.executable} -m homing"
    variables = {**os.environ, "HOMING_COMMAND": command, "PYTHONPATH": str(TREE), "TMPDIR": str(folder)}
    for name in [name for name in variables if name.startswith("HOMING_") and name != "HOMING_COMMAND"]:
        if name not in ("HOMING_CACHE",):
            del variables[name]
    done = subprocess.run(
        ["sh", TREE / "docs/tutorial/run.sh", place],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def shares(text: str) -> dict[str, int]:
    return {name: int(share) for name, share in re.findall(r"^ *(\w+): remote (\d+) %$", text, re.MULTILINE)}


def test_here_the_program_says_what_the_tutorial_shows(tmp_path: Path) -> None:
    text = said("here", tmp_path)
    printed = re.search(r"^    (heat .*)$", PAGE, re.MULTILINE)
    assert printed is not None and printed[1] in text
    assert "homing" in text  # why nothing was done, or what was


def test_described_machine_gives_the_tutorials_numbers(tmp_path: Path) -> None:
    found, told = shares(said("described", tmp_path)), shares(PAGE)
    assert set(found) == set(told) == {"slow_cc", "homed", "fixed_cc"}
    assert found["fixed_cc"] <= 2 and told["fixed_cc"] == 0
    assert found["slow_cc"] == pytest.approx(told["slow_cc"], abs=_POINTS)
    assert found["homed"] < found["slow_cc"]


@pytest.mark.full
@pytest.mark.guest
def test_guest_runs_the_tutorial(tmp_path: Path) -> None:
    text = said("guest", tmp_path)
    assert re.search(r"counted +\d", text) and "first at slow.c:" in text
