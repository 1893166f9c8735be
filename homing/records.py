"""What a record file tells: its tables as the things that they describe (docs/record.md).

A record may be the work of a process that was killed, on a file system that was full, cut off, or damaged:
`read_record` gives whatever is sound in it, or raises RecordError with one line. Texts that are missing read
as "?".
"""

from __future__ import annotations

from bisect import bisect_left

from homing.arrays import NDArray, np
from homing.late import re
from homing.light import cached_property
from homing.record_file import DAMAGE, parse_file, read_bytes
from homing.record_format import RecordError, printable, shown
from homing.record_memory import MemoryRecord
from homing.record_rows import (
    COUNTED_SCOPES,
    ITERATION_BASES,
    ITERATION_STATES,
    MESSAGE_LEVELS,
    OWNERSHIP_KINDS,
    AreaSample,
    Counted,
    End,
    EndSums,
    Guard,
    Iteration,
    Message,
    Move,
    Overhead,
    Ownership,
    Phase,
    PlaceDistribution,
    Refusal,
    Region,
    Sampling,
    TaskHints,
    Unwatched,
)
from homing.record_tables import finite, fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Sums beyond this are damage; those of a sample are exact but for rounding.
_MOST_SUM = 1e60
_ROUNDED = 1 + 1e-9
_WORTH = ("number", "region", "gain", "price", "moves")
#: The largest pages that any machine has.
_LARGEST_PAGE = 1 << 40

#: Facts that the launcher adds, or the simulator: the name of a signal; what a guest's counter counted, as
#: JSON.
ENDED_BY, LAB_COUNTS = "ended_by", "lab_counts"


