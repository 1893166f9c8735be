"""What may not be spread over parts: a loop whose iterations need one another, in the program's order.

OpenMP says of the iterations of a loop that it shares out (and of those that COLLAPSE or NEST name) that they
may run in any order. Of a loop inside that one it says nothing: where the owners' parts each run their own
iterations of such a loop, a value that one iteration leaves for a later one would be missing. What stands
beside such a loop is run by several parts, and has to be harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from homing.translate.affine import Affine, affine
from homing.translate.directives import model as d
from homing.translate.plan.model import Follow
from homing.translate.plan.reference_text import reference_subscripts
from homing.translate.tree import (
    CLASSES,
    Access,
    Branch,
    Construct,
    Kind,
    Loop,
    Node,
    Reference,
    Statement,
    Subscript,
    references,
    statements,
    walk,
    written_in,
)

_WRITES = (Access.WRITE, Access.UPDATE, Access.ARGUMENT, Access.OTHER)
_SIDE_EFFECTS = (Kind.CALL, Kind.INPUT, Kind.OUTPUT, Kind.ALLOCATE, Kind.DEALLOCATE)


@dataclass(frozen=True)
class Disorder:
    """Where the program's order would be lost, and why."""

    begin: int
    end: int
    reason: str


@dataclass(frozen=True)
class Nest:
    """A loop that is shared out, with all that is in it.

    follows: variables of the loops whose iterations go to the owners. any_order: variables of loops whose
    iterations may run in any order. distributed: names of arrays in parts. reductions: names of variables
    that OpenMP combines. hidden: is a reference to what no other thread sees, or to a distributed array,
    which is looked at by itself? declared: offsets at which a name is declared (C).
    """

    loop: Loop
    follows: dict[str, Follow]
    any_order: frozenset[str]
    distributed: frozenset[str]
    reductions: frozenset[str]
    hidden: Callable[[Reference], bool]
    declared: Callable[[str], Sequence[int]]


def any_order(construct: Construct, loop: Loop) -> frozenset[str]:
    """Variables of the loops of which OpenMP, or the user by NEST, says that the order does not matter."""
    names = {loop.variable or ""}
    for directive in construct.homing:
        if isinstance(directive, d.Nest):
            names |= {name.key for name in directive.variables}
    for clause in construct.directive.clause("collapse"):
        number = affine(clause.text or "1")
        inner = loop
        for _ in range(number.constant - 1 if not number.terms else 0):
            below = [node for node in inner.body if isinstance(node, Loop)]
            if len(below) != 1:
                break
            inner = below[0]
            names.add(inner.variable or "")
    return frozenset(names - {""})


def disorders(nest: Nest) -> Iterator[Disorder]:
    """All that would not be the same, in the program's order."""
    for variable in nest.follows:
        if variable == nest.loop.variable:
            continue
        own = [n for n in walk([nest.loop]) if isinstance(n, Loop) and n.variable == variable]
        yield from _repeated(nest, variable, own)
        if variable in nest.any_order:
            continue
        yield from _elements(nest, variable, own)
        for inner in own:
            yield from _values(nest, inner)
            yield from _jumps(inner)
            yield from _classes(inner)


# --- what stands beside the loops ---------------------------------------------------------------------------


def _repeated(nest: Nest, variable: str, own: Sequence[Loop]) -> Iterator[Disorder]:
    """Statements that every part of a row of the grid runs, though the program runs them once."""
    for statement in statements([nest.loop]):
        if any(inner.begin <= statement.begin < inner.end for inner in own):
            continue
        for reference in statement.references:
            reduced = reference.name in nest.reductions
            if reference.access in _WRITES and (reduced or not nest.hidden(reference)):
                yield Disorder(
                    reference.begin,
                    reference.end,
                    f"would be done by each part: it stands outside the loop over '{variable}', whose "
                    "iterations the parts share",
                )
                return
        if statement.kind in _SIDE_EFFECTS:
            yield Disorder(
                statement.begin,
                statement.end,
                f"would be done by each part: it stands outside the loop over '{variable}', whose iterations "
                "the parts share",
            )
            return


