#!/usr/bin/env python3
"""Writes what docs/directives.md says of OpenMP's clauses, from the table that the translator goes by:
`python tools/clause_table.py` (tests/python/test_directives_manual.py asserts that it was run)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from homing.translate.plan.clauses import TABLE, TARGETS, Fate, Place

MANUAL = Path(__file__).resolve().parents[1] / "docs" / "directives.md"
BEGIN, END = "<!-- clauses: by tools/clause_table.py -->\n", "<!-- end of clauses -->\n"
#: What the rows of a place are about.
_PLACES = {
    Place.REGION: "PARALLEL",
    Place.LOOP: "a loop that is shared out (C's FOR)",
    Place.SINGLE: "SINGLE, MASTER, MASKED",
    Place.THREADS: "a loop with AFFINITY(...) = THREAD(...)",
}


def _told(fate: Fate) -> str:
    if fate.reason is not None:
        return f"refused: {fate.reason}"
    return "kept" if fate.kept else "held"


def _rows() -> Iterator[str]:
    for place, clauses in TABLE.items():
        said: dict[tuple[str, str], list[str]] = {}
        for name, fates in clauses.items():
            parts, pages = fates[TARGETS.index("spmd")], fates[TARGETS.index("pages")]
            said.setdefault((_told(parts), _told(pages)), []).append(
                name.upper().replace("OF SGI", "(SGI's)")
            )
        for (parts, pages), names in sorted(said.items(), key=lambda one: one[1]):
            yield f"| {_PLACES[place]} | {', '.join(sorted(names))} | {parts} | {pages} |"


def table() -> str:
    """The part of the manual between its two marks."""
    head = ["| at | clause | `--to spmd`, `mpi` | `--to pages` |", "|---|---|---|---|"]
    return "\n".join([*head, *_rows()]) + "\n"


def with_table(text: str) -> str:
    """The manual with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{behind}"


if __name__ == "__main__":
    MANUAL.write_text(with_table(MANUAL.read_text()))
