"""What a run did, gathered from the records of its processes: the one source of the summary and of the JSON
file."""

from __future__ import annotations

from homing.record_format import RecordError
from homing.record_rows import (
    AT_END,
    FOUND,
    NOW,
    Area,
    AreaSample,
    Iteration,
    Move,
    Ownership,
    PlaceDistribution,
    Placement,
    Refusal,
)
from homing.records import LAB_COUNTS, Record, read_record
from homing.report.first_touch import FirstTouch, joined, touched_first
from homing.report.left import Account, Left, account_of, refused_pages, why_left
from homing.report.left_out import left_out_names
from homing.report.region_names import region_names
from homing.report.remote import Estimate, estimate
from homing.report.renamed import renamed
from homing.values import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from homing.record_additions import Found
    from homing.report.names import AreaName, Namer


@dataclass
class AreaResult:
    """One area, or all areas of one place in the program (`count`), with everything that is known about
    it."""

    area: Area
    name: AreaName
    count: int = 1
    #: Of all of them, whenever they lived, ...
    bytes: int = 0
    #: ... and the most that lived at one time.
    live_bytes: int = 0
    before: Placement | None = None
    after: Placement | None = None
    ownership: Ownership | None = None
    #: Where regions use it in ways of their own: each one's; of several areas the first that has any.
    by_region: list[PlaceDistribution] = field(default_factory=list)
    moved: int = 0
    refused: dict[int, int] = field(default_factory=dict)
    #: What the estimate of its remote share rests on.
    samples: list[AreaSample] = field(default_factory=list)
    #: The guard's account at the last decision, where pages were to be moved.
    account: Account | None = None
    #: Why pages are where they are, where something is remote.
    left: Left | None = None
    ended: bool = False
    #: It ended because the program named its memory, or took the name back: that stayed.
    renamed: bool = False
    #: The places in the code that touched it first, the most of it first; empty where that is not known.
    first_touch: list[FirstTouch] = field(default_factory=list)
    #: Every area of the record that is joined here.
    ids: list[int] = field(default_factory=list)

    @property
    def remote(self) -> Estimate | None:
        """The estimate of its remote share; None where nothing of it was sampled."""
        return estimate(self.samples)


@dataclass
class ProcessResult:
    """One process: its record, and its areas from the largest to the smallest."""

    record: Record
    areas: list[AreaResult] = field(default_factory=list)
    #: What memory that was left out is called, by the record's words.
    left_out: dict[str, str] = field(default_factory=dict)
    #: What regions that the summary tells of are called, by their ids.
    region_names: dict[int, str] = field(default_factory=dict)
    #: What the simulator counted (homing/simulate/counts.py), if it did.
    counts: dict[str, Any] | None = None

    @property
    def moved(self) -> int:
        """Base pages that were moved and found at their new node."""
        return sum(move.moved for move in self.record.moves)

    @property
    def moved_bytes(self) -> int:
        """The same in bytes."""
        return sum(move.bytes for move in self.record.moves)

    @property
    def refused(self) -> dict[int, int]:
        """Pages that were refused, by errno."""
        return refused_pages(self.record.refusals)

    @property
    def settled_at(self) -> int | None:
        """The number of the iteration from which nothing changed any more; None if the run ended before."""
        end = self.record.end
        if end is not None:
            return end.settled_at or None
        settled = None
        for iteration, ended in self._ended():
            if iteration.state != "settled":
                settled = None
            elif settled is None:
                settled = max(1, ended)
        return settled

    def _ended(self) -> Iterator[tuple[Iteration, int]]:
        """Each row of an iteration, and how many had ended when it was written. Guesses are parts of one."""
        for iteration in self.record.iterations:
            yield iteration, self.record.iteration_of(iteration.number) + (iteration.basis != "guess")

    @property
    def iteration_count(self) -> int:
        """Outer iterations that were seen."""
        end, progress = self.record.end, self.record.progress
        if end is not None:  # its own count has the guesses
            return self.record.iteration_of(end.iterations) if progress is None else progress
        # Iterations at rest have no row: without a note of its progress (an older version, a damaged record)
        # there may have been more.
        noted = max((ended for _, ended in self._ended()), default=0)
        return max(noted, progress or 0)

    @property
    def counts_all_iterations(self) -> bool:
        """Is `iteration_count` exact?"""
        return self.record.end is not None or self.record.progress is not None

    @property
    def basis(self) -> str:
        """What the iterations are based on (the last one counts): period, anchor, barriers, time, call; guess
        where none was found; or empty. Iterations without touches have no row, and the period may be known
        all the same."""
        bases = [one.basis for one in self.record.iterations]
        if found := [one for one in bases if one != "guess"]:
            return found[-1]
        known = self.record.end is not None and self.record.end.period
        return "period" if known else "guess" if bases else ""

    @property
    def remote(self) -> Estimate | None:
        """The estimate of the run's remote share; None where nothing was sampled."""
        return estimate(list(self.record.samples.values()))

    @property
    def live_bytes(self) -> int:
        """The most bytes of areas that lived at one time."""
        return most_alive(self.record, (area.id for area in self.record.areas))


