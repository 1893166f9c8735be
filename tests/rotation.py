"""Cases of `make test`: of several parameters each value once; all combinations belong to `make test-all`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import pytest

#: `make test-all` says so to what is no test of its own: more rounds, compilers that optimise.
EVERYTHING = "TEST_ALL" in os.environ


def in_rotation(*values: Sequence[Any]) -> list[Any]:
    """All combinations of the parameters' values, for parametrize.

    As many as the longest list has values run always, each of the other lists in turn beside it; the rest is
    marked `full`.
    """
    chosen = [tuple(one[i % len(one)] for one in values) for i in range(max(map(len, values)))]
    return [
        pytest.param(*case, marks=[] if case in chosen else pytest.mark.full)
        for case in itertools.product(*values)
    ]
