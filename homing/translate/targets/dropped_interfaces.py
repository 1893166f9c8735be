"""Interface bodies of the program's own external procedures that get distributed arrays: they lack layouts.
Where a procedure can be called without one, it is left out, as the user could have done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.code_text import edited
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.interfaces import bodies
from homing.translate.source import SourceFile
from homing.translate.targets.clones import needs_interface
from homing.translate.tree import Routine, Unit, references

_PLAIN = re.compile(r"[ \t]*interface[ \t]*(?:!.*)?$", re.MULTILINE | re.IGNORECASE)
_END = re.compile(r"^[ \t]*end[ \t]*(?:subroutine\b.*)?$", re.MULTILINE | re.IGNORECASE)
_SPECIAL = re.compile(r"\b(?:elemental|bind)\b", re.IGNORECASE)


def without_interfaces(units: Sequence[Unit], distributions: Distributions) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence."""
    every = [routine for unit in units for routine in unit.routines]
    found = {}
    for index, unit in enumerate(units):
        source = unit.source
        made = edited(
            source.text,
            (
                (begin, end, "\n" * source.text.count("\n", begin, end))  # lines keep their numbers
                for begin, end in _ranges(unit, units, every, distributions)
            ),
        )
        if made is not None:
            found[index] = SourceFile(source.path, made, source.form, source.fixed_columns, marked=True)
    return found


def _ranges(
    unit: Unit, units: Sequence[Unit], every: Sequence[Routine], distributions: Distributions
) -> Iterator[tuple[int, int]]:
    """Where the bodies that can go stand in a file."""
    text = unit.source.text
    for block, body in bodies(unit, units, distributions.of):
        head, name = body.start(), body[1].lower()
        callee = distributions.routines[name]
        end = _END.search(text, unit.source.next_line(head))
        if end is None or not _PLAIN.match(text, block) or needs_interface(callee, every):
            continue
        passed = any(one.name == name for routine in every for one in references(routine.body))
        named = re.search(rf"\bprocedure\s*\(\s*{name}\s*\)", text, re.IGNORECASE)
        if not passed and not named and not _SPECIAL.search(text, head, unit.source.next_line(head)):
            yield head, end.end()
