"""Where the threads of a region may go ways of their own: code that only some of them come to, or not all
equally often, because it depends on the number of the thread or on what its own iterations have computed.

All threads take part in bringing elements that a statement of the region reads. Where some do not come, the
others would wait for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from homing.translate.tree import (
    CLASSES,
    Access,
    Branch,
    Construct,
    Kind,
    Loop,
    Node,
    Routine,
    Statement,
    statements,
    walk,
)

_ASKS = frozenset({"omp_get_thread_num"})
#: Jumps that may leave more than the innermost loop.
_FAR = re.compile(r"\b(?:(?:cycle|exit)\s+\w|go\s*to\b|return\b)", re.IGNORECASE)
_OF_ONE = frozenset({"single", "master", "masked", "critical", "sections", "section", "task", "ordered"})


class Differing:
    """The private variables of a region whose values may not be the same in all threads. private: names of
    which each thread has its own; counters of loops are such, too. given: what differs from the start."""

    def __init__(
        self, nodes: Sequence[Node], private: frozenset[str], given: frozenset[str] = frozenset()
    ) -> None:
        self.names: set[str] = set(given)
        self._private = private | {
            one.variable for one in walk(list(nodes)) if isinstance(one, Loop) and one.variable
        }
        count = -1
        while count != len(self.names):
            count = len(self.names)
            self._collect(nodes, False)

    def uneven(self, node: Loop | Branch) -> bool:
        """May threads come to its body differently often?"""
        if isinstance(node, Branch):
            return any(self._differs(head) for head, _ in node.arms)
        return self._differs(node.head) or self._leaves(node.body, False, False)

    def _leaves(self, nodes: Sequence[Node], inner: bool, apart: bool) -> bool:
        """Does a jump leave the loop around, or an iteration of it, in some threads only? inner: the nodes
        are those of a loop inside; apart: not all threads come to them. No jump leaves a construct."""
        for node in nodes:
            if isinstance(node, Statement):
                far = not inner or _FAR.search(node.text) is not None
                if node.kind is Kind.JUMP and far and (apart or self._differs(node)):
                    return True
            elif isinstance(node, Loop):
                if self._leaves(node.body, True, apart or self._differs(node.head)):
                    return True
            elif isinstance(node, Branch):
                own = apart or self.uneven(node)
                if any(self._leaves(body, inner, own) for _, body in node.arms):
                    return True
        return False

    def _differs(self, statement: Statement) -> bool:
        used = {one.name for one in statement.references if one.access is not Access.WRITE}
        asks = _ASKS | {CLASSES}  # which may do so
        return bool((used & (self.names | _ASKS)) or (asks & set(statement.calls)))

    def _wrote(self, names: frozenset[str]) -> None:
        self.names |= names & self._private

    def _collect(self, nodes: Sequence[Node], apart: bool) -> None:
        """apart: do the threads do this each on its own?"""
        for node in nodes:
            if isinstance(node, Statement):
                if apart or self._differs(node):
                    given = (one.name for one in node.references if one.access is not Access.READ)
                    self._wrote(node.writes | frozenset(given))
            elif isinstance(node, Loop):
                own = apart or self.uneven(node)
                if own and node.variable:
                    self._wrote(frozenset({node.variable}))
                self._collect(node.body, own)
            elif isinstance(node, Branch):
                own = apart or self.uneven(node)
                for _, body in node.arms:
                    self._collect(body, own)
            elif isinstance(node, Construct):
                own = apart or node.worksharing or node.directive.name in _OF_ONE
                before = set(self.names)
                if node.worksharing and isinstance(node.body[0], Loop) and node.body[0].variable:
                    self._wrote(frozenset({node.body[0].variable}))
                self._collect(node.body, own)
                if node.directive.name == "single":
                    for directive in (node.directive, node.closing):
                        self.names -= (directive.listed("copyprivate") if directive else set()) - before


def of_region(routine: Routine, construct: Construct) -> Differing:
    """What differs in a parallel region."""
    own = construct.directive.listed("private", "firstprivate", "lastprivate", "reduction")
    for name, places in routine.places.items():
        if any(construct.begin <= place < construct.end for place in places):
            own.add(name)
    return Differing(construct.body, frozenset(own))


def of_procedure(
    routine: Routine,
    every: Sequence[Routine],
    inside: Callable[[Routine], bool],
    seen: frozenset[str] = frozenset(),
) -> Differing:
    """What differs in a procedure that is called inside regions: what its callers give it, and what comes of
    that. inside: is a procedure called inside regions?"""
    given: set[str] = set()
    seen |= {routine.name}
    for caller in every:
        regions = [one for one in walk(caller.body) if isinstance(one, Construct) and one.parallel]
        for statement in statements(caller.body) if caller.name not in seen else ():
            if not any(one.argument_of == routine.name for one in statement.references):
                continue
            around = next((one for one in regions if one.begin <= statement.begin < one.end), None)
            if around is not None:
                given |= _given(routine, statement, of_region(caller, around).names)
            elif inside(caller):
                given |= _given(routine, statement, of_procedure(caller, every, inside, seen).names)
    own = (name for name, declared in routine.declarations.items() if not declared.bounds)
    return Differing(routine.body, frozenset(own), frozenset(given))


def _given(callee: Routine, statement: Statement, names: set[str]) -> set[str]:
    """The dummy arguments that get what differs; where expressions have it, all that get expressions."""
    passed = [one for one in statement.references if one.argument_of == callee.name]
    found = {one.argument_index for one in passed if one.name in names}
    beside = {one.name for one in statement.references if one.argument_of is None}
    if beside & (names | _ASKS) or _ASKS & set(statement.calls):
        found |= set(range(len(callee.arguments))) - {one.argument_index for one in passed}
    return {callee.arguments[index] for index in found if index < len(callee.arguments)}
