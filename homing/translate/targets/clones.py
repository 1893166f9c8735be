"""Fortran procedures that are called with arrays of different distributions (--to spmd, --to mpi).

What a procedure does to a part is written for one distribution of each dummy. Where calls differ, the program
gets a copy of the procedure for each kind of call, under a name of its own, before it is planned: what the
user could have written. The procedure itself is left to calls without distributed arrays, if there are some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homing.translate.directives import model as d
from homing.translate.front import lines as text_lines
from homing.translate.front.expressions import Expressions
from homing.translate.front.kinds import Form, form
from homing.translate.front.tokens import Token, closing
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.source import Edits, SourceFile
from homing.translate.tree import Construct, Routine, Statement, Unit, statements, walk

#: What a call passes: of each distributed argument its place and distribution; and whether it is made inside
#: a parallel region. Empty: nothing distributed.
_Kind = tuple[object, ...]


#: Characters that a name may have: the Fortran standard's limit.
_LONGEST_NAME = 63


#: Attributes of arguments for which a procedure has to have an explicit interface where it is called.
_BY_INTERFACE = frozenset(
    {"allocatable", "asynchronous", "optional", "pointer", "target", "value", "volatile"}
)


@dataclass(frozen=True)
class _Call:
    unit: Unit
    begin: int  # of the name
    kind: _Kind


def as_clones(units: Sequence[Unit], distributions: Distributions) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence; none where nothing can be done."""
    if sum(routine.main for unit in units for routine in unit.routines) > 1:
        return {}  # programs that share files: each may call them in its own way
    edits = {id(unit): Edits(unit.source) for unit in units}
    names = {routine.name for unit in units for routine in unit.routines}
    copies: dict[str, tuple[Routine, list[str]]] = {}
    for callee in distributions.passing.several.values():
        calls = list(_calls(units, distributions, callee)) if can_be_copied(callee, units) else []
        kinds = list(dict.fromkeys(call.kind for call in calls))
        if len(kinds) < 2:
            continue
        kept = () if () in kinds else kinds[0]
        made = {}
        for kind in kinds:
            if kind != kept:
                made[kind] = new_name(callee.name, names)
                names.add(made[kind])
        home = next(unit for unit in units if callee in unit.routines)
        for call in calls:
            if call.kind in made:
                edits[id(call.unit)].replace(call.begin, call.begin + len(callee.name), made[call.kind])
        copies[callee.name] = callee, list(made.values())
        _copy(*copies[callee.name], edits[id(home)])
    for unit in units:
        use_copies(unit, copies, edits[id(unit)])
    return changed_sources(units, edits)


def changed_sources(units: Sequence[Unit], edits: dict[int, Edits]) -> dict[int, SourceFile]:
    """The units that have edits, with these, by their places."""
    found = {}
    for index, unit in enumerate(units):
        if edits[id(unit)].any:
            begins = [line.line_begin for line in text_lines.split(unit.source)]
            text = edits[id(unit)].apply(begins)
            found[index] = SourceFile(unit.source.path, text, unit.form, unit.source.fixed_columns)
    return found


def new_name(name: str, taken: set[str]) -> str:
    name = re.sub(r"_of_kind_\d+$", "", name)
    ends = (f"_of_kind_{number}" for number in range(2, 10_000))
    return next(one for end in ends if (one := name[: _LONGEST_NAME - len(end)] + end) not in taken)


def can_be_copied(callee: Routine, units: Sequence[Unit], typed: bool = False) -> bool:
    """Would a copy do what the procedure does? It would have variables with SAVE of its own. typed: its type
    will be declared where it is called."""
    if callee.source.form is d.Form.C or callee.main or callee.head_end == callee.begin:
        return False
    every = [one for unit in units for one in unit.routines]
    if any(one.parent is callee or (one.name == callee.name and one is not callee) for one in every):
        return False  # which of two procedures a call means is not looked into
    if any(original == callee.name for one in every for _, original, _, _ in one.renamed):
        return False
    if re.search(r"\bbind\s*\(", callee.source.text[callee.begin : callee.head_end], re.IGNORECASE):
        return False  # other languages know it by its name
    if callee.saves or any(word in ("save", "data") for _, word in callee.said) or _saves_inside(callee):
        return False
    if callee.parent is None and needs_interface(callee, every, typed):
        return False  # a copy has none: an INTERFACE block names the procedure itself
    kept = (
        one
        for one in callee.declarations.values()
        if "parameter" not in one.attributes
        and (one.attributes & {"save", "data"} or one.initial is not None)
    )
    entry = re.compile(r"^\s*entry\b", re.IGNORECASE | re.MULTILINE)
    return next(kept, None) is None and entry.search(callee.source.text, callee.begin, callee.end) is None


def needs_interface(callee: Routine, every: Sequence[Routine], typed: bool = False) -> bool:
    """Can an external procedure not be called without its interface? A function's type is declared there,
    or (typed) as a variable's."""
    if callee.result is not None and not typed:
        return True
    for name in callee.arguments:
        one = callee.declarations.get(name)
        if one is None:
            continue
        shape = any(bound.deferred for bound in one.bounds) or one.type.lower().startswith("class")
        if shape or one.attributes & _BY_INTERFACE:
            return True
    names = "|".join(map(re.escape, callee.arguments))
    keyword = re.compile(rf"\bcall\s+{callee.name}\s*\((?:.*,)?\s*(?:{names})\s*=(?!=)", re.IGNORECASE)
    return any(
        callee.name in statement.calls and keyword.search(statement.text)
        for routine in every
        for statement in statements(routine.body)
    )


