"""The calls: what is registered, and where which call stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from homing.translate.directives.model import Form
from homing.translate.source import Edits
from homing.translate.targets.upm import interfaces, step
from homing.translate.targets.upm.hot import Use
from homing.translate.targets.upm.phases import Phase, phases
from homing.translate.targets.upm.program import Identity, Program, place
from homing.translate.targets.upm.timeloop import TimeLoop
from homing.translate.targets.upm.writer import FileWriter
from homing.translate.tree import (
    Access,
    Construct,
    Declaration,
    Kind,
    Loop,
    Node,
    Routine,
    Statement,
    statements,
)


@dataclass
class Calls:
    """Writes the calls for one program. edits: by the source's id, because a region may lie in another file
    than the loop in it."""

    program: Program
    found: TimeLoop
    hot: dict[Identity, Use]
    edits: dict[int, Edits]
    lines: list[str]
    called: dict[int, tuple[Routine, set[str]]] = field(default_factory=dict)  # by the routine's id
    registered: set[Identity] = field(default_factory=set)
    phases: list[Phase] = field(default_factory=list)

    def insert(self, with_phases: bool) -> None:
        before, start = self.found.start
        registered = self.registrations()
        if not registered:
            self.lines.append("upm: no hot array can be registered: nothing inserted")
            return
        chosen: list[Phase] = []
        if with_phases:
            result = phases(self.program, self.found, list(self.hot))
            chosen = self.phases = result.found
            self.lines += result.lines
        writer = self._writer(before)
        opening = [writer.call("upmlib_init()"), *map(writer.call, registered)]
        self._calls(before, opening)
        if chosen:
            self._phases(writer, opening, chosen)
        else:
            writer.around(before, start, start, opening, [])
            self._iterative()
        for routine, names in self.called.values():
            if routine.source.form is not Form.C:
                interfaces.declare(self._writer(routine), routine, names)

    def _writer(self, routine: Routine) -> FileWriter:
        return FileWriter(routine.source, self.edits[id(routine.source)])

    def _calls(self, routine: Routine, lines: Sequence[str]) -> None:
        """Note what lines call that are put into a routine."""
        self.called.setdefault(id(routine), (routine, set()))[1].update(interfaces.called(lines))

    def _iterative(self) -> None:
        """Figure 1: the engine at the end of each iteration."""
        writer = self._writer(self.found.routine)
        lines = [writer.call("upmlib_migrate_memory()")]
        self._calls(self.found.routine, lines)
        if self.found.around:
            begin, end = (
                (["#pragma omp master"], []) if writer.in_c else (["!$omp master"], ["!$omp end master"])
            )
            lines = [*begin, *lines, *end]
        writer.at_end(self.found.loop, lines)
        self.lines.append(
            "upm: upmlib_migrate_memory() at the end of each iteration"
            + (", called by the master thread; pages move at the next barrier" if self.found.around else "")
        )

    def _phases(self, writer: FileWriter, opening: Sequence[str], chosen: Sequence[Phase]) -> None:
        """Figure 2: record, replay and undo around each phase."""
        routine, loop = self.found.routine, self.found.loop
        own = all(phase.routine is routine for phase in chosen)
        test = f"{loop.variable} == {loop.first.text}" if own and loop.variable and loop.first else None
        if test is None:
            step.declare(writer, routine)
            step.define(self.edits[id(routine.source)], writer.source.form)
            zero = step.reset(writer.in_c)
            writer.around(routine, loop, loop, [*opening, zero], [zero])
            writer.at_begin(loop, [step.count(writer.in_c)])
            writer.at_end(loop, [], opened=True)
        else:
            writer.around(routine, loop, loop, opening, [])
        for phase in chosen:
            inside = self._writer(phase.routine)
            if test is None:
                step.declare(inside, phase.routine)
            before, behind = (_chosen(inside.in_c, test, then) for then in ("replay", "undo"))
            self._calls(phase.routine, [*before, *behind])
            inside.around(phase.routine, phase.first, phase.last, before, behind)
            self.lines.append(f"upm: {phase.where}: a phase: recorded, replayed and undone")
        self.lines.append(
            "upm: the 20 most critical pages of a phase move before it and go back behind it (docs/phases.md)"
        )

    def registrations(self) -> list[str]:
        """A call for each hot array that has a name, a size and memory where the arrays are registered."""
        routine, start = self.found.start
        where = "where the parallel region begins" if self.found.around else "where the time loop is"
        late = self._allocated(routine, start)
        visible = self.program.visible(routine)
        made = []
        for identity, use in self.hot.items():
            name = next((n for n in visible if identity in self.program.resolve(routine, n)), None)
            size = size_of(routine, name, use.declaration) if name else None
            if name is None:
                reason = f"{identity[1]} ({identity[0]}) is not visible in {routine.name}, {where}"
            elif routine.source.form is Form.C and _declared_behind(routine, name, start):
                reason = f"{name} is declared behind the place, {where}"
            elif identity in late:
                inside = "parallel region" if self.found.around else "time loop"
                reason = f"{name} is allocated inside the {inside}"
            elif size is None:
                reason = f"the size of {name} is not known {where}"
            else:
                made.append(f"upmlib_memrefcnt({full_name(routine, name)}, {size})")
                self.registered.add(identity)
                behind = (
                    f" before the parallel region of {place(routine, start)}" if self.found.around else ""
                )
                self.lines.append(f"upm: {name} registered{behind}")
                continue
            self.lines.append(f"upm: {reason}: not registered")
        return made

    def _allocated(self, routine: Routine, construct: Loop | Construct) -> set[Identity]:
        """Arrays that get their memory inside the loop or construct."""
        found: set[Identity] = set()
        for owner, node in self.program.reached(routine, construct.body):
            if isinstance(node, Statement) and node.kind is Kind.ALLOCATE:
                for reference in node.references:
                    if reference.access is Access.WRITE:
                        found.update(self.program.resolve(owner, reference.name))
        return found


def _chosen(in_c: bool, test: str | None, then: str) -> list[str]:
    """upmlib_record() in the first iteration, the other call in those behind it; test: for the first one."""
    one, other = "upmlib_record()", f"upmlib_{then}()"
    number = step.name(in_c)
    first = test or f"{number} == 1"
    if in_c:
        return [
            f"if ({first})",
            f"    {one};",
            "else" if test else f"else if ({number} > 1)",
            f"    {other};",
        ]
    behind = "else" if test else f"else if ({number} > 1) then"
    return [f"if ({first}) then", f"  call {one}", behind, f"  call {other}", "end if"]


def _declared_behind(routine: Routine, name: str, start: Node) -> bool:
    """C: is it a variable of the routine's own, or of the file, that is not there yet?"""
    found = routine.lookup(name)
    return found is not None and found[0].source is routine.source and found[1].begin > start.begin


