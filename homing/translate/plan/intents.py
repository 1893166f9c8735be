"""What a Fortran dummy's declaration says of who may change it."""

from __future__ import annotations

import re

from homing.translate.tree import Declaration, Routine

INTENT_IN = re.compile(r"\bintent\s*\(\s*in\s*\)", re.IGNORECASE)
_VALUE = re.compile(r",\s*value\b", re.IGNORECASE)


def statement_of(routine: Routine, declared: Declaration) -> str:
    """The text that declares it."""
    return routine.source.text[declared.statement_begin : declared.statement_end]


def is_intent_in(routine: Routine, declared: Declaration | None) -> bool:
    """May the routine not change the dummy?"""
    return declared is not None and INTENT_IN.search(statement_of(routine, declared)) is not None


def is_kept(routine: Routine, declared: Declaration | None) -> bool:
    """Does the caller's variable keep its value: INTENT(IN), or VALUE?"""
    if is_intent_in(routine, declared):
        return True
    return declared is not None and _VALUE.search(statement_of(routine, declared)) is not None
