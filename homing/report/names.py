"""Names of areas for people: the variable, where it is allocated or declared, and the callers that tell
blocks of one allocator apart:

    u (heat.c:12)                                   an array, or a block that one statement allocates
    pressure: grid (two.c:4) from main (two.c:7)    what an allocator returned to one of several callers
    /blk/ (flow.f90:6)                              a COMMON block

No two areas of a run have one name. Where debug information is missing, there are functions and offsets,
and a remark how to get more.
"""

from __future__ import annotations

import os

from homing.record_rows import Area
from homing.records import Record
from homing.report.debug_facts import Member, Place
from homing.report.libraries import is_header, is_library, is_runtime
from homing.report.sources import Frame, Sources
from homing.report.statements import is_constructors, last_component, variables
from homing.report.symbols import shortened
from homing.report.words import cut
from homing.values import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Blocks of one statement that come from more callers than these are one area: a tree, say, that calls
#: itself.
MOST_CALLERS = 8
#: Callers of allocators that are named although nothing else comes from there.
_MOST_WRAPPERS = 3

#: What is said where a name has a number.
NUMBERED = "#1, #2, ... tell areas of one name apart, in the order of allocation (of arrays: of address)"


@dataclass(frozen=True)
class AreaName:
    """title: what the summary prints. variable: what the program's author calls it, where it is known. file,
    line, function, text: where it is declared or was allocated, if known. callers: that tell it from
    others, and those of allocators, from the inside outwards."""

    title: str
    function: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    members: tuple[Member, ...] = ()
    variable: str = ""
    callers: tuple[Frame, ...] = ()

    @property
    def shown(self) -> str:
        """The title as people read it."""
        return cut(self.title)

    @property
    def short(self) -> str:
        """The variable, where that is known."""
        return cut(self.variable or self.title)


@dataclass
class _Step:
    """One of the calls that led to an allocation. key: tells it from all others."""

    key: tuple[str, int, int]
    frame: Frame


@dataclass
class _Block:
    """A heap area, and the calls that led to it."""

    area: Area
    chain: list[_Step]


@dataclass
class _Mark:
    """A call that tells an area from others of its statement, and the variable that it is for, where that is
    known."""

    step: _Step
    depth: int
    variable: str = ""


@dataclass
class _Group:
    """Areas of one name."""

    blocks: list[_Block] = field(default_factory=list)
    marks: list[_Mark] = field(default_factory=list)
    places: int = 1  # that they come from, where these are too many
    number: str = ""


#: What the library calls memory that upmlib_memrefcnt registers, which has no name to give.
REGISTERED = "upmlib"


