"""Finds the directives in a source file, in every spelling: sentinels, comments, continuation lines."""

from __future__ import annotations

from dataclasses import dataclass

from homing.translate.directives import Directive, Form
from homing.translate.positions import Problem


@dataclass(frozen=True)
class Scanned:
    """All directives of a file in its order. problems: what is not a directive but should be one. notes:
    directives of others that are left as they are, and what is ignored."""

    directives: tuple[Directive, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def form_of(path: str) -> Form | None:
    """The form that a file's name stands for (as compilers have it), None where it is no source file."""
    raise NotImplementedError


def scan(text: str, path: str, form: Form, line_length: int = 72) -> Scanned:
    """The directives in the text of the file `path`. Every directive found is in `directives`, `problems` or
    `notes`. line_length: of fixed form, as given to the compiler (0: any)."""
    raise NotImplementedError
