"""NEXT_TOUCH, and Compaq's MIGRATE_NEXT_TOUCH: a call that sends an array's pages to where they are touched
next (Löf, Norden, Holmgren 2004, section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form, NextTouch
from homing.translate.positions import Findings
from homing.translate.source import Edits
from homing.translate.targets.upm.calls import size_of
from homing.translate.targets.upm.interfaces import bytes_in_c, specifications, uses_module
from homing.translate.targets.upm.program import Program
from homing.translate.targets.upm.writer import FileWriter
from homing.translate.tree import Branch, Construct, Declaration, Executable, Loop, Node, Routine, Unit

#: Whose arrays are one piece of memory that all threads share.
_TARGETS = frozenset({"pages", "upm"})
_PROTOTYPE = "extern int homing_next_touch(const void* start, unsigned long bytes);"
_IN_FORTRAN = "homing_touched_next"
_INTERFACE = [
    "interface",
    f"  integer(c_int) function {_IN_FORTRAN}(start, bytes) bind(c, name='homing_next_touch')",
    "    use, intrinsic :: iso_c_binding, only: c_int, c_size_t",
    "    type(*), dimension(*), intent(in) :: start",
    "    integer(c_size_t), value :: bytes",
    "  end function",
    "end interface",
]
#: What a C statement may follow, comments and directives between them left out.
_NO_STATEMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.DOTALL | re.MULTILINE)


def translate_next_touch(units: Sequence[Unit], edits: dict[int, Edits], target: str) -> Findings:
    """Write the calls, and take the directives out of the trees: nobody else looks at them."""
    done = Findings()
    program: Program | None = None
    for unit in units:
        for routine in unit.routines:
            found = list(_taken(routine.body, None))
            if not found:
                continue
            if target not in _TARGETS:
                done.notes += [
                    one.directive.source.problem(f"not used with --to {target}: parts lie at their owners")
                    for one, _ in found
                ]
                continue
            program = program or Program(units)
            called = program.called_inside(routine, regions=True)
            writer = _Writer(program, routine, edits[id(unit)])
            for node, construct in found:
                inside = construct or (called[1] if called else None)
                if inside is not None:
                    name = inside.directive.name
                    wrong: str | None = f"stands inside the {name} construct: pages are sent from serial code"
                else:
                    wrong = writer.write(node)
                if wrong is not None:
                    done.problems.append(node.directive.source.problem(wrong))
    return done


def _taken(nodes: list[Node], construct: Construct | None) -> Iterator[tuple[Executable, Construct | None]]:
    """The directives below, each with the construct that it stands in; they are removed from the lists."""
    for node in list(nodes):
        if isinstance(node, Executable) and isinstance(node.directive, NextTouch):
            nodes.remove(node)
            yield node, construct
        elif isinstance(node, Construct):
            yield from _taken(node.body, node)
        elif isinstance(node, Loop):
            yield from _taken(node.body, construct)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from _taken(body, construct)


class _Writer:
    """The calls of one routine."""

    def __init__(self, program: Program, routine: Routine, edits: Edits) -> None:
        self.program = program
        self.routine = routine
        self.edits = edits
        self.declared = False

    def write(self, node: Executable) -> str | None:
        """Put the calls where the directive stands; why there are none."""
        directive = node.directive
        assert isinstance(directive, NextTouch)
        in_c = self.routine.source.form is Form.C
        calls = []
        for name in (name.key for name in directive.names):
            declaration = self.program.declaration(self.routine, name)
            if declaration is None:
                return f"'{name}' is not declared here"
            if not declaration.bounds and declaration.storage != "pointer":
                return f"'{name}' is no array"
            length = self._bytes(name, declaration, [extent.text for extent in directive.extents])
            if length is None:
                return f"how long '{name}' is cannot be known here" + (": say EXTENT" if in_c else "")
            calls.append(f"{self._function()}({name}, {length})")
        return self._in_c(node, calls) if in_c else self._in_fortran(node, calls)

    def _bytes(self, name: str, declaration: Declaration, extents: Sequence[str]) -> str | None:
        if self.routine.source.form is not Form.C:
            return None if extents else size_of(self.routine, name, declaration)
        return bytes_in_c(name, declaration, extents)

    def _function(self) -> str:
        in_c = self.routine.source.form is Form.C
        return "homing_next_touch" if in_c or uses_module(self.routine) else _IN_FORTRAN

    def _in_c(self, node: Executable, calls: Sequence[str]) -> str | None:
        text = self.routine.source.text
        before = _NO_STATEMENT.sub("", text[self.routine.begin : node.begin]).rstrip()
        if before[-1:] not in ("{", "}", ";", ":"):
            return "would be the one statement of what stands before: put braces around both"
        language = 'extern "C"' if self.routine.source.cxx else "extern"
        prototype = _PROTOTYPE.replace("extern", language, 1)
        if prototype not in self.edits.lines_before(0):
            self.edits.insert_lines(0, [prototype])
        self.edits.replace(node.begin, node.end, " ".join(f"{call};" for call in calls))
        return None

    def _in_fortran(self, node: Executable, calls: Sequence[str]) -> str | None:
        writer = FileWriter(self.routine.source, self.edits)
        at = specifications(self.routine)
        if not self.declared and not uses_module(self.routine):
            self.declared = True
            writer.put(at, _INTERFACE, at)
        line = max(self.routine.source.next_line(node.end - 1), self.routine.declarations_end)
        writer.put(line, [f"if ({call} /= 0) continue" for call in calls], line)
        return None
