"""Time of memory-bound work on a ccNUMA machine, from who fetched how many bytes from where.

The ground is what Wittmann and Hager (2010, sections 1.1 and 1.4) give as the reasons for the three levels of
their Figure 3: one domain's memory that everybody uses is a bottleneck, and access to another domain has less
bandwidth. Nothing else is in it: no latency, no overhead of tasks, no overlap of local and remote transfers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

MODEL_NAME = "bandwidth bounds"
MODEL = (
    "T = max(memory, order, cores). memory: bytes that one node's memory serves, over its bandwidth, the "
    "busiest node. order: the blocks in the order in which they ran, one a thread at a time, those under way "
    "sharing the bandwidths of their homes. cores: what the threads of one node fetch, their own node's "
    "bytes over the bandwidth plus other nodes' bytes over the link, the slowest node"
)


@dataclass(frozen=True)
class Bounds:
    """Seconds that some work takes at least, by each of three bounds; `order` is 0 where it is unknown."""

    memory: float
    order: float
    cores: float

    @property
    def seconds(self) -> float:
        """The prediction: the largest of them."""
        return max(self.memory, self.order, self.cores)


def memory_seconds(fetched: Sequence[Sequence[float]], bandwidth: float) -> float:
    """The busiest memory's time. fetched: bytes, [node of the thread][home node]; bandwidth: bytes a second
    of a node's memory."""
    return max(sum(row[home] for row in fetched) for home in range(len(fetched))) / bandwidth


def cores_seconds(fetched: Sequence[Sequence[float]], bandwidth: float, link: float) -> float:
    """The time of the node whose threads wait longest. link: bytes a second that they get from another node,
    not more than `bandwidth`; their local and remote transfers follow one another."""
    remote = min(link, bandwidth)
    return max(
        sum(part / (bandwidth if home == node else remote) for home, part in enumerate(row))
        for node, row in enumerate(fetched)
    )


def order_seconds(homes: Sequence[int], threads: int, block_bytes: float, bandwidth: float) -> float:
    """The time of blocks that begin in this order, as many at a time as there are threads, where those of one
    home share its memory's bandwidth equally and nothing else limits them.

    homes: of each block, 0 or more. This is what a whole sweep's bytes do not show: 256 waiting tasks that
    all belong to one domain (section 2.1)."""
    if not homes:
        return 0.0
    nodes = max(homes) + 1
    # Blocks of one home end in the order of their beginnings, when their memory has served so many bytes to
    # each of those that were under way.
    served = [0.0] * nodes
    ends: list[deque[float]] = [deque() for _ in range(nodes)]
    now, begun, under_way = 0.0, 0, 0
    while begun < len(homes) or under_way:
        while under_way < threads and begun < len(homes):
            home = homes[begun]
            ends[home].append(served[home] + block_bytes)
            begun += 1
            under_way += 1
        busy = [home for home in range(nodes) if ends[home]]
        step = min((ends[home][0] - served[home]) * len(ends[home]) / bandwidth for home in busy)
        now += step
        for home in busy:
            served[home] += step * bandwidth / len(ends[home])
            while ends[home] and ends[home][0] <= served[home] + 1e-9 * block_bytes:
                ends[home].popleft()
                under_way -= 1
    return now


def bounds(
    fetched: Sequence[Sequence[float]],
    bandwidth: float,
    link: float,
    homes: Sequence[int] = (),
    threads: int = 1,
) -> Bounds:
    """All three. homes: of the blocks in their order, each of an equal part of all bytes; empty: unknown."""
    total = sum(map(sum, fetched))
    each = total / len(homes) if homes else 0.0
    return Bounds(
        memory_seconds(fetched, bandwidth),
        order_seconds(homes, threads, each, bandwidth),
        cores_seconds(fetched, bandwidth, link),
    )
