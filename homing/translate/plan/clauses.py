"""What becomes of each OpenMP clause on a construct with distributed arrays: one table, for all targets.

A clause is KEPT (written on the translated directive), DONE (not written: what it asks for holds anyway, or
is no more than a hint), or refused with a reason. A clause that the table does not know is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from homing.translate.openmp import clause_text
from homing.translate.tree import Clause, Construct, Loop, OpenMP, references, walk


class Place(Enum):
    """Which directive the clause stands on."""

    REGION = "parallel"
    LOOP = "loop"
    SINGLE = "single"
    THREADS = "loop on threads"  # AFFINITY(...) = THREAD(...)


@dataclass(frozen=True)
class Fate:
    """reason: why the clause is refused, for the user."""

    kept: bool = False
    reason: str | None = None


KEPT = Fate(kept=True)
DONE = Fate()


def refused(reason: str) -> Fate:
    return Fate(reason=reason)


_LAST = refused("parts run their iterations at the same time, and none knows which one is the program's last")
_ORDER = refused("parts run their iterations at the same time, not in the program's order")
_LINEAR = refused("a part does not begin with the first iteration, from which the value would be counted")
_TEAM = "arrays are distributed over all threads: set OMP_NUM_THREADS instead"

TARGETS = ("spmd", "mpi", "pages", "upm")
_Row = tuple[Fate, Fate, Fate, Fate]


def _row(parts: Fate, pages: Fate | None = None) -> _Row:
    """--to spmd and mpi; --to pages (the same if it is not given); --to upm changes no directive."""
    return (parts, parts, parts if pages is None else pages, KEPT)


TABLE: dict[Place, dict[str, _Row]] = {
    # `parallel`, and `parallel do` as far as the clause is not one of the loop. --to pages touches no region
    # but a combined one, whose loop keeps it.
    Place.REGION: {
        "allocate": _row(KEPT),
        "copyin": _row(KEPT),
        "default": _row(KEPT),
        "firstprivate": _row(KEPT),
        "if": _row(DONE, KEPT),
        "num_threads": _row(DONE, KEPT),  # of `parallel` alone: problems()
        "private": _row(KEPT),
        "proc_bind": _row(KEPT),
        "reduction": _row(KEPT),
        "shared": _row(KEPT),
    },
    Place.LOOP: {
        "affinity of sgi": _row(DONE),
        "aligned": _row(DONE),
        "allocate": _row(DONE, KEPT),
        "collapse": _row(DONE),
        "firstprivate": _row(KEPT),
        "lastprivate": _row(DONE),  # see last_values.py
        "linear": _row(_LINEAR, KEPT),
        "nontemporal": _row(DONE),
        "nowait": _row(DONE),
        "order": _row(DONE),
        "ordered": _row(_ORDER, KEPT),  # --to pages leaves the loop as it is
        "private": _row(KEPT),
        "reduction": _row(KEPT),
        "safelen": _row(DONE),
        "schedule": _row(DONE),
        "simdlen": _row(DONE),
    },
    # SINGLE, MASTER, MASKED. Those with clauses on data stay constructs, on the gathered arrays.
    Place.SINGLE: {
        "allocate": _row(KEPT),
        "copyprivate": _row(KEPT),
        "filter": _row(KEPT),
        "firstprivate": _row(KEPT),
        "nowait": _row(DONE, KEPT),
        "private": _row(KEPT),
    },
    Place.THREADS: {
        "affinity of sgi": _row(DONE),
        "aligned": _row(DONE),
        "allocate": _row(KEPT),
        "collapse": _row(refused("AFFINITY(...) = THREAD(...) goes with the outer loop alone")),
        "copyin": _row(KEPT),
        "default": _row(KEPT),
        "firstprivate": _row(KEPT),
        "if": _row(KEPT),
        "lastprivate": _row(_LAST),
        "linear": _row(_LINEAR),
        "nontemporal": _row(DONE),
        "nowait": _row(KEPT),
        "num_threads": _row(KEPT),
        "order": _row(DONE),
        "ordered": _row(_ORDER),
        "private": _row(KEPT),
        "proc_bind": _row(KEPT),
        "reduction": _row(KEPT),
        "safelen": _row(DONE),
        "schedule": _row(DONE),
        "shared": _row(KEPT),
        "simdlen": _row(DONE),
    },
}
#: Clauses that name variables, each of which gets copies.
ON_DATA = (
    "copyin", "copyprivate", "firstprivate", "lastprivate", "linear", "private", "reduction",
)  # fmt: skip
#: Of these, what a condition in place of a SINGLE construct could not keep.
OF_ONE_THREAD = ("allocate", "copyprivate", "filter", "firstprivate", "private")


def fate(clause: Clause, construct: OpenMP, place: Place, target: str) -> Fate:
    """What becomes of a clause of a construct. A combined directive has the clauses of both its parts."""
    column = TARGETS.index(target)
    places = [place]
    if construct.name.split()[:1] == ["parallel"] and place in (Place.REGION, Place.LOOP):
        other = Place.LOOP if place is Place.REGION else Place.REGION
        places = [place, other] if "do" in construct.name.split() else [Place.REGION]
    for one in places:
        row = TABLE[one].get(clause.name)
        if row is not None:
            found = row[column]
            modifier = _modifier(clause)
            if modifier and target != "upm":
                return refused(f"its modifier {modifier.upper()} is not kept")
            return found
    return refused("not known here")


def _modifier(clause: Clause) -> str | None:
    """INSCAN and TASK of a reduction: of other constructs inside the loop."""
    if clause.name != "reduction":
        return None
    match = re.match(r"\s*(inscan|task)\s*,", clause.text or "", re.IGNORECASE)
    return match[1] if match else None


def problems(node: Construct, place: Place, target: str) -> Iterator[tuple[Clause, str]]:
    """The construct's clauses that are refused, and why."""
    clauses = [*node.directive.clauses, *(node.closing.clauses if node.closing else [])]
    for clause in clauses:
        reason = fate(clause, node.directive, place, target).reason
        if reason is not None:
            name = clause.name.upper()
            yield clause, f"{name} with distributed arrays is not supported: {reason}"
        asks = not node.worksharing or _asks_for_threads(node)
        if clause.name == "num_threads" and place is Place.REGION and target in ("spmd", "mpi") and asks:
            yield clause, f"NUM_THREADS with distributed arrays is not supported: {_TEAM}"
        if clause.name == "if" and target in ("spmd", "mpi") and _asks_for_threads(node):
            yield clause, "IF is dropped, as every part needs its thread, but the region asks for threads"


