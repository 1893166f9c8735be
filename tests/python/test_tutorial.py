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


def shares(text: str) -> list[float]:
    """What the runs on described machines counted, in order."""
    lines = re.findall(r"^ *counted +([\d.]+) % of [\d,]+ cache misses remote;", text, re.MULTILINE)
    return [float(share) for share in lines]


def test_here_the_program_says_what_the_tutorial_shows(tmp_path: Path) -> None:
    text = said("here", tmp_path)
    printed = re.search(r"^    (heat .*)$", PAGE, re.MULTILINE)
    assert printed is not None and printed[1] in text
    assert "homing" in text  # why nothing was done, or what was


def test_described_machine_gives_the_tutorials_numbers(tmp_path: Path) -> None:
    text = said("described", tmp_path)
    (slow, homed, fixed), told = shares(text), shares(PAGE)
    assert fixed <= 2 and told[2] < 1
    assert slow == pytest.approx(told[0], abs=_POINTS)
    assert homed < slow and told[1] < told[0]
    for advice in re.findall(r"^    (advice .*) \.\.\.$", PAGE, re.MULTILINE):
        assert advice in text


def test_the_commands_that_are_shown_are_those_of_the_script() -> None:
    """Typed as they stand: what the script exports is in the line."""
    script = (TREE / "docs/tutorial/run.sh").read_text(encoding="utf-8").replace("$homing ", "homing ")
    run = [line.strip().replace('"$here/slow.c"', "slow.c") for line in script.splitlines()]
    exported = re.search(r"export (OMP_NUM_THREADS=\d+) ", script)
    assert exported is not None
    shown = re.findall(r"^    \$ (.*)$", PAGE, re.MULTILINE)
    assert len(shown) >= 8
    for command in shown:
        threads, _, plain = command.rpartition(f"{exported[1]} ")
        assert plain in run and threads == ""
        is_of_team = plain.startswith("homing run") and "--on lab" not in plain
        assert command.startswith(exported[1]) == is_of_team, command


@pytest.mark.full
@pytest.mark.guest
def test_guest_runs_the_tutorial(tmp_path: Path) -> None:
    text = said("guest", tmp_path)
    assert re.search(r"counted +\d", text) and "first at slow.c:" in text
