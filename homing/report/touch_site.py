"""What stands in the source where an array was first touched, as far as advice needs it: a loop and whether
it is shared out already, an assignment of whole arrays, a container that writes what it takes.

No parser: of what is not understood nothing is said. The source counts only where it is the one that was
compiled: where the statement that is kept of a line stands on that line still.
"""

from __future__ import annotations

import os

from homing.late import pattern, re
from homing.report.first_touch import FirstTouch
from homing.report.iterations import Iterations, iterations_of_c, iterations_of_fortran
from homing.report.libraries import is_header
from homing.report.open_blocks import Around, around_c, around_fortran, without_heads
from homing.report.statements import (
    FIXED,
    is_constructors,
    is_fortran,
    last_component,
    source_lines,
    statement,
)
from homing.values import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

#: Kinds of sites: a loop; a loop, or other code, that a construct shares out already; code of a parallel
#: region that one thread runs; an assignment of whole arrays; ALLOCATE with SOURCE=; a function that fills
#: memory (memset); a container, or an allocator, that writes what it takes.
UNKNOWN, LOOP, PARALLEL, ONE_OF_REGION, WHOLE, SOURCE, FILL, CONTAINER = range(8)

_FILL = pattern(r"\b(memset|memcpy|memmove|bzero|(?:std::)?(?:fill|copy)(?:_n)?|(?:std::)?iota)\s*\(")
_CONTAINER = pattern(
    r"\bnew\b[^;]*\]\s*(\(\s*\)|\{)|\bcalloc\b|\bmake_(unique|shared)\b|\b(vector|valarray|deque)\s*<"
    r"|(\.|->)\s*(resize|assign|push_back|emplace_back|insert|append|setZero)\s*\("
)
_FOR = pattern(r"\bfor\s*\(")
_SOURCE = pattern(r"(?i)\ballocate\s*\(.*\bsource\s*=")
#: C: an element that is set, by a subscript with a name in it.
_ELEMENT = pattern(r"\[[^]]*[A-Za-z_][^]]*\]\s*([-+*/%|&^]|<<|>>)?=(?!=)")
_ASSIGNED = pattern(r"(?<![=!<>])=(?!=)")
_WORD = pattern(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Site:
    """kind: one of those above. line: of the loop or statement; 0 where there is none to name. what: the
    function that fills memory."""

    kind: int = UNKNOWN
    file: str = ""
    line: int = 0
    what: str = ""
    #: Of a loop: the line of a directive that shares it out and may not have been compiled (0: none), and
    #: what its iterations share (iterations.py).
    directive: int = 0
    shared: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """File and line."""
        return f"{os.path.basename(self.file)}:{self.line}"


def site(touch: FirstTouch, arrays: Collection[str], allocation: tuple[str, int, str]) -> Site:
    """Where memory was first touched. arrays: its variables, as the author calls them. allocation: the file,
    line and text of the statement that allocates or declares it."""
    if not touch.line or is_header(touch.file):
        file, line, text = allocation
        made = bool(line) and (is_constructors(text) or _CONTAINER.search(text) is not None)
        return Site(CONTAINER, file, line) if made and not is_header(file) else Site()
    lines = _lines(touch)
    if is_fortran(touch.file):
        fixed = _is_fixed(touch.file)
        around = around_fortran(lines, touch.line, fixed) if lines else None
        found = _in_fortran(touch, around, arrays)
        if found.kind == LOOP and lines:
            return _with(found, around, iterations_of_fortran(lines, found.line, fixed))
        return found
    around = around_c(lines, touch.line) if lines else None
    found = _in_c(touch, around)
    if found.kind == LOOP and lines:
        return _with(found, around, iterations_of_c(lines, found.line))
    return found


def _with(site: Site, around: Around | None, iterations: Iterations) -> Site:
    directive = around.conditional if around is not None else 0
    return replace(site, directive=directive, shared=iterations.shared, private=iterations.private)


def _lines(touch: FirstTouch) -> list[str]:
    """The lines of its source, if that is the one that was compiled."""
    same = touch.text and statement(touch.file, touch.line).text == touch.text
    return source_lines(touch.file) if same else []


def _shared_out(touch: FirstTouch, around: Around | None) -> Site | None:
    """The site where threads run the code already, together or one of them; None where it is serial."""
    if around is not None and around.conditional and len(touch.threads) > 1:
        return Site(PARALLEL, touch.file, touch.line)  # what cannot be seen in the source
    if around is None or not (around.shared or around.region):
        return None
    return Site(PARALLEL if around.shared else ONE_OF_REGION, touch.file, touch.line)


def _loop(around: Around | None, words: Iterable[str]) -> int:
    """The line of the outermost loop that has its variable among the words; 0: of none."""
    known = set(words)
    for line, variables in around.loops if around is not None else ():
        if known & variables:
            return line
    return 0


def _in_c(touch: FirstTouch, around: Around | None) -> Site:
    text = touch.text
    if shared := _shared_out(touch, around):
        return shared
    file, line = touch.file, touch.line
    element = _ELEMENT.search(text) is not None
    if not element and (is_constructors(text) or _CONTAINER.search(text)):
        return Site(CONTAINER, file, line)
    body = without_heads(text)
    filled = _FILL.search(body)
    words = _WORD.findall(body)
    on_line = [number for number, _ in around.loops if number == line] if around is not None else []
    sets = element or filled or _ASSIGNED.search(body)
    if sets and (loop := _loop(around, words)):
        return Site(LOOP, file, loop)
    if on_line and not words:  # the head of a loop
        return Site(LOOP, file, line)
    if filled and not element:
        return Site(FILL, file, line, filled[1])
    if not element:
        return Site()
    if around is None:  # an element by a variable: in a loop that cannot be read
        return Site(LOOP, file, line)
    return Site(LOOP, file, around.loops[-1][0]) if around.loops else Site()


def _in_fortran(touch: FirstTouch, around: Around | None, arrays: Collection[str]) -> Site:
    text = touch.text.lower()
    if shared := _shared_out(touch, around):
        return shared
    file, line = touch.file, touch.line
    if _SOURCE.search(text):
        return Site(SOURCE, file, line)
    names = {last_component(name).lower() for name in arrays}
    assigned = [one for part in text.split(";") if (one := _assigned(part)) is not None]
    ours = [whole for name, whole in assigned if name in names]
    if not ours and around is not None and around.loops and any(whole for _, whole in assigned):
        return Site()  # a scalar, of elements that are read
    ours = ours or [whole for _, whole in assigned]
    if not ours:
        return Site()
    if any(ours):
        return Site(WHOLE, file, line)
    if around is None:  # an element by a variable: in a loop that cannot be read
        return Site(LOOP, file, line)
    loop = _loop(around, _WORD.findall(text)) or (around.loops[-1][0] if around.loops else 0)
    return Site(LOOP, file, loop) if loop else Site()


def _is_fixed(file: str) -> bool:
    return os.path.splitext(file)[1].lower() in FIXED


def _assigned(text: str) -> tuple[str, bool] | None:
    """What an assignment of Fortran sets, and whether that is an array, or a section of one, as a whole; None
    where it is no assignment. An element by numbers alone, `a(1)`, is none that a loop sets."""
    if re.match(r"\s*do\b", text):
        return None
    depth = at = 0
    for at, letter in enumerate(text):  # noqa: B007 - the place is used below
        depth += (letter in "([") - (letter in ")]")
        if letter == "=" and depth == 0:
            break
    else:
        return None
    left = re.sub(r"^\s*(\d+\s+)?((where|if)\s*\(.*\)\s*(?=[a-z]))?", "", text[:at]).strip()
    if text[at + 1 : at + 2] in ("=", ">") or not re.fullmatch(r"[a-z_][\w%(),:+\-*/ ]*", left):
        return None
    subscripts = re.search(r"\(([^%]*)\)$", left)
    if subscripts is not None and ":" not in subscripts[1] and not re.search(r"[a-z_]", subscripts[1]):
        return None
    return last_component(left), subscripts is None or ":" in subscripts[1]
