"""What DISTRIBUTE says of each dimension, and the grid of parts that ONTO names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from homing.translate.directives import model as d
from homing.translate.plan.model import Dimension
from homing.translate.plan.reference_text import folded
from homing.translate.plan.templates import ends
from homing.translate.tree import (
    Routine,
)


class Grids:
    """For the directives of a program. wrong, note: where problems and notes go."""

    def __init__(
        self, wrong: Callable[[d.Directive, str], None], note: Callable[[d.Directive, str], None]
    ) -> None:
        self.wrong = wrong
        self.note = note

    def of(
        self,
        routine: Routine,
        distribute: d.Distribute,
        templates: dict[str, d.Template],
        arrangements: dict[str, d.Arrangement],
    ) -> list[Dimension] | None:
        grid = self._grid(routine, distribute, arrangements)
        if grid is None:
            return None
        template = templates.get(distribute.name.key)
        if template is not None and len(template.bounds) != len(distribute.formats):
            self.wrong(
                distribute,
                f"template '{distribute.name}' has {len(template.bounds)} dimensions, not "
                f"{len(distribute.formats)}",
            )
            return None
        dimensions = []
        taken = 0
        for index, format_ in enumerate(distribute.formats):
            if format_.kind is d.Kind.STAR:
                dimensions.append(Dimension(d.Kind.STAR))
                continue
            parts = grid[taken] if taken < len(grid) else ""
            taken += 1
            argument, sizes = "", ""
            texts = [folded(argument.text, routine) for argument in format_.arguments]
            if format_.kind is d.Kind.CYCLIC:
                argument = texts[0] if texts else "1"
            elif format_.kind is d.Kind.GEN_BLOCK:
                sizes = ", ".join(texts)
            made = Dimension(format_.kind, argument, sizes, parts=parts)
            if template is not None:
                lower, upper = ends(template.bounds[index], distribute.source.form.fortran, routine)
                word = f"{routine.name}/{distribute.name.key}/{index}"
                made = replace(made, template=word, lower=lower, upper=upper)
            dimensions.append(made)
        return dimensions

    def _grid(
        self, routine: Routine, distribute: d.Distribute, arrangements: dict[str, d.Arrangement]
    ) -> list[str] | None:
        """The extents of the grid of parts that ONTO names, as far as it gives them; None: it is wrong."""
        onto = distribute.onto
        count = sum(f.kind is not d.Kind.STAR for f in distribute.formats)
        if onto is None:
            return []
        if onto.arrangement is None:
            if len(onto.weights) != count:
                reason = f"ONTO has {len(onto.weights)} weights, {count} dimensions are distributed"
                self.wrong(distribute, reason)
                return None
            self.note(distribute, "ONTO's weights are ignored: the grid is chosen from the number of threads")
            return []
        arrangement = arrangements.get(onto.arrangement.key)
        if arrangement is None:
            self.wrong(distribute, f"no PROCESSORS or MEMORIES '{onto.arrangement}' is declared here")
            return None
        grid: list[str] = []
        for extent in arrangement.bounds:
            last = folded(extent.upper.text, routine)
            if last == "*":
                grid.append("")
            elif extent.lower is not None:
                grid.append(f"({last}) - ({folded(extent.lower.text, routine)}) + 1")
            else:
                grid.append(last)
        if arrangement.bounds and len(grid) != count:
            reason = f"'{onto.arrangement}' has {len(grid)} dimensions, {count} are distributed"
            self.wrong(distribute, reason)
            return None
        if not arrangement.memories:
            return grid
        self.note(
            distribute,
            "data are mapped to threads, not to memories: every thread of a memory gets a part of its own",
        )
        return []
