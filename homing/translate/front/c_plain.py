"""C in plainer words, before it is read: OpenMP's directives as #pragma lines where _Pragma or a macro makes
them, and arrays with all their dimensions where a typedef has some of them (`typedef double row[M]; row *a;`
is `double (*a)[M]`); sizes of arrays by their types. Each line keeps its number: markers (# 12 "x.c") say
where lines are broken. Macros that stand for elements of arrays with directives are written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from clang.cindex import Cursor, CursorKind, Diagnostic, StorageClass, TranslationUnit, Type, TypeKind

from homing.translate.code_text import Edit, edited
from homing.translate.front.c_called import CalledFunctions
from homing.translate.front.c_element_pointers import ElementPointers
from homing.translate.front.c_macros import Macro, accesses, apart, defined, with_arguments
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import strip
from homing.translate.front.cxx import children
from homing.translate.front.cxx_ranges import counted_loops
from homing.translate.front.expand import marker
from homing.translate.front.libclang import ARRAYS, MACROS
from homing.translate.positions import TranslationError
from homing.translate.source import Plainer, SourceFile

_NAMED = (TypeKind.ELABORATED, TypeKind.TYPEDEF)
_BRACKETS = re.compile(r"(?:\s*\[[^\]]*\])+")
#: What stands between the type of a declaration and the name of a variable, and makes it a pointer.
_POINTER = re.compile(r"[*&](?:[\s*&]|\b(?:const|restrict|volatile|__restrict)\b)*$")
_SIZE = re.compile(r"sizeof\b[\s(*]*(\w+)(?:\s*\[\w*\])*[\s)]*")
_WHOLE = re.compile(r"&\s*(?P<name>\w+)(?P<first>(?:\s*\[\s*0\s*\])*)")
_UNSIZED = (TypeKind.POINTER, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(?:homing|distribute)\b(.*)$", re.MULTILINE)
_PARALLEL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(?:omp|homing|distribute)\b", re.MULTILINE)
#: How deep macros, and references, may be made of others.
_DEEPEST = 20
#: How often calls are looked for in what was put for others, and how much longer the text may become.
_MOST_ROUNDS, _MOST_GROWN = 60, 20


def check_plain(
    source: SourceFile, unit: TranslationUnit, parse: Callable[[str], TranslationUnit], parts: bool
) -> None:
    """Plainer: the file can be said in plainer words. TranslationError: a directive that is not seen. parse:
    reads a text in the place of the file's. parts: arrays will be in parts, which functions do
    not see."""
    places = Places(source)
    everything = list(unit.cursor.get_children())
    pragmas = [
        *_pragmas(source, everything, places),
        *accesses(source, everything, places, _named(source.text)),
    ]
    declared = _declared(everything, source.path)
    rows = [*_rows(source, declared, places), *_sizes(source, everything, declared, places)]
    made = edited(source.text, [*rows, *pragmas])
    if rows and made is not None and _types(parse(made), source.path) != _types(unit, source.path):
        made = edited(source.text, pragmas)  # declarations that are not understood stay
    if _PARALLEL.search(source.text):
        made = _without_pointers(source, unit if made is None else parse(made), made, parse)
        if parts:
            made = _without_calls(source, unit if made is None else parse(made), made, parse)
    if made is not None:
        raise Plainer(SourceFile(source.path, made, source.form, source.fixed_columns, True, source.cxx))


def _without_pointers(
    source: SourceFile, unit: TranslationUnit, made: str | None, parse: Callable[[str], TranslationUnit]
) -> str | None:
    """The text, changed so far or not (None), without range-for over arrays with directives, and without
    pointers to elements and rows."""
    for _ in range(_DEEPEST):  # a loop in another, a reference to what is one
        read, functions = _functions(source, made, unit)
        named = _named(read.text)
        loops = list(counted_loops(read, named, functions)) if read.cxx else []
        found = edited(read.text, loops or list(ElementPointers(read, named).edits(functions)))
        if found is None:
            break
        unit = parse(found)
        if any(one.severity >= Diagnostic.Error for one in unit.diagnostics):
            break
        made = found
    return made


def _without_calls(
    source: SourceFile, unit: TranslationUnit, made: str | None, parse: Callable[[str], TranslationUnit]
) -> str | None:
    """The same without calls of functions that use distributed arrays of the file, in loops."""
    inlined: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        read, functions = _functions(source, made, unit)
        called = CalledFunctions(read, _named(read.text), functions)
        edits = called.edits()
        found = edited(read.text, edits)
        if found is None:
            found = edited(read.text, called.unused(inlined))
        if found is None or len(found) > _MOST_GROWN * len(source.text):
            break
        unit = parse(found)
        if any(one.severity >= Diagnostic.Error for one in unit.diagnostics):
            break
        inlined |= called.inlined
        made = found
    return made


def _functions(
    source: SourceFile, made: str | None, unit: TranslationUnit
) -> tuple[SourceFile, list[Cursor]]:
    """The file as it was made, and its functions."""
    text = source.text if made is None else made
    read = SourceFile(source.path, text, source.form, source.fixed_columns, True, source.cxx)
    everything = children(unit.cursor) if source.cxx else unit.cursor.get_children()
    functions = [
        one
        for one in _declared(everything, source.path)
        if one.kind is CursorKind.FUNCTION_DECL and one.is_definition()
    ]
    return read, functions


def _named(text: str) -> set[str]:
    """The words of directives."""
    return {word for line in _DIRECTIVE.findall(text) for word in re.findall(r"\w+", line)}


def _types(unit: TranslationUnit, path: str) -> list[tuple[str, str]]:
    """The names that a file declares, with what they are."""
    kinds = (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FUNCTION_DECL)
    found = []
    for top in _declared(unit.cursor.get_children(), path):
        inside = (one for one in top.walk_preorder() if one.kind in kinds)
        found += [(one.spelling, one.type.get_canonical().spelling) for one in inside]
    return found


def _declared(cursors: Iterable[Cursor], path: str) -> list[Cursor]:
    """Those that a file itself declares."""
    return [
        one
        for one in cursors
        if one.kind not in MACROS and (file := one.location.file) is not None and file.name == path
    ]


# --- arrays -------------------------------------------------------------------------------------------------


def _rows(source: SourceFile, declared: Iterable[Cursor], places: Places) -> Iterator[Edit]:
    """Declarations of variables whose type is a name for an array."""
    for cursor in declared:
        if cursor.kind is CursorKind.VAR_DECL:
            yield from _row(source, cursor, places)
        elif cursor.kind is CursorKind.FUNCTION_DECL:
            for inner in cursor.walk_preorder():
                if inner.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
                    yield from _row(source, inner, places)
        elif cursor.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL):
            yield from _rows(source, _declared(cursor.get_children(), source.path), places)


def _row(source: SourceFile, cursor: Cursor, places: Places) -> Iterator[Edit]:
    kind = cursor.type
    while kind.kind is TypeKind.POINTER or kind.kind in ARRAYS or kind.kind is TypeKind.LVALUEREFERENCE:
        kind = kind.element_type if kind.kind in ARRAYS else kind.get_pointee()
    found = _dimensions(kind)
    if found is None or not cursor.spelling:
        return
    element, sides = found
    text, name_at = source.text, places.place(cursor.location.offset)
    name_end = name_at + len(cursor.spelling)
    word = kind.get_declaration().spelling
    start = places.place(cursor.extent.start.offset)
    types = list(re.finditer(rf"\b{re.escape(word)}\b", text[start:name_at]))
    if not types:  # of all but a declaration's first variable clang knows the name's place only
        start = max(text.rfind(char, 0, name_at) for char in ";{}") + 1
        types = list(re.finditer(rf"\b{re.escape(word)}\b", text[start:name_at]))
    if not types or text[name_at:name_end] != cursor.spelling or "#" in text[start:name_at]:
        return
    yield start + types[0].start(), start + types[0].end(), element
    behind = _BRACKETS.match(text, name_end)
    end = behind.end() if behind else name_end
    before = _POINTER.search(text, start + types[0].end(), name_at)
    closed = re.compile(r"\s*\)").match(text, end)
    opened = text[: before.start()].rstrip().endswith("(") if before else False
    if before and opened and closed and _opens_declarator(text, before.start(), start + types[0].end()):
        more = _BRACKETS.match(text, closed.end())
        at = more.end() if more else closed.end()
        yield at, at, sides
    elif before:
        yield before.start(), before.start(), "("
        yield end, end, ")" + sides
    else:
        yield end, end, sides


def _opens_declarator(text: str, at: int, type_end: int) -> bool:
    """Is the bracket before `at` one of the declarator's own, and not that of a list of parameters?"""
    return text.rfind("(", 0, at) >= type_end


