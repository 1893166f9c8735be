"""The files that a run leaves: their names, what is looked at before the program starts, and the records that
its processes wrote."""

from __future__ import annotations

import errno
import os
import stat

from homing import environment
from homing.channel import FILE, VARIABLE, Channel, Report, Slot
from homing.errors import UserError, os_reason
from homing.late import re
from homing.light import contextmanager, suppress
from homing.record_format import MAGIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a record takes before its first row is written (src/record/record.cpp: piece_bytes).
_RECORD_BYTES = 1 << 20
#: Files without a name, in the launcher's memory.
_MEMORY = "/proc/self/fd/"


def _pattern(flag: str, name: str) -> str:
    """The same for a name with %p, %r and %%."""
    from homing.outputs import absolute

    folder = absolute(flag, name)[: -len(name)]
    return folder.replace("%", "%%") + name


def with_rank(name: str) -> str:
    """Each task of a job has a launcher of its own: they must not take each other's files. A device or a
    pipe is meant as it is."""
    from homing.outputs import STANDARD_OUTPUT

    rank = environment.job_rank(os.environ)
    if rank is None or _holds(name, "%r") or name == STANDARD_OUTPUT:
        return name
    plain = name.replace("%%", "%")
    return name if os.path.exists(plain) and not os.path.isfile(plain) else f"{name}.{rank}"


def _holds(name: str, sign: str) -> bool:
    return sign in name.replace("%%", "")


def check_record(flag: str, name: str) -> None:
    """UserError where no record can be left under this name, or where it would take the place of something
    else."""
    from homing.outputs import STANDARD_OUTPUT, absolute, check_folder

    if name == STANDARD_OUTPUT:
        raise UserError(f"{flag} -: a record is no stream: the processes of a run write into it as a file")
    path = absolute(flag, environment.expand_name(name, None, os.environ))
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise UserError(f"{flag} {name}: is a folder")
    check_folder(flag, name, folder)
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
            first = file.read(len(MAGIC))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be looked at: {os_reason(error)}"
    return "" if first in (b"", MAGIC) else "is there, and is no homing record: it would be lost"


def no_room(folder: str) -> str:
    """Why the library will not be able to write a record in this folder; empty where it will."""
    import resource

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
    rank = environment.job_rank(os.environ) if "%r" in pattern else None
    known = {"%%": "%"} if rank is None else {"%%": "%", "%r": str(rank)}
    paths = [""]
    for at, component in enumerate(pattern.split("/") if pattern else []):
        parts = _parts(component, known)
        begin = "/" if at else ""
        if all(part is not None for part in parts):
            paths = [path + begin + "".join(map(str, parts)) for path in paths]
        else:
            paths = [
                f"{path}{begin}{name}"
                for path in paths
                for name in _names(path + begin)
                if _fits(name, parts)
            ]
    return sorted(path for path in paths if os.path.lexists(path))


def _parts(pattern: str, known: dict[str, str]) -> list[str | None]:
    """The parts of a name: texts, and None for a number that may be any."""
    first, *others = pattern.replace("%%", "%\0").split("%")
    parts: list[str | None] = [first]
    for other in others:
        sign = "%" + ("%" if other[:1] == "\0" else other[:1])
        if sign in known:
            parts += [known[sign] + other[1:]]
        elif sign in ("%p", "%r"):
            parts += [None, other[1:]]
        else:
            parts += ["%" + other]
    return parts


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


def _fits(name: str, parts: list[str | None]) -> bool:
    """Is this a name of these parts?"""
    if not parts:
        return not name
    first, rest = parts[0], parts[1:]
    if first is not None:
        return name.startswith(first) and _fits(name[len(first) :], rest)
    digits = len(name) - len(name.lstrip("0123456789"))
    return any(_fits(name[end:], rest) for end in range(1, digits + 1))


