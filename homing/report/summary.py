"""The summary of a run: what an engineer reads in ten seconds. Rich on a terminal, plain text everywhere
else."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from homing.errors import UserError, os_reason
from homing.files import open_output
from homing.record_rows import Ownership, Placement, TaskHints, Unwatched
from homing.records import Record
from homing.report.dwarf import Member
from homing.report.left import Left, stated_costs, why
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.words import duration, number, percent, refused_words, size, some

Key = TypeVar("Key")

#: What is said of a record that was cut off.
END_MISSING = "the file's end is missing"
#: Where `homing run` keeps what it measured (homing/costs.py).
_MEASURED = re.compile(r"/homing/costs-[0-9a-f]{16}\.toml$")
#: More areas than these are one line at the end of the table.
MOST_AREAS = 12
#: More members of a COMMON block than these are only counted.
MOST_MEMBERS = 3
_PLAIN_WIDTH = 110
#: More nodes than these are told in words, not in columns.
_MOST_NODES = 4

_BASES = {
    "anchor": "from one passage of a recurring region to the next",
    "barriers": "the recurring barriers of one long region",
    "time": "slices of time, because no region sequence repeats",
    "guess": "not known yet; guessed from the first region that recurs",
    "call": "ended by the program's own calls",
}


def print_summary(results: Results, path: str = "stderr") -> None:
    """Print the summary to a file, or to "stderr" or "stdout". UserError where the file cannot be written."""
    if path in ("stderr", "stdout"):
        _print(results, sys.stderr if path == "stderr" else sys.stdout)
        return
    try:
        with open_output(path) as file:
            _print(results, file)
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error


def _print(results: Results, file: TextIO) -> None:
    terminal = file.isatty()
    # Names may hold any character; a log in plain ASCII must not end the summary.
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="replace")
    console = Console(
        file=file,
        width=None if terminal else _PLAIN_WIDTH,
        no_color=None if terminal else True,
        force_terminal=terminal,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for line in summary(results):
        # Lines stay whole: a terminal wraps them itself, and logs are searched by line.
        console.print(line, soft_wrap=isinstance(line, Text))


def summary(results: Results) -> Iterable[Text | Table]:
    """The lines and tables of the summary."""
    working = [process for process in results.processes if not process.record.stepped_aside]
    for process in working[:1] if len(working) > 1 else working:
        yield from _machine(process)
    if len(working) > 1:
        yield _process_table(working)
        largest = max(working, key=lambda one: sum(area.bytes for area in one.areas))
        yield Text(f"the process with the largest areas, {_process_name(largest.record)}:", "bold")
        yield from _process(largest, results.names)
    elif working:
        yield from _process(working[0], results.names)
    if not working:
        yield Text(f"homing: {_nothing(results)}")
    else:
        yield from _totals(working, results)
    yield from _counts(results)
    yield from _messages(working, results)


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


def _head(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{label:<11}", "dim"), (text, style))


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
        machine = (
            f"{count}, {_range(cpus)} CPU{'' if max(cpus) == 1 else 's'} and {_range(memory, size)} each"
        )
    if excluded:
        machine += f"; never targets: node {', '.join(excluded)}"
    yield _head("machine", machine)
    yield _head("threads", _threads(record))
    yield _head("source", _source(record))
    yield _head("mechanism", record.facts.get("mechanism", "unknown"))
    if "costs" in record.facts:
        yield _head("costs", _costs(record))


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
        text = f"{len(threads)}, bound: {spread}" if len(by_node) <= _MOST_NODES else f"{len(threads)}, bound"
    elif bound:
        text = f"{len(threads)}, only {bound} bound"
    else:
        text = f"{len(threads)}, not bound (OMP_PROC_BIND=spread or homing run --bind binds them)"
    return text


def _source(record: Record) -> str:
    source = record.facts.get("source", "unknown")
    why = record.facts.get("source_reasons", "")
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
    count = f"{process.iteration_count}" if end is not None else f"{process.iteration_count} or more"
    last = f"not settled after {count}" if settled is None else f"settled at iteration {settled} of {count}"
    return f"{what}; {last}"


def _process(process: ProcessResult, names: bool) -> Iterable[Text | Table]:
    yield _head("iteration", _iterations(process))
    areas: list[AreaResult] = []
    rest: list[AreaResult] = []
    for area in process.areas:
        (areas if area.before or area.after or area.moved else rest).append(area)
    if areas:
        yield _area_table(areas, process.record, names)
    if rest:
        total = sum(area.bytes for area in rest)
        yield Text(
            f"{number(sum(area.count for area in rest))} other areas, {size(total)}, were not placed", "dim"
        )
    yield from _left(areas, process.record)
    if process.record.unwatched:
        yield _head("unwatched", _unwatched(process.record.unwatched))


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
        yield _head("not moved", f"{pages}{some(names[reason])}: {why(left, record)}")


def _area_table(areas: list[AreaResult], record: Record, names: bool) -> Table:
    """names: with those by which `--areas` knows what has another title."""
    indices = record.positions
    few = len(indices) <= _MOST_NODES
    # One header line says which nodes the columns of per cents are.
    nodes = " ".join(f"{index:3}" for index in indices) if few else f"of {len(indices)} nodes"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("area", overflow="fold", min_width=24)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column(f"were % on node\n{nodes}", no_wrap=few)
    table.add_column(f"are % on node\n{nodes}", no_wrap=few)
    table.add_column("owners")
    table.add_column("remote", no_wrap=True)
    for area in areas[:MOST_AREAS]:
        name = Text(area.name.title + _blocks(area))
        if names and area.area.name not in area.name.title:
            name.append(f"\n  {area.area.name}", "dim")
        if area.name.members:
            name.append(f"\n  {_members(area.name.members)}", "dim")
        table.add_row(
            name,
            size(area.bytes),
            shares(area.before, indices),
            "freed" if area.ended and area.after is area.before else shares(area.after, indices),
            owners(area.ownership) or ("not seen" if record.ownerships else ""),
            change(area.remote_before, area.remote_after),
        )
    more = areas[MOST_AREAS:]
    if more:
        table.add_row(
            f"{sum(area.count for area in more)} more areas", size(sum(area.bytes for area in more))
        )
    return table


def _members(members: Sequence[Member]) -> str:
    """The members of a COMMON block, the largest first."""
    largest = sorted(members, key=lambda member: -member.bytes)
    # 0 bytes: not known.
    return some([f"{one.name} {size(one.bytes)}" if one.bytes else one.name for one in largest], MOST_MEMBERS)


def shares(placement: Placement | None, indices: list[int]) -> str:
    """The share of present pages on each node, in per cent; the fullest ones where there are many nodes."""
    if placement is None:
        return "unknown"
    if not placement.present:
        return "not touched"
    percent = [100 * pages / placement.present for pages in placement.pages]
    if len(percent) <= _MOST_NODES:
        return " ".join(f"{value:3.0f}" for value in percent)
    if max(percent) - min(percent) <= max(1.0, 25 / len(percent)):
        return f"even, {percent[0]:.0f} each"
    fullest = sorted(range(len(percent)), key=lambda at: -percent[at])[:4]
    shown = [
        f"{indices[at] if at < len(indices) else at}: {percent[at]:.0f}"
        for at in fullest
        if percent[at] >= 0.5
    ]
    left = 100 - sum(percent[at] for at in fullest)
    return ", ".join(shown) + (f", others: {left:.0f}" if left >= 0.5 else "")


def owners(ownership: Ownership | None) -> str:
    """The pattern that was inferred, in a few words."""
    if ownership is None:
        return ""
    text = {
        "block": f"block, {ownership.runs} runs" if ownership.runs > 1 else "one node",
        "cyclic": f"cyclic, {ownership.period_pages:.6g} pages",
        "shared": "shared by all",
        "mixed": f"mixed, {ownership.runs} runs",
        "none": "no pattern",
    }.get(ownership.kind, ownership.kind)
    return text + (f", {number(ownership.frozen)} frozen" if ownership.frozen else "")


def change(before: float, after: float) -> str:
    """An estimated fraction before and after, in per cent; a question mark where it is not known."""
    if math.isnan(before) and math.isnan(after):
        return ""
    return f"{percent(before)} -> {percent(after)}"


def _totals(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
    if len(processes) == 1:
        before, after = processes[0].remote
        text = change(before, after)
        if text:
            yield _head("remote", f"{text} of the references that were seen, first and last iteration")
    moved = sum(process.moved for process in processes)
    moved_bytes = sum(process.moved_bytes for process in processes)
    batches = [move for process in processes for move in process.record.moves]
    text = f"{number(moved)} pages, {size(moved_bytes)}"
    if batches:
        longest = max(move.longest_call_seconds for move in batches)
        text += f", in {number(sum(move.calls for move in batches))} calls (the longest {duration(longest)})"
    refused = _added(process.refused for process in processes)
    if refused:
        text += f"; refused: {refused_words(refused)}"
    yield _head("moved", text)
    hints = [one for process in processes if (one := process.record.task_hints) is not None and one.given]
    if hints:
        yield _head("tasks", _tasks(hints))
    yield _head("time", _overhead(processes))


def _blocks(area: AreaResult) -> str:
    """Of how many blocks an area's line tells."""
    if area.area.blocks > 1:
        return f" ({number(area.count)} blocks)"
    return f" (x {area.count})" if area.count > 1 else ""