def _dimensions(kind: Type) -> tuple[str, str] | None:
    """The type of the elements, and the sizes in brackets, of a name for an array of known size."""
    sides = ""
    while kind.kind in _NAMED or kind.kind is TypeKind.CONSTANTARRAY:
        if kind.kind is TypeKind.CONSTANTARRAY:
            kind = kind.element_type
            continue
        declared = kind.get_declaration()
        if declared.kind not in (CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL):
            break
        under = declared.underlying_typedef_type
        if under.get_canonical().kind is not TypeKind.CONSTANTARRAY:
            break
        words = [token.spelling for token in declared.get_tokens()]
        if declared.spelling not in words:
            return None
        behind = words[words.index(declared.spelling) + 1 :]
        if declared.kind is CursorKind.TYPE_ALIAS_DECL:  # `using row = double[8]`
            behind = behind[behind.index("[") :] if "[" in behind else []
        if behind[:1] == ["["]:
            sides += "".join(_spaced(behind))
        elif under.kind not in _NAMED:
            return None
        kind = under
    return (kind.spelling, sides) if sides else None


def _spaced(words: list[str]) -> Iterator[str]:
    before = ""
    for word in words:
        yield f" {word}" if before[-1:].isalnum() and word[:1].isalnum() else word
        before = word


