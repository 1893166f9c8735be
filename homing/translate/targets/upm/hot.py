"""Hot arrays: shared ones that parallel constructs both read and write, possibly different ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from homing.translate.directives.model import Form
from homing.translate.positions import Problem
from homing.translate.targets.upm.pointers import same_memory
from homing.translate.targets.upm.program import Identity, Program, hidden_in
from homing.translate.targets.upm.unfollowed import not_followed
from homing.translate.tree import (
    CLASSES,
    Access,
    Construct,
    Declaration,
    Node,
    Reference,
    Routine,
    Statement,
    statements,
    walk,
)


@dataclass
class Use:
    """Where parallel constructs read and write an array."""

    declaration: Declaration
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


@dataclass
class Found:
    """hot: the arrays to be registered. unfollowed: why memory in parallel constructs is none of them, with
    its place. lines: all of it, for the user."""

    hot: dict[Identity, Use] = field(default_factory=dict)
    unfollowed: list[Problem] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def hot_arrays(program: Program) -> Found:
    """Every array of the program's parallel constructs; the lines say of each why (not)."""
    collector = _Collector(program)
    for routine in program.all():
        for node in walk(routine.body):
            if isinstance(node, Construct) and node.parallel:
                collector.collect(routine, [node], frozenset(hidden_in(node, routine)), frozenset())
    found = Found()
    scopes = {id(one.parent or one): one.parent or one for one in program.all()}
    for scope in scopes.values():
        for begin, end, what in scope.apart.regions if scope.apart is not None else ():
            collector.unseen(scope, frozenset())
            place = scope.source.place(begin)
            found.lines.append(f"upm: not followed: a parallel construct in {what}: {place}")
            reason = f"nothing is hot but what {what} may use, which is not followed: no calls are inserted"
            found.unfollowed.append(scope.source.problem(begin, end, reason))
    collector.join()
    for (where, name), (reason, problem) in sorted(collector.unfollowed.items()):
        found.lines.append(f"upm: not followed: {name} ({where}): {reason}")
        found.unfollowed.append(problem)
    for identity, use in sorted(collector.uses.items()):
        reads, writes = sorted(set(use.reads)), sorted(set(use.writes))
        name = f"{identity[1]} ({identity[0]})"
        if reads and writes:
            found.hot[identity] = use
            found.lines.append(f"upm: hot: {name}: read in {_some(reads)}; written in {_some(writes)}")
        else:
            only = f"only read, in {_some(reads)}" if reads else f"only written, in {_some(writes)}"
            found.lines.append(f"upm: not hot: {name}: {only}")
    return found


class _Collector:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.uses: dict[Identity, Use] = {}
        self.unfollowed: dict[tuple[str, str], tuple[str, Problem]] = {}

    def collect(
        self, routine: Routine, nodes: Sequence[Node], hidden: frozenset[str], seen: frozenset[str]
    ) -> None:
        """What the nodes use, and what they call. hidden: names of which each thread has its own. seen: the
        procedures that are called inside the construct on the way here."""
        for node in walk(list(nodes)):
            if isinstance(node, Construct):
                hidden |= hidden_in(node, routine)
        rows = self._rows(routine, nodes, hidden)
        for statement in statements(list(nodes)):
            for reference in statement.references:
                if reference.name not in hidden and reference.name not in routine.private:
                    self._reference(routine, statement, reference, seen)
                for name in rows.get(reference.name, ()):
                    self._reference(routine, statement, replace(reference, name=name), seen)
            if CLASSES in statement.calls:
                self.unseen(routine, hidden)
            for callee in self.program.callees([statement]):
                if callee.name not in seen:
                    self.collect(callee, callee.body, frozenset(callee.private), seen | {callee.name})

    def unseen(self, routine: Routine, hidden: frozenset[str]) -> None:
        """C++: which code of classes and lambdas a call runs is not followed, nor what it does to arrays."""
        scope = routine.parent or routine
        for name, begin in scope.apart.words.items() if scope.apart is not None else ():
            around = [one for one in self.program.all() if one.source is routine.source and not one.module]
            holder = next((one for one in around if one.begin <= begin < one.end), scope)
            if holder is routine and name in hidden:
                continue
            place = f"{CLASSES}:{routine.source.user_line(begin)}"
            for identity, declaration in self.program.resolve(holder, name).items():
                use = self.uses.setdefault(identity, Use(declaration))
                use.reads.append(place)
                use.writes.append(place)

    def _rows(self, routine: Routine, nodes: Sequence[Node], hidden: frozenset[str]) -> dict[str, list[str]]:
        """What pointers of a thread's own mean, `double *row = a[i]`."""
        found: dict[str, list[str]] = {}
        for statement in statements(list(nodes)):
            for name, other in same_memory(routine, statement, self.program.routines):
                if name in hidden and other not in hidden:
                    found.setdefault(name, []).append(other)
        return found

    def join(self) -> None:
        """What pointers are used for that get each other's memory counts for all of them."""
        groups = {identity: {identity} for identity in self.uses}
        for routine in self.program.all():
            for statement in statements(routine.body):
                for pair in same_memory(routine, statement, self.program.routines):
                    meant = {one for name in pair for one in self.program.resolve(routine, name)}
                    group = set().union(*(groups.get(one, {one}) for one in meant))
                    groups.update((one, group) for one in group)
        uses = self.uses
        self.uses = {
            identity: Use(
                use.declaration,
                [place for one in groups[identity] if one in uses for place in uses[one].reads],
                [place for one in groups[identity] if one in uses for place in uses[one].writes],
            )
            for identity, use in uses.items()
        }

    def _reference(
        self, routine: Routine, statement: Statement, reference: Reference, seen: frozenset[str]
    ) -> None:
        if reference.argument_of in self.program.routines:
            return  # what the procedure does with it counts
        place = f"{routine.name}:{routine.source.user_line(statement.begin)}"
        meant = self.program.resolve(routine, reference.name)
        if reason := not_followed(self.program, routine, reference, meant.values()):
            problem = routine.source.problem(
                reference.begin,
                reference.end,
                f"nothing is hot but what is not followed: {reason}: no calls are inserted",
            )
            self.unfollowed.setdefault((routine.name, reference.name), (f"{reason}, in {place}", problem))
        for identity, declaration in meant.items():
            if identity[0] in seen and _is_each_calls_own(self.program.routines[identity[0]], declaration):
                continue
            use = self.uses.setdefault(identity, Use(declaration))
            if reference.access is not Access.WRITE or reference.apart is not None:
                use.reads.append(place)
            changed = reference.changed or reference.apart is not None  # by classes, which are not followed
            if reference.access not in (Access.READ, Access.OTHER) or changed:
                use.writes.append(place)


def _is_each_calls_own(routine: Routine, declaration: Declaration) -> bool:
    """Does each call of the procedure have its own array, and so each thread that calls it?"""
    if "save" in declaration.attributes or declaration.storage == "common":
        return False
    return routine.source.form is Form.C or declaration.initial is None


def _some(places: Sequence[str]) -> str:
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
