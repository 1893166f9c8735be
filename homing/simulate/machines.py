"""Described machines: TOML files (docs/machines.md), or what hwloc says of one.

A mistake in a file is one line: the file, its line, the key and the reason.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from homing.errors import UserError
from homing.files import MOST_DESCRIPTION, read_text
from homing.installation import PACKAGE, find_data
from homing.integers import within
from homing.sizes import LEAST_CACHE, show_size, size

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_NODES = 64
LEAST_PAGE, MOST_PAGE = 4 << 10, 2 << 20
LEAST_LINE = 64
_MOST_CACHE, _MOST_WAYS = 1 << 40, 4096


@dataclass(frozen=True)
class Cache:
    """A cache of the model, indexed by address: bytes / (ways x line) sets, a power of two. cpus: how many
    CPUs share one."""

    bytes: int
    ways: int
    cpus: int = 1


@dataclass(frozen=True)
class TimeModel:
    """What turns remote fractions into time: T = 1 + m (R - 1) f (facts of Löf, Nordén and Holmgren's Table
    1), and what a move costs."""

    ratio: float
    m: tuple[float, float]
    migration_call_us: float
    migration_page_us: float


@dataclass(frozen=True)
class Machine:
    """A ccNUMA machine. Lists by node; distances as in a SLIT (10: local); memory in bytes, None where it is
    not known.

    cpu_ids: the numbers of each node's CPUs, neighbours side by side; empty: numbered node by node. cores,
    caches (of the last level) and sockets are groups of CPU numbers in the same order; empty: each CPU is a
    core, each node a socket, and shared.cpus CPUs of a node share a cache.
    """

    name: str
    title: str
    cpus: tuple[int, ...]
    memory: tuple[int | None, ...]
    distances: tuple[tuple[float, ...], ...]
    page: int
    line: int
    private: Cache
    shared: Cache | None
    local_ns: float
    bandwidth_gbs: float
    link_gbs: float
    time: TimeModel
    path: str = field(default="", compare=False)
    cpu_ids: tuple[tuple[int, ...], ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()
    caches: tuple[tuple[int, ...], ...] = ()
    sockets: tuple[tuple[int, ...], ...] = ()
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def nodes(self) -> int:
        return len(self.cpus)

    @property
    def cpu_count(self) -> int:
        return sum(self.cpus)

    @property
    def node_cpus(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each node's CPUs."""
        if self.cpu_ids:
            return self.cpu_ids
        ends = list(accumulate(self.cpus))
        return tuple(tuple(range(end - count, end)) for end, count in zip(ends, self.cpus, strict=True))

    @property
    def cache_groups(self) -> tuple[tuple[int, ...], ...]:
        """The CPUs that share a cache of the last level; each alone where none is shared."""
        width = self.shared.cpus if self.shared else 1
        if self.shared and self.caches:
            return self.caches
        return tuple(cpus[at : at + width] for cpus in self.node_cpus for at in range(0, len(cpus), width))


def is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def folder() -> str:
    """Where the machines that come with homing are: in the package, or in the source tree."""
    return find_data("machines", os.path.join("simulator", "machines")) or os.path.join(PACKAGE, "machines")


def names() -> list[str]:
    """The machines that come with homing."""
    try:
        return sorted(name[:-5] for name in os.listdir(folder()) if name.endswith(".toml"))
    except OSError:
        return []


def find(name: str) -> Machine:
    """A machine by its name, or of a file NAME.toml or NAME.xml (hwloc). UserError where there is none."""
    from homing.simulate import hwloc_import, hwloc_synthetic

    if name.endswith(".xml"):
        return hwloc_import.read_hwloc(name)
    if name.endswith(".toml") or "/" in name:
        return read(name)
    if ":" in name:
        return hwloc_synthetic.synthetic(name)
    if name in names():
        return read(os.path.join(folder(), name + ".toml"))
    raise UserError(
        f"there is no machine {name}: one of {', '.join(names())}, or a file that ends in .toml or .xml, or "
        "hwloc's synthetic notation (numa:4 core:8)"
    )


