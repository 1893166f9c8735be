"""What the lab raises: every message is one line that says what is wrong, where, and what to do."""

from __future__ import annotations

from homing.errors import MISUSE, UserError

#: The lab itself failed, not the command (as `timeout`, `env` and `docker run` use it).
LAB_FAILED = 125
TIMED_OUT = 124


class LabError(UserError):
    """The lab cannot do what was asked: a missing part or right (status 2), or a guest that failed (125)."""

    def __init__(self, message: str, status: int = MISUSE) -> None:
        super().__init__(message, status)


class LabTimeout(LabError):
    """The guest did not end within LabOptions.timeout seconds."""

    def __init__(self, message: str) -> None:
        super().__init__(message, TIMED_OUT)


class LabInterrupted(KeyboardInterrupt):
    """A signal ended the lab; the guest and its helpers are gone. The exit status is 128 + signal_number."""

    def __init__(self, signal_number: int, message: str = "interrupted") -> None:
        super().__init__(f"signal {signal_number}")
        self.signal_number = signal_number
        self.message = message
        self.status = 128 + signal_number
