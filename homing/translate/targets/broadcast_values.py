"""Elements that all parts get before a loop: are they still what they were when the loop reads them?

An element that one iteration writes and another one reads is a race, whatever the translation does. So a read
that every iteration comes to is of an element that none writes. One that only some come to may follow a write
of the same iteration: then the copy made before the loop is too old.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homing.translate.affine import affine, names_in
from homing.translate.plan.boxes import Site, side_of
from homing.translate.plan.model import Side
from homing.translate.plan.reference_text import reference_subscripts
from homing.translate.tree import Access, Branch, Kind, Loop, statements, walk


def too_old(
    loop: Loop, read: Site, sites: Sequence[Site], varying: frozenset[str], whole: Sequence[tuple[str, str]]
) -> bool:
    """May the iteration have written what it reads? sites: those of the loop; whole: bounds by dimension."""
    if not _sometimes(loop, read, varying):
        return False
    mine = _sides(read, varying, whole)
    for other in sites:
        if other.reference.access is Access.READ or other.reference.name != read.reference.name:
            continue
        if other.reference.begin > read.reference.begin and not _again(loop, read, other):
            continue
        its = _sides(other, varying, whole)
        apart = any(_disjoint(a, b) for a, b in zip(mine, its, strict=True))
        if not apart and not _excluded(loop, read, other):
            return True
    return False


def _sometimes(loop: Loop, read: Site, varying: frozenset[str]) -> bool:
    """Are there iterations that do not come to it?"""
    if read.conditional or any(one.kind is Kind.JUMP for one in statements(loop.body)):
        return True
    assert loop.first is not None and loop.last is not None
    if affine(loop.first.text) == affine(loop.last.text):
        return True
    bounds = (end.text for inner in read.loops[1:] for end in (inner.first, inner.last) if end is not None)
    return any(names_in(text) & varying for text in bounds)


def _again(loop: Loop, read: Site, other: Site) -> bool:
    """Does a loop inside repeat both?"""
    return any(inner in other.loops for inner in read.loops if inner is not loop)


def _sides(site: Site, varying: frozenset[str], whole: Sequence[tuple[str, str]]) -> list[Side]:
    found = zip(reference_subscripts(site.reference), whole, strict=True)
    return [side_of(subscript, site.loops, varying, ends)[0] for subscript, ends in found]


def _disjoint(a: Side, b: Side) -> bool:
    for low, high in ((a.first, b.last), (b.first, a.last)):
        distance = affine(low).minus(affine(high))
        if distance is not None and distance > 0:
            return True
    return False


def _excluded(loop: Loop, read: Site, other: Site) -> bool:
    """Is the read under a condition that says that the iteration is another one: `if (i /= k)`?"""
    texts = zip(reference_subscripts(read.reference), reference_subscripts(other.reference), strict=True)
    pairs = [(re.sub(r"\s", "", a.text), re.sub(r"\s", "", b.text)) for a, b in texts]
    for condition in _conditions(loop, read.reference.begin):
        match = re.fullmatch(r"if\((.+)\)(?:then)?", condition)
        ends = re.split(r"/=|\.ne\.|!=", match[1] if match else condition)
        if len(ends) == 2 and any(set(ends) == {a, b} for a, b in pairs):
            return True
    return False


def _conditions(loop: Loop, at: int) -> Iterator[str]:
    """The conditions that hold there."""
    for node in walk([loop]):
        if isinstance(node, Branch) and not node.switch and node.begin <= at < node.end:
            head, body = node.arms[0]
            if body and body[0].begin <= at <= body[-1].end:
                yield re.sub(r"\s", "", head.text)
