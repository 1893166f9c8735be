"""Fortran: what a module or internal procedure does, where it could be said in another place as well."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from homing.translate.affine import names_in
from homing.translate.front.intrinsics import INTRINSICS
from homing.translate.front.lines import Line, split
from homing.translate.front.tokens import Token, closing, parts, tokens
from homing.translate.tree import (
    Branch,
    Construct,
    Declaration,
    Executable,
    Kind,
    Loop,
    Node,
    Routine,
    Statement,
    Unit,
    statements,
    walk,
    written_in_all,
)

#: Words of the language in the statements that a body may have.
KEYWORDS = frozenset(
    """
    if then else elseif end endif do enddo while concurrent exit cycle call continue select selectcase case
    default endselect where elsewhere endwhere block endblock associate result return
    """.split()  # noqa: SIM905
)
_HEAD = re.compile(r"(if|else|select\s*case|case|where|else\s*where)\b(?!\s*:)", re.IGNORECASE)
_NUMBER = re.compile(r"(integer|real|logical|complex|double\s*precision)\b", re.IGNORECASE)
_NO_TYPES = re.compile(r"implicit\s*none\b", re.IGNORECASE)
_NAMED = re.compile(r"[A-Za-z]\w*\s*:(?!:)")
_KIND = re.compile(r"_([A-Za-z]\w*)$")
_MAY_BE = frozenset(["intent", "dimension", "parameter"])


@dataclass(frozen=True)
class Body:
    """own: its arguments, its result and variables of its own; others: the other names that stand in it."""

    routine: Routine
    lines: tuple[Line, ...]
    own: frozenset[str]
    others: frozenset[str]
    written: frozenset[str]
    result: str  # of a function
    returns: dict[int, str]  # where `if (...) return` stands, and what it asks

    def text(self, line: Line) -> str:
        """A line of it: what comes behind `if (...) return` is done where that is not so, up to the end."""
        asked = self.returns.get(line.begin)
        return f"if (.not. {asked}) then" if asked is not None else line.code.strip()

    @property
    def counters(self) -> set[str]:
        """The variables of its loops."""
        return {one.variable for one in walk(self.routine.body) if isinstance(one, Loop) and one.variable}

    @property
    def computes(self) -> bool:
        """A function that does no more than compute a value?"""
        calls = any(one.calls for one in statements(self.routine.body))
        return bool(self.result) and self.written <= self.own - set(self.routine.arguments) and not calls


class Bodies:
    """Those of all Fortran files, as they are needed."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.routines = [one for unit in units if unit.form.fortran for one in unit.routines]
        self.modules = {one.name: one for one in self.routines if one.module}
        self._lines: dict[int, list[Line]] = {}
        self._found: dict[int, Body | None] = {}

    def lines_of(self, routine: Routine) -> list[Line]:
        """All lines of its file."""
        key = id(routine.source)
        if key not in self._lines:
            self._lines[key] = split(routine.source)
        return self._lines[key]

    def inside(self, scope: Routine) -> Iterator[Routine]:
        """The procedures that it contains."""
        return (one for one in self.routines if one.parent is scope)

    def of(self, routine: Routine) -> Body | None:
        """None: it says something that would mean something else elsewhere, or that may not stand there."""
        if id(routine) not in self._found:
            self._found[id(routine)] = None  # where it calls itself
            self._found[id(routine)] = self._read(routine)
        return self._found[id(routine)]

    def _read(self, routine: Routine) -> Body | None:
        if routine.module or routine.main or routine.parent is None:
            return None
        if any(True for _ in self.inside(routine)):
            return None
        if routine.uses or routine.renamed or routine.said or routine.saves or routine.equivalence:
            return None
        if routine.private or routine.functions or routine.directives or routine.implicit:
            return None
        lines = self.lines_of(routine)
        if self._says(routine, lines, "elemental\\b"):
            return None
        said = [one for one in lines if routine.head_end <= one.begin < routine.declarations_end]
        done = [one for one in lines if routine.declarations_end <= one.begin < routine.body_end]
        nodes = routine.body
        if done and nodes and done[-1].code.strip().lower() == "return" and nodes[-1].begin == done[-1].begin:
            nodes, done = nodes[:-1], done[:-1]
        if not done or not all(_says_types(one.code.lstrip()) for one in said):
            return None
        if any(one.openmp or one.label or _NAMED.match(one.code.lstrip()) for one in (*said, *done)):
            return None
        function = bool(routine.result_type) or self._says(routine, lines, rf"function\s*{routine.name}\b")
        result = (routine.result or routine.name).lower() if function else ""
        own = {*routine.arguments, *routine.declarations, *([result] if result else [])}
        if own & KEYWORDS or any(_calls_itself(tokens(one.code), own, routine) for one in done):
            return None
        if not all(_plain(one) for one in routine.declarations.values()):
            return None
        if not own <= {*routine.declarations, *([result] if routine.result_type else [])}:
            return None
        returns = {line.begin: asked for line in done if (asked := _asked(line, routine)) is not None}
        if not all(_may_stand(node, returns) for node in walk(nodes)):
            return None
        others = {word for line in done for word in names_of(tokens(line.code))} - own
        for declaration in routine.declarations.values():
            others |= named_in(declaration) - own
        others |= set(names_in(_kind(routine.result_type)))
        if not own.isdisjoint(_kinds(routine, done)):
            return None
        written = written_in_all(routine.body) | self._given(done, own)
        names = frozenset(others - KEYWORDS)
        body = Body(routine, tuple(done), frozenset(own), names, written, result, returns)
        return body if all(self._known(name, routine) for name in body.others) else None

    def _given(self, lines: Iterable[Line], own: Container[str]) -> frozenset[str]:
        """The names of its own that functions of the program get, and may write."""
        found: set[str] = set()
        named = {one.name.lower(): one for one in self.routines if not one.module}
        for line in lines:
            words = tokens(line.code)
            for index in range(len(words) - 1):
                callee = named.get(words[index].text)
                if callee is None or words[index + 1].text != "(":
                    continue
                body = self.of(callee)
                for name, first, _ in given(words, index + 1, callee):
                    if body is None or name in body.written:
                        found.add(words[first].text)
        return frozenset(name for name in found if name in own)

    def _says(self, routine: Routine, lines: Sequence[Line], words: str) -> bool:
        """Does its head?"""
        heads = [one.code for one in lines if routine.begin <= one.begin < routine.head_end]
        return any(re.search(rf"\b{words}", one, re.IGNORECASE) for one in heads)

    def calls(self, body: Body) -> bool:
        """Does it call anything that is not of the language?"""
        if any(one.calls for one in statements(body.routine.body)):
            return True
        return any(one.name.lower() in body.others for one in self.routines if not one.module)

    def _known(self, name: str, routine: Routine) -> bool:
        """Is it declared around the procedure, or one of the language's?"""
        scope = routine.parent
        while scope is not None:
            if name in scope.declarations or any(one.name.lower() == name for one in self.inside(scope)):
                return True
            if any(self.brings(module, name) for module in scope.uses):
                return True
            scope = scope.parent
        return name in INTRINSICS

    def shared(self, body: Body) -> set[str]:
        """The variables around it that it uses, of which all threads have one."""
        found = set()
        for name in body.others:
            scope = body.routine.parent
            while scope is not None and not (declared := self._declares(scope, name, set())):
                scope = scope.parent
            if scope is not None and declared:
                where, declaration = declared
                if "parameter" not in declaration.attributes and name not in where.private:
                    found.add(name)
        return found

    def _declares(self, scope: Routine, name: str, seen: set[str]) -> tuple[Routine, Declaration] | None:
        """Who declares it: the scope, or a module that it uses, also by others."""
        if name in scope.declarations:
            return scope, scope.declarations[name]
        for module in sorted(scope.uses.keys() & self.modules.keys() - seen):
            seen.add(module)
            if found := self._declares(self.modules[module], name, seen):
                return found
        return None

    def gives(self, module: Routine, name: str) -> bool:
        """Is what the module calls so PUBLIC?"""
        public, private, otherwise = set[str](), set[str](), True
        for line in self.lines_of(module):
            if not module.head_end <= line.begin < module.body_end:
                continue
            words = [word.text for word in tokens(line.code)]
            for said, names in (("public", public), ("private", private)):
                if said not in words:
                    continue
                if len(words) == 1:
                    otherwise = said == "public"
                elif words[0] == said or "::" in words[words.index(said) :]:
                    names |= {word for word in words if word != said}
        return name in public or (otherwise and name not in private)

    def brings(self, module: str, name: str) -> bool:
        """Is the name one of this module's own?"""
        found = self.modules.get(module)
        if found is None:
            return False
        return name in found.declarations or any(one.name.lower() == name for one in self.inside(found))


