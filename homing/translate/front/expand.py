"""The text that a Fortran compiler reads: INCLUDE lines taken in, preprocessed where the file's name asks for
it, and with the statements that only OpenMP compiles (`!$ call ...`). Line markers (# 12 "size.h") tell where
each line of it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

from homing.compilers import values_of
from homing.files import MOST_SOURCE, read_text
from homing.translate.directives.model import Form
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile

#: Suffixes that ask for the preprocessor.
_PREPROCESSED = frozenset([".F", ".F90", ".F95", ".F03", ".F08", ".F18", ".FOR", ".FTN", ".FPP", ".fpp"])
_CONDITION = re.compile(r"^[ \t]*#[ \t]*[a-z]", re.MULTILINE)
_INCLUDE = re.compile(
    r"""[ \t\d]{0,6}[ \t]*include[ \t]*(?:'([^'\n]+)'|"([^"\n]+)")[ \t]*(?:!.*)?$""", re.IGNORECASE
)
_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)".*')
#: The sentinel of statements, and of what continues them, that only a compiler with OpenMP reads.
_OPENMP_FREE = re.compile(r"^([ \t]*)!\$(?=[ \t&])", re.MULTILINE)
_OPENMP_FIXED = re.compile(r"^()[!cC*]\$(?=[ \d]{3}[ 0]|   \S|\t)", re.MULTILINE)
#: How deep INCLUDE lines may nest; gfortran's own limit is 16 for fixed form's, 200 for cpp's.
_DEEPEST = 32
#: How long the compiler's preprocessor may take, in seconds.
_PATIENCE = 60.0


def expanded(source: SourceFile, flags: Sequence[str] = (), compiler: str = "") -> SourceFile:
    """The source as the compiler reads it; itself, where that is what the file holds.

    TranslationError: the preprocessor fails, or INCLUDE lines go round in circles.
    """
    if source.form is Form.C:
        return source
    text = source.text
    said = [flag for flag in flags if flag in ("-cpp", "-nocpp")]  # the last one counts
    asked = said[-1] == "-cpp" if said else os.path.splitext(source.path)[1] in _PREPROCESSED
    if asked and _CONDITION.search(text):
        text = _preprocessed(source, flags, compiler)
    openmp = _openmp(source, flags)
    if openmp is not None:
        text = openmp.sub(r"\1  ", text)
    # As gfortran looks for them: also what an included file includes.
    folders = ["", os.path.dirname(source.path), *values_of("-I", flags)]
    if re.search("include", text, re.IGNORECASE):
        text = _included(source, text, source.path, folders, 0)
        if openmp is not None:
            text = openmp.sub(r"\1  ", text)
    if text == source.text:
        return source
    return SourceFile(source.path, text, source.form, source.fixed_columns)


def _openmp(source: SourceFile, flags: Sequence[str]) -> re.Pattern[str] | None:
    """What the sentinels of conditional compilation are; None: the program is compiled without OpenMP."""
    if "-U_OPENMP" in flags:
        return None
    return _OPENMP_FIXED if source.form is Form.FIXED else _OPENMP_FREE


def marker(line: int, path: str) -> str:
    """What tells a compiler that the next line is line `line` of a file."""
    name = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'# {line} "{name}"'


def _included(source: SourceFile, text: str, path: str, folders: Sequence[str], depth: int) -> str:
    """The text of the file at `path`, with each INCLUDE line replaced by what it names."""
    out: list[str] = []
    number, name = 0, path
    before = ""
    for line in text.splitlines(keepends=True):
        number += 1
        code = line.rstrip("\r\n")
        marked = _MARKER.match(code)
        if marked:
            number, name = int(marked[1]) - 1, marked[2]
        found = _INCLUDE.match(code) if "nclude" in code.lower() else None
        goes_on = before.rstrip().endswith("&")
        place = _find(found[1] or found[2], folders) if found and not goes_on else None
        if place is None:
            out.append(line)
            before = code
            continue
        if depth >= _DEEPEST:
            at = source.text.find(code)
            reason = f"INCLUDE lines nest more than {_DEEPEST} deep"
            raise TranslationError([source.problem(max(at, 0), max(at, 0) + len(code), reason)])
        inner = read_text(place, MOST_SOURCE, errors="surrogateescape")
        inner = _included(source, inner, place, folders, depth + 1)
        newline = "" if not inner or inner.endswith("\n") else "\n"
        out.append(f"{marker(1, place)}\n{inner}{newline}{marker(number + 1, name)}\n")
    return "".join(out)


def _find(name: str, folders: Sequence[str]) -> str | None:
    """Where a file that INCLUDE names is; None: the compiler may know."""
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, name))
        if "\0" not in path and os.path.isfile(path):
            return path
    return None


def _preprocessed(source: SourceFile, flags: Sequence[str], compiler: str) -> str:
    """What gfortran's preprocessor makes of the file, comments included."""
    tool = compiler if "gfortran" in os.path.basename(compiler) else "gfortran"
    if shutil.which(tool) is None:
        raise _wrong(source, "has lines of a preprocessor, and gfortran, which would read them, is not here")
    command = [tool, "-cpp", "-E", *_for_preprocessor(flags)]
    if "-U_OPENMP" not in flags:
        command.append("-fopenmp")
    try:
        done = subprocess.run(
            [*command, source.path],
            capture_output=True,
            text=True,
            check=False,
            errors="surrogateescape",
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise _wrong(source, "takes the preprocessor too long") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "rror:" in line]
        raise _wrong(source, f"cannot be preprocessed: {said[0].strip() if said else 'gfortran -E fails'}")
    return _tidied(done.stdout, source.path)


def _for_preprocessor(flags: Sequence[str]) -> list[str]:
    """Those flags that the preprocessor knows."""
    found: list[str] = []
    with_value = ("-I", "-D", "-U", "-include", "-isystem", "-iquote")
    for index, flag in enumerate(flags):
        if flag in with_value and index + 1 < len(flags):
            found += [flag, flags[index + 1]]
        elif flag.startswith(("-I", "-D", "-U")) and len(flag) > 2:
            found.append(flag)
    return found


def _tidied(text: str, path: str) -> str:
    """Markers without flags, and none before the file's first line."""
    out: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        marked = _MARKER.match(line)
        if marked is None:
            if inside:
                out.append(line)
            continue
        inside = not marked[2].startswith("<")
        if inside:
            out.append(f'# {marked[1]} "{marked[2]}"\n')
    first = marker(1, path) + "\n"
    while out[:2] == [first, first]:
        del out[0]
    return "".join(out)


def _wrong(source: SourceFile, reason: str) -> TranslationError:
    found = _CONDITION.search(source.text)
    begin = found.start() if found else 0
    return TranslationError([source.problem(begin, source.next_line(begin) - 1, reason)])
