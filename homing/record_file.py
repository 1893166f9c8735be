"""A record as a file: a header that describes its rows, and the rows as tables (docs/record.md)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from homing import files
from homing.arrays import NDArray, np
from homing.errors import UserError
from homing.record_format import FORMAT, MAGIC, PIECE_BYTES, RecordError, printable

#: The types of fields that a header may name.
_TYPES = {
    "char": "S1",
    "u8": "<u1",
    "u16": "<u2",
    "u32": "<u4",
    "u64": "<u8",
    "i32": "<i4",
    "i64": "<i8",
    "f32": "<f4",
    "f64": "<f8",
}
_MOST_HEADER_BYTES = 1 << 20
_MOST_ROW_BYTES = 1 << 16
#: Kinds of rows: each takes a look at all rows.
_MOST_KINDS = 1000
#: Records hold observations, not data: a larger file is not one of ours.
_MOST_FILE_BYTES = 4 << 30
#: How every record begins.
_BEGIN = re.compile(re.escape(MAGIC) + rb"[0-9]{1,9}\n\{")
#: What reading a damaged header may raise.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)

Rows = NDArray[np.void]


@dataclass
class RecordFile:
    header: dict[str, Any]
    #: All rows of a kind as a structured array, in the order in which they were written.
    rows: dict[str, Rows]
    #: True where the last row is not whole.
    torn: bool
    #: True where the file is as long as that of a process at work, or of one that was killed: whole pieces,
    #: and perhaps a part of one that was never used.
    whole_pieces: bool
    #: True where the process could write on no longer: a record grows by whole pieces, and the last is full.
    out_of_room: bool


def read_bytes(path: str) -> bytes:
    """The file's bytes. RecordError where it cannot be read, or is too large for a record."""
    try:
        return files.read_bytes(path, _MOST_FILE_BYTES, pipe=True)
    except UserError as error:
        raise RecordError(error.message) from error


def parse_file(data: bytes, path: str) -> RecordFile:
    """RecordError (one line) where it is no record, one of DAMAGE where its header makes no sense; `path` is
    for messages."""
    line, newline, _ = data[:64].partition(b"\n")
    if not line.startswith(MAGIC) or not newline:
        what = "empty" if not data else "not a homing record"
        raise RecordError(f"{path}: {what}")
    if line[len(MAGIC) :] != b"%d" % FORMAT:
        version = printable(line[len(MAGIC) :].decode("utf-8", "replace"))
        raise RecordError(f"{path}: record format {version}, this homing reads format {FORMAT}")
    start = len(line) + 1
    stop = data.find(b"\n", start, start + _MOST_HEADER_BYTES)
    if stop < 0:
        raise RecordError(f"{path}: the record's header is cut off")
    header = json.loads(data[start:stop].decode("utf-8", "replace"))
    header_bytes, row_bytes = int(header["header_bytes"]), int(header["row_bytes"])
    if not stop < header_bytes <= _MOST_HEADER_BYTES or not 4 <= row_bytes <= _MOST_ROW_BYTES:
        raise ValueError("sizes")
    if len(data) < header_bytes + row_bytes:
        raise RecordError(f"{path}: only the record's header is there")
    if _another_record(data, header_bytes, row_bytes):
        raise RecordError(f"{path}: several records in one file: each must be a file of its own")
    if len(header["rows"]) > _MOST_KINDS:
        raise ValueError("rows")
    types = {str(name): _row_type(entry, row_bytes) for name, entry in header["rows"].items()}
    return RecordFile(
        header=header,
        rows=_split(data[header_bytes:], types, row_bytes),
        torn=(len(data) - header_bytes) % row_bytes != 0,
        whole_pieces=len(data) >= PIECE_BYTES and not any(data[len(data) - len(data) % PIECE_BYTES :]),
        out_of_room=len(data) % PIECE_BYTES == 0 and any(data[-row_bytes:][:4]),
    )


def _another_record(data: bytes, header_bytes: int, row_bytes: int) -> bool:
    """True where another record stands behind the rows, as `cat` puts it there. Text that a program names so
    is none: it is no row of its own, and too short for a header."""
    for begin in _BEGIN.finditer(data, header_bytes):
        at = begin.start()
        if (at - header_bytes) % row_bytes == 0:
            return True
        line = data[begin.end() - 1 : begin.end() + _MOST_HEADER_BYTES].partition(b"\n")[0]
        try:
            if len(line) > row_bytes and "row_bytes" in json.loads(line.decode("utf-8", "replace")):
                return True
        except DAMAGE:
            continue
    return False


def _row_type(entry: dict[str, Any], row_bytes: int) -> tuple[int, np.dtype[np.void]]:
    """(kind, structured type) of a row as the header describes it. Every row begins with its kind, column
    `row`."""
    names, formats, offsets = ["row"], ["<u4"], [0]
    for name, kind, length, offset in entry["fields"]:
        base = np.dtype(_TYPES[kind])
        if length < 1 or offset < 4 or offset + length * base.itemsize > row_bytes:
            raise ValueError("field")
        names.append(str(name))
        formats.append(f"({length},){base.str}" if length > 1 else base.str)
        offsets.append(offset)
    layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": row_bytes}
    return int(entry["kind"]), np.dtype(layout)  # type: ignore[call-overload]


def _split(body: bytes, types: dict[str, tuple[int, np.dtype[np.void]]], row_bytes: int) -> dict[str, Rows]:
    count = len(body) // row_bytes
    raw = np.frombuffer(body, dtype=np.uint8, count=count * row_bytes).reshape(count, row_bytes)
    kinds = np.ascontiguousarray(raw[:, :4]).view("<u4").ravel()
    return {
        name: np.ascontiguousarray(raw[kinds == number]).reshape(-1).view(layout)
        for name, (number, layout) in types.items()
    }
