"""What a run comes to, in a sentence each: what it cost, what homing did about it, what to do. No sentence
without a number or a setting behind it."""

from __future__ import annotations

from dataclasses import dataclass

from homing.report.advised import Advice
from homing.report.area_lines import change, interval
from homing.report.recommend import advice_for
from homing.report.results import ProcessResult, Results
from homing.report.waiting import stays
from homing.report.words import duration, number, percent, size

#: Where a guest of the lab has its costs.
_GUEST = "stated in /run/homing-lab/"


@dataclass(frozen=True)
class Verdict:
    """cost, done: a sentence each. advice: the most important first."""

    cost: str
    done: str
    advice: list[Advice]


def verdict(process: ProcessResult, results: Results) -> Verdict:
    """The verdict on one process of a run."""
    return Verdict(_cost(process, results), _done(process), advice_for(process))


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
        said = stays(record)
        why_not = f" ({said})" if said else ""
        return f"homing moved no page{why_not}; it took {duration(overhead)}{share}."
    text = f"homing moved {number(process.moved)} pages ({size(process.moved_bytes)})"
    if found is not None and found.enough and found.changed:
        text += f": remote {change(found)}, estimated for the same touches at both ends"
    return f"{text}; it took {duration(overhead)}{share}."
