"""What the launcher adds to a record when its process has ended: what only the launcher knows (how the
process ended, what a guest's counter counted), and the sources of its names.

Rows go where the process would have put its next ones, so that readers of any version find the record whole.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from typing import Any

from homing.record_file import DAMAGE, parse_file
from homing.record_format import PIECE_BYTES, RecordError
from homing.records import Record, parse_record

_MOST_SOURCES = 20_000
_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}

#: JSON by object, what and offset (homing/report/sources.py).
Found = dict[tuple[str, int, int], str]


def add_to_record(
    path: str, facts: Mapping[str, str] | None = None, sources: Found | None = None, gone: bool = False
) -> None:
    """Add facts (docs/record.md) and sources to the record of a process that has ended; nothing where it may
    still be at work, or where the record was cut off. RecordError or OSError where that is not possible: the
    record is then as it was.

    gone: the process is known to be at work no more, though its record has no end and its host is not ours.
    """
    if not facts and not sources:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        data = file.read()
        record = parse_record(data, path)
        header = parse_file(data, path).header
        layouts, row_bytes = header["rows"], int(header["row_bytes"])
        if not {"source", "text", "fact"} <= layouts.keys() or record.truncated or record.out_of_room:
            return
        closed = record.end is not None or "end" in record.facts
        if not closed and not gone and (record.host != os.uname().nodename or _is_there(record.pid)):
            return
        try:
            rows = _rows(record, facts or {}, sources or {}, layouts, row_bytes)
        except (*DAMAGE, struct.error) as error:
            raise RecordError(f"{path}: nothing can be added to it: its header makes no sense") from error
        end = _used(data, int(header["header_bytes"]), row_bytes)
        if not closed:  # its file is whole pieces, with unused rows at the end
            rows += bytes(-(end + len(rows)) % PIECE_BYTES)
        try:
            written = os.pwrite(descriptor, rows, end)
        except OSError:
            written = 0
        if written < len(rows):
            os.pwrite(descriptor, bytes(max(0, min(written, len(data) - end))), end)
            os.ftruncate(descriptor, len(data))
            raise RecordError(f"{path}: no room for what belongs to it")


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


def _rows(
    record: Record, facts: Mapping[str, str], found: Found, layouts: dict[str, Any], row_bytes: int
) -> bytes:
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

    for key, value in facts.items():
        ids = text(key), text(value)
        rows += _row(layouts["fact"], row_bytes, key=ids[0], value=ids[1])
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
