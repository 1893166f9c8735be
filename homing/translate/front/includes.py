"""What a C source includes, looked at before libclang reads it: a pipe without a writer would hold it up for
ever, and of a device it would read until there is no memory left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from homing.compilers import values_of
from homing.files import MOST_SOURCE, open_regular
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile

_INCLUDE = re.compile(
    r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(?:include|include_next|import|embed)\b[ \t]*"
    r'(?:"([^"\n]+)"|<([^>\n]+)>|([A-Za-z_]\w*))',
    re.MULTILINE,
)
#: Names of files that stand in macros, for `#include NAME`.
_MACRO = re.compile(
    r'^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE
)
#: A line that goes on in the next.
_CONTINUED = re.compile(r"\\(?:\r\n|\n)")
_MOST_FILES = 10_000


def check_includes(source: SourceFile, flags: Sequence[str]) -> None:
    """TranslationError at each #include of `source` by which something else than a regular file is read, or a
    file that is too large; also where that happens in a file that is included. flags: of the preprocessor.
    What no compiler would find is for the compiler to say."""
    here = os.path.dirname(os.path.abspath(source.path))
    folders = [here, *values_of("-I", flags)]
    macros = dict(_macros_of_flags(flags))
    seen: set[str] = set()
    problems = []
    for begin, end, path in _included(source.text, here, folders, macros):
        if reason := _problem(path, folders, macros, seen):
            problems.append(source.problem(begin, end, reason))
    if problems:
        raise TranslationError(problems)


def _problem(path: str, folders: list[str], macros: dict[str, str], seen: set[str]) -> str:
    """Why a file cannot be included, or one that it includes; empty: it can."""
    waiting = [path]
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            with open_regular(path) as file:
                data = file.read(MOST_SOURCE + 1)
        except OSError as error:
            if error.errno is not None and (error.strerror or "").startswith("is "):
                return f"{path} {error.strerror}"
            continue  # it is there, and cannot be read: clang says so
        if len(data) > MOST_SOURCE:
            return f"{path} is too large"
        text = data.decode("utf-8", "replace")
        waiting += [one for _, _, one in _included(text, os.path.dirname(path), folders, macros)]
    return ""


def _included(
    text: str, here: str, folders: list[str], macros: dict[str, str]
) -> Iterator[tuple[int, int, str]]:
    """(begin, end, path) of each #include in the text whose file is there. Also of those that a condition
    leaves out, which cannot be known here."""
    joints = [found.span() for found in _CONTINUED.finditer(text)]
    text = _CONTINUED.sub("", text)

    def place(offset: int) -> int:
        """Where it stands in the text as it was."""
        for begin, end in joints:
            if offset < begin:
                break
            offset += end - begin
        return offset

    for found in _MACRO.finditer(text):
        macros.setdefault(found[1], found[2] or found[3])
    for found in _INCLUDE.finditer(text):
        name = found[1] or found[2] or macros.get(found[3], "")
        for folder in [here, *folders]:
            path = os.path.normpath(os.path.join(folder, name))
            there = name and "\0" not in path and os.path.lexists(path)
            if there and not os.path.isdir(path):  # clang looks in the next folder, or says so
                yield place(found.start()), place(found.end()), path
                break


def _macros_of_flags(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    for definition in values_of("-D", flags):
        name, _, value = definition.partition("=")
        if value[:1] in ('"', "<"):
            yield name, value[1:-1]
