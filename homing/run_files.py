"""The files that a run leaves: their names, what is looked at before the program starts, and the records that
its processes wrote."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import resource
import stat
from dataclasses import dataclass, field

from homing import environment
from homing.errors import UserError, os_reason

#: What a record takes before its first row is written (src/record/record.cpp: piece_bytes).
_RECORD_BYTES = 1 << 20
#: No summary's and no record's name: the words of --summary.
WORDS = ("stderr", "stdout", "none")


def file_name(flag: str, name: str | None) -> str:
    """A file name as the command line has it; None: not given. UserError where there is none: -- begins the
    command."""
    if name in ("", "--"):
        raise UserError(f"{flag}: the name is {'missing' if name else 'empty'}")
    return name or ""


def absolute(flag: str, path: str) -> str:
    """The path from the root. UserError where it begins in a folder that is not there any more."""
    if os.path.isabs(path):
        return path
    try:
        return os.path.join(os.getcwd(), path)
    except OSError as error:
        raise UserError(f"{flag} {path}: the current folder was removed: give the whole path") from error


def _pattern(flag: str, name: str) -> str:
    """The same for a name with %p, %r and %%."""
    folder = absolute(flag, name)[: -len(name)]
    return folder.replace("%", "%%") + name


def with_rank(name: str) -> str:
    """Each rank of an MPI job has a launcher of its own: they must not take each other's files. A device or a
    pipe is meant as it is."""
    if environment.mpi_rank(os.environ) is None or _holds(name, "%r"):
        return name
    plain = name.replace("%%", "%")
    return name if os.path.exists(plain) and not os.path.isfile(plain) else name + ".%r"


def _holds(name: str, sign: str) -> bool:
    return sign in name.replace("%%", "")


def check_writable(flag: str, name: str) -> None:
    """UserError where the file will not be written after the run, as far as that can be known before. %p may
    become any number."""
    path = absolute(flag, environment.expand_name(name, None, os.environ))
    if not os.path.exists(path):
        _check_folder(flag, name, os.path.dirname(path))
    elif os.path.isdir(path):
        raise UserError(f"{flag} {name}: is a folder")
    elif os.path.isfile(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise UserError(f"{flag} {name}: {os_reason(error)}") from error
    elif not os.access(path, os.W_OK):
        raise UserError(f"{flag} {name}: cannot be written to")


def _check_folder(flag: str, name: str, folder: str) -> None:
    if not os.path.isdir(folder):
        raise UserError(f"{flag} {name}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{flag} {name}: the folder {folder} cannot be written to")


def check_record(flag: str, name: str) -> None:
    """UserError where no record can be left under this name, or where it would take the place of something
    else."""
    path = absolute(flag, environment.expand_name(name, None, os.environ))
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise UserError(f"{flag} {name}: is a folder")
    _check_folder(flag, name, folder)
    if problem := no_room(folder):
        raise UserError(f"{flag} {name}: {problem}")
    # Of names with %p any may come: there the library looks, before it writes.
    for there in [] if _holds(name, "%p") else find_records(_pattern(flag, name)):
        if problem := why_kept(there):
            raise UserError(f"{flag} {name}: {there} {problem}")


def why_kept(path: str) -> str:
    """Why a record must not take the place of what lies there; empty where it may. Never a user's data, never
    a device: the rule of may_replace in src/record/record.cpp."""
    try:
        there = os.lstat(path)
        if not stat.S_ISREG(there.st_mode):
            return "is not a regular file: a record cannot take its place"
        with open(path, "rb") as file:
            from homing.record_file import MAGIC

            first = file.read(len(MAGIC))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be looked at: {os_reason(error)}"
    return "" if first in (b"", MAGIC) else "is there, and is no homing record: it would be lost"


def no_room(folder: str) -> str:
    """Why the library will not be able to write a record in this folder; empty where it will."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and limit < _RECORD_BYTES:
        return f"ulimit -f allows {limit // 1024} KiB, a record needs {_RECORD_BYTES // 1024} KiB"
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return f"{folder}: {os_reason(error)}"
    free = (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize
    if disk.f_blocks and free < _RECORD_BYTES:
        return f"{free // 1024} KiB are free in {folder}, a record needs {_RECORD_BYTES // 1024} KiB"
    return ""


def find_records(pattern: str) -> list[str]:
    """The files that the processes may have written, in the order of their names. A launcher that is one of
    several MPI ranks looks for its own rank's files only."""
    rank = environment.mpi_rank(os.environ)
    parts = re.split("(%[pr%])", pattern)
    digits = {"%p": "[0-9]+", "%r": "[0-9]+" if rank is None else str(rank), "%%": "%"}
    exact = re.compile("".join(digits.get(part, re.escape(part)) for part in parts))
    wild = {"%p": "[0-9]*", "%r": "[0-9]*", "%%": "%"}
    found = glob.glob("".join(wild.get(part, glob.escape(part)) for part in parts))
    return sorted(path for path in found if exact.fullmatch(path))


@dataclass
class Records:
    """The records of one run.

    Every process needs a file of its own: where the user's name has neither %p nor %r, they are written
    beside it, as FILE.PID, and a single one gets the name in the end. Without a name they lie in `folder`,
    for the summary only.
    """

    name: str
    folder: str
    #: HOMING_RECORD for the processes.
    pattern: str = field(init=False)
    _before: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        if self.name:
            path = _pattern("--record", self.name)
            self.pattern = path if self._chosen else path + ".%p"
        else:
            self.pattern = os.path.join(self.folder.replace("%", "%%"), "%p.homing")
        self._before = {path: _identity(path) for path in find_records(self.pattern)}

    @property
    def _chosen(self) -> bool:
        return _holds(self.name, "%p") or _holds(self.name, "%r")

    def no_room(self) -> str:
        """Why no record can be written now; empty: there is no reason known."""
        return no_room(os.path.dirname(self.pattern.replace("%%", "%")))

    def written(self) -> tuple[list[str], str]:
        """After the run: the records of its processes, and a line where some could not write theirs. A file
        from an earlier run is not ours."""
        records, lost = [], 0
        for path in find_records(self.pattern):
            identity = _identity(path)
            if identity is None or identity == self._before.get(path):
                continue
            if os.path.getsize(path):
                records.append(path)
            else:  # the mark of a library that found no room for a record
                lost += 1
                with contextlib.suppress(OSError):
                    os.unlink(path)
        if not lost:
            return records, ""
        who = "1 process" if lost == 1 else f"{lost} processes"
        return records, f"{who} at work could not write a record: {self.no_room() or 'no room for it'}"

    def keep(self, records: list[str]) -> str:
        """A single record gets the name that the user gave. Returns what the user should know. UserError
        where something else has that name by now."""
        if not self.name or self._chosen or not records:
            return ""
        if len(records) > 1:
            return f"{len(records)} processes left records: {self.name}.PID"
        path = absolute("--record", self.name.replace("%%", "%"))
        if problem := why_kept(path):
            raise UserError(f"{path} {problem}; the record is {records[0]}")
        try:
            os.replace(records[0], path)
        except OSError as error:
            raise UserError(f"{path}: {os_reason(error)}; the record is {records[0]}") from error
        return ""


def _identity(path: str) -> object:
    """What two files of one name, at different times, do not have in common; None: it is gone. The library
    replaces records, it never writes into old ones, but the new file may get the old one's inode: the header,
    with the process and the time of its start to the microsecond, decides."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(path, "rb") as file:
            return status.st_ino, file.read(1 << 14) or status.st_ctime_ns
    except OSError:
        return None
