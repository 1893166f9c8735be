"""LASTPRIVATE: the part that runs the program's last iteration leaves its values to the others.

A part's own iterations come in the program's order, so the part that runs the last of all has its values when
it is through. It puts them into variables that all threads see; behind the loop they go where the program
wants them. A loop without iterations changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from homing.translate.affine import affine
from homing.translate.directives.model import Form
from homing.translate.front.implicit import declared
from homing.translate.plan.model import Follow, LastValues
from homing.translate.tree import Construct, Loop, Routine, walk

_SCALARS_ONLY = frozenset({"allocatable", "pointer", "dimension", "parameter"})


def last_values(
    routine: Routine, node: Construct, loop: Loop, follows: Mapping[str, Follow]
) -> LastValues | str | None:
    """What is to be done for a loop; or why it cannot be done; None: it has no LASTPRIVATE."""
    names = tuple(sorted(node.directive.listed("lastprivate")))
    if not names or loop.first is None or loop.last is None or loop.variable is None:
        return None
    if any((clause.text or "").partition(":")[1] for clause in node.directive.clause("lastprivate")):
        return "LASTPRIVATE(CONDITIONAL: ...) with distributed arrays is not supported"
    if set(follows) != {loop.variable}:
        return "LASTPRIVATE where iterations of several loops go to owners: several parts run the last one"
    if not node.parallel and routine.source.form is not Form.C:
        # Fortran makes counters of loops in a region private.
        counters = {inner.variable for inner in walk([loop]) if isinstance(inner, Loop)}
        for name in names:
            if name in counters:
                return f"LASTPRIVATE({name}) of a loop's own counter: say it at a PARALLEL DO"
    follow = follows[loop.variable]
    step = affine(loop.step)
    if step.terms or step.constant == 0:
        return "LASTPRIVATE of a loop whose step is no number"
    if step.constant < 0 and follow.dealt.cyclic:
        return "LASTPRIVATE where a loop goes down through a CYCLIC dimension, in which a part goes up"
    for name in names:
        found = declared(routine, name)
        if found is None:
            return f"LASTPRIVATE({name}): '{name}' is not declared here"
        if found.bounds or found.attributes & _SCALARS_ONLY:
            return f"LASTPRIVATE({name}): '{name}' is not a plain variable"
        if routine.source.form is not Form.C and "(:)" in found.type.replace(" ", ""):
            return f"LASTPRIVATE({name}): '{name}' is not a plain variable"
    first, last, number = loop.first.text, loop.last.text, step.constant
    if abs(number) == 1:
        final = last
    elif number > 0:
        final = f"({first}) + (({last}) - ({first}))/{number}*{number}"
    else:
        final = f"({first}) - (({first}) - ({last}))/{-number}*{-number}"
    long = "" if routine.source.form is not Form.C else "(long)"
    counted = f"{long}({last}) {'>=' if number > 0 else '<='} {long}({first})"
    copied = (loop.variable, *node.directive.listed("firstprivate"))
    copies = tuple(name for name in names if name not in copied)
    return LastValues(names, copies, loop.variable, first, loop.step, follow, final, counted)