def _saves_inside(callee: Routine) -> bool:
    """Are there variables with SAVE of BLOCK constructs, or DATA among the statements?"""
    for statement in statements(callee.body):
        if statement.form in ("attribute", "data"):
            return True
        entities = statement.text.rpartition("::")[2]
        if statement.form == "declaration" and ("=" in entities or "save" in statement.text.lower()):
            return True
    return False


def _calls(units: Sequence[Unit], distributions: Distributions, callee: Routine) -> Iterator[_Call]:
    """The calls by the procedure's own name, but for those in itself, which name the copy in a copy."""
    for unit in units:
        for routine in unit.routines if unit.form is not d.Form.C else ():
            if routine is callee or callee.name in routine.declarations:
                continue
            regions = [
                (node.begin, node.end)
                for node in walk(routine.body)
                if isinstance(node, Construct) and node.parallel
            ]
            for statement in statements(routine.body):
                inside = any(begin <= statement.begin < end for begin, end in regions)
                inside |= id(routine) in distributions.passing.in_regions
                passed = _passed(statement, routine, callee, distributions)
                for begin, end in named(statement, callee.name):
                    within = {index: how for at, index, how in passed if begin <= at < end}
                    yield _Call(unit, begin, (inside, *sorted(within.items())) if within else ())


def named(statement: Statement, name: str) -> Iterator[tuple[int, int]]:
    """Where the name stands, and where the list of its arguments ends."""
    words = Expressions(statement.code, statement.places).words if statement.places else []
    for index, word in enumerate(words):
        if word.kind == "name" and word.text == name and is_own(words, index):
            listed = index + 1 < len(words) and words[index + 1].text == "("
            last = words[closing(words, index + 1)] if listed else word
            yield statement.places[word.begin], statement.places[last.end - 1] + 1


def is_own(words: Sequence[Token], index: int) -> bool:
    """Is a name neither a component (t%name) nor the name of an argument (name=...)?"""
    before = words[index - 1].text if index else ""
    behind = words[index + 1].text if index + 1 < len(words) else ""
    return before != "%" and not (before in ("(", ",") and behind == "=")


def lines_of(
    callee: Routine, begin: int, end: int
) -> Iterator[tuple[text_lines.Line, Expressions, Form, bool]]:
    """The lines of a procedure's text, what stands in each, its form, and whether a type is being defined."""
    in_type = False
    for line in text_lines.split(callee.source):
        if not begin <= line.begin < end:
            continue
        code = Expressions(line.code, line.places)
        what = form(code.words)
        in_type = what.kind == "type definition" or (
            in_type and not (what.kind == "end" and what.word == "type")
        )
        yield line, code, what, in_type


def _own_names(callee: Routine, begin: int, end: int) -> Iterator[int]:
    """Where the text of a procedure names it."""
    for line, code, what, in_type in lines_of(callee, begin, end):
        if in_type or what.kind == "common" or what.word == "save":
            continue  # components, and blocks
        for index, word in enumerate(code.words):
            if word.kind == "name" and word.text == callee.name and is_own(code.words, index):
                yield line.places[word.begin]


def _passed(
    statement: Statement, caller: Routine, callee: Routine, distributions: Distributions
) -> list[tuple[int, int, _Kind]]:
    """Of each distributed array that it gets: where it stands, which argument it is, its distribution."""
    known = distributions.redistributions(caller)
    return [
        (reference.begin, reference.argument_index, _distribution(array))
        for reference in statement.references
        if reference.argument_of == callee.name
        and reference.subscripts is None
        and (array := known.array(reference)) is not None
    ]


def _distribution(array: Array) -> _Kind:
    return tuple((one.kind, one.argument, one.offset) for one in array.dimensions)


def _copy(callee: Routine, names: Sequence[str], edits: Edits) -> None:
    """Copies of the procedure behind it."""
    source = callee.source
    begin, end = source.line_start(callee.begin), source.next_line(callee.end - 1)
    own = list(_own_names(callee, begin, end))
    for name in names:
        text, at = "", begin
        for place in own:
            text += source.text[at:place] + name
            at = place + len(callee.name)
        text += source.text[at:end]
        edits.insert_lines(end, text.splitlines())
    show_copies(callee, names, edits)


def show_copies(callee: Routine, names: Sequence[str], edits: Edits) -> None:
    """A module shows copies of its procedure to those that use it."""
    module = callee.parent
    if module is not None and module.module:
        margin = "      " if callee.source.form is d.Form.FIXED else "  "
        edits.insert_lines(module.declarations_end, [f"{margin}public :: {', '.join(names)}"])


def use_copies(unit: Unit, copies: dict[str, tuple[Routine, list[str]]], edits: Edits) -> None:
    """ONLY lists that name a procedure name its copies."""
    for routine in unit.routines:
        for module, (_, end, only) in routine.uses.items():
            listed = {part.strip() for part in only.split(",")} if only is not None else set()
            found = [copies[name] for name in sorted(listed & copies.keys())]
            more = [
                name
                for callee, names in found
                if callee.parent is not None and callee.parent.name == module
                for name in names
            ]
            if more:
                edits.replace(end, end, f", {', '.join(more)}")
