"""What the specification statements of a Fortran program unit declare."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homing.translate.front.expressions import Expressions
from homing.translate.front.implicit import may_bring, rules, settle_types
from homing.translate.front.kinds import Form
from homing.translate.front.lines import Line
from homing.translate.front.tokens import Token, closing, outside, parts
from homing.translate.tree import Access, Declaration, Routine, Statement

_TYPE_WORDS = frozenset(["precision", "complex"])


def declare(routine: Routine, line: Line, code: Expressions, what: Form) -> None:
    """Note what a specification statement says."""
    if what.kind == "declaration":
        _type_declaration(routine, code, line)
    elif what.kind == "attribute":
        _attribute(routine, code, line, what)
    elif what.kind == "common":
        _common(routine, code, line, what.at)
    elif what.kind == "equivalence":
        routine.equivalence |= {word.text for word in code.words[1:] if word.kind == "name"}
    elif what.kind in ("data", "namelist"):
        for word in code.words[1:]:
            if word.kind == "name":
                routine.said.append((word.text, what.kind))
            if word.kind == "name" and what.kind == "namelist":
                reason = f"'{word.text}' is in a NAMELIST, which reads and writes it unseen"
                routine.unseen.setdefault(word.text, (line.begin, line.end, reason))
    elif what.kind == "use":
        _use(routine, code, line, what.at)
    elif what.kind == "implicit" and any(word.text == "none" for word in code.words[1:2]):
        routine.implicit_none = True
    elif what.kind == "implicit":
        routine.implicit |= rules(code.code)


def dummies(routine: Routine) -> None:
    """Dummy arguments are known by the head; what has no type yet, by IMPLICIT. SAVE and DATA may come
    before the declarations of what they mean."""
    for name in routine.arguments:
        if name in routine.declarations:
            routine.declarations[name].storage = "dummy"
    for name, word in routine.said:
        if name in routine.declarations:
            routine.declarations[name].attributes |= {word}
    for declared in routine.declarations.values() if routine.saves else ():
        lives = declared.name != routine.result and declared.storage not in ("dummy", "common")
        if lives and "parameter" not in declared.attributes:
            declared.attributes |= {"save"}
    settle_types(routine)


def is_statement_function(routine: Routine, code: Expressions, what: Form) -> bool:
    """f(x, y) = ..., before the first executable statement, where `f` is no array."""
    words = code.words
    if (
        what.kind != "assignment"
        or len(words) < 3
        or words[1].text != "("
        or closing(words, 1) + 1 != what.at
    ):
        return False
    arguments = parts(words, 2, what.at - 1, ",")
    if not all(last - first == 1 and words[first].kind == "name" for first, last in arguments):
        return False
    found = routine.lookup(words[0].text)
    if found is not None:
        return (
            not found[1].bounds and found[0] is routine and not found[1].attributes & {"pointer", "external"}
        )
    scope: Routine | None = routine
    while scope is not None:
        if scope.implicit_none or may_bring(scope, words[0].text):
            return False
        scope = scope.parent
    return True


def declare_in_block(routine: Routine, made: Statement, line: Line, code: Expressions) -> None:
    """A declaration in a BLOCK construct: its names are the construct's own."""
    scope = Routine("", routine.source, line.begin, line.end)
    _type_declaration(scope, code, line)
    if any(_lasts(one) for one in scope.declarations.values()):
        return
    begin = min(declared.begin for declared in scope.declarations.values())
    for name in scope.declarations:
        routine.places.setdefault(name, []).append(line.begin)
    made.references = [one for one in made.references if one.begin >= begin]
    made.references = [one for one in made.references if one.name not in scope.declarations]
    for reference in made.references:  # in bounds
        reference.access = Access.READ
    made.reads, made.writes = frozenset(one.name for one in made.references), frozenset()


def _lasts(declaration: Declaration) -> bool:
    """May it have a value from before?"""
    first = declaration.initial is not None and "parameter" not in declaration.attributes
    return first or bool(declaration.attributes & {"save", "pointer"})


