"""Fortran arrays with values from the beginning (`real :: a(9) = 1`, DATA), whose parts get them from a copy.

A part's bounds are known when the program runs only, so what the program says of the array goes to an array
of its own, which stays as it was declared, and the parts are filled from it where they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.translate.front import lines as text_lines
from homing.translate.front.expressions import Expressions
from homing.translate.front.kinds import form
from homing.translate.front.tokens import Token, outside
from homing.translate.names import added
from homing.translate.plan.array import Array
from homing.translate.source import Edits
from homing.translate.tree import Declaration, Routine


def initialised(declaration: Declaration) -> bool:
    """Has the variable a value before the program assigns one?"""
    return declaration.initial is not None or "data" in declaration.attributes


def holder(array: Array) -> str:
    """The array that holds the values."""
    return added(f"hm_initial_{array.name}")


def declared_holder(array: Array, text: str) -> str:
    """The declaration of the array that holds the values. text: the entity, as the program has it."""
    declaration = array.declaration
    sides = (f"{bound.lower}:{bound.upper}" for bound in declaration.bounds)
    shape = f"({', '.join(sides)})"
    initial = declaration.initial or ""
    if declaration.initial is None:
        return f"{declaration.type} :: {holder(array)}{shape}"
    if text.rstrip().endswith("/"):  # real a(9) /9*1/ has no colons
        return f"{declaration.type} {holder(array)}{shape} /{initial}"
    return f"{declaration.type} :: {holder(array)}{shape} = {initial}"


def data_statements(routine: Routine) -> Iterator[tuple[text_lines.Line, Expressions]]:
    """The DATA statements of a routine itself, in order."""
    for line in text_lines.split(routine.source):
        if line.openmp or not routine.begin <= line.begin < routine.body_end:
            continue
        code = Expressions(line.code, line.places)
        if form(code.words).kind == "data":
            yield line, code


def moved_data(routine: Routine, arrays: Sequence[Array], edits: Edits) -> Iterator[str]:
    """The DATA statements that name the arrays, taken out and with the other arrays' names."""
    names = {array.name: holder(array) for array in arrays if "data" in array.declaration.attributes}
    if not names:
        return
    for line, code in data_statements(routine):
        text, done = "", 0
        for word in _objects(code.words):
            if word.text in names:
                text += line.code[done : word.begin] + names[word.text]
                done = word.end
        if done:
            edits.replace(line.begin, line.end, "")
            yield (text + line.code[done:]).strip()


def _objects(words: list[Token]) -> Iterator[Token]:
    """The names in a DATA statement, but for those between slashes and those of components."""
    values = False
    outer = list(outside(words, 1, len(words)))
    for at, behind in zip(outer, [*outer[1:], len(words)], strict=True):
        if words[at].text == "/":
            values = not values
        for index in range(at, behind if not values else at):
            if words[index].kind == "name" and words[index - 1].text != "%":
                yield words[index]
