"""--to upm: the calls of UPMlib, as its compiler inserts them (Nikolopoulos et al. 2000, sections 2.1 and
2.2).

Hot are the shared arrays that parallel constructs both read and write, possibly different ones. They are
registered before the outer sequential loop that repeats the parallel computation, and the engine is called at
the end of each of its iterations (Figure 1). With phases, the constructs in that loop that go through the
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
from homing.translate.source import Edits, wrap
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

#: Whose array it is and its name: a routine's, a module's, or a COMMON block's.
Identity = tuple[str, str]
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
    in_region: bool


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
    where = f"{loop.routine.source.path}:{loop.routine.source.line_of(loop.loop.begin)}"
    if loop.in_region:
        report.lines.append(
            f"upm: {where}: the time loop lies inside a parallel region, where the engine may not "
            "work: nothing inserted"
        )
        return report
    report.lines.append(
        f"upm: {where}: time loop{f' over {loop.loop.variable}' if loop.loop.variable else ''} in "
        f"{loop.routine.name}, "
        f"{loop.constructs} parallel construct{'s' if loop.constructs != 1 else ''} in it"
    )
    unit = next(unit for unit in units if unit.source is loop.routine.source)
    changes = edits[id(unit)]
    _insert(finder, loop, hot, changes, report, phases)
    return report


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
            place = f"{routine.name}:{routine.source.line_of(statement.begin)}"
            called = {r.argument_of for r in statement.references if r.argument_of} | set(statement.calls)
            for reference in statement.references:
                if reference.name in hidden or reference.name in routine.private:
                    continue
                if reference.argument_of in self.routines:
                    continue  # what the procedure does with it counts
                for identity, declaration in self.resolve(routine, reference.name).items():
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

    def constructs(self, routine: Routine, nodes: Sequence[Node], seen: frozenset[str]) -> int:
        """Parallel constructs in the nodes, and in what they call."""
        count = sum(isinstance(node, Construct) and node.parallel for node in walk(list(nodes)))
        for name in _called(nodes):
            callee = self.routines.get(name)
            if callee is not None and name not in seen:
                count += self.constructs(callee, callee.body, seen | {name})
        return count

    def time_loop(self, report: Report) -> _Candidate | None:
        """The outermost sequential loop that repeats most parallel constructs, found from the main
        program."""
        start = next((routine for routine in self.all() if routine.main), None)
        best: _Candidate | None = None
        for routine in [start] if start is not None else list(self.all()):
            found = self._best(routine, routine.body, False, frozenset({routine.name}))
            if found is not None and (best is None or found.constructs > best.constructs):
                best = found
        del report
        return best

    def _best(
        self, routine: Routine, nodes: Sequence[Node], in_region: bool, seen: frozenset[str]
    ) -> _Candidate | None:
        best: _Candidate | None = None

        def better(found: _Candidate | None) -> None:
            nonlocal best
            if found is not None and (best is None or found.constructs > best.constructs):
                best = found

        for node in nodes:
            if isinstance(node, Loop):
                count = self.constructs(routine, node.body, seen)
                if in_region:
                    count += sum(isinstance(n, Construct) and n.worksharing for n in walk(node.body))
                if count:
                    better(_Candidate(routine, node, count, in_region))
                else:
                    better(self._best(routine, node.body, in_region, seen))
            elif isinstance(node, Branch):
                for _, body in node.arms:
                    better(self._best(routine, body, in_region, seen))
            elif isinstance(node, Construct) and node.parallel and not node.worksharing:
                better(self._best(routine, node.body, True, seen))
            for name in _called([node]) if isinstance(node, Statement) else ():
                callee = self.routines.get(name)
                if callee is not None and name not in seen:
                    better(self._best(callee, callee.body, in_region, seen | {name}))
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


def _insert(
    finder: _Finder,
    found: _Candidate,
    hot: dict[Identity, _Use],
    edits: Edits,
    report: Report,
    phases: bool,
) -> None:
    routine, loop = found.routine, found.loop
    source = routine.source
    in_c = source.form is Form.C

    def call(text: str) -> str:
        return f"{text};" if in_c else f"call {text}"

    lines = [call("upmlib_init()")]
    for identity in hot:
        name = next((n for n in _visible(finder, routine) if identity in finder.resolve(routine, n)), None)
        if name is None:
            report.lines.append(
                f"upm: {identity[1]} ({identity[0]}) is not visible in {routine.name}, where the time "
                "loop is: not registered"
            )
            continue
        size = _size(routine, name, hot[identity].declaration, in_c)
        if size is None:
            report.lines.append(
                f"upm: the size of {name} is not known where the time loop is: not registered"
            )
            continue
        lines.append(call(f"upmlib_memrefcnt({name}, {size})"))
        report.lines.append(f"upm: {name} registered")
    if len(lines) == 1:
        report.lines.append("upm: no hot array can be registered: nothing inserted")
        return

    def put(offset: int, texts: Sequence[str], like: int, first: bool = False) -> None:
        indent = source.indent(like)
        if source.form is Form.FIXED:
            indent = " " * max(6, len(indent.expandtabs()))
        edits.insert_lines(offset, [piece for text in texts for piece in wrap(indent + text, source)], first)

    inside = loop.body[0].begin if loop.body else loop.begin
    if in_c:
        edits.insert_lines(0, ["#include <homing/homing.h>"], first=True)
    put(source.line_start(loop.begin), lines, loop.begin)
    chosen = _phases(finder, found, hot, report) if phases else []
    if phases and loop.variable is not None and loop.first is not None and chosen:
        test = f"{loop.variable} == {loop.first.text}"
        for node in chosen:
            before = _either(in_c, test, "upmlib_record()", "upmlib_replay()")
            behind = _either(in_c, test, "upmlib_record()", "upmlib_undo()")
            put(source.line_start(node.begin), before, node.begin)
            put(source.next_line(node.end - 1), behind, node.begin, first=True)
            report.lines.append(
                f"upm: {source.path}:{source.line_of(node.begin)}: a phase: recorded, replayed and undone"
            )
        report.lines.append(
            "upm: record, replay and undo link today, move nothing yet, and say so when they run"
        )
        return
    if in_c and source.text[loop.body_begin : loop.body_begin + 1] != "{":
        put(source.line_start(inside), ["{"], loop.begin)
        put(source.next_line(loop.end - 1), [call("upmlib_migrate_memory()"), "}"], inside, first=True)
    else:
        end = loop.end - 1 if in_c else loop.end_begin
        put(source.line_start(end), [call("upmlib_migrate_memory()")], inside)
    report.lines.append("upm: upmlib_migrate_memory() at the end of each iteration")


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
                    f"upm: line {found.routine.source.line_of(node.begin)} goes through {identity[1]} "
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
