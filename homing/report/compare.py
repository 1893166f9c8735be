"""Two runs beside each other: what changed, by array and by iteration, with the noise that the difference has
to be seen against.

A remote share differs for certain where the 95 % intervals of both runs do not meet; times where the medians
of the iterations differ by more than both runs' own spread (the half of the interquartile range).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from homing.report.area_lines import interval
from homing.report.lines import Text, labelled
from homing.report.remote import Share
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.words import duration, number, percent, size

#: More areas are one line.
_MOST_AREAS = 20
#: Fewer iterations have no quartiles.
_LEAST_ITERATIONS = 8


@dataclass(frozen=True)
class Spread:
    """Seconds of iterations: the median, and the quartiles around it."""

    median: float
    low: float
    high: float
    count: int


def spread(seconds: Sequence[float]) -> Spread | None:
    """The spread of iterations; None where they are too few."""
    if len(seconds) < _LEAST_ITERATIONS:
        return None
    low, median, high = statistics.quantiles(seconds, n=4)
    return Spread(median, low, high, len(seconds))


def comparison(before: Results, after: Results, names: tuple[str, str]) -> Iterable[Text]:
    """What changed from one run to the other, in lines."""
    yield Text(f"{'':<11}{names[0]} -> {names[1]}", "bold")
    if before.seconds is not None and after.seconds is not None:
        yield labelled("command", f"{duration(before.seconds)} -> {duration(after.seconds)}, one run each")
    yield from _counted(before, after)
    pairs = _pairs(before, after)
    if not pairs:
        yield Text("note: no process of both runs left a record of its areas: nothing more can be compared")
    for one, other in pairs:
        if len(pairs) > 1:
            yield Text(f"process {one.record.pid} and {other.record.pid}", "bold")
        yield from _processes(one, other)
    if len(before.processes) != len(after.processes):
        yield Text(f"note: {len(before.processes)} processes, and {len(after.processes)}")


def _pairs(before: Results, after: Results) -> list[tuple[ProcessResult, ProcessResult]]:
    """Processes of one rank, else in their order."""
    ranks = {one.record.rank: one for one in before.processes if one.record.rank >= 0}
    if ranks:
        return [(ranks[one.record.rank], one) for one in after.processes if one.record.rank in ranks]
    return list(zip(before.processes, after.processes, strict=False))


def _counted(before: Results, after: Results) -> Iterable[Text]:
    if before.counts is None or after.counts is None:
        return
    first, second = before.counts["run"], after.counts["run"]
    yield labelled(
        "counted",
        f"{percent(first['remote_fraction'])} of {number(first['total_misses'])} cache misses remote -> "
        f"{percent(second['remote_fraction'])} of {number(second['total_misses'])} (exact, of two runs)",
    )


def _processes(before: ProcessResult, after: ProcessResult) -> Iterable[Text]:
    one, other = before.record, after.record
    if one.program != other.program:
        yield Text(f"note: two programs, {one.program} and {other.program}")
    yield labelled("run", f"{duration(one.seconds)} -> {duration(other.seconds)}, one run each")
    yield labelled("iteration", _times(before, after))
    yield labelled("remote", _shares(_end(before), _end(after)) + ", of touches, estimated")
    yield labelled("moved", f"{size(before.moved_bytes)} -> {size(after.moved_bytes)}")
    yield labelled("homing", f"{duration(one.overhead.total)} -> {duration(other.overhead.total)}")
    yield from _areas(before, after)


def _seconds(process: ProcessResult) -> list[float]:
    return [one.seconds for one in process.record.iterations if one.basis != "guess" and one.seconds > 0]


def _times(before: ProcessResult, after: ProcessResult) -> str:
    """The medians of the iterations, and whether they differ by more than they vary."""
    first, second = spread(_seconds(before)), spread(_seconds(after))
    if first is None or second is None:
        return f"too few iterations to compare (fewer than {_LEAST_ITERATIONS} have a row in a record)"
    text = f"median {duration(first.median)} -> {duration(second.median)}"
    change = second.median / first.median - 1 if first.median > 0 else 0.0
    noise = max((one.high - one.low) / 2 for one in (first, second))
    text += f" ({100 * change:+.0f} %)"
    if abs(second.median - first.median) <= noise:
        text += ", within the noise"
    return (
        f"{text}; quartiles {duration(first.low)} to {duration(first.high)} of {number(first.count)}, "
        f"{duration(second.low)} to {duration(second.high)} of {number(second.count)}"
    )


def _end(of: ProcessResult | AreaResult) -> Share | None:
    found = of.remote
    return found.after if found is not None and found.enough else None


def _shares(before: Share | None, after: Share | None) -> str:
    if before is None or after is None:
        return " -> ".join(
            f"{percent(one.fraction)} ({interval(one)} %)" if one is not None else "too few samples"
            for one in (before, after)
        )
    text = f"{percent(before.fraction)} -> {percent(after.fraction)}"
    text += f" ({interval(before)} % and {interval(after)} %)"
    apart = before.high < after.low or after.high < before.low
    return text if apart else f"{text}, within the noise"


def _areas(before: ProcessResult, after: ProcessResult) -> Iterable[Text]:
    known = {area.name.title: area for area in before.areas}
    both = [(known[area.name.title], area) for area in after.areas if area.name.title in known]
    shown = [pair for pair in both if any(_end(one) is not None for one in pair)]
    for one, other in shown[:_MOST_AREAS]:
        remote = _shares(_end(one), _end(other))
        yield Text(f"  {other.name.shown}, {size(other.live_bytes)}: remote {remote}")
        if _words(one) != _words(other):
            yield Text(f"    owners {_words(one)} -> {_words(other)}", "dim")
    if len(shown) > _MOST_AREAS:
        yield Text(f"  {number(len(shown) - _MOST_AREAS)} more areas")
    for areas, label in ((before.areas, "only in the first"), (after.areas, "only in the second")):
        titles = {area.name.title for area in (after.areas if areas is before.areas else before.areas)}
        alone = [area for area in areas if area.name.title not in titles]
        if alone:
            names = ", ".join(area.name.shown for area in alone[:3])
            more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
            yield Text(f"  {label}: {names}{more}", "dim")


def _words(area: AreaResult) -> str:
    owned = area.ownership
    return (owned.distribution or owned.kind) if owned is not None else "not known"
