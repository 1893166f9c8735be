"""Fortran text cut into statements and OpenMP directives, both source forms; each character keeps its
place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homing.translate.code_text import closing, outside_brackets
from homing.translate.directives.model import Form
from homing.translate.source import SourceFile

_OPENMP_FREE = re.compile(r"\s*!\$omp(?=[\s&]|$)", re.IGNORECASE)
_OPENMP_FIXED = re.compile(r"[!cC*]\$omp(.?)", re.IGNORECASE)
_DO = re.compile(r"(do)(\d+\s*|)[a-z]\w*\s*=(?!=)", re.IGNORECASE)
_IF = re.compile(r"if\s*\(", re.IGNORECASE)
_GOTO = re.compile(r"\s*(go\s*to)\d+$", re.IGNORECASE)
_CALL = re.compile(r"\s*(call)[a-z]\w*\s*(?:(\()|$)", re.IGNORECASE)


@dataclass
class Line:
    """A statement (or the text of an OpenMP directive): joined, without comments, continuations and label."""

    code: str
    places: list[int]
    begin: int
    end: int
    line_begin: int  # offset of the first character of its first line
    line_end: int  # offset behind the last line's end
    label: str | None = None
    openmp: bool = False
    alone: bool = True  # no other statement on its lines


def split(source: SourceFile) -> list[Line]:
    """All statements and OpenMP directives, in order. Preprocessor lines and comments are left out."""
    if source.form is not Form.FIXED:
        return _free(source)
    lines = _fixed(source)
    for line in lines:
        if not line.openmp:
            _set_apart(line)
    return lines


def _line_ranges(text: str) -> list[tuple[int, int, int]]:
    """(begin, end without line end, begin of the next) of every line."""
    ranges = []
    at = 0
    while at < len(text):
        newline = text.find("\n", at)
        following = len(text) if newline < 0 else newline + 1
        end = following
        while end > at and text[end - 1] in "\r\n":
            end -= 1
        ranges.append((at, end, following))
        at = following
    return ranges


def _pieces(
    text: str, begin: int, end: int, quote: str | None
) -> tuple[list[tuple[int, int, bool]], str | None]:
    """The statements on a line as (begin, end, closed by a semicolon); and the quote of a string that goes on
    behind an `&`."""
    found = []
    at = start = begin
    while at < end:
        char = text[at]
        if quote:
            if char == quote:
                quote = None
        elif char in "'\"":
            quote = char
        elif char == "!":
            end = at
            break
        elif char == ";":
            found.append((start, at, True))
            start = at + 1
        at += 1
    found.append((start, end, False))
    return found, quote


def _free(source: SourceFile) -> list[Line]:
    text = source.text
    lines: list[Line] = []
    current: Line | None = None
    quote: str | None = None
    openmp: Line | None = None
    for begin, end, following in _line_ranges(text):
        body = text[begin:end]
        stripped = body.lstrip()
        if current is None and openmp is None and stripped[:1] == "#":
            continue
        match = _OPENMP_FREE.match(body)
        if match:
            at = begin + match.end()
            goes_on = openmp is not None
            if openmp is None:
                openmp = Line("", [], begin + match.group().index("!"), end, begin, following, openmp=True)
            lead = len(text[at:end]) - len(text[at:end].lstrip())
            if goes_on and text[at + lead : at + lead + 1] == "&":
                at += lead + 1
            stop = end
            comment = text.find("!", at, end)
            if comment >= 0:
                stop = comment
            more = text[at:stop].rstrip().endswith("&")
            if more:
                stop = at + len(text[at:stop].rstrip()) - 1
            _add(openmp, text, at, stop)
            openmp.end, openmp.line_end = end, following
            if not more:
                _finish(openmp, lines)
                openmp = None
            continue
        if openmp is not None:  # continued by nothing
            _finish(openmp, lines)
            openmp = None
        if quote is None and (not stripped or stripped[0] == "!"):
            continue  # blank lines and comments may stand between continuation lines
        if stripped[:1] == "#" and current is not None:
            continue
        at = begin
        if current is not None:
            lead = len(body) - len(stripped)
            if stripped[:1] == "&":
                at = begin + lead + 1
        pieces, quote = _pieces(text, at, end, quote)
        for index, (first, stop, closed) in enumerate(pieces):
            if current is None:
                lead = len(text[first:stop]) - len(text[first:stop].lstrip())
                current = Line("", [], first + lead, stop, begin, following)
            last = text[first:stop].rstrip()
            more = not closed and last.endswith("&")
            _add(current, text, first, first + len(last) - (1 if more else 0))
            current.end, current.line_end = first + len(last), following
            if len(pieces) > 1:
                current.alone = False
            if not more:
                if quote and not closed:
                    quote = None
                _finish(current, lines)
                current = None
            del index
    for rest in (current, openmp):
        if rest is not None:
            _finish(rest, lines)
    return lines


def _fixed(source: SourceFile) -> list[Line]:
    text = source.text
    width = source.fixed_columns or 10**9
    lines: list[Line] = []
    current: Line | None = None
    quote: str | None = None
    openmp: Line | None = None
    for begin, end, following in _line_ranges(text):
        body = text[begin:end]
        match = _OPENMP_FIXED.match(body)
        if match:
            if current is not None:
                _finish(current, lines)
                current, quote = None, None
            goes_on = match[1] not in ("", " ", "0", "\t")
            at = begin + match.end()
            if openmp is not None and not goes_on:
                _finish(openmp, lines)
                openmp = None
            if openmp is None:
                openmp = Line("", [], begin, end, begin, following, openmp=True)
            stop = min(end, begin + width)
            comment = text.find("!", at, stop)
            if openmp.code:  # words do not go on there, whatever their columns are
                openmp.code += " "
                openmp.places.append(at - 1)
            _add(openmp, text, at, comment if comment >= 0 else stop)
            openmp.end, openmp.line_end = end, following
            continue
        if not body.strip() or body[0] in "cC*dD#" or (body.lstrip()[:1] == "!" and body[:6] != "     !"):
            continue
        if openmp is not None:
            _finish(openmp, lines)
            openmp = None
        tab = body[:1] == "\t" or re.match(r"\s*\d*\t", body) is not None
        if tab:
            lead = body.index("\t") + 1
            goes_on = body[lead : lead + 1].isdigit() and body[lead] != "0" and not body[: lead - 1].strip()
            at = begin + lead + (1 if goes_on else 0)
        else:
            goes_on = len(body) > 5 and body[5] not in " 0" and not body[:5].strip()
            at = begin + min(6, len(body))
        stop = min(end, begin + width)
        if goes_on and current is not None:
            pieces, quote = _pieces(text, at, stop, quote)
        else:
            if current is not None:
                _finish(current, lines)
            current, quote = None, None
            if tab or body[:5].strip():
                match = re.match(r"\s*(\d+)", body)
                label = match[1] if match and (tab or match.end() <= 5) else None
            else:
                label = None
            if len(body) <= 6 and not tab:
                at = begin + len(body) - len(body.lstrip())
            pieces, quote = _pieces(text, at, stop, None)
            lead = len(text[at:stop]) - len(text[at:stop].lstrip())
            current = Line("", [], at + lead, stop, begin, following, label)
        for first, piece_end, closed in pieces:
            if current is None:
                if not text[first:piece_end].strip():
                    continue
                lead = len(text[first:piece_end]) - len(text[first:piece_end].lstrip())
                current = Line("", [], first + lead, piece_end, begin, following)
            _add(current, text, first, piece_end)
            current.end = first + len(text[first:piece_end].rstrip())
            current.line_end = following
            if len(pieces) > 1:
                current.alone = False
            if closed:
                _finish(current, lines)
                current = None
    for rest in (current, openmp):
        if rest is not None:
            _finish(rest, lines)
    lines.sort(key=lambda line: line.begin)
    return lines


def _set_apart(line: Line) -> None:
    """Fixed form knows no blanks: GOTO30, DO10I=1,N and CALLSUB(X) get some, also behind IF(...). No name but
    that of a call stands alone, or with brackets and nothing behind them."""
    condition = _IF.match(line.code)
    begin = closing(line.code, condition.end()) if condition else 0
    call = _CALL.match(line.code, begin)
    if call and call[2] and closing(line.code, call.end(2)) < len(line.code):
        call = None
    loop = _DO.match(line.code)
    if loop and not outside_brackets(line.code[loop.end() :], ","):
        loop = None
    for found, group in ((loop, 2), (loop or _GOTO.match(line.code, begin) or call, 1)):
        if found and found.end(group) > found.start(group):
            at = found.end(group)
            line.code = f"{line.code[:at]} {line.code[at:]}"
            line.places.insert(at, line.places[at - 1])


def _add(line: Line, text: str, begin: int, end: int) -> None:
    if begin < end:
        line.code += text[begin:end]
        line.places.extend(range(begin, end))


def _finish(line: Line, lines: list[Line]) -> None:
    lead = len(line.code) - len(line.code.lstrip())
    code = line.code.strip()
    line.places = line.places[lead : lead + len(code)]
    line.code = code
    if not code:
        return
    if not line.openmp and line.label is None:
        match = re.match(r"(\d+)\s+(?=\S)", code)
        if match:
            line.label = match[1]
            line.code = code[match.end() :]
            line.places = line.places[match.end() :]
    if line.places:
        line.begin = line.places[0] if not line.openmp else line.begin
        line.end = max(line.end, line.places[-1] + 1) if line.openmp else line.places[-1] + 1
    lines.append(line)
