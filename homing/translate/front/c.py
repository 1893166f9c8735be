"""The C and C++ front end: libclang says what the program means and where each piece stands.

Parsed without -fopenmp: with it libclang does not descend into loops under a directive. OpenMP pragmas are
read from the text, and _OPENMP is defined as if it were.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from clang import cindex
from clang.cindex import Cursor, CursorKind, TranslationUnit

from homing.translate.attach import attach
from homing.translate.code_text import blanked
from homing.translate.directives.model import Directive
from homing.translate.front.c_accesses import Accesses
from homing.translate.front.c_aliases import Alias, note_read_only
from homing.translate.front.c_kept import kept_arguments
from homing.translate.front.c_memory import (
    freed_arguments,
    may_free,
)
from homing.translate.front.c_names import undeclared
from homing.translate.front.c_places import Places
from homing.translate.front.c_plain import check_plain
from homing.translate.front.c_pragmas import pragmas_of
from homing.translate.front.c_quiet import quiet_calls
from homing.translate.front.c_statements import CStatements
from homing.translate.front.cxx import (
    RECORDS,
    REFERENCES,
    apart,
    children,
    is_template,
    namespace_blocks,
)
from homing.translate.front.cxx_apart import ClassFile
from homing.translate.front.includes import check_includes
from homing.translate.front.libclang import MACROS, other_files, other_headers, raising_callbacks, survives
from homing.translate.front.libclang import index as clang_index
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import (
    Access,
    Declaration,
    Prototype,
    Routine,
    Unit,
)

#: Other ways to write brackets, braces and #. C++ reads `<::` as `< ::`.
_DIGRAPH = re.compile(r"<%|%>|%:|:>|<:(?!:[^:>])|\?\?[=/'()!<>-]")
_PRAGMA = re.compile(r"(?:#|%:|\?\?=)[ \t]*pragma\b|\b_Pragma\b")
#: The version of OpenMP that gcc and clang claim to compile.
_OPENMP = "-D_OPENMP=201511"


def read(
    source: SourceFile,
    directives: Sequence[Directive],
    flags: Sequence[str],
    plain: bool = True,
    parts: bool = False,
) -> tuple[Unit, list[int]]:
    """Parse a C file and hang the directives where they belong; also the offsets at which lines can be
    marked.

    TranslationError: what clang calls an error. UserError: there is no libclang. Plainer: it can be said in
    plainer words (not with `plain`, of a file that is said so). parts: see check_plain.
    """
    _check_spelling(source)
    index = clang_index()
    check_includes(source, flags)
    here = os.path.dirname(os.path.abspath(source.path))
    language = ["-xc++", "-std=gnu++17"] if source.cxx else ["-std=gnu17"]
    arguments = [*language, "-Wno-everything", _OPENMP, f"-I{here}", *flags, *other_headers()]

    # Macros, of which headers have thousands, are looked at for plainer words alone.
    options = TranslationUnit.PARSE_NONE if plain else TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD

    def parse(text: str = source.text) -> TranslationUnit:
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return index.parse(source.path, args=arguments, unsaved_files=[(source.path, text)], options=options)

    if not survives(parse):
        reason = "clang cannot read it: something is nested too deeply, or an included file has no end"
        raise TranslationError([source.problem(0, 0, reason)])
    unit = parse()
    problems = []
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            where = diagnostic.location
            inside = where.file is not None and where.file.name == source.path
            begin = source.offset(where.line, 1) if inside else 0
            end = source.next_line(begin) - 1 if inside else 0
            place = "" if inside or where.file is None else f"{where.file.name}:{where.line}: "
            problems.append(source.problem(begin, max(begin, end), f"{place}{diagnostic.spelling} (clang)"))
    if problems:
        raise TranslationError(problems)
    if unknown := list(undeclared(source, directives, parse)):
        raise TranslationError(unknown)
    builder = _Builder(source)
    with raising_callbacks():
        if not plain:
            check_plain(source, unit, parse, parts)
        builder.file(unit.cursor)
        pragmas = list(pragmas_of(source, unit))
    attach(source, builder.routines, pragmas, directives, builder.classes.ranges)
    names: set[str] = set()
    for pragma in pragmas:
        if pragma.name == "threadprivate":
            for clause in pragma.clauses:
                names.update(word.strip() for word in (clause.text or "").split(","))
            match = re.search(r"threadprivate\s*\(([^)]*)\)", pragma.text)
            if match:
                names.update(word.strip() for word in match[1].split(","))
    names |= {one.name for one in builder.routine.declarations.values() if "thread" in one.attributes}
    for routine in builder.routines:
        own = routine.declarations.values() if routine is not builder.routine else ()
        local = {one.name for one in own if "save" not in one.attributes}
        thread = {one.name for one in own if "thread" in one.attributes}
        routine.private = frozenset(names - local | thread)
    return Unit(source, source.form, builder.routines), sorted(builder.lines)


def _check_spelling(source: SourceFile) -> None:
    """TranslationError: a file with directives has digraphs, which nothing here looks for."""
    if _PRAGMA.search(source.text) is None:
        return
    found = _DIGRAPH.search(blanked(source.text, False, " "))
    if found is not None:
        reason = "digraphs and trigraphs are not read: write [ ] { } # and the like"
        raise TranslationError([source.problem(found.start(), found.end(), reason)])


class _Builder(CStatements):
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.cxx = source.cxx
        self.routines: list[Routine] = []
        self.lines: set[int] = set()
        self.aliases: list[Alias] = []  # of the function
        self.gives_reference = False  # C++: does the function return one?
        self.routine = Routine(os.path.basename(source.path), source, 0, len(source.text) + 1, module=True)
        self.places = Places(source)
        self.place = self.places.place
        self.accesses = Accesses(self.places, self.is_array)
        self.accesses.quiet = self.routine.quiet
        self.name = self.accesses.function
        self.classes = ClassFile(source, self.places, self.name)

    # --- the file ---------------------------------------------------------------------------------------

    def file(self, top: Cursor) -> None:
        scope = self.routine
        scope.declarations_end = scope.body_end = len(self.source.text)
        self.routines.append(scope)
        found = [one for one in (children(top) if self.cxx else top.get_children()) if one.kind not in MACROS]
        if self.cxx:
            self.classes.begin(found, other_files(self.source.path, top))
            blocks = namespace_blocks(top, self.source.path)
            scope.blocks = [(self.begin(one), self.end(one), name) for one, name in blocks]
        for cursor in found:
            file = cursor.location.file
            if cursor.kind is CursorKind.FUNCTION_DECL and (released := may_free(cursor)):
                scope.releasing[self.name(cursor)] = released
            if file is None or file.name != self.source.path:
                self.included(scope, cursor)
                continue
            self.lines.add(self.source.line_start(self.begin(cursor)))
            if cursor.kind is CursorKind.FUNCTION_DECL and not (self.cxx and self.unread(cursor)):
                if cursor.is_definition():
                    self.function(cursor)
                else:
                    places = tuple((self.begin(one), self.end(one)) for one in cursor.get_arguments())
                    whole = self.begin(cursor), self.end(cursor)
                    scope.prototypes.append(Prototype(self.name(cursor), *whole, places))
                if self.cxx:
                    self.classes.defaults(cursor)
            elif cursor.kind is CursorKind.VAR_DECL and cursor.semantic_parent.kind not in RECORDS:
                self.global_variable(scope, cursor)
            elif self.cxx:
                self.classes.add(cursor)
        scope.pointed = self.accesses.pointed
        if self.cxx:
            self.classes.called = self.accesses.called_at
            for routine in self.routines:
                self.classes.changed(routine)
            scope.apart = self.classes.finished()

    def included(self, scope: Routine, cursor: Cursor) -> None:
        """What a header declares."""
        file = cursor.location.file
        if cursor.kind is CursorKind.VAR_DECL and file is not None:
            self.included_variable(scope, cursor)
        elif cursor.kind is CursorKind.FUNCTION_DECL and file is not None:
            scope.headers[self.name(cursor)] = file.name
            if cursor.is_definition() and not cursor.location.is_in_system_header:
                scope.freeing[self.name(cursor)] = freed_arguments(cursor, scope.freeing)
                scope.keeping[self.name(cursor)] = kept_arguments(cursor, scope.keeping)
                calls = quiet_calls(cursor, self.name)
                if calls is not None:
                    scope.quiet[self.name(cursor)] = calls
                if not self.cxx:
                    used_there(scope, cursor)
        if self.cxx:
            self.classes.header(cursor)

    def unread(self, function: Cursor) -> bool:
        """C++: is it a function whose body is not read?"""
        read = any(one.kind is CursorKind.COMPOUND_STMT for one in function.get_children())
        if function.is_definition() and function.spelling == "main" and not read:
            reason = "the body of main is no block in braces: put a TRY inside of one"
            raise TranslationError([self.source.problem(self.begin(function), self.end(function), reason)])
        return apart(function) is not None or is_template(function) or (function.is_definition() and not read)

    def global_variable(self, scope: Routine, cursor: Cursor) -> None:
        around = self.name(cursor).rpartition("::")[0]
        other = scope.declarations.get(cursor.spelling)
        if other is not None and scope.namespaces.get(cursor.spelling, "") != around:
            reason = f"'{cursor.spelling}' stands in two namespaces: give them names of their own"
            raise TranslationError([self.source.problem(self.begin(cursor), self.end(cursor), reason)])
        if around:
            scope.namespaces[cursor.spelling] = around
        self.file_variable(cursor)
        made = self.blank(self.begin(cursor), self.end(cursor))
        for inner in cursor.get_children():
            if inner.kind.is_expression():
                self.expression(inner, made.references, Access.READ, False, made)
        for reference in made.references:
            named = reference.access is Access.OTHER
            reason = "is another name for" if named else "is made, before main begins, of"
            if named or self.cxx:
                reason = f"'{cursor.spelling}' {reason} '{reference.name}'"
                scope.unseen.setdefault(reference.name, (reference.begin, reference.end, reason))
        if self.cxx:
            self.classes.begun(cursor, made)
            self.unread_code()

    def included_variable(self, scope: Routine, cursor: Cursor) -> None:
        name = cursor.spelling
        scope.included.add(name)
        if name in scope.declarations or self.routines[1:]:
            declared = scope.declarations.get(name)
            place = (declared.begin, declared.end) if declared is not None else (0, 0)
            reason = f"a header that declares '{name}' is included behind declarations: include it first"
            scope.unseen.setdefault(name, (*place, reason))

    def file_variable(self, cursor: Cursor) -> None:
        """A variable of the file's scope, of which one declaration counts; the others are noted."""
        scope, name = self.routines[0], cursor.spelling
        before = scope.declarations.get(name)
        made = self.variable(scope, cursor, "static")
        if before is not None:
            chosen = max(made, before, key=_defines)
            scope.declarations[name] = chosen
            scope.again.setdefault(name, []).append(before if chosen is made else made)

    def function(self, cursor: Cursor) -> None:
        scope = self.routines[0]
        made = Routine(
            self.name(cursor),
            self.source,
            self.begin(cursor),
            self.end(cursor),
            main=cursor.spelling == "main",
            parent=scope,
        )
        self.routines.append(made)
        self.routine = made
        self.gives_reference = cursor.result_type.kind in REFERENCES
        for child in cursor.get_children():
            if child.kind is CursorKind.PARM_DECL:
                made.arguments.append(child.spelling)
                self.variable(made, child, "dummy")
            elif child.kind is CursorKind.COMPOUND_STMT:
                start = self.begin(child)
                made.head_end = made.declarations_end = self.source.next_line(start)
                made.arguments_end = self.arguments_end(cursor, start)
                made.body_end = self.source.line_start(self.end(child) - 1)
                self.aliases = []
                made.body = self.block(child)
                note_read_only(self.aliases, made.body)
                made.inner = frozenset(made.places) - self.outer_names(cursor, child)
        self.unread_code()

    def unread_code(self) -> None:
        """C++: lambdas and classes inside."""
        for cursor in self.accesses.apart:
            self.classes.add(cursor)
        self.accesses.apart = []

    def outer_names(self, function: Cursor, body: Cursor) -> set[str]:
        """The names that are declared by a function's parameters and in its outermost block alone."""
        declared = [one for one in body.get_children() if one.kind is CursorKind.DECL_STMT]
        places = {self.begin(one) for statement in declared for one in statement.get_children()}
        places |= {self.begin(one) for one in function.get_arguments()}
        return {name for name, found in self.routine.places.items() if places.issuperset(found)}

    def arguments_end(self, cursor: Cursor, start: int) -> int:
        """The bracket that closes the list of arguments; C++ may have more behind it."""
        text, given = self.source.text, list(cursor.get_arguments())
        if not self.cxx:
            return text.rindex(")", self.begin(cursor), start)
        if given:
            return text.index(")", self.end(given[-1]))
        return text.index(")", text.index("(", self.place(cursor.location.offset)))

    # --- expressions ------------------------------------------------------------------------------------

    def is_array(self, name: str) -> bool:
        known = self.routine.lookup(name)
        if known is None:
            return name in self.routines[0].included
        return bool(known[1].bounds) and known[1].storage not in ("pointer", "dummy")


def used_there(scope: Routine, function: Cursor) -> None:
    """Variables that a header's function uses, whose body is not read."""
    where = f"{function.location.file.name}:{function.location.line}"
    for inner in function.walk_preorder():
        meant = inner.referenced if inner.kind is CursorKind.DECL_REF_EXPR else None
        if meant is None or meant.kind is not CursorKind.VAR_DECL:
            continue
        around = meant.semantic_parent
        if around is None or around.kind is not CursorKind.FUNCTION_DECL:
            reason = (
                f"'{function.spelling}' ({where}) uses the distributed '{meant.spelling}', and functions of "
                "headers are not followed: define it in this file"
            )
            scope.unseen.setdefault(meant.spelling, (0, 0, reason))


def _defines(declaration: Declaration) -> tuple[bool, bool, bool]:
    """Of the declarations of one variable the greatest is its definition."""
    complete = all(one.upper is not None for one in declaration.bounds)
    initialised = declaration.initial is not None
    return "extern" not in declaration.attributes, initialised, bool(declaration.bounds) and complete
