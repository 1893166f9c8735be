"""--to upm: the calls of UPMlib, as its compiler inserts them (Nikolopoulos et al. 2000, sections 2.1 and
2.2).

Hot are the shared arrays that parallel constructs both read and write, possibly different ones. They are
registered before the outer sequential loop that repeats the parallel computation, and the engine is called at
the end of each of its iterations (Figure 1). Where that loop lies inside a parallel region, the arrays are
registered before the region, and its master thread calls; no barrier is added, because the engine does its
work when that thread comes to the next one. With phases, the constructs in that loop that go through the
arrays along another dimension than the others are put between calls that record, replay and undo (Figure 2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from homing.translate.affine import affine
from homing.translate.directives import Form
from homing.translate.positions import Problem
from homing.translate.source import Edits, SourceFile, wrap
from homing.translate.tree import (
    Access,
    Branch,
    Construct,
    Declaration,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    Unit,
    statements,
    walk,
)
from homing.translate.upm_names import not_followed

#: Whose array it is and its name: a routine's, a module's, or a COMMON block's.
Identity = tuple[str, str]
#: Directives whose loop is not run by every thread.
_LOOPS = frozenset({"do", "simd", "loop", "taskloop", "distribute"})
_NOT_SHARED = ("private", "firstprivate", "lastprivate", "reduction", "linear", "copyprivate")


@dataclass
class Report:
    """What was found and why, for the user; and what keeps the translation from being made."""

    lines: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _Use:
    """Where parallel constructs read and write an array."""

    declaration: Declaration
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


@dataclass
class _Candidate:
    routine: Routine
    loop: Loop
    constructs: int
    around: tuple[tuple[Routine, Construct], ...]  # outermost first; a procedure's callers' are among them

    @property
    def closed(self) -> tuple[Routine, Construct] | None:
        """A construct around the loop that is not the one parallel region whose whole team runs the loop."""
        for index, (routine, construct) in enumerate(self.around):
            if index > 0 or construct.directive.name != "parallel":
                return routine, construct
        return None

    @property
    def rank(self) -> tuple[bool, int]:
        return self.closed is None, self.constructs

    @property
    def where(self) -> str:
        return _place(self.routine, self.loop)

    @property
    def start(self) -> tuple[Routine, Loop | Construct]:
        """What the arrays are registered before, in serial code, and whose it is."""
        return self.around[0] if self.around else (self.routine, self.loop)


def translate_upm(units: Sequence[Unit], edits: dict[int, Edits], phases: bool) -> Report:
    """Edit the file with the time loop. Nothing is edited when there is no hot array or no such loop."""
    finder = _Finder(units)
    report = Report()
    hot = finder.hot(report)
    loop = finder.time_loop(report)
    if not hot:
        report.lines.append(
            "upm: no shared array is both read and written in parallel constructs: nothing inserted"
        )
        return report
    if loop is None:
        report.lines.append("upm: no sequential loop repeats parallel constructs: nothing inserted")
        return report
    refused = _refused(finder, loop, phases)
    if refused:
        report.lines.append(f"upm: {loop.where}: {refused}: nothing inserted")
        return report
    inside = f", inside the parallel region of {_place(*loop.start)}" if loop.around else ""
    kind = "worksharing" if loop.around else "parallel"
    report.lines.append(
        f"upm: {loop.where}: time loop{f' over {loop.loop.variable}' if loop.loop.variable else ''} in "
        f"{loop.routine.name}{inside}, "
        f"{loop.constructs} {kind} construct{'s' if loop.constructs != 1 else ''} in it"
    )
    _insert(finder, loop, hot, {id(unit.source): edits[id(unit)] for unit in units}, report, phases)
    return report


def _refused(finder: _Finder, found: _Candidate, phases: bool) -> str | None:
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
        return f"the time loop lies inside the {name} construct of {_place(*found.closed)}, " + (
            "which lies inside another" if name == "parallel" else "which a team does not run together"
        )
    if phases:
        return "the time loop lies inside a parallel region, but phases are recorded between regions only"
    if not finder.waits(loop.body):
        return (
            "the time loop lies inside a parallel region, and no iteration comes to a barrier, where pages "
            "could move"
        )
    elsewhere = finder.called_inside(found.routine) if found.routine is not found.start[0] else None
    if elsewhere is not None:
        return (
            f"{found.routine.name}, where the time loop is, is also called inside the "
            f"{elsewhere[1].directive.name} construct of {_place(*elsewhere)}"
        )
    return None


class _Finder:
    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self.routines: dict[str, Routine] = {}
        self.modules: dict[str, Routine] = {}
        for unit in units:
            for routine in unit.routines:
                if routine.module and unit.form is not Form.C:
                    self.modules[routine.name] = routine
                elif not routine.module:
                    self.routines.setdefault(routine.name, routine)
        self.callers: dict[str, list[tuple[Routine, Reference]]] = {}
        self.not_followed: dict[tuple[str, str], str] = {}
        for routine in self.all():
            for statement in statements(routine.body):
                for reference in statement.references:
                    if reference.argument_of in self.routines:
                        self.callers.setdefault(reference.argument_of or "", []).append((routine, reference))

    def all(self) -> Iterator[Routine]:
        for unit in self.units:
            yield from (routine for routine in unit.routines if not routine.module)

    # --- arrays -----------------------------------------------------------------------------------------

    def resolve(
        self, routine: Routine, name: str, seen: frozenset[tuple[str, str]] = frozenset()
    ) -> dict[Identity, Declaration]:
        """The arrays that a name can mean: a dummy's are those that callers pass."""
        if (routine.name, name) in seen:
            return {}
        seen |= {(routine.name, name)}
        found = routine.lookup(name)
        if found is None:
            scope: Routine | None = routine
            while scope is not None:
                for used in scope.uses:
                    module = self.modules.get(used)
                    if module is not None and name in module.declarations:
                        return self.resolve(module, name, seen)
                scope = scope.parent
            return {}
        scope, declaration = found
        if declaration.storage == "dummy":
            result: dict[Identity, Declaration] = {}
            for caller, reference in self.callers.get(scope.name, []):
                index = scope.arguments.index(name) if name in scope.arguments else -1
                if reference.argument_index == index:
                    result.update(self.resolve(caller, reference.name, seen))
            return result
        is_array = bool(declaration.bounds) or declaration.storage == "pointer"
        if not is_array or "parameter" in declaration.attributes:
            return {}
        owner = "common" if declaration.storage == "common" else scope.name
        return {(owner, name): declaration}

    def hot(self, report: Report) -> dict[Identity, _Use]:
        """Arrays that are read and written by parallel constructs; the report says of each why (not)."""
        uses: dict[Identity, _Use] = {}
        for routine in self.all():
            for node in walk(routine.body):
                if isinstance(node, Construct) and node.parallel:
                    self._collect(routine, [node], frozenset(self._hidden(node, routine)), uses, frozenset())
        for (where, name), reason in sorted(self.not_followed.items()):
            report.lines.append(f"upm: not followed: {name} ({where}): {reason}")
        hot = {}
        for identity, use in sorted(uses.items()):
            reads, writes = sorted(set(use.reads)), sorted(set(use.writes))
            if reads and writes:
                hot[identity] = use
                report.lines.append(
                    f"upm: hot: {identity[1]} ({identity[0]}): read in {_some(reads)}; written in "
                    f"{_some(writes)}"
                )
            else:
                only = f"only read, in {_some(reads)}" if reads else f"only written, in {_some(writes)}"
                report.lines.append(f"upm: not hot: {identity[1]} ({identity[0]}): {only}")
        return hot

    @staticmethod
    def _hidden(construct: Construct, routine: Routine) -> set[str]:
        names = construct.directive.listed(*_NOT_SHARED)
        for name, places in routine.places.items():
            if any(construct.begin <= place < construct.end for place in places):
                names.add(name)
        return names

    def _collect(
        self,
        routine: Routine,
        nodes: Sequence[Node],
        hidden: frozenset[str],
        uses: dict[Identity, _Use],
        seen: frozenset[str],
    ) -> None:
        for node in walk(list(nodes)):
            if isinstance(node, Construct):
                hidden |= self._hidden(node, routine)
        for statement in statements(list(nodes)):
            place = f"{routine.name}:{routine.source.user_line(statement.begin)}"
            called = {r.argument_of for r in statement.references if r.argument_of} | set(statement.calls)
            for reference in statement.references:
                if reference.name in hidden or reference.name in routine.private:
                    continue
                if reference.argument_of in self.routines:
                    continue  # what the procedure does with it counts
                meant = self.resolve(routine, reference.name)
                if reason := not_followed(routine, reference, meant.values()):
                    self.not_followed.setdefault((routine.name, reference.name), f"{reason}, in {place}")
                for identity, declaration in meant.items():
                    if identity[0] in self.modules and identity[1] in self.modules[identity[0]].private:
                        continue
                    local = seen and identity[0] == routine.name and declaration.storage != "common"
                    if local and "save" not in declaration.attributes:
                        continue  # a local array of a procedure inside the region: one a thread
                    use = uses.setdefault(identity, _Use(declaration))
                    if reference.access is not Access.WRITE:
                        use.reads.append(place)
                    if reference.access not in (Access.READ, Access.OTHER):
                        use.writes.append(place)
            for name in called:
                callee = self.routines.get(name or "")
                if callee is not None and callee.name not in seen:
                    self._collect(callee, callee.body, frozenset(callee.private), uses, seen | {callee.name})

    # --- the time loop ----------------------------------------------------------------------------------

    def reached(
        self, routine: Routine, nodes: Sequence[Node], seen: frozenset[str]
    ) -> Iterator[tuple[Routine, Node]]:
        """Every node below, and below what is called, with whose it is."""
        for node in walk(list(nodes)):
            yield routine, node
        for name in _called(nodes):
            callee = self.routines.get(name)
            if callee is not None and name not in seen:
                yield from self.reached(callee, callee.body, seen | {name})

    def constructs(
        self, routine: Routine, nodes: Sequence[Node], in_region: bool, seen: frozenset[str]
    ) -> int:
        """Parallel constructs in the nodes and in what they call; in a region worksharing ones, too."""
        return sum(
            isinstance(node, Construct) and (node.parallel or (in_region and node.worksharing))
            for _, node in self.reached(routine, nodes, seen)
        )

    def waits(self, nodes: Sequence[Node], seen: frozenset[str] = frozenset()) -> bool:
        """Is there a barrier of the team that runs the nodes?"""
        for node in nodes:
            if isinstance(node, Construct) and node.parallel:
                continue  # another team's
            if isinstance(node, Construct) and _ends_in_barrier(node):
                return True
            bodies = [body for _, body in node.arms] if isinstance(node, Branch) else []
            if isinstance(node, Loop | Construct):
                bodies = [node.body]
            if any(self.waits(body, seen) for body in bodies):
                return True
            for name in _called([node]) if isinstance(node, Statement) else ():
                callee = self.routines.get(name)
                if callee is not None and name not in seen and self.waits(callee.body, seen | {name}):
                    return True
        return False

    def called_inside(self, procedure: Routine) -> tuple[Routine, Construct] | None:
        """A construct other than a parallel region in which the procedure is called, perhaps by another."""
        for routine in self.all():
            for node in walk(routine.body) if routine is not procedure else ():
                if not isinstance(node, Construct) or node.directive.name == "parallel":
                    continue
                if any(owner is procedure for owner, _ in self.reached(routine, node.body, frozenset())):
                    return routine, node
        return None

    def time_loop(self, report: Report) -> _Candidate | None:
        """The outermost sequential loop that repeats most parallel constructs, found from the main
        program."""
        start = next((routine for routine in self.all() if routine.main), None)
        best: _Candidate | None = None
        for routine in [start] if start is not None else list(self.all()):
            found = self._best(routine, routine.body, (), frozenset({routine.name}))
            if found is not None and (best is None or found.rank > best.rank):
                best = found
        del report
        return best

    def _best(
        self,
        routine: Routine,
        nodes: Sequence[Node],
        around: tuple[tuple[Routine, Construct], ...],
        seen: frozenset[str],
    ) -> _Candidate | None:
        best: _Candidate | None = None

        def better(found: _Candidate | None) -> None:
            nonlocal best
            if found is not None and (best is None or found.rank > best.rank):
                best = found

        for node in nodes:
            if isinstance(node, Loop):
                count = self.constructs(routine, node.body, bool(around), seen)
                if count:
                    better(_Candidate(routine, node, count, around))
                else:
                    better(self._best(routine, node.body, around, seen))
            elif isinstance(node, Branch):
                for _, body in node.arms:
                    better(self._best(routine, body, around, seen))
            elif isinstance(node, Construct) and not _LOOPS & set(node.directive.name.split()):
                better(self._best(routine, node.body, (*around, (routine, node)), seen))
            for name in _called([node]) if isinstance(node, Statement) else ():
                callee = self.routines.get(name)
                if callee is not None and name not in seen:
                    better(self._best(callee, callee.body, around, seen | {name}))
        return best

    # --- phases -----------------------------------------------------------------------------------------

    def directions(
        self, routine: Routine, nodes: Sequence[Node], hot: dict[Identity, _Use], seen: frozenset[str]
    ) -> set[tuple[Identity, int]]:
        """Along which dimension (from 0) the constructs in the nodes deal out each hot array."""
        found: set[tuple[Identity, int]] = set()
        for node in walk(list(nodes)):
            if not (isinstance(node, Construct) and node.worksharing and node.body):
                continue
            loop = node.body[0]
            if not isinstance(loop, Loop) or loop.variable is None:
                continue
            for statement in statements([loop]):
                for reference in statement.references:
                    for identity in self.resolve(routine, reference.name):
                        if identity not in hot:
                            continue
                        for index, subscript in enumerate(reference.subscripts or []):
                            if affine(subscript.text).coefficient(loop.variable):
                                found.add((identity, index))
        for name in _called(nodes):
            callee = self.routines.get(name)
            if callee is not None and name not in seen:
                found |= self.directions(callee, callee.body, hot, seen | {name})
        return found


