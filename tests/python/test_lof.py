"""`homing bench lof`: its model of time, its tables from made-up runs, and the mesh of I-CG."""

from __future__ import annotations

import math
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.bench import lof, maxwell
from homing.bench.lof import copies, lean, paper, runs, threads
from homing.bench.lof.differences import differences
from homing.bench.lof.model import (
    MigrationCost,
    break_even,
    calibrate,
    fit_migration,
    paper_error,
    relative_time,
)
from homing.bench.lof.pictures import draw
from homing.bench.lof.runs import SIZES, Case, Iteration, Outcome, cases, read_outcome
from homing.bench.lof.tables import Tables
from homing.errors import UserError
from tests.python.test_apps import ROOT as TREE

fractions = st.floats(0.01, 1.0)


@given(st.floats(1.0, 3.0), fractions, st.floats(1.1, 8.0))
def test_calibration_gives_the_ratio_it_was_made_from(relative: float, remote: float, ratio: float) -> None:
    assert relative_time(calibrate(relative, remote, ratio), ratio, remote) == pytest.approx(relative)


def test_the_model_explains_the_papers_own_tables() -> None:
    assert 0.01 < paper_error() < 0.08


def test_table_1_is_consistent_as_printed() -> None:
    for program, seconds in paper.SECONDS.items():
        for placement, value in paper.RELATIVE[program].items():
            assert seconds[placement] / seconds["uma"] == pytest.approx(value, abs=0.008)


costs = st.builds(MigrationCost, st.floats(1e-6, 1e-4), st.floats(1e-10, 1e-8))
amounts = st.lists(
    st.tuples(st.floats(1e3, 1e6), st.floats(1e6, 1e9)), min_size=3, max_size=12, unique=True
).filter(lambda pairs: np.linalg.cond(np.array(pairs) / [1e5, 1e8]) < 20)


@given(costs, amounts)
def test_costs_of_migration_are_found_again(cost: MigrationCost, samples: list[tuple[float, float]]) -> None:
    found = fit_migration([(pages, moved, cost.seconds(pages, moved)) for pages, moved in samples])
    for pages, moved in samples:
        assert found.seconds(pages, moved) == pytest.approx(cost.seconds(pages, moved), rel=1e-6)


@given(
    st.lists(st.tuples(st.floats(1e3, 1e6), st.floats(1e6, 1e9), st.floats(0.1, 10)), min_size=2, max_size=12)
)
def test_costs_of_migration_are_never_negative(samples: list[tuple[float, float, float]]) -> None:
    found = fit_migration(samples)
    assert found.page >= 0
    assert found.byte >= 0
    assert found.page + found.byte > 0


def test_break_even() -> None:
    assert break_even(1.6, 1.0, 2.77) == 5
    assert break_even(25.9, 21.9, 3.09) == 1
    assert math.isinf(break_even(1.0, 1.0, 0.1))


# Runs


def test_every_run_of_the_paper_is_there() -> None:
    for size in SIZES.values():
        for program in paper.PROGRAMS:
            found = cases(program, size)
            assert found.keys() >= {"uma", "si", "pi", "si_mig", "t12", "t12_large", "every_region"}
            assert found["uma"].close
            assert found["t12"].threads == 12
            assert found["t12_large"].page == size.large_page
            assert ("wildfire_si" in found) == (program in ("i_cg", "i_mg"))
            assert len({str(case.words()) + case.initialise + str(case) for case in found.values()}) == len(
                found
            )
    assert SIZES["paper"].page == 8192
    assert {program.cache for program in SIZES["paper"].programs.values()} == {""}  # the machine's own


def test_the_words_of_a_run() -> None:
    case = Case("i_cg", mechanism="next-touch", arm="every-region", page=512 << 10, cache="1MiB:2")
    words = case.words()
    assert words[:2] == ["--on", "sf15k"]
    for option, value in {
        "--mechanism": "next-touch",
        "--arm": "every-region",
        "--granule": "512KiB",
        "--page-size": "512KiB",
        "--cache": "1MiB:2",
    }.items():
        assert words[words.index(option) + 1] == value
    assert "--arm" not in Case("i_cg").words()


def counted(number: int, misses: list[list[int]]) -> dict[str, object]:
    return {"number": number, "misses": misses}


