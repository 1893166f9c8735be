"""Programs that have nothing to do with OpenMP, and some that have, run as without homing
(tests/foreign_programs.py)."""

from __future__ import annotations

import pytest

from tests.foreign_programs import LAB, PROGRAMS, SHORT, check


def test_some_programs_run_as_without_homing() -> None:
    same, _, different = check(SHORT)
    assert not different and len(same) >= 5, different


@pytest.mark.full
def test_all_programs_run_as_without_homing() -> None:
    same, _, different = check(name for name in PROGRAMS if name not in SHORT)
    assert not different and same, different


@pytest.mark.full
@pytest.mark.guest
def test_programs_run_in_the_guest_as_here() -> None:
    assert len(LAB) >= 20
    same, _, different = check(LAB, on_lab=True)
    assert not different and same, different
