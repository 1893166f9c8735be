"""What stands beside distributed arrays and has no plan: it is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from homing.translate.code_text import blanked
from homing.translate.directives.model import Form
from homing.translate.plan.array import Array
from homing.translate.tree import Branch, Construct, Loop, Node, Routine, Unit, statements, walk

#: What the names that the translation adds begin with.
OWN_PREFIX = "hm_"
#: C: what runs, or goes on, where no statement says so.
_UNSEEN = {
    "longjmp": re.compile(r"\b_*(?:sig|builtin_)?longjmp\b"),
    "cleanup": re.compile(r"(?:__attribute\w*\s*\(\(|\[\[)[^;]*?\bcleanup(?:__)?\s*\(|\b__cleanup__\b"),
}


def not_planned(
    units: Sequence[Unit], arrays: Callable[[Routine], Mapping[str, Array]], in_place: bool
) -> Iterator[tuple[Routine, int, int, str]]:
    """(routine, begin, end, reason) of each. arrays: the distributed ones of a routine. in_place: they keep
    their layout."""
    routines = [routine for unit in units for routine in unit.routines]
    if any(arrays(routine) for routine in routines):
        for routine in routines:
            yield from _own_names(routine)
        for unit in units if not in_place else ():
            yield from _unseen(unit)
    for routine in routines if not in_place else ():
        if arrays(routine):
            yield from _entries(routine)
            yield from _other_names(routine, arrays(routine))


def _unseen(unit: Unit) -> Iterator[tuple[Routine, int, int, str]]:
    """A jump may leave code in which an array is gathered; a function at a block's end writes what the code
    around it does not say."""
    text = blanked(unit.source.text, False, " ") if unit.form is Form.C else ""
    for name, pattern in _UNSEEN.items():
        for found in pattern.finditer(text):
            yield unit.routines[0], *found.span(), f"{name} is not followed, beside distributed arrays"


def _entries(routine: Routine) -> Iterator[tuple[Routine, int, int, str]]:
    """The procedure's arguments become parts; those of the entry do not."""
    for statement in statements(routine.body):
        if statement.form == "entry":
            reason = "an ENTRY of a procedure with distributed arrays: make it a procedure of its own"
            yield routine, statement.begin, statement.end, reason


def _other_names(
    routine: Routine, arrays: Container[str], nodes: Sequence[Node] | None = None, parallel: bool = False
) -> Iterator[tuple[Routine, int, int, str]]:
    """ASSOCIATE in parallel code that means something else by the name of a distributed array."""
    for node in routine.body if nodes is None else nodes:
        if isinstance(node, Loop | Construct):
            inside = parallel or isinstance(node, Construct)
            yield from _other_names(routine, arrays, node.body, inside)
        elif isinstance(node, Branch):
            head = node.arms[0][0]
            bodies = [body for _, body in node.arms]
            around = any(isinstance(one, Construct) for body in bodies for one in walk(body))
            for name in re.findall(r"(\w+)\s*=>", head.text) if parallel or around else ():
                if name in arrays:
                    reason = f"means something else by the name of the distributed '{name}': give it another"
                    yield routine, head.begin, head.end, reason
            for body in bodies:
                yield from _other_names(routine, arrays, body, parallel)


def _own_names(routine: Routine) -> Iterator[tuple[Routine, int, int, str]]:
    for name, declared in routine.declarations.items():
        if name.startswith(OWN_PREFIX):
            reason = f"names that begin with {OWN_PREFIX} are the translation's: give it another one"
            yield routine, declared.begin, declared.end, reason
