"""DATA statements of arrays that move from a COMMON block to a module (targets/commons.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from homing.translate.front.expressions import Expressions
from homing.translate.front.tokens import Token, closing, outside, parts
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
            pieces = _of_arrays(_Group(routine, code, objects, values), arrays, number)
            if pieces is None:
                return None
            for of_arrays, names, given in pieces:
                if not of_arrays:
                    kept.append(f"{code.code[names[0].begin : names[-1].end]} /{given}/")
                    continue
                own = [word.text for word, behind in pairwise(names) if behind.text == "="]
                known = _with_numbers(code, names, arrays, own, number)
                if known is None:
                    return None
                moved.append(f"{known} /{given}/")
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


@dataclass(frozen=True)
class _Group:
    """The objects and the values (with their slashes) of a part of a routine's DATA statement."""

    routine: Routine
    code: Expressions
    objects: list[Token]
    values: list[Token]


def _of_arrays(
    group: _Group, arrays: Container[str], number: Callable[[str], int | None]
) -> list[tuple[bool, list[Token], str]] | None:
    """The group's objects with their values: is it one of the arrays, its words, what it gets. Objects of
    both kinds are taken apart. None: the values cannot be, or are not known elsewhere."""
    objects, words = [group.objects[a:b] for a, b in parts(group.objects, 0, len(group.objects), ",")], []
    mine = [any(word.text in arrays for word in one) for one in objects]
    values, code = group.values[1:-1], group.code.code
    if not any(mine):
        return [(False, group.objects, code[group.values[0].end : group.values[-1].begin])]
    for first, last in parts(values, 0, len(values), ","):
        known = _with_numbers(group.code, values[first:last], (), (), number, signed=True)
        if known is None:
            return None
        words.append(known)
    if all(mine):
        return [(True, group.objects, ", ".join(words))]
    given = [_repeated(one) for one in words]
    found = []
    for own, names in zip(mine, objects, strict=True):
        count = _count(group.routine, names, number)
        taken = None if count is None else _taken(given, count)
        if taken is None:
            return None
        found.append((own, names, taken))
    return found


def _repeated(value: str) -> list[str]:
    """How often a value stands there, and the value: `3*1.5`."""
    match = re.fullmatch(r"\s*(\d+)\s*\*(.*)", value, re.DOTALL)
    return [match[1], match[2].strip()] if match else ["1", value.strip()]


def _taken(given: list[list[str]], count: int) -> str | None:
    """So many values, taken from the front of the list."""
    found = []
    while count > 0 and given:
        some = min(count, int(given[0][0]))
        if some > 0:
            found.append(f"{some}*{given[0][1]}")
        count -= some
        given[0][0] = str(int(given[0][0]) - some)
        if given[0][0] == "0":
            del given[0]
    return ", ".join(found) if count == 0 and found else None


def _count(routine: Routine, names: list[Token], number: Callable[[str], int | None]) -> int | None:
    """How many values an object of a DATA statement gets: a variable, an element, or a whole array."""
    declared = routine.declarations.get(names[0].text)
    if declared is None:
        return None
    if len(names) > 1:
        whole = names[1].text == "(" and closing(names, 1) == len(names) - 1
        return 1 if whole and declared.bounds and all(word.text != ":" for word in names) else None
    sides = [(number(one.lower), number(one.upper or "")) for one in declared.bounds]
    known = [(low, high) for low, high in sides if low is not None and high is not None]
    return prod(high - low + 1 for low, high in known) if len(known) == len(sides) else None


def _with_numbers(
    code: Expressions,
    words: list[Token],
    arrays: Container[str],
    own: Container[str],
    number: Callable[[str], int | None],
    signed: bool = False,
) -> str | None:
    """The text, with the values of constants in the place of their names. signed: where the language has no
    brackets around numbers."""
    text, done = "", words[0].begin
    for word in words:
        if word.kind == "name" and word.text not in arrays and word.text not in own:
            value = number(word.text)
            if value is None:
                return None
            text += code.code[done : word.begin] + (f"({value})" if value < 0 and not signed else str(value))
            done = word.end
        elif re.search(r"\w_[A-Za-z]", word.text) and word.kind != "name":  # the kind of a number
            return None
    return text + code.code[done : words[-1].end]
