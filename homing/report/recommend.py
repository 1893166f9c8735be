"""What to change in the program or in how it is started, each with what it rests on and what it brings. No
advice without a number.

What a change brings is told as the remote share of the run's touches, as the pages were found and as they
would lie: where homing moved an array's pages to where they are used, its share at the end is what first
touch by the same threads gives from the start. Both ends are read off the same touches (remote.py)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from homing.report.advice import settings
from homing.report.first_touch import ON_ONE_NODE, FirstTouch
from homing.report.left import why
from homing.report.results import AreaResult, ProcessResult
from homing.report.words import duration, number, percent, size, some
from homing.values import dataclass

#: A remote share below this is not worth a change of the program.
_LITTLE = 0.05
#: A change that brings less of the run's remote share is not told.
_LEAST_GAIN = 0.01
#: Where the best pages still leave so much of an array's remote share, no thread owns them for good: its
#: first touch is not what is wrong (dynamic schedules, tasks).
_NO_OWNERS = 0.5
#: Owners that are believed with less are not advised.
_SURE = 0.9
#: A node that serves so many times its even share of the touches is crowded.
_CROWDED = 2.0
#: Moves that took more of the run are worth larger pages.
_MOVING = 0.01
#: Where an array has fewer pages than that for each thread, neighbours share a large part of them.
_PAGES_OF_A_THREAD = 4
#: So many changes are told.
_MOST = 5
_AT_HOME = "Nothing: the pages are where they are used."
_FORTRAN = (".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18")


@dataclass(frozen=True)
class Gain:
    """The remote share of the run's touches without the change, and with it."""

    before: float
    after: float

    @property
    def words(self) -> str:
        """In per cent, with an arrow."""
        return f"{percent(self.before)} -> {percent(self.after)} remote"


@dataclass(frozen=True)
class Advice:
    """A thing to do, what it rests on, and the area (by its number in the report) that it is about. kind: a
    word for programs. gain: None where it is no share of touches that changes; the evidence has the number
    then."""

    kind: str
    text: str
    evidence: str
    area: int | None = None
    gain: Gain | None = None
    file: str = ""
    line: int = 0

    @property
    def words(self) -> str:
        """All of it on one line."""
        expected = f" Expected: {self.gain.words}." if self.gain is not None else ""
        return f"{self.text}{expected} {self.evidence}"


def advice_for(process: ProcessResult) -> list[Advice]:
    """What to do about a process, the most important first."""
    record = process.record
    if record.stepped_aside or len(record.nodes) < 2:
        return []
    found = [
        *_nothing(process),
        *_first_touch(process),
        *_interleave(process),
        *_shared_pages(process),
        *_huge_pages(process),
        *_binding(process),
    ]
    if text := settings([record]):
        found.append(Advice("settings", "Let homing observe.", text))
    return found[:_MOST] or _left(process)


class _Touches:
    """The touches of a process, added up once: there may be ten thousand areas, each a change of its own."""

    def __init__(self, process: ProcessResult) -> None:
        estimate = process.remote
        self._known = estimate is not None and estimate.enough
        self._remote = self._all = 0.0
        self._saved: dict[int, float] = {}  # by area, where its pages are at the end
        for number_of, sample in process.record.samples.items():
            if sample.weight <= 0:
                continue
            found, now = sample.before.share / sample.weight, sample.after.share / sample.weight
            self._all += sample.traffic
            self._remote += sample.traffic * found
            self._saved[number_of] = sample.traffic * (found - now)

    def remote_with(self, changed: Iterable[AreaResult]) -> Gain | None:
        """The remote share of the touches with the pages as they were found, and with those of some areas
        where they are at the end. None where too little is known."""
        if not self._known or self._all <= 0:
            return None
        saved = sum(self._saved.get(one, 0.0) for area in changed for one in area.ids)
        return Gain(self._remote / self._all, max(0.0, self._remote - saved) / self._all)


# The first touch


