"""Translation into parts of each thread's own (--to spmd, --to mpi): what is done where, in either language.

Chapman, Patil and Prabhakar 2001, section 5. Regions stay where they are; in them every distributed array
means the thread's part. Loops run over the part's own iterations; what they read of other parts is fetched
before them, what they write into others' is pushed behind them, what all read is broadcast. Serial code that
touches a distributed array gets the whole of it, gathered for the time being.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from homing.translate import directives as d
from homing.translate.affine import affine, names_in
from homing.translate.arrays import Array, Distributions
from homing.translate.boxes import Box, Follow, Side, Site, merged, side_of
from homing.translate.openmp import reductions_of
from homing.translate.positions import Problem
from homing.translate.reference_text import reference_subscripts
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Executable,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    Subscript,
    references,
    statements,
    walk,
)
from homing.translate.writer import Local, Region, Writer

#: How far apart elements that one thread works on in a SINGLE construct may lie and still be a shadow.
_NEAR = 4
_REGION_DIRECTIVES = frozenset({"barrier", "single", "master", "masked", "critical", "flush", "atomic"})


@dataclass
class Fresh:
    """The boxes of each array that every part has since the last write."""

    boxes: dict[str, set[tuple[object, ...]]] = field(default_factory=dict)
    names: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)

    def has(self, box: Box) -> bool:
        return box.key() in self.boxes.get(box.array.name, set())

    def add(self, box: Box) -> None:
        self.boxes.setdefault(box.array.name, set()).add(box.key())
        self.names[box.key()] = box.names()

    def wrote(self, names: Iterable[str]) -> None:
        """These variables have new values."""
        changed = frozenset(names)
        for name in changed:
            self.boxes.pop(name, None)
        for kept in self.boxes.values():
            kept.difference_update({key for key in kept if self.names[key] & changed})

    def copy(self) -> Fresh:
        return Fresh({name: set(keys) for name, keys in self.boxes.items()}, dict(self.names))

    def meet(self, others: Sequence[Fresh]) -> None:
        """Only what all of them have."""
        for name in list(self.boxes):
            for other in others:
                self.boxes[name] &= other.boxes.get(name, set())


@dataclass
class Explained:
    """A line of --explain: where, and what happens there."""

    file: str
    line: int
    routine: str
    text: str


class Parts:
    """One routine's translation. Problems are collected; what was edited is of no use when there are any."""

    def __init__(
        self,
        routine: Routine,
        distributions: Distributions,
        writer: Writer,
        mpi: bool,
        notes: list[Explained],
    ) -> None:
        self.routine = routine
        self.source = routine.source
        self.distributions = distributions
        self.arrays = dict(distributions.of(routine))  # REDISTRIBUTE changes it on the way
        self.writer = writer
        self.mpi = mpi
        self.notes = notes
        self.problems: list[Problem] = []
        self.fresh = Fresh()
        self.serial = 0
        self.loop_number = 0

    # --- small helpers ----------------------------------------------------------------------------------

    def wrong(self, begin: int, end: int, reason: str) -> None:
        problem = self.source.problem(begin, end, reason)
        if problem not in self.problems:
            self.problems.append(problem)

    def explain(self, offset: int, text: str) -> None:
        self.notes.append(Explained(self.source.path, self.source.line_of(offset), self.routine.name, text))

    def touched(self, nodes: Sequence[Node]) -> list[Reference]:
        return [r for r in references(list(nodes)) if r.name in self.arrays]

    def line_before(self, offset: int) -> int:
        return self.source.line_start(offset)

    def before(self, offset: int, lines: Sequence[str], indent_of: int | None = None) -> None:
        """Insert lines before the line of an offset, indented like it."""
        indent = self.source.indent(offset if indent_of is None else indent_of)
        self.writer.edits.insert_lines(
            self.source.line_start(offset), [self.writer.indented(indent, x) for x in lines]
        )

    def after(self, offset: int, lines: Sequence[str], indent_of: int) -> None:
        """Insert lines behind the line of an offset."""
        indent = self.source.indent(indent_of)
        at = self.source.next_line(max(offset - 1, 0))
        self.writer.edits.insert_lines(at, [self.writer.indented(indent, x) for x in lines])

    # --- the routine ------------------------------------------------------------------------------------

    def translate(self) -> None:
        """Plan and edit the routine's executable part."""
        if not self.arrays:
            return
        self._jumps()
        if self.distributions.inside(self.routine):
            region = Region(self.routine, None)
            region.private = {
                name
                for name, declaration in self.routine.declarations.items()
                if (
                    name not in self.routine.arguments
                    or (self.source.form is d.Form.C and not declaration.bounds)
                )
                and "save" not in declaration.attributes
            }
            region.arrays = [a for a in self.arrays.values() if a.routine is self.routine]
            for name, array in self.arrays.items():
                if array.routine is not self.routine:
                    self.wrong(
                        self.routine.begin,
                        self.routine.head_end,
                        f"'{name}' is no argument of this procedure, which is called inside a "
                        "parallel region: pass it",
                    )
            self.in_region(self.routine.body, region)
            self.writer.begin_procedure(region)
            return
        self.in_serial(self.routine.body)

    def _jumps(self) -> None:
        """GOTO out of (or into) a region or a loop that is shared out."""
        labels: dict[str, int] = {}
        for statement in statements(self.routine.body):
            if statement.label:
                labels[statement.label] = statement.begin
        for node in walk(self.routine.body):
            if not isinstance(node, Construct) or not (node.parallel or node.worksharing):
                continue
            if not self.touched([node]):
                continue
            for statement in statements(node.body):
                if statement.kind is not Kind.JUMP:
                    continue
                inner = [
                    loop
                    for loop in walk(node.body)
                    if isinstance(loop, Loop) and loop.begin <= statement.begin < loop.end
                ]
                if statement.jump == "return":
                    self.wrong(statement.begin, statement.end, "jumps out of a parallel region")
                elif statement.jump == "goto":
                    targets = re.findall(r"\b\d+\b|(?<=goto )\s*\w+", statement.text)
                    outside = [
                        t
                        for t in targets
                        if t not in labels or not node.begin <= labels[t] < max(node.end, node.begin)
                    ]
                    if outside or not targets:
                        self.wrong(statement.begin, statement.end, "jumps out of a parallel region")
                elif statement.jump in ("exit", "break") and len(inner) <= 1 and node.worksharing:
                    self.wrong(statement.begin, statement.end, "leaves a loop that is shared out")

    # --- serial code ------------------------------------------------------------------------------------

    def _parallel_inside(self, node: Node) -> bool:
        """Does the node hold something that must be translated itself, so that it cannot be wrapped whole?"""
        for inner in walk([node]):
            if isinstance(inner, Construct):
                return True
            if isinstance(inner, Executable):
                return True
            if isinstance(inner, Statement) and (self._lifetime(inner) or self._passes(inner)):
                return True
        return False

    def _lifetime(self, statement: Statement) -> bool:
        return statement.kind in (Kind.ALLOCATE, Kind.DEALLOCATE) and any(
            r.name in self.arrays and r.access is Access.WRITE for r in statement.references
        )

    def _passes(self, statement: Statement) -> list[Reference]:
        """The distributed arrays that a statement passes to procedures that know about parts."""
        found = []
        for reference in statement.references:
            callee = self.distributions.routines.get(reference.argument_of or "")
            if callee is None or reference.name not in self.arrays:
                continue
            if reference.argument_index >= len(callee.arguments):
                continue
            dummy = callee.arguments[reference.argument_index]
            known = self.distributions.of(callee).get(dummy)
            if known is not None and known.routine is callee:
                found.append(reference)
        return found

    def in_serial(self, nodes: Sequence[Node]) -> None:
        """Statements outside parallel regions: runs of those that touch distributed arrays are wrapped."""
        run: list[Node] = []
        last_touch = -1

        def flush() -> None:
            nonlocal run, last_touch
            if last_touch >= 0:
                self._wrap(run[: last_touch + 1])
            run, last_touch = [], -1

        for node in nodes:
            if self._parallel_inside(node):
                flush()
                self._serial_node(node)
                continue
            touches = self.touched([node])
            leaves = isinstance(node, Statement) and node.kind is Kind.JUMP
            if leaves and not touches:
                flush()
                continue
            if touches or run:
                run.append(node)
                if touches:
                    last_touch = len(run) - 1
        flush()

    def _serial_node(self, node: Node) -> None:
        if isinstance(node, Construct):
            if node.parallel:
                self.region(node)
            elif self.touched([node]):
                if node.worksharing or node.directive.name in _REGION_DIRECTIVES:
                    # An orphaned construct in a routine that is called serially, with a team of one.
                    self.wrong(
                        node.directive.begin,
                        node.directive.end,
                        "outside of a parallel region, as far as the files given show: pass the "
                        "arrays on as arguments",
                    )
                else:
                    self.wrong(
                        node.directive.begin, node.directive.end, "not supported with distributed arrays"
                    )
            return
        if isinstance(node, Loop):
            self._no_touch(node.head, "a loop's bounds")
            self.in_serial(node.body)
        elif isinstance(node, Branch):
            for head, body in node.arms:
                if any(r.name in self.arrays for r in head.references):
                    self.wrong(
                        head.begin,
                        head.end,
                        "a distributed array decides about parallel code: read it into a variable before",
                    )
                self.in_serial(body)
        elif isinstance(node, Executable):
            if isinstance(node.directive, d.Redistribute):
                self.redistribute(node)
        elif self._lifetime(node):
            self.writer.lifetime(
                node, [self.arrays[r.name] for r in node.references if r.name in self.arrays]
            )
        else:
            passed = self._passes(node)
            others = [r for r in node.references if r.name in self.arrays and r not in passed]
            if others:
                self.wrong(node.begin, node.end, "parts of the array and elements of it in one statement")
            for reference in passed:
                self.writer.pass_parts(reference, self.arrays[reference.name])
            self.fresh = Fresh()

    def redistribute(self, node: Executable) -> None:
        directive = node.directive
        assert isinstance(directive, d.Redistribute)
        array = self.arrays.get(directive.name.key)
        if array is None:
            self.wrong(node.begin, node.end, f"'{directive.name}' is not distributed")
            return
        if array.routine is not self.routine or array.dummy:
            self.wrong(node.begin, node.end, f"redistribute '{directive.name}' where it is declared")
            return
        if node not in self.routine.body:
            reason = (
                "inside a loop or branch the code behind would need both distributions: use two "
                "arrays and copy"
            )
            self.wrong(node.begin, node.end, reason)
            return
        made = self.distributions.redistributed(array, directive)
        if made is None:
            return
        self.writer.redistribute(node, array, made)
        self.arrays[array.name] = made
        self.fresh = Fresh()
        self.explain(node.begin, f"{array.name} is collected and dealt out anew")

    def _no_touch(self, statement: Statement, what: str) -> None:
        for reference in statement.references:
            if reference.name in self.arrays:
                self.wrong(
                    statement.begin,
                    statement.end,
                    f"a distributed array in {what}: read it into a variable before",
                )

    def _wrap(self, nodes: Sequence[Node]) -> None:
        """Gather before the nodes, release behind them."""
        found = self.touched(nodes)
        arrays: list[Array] = []
        changed: list[Array] = []
        for reference in found:
            array = self.arrays[reference.name]
            if reference.access is Access.OTHER:
                self.wrong(reference.begin, reference.end, "may give the distributed array another name")
            if array not in arrays:
                arrays.append(array)
            if reference.access is not Access.READ and array not in changed:
                changed.append(array)
            callee = self.distributions.routines.get(reference.argument_of or "")
            if reference.access is Access.READ and reference.argument_of and array not in changed:
                # A function that is not known may write what it is given.
                function = callee is not None or reference.argument_of not in self.arrays
                if function and self.writer.may_write(reference, callee):
                    changed.append(array)
        for statement in statements(list(nodes)):
            if statement.kind is Kind.JUMP and statement.jump in ("return", "goto"):
                self.wrong(
                    statement.begin,
                    statement.end,
                    "leaves code that works on a gathered array: move the jump behind it",
                )
        first, last = nodes[0], nodes[-1]
        self.serial += 1
        self.before(first.begin, self.writer.gather(arrays))
        self.after(last.end, self.writer.release(arrays, changed), first.begin)
        self.fresh.wrote(array.name for array in changed)
        names = ", ".join(array.name for array in arrays)
        self.explain(
            first.begin, f"serial code: {names} gathered" + (", scattered behind it" if changed else "")
        )

    # --- regions ----------------------------------------------------------------------------------------

    def region(self, construct: Construct) -> None:
        """A parallel region."""
        found = self.touched(construct.body)
        if not found:
            return
        directive = construct.directive
        name = directive.name
        if name not in ("parallel", "parallel do"):
            self.wrong(
                directive.begin, directive.end, f"{name.upper()} with distributed arrays is not supported"
            )
            return
        region = Region(self.routine, construct)
        for reference in found:
            if self.arrays[reference.name] not in region.arrays:
                region.arrays.append(self.arrays[reference.name])
        for kind in (
            "private",
            "firstprivate",
            "lastprivate",
            "reduction",
            "copyin",
            "copyprivate",
            "linear",
        ):
            for variable in sorted(directive.listed(kind) & set(self.arrays)):
                self.wrong(directive.begin, directive.end, f"the distributed '{variable}' in {kind.upper()}")
        for clause in directive.clause("num_threads"):
            self.wrong(
                clause.begin,
                clause.end,
                "arrays are distributed over all threads: set OMP_NUM_THREADS instead",
            )
        for clause in directive.clause("if"):
            self.explain(clause.begin, "IF is dropped: every thread is needed for its part")
        for clause in directive.clause("ordered", "copyin"):
            self.wrong(
                clause.begin, clause.end, f"{clause.name.upper()} with distributed arrays is not supported"
            )
        region.private = directive.listed("private", "firstprivate", "reduction")
        region.private |= _loop_variables(construct.body, self.routine)
        region.private |= {
            name
            for name, places in self.routine.places.items()
            if any(construct.begin <= place < construct.end for place in places)
        }
        region.reductions = _reductions(construct)
        if name == "parallel do":
            loop = construct.body[0]
            if not isinstance(loop, Loop):
                self.wrong(directive.begin, directive.end, "no loop follows")
                return
            for clause in directive.clause("lastprivate", "linear"):
                self.wrong(
                    clause.begin, clause.end, f"{clause.name.upper()} on a loop over distributed arrays"
                )
            if loop.variable:
                region.private.add(loop.variable)
            lines, behind = self.share_out(construct, loop, region)
            self.writer.begin_region(region, construct, lines, behind)
        else:
            self.in_region(construct.body, region)
            self.writer.begin_region(region, construct, [], [])
        if self.mpi:
            self._mpi_region(region, construct)

    def _mpi_region(self, region: Region, construct: Construct) -> None:
        if construct.directive.clause("reduction"):
            start, stop = self.writer.reductions(region.reductions)
            self.before(construct.begin, start)
            self.after(construct.end, stop, construct.begin)

    def in_region(self, nodes: Sequence[Node], region: Region) -> None:
        """Statements of a parallel region, which every thread runs."""
        pending: list[d.Directive] = []
        for node in nodes:
            if isinstance(node, Executable):
                if isinstance(node.directive, d.Redistribute):
                    self.wrong(node.begin, node.end, "REDISTRIBUTE inside a parallel region")
                else:
                    pending.append(node.directive)
                continue
            touches = self.touched([node])
            if isinstance(node, Construct):
                self._region_construct(node, region, bool(touches))
                pending = []
                continue
            if pending and isinstance(node, Loop):
                first = pending[0].source
                self.problems.append(
                    Problem(first.position, first.text, "the loop that follows is not shared out by OpenMP")
                )
                pending = []
            if not touches:
                self.fresh.wrote(_written(node))
                if isinstance(node, Loop | Branch) and any(isinstance(n, Construct) for n in walk([node])):
                    self._sequential(node, region)
                continue
            if isinstance(node, Loop | Branch):
                self._sequential(node, region)
            else:
                self._region_statement(node, region)
        for directive in pending:
            self.problems.append(Problem(directive.source.position, directive.source.text, "no loop follows"))

    def _sequential(self, node: Loop | Branch, region: Region) -> None:
        """A loop or branch that all threads run."""
        if isinstance(node, Loop):
            if any(r.name in self.arrays for r in node.head.references):
                self._region_reads(node.head, region)
            self.fresh.wrote(_written(node))
            self.in_region(node.body, region)
            self.fresh.wrote(_written(node))
            return
        after: list[Fresh] = []
        start = self.fresh.copy()
        for head, body in node.arms:
            if any(r.name in self.arrays for r in head.references):
                if head is not node.arms[0][0]:
                    self.wrong(
                        head.begin,
                        head.end,
                        "a distributed array in a later condition: read it into a variable",
                    )
                self._region_reads(head, region)
            self.fresh = start.copy()
            self.in_region(body, region)
            after.append(self.fresh)
        self.fresh = start
        self.fresh.wrote(_written(node))
        self.fresh.meet(after)

    def _region_construct(self, node: Construct, region: Region, touches: bool) -> None:
        directive = node.directive
        if node.worksharing:
            loop = node.body[0]
            if not touches:
                self.fresh.wrote(_written(node))
                for home in node.homing:
                    self._unused(home)
                return
            if not isinstance(loop, Loop):
                self.wrong(directive.begin, directive.end, "no loop follows")
                return
            for clause in directive.clause("lastprivate", "ordered", "linear"):
                self.wrong(
                    clause.begin, clause.end, f"{clause.name.upper()} on a loop over distributed arrays"
                )
            if loop.variable:
                region.private.add(loop.variable)
            region.private |= directive.listed("private", "firstprivate", "reduction")
            region.reductions = [*region.reductions, *_reductions(node)]
            lines, behind = self.share_out(node, loop, region)
            waits = not directive.clause("nowait") and not (node.closing and node.closing.clause("nowait"))
            shared = self._shared_writes(loop, region)
            self.writer.worksharing(
                region, node, loop, lines, behind, barrier=waits and bool(shared), mpi=self.mpi
            )
            return
        if directive.name in ("single", "master", "masked"):
            self.fresh.wrote(_written(node)) if not touches else self._single(node, region)
            return
        if not touches:
            self.fresh.wrote(_written(node))
            return
        if directive.name == "parallel" or node.parallel:
            self.wrong(
                directive.begin, directive.end, "a parallel region inside another, with distributed arrays"
            )
        elif directive.name in ("critical", "atomic"):
            self.wrong(
                directive.begin,
                directive.end,
                f"distributed arrays in {directive.name.upper()}: every thread reaches its own part only",
            )
        else:
            self.wrong(
                directive.begin,
                directive.end,
                f"{directive.name.upper()} with distributed arrays is not supported",
            )

    def _unused(self, directive: d.Directive) -> None:
        reason = "the loop touches no distributed array that this routine knows"
        self.problems.append(Problem(directive.source.position, directive.source.text, reason))

    def _shared_writes(self, loop: Loop, region: Region) -> list[Reference]:
        """Writes of the loop to what other threads see: neither private nor distributed."""
        found = []
        for statement in statements([loop]):
            for reference in statement.references:
                writes = reference.access in (Access.WRITE, Access.UPDATE)
                if not writes or reference.name in self.arrays or reference.name in region.private:
                    continue
                if self.writer.is_private(loop, reference):
                    continue
                found.append(reference)
        if found and self.mpi:
            for reference in found:
                self.wrong(
                    reference.begin,
                    reference.end,
                    f"'{reference.name}' is shared and written in a loop whose iterations other ranks "
                    "run, too: "
                    "distribute it, or make it PRIVATE or a REDUCTION",
                )
        return found

    # --- statements that all threads run ----------------------------------------------------------------

    def _region_statement(self, statement: Statement, region: Region) -> None:
        passed = self._passes(statement)
        for reference in passed:
            self.writer.pass_part(reference, self.arrays[reference.name])
        if passed:
            self.fresh = Fresh()
        others = [r for r in statement.references if r.name in self.arrays and r not in passed]
        for reference in others:
            if reference.access is not Access.READ or reference.subscripts is None:
                reason = "every thread of the region would do this: put it into a SINGLE construct"
                self.wrong(reference.begin, reference.end, reason)
                return
        if others:
            self._region_reads(statement, region)
        self.fresh.wrote(statement.writes)

    def _region_reads(self, statement: Statement, region: Region) -> None:
        """Elements that every thread reads: broadcast before the statement."""
        sites = [Site(r, [], False) for r in statement.references if r.name in self.arrays]
        lines = self._broadcast([s for s in sites if s.reference.subscripts is not None], frozenset(), region)
        for site in sites:
            if site.reference.subscripts is None:
                self.wrong(
                    site.reference.begin,
                    site.reference.end,
                    "a whole distributed array, read by every thread",
                )
        self.before(statement.begin, lines)

    def _single(self, node: Construct, region: Region) -> None:
        """SINGLE or MASTER: by the owner where all elements are one owner's; otherwise on the gathered
        array."""
        found = self.touched(node.body)
        owner = self._one_owner(node, found)
        if owner is None:
            arrays: list[Array] = []
            for reference in found:
                if self.arrays[reference.name] not in arrays:
                    arrays.append(self.arrays[reference.name])
                if self._passes_reference(reference):
                    self.wrong(
                        reference.begin, reference.end, "parts passed to a procedure by one thread only"
                    )
            changed = [
                array
                for array in arrays
                if any(r.name == array.name and r.access is not Access.READ for r in found)
            ]
            self.writer.single_whole(region, node, arrays, changed)
            self.fresh.wrote(_written(node))
            names = ", ".join(array.name for array in arrays)
            self.explain(node.begin, f"{node.directive.name}: {names} gathered for one thread")
            return
        array, tests = owner
        shared = [name for name in _written(node) if name not in self.arrays and name not in region.private]
        if shared and self.mpi:
            self.wrong(
                node.directive.begin,
                node.directive.end,
                f"'{sorted(shared)[0]}' would be known to the owner's rank only",
            )
        local: dict[str, str] = {}
        fetches: list[Box] = []
        pushes: list[Box] = []
        changing = _written(node) - frozenset(self.arrays)
        follows = [Follow("", array, index, 0) for index, _ in tests]
        for site in _sites(node.body, [], False, self.arrays):
            reference = site.reference
            own = self.arrays[reference.name]
            followed: dict[int, tuple[Follow, int]] = {}
            distances = []
            for (index, home), follow in zip(tests, follows, strict=True):
                at = own.distributed_dimensions()[len(followed)]
                subscript = reference_subscripts(reference)[at]
                step = affine(subscript.text).minus(affine(home)) or 0
                distance = step + own.dimensions[at].offset - array.dimensions[index].offset
                distances.append(distance)
                followed[at] = (follow, step)
                if own.dimensions[at].cyclic:
                    if distance:
                        self.wrong(
                            subscript.begin,
                            subscript.end,
                            "lies on another part than the element that is written",
                        )
                    name = self._local_name(own, at, subscript.text)
                    local[region.add(Local(name))] = self.writer.local_index(own, at, subscript.text)
                    self.writer.edits.replace(subscript.begin, subscript.end, name)
                else:
                    own.widen(at, max(0, -distance), max(0, distance))
            if not any(distances):
                continue
            sides = []
            exact = not site.conditional
            homes = dict(tests)
            for at, subscript in enumerate(reference_subscripts(reference)):
                if at in followed:
                    follow, step = followed[at]
                    text = homes[follow.dimension]
                    sides.append(Side(text, text, follow, step, step))
                else:
                    side, whole = side_of(subscript, site.loops, changing, self.writer.whole(own, at))
                    exact &= whole
                    sides.append(side)
            box = Box(own, sides, exact, [reference])
            if reference.access is Access.READ:
                fetches.append(box)
            else:
                pushes.append(box)
                if not exact:
                    fetches.append(box)
        before = self._fetch(fetches)
        self.fresh.wrote(_written(node))
        behind = self._push(pushes)
        lines = [self.writer.assign(name, value) for name, value in local.items()]
        test = self.writer.owner_test(array, tests)
        self.writer.owner_executes(node, test, before, lines, behind, barrier=bool(shared))
        subscripts = ", ".join(text for _, text in tests)
        dimensions = ", ".join(str(index + 1) for index, _ in tests)
        self.explain(
            node.begin,
            f"{node.directive.name}: run by the owner of {array.name}, index {subscripts} of "
            f"dimension {dimensions}",
        )

    def _passes_reference(self, reference: Reference) -> bool:
        return reference.argument_of in self.distributions.routines

    def _one_owner(
        self, node: Construct, found: Sequence[Reference]
    ) -> tuple[Array, list[tuple[int, str]]] | None:
        changing = _written(node) | _loop_variables(node.body, self.routine)
        chosen: tuple[Array, list[tuple[int, str]]] | None = None
        writes_first = sorted(found, key=lambda r: r.access is Access.READ)
        for reference in writes_first:
            array = self.arrays[reference.name]
            if (
                reference.subscripts is None
                or len(reference.subscripts) != array.rank
                or self._passes_reference(reference)
            ):
                return None
            tests = []
            for index in array.distributed_dimensions():
                subscript = reference.subscripts[index]
                if subscript.section or names_in(subscript.text) & (changing - {array.name}):
                    return None
                tests.append((index, subscript.text))
            if chosen is None:
                chosen = (array, tests)
                continue
            other, other_tests = chosen
            if len(tests) != len(other_tests):
                return None
            for (index, text), (other_index, other_text) in zip(tests, other_tests, strict=True):
                mine, its = array.dimensions[index], other.dimensions[other_index]
                step = affine(text).minus(affine(other_text))
                if step is None or abs(step) > _NEAR or not mine.together(its):
                    return None
                if mine.cyclic and step + mine.offset - its.offset != 0:
                    return None
        return chosen

    def _local_name(self, array: Array, dimension: int, text: str) -> str:
        word = re.sub(r"\W+", "_", text).strip("_")[:24]
        return f"hm_at_{array.name}_{dimension + 1}_{word}"[:60]

    # --- loops that are shared out ----------------------------------------------------------------------

    def share_out(self, construct: Construct, loop: Loop, region: Region) -> tuple[list[str], list[str]]:
        """Give the loop the part's own iterations. Returns the lines before and behind it."""
        self.loop_number += 1
        sites = list(_sites([loop], [], False, self.arrays))
        problems = len(self.problems)
        for site in sites:
            self._usable(site)
        for inner in walk([loop]):
            nested = isinstance(inner, Construct) and inner.directive.name != "simd"
            if isinstance(inner, Construct) and nested and self.touched([inner]):
                reason = "a construct inside a loop that is shared out"
                self.wrong(inner.directive.begin, inner.directive.end, reason)
        if len(self.problems) > problems:
            return [], []
        home = self._home(construct, loop, sites)
        if home is None:
            return [], []
        array, follows = home
        nest = [n for n in walk([loop]) if isinstance(n, Loop)]
        varying = _written(loop) | frozenset(n.variable for n in nest if n.variable)
        varying -= frozenset(self.arrays)
        if loop.variable not in follows and not self._inner_only(loop, follows, region):
            return [], []
        fetches: list[Box] = []
        pushes: list[Box] = []
        broadcasts: list[Site] = []
        locals_: dict[tuple[str, Array, int, int], str] = {}
        for site in sites:
            self._classify(site, follows, varying, nest, fetches, pushes, broadcasts, locals_, region)
        if len(self.problems) > problems:
            return [], []
        before: list[str] = []
        wrote = _written(loop)
        before += self._fetch(fetches)
        before += self._broadcast(broadcasts, varying, region)
        for inner in nest:
            if inner.variable in follows:
                positions = {
                    name: (name, own, dimension, offset)
                    for (variable, own, dimension, offset), name in locals_.items()
                    if variable == inner.variable
                }
                wanted = list(positions.values())
                self.writer.own_loop(
                    region, inner, follows[inner.variable], wanted, before if inner is loop else None
                )
        self.fresh.wrote(wrote)
        behind = self._push(pushes)
        self._explain_loop(loop, array, follows)
        return before, behind

    def _inner_only(self, loop: Loop, follows: dict[str, Follow], region: Region) -> bool:
        """The distributed dimensions go with loops inside the one that OpenMP shares out: then every part
        runs all
        iterations of that one, and its own ones of the others. Is that the same?"""
        own = [n for n in walk([loop]) if isinstance(n, Loop) and n.variable in follows]
        for statement in statements([loop]):
            if any(inner.begin <= statement.begin < inner.end for inner in own):
                continue
            for reference in statement.references:
                writes = reference.access in (Access.WRITE, Access.UPDATE)
                reduced = any(reference.name == name for _, name in region.reductions)
                hidden = reference.name in region.private or self.writer.is_private(loop, reference)
                if writes and (reduced or not hidden):
                    self.wrong(
                        reference.begin,
                        reference.end,
                        f"would be done once by each part: iterations of '{loop.variable}' have no owner",
                    )
                    return False
        return True

    def _explain_loop(self, loop: Loop, array: Array, follows: dict[str, Follow]) -> None:
        homes = ", ".join(
            f"{v} on the owner of {f.home.name} dimension {f.dimension + 1}"
            + (f" at {v}{f.offset:+d}" if f.offset else "")
            for v, f in follows.items()
        )
        self.explain(loop.begin, f"loop: {homes}")

    def _usable(self, site: Site) -> None:
        reference = site.reference
        if reference.subscripts is None:
            if reference.argument_of in ("size", "lbound", "ubound", "shape"):
                self.wrong(
                    reference.begin,
                    reference.end,
                    "asks for the shape of a distributed array inside a region",
                )
            else:
                self.wrong(
                    reference.begin,
                    reference.end,
                    "a whole distributed array inside a loop that is shared out",
                )
        elif len(reference.subscripts) != self.arrays[reference.name].rank:
            rank = self.arrays[reference.name].rank
            self.wrong(
                reference.begin,
                reference.end,
                f"{len(reference.subscripts)} subscripts for {rank} dimensions",
            )
        elif reference.access is Access.OTHER:
            self.wrong(reference.begin, reference.end, "may give the distributed array another name")
        elif reference.access is Access.ARGUMENT or reference.argument_of in self.distributions.routines:
            piece = any(s.section for s in reference.subscripts) or reference.access is Access.ARGUMENT
            if piece:
                reason = "a piece of a distributed array is passed on (sequence association)"
                self.wrong(reference.begin, reference.end, reason)

    def _home(
        self, construct: Construct, loop: Loop, sites: Sequence[Site]
    ) -> tuple[Array, dict[str, Follow]] | None:
        """The array whose owners run the iterations, and which loop goes with which of its dimensions."""
        given: d.Reference | None = None
        where: d.Directive | None = None
        for directive in construct.homing:
            if isinstance(directive, d.OnHome | d.DataAffinity):
                if given is not None:
                    self.problems.append(
                        Problem(
                            directive.source.position, directive.source.text, "the loop has a home already"
                        )
                    )
                given, where = directive.home, directive
            elif isinstance(directive, d.ThreadAffinity):
                self.problems.append(
                    Problem(
                        directive.source.position,
                        directive.source.text,
                        "the loop touches distributed arrays: iterations go to the owners (ON HOME), "
                        "not to threads",
                    )
                )
        nest = [n for n in walk([loop]) if isinstance(n, Loop)]
        variables = [n.variable for n in nest if n.variable]
        if given is not None and where is not None:
            array = self.arrays.get(given.name.key)
            source = where.source
            if array is None:
                self.problems.append(
                    Problem(source.position, source.text, f"'{given.name}' is not distributed")
                )
                return None
            if len(given.subscripts) != array.rank:
                self.problems.append(
                    Problem(source.position, source.text, f"'{given.name}' has {array.rank} dimensions")
                )
                return None
            texts = [subscript.text.strip() for subscript in given.subscripts]
            if source.form.fortran:
                texts = [text.lower() for text in texts]
            follows = self._follows(array, texts, variables)
            if follows is None:
                self.problems.append(
                    Problem(
                        source.position,
                        source.text,
                        "a distributed dimension's subscript is not a loop's index plus a number",
                    )
                )
                return None
            return array, follows
        # Owner computes: the written reference that needs no other part's elements, else what is read.
        candidates = [s.reference for s in sites if s.reference.access in (Access.WRITE, Access.UPDATE)]
        candidates += [s.reference for s in sites if s.reference.access is Access.READ]
        best: tuple[tuple[int, int, int], Array, dict[str, Follow]] | None = None
        for number, reference in enumerate(candidates):
            array = self.arrays[reference.name]
            texts = ["" if s.section else s.text for s in reference_subscripts(reference)]
            follows = self._follows(array, texts, variables)
            if follows is None:
                continue
            distance = sum(abs(f.offset + array.dimensions[f.dimension].offset) for f in follows.values())
            key = (
                int(reference.access is Access.READ),
                distance + 100 * (loop.variable not in follows),
                number,
            )
            if best is None or key < best[0]:
                best = (key, array, follows)
        if best is None:
            bad = self._unanalysed(sites, variables)
            if bad is not None:
                self.wrong(
                    bad.begin,
                    bad.end,
                    f"the distributed subscript '{bad.text}' is not a loop's index plus a number",
                )
            else:
                self.wrong(
                    loop.head.begin,
                    loop.head.end,
                    f"no distributed dimension goes with '{loop.variable}': say ON HOME(...)",
                )
            return None
        return best[1], best[2]

    def _unanalysed(self, sites: Sequence[Site], variables: Sequence[str]) -> Subscript | None:
        for site in sites:
            array = self.arrays[site.reference.name]
            for index in array.distributed_dimensions():
                subscript = reference_subscripts(site.reference)[index]
                value = affine(subscript.text)
                if (
                    not subscript.section
                    and value.names & set(variables)
                    and not any(value.follows(variable) is not None for variable in variables)
                ):
                    return subscript
        return None

    def _follows(
        self, array: Array, texts: Sequence[str], variables: Sequence[str]
    ) -> dict[str, Follow] | None:
        """Which loop goes with which distributed dimension; None when one goes with none."""
        follows: dict[str, Follow] = {}
        for index in array.distributed_dimensions():
            value = affine(texts[index])
            for variable in variables:
                offset = value.follows(variable)
                if offset is not None and variable not in follows:
                    follows[variable] = Follow(variable, array, index, offset)
                    break
            else:
                return None
        return follows

    def _classify(
        self,
        site: Site,
        follows: dict[str, Follow],
        varying: frozenset[str],
        nest: Sequence[Loop],
        fetches: list[Box],
        pushes: list[Box],
        broadcasts: list[Site],
        locals_: dict[tuple[str, Array, int, int], str],
        region: Region,
    ) -> None:
        reference = site.reference
        array = self.arrays[reference.name]
        followed: dict[int, tuple[Follow, int]] = {}
        fixed = 0
        distributed = array.distributed_dimensions()
        for index in distributed:
            subscript = reference_subscripts(reference)[index]
            value = affine(subscript.text)
            if not subscript.section and not value.names & varying:
                fixed += 1
                continue
            shift = None
            follow = None
            if not subscript.section:
                for variable, candidate in follows.items():
                    shift = value.follows(variable)
                    if shift is not None:
                        follow = candidate
                        break
            if follow is None or shift is None:
                self.wrong(
                    subscript.begin,
                    subscript.end,
                    f"the distributed subscript '{subscript.text}' is not the index of a shared-out "
                    "loop plus a number",
                )
                return
            home_dimension = follow.home.dimensions[follow.dimension]
            mine = array.dimensions[index]
            if not mine.together(home_dimension):
                self.wrong(
                    reference.begin,
                    reference.end,
                    f"'{array.name}' is not distributed like '{follow.home.name}': ALIGN them",
                )
                return
            if not any(loop.variable == follow.variable for loop in site.loops):
                self.wrong(
                    reference.begin, reference.end, f"stands outside the loop over '{follow.variable}'"
                )
                return
            followed[index] = (follow, shift)
            if array is not follow.home and not mine.base and not home_dimension.base:
                region.together.add(
                    (f"hm_layout_{array.name}", index, f"hm_layout_{follow.home.name}", follow.dimension)
                )
        if fixed and followed:
            self.wrong(
                reference.begin,
                reference.end,
                "one distributed subscript goes with the loop, another does not",
            )
            return
        if fixed:
            if reference.access is not Access.READ:
                self.wrong(reference.begin, reference.end, "every iteration writes the same owner's element")
                return
            broadcasts.append(site)
            return
        distances = {
            index: (shift + array.dimensions[index].offset)
            - (follow.offset + follow.home.dimensions[follow.dimension].offset)
            for index, (follow, shift) in followed.items()
        }
        for index, (follow, shift) in followed.items():
            if not array.dimensions[index].cyclic:
                continue
            subscript = reference_subscripts(reference)[index]
            if distances[index]:
                self.wrong(
                    subscript.begin,
                    subscript.end,
                    "a neighbour in a CYCLIC dimension lies on another part: distribute by BLOCK",
                )
                return
            key = (follow.variable, array, index, shift)
            same = next(
                (
                    name
                    for (variable, other, dimension, offset), name in locals_.items()
                    if variable == follow.variable
                    and offset == shift
                    and other.dimensions[dimension] == array.dimensions[index]
                    and _same_bounds(other, dimension, array, index)
                ),
                None,
            )
            name = same or self._local_name(array, index, subscript.text)
            locals_.setdefault(key, name)
            region.add(Local(name))
            self.writer.edits.replace(subscript.begin, subscript.end, name)
        if not any(distances.values()):
            return
        for index, distance in distances.items():
            low, high = max(0, -distance), max(0, distance)
            if array.given_shadow is not None:
                given = array.given_shadow[index]
                if low > given[0] or high > given[1]:
                    self.wrong(
                        reference.begin,
                        reference.end,
                        f"reaches {max(low, high)} beyond the own elements, SHADOW allows "
                        f"{given[0]}:{given[1]}",
                    )
            array.widen(index, low, high)
        box = self._box(site, array, followed, varying, nest)
        if box is None:
            return
        if reference.access is Access.READ:
            fetches.append(box)
        elif reference.access is Access.UPDATE:
            self.wrong(
                reference.begin,
                reference.end,
                "changes an element of another part: two parts may do so at once",
            )
        else:
            pushes.append(box)
            if site.conditional or not box.exact:
                # Elements of the shadow that are not written now are sent back as they came.
                fetches.append(box)

    def _box(
        self,
        site: Site,
        array: Array,
        followed: dict[int, tuple[Follow, int]],
        varying: frozenset[str],
        nest: Sequence[Loop],
    ) -> Box | None:
        sides = []
        exact = not site.conditional
        for index, subscript in enumerate(reference_subscripts(site.reference)):
            if index in followed:
                follow, shift = followed[index]
                loop = next(n for n in site.loops if n.variable == follow.variable)
                assert loop.first is not None and loop.last is not None
                first, last = loop.first.text, loop.last.text
                if loop.step.replace(" ", "").startswith("-"):
                    first, last = last, first
                if (names_in(first) | names_in(last)) & varying:
                    whole = self.writer.whole(array, index)
                    first, last = whole
                    exact = False
                if loop.step.replace(" ", "") not in ("1", "-1"):
                    exact = False
                sides.append(Side(first, last, follow, shift, shift))
                continue
            side, all_of_it = side_of(subscript, site.loops, varying, self.writer.whole(array, index))
            exact &= all_of_it
            sides.append(side)
        return Box(array, sides, exact, [site.reference])

    # --- communication ----------------------------------------------------------------------------------

    def _fetch(self, boxes: Sequence[Box]) -> list[str]:
        lines: list[str] = []
        needed = [box for box in merged(boxes, hull=True) if not self.fresh.has(box)]
        for array in _arrays_of(needed):
            mine = [box for box in needed if box.array is array]
            lines += self.writer.fetch(array, mine)
            for box in mine:
                self.fresh.add(box)
                self.explain(box.references[0].begin, f"fetch the shadow of {array.name}: {_box_text(box)}")
        return lines

    def _push(self, boxes: Sequence[Box]) -> list[str]:
        lines: list[str] = []
        needed = merged(boxes, hull=False)
        for array in _arrays_of(needed):
            mine = [box for box in needed if box.array is array]
            lines += self.writer.push(array, mine)
            for box in mine:
                self.explain(box.references[0].begin, f"push to the owners of {array.name}: {_box_text(box)}")
        return lines

    def _broadcast(self, sites: Sequence[Site], varying: frozenset[str], region: Region) -> list[str]:
        """Elements that all parts read: one contiguous copy each, in place of the array's name."""
        boxes: list[Box] = []
        for site in sites:
            array = self.arrays[site.reference.name]
            sides = []
            for index, subscript in enumerate(reference_subscripts(site.reference)):
                side, _ = side_of(subscript, site.loops, varying, self.writer.whole(array, index))
                if array.dimensions[index].distributed and subscript.section:
                    self.wrong(
                        subscript.begin, subscript.end, "a section over several parts, read by every thread"
                    )
                    return []
                sides.append(side)
            boxes.append(Box(array, sides, True, [site.reference]))
        lines: list[str] = []
        for box in merged(boxes, hull=True):
            name = f"hm_copy_{box.array.name}_{self._copy_number(box)}"
            region.add(Local(name, array=box.array))
            lines += self.writer.broadcast(region, box, name)
            for reference in box.references:
                self.writer.edits.replace(reference.begin, reference.name_end, name)
            self.explain(box.references[0].begin, f"broadcast {box.array.name}: {_box_text(box)}")
        return lines

    def _copy_number(self, box: Box) -> int:
        self.copies = getattr(self, "copies", 0) + 1
        del box
        return self.copies


