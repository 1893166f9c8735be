"""Sizes as people write them in flags and descriptions: 4096, 64KiB, 8M, 1TiB. A bare number is bytes,
everywhere."""

from __future__ import annotations

import re

#: No data cache is smaller: a bare number that is less was meant in KiB.
LEAST_CACHE = 4 << 10

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]{1,18})\s*([KMGT]?)(?:iB|B)?\s*", re.IGNORECASE | re.ASCII)


def size(text: str | int) -> int:
    """Bytes of 4096, "64KiB", "8M"; ValueError where it is no size."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    found = _SIZE.fullmatch(str(text))
    if not found:
        raise ValueError(f"{text!r} is no size such as 64KiB")
    return int(found[1]) * _UNITS[found[2].upper()]


def show_size(value: int) -> str:
    """Bytes without loss: 8MiB, 1280KiB."""
    for unit in ("T", "G", "M", "K"):
        if value and value % _UNITS[unit] == 0:
            return f"{value // _UNITS[unit]}{unit}iB"
    return f"{value} bytes"
