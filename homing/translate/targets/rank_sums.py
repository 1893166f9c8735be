"""--to mpi: what the threads of a region add to its REDUCTION, which is added up over the ranks behind it.

Loops over own iterations add what their rank has found, and so may what comes of them: `t = t + a(i)` in the
loop, `s = s + t` behind it. All else is the same in every rank, also iterations that the program deals out by
the number of the thread: it would be there once a rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from homing.translate.code_text import condition_of_if, leading_variable
from homing.translate.openmp import Reduction
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.effects import What
from homing.translate.plan.reference_text import folded
from homing.translate.tree import (
    Access,
    Branch,
    Executable,
    Loop,
    Node,
    Routine,
    Statement,
    references,
    walk,
)

#: What changes nothing when it is combined once more.
_ONCE = frozenset({"max", "min", ".and.", ".or.", "iand", "ior", "&&", "||", "&", "|"})
_SUMS = frozenset({"+", "-"})
_ASSIGNED = re.compile(r"\s*([+\-*]?)=(?!=)(.*)", re.DOTALL)
_ZERO = re.compile(r"[{\s]*[-+]?0*\.?0*(?:[edED][-+]?\d+)?(?:[fF]|_\w+)?[}\s;]*")
_ONE = re.compile(r"[{\s]*\+?0*1\.?0*(?:[edED][-+]?0+)?(?:[fF]|_\w+)?[}\s;]*")


@dataclass(frozen=True)
class _Write:
    """Where a variable is written; text: the assignment, empty where it is none."""

    begin: int
    end: int
    text: str = ""


class RankSums:
    """What a region adds to variables. private: has each thread its own, without a value at first?"""

    def __init__(
        self,
        routine: Routine,
        nodes: Sequence[Node],
        distributions: Distributions,
        private: Callable[[str], bool],
    ) -> None:
        self.routine = routine
        self.distributions = distributions
        self.private = private
        self.counters: set[str] = set()
        self.found: set[str] = set()  # what loops over own iterations write
        self.statements = list(self._apart(nodes))

    def once_a_rank(self, one: Reduction) -> tuple[int, int] | None:
        """Where every rank adds the same to the variable, if it does."""
        if one.operator.lower() in _ONCE:
            return None
        wrong = (write for write in self._writes(one.name) if not self._adds(write, one))
        return next(((write.begin, write.end) for write in wrong), None)

    def _adds(self, write: _Write, one: Reduction) -> bool:
        """Is all that the assignment adds (or multiplies by) found in loops over own iterations?"""
        fortran = self.routine.source.form.fortran
        assigned = _assigned(write.text, one.name, fortran)
        if assigned is None:
            return False
        target, sign, value = assigned
        if one.operator in _SUMS:
            operands = [_split(term, "*/") for term in _split(value, "+-")]
        elif one.operator == "*":
            operands = [[factor] for factor in _split(value, "*")]
        else:
            return False
        if sign in ("", "="):
            rest = [operand for operand in operands if operand != [target]]
            if len(rest) != len(operands) - 1:
                return False
            operands = rest
        elif (sign == "*") != (one.operator == "*"):
            return False
        return all(any(self._of_rank(factor, one) for factor in factors) for factors in operands)

    def _of_rank(self, factor: str, one: Reduction) -> bool:
        """Is it a variable that holds only what loops over own iterations have found?"""
        _, name, rest = leading_variable(factor)
        if name not in self.found - self.counters - {one.name} or rest.strip() or not self.private(name):
            return False
        neutral = _ZERO if one.operator in _SUMS else _ONE
        for write in self._writes(name):
            assigned = _assigned(write.text, name, self.routine.source.form.fortran)
            if assigned is None or assigned[1] or not neutral.fullmatch(assigned[2]):
                return False
        return True

    def _writes(self, name: str) -> Iterator[_Write]:
        """Where it is written outside of loops over own iterations; a procedure may add anything."""
        for statement in self.statements:
            acts = self.distributions.effects.acts(self.routine, [statement])
            found = [act.reference for act in acts if act.what is What.WRITE and act.name == name]
            text = folded(statement.text, self.routine)
            if not found and name in statement.writes:
                yield _Write(statement.begin, statement.end, text)  # C: where it is declared
            for reference in found:
                passed = reference is None or reference.access not in (Access.WRITE, Access.UPDATE)
                yield _Write(statement.begin, statement.end, "" if passed else text)

    def _apart(self, nodes: Sequence[Node]) -> Iterator[Statement]:
        """The statements outside of loops over own iterations."""
        arrays = self.distributions.of(self.routine)
        for node in nodes:
            if isinstance(node, Statement):
                yield node
            elif isinstance(node, Executable):
                continue
            elif isinstance(node, Branch):
                for head, body in node.arms:
                    yield head
                    yield from self._apart(body)
            elif isinstance(node, Loop):
                self.counters.add(node.variable or "")
                yield node.head
                yield from self._apart(node.body)
            elif node.worksharing and any(one.name in arrays for one in references([node])):
                acts = self.distributions.effects.acts(self.routine, node.body)
                own = node.directive.listed("private", "firstprivate", "lastprivate", "reduction")
                self.found.update(act.name for act in acts if act.what is What.WRITE and act.name not in own)
                self.counters.update(one.variable or "" for one in walk(node.body) if isinstance(one, Loop))
            else:
                yield from self._apart(node.body)


def _assigned(text: str, name: str, fortran: bool) -> tuple[str, str, str] | None:
    """What an assignment to the variable sets, the sign before its `=`, and what stands behind."""
    if fortran:
        _, end = condition_of_if(text)
        text = text[end + 1 :] if end else text
    else:  # declared among others, or (*s)
        places = list(re.finditer(rf"\b{re.escape(name)}\b(?:\s*\[[^\]]*\])*[\s)]*[+\-*]?=(?!=)", text))
        text = text[places[0].start() :] if len(places) == 1 else ""
    target, found, rest = leading_variable(text)
    match = _ASSIGNED.fullmatch(rest if fortran else rest.lstrip(" )"))
    if found != name or match is None:
        return None
    return target, match[1], match[2] if fortran else _split(match[2], ",;")[0]


def _split(text: str, signs: str) -> list[str]:
    """What the signs outside of brackets join, without spaces."""
    found, depth, begin = [], 0, 0
    text = "".join(text.split()).rstrip(";")
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in signs and not re.search(r"\d\.?\d*[ed]$", text[:at], re.IGNORECASE):
            found.append(text[begin:at])
            begin = at + 1
    found.append(text[begin:])
    return [one for one in found if one]