# --- arrays -------------------------------------------------------------------------------------------------


def _elements(nest: Nest, variable: str, own: Sequence[Loop]) -> Iterator[Disorder]:
    """Elements that one iteration writes and another one uses."""
    changing = written_in(nest.loop) - nest.any_order
    by_name: dict[str, list[Reference]] = {}
    for reference in references([nest.loop]):
        if reference.subscripts is not None:
            by_name.setdefault(reference.name, []).append(reference)
    for name, found in by_name.items():
        inside = [r for r in found if any(loop.begin <= r.begin < loop.end for loop in own)]
        written = [r for r in inside if r.access in _WRITES]
        if not written or _fresh(nest, name, own) or _like_scalars(found):
            continue
        for other in found:
            crossing = next((r for r in written if _may_cross(r, other, variable, changing)), None)
            if crossing is not None:
                yield Disorder(
                    other.begin,
                    other.end,
                    f"an iteration of the loop over '{variable}' may need what an earlier one wrote, and the "
                    "parts run their iterations at the same time: distribute another dimension, or say NEST "
                    "where the order does not matter",
                )
                return


def _may_cross(a: Reference, b: Reference, variable: str, changing: frozenset[str]) -> bool:
    """Can the two mean the same element in different iterations of the loop?"""
    for one, other in zip(reference_subscripts(a), reference_subscripts(b), strict=False):
        mine, its = _value(one), _value(other)
        if mine is None or its is None:
            continue
        if mine == its and mine.coefficient(variable) and not mine.hides(variable):
            others = mine.names - {variable}
            if not others & changing:
                return False  # the same element only in the same iteration
        distance = mine.minus(its)
        if distance and not (mine.names | its.names) & changing:
            return False  # never the same element
    return True


def _value(subscript: Subscript) -> Affine | None:
    return None if subscript.section else affine(subscript.text)


def _fresh(nest: Nest, name: str, own: Sequence[Loop]) -> bool:
    """Is the variable declared inside the loops, so that each iteration has its own?"""
    places = nest.declared(name)
    return bool(places) and all(any(loop.begin <= at < loop.end for loop in own) for at in places)


def _like_scalars(found: Sequence[Reference]) -> bool:
    """Elements at constant places only: each is a variable by itself (a small work array)."""
    return all(not s.section and not affine(s.text).terms for r in found for s in reference_subscripts(r))


# --- variables ----------------------------------------------------------------------------------------------


def _values(nest: Nest, inner: Loop) -> Iterator[Disorder]:
    """Variables that carry a value from one iteration to the next, or out of the loop."""
    carried = _exposed(inner.body, set())
    behind = _used_behind(nest.loop, inner)
    work = {
        reference.name: reference
        for reference in references(inner.body)
        if reference.access in _WRITES and _scalar_name(reference) is not None
    }
    for reference in work.values():
        name = _scalar_name(reference) or ""
        if reference.name in nest.distributed | nest.reductions or _fresh(nest, reference.name, [inner]):
            continue
        if name in carried or name in behind:
            where = "the next one" if name in carried else "what comes behind the loop"
            yield Disorder(
                reference.begin,
                reference.end,
                f"an iteration of the loop over '{inner.variable}' leaves a value in '{reference.name}' for "
                f"{where}, and other parts run other iterations: distribute another dimension",
            )


def _scalar_name(reference: Reference) -> str | None:
    """What a variable is called here: a scalar, or an element of an array at a constant place."""
    if reference.subscripts is None:
        return reference.name
    if not _like_scalars([reference]):
        return None
    return f"{reference.name}({','.join(str(affine(s.text).constant) for s in reference.subscripts)})"


