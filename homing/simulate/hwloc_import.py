"""Machines that hwloc describes: the XML files of lstopo (hwloc 1, 2 and 3), and its synthetic notation.

What is not in the file is not invented: it is left unknown, or assumed and said in the machine's remarks. A
file that cannot be a description ends in one line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from homing.errors import UserError
from homing.files import MOST_DESCRIPTION, read_bytes
from homing.integers import within
from homing.simulate.machines import (
    LEAST_LINE,
    LEAST_PAGE,
    MOST_NODES,
    MOST_PAGE,
    Cache,
    Machine,
    TimeModel,
    is_power_of_two,
    mean_ratio,
    show_size,
)

#: Linux has numbers of CPUs and nodes below these.
_MOST_CPUS = 1 << 16
_ALL = (1 << _MOST_CPUS) - 1
_MOST_INDEX = 1 << 20
_MOST_NUMBER = 1 << 63

#: What is taken where the file tells nothing.
_PRIVATE = Cache(1 << 20, 16)
_ASSUMED_WAYS = 16
_FULL_WAYS = 64

#: Bits of the kind of a matrix of distances (hwloc/distances.h).
_FROM_SYSTEM, _LATENCY, _OTHER_VALUES = 1, 4, 8 | 16 | 32
_LOCAL, _REMOTE, _FARTHEST = 10.0, 20.0, 254.0

_DATA_CACHE = re.compile(r"L([1-5])Cache")


class _Wrong(Exception):
    """What is wrong with a description, in words."""


@dataclass(eq=False)
class _Element:
    """An element of the file: its attributes, its text, and what is in it."""

    tag: str
    attributes: dict[str, str]
    parent: _Element | None
    children: list[_Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The type of an object, by its name in hwloc 2."""
        name = self.attributes.get("type", "")
        if name == "Cache":  # hwloc 1
            inner = "i" if self.attributes.get("cache_type") == "2" else ""
            return f"L{self.attributes.get('depth', '')}{inner}Cache"
        return {"Socket": "Package", "Node": "NUMANode"}.get(name, name)

    def number(self, name: str, least: int = 0, most: int = _MOST_NUMBER) -> int | None:
        """An attribute that is a whole number; None where it is not there."""
        text = self.attributes.get(name)
        if text is None:
            return None
        return _whole(text, f"{self.kind or self.tag}: {name}", least, most)

    def inside(self, tag: str = "object") -> Iterator[_Element]:
        """All elements of this name in it, in the order of the file."""
        waiting = list(reversed(self.children))
        while waiting:
            one = waiting.pop()
            if one.tag == tag:
                yield one
            waiting += reversed(one.children)

    def around(self) -> Iterator[_Element]:
        """The objects around it, from the inside out."""
        at = self.parent
        while at is not None and at.tag == "object":
            yield at
            at = at.parent