def _same_bounds(a: Array, i: int, b: Array, j: int) -> bool:
    if a is b:
        return i == j
    if i >= len(a.declaration.bounds) or j >= len(b.declaration.bounds):
        return False
    mine, its = a.declaration.bounds[i], b.declaration.bounds[j]
    if mine.deferred or its.deferred or mine.upper is None or its.upper is None:
        return False
    return affine(mine.lower) == affine(its.lower) and affine(mine.upper) == affine(its.upper)


def _arrays_of(boxes: Sequence[Box]) -> list[Array]:
    found: list[Array] = []
    for box in boxes:
        if box.array not in found:
            found.append(box.array)
    return found


def _box_text(box: Box) -> str:
    sides = []
    for side in box.sides:
        if side.follow is not None:
            sides.append(f"own iterations {side.low:+d}..{side.high:+d}")
        elif affine(side.first) == affine(side.last):
            sides.append(side.first)
        else:
            sides.append(f"{side.first}:{side.last}")
    return f"{box.array.name}({', '.join(sides)})"


def _written(node: Node) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for statement in statements([node]):
        names |= statement.writes
    for inner in walk([node]):
        if isinstance(inner, Loop) and inner.variable:
            names |= {inner.variable}
    return names


def _loop_variables(nodes: Sequence[Node], routine: Routine) -> set[str]:
    """Predetermined private: counters of loops in a region (Fortran; C's are when they are declared
    there)."""
    if routine.source.form is d.Form.C:
        return set()
    return {n.variable for n in walk(list(nodes)) if isinstance(n, Loop) and n.variable}


def _reductions(construct: Construct) -> list[tuple[str, str]]:
    return reductions_of(construct.directive.clause("reduction"))


def _sites(
    nodes: Sequence[Node], loops: list[Loop], conditional: bool, arrays: dict[str, Array]
) -> Iterable[Site]:
    for node in nodes:
        if isinstance(node, Statement):
            for reference in node.references:
                if reference.name in arrays:
                    yield Site(reference, loops, conditional or reference.conditional)
        elif isinstance(node, Loop):
            for reference in node.head.references:
                if reference.name in arrays:
                    yield Site(reference, loops, conditional)
            # A loop inside others may run not at all: its bounds are part of the box.
            uncounted = node.variable is None
            yield from _sites(node.body, [*loops, node], conditional or uncounted, arrays)
        elif isinstance(node, Branch):
            for head, body in node.arms:
                for reference in head.references:
                    if reference.name in arrays:
                        yield Site(reference, loops, conditional)
                yield from _sites(body, loops, conditional or node.conditional, arrays)
        elif isinstance(node, Construct):
            yield from _sites(node.body, loops, conditional, arrays)
