"""usage: tools/install_command.py SITE BIN

Make the command `homing` (the native launcher, which starts Python) and its companions (pyproject.toml,
[project.scripts]) work from BIN without this tree: beside the package, which lies in the folder SITE already,
come the Python packages that it needs, copied from the environment whose Python runs this. Both folders may
lie below a DESTDIR: the commands find SITE from where they are. Run by cmake/install.cmake.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

TREE = Path(__file__).resolve().parents[1]

# A #! line has room for 127 characters, and none for a space: then the shell finds Python.
PLAIN = "#!{python}\n"
QUOTED = """#!/bin/sh
'''exec' '{python}' "$0" "$@"
' '''
"""
# The command runs what was installed with it, whatever PYTHONPATH says.
BODY = """# Written by homing's installation.
import os
import sys

here = os.path.dirname(os.path.realpath(__file__))
site = os.path.normpath(os.path.join(here, {site!r}))
sys.path[:] = [site, *(one for one in sys.path if one != here)]

from {module} import {function}

sys.exit({function}())
"""


def needed(requirements: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The packages that these requirements name, and what those require: without extras."""
    found: dict[str, importlib.metadata.Distribution] = {}
    todo = [Requirement(text) for text in requirements]
    while todo:
        one = todo.pop()
        if one.name.lower() in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        distribution = importlib.metadata.distribution(one.name)
        found[one.name.lower()] = distribution
        todo += [Requirement(text) for text in distribution.requires or []]
    return found


def copy(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Its files, but for commands and what is outside of its folder."""
    for file in distribution.files or []:
        source, target = str(file.locate()), site / file
        if ".." in file.parts or not os.path.isfile(source):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)  # with its time, by which Python knows its compiled file
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def main() -> None:
    os.umask(0o022)  # whoever installs, installs for others
    site, binaries = Path(sys.argv[1]), Path(sys.argv[2])
    with (TREE / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    for distribution in needed(project["dependencies"]).values():
        copy(distribution, site)
    # The interpreter behind the virtual environment, by its version: compiled packages serve that one only.
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    head = PLAIN if len(python) < 120 and " " not in python else QUOTED
    (site / "interpreter").write_text(python, encoding="utf-8")  # for src/launcher/python.cpp
    binaries.mkdir(parents=True, exist_ok=True)
    for name, entry in project["scripts"].items():
        module, function = entry.split(":")
        text = head.format(python=python.replace("'", "'\"'\"'"))
        text += BODY.format(site=os.path.relpath(site, binaries), module=module, function=function)
        path = binaries / name
        partial = path.with_name(f".{name}.{os.getpid()}")
        partial.write_text(text, encoding="utf-8")
        partial.chmod(0o755)
        partial.replace(path)
    # The manual and completion, from the package as it is installed.
    words = [sys.executable, "-m", "homing.manual", str(binaries.parent / "share")]
    subprocess.run(words, env={**os.environ, "PYTHONPATH": str(site)}, cwd=site, check=True)
    # Those who run it later may not be allowed to write here. DESTDIR is no part of the paths in tracebacks.
    stage = os.environ.get("DESTDIR", "")
    # What a summary imports is compiled: that halves what it takes (250 to 140 ms of processor time).
    for package in ("homing", "elftools"):
        compileall.compile_dir(site / package, quiet=2, stripdir=stage or None)
    # And found at once.
    words = [sys.executable, "-m", "homing.bundle"]
    subprocess.run(words, env={**os.environ, "PYTHONPATH": str(site)}, cwd=site, check=True)


main()
