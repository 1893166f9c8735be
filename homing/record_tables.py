"""The tables of a record file, and the texts and facts in them. What else they tell is in homing/records.py
and homing/record_memory.py."""

from __future__ import annotations

import math

from homing.arrays import NDArray, np
from homing.late import pattern
from homing.light import cached_property
from homing.record_file import Column, Tables
from homing.record_format import shown
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Where the launcher has put the costs of a described machine, for one run.
_MACHINES_COSTS = pattern(r"/homing-run-[^/]+/(?:[0-9]+/)?costs\.toml$")

#: Columns that hold several values; every other one holds one.
_ARRAYS = {
    "text": {"bytes"},
    "distance": {"to"},
    "area": {"origin", "origin_object"},
    "frames": {"origin", "origin_object"},
    "placement": {"pages"},
    "references": {"to"},
    "misses": {"to"},
    "page_map": {"first", "node"},
}
#: Columns of other kinds than numbers without a sign (src/record/rows.hpp): i with one, f real, S bytes.
_KINDS = {
    **dict.fromkeys(("cpu", "cpus", "error", "index", "node", "position", "target"), "i"),
    **dict.fromkeys(("time", "last", "seconds", "parallel_seconds", "overhead_seconds"), "f"),
    **dict.fromkeys(("longest_call_seconds", "observing", "deciding", "moving", "hooks"), "f"),
    **dict.fromkeys(("before", "before1", "before2", "after", "after1", "after2", "traffic", "weight2"), "f"),
    **dict.fromkeys(("confidence", "probability", "ignorance", "gain", "price", "remote_ns", "move_ns"), "f"),
}
#: The same where a name is of another kind in other rows.
_KINDS_IN = {
    "text": {"bytes": "S"},
    "distance": {"from": "i", "first": "i", "count": "i", "to": "f"},
    "references": {"to": "f"},
    "sample": {"thread": "i"},
    "first_touch": {"thread": "i"},
    "estimate": {"touches": "f", "weight": "f"},
}
_MOST_TEXT_BYTES = 1 << 20


@dataclass
class RecordTables:
    """One process's record: what its header says, and its rows."""

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
        return self.rows.array(name, self._sound(name))

    def dicts(self, name: str, *needed: str) -> Iterator[dict[str, Any]]:
        """Rows of one kind as plain values; none where one of these columns is missing."""
        if not self.rows.has(name):
            return
        columns = self._sound(name)
        if {column.name for column in columns}.issuperset(needed):
            yield from self.rows.values(name, columns)

    def _sound(self, name: str) -> list[Column]:
        """The columns that are what they are to be. Others are those of a damaged header, or later ones: with
        one value where several belong, or of another kind."""
        arrays, kinds = _ARRAYS.get(name, set()), {**_KINDS, **_KINDS_IN.get(name, {})}
        read = [
            column.read_as(kinds.get(column.name, "u"))
            for column in self.rows.columns(name)
            if (column.count > 1) == (column.name in arrays)
        ]
        return [column for column in read if column is not None]

    @cached_property
    def texts(self) -> dict[int, str]:
        """Texts by id, joined from their pieces."""
        pieces: dict[int, dict[int, bytes]] = {}
        totals: dict[int, int] = {}
        for row in self.dicts("text", "id", "offset", "total", "bytes"):
            pieces.setdefault(row["id"], {})[row["offset"]] = row["bytes"]
            totals[row["id"]] = min(row["total"], _MOST_TEXT_BYTES)
        texts = {}
        for number, parts in pieces.items():
            whole = bytearray()
            for offset in sorted(parts):
                if offset != len(whole):
                    break  # a piece is missing: what comes before it still helps
                whole += parts[offset]
            texts[number] = shown(bytes(whole[: totals[number]]).decode("utf-8", "surrogateescape"))
        return texts

    def text(self, number: int) -> str:
        """The text with this id; empty for 0, "?" for one that is missing."""
        return self.texts.get(number, "?") if number else ""

    @cached_property
    def facts(self) -> dict[str, str]:
        """Facts of the run; the last value of a key counts."""
        rows = self.dicts("fact", "key", "value")
        found = {self.text(row["key"]): self.text(row["value"]) for row in rows}
        costs = found.get("costs", "")
        if "/homing-run-" in costs and _MACHINES_COSTS.search(costs):
            found["costs"] = "stated by the machine's description"
        return found


def finite(value: float) -> float:
    """0 for what cannot be a time or a count."""
    return value if math.isfinite(value) and abs(value) < 1e15 else 0.0


def fraction(value: float) -> float:
    """NaN for what is no share."""
    return value if 0 <= value <= 1 else math.nan