class Records:
    """The records of one run.

    Every process needs a file of its own: where the user's name has neither %p nor %r, they are written
    beside it, as FILE.PID, and a single one gets the name in the end. Without a name they lie in `folder`,
    for the summary only; an empty `folder`: there is none. What cannot be written as a file comes through the
    channel (homing/channel.py), except from other machines (`local` False), where nobody would find it.
    """

    def __init__(self, name: str, folder: str, local: bool = True, ended: Channel | None = None) -> None:
        """local: is the run on this machine? A guest's processes write into `folder`, their records get to
        their place after the run. ended: the channel of a run that has ended (homing/run_finish.py); None:
        the run is still to come."""
        self.name = name
        self.folder = folder
        #: HOMING_RECORD for the processes.
        self.pattern = record_pattern(name, folder)
        #: What the programs of the run said through the channel; None: nobody was asked.
        self.said: Report | None = None
        #: The folder where named records are in the end; empty: they have no name.
        self._place = ""
        if name and not local:
            self._place = os.path.dirname(self.pattern.replace("%%", "%"))
            self.pattern = os.path.join(folder.replace("%", "%%"), os.path.basename(self.pattern))
        self._before: dict[str, object] = {}  # nothing had a name like that before, where the run has ended
        self._channel = ended
        if ended is None:
            self._before = {path: _identity(path) for path in find_records(self.pattern)}
            self._channel = Channel.make(self.pattern) if local else None

    @property
    def _chosen(self) -> bool:
        return chooses_process(self.name)

    @contextmanager
    def lent(self, variables: dict[str, str]) -> Iterator[None]:
        """While a program is started: what it needs of the records is in its variables."""
        variables["HOMING_RECORD"] = self.pattern
        variables.pop(VARIABLE, None)  # another launcher's, which started this one
        from contextlib import ExitStack

        with ExitStack() as stack:
            with suppress(OSError):
                if self._channel is not None:
                    variables[VARIABLE] = stack.enter_context(self._channel.lent())
            yield

    def no_room(self) -> str:
        """Why no record can be written now; empty: there is no reason known."""
        if self._channel is not None and self._channel.pieces > 0:
            return ""
        return (
            no_room(self._place or os.path.dirname(self.pattern.replace("%%", "%")))
            if self.pattern
            else "there is no folder"
        )

    def written(self) -> tuple[list[str], str]:
        """After the run: the records of its processes, and a line where some could not leave theirs. A file
        from an earlier run is not ours."""
        records, marks = [], 0
        for path in find_records(self.pattern):
            identity = _identity(path)
            if identity is None or identity == self._before.get(path):
                continue
            if os.path.getsize(path):
                records.append(self._at_its_place(path))
            else:  # the mark of a library that found no room for a record
                marks += 1
                with suppress(OSError):
                    os.unlink(path)
        lost: list[str] = []
        if self._channel is not None:
            self.said = self._channel.report()
            self._channel.close()
            self._channel = None
            records, lost = self._with_delivered(records, self.said)
        if marks:
            who = "1 process" if marks == 1 else f"{marks} processes"
            lost.append(f"{who} at work could not write a record: {self.no_room() or 'no room for it'}")
        return records, "; ".join(lost)

    def _with_delivered(self, records: list[str], said: Report) -> tuple[list[str], list[str]]:
        """The records with those that came through the channel, and a line for each process whose record is
        nowhere."""
        files = {(status.st_dev, status.st_ino): path for path in records if (status := os.lstat(path))}
        lost = []
        for slot in said.slots:
            there = files.get(slot.file)
            if slot.data:
                path, problem = self._deliver(slot, there)
                if problem:
                    lost.append(f"{path}: {problem}; the summary has it all the same")
                if there in records:
                    records.remove(there)
                records.append(path if not problem else memory_file(slot.data))
            elif slot.place != FILE or there is None:
                lost.append(why_lost(slot))
        return records, lost

    def _deliver(self, slot: Slot, there: str | None) -> tuple[str, str]:
        """Write a record that came through the channel where the process would have written it: the path, and
        why that was not possible."""
        if not self.pattern:
            return "the record", "there is no folder"
        rank = str(max(0, slot.rank))
        values = {"%p": str(slot.process), "%r": rank, "%%": "%"}
        path = there or re.sub("%[pr%]", lambda found: values[found[0]], self.pattern)
        for number in range(2, 1000):
            if there or not os.path.lexists(path) or self._is_old(path):
                break
            # Another process of the run has this number (in a PID namespace), or had it (before an exec).
            path = f"{path.removesuffix(f'-{number - 1}')}-{number}"
        try:
            write_aside(path, slot.data)
        except OSError as error:
            return path, os_reason(error)
        return path, ""

    def _is_old(self, path: str) -> bool:
        """May a record of this run take the place of what lies there?"""
        if why_kept(path):
            return False
        return os.path.getsize(path) == 0 or _identity(path) == self._before.get(path)

    def _at_its_place(self, path: str) -> str:
        """Where the record is now. UserError where something else has its name."""
        if not self._place:
            return path
        there = os.path.join(self._place, os.path.basename(path))
        if problem := why_kept(there):
            raise UserError(f"{there} {problem}")
        try:
            with open(path, "rb") as file:
                write_aside(there, file.read())
        except OSError as error:
            raise UserError(f"{there}: {os_reason(error)}") from error
        return there

    def keep(self, records: list[str]) -> str:
        """A single record gets the name that the user gave. Returns what the user should know. UserError
        where something else has that name by now."""
        if not self.name or self._chosen or not records or is_memory_file(records[0]):
            return ""
        if len(records) > 1:
            return f"{len(records)} processes left records: {self.name}.PID"
        from homing.outputs import absolute

        path = absolute("--record", self.name.replace("%%", "%"))
        if problem := why_kept(path):
            raise UserError(f"{path} {problem}; the record is {records[0]}")
        try:
            os.replace(records[0], path)
        except OSError as error:
            raise UserError(f"{path}: {os_reason(error)}; the record is {records[0]}") from error
        return ""


