"""What the user of the translator asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Own:
    """What the command of one file has of its own."""

    flags: tuple[str, ...] = ()
    fixed_columns: int = 72


@dataclass(frozen=True)
class Options:
    """What the user asked for. flags: of the compiler, for C's preprocessor (-I, -D, -std)."""

    target: str
    phases: bool = False
    fixed_columns: int = 72
    flags: tuple[str, ...] = ()
    processes: int = 0  # 0: one a processor
    compiler: str = ""  # whose preprocessor Fortran is for
    own: Mapping[str, Own] = field(default_factory=dict)  # by the file's path; else flags and fixed_columns

    def of(self, path: str) -> Own:
        return self.own.get(path) or Own(self.flags, self.fixed_columns)
