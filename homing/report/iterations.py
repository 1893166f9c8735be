"""Do the iterations of a loop need each other? Plain cases, as far as the loop's own text tells: a scalar
from outside that it sets and reads, elements of an array that others of its iterations set, a random
generator or a file that gives the next value.

No parser, and no proof: where nothing is found, the iterations may need each other all the same.
"""

from __future__ import annotations

from homing.late import pattern, re
from homing.report.open_blocks import c_text, fortran_code, loop_control, loop_variables
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Functions whose next value depends on the calls before.
_ORDERED = pattern(
    r"(?i)\b(\w*rand(?:om|om_number|u|n)?(?:48)?(?:_r)?|randlc|vranlc|f?scanf|fread|fgets|fgetc|getc|getchar|getline)\s*\("
)
_WORD = pattern(r"[A-Za-z_]\w*")
#: A name with its structures, one that no bracket or point stands before or behind.
_NAME = r"(?<![\w.\])>])([A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*)*)"
_SET_C = pattern(_NAME + r"\s*((?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*" + _NAME)
_ELEMENT_C = pattern(r"([A-Za-z_][\w.]*(?:->\w+)*)\s*((?:\[[^][]*(?:\[[^][]*\][^][]*)*\]\s*)+)")
_SETS = pattern(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\s*(?:\+\+|--)")
_FOR = pattern(r"\bfor\s*\(")
#: A declaration: its type, and the variables that follow the type.
_DECLARED = pattern(
    r"(?:^|[;{}(])\s*(?!(?:return|else|goto|case|throw|delete|new|static)\b)(?:[A-Za-z_][\w:]*(?:\s*<[^;{}()]*>)?[\s*&]+)+"
    r"(?=[A-Za-z_]\w*\s*[=,;\[({:])([^;{}]*)"
)
_SET_FORTRAN = pattern(r"^(?:\d+\s+)?(?:if\s*\(.*\)\s*)?([a-z_]\w*(?:\s*%\s*\w+)*)\s*=(?![=>])")
_ELEMENT_FORTRAN = pattern(r"([a-z_]\w*(?:%\w+)*)\s*(\([^()]*(?:\([^()]*\)[^()]*)*\))")
_DO = pattern(r"(?:\w+\s*:\s*)?(?:\d+\s+)?do\b\s*(\d+)?\s*,?\s*(?:(\w+)\s*=(?!=))?")
_END_DO = pattern(r"(?:\d+\s+)?end\s*do\b")
#: Lines that a loop is followed over.
_MOST_LINES = 400


@dataclass(frozen=True)
class Iterations:
    """shared: names by which iterations need each other, or of which each thread would need its own; empty:
    none was found. private: variables of inner loops that are declared outside, of which each thread needs
    its own."""

    shared: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


def iterations_of_c(lines: Sequence[str], line: int) -> Iterations:
    """The loop that begins on a line (from 1) of C or C++."""
    text = c_text(lines)
    begin = sum(len(one) + 1 for one in lines[: line - 1])
    head = _FOR.search(text, begin)
    if head is None or text.count("\n", 0, head.start()) != line - 1:
        return Iterations()
    control, end = loop_control(text, head.end())
    body = _body(text, end)
    own = loop_variables(control)
    local = own | _declared(body)
    inner: set[str] = set()
    for found in _FOR.finditer(body):
        inner |= loop_variables(loop_control(body, found.end())[0])
    shared = [found[1] for found in _ORDERED.finditer(body)]
    shared += _scalars_of_c(body, local | inner)
    elements = []
    for found in _ELEMENT_C.finditer(body):
        subscripts = re.findall(r"\[((?:[^][]|\[[^][]*\])*)\]", found[2])
        elements.append((found[1], subscripts, _SETS.match(body, found.end()) is not None))
    shared += _elements(elements, own)
    return Iterations(tuple(dict.fromkeys(shared)), tuple(sorted(inner - local)))


def _body(text: str, at: int) -> str:
    """The statement at a place of C: a block, or all up to the semicolon that ends it."""
    depth = 0
    for place in range(at, len(text)):
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if letter == "}" and depth <= 0:
                return text[at : place + 1]
        elif letter == ";" and depth == 0:
            return text[at : place + 1]
    return text[at:]


def _declared(body: str) -> set[str]:
    """The variables that a body declares for itself."""
    names: set[str] = set()
    at = 0
    while found := _DECLARED.search(body, at):
        depth, part = 0, ""
        for letter in found[1] + ",":
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth <= 0:
                if word := _WORD.search(part):
                    names.add(word[0])
                part = ""
            else:
                part += letter
        at = found.start(1)
    return names


def _scalars_of_c(body: str, local: Iterable[str]) -> list[str]:
    """Scalars from outside that a body sets and reads."""
    known, found = set(local), []
    for one in _SET_C.finditer(body):
        name, operator = one[1] or one[3], one[2] or "++"
        if _WORD.match(name)[0] in known or body[: one.start()].rstrip().endswith("*"):  # type: ignore[index]
            continue
        uses = len(re.findall(rf"(?<![\w.>]){re.escape(name)}(?![\w(])", body))
        plain = sum(1 for other in _SET_C.finditer(body) if other[1] == name and other[2] == "=")
        if operator != "=" or uses > plain:
            found.append(name)
    return found


def _elements(elements: Sequence[tuple[str, Sequence[str], bool]], own: Iterable[str]) -> list[str]:
    """Arrays of which one iteration may read or set what another one sets: (name, subscripts, is it set?)."""
    variables = set(own)

    def by_iteration(subscripts: Sequence[str]) -> tuple[tuple[int, str], ...]:
        """The subscripts that change with the loop's variable."""
        return tuple(
            (at, "".join(one.split()))
            for at, one in enumerate(subscripts)
            if variables & set(_WORD.findall(one))
        )

    set_by = {(name, by_iteration(subscripts)) for name, subscripts, is_set in elements if is_set}
    found = []
    for name, subscripts, _ in elements:
        other = by_iteration(subscripts)
        if other and any(name == one and own_at and own_at != other for one, own_at in set_by):
            found.append(name)
    return found


def iterations_of_fortran(lines: Sequence[str], line: int, fixed: bool) -> Iterations:
    """The loop that begins on a line (from 1) of Fortran."""
    own, statements = _loop_of_fortran(lines, line, fixed)
    body = "\n".join(statements)
    shared = [found[1] for found in _ORDERED.finditer(body)]
    inner = {found[2] for one in statements if (found := _DO.match(one)) and found[2]}
    sets = [found[1] for one in statements if not _DO.match(one) and (found := _SET_FORTRAN.match(one))]
    for name in sets:
        if name not in inner and len(
            re.findall(rf"(?<![\w%]){re.escape(name)}(?![\w(%])", body)
        ) > sets.count(name):
            shared.append(name)
    elements = []
    for one in statements:
        for found in _ELEMENT_FORTRAN.finditer(one):
            is_set = (
                "=" not in one[: found.start()] and re.match(r"\s*=(?!=)", one[found.end() :]) is not None
            )
            elements.append((found[1], found[2][1:-1].split(","), is_set))
    return Iterations(tuple(dict.fromkeys([*shared, *_elements(elements, own)])))


def _loop_of_fortran(lines: Sequence[str], line: int, fixed: bool) -> tuple[set[str], list[str]]:
    """The variable of a loop, and the statements in it, without comments and in small letters."""
    head = _DO.match(fortran_code(lines[line - 1], fixed))
    if head is None:
        return set(), []
    statements: list[str] = []
    depth = 1
    goes_on = False
    for text in lines[line : line + _MOST_LINES]:
        code = fortran_code(text, fixed)
        if not code or code.startswith("#"):
            continue
        goes_on = goes_on or (fixed and text[:5].isspace() and text[5:6] not in ("", " ", "0"))
        code = code[1:].strip() if goes_on and code[:1] in "&1234567890+*." else code
        if goes_on and statements:
            statements[-1] += " " + code.rstrip("&")
        else:
            statements += [one.strip() for one in code.rstrip("&").split(";")]
        goes_on = code.endswith("&")
        if head[1]:
            if re.match(rf"0*{head[1]}\b", code):
                break
            continue
        depth += bool((found := _DO.match(code)) and not found[1]) - bool(_END_DO.match(code))
        if depth == 0:
            statements.pop()
            break
    return {head[2]} if head[2] else set(), statements
