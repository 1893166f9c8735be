"""Finds the directives in a source file, in every spelling; what only looks like one is reported.

`!$homing` and `#pragma homing`; SGI's `!$SGI`, `C$SGI`, `c$distribute` and the like, `#pragma distribute` and
the like, NEST and AFFINITY on OpenMP lines; Compaq's `!DEC$`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from homing.translate.code_text import blanked
from homing.translate.directives import grammar
from homing.translate.directives.located import Located
from homing.translate.directives.model import Dialect, Directive, Form, Source
from homing.translate.positions import Position, Problem

_FIXED_SUFFIXES = frozenset({".f", ".for", ".ftn", ".f77", ".fpp"})
_FREE_SUFFIXES = frozenset({".f90", ".f95", ".f03", ".f08", ".f18"})
_C_SUFFIXES = frozenset({".c", ".h"})
#: C++'s, `.C` apart, which only its case tells from C's.
_CXX_SUFFIXES = frozenset({".cc", ".cp", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx"})

#: The option that makes C++ of a C source, as g++ does.
CXX = "-xc++"

_SGI_KEYWORDS = "distribute_reshape|distribute|redistribute|dynamic"
#: Directives of the two makers that are not about distributions, or have no meaning here.
_SGI_OTHER = "doacross|page_place|fill_symbol|align_symbol|section_gp|section_non_gp|pfor|parallel"
_COMPAQ_KEYWORDS = (
    "distribute|redistribute|align|template|memories|processors|shadow|on|numa|nosequence|omp\\s+numa|"
    "migrate_next_touch|migrate_next_touch_nopreserve"
)
_COMPAQ_OTHER = "place_next_touch|sequence|independent|inherit"


@dataclass(frozen=True)
class Scanned:
    """All directives of a file in its order. problems: what is not a directive but should be one. notes:
    directives of others that are left as they are, and what looks like a directive but is a comment."""

    directives: tuple[Directive, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def form_of(path: str) -> Form | None:
    """The form that a file's name stands for (as compilers have it), None where it is no source file."""
    suffix = os.path.splitext(path)[1].lower()
    for suffixes, form in (
        (_FIXED_SUFFIXES, Form.FIXED),
        (_FREE_SUFFIXES, Form.FREE),
        (_C_SUFFIXES | _CXX_SUFFIXES, Form.C),
    ):
        if suffix in suffixes:
            return form
    return None


def is_cxx(path: str, flags: Sequence[str] = ()) -> bool:
    """Is it a C++ source, by its name, or by the compiler that it is for?"""
    suffix = os.path.splitext(path)[1]
    return suffix == ".C" or suffix.lower() in _CXX_SUFFIXES or (suffix == ".c" and CXX in flags)


def scan(text: str, path: str, form: Form, line_length: int = 72) -> Scanned:
    """The directives in the text of the file `path`. Every directive found is in `directives`, `problems` or
    `notes`; it does not matter whether the preprocessor would leave it out. line_length: of fixed form, as
    given to the compiler (0: any)."""
    found = _Found(path)
    if form is Form.C:
        _scan_c(text, form, found)
    else:
        _scan_fortran(_lines(text), form, line_length, found)
    return Scanned(tuple(found.directives), tuple(found.problems), tuple(found.notes))


