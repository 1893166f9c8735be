"""The time loop: the outermost sequential loop that repeats most of the parallel computation.

It may lie in a procedure, and inside a parallel region whose whole team runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homing.translate.directives.model import Form
from homing.translate.targets.upm.program import Program, place
from homing.translate.tree import Branch, Construct, Loop, Node, Routine, Statement, walk

#: Directives whose loop is not run by every thread.
_LOOPS = frozenset({"do", "simd", "loop", "taskloop", "distribute"})
_Around = tuple[tuple[Routine, Construct], ...]


@dataclass
class TimeLoop:
    """A loop that may be the one, how many parallel constructs it repeats, and how many that share out work,
    whether the regions around them are inside the loop or outside."""

    routine: Routine
    loop: Loop
    constructs: int
    weight: int
    around: _Around  # outermost first; a procedure's callers' are among them

    @property
    def closed(self) -> tuple[Routine, Construct] | None:
        """A construct around the loop that is not the one parallel region whose whole team runs the loop."""
        for index, (routine, construct) in enumerate(self.around):
            if index > 0 or construct.directive.name != "parallel":
                return routine, construct
        return None

    @property
    def rank(self) -> tuple[bool, int]:
        return self.closed is None, self.weight

    @property
    def where(self) -> str:
        return place(self.routine, self.loop)

    @property
    def start(self) -> tuple[Routine, Loop | Construct]:
        """What the arrays are registered before, in serial code, and whose it is."""
        return self.around[0] if self.around else (self.routine, self.loop)

    @property
    def line(self) -> str:
        """What it is, for the user."""
        inside = f", inside the parallel region of {place(*self.start)}" if self.around else ""
        kind = "worksharing" if self.around else "parallel"
        over = f" over {self.loop.variable}" if self.loop.variable else ""
        return (
            f"upm: {self.where}: time loop{over} in {self.routine.name}{inside}, {self.constructs} {kind} "
            f"construct{'s' if self.constructs != 1 else ''} in it"
        )


def time_loop(program: Program) -> TimeLoop | None:
    """The loop, found from the main program; without one, from every routine."""
    start = next((routine for routine in program.all() if routine.main), None)
    best: TimeLoop | None = None
    for routine in [start] if start is not None else list(program.all()):
        for found in _loops(program, routine, routine.body, (), frozenset({routine.name})):
            if best is None or found.rank > best.rank:
                best = found
    return best


def _loops(
    program: Program, routine: Routine, nodes: Sequence[Node], around: _Around, seen: frozenset[str]
) -> Iterator[TimeLoop]:
    """Loops that repeat parallel constructs, none of them inside another."""
    for node in nodes:
        if isinstance(node, Loop):
            regions, weight = (0, 0) if _runs_once(node) else _constructs(program, routine, node.body, seen)
            count = weight if around else regions
            if count:
                yield TimeLoop(routine, node, count, weight, around)
            else:
                yield from _loops(program, routine, node.body, around, seen)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from _loops(program, routine, body, around, seen)
        elif isinstance(node, Construct) and not _LOOPS & set(node.directive.name.split()):
            yield from _loops(program, routine, node.body, (*around, (routine, node)), seen)
        for callee in program.callees([node]) if isinstance(node, Statement) else ():
            if callee.name not in seen:
                yield from _loops(program, callee, callee.body, around, seen | {callee.name})


def _runs_once(loop: Loop) -> bool:
    """`do it = 1, 1`: a loop for the sake of its shape (NAS CG touches all its pages so) repeats nothing."""
    if loop.variable is None or loop.first is None or loop.last is None:
        return False
    return loop.first.text == loop.last.text


def _constructs(
    program: Program, routine: Routine, nodes: Sequence[Node], seen: frozenset[str]
) -> tuple[int, int]:
    """Parallel constructs in the nodes and in what they call; and these with all that share out work."""
    found = [node for _, node in program.reached(routine, nodes, seen) if isinstance(node, Construct)]
    return sum(one.parallel for one in found), sum(one.parallel or one.worksharing for one in found)


def refused(program: Program, found: TimeLoop, phases: bool) -> str | None:
    """Why no call may stand, or would have an effect, at the end of the loop's body."""
    loop = found.loop
    if found.routine.source.form is not Form.C and any(
        isinstance(node, Loop) and node.end_begin == loop.end_begin for node in walk(loop.body)
    ):
        return "the time loop ends at the same statement as a loop inside it"
    if not found.around:
        return None
    if found.closed is not None:
        name = found.closed[1].directive.name
        return f"the time loop lies inside the {name} construct of {place(*found.closed)}, " + (
            "which lies inside another" if name == "parallel" else "which a team does not run together"
        )
    if phases:
        return "the time loop lies inside a parallel region, but phases are recorded between regions only"
    if not _waits(program, loop.body):
        return (
            "the time loop lies inside a parallel region, and no iteration comes to a barrier, where pages "
            "could move"
        )
    elsewhere = program.called_inside(found.routine) if found.routine is not found.start[0] else None
    if elsewhere is not None:
        return (
            f"{found.routine.name}, where the time loop is, is also called inside the "
            f"{elsewhere[1].directive.name} construct of {place(*elsewhere)}"
        )
    return None


def _waits(program: Program, nodes: Sequence[Node], seen: frozenset[str] = frozenset()) -> bool:
    """Is there a barrier of the team that runs the nodes?"""
    for node in nodes:
        if isinstance(node, Construct) and node.parallel:
            continue  # another team's
        if isinstance(node, Construct) and _ends_in_barrier(node):
            return True
        bodies = [body for _, body in node.arms] if isinstance(node, Branch) else []
        if isinstance(node, Loop | Construct):
            bodies = [node.body]
        if any(_waits(program, body, seen) for body in bodies):
            return True
        for callee in program.callees([node]) if isinstance(node, Statement) else ():
            if callee.name not in seen and _waits(program, callee.body, seen | {callee.name}):
                return True
    return False


def _ends_in_barrier(construct: Construct) -> bool:
    """In one that the engine hears of: sections and COPYPRIVATE end in other calls of gcc's runtime."""
    clauses = [*construct.directive.clauses, *(construct.closing.clauses if construct.closing else [])]
    if {clause.name for clause in clauses} & {"nowait", "copyprivate"}:
        return False
    return construct.directive.name.partition(" ")[0] in ("barrier", "do", "single", "workshare")
