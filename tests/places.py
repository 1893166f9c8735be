"""Where tests may put what they make: a temporary folder may be mounted noexec, a home folder read-only."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from homing.paths import CacheError, cache_base, make_private

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


def use_a_cache_that_can_be_written() -> None:
    """For this process and its children: the user's cache, in which the guest's kernel is; where nothing can
    be kept there, that of this tree (see Makefile). homing would say so in a line of each run."""
    try:
        base = cache_base()
        make_private(base)
        if os.access(base, os.W_OK):
            return
    except CacheError:
        pass
    os.environ.pop("HOMING_CACHE", None)  # it would be stronger
    os.environ["XDG_CACHE_HOME"] = str(TREE / ".setup" / "cache")


def public_folder() -> str:
    """A folder in which every user of the machine may run programs; empty where there is none."""
    return next((place for place in ("/tmp", "/var/tmp", "/dev/shm") if runs_programs(place)), "")
