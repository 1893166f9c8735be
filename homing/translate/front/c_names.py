"""Names in directives that nothing declares: clang, which does not read them, is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from clang.cindex import TranslationUnit

from homing.translate.code_text import blanked
from homing.translate.directives.model import Directive, texts_of
from homing.translate.positions import Problem
from homing.translate.source import SourceFile

_NAME = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_UNKNOWN = re.compile(r"use of undeclared identifier '(\w+)'")


def undeclared(
    source: SourceFile, directives: Sequence[Directive], parse: Callable[[str], TranslationUnit]
) -> Iterator[Problem]:
    """The names that the file has not."""
    found = [
        (directive, name)
        for directive in directives
        for text in texts_of(directive)
        for name in _NAME.findall(blanked(text.text, False, " "))
    ]
    said = {line for one in directives for line in range(one.source.first_line, one.source.last_line + 1)}
    lines = blanked(source.text, False, " ").split("\n")
    used = {word for at, line in enumerate(lines, 1) if at not in said for word in re.findall(r"\w+", line)}
    doubtful = sorted({name for _, name in found} - used)
    if not doubtful:  # what else names it, the compiler reads
        return
    # Macros and constants of headers are known, too.
    asked = "".join(
        f"\nstatic inline void hm_ask_{name}(void) {{ (void)sizeof({name}); }}" for name in doubtful
    )
    told = (_UNKNOWN.search(one.spelling) for one in parse(source.text + asked).diagnostics)
    unknown = {one[1] for one in told if one}
    for directive, name in found:
        if name in unknown:
            yield directive.source.problem(f"'{name}' is not declared")
