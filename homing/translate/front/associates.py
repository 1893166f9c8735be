"""Fortran's ASSOCIATE around and inside parallel code, where it gives arrays other names: they go by
their own. The text says `a` where the program says `u`, `associate (u => a)`, as the user could have written.

Elements, too, where their subscripts do not change meanwhile. Names of expressions stay.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from homing.translate.affine import names_in
from homing.translate.front.expressions import Expressions
from homing.translate.front.lines import Line, split
from homing.translate.front.tokens import closing, parts
from homing.translate.source import SourceFile, wrap
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Loop,
    Node,
    Routine,
    Unit,
    references,
    statements,
    walk,
    written_in_all,
)

_LONGEST = 132
_WORD = re.compile(r"(?<![\w%$])[A-Za-z]\w*")


@dataclass(frozen=True)
class _Name:
    """name => text, in the list of an ASSOCIATE; array: whose name or element it is, empty for others."""

    name: str
    text: str
    whole: str
    array: str = ""
    subscripts: str = ""

    @property
    def inside(self) -> str:
        """What stands for it in expressions."""
        return self.text if self.array else f"({self.text})"


def note_names(routine: Routine) -> None:
    """The names that an ASSOCIATE gives count as written by it, and the variables as read where none writes
    their names."""
    for node in walk(routine.body):
        if not isinstance(node, Branch) or node.arms[0][0].form != "associate":
            continue
        head, body = node.arms[0]
        head.writes |= frozenset(re.findall(r"(\w+)\s*=>", head.text))
        inside = list(references(body))
        changed = {one.name for one in inside if one.access is not Access.READ or one.argument_of}
        for reference in head.references:
            before = routine.source.text[head.begin : reference.begin]
            name = re.search(r"(\w+)\s*=>\s*$", before)
            if name and name[1].lower() not in changed | written_in_all(body):
                reference.only_read = True


def without_names(unit: Unit, distributed: Container[str]) -> SourceFile | None:
    """The source without the names of the first ASSOCIATE that can do without; None: there is no such one.
    distributed: names of arrays."""
    lines: list[Line] = []
    for routine in unit.routines:
        for branch, around in _associates(routine.body, ()):
            lines = lines or split(unit.source)
            made = _Rewriter(unit, routine, branch, around, lines).source(distributed)
            if made is not None:
                return made
    return None


def _associates(nodes: Sequence[Node], around: tuple[Node, ...]) -> Iterator[tuple[Branch, tuple[Node, ...]]]:
    """Each ASSOCIATE around or inside OpenMP's constructs, with what it lies in, outer ones first."""
    for node in nodes:
        if isinstance(node, Branch):
            if node.arms[0][0].form == "associate":
                inside = any(isinstance(one, Construct) for one in around)
                if inside or any(isinstance(one, Construct) for one in walk(node.arms[0][1])):
                    yield node, around
            for _, body in node.arms:
                yield from _associates(body, (*around, node))
        elif isinstance(node, Loop | Construct):
            yield from _associates(node.body, (*around, node))


