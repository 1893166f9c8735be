"""The functions of distributions.py as Fortran and C text, with every division hoisted out of the loops.

An emitter declares the `variables`, puts `setup` where the part number is known (once a region), and uses
the rest in expressions. Indices are the program's own (from `lower`), parts and positions count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from homing.translate.directives import Kind


@dataclass(frozen=True)
class Syntax:
    """How expressions are written. kind: in Fortran, the kind that operands of MIN, MAX and MOD are brought
    to (they must be of one kind), such as "8"; empty: they already are."""

    fortran: bool
    kind: str = ""

    def minimum(self, a: str, b: str) -> str:
        raise NotImplementedError

    def maximum(self, a: str, b: str) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Variable:
    """An integer that the emitter declares. shared: the same for all parts. extent: empty for a scalar, or
    the extent of an array that begins at 0."""

    name: str
    shared: bool
    extent: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop of the translated program: variable from first to last (inclusive) by step (positive)."""

    variable: str
    first: str
    last: str
    step: str


@dataclass(frozen=True)
class IndexText:
    """One distributed dimension. lower, extent, parts, part: text of the dimension's lower bound, its number
    of indices, the number of parts along it, and the own part's number. prefix: of the variables' names.
    chunk: k of CYCLIC(k). size_of: of GEN_BLOCK, text of the size of part `{part}` (a format string)."""

    kind: Kind
    syntax: Syntax
    prefix: str
    lower: str
    extent: str
    parts: str
    part: str
    chunk: str = "1"
    size_of: str = ""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What setup() sets."""
        raise NotImplementedError

    def setup(self) -> list[str]:
        """Statements that set the variables, those that are shared first."""
        raise NotImplementedError

    @property
    def first(self) -> str:
        """BLOCK, GEN_BLOCK: the first own index."""
        raise NotImplementedError

    @property
    def last(self) -> str:
        """BLOCK, GEN_BLOCK: the last own index; less than first where there is none."""
        raise NotImplementedError

    def owner(self, index: str) -> str:
        """The part that owns an index. (Divides, but for STAR: not for inner loops.)"""
        raise NotImplementedError

    def local_size(self) -> str:
        """Number of own indices (a variable)."""
        raise NotImplementedError

    def local_index(self, index: str) -> str:
        """The position of an own index (BLOCK, GEN_BLOCK: a subtraction; CYCLIC divides)."""
        raise NotImplementedError

    def global_index(self, position: str) -> str:
        """The index at an own position."""
        raise NotImplementedError

    def loops(self, variable: str, first: str, last: str, step: str = "1", offset: int = 0) -> list[Loop]:
        """The own ones of the iterations first..last by step, in which element `variable + offset` is home:
        one loop, or for CYCLIC(k) one over blocks and one within. step: a positive integer expression."""
        raise NotImplementedError
