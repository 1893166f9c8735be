"""The plan of a translation: an object for each array, loop, SINGLE construct and piece of serial code.

All of it is frozen, and none of it is text that goes into the program: the targets write their code from
these objects, `--explain` prints them, and tests compare them. Expressions are the program's own, in the form
in which they are compared. Dimensions count from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from homing.translate.affine import affine, names_in, shifted
from homing.translate.directives.model import Kind
from homing.translate.names import added
from homing.translate.positions import Position


@dataclass(frozen=True)
class Dimension:
    """How one dimension is dealt out. template: what names the index space that is cut (two dimensions with
    the same template and kind lie together); offset: index i lies where template index i + offset lies.
    lower and upper: of the template, as text; None: the array's own."""

    kind: Kind
    argument: str = ""
    sizes: str = ""  # of GEN_BLOCK: the array's name, or the sizes with commas
    template: str = ""
    lower: str | None = None
    upper: str | None = None
    offset: int = 0
    parts: str = ""  # extent of the grid, or empty
    base: str = ""  # the array that it is aligned with, whose template it shares
    base_dimension: int = 0

    @property
    def distributed(self) -> bool:
        return self.kind is not Kind.STAR

    @property
    def cyclic(self) -> bool:
        return self.kind is Kind.CYCLIC

    @property
    def varies(self) -> bool:
        """Is it dealt out by what may have changed since something else was dealt out by the same words?"""
        return bool(names_in(f"{self.argument or 0}, {self.sizes or 0}, {self.parts or 0}"))

    def together(self, other: Dimension) -> bool:
        """Are both cut at the same places of the same index space?"""
        mine = (self.kind, self.argument, self.sizes, self.template, self.parts)
        return mine == (other.kind, other.argument, other.sizes, other.template, other.parts)

    def perhaps_together(self, other: Dimension) -> bool:
        """The same, or it is known when the program runs: bounds of an allocatable are not known before."""
        mine, its = self.template.split("/"), other.template.split("/")
        unknown = "allocated" in (mine[1:2] + its[1:2])
        alike = unknown and mine[-1] == its[-1]
        return self.together(replace(other, template=self.template) if alike else other)

    def format(self) -> str:
        """As a directive would say it."""
        text = self.kind.value
        if self.argument not in ("", "1"):
            text += f"({self.argument})"
        if self.sizes:
            text += f"({self.sizes})"
        return text + (f" {self.offset:+d}" if self.offset else "")


@dataclass(frozen=True)
class Follow:
    """A dimension that goes with the iterations: iteration i runs where index factor*i + offset of the home
    array lies in this dimension, which is dealt out so."""

    variable: str
    home: str
    dimension: int
    offset: int
    dealt: Dimension
    factor: int = 1  # of a CYCLIC dimension always 1

    def way(self) -> tuple[str, int, int, int]:
        """What tells it from others of the home array."""
        return self.variable, self.dimension, self.factor, self.offset

    def scaled(self, text: str) -> str:
        """factor times an expression."""
        if self.factor == 1:
            return text
        return f"{self.factor}*{text}" if re.fullmatch(r"\w+", text) else f"{self.factor}*({text})"

    def index(self, text: str) -> str:
        """Where the iteration lies whose counter is an expression."""
        return shifted(self.scaled(text), self.offset)


@dataclass(frozen=True)
class Side:
    """One dimension of a box: first..last, or with `follow` a part's own iterations within first..last (both,
    and the iterations, times its factor), widened by low..high."""

    first: str
    last: str
    follow: Follow | None = None
    low: int = 0
    high: int = 0

    def key(self) -> tuple[object, ...]:
        home = self.follow.way() if self.follow else None
        return (str(affine(self.first)), str(affine(self.last)), home, self.low, self.high)


@dataclass(frozen=True)
class Span:
    """Where a reference stands: offsets of its beginning, of the end of its name, and of its end."""

    begin: int
    name_end: int
    end: int


