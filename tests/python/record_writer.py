"""Writes record files as the library does, for fixtures: the rows' layout is read from src/record/rows.hpp
and laid out by C's rules, so that a changed row shows here first."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

ROWS_HPP = Path(__file__).resolve().parents[2] / "src" / "record" / "rows.hpp"
HEADER_BYTES = 16384
ROW_BYTES = 128
PIECE_BYTES = 1 << 20

_CODES = {"char": "c", "u32": "I", "i32": "i", "u64": "Q", "f64": "d", "f32": "f"}


def _layout() -> dict[str, tuple[int, list[tuple[str, str, int, int]]]]:
    """name -> (kind, fields as (name, type, length, offset))."""
    text = re.sub(r"/\*.*?\*/|\\\n", " ", ROWS_HPP.read_text(), flags=re.DOTALL)
    table = text[text.index("#define HOMING_ROWS") : text.index("using u32")]
    layout = {}
    for row in re.finditer(r"ROW\((\d+), (\w+),((?:\s*(?:FIELD|ARRAY)\([^)]*\))+)\s*\)", table):
        offset, fields = 4, []
        for field in re.finditer(r"(?:FIELD|ARRAY)\((\w+), (\w+)(?:, (\d+))?\)", row[3]):
            size = struct.calcsize(_CODES[field[1]])
            offset += -offset % size
            fields.append((field[2], field[1], int(field[3] or 1), offset))
            offset += size * int(field[3] or 1)
        assert offset <= ROW_BYTES, row[2]
        layout[row[2]] = (int(row[1]), fields)
    assert len(layout) >= 19
    return layout


LAYOUT = _layout()


class RecordWriter:
    """Collects rows; `bytes()` is the file."""

    def __init__(
        self, program: str = "/home/user/cg", pid: int = 4711, rank: int | None = None, **header: Any
    ) -> None:
        self.header = {
            "format": 1,
            "row_bytes": ROW_BYTES,
            "header_bytes": HEADER_BYTES,
            "page_bytes": 4096,
            "homing": "0.1.0",
            "pid": pid,
            "rank": rank,
            "start": 1700000000.25,
            "host": "node17",
            "rows": {name: {"kind": kind, "fields": fields} for name, (kind, fields) in LAYOUT.items()},
            "program": program,
            "arguments": [program],
            "arguments_truncated": False,
            **header,
        }
        self.rows: list[bytes] = []
        self.closed = False
        self._texts: dict[str, int] = {}

    def row(self, name: str, /, **values: Any) -> None:
        """Append a row; fields that are not given are zero, short arrays are filled up."""
        kind, fields = LAYOUT[name]
        self.closed |= name == "end"
        row = bytearray(ROW_BYTES)
        struct.pack_into("<I", row, 0, kind)
        for field, code, length, offset in fields:
            value = values.pop(field, None)
            if value is None:
                continue
            if code == "char":
                row[offset : offset + len(value)] = value
            else:
                items = list(value) if length > 1 else [value]
                struct.pack_into(f"<{len(items)}{_CODES[code]}", row, offset, *items)
        assert not values, f"{name} has no {', '.join(values)}"
        self.rows.append(bytes(row))

    def text(self, value: str) -> int:
        """The id of a text."""
        if not value:
            return 0
        if value not in self._texts:
            self._texts[value] = len(self._texts) + 1
            data = value.encode("utf-8", "surrogateescape")
            for offset in range(0, len(data), 112):
                piece = data[offset : offset + 112]
                self.row("text", id=self._texts[value], offset=offset, total=len(data), bytes=piece)
        return self._texts[value]

    def fact(self, key: str, value: str) -> None:
        """Append a fact."""
        self.closed |= key == "end"
        self.row("fact", key=self.text(key), value=self.text(value))

    def message(self, text: str, level: int = 1, repeats: int = 1) -> None:
        """Append a message: 1 note, 2 warning, 3 not done."""
        self.row("message", text=self.text(text), level=level, repeats=repeats)

    def sample(
        self, area: int, before: float, after: float, granules: int, traffic: float = 1.0, time: float = 0.0
    ) -> None:
        """Append an estimate of an area's remote share: a sample of pages of equal weight, each with one
        touch."""
        ends = {"before": before * granules, "after": after * granules}
        values = {f"{name}{power}": total for name, total in ends.items() for power in ("", "1", "2")}
        self.row(
            "estimate",
            area=area,
            granules=granules,
            touches=float(granules),
            traffic=traffic,
            weight=float(granules),
            weight2=float(granules),
            time=time,
            **values,
        )

    def bytes(self, unused_rows: int = 0) -> bytes:
        """The whole file; unused rows at its end are zero. Without a row or a fact `end` it is that of a
        process that was killed."""
        header = b"homing-record 1\n" + json.dumps(self.header).encode() + b"\n"
        assert len(header) < HEADER_BYTES
        data = header.ljust(HEADER_BYTES, b"\0") + b"".join(self.rows) + bytes(unused_rows * ROW_BYTES)
        return data if self.closed else data + bytes(-len(data) % PIECE_BYTES)

    def write(self, path: Path, unused_rows: int = 0) -> Path:
        """Write the file."""
        path.write_bytes(self.bytes(unused_rows))
        return path


def four_node_run(ended: bool = True, **header: Any) -> RecordWriter:
    """A run that found a static array on node 0 and sent its pages home to four nodes, and a heap block that
    was shared by all: what the tests of the summary and of the JSON file look at."""
    writer = RecordWriter(**header)
    for node in range(4):
        writer.row(
            "node", index=node, position=node, memory_bytes=8 << 30, free_bytes=4 << 30, cpus=2, target=1
        )
        distances = [10.0 if node == other else 20.0 for other in range(4)]
        writer.row("distance", **{"from": node, "first": 0, "count": 4, "to": distances})
    writer.fact("machine", "hwloc")
    writer.fact("mechanism", "iterative")
    writer.fact("source", "windows")
    writer.fact("source_reasons", "pmu: no such PMU; hint-faults: kernel.numa_balancing is 0")
    for thread in range(8):
        writer.row("thread", thread=100 + thread, node=thread // 2, cpu=thread, bound=1, time=0.01)
    writer.row(
        "area",
        id=1,
        begin=0x10000000,
        bytes=4096 * 1000,
        kind=1,
        name=writer.text("/main_mem/"),
        object=writer.text("/home/user/cg"),
        granule=4096,
        time=0.02,
    )
    writer.row(
        "area",
        id=2,
        begin=0x20000000,
        bytes=4096 * 400,
        kind=2,
        name=writer.text("heap@cg+0x1234"),
        granule=4096,
        time=0.03,
        origin=[0x1239],
        origin_object=[writer.text("/home/user/cg")],
    )
    writer.row("placement", area=1, when=1, pages=[1000], absent=0, time=0.04)
    writer.row("placement", area=2, when=1, pages=[400], absent=0, time=0.04)
    for number in range(1, 6):
        writer.row(
            "iteration",
            number=number,
            time=number * 0.1,
            seconds=0.1,
            regions=15,
            state=1 if number < 2 else 2 if number < 4 else 3,
            basis=0 if number < 2 else 1,
            references=1000 if number < 4 else 0,
            moved=750 if number == 3 else 0,
            overhead_seconds=0.001,
        )
        if number in (2, 5):
            for node in range(4):
                home = (
                    [100.0, 0, 0, 0]
                    if number == 2
                    else [99.0 if node == other else 1 / 3 for other in range(4)]
                )
                writer.row(
                    "references", **{"area": 1, "iteration": number, "from": node, "first": 0, "to": home}
                )
    writer.sample(1, before=0.75, after=0.01, granules=400, time=0.6)
    writer.row("ownership", area=1, iteration=3, kind=1, confidence=0.99, samples=300, wanted=750)
    writer.row("ownership", area=2, iteration=3, kind=3, confidence=0.9, samples=100, wanted=300)
    writer.row("guard", area=1, iteration=3, remote_ns=2e6, move_ns=1e6, permitted=1)
    writer.row(
        "move",
        area=1,
        iteration=3,
        wanted=750,
        moved=740,
        refused=10,
        bytes=740 * 4096,
        seconds=0.004,
        longest_call_seconds=0.002,
        calls=2,
        time=0.3,
    )
    writer.row("refusal", area=1, error=12, pages=8, iteration=3)
    writer.row("refusal", area=1, error=16, pages=2, iteration=3)
    writer.row("placement", area=1, when=3, iteration=5, pages=[260, 250, 250, 240], time=0.6)
    writer.row("placement", area=2, when=3, iteration=5, pages=[100, 100, 100, 100], time=0.6)
    writer.row("unwatched", what=writer.text("[stack]"), begin=0x7FFF0000, bytes=8 << 20)
    writer.row(
        "region",
        id=1,
        object=writer.text("/home/user/cg"),
        offset=0x2000,
        count=75,
        seconds=0.4,
        symbol=writer.text("conj_grad_"),
    )
    writer.row("overhead", time=0.6, observing=0.01, deciding=0.001, moving=0.004, hooks=0.0005, faults=900)
    writer.message("2 pages stay where they are", level=3, repeats=2)
    if ended:
        writer.row("end", time=0.6, parallel_seconds=0.5, iterations=5, settled_at=4, period=15, live_areas=2)
    return writer
