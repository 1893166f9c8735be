"""Fortran's POINTER arrays that nothing but ALLOCATE and a change of places gives memory (--to spmd, mpi).

They could as well be ALLOCATABLE, and `tmp => u; u => v; v => tmp` MOVE_ALLOC: the text is changed before it
is planned, into what the user could have written. A POINTER that gets other memory stays one, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from homing.translate.directives import model as d
from homing.translate.source import Edits, SourceFile
from homing.translate.targets.clones import changed_sources
from homing.translate.tree import (
    Branch,
    Construct,
    Declaration,
    Kind,
    Loop,
    Node,
    Routine,
    Statement,
    Unit,
    statements,
    walk,
)

_ASSIGNED = re.compile(r"\s*(\w+)\s*=>\s*(\w+)\s*")
_ATTRIBUTE = re.compile(r"(,\s*)pointer\b(?=[^:]*::)", re.IGNORECASE)
_NULL = re.compile(r"\s*=>\s*null\s*\(\s*\)", re.IGNORECASE)
_ASSOCIATED = re.compile(r"\bassociated\s*\(\s*(\w+)\s*\)", re.IGNORECASE)
#: What gets or gives away the memory of a pointer.
_OTHER_USES = frozenset({"c_f_pointer", "c_loc", "loc", "nullify", "move_alloc", "storage_size"})


@dataclass(frozen=True)
class _Said:
    """A statement, the routine and the unit in which it stands, and whether it does so in a loop."""

    statement: Statement
    routine: Routine
    unit: Unit
    repeated: bool

    @property
    def words(self) -> set[str]:
        return set(re.findall(r"\w+", self.statement.text.lower()))


@dataclass
class _Group:
    """The distributed pointers of a scope, and the variables that hold one of them meanwhile."""

    scope: Routine
    names: set[str]
    holders: dict[str, Routine] = field(default_factory=dict)
    swaps: list[_Said] = field(default_factory=list)


def as_allocatables(units: Sequence[Unit]) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence."""
    edits = {id(unit): Edits(unit.source) for unit in units}
    fortran = [unit for unit in units if unit.form is not d.Form.C]
    every = [one for unit in fortran for routine in unit.routines for one in _said(routine, unit)]
    routines = {routine.name: routine for unit in fortran for routine in unit.routines}
    for routine in list(routines.values()):
        names = {
            one.name.key
            for one in routine.directives
            if isinstance(one, d.Distribute | d.Align) and _is_plain(routine, one.name.key)
        }
        group = _Group(routine, names)
        if names and _understood(group, every, routines):
            _change(group, every, routines, fortran, edits)
    return changed_sources(units, edits)


def _is_plain(routine: Routine, name: str) -> bool:
    found = routine.declarations.get(name)
    if found is None or found.storage != "pointer" or name in routine.arguments or name == routine.result:
        return False
    said = {word for one, word in routine.said if one == name}
    return "target" not in found.attributes and not found.elsewhere and said <= {"save"}


def _said(routine: Routine, unit: Unit) -> Iterator[_Said]:
    inside = [(node.begin, node.end) for node in walk(routine.body) if isinstance(node, Loop)]
    for one in statements(routine.body):
        yield _Said(one, routine, unit, any(begin <= one.begin < end for begin, end in inside))


def _owner(name: str, routine: Routine, routines: dict[str, Routine]) -> Routine | None:
    """Whose variable the name means there, as far as it is declared in the files given."""
    scope: Routine | None = routine
    while scope is not None:
        if name in scope.declarations:
            return scope
        for used, (_, _, only) in scope.uses.items():
            module = routines.get(used)
            known = module is not None and name in module.declarations
            if known and (only is None or name in re.findall(r"\w+", only.lower())):
                return module
        scope = scope.parent
    return None


def _understood(group: _Group, every: Sequence[_Said], routines: dict[str, Routine]) -> bool:
    """Does all that is done with the pointers go with ALLOCATABLE arrays, too?"""

    def named(one: _Said) -> set[str]:
        found = group.names & one.words
        return {name for name in found if _owner(name, one.routine, routines) is group.scope}

    allocated: list[str] = []
    known = {id(one.statement): one for one in every}
    for routine in routines.values():
        if any(name in group.names for _, name, _, _ in routine.renamed):
            return False
        for run in _runs(routine.body):
            held = _swapped(run, group.names)
            mine = [known[id(statement)] for statement in run]
            if held is None or not all(map(named, mine)):
                continue
            owner = _owner(held, routine, routines)
            if owner is None or group.holders.setdefault(held, owner) is not owner:
                return False
            group.swaps += mine
    swapping = {id(one.statement) for one in group.swaps}
    for one in every:
        if id(one.statement) in swapping:
            continue
        holding = group.holders.keys() & one.words
        holds = any(_owner(x, one.routine, routines) is group.holders[x] for x in holding)
        here = named(one)
        text = one.statement.text.lower()
        others = {*_OTHER_USES & one.words, *(["=>"] if "=>" in text else [])}
        if holds or (here and (others or not _asks_for(text, here))):
            return False
        for reference in one.statement.references:
            callee = routines.get(reference.argument_of or "")
            if reference.name not in here or callee is None:
                continue
            dummies = callee.arguments[reference.argument_index : reference.argument_index + 1]
            kinds = [callee.declarations[x] for x in dummies if x in callee.declarations]
            if any("pointer" in {one.storage, *one.attributes} for one in kinds):
                return False
        if one.statement.kind is Kind.ALLOCATE:
            allocated += [*here, *(here if one.repeated else ())]
    # A pointer may get new memory before it gave the other back.
    once = len(allocated) == len(set(allocated))
    return once and all(_declared_alike(group, held) for held in group.holders)


