"""What a record tells of the machine and of memory: nodes, threads, areas, where their pages were and who
touched them."""

from __future__ import annotations

import math

from homing.arrays import NDArray, np
from homing.light import cached_property
from homing.record_rows import (
    AREA_KINDS,
    Area,
    Node,
    Placement,
    References,
    Rule,
    Thread,
)
from homing.record_tables import RecordTables, finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: More nodes are damage, not machines: Linux has 1,024 at the most (MAX_NUMNODES).
_MOST_NODES = 1024
#: So many references are damage; their sums are finite.
_MOST_REFERENCES = 1e60


class MemoryRecord(RecordTables):
    """One process's record, as far as memory goes."""

    @cached_property
    def nodes(self) -> list[Node]:
        """The NUMA nodes, by their operating system index."""
        found: dict[int, Node] = {}
        for row in self.dicts("node", "position", "index", "memory_bytes", "free_bytes", "cpus", "target"):
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
        for row in self.dicts("distance", "from", "first", "count", "to"):
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
            for row in self.dicts("thread", "thread", "node", "cpu", "bound")
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
        for row in self.dicts("area", *columns):
            origin = self._frames(row) + more.get(row["id"], ())
            found[row["id"]] = Area(
                row["id"],
                row["begin"],
                row["bytes"],
                AREA_KINDS.get(row["kind"], "?"),
                self.text(row["name"]),
                self.text(row["object"]),
                row["granule"],
                found[row["id"]].time if row["id"] in found else finite(row["time"]),
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
        for row in self.dicts("frames", "area", "first", "origin", "origin_object"):
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
        for row in self.dicts("object", "path", "identity"):
            path, identity = self.text(row["path"]), self.text(row["identity"])
            found[path] = identity if found.get(path, identity) == identity else ""
        return found

    @cached_property
    def sources(self) -> dict[tuple[str, int, int], str]:
        """What the launcher looked up after the run, by object, what, and offset (docs/record.md)."""
        return {
            (self.text(row["object"]), row["what"], row["offset"]): self.text(row["text"])
            for row in self.dicts("source", "object", "what", "offset", "text")
        }

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules of --areas."""
        return [Rule(self.text(row["text"]), row["areas"]) for row in self.dicts("rule", "text", "areas")]

    @cached_property
    def areas_by_id(self) -> dict[int, Area]:
        """The areas by id."""
        return {area.id: area for area in self.areas}

    @cached_property
    def area_ends(self) -> dict[int, float]:
        """When areas ended, by id; not those that came back later (temporaries)."""
        begun: dict[int, float] = {}
        for row in self.dicts("area", "id", "time"):
            begun[row["id"]] = finite(row["time"])
        ends = {row["id"]: finite(row["time"]) for row in self.dicts("area_end", "id", "time")}
        return {one: time for one, time in ends.items() if time >= begun.get(one, 0.0)}

    @cached_property
    def placements(self) -> list[Placement]:
        """Placements in the order in which they were written; rows of more than eight nodes are joined."""
        joined: dict[tuple[int, int, int, float], dict[int, tuple[int, ...]]] = {}
        others: dict[tuple[int, int, int, float], tuple[bool, int]] = {}
        columns = ("area", "time", "when", "first", "sampled", "iteration", "pages", "absent")
        for row in self.dicts("placement", *columns):
            key = (row["area"], row["when"], row["iteration"], finite(row["time"]))
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
        for row in self.dicts("references", "area", "iteration", "from", "first", "to"):
            matrix = tables.setdefault((row["area"], row["iteration"]), np.zeros((count, count)))
            for at, value in enumerate(row["to"]):
                if row["from"] < count and row["first"] + at < count and 0 <= value < _MOST_REFERENCES:
                    matrix[row["from"], row["first"] + at] += value
        return [References(area, iteration, matrix) for (area, iteration), matrix in tables.items()]