def _use(routine: Routine, code: Expressions, line: Line, at: int) -> None:
    words = code.words
    separator = next((i for i in range(at, len(words)) if words[i].text == "::"), None)
    name = at if separator is None else separator + 1
    only = None
    if name + 3 < len(words) and [w.text for w in words[name + 1 : name + 4]] == [",", "only", ":"]:
        begin = words[name + 3].end
        only = code.lower[begin:]
    module = words[name].text
    if module in routine.uses:  # USE m, ONLY: a / USE m, ONLY: b
        before = routine.uses[module][2]
        only = None if only is None or before is None else f"{before},{only}"
    routine.uses[module] = (line.begin, line.end, only)
    for index in range(name + 1, len(words) - 1):
        if words[index].text == "=>":
            begin, end = code.word_place(index - 1), code.word_end(index + 1)
            routine.renamed.append((module, words[index + 1].text, begin, end))


def _type_declaration(routine: Routine, code: Expressions, line: Line) -> None:
    words = code.words
    separator = parts(words, 0, len(words), "::")
    shape: tuple[int, int] | None = None
    attributes: set[str] = set()
    if len(separator) > 1:
        head = parts(words, 0, separator[0][1], ",")
        type_text = code.text(*head[0])
        for first, last in head[1:]:
            attributes.add(words[first].text)
            if words[first].text == "dimension":
                shape = (first + 2, last - 1)
        begin = separator[1][0]
    else:
        begin = type_end(code)
        type_text = code.text(0, begin)
    entities = _entities(words, begin)
    for first, last in entities:
        if first < last:
            made = _entity(routine, code, line, (first, last), type_text, attributes, shape)
            made.entities = len(entities)
            routine.declarations[made.name] = made


def _entities(words: list[Token], begin: int) -> list[tuple[int, int]]:
    """The stretches of a list of entities. Values may stand between slashes, INTEGER a(2) /1, 2/, but not
    behind an =, where they divide."""
    found: list[tuple[int, int]] = []
    for first, last in parts(words, begin, len(words), ","):
        before = [words[at].text for at in outside(words, *found[-1])] if found else []
        if before.count("/") % 2 and "=" not in before:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _entity(
    routine: Routine,
    code: Expressions,
    line: Line,
    where: tuple[int, int],
    type_text: str,
    attributes: set[str],
    shape: tuple[int, int] | None,
) -> Declaration:
    """NAME [*length] [(shape)] [*length] [= value], in any statement that gives entities a shape."""
    words = code.words
    first, last = where
    own, at, separate, initial = shape, first + 1, None, None
    given, length = False, ""
    while at < last:
        text = words[at].text
        if text == "(" and not given:
            stop = closing(words, at)
            own, at, given = (at + 1, stop), stop + 1, True
        elif text == "*":
            stop = closing(words, at + 1) + 1 if at + 1 < last and words[at + 1].text == "(" else at + 2
            length, at = code.text(at + 1, stop), stop
        elif text in ("=", "=>", "/"):
            initial = code.text(at + 1, last)
            break
        else:
            at = closing(words, at) + 1 if text == "[" else at + 1
    if not given and shape is not None:
        separate = (code.word_place(shape[0]), code.word_end(shape[1] - 1))
    name = words[first].text
    before = routine.declarations.get(name)
    storage = next((word for word in ("allocatable", "pointer") if word in attributes), "static")
    spelling = code.code[words[first].begin : words[first].end]
    return Declaration(
        name,
        spelling,
        _of_length(type_text or (before.type if before else ""), length),
        code.bounds(*own) if own else (before.bounds if before else []),
        code.word_place(first),
        code.word_end(last - 1),
        line.begin,
        line.end,
        1,
        frozenset(attributes) | (before.attributes if before else frozenset()),
        initial,
        before.storage if before and before.storage != "static" else storage,
        separate,
        (*before.elsewhere, (before.statement_begin, before.statement_end)) if before else (),
        before.block if before else "",
        length,
    )


def _of_length(type_text: str, length: str) -> str:
    """The type of an entity that has a length of its own: CHARACTER a*8, REAL x*8."""
    if not length:
        return type_text
    word = re.match(r"\s*\w+", type_text)
    if word is None or word[0].strip().lower() != "character":
        return f"{word[0] if word else ''}*{length}"
    kind = re.search(r"\bkind\s*=\s*[^,)]+", type_text, re.IGNORECASE)
    plain = length[1:-1] if length.startswith("(") else length
    return f"{word[0]}(len={plain}{f', {kind[0]}' if kind else ''})"