def _lines(text: str) -> list[str]:
    """The lines with their ends: only a line feed ends one (str.splitlines knows a dozen others)."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


@dataclass
class _Found:
    path: str
    directives: list[Directive] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def parse(self, located: Located, source: Source, clauses_only: bool = False) -> None:
        result = grammar.parse(located, source, clauses_only)
        if isinstance(result, Problem):
            self.problems.append(result)
        else:
            self.directives.extend(result)

    def problem(self, line: int, column: int, text: str, reason: str) -> None:
        self.problems.append(Problem(Position(self.path, line, column), text.strip(), reason))

    def note(self, line: int, column: int, text: str, reason: str) -> None:
        self.notes.append(Problem(Position(self.path, line, column), text.strip(), reason))


# --- Fortran ------------------------------------------------------------------------------------------------

# What follows the comment character. Sentinels in which the keyword is part (SGI's c$distribute) leave it to
# the directive's text.
_SENTINELS = (
    (Dialect.HOMING, re.compile(r"\$homing(?!\w)", re.I)),
    (Dialect.SGI, re.compile(r"\$sgi(?!\w)", re.I)),
    (Dialect.SGI, re.compile(rf"\$(?=(?:{_SGI_KEYWORDS})(?!\w))", re.I)),
    (Dialect.COMPAQ, re.compile(rf"dec\$(?=\s*(?:{_COMPAQ_KEYWORDS})(?!\w))", re.I)),
)
_SGI_MORE = re.compile(r"\$(?=&)")
_OMP = re.compile(r"\$omp(?!\w)", re.I)
_SGI_CLAUSE = re.compile(r"\b(?:nest\s*\(|affinity\s*\([^()]*\)\s*=)", re.I)
_FOREIGN = (
    (re.compile(rf"\$(?:{_SGI_OTHER})(?!\w)", re.I), "SGI's, not used by homing"),
    (re.compile(rf"dec\$\s*(?:{_COMPAQ_OTHER})(?!\w)", re.I), "Compaq's, not used by homing"),
    (
        re.compile(r"dec\$\s*(?:no)?dist|dec\$\s*(?:templ|memor|numa|alig|redist)", re.I),
        "not a directive of Compaq's",
    ),
    (re.compile(r"hpf\$", re.I), "HPF's spelling is not read: write !$homing"),
    (
        re.compile(r"(?:\s+\$\s?|\$\s+|\s*)homing\s*\$|\s+\$\s?homing(?!\w)|\$homing_?\w", re.I),
        "a comment: a directive begins with !$homing",
    ),
    (
        re.compile(r"\$\s+homing(?!\w)", re.I),
        "taken for conditional compilation: a directive begins with !$homing",
    ),
)


@dataclass(frozen=True)
class _Directive:
    """A comment line that begins with a sentinel."""

    dialect: Dialect
    start: int  # index of the comment character
    body: int  # index behind the sentinel
    more: bool = False  # SGI's `c$&`: only ever a continuation


def _directive_line(line: str, form: Form, at: int, open_: Dialect | None) -> _Directive | None:
    for dialect, sentinel in _SENTINELS:
        if found := sentinel.match(line, at + 1):
            return _Directive(dialect, at, found.end())
    if form is Form.FIXED and open_ is Dialect.SGI and (found := _SGI_MORE.match(line, at + 1)):
        return _Directive(Dialect.SGI, at, found.end(), True)
    return None


def _comment_start(line: str, form: Form) -> int | None:
    """The index of the comment character of a line that is only a comment, None for any other line."""
    if form is Form.FIXED and line[:1] in ("c", "C", "*"):
        return 0
    stripped = line.lstrip(" \t")
    at = len(line) - len(stripped)
    if stripped.startswith("!") and not (form is Form.FIXED and at == 5):
        return at
    return None


def _trailing_comment(line: str) -> int | None:
    """The index of the `!` that ends the code of a line; strings are passed over."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "!":
            return index
    return None


def _scan_fortran(lines: list[str], form: Form, line_length: int, found: _Found) -> None:
    number = 0
    while number < len(lines):
        line = lines[number].rstrip("\r\n")
        at = _comment_start(line, form)
        if at is None:
            _look_behind_code(line, form, number + 1, found)
            number += 1
        elif start := _directive_line(line, form, at, None):
            number = _read_directive(lines, number, start, form, line_length, found)
        elif _OMP.match(line, at + 1):
            number = _read_openmp(lines, number, at, form, found)
        else:
            for pattern, reason in _FOREIGN:
                if pattern.match(line, at + 1):
                    found.note(number + 1, at + 1, line, reason)
                    break
            number += 1


def _look_behind_code(line: str, form: Form, number: int, found: _Found) -> None:
    if "$" not in line or (form is Form.FIXED and line[:5].isspace() and line[5:6] == "!"):
        return
    at = _trailing_comment(line)
    if at is not None and _directive_line(line, Form.FREE, at, None):
        found.problem(number, at + 1, line[at:], "a directive needs a line of its own")


