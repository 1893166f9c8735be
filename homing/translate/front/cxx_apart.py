"""C++: the code of a file that is not read, and stays as it is: classes with functions, templates, overloaded
operators, lambdas, and what the file's headers define.

When that code runs is not known (at the end of a block, through a pointer, before main), and does not matter
as long as it never works on a distributed array. So each place is noted at which one of its words, or a word
in plain code that is no call, may mean an array or a function of the file. A word means something else only
where clang's tree says so: the tree is not complete (templates that nothing has been made from).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from clang.cindex import Cursor, CursorKind, StorageClass

from homing.errors import UserError
from homing.files import MOST_SOURCE, read_bytes
from homing.translate.code_text import blanked
from homing.translate.front import cxx
from homing.translate.front.c_places import Places
from homing.translate.source import SourceFile
from homing.translate.tree import (
    CLASSES,
    Access,
    Apart,
    Kind,
    Mention,
    Routine,
    Statement,
    by_pointers_alone,
    statements,
)

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*pragma\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
_PARALLEL = re.compile(r"\s*omp\b[^\n]*?\bparallel\b")
_RESUMED = re.compile(r"\bco_(?:yield|await|return)\b")
_WORD = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_LINE = re.compile(r"^[ \t]*#[ \t]*(?:define[ \t]+(\w+))?((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
_OF_FILE = (CursorKind.TRANSLATION_UNIT, *cxx.SCOPES)
#: In a template they may mean what is known when it is used.
_MAY_CALL = (
    CursorKind.DECL_REF_EXPR,
    CursorKind.CALL_EXPR,
    CursorKind.UNEXPOSED_EXPR,
    CursorKind.OVERLOADED_DECL_REF,
)
#: What names things, and does nothing.
_NAMING = (CursorKind.USING_DECLARATION, CursorKind.USING_DIRECTIVE, CursorKind.NAMESPACE_ALIAS)
_NO_CODE = (
    *_NAMING,
    CursorKind.ENUM_DECL,
    CursorKind.TYPEDEF_DECL,
    CursorKind.TYPE_ALIAS_DECL,
    CursorKind.STATIC_ASSERT,
)
_OVERLOADED = "is overloaded: give each function a name of its own"
_DEFAULTS = "has default arguments: write them in each call"


class ClassFile:
    """What is noted of one file."""

    def __init__(self, source: SourceFile, places: Places, named: Callable[[Cursor], str]) -> None:
        """named: what a function is called in the tree."""
        self.source = source
        self.places = places
        self.named = named
        self.ranges: list[tuple[int, int, str]] = []  # with what stands there
        self.called: set[int] = set()  # where plain code calls functions by their names
        self.result = Apart()
        self._code = blanked(source.text, False, " ")
        self._arrays = set(_words(source.text))
        self._functions: dict[str, set[str]] = {}  # by their last names
        self._texts: dict[str, str] = {}  # of headers
        self._mine: list[Cursor] = []  # what the file itself declares
        self._naming: list[tuple[int, int]] = []

    def begin(self, everything: Sequence[Cursor], headers: Iterable[str]) -> None:
        """Look at all that the file and its headers (those of the system apart) declare, before anything is
        read."""
        types: dict[str, set[str]] = {}
        last: dict[str, set[str]] = {}
        mine = [one for one in everything if _is_mine(one)]
        self._mine = [one for one in everything if _in(one, self.source.path)]
        for cursor in mine:
            if cursor.kind is CursorKind.FUNCTION_DECL and cxx.apart(cursor) is None:
                types.setdefault(cxx.qualified(cursor), set()).add(_type(cursor))
            if cursor.kind in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE):
                last.setdefault(cursor.spelling, set()).add(_type(cursor))
        functions = [one for one in everything if one.kind is CursorKind.FUNCTION_DECL]
        for cursor in functions:
            if cursor.spelling in last and not _is_mine(cursor) and cxx.qualified(cursor) in types:
                types[cxx.qualified(cursor)].add(_type(cursor))
        self.places.overloaded |= {name for name, found in types.items() if len(found) > 1}
        for cursor in mine:
            if cursor.kind is CursorKind.FUNCTION_DECL and cxx.apart(cursor) is None:
                name = self.named(cursor)
                self._functions.setdefault(cursor.spelling, set()).add(name)
                if len(last[cursor.spelling]) > 1:
                    self.result.unfit[name] = _OVERLOADED
                elif any(self._default(one) for one in cursor.get_arguments()):
                    self.result.unfit.setdefault(name, _DEFAULTS)
        more: dict[str, set[str]] = {}
        for text in (self.source.text, *map(self._header_text, headers)):
            for line in _LINE.finditer(text):
                if line[1]:
                    more.setdefault(line[1], set()).update(_WORD.findall(line[2]))
        self._interesting = self._arrays | self._functions.keys()
        self._macros = {name: words & self._interesting for name, words in _closed(more).items()}

    def _default(self, parameter: Cursor) -> bool:
        begin, end = self.places.begin(parameter), self.places.end(parameter)
        inside = parameter.location.file is not None and parameter.location.file.name == self.source.path
        return "=" in self._code[begin:end] if inside else any(_expressions(parameter))

    # --- what is not read -------------------------------------------------------------------------------

    def add(self, cursor: Cursor) -> None:
        """Something that the file declares."""
        begin, end = self.places.begin(cursor), self.places.end(cursor)
        if cursor.kind in _NAMING:
            self._naming.append((begin, end))
            return
        self.ranges.append((begin, end, _what(cursor)))
        self._words_of(self._code[begin:end], begin)
        data = cursor.kind in cxx.RECORDS and cxx.like_c(cursor)
        of_class = cursor.semantic_parent is not None and cursor.semantic_parent.kind in cxx.RECORDS
        if cursor.spelling.startswith(("operator new", "operator delete")) and not of_class:
            reason = (
                f"{cursor.spelling} of the program's own: distributed arrays get their memory from homing"
            )
            self.result.wrong.append((begin, end, reason))
        self.result.used |= cursor.kind not in _NO_CODE and not data
        self._begun(cursor)

    def defaults(self, function: Cursor) -> None:
        """The default arguments of a function that is read."""
        for one in function.get_arguments():
            if self._default(one):
                begin, end = self.places.begin(one), self.places.end(one)
                self.ranges.append((begin, end, "a default argument"))

    def header(self, cursor: Cursor) -> None:
        """Something that a header declares."""
        file = cursor.location.file
        if file is None or cursor.location.is_in_system_header or cursor.kind in _NAMING:
            return
        text = self._header_text(file.name)
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        if cursor.kind is CursorKind.VAR_DECL:
            begin = cursor.location.offset  # others may be declared before it
            self._begun(cursor)
        if cursor.kind is CursorKind.FUNCTION_DECL and not cursor.is_definition():
            return
        own = len(cursor.spelling) if cursor.kind is CursorKind.VAR_DECL else 0  # it does not name itself
        self._words_of(text[begin + own : end], 0)
        what = f"{file.name}:{cursor.location.line}: {_what(cursor)}"
        meant = Meant([cursor], self._interesting)
        for name, place, _ in meant.all(self._words_in(text, begin, end)):
            for one in self._meanings(meant, name, place, what):
                self.result.mentions.append(Mention(one, 0, 0, what))

    def _header_text(self, path: str) -> str:
        if path not in self._texts:
            try:  # a character a byte, as clang counts
                text = read_bytes(path, MOST_SOURCE).decode("latin-1")
            except UserError:
                text = ""
            self._texts[path] = blanked(text, False, " ")
        return self._texts[path]

    def _words_of(self, code: str, at: int) -> None:
        for found in _WORD.finditer(code):
            self.result.words.setdefault(found[0], at + found.start() if at else 0)

    # --- before main ------------------------------------------------------------------------------------

    def begun(self, cursor: Cursor, made: Statement) -> None:
        """A variable that lives as long as the program, with the statement that declares it."""
        if cxx.is_constexpr(cursor) or cxx.made_by_std(cursor):
            return
        if cxx.runs_own_code(cursor.type):
            made.calls += (CLASSES,)
        if made.calls or made.pointed:
            self.result.begun.append(made)

    def _begun(self, cursor: Cursor) -> None:
        for inner in cursor.walk_preorder():
            if inner.kind is not CursorKind.VAR_DECL:
                continue
            of_class = inner.semantic_parent is not None and inner.semantic_parent.kind in cxx.RECORDS
            if not (of_class or inner.storage_class is StorageClass.STATIC or inner == cursor):
                continue
            if cxx.is_constexpr(inner) or cxx.made_by_std(inner):
                continue
            calls = any(one.kind is CursorKind.CALL_EXPR for one in inner.walk_preorder())
            if cxx.runs_own_code(inner.type) or (calls and cxx.record_of(inner.type) is None):
                if inner.semantic_parent is not None and inner.semantic_parent.kind in cxx.FUNCTIONS:
                    self.result.late = True
                    continue
                mine = _in(inner, self.source.path)
                begin, end = (self.places.begin(inner), self.places.end(inner)) if mine else (0, 0)
                self.result.begun.append(self._statement(begin, end))

    def _statement(self, begin: int, end: int) -> Statement:
        text = self.source.text[begin:end]
        return Statement(begin, end, Kind.OTHER, " ".join(text.split()), calls=(CLASSES,), code=text)

    # --- what it changes --------------------------------------------------------------------------------

    def changed(self, routine: Routine) -> None:
        """Such code may change all that a function names, but for its own numbers whose addresses it has
        given to nothing."""
        found = list(statements(routine.body))
        runs = [one for one in found if CLASSES in one.calls]
        self.result.used |= not all(map(by_pointers_alone, runs))
        named = [reference for statement in found for reference in statement.references] if runs else []
        given = {one.name for one in named if one.access in (Access.OTHER, Access.ARGUMENT)}
        own = {
            name
            for name, one in routine.declarations.items()
            if one.number and one.storage != "pointer" and name not in given
        }
        own |= {one.name for one in named if one.constant} - {one.name for one in named if not one.constant}
        for statement in runs:
            statement.writes |= {one.name for one in named} - own

    # --- which words mean what --------------------------------------------------------------------------

    def finished(self) -> Apart:
        """All that was noted."""
        for said in _DIRECTIVE.finditer(self._code):
            if _PARALLEL.match(said[1]) and (what := self._range(said.start())):
                self.result.regions.append((*said.span(), what))
        code = _LINE.sub(lambda line: re.sub(r"[^\n]", " ", line[0]), self._code)
        found = [one for one in self._words_in(code, 0, len(code)) if self.result.used or self._range(one[1])]
        for word in _RESUMED.finditer(self._code):
            reason = "a coroutine beside distributed arrays: they would stay gathered while it waits"
            self.result.wrong.append((*word.span(), reason))
        if not found and not self.result.used:
            return self.result
        meant = Meant(self._mine, self._interesting, self.places)
        for name, place, end in meant.all(found):
            what = next(filter(None, map(self._range, (place, *sorted(meant.made[place, name])))), "")
            if not (what or self.result.used) or any(a <= place < b for a, b in self._naming):
                continue
            for one in self._meanings(meant, name, place, what):
                self.result.mentions.append(Mention(one, place, end, what))
        return self.result

    def _words_in(self, code: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
        """The words of interest, also those that macros become, with their places."""
        for found in _WORD.finditer(code, begin, end):
            for name in sorted({found[0], *self._macros.get(found[0], ())} & self._interesting):
                yield name, *found.span()

    def _range(self, place: int) -> str:
        return next((what for begin, end, what in self.ranges if begin <= place < end), "")

    def _meanings(self, meant: Meant, name: str, place: int, what: str) -> Iterator[str]:
        """The variables and functions that a word may mean, other than those that plain code declares there
        or calls."""
        found = meant.at.get((place, name), [])
        if any(one is None for one in found) or not (found or (place, name) in meant.declared):
            yield name
            yield from (one for one in self._functions.get(name, ()) if one != name)
            return
        for one in found:
            if one is None or _elsewhere(one):
                continue
            if one.kind is CursorKind.FUNCTION_DECL:
                declared = not what and (place, name) in meant.declared
                if not declared and (what or place not in self.called):
                    yield self.named(one)
            elif not what or one.semantic_parent.kind in _OF_FILE:
                yield name


class Meant:
    """What clang's tree says that words mean, by their places."""

    def __init__(self, tops: Sequence[Cursor], names: Set[str], places: Places | None = None) -> None:
        self.at: dict[tuple[int, str], list[Cursor | None]] = {}  # None: it is not known yet
        self.declared: set[tuple[int, str]] = set()
        self.made: defaultdict[tuple[int, str], set[int]] = defaultdict(set)  # of arguments: by which macros
        for top in tops:
            for inner in top.walk_preorder():
                if inner.spelling in names:
                    # In a macro's argument it stands where the program has written it.
                    at = places.written_at(inner.location) if places else inner.location.offset
                    self._note((at, inner.spelling), inner)
                    if places and (made := places.place(inner.location.offset)) != at:
                        self.made[at, inner.spelling].add(made)

    def _note(self, key: tuple[int, str], cursor: Cursor) -> None:
        if cursor.kind.is_declaration():
            self.declared.add(key)
            if cursor.kind is CursorKind.FUNCTION_DECL:
                self.at.setdefault(key, []).append(cursor)
        elif cursor.referenced is not None or cursor.kind in _MAY_CALL:
            unknown = cursor.kind is CursorKind.OVERLOADED_DECL_REF
            self.at.setdefault(key, []).append(None if unknown else cursor.referenced)

    def all(self, words: Iterable[tuple[str, int, int]]) -> Sequence[tuple[str, int, int]]:
        """These words, and those that the tree alone has (of macros that something else defines)."""
        found = {(place, name): end for name, place, end in words}
        for place, name in self.at:
            found.setdefault((place, name), place + 1)
        return [(name, place, end) for (place, name), end in sorted(found.items())]


