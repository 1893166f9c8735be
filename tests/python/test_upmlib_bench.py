"""`homing bench upmlib`: Figures 3 to 6 of Nikolopoulos et al. 2000, simulated."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from homing.bench import upmlib
from homing.bench.programs import parse_output
from homing.bench.results import Results
from homing.bench.upmlib import counted, paper, runs
from homing.bench.upmlib.runs import Case, Outcome
from homing.bench.upmlib.statements import Found, statements
from tests.patience import PATIENCE
from tests.places import TREE


def test_small_prints_all_four_figures(tmp_path: Path) -> None:
    words = ["-m", "homing", "bench", "upmlib", "--size", "small", "--output", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMING")}
    done = subprocess.run(
        [sys.executable, *words], cwd=TREE, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "FAIL" not in done.stdout
    for number in (3, 4, 5, 6):
        assert f"Figure {number}: " in done.stdout
        assert (tmp_path / f"upmlib_small_figure{number}.png").stat().st_size > 1000
    found = json.loads((tmp_path / "upmlib_small.json").read_text())
    rows = {row["name"]: row["value"] for row in found["rows"]}
    for case in runs.cases(runs.SIZES["small"], []):
        for what in ("remote", "last_half", "time", "pages", "calls"):
            assert f"{case.name}.{what}" in rows
    assert any("paper" in row for row in found["rows"])
    # What must hold at any size: the sampling thread mends CG's worst case.
    assert rows["cg.wc.sampling.last_half"] < rows["cg.wc.nothing.last_half"] / 2


def outcome(remote: float, last: float, moved: int = 0, phase: dict[str, float] | None = None) -> Outcome:
    """Of a run of eight iterations of BT at the paper's size."""
    return Outcome(
        accesses=4000,
        misses=(1000, 1000),
        remote=(int(1000 * remote), int(1000 * last)),
        z_solve=(0, 0),
        iterations=[],
        moved=moved,
        calls=0,
        phase=phase or {},
        bytes=int(paper.PROGRAMS["bt"].mib * 2**20),
        verification="",
        results={},
        simulated=8,
    )


def test_time_is_that_of_the_published_length() -> None:
    case = Case("bt", "ft", "nothing")
    seconds, moves = outcome(0, 0).seconds(case)
    assert (seconds, moves) == (pytest.approx(90), 0)
    # All remote from the fifth iteration on: the other 196 take (1 + m (R - 1)) times as long.
    stretch = 1 + paper.M * (paper.RATIO - 1)
    assert outcome(0, 1).seconds(case)[0] == pytest.approx(0.45 * (4 + 196 * stretch))
    # 1,000 pages move once: on the critical path unless the sampling thread moves them.
    assert outcome(0, 0, 1000).seconds(Case("bt", "wc", "iterative")) == pytest.approx((91.15, 1.15))
    assert outcome(0, 0, 1000).seconds(Case("bt", "wc", "sampling"))[1] == 0


def test_what_is_replayed_costs_in_every_iteration() -> None:
    phase = {"replays": 7.0, "moved": 140.0, "undone": 140.0, "calls": 14.0, "eligible": 200.0}
    one = outcome(0, 0, 280, phase)
    one.calls = 14
    each = 40 * paper.PAGE_SECONDS + 2 * paper.CALL_SECONDS
    assert one.seconds(Case("bt", "ft", "replay"))[1] == pytest.approx(199 * each)


