"""The areas of a process in the summary: a table, or a record for each where the width has no room for
one."""

from __future__ import annotations

import math

from homing.record_rows import Ownership, Placement
from homing.records import Record
from homing.report.debug_facts import Member
from homing.report.layout import Column, fitted, records
from homing.report.lines import Table, Text
from homing.report.remote import LEAST_SAMPLES, Estimate, Share
from homing.report.results import AreaResult, most_alive
from homing.report.words import cut, number, percent, size, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: More areas than these are one line at the end of the table.
MOST_AREAS = 12
#: More members of a COMMON block than these are only counted.
MOST_MEMBERS = 3
#: More nodes than these are told in words, not in columns.
MOST_NODES = 4
#: Below this width each area is a record.
LEAST_TABLE = 100


def area_lines(areas: list[AreaResult], record: Record, names: bool, width: int) -> Iterable[Text | Table]:
    """names: with those by which `--areas` knows what has another title."""
    shown, more = areas[:MOST_AREAS], areas[MOST_AREAS:]
    table = _table(shown, record, names, width) if width >= LEAST_TABLE else None
    if table is not None:
        yield table
    else:
        yield from records(_record(area, record, names) for area in shown)
    if more:
        count, live = sum(area.count for area in more), most_alive(record, _ids(more))
        yield Text(f"{number(count)} more areas, {size(live)} at one time")


def not_placed(areas: list[AreaResult], record: Record) -> Text:
    """What was said of no area above: how many, and what they held at one time (most are temporaries)."""
    count, live = sum(area.count for area in areas), most_alive(record, _ids(areas))
    were = "area was" if count == 1 else "areas were"
    return Text(f"{number(count)} other {were} not placed, at most {size(live)} of them at one time", "dim")


def _ids(areas: Iterable[AreaResult]) -> Iterable[int]:
    return (one for area in areas for one in area.ids)


def _table(areas: list[AreaResult], record: Record, names: bool, width: int) -> Table | None:
    indices = record.positions
    few = len(indices) <= MOST_NODES
    # One header line says which nodes the columns of per cents are.
    nodes = " ".join(f"{index:3}" for index in indices) if few else f"of {len(indices)} nodes"
    columns = [
        Column("area", least=24),
        Column("size", right=True),
        Column(f"were % on node\n{nodes}", least=None if few else 20),
        Column(f"are % on node\n{nodes}", least=None if few else 20),
        Column("owners", least=13),
        Column("remote, estimated\n95 % within; touches"),
    ]
    rows: list[list[str | Text]] = [
        [
            _title(area, names),
            size(area.live_bytes),
            shares(area.before, indices),
            shares(area.after, indices) + (f"\n{ended}" if (ended := _ended(area)) else ""),
            _owners(area, record),
            "\n".join(_remote(area.remote)),
        ]
        for area in areas
    ]
    empty = {at for at in range(len(columns)) if not any(row[at] for row in rows)}
    kept = [[cell for at, cell in enumerate(row) if at not in empty] for row in rows]
    return fitted([column for at, column in enumerate(columns) if at not in empty], kept, width)


def _record(area: AreaResult, record: Record, names: bool) -> list[str | Text]:
    indices = record.positions
    nodes = f"nodes {' '.join(map(str, indices))}" if len(indices) <= MOST_NODES else "nodes"
    ended = _ended(area)
    remote = ", ".join(_remote(area.remote))
    owned = _owners(area, record)
    return [
        _title(area, names),
        f"size {size(area.live_bytes)}",
        f"were % on {nodes}: {_packed(shares(area.before, indices))}",
        f"are % on {nodes}: {_packed(shares(area.after, indices))} {ended}".rstrip(),
        f"owners: {owned}" if owned else "",
        f"remote, estimated (95 % within; touches): {remote}" if remote else "",
    ]


