"""Hangs directives into the tree: an OpenMP construct takes what it applies to, a homing directive its
place."""

from __future__ import annotations

from collections.abc import Sequence

from homing.translate.directives.model import (
    DataAffinity,
    Directive,
    Executed,
    Form,
    Nest,
    Numa,
    OnHome,
    Replicate,
    ThreadAffinity,
)
from homing.translate.positions import TranslationError
from homing.translate.source import SourceFile
from homing.translate.tree import Branch, Construct, Executable, Loop, Node, OpenMP, Routine, Statement

_STANDALONE = frozenset(
    {
        "barrier",
        "flush",
        "taskwait",
        "threadprivate",
        "cancel",
        "cancellation point",
        "declare reduction",
        "section",
    }
)
_LOOPS = frozenset({"do", "simd", "loop", "taskloop", "distribute"})
_OPTIONAL_END = frozenset({"atomic"})


def attach(
    source: SourceFile,
    routines: Sequence[Routine],
    pragmas: Sequence[OpenMP],
    directives: Sequence[Directive],
    unread: Sequence[tuple[int, int, str]] = (),
) -> None:
    """Put every directive into the body (or the declarations) of the routine that it stands in, and nest what
    constructs contain. unread: code that stays as it is (begin, end, what), and OpenMP's directives there."""
    events: list[tuple[int, int, OpenMP | Directive]] = [(p.begin, p.end, p) for p in pragmas]
    for directive in directives:
        place = directive.source.position
        begin = source.offset(place.line, place.column)
        end = source.offset(directive.source.end_line, directive.source.end_column)
        events.append((begin, end, directive))
    events.sort(key=lambda event: (event[0], not isinstance(event[2], OpenMP)))
    # A clause inside an OpenMP directive comes before it, so that it is known when the loop is met.
    for begin, end, event in events:
        around = next((what for first, last, what in unread if first <= begin < last), None)
        if around is not None:
            if isinstance(event, OpenMP):
                continue
            reason = f"a directive in code that is not followed ({around}): put it into a plain function"
            raise TranslationError([source.problem(begin, end, reason)])
        routine = _innermost(routines, begin)
        if routine is None:
            if isinstance(event, OpenMP):
                continue
            raise TranslationError([source.problem(begin, end, "a directive outside every program unit")])
        if isinstance(event, OpenMP):
            if event.name != "threadprivate":
                _insert(routine.body, Construct(event, [], event.end))
            continue
        executable = isinstance(
            event, OnHome | DataAffinity | ThreadAffinity | Nest | Numa | Replicate | Executed
        )
        if executable:
            _insert(routine.body, Executable(event, begin, end))
        else:
            routine.directives.append(event)
    for routine in routines:
        routine.body = _nest(source, routine.body)


def _innermost(routines: Sequence[Routine], offset: int) -> Routine | None:
    best = None
    for routine in routines:
        if routine.begin <= offset < max(routine.end, routine.begin + 1) and (
            best is None or routine.begin >= best.begin
        ):
            best = routine
    return best


def _insert(nodes: list[Node], new: Construct | Executable) -> None:
    for index, node in enumerate(nodes):
        if new.begin < node.begin:
            nodes.insert(index, new)
            return
        end = node.end
        if new.begin < end:
            if isinstance(node, Loop):
                _insert(node.body, new)
                return
            if isinstance(node, Branch):
                for arm, (_, body) in enumerate(node.arms):
                    following = node.arms[arm + 1][0].begin if arm + 1 < len(node.arms) else end
                    if new.begin < following:
                        _insert(body, new)
                        return
            # Inside a directive's own text (SGI's AFFINITY clause): it belongs to what comes next.
            nodes.insert(index + 1 if isinstance(node, Construct) else index, new)
            return
    nodes.append(new)


