"""What the simulator is told: the described machine and the user's wishes, as the TOML file that
simulator/described.cpp reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homing.errors import UserError
from homing.record_format import printable
from homing.simulate.machines import Cache, Machine
from homing.simulate.places import Placement
from homing.simulate.time_model import Calibration
from homing.sizes import size

#: Accesses that a thread has before the next one's turn, unless the user says otherwise.
TURN = 1000


@dataclass(frozen=True)
class Distribution:
    """The pages of the arrays `area` (a name with * and ?): cycle pages a node by turns, 0: blocks."""

    area: str
    cycle: int


@dataclass(frozen=True)
class Balancing:
    """Of the described kernel: it marks so many bytes whenever the threads have made so many accesses each
    (on the average)."""

    bytes: int
    accesses: int


#: As Linux: 256 MiB a second at first, for a thread that makes an access each nanosecond.
BALANCING = Balancing(256 << 20, 1_000_000_000)


@dataclass(frozen=True)
class Wishes:
    """What the user asked of a simulation."""

    initial: str = "first-touch"
    #: By runtime (places.RUNTIMES): the one that the program brings decides.
    placements: Mapping[str, Placement] = field(default_factory=dict)
    distributions: tuple[Distribution, ...] = ()
    seed: int = 1
    turn: int = 0
    lines: bool = False
    calibration: Calibration | None = None
    balancing: Balancing | None = None


def parse_distributions(text: str | None) -> tuple[Distribution, ...]:
    """ARRAY=block, ARRAY=cyclic, ARRAY=cyclic(K), separated by commas."""
    found = []
    for part in (text or "").split(","):
        if not part:
            continue
        name, _, how = (word.strip() for word in part.partition("="))
        match = re.fullmatch(r"(block|cyclic)(?:\(([1-9][0-9]{0,8})\))?", how)
        if not name or not match or (match[1] == "block" and match[2]):
            raise UserError(f"--distribute {part}: must be ARRAY=block, ARRAY=cyclic or ARRAY=cyclic(K)")
        found.append(Distribution(name, 0 if match[1] == "block" else int(match[2] or 1)))
    return tuple(found)


def parse_balancing(switch: int | None, scan: str | None) -> Balancing | None:
    """kernel.numa_balancing (0 or 1), and SIZE:ACCESSES. None: there is no balancing."""
    if switch not in (None, 0, 1):
        raise UserError(f"--balancing {switch}: must be 0 or 1")
    if not switch:
        if scan is not None:
            raise UserError("--balancing-scan: only with --balancing 1")
        return None
    if scan is None:
        return BALANCING
    memory, _, accesses = scan.partition(":")
    try:
        found = Balancing(
            size(memory), int(accesses) if re.fullmatch(r"[0-9]{1,15}", accesses, re.ASCII) else 0
        )
    except ValueError:
        found = Balancing(0, 0)
    if found.bytes == 0 or found.accesses == 0:
        raise UserError(f"--balancing-scan {scan}: must be SIZE:ACCESSES, such as 256MiB:1000000000")
    return found


def stated(machine: Machine, wishes: Wishes) -> dict[str, Any]:
    """What the record keeps of the simulation, for the summary and `homing report`."""
    shared = machine.shared
    return {
        "machine": {
            "name": printable(machine.name),
            "title": printable(machine.title),
            "nodes": machine.nodes,
            "cpus": machine.cpu_count,
            "cpus_per_node": max(machine.cpus),
        },
        "cache": {
            "kib": machine.private.bytes / 1024,
            "ways": machine.private.ways,
            "line": machine.line,
            "coherent": True,
            "indexed": "virtual",
            "replacement": "LRU",
            "private_to": "thread",
            "shared_kib": shared.bytes / 1024 if shared else 0,
            "shared_ways": shared.ways if shared else 0,
            "shared_cpus": shared.cpus if shared else 0,
            "page_bytes": machine.page,
        },
        "time": {
            "ratio": machine.time.ratio,
            "m": list(wishes.calibration.m(machine.time.ratio) if wishes.calibration else machine.time.m),
            "calibrated": wishes.calibration is not None,
            "migration_call_us": machine.time.migration_call_us,
            "migration_page_us": machine.time.migration_page_us,
        },
        "initial": wishes.initial,
        "turn": wishes.turn,
        "balancing": {"bytes": wishes.balancing.bytes, "accesses": wishes.balancing.accesses}
        if wishes.balancing
        else None,
    }


def _cache(cache: Cache) -> str:
    return f"{{ bytes = {cache.bytes}, ways = {cache.ways}, cpus = {cache.cpus} }}"


def _toml(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's as well, but for the halves of characters beyond 16 bits."""
    return json.dumps(value, ensure_ascii=False)


def description(machine: Machine, wishes: Wishes) -> str:
    """The file."""
    highest = max(max(cpus) for cpus in machine.node_cpus)
    nodes, caches = [-1] * (highest + 1), [-1] * (highest + 1)
    for groups, numbers in ((machine.node_cpus, nodes), (machine.cache_groups, caches)):
        for at, cpus in enumerate(groups):
            for cpu in cpus:
                numbers[cpu] = at
    values: dict[str, Any] = {
        "name": printable(machine.name),
        "cpu_nodes": nodes,
        "cpu_caches": caches,
        "memory": [one or 0 for one in machine.memory],
        "distances": [list(row) for row in machine.distances],
        "page": machine.page,
        "line": machine.line,
        "initial": wishes.initial,
        "seed": wishes.seed,
        "turn": wishes.turn,
        "lines": wishes.lines,
        "fact": json.dumps(stated(machine, wishes)),
    }
    lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
    if wishes.balancing:
        lines.append(
            f"balancing = {{ bytes = {wishes.balancing.bytes}, accesses = {wishes.balancing.accesses} }}"
        )
    lines.append(f"private = {_cache(machine.private)}")
    if machine.shared:
        lines.append(f"shared = {_cache(machine.shared)}")
    for runtime, placed in wishes.placements.items():
        lines += [
            f"[placement.{runtime}]",
            f"places = {json.dumps(placed.places)}",
            f"bindings = {json.dumps(placed.bindings)}",
        ]
    for one in wishes.distributions:
        lines += ["[[distributions]]", f"area = {_toml(printable(one.area))}", f"cycle = {one.cycle}"]
    return "\n".join(lines) + "\n"


def costs(machine: Machine) -> str:
    """The stated costs by which the engine decides whether a move is worth while (--costs)."""
    return (
        f"local_ns = {machine.local_ns}\n"
        f"remote_ns = {machine.local_ns * machine.time.ratio}\n"
        f"move_call_us = {machine.time.migration_call_us}\n"
        f"move_page_us = {machine.time.migration_page_us}\n"
    )