def _asks_for(text: str, names: set[str]) -> bool:
    """Is ASSOCIATED asked of the pointers alone, if at all?"""
    found = [match[1] for match in _ASSOCIATED.finditer(text)]
    return len(found) == len(re.findall(r"\bassociated\b", text)) and set(found) <= names


def _runs(nodes: Sequence[Node]) -> Iterator[list[Statement]]:
    """Assignments of pointers that follow each other."""
    run: list[Statement] = []
    for node in nodes:
        if isinstance(node, Statement) and node.form == "pointer" and node.label is None and not node.guarded:
            run.append(node)
            continue
        yield from _rings(run)
        run = []
        if isinstance(node, Loop | Construct):
            yield from _runs(node.body)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from _runs(body)
    yield from _rings(run)


def _rings(run: Sequence[Statement]) -> Iterator[list[Statement]]:
    """t => a, a => b, b => t: those that begin and end with the same variable."""
    ring: list[Statement] = []
    for one in run:
        ring.append(one)
        first, now = (_ASSIGNED.fullmatch(each.text.lower()) for each in (ring[0], one))
        if first and now and len(ring) > 2 and now[2] == first[1]:
            yield ring
            ring = []


def _swapped(ring: Sequence[Statement], names: set[str]) -> str | None:
    """The variable that holds the first one meanwhile, where the pointers change places."""
    pairs = []
    for one in ring:
        match = _ASSIGNED.fullmatch(one.text.lower())
        if match is None:
            return None
        pairs.append((match[1], match[2]))
    held = pairs[0][0]
    follows = all(before[1] == after[0] for before, after in pairwise(pairs))
    gone = [to for to, _ in pairs[1:]]
    return held if follows and held not in names and {*gone} <= names and len({*gone}) == len(gone) else None


def _declared_alike(group: _Group, held: str) -> bool:
    one = group.holders[held].declarations[held]
    first = group.scope.declarations[min(group.names)]
    return (
        one.storage == "pointer"
        and not one.elsewhere
        and "target" not in one.attributes
        and one.type.lower() == first.type.lower()
        and len(one.bounds) == len(first.bounds)
    )


def _change(
    group: _Group,
    every: Sequence[_Said],
    routines: dict[str, Routine],
    units: Sequence[Unit],
    edits: dict[int, Edits],
) -> None:
    home = {id(routine): unit for unit in units for routine in unit.routines}
    owners = {**dict.fromkeys(group.names, group.scope), **group.holders}
    declared: dict[tuple[int, int], tuple[Routine, list[Declaration]]] = {}
    for name, owner in owners.items():
        found = owner.declarations[name]
        place = id(home[id(owner)]), found.statement_begin
        declared.setdefault(place, (owner, []))[1].append(found)
    texts = []
    for owner, found_there in declared.values():
        one = found_there[0]
        text = owner.source.text[one.statement_begin : one.statement_end]
        changed, times = _ATTRIBUTE.subn(r"\1allocatable", text)
        if one.entities != len(found_there) or times != 1:
            return  # it declares others, too
        texts.append((home[id(owner)], one, _NULL.sub("", changed)))
    for unit, one, text in texts:
        edits[id(unit)].replace(one.statement_begin, one.statement_end, text)
    for said in group.swaps:
        match = _ASSIGNED.fullmatch(said.statement.text)
        assert match is not None
        begin, end = said.statement.begin, said.statement.end
        edits[id(said.unit)].replace(begin, end, f"call move_alloc({match[2]}, {match[1]})")
    for said in every:
        text = said.unit.source.text
        for match in _ASSOCIATED.finditer(text, said.statement.begin, said.statement.end):
            name = match[1].lower()
            if name in group.names and _owner(name, said.routine, routines) is group.scope:
                word = match.start() + len("associated")
                edits[id(said.unit)].replace(match.start(), word, "allocated")