def names_of(words: Sequence[Token]) -> Iterator[str]:
    """The names in a statement that are no components and no keywords of arguments."""
    for index in range(len(words)):
        if is_name(words, index):
            yield words[index].text
        elif words[index].kind == "number" and (kind := _KIND.search(words[index].text)):
            yield kind[1]


def is_name(words: Sequence[Token], index: int) -> bool:
    """Is it a name, and neither a component nor the keyword of an argument?"""
    if words[index].kind != "name" or (index and words[index - 1].text == "%"):
        return False
    behind = words[index + 1].text if index + 1 < len(words) else ""
    return not (behind == "=" and index and words[index - 1].text in ("(", ","))


def given(words: list[Token], opening: int, callee: Routine) -> Iterator[tuple[str, int, int]]:
    """The arguments in the brackets that words[opening] opens: the dummy's name (nothing: it has none), and
    words[first:last] of the text."""
    for place, (first, last) in enumerate(parts(words, opening + 1, closing(words, opening), ",")):
        if last > first + 2 and words[first].kind == "name" and words[first + 1].text == "=":
            yield words[first].text, first + 2, last
        elif last > first:
            yield "".join(callee.arguments[place : place + 1]), first, last


def declared(declaration: Declaration, name: str, written: Mapping[str, str]) -> str:
    """The declaration under another name. written: what stands for names in it."""
    kind = ", parameter" if "parameter" in declaration.attributes else ""
    bounds = ", ".join(f"{one.lower}:{one.upper}" for one in declaration.bounds)
    shape = f"({bounds})" if bounds else ""
    first = f" = {declaration.initial}" if declaration.initial is not None else ""
    return replaced(f"{declaration.type}{kind} :: {name}{shape}{first}", written, skip=name)