def _called(nodes: Sequence[Node]) -> list[str]:
    names: list[str] = []
    for statement in statements(list(nodes)):
        names += statement.calls
        names += [r.argument_of for r in statement.references if r.argument_of]
        names += [r.name for r in statement.references if r.subscripts is not None]
    return list(dict.fromkeys(names))


def _some(places: Sequence[str]) -> str:
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _place(routine: Routine, node: Node) -> str:
    return ":".join(map(str, routine.source.origin(routine.source.line_of(node.begin))))


def _ends_in_barrier(construct: Construct) -> bool:
    """In one that the engine hears of: sections and COPYPRIVATE end in other calls of gcc's runtime."""
    clauses = [*construct.directive.clauses, *(construct.closing.clauses if construct.closing else [])]
    if {clause.name for clause in clauses} & {"nowait", "copyprivate"}:
        return False
    return construct.directive.name.partition(" ")[0] in ("barrier", "do", "single", "workshare")


def _insert(
    finder: _Finder,
    found: _Candidate,
    hot: dict[Identity, _Use],
    edits: dict[int, Edits],
    report: Report,
    phases: bool,
) -> None:
    """edits: by the source's id, because a region may lie in another file than the loop in it."""
    before, start = found.start
    lines = _registrations(finder, found, hot, report)
    if not lines:
        report.lines.append("upm: no hot array can be registered: nothing inserted")
        return
    writer = _Writer(before.source, edits[id(before.source)])
    writer.before(before, start, [writer.call("upmlib_init()"), *map(writer.call, lines)])
    writer = _Writer(found.routine.source, edits[id(found.routine.source)])
    if phases:
        _insert_phases(writer, found, _phases(finder, found, hot, report), report)
    else:
        writer.at_end(found.loop, bool(found.around))
        report.lines.append(
            "upm: upmlib_migrate_memory() at the end of each iteration"
            + (", called by the master thread; pages move at the next barrier" if found.around else "")
        )