def _read_directive(
    lines: list[str], number: int, start: _Directive, form: Form, line_length: int, found: _Found
) -> int:
    """Read a directive with its continuation lines. Returns the index of the line after it."""
    first = number
    located = Located(found.path)
    clauses_only = False
    current: _Directive | None = start
    while current is not None:
        line = lines[number].rstrip("\r\n")
        body = current.body
        leading = line[body : body + 1] in ("&", "+") and (form is Form.FIXED or line[body] != "&")
        if leading:
            clauses_only = number == first
            body += 1
        ampersand = not leading and line[body:].lstrip().startswith("&")
        if ampersand and number == first:
            column = line.index("&", body) + 1
            found.problem(
                number + 1, column, line[current.start :], "continues nothing: no directive stands before"
            )
            return number + 1
        if ampersand:
            body = line.index("&", body) + 1
        elif number > first:
            located.separate()
        if form is Form.FIXED and not _fits(line, body, number, line_length, found):
            return number + 1
        text = line[body:]
        comment = _trailing_comment(text)
        text = text[:comment].rstrip()
        continued = text.endswith("&")
        located.add(text.removesuffix("&"), number + 1, body + 1)
        end = body + len(text)
        last = number
        number += 1
        following = _next(lines, number, form, start.dialect)
        if continued and following is None:
            found.problem(
                last + 1,
                end,
                lines[first][start.start :],
                "ends with & but the next line does not go on with it",
            )
            return number
        current = following if continued or (following and _is_more(lines[number], following, form)) else None
    whole = "".join(lines[first:number])
    position = Position(found.path, first + 1, start.start + 1)
    end_column = len(lines[last].rstrip("\r\n")) + 1
    source = Source(position, last + 1, end_column, whole[start.start :].rstrip("\r\n"), start.dialect, form)
    found.parse(located, source, clauses_only and start.dialect is Dialect.SGI)
    return number


def _fits(line: str, body: int, number: int, line_length: int, found: _Found) -> bool:
    comment = _trailing_comment(line[body:])
    text = line[: body + comment if comment is not None else len(line)]
    if line_length and text[line_length:].strip():
        found.problem(
            number + 1,
            line_length + 1,
            text[line_length:],
            f"stands behind column {line_length} of fixed form: continue the directive on the next line",
        )
        return False
    return True


def _next(lines: list[str], number: int, form: Form, dialect: Dialect) -> _Directive | None:
    if number >= len(lines):
        return None
    line = lines[number].rstrip("\r\n")
    at = _comment_start(line, form)
    following = None if at is None else _directive_line(line, form, at, dialect)
    return following if following and following.dialect is dialect else None


def _is_more(line: str, following: _Directive, form: Form) -> bool:
    """Does a line say by itself that it continues the one before: fixed form's `&` or `+`, SGI's `+`?"""
    mark = line[following.body : following.body + 1]
    return mark in ("&", "+") if form is Form.FIXED else mark == "+"


def _read_openmp(lines: list[str], number: int, at: int, form: Form, found: _Found) -> int:
    """Look for SGI's clauses on an OpenMP directive and its continuation lines."""
    first = number
    located = Located(found.path)
    while True:
        line = lines[number].rstrip("\r\n")
        body = at + 5
        text = line[body:]
        text = text[: _trailing_comment(text)].rstrip()
        located.add(text.removesuffix("&").replace("&", " "), number + 1, body + 1)
        located.separate()
        continued = text.endswith("&")
        number += 1
        if number >= len(lines):
            break
        following = lines[number].rstrip("\r\n")
        start = _comment_start(following, form)
        if start is None or not _OMP.match(following, start + 1):
            break
        if not continued and not (
            form is Form.FIXED and following[start + 5 : start + 6] not in ("", " ", "0")
        ):
            break
        at = start
    _openmp_clauses(located, lines, first, number, form, found)
    return number


# --- C ------------------------------------------------------------------------------------------------------

_PRAGMA = re.compile(r"\s*(?:\#|%:)\s*pragma\s+", re.A)
_C_SENTINELS = (
    (Dialect.HOMING, re.compile(r"homing(?!\w)")),
    (Dialect.SGI, re.compile(rf"(?=(?:{_SGI_KEYWORDS})(?!\w))")),
)
_C_OMP = re.compile(r"omp(?!\w)")
_C_OTHER = re.compile(r"(?:page_place|pfor)(?!\w)")
_C_MISSPELT = re.compile(r"homing|omp\s+homing(?!\w)", re.I)
_OPERATOR = re.compile(rf'_Pragma\s*\(\s*(?:u8|[LuU])?"\s*(?:homing|{_SGI_KEYWORDS})(?!\w)')
#: Macros that make a directive of their argument, and uses of such ones, whichever file defines them.
_QUOTES = re.compile(r"#\s*define\s+(\w+)\s*\([^()]*\)\s*_Pragma\s*\(\s*#")
_QUOTED = re.compile(rf"(\w+)\s*\(\s*(?:(homing)\s+[A-Za-z_]\w*|(?:{_SGI_KEYWORDS})(?!\w))")


