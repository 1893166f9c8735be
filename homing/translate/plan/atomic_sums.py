"""--to mpi: reductions that are written as ATOMIC or CRITICAL updates of a shared variable.

A variable that a loop over own iterations only ever adds to, and does not read otherwise, is one: each rank
adds up its own iterations, and behind the loop the ranks are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from homing.translate.code_text import closing, leading_component, leading_variable, outside_brackets
from homing.translate.front.implicit import declared
from homing.translate.openmp import Record, Reduction
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.kept_extrema import kept_extremum, without_braces
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
    for node in walk([loop]):
        for one in (*_updates(node, routine), *_looked_at(node, routine)):
            found.setdefault(one.name, []).append(one)
    callees = called([loop], distributions.routines)
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
        and _alone(routine, name, loop)
        and not (callees and _seen_by(callees, routine, name))
    }
    whole = {one.record for one in known.values() if one.record and _known_whole(one.record, known, routine)}
    return [one for one in known.values() if one.record is None or one.record in whole]


def _known_whole(record: Record, known: dict[str, Reduction], routine: Routine) -> bool:
    """May all that belongs to the record come from another rank, and is what is compared known?"""
    fortran = routine.source.form.fortran
    for target in (record.target, *record.others):
        name = leading_component(target)[1]
        declaration = declared(routine, name)
        if name not in known or known[name].record != record or declaration is None:
            return False
        compared = target == record.target or (record.tie is not None and target == record.tie[1])
        if fortran and compared and "%" in target:  # its type is not known here
            return False
        if not fortran and not declaration.number:  # an address means nothing to other ranks
            return False
    return True


def _updates(node: Node, routine: Routine) -> Iterator[_Updated]:
    """The updates of an ATOMIC or CRITICAL construct."""
    if not isinstance(node, Construct) or node.directive.name not in ("atomic", "critical"):
        return
    clauses = {clause.name for clause in node.directive.clauses}
    if node.directive.name == "atomic" and not clauses <= _HARMLESS:
        return
    for one in without_braces(node.body):
        if kept := kept_extremum(one, routine):
            if _is_other(kept.target, kept.value, routine):
                place = kept.statement.begin, kept.statement.end
                yield _Updated(kept.name, kept.operator, 2, place, kept.target)
        elif found := kept_record(one, routine):
            names = [reference.name for reference in references([one])]
            place = found.statement.begin, found.statement.end
            if _whole_if_it_is(routine, found.names[0], found.value):
                record = found.record
                for name in dict.fromkeys(found.names):
                    yield _Updated(name, record.operator, names.count(name), place, record.target, record)
        elif isinstance(one, Statement) and not one.guarded and (known := _update(one.text, routine)):
            yield _Updated(*known, (one.begin, one.end))


def _looked_at(node: Node, routine: Routine) -> Iterator[_Updated]:
    """`if (x > m)` around nothing but a construct that keeps the extremum: it is read once more there."""
    if not isinstance(node, Branch) or len(node.arms) != 1 or not node.conditional or node.switch:
        return
    head, body = node.arms[0]
    for construct in without_braces(body):
        if not isinstance(construct, Construct) or construct.directive.name not in ("atomic", "critical"):
            return
    for construct in without_braces(body):
        for one in _updates(construct, routine):
            compared = comparison(condition(head, routine), [one.target])
            if one.target and compared and compared.sign.startswith({"max": ">", "min": "<"}[one.operator]):
                names = [reference.name for reference in head.references]
                yield one._replace(times=names.count(one.name))
                return


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
    return name not in routine.inner or _declared_before(routine, name, loop)


def _seen_by(callees: Sequence[Routine], routine: Routine, name: str) -> bool:
    """May procedures that are called meanwhile see the variable? Not a routine's own one, of which they get
    no address; internal procedures may."""
    found = routine.lookup(name)
    if found is None or found[0] is not routine or found[1].storage == "common":
        return True
    for callee in callees:
        scope: Routine | None = callee
        while scope is not None:
            if scope is routine:
                return True
            scope = scope.parent
    return False


def _declared_before(routine: Routine, name: str, loop: Loop | Construct) -> bool:
    """C: does the name of a block's variable mean one thing in the file, declared before the loop?"""
    places = routine.places.get(name, [])
    once = len(places) == 1 and places[0] < loop.begin
    return once and (routine.parent is None or routine.parent.lookup(name) is None)
