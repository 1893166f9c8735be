"""README's numbers come from files of results."""

from __future__ import annotations

import json
import re

from homing.demo import _TITLES, percent
from tests.places import TREE

README = (TREE / "README.md").read_text(encoding="utf-8")
RESULTS = TREE / "benchmarks/results"


def test_table_is_the_demos() -> None:
    rows = json.loads((RESULTS / "demo.json").read_text())["rows"]
    for row in rows:
        cells = [
            _TITLES[row["name"]],
            percent(row["remote_fraction_whole_run"]),
            percent(row["remote_fraction"]),
            f"{row['remote_misses']:,}",
            f"{row['misses']:,}",
        ]
        pattern = r"^ {4}" + r" +".join(map(re.escape, cells)) + "$"
        assert re.search(pattern, README, re.MULTILINE), cells


def blocks() -> list[str]:
    """Pieces of the text that are indented as output is."""
    return re.findall(r"(?:^ {4}.*\n)+", README, re.MULTILINE)


def test_summary_is_a_real_runs() -> None:
    (shown,) = [part for part in blocks() if part.startswith("    homing 0.")]
    kept = (RESULTS / "demo_summary.txt").read_text(encoding="utf-8").splitlines()
    assert [line.removeprefix("    ").rstrip() for line in shown.splitlines()] == [
        one.rstrip() for one in kept
    ]


def test_no_other_paragraph_has_measured_numbers() -> None:
    """Words, commands and versions may have digits; per cents, times and factors are measured."""
    text = re.sub(r"^ {4}.*$", "", README, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`|\([^)]*\)\)?|!\[.*", "", text)
    assert re.findall(r"\d+(?:\.\d+)? ?(?:%|ms|seconds|times|x)\b", text) == []