def _ended(area: AreaResult) -> str:
    """What became of the memory, where the area ended before the run."""
    return "" if not area.ended else "(then another area)" if area.renamed else "(then freed)"


def _packed(text: str) -> str:
    return " ".join(text.split())


def _title(area: AreaResult, names: bool) -> Text:
    name = Text(area.name.shown + _blocks(area))
    if names and area.area.name not in area.name.title:
        name.append(f"\n  {cut(area.area.name)}", "dim")
    if area.name.members:
        name.append(f"\n  {_members(area.name.members)}", "dim")
    return name


def _blocks(area: AreaResult) -> str:
    """Of how many blocks an area's line tells."""
    if area.area.blocks > 1:
        return f" ({number(area.count)} blocks)"
    return f" (x {area.count})" if area.count > 1 else ""


def _members(members: Sequence[Member]) -> str:
    """The members of a COMMON block, the largest first."""
    largest = sorted(members, key=lambda member: -member.bytes)
    # 0 bytes: not known.
    return some([f"{one.name} {size(one.bytes)}" if one.bytes else one.name for one in largest], MOST_MEMBERS)


def shares(placement: Placement | None, indices: list[int]) -> str:
    """The share of present pages on each node, in per cent; the fullest ones where there are many nodes."""
    if placement is None:
        return "unknown"
    if not placement.present:
        return "not touched"
    percents = [100 * pages / placement.present for pages in placement.pages]
    if len(percents) <= MOST_NODES:
        return " ".join(f"{value:3.0f}" for value in percents)
    if max(percents) - min(percents) <= max(1.0, 25 / len(percents)):
        return f"even, {percents[0]:.0f} each"
    fullest = sorted(range(len(percents)), key=lambda at: -percents[at])[:4]
    shown = [
        f"{indices[at] if at < len(indices) else at}: {percents[at]:.0f}"
        for at in fullest
        if percents[at] >= 0.5
    ]
    left = 100 - sum(percents[at] for at in fullest)
    return ", ".join(shown) + (f", others: {left:.0f}" if left >= 0.5 else "")


def _owners(area: AreaResult, record: Record) -> str:
    if not record.ownerships:
        return owners(area.ownership)
    return owners(area.ownership) or ("not known" if area.samples else "not seen")


def owners(ownership: Ownership | None) -> str:
    """The distribution that is believed, in the words of the directives, with its probability."""
    if ownership is None:
        return ""
    if ownership.distribution == "HOME":
        return f"as it lies, {100 * ownership.confidence:.0f} %"
    if ownership.distribution == "NONE":
        return f"NONE ({number(ownership.known)} pages known)"
    if ownership.distribution:
        return f"{ownership.distribution}, {100 * ownership.confidence:.0f} %"
    # Records of 0.1.
    return {"shared": "shared by all", "none": "no pattern"}.get(ownership.kind, ownership.kind)


def _remote(found: Estimate | None) -> list[str]:
    """The estimate; its intervals and the touches it rests on."""
    if found is None:
        return []
    touches = number(round(found.touches))
    if not found.enough:
        return ["too few samples", f"{touches}, {independent(found)}"]
    inner = interval(found.before)
    if found.changed:
        inner += f" -> {interval(found.after)}"
    return [change(found), f"{inner} %; {touches}"]


def independent(found: Estimate) -> str:
    """How many independent samples there are, and are needed."""
    return f"{math.floor(found.effective + 1e-9)} of {LEAST_SAMPLES} independent"


def change(found: Estimate) -> str:
    """The estimate in per cent. An arrow only where the ends differ."""
    before, after = percent(found.before.fraction), percent(found.after.fraction)
    return f"{before} -> {after}" if found.changed else after


def interval(share: Share) -> str:
    """The interval in per cent, without the sign: 3.8-8.1, 44-56."""
    digits = 1 if share.high < 0.0995 else 0
    return f"{100 * share.low:.{digits}f}-{100 * share.high:.{digits}f}"
