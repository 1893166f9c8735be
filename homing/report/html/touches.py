"""Single touches that a record keeps (--record-samples), by area and thread, and by the line of code that
made them. Remote is what came from another node than the page's, as found and at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homing.arrays import NDArray, np
from homing.record_rows import AT_END, FOUND
from homing.records import Record
from homing.report.page_maps import PageMap
from homing.report.sources import Sources

_COLUMNS = {"area", "granule", "thread", "node", "write", "weight", "region", "object", "offset"}
#: Places in the code that are looked up at most; the ones with fewer touches are one line.
MOST_PLACES = 2000


@dataclass(frozen=True)
class Touches:
    """Touches in the order of their areas. node: the position of the thread's node, -1 where it is not known.
    found, end: the position of the page's node at either moment, -1 where it is not known."""

    area: NDArray[np.int64]
    granule: NDArray[np.int64]
    thread: NDArray[np.int64]
    node: NDArray[np.int64]
    write: NDArray[np.int64]
    weight: NDArray[np.float64]
    region: NDArray[np.int64]
    object: NDArray[np.int64]
    offset: NDArray[np.int64]
    found: NDArray[np.int64]
    end: NDArray[np.int64]


@dataclass(frozen=True)
class Line:
    """Touches that one line of code made: their weight in all; of the weight whose pages' nodes are known at
    either moment, that known and the remote part of it."""

    file: str
    line: int
    function: str
    touches: float
    found: tuple[float, float]
    end: tuple[float, float]


def touches(record: Record, maps: Mapping[tuple[int, int], PageMap]) -> Touches | None:
    """The touches of a record; None where it keeps none."""
    rows = record.table("sample")
    if not len(rows) or not set(rows.dtype.names or ()) >= _COLUMNS:
        return None
    rows = rows[np.argsort(rows["area"], kind="stable")]
    area, granule = rows["area"].astype(np.int64), rows["granule"].astype(np.int64)
    homes = {when: _homes(area, granule, maps, when) for when in (FOUND, AT_END)}
    return Touches(
        area,
        granule,
        rows["thread"].astype(np.int64),
        rows["node"].astype(np.int64),
        rows["write"].astype(np.int64),
        np.maximum(1.0, rows["weight"].astype(np.float64)),
        rows["region"].astype(np.int64),
        rows["object"].astype(np.int64),
        rows["offset"].astype(np.int64),
        homes[FOUND],
        homes[AT_END],
    )


def _homes(
    area: NDArray[np.int64],
    granule: NDArray[np.int64],
    maps: Mapping[tuple[int, int], PageMap],
    when: int,
) -> NDArray[np.int64]:
    found = np.full(len(area), -1, dtype=np.int64)
    borders = np.flatnonzero(np.diff(area)) + 1
    for part in np.split(np.arange(len(area)), borders):
        one = maps.get((int(area[part[0]]), when)) if len(part) else None
        if one is not None:
            at = np.searchsorted(one.first, granule[part], side="right") - 1
            found[part] = one.node[at]
    return found


def _remote(all_of: Touches, home: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[float, float]:
    known = chosen[(home[chosen] >= 0) & (all_of.node[chosen] >= 0)]
    remote = known[all_of.node[known] != home[known]]
    return float(all_of.weight[known].sum()), float(all_of.weight[remote].sum())


def lines(record: Record, all_of: Touches, sources: Sources) -> list[Line]:
    """Touches by source line, the most first; those without an instruction are left out."""
    with_code = np.flatnonzero(all_of.object > 0)
    if not len(with_code):
        return []
    keys = np.stack((all_of.object[with_code], all_of.offset[with_code]), axis=1)
    places, index = np.unique(keys, axis=0, return_inverse=True)
    index = index.ravel()
    order = np.argsort(-np.bincount(index, all_of.weight[with_code]))
    parts: dict[tuple[str, int, str], list[int]] = {}
    for number in order[:MOST_PLACES].tolist():
        path, offset = record.text(int(places[number, 0])), int(places[number, 1])
        frames = sources.frames(path, offset + 1)  # the instruction itself, not a return address
        one = next((frame for frame in frames if frame.line), None)
        key = (one.file, one.line, one.function) if one is not None else (path, 0, f"+{offset:#x}")
        parts.setdefault(key, []).append(number)
    found = []
    for (file, line, function), numbers in parts.items():
        chosen = with_code[np.isin(index, numbers)]
        found.append(
            Line(
                file,
                line,
                function,
                float(all_of.weight[chosen].sum()),
                _remote(all_of, all_of.found, chosen),
                _remote(all_of, all_of.end, chosen),
            )
        )
    return sorted(found, key=lambda one: -one.touches)


def region_matrices(all_of: Touches, nodes: int) -> dict[int, NDArray[np.float64]]:
    """Touches of each region by node of the thread and home of the page as found."""
    matrices: dict[int, NDArray[np.float64]] = {}
    known = np.flatnonzero((all_of.node >= 0) & (all_of.node < nodes) & (all_of.found >= 0))
    for region in np.unique(all_of.region[known]).tolist():
        chosen = known[all_of.region[known] == region]
        matrix = np.zeros((nodes, nodes))
        np.add.at(matrix, (all_of.node[chosen], all_of.found[chosen]), all_of.weight[chosen])
        matrices[region] = matrix
    return matrices
