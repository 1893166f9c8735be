"""Fortran's PUBLIC and PRIVATE: which names of a module those that use it do not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from homing.translate.affine import names_in
from homing.translate.plan.array import Array
from homing.translate.tree import Routine, Unit

_MORE = re.compile(r"&[ \t]*(?:![^\n]*)?\n(?:[ \t]*(?:![^\n]*)?\n)*[ \t]*&?|\n {5}[^\s0]")
#: Whose components have a PRIVATE of their own.
_TYPE = re.compile(r"^[ \t]*type\b(?![ \t]*\()[^\n]*$.*?^[ \t]*end[ \t]*type\b", re.MULTILINE | re.DOTALL)


class NotPublic:
    """Is a name of a module hidden from those that use it?"""

    def __init__(self, module: Routine) -> None:
        self.module = module
        text = module.source.text[module.begin : module.body_end or module.end].lower()
        text = _TYPE.sub("", _MORE.sub("", text))
        self.default = re.search(r"(?:^|;)[ \t]*private[ \t]*(?:!.*)?(?:$|;)", text, re.MULTILINE) is not None
        self.public = {
            name.strip()
            for found in re.finditer(r"(?:^|;)[ \t]*public\b[ \t]*(?:::)?([^\n!;]*)", text, re.MULTILINE)
            for name in found[1].split(",")
        }

    def __call__(self, name: str) -> bool:
        declaration = self.module.declarations.get(name)
        attributes = declaration.attributes if declaration is not None else frozenset()
        return "private" in attributes or (
            self.default and "public" not in attributes and name not in self.public
        )


def used_first(units: Sequence[Unit], modules: Mapping[str, Routine]) -> Iterator[Routine]:
    """All routines: each behind the modules that it uses, and behind the scope around it."""
    done: set[int] = set()

    def visit(routine: Routine) -> Iterator[Routine]:
        if id(routine) in done:
            return
        done.add(id(routine))
        before = [modules[name] for name in routine.uses if name in modules]
        for one in [routine.parent, *before] if routine.parent else before:
            yield from visit(one)
        yield routine

    for unit in units:
        for routine in unit.routines:
            yield from visit(routine)


def declared_in(scope: Routine, name: str, modules: Mapping[str, Routine]) -> Routine | None:
    """The scope that declares what a name means, by USE as well, as far as the modules are known."""
    around: Routine | None = scope
    while around is not None:
        if name in around.declarations:
            return around
        found = _brought(around, name, modules, frozenset())
        if found is not None:
            return found
        around = around.parent
    return None


def _brought(
    scope: Routine, name: str, modules: Mapping[str, Routine], seen: frozenset[str]
) -> Routine | None:
    if any(words[1] == name for words in scope.renamed):
        return None  # it may be what has another name here
    for used, (_, _, only) in scope.uses.items():
        module = modules.get(used)
        listed = only is None or name in re.findall(r"\w+", only)
        if module is None or not listed or used in seen or NotPublic(module)(name):
            continue
        found = module if name in module.declarations else _brought(module, name, modules, seen | {used})
        if found is not None:
            return found
    return None


def names_lacking(
    array: Array, routine: Routine, modules: Mapping[str, Routine], bounds: Sequence[tuple[str, str]]
) -> list[str]:
    """Names that a module's array is distributed by, or that are in its bounds, and that a routine does not
    have."""
    module = array.routine
    scope: Routine | None = routine
    while scope is not None and scope is not module:
        scope = scope.parent
    if not module.module or scope is module:
        return []
    texts = [text for pair in bounds for text in pair]
    for one in array.dimensions:
        texts += [one.argument, one.sizes, one.lower or "", one.upper or "", one.parts, one.base]
    found = sorted(frozenset[str]().union(*(names_in(text.lower()) for text in texts)) - {array.name})
    meant = {name: declared_in(module, name, modules) for name in found}
    return [
        name
        for name, there in meant.items()
        if there is not None and declared_in(routine, name, modules) is not there
    ]
