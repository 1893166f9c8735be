"""The distances between the nodes of a machine that hwloc describes."""

from __future__ import annotations

import re

from homing.simulate.hwloc_file import MOST_CPUS, MOST_NUMBER, Element, Wrong, shown, whole

#: Bits of the kind of a matrix of distances (hwloc/distances.h).
_FROM_SYSTEM, _LATENCY, _OTHER_VALUES = 1, 4, 8 | 16 | 32
_LOCAL, _REMOTE, _FARTHEST = 10.0, 20.0, 254.0


def distances_of(
    root: Element, nodes: list[Element], kept: list[int], remarks: list[str]
) -> tuple[tuple[float, ...], ...]:
    """Relative latencies between the nodes, 10 local. What no matrix tells is the kernel's default."""
    best: dict[tuple[int, int], float] = {}
    for table in sorted([*root.inside("distances2"), *root.inside("distances")], key=_rank):
        best = _matrix2(table, nodes) if table.tag == "distances2" else _matrix1(table, nodes)
        if best:
            break
    count = len(kept)
    if not best:
        if count > 1:
            remarks.append("no latencies between nodes are told: distances of 10 and 20 are assumed")
        return tuple(tuple(_LOCAL if a == b else _REMOTE for b in range(count)) for a in range(count))
    missing = sum((a, b) not in best for a in kept for b in kept if a != b)
    if missing:
        remarks.append(f"{missing} distances are missing: 20 is assumed for them")
    return tuple(tuple(_LOCAL if a == b else _relative(best, a, b) for b in kept) for a in kept)


def _relative(values: dict[tuple[int, int], float], a: int, b: int) -> float:
    value = values.get((a, b))
    if value is None:
        return _REMOTE
    local = values.get((a, a), _LOCAL)
    return min(max(value * _LOCAL / local if local > 0 else value, _LOCAL), _FARTHEST)


def _rank(table: Element) -> tuple[bool, bool]:
    """The kernel's own latencies come first."""
    kind = table.number("kind") or 0
    return table.attributes.get("name") != "NUMALatency", not kind & _FROM_SYSTEM


def _numbers(table: Element, tag: str, count: int) -> list[int]:
    """The whole numbers of all elements of this name in a matrix; no more than count are needed."""
    words = [word for one in table.inside(tag) for word in "".join(one.text).split()]
    if len(words) > count:
        return []
    return [whole(word, f"{table.tag}: {tag}", 0, MOST_NUMBER << 1) for word in words]


def _matrix2(table: Element, nodes: list[Element]) -> dict[tuple[int, int], float]:
    """A matrix of hwloc 2 by positions of nodes; empty: it has no latencies between nodes."""
    kind = table.number("kind") or 0
    if table.attributes.get("type") != "NUMANode" or not kind & _LATENCY or kind & _OTHER_VALUES:
        return {}
    count = table.number("nbobjs", most=MOST_CPUS) or 0
    attribute = "gp_index" if table.attributes.get("indexing") == "gp" else "os_index"
    place = {one.number(attribute): at for at, one in enumerate(nodes)}
    indexes = _numbers(table, "indexes", count)
    values = _numbers(table, "u64values", count * count)
    if len(indexes) != count or len(values) != count * count:
        return {}
    at = [place.get(index, -1) for index in indexes]
    return {
        (at[a], at[b]): float(values[a * count + b])
        for a in range(count)
        for b in range(count)
        if at[a] >= 0 and at[b] >= 0 and values[a * count + b] > 0
    }


def _matrix1(table: Element, nodes: list[Element]) -> dict[tuple[int, int], float]:
    """A matrix of hwloc 1: it stands in the object that has all the nodes in it, which are meant in the order
    of the file."""
    count = table.number("nbobjs", most=MOST_CPUS) or 0
    if table.parent is None or count != len(nodes):
        return {}
    place = {id(one): at for at, one in enumerate(nodes)}
    at = [place[id(one)] for one in table.parent.inside() if id(one) in place]
    base = _real(table, "latency_base", 1.0)
    values = [_real(one, "value", 0.0) for one in table.inside("latency")]
    if len(at) != count or len(values) != count * count:
        return {}
    return {
        (at[a], at[b]): values[a * count + b] * base
        for a in range(count)
        for b in range(count)
        if values[a * count + b] * base > 0
    }


def _real(one: Element, name: str, default: float) -> float:
    text = one.attributes.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,20}([.,][0-9]{0,40})?([eE][+-]?[0-9]{1,2})?", text.strip(), re.ASCII):
        raise Wrong(f"{one.tag}: {name} is {shown(text)}, which is no number")
    return float(text.replace(",", "."))
