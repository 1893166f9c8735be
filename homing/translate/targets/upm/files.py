"""The other files of a program of which a build compiles one file at a time.

The time loop, the parallel constructs in it and the arrays' modules often lie in files of their own. What a
file uses or calls and none of the given ones defines is looked for in the other sources of their folder, and
so is the main program that leads to it. The files that are found are read, never written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from homing.errors import UserError
from homing.files import MOST_SOURCE, read_text
from homing.translate.directives import scanner
from homing.translate.directives.model import Form

#: A folder with more sources holds more than one program.
_MOST_FILES = 400
_PREFIX = (
    r"(?:(?:pure|impure|elemental|recursive|non_recursive|module|double\s*precision|double\s*complex|"
    r"(?:integer|real|complex|logical|character|type)(?:\s*\*\s*\d+|\s*\([^()]*(?:\([^()]*\)[^()]*)*\))?)\s+)*"
)
_DEFINED = re.compile(
    rf"^[ \t]*{_PREFIX}(program|module|subroutine|function)[ \t]+(?!procedure\b)(\w+)", re.MULTILINE | re.I
)
_USED = re.compile(r"\buse\b\s*(?:,\s*\w+\s*)?(?:::)?\s*(\w+)|\bcall\s+(\w+)|\b(\w+)\s*\(", re.I)
_DEFINED_IN_C = re.compile(
    r"^[A-Za-z_][\w \t*]*?\b(\w+)[ \t]*\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)\s*\{", re.MULTILINE
)
_NO_CODE_IN_C = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
_NO_CODE = re.compile(r"![^\n]*")
_FIXED_COMMENT = re.compile(r"^[cC*][^\n]*", re.MULTILINE)


@dataclass
class _File:
    """What a source defines, and the names that it uses or calls."""

    path: str
    main: bool = False
    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


@dataclass
class Others:
    """Files to be read beside the given ones, and what the user should know of how they were found."""

    paths: list[str] = field(default_factory=list)
    main: bool = False  # is the main program among the given ones?
    told: bool = True  # is no other command to tell what is found, that of the main program?
    lines: list[str] = field(default_factory=list)


def others_of(given: Sequence[str]) -> Others:
    """The rest of the program that the given files belong to, as far as it lies beside them."""
    files = {os.path.normpath(path): one for path in given if (one := _read(path)) is not None}
    known = dict(files)
    for folder in dict.fromkeys(os.path.dirname(path) or "." for path in files):
        for path in _sources(folder):
            if path not in known and (one := _read(path)) is not None:
                known[path] = one
    search = _Search(known, set(files))
    found = search.closure(files)
    result = Others()
    result.main = any(files[path].main for path in files)
    if not result.main:
        programs = {path: search.closure([path]) for path, one in known.items() if one.main}
        mine = {path: reached for path, reached in programs.items() if set(files) & reached}
        if len(mine) == 1:
            found |= next(iter(mine.values()))
        elif len(mine) > 1:
            names = ", ".join(sorted(mine))
            result.lines.append(f"upm: {', '.join(given)}: part of several programs ({names}): read alone")
        result.told = len(mine) != 1
    for name in sorted(search.ambiguous):
        result.lines.append(f"upm: {name} is defined by several files beside this one: not followed")
    result.paths = sorted(found - set(files))
    return result


class _Search:
    def __init__(self, known: dict[str, _File], given: set[str]) -> None:
        self.known = known
        self.given = given
        self.places: dict[str, list[str]] = {}
        self.ambiguous: set[str] = set()
        for path, one in known.items():
            for name in one.defined:
                self.places.setdefault(name, []).append(path)

    def closure(self, start: Iterable[str]) -> set[str]:
        """The files, those that define what they use, and so on."""
        found = set(start)
        waiting = list(found)
        while waiting:
            for name in sorted(self.known[waiting.pop()].used):
                place = None if any(name in self.known[path].defined for path in found) else self._place(name)
                if place is not None and place not in found:
                    found.add(place)
                    waiting.append(place)
        return found

    def _place(self, name: str) -> str | None:
        """The file that defines a name: a given one, the only one, the one that is named after it, or the one
        of which the others are variants by their names (solve.f, solve_blk.f)."""
        places = self.places.get(name, [])
        stems = {path: os.path.splitext(os.path.basename(path))[0].lower() for path in places}
        for chosen in (
            [path for path in places if path in self.given],
            places,
            [path for path in places if stems[path] == name.lower()],
            [path for path in places if all(stem.startswith(stems[path]) for stem in stems.values())],
        ):
            if len(chosen) == 1:
                return chosen[0]
        if len(places) > 1:
            self.ambiguous.add(name)
        return None


def _sources(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.normpath(os.path.join(folder, name)) for name in names]
    found = [
        path
        for path in paths
        if scanner.form_of(path) is not None and not path.endswith(".h") and os.path.isfile(path)
    ]
    return found if len(found) <= _MOST_FILES else []


def _read(path: str) -> _File | None:
    form = scanner.form_of(path)
    if form is None:
        return None
    try:
        text = read_text(path, MOST_SOURCE, errors="surrogateescape")
    except UserError:
        return None
    return _in_c(path, text) if form is Form.C else _in_fortran(path, text, form)


def _in_fortran(path: str, text: str, form: Form) -> _File:
    if form is Form.FIXED:
        text = _FIXED_COMMENT.sub("", text)
    text = _NO_CODE.sub("", text).lower()
    made = _File(path)
    for kind, name in _DEFINED.findall(text):
        made.defined.add(name)
        made.main |= kind == "program"
    made.used = {name for names in _USED.findall(text) for name in names if name} - made.defined
    return made


def _in_c(path: str, text: str) -> _File:
    text = _NO_CODE_IN_C.sub("", text)
    made = _File(path, defined=set(_DEFINED_IN_C.findall(text)))
    made.main = "main" in made.defined
    made.defined.discard("main")
    made.used = {found[1] for found in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", text)} - made.defined
    return made
