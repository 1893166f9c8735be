"""A record as a file: a header that describes its rows, and the rows as tables (docs/record.md)."""

from __future__ import annotations

import struct

from homing import files
from homing.arrays import NDArray, np
from homing.errors import UserError
from homing.late import pattern
from homing.light import loads
from homing.record_format import FORMAT, MAGIC, PIECE_BYTES, RecordError, printable
from homing.values import dataclass

#: The types of fields that a header may name: NumPy's names, and their bytes.
_TYPES = {
    "char": ("S1", 1),
    "u8": ("<u1", 1),
    "u16": ("<u2", 2),
    "u32": ("<u4", 4),
    "u64": ("<u8", 8),
    "i32": ("<i4", 4),
    "i64": ("<i8", 8),
    "f32": ("<f4", 4),
    "f64": ("<f8", 8),
}
_MOST_HEADER_BYTES = 1 << 20
_MOST_ROW_BYTES = 1 << 16
#: Kinds of rows: each takes a look at all rows.
_MOST_KINDS = 1000
#: Records hold observations, not data: a larger file is not one of ours.
_MOST_FILE_BYTES = 4 << 30
#: How every record begins.
_BEGIN = pattern(MAGIC + rb"[0-9]{1,9}\n\{")
#: What reading a damaged header may raise.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Rows = NDArray[np.void]
    #: Names, types, lengths and offsets, as a header has them.
    Fields = list[tuple[str, str, int, int]]

#: Of each type of a header: struct's letter, NumPy's name.
_LETTERS = {
    "S1": "s",
    "<u1": "B",
    "<u2": "H",
    "<u4": "I",
    "<u8": "Q",
    "<i1": "b",
    "<i2": "h",
    "<i4": "i",
    "<i8": "q",
    "<f4": "f",
    "<f8": "d",
}


@dataclass(frozen=True)
class Column:
    """A column of a kind of rows: `count` values of one type (NumPy's name), `offset` bytes behind the row's
    begin."""

    name: str
    base: str
    count: int
    offset: int

    def read_as(self, kind: str) -> Column | None:
        """The column with values of a kind: u, i (with a sign), f, S (bytes). None where it has others: whole
        numbers have a sign or not, as they are read."""
        own = self.base.lstrip("<")[0]
        if own != kind and own in "ui" and kind in "ui":
            return Column(self.name, self.base.replace(own, kind), self.count, self.offset)
        return self if own == kind else None


class Tables:
    """The rows of a record by kind, in the order in which they were written: as plain values, and as
    structured arrays for what computes with many of them."""

    def __init__(self, body: bytes, types: dict[str, tuple[int, Fields]], row_bytes: int) -> None:
        self._body = body
        self._types = types
        self._row_bytes = row_bytes
        self._places: dict[int, list[int]] = {}
        for at, (kind,) in enumerate(struct.iter_unpack(f"<I{row_bytes - 4}x", body)):
            self._places.setdefault(kind, []).append(at * row_bytes)

    def has(self, name: str) -> bool:
        """Are there rows of this kind?"""
        return name in self._types and self._types[name][0] in self._places

    def columns(self, name: str) -> list[Column]:
        """Those of a kind, the first `row`; none where the header does not have it."""
        if name not in self._types:
            return []
        columns = [Column("row", "<u4", 1, 0)]
        for field, kind, length, offset in self._types[name][1]:
            columns.append(Column(str(field), _TYPES[kind][0], int(length), int(offset)))
        return columns

    def values(self, name: str, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
        """Each row of a kind as a dictionary of these columns: numbers, lists of numbers, bytes."""
        if name not in self._types:
            return
        kind, _ = self._types[name]
        readers = [(column.name, column.count, column.base, *_reader(column)) for column in columns]
        body = self._body
        for place in self._places.get(kind, ()):
            row: dict[str, Any] = {}
            for key, count, base, unpack, offset in readers:
                found = unpack(body, place + offset)
                row[key] = found[0] if count == 1 or base == "S1" else list(found)
            yield row

    def array(self, name: str, columns: Sequence[Column]) -> Rows:
        """All rows of a kind as a structured array of these columns; an empty one where the header does not
        have it."""
        if name not in self._types:
            return np.zeros(0, dtype=[("row", "<u4")])
        kind, _ = self._types[name]
        layout = {
            "names": [column.name for column in columns],
            "formats": [
                f"({column.count},){column.base}" if column.count > 1 else column.base for column in columns
            ],
            "offsets": [column.offset for column in columns],
            "itemsize": self._row_bytes,
        }
        places = self._places.get(kind, ())
        data = b"".join(self._body[place : place + self._row_bytes] for place in places)
        rows: Rows = np.frombuffer(data, dtype=np.dtype(layout))  # type: ignore[call-overload,assignment]
        return rows


def _reader(column: Column) -> tuple[Callable[[bytes, int], tuple[Any, ...]], int]:
    return struct.Struct(f"<{column.count}{_LETTERS[column.base]}").unpack_from, column.offset


@dataclass
class RecordFile:
    header: dict[str, Any]
    rows: Tables
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
    header = loads(data[start:stop].decode("utf-8", "replace"))
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
    rest = (len(data) - header_bytes) % row_bytes
    return RecordFile(
        header=header,
        rows=Tables(data[header_bytes : len(data) - rest], types, row_bytes),
        torn=rest != 0,
        whole_pieces=len(data) >= PIECE_BYTES and not any(data[len(data) - len(data) % PIECE_BYTES :]),
        out_of_room=len(data) % PIECE_BYTES == 0 and any(data[-row_bytes:][:4]),
    )


def _another_record(data: bytes, header_bytes: int, row_bytes: int) -> bool:
    """True where another record stands behind the rows, as `cat` puts it there. Text that a program names so
    is none: it is no row of its own, and too short for a header."""
    if data.find(MAGIC, header_bytes) < 0:
        return False
    for begin in _BEGIN.finditer(data, header_bytes):
        at = begin.start()
        if (at - header_bytes) % row_bytes == 0:
            return True
        line = data[begin.end() - 1 : begin.end() + _MOST_HEADER_BYTES].partition(b"\n")[0]
        try:
            if len(line) > row_bytes and "row_bytes" in loads(line.decode("utf-8", "replace")):
                return True
        except DAMAGE:
            continue
    return False


def _row_type(entry: dict[str, Any], row_bytes: int) -> tuple[int, Fields]:
    """(kind, fields) of a row as the header describes it. Every row begins with its kind, column `row`."""
    fields = entry["fields"]
    names = {"row"}
    for name, kind, length, offset in fields:
        if int(length) != length or int(offset) != offset:
            raise ValueError("field")
        if length < 1 or offset < 4 or offset + length * _TYPES[kind][1] > row_bytes:
            raise ValueError("field")
        names.add(str(name))
    if len(names) <= len(fields):
        raise ValueError("field")
    return int(entry["kind"]), fields
