"""site-packages, found when something of it is first needed: Python was started without (-S), because a
summary needs nothing of it, and looking for it is a quarter of the start."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class _Finder:
    """The last one that is asked for a module: what nobody has found may be there."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Let site do what it does at the start, once, and look again."""
        if "." in name:
            return None
        sys.meta_path.remove(cls)
        import site
        from importlib.util import find_spec

        site.main()
        return find_spec(name)


def install() -> None:
    """From now on, where Python was started with -S."""
    if sys.flags.no_site:
        sys.meta_path.append(_Finder)