def _registrations(
    finder: _Finder, found: _Candidate, hot: dict[Identity, _Use], report: Report
) -> list[str]:
    """A call for each hot array that has a name, a size and memory where the arrays are registered."""
    routine, start = found.start
    place = "where the parallel region begins" if found.around else "where the time loop is"
    late = _allocated(finder, *found.around[0]) if found.around else set()
    lines = []
    for identity, use in hot.items():
        name = next((n for n in _visible(finder, routine) if identity in finder.resolve(routine, n)), None)
        size = _size(routine, name, use.declaration, routine.source.form is Form.C) if name else None
        if name is None:
            reason = f"{identity[1]} ({identity[0]}) is not visible in {routine.name}, {place}"
        elif identity in late:
            reason = f"{name} is allocated inside the parallel region"
        elif size is None:
            reason = f"the size of {name} is not known {place}"
        else:
            lines.append(f"upmlib_memrefcnt({name}, {size})")
            behind = f" before the parallel region of {_place(routine, start)}" if found.around else ""
            report.lines.append(f"upm: {name} registered{behind}")
            continue
        report.lines.append(f"upm: {reason}: not registered")
    return lines


def _allocated(finder: _Finder, routine: Routine, construct: Construct) -> set[Identity]:
    """Arrays that get their memory only inside the construct."""
    found: set[Identity] = set()
    for owner, node in finder.reached(routine, construct.body, frozenset()):
        if isinstance(node, Statement) and node.kind is Kind.ALLOCATE:
            for reference in node.references:
                if reference.access is Access.WRITE:
                    found.update(finder.resolve(owner, reference.name))
    return found


