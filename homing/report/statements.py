"""Statements of source code, as far as names of areas need them: the text of the one that a line belongs to,
and the variables that it allocates.

No parser: a statement that is not understood has no variables, which is said by naming the function instead.
"""

from __future__ import annotations

import io
import os

from homing.files import open_regular
from homing.late import pattern, re
from homing.light import lru_cache
from homing.record_format import named
from homing.values import dataclass

#: Lines that a statement is followed over, each way.
_MOST_LINES = 60
#: Characters of a statement that are kept.
_MOST_TEXT = 400
#: Lines behind an allocation in which its function may return what was allocated.
_RETURN_LINES = 15
#: Lines of a Fortran function before an allocation.
_RESULT_LINES = 200
_FUNCTION = pattern(r"(?i)^(?!\s*!)[^!'\"]*\bfunction\s+(\w+)\s*\(")
_PROCEDURE = pattern(r"(?i)^\s*(subroutine|program|module|end\s*(function|subroutine)?\s*(\w+)?\s*$)")
#: Suffixes of Fortran, fixed and free form.
FIXED = {".f", ".for", ".ftn", ".f77"}
FREE = {".f90", ".f95", ".f03", ".f08", ".f18"}


@dataclass(frozen=True)
class Statement:
    """The statement of a line. text: on one line, without comments; empty where the source is not there.
    returned: its function gives what it allocates to its caller."""

    text: str = ""
    returned: bool = False


def is_fortran(file: str) -> bool:
    """Is it a source file of Fortran?"""
    return os.path.splitext(file)[1].lower() in FIXED | FREE


@lru_cache(maxsize=64)
def source_lines(file: str) -> list[str]:
    """The lines of a source file; none where it is not there."""
    file = named(file)
    if not os.path.isfile(file):  # a path that debug information names may be anything
        return []
    try:
        with io.TextIOWrapper(open_regular(file), encoding="utf-8", errors="replace") as source:
            return source.read(32 << 20).splitlines()
    except (OSError, ValueError):
        return []


def source_text(file: str) -> str:
    """All of a source file; empty where it is not there."""
    return "\n".join(source_lines(file))


@lru_cache(maxsize=1 << 16)
def statement(file: str, line: int) -> Statement:
    """The statement that stands on a line (from 1) of a file."""
    lines = source_lines(file)
    if not 1 <= line <= len(lines):
        return Statement()
    suffix = os.path.splitext(file)[1].lower()
    if suffix in FIXED:
        text = _fixed(lines, line - 1)
    elif suffix in FREE:
        text = _free(lines, line - 1)
    else:
        text, begin, end = _c(lines, line - 1)
        return Statement(_clean(_on_line(text, begin, end)), _is_returned(lines, line - 1, text))
    return Statement(_clean(text), _is_result(lines, line - 1, text))


def _clean(text: str) -> str:
    short = " ".join(text.split())[:_MOST_TEXT]
    return "".join(mark if mark.isprintable() else "?" for mark in short)


def _uncommented(text: str, mark: str) -> str:
    """A line without its comment; marks within quotes begin none."""
    quote = ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif text.startswith(mark, at):
            return text[:at]
    return text


def _free(lines: list[str], at: int) -> str:
    """Fortran, free form: an ampersand at the end goes on, comments and empty lines lie between."""

    def code(number: int) -> str:
        return _uncommented(lines[number], "!").strip()

    first = at
    for number in range(at - 1, max(-1, at - _MOST_LINES), -1):
        text = code(number)
        if text and not text.endswith("&"):
            break
        if text:
            first = number
    parts: list[str] = []
    for number in range(first, min(len(lines), first + 2 * _MOST_LINES)):
        text = code(number)
        if not text:
            continue
        parts.append(text.strip("&").strip())
        if not text.endswith("&"):
            break
    return " ".join(parts)


def _fixed(lines: list[str], at: int) -> str:
    """Fortran, fixed form: a mark in column 6 goes on with the line before."""

    def is_comment(text: str) -> bool:
        return not text.strip() or text[0] in "Cc*!dD" or text.lstrip().startswith("!")

    def goes_on(text: str) -> bool:
        return len(text) > 5 and not text[:5].strip() and text[5] not in " 0" and "\t" not in text[:5]

    first = at
    while first > 0 and at - first < _MOST_LINES and (is_comment(lines[first]) or goes_on(lines[first])):
        first -= 1
    parts = [_uncommented(lines[first][:72], "!")]
    for text in lines[first + 1 : first + 2 * _MOST_LINES]:
        if is_comment(text):
            continue
        if not goes_on(text):
            break
        parts.append(_uncommented(text[6:72], "!"))
    return " ".join(parts)


