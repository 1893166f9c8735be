"""homing bench chapman without its runs: what is needed, what is read, what is refused, what rows say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.bench import chapman, chapman_origin, chapman_programs, chapman_runs, programs
from homing.bench.chapman_programs import Built, changed_text
from homing.bench.chapman_runs import bytes_a_step, exchanged
from homing.errors import UserError
from tests.python.test_apps import ROOT

STATISTICS = "homing_parts parts 4 exchanges 41 bytes 12240 messages 6 message_bytes 12240\n"


@pytest.mark.parametrize(
    ("code", "parts", "arguments", "needed"),
    [
        ("jacobi", 4, ("--n", "100"), 16 * 3 * 100),
        ("jacobi", 1, ("--n", "100", "--steps", "3"), 0),
        ("lu", 4, ("--n", "4"), 8 * (3 + 2 + 1)),
        ("lbe", 3, ("--nx", "10", "--ny", "7"), 48 * 2 * 10),
    ],
)
def test_what_has_to_be_exchanged(code: str, parts: int, arguments: tuple[str, ...], needed: int) -> None:
    assert bytes_a_step(code, parts, arguments) == needed


def test_statistics_are_read() -> None:
    found = exchanged(f"noise\n{STATISTICS}")
    assert (found.bytes, found.messages, found.message_bytes) == (12240, 6, 12240)
    with pytest.raises(UserError, match="no statistics"):
        exchanged("noise\n")


@pytest.mark.parametrize("suffix", ["c", "f90"])
def test_versions_that_are_made_by_changing_the_text(suffix: str) -> None:
    lu = (ROOT / "apps" / "chapman" / f"lu.{suffix}").read_text()
    changed = changed_text(lu, "no_affinity")
    assert "affinity(" in lu
    assert "affinity(" not in changed
    assert "schedule(" not in lu, "program 2 has none: with one, its owners would rotate"
    assert "homing distribute_reshape lu" in changed_text(lu, "reshape")
    assert changed_text(lu, "dealt_out").count("schedule(static, 1)") == 1
    jacobi = (ROOT / "apps" / "chapman" / f"jacobi.{suffix}").read_text()
    assert "homing distribute_reshape a" in changed_text(jacobi, "reshape")
    assert len(changed_text(jacobi, "reshape").splitlines()) == len(jacobi.splitlines())


def test_only_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are jacobi, lu, lbe, time"):
        chapman.run("small", ["jacobi", "cg"], lambda words: " ".join(words))


class Builder:
    """In place of compilers: LBE's translation is refused."""

    def __init__(self, *_: object) -> None:
        pass

    def build(self, code: str, language: str, version: str) -> Built:
        refused = code == "lbe" and version == "spmd"
        return Built("", "x:1:1: no") if refused else Built(f"/{code}-{language}-{version}")


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The benchmark with runs that take so long and count so much as their names say."""
    seconds = {
        "shared": 2.0,
        "distribute": 2.0,
        "reshape": 2.0,
        "spmd": 1.0,
        "hand": 1.25,
        "no_affinity": 3.0,
        "dealt_out": 4.0,
    }

    def version(command: Any) -> str:
        return str(command[0]).rpartition("-")[2]

    monkeypatch.setattr(chapman, "Builder", Builder)
    monkeypatch.setattr(chapman, "kept_folder", lambda: tmp_path)
    monkeypatch.setattr(chapman, "digest", lambda path: "0")
    monkeypatch.setattr(chapman, "run_time", lambda command, threads: seconds[version(command)] / threads)
    monkeypatch.setattr(
        chapman, "counted_step", lambda command, more: 103.0 if version(command) == "spmd" else 100.0
    )
    monkeypatch.setattr(
        chapman,
        "ranks_step",
        lambda path, code, ranks: (bytes_a_step(code, ranks, chapman.MPI_ARGUMENTS[code]), 2, 8),
    )
    return chapman.run("small", ["time", "instructions", "mpi"], lambda words: " ".join(words))


def test_rows_and_checks(results: Any) -> None:
    rows = {row.name: row.value for row in results.rows}
    assert rows["jacobi.fortran.shared.speedup.t2"] == 2
    assert rows["jacobi.fortran.spmd.speedup.t2"] == 4
    assert rows["jacobi.fortran.spmd_vs_hand.time"] == pytest.approx(0.8)
    assert rows["lu.c.no_affinity.time"] == pytest.approx(1.5)
    assert rows["lu.c.distribute_vs_dealt_out.time"] == pytest.approx(0.5)
    assert rows["lu.c.mpi_bytes"] == bytes_a_step("lu", 4, chapman.MPI_ARGUMENTS["lu"])
    assert "lbe.c.spmd.speedup.t2" not in rows
    checks = {check.name: check.passed for check in results.checks}
    assert checks["jacobi.c.spmd_vs_hand.time at most 1.05"]
    assert not [name for name in checks if name.startswith("lbe") and "spmd" in name]
    if chapman.shutil.which("valgrind"):
        assert not checks["lu.fortran.spmd_vs_hand.instructions at most 1.02"]
    refused = [note for note in results.notes if "refused" in note]
    assert len(refused) == 2


def test_a_run_is_free_of_the_callers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("LD_PRELOAD", "x.so")
    monkeypatch.setenv("HOMING_MECHANISM", "x")
    chosen = chapman_runs.quiet_environment(3, HOMING_PARTS="statistics")
    assert chosen["OMP_NUM_THREADS"] == "3"
    assert "LD_PRELOAD" not in chosen
    assert "HOMING_MECHANISM" not in chosen
    assert chosen["HOMING_PARTS"] == "statistics"


def test_a_program_that_fails_is_told() -> None:
    with pytest.raises(UserError, match="ended with 3"):
        programs.execute(["sh", "-c", "exit 3"], {"PATH": "/bin:/usr/bin"})


def test_flags_are_the_same_for_all_versions() -> None:
    """-ffp-contract=off: what is compared has the same digits."""
    assert "-ffp-contract=off" in chapman_programs.FLAGS


def test_a_translation_of_a_changed_source_does_not_overwrite_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a wrapper before the compiler the translation goes to a folder of its own choice."""
    commands = []

    def done(command: Any, folder: Path) -> Any:
        commands.append([str(word) for word in command])
        return chapman_programs.subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(chapman_programs, "_try", done)
    monkeypatch.setattr(chapman_programs.shutil, "which", lambda name: name)
    chapman_programs.Builder(tmp_path, ["wrapper"]).build("lu", "fortran", "no_affinity")
    (words,) = [words for words in commands if "translate" in words]
    source, folder = Path(words[words.index("translate") + 1]), words[words.index("-o") + 1]
    assert words[words.index("--to") + 1] == "pages"
    assert source.parent != Path(folder)
    assert "affinity(" not in source.read_text()


