"""Where homing's own binaries are: in the installed package, in a source tree's build, or where the user
says."""

from __future__ import annotations

import os

from homing.errors import UserError

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _candidates(name: str) -> list[str]:
    tree = os.path.dirname(PACKAGE)
    return [
        os.path.join(PACKAGE, "lib", name),
        os.path.join(PACKAGE, "bin", name),
        os.path.join(tree, "build", "release", name),
    ]


def find_binary(name: str) -> str | None:
    """An executable or library that was built with this package, or None."""
    return next((path for path in _candidates(name) if os.path.isfile(path)), None)


def find_library() -> str:
    """libhoming.so: HOMING_LIBRARY, else beside the package, else in build/release of the source tree."""
    stated = os.environ.get("HOMING_LIBRARY", "")
    if stated:
        if not os.path.isfile(stated):
            raise UserError(f"HOMING_LIBRARY={stated}: no such file")
        return os.path.abspath(stated)
    path = find_binary("libhoming.so")
    if path is None:
        places = " or ".join(os.path.dirname(place) for place in _candidates("libhoming.so")[::2])
        raise UserError(f"libhoming.so is not in {places}: build it, or set HOMING_LIBRARY")
    return path
