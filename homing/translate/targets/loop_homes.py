"""Whose the iterations of a loop are: ON HOME, AFFINITY, or the array that is written (Chapman, Patil and
Prabhakar 2001, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from homing.translate.affine import affine
from homing.translate.directives import model as d
from homing.translate.plan.array import Array
from homing.translate.plan.boxes import Site
from homing.translate.plan.model import Follow, Home
from homing.translate.plan.reference_text import reference_subscripts
from homing.translate.targets.routine import Work
from homing.translate.tree import (
    Access,
    Construct,
    Loop,
    Reference,
    Subscript,
    walk,
    written_in,
)


class LoopHomes:
    """For the loops of one routine."""

    def __init__(self, work: Work) -> None:
        self.work = work
        #: What has no value before the loop, or another in each iteration.
        self.unsettled: frozenset[str] = frozenset()

    def home_of(
        self, construct: Construct, loop: Loop, sites: Sequence[Site]
    ) -> tuple[Home, dict[str, Follow]] | None:
        """The array whose owners run the iterations (and why), and which loop goes with which of its
        dimensions."""
        where: d.OnHome | d.DataAffinity | None = None
        for directive in construct.homing:
            if isinstance(directive, d.OnHome | d.DataAffinity):
                if where is not None:
                    self.wrong_directive(directive, "the loop has a home already")
                where = directive
            elif isinstance(directive, d.ThreadAffinity):
                self.wrong_directive(
                    directive,
                    "the loop touches distributed arrays: iterations go to the owners (ON HOME), "
                    "not to threads",
                )
        variables = [n.variable for n in walk([loop]) if isinstance(n, Loop) and n.variable]
        nested = {one.key for n in construct.homing if isinstance(n, d.Nest) for one in n.variables}
        self.unsettled = frozenset(construct.directive.listed("private") | nested)
        if where is None:
            return self._owner_computes(loop, sites, variables)
        follows = self._given_home(where, loop, variables)
        if follows is None:
            return None
        return Home.ON_HOME if isinstance(where, d.OnHome) else Home.AFFINITY, follows

    def wrong_directive(self, directive: d.Directive, reason: str) -> None:
        self.work.problems.append(directive.source.problem(reason))

    def _given_home(
        self, where: d.OnHome | d.DataAffinity, loop: Loop, variables: Sequence[str]
    ) -> dict[str, Follow] | None:
        """What a directive says."""
        given = where.home
        array = self.work.arrays.get(given.name.key)
        if array is None:
            self.wrong_directive(where, f"'{given.name}' is not distributed")
            return None
        if len(given.subscripts) != array.rank:
            self.wrong_directive(where, f"'{given.name}' has {array.rank} dimensions")
            return None
        texts = [subscript.text.strip() for subscript in given.subscripts]
        if where.source.form.fortran:
            texts = [text.lower() for text in texts]
        follows = self._follows(array, texts, variables, scaled=True)
        if follows is None:
            follows = self._partly(array, texts, loop, variables)
        if follows is None:
            reason = (
                "a distributed dimension's subscript is not a loop's index (times a number) plus a number"
            )
            self.wrong_directive(where, reason)
        return follows

    def _owner_computes(
        self, loop: Loop, sites: Sequence[Site], variables: Sequence[str]
    ) -> tuple[Home, dict[str, Follow]] | None:
        """The written reference that needs no other part's elements, else what is read."""
        candidates = [s.reference for s in sites if s.reference.access in (Access.WRITE, Access.UPDATE)]
        candidates += [s.reference for s in sites if s.reference.access is Access.READ]
        best: tuple[tuple[int, bool, int, int], dict[str, Follow]] | None = None
        for number, reference in enumerate(candidates):
            array = self.work.arrays[reference.name]
            texts = ["" if s.section else s.text for s in reference_subscripts(reference)]
            follows = self._follows(array, texts, variables, scaled=True)
            if follows is None:
                continue
            distance = sum(abs(f.offset + array.dimensions[f.dimension].offset) for f in follows.values())
            key = (
                int(reference.access is Access.READ),
                any(follow.factor > 1 for follow in follows.values()),
                distance + 100 * (loop.variable not in follows),
                number,
            )
            if best is None or key < best[0]:
                best = (key, follows)
        if best is not None:
            return Home.READ if best[0][0] else Home.WRITTEN, best[1]
        for reference in candidates:
            texts = ["" if s.section else s.text for s in reference_subscripts(reference)]
            partly = self._partly(self.work.arrays[reference.name], texts, loop, variables)
            if partly is not None and reference.access is not Access.READ:
                return Home.WRITTEN, partly
        if (found := self._unanalysed(sites, variables)) is not None:
            reference, bad = found
            reason = f"the distributed subscript '{bad.text}' is not a loop's index plus a number"
            advice = self._as_rows(reference.name, bad.text, variables) or self._around(
                reference, bad, loop, variables
            )
            self.work.wrong(bad.begin, bad.end, reason + advice)
        else:
            reason = f"no distributed dimension goes with '{loop.variable}': say ON HOME(...)"
            self.work.wrong(loop.head.begin, loop.head.end, reason)
        return None

    def _as_rows(self, name: str, text: str, variables: Sequence[str]) -> str:
        """What helps where a subscript counts rows and what is in a row, `i*n + j`."""
        value = affine(text)
        along = next((one for one in variables if value.coefficient(one) == 1), None)
        row = next((one for one in variables if one in value.names and one != along), None)
        if row is not None and abs(value.coefficient(row)) == 1:  # a(i + j) has no number of rows
            return ""
        if along is None or row is None or self.work.arrays[name].rank != 1:
            return ""
        is_c = not self.work.source.form.fortran
        return f": declare rows as a dimension, {name}{f'[{row}][{along}]' if is_c else f'({along}, {row})'}"

    def _around(self, reference: Reference, bad: Subscript, loop: Loop, variables: Sequence[str]) -> str:
        """What helps where a loop inside goes around the shared-out loop's index, `a(i + j)`."""
        value = affine(bad.text)
        inner = [one for one in variables if one != loop.variable and value.coefficient(one)]
        if loop.variable is None or value.coefficient(loop.variable) != 1 or not inner:
            return ""
        if reference.access is not Access.READ:
            return f": write at '{loop.variable}' alone, and read around it"
        texts = [
            loop.variable if one is bad else "" if one.section else one.text
            for one in reference_subscripts(reference)
        ]
        shown = [one or ":" for one in texts]
        fortran = self.work.source.form.fortran
        element = f"({', '.join(shown)})" if fortran else "".join(f"[{one}]" for one in shown)
        return f": say ON HOME({reference.name}{element})"

    def _unanalysed(
        self, sites: Sequence[Site], variables: Sequence[str]
    ) -> tuple[Reference, Subscript] | None:
        for site in sites:
            array = self.work.arrays[site.reference.name]
            for index in array.distributed_dimensions():
                subscript = reference_subscripts(site.reference)[index]
                value = affine(subscript.text)
                if (
                    not subscript.section
                    and value.names & set(variables)
                    and not any(value.follows(variable) is not None for variable in variables)
                ):
                    return site.reference, subscript
        return None

    def _follows(
        self, array: Array, texts: Sequence[str], variables: Sequence[str], scaled: bool = False
    ) -> dict[str, Follow] | None:
        """Which loop goes with which distributed dimension; None when one goes with none. scaled: its counter
        may be multiplied, as in a(2*i), but not in a CYCLIC dimension."""
        follows: dict[str, Follow] = {}
        for index in array.distributed_dimensions():
            value, dealt = affine(texts[index]), array.dimensions[index]
            for variable in variables:
                factor, offset = value.scaled(variable) or (0, 0)
                possible = factor == 1 or (factor > 1 and scaled and not dealt.cyclic)
                if possible and variable not in follows:
                    follows[variable] = Follow(variable, array.name, index, offset, dealt, factor)
                    break
            else:
                return None
        return follows

    def _partly(
        self, array: Array, texts: Sequence[str], loop: Loop, variables: Sequence[str]
    ) -> dict[str, Follow] | None:
        """The same, where the other dimensions' subscripts are the same in all iterations: fixed_home."""
        changing = written_in(loop) | set(variables) | self.unsettled
        fixed = [i for i in array.distributed_dimensions() if not affine(texts[i]).names & changing]
        dealt = [
            replace(one, kind=d.Kind.STAR) if index in fixed else one
            for index, one in enumerate(array.dimensions)
        ]
        follows = self._follows(replace(array, dimensions=dealt), texts, variables)
        if not follows:
            return None
        self.work.fixed_home[id(loop)] = tuple((index, texts[index]) for index in fixed)
        return follows
