"""Where code and arrays of a run come from: what its record keeps (homing/record_additions.py wrote it after
the run), else what the debug information of the same build says. What is of another build is never used."""

from __future__ import annotations

import os
import time

from homing.files import open_regular
from homing.light import loads
from homing.limits import TimeUp
from homing.record_format import named, printable, shown
from homing.record_rows import Area
from homing.records import Record
from homing.report.debug_facts import DAMAGED, Member, Variable
from homing.report.known_names import KnownNames
from homing.report.statements import Statement, statement
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from homing.report.dwarf import ObjectInfo

    T = TypeVar("T")

#: What reading JSON that somebody else may have written raises.
_UNSOUND = (ValueError, TypeError, LookupError, OverflowError, RecursionError)

#: `what` of a row `source` (src/record/rows.hpp).
CODE, DECLARATION = 1, 2
#: A further one, of what is kept from run to run only.
HAS_LINES = 3


@dataclass(frozen=True)
class Frame:
    """A call, or one that was inlined into it. line 0: only the function is known. text: the statement.
    returned: the function gives what the statement allocates to its caller. rank: of the calls of one
    function in the line, the number of this one and how many there are; None where it is not known or
    needed."""

    function: str
    file: str = ""
    line: int = 0
    text: str = ""
    returned: bool = False
    rank: tuple[int, int] | None = None


@dataclass(frozen=True)
class Declared:
    """A variable with a fixed address, and the statement that declares it."""

    variable: Variable
    text: str = ""


