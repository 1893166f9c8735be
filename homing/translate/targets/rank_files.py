"""--to mpi: files. Every rank runs the serial code, its input and output included; were they the same files,
ranks would write over each other's.

So rank 0 has the user's files and does with them what the program does, in its order; every other rank has
copies of its own, under other names, which the runtime gives where a file is opened (see homing_file in
homing_parts.h). What needs no name of a file stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homing.translate.code_text import blanked, closing, condition_of_if
from homing.translate.directives.model import Form
from homing.translate.plan.derived_types import DerivedTypes
from homing.translate.plan.internal_files import is_text
from homing.translate.source import Edits
from homing.translate.tree import Construct, Routine, Statement, Unit, statements, walk

#: What changes files or starts programs, once a rank.
_FORTRAN_REFUSED = frozenset(
    ["chdir", "execute_command_line", "link", "rename", "symlnk", "system", "unlink", "random_init"]
)
_C_REFUSED = frozenset(
    [
        *("creat", "dup2", "execv", "execvp", "fork", "freopen", "mkdir", "mkstemp", "open", "openat"),
        *("popen", "posix_spawn", "rename", "rmdir", "symlink", "system", "truncate", "unlink", "vfork"),
    ]
)
_C_REPLACED = {"fopen": "homing_fopen", "remove": "homing_remove"}
#: C++: what opens files, reads the standard input, or gives each rank other values.
_CXX_FILES = re.compile(r"\b(?:w?[io]?fstream|w?filebuf|filesystem|random_device|w?cin)\b")
#: The standard streams: rank 0's alone are heard.
_STANDARD = frozenset({"*", "0", "5", "6", "output_unit", "input_unit", "error_unit"})

#: What is wrong: where it begins and ends, and why.
Wrong = tuple[int, int, str]


@dataclass(frozen=True)
class _Argument:
    keyword: str | None
    text: str
    begin: int  # of the value, in the statement's code
    end: int


@dataclass(frozen=True)
class _Action:
    """An input or output statement of Fortran's: the word and what stands in its brackets."""

    word: str
    arguments: list[_Argument]

    def get(self, *keywords: str | None) -> _Argument | None:
        return next((one for one in self.arguments if one.keyword in keywords), None)


def own_files(
    units: Sequence[Unit], routine: Routine, edits: Edits, inside: bool, types: DerivedTypes
) -> tuple[bool, list[Wrong]]:
    """Give each rank files of its own in a routine. inside: it is called in parallel regions. Returns whether
    the runtime is called now, and what cannot be done."""
    regions = [(node.begin, node.end) for node in walk(routine.body) if isinstance(node, Construct)]
    changed = False
    wrong: list[Wrong] = []
    opened = _opened(units)
    seeded = any(_seeds(one) for unit in units for one in unit.routines)
    known = {one.name for unit in units for one in unit.routines}
    removed = any(_removes(one) for unit in units for one in unit.routines)
    for statement in statements(routine.body):
        if "random_number" in statement.calls and not seeded:
            reason = "every rank would draw other numbers: seed them, with RANDOM_SEED(PUT=...)"
            wrong.append((statement.begin, statement.end, reason))
        for place in _changes(statement, routine, opened, known, wrong, removed, types):
            begin, end, text = place
            if inside or any(first <= begin < last for first, last in regions):
                wrong.append((statement.begin, statement.end, "opens or removes a file in parallel code"))
                continue
            edits.replace(begin, end, text)
            changed = True
    return changed, wrong


def left_out(unit: Unit, edits: Edits) -> list[Wrong]:
    """C: names of files that are used where no statement is followed (in a macro)."""
    if unit.form is not Form.C:
        return []
    known = {one.name for one in unit.routines}
    code = blanked(unit.source.text, False, "_")
    return [*_of_std(code)] * unit.source.cxx + [
        (match.start(), match.end(), f"{match[1].upper()} where it cannot be followed, for each rank's files")
        for match in re.finditer(r"\b(fopen|remove)\b(?=\s*\()", code)
        if match[1] not in known and not edits.covered(match.start(), match.end())
    ]


def _of_std(code: str) -> Iterator[Wrong]:
    """C++: what std's classes do that each rank would do."""
    code = re.sub(
        r"^[ \t]*#[ \t]*include\b[^\n]*", lambda match: " " * len(match[0]), code, flags=re.MULTILINE
    )
    for match in _CXX_FILES.finditer(code):
        reason = f"'{match[0]}' would be each rank's own: use fopen, in plain functions"
        if match[0].endswith("cin"):
            reason = "reads standard input, which only rank 0 has: read a file, or take arguments"
        yield match.start(), match.end(), reason


def _seeds(routine: Routine) -> bool:
    return any(
        "random_seed" in statement.calls and re.search(r"[(,]\s*put\s*=", statement.text)
        for statement in statements(routine.body)
    )


