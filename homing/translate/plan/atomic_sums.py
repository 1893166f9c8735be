"""--to mpi: reductions that are written as ATOMIC or CRITICAL updates of a shared variable.

A variable that a loop over own iterations only ever adds to, and does not read otherwise, is one: each rank
adds up its own iterations, and behind the loop the ranks are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from homing.translate.code_text import closing, leading_variable, outside_brackets
from homing.translate.front.implicit import declared
from homing.translate.openmp import Reduction
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.kept_extrema import kept_extremum, without_braces
from homing.translate.plan.reached import called
from homing.translate.plan.reference_text import folded
from homing.translate.plan.steps import is_whole
from homing.translate.tree import Construct, Loop, Node, Routine, Statement, references, walk

#: Clauses of ATOMIC that change nothing here; CAPTURE, READ and WRITE do.
_HARMLESS = frozenset({"update", "seq_cst", "acq_rel", "acquire", "release", "relaxed", "hint"})
_STEP = re.compile(r"\s*(?:\+\+|--)\s*;?\s*")
_STEP_AHEAD = re.compile(r"\s*(?:\+\+|--)")
_ONTO = re.compile(r"\s*([+\-*])=(.*)", re.DOTALL)
_ASSIGNED = re.compile(r"\s*=(?!=)(.*)", re.DOTALL)
_OPERATION = re.compile(r"\s*([+\-*])(?![*])(.*)", re.DOTALL)
#: By language: is it Fortran? What else is called so is the program's own.
_EXTREMUM = {True: re.compile(r"\s*(max|min)\s*\("), False: re.compile(r"\s*f(max|min)[fl]?\s*\(")}


def atomic_sums(routine: Routine, distributions: Distributions, loop: Loop | Construct) -> list[Reduction]:
    """What the loop or region only adds to (or multiplies, or of which it keeps the extremum)."""
    found: dict[str, set[str]] = {}
    inside: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for node in walk([loop]):
        for statement, name, operator, counted in _updates(node, routine):
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


def _updates(node: Node, routine: Routine) -> Iterator[tuple[Statement, str, str, int]]:
    """The updates of an ATOMIC or CRITICAL construct: what each updates, by which operator, and how often it
    names it."""
    if not isinstance(node, Construct) or node.directive.name not in ("atomic", "critical"):
        return
    clauses = {clause.name for clause in node.directive.clauses}
    if node.directive.name == "atomic" and not clauses <= _HARMLESS:
        return
    for one in without_braces(node.body):
        if kept := kept_extremum(one, routine):
            if _is_other(kept.target, kept.value, routine):
                yield kept.statement, kept.name, kept.operator, 2
        elif isinstance(one, Statement) and not one.guarded and (known := _update(one.text, routine)):
            yield one, *known


def _update(text: str, routine: Routine) -> tuple[str, str, int] | None:
    """What a statement updates, by which operator, and how often it names it."""
    text = folded(text, routine)
    c = not routine.source.form.fortran
    if c and (ahead := _STEP_AHEAD.match(text)):
        _, name, rest = leading_variable(text[ahead.end() :])
        return (name, "+", 1) if name and not rest.strip(" ;\n") else None
    target, name, rest = leading_variable(text)
    if not name:
        return None
    if c and _STEP.fullmatch(rest):
        return name, "+", 1
    if c and (onto := _ONTO.fullmatch(rest)):
        if not _is_other(target, onto[2], routine, ","):  # its value is evaluated first, whatever it is
            return None
        return name, "+" if onto[1] == "-" else onto[1], 1
    assigned = _ASSIGNED.fullmatch(rest)
    found = _combination(assigned[1], target, not c) if assigned else None
    if found is None or not _is_other(target, found[1], routine):
        return None
    return name, "+" if found[0] == "-" else found[0], 2


def _combination(text: str, target: str, fortran: bool) -> tuple[str, str] | None:
    """The operator and the other operand where the target is the first one."""
    if extremum := _EXTREMUM[fortran].match(text):
        end = closing(text, extremum.end())
        first, _, rest = leading_variable(text[extremum.end() : end - 1])
        comma, value = rest.lstrip()[:1], rest.lstrip()[1:]
        if first != target or comma != "," or text[end:].strip(" ;\n"):
            return None
        return extremum[1], value
    first, _, rest = leading_variable(text)
    operation = _OPERATION.fullmatch(rest)
    if first != target or operation is None:
        return None
    # `s = s*x + y` is no product, nor is s*x/y of whole numbers.
    if operation[1] == "*" and outside_brackets(operation[2], "+-/"):
        return None
    return operation[1], operation[2]


def _is_other(target: str, value: str, routine: Routine, signs: str = "") -> bool:
    """May the target be updated by this: is it all one operand, and does neither it nor a subscript depend on
    the variable? signs: what would not leave it one."""
    name, *subscripts = re.findall(r"\w+", target)
    signs = signs or ("<>=," if routine.source.form.fortran else "<>=&|^?:,%")
    if name in [*subscripts, *re.findall(r"\w+", value)] or outside_brackets(value, signs):
        return False
    logical = re.search(r"\.\s*[a-z]\w*\s*\.", value)
    return logical is None and _whole_if_it_is(routine, name, value)


def _whole_if_it_is(routine: Routine, name: str, value: str) -> bool:
    """A whole number to which 0.6 is added is cut each time: what it gets must be whole, too."""
    form = routine.source.form
    found = declared(routine, name)
    if found is None or not is_whole(found.type, form):
        return True
    others = (declared(routine, one) for one in re.findall(r"[A-Za-z_]\w*", value))
    return "." not in value and all(one is not None and is_whole(one.type, form) for one in others)


def _alone(routine: Routine, name: str, loop: Loop | Construct) -> bool:
    """Is it a scalar, or an array (in C of a known size), that has no other name?"""
    found = declared(routine, name)
    if found is None or found.storage == "pointer" or name in routine.equivalence:
        return False
    if found.attributes & {"pointer", "target", "allocatable"} or name in routine.private:
        return False
    if routine.source.form.fortran:
        return not any(loop.begin <= place < loop.end for place in routine.places.get(name, []))
    text, word = routine.source.text, re.escape(name)
    if re.search(rf"&\s*\(?\s*{word}\b|&\s*\w+\s*=\s*{word}\b", text):
        return False
    if any(bound.upper is None for bound in found.bounds) and found.initial is None:
        return False
    # What a function is given of an array it knows by an address, and so does a pointer.
    if found.bounds and (name in routine.arguments or re.search(rf"=[^;=]*\b{word}\b\s*(?![\s\[])", text)):
        return False
    return name not in routine.inner
