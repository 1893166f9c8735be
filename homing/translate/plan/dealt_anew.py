"""The distribution that REDISTRIBUTE gives an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.grids import Grids
from homing.translate.plan.templates import with_templates
from homing.translate.tree import Routine


def dealt_anew(
    array: Array,
    directive: d.Redistribute,
    grids: Grids,
    modules: Mapping[str, Routine],
    wrong: Callable[[d.Directive, str], None],
) -> Array | None:
    """The array with the distribution of the directive; None: there is none, and it is said."""
    if len(directive.formats) != array.rank:
        wrong(directive, f"'{directive.name}' has {array.rank} dimensions, not {len(directive.formats)}")
        return None
    distribute = d.Distribute(
        directive.source, directive.name, directive.formats, directive.onto, (), array.reshape
    )
    arrangements = {one.name.key: one for one in array.routine.directives if isinstance(one, d.Arrangement)}
    dimensions = grids.of(array.routine, distribute, {}, arrangements)
    if dimensions is None:
        return None
    if not any(one.distributed for one in dimensions):
        wrong(directive, f"'{directive.name}' would be cut nowhere, and one part would have all of it")
        return None
    dimensions = with_templates(array.routine, array.name, array.declaration, dimensions, modules)
    made = replace(array, dimensions=dimensions, shadow=[[0, 0] for _ in dimensions], linked=[], tied={})
    if array.given_shadow is not None and any(low or high for low, high in array.given_shadow):
        made.given_shadow = None  # it was declared for the other distribution
    return made
