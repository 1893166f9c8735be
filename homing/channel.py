"""The launcher's channel: memory that every program of a run inherits as an open descriptor, so that what
homing did is known where no record can be written as a file. src/record/channel.hpp is the other end.

The memory is written by the programs of the run, which may be other users': nothing in it is believed, and
all of it is bounded.
"""

from __future__ import annotations

import errno
import os
import struct
import time

from homing.light import contextmanager, suppress
from homing.record_format import PIECE_BYTES, printable
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

VARIABLE = "HOMING_CHANNEL"

_MAGIC = b"homing-channel 1\n"
_HEAD_BYTES = 64 << 10
_MOST_PIECES = 256
#: magic, token, hash of HOMING_RECORD, device and inode of its folder, start; pieces, bytes of a piece.
_FIXED = struct.Struct("<32sQQQQqII")
#: programs, declined, next slot, next piece.
_COUNTERS = struct.Struct("<IIII")
_COUNTERS_AT = _FIXED.size
_OWNERS_AT = 128
_SLOTS_AT = 4096
_MOST_SLOTS = 240
_SLOT = struct.Struct("<IIiIiiiIQQQQQQ176s")
assert _FIXED.size == 80 and _SLOT.size == 256

#: Where a record is (Place in src/record/channel.hpp).
NOWHERE, FILE, CHANNEL = 1, 2, 3

#: Descriptor numbers: programs that open files get none as high as this, and the kernel's table of
#: descriptors, which grows with the highest number, stays small.
_HIGHEST = 4096
_MFD_NOEXEC_SEAL = 0x8


@dataclass
class Slot:
    """What one process at work said of itself."""

    place: int
    closed: bool
    process: int
    user: int
    #: errno: why there is no file; why the record is not in the channel where there is no file.
    file_error: int
    channel_error: int
    rank: int
    #: HOMING_RECORD was not what the launcher had set.
    other_name: bool
    #: (device, inode) of its file, as a stat has them.
    file: tuple[int, int]
    iterations: int
    moved: int
    refused: int
    program: str
    #: The record, where it is in the channel.
    data: bytes = b""


@dataclass
class Report:
    """What all programs of a run said."""

    slots: list[Slot]
    #: Program images that found the channel, and those of them where the user did not want homing.
    programs: int
    declined: int