def _sizes(
    source: SourceFile, everything: Iterable[Cursor], declared: Iterable[Cursor], places: Places
) -> Iterator[Edit]:
    """`sizeof a`, `sizeof *a`, `memset(&a, ...)` of arrays that directives name, here or in another file that
    defines them: they become pointers."""
    named = _named(source.text) | {
        one.spelling
        for one in everything
        if one.kind is CursorKind.VAR_DECL
        and one.storage_class is StorageClass.EXTERN
        and one.type.get_canonical().kind is TypeKind.CONSTANTARRAY
        and not one.location.is_in_system_header
    }
    functions = [one for one in declared if named and one.kind is CursorKind.FUNCTION_DECL]
    for cursor in (inner for one in functions for inner in one.walk_preorder()):
        if cursor.kind is CursorKind.CALL_EXPR:
            yield from _wholes(source, cursor, named, places)
        if cursor.kind is not CursorKind.CXX_UNARY_EXPR:
            continue
        operand = next(iter(cursor.get_children()), None)
        names = [one.spelling for one in cursor.walk_preorder() if one.kind is CursorKind.DECL_REF_EXPR]
        begin, end = places.begin(cursor), places.end(cursor)
        if operand is None or operand.type.kind in _UNSIZED or not {*names[:1]} & named:
            continue
        said = _SIZE.fullmatch(source.text[begin:end])
        if said is not None and said[1] == names[0]:  # and not a type, `sizeof(double[n])`
            yield begin, end, f"sizeof({strip(operand).type.spelling})"


def _wholes(source: SourceFile, call: Cursor, named: set[str], places: Places) -> Iterator[Edit]:
    """`&a` and `&a[0]` where a function of the system's gets memory of any type (void *): its name, `a`."""
    function = call.referenced
    if function is None or not function.location.is_in_system_header:
        return
    for parameter, argument in zip(function.get_arguments(), call.get_arguments(), strict=False):
        pointer = parameter.type.get_canonical()
        if pointer.kind is not TypeKind.POINTER or pointer.get_pointee().kind is not TypeKind.VOID:
            continue
        begin, end = places.begin(argument), places.end(argument)
        said = _WHOLE.fullmatch(source.text[begin:end])
        name = next((n for n in argument.walk_preorder() if n.kind is CursorKind.DECL_REF_EXPR), None)
        if said is None or name is None or said["name"] != name.spelling or name.spelling not in named:
            continue
        if said["first"] or name.type.get_canonical().kind is not TypeKind.POINTER:
            yield begin, end, name.spelling


# --- directives ---------------------------------------------------------------------------------------------


