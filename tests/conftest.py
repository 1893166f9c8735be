"""For all tests: signals as an interactive shell has them.

Started in the background (CI, nohup), a shell ignores some, and what is ignored stays ignored in every
program that a test starts.
"""

from __future__ import annotations

import signal

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