def test_an_outcome_is_read_from_the_json() -> None:
    found = {
        "counts": {
            "run": {"accesses": 1000, "misses": [[30, 0], [6, 4]]},
            "iterations": [
                counted(3, [[6, 0], [1, 3]]),
                counted(0, [[9, 0], [0, 0]]),
                counted(1, [[7, 0], [0, 0]]),
                counted(2, [[5, 0], [5, 0]]),
                counted(4, [[1, 0], [0, 0]]),
            ],
            "areas": [{"title": "", "name": "x", "total_misses": 20, "remote_misses": 6}],
        },
        "processes": [{"moved_bytes": 8192, "faults": 3, "iterations": {"count": 4}}],
    }
    stdout = "bytes: 4096\niterations: 2\nresult residual: 1e-6\nverification: successful\n"
    outcome = read_outcome(found, stdout, Case("i_cg", page=4096), 1.5)
    assert [one.fraction for one in outcome.iterations] == [0.5, 0.1]
    assert outcome.fraction == 0.1
    assert (outcome.moved_bytes, outcome.faults, outcome.bytes, outcome.page) == (8192, 3, 4096, 4096)
    assert outcome.areas == {"x": [20, 6]}
    assert outcome.whole is not None and outcome.whole.fraction == 0.15
    assert Outcome.from_dict(outcome.to_dict()) == outcome


# Tables


def outcome(remote: float, program: str, moved: float = 0.0, page: int = 8192) -> Outcome:
    """A run with this remote fraction, at the paper's size; moved: share of its bytes."""
    bytes_ = paper.BYTES.get(program, 1 << 28)
    local = round(1e6 * (1 - remote))
    last = Iteration([[local, 1_000_000 - local], [0, 0]])
    return Outcome([last, last], round(moved * bytes_), 100, bytes_, page, "successful", {}, 1, 1.0)


def papers_outcomes() -> dict[str, dict[str, Outcome]]:
    """What would have been counted on the paper's machine."""
    found: dict[str, dict[str, Outcome]] = {}
    for program in paper.PROGRAMS:
        remote = paper.REMOTE[program]
        found[program] = {name: outcome(value, program) for name, value in remote.items()}
        for name in ("si_mig", "t12"):
            found[program][name] = outcome(remote["si_mig"], program, 0.75)
        found[program]["t12_large"] = outcome(remote["si_mig"], program, 0.75, 512 << 10)
        found[program]["every_region"] = outcome(remote["si_mig"], program, 0.75)
        found[program]["si@1MiB:2"] = outcome(0.7, program)
        if program in ("i_cg", "i_mg"):
            found[program]["wildfire_si"] = outcome(0.5, program)
            found[program]["wildfire_mig"] = outcome(0.2, program, 0.5)
            found[program]["wildfire_daemon"] = outcome(0.2, program, 0.5)
            found[program]["wildfire_daemon_replicated"] = outcome(0.05, program, 0.5)
    found["drift"] = {name: outcome(0.3, "drift") for name in ("si", "si_mig", "every_region")}
    return found


def test_of_a_whole_process_initialisation_counts() -> None:
    found = papers_outcomes()
    # 2 M misses of iterations, of which 11.03 % are remote, and a million remote ones before them.
    whole = Iteration([[2_000_000 - 220_600, 220_600 + 1_000_000], [0, 0]])
    found["nas_mg"]["si_mig"] = replace(found["nas_mg"]["si_mig"], whole=whole)
    rows = {row.name: row for row in Tables(found).fill().rows}
    assert rows["table2.nas_mg.si_mig.process"].value == pytest.approx(1_220_600 / 3e6)
    row = rows["table2.nas_mg.si_mig.whole"]  # 20 iterations
    assert (row.value, row.paper) == (pytest.approx((20 * 110_300 + 1e6) / 21e6), 0.1103)
    assert "table2.nas_mg.pi.whole" not in rows