class Record(MemoryRecord):
    """One process's record."""

    @cached_property
    def messages(self) -> list[Message]:
        """What the user should know; equal texts once, with the highest number of repeats."""
        found: dict[tuple[int, int], int] = {}
        for row in self.dicts("message", "text", "level", "repeats"):
            key = (row["level"], row["text"])
            found[key] = max(found.get(key, 1), row["repeats"])
        return [
            Message(MESSAGE_LEVELS.get(level, "note"), self.text(number), repeats)
            for (level, number), repeats in found.items()
        ]

    @cached_property
    def samples(self) -> dict[int, AreaSample]:
        """What the estimates of remote shares rest on, by area; the last row of each counts. An area whose
        places were sampled weighs as long as it lived; rows that are no sums of a sample are left out."""
        columns = ("area", "granules", "by_access", "touches", "traffic", "weight", "weight2")
        ends = ("before", "before1", "before2", "after", "after1", "after2")
        found = {}
        for row in self.dicts("estimate", *columns, *ends):
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
        """Outer iterations, in the order in which they were written. Where the program tells its iterations,
        what homing had found before the first call were loops within it: guesses."""
        columns = ("number", "time", "seconds", "regions", "state", "basis", "references", "moved")
        rows = list(self.dicts("iteration", *columns))
        bases = [ITERATION_BASES.get(row["basis"], "?") for row in rows]
        first_call = next(
            (row["number"] for row, basis in zip(rows, bases, strict=True) if basis == "call"), 0
        )
        return [
            Iteration(
                row["number"],
                finite(row["time"]),
                finite(row["seconds"]),
                row["regions"],
                ITERATION_STATES.get(row["state"], "?"),
                basis if row["number"] >= first_call else "guess",
                row["references"],
                row["moved"],
                finite(row.get("overhead_seconds", 0.0)),
            )
            for row, basis in zip(rows, bases, strict=True)
        ]

    @cached_property
    def _numbers(self) -> tuple[list[int], list[int], int]:
        """The numbers of rows that are guesses, those of the others, and how many guesses have no row: those
        without touches, which the end counts."""
        guesses = sorted(one.number for one in self.iterations if one.basis == "guess")
        others = sorted(one.number for one in self.iterations if one.basis != "guess")
        unseen = 0
        if self.end is not None and self.progress is not None:
            unseen = max(0, self.end.iterations - self.progress - len(guesses))
        return guesses, others, unseen

    def iteration_of(self, number: int) -> int:
        """Which iteration of the program, from 0, a row's number means: the rows count guesses, too, which
        are parts of one, and come before what was found."""
        guesses, others, unseen = self._numbers
        iteration = number - bisect_left(guesses, number)
        iteration -= min(unseen, iteration - bisect_left(others, number)) if unseen else 0
        return max(0, iteration if self.progress is None else min(iteration, self.progress))

    @cached_property
    def progress(self) -> int | None:
        """Outer iterations that have ended, as the process noted it each time; None in records of older
        versions."""
        return next((row["iterations"] for row in self.dicts("progress", "iterations")), None)

    @property
    def ended_by(self) -> str:
        """The signal that ended the process, or the command that it was part of (SIGINT); empty where none
        is known."""
        name = self.facts.get(ENDED_BY, "")
        return name if name and re.fullmatch(r"SIG[A-Z0-9+]{1,12}", name) else ""

    @cached_property
    def regions(self) -> list[Region]:
        """Parallel regions; the last row of each counts."""
        found = {}
        for row in self.dicts("region", "id", "offset", "object", "count", "seconds", "symbol"):
            found[row["id"]] = Region(
                row["id"],
                self.text(row["object"]),
                row["offset"],
                self.text(row["symbol"]),
                row["count"],
                finite(row["seconds"]),
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
                finite(row["time"]),
                row["wanted"],
                row["moved"],
                row["refused"],
                row["bytes"],
                finite(row["seconds"]),
                finite(row["longest_call_seconds"]),
                row["calls"],
                row.get("iteration", 0),
                self.text(row.get("reason", 0)),
            )
            for row in self.dicts("move", *columns)
        ]

    @cached_property
    def refusals(self) -> list[Refusal]:
        """Pages that the kernel refused, by area and errno."""
        return [
            Refusal(row["area"], row["error"], row["pages"], row.get("iteration", 0))
            for row in self.dicts("refusal", "area", "error", "pages")
        ]

    @cached_property
    def ownerships(self) -> dict[int, Ownership]:
        """The last inference about each area."""
        columns = ("area", "iteration", "kind", "confidence", "samples", "wanted")
        words = {
            row["area"]: (self.text(row["words"]), row["known"])
            for row in self.dicts("distribution", "area", "words", "known")
        }
        return {
            row["area"]: Ownership(
                row["area"],
                row["iteration"],
                OWNERSHIP_KINDS.get(row["kind"], "?"),
                fraction(row["confidence"]),
                row["samples"],
                row["wanted"],
                *words.get(row["area"], ("", 0)),
                cold=bool(row.get("cold", 0)),
            )
            for row in self.dicts("ownership", *columns)
        }

    @cached_property
    def place_distributions(self) -> dict[int, list[PlaceDistribution]]:
        """By area, whose users differ by region; the one with most touches first."""
        found: dict[int, list[PlaceDistribution]] = {}
        columns = ("area", "region", "followed", "touches", "probability", "words")
        for row in self.dicts("place_distribution", *columns):
            one = PlaceDistribution(
                row["area"],
                row["region"],
                bool(row["followed"]),
                row["touches"],
                self.text(row["words"]),
                fraction(row["probability"]),
            )
            found.setdefault(one.area, []).append(one)
        return found

    @cached_property
    def guard_decisions(self) -> list[Guard]:
        """All that the guard said, in the order of time."""
        return [
            Guard(
                row["area"],
                row["iteration"],
                finite(row["remote_ns"]),
                finite(row["move_ns"]),
                bool(row["permitted"]),
            )
            for row in self.dicts("guard", "area", "iteration", "remote_ns", "move_ns", "permitted")
        ]

    @cached_property
    def guards(self) -> dict[int, Guard]:
        """The last word of the guard about each area."""
        return {one.area: one for one in self.guard_decisions}

    @cached_property
    def unwatched(self) -> list[Unwatched]:
        """Memory that cannot be watched; the last row of each address counts."""
        found = {
            row["begin"]: Unwatched(self.text(row["what"]), row["begin"], row["bytes"])
            for row in self.dicts("unwatched", "what", "begin", "bytes")
        }
        return list(found.values())

    @cached_property
    def counted(self) -> list[Counted]:
        """What the simulator counted: the run, iterations, regions, areas, places in the code."""
        count = self.node_count
        matrices: dict[tuple[int, int], NDArray[np.uint64]] = {}
        for row in self.dicts("misses", "scope", "id", "from", "first", "to"):
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
            for row in self.dicts("counted", *columns)
            if row["scope"] in COUNTED_SCOPES
        ]

    @cached_property
    def simulated_moves(self) -> tuple[int, int, int]:
        """Pages that were moved on a simulated machine, calls that moved them, bytes of a page; zeros where
        nothing was simulated."""
        last = (0, 0, 0)
        for row in self.dicts("simulated", "moved_pages", "move_calls", "page_bytes"):
            last = (row["moved_pages"], row["move_calls"], row["page_bytes"])
        return last

    @cached_property
    def simulated_balancing(self) -> dict[str, int] | None:
        """scans, hint_faults and moved_pages of a simulated kernel's NUMA balancing. None: it was off."""
        found = None
        columns = ("scans", "hint_faults", "moved_pages")
        for row in self.dicts("balanced", *columns):
            found = {name: row[name] for name in columns}
        return found

    @cached_property
    def phases(self) -> list[Phase]:
        """Those of the newest recording, in order; the newest row of each."""
        found: dict[int, Phase] = {}
        counts = ("accessed", "eligible", "planned", "refused", "replays", "moved", "undone")
        shares = ("references", "remote", "remote_with_plan")
        worth = {row["number"]: row for row in self.dicts("phase_worth", *_WORTH)}
        for row in self.dicts("phase", "number", "phases", *counts, *shares, "seconds", "calls"):
            found = {number: phase for number, phase in found.items() if number < row["phases"]}
            values = {name: row[name] for name in ("number", *counts, *shares, "calls")}
            more: dict[str, Any] = {}
            if (one := worth.get(row["number"])) is not None:
                more = {name: 1e-9 * finite(one[name]) for name in ("gain", "price")}
                more |= {"region": one["region"], "moves": bool(one["moves"])}
            found[row["number"]] = Phase(**values, seconds=finite(row["seconds"]), **more)
        return [found[number] for number in sorted(found)]

    @cached_property
    def sampling(self) -> Sampling | None:
        """The newest account of `--mechanism sampling`; None with another."""
        last = None
        counts = ("scans", "scanned", "accessed", "eligible", "moved", "frozen")
        for row in self.dicts("sampling", *counts, "seconds"):
            values = {name: row[name] for name in counts}
            last = Sampling(**values, seconds=finite(row["seconds"]))
        return last

    @cached_property
    def task_hints(self) -> TaskHints | None:
        """What became of affinity clauses; None without `--tasks affinity`."""
        left = {self.text(row["reason"]): row["count"] for row in self.dicts("task_left", "reason", "count")}
        last = None
        columns = ("given", "honoured", "at_home", "elsewhere")
        for row in self.dicts("tasks", *columns):
            last = TaskHints(row["given"], row["honoured"], row["at_home"], row["elsewhere"], left)
        return last

    @cached_property
    def overhead(self) -> Overhead:
        """The newest account of homing's own time."""
        last = Overhead()
        counts = ("faults", "region_events", "armed", "touches", "calls")  # 0.1.0 had the first two
        for row in self.dicts("overhead", "observing", "deciding", "moving", "hooks", *counts[:2]):
            last = Overhead(
                finite(row["observing"]),
                finite(row["deciding"]),
                finite(row["moving"]),
                finite(row["hooks"]),
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
        for row in self.dicts("end", *columns):
            last = End(
                finite(row["time"]),
                finite(row["parallel_seconds"]),
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
        times += [finite(row["time"]) for row in self.dicts("overhead", "time")][-1:]
        return max(times, default=0.0)


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
            program=shown(str(header.get("program", "?"))),
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
