"""What the translation into parts asks of a language: the text of each thing that it puts into the program.

Lines come without indentation; the translation indents them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from homing.translate.affine import affine, names_in
from homing.translate.directives import model as d
from homing.translate.names import added
from homing.translate.openmp import Reduction, clause_text
from homing.translate.plan import clauses as table
from homing.translate.plan.array import Array
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.effects import Act, What
from homing.translate.plan.model import Box, Exchange, Follow, LastValues, LocalIndex, LoopPlan, SinglePlan
from homing.translate.plan.threads_differ import Differing
from homing.translate.source import Edits
from homing.translate.tree import Construct, Executable, Loop, OpenMP, Reference, Routine, Statement
from homing.translate.write.rank_reductions import combined

#: The variable of a translated program that holds the number of the thread's part.
PART = "hm_part"


@dataclass
class Local:
    """A variable that the translation adds: of the type of another variable (or a plain integer), or an array
    like another one, without bounds."""

    name: str
    like: str | None = None
    array: Array | None = None


@dataclass
class Region:
    """A parallel region under translation, or the body of a procedure that is called inside one."""

    routine: Routine
    construct: Construct | None
    arrays: list[Array] = field(default_factory=list)
    locals: dict[str, Local] = field(default_factory=dict)
    #: Own bounds that loops use: name -> (array, dimension, "low" or "high", a loop variable of its type).
    bounds: dict[str, tuple[Array, int, str, str]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)  # what a loop has copies of, though the region shares it
    written: frozenset[str] = frozenset()  # whatever is written in it
    reductions: list[Reduction] = field(default_factory=list)
    #: --to mpi: shared variables to which the threads add what they have found, in ATOMIC and CRITICAL.
    added_up: frozenset[str] = frozenset()
    differing: Differing | None = None  # what is not the same in all threads; None: not looked at
    uneven: bool = False  # may threads come differently often to what is translated now?
    together: set[tuple[str, int, str, int]] = field(default_factory=set)  # layouts assumed to be cut alike

    def add(self, local: Local) -> str:
        self.locals.setdefault(local.name, local)
        return local.name


@dataclass(frozen=True)
class Stride:
    """The distance of a loop's iterations: a positive number, or a variable. up: do they go upwards?"""

    up: bool
    text: str

    @property
    def one(self) -> bool:
        return self.text == "1"

    @property
    def name(self) -> str | None:
        return None if self.text.isdigit() else self.text

    @property
    def less_one(self) -> str:
        return f"{self.text} - 1" if self.name else str(int(self.text) - 1)


def stride_of(loop: Loop) -> Stride | str:
    """The distance of a loop's iterations, or why it cannot be known."""
    step = affine(loop.step)
    if not step.terms and step.constant != 0:
        return Stride(step.constant > 0, str(abs(step.constant)))
    name = re.fullmatch(r"(-?)\s*([A-Za-z_]\w*)", loop.step)
    if name is None:
        return "the step of a loop that is shared out must be a number or a variable"
    return Stride(not name[1], name[2])


def cyclic_range(loop: Loop) -> tuple[str, str, Stride] | str:
    """The lowest and the highest value of a loop over a CYCLIC dimension, which goes upwards in parts, and
    the distance of its iterations; or why there are none. A loop that goes down is turned round: OpenMP says
    that the order does not matter, or order.py found nothing in it that does."""
    assert loop.first is not None and loop.last is not None
    stride = stride_of(loop)
    if isinstance(stride, str):
        return stride
    if stride.up:
        return loop.first.text, loop.last.text, stride
    return loop.last.text, loop.first.text, stride


@dataclass(frozen=True)
class Around:
    """Lines around a loop over own iterations. exchange: all parts do this together, before it. setup: each
    part by itself, right before it, where the loop may run several times (it may open a block of its own).
    behind: all together again."""

    exchange: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    last: LastValues | None = None
    left: list[str] = field(default_factory=list)