@dataclass
class Results:
    """One run: of `homing run`, or of the records given to `homing report`."""

    processes: list[ProcessResult] = field(default_factory=list)
    #: Records that could not be read, one line each.
    unreadable: list[str] = field(default_factory=list)
    command: list[str] | None = None
    status: int | None = None
    seconds: float | None = None
    notes: list[str] = field(default_factory=list)
    #: Why nothing was done, as far as the launcher knows.
    aside: str = ""
    #: Does the summary tell the names by which `--areas` knows the areas?
    names: bool = False
    #: What the records do not have yet of where their code and arrays come from, by the record's path;
    #: those are left out for which there was no time.
    sources: dict[str, Found] = field(default_factory=dict)
    #: The counter of the lab (homing/lab/counts.py), if it counted.
    counts: dict[str, Any] | None = None


def read_results(
    paths: Sequence[str],
    strict: bool = False,
    progress: Callable[[str], None] | None = None,
    budget: float | None = None,
    remember: bool = False,
) -> Results:
    """Read the records and name their areas. `strict`: a record that cannot be read is an error, not a
    remark.

    progress: told what takes long. budget: seconds for source lines (None: as long as it takes). remember:
    names that an earlier run of the same build found are used, and those of this one kept.
    """
    from homing.report.names import Namer
    from homing.report.sources import Sources

    results = Results()
    namer = Namer(Sources(budget, progress, remember))
    for path in paths:
        try:
            record = read_record(path)
        except RecordError as error:
            if strict:
                raise
            results.unreadable.append(error.message)
            continue
        namer.begin(record)
        # A process that stepped aside has no areas to be named.
        process = ProcessResult(record, [] if record.stepped_aside else area_results(record, namer))
        process.left_out = left_out_names(record, namer)
        process.region_names = region_names(record, namer)
        if record.counted:
            from homing.simulate.counts import simulated_counts

            process.counts = simulated_counts(process, namer)
        results.processes.append(process)
        if not namer.sources.late():
            results.sources[path] = namer.sources.found
            namer.sources.end()
    results.processes.sort(
        key=lambda process: (process.record.rank, process.record.start, process.record.pid)
    )
    results.notes += namer.remarks()
    if counts := [one.counts for one in results.processes if one.counts is not None]:
        from homing.simulate.counts import joined_counts

        results.counts = joined_counts(counts)
    if results.counts is None:
        results.counts = _lab_counts(results)
    return results


def _lab_counts(results: Results) -> dict[str, Any] | None:
    """What the guest's counter counted, which is of all its processes and in each one's record. Records of
    several runs have no counts together."""
    texts = {one.record.facts.get(LAB_COUNTS, "") for one in results.processes}
    if texts <= {""}:
        return None
    if len(texts) > 1:
        results.notes.append("the records have different counts: they are of several runs in the lab")
        return None
    from homing.lab.counts import recorded

    counts = recorded(texts.pop())
    if counts is None:
        results.notes.append("the counts in the record are damaged")
    return counts


