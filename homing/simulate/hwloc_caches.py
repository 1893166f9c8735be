"""The caches of a machine that hwloc describes, as the model has them: one kind private, one shared."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from homing.simulate.hwloc_file import Element, cpuset, members
from homing.simulate.machines import LEAST_LINE, LEAST_PAGE, Cache, is_power_of_two
from homing.sizes import show_size

#: What is taken where the file tells nothing.
_PRIVATE = Cache(1 << 20, 16)
_ASSUMED_WAYS = 16
_FULL_WAYS = 64

_DATA_CACHE = re.compile(r"L([1-5])Cache")


def line_of(objects: list[Element]) -> int:
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


class Caches:
    """The caches over each CPU: its own, and the outermost one that several cores share.

    Caches on the memory's side are none of a CPU: what they serve comes from the node all the same.
    """

    def __init__(self, objects: list[Element], cpus: list[int]) -> None:
        self.own: dict[int, _Stated] = {}
        self.shared: dict[int, tuple[_Stated, int]] = {}
        core_of: dict[int, int] = {}
        for at, one in enumerate(objects):
            if one.kind == "Core":
                core_of.update((cpu, at) for cpu in members(cpuset(one)))
        wanted = set(cpus)
        for one in objects:
            level = _DATA_CACHE.fullmatch(one.kind)
            bytes_ = one.number("cache_size") if level else 0
            if not bytes_ or one.attributes.get("subtype") == "MemorySideCache":
                continue
            ways = one.number("cache_associativity", least=-1) or 0
            under = [cpu for cpu in members(cpuset(one)) if cpu in wanted]
            cores = {core_of.get(cpu, -1 - cpu) for cpu in under}
            stated = _Stated(bytes_, ways, len(under))
            for cpu in under:
                # The largest is the last: hwloc 1 does not nest caches of one set in every case.
                if len(cores) > 1:
                    if cpu not in self.shared or self.shared[cpu][0].bytes <= bytes_:
                        self.shared[cpu] = stated, under[0]
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
