"""Writes into a record, after the run, where the code and the arrays that it tells of come from: a program
that is rebuilt, moved or deleted later has its names all the same."""

from __future__ import annotations

import os
import stat
import struct
from typing import Any

from homing.record_file import PIECE_BYTES, RecordError, parse_file
from homing.records import Record, parse_record

#: Seconds for debug information that the summary had no time for.
BUDGET = 30.0
_MOST_SOURCES = 20_000
_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}

#: JSON by object, what and offset (homing/report/sources.py).
Found = dict[tuple[str, int, int], str]


def look_up(path: str, budget: float = BUDGET) -> Found:
    """Everything that a record needs the sources of. RecordError where it cannot be read."""
    from homing.records import read_record
    from homing.report.names import Namer

    record = read_record(path)
    namer = Namer(budget)
    namer.begin(record)
    namer.names(record.areas)
    for one in record.counted:
        if one.offset:
            namer.place(one.object, one.offset)
            namer.place(one.object, one.offset + 1)
    return namer.sources.found


def keep_sources(path: str, found: Found) -> None:
    """Append rows to the record of a process that has ended; nothing where it may still be at work, or was
    cut off. RecordError or OSError where that is not possible: the record is then as it was."""
    if not found:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        data = file.read()
        record = parse_record(data, path)
        layouts = parse_file(data, path).header["rows"]
        if not {"source", "text"} <= layouts.keys() or record.truncated or record.out_of_room:
            return
        closed = record.end is not None or "end" in record.facts
        if not closed and (record.host != os.uname().nodename or _is_there(record.pid)):
            return
        header = parse_file(data, path).header
        rows = _rows(record, found, layouts, int(header["row_bytes"]))
        end = _used(data, int(header["header_bytes"]), int(header["row_bytes"]))
        if not closed:  # its file is whole pieces, with unused rows at the end
            rows += bytes(-(end + len(rows)) % PIECE_BYTES)
        try:
            written = os.pwrite(descriptor, rows, end)
        except OSError:
            written = 0
        if written < len(rows):
            os.pwrite(descriptor, bytes(max(0, min(written, len(data) - end))), end)
            os.ftruncate(descriptor, len(data))
            raise RecordError(f"{path}: no room for the names of areas")


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _used(data: bytes, header_bytes: int, row_bytes: int) -> int:
    """Where the last row that is used ends."""
    end = len(data) - (len(data) - header_bytes) % row_bytes
    while end > header_bytes and not any(data[end - row_bytes : end - row_bytes + 4]):
        end -= row_bytes
    return end


def _rows(record: Record, found: Found, layouts: dict[str, Any], row_bytes: int) -> bytes:
    texts = {text: number for number, text in record.texts.items()}
    last = max(texts.values(), default=0)
    rows = bytearray()

    def text(value: str) -> int:
        nonlocal last
        if not value:
            return 0
        if value not in texts:
            last += 1
            texts[value] = last
            data = value.encode("utf-8", "replace")
            (_, _, room, _) = next(field for field in layouts["text"]["fields"] if field[0] == "bytes")
            for offset in range(0, len(data), room):
                piece = data[offset : offset + room]
                values = {"id": last, "offset": offset, "total": len(data), "bytes": piece}
                rows.extend(_row(layouts["text"], row_bytes, **values))
        return texts[value]

    for (path, what, offset), value in list(found.items())[:_MOST_SOURCES]:
        ids = text(path), text(value)
        rows += _row(layouts["source"], row_bytes, object=ids[0], what=what, offset=offset, text=ids[1])
    return bytes(rows)


def _row(layout: dict[str, Any], row_bytes: int, **values: Any) -> bytes:
    row = bytearray(row_bytes)
    struct.pack_into("<I", row, 0, int(layout["kind"]))
    for name, kind, _, offset in layout["fields"]:
        value = values.get(name, 0)
        if kind == "char":
            row[offset : offset + len(value)] = value
        else:
            struct.pack_into("<" + _CODES[kind], row, offset, value)
    return bytes(row)