def _c(lines: list[str], at: int) -> tuple[str, int, int]:
    """C and C++: from the end of the statement before to a semicolon or the begin of a block; and where in
    it the line stands."""

    def code(number: int) -> str:
        return re.sub(r"/\*.*?\*/", " ", _uncommented(lines[number], "//")).strip()

    first = at
    for number in range(at - 1, max(-1, at - _MOST_LINES), -1):
        text = code(number)
        if not text or text.startswith(("#", "*", "/*")) or text.endswith((";", "{", "}", "*/", ">")):
            break
        # A label, or an access specifier; but a list of members' values goes on.
        if text.endswith(":") and not text.startswith(":"):
            break
        first = number
    parts: list[str] = []
    begin = end = length = 0
    for number in range(first, min(len(lines), first + _MOST_LINES)):
        text = code(number)
        if text.startswith("#") and parts:
            break
        parts.append(text)
        if number == at:
            begin, end = length, length + len(text)
        length += len(text) + 1
        if number >= at and re.search(r"[;{}]\s*$", text):
            break
    return " ".join(parts), begin, end


def _on_line(text: str, begin: int, end: int) -> str:
    """Of a list of several variables of C or C++ over several lines, what is on the line at text[begin:end]
    and what stands before the list: compilers tell the line of each."""
    head = _list_begin(text)
    if head < 0:
        return text
    kept = []
    at = head
    items = _split(text[head:])
    for item in items:
        at = text.index(item, at)
        if item and at < end and at + len(item) > begin:
            kept.append(item)
        at += len(item)
    return text[:head] + ", ".join(kept) if 0 < len(kept) < len(items) else text


def _list_begin(text: str) -> int:
    """Where the variables begin that a statement of C or C++ sets or declares; -1: nowhere."""
    body = _BEFORE_MEMBERS.sub("", text)
    if member := _MEMBER.search(body):
        return len(text) - len(body) + member.start(1)
    if assigned := _ASSIGNED.search(text):
        return assigned.start()
    declared = _DECLARED.match(text)
    return declared.start(1) if declared else -1


def _is_result(lines: list[str], at: int, text: str) -> bool:
    """Fortran: is what the statement allocates the result of its function?"""
    names = {name.lower() for name in variables(text)}
    for line in reversed(lines[max(0, at - _RESULT_LINES) : at]):
        if _PROCEDURE.search(line):
            return False
        if function := _FUNCTION.search(line):
            result = re.search(r"\bresult\s*\(\s*(\w+)", line, re.IGNORECASE)
            return (result or function)[1].lower() in names
    return False


def _is_returned(lines: list[str], at: int, text: str) -> bool:
    """Does the function give back what the statement sets, within the lines that follow? A constructor
    does."""
    if re.search(r"\breturn\b[^;]*\(", text) or is_constructors(text):
        return True
    if re.match(r"\*+\s*\w+\s*=", text):  # through a pointer that the caller gave
        return True
    names = [re.split(r"->|\.", name)[-1] for name in _allocated_in_c(text, "")]
    if not names:
        return False
    pattern = re.compile(r"\breturn\s+(\([^()]*\)\s*)?(" + "|".join(map(re.escape, names)) + r")\s*;")
    for line in lines[at : at + _RETURN_LINES]:
        if pattern.search(line):
            return True
        if line.startswith("}"):
            break
    return False


# Variables

#: C: u = malloc(...), (*u)[N] = malloc(...), s->u[i] = ...; and what stands behind the sign.
_ASSIGNED = pattern(
    r"(?:\(\s*\*+\s*(\w+)\s*\)|((?:[A-Za-z_]\w*(?:\[[^]]*\])?(?:->|\.))*[A-Za-z_]\w*))"
    r"\s*(?:\[[^]]*\]\s*)*(?<![=!<>+*/%&|^-])=(?!=)([^,;]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^,;]*)*)"
)
_ALLOCATOR = pattern(r"(?i)alloc|\bnew\b|\bmmap\b|make_(unique|shared)|memalign")
#: What a function is given to set: posix_memalign(&u, ...), allocate((void **)&s->u, ...).
_GIVEN = pattern(r"(\w+)\s*\(\s*(?:\([^()]*\)\s*)?&\s*((?:\w+(?:\[[^]]*\])?(?:\.|->))*\w+)")
#: C++: std::vector<double> u(n), v(n); Kokkos::View<double*> u("u", n); Field u{n}.
_DECLARED = pattern(
    r"^(?!return\b|call\b|new\b|delete\b|throw\b|else\b|case\b|goto\b)(?:(?:static|const|thread_local|auto|typename)\s+)*"
    r"[A-Za-z_][\w:]*(?:\s*<.*>)?[\s&*]+(\w+\s*[({].*)"
)
_CONSTRUCTED = pattern(r"(?:^|[)}]\s*,\s*)(\w+)\s*[({]")
#: u.resize(n), s->u.assign(n, 0).
_GROWN = pattern(
    r"((?:[A-Za-z_]\w*(?:\[[^]]*\])?(?:\.|->))*[A-Za-z_]\w*)(?:\[[^]]*\])*\s*(?:\.|->)\s*"
    r"(?:resize|reserve|assign|push_back|emplace_back|insert|append|reset|setZero|realloc|allocate)\s*\("
)
#: A constructor's list: : data(n), more(n).
_MEMBER = pattern(r"(?:^|\)\s*):\s*(\w+\s*[({].*)")
_BEFORE_MEMBERS = pattern(r"^[^{};]*\)\s*(?=:)")
#: Before the name of a function of C, whose statements end with a semicolon besides.
_CALLED = pattern(r"([.>=]|::|\breturn)\s*$")
_DECLARATION = pattern(
    r"(?i)^(?:real|integer|double\s*precision|complex|logical|character|type\s*\(|class\s*\().*?::(.*)"
)


