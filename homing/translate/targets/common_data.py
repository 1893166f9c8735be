"""DATA statements of arrays that move from a COMMON block to a module (targets/commons.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import pairwise

from homing.translate.front.expressions import Expressions
from homing.translate.front.tokens import Token, outside
from homing.translate.tree import Routine
from homing.translate.write.initial_values import data_statements


@dataclass(frozen=True)
class MovedData:
    """A DATA statement with values of such arrays. left: what stays of it, or nothing; moved: what the module
    says; counters: of the implied DOs there."""

    begin: int
    end: int
    left: str
    moved: str
    counters: tuple[str, ...]


def moved_data(
    routine: Routine, arrays: Container[str], number: Callable[[str], int | None]
) -> list[MovedData] | None:
    """The DATA statements of a routine itself that give the arrays values. number: the value of a constant.
    None: the module could not say what one of them says."""
    found = []
    for line, code in data_statements(routine):
        kept, moved, counters = [], [], list[str]()
        for objects, values in _groups(code.words):
            if not any(word.text in arrays for word in objects):
                kept.append(code.code[objects[0].begin : values[-1].end])
                continue
            own = [word.text for word, behind in pairwise(objects) if behind.text == "="]
            known = _with_numbers(code, [*objects, *values], arrays, own, number)
            if known is None:
                return None
            moved.append(known)
            counters += own
        if moved:
            left = f"data {', '.join(kept)}" if kept else ""
            texts = (left, f"data {', '.join(moved)}", tuple(dict.fromkeys(counters)))
            found.append(MovedData(line.begin, line.end, *texts))
    return found


def _groups(words: list[Token]) -> Iterator[tuple[list[Token], list[Token]]]:
    """The objects and the values (with their slashes) of a DATA statement, pair by pair."""
    begin, slash = 1, None
    for at in outside(words, 1, len(words)):
        if words[at].text != "/":
            continue
        if slash is None:
            slash = at
            continue
        objects = words[begin:slash]
        yield (objects[1:] if objects[0].text == "," else objects), words[slash : at + 1]
        begin, slash = at + 1, None


def _with_numbers(
    code: Expressions,
    words: list[Token],
    arrays: Container[str],
    own: Container[str],
    number: Callable[[str], int | None],
) -> str | None:
    """The text, with the values of constants in the place of their names."""
    text, done = "", words[0].begin
    for word in words:
        if word.kind == "name" and word.text not in arrays and word.text not in own:
            value = number(word.text)
            if value is None:
                return None
            text += code.code[done : word.begin] + (f"({value})" if value < 0 else str(value))
            done = word.end
        elif re.search(r"\w_[A-Za-z]", word.text) and word.kind != "name":  # the kind of a number
            return None
    return text + code.code[done : words[-1].end]