class Channel:
    """Memory without a name. `close` it after the run; what outlives the run keeps its part alive."""

    def __init__(self, descriptor: int, token: int, pieces: int) -> None:
        self._descriptor = descriptor
        self._token = token
        #: So many pieces are there for records; 0: there is room for key numbers only.
        self.pieces = pieces

    @classmethod
    def make(cls, pattern: str) -> Channel | None:
        """For a run whose HOMING_RECORD is `pattern` (empty: none). None where the system has no such
        memory, or the limit on file sizes leaves no room for it."""
        import fcntl

        try:
            descriptor = _memory()
        except OSError:
            return None
        try:
            pieces = _size(descriptor)
            token = int.from_bytes(os.urandom(8), "little")
            device, inode = _folder(pattern)
            fixed = _FIXED.pack(
                _MAGIC,
                token,
                fnv_hash(os.fsencode(pattern)),
                device,
                inode,
                time.time_ns(),
                pieces,
                PIECE_BYTES,
            )
            os.pwrite(descriptor, fixed, 0)
            # Nobody can shrink what others have mapped.
            fcntl.fcntl(
                descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            )
        except OSError:
            os.close(descriptor)
            return None
        return cls(descriptor, token, pieces)

    @contextmanager
    def lent(self) -> Iterator[str]:
        """While a program is started: the value of HOMING_CHANNEL, and a descriptor that it inherits."""
        number = _inheritable(self._descriptor)
        status = os.fstat(number)
        try:
            # As long in all runs: the program's stack lies below its environment, and counts of a simulated
            # machine that are to be the same (--deterministic) depend on where it lies.
            parts = (os.getpid(), status.st_dev, status.st_ino, self._token)
            yield ":".join([str(number), *(f"{part:020d}" for part in parts)])
        finally:
            os.close(number)

    def report(self) -> Report:
        """What is in the channel now."""
        programs, declined, _, _ = _COUNTERS.unpack(os.pread(self._descriptor, _COUNTERS.size, _COUNTERS_AT))
        owners = struct.unpack(f"<{self.pieces}I", os.pread(self._descriptor, 4 * self.pieces, _OWNERS_AT))
        slots = []
        all_slots = os.pread(self._descriptor, _MOST_SLOTS * _SLOT.size, _SLOTS_AT)
        for number, words in enumerate(_SLOT.iter_unpack(all_slots)):
            if words[0] not in (NOWHERE, FILE, CHANNEL):
                continue
            slot = _slot(words)
            if slot.place == CHANNEL:
                mine = [index for index, owner in enumerate(owners) if owner == number + 1]
                slot.data = self._record(mine, used=words[10], closed=slot.closed)
            slots.append(slot)
        return Report(slots, programs, declined)

    def _record(self, pieces: list[int], used: int, closed: bool) -> bytes:
        """The record in these pieces. One that was not closed has the length of a file whose process was
        killed: whole pieces."""
        data = b"".join(
            os.pread(self._descriptor, PIECE_BYTES, _HEAD_BYTES + index * PIECE_BYTES) for index in pieces
        )
        used = min(used, len(data))
        return data[:used] if closed else data[:used].ljust(-(-used // PIECE_BYTES) * PIECE_BYTES, b"\0")

    def close(self) -> None:
        os.close(self._descriptor)


def fnv_hash(text: bytes) -> int:
    """FNV-1a, 64 bits, as in src/base/fnv_hash.hpp."""
    value = 14695981039346656037
    for byte in text:
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return value


def _slot(words: tuple[Any, ...]) -> Slot:
    place, closed, process, user, file_error, channel_error, rank, other_name = words[:8]
    device, inode, _, iterations, moved, refused, name = words[8:]
    return Slot(
        place,
        bool(closed),
        process,
        user,
        file_error,
        channel_error,
        rank,
        bool(other_name),
        (device, inode),
        iterations,
        moved,
        refused,
        printable(name.split(b"\0")[0].decode("utf-8", "replace")) or "?",
    )


def _memory() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create("homing-channel", flags | _MFD_NOEXEC_SEAL)
    except OSError:  # kernels before 6.3 do not know that flag
        descriptor = os.memfd_create("homing-channel", flags)
    if descriptor > 2:
        return descriptor
    import fcntl

    # Standard streams that the user has closed stay closed.
    above = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return above


def _size(descriptor: int) -> int:
    """Give the memory its size, once and for all: the number of pieces. It takes memory where it is used
    only. OSError where the limit on file sizes, which holds for this, too, leaves no room for the head."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    wanted = _HEAD_BYTES + _MOST_PIECES * PIECE_BYTES
    most = soft
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Ours for a moment; the program has the limit that its user set.
        for limits in ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (hard, hard)):
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                most = limits[0]
                break
    try:
        pieces = _MOST_PIECES
        if most != resource.RLIM_INFINITY:
            pieces = min(pieces, max(0, (most - _HEAD_BYTES) // PIECE_BYTES))
        os.ftruncate(descriptor, _HEAD_BYTES + pieces * PIECE_BYTES)
        return pieces
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _folder(pattern: str) -> tuple[int, int]:
    """Device and inode of the folder of the records; zeros where it is not one folder, or not there."""
    folder = os.path.dirname(pattern.replace("%%", ""))
    if not pattern or "%" in folder:
        return 0, 0
    try:
        status = os.stat(os.path.dirname(pattern.replace("%%", "%")))
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _inheritable(descriptor: int) -> int:
    """A copy that programs inherit, under a number that none of them would get from open(): the first one
    beyond the soft limit where that can be had, else the last one below it."""
    import fcntl
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 2 < soft < _HIGHEST:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft + 1, max(hard, soft + 1)))
            try:
                return fcntl.fcntl(descriptor, fcntl.F_DUPFD, soft)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # From above: other launchers, which started this one, have theirs there.
    for number in range(min(soft, _HIGHEST) - 1, 2, -1):
        try:
            os.fstat(number)
        except OSError:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD, number)
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
