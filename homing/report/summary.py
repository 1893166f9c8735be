"""The summary of a run: what an engineer reads in ten seconds. With styles on a terminal, plain text
everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO, TypeVar

from homing.errors import UserError, os_reason
from homing.files import STANDARD_OUTPUT, open_output
from homing.late import pattern
from homing.record_rows import Phase, PlaceDistribution, Region, Sampling, TaskHints, Unwatched
from homing.records import Record
from homing.report.advice import settings
from homing.report.area_lines import MOST_NODES, area_lines, change, interval, not_placed
from homing.report.first_touch import FirstTouch
from homing.report.layout import Column, fitted, records
from homing.report.left import Left, briefly, stated_costs, why
from homing.report.lines import Table, Text, knows_styles, labelled, terminal_width
from homing.report.recommend import advice_for
from homing.report.remote import LEAST_SAMPLES
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.symbols import readable_symbol
from homing.report.words import duration, number, percent, refused_words, size, some

Key = TypeVar("Key")

#: What is said of a record that was cut off.
END_MISSING = "the file's end is missing"
#: Where `homing run` keeps what it measured (homing/costs.py).
_MEASURED = pattern(r"/homing/costs-[0-9a-f]{16}\.toml$")
#: Of files and pipes.
PLAIN_WIDTH = 120
#: A remote share that is known to be this high is not what settling is for.
_HIGH = 0.1
#: A phase with a smaller share of the misses tells nothing of the run.
_PART = 0.1

#: Signals by which somebody ends a program that could go on.
_INTERRUPTIONS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU")

_BASES = {
    "anchor": "from one passage of a recurring region to the next",
    "barriers": "the recurring barriers of one long region",
    "time": "slices of time, because no region sequence repeats",
    "guess": "not known yet; guessed from the first region that recurs",
    "call": "ended by the program's own calls",
}


def print_summary(results: Results, path: str = "stderr") -> None:
    """Print the summary to a file, or to "stderr" or "stdout". UserError where the file cannot be written."""
    print_lines(lambda width: summary(results, width), path)


def print_lines(lines: Callable[[int], Iterable[Text | Table]], path: str) -> None:
    """Print lines and tables, made for a width, to a file, or to "stderr" or "stdout"."""
    if path in ("stderr", "stdout", STANDARD_OUTPUT):
        _print_lines(lines, sys.stderr if path == "stderr" else sys.stdout)
        return
    try:
        with open_output(path) as file:
            _print_lines(lines, file)
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error


def _print(results: Results, file: TextIO) -> None:
    _print_lines(lambda width: summary(results, width), file)


def _print_lines(lines: Callable[[int], Iterable[Text | Table]], file: TextIO) -> None:
    # Names may hold any character; a log in plain ASCII must not end the summary.
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="replace")
    width = terminal_width(file, os.environ) if file.isatty() else PLAIN_WIDTH
    styled = knows_styles(file, os.environ)
    for one in lines(width):
        # Lines stay whole: a terminal wraps them itself, and logs are searched by line.
        for line in one.lines() if isinstance(one, Table) else [one]:
            file.write(line.shown(styled) + "\n")
    file.flush()


def summary(results: Results, width: int = PLAIN_WIDTH) -> Iterable[Text | Table]:
    """The lines and tables of the summary. Tables are no wider than `width` cells; lines are as long as they
    are."""
    working = [process for process in results.processes if not process.record.stepped_aside]
    for process in working[:1] if len(working) > 1 else working:
        yield from _machine(process)
    if len(working) > 1:
        yield from _process_table(working, width)
        largest = max(working, key=lambda one: one.live_bytes)
        yield Text(f"the process with the largest areas, {_process_name(largest.record)}:", "bold")
        yield from _process(largest, results, width)
    elif working:
        yield from _process(working[0], results, width)
    # What was counted stands before what was estimated.
    yield from _counts(results)
    if not working:
        yield Text(f"homing: {_nothing(results)}")
    else:
        yield from _totals(working, results)
    yield from _advice(working)
    yield from _messages(working, results)
    if advice := settings(process.record for process in results.processes):
        yield Text(f"note: {advice}")


def _nothing(results: Results) -> str:
    """Why there is nothing to tell of: nothing was done, or nobody knows."""
    reasons = {
        f"{os.path.basename(process.record.program)}: {process.record.stepped_aside}"
        for process in results.processes
    }
    if reasons:
        return f"nothing was done: {'; '.join(sorted(reasons))}"
    if results.unreadable:
        return f"what was done is not known: {'; '.join(results.unreadable)}"
    return f"nothing was done: {results.aside or 'no process left a record'}"


def _process_name(record: Record) -> str:
    rank = f"rank {record.rank}, " if record.rank >= 0 else ""
    return f"{os.path.basename(record.program)} ({rank}process {record.pid} on {record.host})"


def _machine(process: ProcessResult) -> Iterable[Text]:
    record = process.record
    nodes = record.nodes
    count = f"{len(nodes)} NUMA node" + ("" if len(nodes) == 1 else "s")
    if record.facts.get("machine", "").startswith("HOMING_ASSUME_NODES"):
        count += " (assumed: moves are simulated)"
    seconds = f", {duration(record.seconds)}" if record.seconds else ""
    yield Text.assemble((f"homing {record.homing}", "bold"), f": {_process_name(record)}{seconds}")
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
    if "simulated" in record.facts:
        origin = "stated by the machine's description"
    elif stated != origin and _MEASURED.search(stated):
        origin = f"measured on this machine ({stated})"
    costs = stated_costs(record)
    if not costs.keys() >= {"local_ns", "remote_ns", "move_call_us", "move_page_us"}:
        return origin
    return (
        f"{origin}: a local access {costs['local_ns']:g} ns, a remote one {costs['remote_ns']:g} ns; "
        f"moving {costs['move_call_us']:g} us a call and {costs['move_page_us']:g} us a page"
    )


def _iterations(process: ProcessResult) -> str:
    record = process.record
    if not process.iteration_count:
        return "no iteration was found"
    end = record.end
    basis = process.basis
    if basis == "period":
        # The rows say how many regions each iteration had; the last one is the settled idea of the period.
        regions = end.period if end is not None and end.period else record.iterations[-1].regions
        what = f"{regions} regions that repeat" if regions != 1 else "1 region that repeats"
    else:
        what = _BASES.get(basis, "unknown basis")
    settled = process.settled_at
    count = f"{process.iteration_count}" + ("" if process.counts_all_iterations else " or more")
    last = f"not settled after {count}" if settled is None else f"settled at iteration {settled} of {count}"
    return f"{what}; {last}"


def _process(process: ProcessResult, results: Results, width: int) -> Iterable[Text | Table]:
    areas: list[AreaResult] = []
    rest: list[AreaResult] = []
    for area in process.areas:
        (areas if area.before or area.after or area.moved else rest).append(area)
    settled = _still_remote(process, results) if process.settled_at is not None else ""
    yield labelled("iteration", _iterations(process) + settled)
    if areas:
        yield from area_lines(areas, process.record, results.names, width)
    if rest:
        yield not_placed(rest, process.record)
    yield from _first_touch(areas, process.record)
    yield from _left(areas, process.record)
    yield from _by_region(areas, process.record)
    if process.record.unwatched:
        yield labelled("unwatched", _unwatched(process.record.unwatched))


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
            names.setdefault(reason, []).append(area.name.title)
    for reason, left in sorted(reasons.items(), key=lambda one: -one[1].pages):
        pages = f"{number(left.pages)} pages of " if left.pages else ""
        yield labelled("not moved", f"{pages}{some(names[reason])}: {why(left, record)}")


def _first_touch(areas: list[AreaResult], record: Record) -> Iterable[Text]:
    """Where arrays were touched first, those of one place together, the largest first; or why that is not
    known."""
    fact = record.facts.get("first_touch", "")
    if areas and fact.startswith(_UNKNOWN):
        yield labelled("touched", f"not known which code touched memory first: {fact.removeprefix(_UNKNOWN)}")
        return
    names: dict[tuple[str, str], list[str]] = {}
    for area in areas:
        for one in area.first_touch[:1]:
            names.setdefault((one.where, _by_threads(one)), []).append(area.name.variable or area.name.title)
    if names:
        told = [f"{some(some_of)} first at {where} by {by}" for (where, by), some_of in names.items()]
        yield labelled("touched", "; ".join(told[:_PLACES_SHOWN]) + _more_places(len(told)))


#: How the record says that first touches could not be seen, and why.
_UNKNOWN = "unknown: "
#: Places of first touches that the summary tells.
_PLACES_SHOWN = 4


def _more_places(count: int) -> str:
    more = count - _PLACES_SHOWN
    return f"; and {number(more)} more places" if more > 0 else ""


def _by_threads(one: FirstTouch) -> str:
    return "one thread" if len(one.threads) == 1 else f"{len(one.threads)} threads"


#: Advice that the summary tells: the rest it says elsewhere.
_TOLD = ("first-touch", "first-touch-all", "interleave", "shared-pages", "huge-pages")


def _advice(processes: list[ProcessResult]) -> Iterable[Text]:
    for process in processes[:1]:
        for one in advice_for(process):
            if one.kind in _TOLD:
                yield labelled("advice", one.words)


def _by_region(areas: list[AreaResult], record: Record) -> Iterable[Text]:
    """Areas that regions use in ways of their own."""
    regions = {region.id: _region_name(region) for region in record.regions}
    for area in areas:
        followed = [way for way in area.by_region if way.followed]
        others = [way for way in area.by_region if not way.followed]
        if not followed or not others:
            continue
        yield labelled(
            "by region",
            f"{area.name.title}: no one placement serves all; pages follow "
            f"{some([_way(way, regions) for way in followed])}, "
            f"not {some([_way(way, regions) for way in others])}",
        )


def _way(way: PlaceDistribution, regions: Mapping[int, str]) -> str:
    name = regions.get(way.region, "a region that is not known")
    touches = f"{number(way.touches)} touches"
    if way.distribution in ("NONE", "HOME", ""):
        return f"{name} ({touches}, no pattern)"
    return f"{name} ({touches}, {way.distribution}, {100 * way.confidence:.0f} %)"


def _region_name(region: Region) -> str:
    """The function that a region is in, else where its code lies."""
    if region.symbol:
        return readable_symbol(region.symbol)
    return f"{os.path.basename(region.object)}+0x{region.offset:x}"


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
        return f"not known: too few samples ({what}; {LEAST_SAMPLES} independent ones are the least)"
    if found.changed:
        ends = f"{interval(found.before)} % and {interval(found.after)} %"
        text = f"{change(found)}, estimated (95 % intervals {ends}) from {what}, the same at both ends"
    else:
        text = f"{change(found)}, estimated (95 % interval {interval(found.after)} %) from {what}"
        text += "; none of them moved" if process.moved else "; nothing moved"
    if counted and not by_access:
        text += "; of touches, also those that hit a cache"
    return text + _unseen(process)


def _unseen(process: ProcessResult) -> str:
    """What an estimate leaves out: most of the run, where homing rested for most of it."""
    rows, count = process.record.iterations, process.iteration_count
    if not rows or process.settled_at is None or 2 * (rows[-1].number + 1) >= count:
        return ""
    return f"; of the last {number(count - rows[-1].number - 1)} iterations, at rest, none was seen"


def _totals(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
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
    phases = [one for process in processes for one in process.record.phases if one.accessed]
    if phases:
        names = {
            region.id: _region_name(region) for process in processes for region in process.record.regions
        }
        phases.sort(key=lambda one: -one.eligible if one.region is not None else 0)
        shown = "; ".join(_phase(one, names) for one in phases[:PHASES_SHOWN])
        yield labelled("phases", shown + _more_phases(phases))
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


def _more_phases(phases: Sequence[Phase]) -> str:
    more = len(phases) - PHASES_SHOWN
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


def _process_table(processes: list[ProcessResult], width: int) -> Iterable[Text | Table]:
    columns = [
        Column("rank", right=True),
        Column("process", right=True),
        Column("program", least=12),
        Column("areas", right=True),
        Column("iterations", right=True),
        Column("settled at", right=True),
        Column("moved", right=True),
        Column("refused", right=True),
        Column("remote, estimated"),
    ]
    rows = [
        [
            str(process.record.rank) if process.record.rank >= 0 else "",
            str(process.record.pid),
            os.path.basename(process.record.program),
            size(process.live_bytes),
            number(process.iteration_count),
            "" if process.settled_at is None else number(process.settled_at),
            size(process.moved_bytes),
            number(sum(process.refused.values())),
            _remote_cell(process),
        ]
        for process in processes
    ]
    table = fitted(columns, rows, width)
    if table is not None:
        yield table
        return
    for row in rows:
        named = zip(columns, row, strict=True)
        yield from records([[f"{column.header} {cell}" for column, cell in named if cell]])


def _remote_cell(process: ProcessResult) -> str:
    found = process.remote
    if found is None:
        return ""
    return change(found) if found.enough else "too few samples"


def _counts(results: Results) -> Iterable[Text]:
    """What the counter of the lab counted, if it did."""
    if results.counts is None:
        return
    run = results.counts["run"]
    phases = results.counts.get("phases", [])
    text = f"{percent(run['remote_fraction'])} of {number(run['total_misses'])} cache misses remote"
    oracle = run["oracle_remote_fraction"]
    if oracle is None:
        yield labelled("counted", f"{text}, in the iterations that ended: the process was killed")
    else:
        yield labelled("counted", f"{text}; with every page on its majority node {percent(oracle)}")
    if results.counts.get("source") == "simulator":
        from homing.simulate.summary import simulated

        for label, line in simulated(results.counts):
            yield labelled(label, line)
    if len(phases) > 1:
        fractions = [percent(phase["remote_fraction"]) for phase in phases]
        shown = fractions if len(fractions) <= 8 else [*fractions[:4], "...", *fractions[-3:]]
        yield labelled("", f"by phase: {', '.join(shown)}")


def _messages(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
    seen: dict[tuple[str, str], int] = {}
    for process in processes:
        for message in process.record.messages:
            key = (message.level, message.text)
            seen[key] = seen.get(key, 0) + max(1, message.repeats)
        record = process.record
        if record.truncated:
            seen["note", f"{_process_name(record)}: {END_MISSING}, the numbers are those of what is left"] = 1
        elif record.end is None or record.ended_by:
            seen["note", f"{_process_name(record)} {_early(process)}: the numbers are those up to then"] = 1
    styles = {"warning": "yellow", "not done": "bold yellow"}
    for (level, text), repeats in seen.items():
        times = f" ({number(repeats)} times)" if repeats > 1 else ""
        yield Text(f"{level}: {text}{times}", styles.get(level, ""))
    for text in [*results.notes, *(results.unreadable if results.processes else [])]:
        yield Text(f"note: {text}")
    if processes and results.aside:
        yield Text(f"note: {results.aside}")


def _early(process: ProcessResult) -> str:
    """How a process ended that did not end in order."""
    record = process.record
    if record.out_of_room:
        return "found no more room for its record"
    if not record.ended_by:
        return "did not end in order"
    count = process.iteration_count
    more = "" if process.counts_all_iterations else " or more"
    after = f"after {number(count)}{more} iteration{'' if count == 1 else 's'} ({record.ended_by})"
    return f"was interrupted {after}" if record.ended_by in _INTERRUPTIONS else f"was killed {after}"


def _unwatched(entries: list[Unwatched]) -> str:
    by_name: dict[str, int] = {}
    for entry in entries:
        by_name[entry.what] = by_name.get(entry.what, 0) + entry.bytes
    largest = sorted(by_name.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{what} {size(total)}" for what, total in largest[:4])
    return shown + (f", and {len(largest) - 4} more" if len(largest) > 4 else "")
