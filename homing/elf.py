"""A quick look at an executable before it starts: can a preloaded library help it, and if not, why not.

Only the ELF header, the program headers and the dynamic section are read, by `struct`: the start of a program
must not wait for a full ELF library. Layout: System V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from homing.files import open_regular
from homing.values import dataclass

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 1, 5, 10
#: Nobody's dynamic string table is larger; a damaged file must not make us read gigabytes.
_MOST_STRINGS = 64 << 20

#: A symbol of each sanitizer runtime that owns the allocator or must be the first library. A program linked
#: with a static runtime exports it, a program linked with a shared one needs it.
_SANITIZERS = {
    b"__asan_init": "AddressSanitizer",
    b"__hwasan_init": "HWAddressSanitizer",
    b"__tsan_init": "ThreadSanitizer",
    b"__msan_init": "MemorySanitizer",
    b"__lsan_init": "LeakSanitizer",
}
_SANITIZER_LIBRARIES = {
    b"libasan.": "AddressSanitizer",
    b"libclang_rt.asan": "AddressSanitizer",
    b"libhwasan.": "HWAddressSanitizer",
    b"libclang_rt.hwasan": "HWAddressSanitizer",
    b"libtsan.": "ThreadSanitizer",
    b"libclang_rt.tsan": "ThreadSanitizer",
    b"liblsan.": "LeakSanitizer",
}

_MACHINES = {
    3: "32-bit x86",
    8: "MIPS",
    21: "PowerPC",
    22: "S/390",
    40: "32-bit Arm",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


@dataclass(frozen=True)
class Elf:
    """What the headers say. `strings` is the dynamic string table: names of symbols and needed libraries."""

    bits: int
    little: bool
    machine: int
    interpreter: str
    needed: tuple[bytes, ...]
    strings: bytes

    @property
    def architecture(self) -> str:
        """A name for people."""
        name = _MACHINES.get(self.machine, f"ELF machine {self.machine}")
        return f"{name} ({self.bits}-bit)" if self.machine == 62 and self.bits == 32 else name

    @property
    def sanitizer(self) -> str:
        """The sanitizer this program was linked with, or an empty text."""
        for library, name in _SANITIZER_LIBRARIES.items():
            if any(needed.startswith(library) for needed in self.needed):
                return name
        for symbol, name in _SANITIZERS.items():
            if b"\0" + symbol + b"\0" in self.strings:
                return name
        return ""


def read_elf(path: str) -> Elf | None:
    """The headers of an ELF file; None for any other file, an unreadable one or a damaged one."""
    try:
        with open_regular(path) as file:
            return _read(file)
    except (OSError, struct.error, ValueError, OverflowError):
        return None


def _read(file: BinaryIO) -> Elf | None:
    ident = file.read(16)
    if len(ident) < 16 or ident[:4] != b"\x7fELF" or ident[4] not in (1, 2) or ident[5] not in (1, 2):
        return None
    wide, little = ident[4] == 2, ident[5] == 1
    order = "<" if little else ">"
    header = struct.Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
    fields = header.unpack(file.read(header.size))
    machine, table, entry_bytes, entries = fields[1], fields[4], fields[8], fields[9]

    # (type, offset, address, bytes) of each segment.
    segment = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    if entry_bytes < segment.size:
        return None
    file.seek(table)
    raw = file.read(entry_bytes * entries)
    segments = []
    for at in range(0, len(raw) - segment.size + 1, entry_bytes):
        values = segment.unpack_from(raw, at)
        kind, offset, address, size = (
            (values[0], values[2], values[3], values[5])
            if wide
            else (values[0], values[1], values[2], values[4])
        )
        segments.append((kind, offset, address, size))

    interpreter = ""
    strings = b""
    needed: list[int] = []
    for kind, offset, _, size in segments:
        if kind == _PT_INTERP:
            file.seek(offset)
            interpreter = os.fsdecode(file.read(min(size, 4096)).rstrip(b"\0"))
        elif kind == _PT_DYNAMIC:
            file.seek(offset)
            raw = file.read(min(size, 1 << 20))
            tag = struct.Struct(order + ("qQ" if wide else "iI"))
            tags = [tag.unpack_from(raw, at) for at in range(0, len(raw) - tag.size + 1, tag.size)]
            needed = [value for key, value in tags if key == _DT_NEEDED]
            strings = _string_table(file, segments, dict(tags))
    names = tuple(strings[at : strings.find(b"\0", at)] for at in needed if at < len(strings))
    return Elf(64 if wide else 32, little, machine, interpreter, names, strings)


def _string_table(file: BinaryIO, segments: list[tuple[int, int, int, int]], tags: dict[int, int]) -> bytes:
    """The dynamic string table: its address, found through the segment that loads it."""
    address, size = tags.get(_DT_STRTAB, 0), tags.get(_DT_STRSZ, 0)
    for kind, offset, start, length in segments:
        if kind == _PT_LOAD and start <= address < start + length and size <= _MOST_STRINGS:
            file.seek(offset + address - start)
            return file.read(size)
    return b""


@dataclass(frozen=True)
class Verdict:
    """May the library be preloaded, and is there a reason to expect nothing of it? Empty `reason`: all is
    well."""

    preload: bool
    reason: str = ""


def judge(program: str, library: str, user: int | None = None) -> Verdict:
    """Look at `program` as the kernel and the dynamic loader will, for a user id (default: the caller's).

    `library` is the file to be preloaded: the program must have its architecture. A static or set-uid program
    ignores a preload, so the variable stays for the sake of its children; a program that would fail or
    complain (another architecture, another C library, a sanitizer) is started without.
    """
    elf = read_elf(program)
    if elf is None:
        return Verdict(True)  # a script, or something that the kernel will judge: its children count
    own = read_elf(library)
    if own is not None and (elf.bits, elf.little, elf.machine) != (own.bits, own.little, own.machine):
        return Verdict(
            False, f"{program} is a program for {elf.architecture}, homing's library for {own.architecture}"
        )
    if not elf.interpreter:
        return Verdict(
            True, f"{program} is linked statically, so no library can be preloaded: link it dynamically"
        )
    if "ld-musl" in os.path.basename(elf.interpreter):
        return Verdict(False, f"{program} uses the C library musl, homing's library needs glibc")
    if elf.sanitizer:
        return Verdict(False, f"{program} is built with {elf.sanitizer}, which allows no preload")
    privilege = _privilege(program, os.getuid() if user is None else user)
    if privilege:
        return Verdict(True, f"{program} is {privilege}, so the system allows no preload")
    return Verdict(True)


def _privilege(program: str, user: int) -> str:
    """Why the dynamic loader would run this program in secure mode (ld.so(8)), or an empty text."""
    try:
        status = os.stat(program)
    except OSError:
        return ""
    if status.st_mode & 0o4000 and status.st_uid != user:
        return "set-uid"
    if status.st_mode & 0o2010 == 0o2010 and status.st_gid != os.getgid():
        return "set-gid"
    if user != 0:
        try:
            if os.getxattr(program, "security.capability"):
                return "given file capabilities"
        except OSError:
            pass
    return ""
