"""The lab's temporary folder, removed at the end; that of a lab which was killed, by the next lab."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "homing-lab-"
_LONGEST = (
    80  # of the folder's path: with a socket's name behind it, it must fit the 108 bytes of sockaddr_un
)
_OLD_SECONDS = 60.0  # a younger folder may be one whose owner is about to lock it


def make_folder() -> tuple[Path, int]:
    """A new folder and the descriptor that holds its lock: close it after the folder is removed."""
    base = Path(tempfile.gettempdir())
    if len(os.fspath(base)) > _LONGEST - len(_PREFIX) - 8:
        base = Path("/tmp")
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        # Another's folder, or one that somebody else removes at this moment, is not our affair.
        with contextlib.suppress(OSError):
            status = folder.stat()
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _OLD_SECONDS:
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its lab lives
                shutil.rmtree(folder)
            finally:
                os.close(lock)