class _Rewriter:
    """One ASSOCIATE."""

    def __init__(
        self, unit: Unit, routine: Routine, branch: Branch, around: Sequence[Node], lines: Sequence[Line]
    ) -> None:
        self.unit, self.routine, self.branch, self.around, self.lines = unit, routine, branch, around, lines
        self.head, self.body = branch.arms[0]
        self.text = unit.source.text

    def source(self, distributed: Container[str]) -> SourceFile | None:
        head = next((one for one in self.lines if one.begin == self.head.begin), None)
        end = next((one for one in self.lines if one.end == self.branch.end), None)
        if head is None or end is None or head.label or end.label or not (head.alone and end.alone):
            return None
        names = self._names(head)
        gone = {one.name: one for one in names if self._can_go(one, names, distributed)}
        if not gone:
            return None
        kept = [one for one in names if one.name not in gone]
        changes = [
            (begin, stop, gone[name].inside) for begin, stop, name in self._uses(gone, head.end, end.begin)
        ]
        opening = head.code[: head.code.lower().index("associate")]
        if kept:
            changes.append((head.begin, head.end, f"{opening}associate ({', '.join(x.whole for x in kept)})"))
        elif opening.strip():
            changes.append((head.begin, head.end, f"{opening}block"))
            changes.append((end.begin, end.end, re.sub(r"(?i)associate", "block", end.code, count=1)))
        else:
            changes += [(head.begin, head.end, ""), (end.begin, end.end, "")]
        return self._changed(changes)

    def _names(self, head: Line) -> list[_Name]:
        code = Expressions(head.code, head.places)
        at = next(index for index, word in enumerate(code.words) if word.text == "associate") + 1
        found = []
        for first, last in parts(code.words, at + 1, closing(code.words, at), ","):
            name, text = (
                code.text(first, first + 1),
                head.code[code.words[first + 2].begin : code.words[last - 1].end],
            )
            whole = head.code[code.words[first].begin : code.words[last - 1].end]
            array, subscripts = "", ""
            if last == first + 3 and code.words[first + 2].kind == "name":
                array = code.text(first + 2, last)
            elif code.words[first + 3].text == "(" and closing(code.words, first + 3) == last - 1:
                array, subscripts = code.text(first + 2, first + 3), code.text(first + 4, last - 1)
            found.append(_Name(name, text, whole, array, subscripts))
        return found

    def _can_go(self, one: _Name, names: Sequence[_Name], distributed: Container[str]) -> bool:
        """Is it a name of an array, or of one of its elements, that does not mean another one meanwhile?"""
        if self._is_index(one):
            return self._means_one_thing(one, set(names_in(one.text)), names)
        if not one.array or not ({one.name, one.array} & self._concerned(distributed)):
            return False
        declared = self.routine.lookup(one.array)
        if declared is not None and ("pointer" in declared[1].attributes or not declared[1].bounds):
            return False
        if not self._means_one_thing(one, {one.array, *names_in(one.subscripts)}, names):
            return False
        return not one.subscripts or (declared is not None and self._still(one.subscripts.split(",")))

    def _is_index(self, one: _Name) -> bool:
        """Is it made of whole numbers that do not change meanwhile, in a loop that is shared out?"""
        if not any(isinstance(x, Construct) and x.worksharing for x in self.around):
            return False
        found = [self.routine.lookup(name) for name in names_in(one.text)]
        whole = all(x is not None and re.match(r"integer\b(?!.*\*)", x[1].type.lower()) for x in found)
        return bool(found) and whole and self._still([one.text])

    def _means_one_thing(self, one: _Name, used: set[str], names: Sequence[_Name]) -> bool:
        """Do the names mean the same inside as before it?"""
        heads = (x.arms[0][0] for x in walk(self.body) if isinstance(x, Branch))
        inner = [x.text for x in heads if "=>" in x.text]
        every = {*used, one.name}
        if any(re.search(rf"\b{re.escape(name)}\s*=>", text) for name in every for text in inner):
            return False
        if any(self.head.end <= at < self.branch.end for name in every for at in self._places(name)):
            return False
        return not used & {other.name for other in names if other is not one}

    def _concerned(self, distributed: Container[str]) -> set[str]:
        """The names that may be those of distributed arrays: by directives, or by what is passed."""
        known = {x.name for x in self.head.references} | set(self.routine.declarations)
        words = known | {word.lower() for word in _WORD.findall(self.head.text)}
        scope: Routine | None = self.routine
        passed: set[str] = set()
        while scope is not None:
            passed.update(scope.arguments)
            scope = scope.parent
        return {word for word in words if word in distributed or word in passed}

    def _places(self, name: str) -> list[int]:
        return self.routine.places.get(name, [])

    def _still(self, texts: Sequence[str]) -> bool:
        """Do the expressions, of scalars and numbers, have one value as long as the name is used?"""
        counters = {x.variable for x in self.around if isinstance(x, Loop)}
        calls = any(x.calls for x in statements(self.body))
        written = written_in_all(self.body)
        for text in texts:
            if not re.fullmatch(r"[\w+\-* ]+", text):
                return False
            for name in names_in(text):
                found = self.routine.lookup(name)
                if found is None or found[1].bounds or name in written:
                    return False
                if calls and name not in counters and "parameter" not in found[1].attributes:
                    return False
        return True

    def _uses(self, gone: Container[str], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Where the names stand."""
        for line in self.lines:
            if not begin <= line.begin < end:
                continue
            code = Expressions(line.code, line.places)
            depth = 0
            for index, word in enumerate(code.words):
                depth += (word.text in ("(", "(/", "[")) - (word.text in (")", "/)", "]"))
                if word.kind != "name" or word.text not in gone or (line.openmp and not depth):
                    continue
                before = code.words[index - 1].text if index else ""
                behind = code.words[index + 1].text if index + 1 < len(code.words) else ""
                if before != "%" and not (depth and behind == "=" and before in ("(", ",")):
                    yield code.word_place(index), code.word_end(index), word.text
        for first, last in self._directives():
            for match in _WORD.finditer(self.text, first, last):
                if match[0].lower() in gone:
                    yield match.start(), match.end(), match[0].lower()

    def _directives(self) -> Iterator[tuple[int, int]]:
        """Where homing's directives stand, behind their sentinels."""
        source = self.unit.source
        for node in walk(self.body):
            found = [node.directive] if isinstance(node, Executable) else []
            for one in node.homing if isinstance(node, Construct) else found:
                where = one.source
                begin = source.offset(where.position.line, where.position.column)
                if where.whole_lines:
                    yield begin, source.offset(where.end_line, where.end_column)

    def _changed(self, changes: Sequence[tuple[int, int, str]]) -> SourceFile | None:
        source, at, out = self.unit.source, 0, []
        longest = source.fixed_columns or 10**6 if source.form.value == "fixed" else _LONGEST
        for begin, end, text in sorted(changes):
            # Lines keep their numbers.
            more = self.text.count("\n", begin, end)
            pieces = wrap(text, source) if more else [text]
            out += [self.text[at:begin], "\n".join(pieces), "\n" * (more + 1 - len(pieces))]
            at = end
        made = "".join([*out, self.text[at:]])
        known = set(self.text.split("\n"))
        if any(len(line) > longest for line in made.split("\n") if line not in known):
            return None
        return SourceFile(source.path, made, source.form, source.fixed_columns, marked=True)
