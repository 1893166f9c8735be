"""The grammar of the directives (docs/directives.md), one for all spellings: text -> directives.

Fortran writes subscripts a(i, j), C a[i][j]; all else is the same, and keywords have no case in either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from homing.translate.directives.located import Located
from homing.translate.directives.model import (
    Align,
    Arrangement,
    Bounds,
    DataAffinity,
    Dialect,
    Directive,
    Distribute,
    Dynamic,
    Format,
    Kind,
    Nest,
    NextTouch,
    NoSequence,
    Numa,
    OnHome,
    Onto,
    Redistribute,
    Reference,
    Replicate,
    Shadow,
    Source,
    Template,
    ThreadAffinity,
    Width,
)
from homing.translate.directives.reader import END, Reader, Wrong
from homing.translate.positions import Name, Problem, Text


def parse(located: Located, source: Source, clauses_only: bool = False) -> tuple[Directive, ...] | Problem:
    """The directives that the text (after the sentinel) says, or what is wrong with it.

    clauses_only: as behind `!$SGI+` and on OpenMP lines, where only NEST and AFFINITY may stand."""
    try:
        parser = _Parser(located, source)
        return tuple(parser.clauses() if clauses_only else parser.directive())
    except Wrong as wrong:
        position = located.position(wrong.token.offset) if located.text.strip() else source.position
        text = wrong.token.text if wrong.token.kind != "end" else located.text.strip()
        return Problem(position, text or source.text.strip(), wrong.reason)


class _Parser(Reader):
    """All directives."""

    # --- directives ---------------------------------------------------------------------------------------

    def directive(self) -> list[Directive]:
        if self._source.dialect is Dialect.COMPAQ and self._word(1) == "numa":
            self._keyword("omp")
        kinds: dict[str, Callable[[], list[Directive]]] = {
            "distribute": self._distribute,
            "distribute_reshape": self._distribute,
            "redistribute": self._redistribute,
            "next_touch": self._next_touch,
            "migrate_next_touch": self._next_touch,
            "migrate_next_touch_nopreserve": self._next_touch,
            "replicate": self._replicate,
            "align": self._align,
            "template": self._template,
            "processors": self._arrangement,
            "memories": self._arrangement,
            "shadow": self._shadow,
            "nosequence": self._no_sequence,
            "dynamic": self._dynamic,
        }
        token = self._peek()
        word = token.text.lower() if token.kind == "name" else ""
        if word in ("on", "affinity", "nest", "numa"):
            return self.clauses()
        if word not in kinds:
            raise Wrong(
                token,
                f"a directive is missing before {END}"
                if token.kind == "end"
                else "is no directive of homing",
            )
        found = kinds[word]()
        self._expect_end()
        return found

    def clauses(self) -> list[Directive]:
        found: list[Directive] = []
        while True:
            token = self._peek()
            if self._keyword("on"):
                found.append(self._on_home())
            elif self._keyword("affinity"):
                found.append(self._affinity())
            elif self._keyword("nest"):
                variables = self._variables()
                found.append(Nest(self._source, variables, self._onto()))
            elif self._keyword("numa"):
                found.append(Numa(self._source))
            else:
                raise Wrong(token, "only ON HOME, AFFINITY, NEST and NUMA can stand here")
            if any(type(one) is type(found[-1]) for one in found[:-1]):
                raise Wrong(token, "is said twice")
            comma = self._mark(",")
            if not comma and self._peek().kind == "end":
                return found

    def _distribute(self) -> list[Directive]:
        reshape = self._take().text.lower() == "distribute_reshape"
        # The paper prints the keyword with a hyphen.
        if not reshape and self._peek().text == "-" and self._word(1) == "reshape":
            self._at += 2
            reshape = True
        parts = self._distributees()
        return [
            Distribute(self._source, one.name, one.formats, one.onto, one.extents, reshape) for one in parts
        ]

    def _redistribute(self) -> list[Directive]:
        self._take()
        parts = self._distributees()
        for one in parts:
            if one.extents:
                raise Wrong(self._tokens[0], "EXTENT belongs to the array's DISTRIBUTE, not here")
        return [Redistribute(self._source, one.name, one.formats, one.onto) for one in parts]

    def _next_touch(self) -> list[Directive]:
        return [NextTouch(self._source, *self._whole_arrays())]

    def _replicate(self) -> list[Directive]:
        return [Replicate(self._source, *self._whole_arrays())]

    def _whole_arrays(self) -> tuple[tuple[Name, ...], tuple[Text, ...]]:
        self._take()
        names = self._parenthesised(lambda: self._name("an array"))
        token = self._peek()
        extents = self._parenthesised(self._expression) if self._keyword("extent") else ()
        if extents and len(names) > 1:
            raise Wrong(token, "EXTENT goes with one array")
        return names, extents

    def _distributees(self) -> list[_Distributee]:
        if self._peek().text in "([" and self._peek().kind == "mark":
            formats = self._formats()
            (common,) = self._with_clauses([_Distributee(None, formats)])
            if not self._mark("::"):
                raise Wrong(self._peek(), "must be `:: names` after the distribution")
            return [replace(common, given=name) for name in self._names()]
        found: list[_Distributee] = []
        while True:
            name = self._name("an array or template")
            found = self._with_clauses([*found, _Distributee(name, self._formats())])
            if not self._mark(","):
                return found

    def _with_clauses(self, found: list[_Distributee]) -> list[_Distributee]:
        """ONTO and EXTENT count for the arrays before them that have none yet."""
        while True:
            token = self._peek()
            if (onto := self._onto()) is not None:
                if found[-1].onto is not None:
                    raise Wrong(token, "is said twice")
                found = [replace(one, onto=one.onto or onto) for one in found]
            elif self._keyword("extent"):
                extents = self._parenthesised(self._expression)
                if found[-1].extents:
                    raise Wrong(token, "is said twice")
                found = [replace(one, extents=one.extents or extents) for one in found]
                for one in found:
                    if len(one.extents) != len(one.formats):
                        raise Wrong(token, f"has {len(extents)} extents for {len(one.formats)} dimensions")
            else:
                return found

    def _formats(self) -> tuple[Format, ...]:
        if self._peek().text not in ("(", "["):
            raise Wrong(self._peek(), "must be a distribution for each dimension, such as " + self._example())
        return self._subscripts(self._format)

    def _example(self) -> str:
        return "(*, BLOCK)" if self._fortran else "[BLOCK][*]"

    def _format(self) -> Format:
        token = self._take()
        position = self._located.position(token.offset)
        word = token.text.lower()
        if word == "*":
            return Format(Kind.STAR, (), position)
        if token.kind != "name" or word not in ("block", "cyclic", "gen_block"):
            raise Wrong(token, "must be BLOCK, CYCLIC, CYCLIC(k), GEN_BLOCK(sizes) or *")
        kind = Kind(word)
        arguments: tuple[Text, ...] = ()
        if self._peek().text == "(":
            opening = self._peek()
            arguments = self._parenthesised(self._expression)
            if kind is Kind.BLOCK:
                raise Wrong(opening, "BLOCK takes no size here: write GEN_BLOCK(sizes)")
            if kind is Kind.CYCLIC and len(arguments) != 1:
                raise Wrong(opening, f"CYCLIC takes one number, not {len(arguments)}")
        elif kind is Kind.GEN_BLOCK:
            raise Wrong(self._peek(), "GEN_BLOCK needs its sizes: GEN_BLOCK(name of an array) or a list")
        return Format(kind, arguments, position)

    def _onto(self) -> Onto | None:
        if not self._keyword("onto"):
            return None
        if self._peek().text == "(":
            return Onto(None, self._parenthesised(self._weight))
        return Onto(self._name("a PROCESSORS or MEMORIES arrangement", names_may_follow=True), ())

    def _weight(self) -> Text:
        token = self._peek()
        if token.text == "*":
            return self._text(self._take())
        if token.kind != "number":
            raise Wrong(token, "must be a number or *")
        return self._expression()

    def _align(self) -> list[Directive]:
        self._take()
        if self._peek().text in ("(", "["):
            subscripts = self._subscripts(self._align_subscript)
            target = self._with_target()
            if not self._mark("::"):
                raise Wrong(self._peek(), "must be `:: names` after the alignment")
            return [Align(self._source, name, subscripts, target) for name in self._names()]
        name = self._name("an array")
        subscripts = self._subscripts(self._align_subscript) if self._peek().text in ("(", "[") else ()
        return [Align(self._source, name, subscripts, self._with_target())]

    def _with_target(self) -> Reference:
        if not self._keyword("with"):
            raise Wrong(self._peek(), "must be WITH and what to align with")
        name = self._name("an array or template", names_may_follow=True)
        subscripts: tuple[Text, ...] = ()
        if self._peek().text in ("(", "["):
            subscripts = self._subscripts(self._align_target)
        return Reference(name, subscripts)

    def _align_subscript(self) -> Text:
        token = self._take()
        if token.kind != "name" and token.text not in ("*", ":"):
            raise Wrong(token, "must be a name, : or *")
        return self._text(token)

    def _align_target(self) -> Text:
        token = self._peek()
        if token.text in ("*", ":"):
            return self._text(self._take())
        return self._expression()

    def _template(self) -> list[Directive]:
        self._take()
        found: list[Directive] = []
        while True:
            name = self._name("a template")
            found.append(Template(self._source, name, self._subscripts(self._bounds)))
            if not self._mark(","):
                return found

    def _arrangement(self) -> list[Directive]:
        memories = self._take().text.lower() == "memories"
        found: list[Directive] = []
        while True:
            name = self._name("a name for the arrangement")
            bounds: tuple[Bounds, ...] = ()
            if self._peek().text in ("(", "["):
                bounds = self._subscripts(self._extent_or_star)
            found.append(Arrangement(self._source, name, bounds, memories))
            if not self._mark(","):
                return found

    def _bounds(self) -> Bounds:
        first = self._expression()
        if not self._mark(":"):
            return Bounds(None, first)
        return Bounds(first, self._expression())

    def _extent_or_star(self) -> Bounds:
        if self._peek().text == "*":
            return Bounds(None, self._text(self._take()))
        return self._bounds()

    def _shadow(self) -> list[Directive]:
        self._take()
        if self._peek().text in ("(", "["):
            widths = self._subscripts(self._width)
            if not self._mark("::"):
                raise Wrong(self._peek(), "must be `:: names` after the widths")
            return [Shadow(self._source, name, widths) for name in self._names()]
        found: list[Directive] = []
        while True:
            name = self._name("an array")
            found.append(Shadow(self._source, name, self._subscripts(self._width)))
            if not self._mark(","):
                return found

    def _width(self) -> Width:
        low = self._expression()
        return Width(low, self._expression() if self._mark(":") else low)

    def _no_sequence(self) -> list[Directive]:
        self._take()
        self._mark("::")
        return [NoSequence(self._source, name) for name in self._names()]

    def _dynamic(self) -> list[Directive]:
        self._take()
        self._mark("::")
        return [Dynamic(self._source, name) for name in self._names()]

    def _on_home(self) -> OnHome:
        if not self._keyword("home"):
            raise Wrong(self._peek(), "must be ON HOME(array element)")
        (home,) = self._parenthesised(self._reference, most=1)
        return OnHome(self._source, home)

    def _affinity(self) -> Directive:
        variables = self._variables()
        if not self._mark("="):
            raise Wrong(
                self._peek(),
                "must be `= DATA(array element)` or `= THREAD(expression)`; this is not OpenMP's AFFINITY "
                "clause of tasks",
            )
        if self._keyword("data"):
            (home,) = self._parenthesised(self._reference, most=1)
            return DataAffinity(self._source, variables, home)
        if self._keyword("thread"):
            (thread,) = self._parenthesised(self._expression, most=1)
            return ThreadAffinity(self._source, variables, thread)
        raise Wrong(self._peek(), "must be DATA(array element) or THREAD(expression)")

    def _variables(self) -> tuple[Name, ...]:
        opening = self._peek()
        found = self._parenthesised(lambda: self._name("a loop variable"))
        if len({name.key for name in found}) < len(found):
            raise Wrong(opening, "names a loop variable twice")
        return found

    def _reference(self) -> Reference:
        name = self._name("an array element")
        if self._peek().text not in ("(", "["):
            raise Wrong(self._peek(), "must be the subscripts of an array element")
        return Reference(name, self._subscripts(self._section))

    def _section(self) -> Text:
        """A subscript, also a section `i:j` or `:`."""
        return self._expression(colon=True)


@dataclass(frozen=True)
class _Distributee:
    given: Name | None
    formats: tuple[Format, ...]
    onto: Onto | None = None
    extents: tuple[Text, ...] = ()

    @property
    def name(self) -> Name:
        assert self.given is not None
        return self.given
