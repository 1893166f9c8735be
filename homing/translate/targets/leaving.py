"""Jumps out of serial code that works on gathered arrays: their parts are dealt out before the jump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from homing.translate.code_text import condition_of_if
from homing.translate.targets.routine import Work
from homing.translate.tree import CASE, Branch, Kind, Loop, Node, Statement, statements, walk
from homing.translate.write.lines_apart import crowded

#: Labels that a statement may lead to though it is no jump: of READ and WRITE, and alternate returns.
_LEADS = re.compile(r"(?:[(,](?:err|end|eor)=|[(,]\*)(\d+)(?=[,)])")


def leads(statement: Statement) -> set[str]:
    """The labels at which the program may go on behind a statement."""
    others = _LEADS.findall(statement.text.replace(" ", "").lower())
    return {*(statement.targets if statement.jump == "goto" else ()), *others}


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
    for one in list(_leaving(work, nodes)):
        plain = one.kind is Kind.JUMP and one.form != "arithmetic if" and len(leads(one)) < 2
        if (
            not plain
            or one.label
            or not work.source.form.fortran
            or crowded(work.routine, one, one, lambda _: True)
        ):
            reason = "leaves code that works on a gathered array: move the jump behind it"
            work.wrong(one.begin, one.end, reason)
        elif not one.guarded:
            work.before(one.begin, lines())
        else:
            end = condition_of_if(one.code)[1] + 1
            jump = one.code[end:].strip()
            begin = one.places[end]
            work.writer.edits.replace(begin, one.end, " then" if begin > one.places[end - 1] + 1 else "then")
            work.after(one.end, [*lines(), jump, "end if"], one.begin)