def _nest(source: SourceFile, nodes: list[Node]) -> list[Node]:
    """Bodies for the constructs in a list of nodes, and for those in their bodies."""
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _nest(source, node.body)
        elif isinstance(node, Branch):
            node.arms = [(head, _nest(source, body)) for head, body in node.arms]
    result: list[Node] = []
    waiting: list[Directive] = []
    at = 0
    while at < len(nodes):
        node = nodes[at]
        at += 1
        if isinstance(node, Executable) and not isinstance(node.directive, Executed):
            last = result[-1] if result else None
            if isinstance(last, Construct) and last.directive.name == "section":
                last.homing.append(node.directive)
            else:
                waiting.append(node.directive)
            continue
        if isinstance(node, Construct) and not node.body and not _stands_alone(source, node):
            name = node.directive.name
            if source.form is Form.C or _LOOPS & set(name.split()) or name in _OPTIONAL_END:
                between, at = _take_next(source, node, nodes, at)
                waiting.extend(between)
            else:
                at = _take_block(source, node, nodes, at)
            node.homing, waiting = waiting, []
        elif waiting and isinstance(node, Loop):
            # A loop that no OpenMP directive shares out: the directives are looked at where it is planned.
            result.extend(Executable(directive, node.begin, node.begin) for directive in waiting)
            waiting = []
        result.append(node)
    result.extend(Executable(directive, result[-1].end if result else 0, 0) for directive in waiting)
    return result


def _stands_alone(source: SourceFile, node: Construct) -> bool:
    """A directive without a body. TranslationError: it ends what does not begin here."""
    words = node.directive.name.split()
    if words[:1] == ["end"]:
        reason = "ends a construct that does not begin in the same block"
        raise TranslationError([source.problem(node.begin, node.end, reason)])
    return node.directive.name in _STANDALONE or words[:1] == ["declare"]


def _take_next(
    source: SourceFile, node: Construct, nodes: list[Node], at: int
) -> tuple[list[Directive], int]:
    """The construct's body is the next statement (of ATOMIC two, where its END follows), behind directives of
    ours; its END may follow. Returns the directives, and where the nodes behind it begin."""
    between = []
    while at < len(nodes) and isinstance(other := nodes[at], Executable):
        between.append(other.directive)
        at += 1
    if at >= len(nodes):
        raise TranslationError([source.problem(node.begin, node.end, "nothing follows this directive")])
    node.body = [nodes[at]]
    if isinstance(nodes[at], Construct):  # a construct on a construct (C)
        inner = _nest(source, nodes[at:])
        node.body = inner[:1]
        nodes[at:] = inner
    at += 1
    if _ends_behind(nodes[at : at + 2], node.directive.name):  # ATOMIC CAPTURE with its two statements
        node.body.append(nodes[at])
        at += 1
    node.end = node.body[-1].end
    closing = nodes[at] if at < len(nodes) else None
    if isinstance(closing, Construct) and _closes(closing.directive.name, node.directive.name):
        node.closing = closing.directive
        node.end = closing.directive.end
        at += 1
    return between, at


def _ends_behind(behind: Sequence[Node], name: str) -> bool:
    """Does a statement follow, and then the END of an ATOMIC construct?"""
    if len(behind) < 2 or name not in _OPTIONAL_END:
        return False
    statement, closing = behind
    ends = isinstance(closing, Construct) and _closes(closing.directive.name, name)
    return ends and isinstance(statement, Statement | Branch)


def _take_block(source: SourceFile, node: Construct, nodes: list[Node], at: int) -> int:
    """The construct's body is what stands up to its END. Returns where the nodes behind it begin."""
    name = node.directive.name
    depth = 1
    stop = at
    while stop < len(nodes):
        other = nodes[stop]
        if isinstance(other, Construct) and not other.body:
            if _closes(other.directive.name, name):
                depth -= 1
                if depth == 0:
                    break
            elif other.directive.name == name:
                depth += 1
        stop += 1
    if stop >= len(nodes):
        reason = f"no END {name.upper()} in the same block"
        raise TranslationError([source.problem(node.begin, node.end, reason)])
    closing = nodes[stop]
    assert isinstance(closing, Construct)
    node.body = _nest(source, nodes[at:stop])
    node.closing = closing.directive
    node.end = closing.directive.end
    return stop + 1


def _closes(closing: str, name: str) -> bool:
    if not closing.startswith("end "):
        return False
    words = closing.split()[1:]
    return words == name.split() or (
        bool(words) and name.split()[: len(words)] == words and words != ["parallel"]
    )
