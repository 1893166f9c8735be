"""REPLICATE (--to pages): each node has its own copy of an array while a parallel construct runs.

The copies are made before the construct, or before the outermost loop around it that is known not to write
the array. Each thread takes the pointer to its node's copy once, and the construct's references use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.translate.directives.model import Form, Replicate
from homing.translate.openmp import clause_text
from homing.translate.plan.passing import is_pointer
from homing.translate.positions import Findings, Problem
from homing.translate.source import Edits, wrap
from homing.translate.targets.upm.interfaces import bytes_in_c, size, specifications
from homing.translate.targets.upm.program import Program, hidden_in
from homing.translate.targets.upm.writer import FileWriter
from homing.translate.tree import (
    Access,
    Branch,
    Clause,
    Construct,
    Declaration,
    Executable,
    Loop,
    Node,
    Reference,
    Routine,
    Unit,
    references,
    statements,
    walk,
)

#: Constructs that a pointer can be taken in; of a combined one the loop gets a directive of its own.
_CONSTRUCTS = frozenset({"parallel", "parallel do", "parallel do simd"})
#: Clauses of a combined construct that are the loop's.
_OF_LOOP = frozenset(
    ["aligned", "collapse", "firstprivate", "lastprivate", "linear", "nontemporal", "order", "ordered",
     "safelen", "schedule", "simdlen"]
)  # fmt: skip
_PROTOTYPES = (
    "extern void homing_replicate(const void* array, unsigned long bytes);",
    "extern const void* homing_replica(const void* array);",
)
_INTERFACE = (
    "interface",
    "  subroutine homing_replicate(array, bytes) bind(c)",
    "    use, intrinsic :: iso_c_binding, only: c_size_t",
    "    type(*), dimension(*), intent(in) :: array",
    "    integer(c_size_t), value :: bytes",
    "  end subroutine",
    "  function homing_replica(array) bind(c) result(copy)",
    "    use, intrinsic :: iso_c_binding, only: c_ptr",
    "    type(*), dimension(*), intent(in) :: array",
    "    type(c_ptr) :: copy",
    "  end function",
    "end interface",
)
#: C functions that write to no array of the program's.
_HARMLESS = frozenset(
    f"{name}{suffix}"
    for name in (
        "sqrt",
        "fabs",
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "pow",
        "floor",
        "ceil",
        "fmin",
        "fmax",
        "atan2",
    )
    for suffix in ("", "f")
) | {"abs", "printf", "omp_get_thread_num", "omp_get_num_threads", "omp_get_wtime"}


def translate_replicate(units: Sequence[Unit], edits: dict[int, Edits], target: str) -> Findings:
    """Write the copies, and take the directives out of the trees: nobody else looks at them."""
    done = Findings()
    program: Program | None = None
    for unit in units:
        for routine in unit.routines:
            found = list(_taken(routine.body))
            if found and target == "pages":
                program = program or Program(units)
                writer = _Writer(program, routine, edits[id(unit)])
                for construct, directives in found:
                    done.problems += writer.write(construct, directives)
            else:
                done.notes += [
                    one.source.problem(f"not used with --to {target}: copies are made with --to pages")
                    for _, directives in found
                    for one in directives
                ]
    return done


def _taken(nodes: list[Node]) -> Iterator[tuple[Construct | None, list[Replicate]]]:
    """The directives below, with the construct that they stand before; they are removed from the tree."""
    for node in list(nodes):
        if isinstance(node, Executable) and isinstance(node.directive, Replicate):
            nodes.remove(node)
            yield None, [node.directive]
        elif isinstance(node, Construct):
            mine = [one for one in node.homing if isinstance(one, Replicate)]
            node.homing[:] = [one for one in node.homing if not isinstance(one, Replicate)]
            if mine:
                yield node, mine
            yield from _taken(node.body)
        elif isinstance(node, Loop):
            yield from _taken(node.body)
        elif isinstance(node, Branch):
            for _, body in node.arms:
                yield from _taken(body)


class _Writer:
    """The copies of one routine's constructs."""

    def __init__(self, program: Program, routine: Routine, edits: Edits) -> None:
        self.program = program
        self.routine = routine
        self.source = routine.source
        self.edits = edits
        self.in_c = routine.source.form is Form.C
        self.declared: set[str] = set()

    def write(self, construct: Construct | None, directives: Sequence[Replicate]) -> list[Problem]:
        """What is wrong, where nothing is written."""
        reason = self._unfit_construct(construct)
        if construct is None or reason is not None:
            return [directive.source.problem(reason or "") for directive in directives]
        problems: list[Problem] = []
        lengths: dict[str, tuple[str, Declaration]] = {}
        for directive in directives:
            for name in (name.key for name in directive.names):
                found = self._array(name, directive, construct)
                if isinstance(found, Problem):
                    problems.append(found)
                else:
                    lengths[name] = found
        if not problems:
            self._emit(construct, lengths)
            for directive in directives if self.in_c else ():
                source = directive.source
                begin = self.source.offset(source.position.line, source.position.column)
                self.edits.replace(begin, self.source.offset(source.end_line, source.end_column), "")
        return problems

    def _unfit_construct(self, construct: Construct | None) -> str | None:
        if construct is None or construct.directive.name not in _CONSTRUCTS:
            return "stands before no parallel region and no parallel loop"
        if construct.homing:
            return "REPLICATE with ON HOME, AFFINITY or NEST of the same loop is not supported"
        if self.program.called_inside(self.routine, regions=True) or self._is_nested(construct):
            return "copies are made in serial code, not inside another construct"
        if construct.directive.clause("allocate"):
            return "REPLICATE with ALLOCATE is not supported"
        return None

    def _array(
        self, name: str, directive: Replicate, construct: Construct
    ) -> tuple[str, Declaration] | Problem:
        """The size of an array in bytes, or why it cannot be replicated."""
        declaration = self.program.declaration(self.routine, name)
        wrong = self._unfit(name, declaration, construct)
        if wrong is not None or declaration is None:
            return directive.source.problem(wrong or "")
        for reference in references([construct]):
            if reference.name == name and (problem := self._misused(reference)) is not None:
                return problem
        written = self._written_elsewhere(name, construct)
        if written is not None:
            return directive.source.problem(written)
        length = self._bytes(name, declaration, [extent.text for extent in directive.extents])
        if length is None:
            return directive.source.problem(f"how long '{name}' is cannot be known here: say EXTENT")
        return length, declaration

    def _is_nested(self, construct: Construct) -> bool:
        return any(
            isinstance(node, Construct) and node is not construct and node.begin <= construct.begin < node.end
            for node in walk(self.routine.body)
        )

    def _unfit(self, name: str, declaration: Declaration | None, construct: Construct) -> str | None:
        if declaration is None:
            return f"'{name}' is not declared here"
        pointer = declaration.storage == "pointer" or is_pointer(self.routine, declaration)
        if not declaration.bounds and not pointer:
            return f"'{name}' is no array"
        hidden = hidden_in(construct, self.routine)
        for node in walk(construct.body):
            if isinstance(node, Construct):
                hidden |= hidden_in(node, self.routine)
        if name in hidden or name in self.routine.private:
            return f"'{name}' is each thread's own in the construct"
        if name in self.routine.equivalence:
            return f"'{name}' shares its memory with other names (EQUIVALENCE)"
        if self.in_c:
            return None
        if not declaration.type or declaration.type.startswith(("character", "type", "class")):
            return f"'{name}' is of no numeric type that is declared"
        if declaration.storage == "pointer" or "target" in declaration.attributes:
            return f"'{name}' may be reached by pointers"
        if declaration.storage == "dummy" and any(bound.upper is None for bound in declaration.bounds):
            return f"'{name}' may have gaps, or its size is not known: it needs bounds"
        return None

    def _misused(self, reference: Reference) -> Problem | None:
        """A reference in the construct that does more than read an element (Fortran: or all of them)."""
        text = self.source.text[reference.begin : reference.name_end]
        if reference.access is Access.READ and text.lower() == reference.name.lower():
            if not self.in_c or reference.subscripts:
                return None
            what = "is no element"
        elif reference.access is Access.READ:
            what = "stands in a macro"
        elif reference.access in (Access.WRITE, Access.UPDATE):
            what = "is written"
        else:
            what = "is passed on, and may be written"
        reason = f"'{reference.name}' {what} inside the construct for which it is replicated"
        return self.source.problem(reference.begin, reference.end, reason)

    def _written_elsewhere(self, name: str, inside: Construct | Loop) -> str | None:
        """Why procedures that are called inside may write the array under another name."""
        mine = self.program.resolve(self.routine, name)
        for owner, node in self.program.reached(self.routine, [inside]):
            local = all(place == self.routine.name for place, _ in mine) and mine
            for statement in statements([node]) if not local else ():
                unknown = set(statement.calls) - set(self.program.routines) - _HARMLESS
                if unknown:
                    return f"'{name}' may be written by {min(unknown)}, whose file is not given"
            if owner is self.routine:
                continue
            for reference in references([node]):
                if reference.access is not Access.READ and set(mine) & set(
                    self.program.resolve(owner, reference.name)
                ):
                    return f"'{name}' is written by {owner.name}, which is called here"
        return None

    def _bytes(self, name: str, declaration: Declaration, extents: Sequence[str]) -> str | None:
        if not self.in_c:
            return None if extents else size(name)
        return bytes_in_c(name, declaration, extents)

    # --- where the copies are made ------------------------------------------------------------------------

    def _place(self, name: str, construct: Construct) -> Node:
        """The outermost loop around the construct that is known not to write the array, or the construct."""
        place: Node = construct
        if self._has_other_names(name):
            return place
        around = [
            node
            for node in walk(self.routine.body)
            if isinstance(node, Loop) and node.begin < construct.begin < node.end
        ]
        for loop in reversed(around):
            if not self._leaves(name, loop):
                break
            place = loop
        return place

    def _has_other_names(self, name: str) -> bool:
        """May the array be written without being named?"""
        declaration = self.program.declaration(self.routine, name)
        mine = self.program.resolve(self.routine, name)
        local = all(owner == self.routine.name for owner, _ in mine)
        if declaration is None or declaration.storage in ("pointer", "dummy") or not local:
            return True
        every = [r for r in references(self.routine.body) if r.name == name]
        return any(r.access in (Access.OTHER, Access.ARGUMENT) or r.argument_of for r in every)

    def _leaves(self, name: str, loop: Loop) -> bool:
        written = any(r.name == name and r.access is not Access.READ for r in references([loop]))
        return not written and self._written_elsewhere(name, loop) is None

    # --- what is written ----------------------------------------------------------------------------------

    def _emit(self, construct: Construct, lengths: dict[str, tuple[str, Declaration]]) -> None:
        writer = FileWriter(self.source, self.edits, header="")
        if self.in_c:
            top = self.edits.lines_before(0)
            language = 'extern "C"' if self.source.cxx else "extern"
            lines = [line.replace("extern", language, 1) for line in _PROTOTYPES]
            self.edits.insert_lines(0, [line for line in lines if line not in top])
        for name, (length, declaration) in lengths.items():
            place = self._place(name, construct)
            writer.around(
                self.routine, place, place, [writer.call(f"homing_replicate({name}, {length})")], []
            )
            if not self.in_c:
                self._declare(writer, name, declaration)
            for reference in references([construct]):
                if reference.name == name:
                    self.edits.replace(reference.begin, reference.name_end, _copy(name))
        taken = [line for name, (_, one) in lengths.items() for line in self._taking(name, one)]
        if self.in_c:
            self._c(construct, taken)
        else:
            self._fortran(construct, taken, [_copy(name) for name in lengths])

    def _taking(self, name: str, declaration: Declaration) -> list[str]:
        if self.in_c:
            kind = f"const __typeof__({name}[0])*"
            return [f"{kind} const {_copy(name)} = ({kind})homing_replica({name});"]
        bounds = ", ".join(f"lbound({name}, {at + 1}):" for at in range(len(declaration.bounds)))
        return [
            "continue",  # a region that begins with a BLOCK would be the BLOCK alone
            "block",
            "  use, intrinsic :: iso_c_binding, only: c_f_pointer",
            f"  call c_f_pointer(homing_replica({name}), {_copy(name)}, shape({name}))",
            f"  {_copy(name)}({bounds}) => {_copy(name)}",
            "end block",
        ]

    def _declare(self, writer: FileWriter, name: str, declaration: Declaration) -> None:
        at = specifications(self.routine)
        if not self.declared:
            writer.put(at, _INTERFACE, at)
        if name not in self.declared:
            rank = ", ".join(":" for _ in declaration.bounds)
            line = f"{declaration.type}, pointer, contiguous :: {_copy(name)}({rank})"
            own = self.routine.declarations.get(name) is declaration
            # Before the array's own declaration all is known that its type is made of.
            before = self.source.line_start(declaration.statement_begin) if own else at
            writer.put(before, [line], before)
        self.declared.add(name)

    def _clauses(self, construct: Construct) -> tuple[str, str]:
        """Those of the region and those of the loop, as they are written."""
        clauses = construct.directive.clauses
        if construct.directive.name == "parallel":
            return " ".join(map(clause_text, clauses)), ""
        loop = [clause for clause in clauses if clause.name in _OF_LOOP]
        region = [clause_text(clause) for clause in clauses if clause not in loop]
        shared = sorted({name for clause in loop for name in _listed(construct, clause)})
        if shared:
            region.append(f"shared({', '.join(shared)})")
        return " ".join(region), " ".join(map(clause_text, loop))

    def _c(self, construct: Construct, taken: Sequence[str]) -> None:
        region, loop = self._clauses(construct)
        directive, body = construct.directive, construct.body[0]
        combined = directive.name != "parallel"
        if not combined:
            inside = isinstance(body, Branch) and self.source.text[body.begin] == "{"
            at = body.begin + 1 if inside else body.begin
            self.edits.replace(at, at, ("" if inside else "{") + " " + " ".join(taken) + " ")
            if not inside:
                self.edits.insert_lines(self.source.next_line(construct.end - 1), ["}"], first=True)
            return
        name = directive.name.removeprefix("parallel ").replace("do", "for")
        lines = [f"#pragma omp parallel {region}", "{", *taken, f"#pragma omp {name} {loop}"]
        self.edits.replace(directive.begin, directive.end, "\n".join(line.rstrip() for line in lines))
        self.edits.insert_lines(self.source.next_line(construct.end - 1), ["}"], first=True)

    def _fortran(self, construct: Construct, taken: Sequence[str], copies: Sequence[str]) -> None:
        region, loop = self._clauses(construct)
        directive = construct.directive
        indent = "      " if self.source.form is Form.FIXED else self.source.indent(directive.begin)
        head = "" if self.source.form is Form.FIXED else indent
        lines = [f"!$omp parallel {region} private({', '.join(copies)})", *(indent + line for line in taken)]
        combined = directive.name != "parallel"
        name = directive.name.removeprefix("parallel ")
        if combined:
            lines.append(f"{head}!$omp {name} {loop}".rstrip())
        pieces = [piece for line in lines for piece in wrap(line, self.source)]
        self.edits.replace(directive.begin, directive.end, "\n".join(pieces))
        if combined:
            ends = [f"!$omp end {name}", f"{head}!$omp end parallel"]
            if construct.closing is not None:
                self.edits.replace(construct.closing.begin, construct.closing.end, "\n".join(ends))
            else:
                ends[0] = head + ends[0]
                self.edits.insert_lines(self.source.next_line(construct.end - 1), ends, first=True)


def _copy(name: str) -> str:
    return f"hm_copy_{name}"


def _listed(construct: Construct, clause: Clause) -> set[str]:
    """The variables of a clause on data that the region has to share for the loop."""
    if clause.name not in ("firstprivate", "lastprivate", "linear"):
        return set()
    given = construct.directive.listed("shared")
    return {name for name in construct.directive.listed(clause.name) if name not in given}
