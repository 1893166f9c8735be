"""Regular expressions for what every summary imports: the module `re`, imported when something of it is first
used, and patterns that are compiled then. A summary imports many and uses few."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    pattern = re.compile
else:

    class _Module:
        """The module, but for when it is imported."""

        def __getattr__(self, name):
            import re

            value = getattr(re, name)
            setattr(self, name, value)  # the next time it is found without this
            return value

    re = _Module()

    class pattern:
        """re.compile() of the same words, later. Flags stand in the pattern, as (?i)."""

        def __init__(self, text):
            self._text = text

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            self._compiled = compiled = re.compile(self._text)
            for one in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
                setattr(self, one, getattr(compiled, one))
            return getattr(compiled, name)


__all__ = ["pattern", "re"]
