"""Subscripts and loop bounds as sums of terms: what can be said about an index without running the
program."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache

_KIND = re.compile(r"\b(\d+)_\w+")
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * term. Terms are names, or whole sub-expressions that are no sum of
    names (n/2, mod(i, 2)). names: every name in it, those inside such terms included."""

    constant: int
    terms: tuple[tuple[str, int], ...]
    names: frozenset[str]

    def coefficient(self, name: str) -> int:
        return dict(self.terms).get(name, 0)

    def without(self, name: str) -> Affine:
        """The same without the term `name`."""
        return Affine(self.constant, tuple(t for t in self.terms if t[0] != name), self.names - {name})

    def minus(self, other: Affine) -> int | None:
        """The difference, where it is a number."""
        return self.constant - other.constant if self.terms == other.terms else None

    def follows(self, name: str) -> int | None:
        """c where this is `name + c`."""
        return self.constant if self.terms == ((name, 1),) else None

    def hides(self, name: str) -> bool:
        """Is the name inside a term, so that nothing is known about how the value depends on it?"""
        return name in self.names and self.coefficient(name) == 0


def names_in(text: str) -> frozenset[str]:
    """Every identifier in an expression."""
    return frozenset(_NAME.findall(_KIND.sub(r"\1", text)))


@cache
def affine(text: str) -> Affine:
    """The expression `text` (names already in the form in which they are compared). Never fails: what is not
    understood is one term."""
    clean = " ".join(_SUFFIX.sub(r"\1", _KIND.sub(r"\1", text)).replace("->", ".").split())
    names = names_in(text)
    try:
        tree = ast.parse(clean, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Affine(0, ((clean, 1),), names)
    constant, terms = _sum(tree)
    return Affine(constant, tuple(sorted((t, c) for t, c in terms.items() if c)), names)


def _sum(node: ast.expr) -> tuple[int, dict[str, int]]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value, {}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        constant, terms = _sum(node.operand)
        return _scaled(constant, terms, -1 if isinstance(node.op, ast.USub) else 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        constant, terms = _sum(node.left)
        more, others = _scaled(*_sum(node.right), 1 if isinstance(node.op, ast.Add) else -1)
        for term, factor in others.items():
            terms[term] = terms.get(term, 0) + factor
        return constant + more, terms
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for left, right in ((node.left, node.right), (node.right, node.left)):
            factor, none = _sum(left)
            if not none:
                return _scaled(*_sum(right), factor)
    return 0, {ast.unparse(node): 1}


def _scaled(constant: int, terms: dict[str, int], factor: int) -> tuple[int, dict[str, int]]:
    return constant * factor, {term: count * factor for term, count in terms.items()}


def shifted(text: str, by: int) -> str:
    """The expression plus a number, as text that both languages read."""
    if by == 0:
        return text
    value = affine(text)
    if not value.terms:
        return str(value.constant + by)
    simple = re.fullmatch(r"\w+", text.strip())
    inner = text.strip() if simple else f"({text.strip()})"
    if not simple and value.constant and len(value.terms) == 1 and value.terms[0][1] == 1:
        term, total = value.terms[0][0], value.constant + by
        return term if total == 0 else f"{term} {'+' if total > 0 else '-'} {abs(total)}"
    return f"{inner} {'+' if by > 0 else '-'} {abs(by)}"
