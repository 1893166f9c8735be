"""C++: `for (double x : u)` over an array that directives name, as the counted loop that it stands for. Where
arrays are in parts the name alone means nothing that has a beginning and an end."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from clang.cindex import Cursor, CursorKind, TypeKind

from homing.translate.code_text import Edit, blanked, unused_name
from homing.translate.front.c_places import Places
from homing.translate.front.c_types import strip
from homing.translate.source import SourceFile

#: `for (const auto &x : u)`; names of types may have namespaces.
_HEAD = re.compile(r"for\s*\(\s*(?P<declared>(?:[^:;()\[\]]|::)*\w)\s*:(?!:)\s*(?P<name>\w+)\s*\)")
_ENDS = re.compile(r"\s*;")


def counted_loops(source: SourceFile, named: Container[str], functions: Sequence[Cursor]) -> Iterator[Edit]:
    """The innermost loops of the functions over the elements of arrays of known size and one dimension. The
    others stay: a row has elements of its own."""
    places, code = Places(source), blanked(source.text, False, " ")
    words = set(re.findall(r"\w+", code))
    for function in functions:
        loops = [one for one in function.walk_preorder() if _is_over(one, named)]
        for loop in loops:
            if not any(loop != one and _holds(loop, one) for one in loops):
                yield from _counted(source, loop, places, code, words)


def _is_over(loop: Cursor, named: Container[str]) -> bool:
    if loop.kind is not CursorKind.CXX_FOR_RANGE_STMT:
        return False
    over = strip(list(loop.get_children())[-2])
    kind = over.type.get_canonical()
    if over.kind is not CursorKind.DECL_REF_EXPR or over.spelling not in named:
        return False
    return kind.kind is TypeKind.CONSTANTARRAY and kind.element_type.kind is not TypeKind.CONSTANTARRAY


def _holds(outer: Cursor, inner: Cursor) -> bool:
    begin, end = inner.extent.start.offset, inner.extent.end.offset
    return bool(outer.extent.start.offset <= begin and end <= outer.extent.end.offset)


def _counted(source: SourceFile, loop: Cursor, places: Places, code: str, words: set[str]) -> Iterator[Edit]:
    *_, over, body = loop.get_children()
    begin, inside, end = places.begin(loop), places.begin(body), places.end(body)
    head = _HEAD.match(code, begin, inside)
    if head is None or code[head.end() : inside].strip() or "\n" in head[0]:  # lines keep their numbers
        return
    at = unused_name(f"at_{head['name']}", words)
    size = strip(over).type.get_canonical().element_count
    count = "int" if size < 2**31 else "long"
    element = f"{head['declared'].replace('&&', '&')} = {head['name']}[{at}];"
    yield begin, head.end(), f"for ({count} {at} = 0; {at} < {size}; {at}++)"
    if code.startswith("{", inside):
        yield inside + 1, inside + 1, f" {element}"
        return
    behind = _ENDS.match(code, end)
    end = behind.end() if behind else end
    yield inside, inside, f"{{ {element} "
    yield end, end, " }"
