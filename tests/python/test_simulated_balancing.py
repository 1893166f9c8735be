"""The NUMA balancing of a described machine's kernel: it moves pages as Linux would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.python.test_simulator import FOUR, homing, simulate
from tests.python.test_simulator import build as build

Build = Callable[..., Path]
PAGES = 256  #: of the array
SWEEP = (1 << 17) // 4  #: accesses of each of four threads, on the average
#: All memory is marked once a sweep.
EACH_SWEEP = ("--balancing", "1", "--balancing-scan", f"2MiB:{SWEEP}")
SWEEPS = 24


def run(
    folder: Path, build: Build, mode: str, *flags: str, sweeps: int = SWEEPS, mechanism: str = "observe"
) -> Any:
    words = ("--mechanism", mechanism, "--guard", "off", "--deterministic", *flags)
    result = simulate(folder, build("balanced.c"), str(sweeps), mode, flags=words)
    assert result["status"] == 0, result["said"]
    return result


def test_pages_go_to_the_thread_that_uses_them(tmp_path: Path, build: Build) -> None:
    plain = run(tmp_path, build, "moved")
    balanced = run(tmp_path, build, "moved", *EACH_SWEEP)
    assert balanced["output"] == plain["output"]
    assert plain["counts"]["balancing"] is None
    did = balanced["counts"]["balancing"]
    assert did["moved_pages"] == pytest.approx(PAGES, abs=8)
    assert did["hint_faults"] >= did["moved_pages"]
    assert SWEEPS / 2 <= did["scans"] <= 2 * SWEEPS
    assert plain["counts"]["run"]["remote_fraction"] > 0.9
    assert balanced["counts"]["run"]["remote_fraction"] < 0.3
    assert balanced["counts"]["moved_pages"] == 0  # homing's
    assert f"the described kernel's moved {did['moved_pages']:,} pages" in balanced["said"]


def test_pages_that_two_nodes_use_in_turn_do_not_follow_each_of_them(tmp_path: Path, build: Build) -> None:
    did = run(tmp_path, build, "alternating", *EACH_SWEEP)["counts"]["balancing"]
    # A first fault is enough to leave the node of initialisation; from then on two in a row must agree.
    assert did["moved_pages"] <= 1.1 * PAGES
    assert did["hint_faults"] >= 8 * PAGES


def test_memory_with_a_policy_is_left_alone(tmp_path: Path, build: Build) -> None:
    did = run(tmp_path, build, "bound", *EACH_SWEEP)["counts"]["balancing"]
    assert did["scans"] > 0
    assert did["moved_pages"] <= 8


def test_the_kernel_leaves_areas_to_homing_where_it_moves_pages(tmp_path: Path, build: Build) -> None:
    did = {
        mechanism: run(tmp_path, build, "moved", *EACH_SWEEP, sweeps=96, mechanism=mechanism)["counts"][
            "balancing"
        ]
        for mechanism in ("observe", "iterative")
    }
    # Who only looks on does not keep the kernel from its work.
    assert did["observe"]["hint_faults"] > 80 * PAGES
    assert did["iterative"]["hint_faults"] < did["observe"]["hint_faults"] / 2


def test_a_scan_marks_as_much_as_is_stated(tmp_path: Path, build: Build) -> None:
    flags = ("--balancing", "1", "--balancing-scan", f"16KiB:{SWEEP}")
    did = run(tmp_path, build, "moved", *flags)["counts"]["balancing"]
    assert 0 < did["hint_faults"] <= 4 * did["scans"]
    assert did["moved_pages"] < PAGES


def test_balanced_runs_in_turns_count_the_same(tmp_path: Path, build: Build) -> None:
    first, second = (run(tmp_path, build, "alternating", *EACH_SWEEP)["counts"] for _ in range(2))
    assert first["balancing"] == second["balancing"]
    assert first["run"]["misses"] == second["run"]["misses"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--balancing", "2"), "--balancing 2: must be 0 or 1"),
        (("--balancing-scan", "1MiB:5"), "--balancing-scan: only with --balancing 1"),
        (("--balancing", "1", "--balancing-scan", "1MiB"), "must be SIZE:ACCESSES"),
        (("--balancing", "1", "--balancing-scan", "0:5"), "must be SIZE:ACCESSES"),
        (("--balancing", "1", "--balancing-scan", "1MiB:-5"), "must be SIZE:ACCESSES"),
    ],
)
def test_misuse(flags: tuple[str, ...], says: str) -> None:
    ran = homing("run", "--on", FOUR, *flags, "--", "true")
    assert ran.returncode == 2
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
