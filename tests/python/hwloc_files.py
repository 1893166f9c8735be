"""Descriptions of machines as hwloc's `lstopo NAME.xml` writes them, for the tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def element(kind: str, cpus: int, *inside: str, **attributes: Any) -> str:
    """An object of hwloc with a set of CPUs."""
    parts = [f"0x{cpus >> shift & 0xFFFFFFFF:08x}" for shift in range(64, -1, -32)]
    words = [f'type="{kind}"', f'cpuset="{",".join(parts)}"']
    words += [f'{name}="{value}"' for name, value in attributes.items()]
    return f"<object {' '.join(words)}>{''.join(inside)}</object>"


def cores(first: int, count: int, threads: int = 1, **cache: Any) -> str:
    """Cores with an L2 each."""
    found = []
    for at in range(count):
        numbers = range(first + at * threads, first + (at + 1) * threads)
        cpus = sum(1 << cpu for cpu in numbers)
        units = [element("PU", 1 << cpu, os_index=cpu) for cpu in numbers]
        core = element("Core", cpus, *units)
        found.append(element("L2Cache", cpus, core, **cache) if cache else core)
    return "".join(found)


def node(index: int, cpus: int, memory: int | str | None = 1 << 30, **more: Any) -> str:
    words = more if memory is None else {**more, "local_memory": memory}
    return element("NUMANode", cpus, os_index=index, **words)


L2 = {"cache_size": 1 << 20, "cache_linesize": 64, "cache_associativity": 16}
L3 = {"cache_size": 35 << 20, "cache_linesize": 64, "cache_associativity": 20}


def two_nodes(**cache: Any) -> str:
    """Two packages of four cores, a node in each."""
    return "".join(
        element(
            "Package",
            0xF << 4 * at,
            node(at, 0xF << 4 * at),
            element("L3Cache", 0xF << 4 * at, cores(4 * at, 4, **{**L2, **cache}), **L3),
        )
        for at in range(2)
    )


def beside_hbm() -> str:
    """A Xeon Phi of 16 cores with four threads each: in each quarter a node of ordinary memory, and one of
    HBM that hwloc gives the same CPUs; caches of unknown associativity, and one on the memory's side."""
    quarters = []
    for at in range(4):
        cpus = 0
        tiles = []
        for first in (4 * at, 4 * at + 2):
            units = [[core + 16 * thread for thread in range(4)] for core in (first, first + 1)]
            sets = [sum(1 << cpu for cpu in one) for one in units]
            inside = (
                element("Core", bits, *(element("PU", 1 << cpu, os_index=cpu) for cpu in one))
                for one, bits in zip(units, sets, strict=True)
            )
            tiles.append(element("L2Cache", sum(sets), *inside, cache_size=4 << 20, cache_associativity=0))
            cpus += sum(sets)
        memory = node(at, cpus, subtype="DRAM") + node(4 + at, cpus, 2 << 30, subtype="HBM")
        side = {"subtype": "MemorySideCache", "cache_size": 2 << 30, "cache_associativity": 0}
        quarters.append(element("L3Cache", cpus, memory, *tiles, **side))
    return element("Package", (1 << 64) - 1, *quarters)


def describe(machine: str, behind: str = "", head: str = "") -> str:
    """The text of a file: the machine, and what stands behind it (distances)."""
    whole = element("Machine", (1 << 64) - 1, machine)
    return f'<?xml version="1.0"?>\n{head}<topology version="2.0">{whole}{behind}</topology>\n'


def write(folder: Path, machine: str, behind: str = "", head: str = "") -> str:
    """Its path."""
    path = folder / "m.xml"
    path.write_text(describe(machine, behind, head))
    return str(path)


def matrix(values: list[int], indexes: str = "0 1", **more: Any) -> str:
    words = {"type": "NUMANode", "nbobjs": 2, "kind": 5, "name": "NUMALatency", "indexing": "os", **more}
    # hwloc writes ten numbers an element.
    half = len(values) // 2
    parts = [values[:half], values[half:]]
    return (
        f"<distances2 {' '.join(f'{name}={chr(34)}{value}{chr(34)}' for name, value in words.items())}>"
        f'<indexes length="3">{indexes} </indexes>'
        + "".join(f'<u64values length="9">{" ".join(map(str, part))} </u64values>' for part in parts)
        + "</distances2>"
    )
