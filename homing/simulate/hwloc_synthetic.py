"""Machines in hwloc's synthetic notation."""

from __future__ import annotations

import re

from homing.errors import UserError
from homing.integers import within
from homing.simulate.machines import LEAST_LINE, LEAST_PAGE, MOST_NODES, Cache, Machine, TimeModel

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