def area_results(record: Record, namer: Namer) -> list[AreaResult]:
    """The areas of a record, those of one place in the program joined, the largest first."""
    first: dict[int, Placement] = {}
    last: dict[int, Placement] = {}
    for placement in record.placements:
        if placement.when == FOUND:
            first[placement.area] = placement
        if placement.when in (FOUND, NOW, AT_END):
            last[placement.area] = placement
    moves: dict[int, list[Move]] = {}
    for move in record.moves:
        moves.setdefault(move.area, []).append(move)
    refusals: dict[int, list[Refusal]] = {}
    for refusal in record.refusals:
        refusals.setdefault(refusal.area, []).append(refusal)

    named = namer.names(record.areas)
    first_touches = touched_first(record, namer.sources)
    names_after = renamed(record)
    groups: dict[int, AreaResult] = {}
    for area in record.areas:
        result = AreaResult(
            area,
            named[area.id][1],
            area.blocks,
            area.bytes,
            before=first.get(area.id),
            after=last.get(area.id),
            ownership=record.ownerships.get(area.id),
            by_region=record.place_distributions.get(area.id, []),
            moved=sum(move.moved for move in moves.get(area.id, [])),
            refused=refused_pages(refusals.get(area.id, [])),
            account=account_of(record, area.id),
            ended=area.id in record.area_ends,
            renamed=area.id in names_after,
            first_touch=first_touches.get(area.id, []),
            ids=[area.id],
        )
        if (sample := record.samples.get(area.id)) is not None:
            result.samples.append(sample)
        result.left = why_left(
            record, area, result.before, result.after, moves.get(area.id, []), refusals.get(area.id, [])
        )
        key = named[area.id][0]
        if key in groups:
            _join(groups[key], result)
        else:
            groups[key] = result
    for result in groups.values():
        result.live_bytes = most_alive(record, result.ids)
    return sorted(groups.values(), key=lambda result: -result.live_bytes)


def most_alive(record: Record, ids: Iterable[int]) -> int:
    """The most bytes of these areas that lived at one time: programs allocate and free temporaries in every
    step."""
    ends, begins, ends_at_once = range(3)  # what ends makes room for what begins at the same time
    changes = []
    for one in ids:
        area = record.areas_by_id[one]
        changes.append((area.time, begins, area.bytes))
        if one in record.area_ends:
            end = record.area_ends[one]
            changes.append((max(end, area.time), ends if end > area.time else ends_at_once, -area.bytes))
    alive = most = 0
    for _, _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def _join(into: AreaResult, other: AreaResult) -> None:
    """Blocks that one place in the program allocated are one line."""
    into.first_touch = joined(((into.first_touch, into.bytes), (other.first_touch, other.bytes)))
    into.samples += other.samples
    into.count += other.count
    into.ids += other.ids
    into.bytes += other.bytes
    into.moved += other.moved
    into.before = _sum(into.before, other.before)
    into.after = _sum(into.after, other.after)
    if into.ownership is None or (
        other.ownership is not None and other.ownership.samples > into.ownership.samples
    ):
        into.ownership = other.ownership or into.ownership
    into.by_region = into.by_region or other.by_region
    for error, pages in other.refused.items():
        into.refused[error] = into.refused.get(error, 0) + pages
    if into.account is not None and other.account is not None:
        into.account += other.account
    else:
        into.account = into.account or other.account
    into.left = into.left + other.left if into.left and other.left else into.left or other.left
    into.ended = into.ended and other.ended
    into.renamed = into.renamed and other.renamed


def _sum(a: Placement | None, b: Placement | None) -> Placement | None:
    if a is None or b is None:
        return a or b
    pages = tuple(x + y for x, y in zip(a.pages, b.pages, strict=True))
    return Placement(a.area, a.time, a.when, a.iteration, a.sampled or b.sampled, pages, a.absent + b.absent)
