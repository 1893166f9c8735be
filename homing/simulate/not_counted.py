"""Why nothing was counted in a run on a described machine."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

from homing.elf import read_elf
from homing.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

    from homing.records import Record

HOW_TO_BUILD = "build it with `homing cc` (homing cc gcc -fopenmp ..., or CC=homing-gcc FC=homing-gfortran)"
#: What the callbacks in each module of `homing cc` look for (simulator/callbacks.c).
_CALLBACKS = b"homing_simulator_enter_1\0"


def is_built_for_it(path: str) -> bool:
    """Was the program built by `homing cc`, or does it need GCC's sanitizer, in whose place we count?"""
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(_CALLBACKS) >= 0:
                return True
    except (OSError, ValueError):
        return False
    elf = read_elf(path)
    return elf is not None and any(needed.startswith(b"libtsan.so") for needed in elf.needed)


def why_not_counted(path: str, records: Iterable[Record], off: bool, only: str, signal: str) -> str:
    """A line. path: the command's file; records: of all processes; off: HOMING=off; only: --only; signal:
    that ended the command, or empty."""
    text = f"nothing was counted in {os.path.basename(path)}"
    if off:
        return f"{text}: HOMING=off is set"
    working = [record for record in records if not record.stepped_aside]
    built = [record for record in working if is_built_for_it(record.program)]
    if not built and not is_built_for_it(path):
        return f"{text}: {HOW_TO_BUILD}"
    if early := [record for record in built if record.end is None]:
        name = early[0].ended_by
        how = f"was ended by {name}" if name else "did not end in order"
        return f"{text}: it {how}, and no iteration had ended"
    if built:
        return text
    if signal:
        return f"{text}: it was ended by {signal} before its first parallel region"
    if only:
        return f"{text}: no program named {only} (--only) was"
    return f"{text}: it made no access, or left by _exit or the like before its first parallel region"
