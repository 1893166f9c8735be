"""The time of iterations at rest, as the page draws it: they have no row in a record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.python.test_html_bands import told


def rests(rows: list[tuple[int, float, float, str]], seen: int, run: float) -> Any:
    """rows: number, time of the end, seconds, basis."""
    values = [dict(zip(("number", "time", "seconds", "basis"), row, strict=True)) for row in rows]
    call = f"(rests => [[...rests.means], rests.atMost])(page.rests({json.dumps(values)}, {seen}, {run}))"
    return told(call, "rests")


def test_a_rest_before_the_first_row_begins_at_the_last_guess() -> None:
    rows = [(0, 0.5, 0.5, "guess"), (0, 1.0, 0.5, "guess"), (10, 12.0, 1.0, "period")]
    means, at_most = rests(rows, 20, 100.0)
    # The end of the run, which is not of an iteration, does not change the mean of the last ones.
    assert [tuple(one) for one in means] == [(number, pytest.approx(1.0)) for number in (0, 9, 11, 19)]
    assert not at_most


def test_without_a_guess_it_begins_with_the_run() -> None:
    means, _ = rests([(4, 10.0, 2.0, "period")], 5, 10.5)
    assert means == [[0, 2.0], [3, 2.0]]


def test_where_no_other_rest_is_known_the_end_is_in_the_mean() -> None:
    assert rests([(0, 1.0, 1.0, "period")], 5, 9.0) == [[[1, 2.0], [4, 2.0]], True]


def test_rows_of_guesses_alone_are_followed_by_a_rest() -> None:
    assert rests([(0, 1.0, 1.0, "guess")], 57, 115.0) == [[[0, 2.0], [56, 2.0]], True]


def test_iterations_that_were_numbered_anew_are_a_gap() -> None:
    means, _ = rests([(0, 9.0, 1.0, "period"), (5, 2.0, 1.0, "period")], 6, 10.0)
    assert means == [[1, None], [4, None]]
