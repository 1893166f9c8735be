"""The whole program as --to upm sees it: who calls whom, and which array a name means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form
from homing.translate.front.resolve import number
from homing.translate.plan.by_use import ByUse
from homing.translate.tree import (
    Construct,
    Declaration,
    Node,
    Reference,
    Routine,
    Unit,
    references,
    statements,
    walk,
)

#: Whose array it is and its name: a routine's, a module's, a COMMON block's (/block/), or a C file's.
Identity = tuple[str, str]
#: The owner of C's arrays that all files see.
GLOBAL = "global"
_NOT_SHARED = ("private", "firstprivate", "lastprivate", "reduction", "linear", "copyprivate")
_ALL_PRIVATE = frozenset({"private", "firstprivate"})


class Program:
    """All units that are translated together."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self.routines: dict[str, Routine] = {}
        self.modules: dict[str, Routine] = {}
        self.files: list[Routine] = []  # C's, each the scope of its globals
        for unit in units:
            for routine in unit.routines:
                if routine.module:
                    if unit.form is Form.C:
                        self.files.append(routine)
                    else:
                        self.modules[routine.name] = routine
                else:
                    self.routines.setdefault(routine.name, routine)
        self._brought = ByUse(self.modules).brought
        number(self.all(), self.routines)
        #: Where a procedure gets which argument, where every thread has the same one.
        self.callers: dict[str, list[tuple[Routine, Reference]]] = {}
        for routine in self.all():
            constructs = [node for node in walk(routine.body) if isinstance(node, Construct)]
            for reference in references(routine.body):
                callee = reference.argument_of or ""
                if callee in self.routines and not _is_hidden(routine, reference, constructs):
                    self.callers.setdefault(callee, []).append((routine, reference))

    def all(self) -> Iterator[Routine]:
        """Every routine that has statements."""
        for unit in self.units:
            yield from (routine for routine in unit.routines if not routine.module)

    # --- calls --------------------------------------------------------------------------------------------

    def callees(self, nodes: Sequence[Node]) -> list[Routine]:
        """The procedures of the program that the nodes call."""
        return [self.routines[name] for name in called(nodes) if name in self.routines]

    def reached(
        self, routine: Routine, nodes: Sequence[Node], seen: frozenset[str] = frozenset()
    ) -> Iterator[tuple[Routine, Node]]:
        """Every node below, and below what is called, with whose it is."""
        for node in walk(list(nodes)):
            yield routine, node
        for callee in self.callees(nodes):
            if callee.name not in seen:
                yield from self.reached(callee, callee.body, seen | {callee.name})

    def called_inside(self, procedure: Routine, regions: bool = False) -> tuple[Routine, Construct] | None:
        """A construct in which the procedure is called, perhaps by another; regions: also a parallel region,
        whose whole team calls."""
        for routine in self.all():
            for node in walk(routine.body) if routine is not procedure else ():
                if not isinstance(node, Construct) or (node.directive.name == "parallel" and not regions):
                    continue
                if any(owner is procedure for owner, _ in self.reached(routine, node.body)):
                    return routine, node
        return None

    # --- names --------------------------------------------------------------------------------------------

    def resolve(
        self, routine: Routine, name: str, seen: frozenset[tuple[str, str]] = frozenset()
    ) -> dict[Identity, Declaration]:
        """The arrays that a name can mean: a dummy's are those that callers pass. Not those of which every
        thread has its own."""
        if (routine.name, name) in seen:
            return {}
        seen |= {(routine.name, name)}
        found = routine.lookup(name)
        if found is None:
            used = self.used(routine, name)
            return self.resolve(*used, seen) if used else {}
        scope, declaration = found
        if {name, declaration.block} & scope.private:
            return {}
        if declaration.storage == "dummy":
            result: dict[Identity, Declaration] = {}
            for caller, reference in self.callers.get(scope.name, []):
                index = scope.arguments.index(name) if name in scope.arguments else -1
                if reference.argument_index == index:
                    result.update(self.resolve(caller, reference.name, seen))
            return result
        is_array = bool(declaration.bounds) or declaration.storage == "pointer"
        if not is_array or "parameter" in declaration.attributes:
            return {}
        owner = f"/{declaration.block}/" if declaration.storage == "common" else scope.name
        if any(scope is file for file in self.files) and "save" not in declaration.attributes:
            owner = GLOBAL
        return {(owner, name): declaration}

    def declaration(self, routine: Routine, name: str) -> Declaration | None:
        """Of what the name means in the routine, its own or a module's."""
        found = routine.lookup(name)
        if found is not None:
            return found[1]
        elsewhere = self.used(routine, name)
        return elsewhere[0].declarations.get(elsewhere[1]) if elsewhere else None

    def declares(self, routine: Routine, name: str) -> bool:
        """Is it known what the name is?"""
        return routine.lookup(name) is not None or self.used(routine, name) is not None

    def visible(self, routine: Routine) -> list[str]:
        """The names that may stand in a routine, nearest first."""
        names: list[str] = []
        scope: Routine | None = routine
        while scope is not None:
            names += [*scope.declarations, *self._brought(scope), *sorted(scope.included)]
            scope = scope.parent
        return list(dict.fromkeys(names))

    def used(self, routine: Routine, name: str) -> tuple[Routine, str] | None:
        """The module that a name comes from by USE, or the C file, and what it is called there."""
        scope: Routine | None = routine
        while scope is not None:
            if name in self._brought(scope):
                return self._brought(scope)[name]
            if name in scope.included:
                for file in self.files:
                    if name in file.declarations and "save" not in file.declarations[name].attributes:
                        return file, name
            scope = scope.parent
        return None


def called(nodes: Sequence[Node]) -> list[str]:
    """The names that the nodes call, and those that may be calls of functions."""
    names: list[str] = []
    for statement in statements(list(nodes)):
        names += statement.calls
        names += [r.argument_of for r in statement.references if r.argument_of]
        names += [r.name for r in statement.references if r.subscripts is not None]
    return list(dict.fromkeys(names))


def hidden_in(construct: Construct, routine: Routine) -> set[str]:
    """The names of which every thread of a construct has its own, or that are declared inside."""
    directive = construct.directive
    names = directive.listed(*_NOT_SHARED)
    for name, places in routine.places.items():
        if any(construct.begin <= place < construct.end for place in places):
            names.add(name)
    if any((clause.text or "").strip() in _ALL_PRIVATE for clause in directive.clause("default")):
        names |= {reference.name for reference in references([construct])} - directive.listed("shared")
    return names


def _is_hidden(routine: Routine, reference: Reference, constructs: Sequence[Construct]) -> bool:
    return any(
        construct.begin <= reference.begin < construct.end and reference.name in hidden_in(construct, routine)
        for construct in constructs
    )


def place(routine: Routine, node: Node) -> str:
    """FILE:LINE of a node, as the user finds it."""
    return ":".join(map(str, routine.source.origin(routine.source.line_of(node.begin))))