def full_name(routine: Routine, name: str) -> str:
    """C++: with the namespace, which may not be open where the name is put."""
    found = routine.lookup(name)
    around = found[0].namespaces.get(name) if found else None
    return f"{around}::{name}" if around else name


def size_of(routine: Routine, name: str, declaration: Declaration) -> str | None:
    """The array's size in bytes, as text that is valid in the routine."""
    if routine.source.form is not Form.C:
        found = routine.lookup(name)
        if found is not None and any(bound.upper is None and not bound.deferred for bound in found[1].bounds):
            return None  # assumed size
        return interfaces.size(name)
    if declaration.storage != "pointer":
        return f"sizeof {full_name(routine, name)}"
    text = declaration.initial or ""
    for statement in statements(routine.body):
        if statement.kind is Kind.ALLOCATE and any(
            r.name == name and r.access is Access.WRITE and r.subscripts is None for r in statement.references
        ):
            text = statement.text
    match = re.search(r"\bnew\s+([\w:\s]+?)\s*\[(.*)\]\s*(?:\(\s*\)|\{\s*\})?\s*;?$", text, re.DOTALL)
    if match:
        sides = re.sub(r"\]\s*\[", ") * (", " ".join(match[2].split()))
        return f"(unsigned long)({sides}) * sizeof({match[1]})"
    match = re.search(r"\bmalloc\s*\((.*)\)\s*;?$", text, re.DOTALL)
    if match:
        return " ".join(match[1].split())
    match = re.search(r"\b(?:calloc|aligned_alloc)\s*\((.*?),(.*)\)\s*;?$", text, re.DOTALL)
    if match and "calloc" in text:
        return f"({match[1].strip()}) * ({match[2].strip()})"
    return match[2].strip() if match else None
