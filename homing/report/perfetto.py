"""`--perfetto FILE`: the run as a trace that the Perfetto UI (and Chrome's) opens, in the JSON trace format.

A process of the trace is a process of the run; its tracks are what the record knows the time of: iterations,
touches by thread, moves, what was believed of owners, the areas' lifetimes; its counters are pages by node,
pages moved, and the remote share. Regions have no times of their own in a record, only sums: they are in the
arguments of the event `run`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from homing.outputs import output
from homing.record_rows import ALL_AREAS, AT_END, FOUND, NOW, References
from homing.record_tables import finite
from homing.records import Record
from homing.report.process_lines import process_name
from homing.report.results import ProcessResult, Results
from homing.report.symbols import readable_symbol

Event = dict[str, Any]

#: Tracks of a process, in their order; threads of the program follow with their own numbers.
_ITERATIONS, _MOVES, _OWNERS, _AREAS = 1, 2, 3, 4
_TRACKS = {_ITERATIONS: "iterations", _MOVES: "homing: moves", _OWNERS: "homing: owners", _AREAS: "areas"}
_FIRST_THREAD = 1000
#: Areas that have a track of their life.
_MOST_AREAS = 2000
_MOST_TOUCHES = 200_000


def write_perfetto(results: Results, path: str) -> None:
    """Write the trace. UserError where that is not possible."""
    with output(path, "trace") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for number, event in enumerate(events(results)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":"), allow_nan=False))
        file.write("\n]}\n")


def events(results: Results) -> Iterator[Event]:
    """All events of a trace; times in microseconds from the start of the first record."""
    starts = [finite(one.record.start) for one in results.processes]
    first = min((start for start in starts if start), default=0.0)  # 0: damaged
    # Processes of several hosts, or containers, may have one number: here each has its own.
    for number, (process, start) in enumerate(zip(results.processes, starts, strict=True), start=1):
        offset = max(0.0, start - first) * 1e6
        for event in _process(process):
            if "ts" in event:
                event["ts"] = round(event["ts"] * 1e6 + offset, 3)
            if "dur" in event:
                event["dur"] = round(max(event["dur"], 0.0) * 1e6, 3)
            yield {"pid": number, **event}


def _process(process: ProcessResult) -> Iterator[Event]:
    record = process.record
    titles = {one: area.name.title for area in process.areas for one in area.ids}
    yield from _names(record)
    yield _run(record)
    end = 0.0
    for row in record.iterations:
        guess = "guess in " if row.basis == "guess" else ""
        begin, end = _slice(end, row.time, row.seconds)
        yield {
            "ph": "X",
            "tid": _ITERATIONS,
            "cat": "iteration",
            "name": f"{guess}iteration {record.iteration_of(row.number)}",
            "ts": begin,
            "dur": end - begin,
            "args": {"state": row.state, "basis": row.basis, "regions": row.regions, "moved": row.moved},
        }
    yield from _moves(record, titles)
    yield from _beliefs(record, titles)
    yield from _lives(process)
    yield from _placements(record)
    yield from _remote(record)
    yield from _touches(record, titles)


def _slice(after: float, end: float, seconds: float) -> tuple[float, float]:
    """The begin and end of a slice that took so many seconds: not before the one before it on its track, as
    slices of one track must not cross. (The seconds of a move are sums over calls.)"""
    begin = max(after, end - seconds, 0.0)
    return begin, max(begin, end)


def _names(record: Record) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "args": {"name": process_name(record)}}
    for track, label in _TRACKS.items():
        yield {"ph": "M", "name": "thread_name", "tid": track, "args": {"name": label}}
        yield {"ph": "M", "name": "thread_sort_index", "tid": track, "args": {"sort_index": track}}
    for at, thread in enumerate(record.threads):
        where = f" on node {thread.node}" if thread.bound else ""
        label = f"thread {at}{where}"
        yield {"ph": "M", "name": "thread_name", "tid": _FIRST_THREAD + at, "args": {"name": label}}


def _run(record: Record) -> Event:
    regions = {
        readable_symbol(one.symbol) if one.symbol else f"{os.path.basename(one.object)}+{one.offset:#x}": {
            "runs": one.count,
            "seconds": one.seconds,
        }
        for one in record.regions
    }
    return {
        "ph": "X",
        "tid": _AREAS,
        "cat": "run",
        "name": "run",
        "ts": 0.0,
        "dur": record.seconds,
        "args": {"regions": regions, "mechanism": record.facts.get("mechanism", "")},
    }


def _moves(record: Record, titles: dict[int, str]) -> Iterator[Event]:
    moved, end = 0, 0.0
    for row in record.moves:
        moved += row.moved
        begin, end = _slice(end, row.time, row.seconds)
        name = "several areas" if row.area == ALL_AREAS else titles.get(row.area, f"area {row.area}")
        yield {
            "ph": "X",
            "tid": _MOVES,
            "cat": "move",
            "name": name,
            "ts": begin,
            "dur": end - begin,
            "args": {"moved": row.moved, "wanted": row.wanted, "refused": row.refused, "calls": row.calls},
        }
        yield {"ph": "C", "name": "pages moved", "ts": row.time, "args": {"pages": moved}}


def _beliefs(record: Record, titles: dict[int, str]) -> Iterator[Event]:
    """Where what is believed of an area's owners changes."""
    rows = record.table("distribution")
    if not {"area", "time", "words"} <= set(rows.dtype.names or ()):
        return
    last: dict[int, int] = {}
    columns = (rows[name].tolist() for name in ("area", "time", "words"))
    for area, time, words in zip(*columns, strict=True):
        if last.get(area) != words and 0 <= time < 1e15:
            last[area] = words
            name = f"{titles.get(area, f'area {area}')}: {record.text(words)}"
            yield {"ph": "i", "s": "t", "tid": _OWNERS, "cat": "owners", "name": name, "ts": time}


