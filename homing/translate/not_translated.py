"""Sources of a compiler's command that the translation does not read: what stands in them in vain is said.

Preprocessed C++ and files whose names say nothing, what comes from the standard input, and files that
others include. A directive in one of them is an error: the program would run, and the user would believe that
it was obeyed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from homing.compilers import CXX_SOURCES, WITH_VALUE, values_of
from homing.errors import UserError
from homing.files import MOST_SOURCE, read_text
from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.positions import Problem
from homing.translate.source import SourceFile

_CXX_DRIVER = re.compile(
    r"(^|[-/])(g\+\+|clang\+\+|c\+\+|CC|icpc|icpx|mpic\+\+|mpicxx|mpiCC|nvc\+\+)(-[\d.]+)?$"
)
_C_LANGUAGES = frozenset({"c", "c-header", "cpp-output"})
_FORTRAN_LANGUAGES = frozenset({"f77", "f77-cpp-input", "f95", "f95-cpp-input"})
#: What is no text, or nothing that is compiled.
_NO_SOURCES = (
    ".a", ".asm", ".bc", ".d", ".la", ".lo", ".mod", ".o", ".obj", ".s", ".S", ".smod", ".so", ".sx",
)  # fmt: skip
_INCLUDE = re.compile(
    r"""^[ \t]*(?:\#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)|include[ \t]*['"]([^'"\n]+)['"])""",
    re.MULTILINE | re.IGNORECASE,
)
_MOST_FILES = 1_000
_CXX_PARALLEL = re.compile(r"^[ \t]*(#[ \t]*pragma[ \t]+omp\b[^\n]*\bparallel\b[^\n]*?)\s*$", re.MULTILINE)
#: The exit status where a directive is refused, or stands in what is not translated.
REFUSED = 1


@dataclass
class Sources:
    """A command's sources. translated: their places among the arguments. others: (file, why not); "-" is the
    standard input."""

    translated: list[int] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    cxx: bool = False  # does the command take C sources for C++?


def sources_of(compiler: str, arguments: Sequence[str]) -> Sources:
    """What the command compiles, of which language."""
    found = Sources()
    cxx = _CXX_DRIVER.search(compiler) is not None
    language, option = "none", ""
    for index, word in enumerate(arguments):
        if option:
            if option == "-x":
                language = word
            elif option in ("-include", "-imacros") and os.path.isfile(word):
                found.others.append((word, "a file that is included by an option"))
            option = ""
        elif word in WITH_VALUE:
            option = word
        elif word.startswith("-x") and len(word) > 2:
            language = word[2:]
        elif word == "-":
            found.others.append((word, "the standard input"))
        elif not word.startswith("-") and os.path.exists(word):
            reason = _why_not(word, language)
            if reason is None:
                found.translated.append(index)
                found.cxx |= cxx or language.startswith("c++")
            elif reason:
                found.others.append((word, reason))
    return found


def _why_not(path: str, language: str) -> str | None:
    """Why a file is not translated; empty: it is no source; None: it is translated."""
    form = scanner.form_of(path)
    if language != "none":
        if language.startswith("c++"):
            return None if scanner.is_cxx(path) or (form is Form.C and path.endswith(".c")) else "C++"
        same = form is Form.C if language in _C_LANGUAGES else form is not None and form is not Form.C
        if language in _C_LANGUAGES | _FORTRAN_LANGUAGES and same:
            return None
        return f"a source of '{language}' by an option, and by its name none"
    if path.endswith(CXX_SOURCES) and form is None:
        return "C++"
    if form is not None:
        return None
    return "" if path.endswith(_NO_SOURCES) or ".so." in path else "a file whose name is of no language"


def directives_in(others: Sequence[tuple[str, str]], standard_input: bytes) -> Iterator[Problem]:
    """The directives in sources that are not translated, each with the reason."""
    for path, what in others:
        if path == "-":
            name, text = "<stdin>", standard_input.decode("utf-8", "surrogateescape")
        else:
            try:
                name, text = path, read_text(path, MOST_SOURCE, errors="surrogateescape")
            except UserError:
                continue  # the compiler says what it is
        yield from said_of(name, text, f"{what} is not translated")


def parallel_in_cxx(others: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """--to upm: the first parallel construct of each C++ source, in which no calls can be inserted."""
    for path, what in others:
        if what != "C++" or path == "-":
            continue
        try:
            text = read_text(path, MOST_SOURCE, errors="surrogateescape")
        except UserError:
            continue  # the compiler says what it is
        found = _CXX_PARALLEL.search(text)
        if found is not None:
            source = SourceFile(path, text, Form.C)
            yield source.problem(
                found.start(1), found.end(1), f"{what} is not translated: no calls are inserted"
            )


def directives_included(source: SourceFile, flags: Sequence[str]) -> Iterator[Problem]:
    """The directives in files that a source includes, as far as they lie in its folder or the user's."""
    for path, inner in included_by(source, flags):
        shown = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
        reason = f"stands in a file that {source.path} includes, which is not translated"
        yield from said_of(shown, inner, reason, source.form)


def included_by(source: SourceFile, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files that a source includes, and those that they include: path and text."""
    here = os.path.dirname(os.path.abspath(source.path))
    folders = [here, *values_of("-I", flags)]
    waiting, seen = [(source.text, here)], set[str]()
    while waiting and len(seen) < _MOST_FILES:
        text, where = waiting.pop()
        for match in _INCLUDE.finditer(text):
            name = match[1] or match[2] or match[3]
            for folder in [where, *folders]:
                path = os.path.normpath(os.path.join(folder, name))
                if path in seen or not os.path.isfile(path):
                    continue
                seen.add(path)
                try:
                    inner = read_text(path, MOST_SOURCE, errors="surrogateescape")
                except UserError:
                    break  # who reads it says why it cannot be read
                yield path, inner
                waiting.append((inner, os.path.dirname(path)))
                break


def said_of(path: str, text: str, reason: str, form: Form | None = None) -> Iterator[Problem]:
    """A problem at each line of a directive in a text, of whatever language."""
    if "\0" in text:
        return
    lines: set[int] = set()
    form = form or scanner.form_of(path)
    for one in [form] if form is not None else [Form.C, Form.FREE]:
        scanned = scanner.scan(text, path, one)
        found = [(each.source.position, each.source.text, reason) for each in scanned.directives]
        found += [(bad.position, bad.text, f"{reason}; {bad.reason}") for bad in scanned.problems]
        for position, code, why in sorted(found, key=lambda one: (one[0].line, one[0].column)):
            if position.line not in lines:
                lines.add(position.line)
                yield Problem(position, code, why)
