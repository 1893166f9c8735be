"""C: macros that stand for elements of arrays (`#define U(i, j) u[i][j]`), for heads of loops
(`#define LOOP(i, n) for (int i = 0; i < n; i++)`), or by which two variables change places, are written out
in files with directives, as the user could have written them. So are those that name variables themselves
(`#define HERE i`) and sums without brackets (`#define OFF 1 + 1`), in all files: a name in a subscript that
is no variable's would be the same in each iteration, and one value in `i - (OFF)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from clang.cindex import Cursor, CursorKind

from homing.translate.code_text import Edit, blanked, closing
from homing.translate.front.c_places import Places
from homing.translate.front.libclang import VARIABLES
from homing.translate.source import SourceFile

_WORD = re.compile(r"[A-Za-z_]\w*")
#: `do { double *t = x; x = y; y = t; } while (0)`, word by word.
_CHANGE = re.compile(
    r"(?:do )?(?:{ )?(?:[\w*() ]+[ *)])?(\w+) = (\w+) ; \2 = (\w+) ; \3 = \1(?: ;)?(?: })?(?: while \( 0 \))?"
)
_OPENED = re.compile(r"\s*\(")
#: Asks what is defined, or for a number.
_ASKS = re.compile(r"[ \t]*#(?![ \t]*pragma\b)")


@dataclass(frozen=True)
class Macro:
    """parameters: None: it is no function; body: its words."""

    parameters: tuple[str, ...] | None
    body: tuple[str, ...]


def defined(cursor: Cursor) -> Macro:
    """What a definition says."""
    words = [token.spelling for token in cursor.get_tokens()]
    text_begin = cursor.extent.start.offset
    second = list(cursor.get_tokens())[1:2]
    takes = bool(second) and second[0].spelling == "("
    takes = takes and second[0].extent.start.offset == text_begin + len(cursor.spelling)
    if not takes or ")" not in words:
        return Macro(None, tuple(words[1:]))
    close = words.index(")")
    return Macro(tuple(word for word in words[2:close] if word != ","), tuple(words[close + 1 :]))


class _Macros:
    """Those that are defined where the preprocessor stands."""

    def __init__(self, variables: Callable[[], set[str]]) -> None:
        self._cursors: dict[str, Cursor] = {}
        self._known: dict[str, Macro] = {}
        self._within: dict[str, frozenset[str]] = {}
        self._variables = variables

    def define(self, cursor: Cursor) -> None:
        self._cursors[cursor.spelling] = cursor
        self._known.pop(cursor.spelling, None)
        self._within.clear()

    def get(self, name: str) -> Macro | None:
        if name not in self._known and name in self._cursors:
            self._known[name] = defined(self._cursors[name])
        return self._known.get(name)

    def within(self, name: str) -> frozenset[str]:
        """The words of a macro, and of those that it is made of, but for their parameters."""
        if name not in self._within:
            found: set[str] = set()
            waiting = [name]
            while waiting:
                macro = self.get(waiting.pop())
                given = {*found, *(macro.parameters or ())} if macro else found
                fresh = [one for one in macro.body if one not in given] if macro else []
                found.update(fresh)
                waiting += fresh
            self._within[name] = frozenset(found)
        return self._within[name]

    def matters(self, name: str) -> bool:
        """Has it subscripts, means it more than a value's name, is it the head of a loop, or do its arguments
        change places?"""
        macro = self.get(name)
        if macro is None:
            return False
        if self.means_more(name):
            return True
        return "[" in self.within(name) or macro.body[:1] == ("for",) or _changing(macro) is not None

    def means_more(self, name: str) -> bool:
        """Does it name variables, or is it a sum or product without brackets around it? Those of the program:
        what the system's headers define is left to them."""
        macro = self.get(name)
        if macro is None or self._cursors[name].location.is_in_system_header:
            return False
        if _is_loose(macro.body):
            return True
        words = [one for one in self.within(name) if _WORD.fullmatch(one) and one not in self._cursors]
        return bool(words) and not self._variables().isdisjoint(words)

    def makes_words(self, name: str) -> bool:
        """Has it texts or words made from its arguments?"""
        return not {"#", "##"}.isdisjoint(self.within(name))


