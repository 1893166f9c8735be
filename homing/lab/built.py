"""Where the lab's compiled parts are (lab/CMakeLists.txt)."""

from __future__ import annotations

import os
from pathlib import Path

from homing.installation import find_binary

from .errors import LabError


def find_built(name: str) -> Path:
    """A compiled part of the lab: in HOMING_LAB_LIBRARIES, or built with this package."""
    stated = os.environ.get("HOMING_LAB_LIBRARIES", "")
    path = os.path.join(stated, name) if stated else find_binary(name)
    if path is None or not os.path.isfile(path):
        where = stated or "this installation of homing"
        raise LabError(f"{name} is not in {where}: build it, or set HOMING_LAB_LIBRARIES")
    return Path(path)
