"""What the report takes: the page of `homing report --html` for a large run (bytes, the time until it is
drawn, frames, in Chromium), the summary, sampling first touches; and whether its advice is right. Parts that
are not measured now keep the rows that they have."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from homing.arrays import NDArray, np
from homing.bench.browser import CHROMIUM, Browser, browser
from homing.bench.places import results_folder
from homing.bench.progress import Progress
from homing.bench.results import Check, Results, Row, check_only
from homing.errors import UserError
from homing.record_rows import AT_END, FOUND
from homing.report.html import page
from homing.report.results import read_results

PARTS = {
    "html": "the page of a run with 10,000 areas and 1,000,000 runs of pages",
    "launcher": "a command with a summary, against numactl",
    "first_touch": "what sampling first touches costs",
    "advice": "whether following the advice brings what it says (in the guest)",
}
AREAS, RUNS, NODES, THREADS, ITERATIONS = 10_000, 1_000_000, 4, 64, 2_000
#: Runs in one row `page_map`, and granules in a run at most.
WIDTH, LONGEST = 11, 16
MOST_BYTES = 5 << 20
#: A frame of a screen with 60 a second, and a tenth: timers are not exact.
MOST_FRAME_MS = 1.1e3 / 60
REPEATS = {"small": 3, "full": 9}

# The times from one frame to the next while something moves in each.
_FRAMES = """(async () => {
  const map = document.getElementById('map'), list = document.getElementById('areas'), times = []
  const key = name => map.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}))
  const act = ACT
  let last = await new Promise(requestAnimationFrame)
  for (let frame = 0; frame < 120; frame++) {
    act(frame)
    const now = await new Promise(requestAnimationFrame)
    times.push(now - last)
    last = now
  }
  return times
})()"""
_PAN = "frame => frame ? key(frame & 32 ? 'ArrowLeft' : 'ArrowRight') : (key('+'), key('+'))"
_SCROLL = "() => { list.scrollTop += 140 }"


def run(size: str, only: Sequence[str], tell: Callable[[list[str]], str], redo: bool = False) -> Results:
    """The benchmark. only: names in PARTS."""
    check_only(only, PARTS)
    chosen = [part for part in PARTS if part in only] or list(PARTS)
    if "html" in chosen and not CHROMIUM:
        raise UserError("homing bench report: needs Chromium (Debian: chromium)", 1)
    results = Results(
        "report",
        "Report: what its page takes, the summary, first touches; is the advice right?",
        tell(["report"]),
        notes=[
            f"{AREAS:,} areas, {RUNS:,} runs of pages by address (a quarter of them in one area), "
            f"{ITERATIONS:,} iterations, {NODES} nodes, {THREADS} threads: a record made for this. Chromium "
            f"without a window or GPU, 1,600 x 900; the median of {REPEATS[size]} openings, from the start "
            "of the navigation until everything is drawn. Frames are the times from one to the next while "
            "the map of the largest area (125,000 runs twice) is panned by keys, and while the list of "
            "areas is scrolled. Others may have used the machine meanwhile: times are upper bounds."
        ],
    )
    keep_others(results, chosen)
    if "launcher" in chosen:
        _launcher(results, size, tell)
    if "first_touch" in chosen:
        from homing.bench import first_touch

        first_touch.run(results, size)
    if "advice" in chosen:
        from homing.bench import advice

        advice.run(results)
    if "html" in chosen:
        _page(results, size)
    return results


#: Rows of the launcher's own benchmark that are told here, too.
_LAUNCHER = ("launcher.plain_ms", "launcher.summary_ms", "launcher.summary.cpu_ms", "launcher.numactl_ms")
#: What the names of a part's checks have in common.
_CHECKS = {
    "html": ("at most", "60 frames"),
    "launcher": ("launcher.",),
    "first_touch": ("first touch",),
    "advice": ("following",),
}


def keep_others(results: Results, measured: Sequence[str], path: Path | None = None) -> None:
    """Rows, checks and details of parts that are not measured now, from the results that there are."""
    path = path or results_folder() / "report.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for part in [part for part in PARTS if part not in measured]:
        for row in known["rows"]:
            if row["name"].startswith(f"{part}."):
                results.rows.append(Row(row["name"], row["value"], row["unit"], row.get("note", "")))
        for check in known["checks"]:
            if check["name"].startswith(_CHECKS[part]):
                results.checks.append(Check(check["name"], check["passed"], check["text"]))
        if part in known.get("details", {}):
            results.details[part] = known["details"][part]


def _launcher(results: Results, size: str, tell: Callable[[list[str]], str]) -> None:
    from homing.bench import launcher

    found = launcher.run(size, ("plain", "summary"), tell)
    results.rows += [row for row in found.rows if row.name in _LAUNCHER]
    results.checks += [check for check in found.checks if check.name in _LAUNCHER]
    results.notes += found.notes


def _page(results: Results, size: str) -> None:
    progress = Progress("report", [1.0])
    try:
        progress.step(PARTS["html"])
        with tempfile.TemporaryDirectory(prefix="homing-report-") as folder:
            data = measure(Path(folder), REPEATS[size])
        results.details["html"] = data
        add_rows(results, data)
        progress.finished()
    finally:
        progress.close()


def measure(folder: Path, repeats: int) -> dict[str, Any]:
    """Bytes, seconds to write the page, milliseconds to open it and between frames."""
    record = folder / "large.homing"
    record.write_bytes(large_record())
    found = read_results([str(record)], strict=True)
    begin = time.monotonic()
    text = page(found)
    written = time.monotonic() - begin
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    with browser(folder) as tab:
        tab.view(1600)
        opened = [_open(tab, path) for _ in range(repeats)]
        return {
            "bytes": path.stat().st_size,
            "write_seconds": written,
            "open_ms": opened,
            "pan_ms": tab.run(_FRAMES.replace("ACT", _PAN)),
            "scroll_ms": tab.run(_FRAMES.replace("ACT", _SCROLL)),
        }


def _open(tab: Browser, path: Path) -> float:
    tab.open(path)
    return float(tab.run("performance.now()"))


def add_rows(results: Results, data: dict[str, Any]) -> None:
    """Rows and checks."""
    pan, scroll = statistics.median(data["pan_ms"]), statistics.median(data["scroll_ms"])
    results.rows += [
        Row("html.bytes", data["bytes"], "bytes"),
        Row("html.write", data["write_seconds"], "s", "without reading the record"),
        Row("html.open_ms", statistics.median(data["open_ms"]), "ms"),
        Row("html.pan_ms", pan, "ms", f"a frame; 95 % within {_percentile(data['pan_ms']):.1f} ms"),
        Row("html.scroll_ms", scroll, "ms", f"a frame; 95 % within {_percentile(data['scroll_ms']):.1f} ms"),
    ]
    frames = max(pan, scroll)
    results.checks += [
        Check("at most 5 MiB", data["bytes"] <= MOST_BYTES, f"{data['bytes'] / (1 << 20):.2f} MiB"),
        Check("60 frames a second", frames <= MOST_FRAME_MS, f"{frames:.1f} ms a frame, the median"),
    ]


def _percentile(values: list[float]) -> float:
    return float(np.percentile(values, 95))


def large_record() -> bytes:
    """The record of a run with AREAS areas and RUNS runs of pages, at the start and at the end together."""
    random = np.random.default_rng(7)
    counts = np.full(AREAS, (RUNS - RUNS // 4) // (2 * AREAS))
    counts[0] = RUNS // 8
    maps = [_map(random, number, int(count)) for number, count in enumerate(counts)]
    texts = [f"field_{number:05} (large.c:{number})" for number in range(AREAS)]
    return _file(
        text=_texts([*texts, f"BLOCK over {THREADS} threads"]),
        node=_rows(
            {"index": range(NODES), "position": range(NODES), "cpus": 16, "target": 1, **_MEMORY}, NODES
        ),
        thread=_rows(
            {
                "thread": range(THREADS),
                "node": [at * NODES // THREADS for at in range(THREADS)],
                "cpu": 0,
                "bound": 1,
            },
            THREADS,
        ),
        area=_areas([granules for _, granules in maps]),
        placement=_placements([granules for _, granules in maps]),
        page_map=np.concatenate([rows for rows, _ in maps]),
        iteration=_iterations(random),
        distribution=_rows(
            {"area": range(AREAS), "iteration": 1, "words": AREAS + 1, "known": 100, "time": 0.5}, AREAS
        ),
        ownership=_rows(
            {
                "area": range(AREAS),
                "iteration": 1,
                "kind": 1,
                "confidence": 0.99,
                "samples": 100,
                "wanted": 10,
            },
            AREAS,
        ),
    )


_ROW_BYTES, _HEADER_BYTES, _PIECE_BYTES, _TEXT_BYTES = 128, 16384, 1 << 20, 100
#: Types of a record by NumPy's names.
_NAMES = {"<i4": "i32", "<u8": "u64", "<f8": "f64", "|S1": "char"}
_MEMORY = {"memory_bytes": 64 << 30, "free_bytes": 32 << 30}


def _rows(columns: dict[str, Any], count: int) -> NDArray[Any]:
    """A table of the record: numbers, or sequences of them."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    table = np.zeros(count, dtype=[(name, _kind(one), one.shape[1:]) for name, one in arrays.items()])
    for name, values in arrays.items():
        table[name] = values
    return table


