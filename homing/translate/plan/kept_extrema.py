"""The extremum that is kept of what a loop meets, written as a condition: `if (x > m) m = x`."""

from __future__ import annotations

import re
from typing import NamedTuple

from homing.translate.code_text import closing, condition_of_if, leading_variable
from homing.translate.plan.reference_text import folded
from homing.translate.tree import Branch, Node, Routine, Statement

_SIGNS = {">": ">", ">=": ">", ".gt.": ">", ".ge.": ">", "<": "<", "<=": "<", ".lt.": "<", ".le.": "<"}
_COMPARISON = re.compile(r"\s*(.*?)\s*(>=|<=|>|<|\.[gl][te]\.)\s*(.*?)\s*", re.DOTALL)
_CHOICE = re.compile(r"([^?:;]*)\?([^?:]*):([^?:]*);?")
_ASSIGNED = re.compile(r"\s*=(?!=)\s*(.*?)\s*;?\s*", re.DOTALL)


def without_braces(nodes: list[Node]) -> list[Node]:
    """What a block holds where it is all there is."""
    while len(nodes) == 1 and isinstance(nodes[0], Branch) and not nodes[0].conditional:
        nodes = nodes[0].arms[0][1]
    return nodes


def _only_assignment(node: Node) -> tuple[str, str, Statement] | None:
    """The condition, the assignment that alone it guards, and its statement; None where the node is anything
    else."""
    if isinstance(node, Statement):
        begin, end = condition_of_if(node.text) if node.guarded else (0, 0)
        return (node.text[begin:end], node.text[end + 1 :], node) if end else None
    if not isinstance(node, Branch) or len(node.arms) != 1 or not node.conditional:
        return None
    if node.masked or node.switch:
        return None
    head, body = node.arms[0]
    body = without_braces(body)
    if len(body) != 1 or not isinstance(body[0], Statement) or body[0].guarded:
        return None
    begin, end = condition_of_if(head.text)
    return (head.text[begin:end] if end else head.text), body[0].text, body[0]


class Kept(NamedTuple):
    """The assignment, the variable in which it keeps an extremum (with its subscripts, and without), "max" or
    "min", and the other value."""

    statement: Statement
    target: str
    name: str
    operator: str
    value: str


def kept_extremum(node: Node, routine: Routine) -> Kept | None:
    """What the node keeps, where it does nothing else."""
    found = _only_assignment(node)
    if found is None:
        return None
    condition, action, statement = found
    compared = _COMPARISON.fullmatch(folded(condition, routine))
    target, name, rest = leading_variable(folded(action, routine))
    assigned = _ASSIGNED.fullmatch(rest)
    if compared is None or assigned is None or not name:
        return None
    left, sign, right = _bare(compared[1]), _SIGNS[compared[2]], _bare(compared[3])
    if left == target:
        left, sign, right = right, "<" if sign == ">" else ">", left
    if right != target or left != _bare(assigned[1]):
        return None
    if "++" in assigned[1] or "--" in assigned[1]:  # it is another value each time
        return None
    return Kept(statement, target, name, "max" if sign == ">" else "min", assigned[1])


def chosen_extremum(text: str, target: str) -> tuple[str, str] | None:
    """C: "max" or "min" and the other value of what is assigned to the target, `x > m ? x : m`."""
    choice = _CHOICE.fullmatch(_without_brackets(text))
    compared = _COMPARISON.fullmatch(_without_brackets(choice[1])) if choice else None
    if choice is None or compared is None:
        return None
    left, right, then, other = (
        _bare(_without_brackets(one)) for one in (compared[1], compared[3], choice[2], choice[3])
    )
    if target not in (left, right) or left == right or {left, right} != {then, other}:
        return None
    value = right if left == target else left
    if re.search(r"\+\+|--|\(", value):  # it may be another value each time
        return None
    larger = (_SIGNS[compared[2]] == ">") == (then == left)
    return "max" if larger else "min", value


def _without_brackets(text: str) -> str:
    """The text without blanks, and brackets, around all of it."""
    text = text.strip(" \t\r\n;")
    while text.startswith("(") and closing(text, 1) == len(text) and text.endswith(")"):
        text = text[1:-1].strip()
    return text


def _bare(text: str) -> str:
    return "".join(text.split())
