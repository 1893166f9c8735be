"""Where tests may put programs and run them: a temporary folder may be mounted noexec."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]


@cache
def runs_programs(folder: str) -> bool:
    """May a program be made in this folder and run?"""
    try:
        file, path = tempfile.mkstemp(dir=folder, prefix="homing-tests-")
    except OSError:
        return False
    try:
        with os.fdopen(file, "w") as script:
            script.write("#!/bin/sh\nexit 0\n")
        os.chmod(path, 0o700)
        return subprocess.run([path], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
    finally:
        os.unlink(path)


def use_a_folder_that_runs_programs() -> None:
    """For this process and its children: TMPDIR, or a folder of the build's where that will not do."""
    if not runs_programs(tempfile.gettempdir()):
        place = TREE / "build" / "tests-temporary"
        place.mkdir(parents=True, exist_ok=True)
        os.environ["TMPDIR"] = str(place)
        tempfile.tempdir = None


def public_folder() -> str:
    """A folder in which every user of the machine may run programs; empty where there is none."""
    return next((place for place in ("/tmp", "/var/tmp", "/dev/shm") if runs_programs(place)), "")