class RoutineText:
    """One routine that is written, in either language: what it is, and what is changed in it."""

    def __init__(self, routine: Routine, distributions: Distributions, edits: Edits, mpi: bool) -> None:
        self.routine = routine
        self.source = routine.source
        self.distributions = distributions
        self.arrays = distributions.of(routine)
        self.edits = edits
        self.mpi = mpi
        self.inside = distributions.inside(routine)
        self.problems: list[tuple[int, int, str]] = []
        self.anew: list[tuple[Executable, Array, Array]] = []
        self.swapped: dict[str, Array] = {}  # Fortran: whose parts wait in a variable meanwhile
        self.calls_runtime = False
        self._acts: list[Act] | None = None  # what the routine writes; found out once

    def layout(self, array: Array | str) -> str:
        return added(f"hm_layout_{array if isinstance(array, str) else array.name}")

    def whole(self, array: Array, dimension: int) -> tuple[str, str]:
        """Writer.whole."""
        if declared := self.declared(array, dimension):
            return declared
        layout = self.layout(array)
        return f"homing_lower({layout}, {dimension})", f"homing_upper({layout}, {dimension})"

    def declared(self, array: Array, dimension: int) -> tuple[str, str] | None:
        """The bounds that an array of this routine was declared with, unless something has changed since it
        was made what they are made of."""
        bounds = array.declaration.bounds
        if dimension >= len(bounds) or array.routine is not self.routine:
            return None
        bound, c = bounds[dimension], self.source.form is d.Form.C
        if bound.upper is None or (bound.deferred and not c):
            return None
        since = 0
        if c and array.origin is not None:
            said = array.origin.source
            since = self.source.offset(said.end_line, said.end_column)
        text = f"{bound.lower} {bound.upper}"
        names = names_in(text if c else text.lower())
        if self._acts is None:
            acts = self.distributions.effects.acts(self.routine, self.routine.body)
            self._acts = [act for act in acts if act.what is What.WRITE]
        changed = any(act.name in names and act.begin >= since for act in self._acts)
        return None if changed else (bound.lower, bound.upper)

    def layout_before(self, array: Array) -> str:
        """The layout of an array that is being dealt out anew."""
        return added(f"hm_layout_before_{array.name}")

    def region_clauses(self, directive: OpenMP, private: Container[str] = ()) -> list[str]:
        """What stays of a region's clauses: distributed arrays are no more shared, nor is what is private."""
        kept = []
        for clause in table.kept(directive, table.Place.REGION, "mpi" if self.mpi else "spmd"):
            if clause.name != "shared":
                kept.append(clause_text(clause))
                continue
            names = [name.strip() for name in (clause.text or "").split(",")]
            names = [n for n in names if n and n not in self.arrays and n.lower() not in private]
            if names:
                kept.append(f"shared({', '.join(names)})")
        return kept

    def loop_clauses(self, directive: OpenMP, last: LastValues | None, mpi: bool) -> list[str]:
        """What a worksharing loop needs a loop of OpenMP for."""
        data = table.kept_texts(directive, table.Place.LOOP, "mpi" if mpi else "spmd")
        if last and last.copies:
            data.append(f"private({', '.join(last.copies)})")
        return data

    def over_ranks(self, reductions: Sequence[Reduction]) -> tuple[list[str], list[str]]:
        """Writer.reductions."""
        before, behind = [], []
        for one in reductions:
            found = combined(self.routine, one, self.distributions.by_use)
            if isinstance(found, str):
                self.problems.append((*one.place, found))
                continue
            before += found.before
            behind += found.behind
        return before, behind

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        # Shadows are known when all loops of all routines have been looked at.
        self.anew.append((node, old, new))