class Sources:
    """Answers for one record after the other (`begin`); opens each object once. budget: seconds for debug
    information in all, None for no limit. remember: use what earlier runs found, and keep what this one
    does."""

    def __init__(
        self,
        budget: float | None = None,
        progress: Callable[[str], None] | None = None,
        remember: bool = False,
    ) -> None:
        self._remember = remember
        self._known: KnownNames | None = None
        self._lines: dict[tuple[str, int, int], str] = {}
        self._deadline = None if budget is None else time.monotonic() + budget
        self._progress = progress
        self._objects: dict[tuple[str, str, float], ObjectInfo] = {}
        self._remarks: dict[str, str] = {}
        self._program = self._host = ""
        self._start = 0.0
        self._identities: dict[str, str] = {}
        self._kept: dict[tuple[str, int, int], str] = {}
        #: What was found in debug information, and is not in the record: JSON by object, what and offset.
        self.found: dict[tuple[str, int, int], str] = {}
        self._frames: dict[tuple[str, int], tuple[Frame, ...]] = {}
        self._used: set[str] = set()

    def begin(self, record: Record) -> None:
        """Answer for this record from here on."""
        self.program = record.program
        self._identities, self._kept = record.objects, record.sources
        self._start, self._host = record.start, record.host
        self._frames, self.found, self._used = {}, {}, set()
        self._lines = {}
        self._known = KnownNames.of(record) if self._remember else None

    def end(self) -> None:
        """The record that was begun has its names."""
        if self._known is not None:
            self._known.keep({**self.found, **self._lines})

    def _found_earlier(self, key: tuple[str, int, int]) -> str:
        """What an earlier run of this build found; it counts as found now."""
        text = self._known.found.get(key, "") if self._known is not None else ""
        if text:
            self.found[key] = text
        return text

    @property
    def program(self) -> str:
        """The program of the record: older ones, and simulated ones, know it by argv[0] only."""
        return self._program

    @program.setter
    def program(self, path: str) -> None:
        self._program = path

    def late(self) -> bool:
        """Was the time for debug information too short for some object?"""
        return any(info.late for info in self._objects.values())

    def remarks(self) -> list[str]:
        """Why names are missing, and how to get them; what is not of this build."""
        return list(dict.fromkeys(self._remarks.values()))

    def path(self, path: str) -> str:
        """The record's path of an object as it is known here."""
        same = os.path.basename(path) == os.path.basename(self._program)
        return self._program if self._program and same and not os.path.isabs(path) else path

    def frames(self, path: str, offset: int) -> tuple[Frame, ...]:
        """The call before a return address and those around it that were inlined, from the inside outwards;
        empty where nothing is known."""
        path = self.path(path)
        if (path, offset) not in self._frames:
            key = (path, CODE, offset)
            kept = _read_frames(self._kept.get(key, ""))
            if kept is not None:
                self._check_kept(path)
            else:
                known = _read_frames(self._found_earlier(key))
                kept = self._look_up(path, offset) if known is None else known
            self._frames[path, offset] = kept
        return self._frames[path, offset]

    def _read(self, info: ObjectInfo, read: Callable[[], T]) -> T | None:
        """What `read` finds in an object. None where the object is damaged: a run never loses its summary
        because one name cannot be resolved."""
        try:
            with info.limit():
                return read()
        except TimeUp:
            info.give_up()
        except Exception:  # pyelftools raises of many kinds on damaged files
            info.abandon(DAMAGED)
        finally:
            self._remark_reason(info)
        return None

    def _look_up(self, path: str, offset: int) -> tuple[Frame, ...]:
        info = self._object(path)
        return self._read(info, lambda: self._frames_of(info, path, offset)) or ()

    def _frames_of(self, info: ObjectInfo, path: str, offset: int) -> tuple[Frame, ...]:
        places = list(info.places_at(offset - 1))  # a return address is the instruction after the call
        frames = []
        for depth, place in enumerate(places):
            source = self._statement(info, place.file, place.line)
            rank = info.rank(offset, depth) if "," in source.text else None
            frames.append(Frame(place.function, place.file, place.line, source.text, source.returned, rank))
        if not (info.late or info.differs or info.reason):  # also that nothing is known
            self.found[path, CODE, offset] = _dumps(
                [
                    [one.function, named(one.file), one.line, one.text, one.returned, one.rank]
                    for one in frames
                ]
            )
        return tuple(frames)

    def declared(self, area: Area) -> Declared | None:
        """The declaration of a static array, a module array or a COMMON block; None where it is not known."""
        path = self.path(area.object)
        key = (path, DECLARATION, area.offset)
        kept = _read_declared(self._kept.get(key, "")) if area.offset else None
        if kept is not None:
            self._check_kept(path)
            return kept
        known = _read_declared(self._found_earlier(key)) if area.offset else None
        if known is not None:
            return known
        info = self._object(path)
        variable = self._read(
            info,
            lambda: info.variable_at(area.offset, area.bytes) if area.offset else info.variable(area.name),
        )
        if variable is None:
            return None
        found = Declared(variable, self._statement(info, variable.file, variable.line).text)
        if area.offset:
            members = [[one.name, one.offset, one.bytes] for one in variable.members]
            values = [
                variable.name,
                named(variable.file),
                variable.line,
                variable.function,
                members,
                found.text,
            ]
            self.found[key] = _dumps(values)
        return found

    def note_missing(self, path: str) -> None:
        """Something of this object has no source line: remark why, where it was compiled without."""
        path = self.path(path)
        key = (path, HAS_LINES, 0)
        known = self._known.found.get(key, "") if self._known is not None else ""
        if not known:
            info = self._object(path)
            if info.differs:
                return
            known = self._lines[key] = _dumps(info.has_lines)
        if known == "false":
            missing = "no source lines in it; compile with -g to see names of blocks and members"
            self._remarks.setdefault(path, f"{os.path.basename(path)}: {missing}")

    def _statement(self, info: ObjectInfo, file: str, line: int) -> Statement:
        """The text of a line, as long as its file is no newer than the object: else it may be another one."""
        if not line:
            return Statement()
        try:
            newer = bool(info.changed) and os.stat(named(file)).st_mtime > info.changed
        except (OSError, ValueError):
            return Statement()
        if newer:
            name, built = os.path.basename(file), os.path.basename(info.path)
            said = f"{name} was changed after {built} was built: its text is not used"
            self._remarks.setdefault(file, said)
            return Statement()
        return statement(file, line)

    def _object(self, path: str) -> ObjectInfo:
        identity = self._identities.get(path, "")
        key = (path, identity, 0.0 if identity else self._start)
        if key not in self._objects:
            from homing.report.dwarf import ObjectInfo

            late = self._deadline is not None and time.monotonic() > self._deadline
            deadline = None if late else self._deadline
            self._objects[key] = ObjectInfo(path, deadline, late, self._progress, identity, self._start)
        info = self._objects[key]
        if info.differs:
            self._remarks[path] = f"{self._another(path, info.differs)}: no source lines" + (
                " but those that the record keeps" if path in self._used else ""
            )
        self._remark_reason(info)
        return info

    def _remark_reason(self, info: ObjectInfo) -> None:
        if info.reason and not info.differs:
            self._remarks.setdefault(info.path, f"{os.path.basename(info.path)}: {info.reason}")

    def _another(self, path: str, why: str) -> str:
        name = os.path.basename(path)
        if self._host and self._host != os.uname().nodename:
            return f"{name} here is not the one that ran on {self._host} ({why})"
        return f"{name} was rebuilt since this run ({why})"

    def _check_kept(self, path: str) -> None:
        """Names that the record keeps are used: say so where the file is another one by now."""
        if path in self._used:
            return
        self._used.add(path)
        differs = _differs_now(path, self._identities.get(path, ""), self._start)
        if differs:
            self._remarks.setdefault(
                path, f"{self._another(path, differs)}: source lines are those that the record keeps"
            )


def _dumps(value: object) -> str:
    import json  # what is found once is kept: most summaries write none

    return json.dumps(value)


def _differs_now(path: str, identity: str, start: float) -> str:
    from elftools.elf.elffile import ELFFile

    from homing.report.identity import difference

    try:
        path = named(path)
        with open_regular(path) as file:
            return difference(path, ELFFile(file), identity, start)
    except Exception:  # gone, unreadable or damaged: nothing is taken from it
        return ""


def _read_frames(text: str) -> tuple[Frame, ...] | None:
    """What a record keeps of a place in the code; None where it keeps nothing sound."""
    try:
        return tuple(
            Frame(
                _text(function), shown(str(file)), int(line), _text(words), bool(returned), _read_rank(rank)
            )
            for function, file, line, words, returned, rank in loads(text or "null")
        )
    except _UNSOUND:
        return None


def _read_rank(value: Any) -> tuple[int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]))


def _read_declared(text: str) -> Declared | None:
    try:
        name, file, line, function, members, words = loads(text or "null")
        parts = tuple(Member(_text(member), int(offset), int(size)) for member, offset, size in members)
        variable = Variable(_text(name), shown(str(file)), int(line), _text(function), parts)
        return Declared(variable, _text(words))
    except _UNSOUND:
        return None


def _text(value: Any) -> str:
    return printable(str(value))