def test_statements_say_what_holds() -> None:
    phase = {"replays": 7.0, "moved": 140.0, "undone": 140.0, "calls": 14.0, "eligible": 200.0}
    found = Found(
        {
            Case("bt", "ft", "nothing"): outcome(0.2, 0.2),
            Case("bt", "ft", "iterative"): outcome(0.2, 0.2),
            Case("bt", "ft", "sampling"): outcome(0.2, 0.2),
            Case("bt", "wc", "nothing"): outcome(0.9, 0.9),
            Case("bt", "wc", "kernel"): outcome(0.5, 0.4, 1600),
            Case("bt", "wc", "iterative"): outcome(0.3, 0.25, 100),
            Case("bt", "wc", "sampling"): outcome(0.4, 0.2),
            Case("bt", "ft", "replay"): outcome(0.2, 0.2, 280, phase),
        }
    )
    made = list(statements(found))
    said, numbers = ({one.text: one.holds for one in made}, {one.text: one.found for one in made})
    # 1,000 misses in four iterations, and what no mechanism can help stands beside what does not hold.
    assert (
        "BT 0.00 s of 0.7" in numbers["Figure 3: other placements than first touch take 24 to 210 % longer"]
    )
    assert "were moves free: BT +" in numbers["Figure 3: iterative is within 5 % of first touch on average"]
    assert said["Figure 3: other placements than first touch take 24 to 210 % longer"]
    kernel = "Figure 3: kernel migration improves on these placements, and less than the iterative mechanism"
    assert said[kernel]
    assert re.match(r"1\.\d+ of first touch without moves, iterative 1\.\d+, nothing 1\.\d+", numbers[kernel])
    assert said["Figure 3: iterative is within 5 % of first touch on average"]
    assert not said["Figure 3: in the last half of the iterations iterative is within 1 point of first touch"]
    assert said["Figure 4: BT sampled is as good as iterative"]
    assert said["Figure 5: record/replay gains nothing in BT"]
    assert said["Figure 5: 160 to 250 pages of BT are identified"]


def test_what_moves_hide_is_told() -> None:
    """The sampling thread's moves are not on the critical path."""
    found = Found(
        {
            Case("mg", "ft", "nothing"): outcome(0.2, 0.2),
            Case("mg", "ft", "sampling"): outcome(0.2, 0.2),
            Case("mg", "wc", "nothing"): outcome(0.9, 0.9),
            Case("mg", "wc", "iterative"): outcome(0.2, 0.2, 20000),
            Case("mg", "wc", "sampling"): outcome(0.9, 0.9, 100),
        }
    )
    said = {one.text: (one.holds, one.found) for one in statements(found)}
    holds, text = said["Figure 4: MG sampled is clearly worse than iterative"]
    assert not holds
    assert re.match(r"-\d\d %; \+40 % were moves free; remote in the last half 90% to 20%", text), text


def test_iterations_are_those_that_are_marked() -> None:
    marked = outcome(0.2, 0.2)
    marked.iterations = [0.9, *(0.1 * one for one in range(8)), 0.5]
    others = outcome(0.2, 0.2)
    others.iterations = [0.3] * 20
    table = upmlib._iterations({Case("bt", "ft", "nothing"): marked, Case("cg", "ft", "nothing"): others})
    (line,) = table.splitlines()[2:]
    assert line.split() == ["bt.ft.nothing", *(f"{10 * one}.0%" for one in range(8))]


def test_experiments_on_critical_pages_say_what_they_are() -> None:
    phase = {"replays": 7.0, "moved": 140.0, "undone": 140.0, "calls": 14.0, "eligible": 1187.0}
    one = outcome(0.2, 0.2, 280, phase)
    names = [Case("bt", "ft", "replay"), Case("bt", "ft", "replay", page=64)]
    names += [Case("bt", "ft", "replay", threshold=16.0), Case("bt", "ft", "replay", plan=100)]
    plain = {Case("bt", "ft", "nothing"): outcome(0.2, 0.2), Case("bt", "ft", "iterative"): outcome(0.2, 0.2)}
    quadrupled = {Case("bt", "ft", what, 4): outcome(0.2, 0.2) for what in ("nothing", "iterative")}
    found = Found({**plain, **quadrupled, Case("bt", "ft", "replay", 4): one, **dict.fromkeys(names, one)})
    said = {one.text: one.found for one in statements(found)}
    assert said["Figure 5: 160 to 250 pages of BT are identified"] == (
        "1187; 1187 with pages of 64KiB; 1187 with threshold 16; 1187 with a plan of 100"
    )
    (told,) = (text for name, text in said.items() if name.startswith("Figure 6"))
    assert told.endswith("; an iteration saves 0 ms by the plan, and takes 46 ms for its moves")