def _lives(process: ProcessResult) -> Iterator[Event]:
    record = process.record
    chosen = [(one, area) for area in process.areas for one in area.ids][:_MOST_AREAS]
    for one, area in chosen:
        begin = record.areas_by_id[one].time
        end = max(begin, record.area_ends.get(one, record.seconds))
        common = {"cat": "area", "id2": {"local": one}, "tid": _AREAS, "name": area.name.title}
        yield {"ph": "b", **common, "ts": begin, "args": {"bytes": record.areas_by_id[one].bytes}}
        yield {"ph": "e", **common, "ts": end}


def _placements(record: Record) -> Iterator[Event]:
    """Pages of all areas by node, each time that one of them was looked at."""
    nodes = record.positions
    now: dict[int, tuple[int, ...]] = {}
    looked = [one for one in record.placements if one.when in (FOUND, NOW, AT_END)]
    for one in sorted(looked, key=lambda placement: placement.time):
        now[one.area] = one.pages
        sums = [sum(column) for column in zip(*now.values(), strict=True)]
        for index, pages in zip(nodes, sums, strict=True):
            yield {"ph": "C", "name": f"pages on node {index}", "ts": one.time, "args": {"pages": pages}}


def _remote(record: Record) -> Iterator[Event]:
    """The remote share of the references that were sampled in each iteration."""
    times = {row.number: row.time for row in record.iterations}
    by_iteration: dict[int, list[References]] = {}
    for one in record.references:
        by_iteration.setdefault(one.iteration, []).append(one)
    for number, parts in sorted(by_iteration.items()):
        total = sum(one.total for one in parts)
        if number in times and total > 0:
            remote = sum(one.total * one.remote_fraction for one in parts if one.total > 0)
            share = round(100 * remote / total, 2)
            yield {"ph": "C", "name": "remote share", "ts": times[number], "args": {"per cent": share}}


def _touches(record: Record, titles: dict[int, str]) -> Iterator[Event]:
    """Single touches, where the record keeps them, on the track of the thread that made them."""
    rows = record.table("sample")[:_MOST_TOUCHES]
    if not {"area", "thread", "time", "granule", "write"} <= set(rows.dtype.names or ()):
        return
    tracks = {one.thread: _FIRST_THREAD + at for at, one in enumerate(record.threads)}
    names = ("area", "thread", "time", "granule", "write")
    for area, thread, time, granule, write in zip(*(rows[name].tolist() for name in names), strict=True):
        if thread in tracks and 0 <= time < 1e15:
            yield {
                "ph": "i",
                "s": "t",
                "tid": tracks[thread],
                "cat": "touch",
                "name": titles.get(area, f"area {area}"),
                "ts": time,
                "args": {"granule": granule, "write": bool(write)},
            }
