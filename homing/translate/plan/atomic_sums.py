"""--to mpi: reductions that are written as ATOMIC or CRITICAL updates of a shared variable.

A variable that a loop over own iterations only ever adds to, and does not read otherwise, is one: each rank
adds up its own iterations, and behind the loop the ranks are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from homing.translate.code_text import closing, leading_component, leading_variable, outside_brackets
from homing.translate.directives.model import Form
from homing.translate.openmp import Record, Reduction
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.by_use import ByUse
from homing.translate.plan.kept_extrema import chosen_extremum, kept_extremum, without_braces
from homing.translate.plan.kept_records import comparison, condition, kept_record
from homing.translate.plan.reached import called
from homing.translate.plan.reference_text import folded
from homing.translate.plan.steps import is_whole
from homing.translate.tree import Branch, Construct, Loop, Node, Routine, Statement, references, walk

#: Clauses of ATOMIC that change nothing here; CAPTURE, READ and WRITE do.
_HARMLESS = frozenset({"update", "seq_cst", "acq_rel", "acquire", "release", "relaxed", "hint"})
_STEP = re.compile(r"\s*(?:\+\+|--)\s*;?\s*")
_STEP_AHEAD = re.compile(r"\s*(?:\+\+|--)")
_ONTO = re.compile(r"\s*([+\-*])=(.*)", re.DOTALL)
_ASSIGNED = re.compile(r"\s*=(?!=)(.*)", re.DOTALL)
_OPERATION = re.compile(r"\s*([+\-*])(?![*])(.*)", re.DOTALL)
#: By language: is it Fortran? What else is called so is the program's own.
_EXTREMUM = {True: re.compile(r"\s*(max|min)\s*\("), False: re.compile(r"\s*f(max|min)[fl]?\s*\(")}


class _Updated(NamedTuple):
    """A variable that a construct updates; times: how often it is named there. place: of the statement."""

    name: str
    operator: str
    times: int
    place: tuple[int, int]
    target: str = ""  # of an extremum
    record: Record | None = None


def atomic_sums(routine: Routine, distributions: Distributions, loop: Loop | Construct) -> list[Reduction]:
    """What the loop or region only adds to (or multiplies, or of which it keeps the extremum)."""
    found: dict[str, list[_Updated]] = {}
    by_use = distributions.by_use
    for node in walk([loop]):
        for one in (*_updates(node, routine, by_use), *_looked_at(node, routine, by_use)):
            found.setdefault(one.name, []).append(one)
    callees = _all_called(loop, distributions)
    if routine.functions:  # what statement functions see of the variable is not looked into
        return []
    everywhere = [reference.name for reference in references([loop])]
    arrays = distributions.of(routine)
    known = {
        name: Reduction(all_[0].operator, name, "", all_[0].place, all_[0].record)
        for name, all_ in found.items()
        if len({(one.operator, one.record) for one in all_}) == 1
        and name not in arrays
        and everywhere.count(name) == sum(one.times for one in all_)
        and _alone(routine, name, loop, distributions)
        and not any(_seen_by(callee, routine, name, by_use) for callee in callees)
    }
    whole = {
        one.record
        for one in known.values()
        if one.record and _known_whole(one.record, known, routine, by_use)
    }
    return [one for one in known.values() if one.record is None or one.record in whole]


def _known_whole(record: Record, known: dict[str, Reduction], routine: Routine, by_use: ByUse) -> bool:
    """May all that belongs to the record come from another rank, and is what is compared known?"""
    fortran = routine.source.form.fortran
    for target in (record.target, *record.others):
        name = leading_component(target)[1]
        declaration = by_use.declaration(routine, name)
        if name not in known or known[name].record != record or declaration is None:
            return False
        compared = target == record.target or (record.tie is not None and target == record.tie[1])
        if fortran and compared and "%" in target:  # its type is not known here
            return False
        if not fortran and not declaration.number:  # an address means nothing to other ranks
            return False
    return True


def _updates(node: Node, routine: Routine, by_use: ByUse) -> Iterator[_Updated]:
    """The updates of an ATOMIC or CRITICAL construct."""
    if not isinstance(node, Construct) or node.directive.name not in ("atomic", "critical"):
        return
    clauses = {clause.name for clause in node.directive.clauses}
    if node.directive.name == "atomic" and not clauses <= _HARMLESS:
        return
    for one in without_braces(node.body):
        if kept := kept_extremum(one, routine):
            if _is_other(kept.target, kept.value, routine, by_use):
                place = kept.statement.begin, kept.statement.end
                yield _Updated(kept.name, kept.operator, 2, place, kept.target)
        elif found := kept_record(one, routine):
            names = [reference.name for reference in references([one])]
            place = found.statement.begin, found.statement.end
            if _whole_if_it_is(routine, found.names[0], found.value, by_use):
                record = found.record
                for name in dict.fromkeys(found.names):
                    yield _Updated(name, record.operator, names.count(name), place, record.target, record)
        elif isinstance(one, Statement) and not one.guarded and (known := _update(one.text, routine, by_use)):
            yield _Updated(*known, (one.begin, one.end))


def _looked_at(node: Node, routine: Routine, by_use: ByUse) -> Iterator[_Updated]:
    """`if (x > m)` around nothing but a construct that keeps the extremum: it is read once more there."""
    if not isinstance(node, Branch) or len(node.arms) != 1 or not node.conditional or node.switch:
        return
    head, body = node.arms[0]
    for construct in without_braces(body):
        if not isinstance(construct, Construct) or construct.directive.name not in ("atomic", "critical"):
            return
    for construct in without_braces(body):
        for one in _updates(construct, routine, by_use):
            compared = comparison(condition(head, routine), [one.target])
            if one.target and compared and compared.sign.startswith({"max": ">", "min": "<"}[one.operator]):
                names = [reference.name for reference in head.references]
                yield one._replace(times=names.count(one.name))
                return


def _update(text: str, routine: Routine, by_use: ByUse) -> tuple[str, str, int] | None:
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
        if not _is_other(
            target, onto[2], routine, by_use, ","
        ):  # its value is evaluated first, whatever it is
            return None
        return name, "+" if onto[1] == "-" else onto[1], 1
    assigned = _ASSIGNED.fullmatch(rest)
    if c and assigned and (chosen := chosen_extremum(assigned[1], target)):
        return (name, chosen[0], 3) if _is_other(target, chosen[1], routine, by_use) else None
    found = _combination(assigned[1], target, not c) if assigned else None
    signs = "<>=" if found and not c and found[0] in ("max", "min") else ""  # they may get a list
    if found is None or not _is_other(target, found[1], routine, by_use, signs):
        return None
    return name, "+" if found[0] == "-" else found[0], 2


def _combination(text: str, target: str, fortran: bool) -> tuple[str, str] | None:
    """The operator and the other operand where the target is the first one or the last one."""
    if extremum := _EXTREMUM[fortran].match(text):
        end = closing(text, extremum.end())
        if text[end:].strip(" ;\n"):
            return None
        given = text[extremum.end() : end - 1]
        first, _, rest = leading_variable(given)
        if first == target and rest.lstrip()[:1] == ",":
            return extremum[1], rest.lstrip()[1:]
        value, comma, last = _last_operand(given, ",")
        return (extremum[1], value) if comma and _is_variable(last, target) else None
    first, _, rest = leading_variable(text)
    operation = _OPERATION.fullmatch(rest)
    if first == target and operation is not None:
        # `s = s*x + y` is no product, nor is s*x/y of whole numbers.
        if operation[1] == "*" and outside_brackets(operation[2], "+-/"):
            return None
        return operation[1], operation[2]
    value, operator, last = _last_operand(text, "+-*/")
    if operator not in ("+", "*") or not _is_variable(last, target):
        return None
    # `s = x**s` and `s = x + +s` are none, nor is `s = y + x*s`. (x/y*s divides before s is known.)
    if (
        not value.strip()
        or value.rstrip()[-1] in "+-*/"
        or (operator == "*" and outside_brackets(value, "+-"))
    ):
        return None
    return operator, value


def _last_operand(text: str, operators: str) -> tuple[str, str, str]:
    """What stands before the last of the operators outside of all brackets, that operator, and the rest."""
    depth, at = 0, -1
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in operators:
            at = index
    return (text[:at], text[at], text[at + 1 :]) if at >= 0 else ("", "", text)


def _is_variable(text: str, target: str) -> bool:
    found, _, rest = leading_variable(text)
    return found == target and not rest.strip(" ;\n")


def _is_other(target: str, value: str, routine: Routine, by_use: ByUse, signs: str = "") -> bool:
    """May the target be updated by this: is it all one operand, and does neither it nor a subscript depend on
    the variable? signs: what would not leave it one."""
    name, *subscripts = re.findall(r"\w+", target)
    signs = signs or ("<>=," if routine.source.form.fortran else "<>=&|^?:,%")
    if name in [*subscripts, *re.findall(r"\w+", value)] or outside_brackets(value, signs):
        return False
    logical = re.search(r"\.\s*[a-z]\w*\s*\.", value)
    return logical is None and _whole_if_it_is(routine, name, value, by_use)


def _whole_if_it_is(routine: Routine, name: str, value: str, by_use: ByUse) -> bool:
    """A whole number to which 0.6 is added is cut each time: what it gets must be whole, too."""
    form = routine.source.form
    found = by_use.declaration(routine, name)
    if found is None or not is_whole(found.type, form):
        return True
    others = (by_use.declaration(routine, one) for one in re.findall(r"[A-Za-z_]\w*", value))
    return "." not in value and all(one is not None and is_whole(one.type, form) for one in others)


def _alone(routine: Routine, name: str, loop: Loop | Construct, distributions: Distributions) -> bool:
    """Is it a scalar, or an array (in C of a known size), that has no other name?"""
    meant = distributions.by_use.meant(routine, name)
    found = distributions.by_use.declaration(routine, name)
    scope = meant[0] if meant else routine
    if found is None or found.storage == "pointer" or found.name in scope.equivalence:
        return False
    if found.attributes & {"pointer", "target", "allocatable"} or found.name in scope.private:
        return False
    if routine.source.form.fortran:
        return not any(loop.begin <= place < loop.end for place in routine.places.get(name, []))
    word = re.escape(name)
    address = re.compile(rf"&\s*\(?\s*{word}\b|&\s*\w+\s*=\s*{word}\b")
    sources = [unit.source for unit in distributions.units if unit.form is Form.C]
    if any(address.search(one.text) for one in (sources if scope.module else [routine.source])):
        return False
    if any(bound.upper is None for bound in found.bounds) and found.initial is None:
        return False
    # What a function is given of an array it knows by an address, and so does a pointer.
    text = routine.source.text
    if found.bounds and (name in routine.arguments or re.search(rf"=[^;=]*\b{word}\b\s*(?![\s\[])", text)):
        return False
    return name not in routine.inner or _declared_before(routine, name, loop)


def _all_called(loop: Loop | Construct, distributions: Distributions) -> list[Routine]:
    """The procedures that are called meanwhile, also by others."""
    found: dict[int, Routine] = {}
    new = called([loop], distributions.routines)
    while new:
        found.update((id(one), one) for one in new)
        every = [further for one in new for further in called(one.body, distributions.routines)]
        new = [one for one in every if id(one) not in found]
    return list(found.values())


def _seen_by(callee: Routine, routine: Routine, name: str, by_use: ByUse) -> bool:
    """May a procedure see the variable? Not a routine's own one, of which it gets no address, but in the
    routine; and others by their names alone."""
    found = by_use.meant(routine, name)
    if found is None or found[0].declarations[found[1]].storage == "common" or callee.functions:
        return True
    scope: Routine | None = callee
    while scope is not None and scope is not routine:
        scope = scope.parent
    if found[0] is routine:
        return scope is routine
    named = {one.name for one in references(callee.body)}
    if not routine.source.form.fortran:
        return name in named  # in all files
    return any(by_use.meant(callee, one) == found for one in named)


def _declared_before(routine: Routine, name: str, loop: Loop | Construct) -> bool:
    """C: does the name of a block's variable mean one thing in the file, declared before the loop?"""
    places = routine.places.get(name, [])
    once = len(places) == 1 and places[0] < loop.begin
    return once and (routine.parent is None or routine.parent.lookup(name) is None)
