"""REDISTRIBUTE: which distribution an array has at each place of a routine.

A place must be reached with one distribution only, whatever way the program takes: what stands there is
written for that one. So a loop gives back what it found, and the ways through a branch end alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    leads,
    walk,
)

#: The distributions of the arrays that are dealt out anew somewhere, by name.
_State = dict[str, Array]
_JUMPS_IN_LOOP = ("exit", "cycle", "break", "continue")


class Redistributions:
    """One routine. steps: what each REDISTRIBUTE makes of an array. Problems are given to `wrong`."""

    def __init__(
        self,
        routine: Routine,
        arrays: dict[str, Array],
        made_of: Callable[[Array, d.Redistribute], Array | None],
        wrong: Callable[[int, int, str], None],
        reaches: Callable[[Statement | None], bool],
    ) -> None:
        """reaches: does a statement call what works on distributed arrays of other scopes? None: does a
        parallel region call the routine?"""
        self.steps: dict[int, tuple[Array, Array]] = {}  # by id() of the directive's node
        self._arrays = arrays
        self._made_of = made_of
        self._wrong = wrong
        self._reaches = reaches
        self._routine = routine
        self._versions: dict[str, list[Array]] = {}
        self._at: dict[int, Array] = {}
        self._loops: list[_State] = []
        self._labels: dict[str, _State] = {}
        self._jumps: list[tuple[Statement, str, _State]] = []
        named = {
            node.directive.name.key
            for node in walk(routine.body)
            if isinstance(node, Executable) and isinstance(node.directive, d.Redistribute)
        }
        if not named:
            return
        state = {name: array for name, array in arrays.items() if name in named}
        self._versions = {name: [array] for name, array in state.items()}
        #: Arrays of the scopes around: other procedures find them as they are declared.
        self._shared = {name: array for name, array in state.items() if array.routine is not routine}
        self._walk(routine.body, state)
        self._same(routine.body, state, self._shared, "the procedure's caller goes on")
        for statement, label, then in self._jumps:
            if self._labels.get(label) != then:
                self._jump_wrong(statement)

    def array(self, reference: Reference) -> Array | None:
        """What the reference's name means there; None for an array that is not distributed."""
        return self._at.get(id(reference), self._arrays.get(reference.name))

    # --- the ways through the routine -------------------------------------------------------------------

    def _walk(self, nodes: Sequence[Node], state: _State) -> None:
        """state: as it is before the nodes; afterwards as it is behind them."""
        for node in nodes:
            if isinstance(node, Statement):
                self._statement(node, state)
            elif isinstance(node, Executable):
                if isinstance(node.directive, d.Redistribute):
                    self._redistribute(node, node.directive, state)
            elif isinstance(node, Construct):
                self._walk(node.body, state)
            elif isinstance(node, Loop):
                self._statement(node.head, state)
                before = dict(state)
                self._loops.append(before)
                self._walk(node.body, state)
                self._loops.pop()
                self._same([node], state, before, "the loop begins anew")
            else:
                self._branch(node, state)

    def _branch(self, node: Branch, state: _State) -> None:
        if node.switch:
            self._loops.append(dict(state))
        before = dict(state)
        ends = []
        for head, body in node.arms:
            self._statement(head, before)
            inside = dict(before)
            self._walk(body, inside)
            ends.append(inside)
        if node.switch:
            self._loops.pop()
        if node.complete:
            state.update(ends[0])
        for end in ends:
            self._same([node], end, state, "another way leads around it")

    def _same(self, nodes: list[Node], state: _State, wanted: _State, why: str) -> None:
        for name, array in wanted.items():
            if state[name] is array:
                continue
            last = [
                inner
                for inner in walk(nodes)
                if isinstance(inner, Executable) and id(inner) in self.steps
                if self.steps[id(inner)][0].name == name
            ][-1]
            self._wrong(
                last.begin,
                last.end,
                f"behind it '{name}' has another distribution than where {why}: REDISTRIBUTE it back at the "
                "end of the loop or branch",
            )
            state[name] = array

    def _statement(self, statement: Statement, state: _State) -> None:
        for reference in statement.references:
            if reference.name in state:
                self._at[id(reference)] = state[reference.name]
        if statement.kind is Kind.ALLOCATE:
            for reference in statement.references:
                dealt = reference.access is Access.WRITE and state.get(reference.name)
                if dealt and dealt is not self._arrays[reference.name]:
                    self._wrong(
                        reference.begin,
                        reference.end,
                        f"'{reference.name}' has the distribution of a REDISTRIBUTE here: an array that is "
                        "allocated has its first one",
                    )
        away = [name for name, array in self._shared.items() if state[name] is not array]
        if away and statement.jump == "return":
            self._jump_wrong(statement)
        elif away and self._reaches(statement):
            reason = (
                f"calls what works on arrays as they are declared, and '{away[0]}' is dealt out otherwise"
            )
            self._wrong(statement.begin, statement.end, f"{reason} here: REDISTRIBUTE it before")
        if statement.label:
            self._labels[statement.label] = dict(state)
        if statement.jump in _JUMPS_IN_LOOP and self._loops and state != self._loops[-1]:
            self._jump_wrong(statement)
        for label in leads(statement):
            self._jumps.append((statement, label, dict(state)))

    def _jump_wrong(self, statement: Statement) -> None:
        self._wrong(
            statement.begin,
            statement.end,
            "where it leads, arrays have another distribution than here: REDISTRIBUTE them before",
        )

    def _has(self, array: Array) -> bool:
        """Is it of the routine, or of what it stands in?"""
        scope: Routine | None = self._routine
        while scope is not None and scope is not array.routine:
            scope = scope.parent
        return scope is not None

    # --- directives -------------------------------------------------------------------------------------

    def _redistribute(self, node: Executable, directive: d.Redistribute, state: _State) -> None:
        name = directive.name.key
        array = state.get(name)
        if array is None:
            templates = {one.name.key for one in self._routine.directives if isinstance(one, d.Template)}
            reason = "is a template: REDISTRIBUTE the arrays" if name in templates else "is not distributed"
            self._wrong(node.begin, node.end, f"'{directive.name}' {reason}")
            return
        if array.dummy or not (self._has(array) and (name not in self._shared or not self._reaches(None))):
            self._wrong(node.begin, node.end, f"redistribute '{directive.name}' where it is declared")
            return
        made = self._made_of(array, directive)
        if made is None:
            return
        # What was there before is the same again: arrays that lay together do so again.
        for known in self._versions[name]:
            if known.dimensions == made.dimensions:
                made = known
                break
        else:
            self._versions[name].append(made)
        self.steps[id(node)] = (array, made)
        state[name] = made