def _kind(values: NDArray[Any]) -> str:
    if values.dtype.kind in "fS":
        return "<f8" if values.dtype.kind == "f" else "S1"
    return "<u8" if int(values.max(initial=0)) > 0x7FFFFFFF else "<i4"


def _texts(texts: list[str]) -> NDArray[Any]:
    data = np.zeros((len(texts), _TEXT_BYTES), dtype="S1")
    for at, text in enumerate(texts):
        data[at, : len(text)] = [bytes([one]) for one in text.encode()]
    sizes = [len(text) for text in texts]
    columns = {"id": range(1, len(texts) + 1), "offset": 0, "total": sizes, "bytes": data}
    return _rows(columns, len(texts))


def _file(**tables: NDArray[Any]) -> bytes:
    """A record file (docs/record.md), which describes its rows itself."""
    rows, parts = {}, []
    for kind, (name, table) in enumerate(tables.items(), start=1):
        fields, at = [], 4
        whole = np.zeros((len(table), _ROW_BYTES), dtype=np.uint8)
        whole[:, :4] = np.frombuffer(np.uint32(kind).tobytes(), dtype=np.uint8)
        for column in table.dtype.names or ():
            values = np.ascontiguousarray(table[column]).reshape(len(table), -1)
            size = values.dtype.itemsize
            at += -at % size
            fields.append([column, _NAMES[values.dtype.str], values.shape[1], at])
            end = at + size * values.shape[1]
            whole[:, at:end] = values.view(np.uint8).reshape(len(table), -1)
            at = end
        rows[name] = {"kind": kind, "fields": fields}
        parts.append(whole.tobytes())
    header = {
        "format": 1,
        "row_bytes": _ROW_BYTES,
        "header_bytes": _HEADER_BYTES,
        "page_bytes": 4096,
        "homing": "0",
        "pid": 1,
        "rank": None,
        "ranks": None,
        "start": 0.0,
        "host": "host",
        "program": "/usr/bin/large",
        "arguments": ["large"],
        "arguments_truncated": False,
        "rows": rows,
    }
    begin = b"homing-record 1\n" + json.dumps(header).encode() + b"\n"
    data = begin.ljust(_HEADER_BYTES, b"\0") + b"".join(parts)
    return data + bytes(-len(data) % _PIECE_BYTES)


