"""Setting the lab up (`homing lab --setup`): QEMU and what goes with it, and the guest's kernel."""

from __future__ import annotations

import os
import subprocess
import sys

from homing.installation import find_data, python_path, source_tree
from homing.paths import cache_base

from .errors import LabError


def set_up() -> int:
    """See to it that everything is there that the lab needs; returns 0 or, where something is missing, 2.

    tools/packages.sh does it, as for `make`: apt installs what is missing where the user is root, otherwise
    it says the command. The kernel is unpacked into homing's cache folder, which needs no root.
    """
    script = find_data(os.path.join("tools", "packages.sh"))
    if script is None:
        raise LabError("tools/packages.sh is missing: this installation of homing is not complete")
    chosen = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": python_path()}
    if source_tree() is None:
        chosen.setdefault("HOMING_SETUP", os.path.join(cache_base(), "setup"))
    try:
        return subprocess.run(["bash", script, "lab"], env=chosen, check=False).returncode
    except OSError as error:
        raise LabError(f"bash: {error.strerror}") from None
