"""The programs of Wittmann and Hager 2010 (apps/wittmann): every way of running them computes the same."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.bench import wittmann, wittmann_machines, wittmann_variability
from homing.bench.bandwidth_model import bounds, cores_seconds, memory_seconds, order_seconds
from homing.bench.places import find_program
from homing.bench.programs import Output, parse_output
from homing.bench.results import Results
from homing.bench.task_runs import CLAUSE
from homing.bench.wittmann_ways import WAYS
from tests.compilers import why_not
from tests.patience import PATIENCE
from tests.python.test_programs import LIBRARY

GRID = ("--sites-k", "30", "--sites-j", "33", "--sites-i", "41", "--block-j", "7", "--block-i", "3")


def run(
    program: str, *arguments: str, threads: int = 3, nodes: int = 2, more: dict[str, str] | None = None
) -> Output:
    if program.endswith("_clang") and (reason := why_not("clang++-19")):
        pytest.skip(reason)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "HOMING"))}
    variables.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", HOMING="off")
    variables.update(HOMING_ASSUME_NODES=str(nodes), **(more or {}))
    done = subprocess.run(
        [find_program(program), *arguments], env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    output = parse_output(done.stdout)
    assert output.verification == "successful"
    return output


@cache
def serial_checksum() -> str:
    arguments = ("--variant", "static", "--initialise", "serial", "--samples", "5")
    return run("blocked_jacobi_gcc", *arguments, *GRID, threads=1).fields["result checksum"]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "variant",
    [
        "static",
        "dynamic",
        "tasks",
        "queues",
        "paper",
        "clause",
        "nested",
        "tbb",
        "tbb-queues",
        "tbb-paper",
        "tbb-for-each",
        "tbb-arena",
        "tasks-all",
        "paper-all",
    ],
)
def test_every_variant_has_the_same_checksum(variant: str, compiler: str) -> None:
    extra = ["--order", "kji", "--initialise", "s1", "--homes", "noted", "--pin", "yes", "--work", "2"]
    output = run(f"blocked_jacobi_{compiler}", "--variant", variant, *extra, "--samples", "5", *GRID)
    assert output.fields["result checksum"] == serial_checksum()
    known = output.fields["time home"].split()
    assert int(known[2]) == 5 * 5 * 13, "every block of every sweep ran once"


@pytest.mark.parametrize("partitioner", ["auto", "affinity"])
@pytest.mark.parametrize("variant", ["tbb", "tbb-queues", "tbb-paper"])
def test_a_line_of_blocks_has_the_same_checksum(variant: str, partitioner: str) -> None:
    words = ("--variant", variant, "--range", "1d", "--partitioner", partitioner, "--samples", "5")
    output = run("blocked_jacobi_gcc", *words, *GRID)
    assert output.fields["result checksum"] == serial_checksum()
    assert int(output.fields["time home"].split()[2]) == 5 * 5 * 13


@pytest.mark.full
def test_the_clause_is_honoured_on_blocked_jacobi(tmp_path: Path) -> None:
    from homing.records import read_record

    record = tmp_path / "r.homing"
    more = {**CLAUSE, "HOMING": "on", "LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(record)}
    output = run("blocked_jacobi_clang", "--variant", "clause", "--samples", "5", *GRID, more=more)
    assert output.fields["result checksum"] == serial_checksum()
    hints = read_record(str(record)).task_hints
    assert hints is not None
    assert hints.given == 5 * 5 * 13
    assert hints.honoured >= 0.95 * hints.given, hints


@pytest.mark.parametrize("groups", ["1", "2", "3", "5"])
@pytest.mark.parametrize("depth", ["1", "2", "4"])
def test_temporal_blocking_computes_what_sweeps_do(groups: str, depth: str) -> None:
    size = ("--sites-k", "20", "--sites-j", "21", "--sites-i", "90", "--planes", "2")
    plain = run("temporal_gcc", *size, "--depth", "1", "--samples", "8", threads=1)
    blocked = run(
        "temporal_gcc", *size, "--depth", depth, "--groups", groups, "--samples", str(8 // int(depth))
    )
    assert blocked.results == plain.results


def write_matrix(path: Path, matrix: np.ndarray, symmetric: bool) -> None:
    entries = [
        (i + 1, j + 1, matrix[i, j])
        for i, j in zip(*np.nonzero(matrix), strict=True)
        if not symmetric or i >= j
    ]
    kind = "symmetric" if symmetric else "general"
    lines = [
        f"%%MatrixMarket matrix coordinate real {kind}",
        "% a comment",
        f"{len(matrix)} {len(matrix)} {len(entries)}",
    ]
    path.write_text("\n".join([*lines, *(f"{i} {j} {float(value)!r}" for i, j, value in entries)]) + "\n")


@pytest.mark.parametrize("symmetric", [True, False])
def test_lanczos_finds_the_largest_eigenvalue_of_a_file(symmetric: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    dense = random.normal(size=(200, 200)) * (random.random((200, 200)) < 0.05)
    matrix = np.round(dense + dense.T, 6)
    matrix[7] = matrix[:, 7] = 0  # an empty row
    path = tmp_path / "matrix.mtx"
    write_matrix(path, matrix, symmetric)
    results = []
    for variant in ("static", "tasks", "queues"):
        arguments = ("--matrix", str(path), "--variant", variant, "--block-rows", "23", "--steps", "120")
        output = run("lanczos_gcc", *arguments)
        results.append(output.results)
        largest = float(output.fields["result largest eigenvalue"])
        assert largest == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-9)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":0: the file is empty"),
        ("%%MatrixMarket matrix array real general\n2 2\n", ":1: format 'array'"),
        ("%%MatrixMarket matrix coordinate complex general\n", ":1: field 'complex'"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n", ":2: the matrix is not square"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "ends after 1 of 2 entries"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", ":3: an entry outside"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n", ":3: not an entry"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "is not symmetric"),
    ],
)
def test_what_is_wrong_with_a_matrix_file_is_said(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    path.write_text(text)
    done = subprocess.run(
        [find_program("lanczos_gcc"), "--matrix", str(path)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_statements_are_judged_by_their_shares() -> None:
    def found(paper: float, plain: float) -> dict[str, dict[str, object]]:
        shares = {"paper.s.ijk": paper, "tasks.s.ijk": plain}
        names = ("tasks.s.kji", "paper.s.kji", "paper.s1.ijk", "queues.s.ijk", "queues.s.kji", "clause.s.ijk")
        shares.update({name: 0.25 if name.startswith("tasks") else 0.96 for name in names})
        return {name: {"home": share, "remark": ""} for name, share in shares.items()}

    for paper, plain, failed in ((0.5, 0.25, 0), (0.99, 0.25, 1), (0.5, 0.9, 1)):
        results = Results("wittmann", "", "")
        wittmann._guest_rows(results, found(paper, plain))
        assert sum(not check.passed for check in results.checks) == failed
        assert len(results.rows) == 8


# --- predictions --------------------------------------------------

LOCAL = [[30.0 if home == node else 0.0 for home in range(4)] for node in range(4)]
SERIAL = [[30.0, 0.0, 0.0, 0.0] for _ in range(4)]
DEALT = [[7.5] * 4 for _ in range(4)]


def test_bounds_of_known_placements() -> None:
    # 120 bytes on four nodes of 10 bytes a second, links of 5.
    local = bounds(LOCAL, 10, 5)
    assert (local.memory, local.order, local.cores) == (3, 0, 3)
    serial = bounds(SERIAL, 10, 5)
    assert (serial.memory, serial.cores, serial.seconds) == (12, 6, 12)
    dealt = bounds(DEALT, 10, 5)
    assert dealt.memory == 3
    assert dealt.seconds == dealt.cores == pytest.approx(0.75 + 4.5)
    assert cores_seconds(SERIAL, 10, 1) == 30, "a slow link is worse than a busy memory"
    assert cores_seconds(DEALT, 10, 50) == 3, "a link is never faster than the memory behind it"
    assert memory_seconds([[12.0]], 4) == 3


def test_the_order_of_blocks_counts() -> None:
    # 16 blocks of 10 bytes, 4 threads, memories of 10 bytes a second.
    nodes = [0, 1, 2, 3] * 4
    one_each = [1, 1, 1, 1]
    home = [(node, node) for node in nodes]
    assert order_seconds(home, one_each, 10, 10) == pytest.approx(4), "all memories at work"
    assert order_seconds(sorted(home), one_each, 10, 10) == pytest.approx(4), (
        "each node has an order of its own"
    )
    late = list(zip(nodes, sorted(nodes), strict=True))
    assert order_seconds(late, one_each, 10, 10) == pytest.approx(16), "one memory after the other"
    assert order_seconds([(node, 0) for node in nodes], one_each, 10, 10) == pytest.approx(16)
    assert order_seconds([(0, 0), (0, 1)], [1, 0], 10, 10) == pytest.approx(2), "one block a thread at a time"
    assert order_seconds([(0, 0), (0, 1)], [2, 0], 10, 10) == pytest.approx(1)
    assert order_seconds([], one_each, 10, 10) == 0
    whole = bounds(LOCAL, 10, 5, late, one_each)
    assert whole.seconds == whole.order > whole.memory


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60), st.integers(1, 9))
def test_an_order_takes_no_less_than_its_busiest_memory(runs: list[tuple[int, int]], threads: int) -> None:
    seconds = order_seconds(runs, [threads] * 4, 2.0, 4.0)
    busiest = max([home for _, home in runs].count(node) for node in range(4))
    assert 0.5 * busiest * (1 - 1e-9) <= seconds <= 0.5 * len(runs) * (1 + 1e-9)


def test_the_statements_are_judged_by_predictions() -> None:
    rates = {"static.serial": 500.0, "static.round-robin": 1200.0, "static.s": 2000.0}
    rates |= {"tasks.s.ijk": 600.0, "tasks.s.kji": 1100.0}
    rates |= {"paper.s.ijk": 700.0, "paper.s.kji": 1950.0, "paper.s1.ijk": 1900.0}
    rates |= {"tbb.p.n-a": 1100.0, "tbb.n-p.n-a": 1300.0, "tbb.p.a": 1900.0, "tbb-paper.p": 1950.0}
    assert all(check.passed for check in wittmann_machines.statements("istanbul", rates))
    for changed, failed in (
        ({"tasks.s.kji": 1300.0}, 1),
        ({"tasks.s.ijk": 1150.0}, 1),
        ({"paper.s1.ijk": 1700.0}, 1),
        ({"paper.s.ijk": 1950.0}, 1),
        ({"static.round-robin": 400.0}, 3),
        ({"queues.s.kji": 1000.0}, 1),
        ({"tbb-queues.p": 1000.0}, 1),
        ({"tbb.n-p.n-a": 1500.0}, 1),
        ({"tbb.p.n-a": 900.0}, 1),
        ({"tbb.n-p.a": 1700.0}, 1),
        ({"tbb-paper.p": 2100.0}, 1),
    ):
        checks = wittmann_machines.statements("istanbul", {**rates, **changed})
        assert sum(not check.passed for check in checks) == failed, changed


def test_what_runs_say_becomes_rows_with_model_and_error() -> None:
    size = wittmann_machines.SIZES["small"]
    line = 64 * 1e9 / 64  # a byte a second, in lines a nanosecond
    lines = size.copy_bytes / 64
    copy = {"misses": [[lines / 2, 0.0], [0.0, lines / 2]]}
    one = {"misses": [[lines, 0.0], [0.0, 0.0]]}
    sweep = {"misses": [[line / 2, 0], [0, line / 2]], "runs": [[0, 0], [1, 1]] * 8, "home": 1.0}
    runs = {"stream.full": copy, "stream.domain": one, **dict.fromkeys(size.ways, sweep)}
    predicted = wittmann_machines.predict("nehalem-ep", runs, size)
    assert [predicted.full, predicted.domain] == pytest.approx([37, 18.5])
    assert predicted.error == pytest.approx(1 - 18.5 / 18.9)
    seconds = 64 * line / 37e9
    assert predicted.mlups["static.s"] == pytest.approx(size.updates / seconds / 1e6)
    results = Results("wittmann", "", "")
    wittmann_machines.add_rows(results, {"size": "small", "runs": {"nehalem-ep": runs}})
    assert all("bandwidth bounds, error on STREAM copy 2 %" in row.note for row in results.rows)
    assert results.rows[0].paper == 36.6


TINY = wittmann_machines.Size(
    ("nehalem-ep",),
    (),
    ("--sites-k", "128", "--sites-j", "50", "--sites-i", "122", "--block-j", "8", "--block-i", "4"),
    126 * 48 * 120,
    4 << 20,
    2000,
    ("--cache", "32KiB:8", "--shared-cache", "128KiB:16"),
)


@pytest.mark.full  # 11 s of a processor: the program is compiled once more, with every access counted
@pytest.mark.parametrize(
    ("way", "least", "most", "remote"),
    [
        ("static.s", 0.99, 1.0, 0.1),
        ("static.round-robin", 0.0, 1.0, 0.5),
        ("tasks.s.kji", 0.2, 0.8, 0.5),
        ("tbb.p.a", 0.7, 1.0, 0.1),
    ],
)
def test_a_simulated_run_knows_who_is_at_home(way: str, least: float, most: float, remote: float) -> None:
    found = wittmann_machines.run_way("nehalem-ep", WAYS[way], TINY)
    misses = np.array(found["misses"])
    # A line of each grid for each line that is updated, and halos.
    lines = 128 * 48 * 120 / 8
    assert 2 * lines <= misses.sum() <= 3.5 * lines
    assert 1 - np.trace(misses) / misses.sum() == pytest.approx(remote, abs=0.1)
    assert least <= found["home"] <= most
    assert len(found["runs"]) == (0 if "round" in way else 180)


def test_each_sweep_has_a_rate_of_its_own() -> None:
    size = wittmann_machines.SIZES["small"]
    home, away = [[0, 0], [1, 1]] * 8, [[0, 1], [1, 0]] * 8
    local, remote, again = wittmann_variability.sweep_rates("nehalem-ep", [*home, *away, *home], 1e6, 3, size)
    assert local == again > 1.2 * remote
    assert local == pytest.approx(size.updates / (8e6 / 18.5e9) / 1e6)
    results = Results("wittmann", "", "")
    rates = {"tasks.s.kji": {"rates": [[100.0] * 9, [100.0]]}, "tbb.p.n-a": {"rates": [[100.0, 50.0]]}}
    wittmann_variability.add_rows(results, {"nehalem-ep": rates})
    assert [row.value for row in results.rows] == pytest.approx([0, 0.45 * 2 / 1.5])
    assert [check.passed for check in results.checks] == [True]