def _map(random: Any, area: int, count: int) -> tuple[NDArray[Any], int]:
    """Rows of an area's two maps, and its granules: found anywhere, at the end in blocks with strays."""
    lengths = random.integers(1, LONGEST, count)
    first = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    granules = int(lengths.sum())
    blocks = np.minimum(NODES - 1, first * NODES // granules + (random.random(count) < 0.05))
    return (
        np.concatenate(
            [
                _map_rows(area, when, first, node)
                for when, node in ((FOUND, random.integers(0, NODES, count)), (AT_END, blocks))
            ]
        ),
        granules,
    )


def _map_rows(area: int, when: int, first: NDArray[Any], node: NDArray[Any]) -> NDArray[Any]:
    rows = -(-len(first) // WIDTH)
    at = np.arange(rows) * WIDTH
    unused = (0, rows * WIDTH - len(first))
    padded = [np.pad(values, unused).reshape(rows, WIDTH) for values in (first, node)]
    columns = {
        "area": np.full(rows, area),
        "when": np.full(rows, when),
        "time": np.zeros(rows),
        "at": at,
        "count": np.minimum(WIDTH, len(first) - at),
        "step": np.ones(rows, dtype=int),
        "first": padded[0],
        "node": padded[1],
    }
    return _rows(columns, rows)


def _areas(granules: list[int]) -> NDArray[Any]:
    count = len(granules)
    return _rows(
        {
            "id": range(count),
            "begin": [(number + 1) << 36 for number in range(count)],
            "bytes": [4096 * one for one in granules],
            "kind": 3,
            "name": range(1, count + 1),
            "object": 0,
            "granule": 4096,
            "time": 0.1,
            "origin": np.zeros((count, 4), dtype=int),
            "origin_object": np.zeros((count, 4), dtype=int),
        },
        count,
    )


def _placements(granules: list[int]) -> NDArray[Any]:
    count = len(granules)
    pages = np.zeros((2 * count, 8), dtype=int)
    pages[:, :NODES] = np.repeat(np.asarray(granules) // NODES, 2)[:, None]
    return _rows(
        {
            "area": np.repeat(np.arange(count), 2),
            "time": np.tile([0.2, 9.0], count),
            "when": np.tile([FOUND, AT_END], count),
            "first": 0,
            "sampled": 0,
            "iteration": 1,
            "pages": pages,
            "absent": 0,
        },
        2 * count,
    )


def _iterations(random: Any) -> NDArray[Any]:
    return _rows(
        {
            "number": range(ITERATIONS),
            "time": np.arange(ITERATIONS) * 0.1 + 0.2,
            "seconds": 0.1 + 0.01 * random.random(ITERATIONS),
            "regions": 5,
            "state": 2,
            "basis": 1,
            "references": 0,
            "moved": 0,
            "overhead_seconds": 0.001,
        },
        ITERATIONS,
    )
