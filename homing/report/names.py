"""Names of areas for people: an array's name, or the source line that allocated a block, and the members of a
COMMON block. What DWARF knows is used where it is there; otherwise symbol and offset, and a remark how to get
more."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from homing.record_rows import Area
from homing.report.dwarf import Member, ObjectInfo, Place

#: Frames in these, and in the headers below, are the allocator and the containers: whoever called them is the
#: place that counts.
_LIBRARY = re.compile(
    r"/(libc|libstdc\+\+|libc\+\+|libgfortran|libgomp|libomp|libm|libhoming|ld-linux[^/]*)[.-][^/]*$"
)
#: What the summary's table has room for beside four nodes.
TITLE = 36
_HEADERS = re.compile(r"^/usr/(local/)?(include|lib)/|/include/c\+\+/|/lib/gcc/")


@dataclass(frozen=True)
class AreaName:
    """title: what the summary prints. file, line, function: where it is declared or was allocated, if
    known."""

    title: str
    function: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    members: tuple[Member, ...] = ()

    @property
    def short(self) -> str:
        """The title without the text of the source line."""
        return re.sub(r"^(\S+:\d+)  .*?( \[\d+ of \d+\])?$", r"\1\2", self.title)

    def numbered(self, number: int, count: int) -> AreaName:
        """The name of one of several blocks that one statement allocates."""
        which = f" [{number} of {count}]"
        room = TITLE - len(self.short) - len(which) - 2
        text = f"  {shortened(self.text, room)}" if room >= 8 else ""
        return replace(self, title=f"{self.short}{text}{which}" if self.text else f"{self.title}{which}")


class Namer:
    """Names areas; opens each object once. budget: seconds for DWARF in all, None for no limit."""

    def __init__(self, budget: float | None = None, progress: Callable[[str], None] | None = None) -> None:
        #: The program of the record that is being named: the dynamic loader knows it by argv[0] only.
        self.program = ""
        self._objects: dict[str, ObjectInfo] = {}
        self._deadline = None if budget is None else time.monotonic() + budget
        self._progress = progress
        self._without: dict[str, str] = {}

    def remarks(self) -> list[str]:
        """How to get the names that are missing."""
        return list(dict.fromkeys(f"{os.path.basename(path)}: {why}" for path, why in self._without.items()))

    def name(self, area: Area) -> AreaName:
        """The name of an area."""
        if area.kind == "static" and area.name:
            return self._declared(area)
        if area.kind == "heap" and area.origin:
            return self._allocated(area)
        what = area.name or ("data" if area.kind == "segment" else f"{area.kind} area at {area.begin:#x}")
        inside = area.kind == "segment" and area.object
        return AreaName(f"{what} of {os.path.basename(area.object)}" if inside else what)

    def place(self, path: str, offset: int) -> Place | None:
        """Where the call before a return address comes from: the user's line that stands for it, if any."""
        return self._own_place(self._object(path), offset) if path else None

    def _own_place(self, info: ObjectInfo, offset: int) -> Place | None:
        """The innermost place of the call before a return address that is not the containers'; where there is
        none, the function that the call lies in."""
        offset -= 1  # a return address is the instruction after the call
        lines = (place for place in info.places_at(offset) if place.line)
        own = next((place for place in lines if not _HEADERS.search(place.file)), None)
        return own or info.place_at(offset)

    def _object(self, path: str) -> ObjectInfo:
        if (
            self.program
            and not os.path.isabs(path)
            and os.path.basename(path) == os.path.basename(self.program)
        ):
            path = self.program
        if path not in self._objects:
            late = self._deadline is not None and time.monotonic() > self._deadline
            self._objects[path] = ObjectInfo(path, None if late else self._deadline, late, self._progress)
        info = self._objects[path]
        if info.reason:
            self._without.setdefault(info.path, info.reason)
        return info

    def _declared(self, area: Area) -> AreaName:
        if not area.object:
            return AreaName(area.name)
        info = self._object(area.object)
        found = info.variable(area.name)
        if found is None:
            self._note(info)
            return AreaName(area.name)
        return AreaName(
            area.name,
            found.function,
            found.file,
            found.line,
            source_line(found.file, found.line),
            found.members,
        )

    def _allocated(self, area: Area) -> AreaName:
        places: list[tuple[str, int, Place | None]] = []
        for path, offset in area.origin:
            place = None if _LIBRARY.search(path) else self._own_place(self._object(path), offset)
            places.append((path, offset, place))
            if place is not None and place.line and not _HEADERS.search(place.file):
                text = source_line(place.file, place.line)
                where = f"{os.path.basename(place.file)}:{place.line}"
                function = f" in {place.function}" if place.function and not text else ""
                title = f"{where}  {shortened(text)}" if text else f"{where}{function}"
                return AreaName(title, place.function, place.file, place.line, text)
        own = [entry for entry in places if not _LIBRARY.search(entry[0])] or places
        path, offset, place = next((entry for entry in own if entry[2] is not None), own[0])
        if not _LIBRARY.search(path):
            self._note(self._object(path))
        function = place.function if place is not None else ""
        # The library's own name of the block, the one that --areas knows.
        title = area.name or f"heap@{os.path.basename(path)}+{offset:#x}"
        return AreaName(f"{title} in {function}" if function and function not in title else title, function)

    def _note(self, info: ObjectInfo) -> None:
        if not info.has_lines:
            missing = "no source lines in it; compile with -g to see names of blocks and members"
            self._without.setdefault(info.path, missing)


def shortened(text: str, most: int = 32) -> str:
    """The beginning of a text that is too long for a table."""
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."


def source_line(file: str, line: int) -> str:
    """The text of a source line without its comment; empty where the source is not there."""
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            for number, text in enumerate(source, start=1):
                if number == line:
                    short = " ".join(text.split("//")[0].split())
                    return "".join(c if c.isprintable() else "?" for c in short[:200])
    except OSError:
        pass
    return ""