def test_the_daemon_looks_at_so_many_pages_a_second() -> None:
    case = cases("i_mg", SIZES["paper"])["wildfire_daemon"]
    words = case.words(paper.BYTES["i_mg"])
    # 39.4 s an iteration, 200 pages in each of them.
    assert int(words[words.index("--sampling-pages") + 1]) == pytest.approx(200 * 39.4, rel=0.01)
    assert case.iterations == paper.ITERATIONS["i_mg"]
    replicated = cases("i_mg", SIZES["paper"])["wildfire_daemon_replicated"]
    assert replicated.words(10**8) == [*case.words(10**8), "--shared-cache", "1GiB:16"]


def test_si_mig_beats_pi_where_it_does_in_the_paper() -> None:
    found = papers_outcomes()
    checks = {check.name: check for check in lof._as_in_the_paper(Tables(found))}
    assert list(checks) == ["nas_cg: SI+MIG beats PI", "nas_mg: SI+MIG beats PI"]
    assert all(check.passed for check in checks.values())
    found["nas_mg"]["si_mig"] = outcome(0.6, "nas_mg", 0.75)
    assert not lof._as_in_the_paper(Tables(found))[1].passed


def test_copies_of_p_cost_their_misses() -> None:
    found = papers_outcomes()
    plain = Tables(found).fill()
    assert not any("copies" in row.name for row in plain.rows)
    local, remote = 1_000_000, 100_000  # 10 % more misses than without copies
    copied = Iteration([[local, remote], [0, 0]])
    found["i_cg"]["wildfire_pi"] = outcome(0.2, "i_cg")
    found["i_cg"]["wildfire_copies"] = replace(outcome(0.0, "i_cg"), iterations=[copied, copied])
    tables = Tables(found).fill()
    rows = {row.name: row for row in tables.rows}
    assert rows["figure3a.i_cg.copies.remote"].value == pytest.approx(0.1)
    waits = (local + paper.WILDFIRE_RATIO * remote) / 1e6
    uma = rows["figure3a.i_cg.uma"].value
    expected = uma * (1 + tables.m("i_cg") * (waits - 1))
    assert rows["figure3a.i_cg.copies.seconds"].value == pytest.approx(expected)
    assert "p replicated by the program" in "\n".join(tables.texts)


def test_the_program_with_copies_is_made_of_the_one_without() -> None:
    text = (TREE / "apps" / "common" / "conjugate_gradients.f90").read_text()
    changed = copies.with_copies(text)
    assert changed.count("!$homing replicate(p)") == 1
    assert changed.count("multiply_block(block, p, q)") == 0
    with pytest.raises(UserError, match="has changed"):
        copies.with_copies(changed)


def test_the_papers_fractions_give_the_papers_tables() -> None:
    tables = Tables(papers_outcomes()).fill()
    rows = {row.name: row for row in tables.rows}
    assert len(rows) == len(tables.rows)
    for program in paper.PROGRAMS:
        for placement, known in paper.REMOTE[program].items():
            row = rows[f"table2.{program}.{placement}"]
            assert (row.value, row.paper) == (pytest.approx(known, abs=1e-6), known)
            row = rows[f"table1.{program}.{placement}"]
            assert row.paper == paper.RELATIVE[program][placement]
            assert row.value == pytest.approx(row.paper, abs=0.2)
        for column, known in paper.MIGRATION[program].items():
            row = rows[f"table3.{program}.{column}"]
            assert row.paper == known
            assert known / 2.5 < row.value < known * 2.5
    assert "table1.i_cg.pi" not in rows
    assert rows["table1.rms_error"].value < 0.08
    assert rows["figure1b.nas_mg.break_even"].value == pytest.approx(5, abs=1)
    assert rows["figure2b.i_mg.break_even"].value == 1
    assert rows["table2.nas_cg.si.cache_1MiB_2"].value == pytest.approx(0.7)
    looked_at = paper.daemon_share("i_cg")  # of two iterations the first one is over
    assert rows["figure3a.i_cg.replicated.remote"].value == pytest.approx(0.2 - looked_at * (0.2 - 0.05))
    assert tables.curves.keys() == {"1a", "1b", "2a", "2b", "3a", "3b"}
    assert "SI+TMIG" in tables.curves["3a"].lines
    assert len(tables.curves["1a"].lines["UMA"]) == 25
    assert not any("*" in line for text in tables.texts[1:2] for line in text.splitlines()[2:-1])


