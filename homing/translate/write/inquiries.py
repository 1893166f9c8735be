"""size(a), lbound(a, 1), ubound(a, 1) in parallel regions: there `a` is a thread's part, and they ask for the
whole. They become the bounds that the array was declared with, or those that its layout has. So do those of
statements that pass an array on (`call step(a, size(a))`), which it may stay in parts for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from homing.translate.plan.array import Array
from homing.translate.source import Edits
from homing.translate.tree import Construct, Loop, Reference, Routine, Statement, Subscript, statements, walk

#: (lower, upper) of a dimension of the whole array, as text.
Bounds = Callable[[Array, int], tuple[str, str]]
_INQUIRIES = ("size", "lbound", "ubound")


def settle(routine: Routine, arrays: Mapping[str, Array], whole: Bounds, edits: Edits, inside: bool) -> None:
    """Replace the inquiries about distributed arrays in regions, in loop bounds and beside arrays that are
    passed on. inside: the routine is called in regions."""
    if not arrays:
        return
    regions = [n for n in walk(routine.body) if isinstance(n, Construct) and n.parallel]
    loops = {id(node.head): node for node in walk(routine.body) if isinstance(node, Loop)}
    for statement in statements(routine.body):
        parallel = inside or any(r.begin <= statement.begin < r.end for r in regions)
        loop = loops.get(id(statement))
        if parallel or loop is not None or _passes(statement, arrays):
            for call, asked in list(_inquiries(statement, arrays)):
                text = _answer(call, arrays[asked.name], whole)
                if text is not None and _put(call, text, loop, routine, edits):
                    kept = [one for one in statement.references if one is not call and one is not asked]
                    statement.references = kept


def _passes(statement: Statement, arrays: Mapping[str, Array]) -> bool:
    """To a procedure: an intrinsic one gets the gathered array, which the inquiries are about then, too."""
    intrinsic = {one.name for one in statement.references if one.intrinsic}
    return any(
        one.name in arrays and one.argument_of is not None and one.argument_of not in intrinsic
        for one in statement.references
    )


def _inquiries(statement: Statement, arrays: Mapping[str, Array]) -> list[tuple[Reference, Reference]]:
    """The calls, and the arrays that they ask about."""
    found = []
    for asked in statement.references:
        if asked.name in arrays and asked.argument_of in _INQUIRIES:
            calls = [
                r
                for r in statement.references
                if r.name == asked.argument_of and r.intrinsic and r.begin < asked.begin < r.end
            ]
            if calls and asked.subscripts is None:
                found.append((calls[-1], asked))
    return found


def _answer(call: Reference, array: Array, whole: Bounds) -> str | None:
    """What the inquiry gives; as an integer of another kind where it asks for that."""
    subscripts = call.subscripts or []
    texts = [one.text.replace(" ", "") for one in subscripts]
    kinds = [at for at, text in enumerate(texts) if text.startswith("kind=") or at == 2]
    plain = _plain_answer(call, [one for at, one in enumerate(subscripts) if at not in kinds], array, whole)
    if len(kinds) != 1 or plain is None:
        return None if kinds else plain
    return f"int({plain}, {texts[kinds[0]].removeprefix('kind=')})"


def _plain_answer(
    call: Reference, subscripts: Sequence[Subscript], array: Array, whole: Bounds
) -> str | None:
    dimension = None
    if len(subscripts) == 2:
        text = subscripts[1].text.replace(" ", "").removeprefix("dim=")
        if not text.isdigit() or not 1 <= int(text) <= array.rank:
            return None
        dimension = int(text) - 1
    elif len(subscripts) != 1 or (call.name != "size" and array.rank != 1):
        return None
    if call.name != "size":
        return _number(whole(array, dimension or 0)[0 if call.name == "lbound" else 1])
    asked = range(array.rank) if dimension is None else [dimension]
    return "*".join(_extent(*whole(array, one)) for one in asked)


def _extent(lower: str, upper: str) -> str:
    if lower == "1":
        return _number(upper)
    return f"({_number(upper)} - {_number(lower)} + 1)"


def _number(text: str) -> str:
    """A bound as a factor: a name, a number or a call."""
    if text.startswith("homing_"):
        return f"int({text})"
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _put(call: Reference, text: str, loop: Loop | None, routine: Routine, edits: Edits) -> bool:
    if loop is None or loop.variable is None:
        edits.replace(call.begin, call.end, text)
        return True
    written = routine.source.text[call.begin : call.end].lower()
    for side in (loop.first, loop.last):
        if side is not None and side.begin <= call.begin < side.end and written in side.text:
            side.text = side.text.replace(written, text, 1)
            edits.replace(side.begin, side.end, side.text)  # where the loop is shared out, that comes instead
            return True
    return False
