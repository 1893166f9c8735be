"""What an object remembers of its translation, for the command that links it.

A section of the object that is not loaded holds one line of JSON for each source. It goes where the object
goes: into archives (ar(5)), shared libraries and programs. Readers find it by the ELF section's name.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from homing.errors import UserError, os_reason
from homing.translate.positions import Position
from homing.translate.program.shared import Shared

SECTION = ".homing.translate"
#: Of the lines: another one's are not read.
_EDITION = 1
#: Nobody's records are longer; a damaged file must not make us read gigabytes.
_MOST_BYTES = 64 << 20
_ARCHIVE, _THIN = b"!<arch>\n", b"!<thin>\n"
_MEMBER_HEAD = 60
_ELF = b"\x7fELF"


@dataclass(frozen=True)
class Record:
    """One source in one object. text: digest of what the compiler would have read; output: of what it read;
    state: of the program in view of which it was translated; words: the command, without launchers."""

    source: str
    target: str
    phases: bool
    flags: tuple[str, ...]
    fixed_columns: int
    text: str
    output: str
    state: str
    concerned: bool  # is anything in that program translated?
    arrays: bool  # is any of its arrays distributed?
    shared: tuple[tuple[str, str, bool, str, int, int, bool], ...]  # what others must know of this file
    folder: str  # where the command ran
    words: tuple[str, ...]
    edition: int = _EDITION

    def names(self) -> list[Shared]:
        """What is shared, as the translation knows it."""
        return [
            Shared(name, module, fortran, Position(file, line, column), procedure)
            for name, module, fortran, file, line, column, procedure in self.shared
        ]


@dataclass
class Found:
    """The records of one file of a command. members: how many objects of it have none."""

    path: str
    records: list[Record] = field(default_factory=list)
    without: int = 0
    shared: bool = False  # a shared library, which was linked already


def keep(records: Sequence[Record], path: str) -> None:
    """Put the records into the object, or the library, behind those that the linker has put there. It is
    replaced at once, or stays what it was."""
    lines = "".join(json.dumps(asdict(one), separators=(",", ":")) + "\n" for one in records)
    if path.endswith(".s"):
        text = lines.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f'\t.section {SECTION},"",@progbits\n\t.ascii "{text}"\n')
        return
    tool = shutil.which("objcopy") or shutil.which("llvm-objcopy")
    if tool is None:
        raise UserError("objcopy (binutils) is not here: objects cannot remember how they were translated")
    folder, name = os.path.split(os.path.abspath(path))
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as aside:
            data, made = os.path.join(aside, "record"), os.path.join(aside, name)
            with open(path, "rb") as object_file:
                before = _section(object_file.read())
            with open(data, "wb") as file:
                file.write(before + lines.encode("utf-8", "surrogateescape"))
            change = "--update-section" if before else "--add-section"
            command = [tool, change, f"{SECTION}={data}", path, made]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise UserError(
                    f"{path}: the record of its translation cannot be kept: {done.stderr.strip()}"
                )
            os.replace(made, path)
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error


def records_of(path: str) -> Found:
    """The records in an object, an archive or a shared library. What cannot be read has none: the linker
    says what is wrong with it."""
    found = Found(path)
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        magic = file.read(8)
        if magic in (_ARCHIVE, _THIN):
            for _, data in _members(path, magic + file.read(), magic == _THIN):
                found.without += not _add(found, data)
        elif magic.startswith(_ELF):
            data = magic + file.read()
            found.shared = len(data) > 17 and data[16 + (data[5] != 1)] == 3
            found.without += not _add(found, data)
    return found


def _add(found: Found, data: bytes) -> bool:
    """The records of one object. Is there any, or is it no object?"""
    if not data.startswith(_ELF):
        return True
    lines = _section(data).replace(b"\0", b"\n").split(b"\n")
    made = [json.loads(line) for line in lines if line.strip()]
    for one in made:
        if one.get("edition") == _EDITION:
            shared = tuple(tuple(entry) for entry in one["shared"])
            lists = {"flags": tuple(one["flags"]), "words": tuple(one["words"]), "shared": shared}
            found.records.append(Record(**{**one, **lists}))
    return bool(made)


def _members(path: str, data: bytes, thin: bool) -> Iterator[tuple[str, bytes]]:
    """The name and the contents of each member of an archive."""
    at = len(_ARCHIVE)
    names = b""
    while at + _MEMBER_HEAD <= len(data):
        head = data[at : at + _MEMBER_HEAD]
        name, size = head[:16].rstrip(), int(head[48:58])
        at += _MEMBER_HEAD
        special = name in (b"/", b"//", b"/SYM64/")
        if special or not thin:
            body = data[at : at + size]
            at += size + size % 2
            if name == b"//":
                names = body
            elif not special:
                yield os.fsdecode(_label(name, names)), body
            continue
        label = os.fsdecode(_label(name, names))
        with open(os.path.join(os.path.dirname(path), label), "rb") as file:
            yield label, file.read()


def _label(name: bytes, names: bytes) -> bytes:
    """A member's name, which may stand in the table of long ones."""
    return names[int(name[1:]) :].split(b"/\n")[0] if name[1:].isdigit() else name.rstrip(b"/")


def _section(data: bytes) -> bytes:
    """The records in an ELF file; nothing where there are none. ValueError: it is damaged."""
    from elftools.elf.elffile import ELFFile

    try:
        section = ELFFile(io.BytesIO(data)).get_section_by_name(SECTION)
        if section is None or section.data_size >= _MOST_BYTES:
            return b""
        return bytes(section.data())
    except Exception as error:  # pyelftools raises of many kinds on damaged files
        raise ValueError("a damaged ELF file") from error


def unrecorded(path: str) -> Iterator[tuple[str, set[str]]]:
    """The objects of a file that have no record: what to call each, and the names that it needs from
    others."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] not in (_ARCHIVE, _THIN):
        yield path, _needed(path)
        return
    for label, member in _members(path, data, data[:8] == _THIN):
        if member.startswith(_ELF) and not _section(member).strip(b"\0\n"):
            with tempfile.NamedTemporaryFile(prefix="homing-", suffix=".o") as made:
                made.write(member)
                made.flush()
                yield f"{path}({label})", _needed(made.name)


def _needed(path: str) -> set[str]:
    command = ["nm", "-P", path]
    if ".so" in os.path.basename(path):
        command.insert(1, "-D")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    except OSError:
        raise UserError("nm (binutils) is not here: what objects need cannot be known") from None
    words = [line.split() for line in done.stdout.splitlines() if line.strip()]
    # U: not defined; w, v: the same, weak; C: a COMMON block's.
    return {one[0].partition("@")[0] for one in words if len(one) > 1 and one[1] in "UwvC"}