def _added(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """The sums by key."""
    sums: dict[Key, int] = {}
    for one in counts:
        for key, count in one.items():
            sums[key] = sums.get(key, 0) + count
    return sums


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


def _process_table(processes: list[ProcessResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in (
        "rank",
        "process",
        "program",
        "areas",
        "iterations",
        "settled at",
        "moved",
        "refused",
        "remote",
    ):
        right = column not in ("program", "remote")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for process in processes:
        record = process.record
        table.add_row(
            str(record.rank) if record.rank >= 0 else "",
            str(record.pid),
            os.path.basename(record.program),
            size(sum(area.bytes for area in process.areas)),
            number(process.iteration_count),
            "" if process.settled_at is None else number(process.settled_at),
            size(process.moved_bytes),
            number(sum(process.refused.values())),
            change(*process.remote),
        )
    return table


def _counts(results: Results) -> Iterable[Text]:
    """What the counter of the lab counted, if it did."""
    if results.counts is None:
        return
    run = results.counts["run"]
    phases = results.counts.get("phases", [])
    text = f"{percent(run['remote_fraction'])} of {number(run['total_misses'])} cache misses remote"
    oracle = percent(run["oracle_remote_fraction"])
    yield _head("counted", f"{text}; with every page on its majority node {oracle}")
    if results.counts.get("source") == "simulator":
        from homing.simulate.summary import simulated

        for label, line in simulated(results.counts):
            yield _head(label, line)
    if len(phases) > 1:
        fractions = [percent(phase["remote_fraction"]) for phase in phases]
        shown = fractions if len(fractions) <= 8 else [*fractions[:4], "...", *fractions[-3:]]
        yield _head("", f"by phase: {', '.join(shown)}")


def _messages(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
    seen: dict[tuple[str, str], int] = {}
    for process in processes:
        for message in process.record.messages:
            key = (message.level, message.text)
            seen[key] = seen.get(key, 0) + max(1, message.repeats)
        record = process.record
        if record.truncated:
            seen["note", f"{_process_name(record)}: {END_MISSING}, the numbers are those of what is left"] = 1
        elif record.end is None:
            why = "found no more room for its record" if record.out_of_room else "did not end in order"
            seen["note", f"{_process_name(record)} {why}: the numbers are those up to then"] = 1
    styles = {"warning": "yellow", "not done": "bold yellow"}
    for (level, text), repeats in seen.items():
        times = f" ({number(repeats)} times)" if repeats > 1 else ""
        yield Text(f"{level}: {text}{times}", styles.get(level, ""))
    for text in [*results.notes, *(results.unreadable if results.processes else [])]:
        yield Text(f"note: {text}")
    if processes and results.aside:
        yield Text(f"note: {results.aside}")


def _unwatched(entries: list[Unwatched]) -> str:
    by_name: dict[str, int] = {}
    for entry in entries:
        by_name[entry.what] = by_name.get(entry.what, 0) + entry.bytes
    largest = sorted(by_name.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{what} {size(total)}" for what, total in largest[:4])
    return shown + (f", and {len(largest) - 4} more" if len(largest) > 4 else "")
