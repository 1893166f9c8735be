"""The lines of the summary that are about one process: the machine, its iterations, its areas."""

from __future__ import annotations

import os

from homing.late import pattern
from homing.record_rows import PlaceDistribution
from homing.records import Record
from homing.report.area_lines import MOST_NODES, area_lines, not_placed
from homing.report.first_touch import ON_ONE_NODE, FirstTouch
from homing.report.left import Left, briefly, stated_costs, why
from homing.report.lines import Table, Text, labelled
from homing.report.renamed import renamed, same_memory
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.waiting import Waiting, waiting
from homing.report.words import cut, duration, number, percent, size, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

#: Where `homing run` keeps what it measured (homing/costs.py).
_MEASURED = pattern(r"/homing/costs-[0-9a-f]{16}\.toml$")
#: A remote share that is known to be this high is not what settling is for.
_HIGH = 0.1
#: A phase with a smaller share of the misses tells nothing of the run.
_PART = 0.1
_BASES = {
    "anchor": "from one passage of a recurring region to the next",
    "barriers": "the recurring barriers of one long region",
    "time": "slices of time, because no region sequence repeats",
    "guess": "not known yet; guessed from the first region that recurs",
    "call": "ended by the program's own calls",
}


def process_name(record: Record) -> str:
    rank = f"rank {record.rank}, " if record.rank >= 0 else ""
    return f"{os.path.basename(record.program)} ({rank}process {record.pid} on {record.host})"


def machine_lines(process: ProcessResult) -> Iterable[Text]:
    record = process.record
    nodes = record.nodes
    count = f"{len(nodes)} NUMA node" + ("" if len(nodes) == 1 else "s")
    if record.facts.get("machine", "").startswith("HOMING_ASSUME_NODES"):
        count += " (assumed: moves are simulated)"
    seconds = f", {duration(record.seconds)}" if record.seconds else ""
    yield Text.assemble((f"homing {record.homing}", "bold"), f": {process_name(record)}{seconds}")
    excluded = [str(node.index) for node in nodes if not node.target]
    machine = "unknown"
    if nodes:
        cpus, memory = [node.cpus for node in nodes], [node.memory_bytes for node in nodes]
        machine = f"{count}, {_range(cpus)} CPU{'' if max(cpus) == 1 else 's'}"
        # A described machine whose memory nobody told: there is a target without any.
        known = all(node.memory_bytes for node in nodes if node.target)
        machine += f" and {_range(memory, size)} each" if known else " each, memory unknown"
    if excluded:
        machine += f"; never targets: node {', '.join(excluded)}"
    yield labelled("machine", machine)
    yield labelled("threads", _threads(record))
    yield labelled("source", _source(record))
    yield labelled("mechanism", record.facts.get("mechanism", "unknown"))
    if "costs" in record.facts:
        yield labelled("costs", _costs(record))


def _range(values: Sequence[int], show: Callable[[int], str] = str) -> str:
    """One value, or "least to most" where they differ."""
    least, most = show(min(values)), show(max(values))
    return least if least == most else f"{least} to {most}"


def _threads(record: Record) -> str:
    threads = record.threads
    if not threads:
        return record.facts.get("binding", "none seen")
    bound = sum(thread.bound for thread in threads)
    if bound == len(threads):
        by_node: dict[int, int] = {}
        for thread in threads:
            by_node[thread.node] = by_node.get(thread.node, 0) + 1
        spread = ", ".join(f"{count} on node {node}" for node, count in sorted(by_node.items()))
        text = f"{len(threads)}, bound: {spread}" if len(by_node) <= MOST_NODES else f"{len(threads)}, bound"
    elif bound:
        text = f"{len(threads)}, only {bound} bound"
    else:
        text = f"{len(threads)}, not bound (OMP_PROC_BIND=spread or homing run --bind binds them)"
    return text


def _source(record: Record) -> str:
    source = record.facts.get("source", "unknown")
    why = record.facts.get("source_reasons", "")
    if record.facts.get("questions") == "windows":
        source += ", and windows for what is asked"
    return f"{source} ({why})" if why else source


def _costs(record: Record) -> str:
    """What the guard reckons with, and how it is known."""
    origin = record.facts["costs"]
    stated = origin.removeprefix("stated in ")
    if stated != origin and "/homing/costs-" in stated and _MEASURED.search(stated):
        origin = f"measured on this machine ({stated})"
    costs = stated_costs(record)
    if not costs.keys() >= {"local_ns", "remote_ns", "move_call_us", "move_page_us"}:
        return origin
    return (
        f"{origin}: a local access {costs['local_ns']:g} ns, a remote one {costs['remote_ns']:g} ns; "
        f"moving {costs['move_call_us']:g} us a call and {costs['move_page_us']:g} us a page"
    )


