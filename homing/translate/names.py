"""Names that the translation adds to a program."""

from __future__ import annotations

import zlib

#: Fortran's names have 63 characters at the most (Fortran 2018, 6.2.2); some of ours are made longer by 3.
_LONGEST = 60
#: Of a longer name this much is left, before the digits that tell it from others.
_KEPT = 50


def added(name: str) -> str:
    """The name, or where it is too long for Fortran a shorter one that no other has."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_KEPT]}_{zlib.crc32(name.encode()):08x}"
