"""Fortran procedures that get one distributed array for two of their arguments, `dot(r, r)` (--to spmd, mpi).

A part is at one place at a time, so it cannot be both arguments. Where the procedure changes neither, the
program gets a copy of it, before it is planned, that has one argument for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homing.translate.directives import model as d
from homing.translate.front import lines as text_lines
from homing.translate.front.implicit import declared
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.intents import is_intent_in
from homing.translate.plan.reference_text import folded
from homing.translate.source import Edits, SourceFile
from homing.translate.targets.clones import (
    can_be_copied,
    changed_sources,
    is_own,
    lines_of,
    named,
    new_name,
    show_copies,
    use_copies,
)
from homing.translate.tree import Access, Reference, Routine, Statement, Unit, references, statements

#: Of the later argument, the first that is the same array.
_Same = tuple[tuple[str, str], ...]
#: The words before the names in a declaration.
_HEAD = re.compile(
    r"(?:[^:()]|\((?:[^()]|\([^()]*\))*\))*::"
    r"|double\s+precision\b|\w+(?:\s*\*\s*\d+)?(?:\s*\([^)]*\))?(?=\s+\w)",
    re.IGNORECASE,
)
_COMMA = re.compile(r",\s*(?:&[ \t]*(?:![^\n]*)?\n\s*&?\s*|\n {5}\S\s*)?\Z")


@dataclass(frozen=True)
class _Call:
    unit: Unit
    caller: Routine
    begin: int  # of the procedure's name
    same: _Same
    gone: tuple[tuple[int, int], ...]  # arguments, with the commas before them


def with_one_argument(units: Sequence[Unit], distributions: Distributions) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence; none where there is no such call."""
    if sum(routine.main for unit in units for routine in unit.routines) > 1:
        return {}  # programs that share files: each may call them in its own way
    calls: dict[str, list[_Call]] = {}
    for unit in units if all(unit.form is not d.Form.C for unit in units) else ():
        for routine in unit.routines:
            for statement in statements(routine.body):
                for name, call in _calls(statement, unit, routine, distributions):
                    calls.setdefault(name, []).append(call)
    edits = {id(unit): Edits(unit.source) for unit in units}
    taken = {routine.name for unit in units for routine in unit.routines}
    copies: dict[str, tuple[Routine, list[str]]] = {}
    for name, found in sorted(calls.items()):
        callee = distributions.routines[name]
        if not can_be_copied(callee, units, typed=True):
            continue
        made: list[str] = []
        home = next(unit for unit in units if callee in unit.routines)
        for same in dict.fromkeys(call.same for call in found):
            copy = new_name(callee.name, taken)
            text = _copied(callee, dict(same), copy)
            if text is None:
                continue
            made.append(copy)
            taken.add(copy)
            edits[id(home)].insert_lines(home.source.next_line(callee.end - 1), text.splitlines())
            for call in found:
                if call.same == same:
                    edits[id(call.unit)].replace(call.begin, call.begin + len(callee.name), copy)
                    for begin, end in call.gone:
                        edits[id(call.unit)].replace(begin, end, "")
            if callee.parent is None and callee.result is not None:
                _declare(copy, callee, [call for call in found if call.same == same], edits)
        if made:
            copies[name] = callee, made
            show_copies(callee, made, edits[id(home)])
    for unit in units:
        use_copies(unit, copies, edits[id(unit)])
    return changed_sources(units, edits)


def _declare(copy: str, callee: Routine, calls: Sequence[_Call], edits: dict[int, Edits]) -> None:
    """The type of a function outside of modules, where it is called."""
    for caller in {id(call.caller): call.caller for call in calls}.values():
        known = declared(caller, callee.name)
        unit = next(call.unit for call in calls if call.caller is caller)
        margin = "      " if unit.form is d.Form.FIXED else "  "
        assert known is not None
        edits[id(unit)].insert_lines(caller.declarations_end, [f"{margin}{known.type} {copy}"])


def _calls(
    statement: Statement, unit: Unit, caller: Routine, distributions: Distributions
) -> Iterator[tuple[str, _Call]]:
    """The calls that pass one array several times, by the name of the procedure."""
    known = distributions.redistributions(caller)
    passed: dict[str, list[Reference]] = {}
    for one in statement.references:
        callee = distributions.routines.get(one.argument_of or "")
        if callee is None or one.subscripts is not None or known.array(one) is None or callee is caller:
            continue
        named_here = caller.declarations.get(callee.name)
        if named_here is not None and (callee.parent is not None or named_here.bounds):
            continue  # a variable of that name
        if callee.parent is None and callee.result is not None and declared(caller, callee.name) is None:
            continue
        if one.argument_index < len(callee.arguments):
            passed.setdefault(callee.name, []).append(one)
    for name, found in passed.items():
        callee = distributions.routines[name]
        for begin, end in named(statement, name) if len(found) > 1 else ():
            first: dict[str, str] = {}
            same, gone = [], []
            for one in sorted(found, key=lambda one: one.argument_index):
                if not begin <= one.begin < end:
                    continue
                dummy = callee.arguments[one.argument_index]
                if first.setdefault(one.name, dummy) == dummy:
                    continue
                comma = _COMMA.search(unit.source.text[begin : one.begin])
                if comma is None or not _alike(callee, first[one.name], dummy, distributions):
                    break
                same.append((dummy, first[one.name]))
                gone.append((begin + comma.start(), one.end))
            else:
                if same:
                    yield name, _Call(unit, caller, begin, tuple(same), tuple(gone))


