"""Put the commands of this tree (pyproject.toml, [project.scripts]) into the virtual environment whose Python
runs this, as an installation would: they run the tree's own files, from any folder."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

TREE = Path(__file__).resolve().parents[1]
#: What a run's summary imports: compiled here, in case that it runs where Python keeps no compiled files
#: (PYTHONDONTWRITEBYTECODE, a read-only tree). 250 -> 140 ms of processor time.
SUMMARY = (
    "import homing.run_finish, homing.area_rules, homing.report.summary, homing.report.names, "
    "homing.report.dwarf"
)

# A line that the shell and Python read: a #! line has room for 127 characters, and none for a space.
SCRIPT = """#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
# Written by tools/commands.py.
import sys

from {module} import {function}

sys.exit({function}())
"""

# The command `homing`: the native launcher, where it is built.
LAUNCHER = TREE / "build" / "release" / "launcher" / "homing"
FIRST = """#!/bin/sh
'''[' -x {launcher} ] && exec {launcher} --homing-python={python} "$@"
exec {python} "$0" "$@"
' '''
"""


def main() -> None:
    if sys.prefix == sys.base_prefix:
        sys.exit("tools/commands.py: run it with the Python of a virtual environment")
    # Python finds the package through this file, whatever the current folder is.
    Path(sysconfig.get_path("purelib"), "homing-tree.pth").write_text(f"{TREE}\n", encoding="utf-8")
    with (TREE / "pyproject.toml").open("rb") as file:
        scripts = tomllib.load(file)["project"]["scripts"]
    for name, entry in {"homing": "homing.cli:main", **scripts}.items():
        module, function = entry.split(":")
        path = Path(sysconfig.get_path("scripts"), name)
        partial = path.with_name(f"{name}.{os.getpid()}")
        python, launcher = shlex.quote(sys.executable), shlex.quote(str(LAUNCHER))
        text = SCRIPT.format(python=python, module=module, function=function)
        if name == "homing":
            text = FIRST.format(python=python, launcher=launcher) + "\n".join(text.split("\n")[3:])
        partial.write_text(text, encoding="utf-8")
        partial.chmod(partial.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        partial.replace(path)
    writing = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", SUMMARY], env=writing, cwd=TREE, check=True)


main()
