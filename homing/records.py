"""What a record file tells: its tables as the things that they describe (docs/record.md).

A record may be the work of a process that was killed, on a file system that was full, cut off, or damaged:
`read_record` gives whatever is sound in it, or raises RecordError with one line. Texts that are missing read
as "?".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from homing.arrays import NDArray, np
from homing.record_file import DAMAGE, Tables, parse_file, read_bytes
from homing.record_format import RecordError, printable
from homing.record_rows import (
    AREA_KINDS,
    COUNTED_SCOPES,
    ITERATION_BASES,
    ITERATION_STATES,
    MESSAGE_LEVELS,
    OWNERSHIP_KINDS,
    Area,
    AreaSample,
    Counted,
    End,
    EndSums,
    Guard,
    Iteration,
    Message,
    Move,
    Node,
    Overhead,
    Ownership,
    Phase,
    PlaceDistribution,
    Placement,
    References,
    Refusal,
    Region,
    Rule,
    Sampling,
    TaskHints,
    Thread,
    Unwatched,
)
from homing.values import dataclass

_WORTH = ("number", "region", "gain", "price", "moves")
#: Columns that hold several values; every other column that is read here holds one.
_ARRAYS = {
    "text": {"bytes"},
    "distance": {"to"},
    "area": {"origin", "origin_object"},
    "frames": {"origin", "origin_object"},
    "placement": {"pages"},
    "references": {"to"},
    "misses": {"to"},
}
_MOST_TEXT_BYTES = 1 << 20

#: Sums beyond this are damage; those of a sample are exact but for rounding.
_MOST_SUM = 1e60
_ROUNDED = 1 + 1e-9

#: More nodes are damage, not machines: Linux has 1,024 at the most (MAX_NUMNODES).
_MOST_NODES = 1024
#: The largest pages that any machine has.
_LARGEST_PAGE = 1 << 40

#: Facts that the launcher adds, or the simulator: the name of a signal; what a guest's counter counted, as
#: JSON.
ENDED_BY, LAB_COUNTS = "ended_by", "lab_counts"


@dataclass
class Record:
    """One process's record."""

    path: str
    pid: int
    rank: int  # -1: no MPI rank
    program: str
    arguments: list[str]
    host: str
    start: float
    homing: str
    page_bytes: int
    rows: Tables
    #: True where the file's end is missing: it was cut off after the process wrote it. (The file of a process
    #: that was killed, or is at work, is whole.)
    truncated: bool = False
    #: True where the process found no more room (a full disk, a limit), and its last rows are missing.
    out_of_room: bool = False
    #: How many tasks the job of this rank has; 0: not stated.
    ranks: int = 0

    def table(self, name: str) -> NDArray[np.void]:
        """All rows of one kind as a structured array, in the order in which they were written."""
        return self.rows.array(name)

    def _dicts(self, name: str, *needed: str) -> Iterator[dict[str, Any]]:
        arrays = _ARRAYS.get(name, set())
        # One value where several belong, or the other way round: a damaged header, or a later column.
        names = [
            column.name for column in self.rows.columns(name) if (column.count > 1) == (column.name in arrays)
        ]
        if all(column in names for column in needed):
            yield from self.rows.values(name, names)

    def dicts(self, name: str, *needed: str) -> Iterator[dict[str, Any]]:
        """Rows of one kind as plain values; none where one of these columns is missing."""
        return self._dicts(name, *needed)

    @cached_property
    def texts(self) -> dict[int, str]:
        """Texts by id, joined from their pieces."""
        pieces: dict[int, dict[int, bytes]] = {}
        totals: dict[int, int] = {}
        for row in self._dicts("text", "id", "offset", "total", "bytes"):
            pieces.setdefault(row["id"], {})[row["offset"]] = row["bytes"]
            totals[row["id"]] = min(row["total"], _MOST_TEXT_BYTES)
        texts = {}
        for number, parts in pieces.items():
            whole = bytearray()
            for offset in sorted(parts):
                if offset != len(whole):
                    break  # a piece is missing: what comes before it still helps
                whole += parts[offset]
            texts[number] = printable(bytes(whole[: totals[number]]).decode("utf-8", "replace"))
        return texts

    def text(self, number: int) -> str:
        """The text with this id; empty for 0, "?" for one that is missing."""
        return self.texts.get(number, "?") if number else ""

    @cached_property
    def facts(self) -> dict[str, str]:
        """Facts of the run; the last value of a key counts."""
        return {self.text(row["key"]): self.text(row["value"]) for row in self._dicts("fact", "key", "value")}

    @cached_property
    def messages(self) -> list[Message]:
        """What the user should know; equal texts once, with the highest number of repeats."""
        found: dict[tuple[int, int], int] = {}
        for row in self._dicts("message", "text", "level", "repeats"):
            key = (row["level"], row["text"])
            found[key] = max(found.get(key, 1), row["repeats"])
        return [
            Message(MESSAGE_LEVELS.get(level, "note"), self.text(number), repeats)
            for (level, number), repeats in found.items()
        ]

    @cached_property
    def nodes(self) -> list[Node]:
        """The NUMA nodes, by their operating system index."""
        found: dict[int, Node] = {}
        for row in self._dicts("node", "position", "index", "memory_bytes", "free_bytes", "cpus", "target"):
            if -1 <= row["position"] < _MOST_NODES and len(found) < _MOST_NODES:
                found[row["index"]] = Node(
                    row["position"],
                    row["index"],
                    row["memory_bytes"],
                    row["free_bytes"],
                    row["cpus"],
                    bool(row["target"]),
                )
        return [found[index] for index in sorted(found)]

    @cached_property
    def node_count(self) -> int:
        """The length of every list by node position."""
        return max((node.position + 1 for node in self.nodes), default=0)

    @cached_property
    def positions(self) -> list[int]:
        """The operating system index of the node at each position."""
        indices = {node.position: node.index for node in self.nodes}
        return [indices.get(position, -1) for position in range(self.node_count)]

    @cached_property
    def distances(self) -> list[list[float]]:
        """Distances [from][to] in the order of `nodes`, NaN where not stated; empty where none were."""
        count = len(self.nodes)
        order = {node.index: at for at, node in enumerate(self.nodes)}
        table = [[math.nan] * count for _ in range(count)]
        stated = False
        for row in self._dicts("distance", "from", "first", "count", "to"):
            for at, value in enumerate(row["to"][: max(0, row["count"])]):
                if row["from"] in order and 0 <= row["first"] + at < count:
                    table[order[row["from"]]][row["first"] + at] = value
                    stated = True
        return [[float(value) for value in line] for line in table] if stated else []

    @cached_property
    def threads(self) -> list[Thread]:
        """Threads that were seen, by number; the last row of each counts."""
        found = {
            row["thread"]: Thread(row["thread"], row["node"], row["cpu"], bool(row["bound"]))
            for row in self._dicts("thread", "thread", "node", "cpu", "bound")
        }
        return [found[number] for number in sorted(found)]

    @cached_property
    def areas(self) -> list[Area]:
        """The areas, in the order in which they were found."""
        found: dict[int, Area] = {}
        columns = (
            "id",
            "begin",
            "bytes",
            "kind",
            "name",
            "object",
            "granule",
            "time",
            "origin",
            "origin_object",
        )
        more = self._more_frames()
        for row in self._dicts("area", *columns):
            origin = self._frames(row) + more.get(row["id"], ())
            found[row["id"]] = Area(
                row["id"],
                row["begin"],
                row["bytes"],
                AREA_KINDS.get(row["kind"], "?"),
                self.text(row["name"]),
                self.text(row["object"]),
                row["granule"],
                found[row["id"]].time if row["id"] in found else _finite(row["time"]),
                origin,
                max(1, row.get("blocks", 1)),
                row.get("order", 0),
                row.get("offset", 0),
            )
        return list(found.values())

    def _frames(self, row: dict[str, Any]) -> tuple[tuple[str, int], ...]:
        return tuple(
            (self.text(module), offset)
            for module, offset in zip(row["origin_object"], row["origin"], strict=False)
            if offset
        )

    def _more_frames(self) -> dict[int, tuple[tuple[str, int], ...]]:
        """Return addresses behind those in the areas' own rows."""
        parts: dict[int, dict[int, tuple[tuple[str, int], ...]]] = {}
        for row in self._dicts("frames", "area", "first", "origin", "origin_object"):
            parts.setdefault(row["area"], {})[row["first"]] = self._frames(row)
        return {
            area: tuple(frame for first in sorted(pieces) for frame in pieces[first])
            for area, pieces in parts.items()
        }

    @cached_property
    def objects(self) -> dict[str, str]:
        """What tells one build of an object from another, by its path (docs/record.md); empty where it is not
        known, or where there were several."""
        found: dict[str, str] = {}
        for row in self._dicts("object", "path", "identity"):
            path, identity = self.text(row["path"]), self.text(row["identity"])
            found[path] = identity if found.get(path, identity) == identity else ""
        return found

    @cached_property
    def sources(self) -> dict[tuple[str, int, int], str]:
        """What the launcher looked up after the run, by object, what, and offset (docs/record.md)."""
        return {
            (self.text(row["object"]), row["what"], row["offset"]): self.text(row["text"])
            for row in self._dicts("source", "object", "what", "offset", "text")
        }

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules of --areas."""
        return [Rule(self.text(row["text"]), row["areas"]) for row in self._dicts("rule", "text", "areas")]

    @cached_property
    def areas_by_id(self) -> dict[int, Area]:
        """The areas by id."""
        return {area.id: area for area in self.areas}

    @cached_property
    def area_ends(self) -> dict[int, float]:
        """When areas ended, by id; not those that came back later (temporaries)."""
        begun: dict[int, float] = {}
        for row in self._dicts("area", "id", "time"):
            begun[row["id"]] = _finite(row["time"])
        ends = {row["id"]: _finite(row["time"]) for row in self._dicts("area_end", "id", "time")}
        return {one: time for one, time in ends.items() if time >= begun.get(one, 0.0)}

    @cached_property
    def placements(self) -> list[Placement]:
        """Placements in the order in which they were written; rows of more than eight nodes are joined."""
        joined: dict[tuple[int, int, int, float], dict[int, tuple[int, ...]]] = {}
        others: dict[tuple[int, int, int, float], tuple[bool, int]] = {}
        columns = ("area", "time", "when", "first", "sampled", "iteration", "pages", "absent")
        for row in self._dicts("placement", *columns):
            key = (row["area"], row["when"], row["iteration"], _finite(row["time"]))
            joined.setdefault(key, {})[row["first"]] = tuple(row["pages"])
            others[key] = (bool(row["sampled"]), row["absent"])
        placements = []
        for key, parts in joined.items():
            area, when, iteration, time = key
            sampled, absent = others[key]
            pages = self._by_position(parts)
            placements.append(
                Placement(area, time, when, iteration, sampled, tuple(int(count) for count in pages), absent)
            )
        return placements

    def _by_position(self, parts: dict[int, tuple[Any, ...]]) -> list[Any]:
        line = [0] * self.node_count
        for first, values in parts.items():
            for at, value in enumerate(values):
                if first + at < len(line):
                    line[first + at] = value
        return line

    @cached_property
    def references(self) -> list[References]:
        """References of each area and iteration, in the order in which they were written."""
        count = self.node_count
        tables: dict[tuple[int, int], NDArray[np.float64]] = {}
        for row in self._dicts("references", "area", "iteration", "from", "first", "to"):
            matrix = tables.setdefault((row["area"], row["iteration"]), np.zeros((count, count)))
            for at, value in enumerate(row["to"]):
                if row["from"] < count and row["first"] + at < count and 0 <= value < math.inf:
                    matrix[row["from"], row["first"] + at] += value
        return [References(area, iteration, matrix) for (area, iteration), matrix in tables.items()]

    @cached_property
    def samples(self) -> dict[int, AreaSample]:
        """What the estimates of remote shares rest on, by area; the last row of each counts. An area whose
        places were sampled weighs as long as it lived; rows that are no sums of a sample are left out."""
        columns = ("area", "granules", "by_access", "touches", "traffic", "weight", "weight2")
        ends = ("before", "before1", "before2", "after", "after1", "after2")
        found = {}
        for row in self._dicts("estimate", *columns, *ends):
            values = [row[column] for column in (*columns[3:], *ends)]
            before, after = (EndSums(*(row[name] for name in names)) for names in (ends[:3], ends[3:]))
            weight, weight2 = row["weight"], row["weight2"]
            sound = (
                all(0 <= value < _MOST_SUM for value in values)
                and 0 < weight2 <= _ROUNDED * weight**2 <= _ROUNDED**2 * row["granules"] * weight2
            )
            if (
                not sound
                or not row["granules"]
                or not all(
                    one.share2 <= _ROUNDED * one.share1 <= _ROUNDED**2 * weight2
                    and one.share <= _ROUNDED * weight
                    for one in (before, after)
                )
            ):
                continue
            area = row["area"]
            begin = self.areas_by_id[area].time if area in self.areas_by_id else 0.0
            lived = self.area_ends.get(area, self.seconds) - begin
            traffic = row["traffic"] * (1.0 if row["by_access"] else max(lived, 0.0))
            found[area] = AreaSample(
                area,
                bool(row["by_access"]),
                row["granules"],
                row["touches"],
                traffic,
                weight,
                weight2,
                before,
                after,
            )
        return found

    @cached_property
    def iterations(self) -> list[Iteration]:
        """Outer iterations, in the order in which they were written."""
        columns = ("number", "time", "seconds", "regions", "state", "basis", "references", "moved")
        return [
            Iteration(
                row["number"],
                _finite(row["time"]),
                _finite(row["seconds"]),
                row["regions"],
                ITERATION_STATES.get(row["state"], "?"),
                ITERATION_BASES.get(row["basis"], "?"),
                row["references"],
                row["moved"],
                _finite(row.get("overhead_seconds", 0.0)),
            )
            for row in self._dicts("iteration", *columns)
        ]

    @cached_property
    def progress(self) -> int | None:
        """Outer iterations that have ended, as the process noted it each time; None in records of older
        versions."""
        return next((row["iterations"] for row in self._dicts("progress", "iterations")), None)

    @property
    def ended_by(self) -> str:
        """The signal that ended the process, or the command that it was part of (SIGINT); empty where none
        is known."""
        name = self.facts.get(ENDED_BY, "")
        return name if re.fullmatch(r"SIG[A-Z0-9+]{1,12}", name) else ""

    @cached_property
    def regions(self) -> list[Region]:
        """Parallel regions; the last row of each counts."""
        found = {}
        for row in self._dicts("region", "id", "offset", "object", "count", "seconds", "symbol"):
            found[row["id"]] = Region(
                row["id"],
                self.text(row["object"]),
                row["offset"],
                self.text(row["symbol"]),
                row["count"],
                _finite(row["seconds"]),
            )
        return list(found.values())

    @cached_property
    def moves(self) -> list[Move]:
        """Batches of moves, in order."""
        columns = (
            "area",
            "time",
            "wanted",
            "moved",
            "refused",
            "bytes",
            "seconds",
            "longest_call_seconds",
            "calls",
        )
        return [
            Move(
                row["area"],
                _finite(row["time"]),
                row["wanted"],
                row["moved"],
                row["refused"],
                row["bytes"],
                _finite(row["seconds"]),
                _finite(row["longest_call_seconds"]),
                row["calls"],
                row.get("iteration", 0),
                self.text(row.get("reason", 0)),
            )
            for row in self._dicts("move", *columns)
        ]

    @cached_property
    def refusals(self) -> list[Refusal]:
        """Pages that the kernel refused, by area and errno."""
        return [
            Refusal(row["area"], row["error"], row["pages"], row.get("iteration", 0))
            for row in self._dicts("refusal", "area", "error", "pages")
        ]

    @cached_property
    def ownerships(self) -> dict[int, Ownership]:
        """The last inference about each area."""
        columns = ("area", "iteration", "kind", "confidence", "samples", "wanted")
        words = {
            row["area"]: (self.text(row["words"]), row["known"])
            for row in self._dicts("distribution", "area", "words", "known")
        }
        return {
            row["area"]: Ownership(
                row["area"],
                row["iteration"],
                OWNERSHIP_KINDS.get(row["kind"], "?"),
                _fraction(row["confidence"]),
                row["samples"],
                row["wanted"],
                *words.get(row["area"], ("", 0)),
            )
            for row in self._dicts("ownership", *columns)
        }

    @cached_property
    def place_distributions(self) -> dict[int, list[PlaceDistribution]]:
        """By area, whose users differ by region; the one with most touches first."""
        found: dict[int, list[PlaceDistribution]] = {}
        columns = ("area", "region", "followed", "touches", "probability", "words")
        for row in self._dicts("place_distribution", *columns):
            one = PlaceDistribution(
                row["area"],
                row["region"],
                bool(row["followed"]),
                row["touches"],
                self.text(row["words"]),
                _fraction(row["probability"]),
            )
            found.setdefault(one.area, []).append(one)
        return found

    @cached_property
    def guards(self) -> dict[int, Guard]:
        """The last word of the guard about each area."""
        return {
            row["area"]: Guard(
                row["area"],
                row["iteration"],
                _finite(row["remote_ns"]),
                _finite(row["move_ns"]),
                bool(row["permitted"]),
            )
            for row in self._dicts("guard", "area", "iteration", "remote_ns", "move_ns", "permitted")
        }

    @cached_property
    def unwatched(self) -> list[Unwatched]:
        """Memory that cannot be watched; the last row of each address counts."""
        found = {
            row["begin"]: Unwatched(self.text(row["what"]), row["begin"], row["bytes"])
            for row in self._dicts("unwatched", "what", "begin", "bytes")
        }
        return list(found.values())

    @cached_property
    def counted(self) -> list[Counted]:
        """What the simulator counted: the run, iterations, regions, areas, places in the code."""
        count = self.node_count
        matrices: dict[tuple[int, int], NDArray[np.uint64]] = {}
        for row in self._dicts("misses", "scope", "id", "from", "first", "to"):
            matrix = matrices.setdefault((row["scope"], row["id"]), np.zeros((count, count), dtype=np.uint64))
            for at, value in enumerate(row["to"]):
                if row["from"] < count and row["first"] + at < count:
                    matrix[row["from"], row["first"] + at] = value
        columns = (
            "scope",
            "id",
            "object",
            "symbol",
            "offset",
            "entries",
            "accesses",
            "invalidation_misses",
            "upgrades",
            "shared_hits",
            "oracle_remote",
        )
        return [
            Counted(
                COUNTED_SCOPES[row["scope"]],
                row["id"],
                self.text(row["object"]),
                self.text(row["symbol"]),
                row["offset"],
                row["entries"],
                row["accesses"],
                row["invalidation_misses"],
                row["upgrades"],
                row["shared_hits"],
                row["oracle_remote"],
                matrices.get((row["scope"], row["id"]), np.zeros((count, count), dtype=np.uint64)),
            )
            for row in self._dicts("counted", *columns)
            if row["scope"] in COUNTED_SCOPES
        ]

    @cached_property
    def simulated_moves(self) -> tuple[int, int, int]:
        """Pages that were moved on a simulated machine, calls that moved them, bytes of a page; zeros where
        nothing was simulated."""
        last = (0, 0, 0)
        for row in self._dicts("simulated", "moved_pages", "move_calls", "page_bytes"):
            last = (row["moved_pages"], row["move_calls"], row["page_bytes"])
        return last

    @cached_property
    def phases(self) -> list[Phase]:
        """Those of the newest recording, in order; the newest row of each."""
        found: dict[int, Phase] = {}
        counts = ("accessed", "eligible", "planned", "refused", "replays", "moved", "undone")
        shares = ("references", "remote", "remote_with_plan")
        worth = {row["number"]: row for row in self._dicts("phase_worth", *_WORTH)}
        for row in self._dicts("phase", "number", "phases", *counts, *shares, "seconds", "calls"):
            found = {number: phase for number, phase in found.items() if number < row["phases"]}
            values = {name: row[name] for name in ("number", *counts, *shares, "calls")}
            more: dict[str, Any] = {}
            if (one := worth.get(row["number"])) is not None:
                more = {name: 1e-9 * _finite(one[name]) for name in ("gain", "price")}
                more |= {"region": one["region"], "moves": bool(one["moves"])}
            found[row["number"]] = Phase(**values, seconds=_finite(row["seconds"]), **more)
        return [found[number] for number in sorted(found)]

    @cached_property
    def sampling(self) -> Sampling | None:
        """The newest account of `--mechanism sampling`; None with another."""
        last = None
        counts = ("scans", "scanned", "accessed", "eligible", "moved", "frozen")
        for row in self._dicts("sampling", *counts, "seconds"):
            values = {name: row[name] for name in counts}
            last = Sampling(**values, seconds=_finite(row["seconds"]))
        return last

    @cached_property
    def task_hints(self) -> TaskHints | None:
        """What became of affinity clauses; None without `--tasks affinity`."""
        left = {self.text(row["reason"]): row["count"] for row in self._dicts("task_left", "reason", "count")}
        last = None
        columns = ("given", "honoured", "at_home", "elsewhere")
        for row in self._dicts("tasks", *columns):
            last = TaskHints(row["given"], row["honoured"], row["at_home"], row["elsewhere"], left)
        return last

    @cached_property
    def overhead(self) -> Overhead:
        """The newest account of homing's own time."""
        last = Overhead()
        counts = ("faults", "region_events", "armed", "touches", "calls")  # 0.1.0 had the first two
        for row in self._dicts("overhead", "observing", "deciding", "moving", "hooks", *counts[:2]):
            last = Overhead(
                _finite(row["observing"]),
                _finite(row["deciding"]),
                _finite(row["moving"]),
                _finite(row["hooks"]),
                *(row.get(name, 0) for name in counts),
            )
        return last

    @cached_property
    def end(self) -> End | None:
        """The last row of a process that ended in order; None for one that was killed."""
        last = None
        columns = (
            "time",
            "parallel_seconds",
            "iterations",
            "settled_at",
            "period",
            "live_areas",
            "dropped_areas",
        )
        for row in self._dicts("end", *columns):
            last = End(
                _finite(row["time"]),
                _finite(row["parallel_seconds"]),
                *(row[column] for column in columns[2:]),
            )
        return last

    @property
    def stepped_aside(self) -> str:
        """Why the library did nothing in this process; empty where it worked."""
        if self.facts.get("end") != "stepped aside":
            return ""
        return "; ".join(message.text for message in self.messages) or "no reason was given"

    @cached_property
    def seconds(self) -> float:
        """How long the record goes: to its end, or to the last moment that any row knows."""
        times = [self.end.time] if self.end else [iteration.time for iteration in self.iterations[-1:]]
        times += [_finite(row["time"]) for row in self._dicts("overhead", "time")][-1:]
        return max(times, default=0.0)