def _attribute(routine: Routine, code: Expressions, line: Line, what: Form) -> None:
    """ALLOCATABLE a, DIMENSION a(10), SAVE, PARAMETER (n = 3) and their like."""
    words, word = code.words, what.word
    begin = what.at
    if word in ("intent", "bind"):
        begin = closing(words, begin) + 1
    begin += begin < len(words) and words[begin].text == "::"
    if word == "parameter":
        begin, end = begin + 1, closing(words, begin)
    else:
        end = len(words)
    if word == "pointer" and begin < len(words) and words[begin].text == "(":  # Cray's
        routine.equivalence |= {w.text for w in words[begin:] if w.kind == "name"}
        return
    if word == "save" and begin >= end:
        routine.saves = True
        return
    for first, last in parts(words, begin, end, ","):
        if first >= last or words[first].kind != "name":
            continue
        shaped = first + 1 < last and words[first + 1].text == "("
        declared = routine.declarations.get(words[first].text)
        if shaped and word in ("dimension", "allocatable", "pointer", "target"):
            attributes = {word if word != "dimension" else "dimension statement"}
            made = _entity(routine, code, line, (first, last), "", attributes, None)
            routine.declarations[made.name] = made
            declared = made
        if word == "parameter" and declared is None:
            declared = _entity(routine, code, line, (first, last), "", set(), None)
            routine.declarations[declared.name] = declared
        if word == "save":
            routine.said.append((words[first].text, word))
        elif declared is not None:
            if word != "dimension":
                declared.attributes |= {word}
            if word == "parameter":
                declared.initial = code.text(min(first + 2, last), last)
            if word in ("allocatable", "pointer"):
                declared.storage = word


def _common(routine: Routine, code: Expressions, line: Line, at: int) -> None:
    """COMMON /block/ a(10), b: the names between slashes are blocks'."""
    for block, first, last in common_entities(code, at):
        made = _entity(routine, code, line, (first, last), "", set(), None)
        before = routine.declarations.get(made.name)
        if before is not None:
            before.bounds = made.bounds or before.bounds
            made = before
        made.storage = "common"
        made.block = block
        routine.declarations[made.name] = made


def common_entities(code: Expressions, at: int) -> Iterator[tuple[str, int, int]]:
    """(block, first word, behind the last) of each in a COMMON statement; the blank block has no name."""
    words = code.words
    block = ""
    while at < len(words):
        if words[at].text in ("/", "//"):
            named = words[at].text == "/" and at + 1 < len(words) and words[at + 1].text != "/"
            block = words[at + 1].text if named else ""
            at += 3 if named else 3 - len(words[at].text)
        elif words[at].kind == "name":
            first, at = at, at + 1
            if at < len(words) and words[at].text == "(":
                at = closing(words, at) + 1
            yield block, first, min(at, len(words))
        else:
            at += 1


def type_end(code: Expressions) -> int:
    """Where the entities of a declaration without `::` begin."""
    words = code.words
    at = 1
    if words[0].text == "double" and len(words) > 1 and words[1].text in _TYPE_WORDS:
        at = 2
    if at < len(words) and words[at].text == "*":
        at += 1
        at = closing(words, at) + 1 if at < len(words) and words[at].text == "(" else at + 1
    elif at < len(words) and words[at].text == "(":
        at = closing(words, at) + 1
    return at


def declared_behind(text: str) -> int:
    """The length of the lines of a preprocessor and of OpenMP's declarations that the text begins with, blank
    lines and comments between them included; other directives come later."""
    behind = 0
    for match in re.finditer(
        r"^[ \t]*(#|[!cC*]\$omp[ \t]*(?:threadprivate|declare)?)[^\n]*\n?", text, re.MULTILINE | re.IGNORECASE
    ):
        if not match[1].lower().endswith(("#", "threadprivate", "declare")):
            break
        behind = match.end()
    return behind