@dataclass(frozen=True)
class Box:
    """Elements of an array. exact: what is touched is exactly this, whenever the loop runs."""

    array: str
    sides: tuple[Side, ...]
    exact: bool
    references: tuple[Span, ...]

    def key(self) -> tuple[object, ...]:
        return (self.array, *(side.key() for side in self.sides))

    def names(self) -> frozenset[str]:
        """Variables that the box depends on."""
        found: frozenset[str] = frozenset()
        for side in self.sides:
            found |= names_in(side.first) | names_in(side.last)
        return found

    @property
    def home(self) -> str:
        """The array whose owners exchange the box."""
        return next(side.follow.home for side in self.sides if side.follow is not None)


@dataclass(frozen=True)
class Exchange:
    """A box that is fetched or pushed, or that all parts get a copy of (broadcast), as `copy`.

    count: how many elements one block of a part gets or sends (BLOCK and GEN_BLOCK: the part; at the array's
    ends fewer), of a broadcast how many each part gets, as an expression; empty: not known. elements: its
    value; None: not known before the program runs.
    """

    box: Box
    place: Position
    count: str
    elements: int | None
    copy: str = ""


@dataclass(frozen=True)
class LocalIndex:
    """The variable `name` holds where index `variable + offset` of a CYCLIC dimension lies in the part."""

    name: str
    variable: str
    array: str
    dimension: int
    offset: int


@dataclass(frozen=True)
class Subscript:
    """A subscript that is written anew: the local index `name`, moved by distance and by `more`, a text."""

    begin: int
    end: int
    name: str
    distance: int
    more: str = ""


class Home(Enum):
    """Why a loop's iterations run where they do."""

    ON_HOME = "on home"  # the directive says so
    AFFINITY = "affinity"
    WRITTEN = "written"  # owner computes: of what is written, what needs no other part's elements
    READ = "read"  # nothing distributed is written
    THREAD = "thread"  # AFFINITY(...) = THREAD(...)
    NONE = "none"


class Schedule(Enum):
    """What becomes of a loop that OpenMP shares out."""

    OWN = "own"  # each part runs its own iterations
    THREAD = "thread"  # iterations on the threads that AFFINITY names
    KEPT = "kept"  # OpenMP's, as it was
    REFUSED = "refused"


@dataclass(frozen=True)
class LastValues:
    """LASTPRIVATE. names: of its variables; copies: of these, each thread's own that nothing else makes so.
    final: the loop's last index; counted: that there is one, as a condition."""

    names: tuple[str, ...]
    copies: tuple[str, ...]
    variable: str
    first: str
    step: str
    follow: Follow
    final: str
    counted: str

    def holder(self, name: str) -> str:
        """The variable that holds the last value until the loop is done."""
        return added(f"hm_last_{name}")

    def kept(self, final: str) -> list[tuple[str, str]]:
        """Each holder with the value that it gets behind the last iteration. final: what holds its index."""
        values = {self.variable: f"{final} + ({self.step})"}
        return [(self.holder(name), values.get(name, name)) for name in self.names]

    @property
    def ends(self) -> str:
        """The variable that says whether the part runs the last iteration."""
        return added(f"hm_ends_{self.variable}")

    @property
    def shared(self) -> list[str]:
        """The translation's variables that threads share."""
        return [*(self.holder(name) for name in self.names), "hm_ends_here"]


@dataclass(frozen=True)
class LoopPlan:
    """A loop that OpenMP shares out."""

    place: Position
    lines: tuple[int, int]  # from the directive to the loop's end
    routine: str
    schedule: Schedule
    variable: str | None = None
    first: str = ""
    last: str = ""  # inclusive
    step: str = "1"
    why: Home = Home.NONE
    follows: tuple[Follow, ...] = ()
    fixed: tuple[tuple[int, str], ...] = ()  # the home's dimensions with one subscript for all iterations
    fixed_locals: tuple[tuple[LocalIndex, str], ...] = ()  # where those subscripts lie in the part (CYCLIC)
    thread: str = ""  # Schedule.THREAD: the expression
    fetches: tuple[Exchange, ...] = ()
    at_hand: tuple[Box, ...] = ()  # fetched before, and not written since
    pushes: tuple[Exchange, ...] = ()
    changed: tuple[str, ...] = ()  # arrays of whose pushes the owners take what has changed
    broadcasts: tuple[Exchange, ...] = ()
    locals: tuple[LocalIndex, ...] = ()
    subscripts: tuple[Subscript, ...] = ()
    private: tuple[str, ...] = ()
    reductions: tuple[tuple[str, str], ...] = ()  # operator, variable
    together: tuple[tuple[str, int, str, int], ...] = ()  # dimensions of arrays assumed to be cut alike
    last_values: LastValues | None = None
    reason: str = ""  # Schedule.KEPT and REFUSED: why

    @property
    def home(self) -> str | None:
        return self.follows[0].home if self.follows else None


