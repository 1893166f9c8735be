"""The folder through which host and guest talk, on the host's side.

The guest may write there whatever it likes: links in place of files, pipes, other folders under a known name.
So every name is looked up in a folder that is open already, links are never followed, what the host writes is
a new file, and what it reads is a regular one.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from homing.errors import os_reason

from .errors import LAB_FAILED, LabError

_MOST_BYTES = 1 << 16  # of what the guest says; outputs are read piece by piece


class ControlFolder:
    """An open folder. As a context manager it is closed in the end."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name  # for messages

    @classmethod
    def create(cls, path: Path) -> ControlFolder:
        path.mkdir()
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC), path.name)

    def __enter__(self) -> ControlFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Safe more than once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _error(self, name: str, error: OSError) -> LabError:
        return LabError(f"the lab's folder {self._name}: {name}: {os_reason(error)}", LAB_FAILED)

    def _open(self, name: str, flags: int, mode: int = 0o644) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self._descriptor)
        except OSError as error:
            raise self._error(name, error) from error

    def folder(self, name: str) -> ControlFolder:
        """A new folder in this one."""
        try:
            os.mkdir(name, dir_fd=self._descriptor)
        except OSError as error:
            raise self._error(name, error) from error
        return ControlFolder(self._open(name, os.O_RDONLY | os.O_DIRECTORY), f"{self._name}/{name}")

    def write(self, name: str, data: bytes = b"", mode: int = 0o644) -> None:
        """A new file."""
        try:
            with os.fdopen(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(data)
        except OSError as error:
            raise self._error(name, error) from error

    def output(self, name: str) -> BinaryIO:
        """A new, empty file that the guest appends to; to be read."""
        return os.fdopen(self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL), "rb")

    def read(self, name: str) -> str:
        """What the guest wrote; empty where it has not yet."""
        try:
            descriptor = os.open(
                name,
                os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                dir_fd=self._descriptor,
            )
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._error(name, error) from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise LabError(f"the lab's folder {self._name}: {name} is no file any more", LAB_FAILED)
            return file.read(_MOST_BYTES).decode(errors="replace")

    def line(self, name: str) -> str:
        """What the guest wrote in one line; empty while it is not there or not whole."""
        text = self.read(name)
        return text if text.endswith("\n") else ""

    def remove(self, name: str, files: tuple[str, ...]) -> None:
        """Remove a folder with these files in it, as far as the guest has left that possible."""
        with contextlib.suppress(OSError):
            inside = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._descriptor
            )
            try:
                for file in files:
                    with contextlib.suppress(OSError):
                        os.unlink(file, dir_fd=inside)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=self._descriptor)
