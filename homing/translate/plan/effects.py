"""What statements do beyond the variables of their own thread: writes that others see, input and output, the
end of the program. Called procedures count, as far as the files given show them.

--to mpi asks: what one rank does in its own iterations, the other ranks never see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from homing.translate.directives.model import Form
from homing.translate.front.c_computes import COMPUTES
from homing.translate.front.intrinsics import INTRINSICS
from homing.translate.plan.clauses import counters
from homing.translate.plan.derived_types import DerivedTypes
from homing.translate.plan.internal_files import internal_file
from homing.translate.plan.reached import meant
from homing.translate.tree import (
    CLASSES,
    Access,
    Construct,
    Declaration,
    Kind,
    Loop,
    Node,
    Reference,
    Routine,
    Statement,
    Unit,
    by_pointers_alone,
    statements,
    walk,
)


class What(Enum):
    WRITE = "writes"
    IO = "reads or writes files"
    END = "ends the program"
    UNKNOWN = "calls what is not in the files given"
    POINTER = "calls what a pointer or an argument means"


#: Behind these may be anything.
UNSEEN = (What.UNKNOWN, What.POINTER)


@dataclass(frozen=True)
class Act:
    """Something that others may see; begin and end: where it is done in the nodes that were asked about.
    through: the procedure that does it, if it is not done there. pointer: in memory that a pointer of the
    thread's own means."""

    what: What
    name: str
    begin: int
    end: int
    through: str | None = None
    reference: Reference | None = None
    pointer: bool = False


@dataclass
class _Summary:
    """What a call does: which arguments it writes, and what else."""

    arguments: set[int] = field(default_factory=set)
    acts: dict[tuple[What, str], None] = field(default_factory=dict)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_C_HARMLESS = COMPUTES | _words("""
    __assert_fail aligned_alloc assert calloc free malloc realloc std::exchange std::move std::swap
""")
#: They write what their first argument means, and nothing else.
_C_INTO_FIRST = _words("memcpy memmove memset snprintf sprintf strcat strcpy strncpy")
_C_ENDS = _words("_Exit _exit abort exit quick_exit")
_C_IO = _words("""
    close fclose fflush fgetc fgets fopen fprintf fputc fputs fread freopen fscanf fseek ftell fwrite getc
    getchar gets open perror printf putc putchar puts read remove rename rewind scanf std::cin std::cout
    system tmpfile ungetc vfprintf vprintf write
""")
#: Intrinsic subroutines that do no more than set their arguments.
_FORTRAN_HARMLESS = _words("""
    c_f_pointer cpu_time date_and_time get_command get_command_argument get_environment_variable ieee_get_flag
    ieee_set_flag move_alloc mvbits system_clock
""")
_WRITES = (Access.WRITE, Access.UPDATE)


