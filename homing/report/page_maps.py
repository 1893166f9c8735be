"""Where each page of an area was, by address: runs of granules on one node, from rows `page_map` (a sample of
up to 1,024 granules an area) or, with --record-samples, rows `homes` (every granule)."""

from __future__ import annotations

from dataclasses import dataclass

from homing.arrays import NDArray, np
from homing.record_rows import AT_END, FOUND
from homing.records import Record


@dataclass(frozen=True)
class PageMap:
    """An area at one moment. first: the granules at which runs begin, ascending from 0; node: the position of
    each run's node, -1 where nothing is populated; step: of so many granules one was looked at."""

    area: int
    when: int
    granules: int
    step: int
    first: NDArray[np.int64]
    node: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The granules of each run."""
        return np.diff(self.first, append=self.granules)

    def pages_on(self, nodes: int) -> list[int]:
        """Granules on each node."""
        there = self.node >= 0
        held = np.bincount(self.node[there], self.lengths[there], minlength=nodes)
        return [int(one) for one in held]


def page_maps(record: Record) -> dict[tuple[int, int], PageMap]:
    """By area and moment (FOUND, AT_END); the last one of each counts."""
    sampled = _sampled(record)
    return {**sampled, **_whole(record)}


def _granules(record: Record, area: int) -> int:
    known = record.areas_by_id.get(area)
    if known is None:
        return 0
    return -(-known.bytes // max(1, known.granule or record.page_bytes))


def _sampled(record: Record) -> dict[tuple[int, int], PageMap]:
    rows = record.table("page_map")
    needed = {"area", "when", "time", "at", "count", "step", "first", "node"}
    if not needed <= set(rows.dtype.names or ()) or rows.dtype["first"].shape != rows.dtype["node"].shape:
        return {}
    found: dict[tuple[int, int], list[int]] = {}
    # Rows of one map follow each other; a row that begins at run 0 begins a map.
    for index, (area, when, at) in enumerate(
        zip(rows["area"].tolist(), rows["when"].tolist(), rows["at"].tolist(), strict=True)
    ):
        key = (area, when)
        if at == 0:
            found[key] = [index]
        elif at and key in found and found[key][-1] == index - 1:
            found[key].append(index)
    maps = {}
    width = rows.dtype["first"].shape[0]
    for (area, when), indices in found.items():
        granules = _granules(record, area)
        if when not in (FOUND, AT_END) or not granules:
            continue
        part = rows[indices[0] : indices[-1] + 1]
        used = np.arange(width)[None, :] < part["count"][:, None]
        first, node = part["first"][used].astype(np.int64), part["node"][used].astype(np.int64)
        one = _sound(record, PageMap(area, when, granules, max(1, int(part["step"][0])), first, node))
        if one is not None:
            maps[area, when] = one
    return maps


def _whole(record: Record) -> dict[tuple[int, int], PageMap]:
    rows = record.table("homes")
    if not {"area", "when", "time", "first", "end", "node"} <= set(rows.dtype.names or ()):
        return {}
    rows = rows[(rows["when"] == FOUND) | (rows["when"] == AT_END)]
    order = np.lexsort((np.arange(len(rows)), rows["time"], rows["when"], rows["area"]))
    rows = rows[order]
    borders = np.flatnonzero(
        (np.diff(rows["area"].astype(np.int64)) != 0)
        | (np.diff(rows["when"].astype(np.int64)) != 0)
        | (np.diff(rows["time"]) != 0)
    )
    maps: dict[tuple[int, int], PageMap] = {}
    for part in np.split(rows, borders + 1) if len(rows) else []:
        area, when = int(part["area"][0]), int(part["when"][0])
        granules = _granules(record, area)
        if not granules:
            continue
        one = _sound(
            record,
            PageMap(area, when, granules, 1, part["first"].astype(np.int64), part["node"].astype(np.int64)),
        )
        if one is not None:
            maps[area, when] = one
    return maps


def _sound(record: Record, found: PageMap) -> PageMap | None:
    """The map, if it is one: runs ascend from 0 within the area, and every node is one of the record's."""
    first, node = found.first, found.node
    sound = (
        len(first) > 0
        and first[0] == 0
        and bool((np.diff(first) > 0).all())
        and first[-1] < found.granules
        and bool((node < record.node_count).all())
    )
    if not sound:
        return None
    return PageMap(found.area, found.when, found.granules, found.step, first, np.maximum(node, -1))