class Namer:
    """Names areas by these sources."""

    def __init__(self, sources: Sources | None = None) -> None:
        self.sources = sources or Sources()
        self._numbered = False

    @property
    def program(self) -> str:
        """The program of the record that is being named."""
        return self.sources.program

    @program.setter
    def program(self, path: str) -> None:
        self.sources.program = path

    def begin(self, record: Record) -> None:
        """Name what this record tells of from here on."""
        self.sources.begin(record)

    def remarks(self) -> list[str]:
        """How to get the names that are missing, and what numbers in names mean."""
        return [*self.sources.remarks(), *([NUMBERED] if self._numbered else [])]

    def name(self, area: Area) -> AreaName:
        """The name of a single area."""
        return self.names([area])[area.id][1]

    def names(self, areas: Sequence[Area]) -> dict[int, tuple[int, AreaName]]:
        """The names of all areas of a run, by id: the least id of those that have the name, and the name.
        Only heap blocks share names, those that one place in the program allocated, or registered."""
        found: dict[int, tuple[int, AreaName]] = {}
        blocks: list[Area] = []
        for area in areas:
            registered = area.kind == "named" and area.name == REGISTERED and not area.offset
            if (registered or area.kind in ("heap", "arena", "mapping")) and area.origin:
                blocks.append(area)
            else:
                found[area.id] = (area.id, self._declared(area))
        for group in self._groups(blocks):
            name = _named(group)
            if not name.line:
                origin = group.blocks[0].area.origin
                site = next((path for path, _ in origin if not is_library(path)), "")
                if site:
                    self.sources.note_missing(site)
            first = min(block.area.id for block in group.blocks)
            for block in group.blocks:
                found[block.area.id] = (first, name)
        self._tell_apart(found, {area.id: area for area in areas})
        return found

    def place(self, path: str, offset: int) -> Place | None:
        """Where the call before a return address comes from: the user's line that stands for it, if any."""
        frames = self.sources.frames(path, offset) if path else ()
        own = next((one for one in frames if one.line and not is_header(one.file)), None)
        one = own or next(iter(frames), None)
        return Place(one.function, one.file, one.line) if one is not None else None

    # Arrays

    def _declared(self, area: Area) -> AreaName:
        what = area.name or ("data" if area.kind == "segment" else f"{area.kind} area at {area.begin:#x}")
        if area.kind == "segment" and area.object:
            file = os.path.basename(area.object)
            return AreaName(what if file in what else f"{what} of {file}")
        registered = area.kind == "named" and area.name == REGISTERED and area.offset
        if not registered and (area.kind != "static" or not (area.name or area.offset)):
            return AreaName(what)
        if not area.object:
            return AreaName(area.name, variable=area.name)
        found = self.sources.declared(area)
        if found is None:
            self.sources.note_missing(area.object)
            return AreaName(shortened(area.name) or what, variable=area.name)
        one = found.variable
        # Compilers give symbols of their own to variables that share memory (EQUIVALENCE): the author's name.
        # So does a program that names one, maybe with nothing.
        renamed = not area.name.startswith("/") and last_component(area.name) != last_component(one.name)
        variable = one.name if renamed else area.name
        where = f" ({os.path.basename(one.file)}:{one.line})" if one.line else ""
        title = shortened(variable) + where
        return AreaName(title, one.function, one.file, one.line, found.text, one.members, variable)

    # Blocks

    def _chain(self, area: Area) -> list[_Step]:
        """The calls that led to an allocation, from the statement of the user outwards."""
        steps = []
        for path, offset in area.origin:
            if is_library(path):
                continue
            frames = self.sources.frames(path, offset) or (Frame(""),)
            for depth, frame in enumerate(frames):
                if is_header(frame.file) or (not frame.line and is_runtime(frame.function)):
                    continue
                label = frame.function or f"{os.path.basename(path)}+{offset:#x}"
                steps.append(_Step((self.sources.path(path), offset, depth), replace(frame, function=label)))
        # An allocator without source lines is not what the user looks for.
        first = next((at for at, step in enumerate(steps) if step.frame.line), 0)
        return steps[first:]

    def _groups(self, areas: Iterable[Area]) -> list[_Group]:
        """Areas of one name together."""
        sites: dict[tuple[str, int, str], list[_Block]] = {}
        chains: dict[tuple[tuple[str, int], ...], list[_Step]] = {}
        for area in areas:
            if area.origin not in chains:
                chains[area.origin] = self._chain(area)
            block = _Block(area, chains[area.origin])
            frame = block.chain[0].frame if block.chain else Frame("")
            # Without a line the instruction is the place.
            sites.setdefault((frame.file, frame.line, "" if frame.line else _instruction(block)), []).append(
                block
            )
        return [group for blocks in sites.values() for group in _split(blocks, 0, [])]

    def _tell_apart(self, found: dict[int, tuple[int, AreaName]], areas: dict[int, Area]) -> None:
        """Number the names that several areas have all the same."""
        groups: dict[str, dict[int, list[int]]] = {}
        for number, (first, name) in found.items():
            groups.setdefault(name.title, {}).setdefault(first, []).append(number)
        for same in groups.values():
            if len(same) < 2:
                continue
            self._numbered = True
            order = sorted(
                same, key=lambda first: min((areas[one].order, areas[one].begin) for one in same[first])
            )
            for at, first in enumerate(order, start=1):
                for one in same[first]:
                    name = found[one][1]
                    found[one] = (first, replace(name, title=f"{name.title} #{at}"))


def _instruction(block: _Block) -> str:
    if block.chain:
        path, offset, _ = block.chain[0].key
        return f"{path}+{offset}"
    return repr(block.area.origin)


def _split(blocks: list[_Block], depth: int, marks: list[_Mark]) -> list[_Group]:
    """Blocks of one statement by the lines that called it: from `depth` on outwards, what came before being
    equal."""
    while True:
        parts: dict[tuple[str, int, str] | None, list[_Block]] = {}
        for block in blocks:
            parts.setdefault(_line(block, depth), []).append(block)
        if len(parts) > 1 or None in parts:
            break
        depth += 1
    if len(parts) == 1:
        return _of_one_line(blocks, marks)
    ended = parts.pop(None, None)
    if len(parts) > MOST_CALLERS:
        return [_Group(blocks, marks, len(parts))]
    groups = _of_one_line(ended, marks) if ended else []
    for part in parts.values():
        groups += _split(part, depth + 1, [*marks, _mark(part[0].chain, depth)])
    return groups


def _line(block: _Block, depth: int) -> tuple[str, int, str] | None:
    """The line of the call at `depth`, where it is not known the instruction; None behind the last one."""
    if depth >= len(block.chain):
        return None
    step = block.chain[depth]
    path, offset, _ = step.key
    return (step.frame.file, step.frame.line, step.frame.function) if step.frame.line else (path, offset, "")