def _removes(routine: Routine) -> bool:
    """Does a CLOSE statement say what becomes of the file, other than that it stays?"""
    texts = (one.text for one in statements(routine.body) if "status" in one.text and "close" in one.text)
    return any(re.search(r"\bclose\s*\(.*status\s*=(?!\s*['\"]\s*keep)", text, re.DOTALL) for text in texts)


def _changes(
    statement: Statement,
    routine: Routine,
    opened: frozenset[str],
    known: set[str],
    wrong: list[Wrong],
    removed: bool,
    types: DerivedTypes,
) -> Iterator[Wrong]:
    """Places in the statement and the text to put there. removed: files may be, by the end of their use: even
    one that is only read has to be a copy then."""
    c = routine.source.form is Form.C
    for name in statement.calls:
        if name in (_C_REFUSED if c else _FORTRAN_REFUSED) and name not in known:
            wrong.append((statement.begin, statement.end, f"{name.upper()}: every rank would do this"))
    if c:
        code = blanked(routine.source.text[statement.begin : statement.end], False, "_")
        for match in re.finditer(r"\b(fopen|remove)\b(?=\s*\()", code):
            if match[1] in statement.calls and match[1] not in known:
                at = statement.begin + match.start()
                yield _qualified(routine, at), at + len(match[1]), _replaced(routine, match[1])
        return
    action = _action(statement.code)
    if action is None:
        return
    if action.word in ("open", "inquire"):
        file = action.get("file")
        if file is not None:
            mode = action.get("action") if action.word == "open" and not removed else None
            more = ", 'inquire'" if action.word == "inquire" else f", {mode.text}" if mode else ""
            begin, end = statement.places[file.begin], statement.places[file.end - 1] + 1
            yield begin, end, f"homing_file({file.text}{more})"
            return
        status = action.get("status")
        if action.word == "open" and (status is None or status.text.strip("'\" ").lower() != "scratch"):
            wrong.append((statement.begin, statement.end, "OPEN without FILE: every rank would open fort.N"))
        return
    unit = action.get("unit", None)
    if (
        action.word in ("read", "write")
        and unit is not None
        and not _is_opened(routine, unit.text, opened, types)
    ):
        reason = f"unit {unit.text} is opened by no OPEN statement of the files given: every rank has fort.N"
        wrong.append((statement.begin, statement.end, reason))


def _qualified(routine: Routine, at: int) -> int:
    """C++: where `std::` before the name begins."""
    before = re.search(r"(?:\bstd\s*)?::\s*$", routine.source.text[routine.begin : at])
    return routine.begin + before.start() if before else at


def _replaced(routine: Routine, name: str) -> str:
    cast = "(FILE *)" if routine.source.cxx and name == "fopen" else ""
    return cast + _C_REPLACED[name]


def _is_opened(routine: Routine, unit: str, opened: frozenset[str], types: DerivedTypes) -> bool:
    name = unit.strip().lower()
    if name in _STANDARD or name in opened or "?" in opened:
        return True
    declared = routine.lookup(re.split(r"\W", name)[0])
    if declared is None:
        return not name.isdecimal()
    if is_text(routine, name, types):
        return True  # no file
    return bool(declared[1].storage == "dummy")


def _opened(units: Sequence[Unit]) -> frozenset[str]:
    """Units that OPEN statements name; "?": others, which an expression says."""
    found: set[str] = set()
    for unit in units:
        for routine in unit.routines if unit.form is not Form.C else ():
            for statement in statements(routine.body):
                action = _action(statement.code)
                if action is None or action.word != "open":
                    continue
                one = action.get("unit", "newunit", None)
                text = one.text.strip().lower() if one else "?"
                declared = routine.lookup(text)
                constant = text.isdecimal() or (declared is not None and declared[1].storage != "dummy")
                found.add(text if constant else "?")
    return frozenset(found)


def _action(code: str) -> _Action | None:
    """The input or output statement in the code; a logical IF may stand before it."""
    blank = blanked(code, True, "_")
    condition_end = condition_of_if(blank)[1]
    at = condition_end + 1 if condition_end else 0
    match = re.compile(r"\s*(open|inquire|read|write)\s*\(", re.IGNORECASE).match(blank, at)
    if match is None:
        return None
    end = closing(blank, match.end()) - 1
    if re.match(r"\s*=[^=]", blank[end + 1 :]):  # an array's element
        return None
    arguments = []
    begin, depth = match.end(), 0
    for index in range(match.end(), end + 1):
        char = blank[index]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0) if index < end else 0
        if index == end or (char == "," and depth == 0):
            keyword = re.compile(r"\s*(\w+)\s*=(?!=)").match(blank, begin, index)
            first = keyword.end() if keyword else begin
            text = code[first:index]
            first += len(text) - len(text.lstrip())
            word, text = keyword[1].lower() if keyword else None, text.strip()
            arguments.append(_Argument(word, text, first, first + len(text)))
            begin = index + 1
    return _Action(match[1].lower(), arguments)
