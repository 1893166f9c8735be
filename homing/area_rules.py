"""--areas: rules by the names that the summary prints (docs/names.md).

The library knows symbols, and blocks by the instruction that allocated them. What a rule says of variables
and source lines is looked up here, before the program starts, in the debug information of the program and its
libraries: the library gets ranges of code and data for each rule (HOMING_AREA_CODE,
src/areas/area_filter.hpp).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from homing.elf import read_elf
from homing.late import pattern
from homing.values import dataclass, field

if TYPE_CHECKING:
    from homing.report.dwarf import LineRange, ObjectInfo
    from homing.report.results import Results

#: What the library gets at the most: one variable of the environment.
_MOST_BYTES = 100 << 10
#: Seconds for debug information before the start.
BUDGET = 20.0
_MOST_CONDITIONS = 32
#: Names that are told to those who look for another one.
_MOST_NAMES = 12
_LINE = pattern(r"\(([^()\s]+:\d+)\)")
_NOT_THE_PROGRAMS = pattern(r"^/usr/(local/)?(include|lib)/|/include/c\+\+/|/lib/gcc/")
_FORTRAN = pattern(r"(?i)\.(f|for|ftn|f77|f90|f95|f03|f08|f18)$")


def split_rules(text: str) -> list[str]:
    """The rules of --areas; commas within brackets are part of a name."""
    rules, depth, rule = [], 0, ""
    for letter in text:
        depth += letter in "<([" or -(letter in ">)]" and depth > 0)
        if letter == "," and depth == 0:
            rules.append(rule)
            rule = ""
        else:
            rule += letter
    return [*rules, rule]


def are_rules(text: str) -> bool:
    """Is every rule include=GLOB or exclude=GLOB?"""
    return all(re.fullmatch(r"(include|exclude)=.+", rule) for rule in split_rules(text))


def nearest(pattern: str, names: Iterable[str], most: int = 4) -> list[str]:
    """The names that are most like one that there is not; where none is like it, the first ones."""
    import difflib

    known = list(dict.fromkeys(name for name in names if name and not name.startswith("_")))
    shorter = {name.partition(" (")[0].rpartition("::")[2].lower(): name for name in reversed(known)}
    close = difflib.get_close_matches(pattern.lower(), shorter, most, 0.5)
    return [shorter[name] for name in close] or known[:most]


def no_array(asked: str, known: Iterable[str]) -> str:
    """What is said to somebody who asks for an array that there is not."""
    names = sorted(set(known))
    first = nearest(asked, names)
    shown = [*first, *(name for name in names if name not in first)]
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return f"there is no array {asked}; there are {', '.join(shown[:_MOST_NAMES]) or 'none'}{more}"


def rule_notes(results: Results, others: Callable[[], Sequence[str]]) -> list[str]:
    """What became of the rules: the nearest names for one that met nothing, and how many areas one met that
    has several. others: names that the program has besides those of the records' areas; asked where they are
    needed."""
    met: dict[str, int] = {}
    for process in results.processes:
        for rule in process.record.rules:
            met[rule.text] = met.get(rule.text, 0) + rule.areas
    notes = []
    for text, areas in met.items():
        pattern = text.partition("=")[2]
        if areas > 1:
            notes.append(f"--areas {text}: {areas:,} areas")
        elif areas == 0:
            areas_there = [area.name for process in results.processes for area in process.areas]
            names = [name.variable or name.title for name in areas_there]
            names += others()
            left_out = "left out by --areas: "
            for process in results.processes:
                said = [one.what for one in process.record.unwatched]
                names += [what.removeprefix(left_out) for what in said if what.startswith(left_out)]
            close = nearest(wanted(pattern).variable or pattern, names)
            if close:
                notes.append(f"--areas {text}: there is no such name; the nearest are {', '.join(close)}")
    return notes


@dataclass(frozen=True)
class Wanted:
    """What a rule asks for: a variable (a glob; empty: any), and lines (file:line) that all have to be
    among the calls; none: any line."""

    variable: str
    lines: tuple[str, ...] = ()

    def is_variable(self, name: str, file: str = "") -> bool:
        """Is it this one, or its last component?"""
        from homing.report.statements import last_component

        flags = re.IGNORECASE if _FORTRAN.search(file) else 0
        shape = re.escape(self.variable).replace(r"\*", ".*").replace(r"\?", ".")
        return any(re.fullmatch(shape, one, flags) for one in (name, last_component(name)))


def wanted(pattern: str) -> Wanted:
    """A rule's pattern: a name or title as the summary has it, or file:line."""
    if re.fullmatch(r"[^\s()*?]+\.\w+:\d+", pattern):
        return Wanted("", (pattern,))
    lines = tuple(_LINE.findall(pattern))[:_MOST_CONDITIONS]
    if not lines:
        return Wanted(pattern)
    head = pattern[: pattern.index(f"({lines[0]})")].strip()
    # "pressure: grid (two.c:4)" is a variable and a function, "u (a.c:3)" the one or the other.
    return Wanted(head.partition(": ")[0], lines)


