"""C++: code that is not read (classes, templates, lambdas) beside code with distributed arrays.

It stays as it is, and runs at places that are not known. So it may neither name an array, nor get its
address, nor come to a function that works on one; then it does not matter when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from homing.translate.plan.arrays import Distributions
from homing.translate.plan.effects import What
from homing.translate.plan.reached import called
from homing.translate.positions import Problem
from homing.translate.tree import (
    CLASSES,
    Apart,
    Branch,
    Mention,
    Node,
    Routine,
    Unit,
    references,
    statements,
    walk,
)

_BEFORE_MAIN = "runs before main begins, or when it has ended, and may come to code with distributed arrays"
#: Of C's library, and of std: what reads the standard input, which only rank 0 has.
_READS = frozenset({"scanf", "vscanf", "getchar", "gets", "stdin", "cin", "wcin"})
#: What each rank would do to the same files, or what gives each rank other values.
_OF_RANKS = frozenset(
    ["basic_fstream", "basic_ifstream", "basic_ofstream", "creat", "execv", "execvp", "filebuf", "filesystem",
     "fopen", "fork", "freopen", "fstream", "ifstream", "mkdir", "mkstemp", "ofstream", "popen",
     "posix_spawn", "random_device", "rename", "rmdir", "symlink", "system", "truncate", "unlink", "vfork"]
)  # fmt: skip


def class_code(units: Sequence[Unit], distributions: Distributions) -> Iterator[Problem]:
    """Where it and distributed arrays meet."""
    if not distributions.any:
        return
    code = _Code(units, distributions)
    found = [(unit, _apart(unit)) for unit in units]
    early = any(apart.late or any(CLASSES in one.calls for one in apart.begun) for _, apart in found)
    for unit, apart in found:
        yield from code.begun(unit, apart)
        yield from (unit.source.problem(*one) for one in apart.wrong)
        for routine in unit.routines:
            yield from _unfit(unit, routine, distributions)
            if not distributions.in_place:
                yield from code.known(routine)
                yield from code.tried(routine)
        if not distributions.in_place or early:
            yield from code.functions(unit, apart)
        if not distributions.in_place:
            yield from code.pointed(unit, apart)
            yield from code.arrays(unit, apart)
            yield from code.elsewhere(unit, apart)


def of_each_rank(unit: Unit, distributions: Distributions) -> Iterator[Problem]:
    """--to mpi: what every rank would do there, and one should."""
    apart = _apart(unit)
    for word, place in sorted(apart.words.items()) if distributions.any else ():
        if word in _READS:
            reason = "reads standard input, which only rank 0 has: read a file, or take arguments"
        elif word in _OF_RANKS:
            reason = f"'{word}' in code of classes would be each rank's own: use fopen, in plain functions"
        else:
            continue
        yield unit.source.problem(place, place + (len(word) if place else 0), reason)
    for made in apart.begun if distributions.any else ():
        acts = list(distributions.effects.acts(unit.routines[0], [made]))
        if any(one.what in (What.IO, What.END, What.UNKNOWN, What.POINTER) for one in acts):
            reason = "runs before main begins, in every rank, where all are heard: make it in a function"
            yield unit.source.problem(made.begin, made.end, reason)


def _apart(unit: Unit) -> Apart:
    return (unit.routines[0].apart if unit.routines else None) or Apart()


class _Code:
    """Such code of a program, and the functions that work on distributed arrays."""

    def __init__(self, units: Sequence[Unit], distributions: Distributions) -> None:
        self.units = units
        self.distributions = distributions
        every = [one for unit in units for one in unit.routines if not one.module]
        self.touching = {id(one) for one in every if self._works(one)}
        count = -1
        while count != (count := len(self.touching)):
            for one in every:
                if any(id(callee) in self.touching for callee in called(one.body, distributions.routines)):
                    self.touching.add(id(one))

    def _works(self, routine: Routine) -> bool:
        arrays = self.distributions.of(routine)
        own = any(array.routine is routine for array in arrays.values())
        return own or id(routine) in self.distributions.reaching

    def _touches(self, name: str) -> bool:
        routine = self.distributions.routines.get(name)
        return routine is not None and id(routine) in self.touching

    def begun(self, unit: Unit, apart: Apart) -> Iterator[Problem]:
        """Variables that are made before main, where there are no parts yet, by functions that need them."""
        for made in apart.begun:
            if any(map(self._touches, (*made.calls, *made.pointed))):
                yield unit.source.problem(made.begin, made.end, f"{_BEFORE_MAIN}: make it in a function")

    def functions(self, unit: Unit, apart: Apart) -> Iterator[Problem]:
        """Functions that such code may call, or whose addresses it may get."""
        for one in apart.mentions:
            if self._touches(one.name) and (one.what or not self.distributions.in_place):
                yield unit.source.problem(one.begin, one.end, _of_function(one.name, one.what))
        known = {one.rpartition("::")[2].partition("(")[0] for one in _declared(unit)}
        for routine in self.distributions.routines.values():  # declared in such code alone
            name = routine.name.rpartition("::")[2].partition("(")[0]
            if id(routine) in self.touching and name in apart.words and name not in known:
                place = apart.words[name]
                reason = _of_function(name, "code of classes")
                yield unit.source.problem(place, place + (len(name) if place else 0), reason)

    def pointed(self, unit: Unit, apart: Apart) -> Iterator[Problem]:
        """The same, where plain code takes the address."""
        for routine in unit.routines if apart.used else ():
            for statement in statements(routine.body):
                for name in filter(self._touches, statement.pointed):
                    begin, end = statement.begin, statement.end
                    if any(one.name == name and begin <= one.begin < end for one in apart.mentions):
                        continue  # which is said
                    yield unit.source.problem(statement.begin, statement.end, _of_function(name, ""))

    def arrays(self, unit: Unit, apart: Apart) -> Iterator[Problem]:
        """Arrays that it names, and names in plain code that no access explains."""
        scope = unit.routines[0]
        for one in apart.mentions:
            routine = scope if one.what else _around(unit, one)
            if one.name not in self.distributions.of(routine):
                continue
            if one.what:
                reason = f"{one.what} names the distributed '{one.name}', and is not followed: use a plain "
                yield unit.source.problem(one.begin, one.end, f"{reason}function for that")
            elif not routine.module and not _accessed(routine, one):
                reason = f"the distributed '{one.name}' is named where it is not followed"
                yield unit.source.problem(one.begin, one.end, reason)

    def elsewhere(self, unit: Unit, apart: Apart) -> Iterator[Problem]:
        """Arrays of other files that headers declare, and such code may name."""
        for other in self.units:
            for name in self.distributions.of(other.routines[0]) if other is not unit else ():
                if name in apart.words and name in unit.routines[0].included:
                    place = apart.words[name]
                    reason = f"code of classes may name '{name}', which is distributed in another file"
                    yield unit.source.problem(place, place + (len(name) if place else 0), reason)

    def known(self, routine: Routine) -> Iterator[Problem]:
        """Arrays that a statement gives to such code."""
        arrays = self.distributions.of(routine)
        for reference in references(routine.body):
            if reference.apart is not None and reference.name in arrays:
                reason = f"{reference.apart} (it gets the distributed '{reference.name}', not a number)"
                yield routine.source.problem(reference.begin, reference.end, reason)

    def tried(self, routine: Routine) -> Iterator[Problem]:
        """An exception would leave an array gathered, and the parts as they were before."""
        arrays = self.distributions.of(routine)
        for node in walk(routine.body):
            if not isinstance(node, Branch) or not node.tries:
                continue
            found = sorted({one.name for one in references([node])} & arrays.keys())
            found += [f"{name}()" for name in self._called(node)]
            if found:
                reason = f"exceptions are not followed: '{found[0]}' stands in TRY, or in one of its handlers"
                reason += ", with distributed arrays"
                yield routine.source.problem(node.begin, node.begin + len("try"), reason)

    def _called(self, node: Node) -> list[str]:
        routines = called([node], self.distributions.routines)
        return [one.name for one in routines if id(one) in self.touching]


def _declared(unit: Unit) -> Iterator[str]:
    scope = unit.routines[0]
    yield from (one.name for one in unit.routines[1:])
    yield from (one.name for one in scope.prototypes)
    yield from scope.headers


def _of_function(name: str, what: str) -> str:
    shown = name.partition("(")[0]
    if what:
        return f"{what} may call '{shown}', which works on distributed arrays, and is not followed"
    return (
        f"code of classes may get the address of '{shown}', which works on distributed arrays, and call it "
        "at any time: call it by its name"
    )


def _around(unit: Unit, mention: Mention) -> Routine:
    """The function that a word stands in, or the file."""
    scope = unit.routines[0]
    inside = (one for one in unit.routines[1:] if one.begin <= mention.begin < one.end)
    return next(inside, scope)


def _accessed(routine: Routine, mention: Mention) -> bool:
    """Is a word a part of an access that is followed, or of arrays' changing places?"""
    if any(s.swap and s.begin <= mention.begin < s.end for s in statements(routine.body)):
        return True
    found = (one for one in references(routine.body) if one.name == mention.name)
    return any(one.begin <= mention.begin < max(one.end, one.name_end) for one in found)


def _unfit(unit: Unit, routine: Routine, distributions: Distributions) -> Iterator[Problem]:
    """Functions that get the layouts of their arrays: others of the same name would be called, too."""
    unfit: Mapping[str, str] = _apart(unit).unfit
    if routine.name not in unfit or routine.module:
        return
    arrays = distributions.of(routine)
    if any(arrays[name].routine is routine for name in routine.arguments if name in arrays):
        name = routine.name.partition("(")[0]
        reason = f"'{name}' gets distributed arrays, and {unfit[routine.name]}"
        yield unit.source.problem(routine.begin, routine.head_end, reason)