def _exposed(nodes: Iterable[Node], defined: set[str]) -> set[str]:
    """Variables that are read before they have certainly been written; adds those that are written to
    `defined`."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Statement):
            found |= _exposed_by(node, defined)
        elif isinstance(node, Loop):
            found |= _exposed_by(node.head, defined)
            inside = set(defined) | ({node.variable} if node.variable else set())
            found |= _exposed(node.body, inside)
        elif isinstance(node, Branch):
            ends = []
            for head, body in node.arms:
                found |= _exposed_by(head, defined)
                inside = set(defined)
                if node.switch:  # a case begins with what was there before all
                    for each in body:
                        found |= _exposed([each], set(defined))
                else:
                    found |= _exposed(body, inside)
                if head.form != "select":  # the head of a SELECT has no statements of its own
                    ends.append(inside)
            if node.complete:
                defined |= set.intersection(*ends)
        elif isinstance(node, Construct):
            found |= _exposed(node.body, defined)
    return found


def _exposed_by(statement: Statement, defined: set[str]) -> set[str]:
    read = {
        name
        for reference in statement.references
        if reference.access is not Access.WRITE and (name := _scalar_name(reference)) is not None
    }
    exposed = read - defined
    for reference in statement.references:
        name = _scalar_name(reference)
        if name and reference.access is Access.WRITE and not reference.conditional and not statement.guarded:
            defined.add(name)
    # A declaration with a value (C) has no reference for what it declares.
    defined |= statement.writes - {r.name for r in statement.references}
    return exposed


def _used_behind(loop: Loop, inner: Loop) -> set[str]:
    """Variables that may be read after `inner` with the value that it left."""
    found: set[str] = set()

    def look(nodes: Sequence[Node], repeated: Loop | None) -> bool:
        """Is `inner` among the nodes or below? Then collect what is read behind it."""
        for index, node in enumerate(nodes):
            bodies = [node.body] if isinstance(node, Loop | Construct) else []
            if isinstance(node, Branch):
                bodies = [body for _, body in node.arms]
            below = any(look(body, node if isinstance(node, Loop) else None) for body in bodies)
            if node is not inner and not below:
                continue
            defined: set[str] = set()
            found.update(_exposed(nodes[index + 1 :], defined))
            if repeated is not None and repeated is not loop:
                found.update(_exposed_by(repeated.head, defined))
                found.update(_exposed(nodes[: index + 1], defined))
            return True
        return False

    look([loop], None)
    return found


def _classes(inner: Loop) -> Iterator[Disorder]:
    """C++: code that is not followed, and may keep a value for the next iteration."""
    for statement in statements(inner.body):
        if CLASSES in statement.calls:
            yield Disorder(
                statement.begin,
                statement.end,
                f"an iteration of the loop over '{inner.variable}' may leave something for the next one in "
                "code that is not followed, and other parts run others: distribute another dimension",
            )


# --- jumps --------------------------------------------------------------------------------------------------


def _jumps(inner: Loop) -> Iterator[Disorder]:
    """A jump that ends the loop ends it for one part only."""
    labels = {statement.label for statement in statements(inner.body) if statement.label}
    below = [node for node in walk(inner.body) if isinstance(node, Loop)]
    switches = [node for node in walk(inner.body) if isinstance(node, Branch) and node.switch]
    for statement in statements(inner.body):
        if statement.kind is not Kind.JUMP:
            continue
        nested = any(loop.begin <= statement.begin < loop.end for loop in below)
        named = bool(statement.targets)
        leaves = {
            "exit": not nested or named,
            "break": not nested and not any(s.begin <= statement.begin < s.end for s in switches),
            "cycle": named,
            "return": True,
            "goto": not statement.targets or not labels.issuperset(statement.targets),
        }.get(statement.jump or "", False)
        if leaves:
            yield Disorder(
                statement.begin,
                statement.end,
                f"leaves the loop over '{inner.variable}', of which other parts run other iterations",
            )
