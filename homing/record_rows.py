"""The things that a record tells of, as values: one class for each kind of row (src/record/rows.hpp)."""

from __future__ import annotations

import math

from homing.arrays import NDArray, np
from homing.values import dataclass

#: The `area` of moves that are not known area by area (next touch).
ALL_AREAS = 0xFFFFFFFF

AREA_KINDS = {1: "static", 2: "heap", 3: "named", 4: "segment", 5: "arena", 6: "mapping"}
OWNERSHIP_KINDS = {0: "none", 1: "block", 2: "cyclic", 3: "shared", 4: "mixed"}
ITERATION_STATES = {1: "searching", 2: "observing", 3: "settled"}
ITERATION_BASES = {0: "none", 1: "period", 2: "anchor", 3: "barriers", 4: "time", 5: "call", 6: "guess"}
MESSAGE_LEVELS = {1: "note", 2: "warning", 3: "not done"}
FOUND, NOW, AT_END = 1, 2, 3
COUNTED_SCOPES = {0: "run", 1: "iteration", 2: "region", 3: "area", 4: "place", 5: "phase"}


@dataclass(frozen=True)
class Node:
    """A NUMA node of the run. position: its index in every list of pages or references by node; -1 for a node
    that is never a target, which has none."""

    position: int
    index: int
    memory_bytes: int
    free_bytes: int
    cpus: int
    target: bool


@dataclass(frozen=True)
class Thread:
    """A thread that was seen in a parallel region. node: -1 where it was not bound to one."""

    thread: int
    node: int
    cpu: int
    bound: bool


@dataclass(frozen=True)
class Placement:
    """Where an area's base pages were at one moment: pages by node position, and those not populated."""

    area: int
    time: float
    when: int
    iteration: int
    sampled: bool
    pages: tuple[int, ...]
    absent: int

    @property
    def present(self) -> int:
        """Pages that are somewhere."""
        return sum(self.pages)

    @property
    def largest_share(self) -> float:
        """Of the pages that are somewhere, on the node that has the most of them; 0 where there are none."""
        return max(self.pages) / self.present if self.present else 0.0


@dataclass(frozen=True)
class Ownership:
    """What was inferred about the owners of an area's pages."""

    area: int
    iteration: int
    kind: str
    confidence: float
    samples: int
    wanted: int
    #: In the words of the directives, such as "BLOCK over 16 threads"; empty in records of 0.1.
    distribution: str = ""
    #: Pages that were seen to be touched.
    known: int = 0
    #: Pages stay where they are, because the program has named other memory as hot.
    cold: bool = False


@dataclass(frozen=True)
class PlaceDistribution:
    """What is believed of an area's owners by the touches of one region. followed: pages go by this one."""

    area: int
    region: int
    followed: bool
    touches: int
    distribution: str
    confidence: float


@dataclass(frozen=True)
class Move:
    """A batch of pages of one area that were sent to other nodes."""

    area: int
    time: float
    wanted: int
    moved: int
    refused: int
    bytes: int
    seconds: float
    longest_call_seconds: float
    calls: int
    iteration: int
    reason: str


@dataclass(frozen=True)
class Refusal:
    """Pages of an area that the kernel refused to move, and its errno."""

    area: int
    error: int
    pages: int
    iteration: int


@dataclass(frozen=True)
class Iteration:
    """One outer iteration."""

    number: int
    time: float
    seconds: float
    regions: int
    state: str
    basis: str
    references: int
    moved: int
    overhead_seconds: float


@dataclass(frozen=True)
class Region:
    """A parallel region: its outlined function."""

    id: int
    object: str
    offset: int
    symbol: str
    count: int
    seconds: float


@dataclass(frozen=True)
class References:
    """Sampled references of an area in one iteration: [node of the thread][home node], by position."""

    area: int
    iteration: int
    matrix: NDArray[np.float64]

    @property
    def total(self) -> float:
        """References in all, in cache lines."""
        return float(self.matrix.sum())

    @property
    def remote_fraction(self) -> float:
        """The share of references whose home was another node; NaN where there were none."""
        total = self.total
        return float(1 - np.trace(self.matrix) / total) if total > 0 else math.nan


@dataclass(frozen=True)
class EndSums:
    """Sums over an area's sampled granules, of weights w and remote shares r: of w r, w^2 r, w^2 r^2."""

    share: float
    share1: float
    share2: float


