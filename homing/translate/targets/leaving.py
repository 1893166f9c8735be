"""Jumps out of serial code that works on gathered arrays, and into it (Fortran): parts are dealt out
before the one, and the arrays are gathered behind the other's label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from homing.translate.code_text import condition_of_if
from homing.translate.targets.redirected import redirected
from homing.translate.targets.routine import Work
from homing.translate.tree import CASE, Branch, Kind, Loop, Node, Statement, leads, statements, walk
from homing.translate.write.lines_apart import crowded


def labels_in(nodes: Sequence[Node]) -> set[str]:
    ends = {one.label for one in walk(list(nodes)) if isinstance(one, Loop) and one.label}
    return ends | {one.label for one in statements(list(nodes)) if one.label and one.label != CASE}


def reaching(nodes: Sequence[Node], behind: Sequence[Node]) -> int:
    """How many of the nodes behind have to be taken in so that no jump leads to their labels from outside."""
    count = 0
    while True:
        taken = [*nodes, *behind[:count]]
        wanted = {label for one in statements(taken) for label in leads(one)} - labels_in(taken)
        found = [at for at, one in enumerate(behind) if at >= count and labels_in([one]) & wanted]
        if not found:
            return count
        count = found[-1] + 1


def label_of(node: Node) -> str | None:
    """The label of a Fortran statement, or of a construct's head, if it ends no loop."""
    if isinstance(node, Statement):
        return node.label
    return (
        node.head.label
        if isinstance(node, Loop)
        else node.arms[0][0].label
        if isinstance(node, Branch)
        else None
    )


def entered(work: Work, nodes: Sequence[Node]) -> set[str]:
    """The labels that statements outside of the nodes lead to."""
    begin, end = nodes[0].begin, nodes[-1].end
    every = statements(work.routine.body)
    return {label for one in every if not begin <= one.begin < end for label in leads(one)}


def pieces(work: Work, nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes, cut before those that something outside leads to."""
    outside = entered(work, nodes) if work.source.form.fortran and nodes else set()
    for at, node in enumerate(nodes):
        if at and label_of(node) in outside:
            return [*pieces(work, nodes[:at]), *pieces(work, nodes[at:])]
    return [list(nodes)]


def label_before(work: Work, first: Node) -> str | None:
    """Put the label of the first node on a line of its own, behind which lines can be put. Returns it."""
    label = label_of(first)
    if label is None or not work.source.form.fortran:
        return None
    ends = any(isinstance(one, Loop) and one.label == label for one in walk(work.routine.body))
    begin = work.source.line_start(first.begin)
    found = re.compile(rf"\s*({label})\b").match(work.source.text, begin)
    if ends or found is None or found.end() > first.begin + len(label):
        return None
    work.writer.edits.insert_lines(begin, [f"{label:<5} continue"])
    work.writer.edits.replace(found.start(1), found.end(1), " " * len(label))
    return label


def _leaving(work: Work, nodes: Sequence[Node]) -> Iterator[Statement]:
    """The jumps that leave the nodes."""
    labels = labels_in(nodes)
    around = [one for one in walk(list(nodes)) if isinstance(one, Loop | Branch)]
    for one in statements(list(nodes)):
        inside = [each for each in around if each.begin <= one.begin < each.end]
        loops = [each for each in inside if isinstance(each, Loop)]
        named = [name.lower() for name in one.targets]
        if one.kind is not Kind.JUMP:
            leaves = bool(leads(one) - labels)
        elif one.jump == "return":
            leaves = not work.routine.main  # behind the end of the program nobody reads the parts
        elif one.jump == "goto":
            leaves = not one.targets or not set(one.targets) <= labels
        elif work.source.form.fortran and one.jump in ("exit", "cycle"):
            leaves = not (any(_is_called(each, named[0]) for each in inside) if named else loops)
        elif one.jump in ("break", "cycle"):  # C's
            switches = [each for each in inside if isinstance(each, Branch) and each.switch]
            leaves = not loops and not (one.jump == "break" and switches)
        else:
            leaves = False
        if leaves:
            yield one


def _is_called(node: Loop | Branch, name: str) -> bool:
    """Has the construct this name, or the loop this label?"""
    head = node.head if isinstance(node, Loop) else node.arms[0][0]
    if isinstance(node, Loop) and node.label == name:
        return True
    return re.match(rf"\s*{re.escape(name)}\s*:", head.code, re.IGNORECASE) is not None


def deal_out_before_jumps(work: Work, nodes: Sequence[Node], lines: Callable[[], list[str]]) -> None:
    """Put the lines before each jump that leaves the nodes."""
    inside = labels_in(nodes)
    for one in list(_leaving(work, nodes)):
        if not work.source.form.fortran and not work.touched([one]) and not one.calls:
            _dealt_out(work, one, lines())
            continue
        fortran = work.source.form.fortran and not crowded(work.routine, one, one, lambda _: True)
        plain = one.kind is Kind.JUMP and one.form != "arithmetic if" and len(leads(one)) < 2
        plain = plain and not one.label
        if not fortran or not (plain or redirected(work, one, leads(one) - inside, lines)):
            reason = "leaves code that works on a gathered array: move the jump behind it"
            work.wrong(one.begin, one.end, reason)
        elif not plain:
            continue
        elif not one.guarded:
            work.before(one.begin, lines())
        else:
            end = condition_of_if(one.code)[1] + 1
            jump = one.code[end:].strip()
            begin = one.places[end]
            work.writer.edits.replace(begin, one.end, " then" if begin > one.places[end - 1] + 1 else "then")
            work.after(one.end, [*lines(), jump, "end if"], one.begin)


def _dealt_out(work: Work, jump: Statement, lines: Sequence[str]) -> None:
    """C: the lines and the jump, in a block that takes its place."""
    behind = re.compile(r"\s*;").match(work.source.text, jump.end)
    end = behind.end() if behind else jump.end
    work.writer.edits.replace(jump.begin, jump.begin, " ".join(["{", *lines, ""]))
    work.writer.edits.replace(end, end, " }")
