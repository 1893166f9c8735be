"""Memory that stayed where it was when its area ended: the program named it (`homing_watch`), named it
again, or took the name back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from homing.records import Record

#: Seconds from the end of an area to the begin of the one that its memory became: the library does both at
#: once, but may be interrupted.
_AT_ONCE = 1e-3


def renamed(record: Record) -> dict[int, int]:
    """By area: the one that its memory became at once, where one of the two is named by the program."""
    areas = sorted(record.areas, key=lambda area: area.time)
    named = [area for area in areas if area.kind == "named"]
    all_times, named_times = ([area.time for area in some] for some in (areas, named))
    found = {}
    for area in areas if named else ():
        end = record.area_ends.get(area.id)
        if end is None:
            continue
        others, times = (areas, all_times) if area.kind == "named" else (named, named_times)
        for other in others[bisect_left(times, end) : bisect_right(times, end + _AT_ONCE)]:
            overlap = area.begin < other.begin + other.bytes and other.begin < area.begin + area.bytes
            if overlap and other.id != area.id:
                found[area.id] = other.id
                break
    return found


def same_memory(names: dict[int, int], ids: set[int]) -> set[int]:
    """Some areas (`ids`), and those whose memory is the same under other names. names: renamed()."""
    before: dict[int, list[int]] = {}
    for area, other in names.items():
        before.setdefault(other, []).append(area)
    found, open_ids = set(ids), list(ids)
    while open_ids:
        one = open_ids.pop()
        for other in (*before.get(one, ()), *((names[one],) if one in names else ())):
            if other not in found:
                found.add(other)
                open_ids.append(other)
    return found