def _of_one_line(blocks: list[_Block], marks: list[_Mark]) -> list[_Group]:
    """Blocks that the same lines led to: by the calls in these, where a line has calls for several
    variables."""
    paths: dict[tuple[tuple[str, int, int], ...], list[_Block]] = {}
    for block in blocks:
        paths.setdefault(tuple(step.key for step in block.chain), []).append(block)
    parts = sorted(
        paths.values(), key=lambda part: (min(one.area.order for one in part), part[0].area.origin)
    )
    chain = parts[0][0].chain
    for depth in range(len(chain)):
        names = _names(chain, depth)
        calls = {part[0].chain[depth].key for part in parts}
        if len(names) < 2 or (len(calls) == 1 and len(parts) > 1):
            continue
        if len(names) == len(parts) == len(calls):
            return [
                _Group(part, [*marks, _Mark(part[0].chain[depth], depth, name)])
                for part, name in zip(parts, names, strict=True)
            ]
        ranked: dict[str, list[_Block]] = {}
        for part in parts:
            rank = part[0].chain[depth].frame.rank
            if rank is None or rank[1] % len(names) != 0:
                break
            # The compiler may have made copies of the code, one behind the other.
            ranked.setdefault(names[rank[0] % len(names)], []).extend(part)
        else:
            return [
                _Group(part, [*marks, _Mark(part[0].chain[depth], depth, name)])
                for name, part in ranked.items()
            ]
    # A compiler may make several calls of one (a loop that it unrolls); without a name they may be anything.
    differ = [depth for depth in range(len(chain)) if len({part[0].chain[depth].key for part in parts}) > 1]
    if any(len(_names(chain, depth)) == 1 for depth in differ) or len(parts) == 1:
        return [_Group(blocks, marks)]
    if len(parts) > MOST_CALLERS:
        return [_Group(blocks, marks, len(parts))]
    count = len(parts)
    return [_Group(part, marks, number=f" #{at} of {count}") for at, part in enumerate(parts, start=1)]


def _names(chain: list[_Step], depth: int) -> list[str]:
    """The variables of the statement at `depth`."""
    return variables(chain[depth].frame.text, chain[depth - 1].frame.function if depth else "")


def _mark(chain: list[_Step], depth: int) -> _Mark:
    """The call at `depth`, with its variable where there is one only."""
    names = _names(chain, depth)
    return _Mark(chain[depth], depth, names[0] if len(names) == 1 else "")


def _where(frame: Frame) -> str:
    return f" ({os.path.basename(frame.file)}:{frame.line})" if frame.line else ""


def _caller(step: _Step) -> str:
    path, offset, _ = step.key
    instruction = f"{os.path.basename(path)}+{offset:#x}"
    function = shortened(step.frame.function)
    if step.frame.line or function == instruction:
        return function + _where(step.frame)
    return f"{function} ({instruction})"


def _named(group: _Group) -> AreaName:
    """The name of areas of one place."""
    chain = group.blocks[0].chain
    area = group.blocks[0].area
    if not chain:
        return AreaName(area.name or f"heap block at {area.begin:#x}")
    marks = list(group.marks)
    # Whom an allocator works for, also where it works for one only.
    depth = 0
    while (
        depth < _MOST_WRAPPERS
        and all(mark.depth <= depth for mark in marks)
        and depth + 1 < len(chain)
        and chain[depth].frame.returned
        and chain[depth + 1].frame.line
        and group.places == 1
    ):
        depth += 1
        marks.append(_mark(chain, depth))
    site = chain[0].frame
    callers = list({mark.depth: mark for mark in marks if mark.depth > 0}.values())
    # What the statement itself gives a name to, unless callers do: an allocator has one name for all blocks.
    named = [mark for mark in marks if mark.variable]
    own = next((mark.variable for mark in named if mark.depth == 0), _mark(chain, 0).variable)
    variable = next((mark.variable for mark in callers if mark.variable), "")
    if variable and own and is_constructors(site.text):
        variable += f".{own}"
    elif own and not (callers and site.returned):
        variable = own
    function = shortened(site.function)
    if not site.line:
        title = area.name or f"heap@{function}"
        title += f" in {function}" if function and function not in title and "+" not in function else ""
    elif callers or group.places > 1:
        title = f"{variable}: {function}{_where(site)}" if variable else f"{function}{_where(site)}"
    else:
        title = (variable or function) + _where(site)
    title += "".join(f" from {_caller(mark.step)}" for mark in callers)
    title += group.number + (f" from {group.places} places" if group.places > 1 else "")
    return AreaName(
        title,
        site.function if site.line or "+" not in site.function else "",
        site.file,
        site.line,
        site.text,
        variable=variable,
        callers=tuple(mark.step.frame for mark in callers),
    )
