"""Put the commands of this tree (pyproject.toml, [project.scripts]) into the virtual environment whose Python
runs this, as an installation would: they run the tree's own files, from any folder."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import sysconfig
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

TREE = Path(__file__).resolve().parents[1]

# A line that the shell and Python read: a #! line has room for 127 characters, and none for a space.
SCRIPT = """#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
# Written by tools/commands.py.
import sys

from {module} import {function}

sys.exit({function}())
"""


def main() -> None:
    if sys.prefix == sys.base_prefix:
        sys.exit("tools/commands.py: run it with the Python of a virtual environment")
    # Python finds the package through this file, whatever the current folder is.
    Path(sysconfig.get_path("purelib"), "homing-tree.pth").write_text(f"{TREE}\n", encoding="utf-8")
    with (TREE / "pyproject.toml").open("rb") as file:
        scripts = tomllib.load(file)["project"]["scripts"]
    for name, entry in scripts.items():
        module, function = entry.split(":")
        path = Path(sysconfig.get_path("scripts"), name)
        partial = path.with_name(f"{name}.{os.getpid()}")
        partial.write_text(
            SCRIPT.format(python=shlex.quote(sys.executable), module=module, function=function),
            encoding="utf-8",
        )
        partial.chmod(partial.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        partial.replace(path)


main()