def _elsewhere(meant: Cursor) -> bool:
    """Is it neither a variable nor a function that is read?"""
    if meant.kind is CursorKind.FUNCTION_DECL:
        return cxx.apart(meant) is not None
    member = meant.semantic_parent is not None and meant.semantic_parent.kind in cxx.RECORDS
    return member or meant.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)


def _words(text: str) -> Iterator[str]:
    """Those of directives, the arrays' names among them."""
    for found in _DIRECTIVE.finditer(text):
        yield from _WORD.findall(found[1])


def _closed(macros: dict[str, set[str]]) -> dict[str, set[str]]:
    """All words that macros are made of, by others, too."""
    count = -1
    while count != (count := sum(map(len, macros.values()))):
        for words in macros.values():
            words.update(*(macros[one] for one in words & macros.keys()))
    return macros


def _is_mine(cursor: Cursor) -> bool:
    return cursor.location.file is not None and not cursor.location.is_in_system_header


def _in(cursor: Cursor, path: str) -> bool:
    return cursor.location.file is not None and cursor.location.file.name == path


def _type(function: Cursor) -> str:
    return str(function.type.get_canonical().spelling)


def _expressions(cursor: Cursor) -> Iterable[Cursor]:
    return (one for one in cursor.get_children() if one.kind.is_expression())


def _what(cursor: Cursor) -> str:
    """What stands there, for a message."""
    name = cursor.spelling or "without a name"
    if cursor.kind is CursorKind.LAMBDA_EXPR:
        return "a lambda"
    if cursor.kind in cxx.TEMPLATES or (cursor.kind is CursorKind.FUNCTION_DECL and cxx.is_template(cursor)):
        return f"the template '{name}'"
    if cursor.kind in cxx.RECORDS:
        return f"the class '{name}'"
    if cursor.kind is CursorKind.FUNCTION_DECL and cxx.is_operator(cursor):
        return f"the overloaded {name}"
    parent = cursor.semantic_parent
    if parent is not None and parent.kind in (*cxx.RECORDS, *cxx.TEMPLATES):
        return f"'{name}', a member of a class,"
    if any(one.kind is CursorKind.CXX_TRY_STMT for one in cursor.get_children()):
        return f"'{name}', whose body is a TRY,"
    return f"'{os.path.basename(name)}'"
