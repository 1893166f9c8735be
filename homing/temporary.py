"""Temporary folders that are removed at the end; those of owners that were killed, by the next one.

A folder holds a file `lock`, which its owner keeps locked as long as it lives; the kernel gives the lock back
when the owner is gone, however it went. The file comes into the folder when it is locked already, so that a
lock that nobody holds means an owner that is dead. It may hold a note for whoever comes next.
"""

from __future__ import annotations

import os
import stat
import time

from homing.late import re
from homing.light import suppress
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCK = "lock"
#: How the lock file begins: a user's own folder may have a file of this name, too.
_MAGIC = b"homing folder\n"
_MOST_NOTE_BYTES = 1 << 20
#: An empty folder this old has an owner that was killed before it could lock anything.
_OLD_SECONDS = 60.0


def _remove(path: str | Path) -> None:
    with suppress(OSError):  # a folder with files only, as most are
        for entry in os.scandir(path):
            os.unlink(entry)
        os.rmdir(path)
        return
    import shutil  # takes longer to import than most folders to be removed

    shutil.rmtree(path, ignore_errors=True)


def remove_folder(path: str, lock: int) -> None:
    """A folder whose lock is held."""
    _remove(path)
    os.close(lock)


@dataclass
class Folder:
    path: Path
    #: The descriptor that holds the lock.
    lock: int

    def note(self, text: bytes) -> None:
        """Leave a note for whoever finds the folder abandoned."""
        os.pwrite(self.lock, text, len(_MAGIC))

    def remove(self) -> None:
        remove_folder(os.fspath(self.path), self.lock)


def make_folder(prefix: str, longest: int | None = None) -> Folder:
    """A new folder whose name begins with `prefix`; in /tmp where its path would be longer than `longest`.
    OSError where none can be made."""
    import fcntl
    import tempfile
    from pathlib import Path

    base = _base(prefix, longest)
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    try:
        lock = os.open(path / "new", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.pwrite(lock, _MAGIC, 0)
        os.rename(path / "new", path / _LOCK)
    except OSError:
        _remove(path)
        raise
    return Folder(path, lock)


def _base(prefix: str, longest: int | None) -> Path:
    import tempfile
    from pathlib import Path

    base = Path(tempfile.gettempdir())
    return base if longest is None or len(os.fspath(base)) <= longest - len(prefix) - 8 else Path("/tmp")


def abandoned(prefix: str, longest: int | None = None) -> Iterator[tuple[Path, bytes]]:
    """Our user's folders whose owners are gone, with their notes. Each is locked while the caller looks at
    it, so that nobody else does; it may be removed."""
    import fcntl

    with suppress(OSError):
        for path in _base(prefix, longest).glob(f"{prefix}*"):
            # Another's folder, or one that somebody else removes at this moment, is not our affair.
            with suppress(OSError):
                lock = _lock_of(path, prefix)
                if lock is None:
                    continue
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its owner lives
                    text = os.pread(lock, _MOST_NOTE_BYTES, 0)
                    same = os.path.samestat(os.fstat(lock), os.lstat(path / _LOCK))
                    if same and text.startswith(_MAGIC):
                        yield path, text.removeprefix(_MAGIC)
                finally:
                    os.close(lock)


def _lock_of(path: Path, prefix: str) -> int | None:
    """The lock of a folder of ours, open. None: it is not one, or its owner had no time to lock it (then it
    goes, if nothing is in it)."""
    status = os.lstat(path)
    name = re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", path.name)
    if name is None or not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return None
    try:
        return os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - status.st_mtime > _OLD_SECONDS:
            with suppress(FileNotFoundError):
                os.unlink(path / "new")
            os.rmdir(path)
        return None


def remove_abandoned(prefix: str, longest: int | None = None) -> None:
    """Remove our user's folders whose owners are gone."""
    for path, _ in abandoned(prefix, longest):
        _remove(path)


def is_used(*marks: bytes) -> bool:
    """Does a process know something by one of these texts, in its environment or as the name of a file that
    it has mapped? Processes of other users, who could not write into our folders, are not asked."""
    from pathlib import Path

    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        for file in ("environ", "maps"):
            with suppress(OSError):
                text = (process / file).read_bytes()
                if any(mark in text for mark in marks if mark):
                    return True
    return False
