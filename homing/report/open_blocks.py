"""The blocks, loops and OpenMP constructs around a line of source. No parser: braces, DO and END DO, and
directives are matched; where macros hide them, too little is found."""

from __future__ import annotations

from homing.late import pattern, re
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Comments, texts and letters of C; letters are short, for `'` also stands within numbers.
_NO_CODE = pattern(r"""(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\[^\n]{1,8}?|[^'\\\n])'""")
#: The preprocessor's conditional parts: `if` of #ifdef, `el` of #else and #elif, `endif`.
_CONDITION = pattern(r"[ \t]*#\s*(if|el|endif)")
_PREPROCESSOR = pattern(r"(?m)^[ \t]*#(?!\s*pragma\s+omp)(?:\\\n|[^\n])*")
_PRAGMA = pattern(r"#\s*pragma\s+omp\b((?:\\\n|[^\n])*)")
_FOR = pattern(r"\bfor\s*\(")
_SET = pattern(r"([A-Za-z_]\w*)\s*(?:[-+*/]?=|\+\+|--|:(?!:))|(?:\+\+|--)\s*([A-Za-z_]\w*)")
#: Constructs that share work out among threads.
_SHARING = pattern(r"\b(for|do|loop|distribute|sections|workshare|taskloop)\b")
#: Constructs of Fortran that end with a directive of their own.
_CONSTRUCTS = ("workshare", "sections", "single", "master", "masked", "critical", "task", "ordered", "target")
_DO = pattern(r"(?:\w+\s*:\s*)?do\b\s*(\d+)?\s*,?\s*(?:(\w+)\s*=(?!=))?")
_END_DO = pattern(r"(?:\d+\s+)?end\s*do\b")
_PROCEDURE = pattern(r"[^'\"!]*\b(?:subroutine|function|program|module)\s+\w+|contains\b|end\s*$")
_SENTINEL = pattern(r"(?i)\s*[!cC*]\$omp&?\s*(.*)")


@dataclass(frozen=True)
class Around:
    """loops: the lines of those around the line and on it, with their variables, from the outside inwards.
    shared: a construct shares one of them out, or what they are in. region: they lie in a parallel region.
    conditional: the line of a directive that would do either, and stands in a part of the preprocessor's
    that the line is not in: whether it was compiled is not known. 0: there is none."""

    loops: tuple[tuple[int, frozenset[str]], ...] = ()
    shared: bool = False
    region: bool = False
    conditional: int = 0


class _Parts:
    """The conditional parts of a source file."""

    def __init__(self, lines: Sequence[str], line: int) -> None:
        self._of: list[tuple[int, ...]] = []  # the parts that each line is in, from the outside inwards
        open_parts: list[int] = []
        for number, text in enumerate(lines):
            found = _CONDITION.match(text)
            if found is not None and found[1] != "if" and open_parts:
                open_parts.pop()
            if found is not None and found[1] != "endif":
                open_parts.append(number)
            self._of.append(tuple(open_parts))
        self._compiled = self._of[line - 1]

    def certain(self, line: int) -> bool:
        """Was a line (from 1) compiled, as the one was that runs?"""
        parts = self._of[line - 1]
        return parts == self._compiled[: len(parts)]


# C and C++


