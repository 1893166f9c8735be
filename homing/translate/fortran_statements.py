"""Single Fortran statements: their kind, and what they read and write."""

from __future__ import annotations

from typing import Any

from homing.translate.fortran_lines import Line
from homing.translate.fortran_words import Words, closing, top_level
from homing.translate.tree import (
    Access,
    Kind,
    Statement,
)

_JUMPS = {
    "Goto_Stmt": "goto",
    "Computed_Goto_Stmt": "goto",
    "Arithmetic_If_Stmt": "goto",
    "Return_Stmt": "return",
    "Exit_Stmt": "exit",
    "Cycle_Stmt": "cycle",
    "Stop_Stmt": "stop",
    "Error_Stop_Stmt": "stop",
}
_OUTPUT = {
    "Print_Stmt",
    "Write_Stmt",
    "Open_Stmt",
    "Close_Stmt",
    "Rewind_Stmt",
    "Flush_Stmt",
    "Backspace_Stmt",
}
KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elseif",
        "endif",
        "select",
        "case",
        "default",
        "type",
        "class",
        "is",
        "where",
        "elsewhere",
        "forall",
        "associate",
        "block",
        "critical",
        "end",
        "do",
        "return",
        "exit",
        "cycle",
        "stop",
        "error",
        "goto",
        "go",
        "to",
        "continue",
        "open",
        "close",
        "rewind",
        "flush",
        "backspace",
        "inquire",
        "nullify",
        "data",
        "namelist",
        "format",
        "entry",
        "include",
    ]
)


def blank(line: Line, kind: Kind) -> Statement:
    """A statement whose references are not known yet."""
    return Statement(
        line.begin,
        line.end,
        kind,
        line.code.lower(),
        label=line.label,
        places=line.places,
        code=line.code,
    )


def statement(node: Any, line: Line) -> Statement:
    """A statement without a body."""
    made = blank(line, Kind.OTHER)
    words = Words(line.code, line.places)
    _fill(made, node, words, 0)
    made.reads = frozenset(r.name for r in made.references if r.access is not Access.WRITE)
    made.writes |= frozenset(
        r.name for r in made.references if r.access in (Access.WRITE, Access.UPDATE, Access.ARGUMENT)
    )
    return made


def _fill(made: Statement, node: Any, words: Words, begin: int) -> None:
    what = type(node).__name__
    count = len(words.words)
    if what in ("If_Stmt", "Where_Stmt", "Forall_Stmt"):
        stop = closing(words.words, begin + 1)
        made.references.extend(words.reads(begin + 2, stop))
        made.guarded = True
        first = len(made.references)
        _fill(made, node.items[-1], words, stop + 1)
        for reference in made.references[first:]:
            reference.conditional = True
    elif what in ("Assignment_Stmt", "Pointer_Assignment_Stmt"):
        symbol = "=" if what == "Assignment_Stmt" else "=>"
        at = begin
        while at < count and words.words[at].text != symbol:
            at = closing(words.words, at) + 1 if words.words[at].text == "(" else at + 1
        target, after = words.designator(begin)
        target.access = Access.WRITE if symbol == "=" else Access.OTHER
        made.references.append(target)
        if after > begin + 1:
            made.references.extend(words.arguments(target.name, begin + 2, after - 1))
        if after < at:  # a component of it
            made.references.extend(words.reads(after, at))
        values = list(words.reads(at + 1, count))
        if symbol == "=>":
            for reference in values:
                reference.access = Access.OTHER
        made.references.extend(values)
        made.kind = Kind.ASSIGNMENT
    elif what == "Call_Stmt":
        made.kind = Kind.CALL
        name = words.words[begin + 1].text.lower()
        made.calls = (name,)
        if begin + 2 < count and words.words[begin + 2].text == "(":
            stop = closing(words.words, begin + 2)
            for index, (first, last) in enumerate(top_level(words.words, begin + 3, stop, ",")):
                if first + 1 < last and words.words[first + 1].text == "=":
                    first += 2
                if first >= last:
                    continue
                found = list(words.reads(first, last))
                if (
                    found
                    and found[0].begin == words.place(first)
                    and found[0].end == words.place_end(last - 1)
                ):
                    found[0].access = Access.ARGUMENT
                    found[0].argument_of = name
                    found[0].argument_index = index
                made.references.extend(found)
    elif what in ("Read_Stmt", "Print_Stmt", "Write_Stmt"):
        made.kind = Kind.INPUT if what == "Read_Stmt" else Kind.OUTPUT
        items = count
        if words.words[begin + 1].text == "(" and what != "Print_Stmt":
            items = closing(words.words, begin + 1) + 1
        else:
            separators = top_level(words.words, begin + 1, count, ",")
            items = separators[0][1] + 1 if len(separators) > 1 else count
        control = list(words.reads(begin + 2, items))
        made.references.extend(r for r in control if r.name not in ("unit", "fmt", "nml"))
        for first, last in top_level(words.words, items, count, ","):
            found = list(words.reads(first, last))
            if what == "Read_Stmt":
                for reference in found:
                    at_start = reference.begin == words.place(first)
                    if at_start or words.words[first].text == "(":
                        reference.access = Access.WRITE
            made.references.extend(found)
    elif what in ("Allocate_Stmt", "Deallocate_Stmt"):
        made.kind = Kind.ALLOCATE if what == "Allocate_Stmt" else Kind.DEALLOCATE
        stop = closing(words.words, begin + 1)
        for first, last in top_level(words.words, begin + 2, stop, ","):
            if first + 1 < last and words.words[first + 1].text == "=":
                status, _ = words.designator(first + 2)
                status.access = (
                    Access.WRITE if words.words[first].text.lower() in ("stat", "errmsg") else Access.READ
                )
                made.references.append(status)
                continue
            target, after = words.designator(first)
            target.access = Access.WRITE
            made.references.append(target)
            if after > first + 1:
                made.references.extend(words.arguments(target.name, first + 2, after - 1))
    else:
        if what in _OUTPUT:
            made.kind = Kind.OUTPUT
        if what in _JUMPS:
            made.kind = Kind.JUMP
            made.jump = _JUMPS[what]
        found = [r for r in words.reads(begin, count) if r.name not in KEYWORDS]
        if what in ("Nullify_Stmt", "Data_Stmt", "Namelist_Stmt"):
            for reference in found:
                reference.access = Access.OTHER
        made.references.extend(found)
