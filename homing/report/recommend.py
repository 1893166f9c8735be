"""What to change in the program or in how it is started, each with what it rests on and what it brings. No
advice without a number.

What a change brings is told as the remote share of the run's touches, as the pages were found and as they
would lie: where homing moved an array's pages to where they are used, its share at the end is what first
touch by the same threads gives from the start. Both ends are read off the same touches (remote.py)."""

from __future__ import annotations

from homing.report.advice import settings
from homing.report.advised import LEAST_GAIN, LITTLE, SURE, Advice
from homing.report.first_touch import ON_ONE_NODE
from homing.report.first_touch_advice import first_touch_advice
from homing.report.left import why
from homing.report.results import AreaResult, ProcessResult
from homing.report.words import duration, number, percent, size, some

#: A node that serves so many times its even share of the touches is crowded.
_CROWDED = 2.0
#: Moves that took more of the run are worth larger pages.
_MOVING = 0.01
#: Where an array has fewer pages than that for each thread, neighbours share a large part of them.
_PAGES_OF_A_THREAD = 4
#: So many changes are told.
_MOST = 5
_AT_HOME = "Nothing: the pages are where they are used."


def advice_for(process: ProcessResult) -> list[Advice]:
    """What to do about a process, the most important first."""
    record = process.record
    if record.stepped_aside or len(record.nodes) < 2:
        return []
    found = [
        *_nothing(process),
        *first_touch_advice(process),
        *_interleave(process),
        *_shared_pages(process),
        *_huge_pages(process),
        *_binding(process),
    ]
    if text := settings([record]):
        found.append(Advice("settings", "Let homing observe.", text))
    return found[:_MOST] or _left(process)


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
        used_by_all = used_by_all and (area.left is None or area.left.reason != "free")
        if used_by_all and not area.moved and placement.largest_share >= ON_ONE_NODE:
            shared.append((weight / traffic, index))
    part = sum(share for share, _ in shared)
    if not shared or nodes < 2 or max(served) < _CROWDED / nodes or part < LITTLE:
        return []
    shared.sort(reverse=True)
    names = some([process.areas[index].name.short for _, index in shared])
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
        if not owners.distribution.startswith(("BLOCK", "CYCLIC")) or owners.confidence < SURE:
            continue
        weight = sum(one.traffic for one in area.samples) / traffic
        granule = area.area.granule or process.record.page_bytes
        pages = area.area.bytes / granule
        if weight * remote.after.fraction < LEAST_GAIN or pages / threads >= _PAGES_OF_A_THREAD:
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
                f"Keep threads off each other's pages of {area.name.short}: {how}.",
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
    if found.after.fraction < LITTLE:
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
    if found.after.fraction < LITTLE:
        return [Advice("nothing", _AT_HOME, f"{after} remote at the end, estimated.")]
    reasons: dict[str, list[AreaResult]] = {}
    for area in process.areas:
        if area.left is not None:
            reasons.setdefault(area.left.reason, []).append(area)
    advice = []
    for areas in sorted(reasons.values(), key=lambda some_of: -sum(one.live_bytes for one in some_of)):
        first = areas[0]
        if first.left is not None:
            names = some([one.name.shown for one in areas])
            pages = sum(one.left.pages for one in areas if one.left is not None)
            many = f"{number(pages)} pages; " if pages else ""
            text = f"{why(first.left, process.record)} ({many}{after} of all touches are remote)."
            advice.append(Advice("left", f"Still remote: {names}.", text))
    unknown = Advice("left", "Still remote, and no reason is recorded.", f"{after} at the end, estimated.")
    return advice[:3] or [unknown]
