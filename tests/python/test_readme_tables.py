"""The tables of docs/distributions.md are those of the results files."""

from __future__ import annotations

import re
from typing import Any

import pytest

from homing.bench import chapman_tables
from tests.python.test_apps import ROOT


@pytest.mark.parametrize("make", chapman_tables.TABLES)
def test_tables_of_the_page_are_those_of_the_results(make: Any) -> None:
    assert make(chapman_tables.read()) in (ROOT / "docs" / "distributions.md").read_text()


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 20
    known = {page.name: page.parent for page in pages}
    assert [(name, link) for name, link in links if not (known[name] / link).exists()] == []