def _asks_for_threads(node: Construct) -> bool:
    names = {"omp_get_thread_num", "omp_get_num_threads", "omp_in_parallel"}
    if any(reference.name in names for reference in references([node])):
        return True
    return any(names & set(getattr(inner, "calls", ())) for inner in walk([node]))


def kept(directive: OpenMP, place: Place, target: str) -> list[Clause]:
    """The clauses that are written on the translated directive."""
    return [one for one in directive.clauses if fate(one, directive, place, target).kept]


def kept_texts(directive: OpenMP, place: Place, target: str) -> list[str]:
    """The same, as they are written."""
    return [clause_text(one) for one in kept(directive, place, target)]


def without_simd(directive: OpenMP) -> str:
    """The directive's name: a loop over parts calls functions."""
    return directive.name.removesuffix(" simd")


def counters(node: Construct) -> list[str]:
    """Variables of the loops that COLLAPSE (or ORDERED) names: private, whoever declared them."""
    number = 1
    for clause in node.directive.clause("collapse"):
        text = (clause.text or "").strip()
        number = max(number, int(text) if text.isdecimal() else 1)
    found = []
    loop = node.body[0] if node.body else None
    while number and isinstance(loop, Loop) and loop.variable:
        found.append(loop.variable)
        below = [inner for inner in loop.body if isinstance(inner, Loop)]
        loop, number = (below[0] if len(below) == 1 else None), number - 1
    return found


def counters_apart(region: Construct) -> frozenset[str]:
    """Fortran: counters of nothing but loops that are shared out, whose names mean another variable in the
    rest of the region: one that it shares or gives each thread."""
    nodes = list(walk(region.body))
    of_loops: dict[str, list[Loop]] = {}
    for loop in (one for one in nodes if isinstance(one, Loop)):
        of_loops.setdefault(loop.variable or "", []).append(loop)
    shared_out = [one for one in nodes if isinstance(one, Construct) and one.worksharing]
    named = {name for one in shared_out for name in counters(one)}
    named -= {
        name
        for name, loops in of_loops.items()
        if any(not any(one.begin <= loop.begin < one.end for one in shared_out) for loop in loops)
    }

    def counted(name: str, at: int) -> bool:
        return any(loop.begin <= at < max(loop.end, loop.head.end) for loop in of_loops[name])

    elsewhere = (one for one in references(region.body) if one.name in named)
    return frozenset(one.name for one in elsewhere if not counted(one.name, one.begin))


def shares_all(directive: OpenMP) -> bool:
    """Are variables that the directive does not list shared?"""
    return all((one.text or "").strip().lower() == "shared" for one in directive.clause("default"))