def _finite(value: float) -> float:
    return value if math.isfinite(value) and abs(value) < 1e15 else 0.0


def _fraction(value: float) -> float:
    return value if 0 <= value <= 1 else math.nan


def read_record(path: str) -> Record:
    """Read one record file. RecordError (one line) where it is no record; a cut-off file gives what is
    there."""
    return parse_record(read_bytes(path), path)


def _page_bytes(stated: Any) -> int:
    """The size of a page; ValueError where no machine has such pages."""
    if not 0 < (size := int(stated)) <= _LARGEST_PAGE:
        raise ValueError("page_bytes")
    return size


def parse_record(data: bytes, path: str) -> Record:
    """As read_record, from the file's bytes; `path` is for messages."""
    try:
        file = parse_file(data, path)
        header = file.header
        record = Record(
            path=path,
            pid=int(header.get("pid", 0)),
            rank=-1 if header.get("rank") is None else int(header["rank"]),
            ranks=0 if header.get("ranks") is None else int(header["ranks"]),
            program=printable(str(header.get("program", "?"))),
            arguments=[printable(str(word)) for word in header.get("arguments", [])],
            host=printable(str(header.get("host", ""))),
            start=float(header.get("start", 0.0)),
            homing=printable(str(header.get("homing", "?"))),
            page_bytes=_page_bytes(header.get("page_bytes", 4096)),
            rows=file.rows,
            out_of_room=file.out_of_room,
        )
        # A file that was closed has the length of its rows, and a row that says so (docs/record.md).
        closed = record.end is not None or "end" in record.facts
        record.truncated = file.torn or not (closed or file.whole_pieces)
        return record
    except DAMAGE as error:
        raise RecordError(f"{path}: the record's header is damaged") from error
