"""The directives: what each says, whatever its spelling (docs/directives.md has the grammar).

Chapman, Patil and Prabhakar 2001, section 3, on the ground of SGI's, Compaq's and HPF's. Expressions are the
user's own text: the front ends read them in the program's language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from homing.translate.positions import Name, Position, Problem, Text


class Form(Enum):
    """How a source file is written."""

    FREE = "free"  # Fortran
    FIXED = "fixed"  # Fortran
    C = "c"

    @property
    def fortran(self) -> bool:
        return self is not Form.C


class Dialect(Enum):
    """Whose spelling a directive has."""

    HOMING = "homing"
    SGI = "sgi"
    COMPAQ = "compaq"


@dataclass(frozen=True)
class Source:
    """Where a directive stands: from `position` (its sentinel) up to, not including, (end_line, end_column).

    text: as the user wrote it, line ends included. whole_lines: nothing else stands on those lines (but
    comments), so that they can be taken out; otherwise it is a clause on somebody else's line (SGI's AFFINITY
    in an OpenMP directive) and only these characters are its own, with the comma before it if there is one.
    """

    position: Position
    end_line: int
    end_column: int
    text: str
    dialect: Dialect
    form: Form
    whole_lines: bool = True

    def problem(self, reason: str) -> Problem:
        """What is wrong with the directive, or is to be said of it."""
        return Problem(self.position, self.text, reason)

    @property
    def first_line(self) -> int:
        return self.position.line

    @property
    def last_line(self) -> int:
        """The last line on which the directive has text."""
        return self.end_line


class Kind(Enum):
    """How one dimension is dealt out. `*` is STAR: not distributed."""

    BLOCK = "block"
    CYCLIC = "cyclic"
    GEN_BLOCK = "gen_block"
    STAR = "*"


@dataclass(frozen=True)
class Format:
    """The distribution of one dimension. arguments: k of CYCLIC(k); of GEN_BLOCK the name of an array of
    sizes, or the sizes, one a part."""

    kind: Kind
    arguments: tuple[Text, ...]
    position: Position


@dataclass(frozen=True)
class Onto:
    """The parts that dimensions are dealt to: a PROCESSORS or MEMORIES arrangement by name, or SGI's list of
    weights, one a distributed dimension (`*`: what is left)."""

    arrangement: Name | None
    weights: tuple[Text, ...]


@dataclass(frozen=True)
class Bounds:
    """One dimension `lower:upper`. lower is None where it is not written: 1 in Fortran; in C `upper` is then
    the extent (`[n]` is 0 to n - 1). upper `*` (PROCESSORS, MEMORIES only): what the run-time number of parts
    leaves."""

    lower: Text | None
    upper: Text


@dataclass(frozen=True)
class Reference:
    """An array element or section: name(subscripts)."""

    name: Name
    subscripts: tuple[Text, ...]


@dataclass(frozen=True)
class Distribute:
    """DISTRIBUTE and DISTRIBUTE_RESHAPE of one array or template.

    reshape: by elements, the array may be laid out anew (section 3.1), else by pages. extents: EXTENT(...),
    given for a C pointer or an assumed-size array; one a dimension, or empty.
    """

    source: Source
    name: Name
    formats: tuple[Format, ...]
    onto: Onto | None
    extents: tuple[Text, ...]
    reshape: bool


@dataclass(frozen=True)
class Redistribute:
    """REDISTRIBUTE: from here on (an executable directive) the array is distributed so."""

    source: Source
    name: Name
    formats: tuple[Format, ...]
    onto: Onto | None


@dataclass(frozen=True)
class NextTouch:
    """NEXT_TOUCH(names): an executable directive: pages go to where they are touched next (Löf 2004, section
    6). extents: of a C pointer."""

    source: Source
    names: tuple[Name, ...]
    extents: tuple[Text, ...]


@dataclass(frozen=True)
class Align:
    """ALIGN name(subscripts) WITH target(...): every element lies where that element of target lies.

    subscripts: dummy names, `:` or `*` (this dimension does not matter); empty with `ALIGN name WITH target`.
    target.subscripts: expressions of at most one dummy each, `:`, or `*` (replicated).
    """

    source: Source
    name: Name
    subscripts: tuple[Text, ...]
    target: Reference


@dataclass(frozen=True)
class Template:
    """TEMPLATE name(bounds): an array without storage, to align with."""

    source: Source
    name: Name
    bounds: tuple[Bounds, ...]


@dataclass(frozen=True)
class Arrangement:
    """PROCESSORS or MEMORIES name(extents): the grid of the parts; memories are NUMA nodes (or, for MPI,
    machines), processors are threads. bounds is empty for `PROCESSORS p`: one dimension, as many as there
    are."""

    source: Source
    name: Name
    bounds: tuple[Bounds, ...]
    memories: bool


@dataclass(frozen=True)
class Width:
    """The shadow of one dimension: elements below and above the own ones. `SHADOW a(w)` is w:w."""

    low: Text
    high: Text


@dataclass(frozen=True)
class Shadow:
    """SHADOW name(widths): how far beyond its own elements a part reads or writes."""

    source: Source
    name: Name
    widths: tuple[Width, ...]


@dataclass(frozen=True)
class NoSequence:
    """NOSEQUENCE name (Compaq): the array's layout may change, so its DISTRIBUTE goes by elements."""

    source: Source
    name: Name


@dataclass(frozen=True)
class Dynamic:
    """DYNAMIC name (SGI, HPF): the array may be redistributed. REDISTRIBUTE does without; for checks only."""

    source: Source
    name: Name


@dataclass(frozen=True)
class OnHome:
    """ON HOME(reference): the iterations of the following loop (or the following SECTION) run where that
    element lies."""

    source: Source
    home: Reference


@dataclass(frozen=True)
class DataAffinity:
    """AFFINITY(variables) = DATA(reference): the same, by SGI's name."""

    source: Source
    variables: tuple[Name, ...]
    home: Reference


@dataclass(frozen=True)
class ThreadAffinity:
    """AFFINITY(variables) = THREAD(expression): an iteration runs on that thread, modulo their number."""

    source: Source
    variables: tuple[Name, ...]
    thread: Text


@dataclass(frozen=True)
class Nest:
    """NEST(variables): these perfectly nested loops are dealt out together, outermost first."""

    source: Source
    variables: tuple[Name, ...]
    onto: Onto | None


@dataclass(frozen=True)
class Replicate:
    """REPLICATE(names): each node has its own copy while the parallel construct behind it runs, which only
    reads them. extents: of a C pointer."""

    source: Source
    names: tuple[Name, ...]
    extents: tuple[Text, ...]


@dataclass(frozen=True)
class Numa:
    """NUMA (Compaq): the following parallel loop goes by the distribution of the data that it writes."""

    source: Source


Declaration = Distribute | Align | Template | Arrangement | Shadow | NoSequence | Dynamic
LoopDirective = OnHome | DataAffinity | ThreadAffinity | Nest | Numa | Replicate
Executed = Redistribute | NextTouch
Directive = Declaration | LoopDirective | Executed


def texts_of(directive: Directive) -> Iterator[Text]:
    """The expressions in a directive that says how an array lies."""
    if isinstance(directive, Distribute | Redistribute):
        for each in directive.formats:
            yield from each.arguments
    if isinstance(directive, Distribute | NextTouch | Replicate):
        yield from directive.extents
    if isinstance(directive, Template | Arrangement):
        for bound in directive.bounds:
            yield bound.upper
            if bound.lower is not None:
                yield bound.lower
