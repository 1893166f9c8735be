"""C: what a declaration says of a variable."""

from __future__ import annotations

import re
from collections.abc import Callable

from clang.cindex import Cursor, StorageClass, TLSKind, Type, TypeKind

from homing.translate.affine import shifted
from homing.translate.front.c_loops import Loops
from homing.translate.front.c_places import declarator
from homing.translate.front.c_types import holds_addresses, is_number
from homing.translate.front.cxx import REFERENCES, is_data, record_of
from homing.translate.front.libclang import ARRAYS, sizes
from homing.translate.tree import Bound, Declaration, Routine


class Variables(Loops):
    """A part of the front's builder, which knows the rest."""

    cxx: bool
    place: Callable[[int], int]

    def variable(self, scope: Routine, cursor: Cursor, storage: str) -> Declaration:
        begin, end = self.begin(cursor), self.end(cursor)
        name_at = self.place(cursor.location.offset)
        name = cursor.spelling
        kind = cursor.type
        pointer = False
        bounds: list[Bound] = []
        text = self.source.text
        at = name_at + len(name)
        if text[name_at:at] == name:
            before = text[declarator(text, begin, name_at) : name_at].rstrip()
            if before.endswith("auto") and kind.get_canonical().kind is TypeKind.POINTER:
                pointer, kind = True, kind.get_canonical()  # `auto a = new double[n][8]`
                bounds += [Bound("0", str(size - 1)) for size in sizes(kind.get_pointee())]
            elif before.endswith(("*", "restrict", "const")) and "*" in before:
                pointer = True
                closed = re.compile(r"\s*\)").match(text, at)
                in_brackets = re.search(r"\(\s*\*[\s\w]*$", before) is not None
                if in_brackets and closed:
                    at = closed.end()
            elif self.cxx and re.search(r"\(\s*&$", before):  # `double (&a)[10]`
                closed = re.compile(r"\s*\)").match(text, at)
                at = closed.end() if closed else at
            while group := re.compile(r"\s*\[([^\]]*)\]").match(text, at):
                inner = re.sub(r"^\s*(?:restrict|static|const|\s)+\b", "", group[1]).strip()
                if inner:
                    bounds.append(Bound("0", shifted(self.text(group.start(1), group.end(1)), -1)))
                    if inner != group[1].strip():
                        bounds[-1] = Bound("0", shifted(inner, -1))
                else:
                    bounds.append(Bound("0", None, deferred=True))
                at = group.end()
            if pointer and bounds:
                bounds.insert(0, Bound("0", None, deferred=True))
        if cursor.type.kind in REFERENCES:
            kind = cursor.type.get_pointee()
        element = kind
        while element.kind is TypeKind.POINTER or element.kind in ARRAYS:
            element = element.get_pointee() if element.kind is TypeKind.POINTER else element.element_type
        if element.kind is TypeKind.AUTO:
            element = element.get_canonical()
        type_text = re.sub(r"\b(?:const|volatile|restrict)\b\s*", "", element.spelling).strip()
        if element.get_canonical().kind in ARRAYS:  # c_plain.py has not taken it apart
            reason = f"'{type_text}' is a type of arrays: write the brackets behind '{name}'"
            scope.unseen.setdefault(name, (begin, end, reason))
        if self.cxx and (bounds or pointer):
            self.objects(scope, name, (begin, end), element)
        initial = None
        braces = r"|\s*(?={)" if self.cxx and bounds else ""
        match = re.compile(rf"\s*=\s*{braces}").match(text, at)
        if match:
            initial = text[match.end() : end]
        attributes = _attributes(cursor, text[begin:name_at], initial is not None)
        made = Declaration(
            name,
            name,
            type_text,
            bounds,
            name_at,
            end,
            begin,
            end,
            attributes=attributes,
            initial=initial,
            number=is_number(cursor.type),
            addresses=holds_addresses(element),
            storage="dummy" if storage == "dummy" else "pointer" if pointer else storage,
        )
        scope.places.setdefault(name, []).append(begin)
        if name in scope.declarations and bounds == [] and scope.declarations[name].bounds:
            return made
        if name not in scope.declarations or bounds or pointer:
            scope.declarations[name] = made
        return made

    @staticmethod
    def objects(scope: Routine, name: str, place: tuple[int, int], element: Type) -> None:
        """C++: elements that are made and ended by code of their class have no parts."""
        record = record_of(element)
        if record is not None and not is_data(record):
            reason = f"the elements of '{name}' are objects of a class: use numbers, or a plain structure"
            scope.unseen.setdefault(name, (*place, reason))


def _attributes(cursor: Cursor, before: str, initial: bool) -> frozenset[str]:
    """What the declaration says beside the type. before: its text up to the name."""
    storage = cursor.storage_class
    said = {
        "const": "const" in before,
        "save": storage is StorageClass.STATIC,
        "extern": storage is StorageClass.EXTERN and not initial,
        "thread": cursor.tls_kind is not TLSKind.NONE,
    }
    return frozenset(word for word, holds in said.items() if holds)
