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
    "busiest node. order: the blocks in the order in which each node ran them, one a thread at a time, "
    "those under way sharing the bandwidths of their homes. cores: what the threads of one node fetch, "
    "their own node's bytes over the bandwidth plus other nodes' bytes over the link, the slowest node"
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


def order_seconds(
    runs: Sequence[tuple[int, int]], threads: Sequence[int], block_bytes: float, bandwidth: float
) -> float:
    """The time of blocks that run in this order, where those under way that have one home share its memory's
    bandwidth equally, and nothing else limits them.

    runs: of each block the node of its thread and its home; threads: by node, each works on one block at a
    time, the next one that its node had. This is what a whole sweep's bytes do not show: tasks that wait may
    all belong to one domain (section 2.1)."""
    waiting: list[deque[int]] = [deque() for _ in threads]
    for node, home in runs:
        waiting[node].append(home)
    # Blocks of one home end in the order of their beginnings: when their memory has served so many bytes to
    # each of those that were under way.
    served = [0.0] * len(threads)
    under_way: list[deque[tuple[float, int]]] = [deque() for _ in threads]

    def begin(node: int) -> None:
        if waiting[node]:
            home = waiting[node].popleft()
            under_way[home].append((served[home] + block_bytes, node))

    for node, count in enumerate(threads):
        for _ in range(count):
            begin(node)
    now = 0.0
    while busy := [home for home, blocks in enumerate(under_way) if blocks]:
        step = min((under_way[home][0][0] - served[home]) * len(under_way[home]) for home in busy) / bandwidth
        now += step
        for home in busy:
            served[home] += step * bandwidth / len(under_way[home])
        for home in busy:
            while under_way[home] and under_way[home][0][0] <= served[home] + 1e-9 * block_bytes:
                begin(under_way[home].popleft()[1])
    return now


def bounds(
    fetched: Sequence[Sequence[float]],
    bandwidth: float,
    link: float,
    runs: Sequence[tuple[int, int]] = (),
    threads: Sequence[int] = (),
) -> Bounds:
    """All three. runs, threads: as for order_seconds, of blocks that have an equal part of all bytes; empty:
    the order is unknown."""
    each = sum(map(sum, fetched)) / len(runs) if runs else 0.0
    return Bounds(
        memory_seconds(fetched, bandwidth),
        order_seconds(runs, threads, each, bandwidth),
        cores_seconds(fetched, bandwidth, link),
    )