def _first_touch(process: ProcessResult) -> list[Advice]:
    """Arrays that one thread touched first and that are used elsewhere, those of one function together."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, area in enumerate(process.areas):
        if _is_misplaced(area):
            first = _first_place(area)
            key = (first.file, first.function) if first is not None else ("", str(index))
            groups.setdefault(key, []).append(index)
    if not groups:
        return []
    touches = _Touches(process)
    found = []
    for indices in groups.values():
        areas = [process.areas[index] for index in indices]
        gain = touches.remote_with(areas)
        if gain is not None and gain.before - gain.after >= _LEAST_GAIN:
            found.append((gain.after, _touch_in_parallel(areas, indices[0], gain)))
    found.sort(key=lambda one: one[0])
    every = [index for indices in groups.values() for index in indices]
    together = touches.remote_with(process.areas[index] for index in every)
    advice = [one for _, one in found[:_MOST]]
    if len(advice) > 1 and together is not None:
        advice.append(
            Advice(
                "first-touch-all",
                f"All {len(found)} of these changes together.",
                f"{number(len(every))} arrays, {size(sum(process.areas[one].live_bytes for one in every))}.",
                gain=together,
            )
        )
    return advice


def _is_misplaced(area: AreaResult) -> bool:
    """Is it used by several threads, each its part, and lies where one thread touched it first?"""
    remote, owners = area.remote, area.ownership
    if remote is None or remote.before.fraction < _LITTLE or owners is None:
        return False
    if area.left is not None and area.left.reason == "free":
        return False
    if area.moved and remote.after.fraction > _NO_OWNERS * remote.before.fraction:
        return False
    known = owners.distribution and owners.distribution.split()[0] not in ("HOME", "NONE", "SHARED", "SINGLE")
    if not (known and owners.confidence >= _SURE) and not (area.moved and remote.after != remote.before):
        return False
    first = _first_place(area)
    by_one = first is not None and max(_by_thread(area).values()) >= ON_ONE_NODE
    return by_one or _share_of_one_node(area) >= ON_ONE_NODE


def _by_thread(area: AreaResult) -> dict[int, float]:
    """The share of the area's first touches by thread, those of a place in equal parts."""
    shares: dict[int, float] = {}
    for one in area.first_touch:
        for thread in one.threads:
            shares[thread] = shares.get(thread, 0.0) + one.share / len(one.threads)
    return shares


def _first_place(area: AreaResult) -> FirstTouch | None:
    return area.first_touch[0] if area.first_touch else None


def _touch_in_parallel(areas: Sequence[AreaResult], index: int, gain: Gain) -> Advice:
    names = some([_name(area) for area in areas])
    firsts = [first for area in areas if (first := _first_place(area)) is not None and first.line]
    owners = areas[0].ownership
    distribution = owners.distribution if owners is not None else ""
    file, line = (firsts[0].file, firsts[0].line) if firsts else ("", 0)
    text = f"First touch {names} in parallel"
    if firsts:
        lines = sorted({first.line for first in firsts})
        where = ", ".join(str(one) for one in lines[:3]) + (" ..." if len(lines) > 3 else "")
        text += f": put `{_directive(file, distribution)}` on the loop at {os.path.basename(file)}:{where}"
        if firsts[0].function:
            text += f" ({firsts[0].function})"
    else:
        text += f", as it is used ({distribution or 'page by page'})"
    first = _first_place(areas[0])
    if first is not None:
        by_thread = _by_thread(areas[0])
        many = f"{len(by_thread)} threads, {percent(max(by_thread.values()))} by one of them"
        evidence = f"{percent(sum(by_thread.values()))} of it was first touched by "
        evidence += "one thread" if len(by_thread) == 1 else many
    else:
        evidence = f"{percent(_share_of_one_node(areas[0]))} of its pages were found on one node"
    evidence += f", and it is used {_used(distribution)}."
    return Advice("first-touch", f"{text}.", evidence, index, gain, file, line)


def _used(distribution: str) -> str:
    if distribution == "HOME":
        return "where homing has moved its pages"
    return f"as {distribution}" if distribution and distribution != "NONE" else "by other threads"


def _directive(file: str, distribution: str) -> str:
    """The directive that shares a loop out as the array is used."""
    fortran = os.path.splitext(file)[1].lower() in _FORTRAN
    words = distribution.split()
    schedule = "static"
    if words and words[0].startswith("CYCLIC"):
        schedule = "static, chunk"  # the words of the distribution tell pages, the loop has its own unit
    if fortran:
        return f"!$omp parallel do schedule({schedule})"
    return f"#pragma omp parallel for schedule({schedule})"


def _name(area: AreaResult) -> str:
    return area.name.variable or area.name.title


def _share_of_one_node(area: AreaResult) -> float:
    return area.before.largest_share if area.before is not None else 0.0


# The bandwidth of one node


def _interleave(process: ProcessResult) -> list[Advice]:
    """Memory that all threads use alike and that lies on one node: spread it, so that all nodes serve it."""
    nodes = process.record.node_count
    traffic = sum(sample.traffic for sample in process.record.samples.values())
    served = [0.0] * nodes
    shared: list[tuple[float, int]] = []
    for index, area in enumerate(process.areas):
        weight = sum(one.traffic for one in area.samples)
        placement = area.before
        if placement is None or not placement.present or traffic <= 0 or len(placement.pages) != nodes:
            continue
        for node, pages in enumerate(placement.pages):
            served[node] += weight / traffic * pages / placement.present
        owners = area.ownership
        used_by_all = owners is not None and owners.distribution.startswith("SHARED")
        if used_by_all and not area.moved and placement.largest_share >= ON_ONE_NODE:
            shared.append((weight / traffic, index))
    part = sum(share for share, _ in shared)
    if not shared or nodes < 2 or max(served) < _CROWDED / nodes or part < _LITTLE:
        return []
    shared.sort(reverse=True)
    names = some([_name(process.areas[index]) for _, index in shared])
    crowded = max(range(nodes), key=lambda node: served[node])
    index = process.record.positions[crowded]
    return [
        Advice(
            "interleave",
            f"Interleave {names}, which all threads use alike: numactl --interleave=all where the program "
            "has no other large arrays, else mbind(MPOL_INTERLEAVE) for them.",
            f"Node {index} serves {percent(served[crowded])} of all touches; {percent(part)} are of these "
            f"arrays, of which each node would serve {percent(part / nodes)}.",
            shared[0][1],
        )
    ]