def _period(record: Record) -> int:
    """How many regions a period has; 0: not known. Rows say how many their iteration had, the first one with
    those before the period was known: without the end's word two that agree are needed."""
    if record.end is not None and record.end.period:
        return record.end.period
    last = [one.regions for one in record.iterations if one.basis == "period"][-2:]
    return last[0] if len(last) == 2 and last[0] == last[1] else 0


def _iterations(process: ProcessResult) -> str:
    record = process.record
    basis = process.basis
    if not process.iteration_count:
        return _BASES["guess"] if basis == "guess" else "no iteration was found"
    if basis == "period":
        regions = _period(record)
        what = f"{regions} regions that repeat" if regions > 1 else "1 region that repeats"
        what = what if regions else "regions that repeat"
    else:
        what = _BASES.get(basis, "unknown basis")
    settled = process.settled_at
    count = f"{process.iteration_count}" + ("" if process.counts_all_iterations else " or more")
    last = f"not settled after {count}" if settled is None else f"settled at iteration {settled} of {count}"
    return f"{what}; {last}"


def process_lines(process: ProcessResult, results: Results, width: int) -> Iterable[Text | Table]:
    areas: list[AreaResult] = []
    rest: list[AreaResult] = []
    for area in process.areas:
        (areas if area.before or area.after or area.moved else rest).append(area)
    told = same_memory(renamed(process.record), {one for area in areas for one in area.ids})
    rest = [area for area in rest if not told.issuperset(area.ids)]
    settled = _still_remote(process, results) if process.settled_at is not None else ""
    yield labelled("iteration", _iterations(process) + settled)
    if waited := waiting(process.record):
        yield labelled("waited", _waited(waited))
    if areas:
        yield from area_lines(areas, process.record, results.names, width)
    if rest:
        yield not_placed(rest, process.record)
    yield from _first_touch(areas, process.record)
    yield from _left(areas, process.record)
    yield from _by_region(areas, process.region_names)
    if process.record.unwatched:
        yield labelled("unwatched", _unwatched(process))


def _waited(one: Waiting) -> str:
    """What the guard's waiting cost, and how to have none."""
    areas = f"{number(one.areas)} area" + ("" if one.areas == 1 else "s")
    text = f"{areas} until moving had paid (--guard on), which cost {duration(one.seconds)} of remote "
    return f"{text}accesses" + (f"; {number(one.still)} at the end still" if one.still else "")


def _still_remote(process: ProcessResult, results: Results) -> str:
    """What "settled" leaves remote, and why, where that is known to be much."""
    counts = results.counts if len(results.processes) == 1 else None
    counted = _counted_since(process.settled_at or 0, counts) if counts is not None else None
    found = process.remote
    if counted is not None:
        share, source = counted
        known = share >= _HIGH
    elif found is not None and found.enough:
        share, source = found.after.fraction, "estimated"
        known = found.after.low >= _HIGH
    else:
        return ""
    if not known:
        return ""
    weights: dict[str, float] = {}
    reasons: dict[str, Left] = {}
    for area in process.areas:
        remote = area.remote
        if area.left is not None and remote is not None:
            traffic = sum(sample.traffic for sample in area.samples)
            weights[area.left.reason] = weights.get(area.left.reason, 0.0) + remote.after.fraction * traffic
            reasons.setdefault(area.left.reason, area.left)
    if reasons:
        left = reasons[max(weights, key=lambda reason: weights[reason])]
        reason = briefly(left, process.record)
    else:
        reason = "of areas or accesses that were not sampled"
    return f", with {percent(share)} still remote ({source}): {reason}"


def _counted_since(settled_at: int, counts: Mapping[str, Any]) -> tuple[float, str] | None:
    """The share of misses that were remote since placement was stable, and what of the run that is; None
    where the counts do not tell. What comes after the last whole iteration, or in a short last phase, is no
    part of the computation."""
    iterations = [one for one in counts.get("iterations", [])[:-1] if one["number"] >= settled_at]
    misses = sum(one["total_misses"] for one in iterations)
    if misses:
        return sum(one["remote_misses"] for one in iterations) / misses, "counted since then"
    phases = counts.get("phases", [])
    if len(phases) > 1 and phases[-1]["total_misses"] >= _PART * counts["run"]["total_misses"]:
        return phases[-1]["remote_fraction"], "counted in the last phase"
    return None