def _alike(callee: Routine, first: str, second: str, distributions: Distributions) -> bool:
    """May both be one argument: are they declared alike, and does the procedure change neither?"""
    one, other = callee.declarations.get(first), callee.declarations.get(second)
    of_callee = distributions.of(callee)
    if one is None or other is None or first not in of_callee or second not in of_callee:
        return False
    bounds = [
        [(folded(b.lower, callee), folded(b.upper or "", callee), b.deferred) for b in each.bounds]
        for each in (one, other)
    ]
    if bounds[0] != bounds[1] or one.type.lower() != other.type.lower() or one.attributes != other.attributes:
        return False
    if "optional" in one.attributes or any(
        isinstance(directive, d.Distribute | d.Align) and directive.name.key in (first, second)
        for directive in callee.directives
    ):
        return False
    if is_intent_in(callee, one) and is_intent_in(callee, other):
        return True
    return all(
        reference.access is Access.READ
        for reference in references(callee.body)
        if reference.name in (first, second)
    )


def _copied(callee: Routine, same: dict[str, str], name: str) -> str | None:
    """The text of the copy; None: the arguments stand where they are not looked for."""
    source = callee.source
    begin, end = source.line_start(callee.begin), source.next_line(callee.end - 1)
    changes: list[tuple[int, int, str]] = []
    for line, code, what, in_type in lines_of(callee, begin, end):
        head = callee.name if line.begin < callee.head_end else ""
        gone = _listed(line, same, head, what.kind)
        if gone is None:
            return None
        for low, high in gone:
            all_of_it = (low, high) == (0, len(line.code))
            place = (line.begin, line.end) if all_of_it else (line.places[low], line.places[high - 1] + 1)
            changes.append((*place, ""))
        for index, word in enumerate(code.words if not in_type else ()):
            if word.kind != "name" or any(low <= word.begin < high for low, high in gone):
                continue
            new = name if word.text == callee.name else same.get(word.text)
            if new is not None and what.word != "save" and is_own(code.words, index):
                changes.append((line.places[word.begin], line.places[word.end - 1] + 1, new))
    text, at = "", begin
    for low, high, new in sorted(changes):
        text, at = text + source.text[at:low] + new, high
    return text + source.text[at:end]


def _listed(
    line: text_lines.Line, same: dict[str, str], name: str, kind: str
) -> list[tuple[int, int]] | None:
    """Where the arguments that go stand in a list of arguments (of the procedure `name`), declared names, or
    shared variables, each with a comma; all of the line, where nothing stays. None: in another list."""
    words = set(re.findall(r"\w+", line.code.lower())) & same.keys()
    if not words:
        return []
    if line.openmp:
        found: list[tuple[int, int]] = []
        for clause in re.finditer(r"(\w+)\s*\(([^()]*)\)", line.code):
            if {word for word in words if re.search(rf"\b{word}\b", clause[2].lower())}:
                if clause[1].lower() != "shared":
                    return None
                gone = _items(line.code, clause.start(2), clause.end(2), words)
                if gone is None or gone == [(0, len(line.code))]:
                    return None
                found += gone
        return found
    if name:
        opening = line.code.find("(", line.code.lower().find(name) + len(name))
        return _items(line.code, opening + 1, line.code.find(")", opening), words)
    if kind not in ("declaration", "attribute"):
        return []
    declared = _HEAD.match(line.code)
    return _items(line.code, declared.end(), len(line.code), words) if declared else None


def _items(code: str, begin: int, end: int, names: set[str]) -> list[tuple[int, int]] | None:
    """Where the items of a list stand that begin with these names, each with the comma before it, the first
    one with that behind it."""
    commas, depth = [begin - 1], 0
    for at in range(begin, end):
        depth += (code[at] in "([") - (code[at] in ")]")
        if code[at] == "," and depth == 0:
            commas.append(at)
    items = list(zip(commas, [*commas[1:], end], strict=True))
    found = []
    for number, (low, high) in enumerate(items):
        word = re.match(r"\s*(\w+)", code[low + 1 : high])
        if word and word[1].lower() in names:
            found.append((low, high) if number else (low + 1, min(high + 1, end)))
    if len(found) == len(items):
        return [(0, len(code))]
    return None if len(found) > 1 and found[0][0] == begin else found
