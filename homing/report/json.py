"""The results of a run for programs: schema "homing-run/2", described in docs/json.md and
report/schema.json."""

from __future__ import annotations

import errno
import json
import math
from typing import Any

from homing import __version__
from homing.outputs import output
from homing.record_rows import ALL_AREAS, Ownership, Placement, Sampling, TaskHints
from homing.records import LAB_COUNTS, Record
from homing.report.advised import Advice
from homing.report.first_touch import FirstTouch
from homing.report.left import Account, Left, why
from homing.report.recommend import advice_for
from homing.report.remote import CONFIDENCE, Estimate
from homing.report.results import AreaResult, ProcessResult, Results
from homing.report.waiting import waiting

SCHEMA = "homing-run/2"


def write_json(results: Results, path: str) -> None:
    """Write the file. UserError where that is not possible."""
    text = json.dumps(to_json(results), indent=1, allow_nan=False)
    with output(path, "results") as file:
        file.write(text + "\n")


def to_json(results: Results) -> dict[str, Any]:
    """The results as JSON values. What is not known is null."""
    return {
        "schema": SCHEMA,
        "homing": __version__,
        "command": None if results.command is None else [_valid(word) for word in results.command],
        "exit_status": results.status,
        "seconds": results.seconds,
        "aside": _valid(results.aside) or None,
        "notes": [_valid(one) for one in (*results.notes, *results.unreadable)],
        "processes": [_process(process) for process in results.processes],
        "counts": results.counts,
    }


def _valid(text: str) -> str:
    """Without the bytes of file names that are no UTF-8: parsers refuse what stands for them."""
    return text.encode("utf-8", "replace").decode()


def _process(process: ProcessResult) -> dict[str, Any]:
    record = process.record
    end, overhead = record.end, record.overhead
    return {
        "record": {
            "pid": record.pid,
            "rank": record.rank if record.rank >= 0 else None,
            "program": record.program,
            "arguments": record.arguments,
            "host": record.host,
            "start": number(record.start),
            "homing": record.homing,
            "page_bytes": record.page_bytes,
            "complete": end is not None,
            "truncated": record.truncated,
            "ended_by": record.ended_by or None,
        },
        # What was counted is in `counts`.
        "facts": {key: value for key, value in record.facts.items() if key != LAB_COUNTS},
        "messages": [
            {"level": one.level, "text": one.text, "repeats": one.repeats} for one in record.messages
        ],
        "nodes": [
            {
                "position": node.position if node.position >= 0 else None,
                "index": node.index,
                "cpus": node.cpus,
                "memory_bytes": node.memory_bytes,
                "free_bytes": node.free_bytes,
                "target": node.target,
            }
            for node in record.nodes
        ],
        "distances": [[number(value) for value in line] for line in record.distances],
        "threads": [
            {
                "thread": one.thread,
                "node": one.node if one.node >= 0 else None,
                "cpu": one.cpu,
                "bound": one.bound,
            }
            for one in record.threads
        ],
        "iterations": {
            "count": process.iteration_count,
            "settled_at": process.settled_at,
            "basis": process.basis or None,
            "period_regions": end.period if end is not None and end.period else None,
            "rows": _iterations(record),
        },
        "regions": [
            {
                "object": one.object,
                "offset": one.offset,
                "symbol": one.symbol or None,
                "count": one.count,
                "seconds": number(one.seconds),
            }
            for one in record.regions
        ],
        "areas": [_area(area, record) for area in process.areas],
        "moved_pages": process.moved,
        "moved_bytes": process.moved_bytes,
        "refused": _refused(process.refused),
        "moves": [
            {
                "area": one.area if one.area != ALL_AREAS else None,
                "iteration": record.iteration_of(one.iteration),
                "time": number(one.time),
                "wanted": one.wanted,
                "moved": one.moved,
                "refused": one.refused,
                "bytes": one.bytes,
                "seconds": number(one.seconds),
                "longest_call_seconds": number(one.longest_call_seconds),
                "calls": one.calls,
                "reason": one.reason or None,
            }
            for one in record.moves
        ],
        "remote_fraction": _remote(process.remote),
        "advice": [_advice(one) for one in advice_for(process)],
        "phases": [
            vars(one)
            | {"seconds": number(one.seconds)}
            | {"name": None if one.region is None else process.region_names.get(one.region)}
            for one in record.phases
        ],
        "sampling": _sampling(record.sampling),
        "waiting": None if (waited := waiting(record)) is None else vars(waited),
        "tasks": _tasks(record.task_hints),
        "unwatched": [{"what": one.what, "bytes": one.bytes} for one in record.unwatched],
        "seconds": {
            "run": number(record.seconds),
            "parallel": number(end.parallel_seconds) if end is not None else None,
            "observing": number(overhead.observing),
            "deciding": number(overhead.deciding),
            "moving": number(overhead.moving),
            "hooks": number(overhead.hooks),
        },
        "faults": overhead.faults,
        "windows": {"armed": overhead.armed, "touched": overhead.touches, "calls": overhead.calls},
        "region_events": overhead.region_events,
    }


