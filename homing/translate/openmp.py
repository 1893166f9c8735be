"""OpenMP directives: their names and clauses, in both languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from homing.translate.tree import Clause, OpenMP

_WORDS = [
    "end",
    "parallel",
    "do",
    "parallel",
    "for",
    "simd",
    "sections",
    "section",
    "single",
    "master",
    "masked",
    "critical",
    "barrier",
    "atomic",
    "workshare",
    "ordered",
    "task",
    "taskwait",
    "flush",
    "threadprivate",
    "taskloop",
    "teams",
    "target",
    "distribute",
    "cancel",
    "taskgroup",
    "loop",
    "declare",
    "reduction",
    "cancellation",
    "point",
    "scan",
    "error",
    "requires",
    "metadirective",
    "nothing",
    "tile",
    "unroll",
    "interop",
    "scope",
]
_NAMES = frozenset(_WORDS)
_RUN_TOGETHER = re.compile(
    r"^(end)?\s*(parallel)?\s*(do|for|sections|workshare|single|master|critical|parallel|ordered|atomic|simd)?$"
)


def parse(code: str, places: list[int], begin: int, end: int, lower: bool) -> OpenMP:
    """A directive from its text behind the sentinel; places holds the offset of each character in the file;
    begin and end are those of the whole, sentinel included. lower: names are in lower case (Fortran)."""
    at = 0
    words: list[str] = []
    while match := re.compile(r"\s*([A-Za-z]+)").match(code, at):
        word = match[1].lower()
        behind = re.compile(r"\s*\(").match(code, match.end())
        if behind and words and word not in ("critical", "flush", "threadprivate"):
            break
        split = _split(word)
        # `do ordered` has a clause; `ordered` and `end ordered` are directives.
        if split is None or (split == ["ordered"] and "do" in words + ["do" for w in words if w == "for"]):
            break
        words.extend(split)
        at = match.end()
        if behind:
            break
    words = ["do" if word == "for" else word for word in words]
    clauses = []
    while at < len(code):
        match = re.compile(r"[\s,]*([A-Za-z_]\w*)?").match(code, at)
        assert match is not None
        start = match.start(1) if match[1] else match.end()
        name = (match[1] or "").lower()
        at = match.end()
        opening = re.compile(r"\s*\(").match(code, at)
        text = None
        if opening:
            depth, stop = 1, opening.end()
            while stop < len(code) and depth:
                depth += {"(": 1, ")": -1}.get(code[stop], 0)
                stop += 1
            text = code[opening.end() : stop - 1]
            if lower:
                text = text.lower()
            at = stop
        elif not name:
            break
        # SGI's AFFINITY(i) = DATA(a(i)) stands among the clauses; the directives' scanner reads it.
        value = re.compile(r"\s*=\s*\w+\s*\(").match(code, at) if name == "affinity" else None
        if value:
            depth, at = 1, value.end()
            while at < len(code) and depth:
                depth += {"(": 1, ")": -1}.get(code[at], 0)
                at += 1
            name = "affinity of sgi"
        last = places[at - 1] + 1 if at else end
        clauses.append(Clause(name, text, places[start], last))
    return OpenMP(" ".join(words), clauses, begin, end, code)


def _split(word: str) -> list[str] | None:
    """A directive's word, taken apart where it is run together (ENDPARALLELDO); None for a clause."""
    if word in _NAMES:
        return [word]
    match = _RUN_TOGETHER.match(word)
    if match and word not in ("",):
        return [part for part in match.groups() if part]
    return None


def clause_text(clause: Clause) -> str:
    """The clause as it is written."""
    return clause.name if clause.text is None else f"{clause.name}({clause.text})"


class Record(NamedTuple):
    """An extremum (operator: "max" or "min") and what is kept with it, variables or elements or components of
    them: `if (x > m) { m = x; at = i; }`. tie: of equal extrema, which one is kept: the operator, and one of
    the others."""

    operator: str
    target: str
    others: tuple[str, ...]
    tie: tuple[str, str] | None = None


class Reduction(NamedTuple):
    """What is combined; section: which part of an array (C), with its brackets; place: of the clause.
    record: the variable belongs to it."""

    operator: str
    name: str
    section: str = ""
    place: tuple[int, int] = (0, 0)
    record: Record | None = None


def reductions_of(clauses: Sequence[Clause]) -> list[Reduction]:
    """Each variable of the clauses."""
    found: list[Reduction] = []
    for clause in clauses:
        operator, _, names = (clause.text or "").partition(":")
        operator = re.sub(r"^\s*default\s*,", "", operator, flags=re.IGNORECASE)
        for one in names.split(","):
            name, bracket, section = one.strip().partition("[")
            place = clause.begin, clause.end
            found.append(Reduction(operator.strip(), name.strip(), bracket + section, place))
    return found
