"""The text around lines of source: of files that are here, and were not changed since the run."""

from __future__ import annotations

import os
from collections.abc import Iterable

from homing.errors import UserError
from homing.files import read_text
from homing.record_format import named, printable

#: Lines before and after the one that is asked for.
AROUND = 6
#: Larger files are not source that somebody wrote.
_MOST_BYTES = 8 << 20
#: Of a line, so many characters.
_MOST_WIDTH = 200
#: Files that are read at most.
_MOST_FILES = 300


class Snippets:
    """Collects pieces of files. newest: a file that was changed later (seconds since 1970) is another one."""

    def __init__(self, newest: float) -> None:
        self._newest = newest
        self._wanted: dict[str, set[int]] = {}

    def want(self, file: str | None, line: int | None) -> None:
        """The text around this line is wanted."""
        if file and line:
            self._wanted.setdefault(file, set()).update(range(max(1, line - AROUND), line + AROUND + 1))

    def read(self) -> tuple[dict[str, dict[int, str]], dict[str, str]]:
        """Lines by file and number, and why other files have none."""
        found: dict[str, dict[int, str]] = {}
        missing: dict[str, str] = {}
        for file, numbers in list(self._wanted.items())[:_MOST_FILES]:
            try:
                if os.stat(named(file)).st_mtime > self._newest:
                    missing[file] = "changed since the run"
                    continue
                lines = read_text(named(file), _MOST_BYTES, errors="replace").splitlines()
            except (OSError, ValueError):
                missing[file] = "not on this machine"
                continue
            except UserError:
                missing[file] = "not readable here"
                continue
            found[file] = _some(lines, numbers)
        return found, missing


def _some(lines: list[str], numbers: Iterable[int]) -> dict[int, str]:
    return {
        number: printable(lines[number - 1].expandtabs(4)[:_MOST_WIDTH].rstrip())
        for number in sorted(numbers)
        if number <= len(lines)
    }