class Effects:
    """What the procedures of a program do; each is looked at once."""

    def __init__(self, routines: Mapping[str, Routine], units: Sequence[Unit], types: DerivedTypes) -> None:
        self.routines = routines
        self._types = types
        scopes = [unit.routines[0] for unit in units if unit.routines]
        self._classes = any(one.apart is not None and one.apart.used for one in scopes)
        self._known: dict[int, _Summary] = {}

    def of(self, routine: Routine) -> _Summary:
        known = self._known.get(id(routine))
        if known is not None:
            return known
        made = self._known[id(routine)] = _Summary()  # a recursive call adds nothing
        copies = list(_copies(routine))
        for act in self.acts(routine, routine.body):
            if act.reference is not None and any(
                begin <= act.reference.begin < end and act.name in names for begin, end, names in copies
            ):
                continue
            index = _argument(routine, act)
            if index is not None:
                made.arguments.add(index)
            elif act.pointer or act.reference is None or _outside(routine, act.reference):
                made.acts[act.what, act.name] = None
        return made

    def acts(self, routine: Routine, nodes: Sequence[Node]) -> Iterator[Act]:
        """Everything that the nodes write, and what else they do; the caller knows what is private."""
        for node in walk(list(nodes)):
            if isinstance(node, Loop) and node.variable:
                place = Reference(node.variable, node.begin, node.head.end, node.head.end, None, Access.WRITE)
                yield Act(What.WRITE, node.variable, node.begin, node.head.end, reference=place)
        for statement in statements(list(nodes)):
            yield from self._statement(routine, statement)

    def _statement(self, routine: Routine, statement: Statement) -> Iterator[Act]:
        here = statement.begin, statement.end
        c = routine.source.form is Form.C
        internal = None if c else internal_file(routine, statement, self._types)
        if internal is not None:
            if statement.kind is Kind.OUTPUT:
                yield Act(What.WRITE, internal.name, *here, reference=internal)
        elif statement.kind in (Kind.INPUT, Kind.OUTPUT):
            yield Act(What.IO, statement.text.split("(")[0].strip(), *here)
        if statement.jump == "stop":
            yield Act(What.END, "stop", *here)
        for reference in statement.references:
            if reference.access in _WRITES or (
                not reference.only_read
                and (reference.access is Access.OTHER or self._written_by_callee(routine, reference, c))
            ):
                yield _write(routine, statement, reference)
        for name, where in self._called(routine, statement):
            callee = self.routines.get(name)
            if callee is not None and callee is not routine:
                for what, which in self.of(callee).acts:
                    yield Act(what, which, *where, through=name)
            elif callee is None:
                by_pointer = name.startswith("*") or (name == CLASSES and by_pointers_alone(statement))
                if by_pointer and self._harmless(routine, statement):
                    continue
                if name.startswith("*") or _any_procedure(routine, name):
                    yield Act(What.POINTER, name.removeprefix("*"), *where)
                elif not _quiet(routine, name):
                    yield from _unknown(name, where, c)

    def _harmless(self, routine: Routine, statement: Statement) -> bool:
        """C: do all functions do nothing but compute a value that the statement may call through pointers:
        those of which the files take the address, of these types? dlsym finds others, and so does C++'s code
        of classes."""
        files = {id(one.source): one.source for one in self.routines.values()}.values()
        if not statement.through or "" in statement.through or self._classes:
            return False
        if any("dlsym" in one.text for one in files):
            return False
        names = meant(statement.through, self.routines)
        for name in names:
            callee = self.routines.get(name)
            known = self.of(callee) if callee is not None else None
            if known.acts or known.arguments if known else not (name in COMPUTES or _quiet(routine, name)):
                return False
        return bool(names)

    def _written_by_callee(self, routine: Routine, reference: Reference, c: bool) -> bool:
        name = reference.argument_of or ""
        callee = self.routines.get(name)
        if callee is not None:
            return reference.argument_index in self.of(callee).arguments
        if reference.access is not Access.ARGUMENT or _quiet(routine, name):
            return False
        if c and name in _C_HARMLESS | _C_IO | _C_ENDS:
            return name in ("fread", "fgets", "scanf", "fscanf", "gets")
        return not (c and name in _C_INTO_FIRST and reference.argument_index > 0)

    def _called(self, routine: Routine, statement: Statement) -> Iterator[tuple[str, tuple[int, int]]]:
        found: dict[str, tuple[int, int]] = {}
        for name in statement.calls:
            found.setdefault(name, (statement.begin, statement.end))
        for reference in statement.references:
            if reference.name in self.routines and reference.name not in routine.declarations:
                found.setdefault(reference.name, (reference.begin, reference.end))
            elif reference.name in self.routines and reference.subscripts is not None:
                if not routine.declarations[reference.name].bounds:
                    found.setdefault(reference.name, (reference.begin, reference.end))
            elif _unknown_function(routine, reference):
                found.setdefault(reference.name, (reference.begin, reference.end))
        yield from found.items()


def _copies(routine: Routine) -> Iterator[tuple[int, int, set[str]]]:
    """The OpenMP constructs of a routine, with the variables of which each thread has a copy there."""
    for node in walk(routine.body):
        if isinstance(node, Construct):
            names = node.directive.listed("private", "firstprivate")
            yield node.begin, node.end, names | (set(counters(node)) if node.worksharing else set())


