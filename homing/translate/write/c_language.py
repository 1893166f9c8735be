"""What C and C++ write in different ways."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.translate.source import SourceFile


class CLanguage:
    """C, or C++ with the extensions that gcc and clang have in both."""

    def __init__(self, source: SourceFile) -> None:
        self.cxx = source.cxx
        self.restrict = "__restrict" if self.cxx else "restrict"

    def listed(self, element: str) -> tuple[str, str]:
        """What stands before and behind the elements of an array without a name."""
        if self.cxx:
            return f"std::initializer_list<{element}>{{", "}.begin()"
        return f"(const {element}[]){{", "}"

    def numbers(self, values: Sequence[str]) -> str:
        """Elements of such an array of long, or of a structure of them: C++ narrows none by itself."""
        return ", ".join(f"(long)({one})" if self.cxx and not one.isdecimal() else one for one in values)

    def whole(self, name: str, value: str) -> str:
        """The value, a pointer to anything, as the variable of this name has it."""
        return f"(__typeof__({name})){value}" if self.cxx else value

    def pointer(self, element: str, name: str, widths: str, value: str) -> str:
        """A pointer to elements, or to rows of these widths, that nothing else reaches."""
        inner = f"(*{self.restrict} {name}){widths}" if widths else f"*{self.restrict} {name}"
        return f"{element} {inner} = {self.whole(name, value)};"


def reference_to_pointer(text: str) -> str:
    """C++: a parameter `double (&a)[n][m]`, as `double (*a)[m]`; any other stays."""
    return re.sub(r"\(\s*&\s*(\w*)\s*\)\s*\[[^\]]*\]", r"(*\1)", text, count=1)
