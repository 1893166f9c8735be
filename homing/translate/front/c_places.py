"""Where what libclang sees stands in the text. It counts bytes, and knows of macros what they became."""

from __future__ import annotations

import ctypes
import re

from clang import cindex
from clang.cindex import Cursor, SourceLocation

from homing.translate.source import SourceFile


class Places:
    """Offsets in one file."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.overloaded: set[str] = set()  # C++: names that several functions have
        self.bytes: list[int] | None = None
        if not source.text.isascii():
            self.bytes = []
            for number, char in enumerate(source.text):
                self.bytes += [number] * len(char.encode("utf-8", "surrogateescape"))
            self.bytes.append(len(source.text))

    def place(self, offset: int) -> int:
        if self.bytes is None:
            return offset
        return self.bytes[min(offset, len(self.bytes) - 1)]

    def begin(self, cursor: Cursor) -> int:
        return self.place(cursor.extent.start.offset)

    def end(self, cursor: Cursor) -> int:
        return self.place(cursor.extent.end.offset)

    def access(self, cursor: Cursor) -> tuple[int, int]:
        """Where an access stands; in a macro's argument, where the program has written it."""
        return self.written_at(cursor.extent.start), self.written_at(cursor.extent.end)

    def written_at(self, location: SourceLocation) -> int:
        file, unused, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
        found = ctypes.byref(file), ctypes.byref(unused), ctypes.byref(unused), ctypes.byref(offset)
        cindex.conf.lib.clang_getFileLocation(location, *found)
        return self.place(offset.value)

    def text(self, begin: int, end: int) -> str:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", self.source.text[begin:end], flags=re.DOTALL)
        return " ".join(text.split())


def declarator(text: str, begin: int, name_at: int) -> int:
    """Where the declarator begins: of all but a declaration's first one clang knows the name's place only."""
    if begin < name_at:
        return begin
    match = re.search(r",[\s(*]*(?:\b(?:const|restrict|volatile|__restrict)\b[\s*]*)*$", text[:name_at])
    return match.start() + 1 if match else begin
