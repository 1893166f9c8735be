"""What a run comes to, in a sentence each: what it cost, what homing did about it, what to do. No sentence
without a number or a setting behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from homing.record_rows import Placement
from homing.report.advice import settings
from homing.report.area_lines import change, interval
from homing.report.left import why
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.words import duration, number, percent, size, some

#: A remote share below this is not worth a change of the program.
_LITTLE = 0.05
#: An array of which more than this lies on one node was first touched by one thread.
_ON_ONE_NODE = 0.9
#: Owners that are believed with less are not advised.
_SURE = 0.9
#: Where a guest of the lab has its costs.
_GUEST = "stated in /run/homing-lab/"
_AT_HOME = "Nothing: the pages are where they are used."
#: So many arrays are named.
_MOST = 3


@dataclass(frozen=True)
class Advice:
    """A thing to do, what it rests on, and the area (by its number in the report) that it is about."""

    text: str
    evidence: str
    area: int | None = None


@dataclass(frozen=True)
class Verdict:
    """cost, done: a sentence each. advice: the most important first."""

    cost: str
    done: str
    advice: list[Advice]


def verdict(process: ProcessResult, results: Results) -> Verdict:
    """The verdict on one process of a run."""
    return Verdict(_cost(process, results), _done(process), _advice(process, results))


def _cost(process: ProcessResult, results: Results) -> str:
    record, found = process.record, process.remote
    if record.stepped_aside:
        return f"homing stepped aside: {record.stepped_aside}."
    if not record.nodes:
        return "The record holds no NUMA nodes: what remote accesses cost is not known."
    if len(record.nodes) < 2:
        return "This machine has one NUMA node: no access is remote."
    counts = results.counts if len(results.processes) == 1 else None
    if counts is not None:
        run = counts["run"]
        misses = number(run["total_misses"])
        text = f"Counted over the run: {percent(run['remote_fraction'])} of {misses} cache misses were remote"
        oracle = run.get("oracle_remote_fraction")
        if oracle is not None:
            text += f"; with every page on its majority node it would be {percent(oracle)}"
        return text + "."
    if found is None:
        return "Nothing was sampled, so what remote accesses cost is not known."
    if not found.enough:
        return (
            f"Too few samples ({number(round(found.touches))} touches of {number(found.granules)} pages) "
            "to say what remote accesses cost."
        )
    within = f"95 % interval {interval(found.before)} %"
    return (
        f"Estimated: {percent(found.before.fraction)} of touches came from another node than the page's "
        f"as it was found ({within})."
    )


def _done(process: ProcessResult) -> str:
    record, found = process.record, process.remote
    overhead = record.overhead.total
    share = f" ({100 * overhead / record.seconds:.1f} % of the run)" if record.seconds > 0 else ""
    if record.facts.get("costs", "").startswith(_GUEST):
        share += "; times in the guest mean nothing"
    if not process.moved:
        mechanism = record.facts.get("mechanism", "")
        why_not = " (--mechanism observe moves nothing)" if mechanism == "observe" else ""
        return f"homing moved no page{why_not}; it took {duration(overhead)}{share}."
    text = f"homing moved {number(process.moved)} pages ({size(process.moved_bytes)})"
    if found is not None and found.enough and found.changed:
        text += f": remote {change(found)}, estimated for the same touches at both ends"
    return f"{text}; it took {duration(overhead)}{share}."


def _advice(process: ProcessResult, results: Results) -> list[Advice]:
    record = process.record
    advice: list[Advice] = []
    if len(record.nodes) < 2:
        return advice
    threads = record.threads
    unbound = sum(not one.bound for one in threads)
    if unbound:
        advice.append(
            Advice(
                "Bind the threads: OMP_PROC_BIND=spread, or homing run --bind.",
                f"{unbound} of {len(threads)} threads were not bound to a node.",
            )
        )
    if text := settings([record]):
        advice.append(Advice("Let homing observe.", text))
    return [*_nothing(process), *_first_touch(process), *advice] or _left(process)


def _nothing(process: ProcessResult) -> list[Advice]:
    """That nothing has to be done, where that is known: little is remote, or it costs nothing."""
    found = process.remote
    if found is None or not found.enough or process.moved:
        return []
    after = percent(found.after.fraction)
    if found.after.fraction < _LITTLE:
        return [Advice(_AT_HOME, f"{after} of touches are remote, estimated.")]
    left = [area.left for area in process.areas if area.left is not None]
    if left and all(one.reason == "free" for one in left):
        said = why(left[0], process.record)
        return [Advice(f"Nothing about pages: {after} of touches are remote, but", f"{said}.")]
    return []


def _first_touch(process: ProcessResult) -> list[Advice]:
    """Arrays that lay on one node and that several threads share out among them."""
    found = []
    for index, area in enumerate(process.areas):
        remote, owners = area.remote, area.ownership
        if (
            remote is None
            or not remote.enough
            or remote.before.fraction < _LITTLE
            or owners is None
            or not owners.confidence >= _SURE
            or not owners.distribution.startswith(("BLOCK", "each BLOCK"))
            or _largest_share(area.before) < _ON_ONE_NODE
            or (area.left is not None and area.left.reason == "free")
        ):
            continue
        traffic = sum(one.traffic for one in area.samples) * remote.before.fraction
        at = f" ({os.path.basename(area.name.file)}:{area.name.line})" if area.name.line else ""
        named = area.name.variable or area.name.title
        where = at if area.name.variable else ""
        text = f"First touch {named}{where} in parallel, as it is used: {owners.distribution}."
        evidence = (
            f"{100 * _largest_share(area.before):.0f} % of its pages were found on one node; "
            f"{percent(remote.before.fraction)} of its touches were remote there, "
            f"{percent(remote.after.fraction)} where the pages are at the end."
        )
        found.append((traffic, Advice(text, evidence, index)))
    found.sort(key=lambda one: -one[0])
    return [advice for _, advice in found[:_MOST]]


def _largest_share(placement: Placement | None) -> float:
    if placement is None or not placement.present:
        return 0.0
    return max(placement.pages) / placement.present


def _left(process: ProcessResult) -> list[Advice]:
    """What is still remote, and why."""
    found = process.remote
    if found is None or not found.enough:
        return []
    after = percent(found.after.fraction)
    if found.after.fraction < _LITTLE:
        return [Advice(_AT_HOME, f"{after} remote at the end, estimated.")]
    reasons: dict[str, list[AreaResult]] = {}
    for area in process.areas:
        if area.left is not None:
            reasons.setdefault(area.left.reason, []).append(area)
    advice = []
    for areas in sorted(reasons.values(), key=lambda some_of: -sum(one.live_bytes for one in some_of)):
        first = areas[0]
        if first.left is not None:
            names = some([one.name.title for one in areas])
            advice.append(Advice(f"Still remote: {names}.", why(first.left, process.record)))
    unknown = Advice("Still remote, and no reason is recorded.", f"{after} at the end, estimated.")
    return advice[:_MOST] or [unknown]
