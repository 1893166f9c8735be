"""Machines that hwloc describes: the XML files of lstopo (hwloc 1, 2 and 3).

What is not in the file is not invented: it is left unknown, or assumed and said in the machine's remarks. A
file that cannot be a description ends in one line.
"""

from __future__ import annotations

import os
from xml.parsers import expat

from homing.errors import UserError
from homing.files import MOST_DESCRIPTION, read_bytes
from homing.simulate.hwloc_caches import Caches, line_of
from homing.simulate.hwloc_distances import distances_of
from homing.simulate.hwloc_file import MOST_CPUS, Element, Wrong, cpuset, index, members, parse
from homing.simulate.machines import (
    LEAST_PAGE,
    MOST_NODES,
    MOST_PAGE,
    Machine,
    TimeModel,
    is_power_of_two,
    mean_ratio,
)


def read_hwloc(path: str) -> Machine:
    """A machine of a file that `lstopo NAME.xml` wrote: nodes, CPUs, memory, caches and distances. UserError
    where it is none.

    The least and most of m and the costs of a move are not in it: the model's widest range is taken.
    """
    try:
        return _machine(parse(read_bytes(path, MOST_DESCRIPTION)), path)
    except expat.ExpatError as error:
        raise UserError(f"{path}: not an XML file of hwloc: {error}") from None
    except (LookupError, UnicodeError, ValueError, OverflowError) as error:  # of encodings that nobody knows
        raise UserError(f"{path}: not an XML file of hwloc: {error}") from None
    except Wrong as error:
        raise UserError(f"{path}: {error}") from None


def _machine(root: Element, path: str) -> Machine:
    remarks: list[str] = []
    objects = list(root.inside())
    cpus = _cpus(objects)
    nodes, owned = _nodes(objects, cpus, remarks)
    ids = tuple(tuple(cpu for cpu in cpus if owned.get(cpu) == at) for at in range(len(nodes)))
    kept = [at for at in range(len(nodes)) if ids[at]]
    if not kept:
        raise Wrong("no NUMA node has CPUs")
    if len(kept) > MOST_NODES:
        raise Wrong(f"has {len(kept)} NUMA nodes with CPUs; {MOST_NODES} can be simulated")
    _remark_on_nodes(nodes, kept, remarks)
    line, caches = line_of(objects), Caches(objects, cpus)
    private, shared, groups = caches.chosen(line, [ids[at] for at in kept], remarks)
    distances = distances_of(root, nodes, kept, remarks)
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


def _cpus(objects: list[Element]) -> list[int]:
    """The numbers of all CPUs, in hwloc's order: neighbours are near."""
    found = [index(one) for one in objects if one.kind == "PU"]
    if not found:  # lstopo was told to leave them out
        found = members(next((cpuset(one) for one in objects if "cpuset" in one.attributes), 0))
    if found and max(found) >= MOST_CPUS:
        raise Wrong(f"PU: os_index is {max(found)}; CPUs have numbers below {MOST_CPUS}")
    return list(dict.fromkeys(found))


def _nodes(
    objects: list[Element], cpus: list[int], remarks: list[str]
) -> tuple[list[Element], dict[int, int]]:
    """The NUMA nodes, ascending by index, and for each CPU the position of the one node that it belongs to.

    hwloc gives nodes without CPUs of their own (HBM, NVM, CXL, GPU memory) the CPUs that are near. A CPU's
    own node is the one with the smallest set, then one of ordinary memory, then the one with the lowest
    number: the kernel numbers nodes with CPUs first.
    """
    nodes = sorted((one for one in objects if one.kind == "NUMANode"), key=index)
    if not nodes:  # hwloc 1 on a machine of one node
        nodes = [one for one in objects if one.kind in ("Machine", "System")][:1]
        if not nodes:
            raise Wrong("not an XML file of hwloc: there is no machine in it")
    sets = [cpuset(one) for one in nodes]
    order = sorted(
        range(len(nodes)),
        key=lambda at: (sets[at].bit_count(), nodes[at].attributes.get("subtype", "DRAM") != "DRAM", at),
    )
    owned: dict[int, int] = {}
    for at in order:
        for cpu in members(sets[at]):
            owned.setdefault(cpu, at)
    if lost := [cpu for cpu in cpus if cpu not in owned]:
        remarks.append(f"{_list('CPU', [str(cpu) for cpu in lost])} of no node: left out")
    return nodes, owned


def _remark_on_nodes(nodes: list[Element], kept: list[int], remarks: list[str]) -> None:
    left = [one for at, one in enumerate(nodes) if at not in set(kept)]
    if left:
        kinds = [one.attributes.get("subtype", "") for one in left]
        names = [
            f"{index(one)} ({kind})" if kind else str(index(one))
            for one, kind in zip(left, kinds, strict=True)
        ]
        remarks.append(f"{_list('node', names)} without CPUs: left out, no page would be sent there")
    indexes = [index(nodes[at]) if nodes[at].kind == "NUMANode" else 0 for at in kept]
    if indexes != list(range(len(indexes))):
        pairs = [f"{new} is node {old}" for new, old in enumerate(indexes) if new != old]
        remarks.append(f"nodes are numbered anew: {', '.join(pairs[:8])}{', ...' if pairs[8:] else ''}")


def _memory(node: Element) -> int | None:
    """Bytes of a node; None where the file does not tell (hwloc leaves 0 out, too)."""
    value = node.number("local_memory", most=1 << 60)
    if value:
        return value
    pages = [one for one in node.children if one.tag == "page_type"]
    total = sum((one.number("size") or 0) * (one.number("count") or 0) for one in pages)
    return min(total, 1 << 60) or None


def _page(objects: list[Element], line: int) -> int:
    """The smallest page that the machine has."""
    sizes = [one.number("size") or 0 for part in objects for one in part.children if one.tag == "page_type"]
    fitting = [one for one in sizes if LEAST_PAGE <= one <= MOST_PAGE and is_power_of_two(one)]
    return max(min(fitting, default=LEAST_PAGE), line)


def _groups(objects: list[Element], kind: str, numbers: list[int]) -> tuple[tuple[int, ...], ...]:
    """The CPUs of each object of a kind, in hwloc's order; CPUs that are in none stand alone."""
    known = set(numbers)
    position = {cpu: at for at, cpu in enumerate(numbers)}
    found: list[tuple[int, ...]] = []
    for one in objects:
        if one.kind == kind:
            group = tuple(cpu for cpu in members(cpuset(one)) if cpu in known)
            known -= set(group)
            if group:
                found.append(group)
    if not found:
        return ()
    found += [(cpu,) for cpu in numbers if cpu in known]
    return tuple(sorted(found, key=lambda group: position[group[0]]))
