"""The one place that opens files which a user names for reading; those that are written: homing/outputs.py.

What is read must be a regular file of a stated size at the most. A pipe without a writer would never end, a
device like /dev/zero neither, and a terminal would wait for the user. A pipe is read where one is meant: the
shell's `<(command)` and `/dev/stdin`. Every failure is one line (what, why).
"""

from __future__ import annotations

import errno
import os
import stat

from homing.errors import UserError, os_reason
from homing.late import pattern
from homing.light import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

#: Files that describe something: machines, costs, flags.
MOST_DESCRIPTION = 16 << 20
#: A source file. The largest generated ones that are known have some ten MiB.
MOST_SOURCE = 64 << 20

#: What is read at once of a file of unknown size.
_PIECE = 1 << 16

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: Pipes that are somebody's output by their names.
_SHELLS_PIPE = pattern(r"/dev/stdin|/dev/fd/[0-9]+|/proc/(self|thread-self|[0-9]+)/fd/[0-9]+")


def kind(mode: int) -> str:
    """What a file is, in words: `a pipe`; of a regular one empty."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def open_regular(path: str | os.PathLike[str], pipe: bool = False) -> BinaryIO:
    """Open a file for reading, without waiting for anybody. OSError where it cannot be opened, or is not a
    regular one. pipe: the shell's pipes may be read as well."""
    name = os.fspath(path)
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(file).st_mode
        if pipe and stat.S_ISFIFO(mode) and _SHELLS_PIPE.fullmatch(name):
            os.set_blocking(file, True)
        elif what := kind(mode):
            raise OSError(errno.EINVAL, f"is {what}, not a file", name)
        return open(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_bytes(path: str | os.PathLike[str], most: int, where: str = "", pipe: bool = False) -> bytes:
    """The whole file. UserError where it cannot be read, or has more than `most` bytes. where: what is named
    at the begin of messages, instead of the path."""
    where = where or os.fspath(path)
    try:
        with open_regular(path, pipe) as file:
            data = _read(file, most + 1)
    except OSError as error:
        raise UserError(f"{where}: {os_reason(error)}") from error
    except ValueError as error:  # a zero byte in the path
        raise UserError(f"{where!r}: no file can have this name") from error
    except MemoryError as error:
        raise UserError(f"{where}: {_no_memory(path)}") from error
    if len(data) > most:
        raise UserError(f"{where}: too large: more than {_show(most)}")
    return data


def _read(file: BinaryIO, most: int) -> bytes:
    """So many bytes at the most. A read takes memory for all that it is asked for: it is asked for what the
    file has, and for pieces where that is not known (a pipe, /proc)."""
    pieces, left, next_piece = [], most, os.fstat(file.fileno()).st_size + 1
    while left > 0 and (piece := file.read(min(left, max(next_piece, _PIECE)))):
        pieces.append(piece)
        left -= len(piece)
        next_piece = _PIECE
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _no_memory(path: str | os.PathLike[str]) -> str:
    """Why there is no memory for the file, and by which limit."""
    text = "no memory to read it"
    with suppress(OSError):
        if size := os.stat(path).st_size:
            text += f" ({_show(size)})"
    import resource  # no summary needs it

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return text if limit == resource.RLIM_INFINITY else f"{text}: ulimit -v allows {limit // 1024} KiB"


def read_text(path: str | os.PathLike[str], most: int, where: str = "", errors: str = "strict") -> str:
    """The same as text of UTF-8; line ends stay as they are."""
    try:
        return read_bytes(path, most, where).decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise UserError(f"{where or os.fspath(path)}: not UTF-8, at byte {error.start}") from error


def system_text(path: str) -> str:
    """What the kernel tells in a file of /proc or /sys; empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, ValueError):  # ValueError: a zero byte in the path, which another file told
        return ""


def _show(size: int) -> str:
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << bits:
            return f"{size >> bits} {unit}"
    return f"{size} bytes"
