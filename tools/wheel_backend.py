"""The build backend of the wheel (pyproject.toml): scikit-build-core, and then a platform tag that says which
C library the wheel needs.

scikit-build-core tags a wheel for "linux", which says nothing: pip would install it where the loader then
refuses the library. manylinux_2_N means glibc 2.N or newer and no library but those that every Linux has
(PEP 600). N is read from the symbols that the compiled parts need, so it may be lower than the glibc of the
machine that builds.
"""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from scikit_build_core import build as backend
from scikit_build_core.build import *  # noqa: F403 (the interface of PEP 517 and 660)

#: Libraries of PEP 600 that may be needed from outside of the wheel; those of glibc.
_EVERYWHERE = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux")


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """As scikit-build-core's; the name of the wheel, tagged anew."""
    name = backend.build_wheel(wheel_directory, config_settings, metadata_directory)
    version = glibc_needed(os.path.join(wheel_directory, name))
    if version is None:
        return name
    tag = f"manylinux_{version[0]}_{version[1]}_{platform.machine()}"
    done = subprocess.run(
        [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, name],
        cwd=wheel_directory,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.split()[-1]


def glibc_needed(wheel: str) -> tuple[int, int] | None:
    """The lowest glibc that all compiled parts of a wheel run with; None where they need another library, for
    which there is no tag."""
    needed = (2, 17)  # the oldest that has a tag in use
    for elf in _compiled(wheel):
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                libraries = [tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
                if not all(one.startswith(_EVERYWHERE) for one in libraries):
                    return None
            if isinstance(section, GNUVerNeedSection):
                names = [version.name for _, versions in section.iter_versions() for version in versions]
                for one in (name for name in names if name.startswith("GLIBC_2.")):
                    major, minor = one.removeprefix("GLIBC_").split(".")[:2]
                    needed = max(needed, (int(major), int(minor)))
    return needed


def _compiled(wheel: str) -> Iterator[ELFFile]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if data.startswith(b"\x7fELF"):
                try:
                    yield ELFFile(io.BytesIO(data))
                except ELFError as error:
                    raise SystemExit(f"{wheel}: {name}: {error}") from error
