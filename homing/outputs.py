"""The files that a command writes for its user.

None takes the place of what it is made of, of another one, or of what is no output of homing's: that is said
before anything starts, and looked at again when it is written. Every failure is one line (what, why).
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from homing.errors import UserError, os_reason
from homing.files import open_regular
from homing.late import pattern
from homing.light import contextmanager, suppress
from homing.streams import OutputError
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

#: Where a file is asked for.
STANDARD_OUTPUT = "-"
#: No summary's and no record's name: the words of --summary.
WORDS = ("stderr", "stdout", "none")

#: How the outputs begin, by what they are: one of the same kind may be replaced.
KINDS = {
    "results": pattern(rb'\{\n "schema": "homing-run/'),
    "page": pattern(rb'<!doctype html>(?s:.){0,250}<meta name="generator" content="homing '),
    "trace": pattern(rb'\{"displayTimeUnit":"ms","traceEvents":\['),
    "counts": pattern(rb'\{\n "version": '),
    # Also what `report` prints with --map and --compare.
    "summary": pattern(rb"homing( [0-9]|: )|counted +[0-9]|page map: | {11}\S.* -> |.+\nfound  "),
}
_LOOKED_AT = 4096


@dataclass
class Output:
    """A file that is asked for: by a flag, under the name that the user gave. kind: what it is, of KINDS;
    empty: a record, which has a rule of its own. path: the name with what is known of its %p."""

    flag: str
    name: str
    kind: str
    path: str


def summary_output(flag: str, name: str, path: str) -> list[Output]:
    """The output that a summary is; none where it goes to standard error, or nowhere."""
    if name in ("stderr", "none"):
        return []
    return [Output(flag, name, "summary", STANDARD_OUTPUT if name == "stdout" else path)]


def file_name(flag: str, name: str | None) -> str:
    """A file name as the command line has it; None: not given. UserError where there is none: -- begins the
    command, and the next flag was taken for a name."""
    if name == "":
        raise UserError(f"{flag}: the name is empty")
    if name is not None and name.startswith("--"):
        more = "" if name == "--" else f" ({name} is a flag; a file of this name is ./{name})"
        raise UserError(f"{flag}: the name is missing{more}")
    return name or ""


def absolute(flag: str, path: str) -> str:
    """The path from the root. UserError where it begins in a folder that is not there any more."""
    if os.path.isabs(path):
        return path
    try:
        return os.path.join(os.getcwd(), path)
    except OSError as error:
        raise UserError(f"{flag} {path}: the current folder was removed: give the whole path") from error


def check_outputs(outputs: Iterable[Output], inputs: Iterable[str] = ()) -> None:
    """UserError where one of the files will not be written, or would take the place of an input, of another
    one, or of something else, as far as that can be known before."""
    files: dict[object, Output] = {}
    asked = list(outputs)
    for one in asked:
        identity = _identity(one)
        if identity is not None and (other := files.setdefault(identity, one)) is not one:
            flags = f"{other.flag}, {one.flag}"
            if other.path == one.path == STANDARD_OUTPUT:
                raise UserError(f"{flags}: only one of them can have standard output")
            raise UserError(f"{flags}: one file ({one.name}) for both: give each its own")
    for path in inputs:
        if (taken := files.get(_identity(Output("", path, "", path)))) is not None:
            raise UserError(f"{taken.flag} {taken.name}: is the record that is read: it would be lost")
    for one in asked:
        if one.kind:
            _check_writable(one)


def _identity(one: Output) -> object:
    """What two names of one file have in common. None: devices and pipes, which take what comes."""
    try:
        found = os.fstat(1) if one.path == STANDARD_OUTPUT else os.stat(one.path)
    except OSError:
        found = None
    if found is not None and stat.S_ISREG(found.st_mode):
        return found.st_dev, found.st_ino
    if one.path == STANDARD_OUTPUT:
        return STANDARD_OUTPUT
    return None if found is not None else os.path.realpath(absolute(one.flag, one.path))


def _check_writable(one: Output) -> None:
    if one.path == STANDARD_OUTPUT:
        return
    where = f"{one.flag} {one.name}"
    path = absolute(one.flag, one.path)
    if not os.path.exists(path):
        check_folder(one.flag, one.name, os.path.dirname(path))
    elif os.path.isdir(path):
        raise UserError(f"{where}: is a folder")
    elif os.path.isfile(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise UserError(f"{where}: {os_reason(error)}") from error
        if problem := why_kept(path, one.kind):
            raise UserError(f"{where}: {problem}")
    elif not os.access(path, os.W_OK):
        raise UserError(f"{where}: cannot be written to")


def check_folder(flag: str, name: str, folder: str) -> None:
    """UserError where no file can be made in it."""
    if not os.path.isdir(folder):
        raise UserError(f"{flag} {name}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{flag} {name}: the folder {folder} cannot be written to")


def why_kept(path: str, kind: str) -> str:
    """Why an output of this kind must not take the place of what lies there; empty where it may: an earlier
    one of its kind, an empty file, a device or a pipe."""
    try:
        if not os.path.isfile(path):
            return ""
        with open_regular(path) as file:
            begin = file.read(_LOOKED_AT)
    except OSError as error:
        return f"cannot be looked at: {os_reason(error)}"
    if not begin or KINDS[kind].match(begin):
        return ""
    return f"is there, and holds no {kind} of homing's: it would be lost"


@contextmanager
def output(path: str, kind: str) -> Iterator[TextIO]:
    """A file for a text that is written once, after everything else; "-" is standard output. UserError where
    it cannot be written whole; nothing is left of it then."""
    if path == STANDARD_OUTPUT:
        try:
            sys.stdout.flush()
            with open(os.dup(1), "w", encoding="utf-8") as lent:
                yield lent
        except OSError as error:
            raise OutputError(error) from error
        return
    if problem := why_kept(path, kind):  # it came during the run
        raise UserError(f"{path}: {problem}")
    try:
        file = _open(path)
    except OSError as error:
        raise UserError(f"{path}: {os_reason(error)}") from error
    try:
        with file:
            yield file
    except BaseException as error:
        if os.path.isfile(path) and not os.path.islink(path):
            with suppress(OSError):
                os.unlink(path)
        if isinstance(error, OSError):
            raise UserError(f"{path}: {os_reason(error)}") from error
        raise


def _open(path: str) -> TextIO:
    """OSError also where it is a pipe that nobody reads: there one would wait for ever."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "nobody reads this pipe, device or socket", path) from error
        raise
    os.set_blocking(file, True)
    return open(file, "w", encoding="utf-8")
