"""NumPy for what the launcher reads before and between runs.

Its linear algebra starts a thread for each core when it is imported: they hold back the signals that are the
command's (launch.py), so that these come to the main thread, once.
"""

from homing import launch

with launch.held_back():
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NDArray", "np"]