# --- the Origin 2000 ----------------------------------------------------------------------------------------


def counts(accesses: int, misses: dict[tuple[int, int], int]) -> dict[str, Any]:
    """As from a run with one timed phase."""
    nodes = 64
    matrix = [[misses.get((a, b), 0) for b in range(nodes)] for a in range(nodes)]
    return {
        "phases": [
            {"phase": 1, "accesses": 10**9, "misses": matrix},
            {"phase": 2, "accesses": accesses, "misses": matrix},
        ],
        "run": {"total_misses": 8, "remote_misses": 2, "remote_fraction": 0.25},
    }


def test_what_a_thread_waits_for_is_that_of_the_node_that_waits_longest() -> None:
    one = chapman_origin.reduced(counts(1000, {(0, 0): 100, (1, 0): 60, (1, 1): 10}), 3)
    assert (one["accesses"], one["misses"], one["remote"], one["served"]) == (1000, 170, 60, 160)
    # Node 1 has one thread of the three. Its router is node 0's, so node 0 is one hop away.
    far = chapman_origin.machines.find(chapman_runs.MACHINE).distances[1][0] / 10
    assert one["waiting_ns"] == pytest.approx(chapman_origin.LOCAL_NS * (60 * far + 10))
    with pytest.raises(UserError, match="no timed iterations"):
        chapman_origin.reduced({"phases": [], "run": {}}, 1)


def test_columns_dealt_out_whole_leave_some_threads_without() -> None:
    assert chapman_origin.largest_share("jacobi", 4, 1024) == 1
    assert chapman_origin.largest_share("lbe", 4, 254) == pytest.approx(64 * 4 / 254)
    # Of three columns the first step updates 2, the second 1: two threads have one of each.
    assert chapman_origin.largest_share("lu", 2, 3) == pytest.approx(2 * (1 * 2 + 1 * 1) / (4 + 1))
    assert chapman_origin.largest_share("lu", 1, 100) == 1


def test_the_model_without_misses_is_linear_but_for_barriers_and_divisions() -> None:
    one = {"accesses": 1e9, "waiting_ns": 0.0, "served": 0.0}

    def time(code: str, threads: int) -> float:
        return chapman_origin.seconds(one, code, True, threads, 1024, 4, 0.25)

    assert time("jacobi", 1) == pytest.approx(1e9 * (5.5 + 0.25 * 55) * 1e-9)
    barriers = 4 * chapman_origin.barrier_ns(16) * 1e-9
    assert time("jacobi", 16) == pytest.approx(time("jacobi", 1) / 16 + barriers)
    assert chapman_origin.barrier_ns(1) == 0
    assert chapman_origin.barrier_ns(2) < chapman_origin.barrier_ns(64)
    assert time("lu", 1) - time("jacobi", 1) == pytest.approx(1023 * 512 * 84e-9)
    bound = chapman_origin.seconds({**one, "served": 1e9}, "jacobi", True, 16, 1024, 4, 0.25)
    assert bound == pytest.approx(1e9 * 128 / 0.78e9)


def test_rows_have_counts_beside_fractions() -> None:
    one = chapman_origin.reduced(counts(1000, {(0, 0): 6, (0, 1): 2}), 1)
    runs = {("shared", 1): one, ("spmd", 1): one}
    rows = {row.name: row for row in chapman_origin.rows("lu", "small", runs, {"shared": 0.1, "spmd": 0.1})}
    row = rows["lu.fortran.origin.shared.remote_fraction.t1"]
    assert row.value == 0.25
    assert row.note.startswith("2 of 8 misses of the run; timed steps 2 of 8, 1,000 accesses")
    assert rows["lu.fortran.origin.shared.speedup.t1"].value == 1
    assert "queued: 1" in rows["lu.fortran.origin.shared.speedup.t1"].note