class _Writer:
    """Puts calls into one file."""

    def __init__(self, source: SourceFile, edits: Edits) -> None:
        self.source = source
        self.edits = edits
        self.in_c = source.form is Form.C
        if self.in_c and not edits.any:
            edits.insert_lines(0, ["#include <homing/homing.h>"], first=True)

    def call(self, text: str) -> str:
        return f"{text};" if self.in_c else f"call {text}"

    def put(self, offset: int, texts: Sequence[str], like: int, first: bool = False) -> None:
        """Lines before the one at `offset`, indented like another; directives as the form asks for."""
        indent = self.source.indent(like)
        if self.source.form is Form.FIXED:
            indent = " " * max(6, len(indent.expandtabs()))
        lines = []
        for text in texts:
            outermost = text.startswith("#") or (self.source.form is Form.FIXED and text.startswith("!$"))
            lines += wrap(text if outermost else indent + text, self.source)
        self.edits.insert_lines(offset, lines, first)

    def before(self, routine: Routine, node: Loop | Construct, lines: Sequence[str]) -> None:
        """C: what may be the one statement of an `if` or a loop gets braces around it and the lines."""
        like = _indented(node)
        alone = self.in_c and _alone(routine, node)
        self.put(self.source.line_start(node.begin), [*(["{"] if alone else []), *lines], like)
        if alone:
            self.put(self.source.next_line(node.end - 1), ["}"], like)

    def at_end(self, loop: Loop, in_region: bool) -> None:
        """The engine's call behind the last statement of the loop's body."""
        lines = [self.call("upmlib_migrate_memory()")]
        if in_region:
            lines = (
                ["#pragma omp master", *lines] if self.in_c else ["!$omp master", *lines, "!$omp end master"]
            )
        source, text = self.source, self.source.text
        like = _indented(loop.body[0])
        if not self.in_c:
            self.put(source.line_start(loop.end_begin), lines, like)
            return
        if text[loop.body_begin] != "{":
            begin = loop.body[0].begin
            if source.line_of(begin) == source.line_of(loop.begin):
                self.edits.replace(begin, begin, "{ ")
            else:
                self.put(source.line_start(begin), ["{"], loop.begin)
            self.put(source.next_line(loop.end - 1), [*lines, "}"], like, first=True)
            return
        end = text.rindex("}", loop.body_begin, loop.end)
        if text[source.line_start(end) : end].strip():  # the line ends more than the body
            self.edits.replace(end, end, "\n" + "\n".join(lines) + "\n")
        else:
            self.put(source.line_start(end), lines, like)


