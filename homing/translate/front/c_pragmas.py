"""OpenMP pragmas of a C file, read from its text."""

from __future__ import annotations

import re

from clang.cindex import TranslationUnit

from homing.translate import openmp
from homing.translate.source import SourceFile
from homing.translate.tree import OpenMP

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)


def pragmas_of(source: SourceFile, unit: TranslationUnit) -> list[OpenMP]:
    comments = [
        (token.extent.start.offset, token.extent.end.offset)
        for token in unit.get_tokens(extent=unit.cursor.extent)
        if token.kind.name == "COMMENT"
    ]
    found = []
    for match in _PRAGMA.finditer(source.text):
        if any(begin <= match.start() < end for begin, end in comments):
            continue
        code, places = "", []
        body = match[1]
        at = match.start(1)
        skip = re.compile(r"\\\r?\n|/\*.*?\*/|//[^\n]*", re.DOTALL)
        position = 0
        while position < len(body):
            gap = skip.match(body, position)
            if gap:
                code += " "
                places.append(at + position)
                position = gap.end()
                continue
            code += body[position]
            places.append(at + position)
            position += 1
        lead = len(code) - len(code.lstrip())
        code, places = code.strip(), places[lead : lead + len(code.strip())]
        begin = match.start() + len(match.group()) - len(match.group().lstrip())
        end = match.start() + len(match.group().rstrip())
        found.append(openmp.parse(code, places, begin, end, lower=False))
    return found
