"""What the simulator counted, as the `counts` of the JSON file (docs/json.md): the same names as the lab's
counter has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from homing.arrays import np
from homing.record_rows import Counted
from homing.report.statements import last_component
from homing.simulate.time_model import estimate, relative_time

if TYPE_CHECKING:
    from homing.records import Record
    from homing.report.names import Namer
    from homing.report.results import AreaResult, ProcessResult

#: Version of the counts; the lab's counter has its own of the same number.
VERSION = 1

#: The fact in which the launcher tells the record what was simulated.
FACT = "simulated"


def simulated_counts(process: ProcessResult, namer: Namer) -> dict[str, Any] | None:
    """The counts of one process; None where nothing was simulated."""
    record = process.record
    by_scope: dict[str, list[Counted]] = {}
    for one in record.counted:
        by_scope.setdefault(one.scope, []).append(one)
    stated = _stated(record.facts.get(FACT, ""))
    if "run" in by_scope:
        run = by_scope["run"][-1]
        total = figures([run])
        total["oracle_remote_misses"] = run.oracle_remote
        total["oracle_remote_fraction"] = _ratio(run.oracle_remote, total["total_misses"])
    elif "iteration" in by_scope:
        # The process was killed: its iterations are all that is known.
        total = figures(by_scope["iteration"])
        total["oracle_remote_misses"] = total["oracle_remote_fraction"] = None
        if total["accesses"] == 0:
            return None  # of a program that was not built for the simulator
    else:
        return None
    moved, calls, page_bytes = record.simulated_moves
    return {
        "version": VERSION,
        "source": "simulator",
        "machine": stated.get("machine", {"nodes": record.node_count}),
        "cache": _cache(stated),
        "run": total,
        "phases": [{"phase": one.id, **figures([one])} for one in by_scope.get("phase", [])],
        "oracle": [],
        "iterations": _iterations(record, by_scope.get("iteration", [])),
        "regions": [
            {
                "object": one.object,
                "offset": one.offset,
                "symbol": one.symbol or _function(namer, one),
                "count": one.entries,
                **figures([one]),
            }
            for one in by_scope.get("region", [])
        ],
        # Of a process that was killed only those areas are counted that ended before.
        "areas": _areas(process.areas, by_scope["area"], total["total_misses"])
        if {"run", "area"} <= by_scope.keys()
        else [],
        "lines": _lines(by_scope.get("place", []), namer),
        "moved_pages": moved,
        "move_calls": calls,
        "moved_bytes": moved * page_bytes,
        "balancing": record.simulated_balancing,
        "time": estimate(stated["time"], total["remote_fraction"], calls, moved)
        if "time" in stated
        else None,
    }


def _iterations(record: Record, counted: Iterable[Counted]) -> list[dict[str, Any]]:
    """The program's own, numbered as everywhere in the JSON: the simulator counts guesses, which are parts of
    one, as if they were iterations."""
    parts: dict[int, list[Counted]] = {}
    for one in counted:
        parts.setdefault(record.iteration_of(one.id), []).append(one)
    return [{"number": number, **figures(found)} for number, found in parts.items()]


def _stated(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _cache(stated: dict[str, Any]) -> dict[str, Any]:
    """The cache that was simulated; empty where the record does not say it whole."""
    cache = stated.get("cache")
    if not isinstance(cache, dict):
        return {}
    needed = ["kib", "ways", "line", "page_bytes"]
    if cache.get("shared_kib"):
        needed += ["shared_kib", "shared_ways", "shared_cpus"]
    numbers = [cache.get(name) for name in needed]
    sound = all(isinstance(one, (int, float)) and not isinstance(one, bool) and one > 0 for one in numbers)
    return cache if sound else {}


def figures(counted: Iterable[Counted]) -> dict[str, Any]:
    """The figures of one scope, or of several together."""
    parts = list(counted)
    matrix = sum((one.misses for one in parts[1:]), parts[0].misses)
    total = int(matrix.sum())
    remote = total - int(np.trace(matrix))
    return {
        "accesses": sum(one.accesses for one in parts),
        "misses": matrix.tolist(),
        "total_misses": total,
        "remote_misses": remote,
        "remote_fraction": _ratio(remote, total),
        "home_shares": [_ratio(int(served), total) for served in matrix.sum(axis=0)],
        "invalidation_misses": sum(one.invalidation_misses for one in parts),
        "upgrades": sum(one.upgrades for one in parts),
        "shared_hits": sum(one.shared_hits for one in parts),
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _function(namer: Namer, one: Counted) -> str | None:
    place = namer.place(one.object, one.offset + 1)
    return place.function if place is not None and place.function else None


def variable(area: AreaResult) -> str:
    """The name that the program's author would use: the array's own, or the one that an allocation was
    given to."""
    return last_component(area.name.variable)


def _areas(areas: list[AreaResult], counted: list[Counted], total: int) -> list[dict[str, Any]]:
    by_id = {one.id: one for one in counted}
    listed = []
    for area in areas:
        parts = [by_id[number] for number in area.ids if number in by_id]
        if not parts:
            continue
        own = figures(parts)
        own.pop("accesses")  # only misses are known array by array
        listed.append(
            {
                "id": area.area.id,
                "name": area.area.name or area.name.title,
                "variable": variable(area) or None,
                "title": area.name.title,
                "members": [one.name for one in area.name.members],
                "bytes": area.bytes,
                "share": _ratio(own["total_misses"], total),
                **own,
            }
        )
    return sorted(listed, key=lambda one: -one["total_misses"])


def _lines(places: list[Counted], namer: Namer) -> list[dict[str, Any]]:
    """Places in the code, those of one source line together, the most misses first."""
    by_line: dict[tuple[str, int, str], list[Counted]] = {}
    for one in places:
        place = namer.place(one.object, one.offset)
        if place is not None and place.line:
            key = (place.file, place.line, place.function)
        else:
            key = (one.object, 0, one.symbol or f"{os.path.basename(one.object)}+{one.offset:#x}")
        by_line.setdefault(key, []).append(one)
    lines = []
    for (file, line, function), parts in by_line.items():
        own = figures(parts)
        own.pop("accesses")
        lines.append({"file": file, "line": line or None, "function": function or None, **own})
    return sorted(lines, key=lambda one: -one["total_misses"])


def joined_counts(counts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The counts of a run: of its one process, or the sums over several, whose details stay with them."""
    if len(counts) <= 1:
        return counts[0] if counts else None
    nodes = {len(one["run"]["misses"]) for one in counts}
    if len(nodes) != 1:
        return None
    matrix = np.sum([one["run"]["misses"] for one in counts], axis=0)
    total = int(matrix.sum())
    remote = total - int(np.trace(matrix))
    run = {
        name: sum(one["run"][name] for one in counts)
        for name in ("accesses", "invalidation_misses", "upgrades", "shared_hits")
    }
    oracles = [one["run"]["oracle_remote_misses"] for one in counts]
    oracle = None if None in oracles else sum(oracles)
    return {
        **counts[0],
        "run": {
            **run,
            "misses": matrix.tolist(),
            "total_misses": total,
            "remote_misses": remote,
            "remote_fraction": _ratio(remote, total),
            "home_shares": [_ratio(int(served), total) for served in matrix.sum(axis=0)],
            "oracle_remote_misses": oracle,
            "oracle_remote_fraction": None if oracle is None else _ratio(oracle, total),
        },
        "phases": [],
        "iterations": [],
        "regions": [],
        "areas": [
            {**area, "share": _ratio(area["total_misses"], total)} for one in counts for area in one["areas"]
        ],
        "lines": [],
        **{name: sum(one[name] for one in counts) for name in ("moved_pages", "move_calls", "moved_bytes")},
        "balancing": _joined_balancing([one["balancing"] for one in counts]),
        "time": _joined_time([one["time"] for one in counts], _ratio(remote, total)),
    }


def _joined_balancing(parts: list[dict[str, int] | None]) -> dict[str, int] | None:
    known = [one for one in parts if one is not None]
    return {name: sum(one[name] for one in known) for name in known[0]} if known else None


def _joined_time(times: list[dict[str, Any] | None], fraction: float) -> dict[str, Any] | None:
    """The model's time of processes that miss as one; None where they are not of one model."""
    known = [one for one in times if one is not None]
    models = {json.dumps([one["ratio"], one["m"], one["calibrated"]]) for one in known}
    if len(known) < len(times) or len(models) != 1:
        return None
    first = known[0]
    return {
        **first,
        "relative": [relative_time(m, first["ratio"], fraction) for m in first["m"]],
        "migration_seconds": sum(one["migration_seconds"] for one in known),
    }
