"""`homing bench lof --size small`: programs built by `homing cc`, simulated, and laid beside the paper."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from homing.bench.lof import paper
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.full  # 34 s of a processor for three of the programs


@dataclass(frozen=True)
class Bench:
    """The benchmark run on some of its programs."""

    programs: tuple[str, ...]
    done: subprocess.CompletedProcess[str]
    folder: Path


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("lof")
    words = ["-m", "homing", "bench", "lof", "--size", "small", "--redo", "--output", str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMING")}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    return Bench(paper.PROGRAMS, done, folder)


def test_the_three_tables_are_printed(bench: Bench) -> None:
    done = bench.done
    assert done.returncode == 0, done.stderr[-2000:]
    assert "FAIL" not in done.stdout
    for title in (
        "Table 1: ",
        "Table 2: ",
        "Table 3: ",
        "Figures 1 and 2: ",
        "Figure 3: ",
        "Arming at every",
    ):
        assert f"\n{title}" in f"\n{done.stdout}"
    assert "left" in done.stderr  # progress says how long it still takes


def test_rows_stand_beside_the_papers(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads((bench.folder / "lof_small.json").read_text())["rows"]}
    for program in set(paper.PROGRAMS).intersection(bench.programs):
        for placement, known in paper.REMOTE[program].items():
            assert rows[f"table2.{program}.{placement}"]["paper"] == known
            assert rows[f"table1.{program}.{placement}"]["paper"] == paper.RELATIVE[program][placement]
        for column, known in paper.MIGRATION[program].items():
            assert rows[f"table3.{program}.{column}"]["paper"] == known
        assert rows[f"table2.{program}.uma"]["value"] < 0.01
        # Three of four threads are not where the data is; migration brings most of it to them.
        assert 0.6 < rows[f"table2.{program}.si"]["value"] < 0.9
        assert rows[f"table2.{program}.si_mig"]["value"] < 0.3
        assert f"every_region.{program}.every" in rows
    # The pattern of drift moves on: what was armed once is remote again.
    assert rows["every_region.drift.remote"]["value"] < 0.1 < rows["every_region.drift.remote_once"]["value"]


def test_figures_are_drawn(bench: Bench) -> None:
    text = (bench.folder / "lof_small.md").read_text()
    for number in (1, 2, 3):
        assert (bench.folder / f"lof_small_figure{number}.png").read_bytes().startswith(b"\x89PNG")
        assert f"(lof_small_figure{number}.png)" in text