def _scan_c(text: str, form: Form, found: _Found) -> None:
    if "ragma" not in text and "homing" not in text:  # a macro of another file may say pragma
        return
    lines = _lines(text)
    quoting: set[str] = set()
    for located, first, end in _logical_lines(text, found.path):
        last = min(end, len(lines))  # the last line may go on in none
        start = _PRAGMA.match(located.text)
        if start is None:
            quoting.update(_QUOTES.findall(located.text))
            if operator := _OPERATOR.search(located.text) or _quoted(located.text, quoting):
                position = located.position(operator.start())
                found.problems.append(
                    Problem(
                        position,
                        operator.group(),
                        "a directive is read as #pragma only, not as _Pragma, nor from a macro",
                    )
                )
            continue
        begin = located.position(len(located.text) - len(located.text.lstrip()))
        rest = located.text[start.end() :]
        whole = "".join(lines[first - 1 : last])
        for dialect, sentinel in _C_SENTINELS:
            if name := sentinel.match(rest):
                end_column = len(lines[last - 1].rstrip("\r\n")) + 1
                source = Source(
                    begin, last, end_column, whole[begin.column - 1 :].rstrip("\r\n"), dialect, form
                )
                found.parse(located.after(start.end() + name.end()), source)
                break
        else:
            if _C_MISSPELT.match(rest):
                found.notes.append(
                    Problem(begin, located.text.strip(), "unknown: a directive begins with #pragma homing")
                )
            elif _C_OMP.match(rest):
                _openmp_clauses(located, lines, first - 1, last, form, found)
            elif _C_OTHER.match(rest):
                found.notes.append(Problem(begin, located.text.strip(), "SGI's, not used by homing"))


def _quoted(line: str, quoting: set[str]) -> re.Match[str] | None:
    """A directive that a macro gets to make a pragma of: `PRAGMA(homing distribute a[block])`."""
    found = _QUOTED.finditer(blanked(line, False, " "))
    return next((one for one in found if one[2] or one[1] in quoting), None)


def _logical_lines(text: str, path: str) -> Iterator[tuple[Located, int, int]]:
    """The lines of a C file after splicing and with a blank for each comment: text, first and last line."""
    located = Located(path)
    state = ""  # "", a quote, "//" or "/*"
    line, column, first = 1, 1, 1
    index, length = 0, len(text)
    piece, piece_column = index, column

    def flush(to: int) -> None:
        if not state.startswith("/") and to > piece:
            located.add(text[piece:to], line, piece_column)

    while index < length:
        character = text[index]
        if character == "\\" and (
            text[index + 1 : index + 2] == "\n" or text[index + 1 : index + 3] == "\r\n"
        ):
            flush(index)
            index += 3 if text[index + 1 : index + 3] == "\r\n" else 2
            line, column = line + 1, 1
            piece, piece_column = index, 1
            continue
        if character == "\n":
            flush(index)
            index += 1
            if state != "/*":
                yield located, first, line
                located, state, first = Located(path), "", line + 1
            line, column = line + 1, 1
            piece, piece_column = index, 1
            continue
        step = 1
        if state == "":
            two = text[index : index + 2]
            if two in ("//", "/*"):
                flush(index)
                located.separate()
                state, step = two, 2
            elif character in "'\"":
                state = character
        elif state in "'\"":
            if character == "\\":
                step = 2 if text[index + 1 : index + 2] not in ("", "\n") else 1
            elif character == state:
                state = ""
        elif state == "/*" and text[index : index + 2] == "*/":
            state, step = "", 2
            piece, piece_column = index + 2, column + 2
        index += step
        column += step
    flush(length)
    yield located, first, line


def _openmp_clauses(
    located: Located, lines: list[str], first: int, after: int, form: Form, found: _Found
) -> None:
    """SGI's NEST and AFFINITY among the clauses of an OpenMP directive (lines first..after-1, from 0)."""
    at = 0
    while clause := _SGI_CLAUSE.search(located.text, at):
        begin, end = clause.start(), _clause_end(located.text, clause.end(), "=" in clause.group())
        at = max(end, clause.end())
        # With the comma before it, so that taking it out leaves a proper list of clauses.
        before = located.text[:begin].rstrip()
        cut = len(before) - 1 if before.endswith(",") else begin
        start, stop = located.position(cut), located.position_behind(end)
        if start.line != stop.line:
            found.problems.append(
                Problem(located.position(begin), located.text[begin:end], "must stand on one line")
            )
            continue
        text = lines[start.line - 1][start.column - 1 : stop.column - 1]
        source = Source(start, stop.line, stop.column, text, Dialect.SGI, form, whole_lines=False)
        found.parse(located.part(begin, end), source, clauses_only=True)


def _clause_end(text: str, at: int, affinity: bool) -> int:
    """The index behind the clause whose opening parenthesis (NEST) or equals sign (AFFINITY) ends at `at`."""
    depth = 0 if affinity else 1
    while at < len(text):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at
