"""C: rows of distributed arrays as arguments, `f(u[i], n)`. A row lies in one part, so a function that uses
nothing but its elements gets it as it is, and it is the caller who reads or changes it.

That it uses no more is shown by its loops: each subscript lies within the row, whatever it is called with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.affine import Affine, affine
from homing.translate.front.tokens import closing, parts, tokens
from homing.translate.plan.array import Array
from homing.translate.plan.boxes import side_of
from homing.translate.plan.count import constants, number
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    Subscript,
    statements,
    written_in_all,
)

_ELEMENTS = (Access.READ, Access.WRITE, Access.UPDATE)
#: The bounds of what a subscript is not known to keep to.
_ANYWHERE = ("?", "?")


def pass_row(
    routine: Routine, statement: Statement, reference: Reference, array: Array, callee: Routine
) -> None:
    """Turn such an argument into an access of the statement."""
    subscripts, at = reference.subscripts or [], reference.argument_index
    rest = range(len(subscripts), array.rank)
    cut = any(array.dimensions[index].distributed for index in rest)
    if not subscripts or not rest or cut or reference.access is not Access.ARGUMENT:
        return
    if at >= len(callee.arguments) or len(callee.places.get(callee.arguments[at], ())) > 1:
        return
    found = list(_uses(callee.body, callee.arguments[at], []))
    bounds = [array.declaration.bounds[index].upper for index in rest]
    if not all(_within(one, loops, bounds, routine, statement, callee) for one, loops in found):
        return
    reference.argument_of = None
    reference.access = Access.READ
    if any(one.access is not Access.READ for one, _ in found):
        reference.access = Access.UPDATE
        statement.writes |= {reference.name}
    end = reference.end
    reference.subscripts = [*subscripts, *(Subscript(end, end, ":", section=True) for _ in rest)]


def _uses(nodes: Sequence[Node], name: str, loops: list[Loop]) -> Iterator[tuple[Reference, list[Loop]]]:
    """Each use of a variable, with the loops around it."""
    for node in nodes:
        heads = [node] if isinstance(node, Statement) else []
        if isinstance(node, Loop):
            heads = [node.head]
            yield from _uses(node.body, name, [*loops, node])
        elif isinstance(node, Construct):
            yield from _uses(node.body, name, loops)
        elif isinstance(node, Branch):
            heads = [head for head, _ in node.arms]
            for _, body in node.arms:
                yield from _uses(body, name, loops)
        yield from ((one, loops) for head in heads for one in head.references if one.name == name)


def _within(
    use: Reference,
    loops: Sequence[Loop],
    bounds: Sequence[str | None],
    caller: Routine,
    statement: Statement,
    callee: Routine,
) -> bool:
    """Is it an element of the row, wherever the loops are?"""
    if use.access not in _ELEMENTS or len(use.subscripts or ()) != len(bounds):
        return False
    varying, known = written_in_all(callee.body), constants(callee)
    for subscript, upper in zip(use.subscripts or (), bounds, strict=True):
        side, _ = side_of(subscript, loops, varying, _ANYWHERE)
        if number(side.first, known) == number(side.last, known) == 0:
            continue  # no row is empty
        first = number(side.first, known)
        last = _for_caller(affine(side.last), caller, statement, callee, varying)
        if first is None or first < 0 or last is None or upper is None:
            return False
        there = affine(f"({last}) - ({upper})")
        beyond = number(str(there.constant), {}) if not there.terms else None
        beyond = number(f"({last}) - ({upper})", constants(caller)) if beyond is None else beyond
        if beyond is None or beyond > 0:
            return False
    return True


def _for_caller(
    value: Affine, caller: Routine, statement: Statement, callee: Routine, varying: frozenset[str]
) -> str | None:
    """A value of the callee in the caller's words; None: it has none that stay the same."""
    known, text = constants(callee), str(value.constant)
    for term, factor in value.terms:
        if term in known:
            word: str | None = str(known[term])
        elif term in callee.arguments and term not in varying:
            word = _actual(statement, callee, term)
        else:
            word = term if callee.source is caller.source and callee.lookup(term) is None else None
        if word is None or not all(steady(caller, name) for name in affine(word).names):
            return None
        text += f" + ({factor})*({word})"
    return text


def _actual(statement: Statement, callee: Routine, dummy: str) -> str | None:
    """What an argument gets in the statement's calls of a function, where it is the same in all."""
    words, at = tokens(statement.code), callee.arguments.index(dummy)
    found = set()
    for index, word in enumerate(words[:-1]):
        if statement.code[word.begin : word.end] == callee.name and words[index + 1].text == "(":
            given = parts(words, index + 2, closing(words, index + 1), ",")
            if at >= len(given):
                return None
            first, last = given[at]
            found.add(statement.code[words[first].begin : words[last - 1].end])
    return found.pop() if len(found) == 1 else None


def steady(routine: Routine, name: str) -> bool:
    """Has a name one value throughout: of a macro, or of a variable that gets it where it is declared?"""
    declared = routine.lookup(name)
    if declared is None:
        defined = re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b", routine.source.text, re.MULTILINE)
        return len(defined) < 2 and (routine.parent is None or name not in routine.parent.included)
    if declared[0] is not routine:
        return name in constants(routine)
    begin = declared[1].statement_begin
    return all(one.begin == begin or name not in one.writes for one in statements(routine.body))