def accesses(
    source: SourceFile, everything: Iterable[Cursor], places: Places, named: Collection[str]
) -> Iterator[Edit]:
    """Macros in the file's code by which elements of the named arrays or variables are meant, and heads of
    loops, written out. What stays: those that make words or texts (#, ##), what they get, and uses of more
    than one line."""
    arrays = "|".join(sorted(map(re.escape, named))) or "(?!)"
    wanted = re.compile(rf"\b(?:{arrays})\s*(?:\[|=(?!=))" + (r"|\Afor\b" if named else ""))
    bracketed = re.compile(rf"(?<![\w)\]])\(\s*({arrays})\s*\)\s*\[")  # (u)[i], where no function gets u
    macros = _Macros(cache(lambda: _variables(everything, source.path)))
    kept = 0  # what stands before this place stays, or is written out already
    for cursor in everything:
        if cursor.kind is CursorKind.MACRO_DEFINITION:
            macros.define(cursor)
        elif cursor.kind is CursorKind.MACRO_INSTANTIATION:
            where = cursor.location.file
            if where is None or where.name != source.path:
                continue
            begin, end = places.begin(cursor), places.end(cursor)
            if begin < kept or _ASKS.match(source.text, source.text.rfind("\n", 0, begin) + 1):
                continue
            use = source.text[begin:end]
            made = use
            if macros.makes_words(cursor.spelling):
                kept = end
            elif "\n" not in use:
                made = bracketed.sub(r"\1[", _written_out(use, macros, frozenset()))
            if made != use and (macros.means_more(cursor.spelling) or wanted.search(made)):
                kept = end
                yield begin, end, made


def _is_loose(body: Sequence[str]) -> bool:
    """Is it an expression that other operators may take apart, as `1 + 1` behind a minus?"""
    depth, found = 0, False
    for before, word in pairwise(("", *body)):
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if word in (";", "{", "=", "..."):
            return False
        found |= (
            depth == 0
            and word in ("+", "-", "*", "/", "%")
            and (before in (")", "]") or before[-1:].isalnum())
        )
    return found


def _variables(everything: Iterable[Cursor], path: str) -> set[str]:
    """The names of the file's variables and parameters."""
    found = set()
    for cursor in everything:
        where = cursor.location.file
        if where is None or where.name != path or not cursor.kind.is_declaration():
            continue
        found |= {one.spelling for one in cursor.walk_preorder() if one.kind in VARIABLES}
    return found


def _written_out(text: str, macros: _Macros, inside: frozenset[str]) -> str:
    """The text in which macros that matter stand as what they mean. A number's or another value's name stays
    what it is. inside: the macros that the text comes from, which C does not
    replace in it once more."""
    code = blanked(text, False, " ")
    out: list[str] = []
    at = 0
    for word in _WORD.finditer(code):
        macro = macros.get(word[0])
        if word.start() < at or macro is None or word[0] in inside or not macros.matters(word[0]):
            continue
        end = word.end()
        pieces: dict[str, str] = {}
        if macro.parameters is not None:
            opened = _OPENED.match(code, word.end())
            if opened is None:
                continue
            end = closing(code, opened.end())
            given = arguments_of(text[opened.end() : end - 1], code[opened.end() : end - 1])
            given = tuple(_written_out(one, macros, inside) for one in given)
            if len(given) != len(macro.parameters) or "..." in macro.parameters:
                return text
            pieces = dict(zip(macro.parameters, given, strict=True))
        body = "".join(apart([pieces.get(one, one) for one in _changing(macro) or macro.body]))
        out += [text[at : word.start()], _written_out(body, macros, inside | {word[0]})]
        at = end
    return "".join([*out, text[at:]])


def _changing(macro: Macro) -> tuple[str, ...] | None:
    """The body of a macro by which two of its arguments change places, without brackets around them; None: it
    is another."""
    words = " ".join(macro.body)
    for one in macro.parameters or ():
        words = re.sub(rf"(?<=[=;] )\( {re.escape(one)} \)", one, words)
    found = _CHANGE.fullmatch(words)
    changing = found is not None and {found[2], found[3]} <= {*(macro.parameters or ())}
    return tuple(words.split(" ")) if changing else None


def with_arguments(macro: Macro, use: str) -> list[str] | None:
    """The body's words with what one use of the macro gives it; None: that is not seen."""
    code = blanked(use, False, " ")
    if macro.parameters is None:
        return list(macro.body)
    opened = code.find("(") + 1
    given = arguments_of(use[opened:-1], code[opened:-1])
    if not opened or len(given) != len(macro.parameters) or "..." in macro.parameters or "##" in macro.body:
        return None
    pieces = dict(zip(macro.parameters, given, strict=True))
    return [pieces.get(one, one) for one in macro.body]


def arguments_of(text: str, code: str) -> tuple[str, ...]:
    """What stands between commas that no brackets hold."""
    found, depth, begin = [], 0, 0
    for at, char in enumerate(code):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
    return (*found, text[begin:].strip())


def apart(words: Sequence[str]) -> Iterator[str]:
    """Words with blanks where two of them would be one."""
    before = ""
    for word in words:
        yield f" {word}" if (before[-1:].isalnum() or before[-1:] == "_") and _WORD.match(word) else word
        before = word
