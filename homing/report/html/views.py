"""What the views of a page need beside the results (homing/report/json.py): small things as JSON, long ones
as arrays (arrays.py). What a record does not have is named in `missing`, with how to get it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from homing.arrays import NDArray, np
from homing.record_rows import References, Region
from homing.records import Record
from homing.report.html.arrays import Arrays
from homing.report.html.snippets import Snippets
from homing.report.html.touches import Line, Touches, lines, region_matrices, touches
from homing.report.html.verdict import verdict
from homing.report.page_maps import PageMap, page_maps
from homing.report.results import ProcessResult, Results
from homing.report.sources import Sources
from homing.report.symbols import readable_symbol

#: Seconds for the debug information of lines that touched.
_BUDGET = 20.0
#: Nodes whose matrices are small enough to keep one for each iteration and area.
_MOST_NODES = 64
#: Iterations whose matrices are kept; of longer runs every n-th.
_MOST_ITERATIONS = 4096
#: Lines of code that are listed.
_MOST_LINES = 500

_OLD = "This record holds no page maps: an older homing wrote it."
_NO_TOUCHES = "Single touches are kept with homing run --record-samples N (128 bytes each)."
_NO_LINES = (
    "Which lines touch remote memory is counted on a described machine (homing run --on MACHINE --lines), or "
    "sampled with --record-samples N."
)
_NO_CODE = "The touches of this record have no instructions: the source of references does not tell them."
_NO_REFERENCES = "No sampled references in this record: nothing was observed, or --mechanism next-touch ran."


def views(results: Results, arrays: Arrays) -> dict[str, Any]:
    """The views of all processes, and the source text that they show."""
    newest = max((one.record.start for one in results.processes), default=0.0)
    snippets = Snippets(newest)
    sources = Sources(_BUDGET)
    processes = [
        _process(number, one, results, arrays, sources, snippets)
        for number, one in enumerate(results.processes)
    ]
    for line in (results.counts or {}).get("lines", [])[:_MOST_LINES]:
        snippets.want(line["file"], line["line"])
    text, no_text = snippets.read()
    return {"processes": processes, "text": text, "no_text": no_text, "arrays": arrays.table}


def _process(
    number: int,
    process: ProcessResult,
    results: Results,
    arrays: Arrays,
    sources: Sources,
    snippets: Snippets,
) -> dict[str, Any]:
    record = process.record
    sources.begin(record)
    missing: dict[str, str] = {}
    maps = page_maps(record)
    if maps:
        _add_maps(number, process, maps, arrays)
    else:
        missing["maps"] = _OLD if process.areas else "No area of this process was looked at."
    kept = touches(record, maps)
    found: list[Line] = []
    if kept is not None:
        _add_touches(number, process, kept, arrays)
        found = lines(record, kept, sources)[:_MOST_LINES]
        if not found:
            missing["lines"] = _NO_CODE
    else:
        missing["touches"] = _NO_TOUCHES
        missing["lines"] = _NO_LINES
    if not any(area.first_touch for area in process.areas):
        missing["first_touch"] = _first_touch_missing(record)
    if not _add_references(number, process, arrays):
        missing["references"] = _NO_REFERENCES
    for area in process.areas:
        snippets.want(area.name.file, area.name.line)
        for touched in area.first_touch:
            snippets.want(touched.file, touched.line)
        for caller in area.name.callers:
            snippets.want(caller.file, caller.line)
    for one in found:
        snippets.want(one.file, one.line)
    return {
        "verdict": asdict(verdict(process, results)),
        "missing": missing,
        "lines": [asdict(one) for one in found],
        "regions": [_region(one, record) for one in record.regions],
        "region_touches": _region_touches(kept, record),
        "areas": {
            "ids": [area.ids if len(area.ids) > 1 else area.area.id for area in process.areas],
            "begin": [area.area.begin for area in process.areas],
            "traffic": [round(sum(one.traffic for one in area.samples), 6) for area in process.areas],
        },
        "iterations_seen": process.iteration_count,
        "exact": process.counts_all_iterations,
        "by_access": any(one.by_access for one in record.samples.values()),
        "parallel": record.end.parallel_seconds if record.end is not None else None,
    }


def _first_touch_missing(record: Record) -> str:
    fact = record.facts.get("first_touch", "")
    if fact.startswith("unknown: "):
        return f"Page faults could not be sampled: {fact.removeprefix('unknown: ')}."
    return "No page fault of an array was sampled." if fact else "Page faults were not sampled."


def _region(one: Region, record: Record) -> dict[str, Any]:
    name = readable_symbol(one.symbol) if one.symbol else f"{one.object.rpartition('/')[2]}+{one.offset:#x}"
    return {"id": one.id, "name": name, "count": one.count, "seconds": one.seconds}


def _result_of(process: ProcessResult) -> dict[int, int]:
    """The number of each area's line in the report."""
    return {one: number for number, area in enumerate(process.areas) for one in area.ids}