def _whole(text: str, what: str, least: int, most: int) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", text, re.ASCII) or not least <= int(text) <= most:
        raise _Wrong(f"{what} is {_shown(text)}, which is no whole number from {least} to {most}")
    return int(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


# --- The file -----------------------------------------------------


def read_hwloc(path: str) -> Machine:
    """A machine of a file that `lstopo NAME.xml` wrote: nodes, CPUs, memory, caches and distances. UserError
    where it is none.

    The least and most of m and the costs of a move are not in it: the model's widest range is taken.
    """
    try:
        return _machine(_parse(read_bytes(path, MOST_DESCRIPTION)), path)
    except expat.ExpatError as error:
        raise UserError(f"{path}: not an XML file of hwloc: {error}") from None
    except (LookupError, UnicodeError, ValueError, OverflowError) as error:  # of encodings that nobody knows
        raise UserError(f"{path}: not an XML file of hwloc: {error}") from None
    except _Wrong as error:
        raise UserError(f"{path}: {error}") from None


def _parse(data: bytes) -> _Element:
    root: _Element | None = None
    at: _Element | None = None

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal root, at
        one = _Element(tag, attributes, at)
        if at is None:
            root = one
        else:
            at.children.append(one)
        at = one

    def end(_: str) -> None:
        nonlocal at
        at = at.parent if at else None

    def add_text(text: str) -> None:
        if at is not None:
            at.text.append(text)

    def refuse_entity(name: str, *_: object) -> None:
        # hwloc writes none, and they can stand for any amount of text, or for other files.
        raise _Wrong(f"declares an entity ({name}): not an XML file of hwloc")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = refuse_entity
    parser.Parse(data, True)
    if root is None or root.tag != "topology":
        raise _Wrong("not an XML file of hwloc: there is no topology in it")
    return root


def _bits(text: str, what: str) -> int:
    """A bitmap of hwloc ("0x1,0x00000003", words of 32 bits, the highest first) as a number."""
    value = 0
    words = text.strip().split(",")
    if words[0] == "0xf...f":  # all bits above
        value = _ALL
        del words[0]
    if len(words) > _MOST_CPUS // 32:
        raise _Wrong(f"{what} has more than {_MOST_CPUS} bits")
    for word in words:
        if not re.fullmatch(r"(0x)?[0-9a-fA-F]{0,8}", word, re.ASCII):
            raise _Wrong(f"{what} is {_shown(text)}, which is no set of hwloc")
        value = value << 32 | int(word.removeprefix("0x") or "0", 16)
    return value & _ALL


def _cpuset(one: _Element) -> int:
    """The CPUs of an object: its own set, else that of the object around it."""
    for candidate in (one, *one.around()):
        text = candidate.attributes.get("cpuset")
        if text is not None:
            return _bits(text, f"{candidate.kind}: cpuset")
    return 0


def _members(bits: int) -> list[int]:
    return [at for at, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]


# --- What is in it -----------------------------------------------------


def _machine(root: _Element, path: str) -> Machine:
    remarks: list[str] = []
    objects = list(root.inside())
    cpus = _cpus(objects)
    nodes, owned = _nodes(objects, cpus, remarks)
    ids = tuple(tuple(cpu for cpu in cpus if owned.get(cpu) == at) for at in range(len(nodes)))
    kept = [at for at in range(len(nodes)) if ids[at]]
    if not kept:
        raise _Wrong("no NUMA node has CPUs")
    if len(kept) > MOST_NODES:
        raise _Wrong(f"has {len(kept)} NUMA nodes with CPUs; {MOST_NODES} can be simulated")
    _remark_on_nodes(nodes, kept, remarks)
    line, caches = _line(objects), _Caches(objects, cpus)
    private, shared, groups = caches.chosen(line, [ids[at] for at in kept], remarks)
    distances = _distances(root, nodes, kept, remarks)
    memory = tuple(_memory(nodes[at]) for at in kept)
    if unknown := [str(at) for at, value in enumerate(memory) if value is None]:
        remarks.append(f"the memory of {_list('node', unknown)} is not known: it is never full")
    numbers = [cpu for at in kept for cpu in ids[at]]
    return Machine(
        name=os.path.basename(path).removesuffix(".xml"),
        title=f"described by hwloc in {os.path.basename(path)}",
        cpus=tuple(len(ids[at]) for at in kept),
        memory=memory,
        distances=distances,
        page=_page(objects, line),
        line=line,
        private=private,
        shared=shared,
        local_ns=100,
        bandwidth_gbs=10,
        link_gbs=5,
        time=TimeModel(mean_ratio(distances), (0.1, 1.0), 50, 2),
        path=path,
        cpu_ids=() if numbers == list(range(len(numbers))) else tuple(ids[at] for at in kept),
        cores=_groups(objects, "Core", numbers),
        caches=groups,
        sockets=_groups(objects, "Package", numbers),
        remarks=tuple(remarks),
    )


def _list(word: str, numbers: list[str]) -> str:
    """node 3; nodes 3, 4 and 5; nodes 3, 4, ... and 40 (38 of them)."""
    if len(numbers) == 1:
        return f"{word} {numbers[0]}"
    if len(numbers) > 8:
        return f"{word}s {numbers[0]}, {numbers[1]}, ... and {numbers[-1]} ({len(numbers)} of them)"
    return f"{word}s {', '.join(numbers[:-1])} and {numbers[-1]}"


def _index(one: _Element) -> int:
    found = one.number("os_index", most=_MOST_INDEX)
    if found is None:
        raise _Wrong(f"{one.kind}: os_index is missing")
    return found


def _cpus(objects: list[_Element]) -> list[int]:
    """The numbers of all CPUs, in hwloc's order: neighbours are near."""
    found = [_index(one) for one in objects if one.kind == "PU"]
    if not found:  # lstopo was told to leave them out
        found = _members(next((_cpuset(one) for one in objects if "cpuset" in one.attributes), 0))
    if found and max(found) >= _MOST_CPUS:
        raise _Wrong(f"PU: os_index is {max(found)}; CPUs have numbers below {_MOST_CPUS}")
    return list(dict.fromkeys(found))


def _nodes(
    objects: list[_Element], cpus: list[int], remarks: list[str]
) -> tuple[list[_Element], dict[int, int]]:
    """The NUMA nodes, ascending by index, and for each CPU the position of the one node that it belongs to.

    hwloc gives nodes without CPUs of their own (HBM, NVM, CXL, GPU memory) the CPUs that are near. A CPU's
    own node is the one with the smallest set, then one of ordinary memory, then the one with the lowest
    number: the kernel numbers nodes with CPUs first.
    """
    nodes = sorted((one for one in objects if one.kind == "NUMANode"), key=_index)
    if not nodes:  # hwloc 1 on a machine of one node
        nodes = [one for one in objects if one.kind in ("Machine", "System")][:1]
        if not nodes:
            raise _Wrong("not an XML file of hwloc: there is no machine in it")
    sets = [_cpuset(one) for one in nodes]
    order = sorted(
        range(len(nodes)),
        key=lambda at: (sets[at].bit_count(), nodes[at].attributes.get("subtype", "DRAM") != "DRAM", at),
    )
    owned: dict[int, int] = {}
    for at in order:
        for cpu in _members(sets[at]):
            owned.setdefault(cpu, at)
    if lost := [cpu for cpu in cpus if cpu not in owned]:
        remarks.append(f"{_list('CPU', [str(cpu) for cpu in lost])} of no node: left out")
    return nodes, owned


def _remark_on_nodes(nodes: list[_Element], kept: list[int], remarks: list[str]) -> None:
    left = [one for at, one in enumerate(nodes) if at not in set(kept)]
    if left:
        kinds = [one.attributes.get("subtype", "") for one in left]
        names = [
            f"{_index(one)} ({kind})" if kind else str(_index(one))
            for one, kind in zip(left, kinds, strict=True)
        ]
        remarks.append(f"{_list('node', names)} without CPUs: left out, no page would be sent there")
    indexes = [_index(nodes[at]) if nodes[at].kind == "NUMANode" else 0 for at in kept]
    if indexes != list(range(len(indexes))):
        pairs = [f"{new} is node {old}" for new, old in enumerate(indexes) if new != old]
        remarks.append(f"nodes are numbered anew: {', '.join(pairs[:8])}{', ...' if pairs[8:] else ''}")


def _memory(node: _Element) -> int | None:
    """Bytes of a node; None where the file does not tell (hwloc leaves 0 out, too)."""
    value = node.number("local_memory", most=1 << 60)
    if value:
        return value
    pages = [one for one in node.children if one.tag == "page_type"]
    total = sum((one.number("size") or 0) * (one.number("count") or 0) for one in pages)
    return min(total, 1 << 60) or None


def _page(objects: list[_Element], line: int) -> int:
    """The smallest page that the machine has."""
    sizes = [one.number("size") or 0 for part in objects for one in part.children if one.tag == "page_type"]
    fitting = [one for one in sizes if LEAST_PAGE <= one <= MOST_PAGE and is_power_of_two(one)]
    return max(min(fitting, default=LEAST_PAGE), line)


def _groups(objects: list[_Element], kind: str, numbers: list[int]) -> tuple[tuple[int, ...], ...]:
    """The CPUs of each object of a kind, in hwloc's order; CPUs that are in none stand alone."""
    known = set(numbers)
    position = {cpu: at for at, cpu in enumerate(numbers)}
    found: list[tuple[int, ...]] = []
    for one in objects:
        if one.kind == kind:
            members = tuple(cpu for cpu in _members(_cpuset(one)) if cpu in known)
            known -= set(members)
            if members:
                found.append(members)
    if not found:
        return ()
    found += [(cpu,) for cpu in numbers if cpu in known]
    return tuple(sorted(found, key=lambda members: position[members[0]]))


# --- Caches -----------------------------------------------------


def _line(objects: list[_Element]) -> int:
    """Bytes of a line: what most caches have."""
    sizes = Counter(
        size
        for one in objects
        if _DATA_CACHE.fullmatch(one.kind) and (size := one.number("cache_linesize", least=-1))
    )
    for size, _ in sizes.most_common():
        if is_power_of_two(size) and LEAST_LINE <= size <= LEAST_PAGE:
            return size
    return LEAST_LINE


@dataclass(frozen=True)
class _Stated:
    """A cache as the file has it. ways: 0 is unknown, -1 fully associative."""

    bytes: int
    ways: int
    cpus: int


class _Caches:
    """The caches over each CPU: its own, and the outermost one that several cores share.

    Caches on the memory's side are none of a CPU: what they serve comes from the node all the same.
    """

    def __init__(self, objects: list[_Element], cpus: list[int]) -> None:
        self.own: dict[int, _Stated] = {}
        self.shared: dict[int, tuple[_Stated, int]] = {}
        core_of: dict[int, int] = {}
        for at, one in enumerate(objects):
            if one.kind == "Core":
                core_of.update((cpu, at) for cpu in _members(_cpuset(one)))
        wanted = set(cpus)
        for one in objects:
            level = _DATA_CACHE.fullmatch(one.kind)
            bytes_ = one.number("cache_size") if level else 0
            if not bytes_ or one.attributes.get("subtype") == "MemorySideCache":
                continue
            ways = one.number("cache_associativity", least=-1) or 0
            members = [cpu for cpu in _members(_cpuset(one)) if cpu in wanted]
            cores = {core_of.get(cpu, -1 - cpu) for cpu in members}
            stated = _Stated(bytes_, ways, len(members))
            for cpu in members:
                # The largest is the last: hwloc 1 does not nest caches of one set in every case.
                if len(cores) > 1:
                    if cpu not in self.shared or self.shared[cpu][0].bytes <= bytes_:
                        self.shared[cpu] = stated, members[0]
                elif cpu not in self.own or self.own[cpu].bytes <= bytes_:
                    self.own[cpu] = stated

    def chosen(
        self, line: int, nodes: list[tuple[int, ...]], remarks: list[str]
    ) -> tuple[Cache, Cache | None, tuple[tuple[int, ...], ...]]:
        """The model's private and shared caches, and the groups of CPUs that share one. The model has one
        kind of each: the one that most CPUs have."""
        cpus = [cpu for node in nodes for cpu in node]
        own = Counter(self.own[cpu] for cpu in cpus if cpu in self.own)
        shared = Counter(self.shared[cpu][0] for cpu in cpus if cpu in self.shared)
        private = _PRIVATE
        if own:
            private = _fitting(own.most_common(1)[0][0], line, 1, remarks, "private")
        else:
            remarks.append(f"no private cache is told: {_show(private)} is assumed")
        _remark_on_kinds(own, "private", remarks)
        if not shared or shared.most_common(1)[0][1] * 2 < len(cpus):
            if shared:
                remarks.append("a cache that less than half of the CPUs share is left out")
            return private, None, ()
        _remark_on_kinds(shared, "shared", remarks)
        stated = shared.most_common(1)[0][0]
        groups: dict[tuple[int, int], list[int]] = {}
        widths: Counter[int] = Counter()
        for at, node in enumerate(nodes):
            for cpu in node:
                first = self.shared[cpu][1] if cpu in self.shared else -1 - cpu
                groups.setdefault((at, first), []).append(cpu)
        for one in groups.values():
            if one[0] in self.shared and self.shared[one[0]][0] == stated:
                widths[len(one)] += len(one)
        sharing = widths.most_common(1)[0][0]
        if sharing < stated.cpus:
            # One cache for several nodes (sub-NUMA clustering): each has its share.
            remarks.append(
                f"the shared cache of {stated.cpus} CPUs is divided: {sharing} CPUs of a node have a share"
            )
            stated = _Stated(stated.bytes * sharing // stated.cpus, stated.ways, sharing)
        cache = _fitting(stated, line, sharing, remarks, "shared")
        return private, cache, tuple(tuple(one) for one in groups.values())


def _remark_on_kinds(kinds: Counter[_Stated], word: str, remarks: list[str]) -> None:
    if len(sizes := Counter({one.bytes: 0 for one in kinds})) > 1:
        for one, count in kinds.items():
            sizes[one.bytes] += count
        (taken, count), *others = sizes.most_common()
        rest = ", ".join(f"{show_size(bytes_)} of {number}" for bytes_, number in others[:4])
        remarks.append(
            f"{word} caches differ: {show_size(taken)}, which {count} CPUs have, is taken for all ({rest})"
        )


def _show(cache: Cache) -> str:
    return f"{show_size(cache.bytes)} {cache.ways}-way"


def _fitting(stated: _Stated, line: int, cpus: int, remarks: list[str], word: str) -> Cache:
    """The nearest cache of the model, whose sets are a power of two. The size is kept as far as it can be,
    at the expense of the ways: 35 MiB in 20 ways become 35 MiB in 35 ways."""
    lines = max(stated.bytes // line, 1)
    ways = {0: _ASSUMED_WAYS, -1: _FULL_WAYS}.get(stated.ways, stated.ways)
    ways = max(1, min(ways, lines, 4096))
    sets = 1 << ((lines // ways).bit_length() - 1)
    cache = Cache(line * sets * (lines // sets), lines // sets, cpus)
    if stated.ways == 0:
        remarks.append(f"the associativity of the {word} cache is not known: {cache.ways} ways are assumed")
    elif stated.ways < 0:
        remarks.append(f"the {word} cache is fully associative: {cache.ways} ways stand for it")
    return cache


# --- Distances -----------------------------------------------------


def _distances(
    root: _Element, nodes: list[_Element], kept: list[int], remarks: list[str]
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


def _rank(table: _Element) -> tuple[bool, bool]:
    """The kernel's own latencies come first."""
    kind = table.number("kind") or 0
    return table.attributes.get("name") != "NUMALatency", not kind & _FROM_SYSTEM


def _numbers(table: _Element, tag: str, count: int) -> list[int]:
    """The whole numbers of all elements of this name in a matrix; no more than count are needed."""
    words = [word for one in table.inside(tag) for word in "".join(one.text).split()]
    if len(words) > count:
        return []
    return [_whole(word, f"{table.tag}: {tag}", 0, _MOST_NUMBER << 1) for word in words]


def _matrix2(table: _Element, nodes: list[_Element]) -> dict[tuple[int, int], float]:
    """A matrix of hwloc 2 by positions of nodes; empty: it has no latencies between nodes."""
    kind = table.number("kind") or 0
    if table.attributes.get("type") != "NUMANode" or not kind & _LATENCY or kind & _OTHER_VALUES:
        return {}
    count = table.number("nbobjs", most=_MOST_CPUS) or 0
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


def _matrix1(table: _Element, nodes: list[_Element]) -> dict[tuple[int, int], float]:
    """A matrix of hwloc 1: it stands in the object that has all the nodes in it, which are meant in the order
    of the file."""
    count = table.number("nbobjs", most=_MOST_CPUS) or 0
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


def _real(one: _Element, name: str, default: float) -> float:
    text = one.attributes.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,20}([.,][0-9]{0,40})?([eE][+-]?[0-9]{1,2})?", text.strip(), re.ASCII):
        raise _Wrong(f"{one.tag}: {name} is {_shown(text)}, which is no number")
    return float(text.replace(",", "."))


# --- The synthetic notation -----------------------------------------------------

#: Of the synthetic notation: CPUs of a node, objects of a level.
_MOST_OF_A_LEVEL = 4096


def synthetic(text: str) -> Machine:
    """A machine in hwloc's synthetic notation: "pack:2 numa:2 l3:1 core:8 pu:1". Levels above the NUMA nodes
    and the nodes themselves make the number of nodes, those below their CPUs. Everything else is as wide as
    for XML; --cache, --shared-cache and --page-size say more."""
    nodes, cpus, sharing = 1, 1, 0
    below = False
    for word in text.split():
        found = re.fullmatch(r"([a-z0-9]+):([0-9]+)(\([^)]*\))?", word.strip("[]").lower())
        if not found:
            raise UserError(f"--on {text!r}: {word!r} is not hwloc's synthetic notation (numa:4 core:8)")
        kind, count = found[1], within(found[2], _MOST_OF_A_LEVEL)
        if not 1 <= count <= _MOST_OF_A_LEVEL:
            raise UserError(f"--on {text!r}: {word!r}: must be 1 to {_MOST_OF_A_LEVEL} of {kind}")
        if not below:
            nodes *= count
            below = kind in ("numa", "numanode", "node")
        else:
            cpus *= count
            sharing = 1 if kind in ("l3", "l3cache") else sharing * count
    if not below or not 1 <= nodes <= MOST_NODES or cpus > _MOST_OF_A_LEVEL:
        raise UserError(
            f"--on {text!r}: needs a level numa, and at most {MOST_NODES} nodes of {_MOST_OF_A_LEVEL} CPUs"
        )
    distances = tuple(tuple(10.0 if a == b else 20.0 for b in range(nodes)) for a in range(nodes))
    return Machine(
        name=text,
        title="described in hwloc's synthetic notation",
        cpus=(cpus,) * nodes,
        memory=(16 << 30,) * nodes,
        distances=distances,
        page=LEAST_PAGE,
        line=LEAST_LINE,
        private=Cache(1 << 20, 16),
        shared=Cache(16 << 20, 16, sharing) if sharing else None,
        local_ns=100,
        bandwidth_gbs=10,
        link_gbs=5,
        time=TimeModel(2.0, (0.1, 1.0), 50, 2),
    )
