"""The programs of Wittmann and Hager 2010 (apps/wittmann): every way of running them computes the same."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from homing.bench import wittmann
from homing.bench.programs import Output, find_program, parse_output
from homing.bench.results import Results
from homing.bench.task_runs import CLAUSE
from tests.python.test_programs import LIBRARY

GRID = ("--sites-k", "30", "--sites-j", "33", "--sites-i", "41", "--block-j", "7", "--block-i", "3")


def run(
    program: str, *arguments: str, threads: int = 3, nodes: int = 2, more: dict[str, str] | None = None
) -> Output:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "HOMING"))}
    variables.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", HOMING="off")
    variables.update(HOMING_ASSUME_NODES=str(nodes), **(more or {}))
    done = subprocess.run(
        [find_program(program), *arguments], env=variables, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    output = parse_output(done.stdout)
    assert output.verification == "successful"
    return output


@cache
def serial_checksum() -> str:
    arguments = ("--variant", "static", "--initialise", "serial", "--samples", "5")
    return run("blocked_jacobi_gcc", *arguments, *GRID, threads=1).fields["result checksum"]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
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
    ],
)
def test_every_variant_has_the_same_checksum(variant: str, compiler: str) -> None:
    extra = ["--order", "kji", "--initialise", "s1", "--homes", "noted", "--pin", "yes", "--work", "2"]
    output = run(f"blocked_jacobi_{compiler}", "--variant", variant, *extra, "--samples", "5", *GRID)
    assert output.fields["result checksum"] == serial_checksum()
    known = output.fields["time home"].split()
    assert int(known[2]) == 5 * 5 * 13, "every block of every sweep ran once"


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
        [find_program("lanczos_gcc"), "--matrix", str(path)], capture_output=True, text=True, timeout=60
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
