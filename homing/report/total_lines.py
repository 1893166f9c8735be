"""The lines of the summary that are about a run as a whole: what was remote, what moved, what homing took."""

from __future__ import annotations

from homing.record_rows import Phase, Sampling, TaskHints
from homing.report.area_lines import change, independent, interval
from homing.report.lines import Text, labelled
from homing.report.results import ProcessResult, Results
from homing.report.words import duration, number, percent, refused_words, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    Key = TypeVar("Key")


def _remote(process: ProcessResult, counted: bool) -> str:
    """The estimate, its intervals, and what it rests on; empty where nothing is sampled."""
    found = process.remote
    if found is None:
        return ""
    by_access = any(sample.by_access for sample in process.record.samples.values())
    touches = number(round(found.touches))
    what = (
        f"{touches} {'sampled accesses' if by_access else 'sampled touches'}, {number(found.granules)} pages"
    )
    if not found.enough:
        return f"not known: too few samples ({what}: {independent(found)} ones)"
    if found.changed:
        ends = f"{interval(found.before)} % and {interval(found.after)} %"
        text = f"{change(found)}, estimated (95 % intervals {ends}) from {what}, the same at both ends"
    else:
        text = f"{change(found)}, estimated (95 % interval {interval(found.after)} %) from {what}"
        text += "; the same where moved pages ended" if process.moved else "; nothing moved"
    if counted and by_access:
        text += "; from the first parallel region on, without the serial code before it"
    elif counted:
        text += "; of touches, also those that hit a cache"
    return text + _unseen(process)


def _unseen(process: ProcessResult) -> str:
    """What an estimate leaves out: most of the run, where homing rested for most of it."""
    rows, count = process.record.iterations, process.iteration_count
    seen = process.record.iteration_of(rows[-1].number) + 1 if rows else 0
    if not rows or process.settled_at is None or 2 * seen >= count:
        return ""
    return f"; of the last {number(count - seen)} iterations, at rest, none was seen"


def total_lines(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
    if len(processes) == 1 and (remote := _remote(processes[0], results.counts is not None)):
        yield labelled("remote", remote)
    moved = sum(process.moved for process in processes)
    moved_bytes = sum(process.moved_bytes for process in processes)
    batches = [move for process in processes for move in process.record.moves]
    text = f"{number(moved)} pages, {size(moved_bytes)}"
    if batches:
        text += f", in {number(sum(move.calls for move in batches))} calls"
        # Next touch moves where the program faults, and times no single call.
        longest = max(move.longest_call_seconds for move in batches)
        text += f" (the longest {duration(longest)})" if longest > 0 else ""
    refused = _added(process.refused for process in processes)
    if refused:
        text += f"; refused: {refused_words(refused)}"
    yield labelled("moved", text)
    phases = [(one, process) for process in processes for one in process.record.phases if one.accessed]
    if phases:
        phases.sort(key=lambda pair: -pair[0].eligible if pair[0].region is not None else 0)
        told = [_phase(one, process.region_names) for one, process in phases[:PHASES_SHOWN]]
        yield labelled("phases", "; ".join(told) + _more_phases(len(phases)))
    for process in processes:
        if (sampled := process.record.sampling) is not None:
            yield labelled("sampling", _sampling(sampled, process.record.seconds))
    hints = [one for process in processes if (one := process.record.task_hints) is not None and one.given]
    if hints:
        yield labelled("tasks", _tasks(hints))
    if windows := _windows(processes):
        yield labelled("windows", windows)
    yield labelled("time", _overhead(processes))


def _added(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """The sums by key."""
    sums: dict[Key, int] = {}
    for one in counts:
        for key, count in one.items():
            sums[key] = sums.get(key, 0) + count
    return sums


#: Phases that the summary describes; all of them are in the record.
PHASES_SHOWN = 6


def _phase(one: Phase, regions: Mapping[int, str]) -> str:
    """A phase that was recorded: what its plan would bring, and what replaying it took."""
    name = str(one.number + 1) if one.region is None else regions.get(one.region, f"region {one.region}")
    text = f"{name}: {number(one.planned)} of {number(one.eligible)} critical pages"
    text += f" (of {number(one.accessed)} accessed)"
    if one.references:
        now, then = one.remote / one.references, one.remote_with_plan / one.references
        text += f", {percent(now)} remote, {percent(then)} with them elsewhere"
    if one.gain is not None and one.price is not None and one.planned:
        text += f", moving them brings {duration(one.gain)} and takes {duration(one.price)}"
        if not one.moves:
            return text + ": left"
    if one.region is not None and not one.replays:
        return text
    text += f"; {number(one.replays)} replays moved {number(one.moved)}, {number(one.undone)} went back"
    if one.replays and one.seconds:
        text += f", {duration(one.seconds / one.replays)} each"
    return text + (f", {number(one.refused)} refused" if one.refused else "")


def _sampling(one: Sampling, seconds: float | None) -> str:
    """What the scans of the sampling mechanism came to, and what its thread took."""
    text = f"{number(one.scans)} scans looked at {number(one.scanned)} pages: {number(one.accessed)} were"
    text += f" accessed since, {number(one.eligible)} clearly more from another node"
    text += f"; {number(one.moved)} moved"
    if one.frozen:
        text += f"; {number(one.frozen)} went to and fro, or were refused, and stay"
    if one.seconds and seconds:
        text += f"; its thread took {percent(one.seconds / seconds)} of a core, moves not included"
    return text


def _more_phases(count: int) -> str:
    more = count - PHASES_SHOWN
    return f"; and {number(more)} more" if more > 0 else ""


def _tasks(hints: Sequence[TaskHints]) -> str:
    """What became of affinity clauses, of all processes."""
    given, honoured = sum(one.given for one in hints), sum(one.honoured for one in hints)
    at_home, elsewhere = sum(one.at_home for one in hints), sum(one.elsewhere for one in hints)
    text = f"{number(given)} affinity hints, {number(honoured)} honoured ({percent(honoured / given)})"
    if at_home + elsewhere:
        text += f"; {percent(at_home / (at_home + elsewhere))} of these tasks began at home"
    left = _added(one.left for one in hints)
    if left:
        words = ", ".join(f"{reason} {number(count)}" for reason, count in sorted(left.items()))
        text += f"; left to the runtime: {words}"
    return text


def _windows(processes: list[ProcessResult]) -> str:
    """What the windows' touches took; empty where there were none."""
    overheads = [process.record.overhead for process in processes]
    armed, touches, calls, faults = (
        sum(getattr(overhead, name) for overhead in overheads)
        for name in ("armed", "touches", "calls", "faults")
    )
    if not armed:
        return ""
    share = f"{number(armed)} armed, {number(touches)} touched ({percent(touches / armed)})"
    if not touches:
        return f"{share}, {number(calls)} system calls"
    return f"{share}: {calls / touches:.1f} system calls and {faults / touches:.1f} faults a touch"


def _overhead(processes: list[ProcessResult]) -> str:
    overheads = [process.record.overhead for process in processes]
    total = sum(overhead.total for overhead in overheads)
    run = sum(process.record.seconds for process in processes)
    parts = {
        "observing": sum(overhead.observing for overhead in overheads),
        "deciding": sum(overhead.deciding for overhead in overheads),
        "moving": sum(overhead.moving for overhead in overheads),
        "hooks": sum(overhead.hooks for overhead in overheads),
    }
    detail = ", ".join(f"{name} {duration(value)}" for name, value in parts.items() if value > 0)
    share = f", {100 * total / run:.1f} % of the run" if run > 0 else ""
    return f"{duration(total)} in homing{share}" + (f": {detail}" if detail else "")
