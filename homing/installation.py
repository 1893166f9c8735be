"""Where homing's own files are: in a wheel (all inside the package), below the prefix of `make install` (the
package is LIB/homing/python/homing), in a source tree with its build, or where the user says."""

from __future__ import annotations

import contextlib
import os
import sys

from homing.errors import UserError

PACKAGE = os.path.dirname(os.path.abspath(__file__))
#: Beside the package: the source tree, site-packages, or LIB/homing/python.
BESIDE = os.path.dirname(PACKAGE)


def _library_folders() -> list[str]:
    """Folders that may hold libhoming.so, in order."""
    found = [os.path.join(PACKAGE, "lib")]
    if _is_below_prefix():
        found.append(os.path.dirname(os.path.dirname(BESIDE)))
    return [*found, os.path.join(BESIDE, "build", "release")]


def _is_below_prefix() -> bool:
    return os.path.basename(BESIDE) == "python" and os.path.basename(os.path.dirname(BESIDE)) == "homing"


def _folders() -> list[str]:
    """Folders that may hold an executable or library of ours, in order."""
    found = []
    for library in _library_folders():
        # bin/ lies beside lib/, or one further up beside lib/ARCHITECTURE/.
        beside = [os.path.join(os.path.dirname(library), "bin")]
        if _is_below_prefix():
            beside.append(os.path.join(os.path.dirname(os.path.dirname(library)), "bin"))
        found += [library, os.path.join(library, "homing"), os.path.join(library, "lab"), *beside]
    return found


def find_binary(name: str) -> str | None:
    """An executable or library that was built with this package, or None."""
    paths = (os.path.join(folder, name) for folder in _folders())
    return next((path for path in paths if os.path.isfile(path)), None)


def find_library() -> str:
    """libhoming.so: HOMING_LIBRARY, else installed with this package, else in build/release of the tree."""
    stated = os.environ.get("HOMING_LIBRARY", "")
    if stated:
        if not os.path.isfile(stated):
            raise UserError(f"HOMING_LIBRARY={stated}: no such file")
        return os.path.abspath(stated)
    path = find_binary("libhoming.so")
    if path is None:
        places = " or ".join(_library_folders())
        raise UserError(f"libhoming.so is not in {places}: build it, or set HOMING_LIBRARY")
    return path


def find_page() -> str:
    """The folder with the report's page (report.js, report.css), which the build makes of web/."""
    folders = [os.path.join(PACKAGE, "report", "html", "page")]
    folders += [os.path.join(library, "generated", "page") for library in _library_folders()]
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "report.js")):
            return folder
    raise UserError("--html: this homing was built without its page: make build (needs npm's packages once)")


def find_launcher() -> str | None:
    """The native command `homing` (src/launcher), or None: of the tree's build, or beside this Python's."""
    places = [
        os.path.join(BESIDE, "build", "release", "launcher"),
        os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(BESIDE))), "bin"),
        os.path.dirname(sys.executable),
    ]
    for place in places:
        path = os.path.join(place, "homing")
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                return path
    return None


def find_headers() -> str | None:
    """The folder for -I in which homing/homing.h lies, where the compiler may not find it by itself."""
    places = [os.path.join(PACKAGE, "include"), os.path.join(BESIDE, "include")]
    if _is_below_prefix():
        up = os.path.dirname(os.path.dirname(BESIDE))
        places += [os.path.join(os.path.dirname(one), "include") for one in (up, os.path.dirname(up))]
    return next((one for one in places if os.path.isfile(os.path.join(one, "homing", "homing.h"))), None)


def find_fortran_module() -> str | None:
    """The folder for -I in which gfortran's homing.mod lies, or None where none was built or installed."""
    headers = find_headers()
    places = [os.path.join(headers, "homing", "fortran")] if headers else []
    places += [os.path.join(library, "fortran") for library in _library_folders()]
    return next((one for one in places if os.path.isfile(os.path.join(one, "homing.mod"))), None)


def find_callbacks() -> str:
    """The folder with the callbacks that `homing cc` links: HOMING_CALLBACKS, else built with it."""
    stated = os.environ.get("HOMING_CALLBACKS", "")
    folders = [stated] if stated else []
    for library in _library_folders():
        folders += [os.path.join(library, "homing", "callbacks"), os.path.join(library, "callbacks")]
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "libtsan.a")):
            return folder
    raise UserError(
        "the callbacks (callbacks/libtsan.a) were not built with this homing: build it, or set "
        "HOMING_CALLBACKS"
    )


def find_data(*names: str) -> str | None:
    """A file or folder that is installed inside the package and lies elsewhere in a source tree: the first of
    these paths (relative to the package or to the tree) that is there."""
    places = (os.path.join(root, name) for root in (PACKAGE, BESIDE) for name in names)
    return next((place for place in places if os.path.exists(place)), None)


def source_tree() -> str | None:
    """The source tree that this package is part of, or None where it is installed."""
    return BESIDE if os.path.isfile(os.path.join(BESIDE, "CMakeLists.txt")) else None


def python_path() -> str:
    """PYTHONPATH for a Python of ours that runs `-m homing`: where this package is, and the user's."""
    others = os.environ.get("PYTHONPATH", "")
    return f"{BESIDE}:{others}" if others else BESIDE