def test_what_is_far_from_the_paper_is_marked() -> None:
    found = papers_outcomes()
    found["nas_mg"]["pi"] = outcome(0.1, "nas_mg")
    tables = Tables(found).fill()
    row = next(row for row in tables.rows if row.name == "table2.nas_mg.pi")
    assert "more than 5 points" in row.note
    assert "10.00% (48.53%)*" in tables.texts[1]


def test_reasons_are_given_where_their_runs_are_there() -> None:
    found = papers_outcomes()
    (large,) = differences(found)
    assert "NAS-CG 1.3, NAS-MG 3.5, I-CG 1.9, I-MG 2.5" in large
    assert differences({"nas_cg": found["nas_cg"]}) == []
    found["nas_cg"]["pi_own"] = outcome(0.054, "nas_cg")
    text, _ = differences(found)
    assert "35.9% of the misses" in text
    assert "5.4%" in text


def test_tables_of_one_program_alone() -> None:
    found = {"i_cg": papers_outcomes()["i_cg"]}
    names = {row.name for row in Tables(found).fill().rows}
    assert {"table1.i_cg.si_mig", "table2.i_cg.si", "table3.i_cg.t4", "figure3a.i_cg.si"} <= names


def test_pictures_are_png() -> None:
    pictures = draw(Tables(papers_outcomes()).fill().curves)
    assert pictures.keys() == {"figure1", "figure2", "figure3"}
    for png in pictures.values():
        assert png.startswith(b"\x89PNG")


# Interruption


