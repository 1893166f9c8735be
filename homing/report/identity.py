"""Is a file the one that ran? What tells one build of an object from another, and where its debug information
lies when it is not in it."""

from __future__ import annotations

import os
from typing import Any

#: Where distributions put debug files, by build id.
DEBUG_FOLDER = "/usr/lib/debug/.build-id"
_BUILD_ID, _FILE = "build-id ", "file "


def build_id(elf: Any) -> str:
    """The GNU build id of an open ELF file (pyelftools), in hexadecimal digits; empty where it has none."""
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    section = elf.get_section_by_name(".note.gnu.build-id")  # of a debug file, whose segments are empty
    if section is not None and section["sh_type"] != "SHT_NOBITS":
        for note in section.iter_notes():
            return str(note["n_desc"])
    return ""


def difference(path: str, elf: Any, identity: str, start: float) -> str:
    """Why the file at `path`, open as `elf`, is not the one that a record tells of; empty where it is, as
    far as can be known.

    identity: the record's (docs/record.md), empty where it has none. start: of the run, in seconds since
    1970; 0: not known.
    """
    if identity.startswith(_BUILD_ID):
        own = build_id(elf)
        return "" if own == identity.removeprefix(_BUILD_ID) else "build-id differs"
    status = os.stat(path)
    if identity.startswith(_FILE):
        size, _, changed = identity.removeprefix(_FILE).partition(" ")
        if str(status.st_size) != size:
            return "no build-id, and the size differs"
        return "" if str(status.st_mtime_ns) == changed else "no build-id, and the time of change differs"
    return "it was changed after the start" if 0 < start < status.st_mtime - 1 else ""


def debug_files(path: str, identity: str, elf: Any) -> list[tuple[str, int | None]]:
    """Files that may hold an object's debug information, and the checksum that each must have (None: the
    build id is in its name): by build id, then by .gnu_debuglink (GDB manual, section 18.3). elf: None
    where the object itself is not there."""
    found: list[tuple[str, int | None]] = []
    build = build_id(elf) if elf is not None else identity.removeprefix(_BUILD_ID)
    if build and (elf is not None or identity.startswith(_BUILD_ID)):
        found.append((os.path.join(DEBUG_FOLDER, build[:2], build[2:] + ".debug"), None))
    link = elf.get_section_by_name(".gnu_debuglink") if elf is not None else None
    if link is not None:
        data = link.data()
        name = os.fsdecode(data.split(b"\0")[0])
        checksum = int.from_bytes(data[-4:], "little" if elf.little_endian else "big")
        folder = os.path.dirname(os.path.abspath(path))
        places = (folder, os.path.join(folder, ".debug"), os.path.join("/usr/lib/debug", folder.lstrip("/")))
        found += [(os.path.join(place, name), checksum) for place in places]
    return [(file, checksum) for file, checksum in found if os.path.isfile(file)]


def belongs(file: str, debug: Any, elf: Any, checksum: int | None) -> bool:
    """Is a debug file, open as `debug`, that of an object? By both build ids, else by the link's checksum."""
    if elf is not None:
        own, other = build_id(elf), build_id(debug)
        if own and other:
            return own == other
    if checksum is None:
        return True
    import zlib

    value = 0
    with open(file, "rb") as data:
        while piece := data.read(1 << 20):
            value = zlib.crc32(piece, value)
    return value == checksum
