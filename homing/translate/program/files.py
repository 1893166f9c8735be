"""The other files of a program of which a build compiles one file at a time.

Distributed arrays, the procedures that get them, time loops and parallel constructs often lie in files of
their own. What a file uses or calls and none of the given ones defines is looked for in the other sources
of the project, the nearest first, and so are the main programs that lead to it. The files that are found
are read, never written.

The project is what HOMING_SOURCES names (folders, separated by colons); else all below the folder in which
the build runs, if the file lies there; else all below the outermost folder around the file that has a
Makefile or the like. Where that is too much, it is the file's own folder. A wrong guess costs time, not
truth: the command that links knows which files the program is made of (link.py).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from homing.errors import UserError
from homing.files import MOST_SOURCE, read_text
from homing.translate.directives import scanner
from homing.translate.directives.model import Form

#: A folder with more sources holds more than one program.
_MOST_FILES = 400
#: How far above a file its project's folder may be, and how many folders a project has.
_MOST_LEVELS = 6
_MOST_FOLDERS = 2_000
_BUILD_FILES = (
    "Makefile", "makefile", "GNUmakefile", "CMakeLists.txt", "configure", "meson.build", "fpm.toml",
)  # fmt: skip
#: What the translation writes beside a translated program: the folder holds no sources of the user's.
_WRITTEN = "homing_parts.c"
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
    modules: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


@dataclass
class Others:
    """Files to be read beside the given ones, and what the user should know of how they were found."""

    paths: list[str] = field(default_factory=list)
    main: bool = False  # is the main program among the given ones?
    told: bool = True  # is no other command to tell what is found, that of the main program?
    lines: list[str] = field(default_factory=list)


def others_of(given: Sequence[str], every_program: bool = False) -> Others:
    """The rest of the program that the given files belong to, as far as it lies in the project.
    every_program: where several programs share the files, the rest of all of them."""
    read = {path: _read(path) for path in map(os.path.abspath, given)}
    files = {path: one for path, one in read.items() if one is not None}
    known = dict(files)
    for path in dict.fromkeys(path for file in files for path in sources_around(file)):
        if path not in known and (one := _read(path)) is not None:
            known[path] = one
    search = _Search(known, set(files))
    found = search.closure(files)
    result = Others()
    result.main = any(files[path].main for path in files)
    if not result.main:
        programs = {path: search.closure([path]) for path, one in known.items() if one.main}
        mine = {path: reached for path, reached in programs.items() if set(files) & reached}
        beside = {path for path in mine if os.path.dirname(path) in {os.path.dirname(file) for file in files}}
        if len(beside) == 1 and not every_program:
            mine = {path: mine[path] for path in beside}
        if len(mine) == 1 or every_program:
            found = found.union(*mine.values())
        elif len(mine) > 1:
            names = ", ".join(os.path.relpath(path) for path in sorted(mine))
            result.lines.append(f"upm: {', '.join(given)}: part of several programs ({names}): read alone")
        if not mine and every_program:
            found |= search.users(files)
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
        defined = {name for path in found for name in self.known[path].defined}
        waiting = sorted(found)
        while waiting:
            user = waiting.pop()
            for name in sorted(self.known[user].used - defined):
                place = self._place(name, user)
                if place is not None and place not in found:
                    found.add(place)
                    defined |= self.known[place].defined
                    waiting.append(place)
        return found

    def users(self, start: Iterable[str]) -> set[str]:
        """The files that lead to one of these, with what they use."""
        found, known = set(start), -1
        while known != (known := len(found)):
            defined = {name for path in found for name in self.known[path].defined}
            found |= {path for path, one in self.known.items() if one.used & defined}
        return self.closure(found)

    def _place(self, name: str, user: str) -> str | None:
        """The file that defines a name: a given one, the nearest one, the one that is named after it, or the
        one of which the others are variants by their names (solve.f, solve_blk.f)."""
        every = self.places.get(name, ())
        near = [len(os.path.commonpath([user, path])) for path in every]
        places = [path for path, how in zip(every, near, strict=True) if how == max(near)]
        stems = {path: os.path.splitext(os.path.basename(path))[0].lower() for path in places}
        for chosen in (
            [path for path in every if path in self.given],
            places,
            [path for path in places if stems[path] == name.lower()],
            [path for path in places if all(stem.startswith(stems[path]) for stem in stems.values())],
        ):
            if len(chosen) == 1:
                return chosen[0]
        if len(places) > 1:
            self.ambiguous.add(name)
        return None


def order_of_modules(paths: Sequence[str]) -> list[str]:
    """The files, those first whose modules others use."""
    known = {path: one for path in sorted(set(paths)) if (one := _read(path)) is not None}
    waiting = [path for path in sorted(set(paths)) if path in known]
    found = [path for path in sorted(set(paths)) if path not in known]
    while waiting:
        free = [
            path
            for path in waiting
            if not any(known[path].used & known[other].modules for other in waiting if other != path)
        ]
        found += free or waiting
        waiting = [path for path in waiting if path not in found]
    return found


def sources_around(path: str) -> list[str]:
    """The sources of the project that a file belongs to, or those of its folder."""
    folder = os.path.dirname(path)
    if stated := os.environ.get("HOMING_SOURCES", ""):
        named = [os.path.abspath(one) for one in stated.split(":") if one]
        return [source for one in named for source in _below(one) or ()]
    for place in _projects(folder):
        found = _below(place)
        if found is not None:
            return found
    return _sources(folder)


def _projects(folder: str) -> Iterator[str]:
    """The folders that may be the project's, the most likely one first."""
    above = [folder]
    while len(above) <= _MOST_LEVELS and not _outside(parent := os.path.dirname(above[-1])):
        above.append(parent)
        if os.path.exists(os.path.join(parent, ".git")):
            break
    here = os.path.commonpath([folder, os.getcwd()])
    marked = [one for one in above if any(os.path.exists(os.path.join(one, name)) for name in _BUILD_FILES)]
    yield from sorted({*marked[-1:], *(one for one in above if one == here)}, key=len)


def _outside(folder: str) -> bool:
    """Nobody's project: the root, homes, and folders that all may write to."""
    if folder == os.path.dirname(folder) or folder == os.path.expanduser("~"):
        return True
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _below(top: str) -> list[str] | None:
    """The sources in a folder and those below it; None: there are too many."""
    found: list[str] = []
    for folders, (folder, inner, names) in enumerate(os.walk(top)):
        inner[:] = [one for one in sorted(inner) if not one.startswith(".") and one != "CMakeFiles"]
        if _WRITTEN not in names:
            found += [os.path.join(folder, name) for name in sorted(names) if _is_source(name)]
        if len(found) > _MOST_FILES or folders > _MOST_FOLDERS:
            return None
    return [path for path in found if os.path.isfile(path)]


def _is_source(name: str) -> bool:
    return scanner.form_of(name) is not None and not name.endswith((".h", ".hh", ".hpp", ".hxx"))


def _sources(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names if _is_source(name)]
    found = [path for path in paths if os.path.isfile(path)]
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
        if kind == "module":
            made.modules.add(name)
    made.used = {name for names in _USED.findall(text) for name in names if name} - made.defined
    return made


def _in_c(path: str, text: str) -> _File:
    text = _NO_CODE_IN_C.sub("", text)
    definitions = [one for one in _DEFINED_IN_C.finditer(text) if not one[0].startswith("static")]
    made = _File(path, defined={one[1] for one in definitions})
    made.main = "main" in made.defined
    made.defined.discard("main")
    made.used = {found[1] for found in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", text)} - made.defined
    return made
