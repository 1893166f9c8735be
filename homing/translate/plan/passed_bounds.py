"""Fortran: do a dummy's bounds mean the elements that they mean in the array that is passed?

Parts have the indices of what is passed. A dummy that begins elsewhere, or is shorter in another dimension
than the last, means other elements by its subscripts; one that is shorter in the last means fewer elements by
its name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

from homing.translate.affine import affine
from homing.translate.plan.array import Array, Unsure
from homing.translate.plan.count import constants, number
from homing.translate.plan.reference_text import folded
from homing.translate.tree import Access, Bound, Kind, Routine, Unit, references, statements


def compared(
    array: Array,
    callee: Routine,
    dummy: str,
    units: Sequence[Unit],
    of: Callable[[Routine], dict[str, Array]],
    procedures: Container[str],
) -> Unsure | str:
    """What has to be compared when the program runs, or how the bounds differ."""
    unsure = Unsure()
    declared = callee.declarations[dummy].bounds
    known, its_known = constants(array.routine), constants(callee)
    for index, (mine, its) in enumerate(zip(array.declaration.bounds, declared, strict=False)):
        begin = _begins(array, index, units, of)
        first = number(folded(its.lower, callee), its_known)
        at = number(begin, known) if begin is not None else None
        if at is None or first is None:
            unsure.begins.add(index)
        elif at != first:
            return (
                f"dimension {index + 1} of '{dummy}' in '{callee.name}' begins at {its.lower}, that of "
                f"'{array.name}' at {begin}: declare it with that first index"
            )
        last = index == len(declared) - 1
        if its.upper is None or its.deferred or (last and not _named_alone(callee, dummy, procedures)):
            continue
        end = number(folded(mine.upper, array.routine), known) if mine.upper and not mine.deferred else None
        its_end = number(folded(its.upper, callee), its_known)
        if end is None or its_end is None:
            unsure.ends.add(index)
        elif end != its_end:
            return (
                f"dimension {index + 1} of '{dummy}' in '{callee.name}' ends at {its.upper}, that of "
                f"'{array.name}' at {mine.upper}: declare it with that last index"
            )
    return unsure


def checkable(bound: str, arrays: Container[str]) -> bool:
    """Can a bound be evaluated when the procedure begins: does it ask for no distributed array?"""
    return not any(name in arrays for name in affine(bound).names)


def _begins(
    array: Array, index: int, units: Sequence[Unit], of: Callable[[Routine], dict[str, Array]]
) -> str | None:
    """The lowest index of a dimension, as far as it is known: ALLOCATE statements say it, too."""
    bound: Bound = array.declaration.bounds[index]
    if not bound.deferred or array.declaration.storage != "allocatable":
        return folded(bound.lower, array.routine)
    found: set[str | None] = set()
    for unit in units:
        for routine in unit.routines:
            if of(routine).get(array.name) is array:
                found |= set(_allocated_from(routine, array.name, index))
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and not affine(only).terms else None


def _allocated_from(routine: Routine, name: str, index: int) -> Iterator[str | None]:
    """The lowest index of a dimension where ALLOCATE statements give one; None: they do not say it."""
    for statement in statements(routine.body):
        for reference in statement.references if statement.kind is Kind.ALLOCATE else ():
            if reference.name != name or reference.access is not Access.WRITE:
                continue
            if reference.subscripts is None or index >= len(reference.subscripts):
                yield None
                continue
            one = reference.subscripts[index]
            yield (one.low if one.section else "1")


def _named_alone(callee: Routine, dummy: str, procedures: Container[str]) -> bool:
    """Does the procedure mean all of the array's last dimension somewhere, but by passing it on?"""
    for reference in references(callee.body):
        if reference.name != dummy:
            continue
        if reference.subscripts is None:
            if reference.argument_of is None or reference.argument_of not in procedures:
                return True
        elif reference.subscripts and (last := reference.subscripts[-1]).section and last.high is None:
            return True
    return False
