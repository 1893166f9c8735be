"""Fortran text of a program in parts: names of what belongs to an array, and where lines go."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.directives import model as d
from homing.translate.names import added
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.source import Edits
from homing.translate.tree import (
    Routine,
    Statement,
)
from homing.translate.write.fortran_procedures import LoopProcedures
from homing.translate.write.writer import Local, RoutineText

#: What a character does to the depth in brackets.
DEPTH = {"(": 1, ")": -1, "[": 1, "]": -1}


def split_list(text: str) -> list[str]:
    """The items of a list, at commas outside of brackets."""
    found, depth = [""], 0
    for char in text:
        depth += DEPTH.get(char, 0)
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return [item.strip() for item in found]


#: Characters of a part's type, behind which there is room for a module's name.
_SHORT = 40


class FortranText(RoutineText):
    """One routine that is written."""

    def __init__(self, routine: Routine, distributions: Distributions, edits: Edits, mpi: bool) -> None:
        super().__init__(routine, distributions, edits, mpi)
        self.locals: dict[str, Local] = {}
        self.bounds: dict[str, str] = {}  # own bounds: name -> type
        self.works_on_parts = False  # in a region of its own, or called in one
        self.holders: dict[str, str] = {}  # of last values: name -> a variable of its type
        self.handed: dict[int, tuple[str, list[str]]] = {}  # arguments that the text does not have, by place
        self.fixed = self.source.form is d.Form.FIXED
        self.waiting: list[tuple[Statement, list[Array]]] = []
        self.extra: list[str] = []  # declarations that take the place of others
        self.procedures = LoopProcedures(routine, edits, self.indented)

    def indented(self, indent: str, line: str) -> str:
        if self.fixed:
            return line if line.startswith("!$omp") else " " * max(6, len(indent.expandtabs())) + line
        return indent + line

    def container_before(self, array: Array) -> str:
        return added(f"hm_parts_before_{array.name}")

    def container(self, array: Array) -> str:
        return added(f"hm_parts_{array.name}")

    def type_name(self, array: Array) -> str:
        root = array
        while root.passed_from is not None:
            root = root.passed_from
        word = re.sub(r"\W+", "_", root.declaration.type.lower()).strip("_")
        name = f"hm_{word}_{array.rank}"[:60]
        # gfortran 12 ends with an internal error where one procedure allocates parts of its own arrays and of
        # a module's, by two types of one name. Only what is passed on needs the name that all have.
        own = root.routine.module and not root.linked and len(name) <= _SHORT
        return f"{name}_{root.routine.name}"[:60] if own else name

    def long(self, text: str) -> str:
        return f"int({text}, homing_long)"

    def _directive(self, begin: int, end: int, text: str) -> None:
        """Put code (or another directive) in place of a directive."""
        if self.fixed and text and not text.startswith("!$omp"):
            start = self.source.line_start(begin)
            self.edits.replace(start, end, "      " + text)
            return
        self.edits.replace(begin, end, text)

    def _lines(self, offset: int, lines: Sequence[str], like: int, first: bool = False) -> None:
        indent = self.source.indent(like)
        self.edits.insert_lines(offset, [self.indented(indent, line) for line in lines], first)
