"""Fortran: procedures that use distributed arrays of the scopes around them, and that loops which are shared
out call (`v(i) = flux(i)`, `call update(i)`): what they do stands in the place of their calls, in a BLOCK
with their variables, as the user could have written it there. What a loop needs of other parts is seen from
its own subscripts alone. (C: front/c_called.py.)

A call stays, and is refused later, where the procedure cannot be said elsewhere, or a name in it would mean
something else there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from homing.translate.code_text import Edit, edited, unused_name
from homing.translate.front.expand import marker
from homing.translate.front.fortran_bodies import (
    Bodies,
    Body,
    declared,
    given,
    is_name,
    named_in,
    names_of,
    replaced,
)
from homing.translate.front.intrinsics import INTRINSICS
from homing.translate.front.lines import Line
from homing.translate.front.tokens import Token, closing, tokens
from homing.translate.source import SourceFile, wrap
from homing.translate.tree import (
    Branch,
    Clause,
    Construct,
    Declaration,
    Kind,
    Loop,
    Node,
    Routine,
    Statement,
    Unit,
    statements,
    walk,
)

_WORD = re.compile(r"\w+")
#: Constructs around a call under which a BLOCK may stand as a statement does.
_AROUND = frozenset(["parallel", "do", "for", "simd", "critical", "single"])
#: Clauses whose names mean the same inside as outside.
_NAMELESS = frozenset(["shared", "schedule", "num_threads", "if", "collapse", "proc_bind", "nowait"])
_STEADY = frozenset(["+", "-", "*", "/", "**", "(", ")"])


def with_bodies(units: Sequence[Unit], distributed: Container[str]) -> dict[int, SourceFile]:
    """New sources for units, by their places in the sequence: a call that others lie in is for the next time.
    distributed: names of arrays."""
    bodies = Bodies(units)
    users = _users(bodies, distributed)
    found = {}
    for index, unit in enumerate(units):
        if users and unit.form.fortran:
            edits = (edit for routine in unit.routines for edit in _Caller(bodies, users, routine).edits())
            made, source = edited(unit.source.text, edits), unit.source
            if made is not None:
                found[index] = SourceFile(source.path, made, source.form, source.fixed_columns, marked=True)
    return found


def _users(bodies: Bodies, distributed: Container[str]) -> dict[str, Body]:
    """The procedures that use such arrays from around them, also by others, by their names; not those whose
    names several have. None where no loop calls one."""
    named: dict[str, list[Routine]] = {}
    for one in bodies.routines:
        if not (one.module or one.main):
            named.setdefault(one.name.lower(), []).append(one)
    words = {name: _words(one) for name, (one, *more) in named.items() if not more}
    may = _reaching({name for name, found in words.items() if any(x in distributed for x in found)}, words)
    if not any(may & {*one.calls, *one.reads} for routine in bodies.routines for one in _in_loops(routine)):
        return {}
    known = {name: body for name in may if (body := bodies.of(named[name][0])) is not None}
    others = {name: body.others for name, body in known.items()}
    found = _reaching({name for name in known if any(x in distributed for x in others[name])}, others)
    return {name: known[name] for name in found if not _again(name, known)}


def _words(routine: Routine) -> frozenset[str]:
    return frozenset(_WORD.findall(routine.source.text[routine.begin : routine.end].lower()))


def _reaching(found: set[str], words: Mapping[str, frozenset[str]]) -> set[str]:
    """These, and those with words that are one of these."""
    before = -1
    while before != (before := len(found)):
        found = found | {name for name, its in words.items() if its & found}
    return found


def _in_loops(routine: Routine) -> Iterator[Statement]:
    """The statements of its constructs that share loops out."""
    for node in walk(routine.body):
        if isinstance(node, Construct) and node.worksharing:
            yield from statements(node.body)


def _again(name: str, known: dict[str, Body]) -> bool:
    """Does it call itself, also by others?"""
    reached: set[str] = set()
    todo = [name]
    while todo:
        for one in known[todo.pop()].others & known.keys():
            if one not in reached:
                reached.add(one)
                todo.append(one)
    return name in reached


def _kind(clause: Clause) -> str:
    """Of DEFAULT."""
    return (clause.text or "").strip().lower()


def _lists_all(node: Construct) -> bool:
    return any(one.name == "default" and _kind(one) == "none" for one in node.directive.clauses)


@dataclass(frozen=True)
class _Call:
    """words[first:last] of a statement, and what the arguments are."""

    body: Body
    first: int
    last: int
    actual: dict[str, str]


class _Caller:
    """A procedure, or the program, in whose loops calls go."""

    def __init__(self, bodies: Bodies, users: dict[str, Body], routine: Routine) -> None:
        self.bodies, self.users, self.routine = bodies, users, routine
        self.words: set[str] = set()
        #: Constructs with DEFAULT(NONE), and variables that calls in them bring.
        self.unlisted: dict[int, tuple[Construct, set[str]]] = {}

    def edits(self) -> list[Edit]:
        """Lines (begin, end) and what takes their place."""
        shared_out = list(self._shared_out(self.routine.body, ()))
        if not shared_out:
            return []
        lines = {one.begin: one for one in self.bodies.lines_of(self.routine)}
        self.words = {word.lower() for word in re.findall(r"\w+", self.routine.source.text)}
        newline = "\r\n" if "\r\n" in self.routine.source.text else "\n"
        made: dict[int, tuple[Line, list[str]]] = {}
        for statement, around in shared_out:
            line = lines.get(statement.begin)
            if line is None or not line.alone or line.label:
                continue
            inlined = self._inlined(line, statement, around)
            if inlined is not None:
                made[line.begin] = (line, inlined)
        for node, names in self.unlisted.values():
            if names:
                line = lines[node.begin]
                made[line.begin] = (line, self._listing(line, names))
        return [
            (line.line_begin, line.line_end, "".join(one + newline for one in text))
            for line, text in made.values()
        ]

    def _bring(self, body: Body, around: Sequence[Node]) -> None:
        """Note what constructs around a call do not list, and its variables are without one."""
        for node in around:
            if isinstance(node, Construct) and _lists_all(node):
                names = self.unlisted.setdefault(id(node), (node, set()))[1]
                clauses = {one.name for one in node.directive.clauses} - _NAMELESS
                listed = node.directive.listed("shared", *clauses)
                names |= self.bodies.shared(body) - listed

    def _listing(self, line: Line, names: set[str]) -> list[str]:
        """A directive with DEFAULT(NONE), and the variables that what stands in place of calls brings."""
        indent = "" if self.routine.source.form.value == "fixed" else self.routine.source.indent(line.begin)
        text = f"{indent}!$omp {line.code.strip()} shared({', '.join(sorted(names))})"
        return [self._marker(line.begin), *self._wrapped(text), self._marker(line.line_end)]

    def _shared_out(
        self, nodes: Sequence[Node], around: tuple[Node, ...]
    ) -> Iterator[tuple[Statement, tuple[Node, ...]]]:
        """The statements inside loops that are shared out, with what they lie in, outer nodes first."""
        for node in nodes:
            if isinstance(node, Statement):
                sharing = [one for one in around if isinstance(one, Construct) and one.worksharing]
                if sharing and any(isinstance(one, Loop) for one in around[around.index(sharing[0]) :]):
                    yield node, around
            elif isinstance(node, Branch):
                for _, body in node.arms:
                    yield from self._shared_out(body, (*around, node))
            elif isinstance(node, Loop | Construct):
                yield from self._shared_out(node.body, (*around, node))

    # --- one statement --------------------------------------------------------------------------------------

    def _inlined(self, line: Line, statement: Statement, around: Sequence[Node]) -> list[str] | None:
        """The lines that take the place of this one, if it calls something that can go there."""
        if statement.kind not in (Kind.ASSIGNMENT, Kind.CALL) or statement.unread:
            return None
        words = tokens(line.code)
        start = 0
        if statement.guarded:
            start = closing(words, 1) + 1
        calls = list(self._calls(line, words, start, statement.kind is Kind.CALL))
        if not calls or not all(self._fits(one.body, around) for one in calls):
            return None
        indent = self.routine.source.indent(line.line_begin)
        if self.routine.source.form.value == "fixed":
            indent = " " * max(6, len(indent))
        heads: list[str] = []
        inner: list[str] = []
        code, at = [], words[start].begin if start < len(words) else 0
        for call in calls:
            made = self._said(call, indent, around)
            if made is None:
                return None
            variables, body, value = made
            heads += variables
            inner += body
            if call.body.result:
                code += [line.code[at : words[call.first].begin], value]
                at = words[call.last - 1].end
        for call in calls:
            self._bring(call.body, around)
        here = self._marker(line.begin)
        out = [here]
        if statement.guarded:
            out += self._wrapped(f"{indent}{line.code[: words[start - 1].end].strip()} then")
        out += [f"{indent}block", *heads, *inner, here]
        if statement.kind is Kind.ASSIGNMENT:
            out += self._wrapped(indent + "".join([*code, line.code[at:]]).strip())
        out.append(f"{indent}end block")
        if statement.guarded:
            out.append(f"{indent}end if")
        return [*out, self._marker(line.line_end)] if line.line_end < len(self.routine.source.text) else out

    def _marker(self, offset: int) -> str:
        source = self.routine.source
        path, number = source.origin(source.line_of(offset))
        return marker(number, path)

    def _wrapped(self, text: str) -> list[str]:
        return wrap(text, self.routine.source)

    def _calls(self, line: Line, words: list[Token], start: int, call: bool) -> Iterator[_Call]:
        """Those of the statement's that lie in no other one, inner ones alone."""
        for index in range(start, len(words)):
            body = self.users.get(words[index].text)
            if body is None or not is_name(words, index) or bool(body.result) == call:
                continue
            bracket = index + 1 < len(words) and words[index + 1].text == "("
            if call != (index == start + 1 and words[start].text == "call") or not (bracket or call):
                continue
            end = closing(words, index + 1) if bracket else index
            between = words[index + 2 : end]
            if any(one.text in self.users for one in between):
                continue
            actual = self._actual(line, words, index + 1, body) if bracket else {}
            if actual is not None and set(actual) == set(body.routine.arguments):
                yield _Call(body, index, end + 1, actual)

    def _actual(self, line: Line, words: list[Token], opening: int, body: Body) -> dict[str, str] | None:
        """The text of each argument, by the dummy's name."""
        found: dict[str, str] = {}
        for name, first, last in given(words, opening, body.routine):
            if not name or name in found:
                return None
            found[name] = line.code[words[first].begin : words[last - 1].end]
        return found

    # --- may it go there? -----------------------------------------------------------------------------------

    def _fits(self, body: Body, around: Sequence[Node]) -> bool:
        """Do the names in it mean the same in the loop?"""
        if body.result and not body.computes:
            return False
        for node in around:
            if isinstance(node, Loop) and node.variable in body.others:
                return False
            if isinstance(node, Branch) and (node.masked or node.arms[0][0].form == "associate"):
                return False
            if isinstance(node, Construct) and not self._leaves(node, body):
                return False
        names = {*body.others, body.routine.name.lower()}
        if any(self.routine.places.get(name) for name in names):
            return False
        scopes = [self.routine]
        while scopes[-1].parent is not None:
            scopes.append(scopes[-1].parent)
        host = body.routine.parent
        assert host is not None
        below = scopes
        if host in scopes:
            below = scopes[: scopes.index(host)]
        elif not host.module or not any(self._sees(one, host, names) for one in scopes):
            return False
        return not any(self._means_other(name, one, host) for name in names for one in below)

    def _leaves(self, node: Construct, body: Body) -> bool:
        """Do the names mean the same inside the construct as outside?"""
        if not set(node.directive.name.split()) <= _AROUND:
            return False
        # Inside, the counters of all its loops are each thread's own.
        if any(isinstance(one, Loop) and one.variable in body.others for one in walk(node.body)):
            return False
        for clause in node.directive.clauses:
            if clause.name == "default" and _kind(clause) not in ("shared", "none"):
                return False
            if clause.name not in _NAMELESS and node.directive.listed(clause.name) & body.others:
                return False
        return True

    def _sees(self, scope: Routine, module: Routine, names: Iterable[str]) -> bool:
        """Does it have these by USE, under their own names?"""
        found = scope.uses.get(module.name)
        if found is None or any(one[0] == module.name for one in scope.renamed):
            return False
        listed = None if found[2] is None else set(_WORD.findall(found[2].lower()))
        for name in names:
            if name in INTRINSICS and not self.bodies.brings(module.name, name):
                continue
            if not self.bodies.gives(module, name) or (listed is not None and name not in listed):
                return False
        return True

    def _means_other(self, name: str, scope: Routine, host: Routine) -> bool:
        """Does the scope have another meaning for what is a name around the procedure?"""
        if (
            name in scope.declarations
            or name in scope.arguments
            or name in (scope.result, scope.name.lower())
        ):
            return True
        if any(one.name.lower() == name for one in self.bodies.inside(scope)):
            return True
        if any(name == local for _, _, local in scope.names_by_use()):
            return True
        for module, (_, _, only) in scope.uses.items():
            if module == host.name or (only is not None and name not in _WORD.findall(only.lower())):
                continue
            known = module in self.bodies.modules
            if (self.bodies.brings(module, name) and module not in host.uses) or (
                not known and module not in host.uses and not module.startswith(("omp_lib", "iso_", "ieee_"))
            ):
                return True
        return False

    # --- what stands for it ---------------------------------------------------------------------------------

    def _said(
        self, call: _Call, indent: str, around: Sequence[Node]
    ) -> tuple[list[str], list[str], str] | None:
        """Declarations, statements, and what stands for the value."""
        body, routine = call.body, call.body.routine
        stands: dict[str, str] = {}
        first: list[str] = []
        late: list[tuple[str, str]] = []
        for name in routine.arguments:
            kept = self._argument(call, name, around)
            if kept is None:
                return None
            if not kept:
                kept = unused_name(name, self.words)
                late.append((name, kept))
                first += self._wrapped(f"{indent}{kept} = {call.actual[name]}")
            stands[name] = kept
        own = [name for name in routine.declarations if name not in routine.arguments and name != body.result]
        stands |= {name: unused_name(name, self.words) for name in own}
        for name in own:
            if not named_in(routine.declarations[name]).isdisjoint(dict(late)):
                return None
        variables = []
        for name in own:
            one = routine.declarations[name]
            variables += self._wrapped(indent + declared(one, stands[name], stands))
        if body.result:
            stands[body.result] = unused_name(body.result, self.words)
            kind = routine.declarations.get(body.result)
            if kind is not None and kind.bounds:
                return None
            text = kind.type if kind is not None else routine.result_type
            variables += self._wrapped(f"{indent}{text} :: {stands[body.result]}")
        for name, kept in late:
            variables += self._wrapped(f"{indent}{routine.declarations[name].type} :: {kept}")
        for line in body.lines:
            path, number = routine.source.origin(routine.source.line_of(line.begin))
            first.append(marker(number, path))
            first += self._wrapped(indent + replaced(body.text(line), stands))
        first += [f"{indent}end if"] * len(body.returns)
        return variables, first, stands.get(body.result, "")

    def _argument(self, call: _Call, name: str, around: Sequence[Node]) -> str | None:
        """What stands for a dummy: the argument's text; nothing: a variable that gets its value; None: the
        call stays."""
        body, actual = call.body, call.actual[name]
        words = tokens(actual)
        if body.routine.declarations[name].bounds:
            return actual if len(words) == 1 and self._same_shape(body, name, words[0].text) else None
        names = set(names_of(words))
        changed = self._changed(call, names, around)
        variable = words[0].kind == "name" and (len(words) == 1 or self._is_element(words))
        if name in body.written:
            names.discard(words[0].text)
            if len(words) > 1 and name in body.counters:
                return None
            return actual if variable and not names & changed else None
        if names & changed:
            # A variable: what the procedure sees of the change, the language does not say.
            whole = len(words) == 1 or (words[1].text == "(" and closing(words, 1) == len(words) - 1)
            return None if words[0].text in changed and whole else ""
        if variable and len(words) == 1:
            return actual if self._is_scalar(words[0].text) else ""
        return f"({actual})" if all(self._is_steady(one) for one in words) else ""

    def _changed(self, call: _Call, names: set[str], around: Sequence[Node]) -> set[str]:
        """The names of variables, and of these ones, that may have another value before the call is over."""
        body, routine = call.body, call.body.routine
        found = set(body.written - body.own)
        found |= {tokens(call.actual[name])[0].text for name in routine.arguments if name in body.written}
        if self.bodies.calls(body):
            steady = {one.variable for one in around if isinstance(one, Loop)}
            if not any(True for _ in self.bodies.inside(self.routine)):
                steady |= set(self.routine.declarations)
            found |= names - steady
        return found

    def _is_steady(self, word: Token) -> bool:
        """Is it of a sum of numbers and plain variables?"""
        if word.kind == "name":
            return self._is_scalar(word.text)
        return word.kind == "number" or word.text in _STEADY

    def _declaration(self, name: str) -> Declaration | None:
        """Here, or in a module from which the name may come."""
        scope: Routine | None = self.routine
        while scope is not None:
            if name in scope.declarations:
                return scope.declarations[name]
            if any(name == local for _, _, local in scope.names_by_use()):
                return None
            for module in scope.uses.keys() & self.bodies.modules.keys():
                if name in self.bodies.modules[module].declarations:
                    return self.bodies.modules[module].declarations[name]
            scope = scope.parent
        return None

    def _is_scalar(self, name: str) -> bool:
        found = self._declaration(name)
        if found is None or found.bounds:
            return False
        return not found.attributes & {"pointer", "allocatable"}

    def _is_element(self, words: list[Token]) -> bool:
        """One of a declared array, by subscripts that do not change meanwhile?"""
        if len(words) < 4 or words[1].text != "(" or closing(words, 1) != len(words) - 1:
            return False
        found = self._declaration(words[0].text)
        if found is None or not found.bounds:
            return False
        return all(self._is_steady(one) or one.text == "," for one in words[2:-1])

    def _same_shape(self, body: Body, name: str, actual: str) -> bool:
        found = self._declaration(actual)
        dummy = body.routine.declarations[name].bounds
        if found is None or len(found.bounds) != len(dummy) or "pointer" in found.attributes:
            return False
        if not named_in(body.routine.declarations[name]).isdisjoint(body.own):
            return False  # by arguments, whose values may be others than those of such names here
        for one, other in zip(dummy, found.bounds, strict=True):
            if one.deferred or one.upper is None:
                if one.lower != "1" or other.lower != "1" or one.upper is not None:
                    return False
            elif (one.lower, one.upper) != (other.lower, other.upper):
                return False
        return True
