"""UPMlib's calls declared where Fortran makes them: arrays of several types go to one procedure, and sizes
may be larger than default integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homing.translate.targets.upm.writer import FileWriter
from homing.translate.tree import Declaration, Routine

_MODULE = "homing"  # declares them all
_REGISTRATION = "upmlib_memrefcnt"


def specifications(routine: Routine) -> int:
    """Where a specification can be put: before the first declaration, or where the last would be."""
    begins = [one.statement_begin for one in routine.declarations.values()]
    begins += [one.begin for one in routine.functions.values()]
    inside = [begin for begin in begins if routine.head_end <= begin < routine.declarations_end]
    return routine.source.line_start(min(inside)) if inside else routine.declarations_end


def uses_module(routine: Routine) -> bool:
    """Does the routine, or one around it, use the module that declares the calls?"""
    scope: Routine | None = routine
    while scope is not None:
        if _MODULE in scope.uses:
            return True
        scope = scope.parent
    return False


def bytes_in_c(name: str, declaration: Declaration, extents: Sequence[str]) -> str | None:
    """A C array's size in bytes, by the EXTENT of a directive where there is one; None: it is not known."""
    if extents:
        product = " * ".join(f"(unsigned long)({extent})" for extent in extents)
        return f"{product} * sizeof {name}{'[0]' * len(extents)}"
    return None if declaration.storage in ("pointer", "dummy") else f"sizeof {name}"


def declare(writer: FileWriter, routine: Routine, names: Iterable[str]) -> None:
    """Interfaces of the procedures that are called in the routine."""
    if uses_module(routine):
        return
    lines = ["interface"]
    for name in sorted(set(names)):
        if name == _REGISTRATION:
            lines += [
                f"  subroutine {name}(start, bytes) bind(c)",
                "    use, intrinsic :: iso_c_binding, only: c_size_t",
                "    type(*), dimension(*), intent(in) :: start",
                "    integer(c_size_t), value :: bytes",
            ]
        else:
            lines.append(f"  subroutine {name}() bind(c)")
        lines.append("  end subroutine")
    at = specifications(routine)
    like = routine.body[0].begin if routine.body else at
    writer.put(at, [*lines, "end interface"], like)


def size(name: str) -> str:
    """An array's size in bytes as Fortran passes it."""
    return f"storage_size({name}, 8)/8*size({name}, kind=8)"


def called(lines: Iterable[str]) -> set[str]:
    """The names of UPMlib's procedures that lines of Fortran call."""
    found = set()
    for line in lines:
        before, _, behind = line.partition("call ")
        if behind and not before.strip():
            found.add(behind.partition("(")[0])
    return found
