"""Numbers of a page that are too many for JSON: one block of bytes, compressed, and a table of what lies
where in it."""

from __future__ import annotations

import base64
import gzip
from typing import Any

from homing.arrays import NDArray, np

#: Typed arrays of the browser by NumPy's names.
_TYPES = {
    "u1": "Uint8Array",
    "i2": "Int16Array",
    "u2": "Uint16Array",
    "u4": "Uint32Array",
    "f4": "Float32Array",
}
#: Each array begins at a multiple of this, as typed arrays must.
_ALIGNMENT = 8
#: Good enough, and twice as fast as the best.
_LEVEL = 6


def packed(data: bytes) -> str:
    """Bytes, compressed (gzip), in base64. The same bytes give the same text."""
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode("ascii")


class Arrays:
    """Collects arrays by name."""

    def __init__(self) -> None:
        self._data = bytearray()
        #: By name: the browser's type, the first byte, how many numbers.
        self.table: dict[str, tuple[str, int, int]] = {}

    def add(self, name: str, kind: str, values: NDArray[Any]) -> None:
        """Add an array as numbers of a kind (u1, i2, u2, u4, f4)."""
        flat = np.ascontiguousarray(values).astype(f"<{kind}").ravel()
        self._data += bytes(-len(self._data) % _ALIGNMENT)
        self.table[name] = (_TYPES[kind], len(self._data), len(flat))
        self._data += flat.tobytes()

    def packed(self) -> str:
        """All of it as text."""
        return packed(bytes(self._data))