def _quiet(routine: Routine, name: str) -> bool:
    """C: is it a function of a header that writes nothing, nor does anything that it calls?"""
    known = routine.parent.quiet if routine.parent is not None else routine.quiet
    waiting, seen = [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one in seen or (seen and one in COMPUTES):
            continue
        seen.add(one)
        if one not in known:
            return False
        waiting += known[one]
    return True


def _unknown(name: str, where: tuple[int, int], c: bool) -> Iterator[Act]:
    if name.startswith("omp_"):
        return
    if c and name in _C_ENDS:
        yield Act(What.END, name, *where)
    elif c and name in _C_IO:
        yield Act(What.IO, name, *where)
    elif name not in (_C_HARMLESS | _C_INTO_FIRST if c else _FORTRAN_HARMLESS | INTRINSICS):
        yield Act(What.UNKNOWN, name, *where)


def _any_procedure(routine: Routine, name: str) -> bool:
    """Fortran: is it a procedure pointer, or a dummy procedure?"""
    found = routine.lookup(name) if routine.source.form is not Form.C else None
    declared = found[1] if found else None
    if declared is not None and declared.type.lower().startswith("procedure"):
        return "pointer" in declared.attributes or name in routine.arguments
    return routine.source.form is not Form.C and name in routine.arguments


def _unknown_function(routine: Routine, reference: Reference) -> bool:
    """Fortran: a scalar with a list of arguments, which is no piece of a text and no statement function."""
    if routine.source.form is Form.C or reference.subscripts is None or reference.intrinsic:
        return False
    found = routine.lookup(reference.name)
    if found is None:
        return reference.name in routine.arguments or _has_interface(routine, reference.name)
    if found[1].bounds or found[1].type.lower().startswith("character"):
        return False
    return reference.name not in routine.functions


def _has_interface(routine: Routine, name: str) -> bool:
    """Fortran: is it a function by an INTERFACE block, which declares no variable?"""
    scope: Routine | None = routine
    while scope is not None:
        text = scope.source.text[scope.begin : scope.declarations_end]
        if re.search(rf"\binterface\b.*\bfunction\s+{re.escape(name)}\b", text, re.I | re.S):
            return True
        scope = scope.parent
    return False


def _declaration(routine: Routine, name: str) -> Declaration | None:
    return routine.declarations.get(name)


def _write(routine: Routine, statement: Statement, reference: Reference) -> Act:
    pointer = False
    if routine.source.form is Form.C:
        pointer = _through_pointer(routine, reference)
    return Act(
        What.WRITE, reference.name, reference.begin, reference.end, reference=reference, pointer=pointer
    )


def _through_pointer(routine: Routine, reference: Reference) -> bool:
    """C: does it write what a variable of the routine's own points to?"""
    declared = routine.declarations.get(reference.name)
    if declared is None or declared.storage != "pointer":
        return False
    if re.match(r"\(?[\w\s*()]*\b(malloc|calloc|alloca|aligned_alloc|new)\b", declared.initial or ""):
        return False
    text = routine.source.text
    before, behind = text[: reference.begin].rstrip(" (\t"), text[reference.name_end : reference.name_end + 9]
    return reference.subscripts is not None or before.endswith("*") or behind.lstrip(" )").startswith("->")


def _argument(routine: Routine, act: Act) -> int | None:
    """Which of the routine's arguments it writes, as the caller sees it."""
    if act.reference is None or act.what is not What.WRITE or act.name not in routine.arguments:
        return None
    declared = routine.declarations.get(act.name)
    if routine.source.form is Form.C:
        text = routine.source.text[declared.statement_begin : declared.statement_end] if declared else "*"
        if "*" not in text and "[" not in text and "&" not in text:
            return None  # passed by value
    return routine.arguments.index(act.name)


def _implicit(routine: Routine, name: str) -> bool:
    """Is it a variable of a call's own that no statement declares, here or in a scope around it?"""
    if routine.saves or any(said == name for said, _ in routine.said):
        return False
    scope: Routine | None = routine
    while scope is not None:
        if scope.implicit_none or scope.uses or name in scope.declarations:
            return False
        scope = scope.parent
    return True


def _outside(routine: Routine, reference: Reference) -> bool:
    """Is it a variable that outlives the call, or one of another scope?"""
    name = reference.name
    declared = routine.declarations.get(name)
    if declared is None:
        return not (_implicit(routine, name) or name in (routine.result, routine.name))
    if name in routine.arguments:
        return False
    kept = "save" in declared.attributes or declared.storage == "common"
    initial = declared.initial is not None and routine.source.form is not Form.C
    pointer = declared.storage == "pointer" and routine.source.form is not Form.C
    return kept or initial or pointer


def others(acts: Iterator[Act], seen: Callable[[Reference], bool]) -> Iterator[Act]:
    """Of the acts those that concern others; seen: is the variable one that other threads see?"""
    for act in acts:
        if act.pointer or act.reference is None or seen(act.reference):
            yield act
