"""Loops of a parallel region, taken into internal procedures whose dummy arguments are the thread's parts.

A part comes out of a container in memory, so to a compiler two parts may have the same storage: gfortran 12
then guards each loop that it vectorises, and leaves one that copies a loop. Of dummy arguments the language
says that they have storage of their own. Every variable of the routine that the loop names becomes a dummy
argument, so that the code around the call is compiled as before: with host association the variables would
have to lie in memory there. A loop for which all that might not be the same stays where it is, which costs
speed only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from homing.translate.source import Edits, Move
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Declaration,
    Kind,
    Loop,
    Routine,
    references,
    statements,
    walk,
    written_in,
)
from homing.translate.write.writer import PART, Region

_NAME = re.compile(r"[a-z]\w*")
_MARKER = re.compile(r'^# \d+ ".*"$', re.MULTILINE)
#: Constructs that give names to things, which an internal procedure does not know.
_SCOPES = frozenset({"associate", "block"})
#: Types that a dummy argument has by the same words; lengths of characters may have changed meanwhile.
_TYPES = re.compile(r"(integer|real|logical|complex|double\s*precision|double\s*complex|type\s*\()", re.I)
#: With these, another name may stand for the same storage, or more is meant than the value.
_ATTRIBUTES = frozenset(
    ["target", "pointer", "volatile", "asynchronous", "codimension", "optional", "external"]
)
_CONDITIONAL_TEXT = re.compile(r"^[ \t]*#[ \t]*[a-z]", re.MULTILINE)


@dataclass(frozen=True)
class _Candidate:
    region: Region
    construct: Construct
    loop: Loop


class LoopProcedures:
    """The loops of one routine."""

    def __init__(self, routine: Routine, edits: Edits, indented: Callable[[str, str], str]) -> None:
        self._routine = routine
        self._source = routine.source
        self._edits = edits
        self._indented = indented
        self._candidates: list[_Candidate] = []

    def add(self, region: Region, construct: Construct, loop: Loop) -> None:
        """A loop over the part's own iterations, whose edits are made."""
        self._candidates.append(_Candidate(region, construct, loop))

    def write(self, own: Mapping[str, str]) -> None:
        """Move the loops for which it is worth while and safe. own: the declarations of the translation's
        variables."""
        if not self._has_room():
            return
        moves = [move for each in self._candidates if (move := self._move(each, own)) is not None]
        if not moves:
            return
        end = self._routine.body_end
        if self._place() == end:
            self._edits.insert_lines(end, [self._indented(self._source.indent(end), "contains")])
        for move in moves:
            self._edits.move_lines(move)

    # --- where it can be done ---------------------------------------------------------------------------

    def _has_room(self) -> bool:
        """Can the routine have internal procedures?"""
        routine = self._routine
        nested = routine.parent is not None and not routine.parent.module
        conditional = _CONDITIONAL_TEXT.search(self._source.text, routine.begin, routine.end)
        return not routine.module and not nested and conditional is None

    def _worth_while(self, region: Region, loop: Loop) -> bool:
        """Two parts, one of them written."""
        parts = {array.name for array in region.arrays}
        found = [reference for reference in references([loop]) if reference.name in parts]
        return len({r.name for r in found}) > 1 and any(r.access is not Access.READ for r in found)

    def _lines(self, loop: Loop) -> tuple[int, int] | None:
        """The range of the loop's lines, if nothing else stands on them."""
        source = self._source
        begin, end = source.line_start(loop.begin), source.next_line(loop.end - 1)
        before, behind = source.text[begin : loop.begin], source.text[loop.end : end]
        alone = re.fullmatch(r"\s*(\w+\s*:)?\s*", before) and re.fullmatch(r"\s*(!.*)?\s*", behind)
        return (begin, end) if alone else None

    def _tied(self, candidate: _Candidate) -> bool:
        """Does something tie the loop to its place: a name that is known there only, a label, a variable
        of which it is not known whether it is private?"""
        loop = candidate.loop
        for node in walk(self._routine.body):
            inside = loop.begin <= node.begin < loop.end
            if isinstance(node, Branch) and node.begin < loop.begin < node.end:
                if node.arms[0][0].form in _SCOPES or any(head.form == "guard" for head, _ in node.arms):
                    return True
            elif isinstance(node, Loop) and node is not loop:
                if not inside and loop.label is not None and node.label == loop.label:
                    return True  # DO 10 k / DO 10 j: one end for both
            elif isinstance(node, Construct) and inside and node.directive.name != "simd":
                return True
        # Formats have labels of the routine.
        if any(s.kind in (Kind.INPUT, Kind.OUTPUT) for s in statements([loop])):
            return True
        for construct in (candidate.region.construct, candidate.construct):
            for clause in construct.directive.clauses if construct is not None else ():
                named = clause.name in ("private", "firstprivate", "reduction")
                if named and "/" in (clause.text or "").rpartition(":")[2]:
                    return True  # a common block
                if clause.name == "default" and "private" in (clause.text or ""):
                    return True
        return False

    def _unknown(self, loop: Loop) -> bool:
        """Is there a procedure that may use the same variables, or a name that is not declared here?"""
        routine = self._routine
        scope: Routine | None = routine
        while scope is not None and not scope.implicit_none:
            scope = scope.parent
        if routine.equivalence or any(s.kind is Kind.CALL for s in statements([loop])):
            return True
        for reference in references([loop]):
            found = routine.lookup(reference.name)
            if found is None and not reference.intrinsic:
                # An external function, or an array of a module.
                if scope is None or reference.subscripts is not None:
                    return True
            elif found is not None and reference.subscripts is not None:
                character = found[1].type.lower().startswith("character")
                if not found[1].bounds and not character:
                    return True
        return False

    # --- the procedure ----------------------------------------------------------------------------------

    def _move(self, candidate: _Candidate, own: Mapping[str, str]) -> Move | None:
        region, loop = candidate.region, candidate.loop
        lines = self._lines(loop)
        if lines is None or not self._worth_while(region, loop) or self._tied(candidate):
            return None
        if self._unknown(loop):
            return None
        arguments = self._arguments(region, loop, self._edits.changed(*lines), own)
        if arguments is None:
            return None
        begin, end = lines
        name = self._name(loop)
        listed = f"{name}({', '.join(arguments)})"
        instead = [self._indented(self._source.indent(loop.begin), f"call {listed}")]
        outer = self._source.indent(self._routine.body_end) + "  "
        head = [self._indented(outer, f"recursive subroutine {listed}")]
        head += [self._indented(outer + "  ", declaration) for declaration in arguments.values()]
        tail = [self._indented(outer, "end subroutine")]
        return Move(begin, end, self._place(), instead, head, tail)

    def _name(self, loop: Loop) -> str:
        """By the line where the user finds the loop; one file may be included twice."""
        place = self._source.place(loop.begin)
        if place.file == self._source.path:
            return f"hm_loop_{place.line}"
        return f"hm_loop_at_{self._source.line_of(loop.begin)}"

    def _arguments(
        self, region: Region, loop: Loop, changed: str, own: Mapping[str, str]
    ) -> dict[str, str] | None:
        """The dummy arguments with their declarations; None where one cannot be declared."""
        # A name may be broken across lines: the statements' texts are whole.
        text = "\n".join([changed, *(s.text for s in statements([loop]))]).lower()
        used = set(_tree_names(loop))
        names = {*_NAME.findall(_MARKER.sub("", text)), *used}
        if self._routine.result in names:
            return None
        written = written_in(loop)
        arguments: dict[str, str] = {}
        for array in region.arrays:
            if array.name in names:
                if array.declaration.attributes & (_ATTRIBUTES - {"pointer"}):
                    return None
                shape = ", ".join(":" for _ in array.dimensions)
                arguments[array.name] = f"{array.declaration.type}, allocatable :: {array.name}({shape})"
        for name in sorted(names - arguments.keys()):
            if name in own:
                constant = name == PART or name in region.bounds
                arguments[name] = own[name].replace(" ::", ", value ::", 1) if constant else own[name]
            elif name.startswith("hm_layout_"):
                arguments[name] = f"type(homing_handle), value :: {name}"
            elif name in region.private | region.passed or (name in used and self._automatic(name)):
                declaration = self._declaration(name, name in written)
                if declaration is None:
                    return None
                arguments[name] = declaration
        return arguments

    def _automatic(self, name: str) -> bool:
        """Is it a variable that lives as long as a call of the routine?"""
        declaration = self._routine.declarations.get(name)
        if declaration is None or name in self._routine.private or declaration.storage == "common":
            return False
        return not declaration.attributes & {"parameter", "save"}

    def _place(self) -> int:
        """Behind CONTAINS, or where it will be."""
        end = self._routine.body_end
        there = re.compile(r"[ \t]*contains\b", re.IGNORECASE).match(self._source.text, end)
        return self._source.next_line(end) if there else end

    def _declaration(self, name: str, written: bool) -> str | None:
        """A dummy argument for a variable of the user's; None: it cannot be declared."""
        found = self._routine.lookup(name)
        if found is None:
            return None
        declaration = found[1]
        shape = _shape(declaration)
        if declaration.attributes & _ATTRIBUTES or not _TYPES.match(declaration.type) or shape is None:
            return None
        words = [declaration.type]
        if declaration.storage == "allocatable":
            words.append("allocatable")
        elif shape and not any(bound.deferred for bound in declaration.bounds):
            words.append("contiguous")
        elif not shape and not written and not declaration.type.lower().startswith("type"):
            words.append("value")
        return f"{', '.join(words)} :: {name}{shape}"


def _shape(declaration: Declaration) -> str | None:
    """The shape of a dummy argument that gets the variable; None where its lower bounds are not numbers."""
    sides = []
    for bound in declaration.bounds:
        if declaration.storage == "allocatable":
            sides.append(":")
        elif (bound.upper is None and not bound.deferred) or not re.fullmatch(r"[+-]?\d+", bound.lower):
            return None
        else:
            sides.append(f"{bound.lower}:")
    return f"({', '.join(sides)})" if sides else ""


def _tree_names(loop: Loop) -> Iterator[str]:
    for statement in statements([loop]):
        yield from statement.reads | statement.writes
    for node in walk([loop]):
        if isinstance(node, Loop) and node.variable:
            yield node.variable