def _indented(node: Node) -> int:
    """Where the first statement stands: C's directives begin further left."""
    while isinstance(node, Construct) and node.body:
        node = node.body[0]
    return node.begin


def _alone(routine: Routine, node: Node) -> bool:
    for parent in walk(routine.body):
        bodies = (
            [body for _, body in parent.arms] if isinstance(parent, Branch) and parent.conditional else []
        )
        if isinstance(parent, Loop):
            bodies = [parent.body]
        if any(len(body) == 1 and body[0] is node for body in bodies):
            return True
    return False


def _insert_phases(writer: _Writer, found: _Candidate, chosen: Sequence[Node], report: Report) -> None:
    loop, source = found.loop, writer.source
    if loop.variable is None or loop.first is None or not chosen:
        writer.at_end(loop, False)
        report.lines.append("upm: upmlib_migrate_memory() at the end of each iteration")
        return
    test = f"{loop.variable} == {loop.first.text}"
    for node in chosen:
        before = _either(writer.in_c, test, "upmlib_record()", "upmlib_replay()")
        behind = _either(writer.in_c, test, "upmlib_record()", "upmlib_undo()")
        writer.put(source.line_start(node.begin), before, node.begin)
        writer.put(source.next_line(node.end - 1), behind, node.begin, first=True)
        report.lines.append(f"upm: {_place(found.routine, node)}: a phase: recorded, replayed and undone")
    report.lines.append("upm: record, replay and undo link today, move nothing yet, and say so when they run")


