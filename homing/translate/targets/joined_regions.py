"""Parallel loops that follow each other, and serial loops around them, as one parallel region (--to spmd,
--to mpi).

Where a program says PARALLEL DO, all threads part and meet again, twice a loop; in parts they need to meet
only where something is exchanged. Chapman, Patil and Prabhakar's SPMD programs are one region for the same
reason. The text is changed before it is planned, into what the user could have written: the region's
directive around, DO instead of PARALLEL DO inside.

Joined are counted loops of nothing but parallel loops, and parallel loops side by side, where it makes no
difference: nothing but parallel loops stands there, no clause asks for more than private copies, and what
the serial loops' bounds are made of, and their counters, are the routine's own and not changed inside.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from homing.translate.directives import model as d
from homing.translate.source import SourceFile, wrap
from homing.translate.tree import (
    Access,
    Branch,
    Clause,
    Construct,
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

JOINED = "parallel loops from here on are one region, in which parts wait for each other where they exchange"
#: Clauses of a parallel loop that mean the same on the loop alone.
_KEPT = frozenset({"schedule", "private", "collapse", "affinity of sgi"})
#: Clauses that say what holds in the joined region, too, whose directive has none.
_DROPPED = frozenset({"shared", "default"})
_OWNERS = (d.OnHome, d.DataAffinity, d.Nest, d.Numa)
_SIMPLE = frozenset({Kind.ASSIGNMENT, Kind.CALL, Kind.OTHER})
#: Behind a node on its last line, and before it on its first, nothing may stand but this.
_NOTHING_BEHIND = re.compile(r"[ \t]*(!.*|//.*|/\*.*\*/[ \t]*)?\r?\n?")


def joined(unit: Unit, distributed: Container[str]) -> tuple[SourceFile, list[tuple[str, int]]] | None:
    """The source with its parallel loops joined, and where regions begin: routines, and offsets in the unit's
    text; None where there is nothing to join. distributed: names of arrays."""
    runs: list[tuple[Routine, list[Node]]] = []
    for routine in unit.routines:
        if routine.module:
            continue
        finder = _Finder(unit, routine, distributed)
        runs += [(routine, run) for run in finder.runs(routine.body)]
    if not runs:
        return None
    changes: list[tuple[int, int, str]] = []
    for routine, run in runs:
        changes += _changes(unit, routine, run)
    source, at, out = unit.source, 0, []
    for begin, end, text in sorted(changes):
        out += [source.text[at:begin], text]
        at = end
    text = "".join([*out, source.text[at:]])
    made = SourceFile(source.path, text, source.form, source.fixed_columns, marked=True, cxx=source.cxx)
    return made, [(routine.name, run[0].begin) for routine, run in runs]


class _Finder:
    """What can be joined in one routine."""

    def __init__(self, unit: Unit, routine: Routine, distributed: Container[str]) -> None:
        self.unit, self.routine, self.distributed = unit, routine, distributed
        self.source = unit.source
        inner = [one for one in unit.routines if one.parent is routine]
        #: What procedures inside this one may change behind its back.
        self.inner = {name for one in inner for s in statements(one.body) for name in (*s.reads, *s.writes)}

    def runs(self, nodes: Sequence[Node]) -> Iterator[list[Node]]:
        """Runs of nodes of a serial body, and of the bodies in it, that become a region each."""
        run: list[Node] = []
        for node in nodes:
            if self._fits(node) and self._apart(node):
                run.append(node)
                continue
            yield from self._worth(run)
            run = []
            if isinstance(node, Loop):
                yield from self.runs(node.body)
            elif isinstance(node, Branch):
                for _, body in node.arms:
                    yield from self.runs(body)
        yield from self._worth(run)

    def _worth(self, run: list[Node]) -> Iterator[list[Node]]:
        if len(run) > 1 or (run and isinstance(run[0], Loop)):
            yield run

    def _fits(self, node: Node) -> bool:
        if isinstance(node, Construct):
            return self._parallel_loop(node)
        return (
            isinstance(node, Loop)
            and bool(node.body)
            and all(self._fits(inner) for inner in node.body)
            and self._same_for_all(node)
        )

    def _parallel_loop(self, node: Construct) -> bool:
        """A parallel loop over distributed arrays whose text can be that of a loop in a region."""
        if node.directive.name != "parallel do" or not node.body or not isinstance(node.body[0], Loop):
            return False
        if not all(self._clause(clause) for clause in node.directive.clauses):
            return False
        for inner in walk(node.body):
            if not isinstance(inner, Loop | Branch | Statement):
                return False
        every = list(statements(node.body))
        return (
            self._touches(node, every)
            and all(s.kind in _SIMPLE and s.label is None and s.unread is None for s in every)
            # A directive before the region's would be that of another construct.
            and all(
                self.source.offset(one.source.position.line, one.source.position.column) > node.begin
                for one in node.homing
            )
        )

    def _touches(self, node: Construct, every: Sequence[Statement]) -> bool:
        if not all(isinstance(one, _OWNERS) for one in node.homing):
            return False
        return bool(node.homing) or any(one.name in self.distributed for s in every for one in s.references)

    def _clause(self, clause: Clause) -> bool:
        if clause.name == "default":
            return (clause.text or "").strip().lower() == "shared"
        return clause.name in _KEPT or clause.name == "shared"

    def _same_for_all(self, loop: Loop) -> bool:
        """A loop that all threads can run by themselves, and each as often as the program says."""
        head = loop.head
        if loop.variable is None or loop.label or head.label or head.calls or head.unread:
            return False
        if any(one.subscripts is not None or one.access is not Access.READ for one in head.references):
            return False
        names = {name for name in (*head.reads, *head.writes) if name != loop.variable}
        written = written_in_all(loop.body)
        passed = {
            name
            for s in statements(loop.body)
            if s.calls or s.kind is Kind.CALL
            for name in (*s.reads, *s.writes)
        }
        listed = {
            name
            for node in walk(loop.body)
            if isinstance(node, Construct)
            for name in node.directive.listed("private")
        }
        if (names | {loop.variable}) & (written | passed | listed):
            return False
        return all(self._own(name) for name in names) and self._counts_here(loop)

    def _own(self, name: str) -> bool:
        """A scalar that nobody but this routine's own text can change."""
        declared = self.routine.declarations.get(name)
        if declared is None or declared.bounds or name in self.inner or name in self.routine.private:
            return False
        if name in self.routine.equivalence or declared.storage in ("common", "pointer", "allocatable"):
            return False
        return not declared.attributes & {"pointer", "target", "volatile", "allocatable"}

    def _counts_here(self, loop: Loop) -> bool:
        """Is the counter the loop's own, or of no use behind it?"""
        assert loop.variable is not None
        name = loop.variable
        places = self.routine.places.get(name, [])
        if any(loop.begin <= place < loop.body_begin for place in places):
            return True  # C: declared in its head
        if self.source.form is d.Form.C or places or not self._own(name):
            return False
        if "save" in self.routine.declarations[name].attributes or name in self.routine.arguments:
            return False
        inside = [
            node for node in walk(self.routine.body) if isinstance(node, Loop) and node.variable == name
        ]
        return not any(
            name in s.reads or name in s.writes
            for s in statements(self.routine.body)
            if not any(one.begin <= s.begin < one.end for one in inside)
        )

    def _apart(self, node: Node) -> bool:
        """Does it stand on lines of its own, where lines can be put around it?"""
        text = self.source.text
        before = text[self.source.line_start(node.begin) : node.begin]
        end = _end(node)
        behind = text[end : self.source.next_line(max(end - 1, 0))]
        return not before.strip() and _NOTHING_BEHIND.fullmatch(behind) is not None