@dataclass(frozen=True)
class SinglePlan:
    """A SINGLE or MASTER construct: run by the owner of the element `owner`, or on whole arrays."""

    place: Position
    routine: str
    construct: str
    owner: str | None = None
    index: tuple[tuple[int, str], ...] = ()  # dimension, subscript
    fetches: tuple[Exchange, ...] = ()
    pushes: tuple[Exchange, ...] = ()
    locals: tuple[tuple[LocalIndex, str], ...] = ()  # with the subscript
    subscripts: tuple[Subscript, ...] = ()
    gathered: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # of these, scattered behind it
    reason: str = ""  # refused: why


@dataclass(frozen=True)
class SerialPlan:
    """Serial code that touches distributed arrays: it works on the whole of them."""

    place: Position
    routine: str
    gathered: tuple[str, ...]
    changed: tuple[str, ...]  # of these, scattered behind it
    anew: tuple[str, ...] = ()  # of these, what the code may allocate or free
    reason: str = "outside of parallel regions"


@dataclass(frozen=True)
class ReadPlan:
    """A statement of a region that every thread runs: the elements that it reads are broadcast."""

    place: Position
    routine: str
    broadcasts: tuple[Exchange, ...]


@dataclass(frozen=True)
class AnewPlan:
    """A REDISTRIBUTE: the array is dealt out so from here on."""

    place: Position
    routine: str
    array: str
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True)
class NotePlan:
    """What is done otherwise than the program says, and why."""

    place: Position
    routine: str
    reason: str


Step = LoopPlan | SinglePlan | SerialPlan | ReadPlan | AnewPlan | NotePlan


@dataclass(frozen=True)
class ArrayPlan:
    """A distributed array, as one routine knows it."""

    name: str
    routine: str
    place: Position  # of the declaration
    directive: str  # which directive distributes it; empty: the caller's argument does
    dimensions: tuple[Dimension, ...]
    shadow: tuple[tuple[int, int], ...]  # low and high of each dimension
    passed_from: str = ""  # the routine whose array it is
    pieces: bool = True  # the array is cut into parts; False: its pages are placed (--to pages)

    def formats(self) -> str:
        """The distribution in the directive's words."""
        return f"{self.name}({', '.join(one.format() for one in self.dimensions)})"


@dataclass(frozen=True)
class HotPlan:
    """--to upm: a shared array that parallel constructs both read and write. owner: whose it is; reads and
    writes: where, as ROUTINE:LINE; registered: a call gives it to the engine."""

    name: str
    owner: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    registered: bool


@dataclass(frozen=True)
class PhasePlan:
    """--to upm --phases: code between calls that record, replay and undo."""

    place: Position
    routine: str


@dataclass(frozen=True)
class UpmPlan:
    """--to upm: the time loop, None where there is none. region: of the parallel region around it."""

    hot: tuple[HotPlan, ...] = ()
    time_loop: Position | None = None
    routine: str = ""
    variable: str | None = None
    constructs: int = 0
    region: Position | None = None
    phases: tuple[PhasePlan, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """What cannot be translated."""

    place: Position
    text: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The whole translation."""

    target: str
    files: tuple[str, ...]
    arrays: tuple[ArrayPlan, ...] = ()
    steps: tuple[Step, ...] = ()
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    report: tuple[str, ...] = ()  # --to upm: what is said
    upm: UpmPlan | None = None

    def loops(self) -> tuple[LoopPlan, ...]:
        return tuple(one for one in self.steps if isinstance(one, LoopPlan))
