"""README's tables are those of the results files."""

from __future__ import annotations

from typing import Any

import pytest

from homing.bench import chapman_tables
from tests.python.test_apps import ROOT


@pytest.mark.parametrize("make", chapman_tables.TABLES)
def test_tables_of_the_readme_are_those_of_the_results(make: Any) -> None:
    assert make(chapman_tables.read()) in (ROOT / "README.md").read_text()