#: UPMlib's call by which a program registers an array (Nikolopoulos et al. 2000, Figure 1).
_REGISTERED = pattern(r"(?i)\bupmlib_memrefcnt_{0,2}\s*\(")


#: What variables() found in this process, and in earlier ones (homing/report/known_names.py).
parsed: dict[tuple[str, str], list[str]] = {}


def variables(text: str, callee: str = "") -> list[str]:
    """The variables that a statement allocates, or registers, in its order; with their structures (grid%u,
    s->u). callee:
    the function that the statement calls for it, if it is not an allocator itself."""
    if (text, callee) not in parsed:
        parsed[text, callee] = _variables(text, callee)
    return list(parsed[text, callee])


def _variables(text: str, callee: str) -> list[str]:
    # `in` first: compiling what a statement cannot match is a good part of a summary.
    allocates = "allocate" in text.lower()
    found = re.search(r"\ballocate\s*\(", text, re.IGNORECASE) if allocates else None
    if found and not text.endswith((";", "{", "}")) and not _CALLED.search(text[: found.start()]):
        return _allocate_objects(text[found.end() :])
    if registered := _REGISTERED.search(text) if "memrefcnt" in text.lower() else None:
        return _registered(text[registered.end() :])
    declared = _DECLARATION.match(text) if "::" in text else None
    if declared:
        names = [re.split(r"[(=]", part)[0].strip() for part in _split(declared[1]) if "(" in part]
        return [name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)]
    return _allocated_in_c(text, callee)


def _registered(text: str) -> list[str]:
    """The array of a call of upmlib_memrefcnt, from behind its bracket: &u[0], (char *)u, u(1, 1)."""
    first = next(iter(_split(text)), "")
    first = re.sub(r"^(?:\s*\([\w\s]*\*+\s*\))*\s*&?\s*", "", first)
    found = re.match(r"(?:[A-Za-z_]\w*(?:\[[^]]*\]|\([^)]*\))*(?:\.|->|%))*[A-Za-z_]\w*", first)
    return [found[0]] if found else []


def is_constructors(text: str) -> bool:
    """Is it a list of members' values?"""
    return bool(_MEMBER.search(_BEFORE_MEMBERS.sub("", text)))


def last_component(name: str) -> str:
    """u of grid%u, of s->u and of blocks(i)%u."""
    return re.split(r"%|->|\.|::", re.sub(r"[(\[][^)\]]*[)\]]", "", name))[-1].strip("/ ")


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket, up to the bracket that closes the whole."""
    parts, depth, word = [], 0, ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append(word.strip())
            word = ""
        else:
            word += letter
    return [*parts, word.strip()] if word.strip() else parts


def _allocate_objects(text: str) -> list[str]:
    """The objects of Fortran's allocate statement: without its shapes and options, and a type before them."""
    names = []
    for part in _split(text):
        part = part.rpartition("::")[2].strip()
        if re.match(r"(stat|errmsg|source|mold)\s*=", part, re.IGNORECASE):
            continue
        name = re.sub(r"\[[^]]*\]$", "", part).strip()
        while name.endswith(")"):  # its shape is the last bracket
            depth = 0
            for at in range(len(name) - 1, -1, -1):
                depth += (name[at] == ")") - (name[at] == "(")
                if depth == 0:
                    break
            name = name[:at].strip()
        name = re.sub(r"\s+", "", name)
        if re.fullmatch(r"[A-Za-z_][\w%(),:+\-*]*", name):
            names.append(name)
    return names


def _allocated_in_c(text: str, callee: str) -> list[str]:
    plain = last_component(re.sub(r"<.*>", "", callee)) if callee else ""
    # A lambda, or another object that is called, has the name of a variable.
    called = any(word in callee for word in ("operator", "lambda", "$_"))
    calls = re.compile("" if called else rf"\b{re.escape(plain)}\b") if plain else _ALLOCATOR
    passed = _GIVEN.findall(text) if "&" in text else []
    given = [name for function, name in passed if calls.search(function)]
    if given:
        return given
    assigned = [(pointer or name, value) for pointer, name, value in _ASSIGNED.findall(text)]
    chosen = [name for name, value in assigned if calls.search(value)]
    if chosen:
        return chosen
    if grown := _GROWN.findall(text):
        return list(dict.fromkeys(grown))
    body = _BEFORE_MEMBERS.sub("", text)
    if member := _MEMBER.search(body):
        names = _CONSTRUCTED.findall(member[1])
        if names:
            return list(names)
    declared = None if assigned else _DECLARED.match(text)
    if declared and declared[1].rstrip().endswith((";", ")", "}")):
        return list(_CONSTRUCTED.findall(declared[1]))
    # A Fortran assignment, or an allocator behind a macro.
    return [name for name, _ in assigned] if not plain and len(assigned) == 1 else []
