"""Constructs that work on whole arrays: ORDERED loops, SECTIONS and WORKSHARE give parts nothing to share.

A PARALLEL construct of this kind stays what it is, on the gathered arrays (with --to mpi in each rank).
Inside a region, one thread does the construct's work on the gathered arrays, in the program's order.
"""

from __future__ import annotations

from homing.translate.plan import clauses as table
from homing.translate.tree import Construct, OpenMP

#: Clauses of a construct that a SINGLE construct in its place keeps, or does not need.
_SINGLE_KEEPS = frozenset({"private", "firstprivate", "nowait", "ordered", "schedule", "collapse"})
#: Directives that mean nothing to one thread.
OF_MANY = frozenset({"section", "ordered"})


def whole(construct: Construct) -> str | None:
    """Which kind of construct is it, if it is one of these?"""
    words = construct.directive.name.split()
    for kind in ("sections", "workshare"):
        if words in ([kind], ["parallel", kind]):
            return kind.upper()
    ordered = construct.directive.clause("ordered")
    if construct.worksharing and ordered and set(words) <= {"parallel", "do", "simd"}:
        return "ORDERED" if ordered[0].text is None else None
    return None


def lists_arrays(directive: OpenMP, arrays: set[str]) -> bool:
    """Does a clause ask for copies of a distributed array?"""
    return bool(directive.listed(*table.ON_DATA) & arrays)


def one_thread_can(construct: Construct) -> bool:
    """Do the clauses stay what they are in a SINGLE construct?"""
    clauses = [*construct.directive.clauses, *(construct.closing.clauses if construct.closing else [])]
    return all(clause.name in _SINGLE_KEEPS for clause in clauses)