def _either(in_c: bool, test: str, one: str, other: str) -> list[str]:
    if in_c:
        return [f"if ({test})", f"    {one};", "else", f"    {other};"]
    return [f"if ({test}) then", f"  call {one}", "else", f"  call {other}", "end if"]


def _phases(finder: _Finder, found: _Candidate, hot: dict[Identity, _Use], report: Report) -> list[Node]:
    """The statements and constructs of the time loop whose direction is not that of most others."""
    items = []
    for node in found.loop.body:
        directions = finder.directions(found.routine, [node], hot, frozenset())
        if directions:
            items.append((node, directions))
    usual: Counter[tuple[Identity, int]] = Counter()
    for _, directions in items:
        usual.update(directions)
    chosen = []
    for node, directions in items:
        for identity, index in directions:
            others = [count for (name, at), count in usual.items() if name == identity and at != index]
            if others and max(others) > usual[(identity, index)]:
                report.lines.append(
                    f"upm: line {found.routine.source.user_line(node.begin)} goes through {identity[1]} "
                    "along dimension "
                    f"{index + 1}, most others along another"
                )
                chosen.append(node)
                break
    if not chosen:
        report.lines.append(
            "upm: no phase goes through the hot arrays along another dimension than the others"
        )
    return chosen


def _visible(finder: _Finder, routine: Routine) -> list[str]:
    names: list[str] = []
    scope: Routine | None = routine
    while scope is not None:
        names += scope.declarations
        for used in scope.uses:
            module = finder.modules.get(used)
            if module is not None:
                names += module.declarations
        scope = scope.parent
    return names


def _size(routine: Routine, name: str, declaration: Declaration, in_c: bool) -> str | None:
    """The array's size in bytes, as text that is valid in the routine."""
    if not in_c:
        return f"storage_size({name})/8*size({name})"
    found = routine.lookup(name)
    if found is None:
        return None
    if declaration.storage != "pointer":
        return f"sizeof {name}"
    text = declaration.initial or ""
    for statement in statements(routine.body):
        if statement.kind is Kind.ALLOCATE and any(
            r.name == name and r.access is Access.WRITE and r.subscripts is None for r in statement.references
        ):
            text = statement.text
    match = re.search(r"\bmalloc\s*\((.*)\)\s*;?$", text, re.DOTALL)
    if match:
        return " ".join(match[1].split())
    match = re.search(r"\b(?:calloc|aligned_alloc)\s*\((.*?),(.*)\)\s*;?$", text, re.DOTALL)
    if match and "calloc" in text:
        return f"({match[1].strip()}) * ({match[2].strip()})"
    return match[2].strip() if match else None
