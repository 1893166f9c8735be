"""`--map`: the page map of each area in Unicode blocks, for a terminal at the other end of ssh.

A lane for each node, from the first address to the last; a cell's height is the share of its pages that lie
on that node. On machines of more than eight nodes a cell is the node that holds most of its pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homing.arrays import NDArray, np
from homing.record_rows import AT_END, FOUND
from homing.report.area_lines import MOST_AREAS, owners
from homing.report.lines import Text
from homing.report.page_maps import PageMap, page_maps
from homing.report.results import AreaResult, ProcessResult
from homing.report.words import number, size

_HEIGHTS = " ▁▂▃▄▅▆▇█"
#: More nodes are told by a letter, as lanes would fill the screen.
_MOST_LANES = 8
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+"
_LABEL = 9
#: Wider maps show no more than these.
_MOST_CELLS = 200


def page_blocks(process: ProcessResult, width: int) -> Iterable[Text]:
    """The maps of the largest areas, in lines of at most `width` cells."""
    record = process.record
    maps = page_maps(record)
    if not maps:
        yield Text("page map: this record holds none (an older homing wrote it, or nothing was looked at)")
        return
    cells = max(16, min(_MOST_CELLS, width - _LABEL - 1))
    known = [area for area in process.areas if any((one, FOUND) in maps for one in area.ids)]
    for area in known[:MOST_AREAS]:
        owned = owners(area.ownership)
        said = f", owners {owned}" if owned else ""
        yield Text(f"{area.name.shown}, {size(area.live_bytes)}{said}", "bold")
        for when, label in ((FOUND, "found"), (AT_END, "at end")):
            parts = [maps[one, when] for one in _by_address(area, process) if (one, when) in maps]
            if parts:
                yield from _lanes(parts, label, cells, record.positions)
            elif when == AT_END:
                yield Text(f"{label:<7}  freed before the end, or not looked at", "dim")
    if len(known) > MOST_AREAS:
        yield Text(f"{number(len(known) - MOST_AREAS)} more areas")


def _by_address(area: AreaResult, process: ProcessResult) -> list[int]:
    return sorted(area.ids, key=lambda one: process.record.areas_by_id[one].begin)


def _lanes(parts: list[PageMap], label: str, cells: int, positions: list[int]) -> Iterable[Text]:
    held = shares(parts, cells, len(positions))
    if len(positions) > _MOST_LANES:
        most = held.argmax(axis=1)
        line = "".join(
            _LETTERS[min(int(node), len(_LETTERS) - 1)] if held[at, node] > 0 else "."
            for at, node in enumerate(most)
        )
        yield Text(f"{label:<{_LABEL}}{line}")
        return
    for position, index in enumerate(positions):
        line = "".join(_height(float(share)) for share in held[:, position])
        yield Text(f"{label if position == 0 else '':<7}{index:>1} {line}".rstrip())


def _height(share: float) -> str:
    """A cell: nothing only where nothing is, all of it only where everything is."""
    if share <= 0:
        return "·"
    if share >= 1 - 1e-9:
        return _HEIGHTS[-1]
    return _HEIGHTS[min(7, max(1, round(8 * share)))]


def shares(parts: list[PageMap], cells: int, nodes: int) -> NDArray[Any]:
    """[cell][node]: the share of the cell's pages that lie there. The areas lie one behind the other."""
    whole = sum(one.granules for one in parts)
    held = np.zeros((cells + 1, nodes))
    begin = 0
    for one in parts:
        there = one.node >= 0
        first = (begin + one.first[there]) * (cells / whole)
        last = first + one.lengths[there] * (cells / whole)
        _spread(held, first, last, one.node[there])
        begin += one.granules
    return held[:cells]


def _spread(
    held: NDArray[Any],
    first: NDArray[Any],
    last: NDArray[Any],
    node: NDArray[Any],
) -> None:
    """Add to each cell how much of it the runs cover."""
    for begin, end, at in zip(first.tolist(), last.tolist(), node.tolist(), strict=True):
        left, right = int(begin), min(int(end), len(held) - 1)
        if left == right:
            held[left, at] += end - begin
        else:
            held[left, at] += left + 1 - begin
            held[left + 1 : right, at] += 1
            held[right, at] += end - right
