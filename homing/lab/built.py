"""Where the lab's compiled parts are (lab/CMakeLists.txt)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from homing.installation import PACKAGE

from .errors import LabError


def find_built(name: str) -> Path:
    """A compiled part of the lab: in HOMING_LAB_LIBRARIES, the package, or the source tree's build."""
    package = Path(PACKAGE)
    places = [
        package / "lib" / "homing",
        package / "lib",
        package.parent / "build" / "release" / "lab",
        Path(sys.prefix) / "lib" / "homing",
    ]
    stated = os.environ.get("HOMING_LAB_LIBRARIES", "")
    if stated:
        places = [Path(stated)]
    for place in places:
        if (place / name).is_file():
            return place / name
    raise LabError(f"{name} is not in {' or '.join(map(str, places))}: build it, or set HOMING_LAB_LIBRARIES")
