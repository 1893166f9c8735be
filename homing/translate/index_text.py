"""The functions of distributions.py as Fortran and C text, with every division hoisted out of the loops.

An emitter declares the `variables`, puts `setup` where the part number is known (once a region), and uses
the rest in expressions. Indices are the program's own (from `lower`), parts and positions count from 0.
All operands must be integers of one kind (Fortran), or convert to one type (C).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from homing.translate.directives import Kind

_ATOM = re.compile(r"\w+|\w*\([^()]*\)|\w+\[[^][]*\]")
_WEAKER = re.compile(r"[<>=&|?^~!:]")

#: What the C text of GEN_BLOCK's owner() calls.
C_HELPERS = """\
static inline long homing_owner(const long* ends, long parts, long index) {
    long owner = 0;
    while (owner + 1 < parts && ends[owner] <= index) owner++;
    return owner;
}
"""


@dataclass(frozen=True)
class Syntax:
    """How expressions are written. kind: in Fortran, the kind that operands of MIN, MAX and MOD are brought
    to (they must be of one kind), such as "8"; empty: they already are."""

    fortran: bool
    kind: str = ""

    def _operand(self, text: str) -> str:
        if self.fortran and self.kind:
            return f"{text}_{self.kind}" if text.isdigit() else f"int({text}, {self.kind})"
        return text

    def minimum(self, a: str, b: str) -> str:
        """The smaller one. C writes the operands twice: they must be free of side effects."""
        if a.isdigit() and b.isdigit():
            return str(min(int(a), int(b)))
        if self.fortran:
            return f"min({self._operand(a)}, {self._operand(b)})"
        return f"({_term(a)} < {_term(b)} ? {a} : {b})"

    def maximum(self, a: str, b: str) -> str:
        """The larger one, likewise."""
        if a.isdigit() and b.isdigit():
            return str(max(int(a), int(b)))
        if self.fortran:
            return f"max({self._operand(a)}, {self._operand(b)})"
        return f"({_term(a)} > {_term(b)} ? {a} : {b})"

    def remainder(self, a: str, b: str) -> str:
        """Of division of a number that is not negative."""
        if b == "1":
            return "0"
        if self.fortran:
            return f"mod({self._operand(a)}, {self._operand(b)})"
        return f"{_factor(a)} % {_factor(b)}"

    def assign(self, name: str, value: str) -> str:
        return f"{name} = {value}" + ("" if self.fortran else ";")

    def element(self, array: str, index: str) -> str:
        return f"{array}({index})" if self.fortran else f"{array}[{index}]"


def add(a: str, b: str) -> str:
    """a + b, where literals are added up."""
    if a.isdigit() and b.isdigit():
        return str(int(a) + int(b))
    if a == "0" or b == "0":
        return b if a == "0" else a
    return f"{_term(a)} + {_term(b)}"


def subtract(a: str, b: str) -> str:
    """a - b."""
    if a.isdigit() and b.isdigit() and int(a) >= int(b):
        return str(int(a) - int(b))
    return a if b == "0" else f"{_term(a)} - {_factor(b)}"


def shift(a: str, by: int) -> str:
    """a + by for a number that is known now."""
    if re.fullmatch(r"-?\d+", a):
        return str(int(a) + by)
    return add(a, str(by)) if by >= 0 else subtract(a, str(-by))


def multiply(a: str, b: str) -> str:
    """a * b."""
    if "0" in (a, b):
        return "0"
    if a == "1" or b == "1":
        return b if a == "1" else a
    return f"{_factor(a)}*{_factor(b)}"


def divide(a: str, b: str) -> str:
    """a / b, rounded down: a must not be negative."""
    return a if b == "1" else f"{_factor(a)}/{_factor(b)}"


def _factor(text: str) -> str:
    return text if _ATOM.fullmatch(text) else f"({text})"


def _term(text: str) -> str:
    """For what stands beside + and -: parentheses around a sign and what binds weaker."""
    return f"({text})" if text.startswith("-") or _WEAKER.search(text) else text


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
        """What setup() sets (and what loops() may run over)."""
        if self.kind is Kind.STAR:
            return ()
        own = (Variable(self.first, False), Variable(self.last, False))
        if self.kind is Kind.BLOCK:
            return (Variable(self._name("width"), True), *own)
        if self.kind is Kind.GEN_BLOCK:
            ends = Variable(self._name("ends"), True, self.parts)
            return (ends, Variable(self._name("end"), True), Variable(self._name("part"), True), *own)
        size = Variable(self._name("size"), False)
        block = Variable(self._name("block"), False)
        if self.chunk == "1":
            return (size, block)
        return (
            Variable(self._name("chunk"), True),
            Variable(self._name("round"), True),
            size,
            block,
        )

    def setup_shared(self) -> list[str]:
        """Statements that set the shared variables: once, before any part needs them."""
        s = self.syntax
        if self.kind is Kind.BLOCK:
            rounded = divide(subtract(add(self.extent, self.parts), "1"), self.parts)
            return [s.assign(self._name("width"), s.maximum(rounded, "1"))]
        if self.kind is Kind.CYCLIC and self.chunk != "1":
            return [
                s.assign(self._name("chunk"), self.chunk),
                s.assign(self._name("round"), multiply(self.parts, self._name("chunk"))),
            ]
        if self.kind is Kind.GEN_BLOCK:
            part, end = self._name("part"), self._name("end")
            size = self.size_of.format(part=part)
            step = [
                s.assign(end, s.minimum(add(end, _factor(size)), self.extent)),
                s.assign(s.element(self._name("ends"), part), end),
            ]
            if s.fortran:
                body = [
                    f"do {part} = 0, {subtract(self.parts, '1')}",
                    *(f"  {one}" for one in step),
                    "end do",
                ]
            else:
                body = [
                    f"for ({part} = 0; {part} < {self.parts}; {part}++) {{",
                    *(f"    {one}" for one in step),
                    "}",
                ]
            return [s.assign(end, "0"), *body]
        return []

    def setup(self) -> list[str]:
        """Statements that set a part's own variables, after those of setup_shared()."""
        s, lower, part = self.syntax, self.lower, self.part
        if self.kind is Kind.BLOCK:
            # Parts without indices begin behind the last one, so that last is never less than first - 1.
            begin = s.minimum(multiply(part, self._name("width")), self.extent)
            end = s.minimum(multiply(_factor(add(part, "1")), self._name("width")), self.extent)
        elif self.kind is Kind.GEN_BLOCK:
            ends = self._name("ends")
            if s.fortran:
                before = s.element(ends, s.maximum(subtract(part, "1"), "0"))
                begin = f"merge(0, {before}, {part} == 0)"
                if s.kind:
                    begin = f"merge(0_{s.kind}, {before}, {part} == 0)"
            else:
                begin = f"({part} == 0 ? 0 : {s.element(ends, subtract(part, '1'))})"
            end = s.element(ends, part)
        elif self.kind is Kind.CYCLIC:
            return [s.assign(self._name("size"), self._own_below(self.extent))]
        else:
            return []
        return [
            s.assign(self.first, add(lower, begin)),
            s.assign(self.last, subtract(add(lower, end), "1")),
        ]

    def requirement(self) -> str:
        """What must be true after setup_shared(): of GEN_BLOCK, that the sizes cover the extent. Or empty."""
        return f"{self._name('end')} == {_factor(self.extent)}" if self.kind is Kind.GEN_BLOCK else ""

    @property
    def first(self) -> str:
        """BLOCK, GEN_BLOCK: the first own index. STAR: the first."""
        return self.lower if self.kind is Kind.STAR else self._name("first")

    @property
    def last(self) -> str:
        """BLOCK, GEN_BLOCK: the last own index; first - 1 where there is none. STAR: the last."""
        if self.kind is Kind.STAR:
            return subtract(add(self.lower, self.extent), "1")
        return self._name("last")

    def owner(self, index: str) -> str:
        """The part that owns an index. (Divides or searches, but for STAR: not for inner loops.)"""
        zero_based = subtract(index, self.lower)
        if self.kind is Kind.BLOCK:
            return divide(zero_based, self._name("width"))
        if self.kind is Kind.CYCLIC:
            return self.syntax.remainder(divide(zero_based, self._chunk), self.parts)
        if self.kind is Kind.GEN_BLOCK:
            ends = self._name("ends")
            if self.syntax.fortran:
                return f"count({ends}(0:{subtract(self.parts, '2')}) <= {zero_based})"
            return f"homing_owner({ends}, {self.parts}, {zero_based})"
        return "0"

    def local_size(self) -> str:
        """Number of own indices."""
        if self.kind is Kind.CYCLIC:
            return self._name("size")
        if self.kind is Kind.STAR:
            return self.extent
        return f"{self.last} - {self.first} + 1"

    def local_index(self, index: str) -> str:
        """The position of an own index (BLOCK, GEN_BLOCK: a subtraction; CYCLIC divides)."""
        if self.kind is not Kind.CYCLIC:
            return subtract(index, self.first)
        zero_based = subtract(index, self.lower)
        if self.chunk == "1":
            return divide(zero_based, self.parts)
        within = self.syntax.remainder(zero_based, self._chunk)
        return add(multiply(divide(zero_based, self._round), self._chunk), within)

    def global_index(self, position: str) -> str:
        """The index at an own position (divides only for CYCLIC(k))."""
        if self.kind is not Kind.CYCLIC:
            return add(self.first, position)
        if self.chunk == "1":
            return add(add(self.lower, self.part), multiply(position, self.parts))
        block = add(multiply(divide(position, self._chunk), self.parts), self.part)
        within = self.syntax.remainder(position, self._chunk)
        return add(self.lower, add(multiply(block, self._chunk), within))

    def count_below(self, index: str) -> str:
        """How many own indices are less than an index that is at least `lower`: a CYCLIC loop over the own
        ones of first..last runs over the positions count_below(first) .. count_below(last + 1) - 1. (Divides
        for CYCLIC: hoist it.)"""
        if self.kind is Kind.CYCLIC:
            return self._own_below(subtract(index, self.lower))
        s = self.syntax
        return s.minimum(s.maximum(subtract(index, self.first), "0"), _factor(self.local_size()))

    def loops(self, variable: str, first: str, last: str, step: str = "1", offset: int = 0) -> list[Loop]:
        """The own ones of the iterations first..last by step, in which element `variable + offset` is home:
        one loop, or for CYCLIC(k) (and CYCLIC by steps) one over blocks and one within.

        step: a positive integer expression. first + offset must be at least `lower`."""
        s = self.syntax
        if self.kind is Kind.STAR:
            return [Loop(variable, first, last, step)]
        if self.kind is not Kind.CYCLIC:
            return [
                self._clipped(
                    variable, first, last, step, shift(self.first, -offset), shift(self.last, -offset)
                )
            ]
        begin = subtract(shift(first, offset), self.lower)
        if self.chunk == "1" and step == "1":
            ahead = add(subtract(self.part, s.remainder(begin, self.parts)), self.parts)
            return [Loop(variable, add(first, s.remainder(ahead, self.parts)), last, self.parts)]
        # The first own block that does not end before the first iteration.
        base = multiply(self.part, self._chunk)
        behind = s.maximum(shift(subtract(subtract(begin, base), self._chunk), 1), "0")
        rounds = divide(subtract(add(behind, self._round), "1"), self._round)
        start = add(add(shift(self.lower, -offset), base), multiply(rounds, self._round))
        block = self._name("block")
        inner = self._clipped(variable, first, last, step, block, subtract(add(block, self._chunk), "1"))
        return [Loop(block, start, last, self._round), inner]

    def _clipped(self, variable: str, first: str, last: str, step: str, low: str, high: str) -> Loop:
        s = self.syntax
        end = s.minimum(last, high)
        if step == "1":
            return Loop(variable, s.maximum(first, low), end, step)
        missing = s.maximum(subtract(low, first), "0")
        steps = divide(subtract(add(missing, step), "1"), step)
        return Loop(variable, add(first, multiply(steps, step)), end, step)

    def _own_below(self, count: str) -> str:
        """CYCLIC: how many of the first `count` indices (from 0) are own."""
        s = self.syntax
        if self.chunk == "1":
            return divide(subtract(add(subtract(count, self.part), self.parts), "1"), self.parts)
        rest = subtract(s.remainder(count, self._round), multiply(self.part, self._chunk))
        own = s.minimum(s.maximum(rest, "0"), self._chunk)
        return add(multiply(divide(count, self._round), self._chunk), own)

    @property
    def _chunk(self) -> str:
        return "1" if self.chunk == "1" else self._name("chunk")

    @property
    def _round(self) -> str:
        return self.parts if self.chunk == "1" else self._name("round")

    def _name(self, what: str) -> str:
        return f"{self.prefix}_{what}"