@dataclass
class _Object:
    info: ObjectInfo
    key: str  # as the library knows it
    ranges: dict[str, dict[int, list[LineRange]]] = field(default_factory=dict)


def area_code(rules: str, command: Sequence[str], tell: Callable[[str], None]) -> str:
    """HOMING_AREA_CODE for these rules; empty where they name no source. tell: what the user should know."""
    deadline = time.monotonic() + BUDGET
    patterns = [wanted(text.partition("=")[2]) for text in split_rules(rules)]
    parts = []
    for one in _objects(command, deadline):
        lines = []
        for number, rule in enumerate(patterns):
            for condition, found in enumerate(_conditions(one, rule)):
                lines += [f"{number:x} {condition:x} {begin:x} {end:x}" for begin, end in sorted(found)]
        if one.info.late:
            name = os.path.basename(one.info.path)
            tell(f"--areas: the debug information of {name} was not read to its end, to save time")
        if lines:
            parts += [f"object {one.key}", *dict.fromkeys(lines)]
    text = "\n".join(parts)
    if len(text) > _MOST_BYTES:
        tell("--areas: the rules match too many source lines: only symbols are compared")
        return ""
    return text


def known_variables(command: Sequence[str]) -> list[str]:
    """The variables that the program's statements allocate, as far as debug information tells: for those
    who look for another name."""
    names: list[str] = []
    deadline = time.monotonic() + BUDGET / 4
    for one in _objects(command, deadline):
        names += [variable.name for variable in one.info.variables().values()]
        for file, lines in one.ranges.items():
            for line in lines:
                if time.monotonic() < deadline:
                    names += [name for found in _names(file, line) for name in found]
    return list(dict.fromkeys(names))


def _objects(command: Sequence[str], deadline: float) -> list[_Object]:
    """The started program, or what a launcher (mpirun, a shell) is given to start, and the libraries that it
    names, as far as they are not the system's."""
    from homing.launch import find_command
    from homing.report.dwarf import ObjectInfo

    paths: list[str] = []
    for number, word in enumerate(command):
        try:
            path = find_command(word) if number == 0 or "/" in word else word
        except Exception:
            continue
        if os.path.isfile(path) and read_elf(path) is not None:
            paths.append(os.path.realpath(path))
    for path in paths:
        paths += [library for library in _libraries(path) if library not in paths]
    objects = []
    for path in dict.fromkeys(paths):
        info = ObjectInfo(path, deadline)
        if not info.has_lines:
            continue
        key = f"build-id {info.build_id}" if info.build_id else os.path.basename(path)
        one = _Object(info, key)
        with contextlib.suppress(Exception):  # damaged: what was read so far
            for found in info.line_ranges(lambda file: not _NOT_THE_PROGRAMS.search(file)):
                one.ranges.setdefault(found.file, {}).setdefault(found.line, []).append(found)
            info.variables()
            objects.append(one)
    return objects


def _libraries(path: str) -> list[str]:
    """The libraries that an object needs, where they lie in its own folders or those of LD_LIBRARY_PATH."""
    from elftools.elf.elffile import ELFFile

    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    names: list[str] = []
    try:
        with open(path, "rb") as file:
            dynamic: Any = ELFFile(file).get_section_by_name(".dynamic")
            for tag in dynamic.iter_tags() if dynamic is not None else ():
                if tag.entry.d_tag == "DT_NEEDED":
                    names.append(tag.needed)
                elif tag.entry.d_tag in ("DT_RUNPATH", "DT_RPATH"):
                    text = getattr(tag, "runpath", "") or getattr(tag, "rpath", "")
                    folders += text.replace("${ORIGIN}", "$ORIGIN").split(":")
    except Exception:  # pyelftools raises of many kinds on damaged files
        return []
    own = os.path.dirname(path)
    found = []
    for name in names:
        for folder in folders:
            library = os.path.join(folder.replace("$ORIGIN", own), name)
            if folder and os.path.isfile(library):
                found.append(os.path.realpath(library))
                break
    return found