def test_what_was_kept_is_shown_after_an_interruption(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "benchmarks").mkdir()
    for name in ("cg_gfortran", "mg_gfortran", "i_cg_gfortran", "i_mg_gfortran", "drift_gcc"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(lof, "kept_folder", lambda: tmp_path)
    monkeypatch.setattr(lof, "build_programs", lambda programs: tmp_path)
    found = papers_outcomes()
    calls = []

    def run_case(case: Case, *_: object) -> Outcome:
        calls.append(case)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return found[case.program]["si" if case.mechanism == "observe" else "si_mig"]

    monkeypatch.setattr(lof, "run_case", run_case)
    results = lof.run("small", ["nas_cg"], " ".join)
    assert {row.name for row in results.rows} >= {"table2.nas_cg.si", "table2.nas_cg.si_mig"}
    assert "2 of " in results.notes[-1]
    calls.clear()
    lof.run("small", ["nas_cg"], " ".join)  # goes on where it was
    assert [case.initialise for case in calls[:1]] == ["published"]


# The mesh


@pytest.fixture(scope="module")
def matrix() -> object:
    return maxwell.make_matrix(maxwell.LEAST_UNKNOWNS)


def test_the_matrix_is_that_of_edge_elements(matrix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import scipy.io
    import scipy.sparse

    rows = matrix.shape[0]
    assert 0.8 * maxwell.LEAST_UNKNOWNS < rows < 1.1 * maxwell.LEAST_UNKNOWNS
    assert abs(matrix - matrix.T).max() == 0
    assert 13 < matrix.nnz / rows < 17  # the paper's 0.0009 % of 1.79 million are 16
    x = np.random.default_rng(5).normal(size=rows)
    assert x @ (matrix @ x) > 0
    path = tmp_path / "maxwell.mtx"
    maxwell.write_matrix(matrix, path)
    assert abs(scipy.io.mmread(path).tocsr() - matrix).max() < 1e-15
    assert [one.name for one in tmp_path.iterdir()] == ["maxwell.mtx"]


def test_numberings_keep_the_matrix(matrix) -> None:  # type: ignore[no-untyped-def]
    def bandwidth(one) -> int:  # type: ignore[no-untyped-def]
        entries = one.tocoo()
        return int(abs(entries.row - entries.col).max())

    x = np.ones(matrix.shape[0])
    whole = x @ (matrix @ x)
    found = {order: maxwell.reordered(matrix, order) for order in maxwell.ORDERS}
    for one in found.values():
        assert one.nnz == matrix.nnz
        assert x @ (one @ x) == pytest.approx(whole)
    assert bandwidth(found["rcm"]) < 0.5 * bandwidth(found["natural"])
    assert bandwidth(found["rcm"]) < 0.5 * bandwidth(found["random"])


def test_meshing_leaves_the_stack_limit_as_it_was() -> None:
    pytest.importorskip("gmsh")
    before = resource.getrlimit(resource.RLIMIT_STACK)
    maxwell.make_mesh(0.9)
    assert resource.getrlimit(resource.RLIMIT_STACK) == before


def test_the_smallest_mesh_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert maxwell.main(["--unknowns", "10", "nowhere.mtx"]) == 2
    assert capsys.readouterr().err == "maxwell: --unknowns 10: the aircraft needs at least 5000\n"


def test_a_matrix_that_cannot_be_written(matrix, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError):
        maxwell.write_matrix(matrix, tmp_path / "file" / "matrix.mtx")


def test_a_failing_program_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.sys, "executable", "/bin/false")
    program = runs.Program("none", (), 1)
    with pytest.raises(UserError, match=r"none --iterations 1 .* ended with 1"):
        runs.run_case(Case("i_cg"), program, tmp_path, lambda text: None)


# I-MG kept otherwise, accidents of addresses, and threads


def test_i_mg_with_vertices_is_made_of_the_one_with_areas() -> None:
    folder = TREE / "apps" / "lof"
    grids, cycle = ((folder / f"euler_{one}.f90").read_text() for one in ("levels", "multigrid"))
    assert "area" not in lean.levels(grids, bare=False).replace("areas", "").replace("area(3)", "").replace(
        "result(area)", ""
    ).replace("area = ", "").replace("area vector", "").replace("Areas", "")
    for bare, wide in ((False, False), (True, False), (True, True)):
        made = lean.multigrid(cycle, bare, wide)
        assert made.count("pure function face_k") == 2
        assert made.count("n /= level(1)%n") == 2 * bare
        assert made.count("pure function at_face") == 2 * wide
    with pytest.raises(UserError, match="has changed"):
        lean.levels(grids.replace("k2 = 2*k", "k2 = k + k"), bare=False)


def test_a_run_whose_addresses_fell_unluckily_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    good = replace(outcome(0.1, "i_mg"), areas={"w": [980, 0]}, whole=Iteration([[1000]]))
    bad = replace(good, areas={"w": [900, 0]})
    assert (good.outside, bad.outside) == (pytest.approx(0.02), pytest.approx(0.1))
    made = iter([bad, bad, good])
    monkeypatch.setattr(runs, "_run_once", lambda *_: next(made))
    program = SIZES["medium"].programs["i_mg"]
    assert runs.run_case(Case("i_mg"), program, Path(), print) is good
    made = iter([bad])
    assert runs.run_case(Case("i_cg"), SIZES["medium"].programs["i_cg"], Path(), print) is bad


def test_what_migration_takes_by_threads_stands_beside_the_paper() -> None:
    rows, text = threads.table({"nas_mg": {4: 0.2, 12: 0.18}})
    ratio = next(row for row in rows if row.name == "table3.nas_mg.measured.ratio")
    assert (ratio.value, ratio.paper) == (pytest.approx(0.9), pytest.approx(2.52 / 2.77))
    assert "0.90 (0.91)" in text
    # 1.5 s more in the first iteration, of which .5 without homing.
    assert threads._excess([[2.0, 0.5], [3.0, 0.6]]) - threads._excess([[1.0, 0.5]]) == pytest.approx(1.0)


def test_replicas_are_of_pages_that_the_daemon_has_looked_at() -> None:
    found = papers_outcomes()
    remote, kept = (outcome(share, "i_mg").iterations[:1] * 10 for share in (0.4, 0.0))
    found["i_mg"]["wildfire_daemon"] = replace(outcome(0.4, "i_mg", 0.5), iterations=remote)
    found["i_mg"]["wildfire_daemon_replicated"] = replace(outcome(0.0, "i_mg", 0.5), iterations=kept)
    rows = {row.name: row.value for row in Tables(found).fill().rows}
    share = paper.daemon_share("i_mg")  # a ninth of the pages in an iteration
    assert rows["figure3b.i_mg.replicated.remote"] == pytest.approx(0.4 * max(0.0, 1 - 9 * share), abs=1e-3)
    assert rows["figure3b.i_mg.si_tmig.active"] >= 8
