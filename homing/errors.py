"""The one error that users see: a clear line (what, where, what to do) and an exit status."""

from __future__ import annotations

MISUSE = 2


class UserError(Exception):
    """Ends the command with `homing NAME: message` on stderr and `status`; never with a traceback."""

    def __init__(self, message: str, status: int = MISUSE) -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.status = status


def os_reason(error: OSError) -> str:
    """The operating system's words alone ("Permission denied"), without number and path."""
    return error.strerror or str(error)
