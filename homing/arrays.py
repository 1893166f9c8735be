"""NumPy for what the launcher reads before and between runs, imported when it is first used: most runs need
none of it, and it takes longer than all the rest.

Its linear algebra starts a thread for each core when it is imported: they hold back the signals that are the
command's (launch.py), so that these come to the main thread, once.
"""

from __future__ import annotations

from homing import launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray
else:

    class _NumPy:
        """The module, but for when it is imported."""

        def __getattr__(self, name: str) -> Any:
            with launch.held_back():
                import numpy
            value = getattr(numpy, name)
            setattr(self, name, value)  # the next time it is found without this
            return value

    np = _NumPy()
    NDArray = None  # for annotations only, which nobody evaluates

__all__ = ["NDArray", "np"]
