"""A statement of serial code that calls a function which works on parts, and that uses elements beside it:
the function is called before, while the arrays are in parts, and the statement works on gathered arrays.

Only where nobody can tell the difference. What the function changes may not stand anywhere else in the
statement, and what is evaluated on a condition only, or for each value of an implied DO, stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from homing.translate.code_text import blanked, closing, outside_brackets
from homing.translate.plan.effects import UNSEEN, What
from homing.translate.targets.routine import Work
from homing.translate.tree import Access, Kind, Reference, Routine, Statement

#: What may leave an operand out.
_SOMETIMES = {
    True: re.compile(r"\.(?:and|or|eqv|neqv)\.|\bmerge\b", re.IGNORECASE),
    False: re.compile(r"&&|\|\||\?"),
}
_FORMS = frozenset({"assignment", "print", "write", "call"})
_OWN_STATEMENT = "give the function's value to a variable in a statement of its own before"


@dataclass(frozen=True)
class Call:
    """A call that can be made before; begin and end: where it stands."""

    callee: Routine
    begin: int
    end: int

    def holds(self, reference: Reference) -> bool:
        return self.begin <= reference.begin < self.end


class CalledBefore:
    """The calls of one statement."""

    def __init__(
        self, work: Work, statement: Statement, passed: Sequence[Reference], reached: Sequence[str]
    ) -> None:
        """passed: arrays that go to procedures in parts; reached: procedures that find arrays in parts."""
        self.work = work
        self.statement = statement
        self.passed = passed
        names = {one.argument_of or "" for one in passed} | set(reached)
        self.names = sorted(name for name in names if name in work.distributions.routines)
        self.fortran = work.source.form.fortran
        text = work.source.text[statement.begin : statement.end]
        self.code = blanked(text, self.fortran, " ")

    def found(self) -> list[Call] | str:
        """The calls, in their order, or why they cannot be made before the statement."""
        calls = self._calls()
        outer = [one for one in calls if not any(_within(one, other) for other in calls if other is not one)]
        what = f"'{self.names[0]}' works on parts, and elements stand in the same statement"
        if not outer or not all(any(call.holds(one) for call in outer) for one in self.passed):
            return f"{what}: read them into variables before"
        elements = [one for one in self.work.touched([self.statement]) if one not in self.passed]
        if any(call.holds(one) for call in outer for one in elements):
            return f"{what}, among its arguments: read them into variables before"
        why = self._not_once(outer) or self._not_the_same(outer) or self._no_value(outer)
        return f"{what}; {why}: {_OWN_STATEMENT}" if why else outer

    def _calls(self) -> list[Call]:
        routines = self.work.distributions.routines
        found = []
        for name in self.names:
            if self.fortran:
                found += [
                    Call(routines[name], one.begin, one.end)
                    for one in self.statement.references
                    if self._behind(one.name) == name and one.subscripts is not None
                ]
                continue
            written = list(re.finditer(rf"\b{re.escape(name)}\s*\(", self.code))
            if len(written) != self.statement.calls.count(name):  # one stands in a macro
                return []
            for match in written:
                end = closing(self.code, match.end())
                found.append(
                    Call(routines[name], self.statement.begin + match.start(), self.statement.begin + end)
                )
        return sorted(found, key=lambda call: call.begin)

    def _behind(self, name: str) -> str:
        """The procedure's own name, where this is a generic one."""
        return self.work.distributions.behind.get(name, name)

    def _text(self, call: Call) -> str:
        return self.code[call.begin - self.statement.begin : call.end - self.statement.begin]

    def _outside(self, calls: Sequence[Call]) -> str:
        """The statement without these calls."""
        kept = list(self.code)
        for call in calls:
            begin, end = call.begin - self.statement.begin, call.end - self.statement.begin
            kept[begin:end] = " " * (end - begin)
        return "".join(kept)

    def _not_once(self, calls: Sequence[Call]) -> str:
        """Why a call may not be made exactly once, or not at the statement's beginning."""
        statement = self.statement
        if self.fortran and statement.form not in _FORMS:
            return "a condition may leave the call out"
        if self.fortran and statement.label:
            return "a jump may lead to it"
        if statement.guarded or _SOMETIMES[self.fortran].search(self.code):
            return "a condition may leave the call out"
        if any("\n" in self._text(call) for call in calls):
            return "the call goes over several lines"
        if not self.fortran and outside_brackets(self._outside(calls), ","):
            return "other expressions come before it"
        given = self._given(calls)
        for call in calls:
            if self.fortran and given & {name.lower() for name in _names(self._text(call))}:
                return "the call depends on an implied DO"
        return ""

    def _given(self, calls: Sequence[Call]) -> set[str]:
        """Fortran: what stands before an equals sign in brackets: variables of implied DOs, and keywords, but
        for those of the calls."""
        return {name.lower() for name in re.findall(r"[(,]\s*(\w+)\s*=(?!=)", self._outside(calls))}

    def _not_the_same(self, calls: Sequence[Call]) -> str:
        """Why the order of what is evaluated may matter."""
        effects, statement = self.work.distributions.effects, self.statement
        own = statement.calls[:1] if statement.kind is Kind.CALL else ()
        wider = False  # does one of them change what others may read?
        for call in calls:
            summary = effects.of(call.callee)
            if any(what in (*UNSEEN, What.END) for what, _ in summary.acts):
                return "it calls what is not seen"
            changed = {name for what, name in summary.acts if what is What.WRITE}
            changed |= {
                one.name
                for one in statement.references
                if call.holds(one) and one.argument_of == call.callee.name
                and one.argument_index in summary.arguments
            }  # fmt: skip
            both = changed & _names(self._outside([call]).lower() if self.fortran else self._outside([call]))
            if both:
                return f"it changes '{min(both)}', which stands there, too"
            written = self._written_beside(call) & _names(self._text(call))
            if written:
                return f"the statement changes '{min(written)}', which it gets"
            wider |= bool(changed)
            if self.fortran and (summary.acts or changed) and self._given(calls):
                return "the call may stand in an implied DO"
            if not self.fortran and (len(calls) > 1 or self._prints(calls)) and (summary.acts or changed):
                return "the order of the calls may matter"
        for name in _names(self._outside(calls)):
            callee = self.work.distributions.routines.get(name.lower() if self.fortran else name)
            if callee is None or callee.name in own:
                continue
            summary = effects.of(callee)
            if wider or summary.acts or summary.arguments:
                return f"the order of the calls of it and of '{callee.name}' may matter"
        unseen = [act for act in effects.acts(self.work.routine, [statement]) if act.what in UNSEEN]
        return f"what '{unseen[0].name}' writes is not seen" if unseen and not own else ""

    def _prints(self, calls: Sequence[Call]) -> bool:
        """Is something printed beside the calls?"""
        names = {call.callee.name for call in calls}
        acts = self.work.distributions.effects.acts(self.work.routine, [self.statement])
        return any(act.what is What.IO and act.through not in names for act in acts)

    def _written_beside(self, call: Call) -> set[str]:
        """C: what other expressions of the statement change. A target at its beginning is given its value
        when all is evaluated."""
        if self.fortran:
            return set()
        return {
            one.name
            for one in self.statement.references
            if one.access not in (Access.READ, Access.ARGUMENT)
            and one.begin > self.statement.begin
            and not call.holds(one)
        }

    def _no_value(self, calls: Sequence[Call]) -> str:
        """Why the value of a function cannot be kept."""
        for call in calls:
            callee = call.callee
            if not self.fortran:
                head = self.work.distributions.routines[callee.name].source.text[callee.begin :]
                if "*" in head.split("(", 1)[0]:
                    return "its value is a pointer"
                continue
            declared = callee.declarations.get(callee.result or callee.name)
            kind = (declared.type if declared else callee.result_type).lower()
            if (declared and (declared.bounds or declared.attributes & {"pointer", "allocatable"})) or (
                kind.startswith(("character", "type", "class"))
            ):
                return "its value is no number"
            if any(one.brought is not None for one in self.statement.references):
                return "it is called inside a region, too"
        return ""


def _within(one: Call, other: Call) -> bool:
    return other.begin <= one.begin and one.end <= other.end


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
