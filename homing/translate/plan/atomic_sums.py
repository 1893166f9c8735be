"""--to mpi: reductions that are written as ATOMIC or CRITICAL updates of a shared variable.

A variable that a loop over own iterations only ever adds to, and does not read otherwise, is one: each rank
adds up its own iterations, and behind the loop the ranks are added up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.code_text import outside_brackets
from homing.translate.front.implicit import declared
from homing.translate.openmp import Reduction
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.reached import called
from homing.translate.plan.reference_text import folded
from homing.translate.plan.steps import is_whole
from homing.translate.tree import Construct, Loop, Node, Routine, Statement, references, statements, walk

#: Clauses of ATOMIC that change nothing here; CAPTURE, READ and WRITE do.
_HARMLESS = frozenset({"update", "seq_cst", "acq_rel", "acquire", "release", "relaxed", "hint"})
_SUM = re.compile(r"\s*(\w+)\s*=\s*(\w+)\s*([+\-*])(?![*])(.*)", re.DOTALL)
_EXTREMUM = re.compile(r"\s*(\w+)\s*=\s*(max|min)\s*\(\s*(\w+)\s*,(.*)\)\s*", re.DOTALL)
_STEP = re.compile(r"\s*(?:(\w+)\s*(?:\+\+|--)|(?:\+\+|--)\s*(\w+))\s*;?\s*")
_ONTO = re.compile(r"\s*(\w+)\s*([+\-*])=(.*)", re.DOTALL)


def atomic_sums(routine: Routine, distributions: Distributions, loop: Loop) -> list[Reduction]:
    """The variables that the loop only adds to (or multiplies, or of which it keeps the extremum)."""
    found: dict[str, set[str]] = {}
    inside: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for node in walk([loop]):
        for statement in _updates(node):
            known = _update(statement.text, routine)
            if known is None:
                continue
            name, operator, counted = known
            found.setdefault(name, set()).add(operator)
            inside[name] = inside.get(name, 0) + counted
            places.setdefault(name, (statement.begin, statement.end))
    if routine.functions or called(
        [loop], distributions.routines
    ):  # what they see of the variable is not looked into
        return []
    everywhere = [reference.name for reference in references([loop])]
    return [
        Reduction(next(iter(operators)), name, "", places[name])
        for name, operators in found.items()
        if len(operators) == 1 and everywhere.count(name) == inside[name] and _alone(routine, name, loop)
    ]


def _updates(node: Node) -> Sequence[Statement]:
    """The statements of an ATOMIC or CRITICAL construct that is made of nothing else."""
    if not isinstance(node, Construct) or node.directive.name not in ("atomic", "critical"):
        return ()
    clauses = {clause.name for clause in node.directive.clauses}
    if node.directive.name == "atomic" and not clauses <= _HARMLESS:
        return ()
    plain = [one for one in node.body if isinstance(one, Statement)]
    return plain if len(plain) == len(list(statements(node.body))) == len(node.body) else ()


def _update(text: str, routine: Routine) -> tuple[str, str, int] | None:
    """What a statement updates, by which operator, and how often it names it."""
    text = folded(text, routine)
    c = not routine.source.form.fortran
    if (step := _STEP.fullmatch(text)) and c:
        return step[1] or step[2], "+", 1
    if (onto := _ONTO.fullmatch(text)) and c:
        name, operator, value, times = onto[1], onto[2], onto[3], 1
    elif (extremum := _EXTREMUM.fullmatch(text)) and not c:
        if extremum[1] != extremum[3] or _balance(extremum[4]) != 0:
            return None
        name, operator, value, times = extremum[1], extremum[2], extremum[4], 2
    elif (plain := _SUM.fullmatch(text)) and plain[1] == plain[2]:
        name, operator, value, times = plain[1], plain[3], plain[4], 2
        # `s = s*x + y` is no product, nor is s*x/y of whole numbers.
        if operator == "*" and outside_brackets(value, "+-/"):
            return None
    else:
        return None
    if re.search(rf"\b{re.escape(name)}\b", value) or outside_brackets(value, "<>=&|^?:,%" if c else "<>=,"):
        return None
    if re.search(r"\.\s*[a-z]\w*\s*\.", value) or not _whole_if_it_is(routine, name, value):
        return None
    return name, "+" if operator == "-" else operator, times


def _whole_if_it_is(routine: Routine, name: str, value: str) -> bool:
    """A whole number to which 0.6 is added is cut each time: what it gets must be whole, too."""
    form = routine.source.form
    found = declared(routine, name)
    if found is None or not is_whole(found.type, form):
        return True
    others = (declared(routine, one) for one in re.findall(r"[A-Za-z_]\w*", value))
    return "." not in value and all(one is not None and is_whole(one.type, form) for one in others)


def _balance(text: str) -> int:
    """0: every bracket is closed, and none that was not opened."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return -1
    return depth


def _alone(routine: Routine, name: str, loop: Loop) -> bool:
    """Is it a plain variable that has no other name?"""
    found = declared(routine, name)
    if found is None or found.bounds or found.storage == "pointer" or name in routine.equivalence:
        return False
    if found.attributes & {"pointer", "target", "allocatable"} or name in routine.private:
        return False
    if routine.source.form.fortran:
        return not any(loop.begin <= place < loop.end for place in routine.places.get(name, []))
    text, word = routine.source.text, re.escape(name)
    if re.search(rf"&\s*\(?\s*{word}\b|&\s*\w+\s*=\s*{word}\b", text):
        return False
    return name not in routine.inner
