"""The one error that users see: a clear line (what, where, what to do) and an exit status."""

from __future__ import annotations

import os
import sys

MISUSE = 2
#: Set to anything but 0: the traceback of a defect is printed.
DEBUG = "HOMING_DEBUG"


class UserError(Exception):
    """Ends the command with `homing NAME: message` on stderr and `status`; never with a traceback."""

    def __init__(self, message: str, status: int = MISUSE) -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.status = status


def os_reason(error: OSError) -> str:
    """The operating system's words alone ("Permission denied"), without number and path."""
    return error.strerror or str(error)


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def unexpected(error: BaseException) -> str:
    """One line about an exception that nobody expected: what, where, what to do. With HOMING_DEBUG=1 the
    traceback is printed first."""
    import traceback

    debugging = os.environ.get(DEBUG, "0") not in ("", "0")
    if debugging:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, FileNotFoundError) and not error.filename and _folder_is_gone():
        return "the current folder was removed: go to one that is there"
    if isinstance(error, OSError):
        return f"{error.filename}: {os_reason(error)}" if error.filename else os_reason(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, RecursionError):
        what = "the input is nested too deeply"
    else:
        text = " ".join(str(error).split())
        what = f"a defect of homing ({type(error).__name__}{': ' if text else ''}{text[:200]})"
    # The innermost place that is homing's own: libraries know nothing of what they were asked for.
    folder = os.path.dirname(os.path.abspath(__file__))
    frames = traceback.extract_tb(error.__traceback__)
    own = next((one for one in reversed(frames) if one.filename.startswith(folder)), None)
    place = f" at homing{own.filename[len(folder) :]}:{own.lineno}" if own is not None else ""
    return f"{what}{place}" + ("" if debugging else f"; {DEBUG}=1 shows the traceback")
