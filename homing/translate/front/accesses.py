"""What a Fortran statement reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.front.expressions import Bindings, Expressions, NotRead, bind
from homing.translate.front.kinds import Form, form
from homing.translate.front.lines import Line
from homing.translate.front.tokens import closing, parts
from homing.translate.tree import Access, Kind, Reference, Statement

_KINDS = {
    "assignment": Kind.ASSIGNMENT,
    "pointer": Kind.ASSIGNMENT,
    "call": Kind.CALL,
    "allocate": Kind.ALLOCATE,
    "deallocate": Kind.DEALLOCATE,
    "read": Kind.INPUT,
    "write": Kind.OUTPUT,
    "print": Kind.OUTPUT,
    "io": Kind.OUTPUT,
    "goto": Kind.JUMP,
    "arithmetic if": Kind.JUMP,
    "return": Kind.JUMP,
    "exit": Kind.JUMP,
    "cycle": Kind.JUMP,
    "stop": Kind.JUMP,
}
#: What I/O statements define, by the words of their control lists.
_DEFINED = frozenset(["iostat", "iomsg", "newunit", "size"])
_GIVEN = frozenset(["unit", "file", "id"])  # to INQUIRE, which defines all else
#: Statements of which no access is followed: each name in them counts as used in an unknown way.
_UNKNOWN = frozenset(
    ["nullify", "data", "namelist", "image control", "team", "assign", "other", "declaration"]
)


def statement(line: Line, what: Form | None = None) -> Statement:
    """A statement, or the head of a construct, with its accesses."""
    code = Expressions(line.code, line.places)
    found = what or form(code.words)
    made = Statement(
        line.begin,
        line.end,
        Kind.OTHER,
        code.lower,
        label=line.label,
        places=line.places,
        code=line.code,
        form=found.kind,
    )
    try:
        _Filler(code, made).fill(found, 0)
    except (NotRead, IndexError) as error:
        begin, end = (error.begin, error.end) if isinstance(error, NotRead) else (0, len(line.code))
        made.unread = line.code[begin:end]
        made.references = [
            _unknown(code, index) for index, word in enumerate(code.words) if word.kind == "name"
        ]
    names = {r.name for r in made.references}
    made.reads = frozenset(r.name for r in made.references if r.access is not Access.WRITE)
    made.writes |= frozenset(
        r.name for r in made.references if r.access in (Access.WRITE, Access.UPDATE, Access.ARGUMENT)
    )
    if made.unread is not None:
        made.writes |= frozenset(names)
    return made


def _unknown(code: Expressions, index: int) -> Reference:
    begin, end = code.word_place(index), code.word_end(index)
    return Reference(code.words[index].text, begin, end, end, None, Access.OTHER)


class _Filler:
    def __init__(self, code: Expressions, made: Statement) -> None:
        self.code = code
        self.words = code.words
        self.made = made

    def fill(self, what: Form, begin: int) -> None:
        """Note the accesses of the statement whose form is `what`, which counts tokens from `begin`."""
        self.made.kind = _KINDS.get(what.kind, Kind.OTHER)
        at = begin + what.at
        if what.kind in _UNKNOWN:
            first = begin if what.kind == "other" else at
            names = [i for i in range(first, len(self.words)) if self.words[i].kind == "name"]
            self.made.references += [_unknown(self.code, index) for index in names]
            return
        method = getattr(self, "_" + what.kind.replace(" ", "_"), None)
        if self.made.kind is Kind.JUMP:
            self._jump(what, at)
        elif method is not None:
            method(at, begin + what.start)
        elif what.kind not in ("else", "format", "entry", "continue", "contains", "end"):
            self.made.references += self._list(at, len(self.words))

    # --- small things -------------------------------------------------------------------------------------

    def _list(self, begin: int, end: int) -> list[Reference]:
        return self.code.listed(begin, end)

    def _text(self, index: int) -> str:
        return self.words[index].text if index < len(self.words) else ""

    def _brackets(self, at: int) -> list[Reference]:
        """The accesses between the brackets at `at`."""
        return self._list(at + 1, closing(self.words, at))

    def _keyword(self, first: int, last: int) -> str | None:
        named = first + 1 < last and self.words[first].kind == "name" and self.words[first + 1].text == "="
        return self.words[first].text if named else None

    # --- constructs ---------------------------------------------------------------------------------------

    def _if_then(self, at: int, start: int) -> None:
        self.made.references += self._brackets(at)

    _else_if = _where_then = _if_then

    def _elsewhere(self, at: int, start: int) -> None:
        if self._text(at) == "(":
            self.made.references += self._brackets(at)

    def _select(self, at: int, start: int) -> None:
        self._associate(at, start)

    def _case(self, at: int, start: int) -> None:
        if self._text(at) == "(":
            for first, last in parts(self.words, at + 1, closing(self.words, at), ","):
                for side in parts(self.words, first, last, ":"):
                    self.made.references += self.code.reads(*side)

    def _guard(self, at: int, start: int) -> None:
        pass

    def _block(self, at: int, start: int) -> None:
        pass

    _critical = _block

    def _associate(self, at: int, start: int) -> None:
        """x => a(1, :): behind it, `x` is the array, which is not followed."""
        for first, last in parts(self.words, at + 1, closing(self.words, at), ","):
            renamed = self._text(first + 1) == "=>" and first + 1 < last
            found = self.code.reads(first + 2 if renamed else first, last)
            whole = found and found[0].end == self.code.word_end(last - 1)
            if renamed and whole and found[0].begin == self.code.word_place(first + 2):
                found[0].access = Access.OTHER
            self.made.references += found

    def _if(self, at: int, start: int) -> None:
        stop = closing(self.words, at)
        self.made.references += self._list(at + 1, stop)
        self._governed(stop + 1)

    _where = _if

    def _governed(self, begin: int) -> None:
        """The statement behind a logical IF, WHERE or FORALL."""
        self.made.guarded = True
        first = len(self.made.references)
        self.fill(form(self.words[begin:]), begin)
        for reference in self.made.references[first:]:
            reference.conditional = True

    def _forall(self, at: int, start: int) -> None:
        found, bound = header(self.code, at)
        self.made.references += found
        first = len(self.made.references)
        self._governed(closing(self.words, at) + 1)
        bind_all(self.made.references[first:], bound)

    def _forall_then(self, at: int, start: int) -> None:
        self.made.references += header(self.code, at)[0]

    def _do(self, at: int, start: int) -> None:
        """The loop's own variable and bounds are read with the loop (blocks.py)."""

    # --- actions ------------------------------------------------------------------------------------------

    def _assignment(self, at: int, start: int) -> None:
        targets = self.code.reads(start, at)
        targets[0].access = Access.WRITE
        self.made.references += targets + self.code.reads(at + 1, len(self.words))

    def _pointer(self, at: int, start: int) -> None:
        targets = self.code.reads(start, at)
        targets[0].access = Access.OTHER
        values = self.code.reads(at + 1, len(self.words))
        for reference in values:
            reference.access = Access.OTHER
        self.made.references += targets + values

    def _call(self, at: int, start: int) -> None:
        behind = at + 1
        while self._text(behind) == "%":
            behind += 2
        name = self.code.text(at, behind).replace(" ", "")
        self.made.calls = (name,)
        if behind - at > 1:
            receiver = self.code.reads(at, behind)
            receiver[0].access = Access.OTHER
            self.made.references += receiver
        if self._text(behind) == "(":
            found = self.code.arguments(name, behind + 1, closing(self.words, behind))
            for reference in found:
                if reference.argument_of == name:
                    reference.access = Access.ARGUMENT
            self.made.references += found

    def _allocate(self, at: int, start: int) -> None:
        begin, stop = at + 1, closing(self.words, at)
        typed = parts(self.words, begin, stop, "::")
        if len(typed) > 1:
            begin = typed[1][0]
        for first, last in parts(self.words, begin, stop, ","):
            keyword = self._keyword(first, last)
            found = self.code.reads(first + 2 if keyword else first, last)
            if found and (keyword is None or keyword in ("stat", "errmsg")):
                found[0].access = Access.WRITE
            self.made.references += found

    _deallocate = _allocate

    # --- input and output ---------------------------------------------------------------------------------

    def _control(self, at: int, inquire: bool = False) -> None:
        """The control list in the brackets at `at`."""
        for first, last in parts(self.words, at + 1, closing(self.words, at), ","):
            keyword = self._keyword(first, last)
            begin = first + 2 if keyword else first
            if self._text(begin) == "*" and begin + 1 == last:
                continue
            found = self.code.reads(begin, last)
            defined = keyword not in _GIVEN if inquire and keyword else keyword in _DEFINED
            if found and defined:
                found[0].access = Access.WRITE
            self.made.references += found

    def _items(self, at: int) -> list[Reference]:
        """The accesses behind the control list, or behind the format and its comma."""
        for index in range(at + 1, len(self.words)):  # variables of implied DOs
            if self._text(index) == "=" and self.words[index - 1].kind == "name":
                self.made.writes |= {self._text(index - 1)}
        if self._text(at) == "(" and self.made.form != "print":
            return self._list(closing(self.words, at) + 1, len(self.words))
        rest = parts(self.words, at, len(self.words), ",")
        return self._list(rest[1][0], len(self.words)) if len(rest) > 1 else []

    def _print(self, at: int, start: int) -> None:
        self._unit_or_format(at)
        self.made.references += self._items(at)

    def _write(self, at: int, start: int) -> None:
        """The unit may be an internal file, whose text changes: see resolve.py."""
        self._print(at, start)
        for number, (first, last) in enumerate(parts(self.words, at + 1, closing(self.words, at), ",")):
            keyword = self._keyword(first, last)
            if keyword == "unit" or (keyword is None and number == 0):
                place = self.code.word_place(first + 2 if keyword else first)
                for reference in self.made.references:
                    if reference.begin == place:
                        reference.access = Access.UPDATE

    def _unit_or_format(self, at: int) -> None:
        if self._text(at) == "(":
            self._control(at)
            return
        first, last = (parts(self.words, at, len(self.words), ",") or [(at, at)])[0]
        if self._text(first) != "*":
            self.made.references += self.code.reads(first, last)

    def _read(self, at: int, start: int) -> None:
        """Items, and what stands in an implied DO over them, get values; subscripts do not."""
        self._unit_or_format(at)
        found = self._items(at)
        subscripts = [(s.begin, s.end) for r in found for s in r.subscripts or ()]
        controls = self._implied_bounds(at)
        for reference in found:
            inside = any(begin <= reference.begin < end for begin, end in [*subscripts, *controls])
            if not inside:
                reference.access = Access.WRITE
        self.made.references += found

    def _implied_bounds(self, at: int) -> list[tuple[int, int]]:
        """Where the bounds of implied DOs stand: between `=` and the closing bracket."""
        found = []
        for index in range(at, len(self.words)):
            if self.words[index].text == "=" and self.words[index].kind == "operator":
                depth, stop = 0, index
                while stop < len(self.words) and depth >= 0:
                    depth += {"(": 1, ")": -1}.get(self.words[stop].text, 0)
                    stop += 1
                found.append((self.code.word_place(index), self.code.word_end(stop - 1)))
        return found

    def _io(self, at: int, start: int) -> None:
        if self._text(at) == "(":
            self._control(at, inquire=self._text(at - 1) == "inquire")
            self.made.references += self._list(closing(self.words, at) + 1, len(self.words))
            if self._text(at - 1) == "inquire":
                self.made.kind = Kind.OTHER
        else:
            self.made.references += self._list(at, len(self.words))

    # --- jumps --------------------------------------------------------------------------------------------

    def _jump(self, what: Form, at: int) -> None:
        made = self.made
        made.jump = "goto" if what.kind == "arithmetic if" else what.kind
        if what.kind == "arithmetic if":
            made.references += self._brackets(at)
            at = closing(self.words, at) + 1
        if what.kind in ("exit", "cycle"):
            made.targets = tuple(word.text for word in self.words[at:])
        elif what.kind in ("goto", "arithmetic if"):
            behind = closing(self.words, at) if self._text(at) == "(" else len(self.words)
            made.targets = tuple(w.text for w in self.words[at:behind] if w.kind == "number")
            if self._text(at) == "(":
                at = closing(self.words, at) + 1
                made.references += self._list(at + (self._text(at) == ","), len(self.words))
            elif at < len(self.words) and self.words[at].kind == "name":
                made.references.append(_unknown(self.code, at))
        else:
            quiet = [i for i in range(at, len(self.words)) if self._text(i) == "quiet" and i > at]
            stop = quiet[0] - 1 if quiet and self._text(quiet[0] + 1) == "=" else len(self.words)
            made.references += self._list(at, stop)


def header(code: Expressions, at: int) -> tuple[list[Reference], Bindings]:
    """(i = 1:n, j = 1:m, mask) of FORALL and DO CONCURRENT: what is read, and what the names stand for."""
    found: list[Reference] = []
    bound: Bindings = {}
    begin, stop = at + 1, closing(code.words, at)
    typed = parts(code.words, begin, stop, "::")
    if len(typed) > 1:
        begin = typed[1][0]
    for first, last in parts(code.words, begin, stop, ","):
        if first + 1 < last and code.words[first + 1].text == "=":
            sides = parts(code.words, first + 2, last, ":")
            for side in sides:
                found += code.reads(*side)
            texts = [code.text(*side) for side in sides]
            bound[code.words[first].text] = (texts[0], texts[1], texts[2] if len(texts) > 2 else "1")
        else:
            found += code.reads(first, last)
    return found, bound


def bind_all(references: Sequence[Reference], bound: Bindings) -> None:
    """Let the names stand for all their values in the references' subscripts."""
    for reference in references:
        for subscript in reference.subscripts or ():
            bind(subscript, bound)