# Pages that several threads use


def _shared_pages(process: ProcessResult) -> list[Advice]:
    """Arrays that are so small, or whose pages are so large, that the blocks of threads share pages."""
    threads = len(process.record.threads)
    traffic = sum(sample.traffic for sample in process.record.samples.values())
    for index, area in enumerate(process.areas):
        owners, remote = area.ownership, area.remote
        if owners is None or remote is None or threads < 2 or traffic <= 0:
            continue
        if not owners.distribution.startswith(("BLOCK", "CYCLIC")) or owners.confidence < _SURE:
            continue
        weight = sum(one.traffic for one in area.samples) / traffic
        granule = area.area.granule or process.record.page_bytes
        pages = area.area.bytes / granule
        if weight * remote.after.fraction < _LEAST_GAIN or pages / threads >= _PAGES_OF_A_THREAD:
            continue
        cut = min(threads - 1, int(pages) + 1)
        how = (
            "madvise(MADV_NOHUGEPAGE) for it"
            if granule > process.record.page_bytes
            else "begin each thread's part on a page of its own"
        )
        return [
            Advice(
                "shared-pages",
                f"Keep threads off each other's pages of {_name(area)}: {how}.",
                f"{size(area.area.bytes)} in pages of {size(granule)} for {threads} threads: {cut} of "
                f"{max(1, int(pages))} pages hold parts of two threads; it has {percent(weight)} of all "
                f"touches, {percent(remote.after.fraction)} of them remote.",
                index,
            )
        ]
    return []


# Settings


def _huge_pages(process: ProcessResult) -> list[Advice]:
    record = process.record
    moving = record.overhead.moving
    if record.seconds <= 0 or moving < _MOVING * record.seconds or not process.moved:
        return []
    size_of_page = process.moved_bytes // process.moved
    huge = 2 << 20
    if size_of_page >= huge:
        return []
    return [
        Advice(
            "huge-pages",
            "Use huge pages: madvise(MADV_HUGEPAGE) for the large arrays, with madvise or always in "
            "/sys/kernel/mm/transparent_hugepage/enabled.",
            f"Moving {number(process.moved)} pages of {size(size_of_page)} took {duration(moving)}, "
            f"{percent(moving / record.seconds)} of the run; the same memory is "
            f"{number(-(-process.moved_bytes // huge))} huge pages.",
        )
    ]


def _binding(process: ProcessResult) -> list[Advice]:
    threads = process.record.threads
    unbound = sum(not one.bound for one in threads)
    if not unbound:
        return []
    return [
        Advice(
            "binding",
            "Bind the threads: OMP_PROC_BIND=spread, or homing run --bind.",
            f"{unbound} of {len(threads)} threads were not bound to a node: what is local now is remote when "
            "they move.",
        )
    ]


def _nothing(process: ProcessResult) -> list[Advice]:
    """That nothing has to be done, where that is known: little is remote, or it costs nothing."""
    found = process.remote
    if found is None or not found.enough or process.moved:
        return []
    after = percent(found.after.fraction)
    if found.after.fraction < _LITTLE:
        return [Advice("nothing", _AT_HOME, f"{after} of touches are remote, estimated.")]
    left = [area.left for area in process.areas if area.left is not None]
    if left and all(one.reason == "free" for one in left):
        said = why(left[0], process.record)
        return [Advice("nothing", f"Nothing about pages: {after} of touches are remote, but", f"{said}.")]
    return []


def _left(process: ProcessResult) -> list[Advice]:
    """What is still remote, and why."""
    found = process.remote
    if found is None or not found.enough:
        return []
    after = percent(found.after.fraction)
    if found.after.fraction < _LITTLE:
        return [Advice("nothing", _AT_HOME, f"{after} remote at the end, estimated.")]
    reasons: dict[str, list[AreaResult]] = {}
    for area in process.areas:
        if area.left is not None:
            reasons.setdefault(area.left.reason, []).append(area)
    advice = []
    for areas in sorted(reasons.values(), key=lambda some_of: -sum(one.live_bytes for one in some_of)):
        first = areas[0]
        if first.left is not None:
            names = some([one.name.title for one in areas])
            pages = number(sum(one.left.pages for one in areas if one.left is not None))
            text = f"{why(first.left, process.record)} ({pages} pages; {after} of all touches are remote)"
            advice.append(Advice("left", f"Still remote: {names}.", text))
    unknown = Advice("left", "Still remote, and no reason is recorded.", f"{after} at the end, estimated.")
    return advice[:3] or [unknown]