def _conditions(one: _Object, pattern: Wanted) -> list[set[tuple[int, int]]]:
    """The ranges for each condition of a pattern, as offsets from the first mapped page."""
    if not pattern.lines:
        found = _of_variable(one, pattern) | _of_data(one, pattern)
        return [found] if found else _of_member(one, pattern)
    conditions = []
    for where in pattern.lines:
        base, _, line = where.rpartition(":")
        found = set()
        for file, lines in one.ranges.items():
            if os.path.basename(file) == base or file == base or file.endswith("/" + base):
                found |= _calls(one, file, int(line), lines.get(int(line), []), pattern)
        conditions.append(found | _of_data(one, pattern))
    return conditions if any(conditions) else []


def _of_data(one: _Object, pattern: Wanted) -> set[tuple[int, int]]:
    """Arrays with a fixed address: by name and line, and members of COMMON blocks by name."""
    found = set()
    for address, variable in one.info.variables().items():
        names = [variable.name, *(member.name for member in variable.members)]
        where = f"{os.path.basename(variable.file)}:{variable.line}"
        named = not pattern.variable or any(pattern.is_variable(name, variable.file) for name in names)
        titled = pattern.lines and pattern.variable.rpartition("::")[2] == variable.name
        if (named or titled) and (not pattern.lines or pattern.lines == (where,)):
            found.add((address, address + 1))
    return found


def _of_variable(one: _Object, pattern: Wanted) -> set[tuple[int, int]]:
    """Code of the statements that give a variable what they allocate."""
    from homing.report.statements import source_text

    found: set[tuple[int, int]] = set()
    literal = max(re.split(r"[*?]|%|->|\.|::|[()\[\]]", pattern.variable), key=len).lower()
    for file, lines in one.ranges.items():
        if literal not in source_text(file).lower():
            continue
        for line, ranges in lines.items():
            if _named(file, line, pattern):
                found |= _calls(one, file, line, ranges, pattern)
    return found


def _of_member(one: _Object, pattern: Wanted) -> list[set[tuple[int, int]]]:
    """What the constructor of a variable gives to a member (s.work): the code of the variable's statements,
    and that of the member's."""
    head, dot, member = pattern.variable.rpartition(".")
    conditions = [_of_variable(one, Wanted(part)) for part in (head, member) if dot and part]
    return conditions if len(conditions) == 2 and all(conditions) else []


def _names(file: str, line: int) -> list[list[str]]:
    """The variables that the statement of a line may give something allocated: for each function that it
    calls."""
    from homing.report.statements import statement, variables

    text = statement(file, line).text
    callees = dict.fromkeys(["", *re.findall(r"([A-Za-z_]\w*)\s*(?:<[^<>]*>)?\s*\(", text)])
    return [names for callee in callees if (names := variables(text, callee))]


def _named(file: str, line: int, pattern: Wanted) -> bool:
    return any(pattern.is_variable(name, file) for names in _names(file, line) for name in names)


def _calls(
    one: _Object, file: str, line: int, ranges: list[LineRange], pattern: Wanted
) -> set[tuple[int, int]]:
    """Code of a line; where it has calls for several variables, that for the one that is wanted."""
    every = {(found.begin, found.end) for found in ranges}
    if not pattern.variable:
        return every
    for names in _names(file, line):
        chosen = [at for at, name in enumerate(names) if pattern.is_variable(name, file)]
        if not chosen or len(chosen) == len(names):
            continue
        calls = one.info.calls([(found.begin, found.end) for found in ranges if not found.callee[0]])
        # Calls of one function, as many as there are variables (or that in each copy of the code): one for
        # each.
        one_each = [ends for ends in calls if len(ends) % len(names) == 0]
        if one_each:
            return {
                (end - 1, end)
                for ends in one_each
                for number, end in enumerate(ends)
                if number % len(names) in chosen
            }
        inlined: dict[tuple[str, int], dict[int, list[LineRange]]] = {}
        for found in ranges:
            if found.callee[0]:
                inlined.setdefault(found.callee, {}).setdefault(found.entry, []).append(found)
        told = False
        of_inlined = set()
        for entries in inlined.values():
            several = len(entries) % len(names) == 0
            told |= several
            for number, entry in enumerate(sorted(entries)):
                if not several or number % len(names) in chosen:
                    of_inlined |= {(part.begin, part.end) for part in entries[entry]}
        if told:
            return of_inlined
    return every