@dataclass(frozen=True)
class AreaSample:
    """The touches of an area that were seen over the run, held against two placements
    (src/areas/remote_share.hpp). by_access: accesses were sampled, not places. granules: sampled;
    traffic: what the area's accesses weigh among those of all areas; weight, weight2: the sums of w and w^2
    over the granules; before, after: where the granules were before homing moved any, and where they are."""

    area: int
    by_access: bool
    granules: int
    touches: float
    traffic: float
    weight: float
    weight2: float
    before: EndSums
    after: EndSums


@dataclass(frozen=True)
class Guard:
    """What the guard against harm said about moving an area's pages."""

    area: int
    iteration: int
    remote_ns: float
    move_ns: float
    permitted: bool


@dataclass(frozen=True)
class Message:
    """What the library wanted to say to the user."""

    level: str
    text: str
    repeats: int


@dataclass(frozen=True)
class Unwatched:
    """Memory that cannot be watched."""

    what: str
    begin: int
    bytes: int


@dataclass(frozen=True)
class Phase:
    """A phase between two calls of record, and what replay and undo did for it."""

    number: int
    #: Pages of the hot areas that it accessed, of them those that met the criterion, and those of the plan.
    accessed: int
    eligible: int
    planned: int
    #: Pages that left the plan.
    refused: int
    replays: int
    moved: int
    undone: int
    #: Of the recorded iteration; remote ones as pages lay, and as the plan has them.
    references: int
    remote: int
    remote_with_plan: int
    seconds: float
    calls: int
    #: Where the program did not mark it (`--mechanism hybrid`, `record-replay`): its region, seconds that
    #: moving its pages once brings and takes, and whether they are moved; else None.
    region: int | None = None
    gain: float | None = None
    price: float | None = None
    moves: bool | None = None


@dataclass(frozen=True)
class Sampling:
    """What the sampling mechanism came to."""

    scans: int
    #: Pages that were looked at; of them those that had been accessed since, and met the criterion.
    scanned: int
    accessed: int
    eligible: int
    moved: int
    #: Pages that stay: they went to and fro, or were refused again and again.
    frozen: int
    #: Processor time of the thread, without the moves.
    seconds: float


@dataclass(frozen=True)
class TaskHints:
    """Affinity clauses of OpenMP tasks. given: hints of tasks; honoured: those that decided a task's queue;
    at_home, elsewhere: of these, taken by a thread of the data's domain or by another one; left: the others,
    by reason."""

    given: int
    honoured: int
    at_home: int
    elsewhere: int
    left: dict[str, int]


@dataclass(frozen=True)
class Overhead:
    """Where homing's own time went, in seconds since the start. Of windows: faults, granules armed, those of
    them that were touched, and system calls (mprotect) that all of that took."""

    observing: float = 0.0
    deciding: float = 0.0
    moving: float = 0.0
    hooks: float = 0.0
    faults: int = 0
    region_events: int = 0
    armed: int = 0
    touches: int = 0
    calls: int = 0

    @property
    def total(self) -> float:
        """All of it."""
        return self.observing + self.deciding + self.moving + self.hooks


@dataclass(frozen=True)
class End:
    """The process ended in order."""

    time: float
    parallel_seconds: float
    iterations: int
    settled_at: int
    period: int
    live_areas: int
    dropped_areas: int


@dataclass(frozen=True)
class Area:
    """A memory area. origin: (object, code offset of a return address), from the allocation outwards. blocks:
    heap blocks of one origin and size that lie side by side are one area. order: heap blocks by it are in the
    order of their allocation (0: not known). offset: of a static area from its object's first mapped page (0:
    not known)."""

    id: int
    begin: int
    bytes: int
    kind: str
    name: str
    object: str
    granule: int
    time: float
    origin: tuple[tuple[str, int], ...]
    blocks: int = 1
    order: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Rule:
    """A rule of --areas (include=GLOB, exclude=GLOB), and how many areas it has met."""

    text: str
    areas: int


@dataclass(frozen=True)
class Counted:
    """What the simulator counted in a scope. id: number of an iteration, id of an area, else an index.
    object, offset: of regions and places in the code. misses: [node of the thread][home node]."""

    scope: str
    id: int
    object: str
    symbol: str
    offset: int
    entries: int
    accesses: int
    invalidation_misses: int
    upgrades: int
    shared_hits: int
    oracle_remote: int
    misses: NDArray[np.uint64]