def names_of(directives: Sequence[d.Directive]) -> Iterator[str]:
    """The arrays that directives distribute."""
    for one in directives:
        if isinstance(one, d.Distribute | d.Align):
            yield one.name.key


def _end(node: Node) -> int:
    if isinstance(node, Construct) and node.closing is not None:
        return node.closing.end
    return node.end


def _changes(unit: Unit, routine: Routine, run: Sequence[Node]) -> Iterator[tuple[int, int, str]]:
    """What is replaced in the text, so that the run is one region."""
    source = unit.source
    begin = source.line_start(run[0].begin)
    end = source.next_line(max(_end(run[-1]) - 1, 0))
    c = source.form is d.Form.C
    indent = "" if c or source.form is d.Form.FIXED else source.indent(run[0].begin)
    moved = _moved(run)
    names = sorted({name for clause in moved for name in _listed(clause)})
    private = f" private({', '.join(names)})" if names else ""
    lines = wrap(f"{indent}!$omp parallel{private}", source)
    opening = f"#pragma omp parallel{private}\n{{\n" if c else "".join(line + "\n" for line in lines)
    closing = "}\n" if c else f"{indent}!$omp end parallel\n"
    if end == len(source.text) and not source.text.endswith("\n"):
        closing = "\n" + closing
    yield begin, begin, opening + _marker(source, begin)
    yield end, end, closing + _marker(source, end)
    for node in walk(list(run)):
        if not isinstance(node, Construct):
            continue
        yield from _without_parallel(source, node.directive.begin, node.directive.end)
        if node.closing is not None:
            yield from _without_parallel(source, node.closing.begin, node.closing.end)
        for clause in node.directive.clauses:
            if clause.name in _DROPPED or clause in moved:
                yield clause.begin, clause.end, " "


def _listed(clause: Clause) -> set[str]:
    return {name.strip() for name in (clause.text or "").split(",")}


def _moved(run: Sequence[Node]) -> list[Clause]:
    """PRIVATE clauses whose variables no loop of the run shares: they are the region's."""
    loops = [node for node in walk(list(run)) if isinstance(node, Construct)]
    shared: set[str] = set()
    for loop in loops:
        used = {name for s in statements(loop.body) for name in (*s.reads, *s.writes)}
        shared |= (used | written_in_all(loop.body)) - loop.directive.listed("private")
    clauses = [clause for loop in loops for clause in loop.directive.clause("private")]
    return [clause for clause in clauses if not _listed(clause) & shared]


def _without_parallel(source: SourceFile, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    found = re.compile("parallel", re.IGNORECASE).search(source.text, begin, end)
    if found:
        yield found.start(), found.end(), " "


def _marker(source: SourceFile, offset: int) -> str:
    name, line = source.origin(source.line_of(offset))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'# {line} "{quoted}"\n'
