"""Arrays that change places: `tmp = u; u = v; v = tmp` of C's pointers, the same by MOVE_ALLOC, std::swap.

Where all are cut in the same way, each part has what the other array had there, and nothing has to be
copied: their layouts change places, and in Fortran their parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from homing.translate.code_text import blanked
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.tree import (
    Branch,
    Executable,
    Loop,
    Node,
    Routine,
    Statement,
    Swap,
    Unit,
    statements,
    walk,
)

#: C: `p = q`, or a declaration of p alone that begins with q's value: p, q.
_SET = re.compile(r"(?:\w[^=,;]*[\s*()])?(?P<to>\w+)\)?(?:\[[^\]=]*\])*\s*=\s*(?P<of>\w+)\s*;?")
_PLAIN_SET = re.compile(r"(?P<to>\w+)\s*=\s*(?P<of>\w+)")
_MOVE_ALLOC = re.compile(r"call\s*move_alloc\s*\(\s*(?P<of>\w+)\s*,\s*(?P<to>\w+)\s*\)", re.IGNORECASE)
#: C: `f(&p, &q)`; `double *t;`.
_CALL = re.compile(r"(\w+)\s*\(\s*(&?)\s*(\w+)\s*,\s*(&?)\s*(\w+)\s*\)\s*;?")
_DECLARED = re.compile(r"\w[\w\s]*\*\s*(\w+)\s*;?")
_STD_SWAP = re.compile(r"std\s*::\s*swap\s*\(\s*(?P<of>\w+)\s*,\s*(?P<to>\w+)\s*\)")


@dataclass(frozen=True)
class _Found:
    """Statements by which arrays change places: each gets the next one's, the last one gets the first's.
    kept: the variable that holds that meanwhile, or nothing (one statement); behind: what follows in the
    block; function: of the program, which the one statement calls."""

    names: tuple[str, ...]
    kept: str
    statements: tuple[Statement, ...]
    behind: tuple[Node, ...] = ()
    function: str = ""


def find_swaps(units: Sequence[Unit], of: Callable[[Routine], dict[str, Array]]) -> None:
    """Mark the statements of serial code by which arrays change places, and give these arrays one shadow."""
    every = [one for unit in units for one in unit.routines if unit.form is d.Form.C and not one.module]
    others = {one.name for one in every if _exchanges(one) is None}
    exchanging = {one.name: _exchanges(one) or "" for one in every if one.name not in others}
    for unit in units:
        anew = {
            node.directive.name.key
            for routine in unit.routines
            for node in walk(routine.body)
            if isinstance(node, Executable) and isinstance(node.directive, d.Redistribute)
        }
        for routine in unit.routines:
            arrays = {name: one for name, one in of(routine).items() if name not in anew and not one.dummy}
            found = (
                list(_in_serial_code(routine, routine.body, arrays, exchanging)) if len(arrays) > 1 else []
            )
            inner = [one for one in unit.routines if one.parent is routine]
            for one in found:
                if not one.kept or _of_no_other_use(one, routine, inner, found):
                    _mark(one, arrays)


def _mark(found: _Found, arrays: dict[str, Array]) -> None:
    pairs: list[tuple[str, str] | None] = list(pairwise(found.names))
    # tmp = u; u = v; v = w; w = tmp: u and v change places, and then v, which is what u was, and w.
    for pair, statement in zip([None, *pairs, None] if found.kept else pairs, found.statements, strict=True):
        statement.swap = Swap(pair, found.function)
        if arrays[found.names[0]].routine.source.form is d.Form.C:
            # No pointer gets another meaning.
            statement.references, statement.given = [], ()
    for first, second in pairwise(found.names):
        arrays[first].link(arrays[second])


def _in_serial_code(
    routine: Routine, nodes: Sequence[Node], arrays: dict[str, Array], exchanging: dict[str, str]
) -> Iterator[_Found]:
    """What swaps arrays there: in a region, each thread would."""
    for at, node in enumerate(nodes):
        if isinstance(node, Loop):
            yield from _in_serial_code(routine, node.body, arrays, exchanging)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from _in_serial_code(routine, body, arrays, exchanging)
        elif isinstance(node, Statement) and (
            found := _called(node, exchanging) or _swap(routine, nodes[at:])
        ):
            names = found.names
            known = found.kept not in arrays and all(name in arrays for name in names)
            if known and all(_alike(a, b) for a, b in pairwise(arrays[name] for name in names)):
                yield found


def _exchanges(routine: Routine) -> str | None:
    """C: does the function let what its two arguments mean change places, and nothing else? What stands
    before the arguments of its calls then: `&` (pointers to them), or nothing (C++'s references)."""
    made = [node for node in routine.body if isinstance(node, Statement)]
    if len(made) != len(routine.body) or len(routine.arguments) != 2:
        return None
    if len(made) == 4 and (alone := _DECLARED.fullmatch(made[0].text)) and made[1].text.startswith(alone[1]):
        made = made[1:]
    texts = [one.text for one in made]
    for given, meant in (("&", r"\*\s*"), ("", "")):
        steps = [
            re.fullmatch(rf"{before}(?P<to>\w+)\s*=\s*{behind}(?P<of>\w+)\s*;?", text)
            for text, before, behind in zip(
                texts, (r"(?:\w[^=,;]*[\s*])?", meant, meant), (meant, meant, ""), strict=False
            )
        ]
        if len(texts) != 3 or None in steps:
            continue
        (kept, first), (to, of), (last, held) = ((one["to"], one["of"]) for one in steps if one)
        own = kept in routine.declarations and kept not in routine.arguments
        reference = given or all(_by_reference(routine, one) for one in routine.arguments)
        if own and reference and (to, last, held) == (first, of, kept) and {to, of} == {*routine.arguments}:
            return given
    return None


def _by_reference(routine: Routine, name: str) -> bool:
    declared = routine.declarations.get(name)
    return declared is not None and "&" in routine.source.text[declared.statement_begin : declared.begin]


def _called(statement: Statement, exchanging: dict[str, str]) -> _Found | None:
    """Is it a call of a function that lets two arrays change places?"""
    match = _CALL.fullmatch(statement.text) if not statement.guarded and statement.label is None else None
    if match is None or len(statement.calls) != 1 or match[2] != match[4]:
        return None
    if exchanging.get(statement.calls[0]) != match[2]:
        return None
    return _Found((match[3], match[5]), "", (statement,), function=match[1]) if match[3] != match[5] else None


def _swap(routine: Routine, nodes: Sequence[Node]) -> _Found | None:
    """Do the first ones of these statements let variables change places?"""
    fortran = routine.source.form.fortran
    names: list[str] = []
    kept = ""
    run: list[Statement] = []
    for at, node in enumerate(nodes, 1):
        plain = isinstance(node, Statement) and node.label is None and not node.guarded
        if not isinstance(node, Statement) or not plain or (fortran and not _alone(routine, node)):
            return None
        if not run and routine.source.cxx and (match := _STD_SWAP.fullmatch(node.text)):
            return _Found((match["of"], match["to"]), "", (node,)) if match["of"] != match["to"] else None
        step = (_MOVE_ALLOC if fortran else _PLAIN_SET if run else _SET).fullmatch(node.text)
        if step is None:
            return None
        run.append(node)
        if not kept:
            kept, names = step["to"], [step["of"]]
        elif step["to"] != names[-1] or step["of"] in names:
            return None
        elif step["of"] == kept:
            return _Found(tuple(names), kept, tuple(run), tuple(nodes[at:])) if len(names) > 1 else None
        else:
            names.append(step["of"])
    return None


def _alone(routine: Routine, statement: Statement) -> bool:
    """Is it the only statement on its lines?"""
    source = routine.source
    before = source.text[source.line_start(statement.begin) : statement.begin]
    behind = source.text[statement.end : source.next_line(statement.end - 1)]
    return not before.strip() and not behind.partition("!")[0].strip()


def _of_no_other_use(
    one: _Found, routine: Routine, inner: Sequence[Routine], found: Sequence[_Found]
) -> bool:
    """Is the variable that holds an array the routine's own, and named by such statements alone?"""
    name = one.kept
    if name not in routine.declarations and name not in routine.places:
        return False
    swapping = {id(s) for each in found if each.kept == name for s in each.statements}
    every = [s for each in (routine, *inner) for s in statements(each.body)]
    if one.statements[0].begin in routine.places.get(name, []):  # C: it declares the variable, for its block
        every = list(statements(list(one.behind)))
    # C: what compares a pointer, or returns it, reads nothing that it points to: the text tells.
    word, fortran = re.compile(rf"(?<![\w.>%]){name}\b"), routine.source.form.fortran
    naming = [s for s in every if name in s.reads | s.writes or word.search(blanked(s.text, fortran, " "))]
    return all(id(s) in swapping or _declares_alone(routine, s, name) for s in naming)


def _declares_alone(routine: Routine, statement: Statement, name: str) -> bool:
    """C: does the name stand in the statement as what it declares, and nowhere else?"""
    text = routine.source.text[statement.begin : statement.end]
    found = {statement.begin + word.start() for word in re.finditer(rf"\b{name}\b", text)}
    places = set(routine.places.get(name, []))
    return found <= places or (len(found) == 1 and statement.begin in places)


def _alike(a: Array, b: Array) -> bool:
    """Are both arrays of one scope, with the same elements, shape and distribution?"""
    mine, its = a.origin, b.origin
    if not isinstance(mine, d.Distribute) or not isinstance(its, d.Distribute) or a.routine is not b.routine:
        return False
    return (
        a.declaration.type == b.declaration.type
        and a.declaration.storage == b.declaration.storage
        and a.declaration.storage in ("allocatable", "pointer")
        and a.extents == b.extents
        and a.declaration.bounds == b.declaration.bounds
        and (a.reshape, a.given_shadow) == (b.reshape, b.given_shadow)
        and _cut(mine) == _cut(its)
    )


def _cut(directive: d.Distribute) -> tuple[object, ...]:
    """How the directive cuts, without the array's name."""
    formats = [(one.kind, [text.text for text in one.arguments]) for one in directive.formats]
    if directive.onto is None:
        return (formats,)
    name, weights = directive.onto.arrangement, directive.onto.weights
    return (formats, name and name.key, [one.text for one in weights])
