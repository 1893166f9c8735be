"""Modules that the translation makes of COMMON blocks, for the files that use them.

Their text stands in the main program's file, which a build may compile after the others, or at the same
time. So each command reads the modules itself, into a folder of its own; what they hold lies in the object
of the main program.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence

from homing.errors import UserError
from homing.translate.program.shared import COMMON

_MODULE = re.compile(
    rf"^[ \t]*module[ \t]+{COMMON}(?P<name>\w+)[ \t]*\r?$.*?^[ \t]*end[ \t]*module\b[^\n]*(?:\n|$)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_USED = re.compile(rf"^[ \t]*use[ \t]+{COMMON}(\w+)", re.IGNORECASE | re.MULTILINE)
#: What decides how a source is read, and what its types are.
_READING = ("-f", "-std=", "-I", "-m")


def made_in(path: str, text: str) -> dict[str, tuple[str, str]]:
    """The modules in a translated file: how such a file's name ends, and the text."""
    ending = os.path.splitext(path)[1]
    return {found["name"].lower(): (ending, found[0]) for found in _MODULE.finditer(text)}


def module_flags(
    modules: dict[str, tuple[str, str]],
    texts: Iterable[str],
    compiler: str,
    arguments: Sequence[str],
    folder: str,
) -> list[str]:
    """Flags with which a compiler finds the modules that the texts use. UserError: it cannot read them."""
    wanted = {name.lower() for text in texts for name in _USED.findall(text)}
    if wanted.isdisjoint(modules):
        return []
    place = os.path.join(folder, "commons")
    if not os.path.isdir(place):
        os.makedirs(place)
        flags = [word for word in arguments if word.startswith(_READING)]
        for name, (ending, text) in sorted(modules.items()):
            path = os.path.join(place, f"{name}{ending}")
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            command = [compiler, *flags, "-fsyntax-only", "-J", place, path]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise UserError(f"the module of COMMON block '{name}' is not read: {done.stderr.strip()}")
    return [f"-I{place}"]