def replaced(code: str, written: Mapping[str, str], skip: str = "") -> str:
    """The statement with what stands for its names."""
    words, out, at = tokens(code), [], 0
    for index, word in enumerate(words):
        if word.text in written and word.text != skip.lower() and is_name(words, index):
            out += [code[at : word.begin], written[word.text]]
            at = word.end
    return "".join([*out, code[at:]])


def _says_types(code: str) -> bool:
    return bool(_NUMBER.match(code) or _NO_TYPES.match(code))


def _plain(declaration: Declaration) -> bool:
    """A number, or an array of them with bounds, that has a value from nowhere else?"""
    if not declaration.attributes <= _MAY_BE or declaration.elsewhere or declaration.block:
        return False
    if declaration.initial is not None and "parameter" not in declaration.attributes:
        return False
    if not _NUMBER.match(declaration.type):
        return False
    dummy = declaration.storage == "dummy"
    return dummy or all(one.upper is not None and not one.deferred for one in declaration.bounds)


def _kinds(routine: Routine, lines: Iterable[Line]) -> set[str]:
    """The names by which it says kinds of numbers."""
    texts = [routine.result_type, *(one.type for one in routine.declarations.values())]
    found = {name for text in texts for name in names_in(_kind(text))}
    numbers = (word.text for line in lines for word in tokens(line.code) if word.kind == "number")
    return found | {kind[1] for text in numbers if (kind := _KIND.search(text))}


def named_in(declaration: Declaration) -> set[str]:
    """The names in it, but for the one that it declares."""
    texts = [_kind(declaration.type), declaration.initial or ""]
    for bound in declaration.bounds:
        texts += [bound.lower, bound.upper or ""]
    return {word for text in texts for word in names_of(tokens(text.lower()))}


def _kind(text: str) -> str:
    """What stands in brackets behind the name of a type."""
    return text.lower().partition("(")[2].replace("kind", "").replace("=", "").removesuffix(")")


def _calls_itself(words: Sequence[Token], own: Container[str], routine: Routine) -> bool:
    """Is a name of its own, and of no array, taken for a function?"""
    for index, word in enumerate(words[:-1]):
        if words[index + 1].text == "(" and is_name(words, index) and word.text in own:
            declared = routine.declarations.get(word.text)
            if declared is None or not declared.bounds:
                return True
    return False


def _asked(line: Line, routine: Routine) -> str | None:
    """The condition of `if (...) return` among a procedure's own statements."""
    words = tokens(line.code)
    if len(words) < 4 or words[0].text != "if" or words[-1].text != "return":
        return None
    if closing(words, 1) != len(words) - 2 or not any(line.begin == one.begin for one in routine.body):
        return None
    return line.code[words[1].begin : words[-2].end]


def _may_stand(node: Node, returns: Container[int]) -> bool:
    if isinstance(node, Construct | Executable):
        return False
    if isinstance(node, Branch):
        return all(_HEAD.match(head.text) for head, _ in node.arms) and not node.switch
    head = node.head if isinstance(node, Loop) else node
    if head.label or head.unread or (isinstance(node, Loop) and node.label):
        return False
    return isinstance(node, Loop) or node.begin in returns or _may_be_done(node)


def _may_be_done(statement: Statement) -> bool:
    if statement.kind is Kind.JUMP:
        return statement.jump in ("exit", "cycle") and not statement.targets
    return statement.kind in (Kind.ASSIGNMENT, Kind.CALL) and "=>" not in statement.text
