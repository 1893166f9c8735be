"""The summary of a run: what an engineer reads in ten seconds. With styles on a terminal, plain text
everywhere else."""

from __future__ import annotations

import os
import sys

from homing.report.advice import settings
from homing.report.area_lines import change, interval
from homing.report.layout import Column, fitted, records
from homing.report.lines import Table, Text, knows_styles, labelled, terminal_width
from homing.report.process_lines import machine_lines, process_lines, process_name
from homing.report.recommend import advice_for
from homing.report.results import ProcessResult, Results
from homing.report.total_lines import total_lines
from homing.report.words import number, percent, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

#: What is said of a record that was cut off.
END_MISSING = "the file's end is missing"
#: Of files and pipes.
PLAIN_WIDTH = 120
#: Signals by which somebody ends a program that could go on.
_INTERRUPTIONS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU")


def print_summary(results: Results, path: str = "stderr") -> None:
    """Print the summary to a file, or to "stderr" or "stdout". UserError where the file cannot be written."""
    print_lines(lambda width: summary(results, width), path)


def print_lines(lines: Callable[[int], Iterable[Text | Table]], path: str) -> None:
    """Print lines and tables, made for a width, to a file, or to "stderr" or "stdout"."""
    if path == "stderr":
        _print_lines(lines, sys.stderr)
        return
    from homing.outputs import STANDARD_OUTPUT, output

    if path in ("stdout", STANDARD_OUTPUT):
        _print_lines(lines, sys.stdout)
        return
    with output(path, "summary") as file:
        _print_lines(lines, file)


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
        yield from machine_lines(process)
    shown = max(working, key=lambda one: one.live_bytes, default=None)
    if len(working) > 1 and shown is not None:
        yield from _process_table(working, width)
        yield Text(f"the process with the largest areas, {process_name(shown.record)}:", "bold")
    if shown is not None:
        yield from process_lines(shown, results, width)
    # What was counted stands before what was estimated.
    yield from _counts(results)
    if not working:
        yield Text(f"homing: {_nothing(results)}")
    else:
        yield from total_lines(working, results)
    if shown is not None:
        yield from _advice(shown)
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


#: Advice that the summary tells: the rest it says elsewhere.
_TOLD = ("first-touch", "first-touch-all", "interleave", "shared-pages", "huge-pages")


def _advice(process: ProcessResult) -> Iterable[Text]:
    for one in advice_for(process):
        if one.kind in _TOLD:
            yield labelled("advice", one.words)


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
        Column("remote, estimated (95 % within)"),
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
    if not found.enough:
        return "too few samples"
    within = f" -> {interval(found.after)}" if found.changed else ""
    return f"{change(found)} ({interval(found.before)}{within} %)"


def _counts(results: Results) -> Iterable[Text]:
    """What the counter of the lab counted, if it did."""
    if results.counts is None:
        return
    run = results.counts["run"]
    phases = results.counts.get("phases", [])
    text = f"{percent(run['remote_fraction'])} of {number(run['total_misses'])} cache misses remote"
    oracle = run["oracle_remote_fraction"]
    if oracle is None:
        counted = len(results.counts["iterations"])
        which = f"the first {counted:,} iterations" if counted else "the iterations that ended"
        yield labelled("counted", f"{text}, in {which}: {_not_ended(results)}")
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


def _not_ended(results: Results) -> str:
    """Why only iterations were counted. A process that leaves by _exit or exec was not killed."""
    early = [one.record for one in results.processes if one.record.end is None]
    who = "the process" if len(results.processes) == 1 else "a process"
    signals = {record.ended_by for record in early}
    known = len(signals) == 1 and "" not in signals
    how = f"was ended by {signals.pop()}" if known else "did not end in order"
    return f"{who} {how}"


def _messages(processes: list[ProcessResult], results: Results) -> Iterable[Text]:
    seen: dict[tuple[str, str], int] = {}
    for process in processes:
        for message in process.record.messages:
            key = (message.level, message.text)
            seen[key] = seen.get(key, 0) + max(1, message.repeats)
        record = process.record
        if record.truncated:
            seen["note", f"{process_name(record)}: {END_MISSING}, the numbers are those of what is left"] = 1
        elif record.end is None or record.ended_by:
            seen["note", f"{process_name(record)} {_early(process)}: the numbers are those up to then"] = 1
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