class _Reader:
    """The keys of a table: each is asked for once, what nobody asked for is unknown."""

    def __init__(self, path: str, text: str, table: dict[str, Any], prefix: str = "") -> None:
        self.path, self.text, self.table, self.prefix = path, text, table, prefix
        self.known: set[str] = set()

    def fail(self, key: str, reason: str) -> UserError:
        where = f"{self.path}{self._line(key)}"
        return UserError(f"{where}: {self.prefix}{key}: {reason}")

    def _line(self, key: str) -> str:
        """The line of a key, as far as a search finds it: behind its table's header, if it has one."""
        lines = self.text.splitlines()
        header = self.prefix.rstrip(".")
        begin = (
            next((at for at, line in enumerate(lines) if line.strip() == f"[{header}]"), 0) if header else 0
        )
        for name in (key, header):
            for number, line in enumerate(lines[begin:], start=begin + 1):
                if name and re.match(rf"\s*{re.escape(name)}\s*=", line):
                    return f":{number}"
        return f":{begin + 1}" if begin else ""

    def get(self, key: str, default: Any = None) -> Any:
        self.known.add(key)
        return self.table.get(key, default)

    def need(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise self.fail(key, "is missing")
        return value

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        value = self.get(key, default) if default is not None else self.need(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.fail(key, f"must be a number from {least:g} to {most:g}, not {value!r}")
        return float(value)

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        value = self.get(key, default) if default is not None else self.need(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.fail(key, f"must be a whole number from {least} to {most}, not {value!r}")
        return value

    def size(self, key: str, least: int, most: int) -> int:
        value = self.need(key)
        try:
            found = size(value)
        except ValueError as error:
            raise self.fail(key, str(error)) from None
        if not least <= found <= most:
            raise self.fail(key, f"must be from {show_size(least)} to {show_size(most)}, not {value!r}")
        return found

    def table_of(self, key: str, needed: bool = True) -> _Reader | None:
        value = self.need(key) if needed else self.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fail(key, "must be a table")
        return _Reader(self.path, self.text, value, f"{self.prefix}{key}.")

    def done(self) -> None:
        for key in self.table:
            if key not in self.known:
                raise self.fail(
                    key, f"is not a key of a machine file; there are {', '.join(sorted(self.known))}"
                )


def read(path: str) -> Machine:
    """A machine file. UserError with the line, the key and the reason where it is not one."""
    text = read_text(path, MOST_DESCRIPTION)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    return _machine(_Reader(path, text, table), os.path.basename(path).removesuffix(".toml"))


def _machine(reader: _Reader, name: str) -> Machine:
    nodes = reader.integer("nodes", 1, MOST_NODES)
    each = reader.integer("cpus_per_node", 1, 4096)
    memory = reader.size("memory_per_node", 1 << 20, 1 << 50)
    page = reader.size("page", LEAST_PAGE, MOST_PAGE)
    line = reader.integer("line", LEAST_LINE, page)
    for key, value in (("page", page), ("line", line)):
        if not is_power_of_two(value):
            raise reader.fail(key, f"must be a power of two, not {value}")
    private = _cache(reader.table_of("private"), line, 1, each)
    shared = _cache(reader.table_of("shared", needed=False), line, each, each)
    if private is None:
        raise reader.fail("private", "is missing")
    distances = _distances(reader, nodes)
    title = reader.get("title", name)
    if not isinstance(title, str):
        raise reader.fail("title", "must be a text")
    machine = Machine(
        name=name,
        title=title,
        cpus=(each,) * nodes,
        memory=(memory,) * nodes,
        distances=distances,
        page=page,
        line=line,
        private=private,
        shared=shared,
        local_ns=reader.number("local_ns", 1, 1e6, 100),
        bandwidth_gbs=reader.number("bandwidth_gbs", 0.01, 1e5, 10),
        link_gbs=reader.number("link_gbs", 0.01, 1e5, 5),
        time=_time(reader, distances),
        path=reader.path,
    )
    reader.done()
    return machine


def _cache(reader: _Reader | None, line: int, cpus: int, most_cpus: int) -> Cache | None:
    if reader is None:
        return None
    bytes_ = reader.size("size", line, _MOST_CACHE)
    ways = reader.integer("ways", 1, _MOST_WAYS)
    shared_by = reader.integer("cpus", 1, most_cpus, cpus)
    reader.done()
    problem = cache_problem(bytes_, ways, line)
    if problem:
        raise reader.fail("size", problem)
    return Cache(bytes_, ways, shared_by)


def cache_problem(bytes_: int, ways: int, line: int) -> str:
    """Why there can be no such cache; empty: there can."""
    sets, rest = divmod(bytes_, ways * line)
    if rest or not is_power_of_two(sets):
        return (
            f"{show_size(bytes_)} in {ways} ways of {line} bytes make {bytes_ / (ways * line):g} sets, "
            "which must be a power of two"
        )
    return ""


def _distances(reader: _Reader, nodes: int) -> tuple[tuple[float, ...], ...]:
    stated, remote, topology = reader.get("distances"), reader.get("remote_distance"), reader.get("topology")
    if sum(one is not None for one in (stated, remote, topology)) > 1:
        raise reader.fail("distances", "give one of distances, remote_distance and topology")
    if stated is not None:
        good = isinstance(stated, list) and len(stated) == nodes
        for row in stated if good else []:
            good = good and isinstance(row, list) and len(row) == nodes
            good = good and all(isinstance(one, int | float) and 10 <= one < 255 for one in row)
        if not good:
            raise reader.fail("distances", f"must be {nodes} rows of {nodes} numbers from 10 (local) to 254")
        return tuple(tuple(float(one) for one in row) for row in stated)
    if topology is not None:
        if topology != "hypercube":
            raise reader.fail("topology", f"must be hypercube, not {topology!r}")
        first = reader.number("distance_first_hop", 10, 254)
        each = reader.number("distance_each_hop", 0, 100)
        # Two nodes a router; routers differ in as many bits as there are hops.
        return tuple(
            tuple(10.0 if a == b else first + each * ((a // 2) ^ (b // 2)).bit_count() for b in range(nodes))
            for a in range(nodes)
        )
    far = reader.number("remote_distance", 10, 254, 20)
    return tuple(tuple(10.0 if a == b else far for b in range(nodes)) for a in range(nodes))


def _time(reader: _Reader, distances: tuple[tuple[float, ...], ...]) -> TimeModel:
    table = reader.table_of("time", needed=False)
    ratio = mean_ratio(distances)
    if table is None:
        return TimeModel(ratio, (0.1, 1.0), 50, 2)
    m = table.get("m", [0.1, 1.0])
    if not (
        isinstance(m, list)
        and len(m) == 2
        and all(isinstance(one, int | float) for one in m)
        and 0 <= m[0] <= m[1] <= 1
    ):
        raise table.fail("m", "must be [least, most], between 0 and 1")
    model = TimeModel(
        table.number("ratio", 1, 100, ratio),
        (float(m[0]), float(m[1])),
        table.number("migration_call_us", 0, 1e9, 50),
        table.number("migration_page_us", 0, 1e9, 2),
    )
    table.done()
    return model


def mean_ratio(distances: tuple[tuple[float, ...], ...]) -> float:
    far = [one for a, row in enumerate(distances) for b, one in enumerate(row) if a != b]
    return max(1.0, sum(far) / len(far) / 10) if far else 1.0


def changed(machine: Machine, page: str | None, cache: str | None, shared: str | None) -> Machine:
    """The machine with the user's page size and caches (SIZE:WAYS; "0": no shared cache)."""
    if page is not None:
        bytes_ = _user_size("--page-size", page)
        if not LEAST_PAGE <= bytes_ <= MOST_PAGE or not is_power_of_two(bytes_):
            raise UserError(f"--page-size {page}: must be a power of two from 4KiB to 2MiB")
        if bytes_ < machine.line:
            raise UserError(f"--page-size {page}: is smaller than a line of {machine.name}")
        machine = replace(machine, page=bytes_)
    if cache is not None:
        machine = replace(machine, private=_user_cache("--cache", cache, machine.line, 1))
    if shared is not None:
        if shared == "0":
            return replace(machine, shared=None)
        cpus = machine.shared.cpus if machine.shared else max(machine.cpus)
        machine = replace(machine, shared=_user_cache("--shared-cache", shared, machine.line, cpus))
    return machine


def _user_size(flag: str, text: str) -> int:
    try:
        return size(text)
    except ValueError:
        raise UserError(f"{flag} {text}: must be a size such as 64KiB") from None


def _user_cache(flag: str, text: str, line: int, cpus: int) -> Cache:
    """SIZE:WAYS"""
    found = re.fullmatch(r"([^:]+):([0-9]+)", text)
    if not found:
        raise UserError(f"{flag} {text}: must be SIZE:WAYS, such as 8MiB:2")
    bytes_ = _user_size(flag, found[1])
    ways = within(found[2], _MOST_WAYS)
    least = max(line, LEAST_CACHE)
    if not least <= bytes_ <= _MOST_CACHE or not 1 <= ways <= _MOST_WAYS:
        problem = f"must be from {show_size(least)} to {show_size(_MOST_CACHE)}, in 1 to {_MOST_WAYS} ways"
    else:
        problem = cache_problem(bytes_, ways, line)
    if problem:
        raise UserError(f"{flag} {text}: {problem}")
    return Cache(bytes_, ways, cpus)
