"""Fortran: what USE statements bring, also renamed, and from modules that a module uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homing.translate.front.implicit import declared
from homing.translate.plan.accessibility import NotPublic
from homing.translate.tree import Declaration, Routine


class ByUse:
    """modules: those whose files are given, by name."""

    def __init__(self, modules: Mapping[str, Routine]) -> None:
        self.modules = modules
        self._brought: dict[int, dict[str, tuple[Routine, str]]] = {}

    def brought(self, scope: Routine) -> dict[str, tuple[Routine, str]]:
        """The names that the USE statements of a scope bring into it: the module, and the name there."""
        if id(scope) not in self._brought:
            found: dict[str, tuple[Routine, str]] = {}
            for used in scope.uses:
                for local, module, original in self._offered(scope, used, frozenset()):
                    found.setdefault(local, (module, original))
            self._brought[id(scope)] = found
        return self._brought[id(scope)]

    def meant(self, routine: Routine, name: str) -> tuple[Routine, str] | None:
        """Whose variable a name means in a routine, and what it is called there."""
        scope: Routine | None = routine
        while scope is not None:
            if name in scope.declarations:
                return scope, name
            if name in (brought := self.brought(scope)):
                return brought[name]
            scope = scope.parent
        return None

    def declaration(self, routine: Routine, name: str) -> Declaration | None:
        """Of what a name means in a routine; as its first letter says, where nothing else does."""
        found = self.meant(routine, name)
        return found[0].declarations.get(found[1]) if found else declared(routine, name)

    def _offered(self, scope: Routine, used: str, seen: frozenset[str]) -> Iterator[tuple[str, Routine, str]]:
        """(name, module, name there) of what a USE statement of the scope brings."""
        module = self.modules.get(used)
        if module is None or used in seen:
            return
        _, _, only = scope.uses[used]
        renamed = {original: local for name, original, local in scope.names_by_use() if name == used}
        listed = None if only is None else {part.strip() for part in only.split(",")}
        hidden = NotPublic(module)
        inherited = [one for inner in module.uses for one in self._offered(module, inner, seen | {used})]
        for original, owner, there in [*((name, module, name) for name in module.declarations), *inherited]:
            if hidden(original):
                continue
            if original in renamed:
                yield renamed[original], owner, there
            elif listed is None or original in listed:
                yield original, owner, there
