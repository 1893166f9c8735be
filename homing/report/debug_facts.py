"""What debug information tells of code and variables: a module of its own, because a summary that finds both
in an earlier run's notes reads none, and imports nothing that does."""

from __future__ import annotations

from homing.values import dataclass

DAMAGED = "its debug information is damaged: source lines are missing"


@dataclass(frozen=True)
class Place:
    """Where an instruction comes from. line 0: only the function is known."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Member:
    """A member of a COMMON block: bytes from the block's begin, and its size (0: not known)."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Variable:
    """A declared variable or COMMON block. function: the scope it is declared in, if any."""

    name: str
    file: str
    line: int
    function: str = ""
    members: tuple[Member, ...] = ()
