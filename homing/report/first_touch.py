"""Which code touched an area's memory first, as sampled page faults tell (rows `first_touch`)."""

from __future__ import annotations

import math
import os
from bisect import bisect_left

from homing.record_rows import Area
from homing.records import Record
from homing.report.libraries import is_header, is_library
from homing.report.sources import Frame, Sources
from homing.report.symbols import readable_symbol
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_COLUMNS = ("object", "offset", "symbol", "begin", "end", "thread", "node", "samples", "faults", "time")
#: Memory of which more than this was found on one node was first touched by one thread.
ON_ONE_NODE = 0.9
#: Pages for which an area must have at least that many samples to be told of.
LEAST_SAMPLES = 2
#: A place with a smaller share of an area's first touches is not told.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class FirstTouch:
    """One place in the code that touched a part of an area first. share: of the area's first touches that
    were seen. samples: what this rests on. threads: the kernel's numbers of those that did it, the most
    first; nodes: the positions of the nodes that these ran on. line 0: only the function is known."""

    function: str
    file: str
    line: int
    text: str
    threads: tuple[int, ...]
    nodes: tuple[int, ...]
    share: float
    samples: float

    @property
    def where(self) -> str:
        """The place in a few words: function, file and line as far as they are known."""
        at = f"{os.path.basename(self.file)}:{self.line}" if self.line else ""
        return f"{at} ({self.function})" if at and self.function else at or self.function


@dataclass(frozen=True)
class _Row:
    path: str
    offset: int
    symbol: str
    thread: int
    node: int
    samples: float
    faults: float


#: Its functions touch memory for their callers, or only what they keep before a block (malloc).
_C_LIBRARY = ("libc.", "libc-")


def touched_first(record: Record, sources: Sources) -> dict[int, list[FirstTouch]]:
    """By area: the places that touched it first, the most of it first."""
    return {area: _places(rows, sources) for area, rows in _by_area(record).items() if _enough(rows)}


def _enough(rows: Iterable[_Row]) -> bool:
    return sum(row.samples for row in rows) >= LEAST_SAMPLES


def _by_area(record: Record) -> dict[int, list[_Row]]:
    """The rows that lie in an area, each with the part of its samples that does. An address that several
    areas had one after the other was touched first in the oldest of them that still lived then."""
    areas = sorted(record.areas, key=lambda area: area.begin)
    begins = [area.begin for area in areas]
    longest = max((area.bytes for area in areas), default=0)
    found: dict[int, list[_Row]] = {}
    for row in record.dicts("first_touch", *_COLUMNS):
        begin, end, time = row["begin"], row["end"], row["time"]
        if not begin < end or not math.isfinite(time):
            continue
        among = areas[bisect_left(begins, begin - longest) : bisect_left(begins, end)]
        hit = [area for area in among if area.begin + area.bytes > begin]
        for area in _first_of_each(hit, record, time):
            part = (min(end, area.begin + area.bytes) - max(begin, area.begin)) / (end - begin)
            found.setdefault(area.id, []).append(
                _Row(
                    record.text(row["object"]),
                    row["offset"],
                    record.text(row["symbol"]) if row["symbol"] else "",
                    row["thread"],
                    row["node"],
                    row["samples"] * part,
                    row["faults"] * part,
                )
            )
    return found


def _first_of_each(areas: list[Area], record: Record, time: float) -> list[Area]:
    alive = [area for area in areas if record.area_ends.get(area.id, math.inf) >= time]
    alive.sort(key=lambda area: area.time)
    chosen: list[Area] = []
    for area in alive:
        if all(
            other.begin + other.bytes <= area.begin or area.begin + area.bytes <= other.begin
            for other in chosen
        ):
            chosen.append(area)
    return chosen


def _frame(row: _Row, sources: Sources) -> Frame:
    """The user's line, where a header's code was inlined into one; of a library only the function."""
    frames = sources.frames(row.path, row.offset + 1) if row.path else ()  # the instruction itself
    known = [frame for frame in frames if frame.line]
    if known and is_library(row.path):
        return Frame(known[0].function)
    if known:
        return next((frame for frame in known if not is_header(frame.file)), known[0])
    name = readable_symbol(row.symbol) if row.symbol else ""
    return Frame(name or f"{os.path.basename(row.path)}+{row.offset:#x}")


def _places(rows: list[_Row], sources: Sources) -> list[FirstTouch]:
    rows = [row for row in rows if not row.path.rpartition("/")[2].startswith(_C_LIBRARY)] or rows
    places: dict[tuple[str, str, int], list[_Row]] = {}
    texts: dict[tuple[str, str, int], str] = {}
    for row in rows:
        frame = _frame(row, sources)
        key = (frame.function, frame.file, frame.line)
        places.setdefault(key, []).append(row)
        texts[key] = frame.text
    total = sum(row.faults for row in rows)
    found = []
    for (function, file, line), some in places.items():
        share = sum(row.faults for row in some) / total
        if share < LEAST_SHARE:
            continue
        by_thread: dict[int, float] = {}
        for row in some:
            by_thread[row.thread] = by_thread.get(row.thread, 0.0) + row.faults
        most = sum(by_thread.values())
        threads = [
            thread
            for thread, faults in sorted(by_thread.items(), key=lambda one: -one[1])
            if faults >= LEAST_SHARE * most
        ]
        nodes = sorted({row.node for row in some if row.node >= 0 and row.thread in threads})
        found.append(
            FirstTouch(
                function,
                file,
                line,
                texts[function, file, line],
                tuple(threads),
                tuple(nodes),
                share,
                sum(row.samples for row in some),
            )
        )
    return sorted(found, key=lambda one: -one.share)


def joined(lists: Iterable[tuple[list[FirstTouch], float]]) -> list[FirstTouch]:
    """Those of several areas, each list with the weight of its area."""
    places: dict[tuple[str, str, int], list[tuple[FirstTouch, float]]] = {}
    total = 0.0
    for touches, weight in lists:
        total += weight if touches else 0.0
        for one in touches:
            places.setdefault((one.function, one.file, one.line), []).append((one, weight))
    found = []
    for some in places.values():
        first = some[0][0]
        found.append(
            FirstTouch(
                first.function,
                first.file,
                first.line,
                first.text,
                tuple(dict.fromkeys(thread for one, _ in some for thread in one.threads)),
                tuple(sorted({node for one, _ in some for node in one.nodes})),
                sum(one.share * weight for one, weight in some) / total,
                sum(one.samples for one, _ in some),
            )
        )
    return sorted(found, key=lambda one: -one.share)