class Writer(Protocol):
    edits: Edits

    def layout(self, array: Array | str) -> str:
        """The variable that holds an array's layout."""

    def indented(self, indent: str, line: str) -> str:
        """The line at its place in the source form; OpenMP directives included."""

    def whole(self, array: Array, dimension: int) -> tuple[str, str]:
        """Bounds of a dimension, as text that is valid in a region."""

    def fetch(self, array: str, boxes: Sequence[Box]) -> list[str]: ...

    def push(self, array: str, boxes: Sequence[Box]) -> list[str]: ...

    def before(self, array: str) -> list[str]:
        """Before a loop: what the array's next push compares with."""

    def broadcast(self, region: Region, exchange: Exchange) -> list[str]: ...

    def own_loop(
        self,
        region: Region,
        loop: Loop,
        follow: Follow,
        positions: Sequence[LocalIndex],
        before: list[str] | None,
    ) -> None:
        """Edit the loop's head so that it runs over the part's own iterations. Lines that belong before it go
        to the end of `before`, or (None) right before the loop."""

    def find_last(self, region: Region, last: LastValues) -> list[str]:
        """Before a part's iterations: does it run the last of all?"""

    def keep_last(self, last: LastValues) -> list[str]:
        """Behind a part's iterations."""

    def around_last(self, last: LastValues, node: Construct) -> tuple[list[str], list[str]]:
        """Before the loop's construct, and behind it."""

    def owner_test(self, array: str, subscripts: Sequence[tuple[int, str]]) -> str: ...

    def only_if(self, test: str) -> tuple[str, str]:
        """The lines around what is done on a condition."""

    def local_index(self, array: str, dimension: int, index: str) -> str: ...

    def assign(self, name: str, value: str) -> str: ...

    def owner_executes(
        self,
        node: Construct,
        test: str,
        before: Sequence[str],
        lines: Sequence[str],
        behind: Sequence[str],
        barrier: bool,
    ) -> None:
        """A SINGLE or MASTER construct becomes a condition. lines: inside, at its beginning."""

    def as_single(self, node: Construct) -> None:
        """Another construct becomes a SINGLE construct."""

    def single_whole(self, region: Region, node: Construct, plan: SinglePlan) -> str | None:
        """A SINGLE or MASTER construct on gathered arrays. Returns why not, if so."""

    def worksharing(
        self,
        region: Region,
        node: Construct,
        loop: Loop,
        around: Around,
        barrier: bool,
        combined: Sequence[Reduction],
    ) -> None:
        """A worksharing loop inside a region, whose loop runs over own iterations already. combined: what is
        combined over the ranks behind it."""

    def on_thread(self, node: Construct, loop: Loop, plan: LoopPlan) -> None:
        """A worksharing loop whose iterations go to threads by number."""

    def begin_region(
        self, region: Region, construct: Construct, before: Sequence[str], behind: Sequence[str]
    ) -> None:
        """The region's directive, and what stands at its beginning and end."""

    def begin_procedure(self, region: Region) -> None:
        """The same for a procedure that is called inside regions."""

    def reductions(self, reductions: Sequence[Reduction]) -> tuple[list[str], list[str]]:
        """Lines before and behind a region: its reductions, combined over the ranks."""

    def gather(self, arrays: Sequence[Array], anew: Sequence[Array] = ()) -> list[str]:
        """The whole of each array. anew: those that need not be allocated."""

    def release(
        self, arrays: Sequence[Array], changed: Sequence[Array], anew: Sequence[Array] = ()
    ) -> list[str]:
        """Parts of what was gathered. anew: those that may have been allocated or freed meanwhile."""

    def lifetime(self, statement: Statement, arrays: Sequence[Array]) -> None:
        """A statement that allocates or frees distributed arrays."""

    def redistribute(self, node: Executable, old: Array, new: Array) -> None:
        """Serial code: the array's elements move to a new layout."""

    def swap(self, statement: Statement, pair: tuple[Array, Array] | None) -> None:
        """Serial code: in the statement's place, two arrays change places, or nothing happens."""

    def pass_parts(self, reference: Reference, array: Array) -> None:
        """An argument in serial code: all parts go to the procedure."""

    def pass_part(self, reference: Reference, array: Array) -> None:
        """An argument inside a region: the thread's part goes to the procedure."""

    def value_before(self, name: str, call: str) -> tuple[list[str], list[str]]:
        """The lines before and behind a statement in which the name stands for a function's value."""

    def may_write(self, reference: Reference, callee: Routine | None) -> bool:
        """Can a function that gets the array change it?"""

    def is_private(self, node: Loop | Construct | Statement, reference: Reference) -> bool:
        """Is the variable private because of where it is declared?"""

    def frame(self) -> None:
        """Declarations, the start of the program, and arrays that live as long as the routine."""