def _sampling(one: Sampling | None) -> dict[str, Any] | None:
    return None if one is None else vars(one) | {"seconds": number(one.seconds)}


def _tasks(hints: TaskHints | None) -> dict[str, Any] | None:
    if hints is None:
        return None
    return {
        "given": hints.given,
        "honoured": hints.honoured,
        "at_home": hints.at_home,
        "elsewhere": hints.elsewhere,
        "left": hints.left,
    }


def _iterations(record: Record) -> list[dict[str, Any]]:
    return [
        {
            "number": record.iteration_of(one.number),
            "time": number(one.time),
            "seconds": number(one.seconds),
            "regions": one.regions,
            "state": one.state,
            "basis": one.basis,
            "references": one.references,
            "moved": one.moved,
            "overhead_seconds": number(one.overhead_seconds),
        }
        for one in record.iterations
    ]


def _area(result: AreaResult, record: Record) -> dict[str, Any]:
    name = result.name
    return {
        "id": result.area.id,
        "name": result.area.name or name.title,
        "title": name.title,
        "kind": result.area.kind,
        "count": result.count,
        "bytes": result.bytes,
        "live_bytes": result.live_bytes,
        "object": result.area.object or None,
        "source": {
            "function": name.function or None,
            "file": name.file,
            "line": name.line,
            "text": name.text or None,
        }
        if name.line
        else None,
        "origin": [{"object": path, "offset": offset} for path, offset in result.area.origin],
        "variable": name.variable or None,
        "callers": [
            {"function": one.function or None, "file": one.file or None, "line": one.line or None}
            for one in name.callers
        ],
        "members": [{"name": one.name, "offset": one.offset, "bytes": one.bytes} for one in name.members],
        "ended": result.ended,
        "first_touch": [_first_touch(one) for one in result.first_touch],
        "before": _placement(result.before, record),
        "after": _placement(result.after, record),
        "owners": _ownership(result.ownership, record),
        "owners_by_region": [
            {
                "offset": next((one.offset for one in record.regions if one.id == way.region), None),
                "followed": way.followed,
                "touches": way.touches,
                "distribution": way.distribution or None,
                "confidence": number(way.confidence),
            }
            for way in result.by_region
        ],
        "guard": _account(result.account),
        "left": _left(result.left, record),
        "moved_pages": result.moved,
        "refused": _refused(result.refused),
        "remote_fraction": _remote(result.remote),
    }


def _advice(one: Advice) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "text": one.text,
        "evidence": one.evidence,
        "area": one.area,
        "file": one.file or None,
        "line": one.line or None,
        "remote_before": number(one.gain.before) if one.gain is not None else None,
        "remote_after": number(one.gain.after) if one.gain is not None else None,
    }


def _first_touch(one: FirstTouch) -> dict[str, Any]:
    return {
        "function": one.function or None,
        "file": one.file or None,
        "line": one.line or None,
        "text": one.text or None,
        "threads": list(one.threads),
        "nodes": list(one.nodes),
        "share": number(one.share),
        "samples": number(one.samples),
    }


def _remote(found: Estimate | None) -> dict[str, Any]:
    known = found is not None and found.enough
    before, after = (found.before, found.after) if found is not None and known else (None, None)
    return {
        "before": before.fraction if before else None,
        "after": after.fraction if after else None,
        "before_interval": [before.low, before.high] if before else None,
        "after_interval": [after.low, after.high] if after else None,
        "confidence": CONFIDENCE,
        "touches": found.touches if found is not None else 0.0,
        "pages": found.granules if found is not None else 0,
        "effective_samples": found.effective if found is not None else 0.0,
    }


def _placement(placement: Placement | None, record: Record) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {
        "iteration": record.iteration_of(placement.iteration),
        "pages": list(placement.pages),
        "absent": placement.absent,
        "sampled": placement.sampled,
    }


def _ownership(ownership: Ownership | None, record: Record) -> dict[str, Any] | None:
    if ownership is None:
        return None
    return {
        "kind": ownership.kind,
        "iteration": record.iteration_of(ownership.iteration),
        "confidence": number(ownership.confidence),
        "samples": ownership.samples,
        "wanted_pages": ownership.wanted,
        "distribution": ownership.distribution or None,
        "known_pages": ownership.known,
    }


def _account(account: Account | None) -> dict[str, Any] | None:
    if account is None:
        return None
    return {
        "remote_seconds": number(account.remote),
        "move_seconds": number(account.move),
        "permitted": account.permitted,
    }


def _left(left: Left | None, record: Record) -> dict[str, Any] | None:
    if left is None:
        return None
    return {"reason": left.reason, "pages": left.pages or None, "text": why(left, record)}


def _refused(errors: dict[int, int]) -> dict[str, int]:
    return {
        errno.errorcode.get(abs(error), str(abs(error))): pages for error, pages in sorted(errors.items())
    }


def number(value: float) -> float | None:
    """A number, or null for what is not known: JSON has no NaN."""
    return value if math.isfinite(value) else None
