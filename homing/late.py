"""Patterns that are compiled when they are first used: a summary imports many and uses few."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pattern = re.compile
else:

    class pattern:
        """re.compile() of the same words, later."""

        def __init__(self, text, flags=0):
            self._words = text, flags

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            self._compiled = compiled = re.compile(*self._words)
            for one in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
                setattr(self, one, getattr(compiled, one))
            return getattr(compiled, name)


__all__ = ["pattern"]