def record_pattern(name: str, folder: str) -> str:
    """HOMING_RECORD of a run whose user gave this name (empty: none) and whose records lie in `folder`
    otherwise."""
    if name:
        path = _pattern("--record", name)
        return path if chooses_process(name) else path + ".%p"
    return os.path.join(folder.replace("%", "%%"), "%p.homing") if folder else ""


def chooses_process(name: str) -> bool:
    """Does the user's name have a place for the process or its rank?"""
    return _holds(name, "%p") or _holds(name, "%r")


def why_lost(slot: Slot) -> str:
    """What is known of a process whose record is nowhere."""
    if slot.other_name:
        reason = "is where HOMING_RECORD in its environment says"
    elif slot.place == FILE:
        reason = "was removed during the run"
    else:
        reasons = [_strerror(slot.file_error)] if slot.file_error else []
        if slot.channel_error:
            reasons.append(f"nor could it go to the launcher's memory: {_strerror(slot.channel_error)}")
        reason = f"could not be written ({'; '.join(reasons) or 'it ended before it could say why'})"
    known = f"{slot.iterations:,} iterations, {slot.moved:,} pages moved"
    if slot.refused:
        known += f", {slot.refused:,} refused"
    return f"the record of {slot.program} (process {slot.process}) {reason}; known of it: {known}"


def _strerror(number: int) -> str:
    # ENOTDIR is what the library says of a folder that is not ours (src/record/file.hpp).
    return "its file system is not the launcher's" if number == errno.ENOTDIR else os.strerror(number)


def write_aside(path: str, data: bytes) -> None:
    """Write a file beside its place and give it its name: nobody sees a half, and a link is not followed.
    OSError."""
    aside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise


def save(path: str) -> str:
    """Move a record out of its run's temporary folder: where it is then. OSError."""
    import tempfile

    descriptor, saved = tempfile.mkstemp(prefix="homing-", suffix=".record")
    os.close(descriptor)
    os.replace(path, saved)
    return saved


def memory_file(data: bytes) -> str:
    """The path of a file that lies in this process's memory."""
    descriptor = os.memfd_create("homing-record", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    return f"{_MEMORY}{descriptor}"


def is_memory_file(path: str) -> bool:
    return path.startswith(_MEMORY)


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