def _add_maps(
    number: int, process: ProcessResult, maps: dict[tuple[int, int], PageMap], arrays: Arrays
) -> None:
    record, result_of = process.record, _result_of(process)
    chosen = [one for one in maps.values() if one.area in result_of]
    chosen.sort(key=lambda one: (result_of[one.area], record.areas_by_id[one.area].begin, one.area, one.when))
    table = np.zeros((len(chosen), 8), dtype=np.int64)
    begin = 0
    for row, one in zip(table, chosen, strict=True):
        area = record.areas_by_id[one.area]
        granule = area.granule or record.page_bytes
        row[:] = (
            result_of[one.area],
            one.area,
            one.when,
            begin,
            len(one.first),
            one.granules,
            one.step,
            min(granule, 0xFFFFFFFF),
        )
        begin += len(one.first)
    arrays.add(f"{number}/maps", "u4", table)
    arrays.add(f"{number}/map-lengths", "u4", _joined([one.lengths for one in chosen]))
    arrays.add(f"{number}/map-nodes", "i2", _joined([one.node for one in chosen]))


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _add_touches(number: int, process: ProcessResult, kept: Touches, arrays: Arrays) -> None:
    result_of = _result_of(process)
    threads = {one.thread: at for at, one in enumerate(process.record.threads)}
    areas, begins, counts = np.unique(kept.area, return_index=True, return_counts=True)
    table = [
        (result_of[area], area, begin, count)
        for area, begin, count in zip(areas.tolist(), begins.tolist(), counts.tolist(), strict=True)
        if area in result_of
    ]
    arrays.add(f"{number}/touched", "u4", np.array(table, dtype=np.int64).reshape(-1, 4))
    arrays.add(f"{number}/touch-granules", "u4", kept.granule)
    who = np.array([threads.get(one, 0xFFFF) for one in kept.thread.tolist()], dtype=np.int64)
    arrays.add(f"{number}/touch-threads", "u2", who)
    arrays.add(f"{number}/touch-nodes", "i2", kept.node)


def _add_references(number: int, process: ProcessResult, arrays: Arrays) -> bool:
    """Sampled references: for each area and for each iteration a matrix, node of the thread by home node."""
    record, result_of = process.record, _result_of(process)
    references: list[References] = record.references
    count = record.node_count
    if not references or not 2 <= count <= _MOST_NODES:
        return False
    by_area: dict[int, NDArray[np.float64]] = {}
    by_iteration: dict[int, NDArray[np.float64]] = {}
    for one in references:
        sums = by_iteration.setdefault(record.iteration_of(one.iteration), np.zeros((count, count)))
        sums += one.matrix
        if (result := result_of.get(one.area)) is not None:
            sums = by_area.setdefault(result, np.zeros((count, count)))
            sums += one.matrix
    every = -(-len(by_iteration) // _MOST_ITERATIONS)
    numbers = sorted(by_iteration)[::every]
    arrays.add(f"{number}/ref-areas", "u4", np.array(sorted(by_area), dtype=np.int64))
    arrays.add(f"{number}/refs", "f4", np.array([by_area[one] for one in sorted(by_area)]))
    arrays.add(f"{number}/ref-iterations", "u4", np.array(numbers, dtype=np.int64))
    arrays.add(f"{number}/iteration-refs", "f4", np.array([by_iteration[one] for one in numbers]))
    return True


def _region_touches(kept: Touches | None, record: Record) -> list[dict[str, Any]]:
    if kept is None or not 2 <= record.node_count <= _MOST_NODES:
        return []
    known = {one.id for one in record.regions}
    return [
        {"region": region, "matrix": matrix.tolist()}
        for region, matrix in region_matrices(kept, record.node_count).items()
        if region in known
    ]