def c_text(lines: Sequence[str]) -> str:
    """The lines of C or C++ with blanks for comments, texts and all of the preprocessor but OpenMP's
    directives: every letter stands where it was."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return _PREPROCESSOR.sub(blank, _NO_CODE.sub(blank, "\n".join(lines) + "\n"))


def loop_control(text: str, at: int) -> tuple[str, int]:
    """What stands in the brackets of a loop of C that begin before `at`, and where its body begins."""
    end = _closing(text, at)
    return text[at:end], end + 1


def around_c(lines: Sequence[str], line: int) -> Around:
    """What is around a line (from 1) of C or C++."""

    text = c_text(lines)
    begins = [0]
    for one in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(one))
    loops: list[tuple[int, frozenset[str]]] = []
    shared = region = False
    conditional = 0
    parts = _Parts(lines, line)
    for begin, end in _heads(text, begins[line - 1], begins[line]):
        head = text[begin:end]
        for directive in _PRAGMA.finditer(head):
            words = re.sub(r"\\\n", " ", directive[1].split("(")[0])
            shares, parallel = _SHARING.search(words) is not None, "parallel" in words.split()
            at = text.count("\n", 0, begin + directive.start()) + 1
            if not parts.certain(at):
                conditional = conditional or (at if shares or parallel else 0)
                continue
            shared, region = shared or shares, region or parallel
        for found in _FOR.finditer(head):
            control = head[found.end() : _closing(head, found.end())]
            number = text.count("\n", 0, begin + found.start()) + 1
            loops.append((number, loop_variables(control)))
    return Around(tuple(loops), shared, region, conditional)


def _heads(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """The pieces of code that stand open somewhere in text[begin:end]: what is before the brace of each
    block around it, and the statements in it."""
    found: list[tuple[int, int]] = []
    blocks: list[tuple[int, int, int]] = []  # the head, and how many brackets were open before the brace
    first = depth = 0
    for at in range(end):
        letter = text[at]
        if at == begin:
            found += [(head, brace) for head, brace, _ in blocks]
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth = max(0, depth - 1)
        elif letter == "{":
            blocks.append((first, at, depth))
            if at >= begin:
                found.append((first, at))
            first, depth = at + 1, 0
        elif letter == "}":
            if blocks:
                _, _, depth = blocks.pop()
            first = at + 1
        elif letter == ";" and depth == 0:
            if at >= begin:
                found.append((first, at))
            first = at + 1
    return [*found, (first, end)]


def _closing(text: str, at: int) -> int:
    """Where the bracket closes that was opened before `at`."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def loop_variables(control: str) -> frozenset[str]:
    """The variables that a loop of C sets in its head."""
    return frozenset(one or other for one, other in _SET.findall(control))


def without_heads(text: str) -> str:
    """What a statement of C does, without the heads of its loops."""
    while found := _FOR.search(text):
        text = text[: found.start()] + text[_closing(text, found.end()) + 1 :]
    return text


# Fortran


def around_fortran(lines: Sequence[str], line: int, fixed: bool) -> Around:
    """What is around a line (from 1) of Fortran."""
    loops: list[tuple[int, frozenset[str]]] = []
    shared = region = False
    ended = 0  # loops that end between here and the line
    closed: dict[str, int] = {}  # constructs, likewise
    next_code = line
    conditional = 0
    parts = _Parts(lines, line)
    for number in range(line, 0, -1):
        text = lines[number - 1]
        directive = _SENTINEL.match(text)
        if directive is not None:
            words = directive[1].lower().split("(")[0]
            if not parts.certain(number):
                shares = any(at == next_code for at, _ in loops) and _SHARING.search(words) is not None
                conditional = number if shares and not words.startswith("end") else conditional
            elif words.startswith("end"):
                name = _construct(words[3:])
                closed[name] = closed.get(name, 0) + 1
            elif re.search(r"\b(do|loop|distribute|taskloop)\b", words):
                shared = shared or any(at == next_code for at, _ in loops)
            elif closed.get(name := _construct(words)):
                closed[name] -= 1
            else:
                shared = shared or name in ("workshare", "sections")
                region = region or "parallel" in words.split()
            continue
        code = fortran_code(text, fixed)
        if not code or code.startswith("#"):
            continue
        if number < line and _PROCEDURE.match(code):
            break
        if number < line and _END_DO.match(code):
            ended += 1
        elif (found := _DO.match(code)) is not None:
            label, variable = found[1], found[2]
            if ended and not label:
                ended -= 1
            elif variable and not (label and _has_ended(lines[number : line - 1], label, fixed)):
                loops.append((number, frozenset({variable})))
        next_code = number
    return Around(tuple(reversed(loops)), shared, region, conditional)


def _construct(words: str) -> str:
    """The construct that a directive begins or ends, without `parallel` where it is combined with one."""
    names = words.split()
    return next((one for one in names if one in _CONSTRUCTS), "parallel" if "parallel" in names else "")


def fortran_code(text: str, fixed: bool) -> str:
    """A line of Fortran without its comment, in small letters."""
    if fixed and text[:1] in "cC*dD!":
        return ""
    return text.split("!")[0].strip().lower()


def _has_ended(lines: Sequence[str], label: str, fixed: bool) -> bool:
    """Does the loop that ends at a label end in these lines?"""
    ends = re.compile(rf"0*{label}\b")
    return any(ends.match(fortran_code(one, fixed)) for one in lines)
