"""C: a file's distributed array that other files of the program know by `extern`, in their own text or by a
header. They find its parts by the layout that its own file makes.

An array that a name means in several files is one object, whose declarations have compatible types (C11,
6.2.7): that they name the same bounds need not be asked of a program that is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.positions import Problem
from homing.translate.tree import Declaration, Executable, Reference, Routine, Unit, references, walk

_WORD = re.compile(r"[A-Za-z_]\w*")


def declare(units: Sequence[Unit]) -> set[tuple[int, str]]:
    """A header's array that directives of another file distribute is an array for those that include it, too:
    it has the declaration of its own file, so that what is done with it is understood. Which scopes (by id)
    got which."""
    added = set()
    scopes = _scopes(units)
    for scope in scopes:
        for directive in scope.directives:
            if not isinstance(directive, d.Distribute | d.Align):
                continue
            name = directive.name.key
            own = scope.declarations.get(name)
            if own is None or _is_static(scope, own):
                continue
            for other in scopes:
                if other is not scope and name in other.included and name not in other.declarations:
                    other.declarations[name] = replace(own, statement_begin=0, begin=0, end=0)
                    added.add((id(other), name))
    return added


class Lent:
    """Which arrays of a program's files other files use. Problems are those of files that cannot."""

    def __init__(
        self,
        units: Sequence[Unit],
        arrays: Mapping[int, dict[str, Array]],
        of_headers: Set[tuple[int, str]] = frozenset(),
    ) -> None:
        """arrays: those of each routine (by id), to which a lent one is added where another file knows it.
        of_headers: what declare() gave."""
        self.problems: list[Problem] = []
        self._arrays = arrays
        self._of_headers = of_headers
        self._units = units
        self._names: set[tuple[int, str]] = set()
        scopes = [
            routine for unit in units if unit.form is d.Form.C for routine in unit.routines if routine.module
        ]
        for scope in scopes:
            for name, array in list(arrays[id(scope)].items()):
                if array.routine is scope and not _is_static(scope, array.declaration):
                    for other in scopes:
                        if other is not scope:
                            self._see(name, array, other)
        self.problems += self._dealt_anew()

    def __contains__(self, array: Array) -> bool:
        return (id(array.routine), array.name) in self._names

    def by_header(self, scope: Routine, name: str) -> bool:
        """Has a file no declaration of the array but its headers'?"""
        return (id(scope), name) in self._of_headers

    def _see(self, name: str, array: Array, other: Routine) -> None:
        declared = other.declarations.get(name)
        if declared is not None and not self.by_header(other, name):
            if _is_static(other, declared):
                return
            place = declared.begin, declared.end
        elif name not in other.included:
            return
        elif name in other.unseen:  # by a header's function
            self.problems.append(other.source.problem(*other.unseen[name]))
            return
        else:
            declared, uses = None, list(self._uses(name, other))
            if not uses:
                return
            place = uses[0].begin, uses[0].end
        if why := self._why_not(array, declared, other):
            at = array.routine.source.place(array.declaration.begin)
            reason = f"'{name}' is distributed in {at}, whose parts no other file knows: {why}"
            self.problems.append(other.source.problem(*place, reason))
            return
        self._arrays[id(other)][name] = array
        self._names.add((id(array.routine), name))

    def _why_not(self, array: Array, declared: Declaration | None, other: Routine) -> str:
        """What stands in the way of its use there, and what to do; empty: nothing."""
        own = array.declaration
        if "extern" in own.attributes or not (own.bounds or own.storage == "pointer"):
            return "pass it as an argument"
        apart = any(one.base or one.kind is d.Kind.GEN_BLOCK for one in array.dimensions)
        if own.storage == "pointer" and apart:  # its memory may be taken where these are not known
            return "pass it as an argument"
        if array.routine.namespaces or other.namespaces:
            return "pass it as an argument (no namespaces are followed over files)"
        every = [declared, *other.again.get(array.name, ())] if declared is not None else []
        within = [one for one in every if self._is_in_function(other, one)]
        if within and (within[0] is declared or array.name in other.included):
            return "declare it outside of functions"
        if declared is not None and "extern" not in declared.attributes:
            return "declare it `extern` here"
        # A directive's EXTENT gives a pointer the bounds that it has not where it is declared.
        written = array.routine.declarations.get(array.name, own)
        if declared is not None and _bounds(declared) != _bounds(written):
            return "write the same bounds here"
        for word in sorted({word for bound in chain(*_bounds(own)) for word in _WORD.findall(bound)}):
            if _defines(array.routine, word) and not _defines(other, word):
                return f"define '{word}', which its bounds name, in a header of both"
        return ""

    def _is_in_function(self, scope: Routine, declaration: Declaration) -> bool:
        inside = (r for unit in self._units for r in unit.routines if r.parent is scope)
        return any(one.begin <= declaration.begin < one.end for one in inside)

    def _uses(self, name: str, scope: Routine) -> Iterator[Reference]:
        for unit in self._units:
            for routine in unit.routines if unit.source is scope.source else ():
                if name in routine.declarations and name not in routine.inner and not routine.module:
                    continue
                yield from (one for one in references(routine.body) if one.name == name)

    def _dealt_anew(self) -> Iterator[Problem]:
        """REDISTRIBUTE of such an array: the other files are translated for one distribution of it."""
        for unit in self._units:
            for routine in unit.routines if unit.form is d.Form.C else ():
                for node in walk(routine.body):
                    if isinstance(node, Executable) and isinstance(node.directive, d.Redistribute):
                        array = self._arrays[id(unit.routines[0])].get(node.directive.name.key)
                        if array is not None and array in self:
                            reason = f"'{array.name}' is used in other files, which know one distribution"
                            yield node.directive.source.problem(reason)


def _scopes(units: Sequence[Unit]) -> list[Routine]:
    """The scopes of C files."""
    units = [one for one in units if one.form is d.Form.C]
    return [routine for unit in units for routine in unit.routines if routine.module]


def _is_static(scope: Routine, declaration: Declaration) -> bool:
    text = scope.source.text[declaration.statement_begin : declaration.begin]
    return re.search(r"\bstatic\b", text) is not None


def _defines(scope: Routine, name: str) -> bool:
    """Does the file's own text, rather than a header, say what a constant is?"""
    enumerator = rf"\benum\b[^{{}};]*\{{[^}}]*\b{name}\b"
    macro = rf"^[ \t]*#[ \t]*define[ \t]+{name}\b"
    found = re.search(rf"{macro}|{enumerator}", scope.source.text, re.MULTILINE)
    return found is not None or name in scope.declarations


def _bounds(declaration: Declaration) -> list[tuple[str, str]]:
    return [(one.lower, one.upper or "") for one in declaration.bounds]