def _pragmas(source: SourceFile, everything: Iterable[Cursor], places: Places) -> Iterator[Edit]:
    for match in re.finditer(r'\b_Pragma\s*\(\s*"((?:[^"\\]|\\.)*)"\s*\)', _code(source.text)):
        if re.match(r"\s*omp\b", match[1]):
            text = source.text[match.start(1) : match.end(1)]
            yield from _line(source, match.start(), match.end(), _unquoted(text))
    macros: dict[str, Cursor] = {}
    used = []
    for cursor in everything:
        kind = cursor.kind
        if kind is CursorKind.MACRO_DEFINITION:
            macros[cursor.spelling] = cursor
        elif kind is CursorKind.MACRO_INSTANTIATION:
            where = cursor.location.file
            if where is not None and where.name == source.path:
                used.append(cursor)
    known: dict[str, Macro | None] = {}

    def macro(name: str) -> Macro | None:
        if name not in known:
            known[name] = defined(macros[name]) if name in macros else None
        return known[name]

    ends = 0
    for cursor in used:
        begin, end = places.begin(cursor), places.end(cursor)
        if begin < ends or not _holds(cursor.spelling, macro, 0):
            continue
        ends = end
        words = [token.spelling for token in cursor.get_tokens()]
        said, head = _said(words, macro, 0), ""
        if said is None:
            said, head = _before_loop(macro(cursor.spelling), source.text[begin:end], macro) or (None, "")
        if said is None:
            reason = (
                f"the macro {cursor.spelling} holds an OpenMP directive: write #pragma omp before the loop"
            )
            raise TranslationError([source.problem(begin, end, reason)])
        if re.match(r"\s*omp\b", said):
            yield from _line(source, begin, end, said, head)


def _code(text: str) -> str:
    """The text with comments and lines of the preprocessor of blanks, in the same places."""
    pattern = r'"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\r?\n|[^\n])*|/\*.*?\*/|//[^\n]*'
    kept = re.compile(pattern, re.DOTALL | re.MULTILINE)
    return kept.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)


def _line(source: SourceFile, begin: int, end: int, said: str, more: str = "") -> Iterator[Edit]:
    """A directive on a line of its own, and what follows."""
    path, line = source.origin(source.line_of(begin))
    behind_line = source.origin(source.line_of(end))[1]
    before = source.text[source.line_start(begin) : begin]
    behind = source.text[end : source.next_line(end)]
    head = f"\n{marker(line, path)}\n" if before.strip() else ""
    tail = f"\n{marker(behind_line, path)}\n" if behind.strip() or more else ""
    yield begin, end, f"{head}#pragma {said}{tail}{more}"


def _holds(name: str, macro: Callable[[str], Macro | None], depth: int) -> bool:
    """Does a macro make an OpenMP directive, by itself or by others?"""
    found = macro(name) if depth < _DEEPEST else None
    if found is None:
        return False
    if "_Pragma" in found.body:
        quoted = [word for word in found.body if word.startswith('"')]
        return not quoted or any(re.match(r'"\s*omp\b', word) for word in quoted)
    return any(_holds(word, macro, depth + 1) for word in found.body)


def _before_loop(
    found: Macro | None, use: str, macro: Callable[[str], Macro | None]
) -> tuple[str, str] | None:
    """The directive and the head of the loop that a macro is, and nothing else."""
    words = with_arguments(found, use) if found is not None and "\n" not in use else None
    depth = 0
    for at, word in enumerate(words or ()):
        depth += (word == "(") - (word == ")")
        if word == "for" and depth == 0:
            said = _said((words or [])[:at], macro, 0)
            return None if said is None else (said, "".join(apart((words or [])[at:])))
    return None


def _said(words: list[str], macro: Callable[[str], Macro | None], depth: int) -> str | None:
    """The directive that the words are and nothing else; None: they are more, or less."""
    if depth > _DEEPEST or not words:
        return None
    if words[0] == "_Pragma":
        if len(words) == 4 and words[2].startswith('"'):
            return _unquoted(words[2][1:-1])
        return None
    found = macro(words[0])
    if found is None:
        return None
    if found.parameters is None:
        return _said(list(found.body), macro, depth + 1) if len(words) == 1 else None
    if words[1:2] != ["("] or words[-1] != ")":
        return None
    given = words[2:-1]
    if len(found.parameters) != 1:
        return None
    name = "__VA_ARGS__" if found.parameters[0] == "..." else found.parameters[0]
    if list(found.body) == ["_Pragma", "(", "#", name, ")"]:
        return " ".join(given)
    body = [piece for word in found.body for piece in (given if word == name else [word])]
    return _said(body, macro, depth + 1)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
