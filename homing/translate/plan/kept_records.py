"""An extremum that is kept with what belongs to it: `if (x > m) { m = x; at = i; }`, argmax and argmin.

Of equal extrema, which one is kept is the first iteration that comes, or said by the condition:
`if (x > m || (x == m && i < at))`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from homing.translate.code_text import closing, condition_of_if, leading_component
from homing.translate.openmp import Record
from homing.translate.plan.reference_text import folded
from homing.translate.tree import Branch, Node, Routine, Statement, statements, walk

_SIGNS = {".gt.": ">", ".ge.": ">=", ".lt.": "<", ".le.": "<=", ".eq.": "=="}
_COMPARISON = re.compile(r"(.*?)(>=|<=|==|>|<|\.gt\.|\.ge\.|\.lt\.|\.le\.|\.eq\.)(.*)", re.DOTALL)
_OR = re.compile(r"\|\||\.or\.")
_AND = re.compile(r"&&|\.and\.")
_ASSIGNED = re.compile(r"\s*=(?!=)(.*?);?\s*", re.DOTALL)


class KeptRecord(NamedTuple):
    """The statement that keeps the extremum, the record, the names of its variables, and the extremum's
    value."""

    statement: Statement
    record: Record
    names: tuple[str, ...]
    value: str


class _Comparison(NamedTuple):
    left: str
    sign: str
    right: str


def kept_record(node: Node, routine: Routine) -> KeptRecord | None:
    """What the node keeps, where it does nothing else."""
    if not isinstance(node, Branch) or len(node.arms) != 1 or not node.conditional:
        return None
    if node.masked or node.switch or node.tries:
        return None
    head, body = node.arms[0]
    while len(body) == 1 and isinstance(body[0], Branch) and not body[0].conditional:
        body = body[0].arms[0][1]
    assigned: dict[str, tuple[str, str, Statement]] = {}
    for one in body:
        if not isinstance(one, Statement) or one.guarded:
            return None
        target, name, rest = leading_component(folded(one.text, routine))
        gets = _ASSIGNED.fullmatch(rest)
        if not name or gets is None or target in assigned:
            return None
        assigned[target] = name, _bare(gets[1]), one
    names = {name for name, _, _ in assigned.values()}
    for target, (_, value, _) in assigned.items():
        if names & set(re.findall(r"\w+", value)) or re.search(r"\+\+|--|=", value):
            return None
        if "(" in target or not all(one.isdigit() for one in re.findall(r"\[(.*?)\]", target)):
            return None
    return _record(condition(head, routine), assigned) if len(assigned) > 1 else None


def of_equal_ones(nodes: list[Node], at: int, routine: Routine) -> str:
    """What helps where the text at an offset is kept with an extremum by `>=`: of equal ones, which is kept
    depends on the order in which ranks are looked at, and on what was there before. Empty: it is not."""
    for node in walk(nodes):
        if not isinstance(node, Branch) or len(node.arms) != 1 or not node.conditional:
            continue
        head, body = node.arms[0]
        written = {leading_component(folded(one.text, routine))[0] for one in statements(body)}
        inside = any(one.begin <= at < one.end for one in statements(body))
        for said in _split(condition(head, routine), _AND) if inside and len(written) > 1 else ():
            compared = comparison(said, written)
            if compared and compared.sign in (">=", "<="):
                sign, fortran = compared.sign[0], routine.source.form.fortran
                either, both = (" .or. ", " .and. ") if fortran else (" || ", " && ")
                left, right = compared.left, compared.right
                equal = f"({left} == {right}{both}index < its index)"
                return f"say which of equal ones: {left} {sign} {right}{either}{equal}"
    return ""


def _record(said: str, assigned: dict[str, tuple[str, str, Statement]]) -> KeptRecord | None:
    """The record that the condition and the assignments (name, value and statement by target) keep."""
    alternatives = sorted(_split(said, _OR), key=lambda one: len(_split(one, _AND)))
    compared = _compared(alternatives[0], assigned)
    if compared is None or compared.sign not in "<>" or len(alternatives) > 2:
        return None
    operator = "max" if compared.sign == ">" else "min"
    tie = None
    if len(alternatives) == 2:
        both = [_compared(one, assigned) for one in _split(alternatives[1], _AND)]
        equal = [one for one in both if one and one.sign == "==" and one.right == compared.right]
        other = [one for one in both if one and one.sign in "<>" and one.right != compared.right]
        if len(both) != 2 or not equal or not other:
            return None
        tie = ("max" if other[0].sign == ">" else "min"), other[0].right
    target = compared.right
    others = tuple(one for one in assigned if one != target)
    return KeptRecord(
        assigned[target][2],
        Record(operator, target, others, tie),
        tuple(assigned[one][0] for one in (target, *others)),
        assigned[target][1],
    )


def _compared(text: str, assigned: dict[str, tuple[str, str, Statement]]) -> _Comparison | None:
    """A comparison of a target, on its right, with the value that it gets."""
    found = comparison(text, assigned)
    return found if found and found.left == assigned[found.right][1] else None


def comparison(text: str, targets: Container[str]) -> _Comparison | None:
    """A comparison with one of the targets, which stands on its right then."""
    compared = _COMPARISON.fullmatch(_within(text))
    if compared is None:
        return None
    left, sign, right = _within(compared[1]), _SIGNS.get(compared[2], compared[2]), _within(compared[3])
    if left in targets:
        left, sign, right = right, sign.translate(str.maketrans("<>", "><")), left
    return _Comparison(left, sign, right) if right in targets else None


def condition(head: Statement, routine: Routine) -> str:
    """The condition of an IF, without spaces."""
    begin, end = condition_of_if(head.text)
    return _within(_bare(folded(head.text[begin:end] if end else head.text, routine)))


def _split(text: str, operator: re.Pattern[str]) -> list[str]:
    """What the operator joins, outside of brackets."""
    found, begin = [], 0
    for match in operator.finditer(text):
        before = text[: match.start()]
        if all(before.count(one) == before.count(other) for one, other in ("()", "[]")):
            found.append(_within(text[begin : match.start()]))
            begin = match.end()
    return [*found, _within(text[begin:])]


def _within(text: str) -> str:
    """Without brackets around all of it."""
    while text.startswith("(") and closing(text, 1) == len(text):
        text = text[1:-1]
    return text


def _bare(text: str) -> str:
    return "".join(text.split())