def test_a_scan_looks_at_the_share_of_pages_that_the_papers_thread_does() -> None:
    # 45 pages of 2,688 in an iteration of BT; eight iterations stand for 200.
    whole = paper.PROGRAMS["bt"].mib * 2**20
    assert runs.sampled_pages(Case("bt", "wc", "sampling"), whole, 16 << 10, 200) == 45
    assert runs.sampled_pages(Case("bt", "wc", "sampling"), whole, 16 << 10, 8) == 1125
    assert runs.sampled_pages(Case("bt", "wc", "sampling"), whole / 100000, 16 << 10, 8) == 1


def test_with_sampling_an_iteration_stands_for_several() -> None:
    stretch = 1 + paper.M * (paper.RATIO - 1)
    seconds, _ = outcome(1, 0).seconds(Case("bt", "wc", "sampling"))
    assert seconds == pytest.approx(0.45 * (100 * stretch + 100))


def test_the_kernel_moves_in_the_faults_of_all_threads() -> None:
    _, moves = outcome(0.2, 0.2, 1600).seconds(Case("bt", "wc", "kernel"))
    assert moves == pytest.approx(1600 * paper.PAGE_SECONDS / runs.THREADS)


def test_the_kernel_scans_a_footprint_in_an_iteration() -> None:
    plain = outcome(0.2, 0.2)
    words = runs.words_of(Case("bt", "wc", "kernel"), runs.SIZES["paper"], plain)
    size, _, accesses = words[words.index("--balancing-scan") + 1].partition(":")
    assert int(size.removesuffix("KiB")) * runs.SCAN_PIECES == pytest.approx(plain.bytes / 1024, abs=64)
    assert int(accesses) * runs.SCAN_PIECES * runs.THREADS == pytest.approx(plain.accesses, rel=0.02)


def test_an_interrupted_benchmark_says_what_it_has() -> None:
    found = Found(
        {
            Case("bt", "ft", "nothing"): outcome(0.2, 0.2),
            Case("bt", "wc", "nothing"): outcome(0.9, 0.9),
            Case("bt", "ft", "sampling"): outcome(0.2, 0.2),
            Case("bt", "ft", "replay"): outcome(0.2, 0.2),
        }
    )
    assert [one.text for one in statements(found)] == [
        "Figure 3: other placements than first touch take 24 to 210 % longer"
    ]


def guest_outcome(case: counted.Case, remote: int) -> counted.Outcome:
    """A run in the guest with so many remote misses of a thousand in each phase."""
    return counted.Outcome(
        name=case.name,
        command=case.command,
        misses={1: 1000, 2: 1000, 3: 1000},
        remote={1: 0, 2: remote, 3: remote},
        oracle_remote=0,
        oracle_last_half=0.0,
        output=parse_output("result norm: 1"),
        seconds=1.0,
        homing=None if case.mechanism == "nothing" else {"moved": 12},
    )


def test_what_was_counted_in_the_guest_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "find_program", lambda name: f"/apps/{name}")
    steps = counted.cases(["bt"])
    assert {(case.placement, case.mechanism) for case in steps} == {
        (placement, mechanism) for placement in paper.PLACEMENTS for mechanism in paper.MECHANISMS
    }
    for mechanism in ("replay", "hybrid"):  # homing finds the phases of the others
        assert counted.Case("cg", "wc", mechanism).command[-1] == "--mark-iterations"
        assert counted.Case("bt", "wc", mechanism).command[-2:] == ["--upmlib", mechanism]
    assert counted.Case("bt", "wc", "nothing").command[-3:] == ["--initialise", "serial", "--mark-iterations"]
    words = ["--initialise", "parallel", "--place", "random", "--mark-iterations"]
    assert counted.Case("bt", "rand", "sampling").command[-5:] == words
    remote = {"nothing": 700, "iterative": 200}
    results = Results("upmlib_guest", "", "")
    found = {case: guest_outcome(case, remote.get(case.mechanism, 300)) for case in steps}
    counted._fill(results, found)
    rows = {row.name: row.value for row in results.rows}
    assert rows["bt.wc.nothing.remote"] == pytest.approx(1400 / 3000)
    assert rows["bt.wc.iterative.last_half"] == pytest.approx(0.2)
    assert [check.passed for check in results.checks] == [True, True]
    assert "BT, worst case, kernel migration" in results.texts[0]
