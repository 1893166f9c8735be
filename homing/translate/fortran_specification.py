"""What the specification part of a Fortran program unit declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from homing.translate.fortran_lines import Line
from homing.translate.fortran_words import Words, bounds, closing, top_level
from homing.translate.tree import (
    Declaration,
    Routine,
)


def specification(routine: Routine, leaves: Sequence[tuple[Any, Line]]) -> None:
    """Note what the statements of a specification part declare."""
    for statement, line in leaves:
        what = type(statement).__name__
        words = Words(line.code, line.places)
        if what == "Type_Declaration_Stmt":
            _type_declaration(routine, words, line)
        elif what == "Dimension_Stmt":
            _dimension(routine, words, line)
        elif what in ("Common_Stmt", "Equivalence_Stmt"):
            _common(routine, words, line, what)
        elif what == "Use_Stmt":
            _use(routine, words, line)
        elif what == "Implicit_Stmt" and "none" in line.code.lower():
            routine.implicit_none = True
        elif what in ("Allocatable_Stmt", "Pointer_Stmt", "Target_Stmt", "Save_Stmt", "Parameter_Stmt"):
            word = what.split("_")[0].lower()
            for entity in words.words[1:]:
                declaration = routine.declarations.get(entity.text.lower())
                if declaration:
                    declaration.attributes |= {word}
                    if word in ("allocatable", "pointer"):
                        declaration.storage = word
    for name in routine.arguments:
        if name in routine.declarations:
            routine.declarations[name].storage = "dummy"


def _use(routine: Routine, words: Words, line: Line) -> None:
    names = [word for word in words.words if word.kind == "name"]
    texts = [word.text.lower() for word in names]
    if len(texts) > 1 and texts[1] in ("intrinsic", "non_intrinsic"):
        del texts[1]
    only = None
    match = re.search(r",\s*only\s*:(.*)$", line.code, re.IGNORECASE | re.DOTALL)
    if match:
        only = match[1].lower()
    routine.uses[texts[1]] = (line.begin, line.end, only)


def _type_declaration(routine: Routine, words: Words, line: Line) -> None:
    all_words = words.words
    separator = next((i for i, word in enumerate(all_words) if word.text == "::"), None)
    shape: tuple[int, int] | None = None
    attributes: set[str] = set()
    if separator is not None:
        head = top_level(all_words, 0, separator, ",")
        type_text = words.text(*head[0])
        for first, last in head[1:]:
            attribute = all_words[first].text.lower()
            attributes.add(attribute)
            if attribute == "dimension":
                shape = (first + 2, last - 1)
        begin = separator + 1
    else:
        begin = _type_end(words)
        type_text = words.text(0, begin)
    _entities(routine, words, line, begin, type_text, attributes, shape)


def _entities(
    routine: Routine,
    words: Words,
    line: Line,
    begin: int,
    type_text: str,
    attributes: set[str],
    shape: tuple[int, int] | None,
) -> None:
    entities = top_level(words.words, begin, len(words.words), ",")
    for first, last in entities:
        if first >= last:
            continue
        spelling = words.words[first].text
        name = spelling.lower()
        own = shape
        at = first + 1
        separate = None
        if at < last and words.words[at].text == "(":
            stop = closing(words.words, at)
            own, at = (at + 1, stop), stop + 1
        elif shape is not None:
            separate = (words.place(shape[0]), words.place_end(shape[1] - 1))
        initial = None
        if at < last and words.words[at].text in ("=", "=>", "/"):
            initial = words.text(at + 1, last)
        storage = "static"
        for candidate in ("allocatable", "pointer"):
            if candidate in attributes:
                storage = candidate
        before = routine.declarations.get(name)
        made = Declaration(
            name,
            spelling,
            type_text,
            bounds(words, *own) if own else (before.bounds if before else []),
            words.place(first),
            words.place_end(last - 1),
            line.begin,
            line.end,
            len(entities),
            frozenset(attributes) | (before.attributes if before else frozenset()),
            initial,
            before.storage if before and before.storage != "static" else storage,
            separate,
        )
        routine.declarations[name] = made


def _dimension(routine: Routine, words: Words, line: Line) -> None:
    begin = 2 if len(words.words) > 1 and words.words[1].text == "::" else 1
    for first, last in top_level(words.words, begin, len(words.words), ","):
        name = words.words[first].text.lower()
        before = routine.declarations.get(name)
        made = Declaration(
            name,
            words.words[first].text,
            before.type if before else "",
            bounds(words, first + 2, last - 1),
            words.place(first),
            words.place_end(last - 1),
            line.begin,
            line.end,
            attributes=(before.attributes if before else frozenset()) | {"dimension statement"},
            storage=before.storage if before else "static",
        )
        routine.declarations[name] = made


def _common(routine: Routine, words: Words, line: Line, what: str) -> None:
    names = {word.text.lower() for word in words.words[1:] if word.kind == "name"}
    if what == "Equivalence_Stmt":
        routine.equivalence |= names
        return
    at = 1
    while at < len(words.words):
        word = words.words[at]
        if word.text == "/":
            at += 3 if at + 1 < len(words.words) and words.words[at + 1].text != "/" else 2
            continue
        if word.text == "//":
            at += 1
            continue
        if word.kind == "name":
            name = word.text.lower()
            declaration = routine.declarations.get(name)
            shape = None
            after = at + 1
            if after < len(words.words) and words.words[after].text == "(":
                stop = closing(words.words, after)
                shape = bounds(words, after + 1, stop)
                after = stop + 1
            if declaration is None:
                declaration = Declaration(
                    name,
                    word.text,
                    "",
                    shape or [],
                    words.place(at),
                    words.place_end(after - 1),
                    line.begin,
                    line.end,
                )
                routine.declarations[name] = declaration
            elif shape:
                declaration.bounds = shape
            declaration.storage = "common"
            at = after
            continue
        at += 1


def _type_end(words: Words) -> int:
    """Where the entities of a declaration without `::` begin."""
    all_words = words.words
    at = 1
    if all_words[0].text.lower() == "double":
        at = 2
    if at < len(all_words) and all_words[at].text == "*":
        at += 1
        at = closing(all_words, at) + 1 if all_words[at].text == "(" else at + 1
    elif at < len(all_words) and all_words[at].text == "(":
        at = closing(all_words, at) + 1
    return at