def _left(areas: list[AreaResult], record: Record) -> Iterable[Text]:
    """Why pages are where they are, areas of one reason together, the most pages first."""
    reasons: dict[str, Left] = {}
    names: dict[str, list[str]] = {}
    for area in areas:
        if area.left is not None:
            reason, known = area.left.reason, reasons.get(area.left.reason)
            reasons[reason] = known + area.left if known else area.left
            names.setdefault(reason, []).append(area.name.shown)
    for reason, left in sorted(reasons.items(), key=lambda one: -one[1].pages):
        pages = f"{number(left.pages)} pages of " if left.pages else ""
        yield labelled("left", f"{pages}{some(names[reason])}: {why(left, record)}")


def _first_touch(areas: list[AreaResult], record: Record) -> Iterable[Text]:
    """Where arrays were touched first, those of one place together, the largest first; or why that is not
    known."""
    fact = record.facts.get("first_touch", "")
    if areas and fact.startswith(_UNKNOWN):
        text = f"not known which code touched memory first: {fact.removeprefix(_UNKNOWN)}"
        yield labelled("touched", text + _found_on_one_node(areas, record))
        return
    names: dict[tuple[str, str], list[str]] = {}
    for area in areas:
        for one in area.first_touch[:1]:
            names.setdefault((one.where, _by_threads(one)), []).append(area.name.short)
    if names:
        told = [f"{some(some_of)} first at {where} by {by}" for (where, by), some_of in names.items()]
        yield labelled("touched", "; ".join(told[:_PLACES_SHOWN]) + _more_places(len(told)))


def _found_on_one_node(areas: list[AreaResult], record: Record) -> str:
    """What places of pages tell of their first touch: threads of one node did it."""
    names: dict[int, list[str]] = {}
    for area in areas:
        if area.before is not None and area.before.largest_share >= ON_ONE_NODE:
            node = record.positions[max(range(len(area.before.pages)), key=area.before.pages.__getitem__)]
            names.setdefault(node, []).append(area.name.short)
    told = [f"{some(some_of)} on node {node}" for node, some_of in sorted(names.items())]
    return f"; found {', '.join(told)}: its threads did, where nobody placed them" if told else ""


#: How the record says that first touches could not be seen, and why.
_UNKNOWN = "unknown: "
#: Places of first touches that the summary tells.
_PLACES_SHOWN = 4


def _more_places(count: int) -> str:
    more = count - _PLACES_SHOWN
    return f"; and {number(more)} more places" if more > 0 else ""


def _by_threads(one: FirstTouch) -> str:
    return "one thread" if len(one.threads) == 1 else f"{len(one.threads)} threads"


def _by_region(areas: list[AreaResult], regions: Mapping[int, str]) -> Iterable[Text]:
    """Areas that regions use in ways of their own."""
    for area in areas:
        followed = [way for way in area.by_region if way.followed]
        others = [way for way in area.by_region if not way.followed]
        if not followed or not others:
            continue
        yield labelled(
            "by region",
            f"{area.name.shown}: no one placement serves all; pages follow "
            f"{some([_way(way, regions) for way in followed])}, "
            f"not {some([_way(way, regions) for way in others])}",
        )


def _way(way: PlaceDistribution, regions: Mapping[int, str]) -> str:
    name = regions.get(way.region, "a region that is not known")
    touches = f"{number(way.touches)} touches"
    if way.distribution in ("NONE", "HOME", ""):
        return f"{name} ({touches}, no pattern)"
    return f"{name} ({touches}, {way.distribution}, {100 * way.confidence:.0f} %)"


def _unwatched(process: ProcessResult) -> str:
    by_name: dict[str, int] = {}
    for entry in process.record.unwatched:
        # Pieces that are small for themselves are of the same kind as large ones.
        name = process.left_out.get(entry.what, entry.what).removeprefix("small pieces: ")
        by_name[name] = by_name.get(name, 0) + entry.bytes
    largest = sorted(by_name.items(), key=lambda item: -item[1])
    shown = "; ".join(f"{cut(what)} {size(total)}" for what, total in largest[:4])
    return shown + (f"; and {len(largest) - 4} more" if len(largest) > 4 else "")
