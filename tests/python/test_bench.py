"""homing bench and the demo without a guest: what is computed, what is kept, and what is refused."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing import cli, demo
from homing.bench import belief, overhead, places, sampling, scale
from homing.bench.guest_runs import LAST_HALF, Outcome, describe, outcome
from homing.bench.places import find_bench_program, find_program
from homing.bench.programs import parse_output
from homing.bench.progress import Progress
from homing.bench.results import Check, Parts, Results, Row, write
from homing.errors import UserError
from homing.installation import find_library
from homing.lab.counts import parse
from homing.lab.errors import LabError
from homing.lab.steps import Step, StepResult
from homing.records import Record, parse_record
from tests.python.record_writer import RecordWriter

OUTPUT = """\
program: cg
bytes: 6408828
time initialisation: 3.476779 s
iterations: 3
time iterations from 1: 1.5 0.5 0.25
time iteration least, median, most: 0.25 0.5 1.5 s
time total: 2.250000 s
result zeta: 10.362595087045165
verification: successful
"""


# What programs print


def test_a_programs_output_is_read() -> None:
    output = parse_output(OUTPUT)
    assert output.bytes == 6408828
    assert output.count == 3
    assert output.median == 0.5
    assert output.initialisation == 3.476779
    assert output.total == 2.25
    assert output.results == {"result zeta": "10.362595087045165"}
    assert output.verification == "successful"


def test_output_of_another_program_has_no_numbers() -> None:
    output = parse_output("Segmentation fault\n")
    assert output.count == 0
    assert math.isnan(output.median)
    assert math.isnan(output.total)
    assert output.verification == ""


@pytest.mark.parametrize(
    ("find", "variable"), [(find_program, "HOMING_APPS"), (find_bench_program, "HOMING_BENCH_PROGRAMS")]
)
def test_programs_are_found_where_the_user_says(
    find: Any, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(UserError, match=f"no such program: build it.*{variable}"):
        find("mine")
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    with pytest.raises(UserError):
        find("mine")  # cannot be executed
    (tmp_path / "mine").chmod(0o755)
    assert find("mine") == str(tmp_path / "mine")


# Runs in the guest

COUNTS = {
    "version": 1,
    "machine": {"nodes": 2, "cpus": 2, "cpus_per_node": 1},
    "cache": {"kib": 64, "ways": 16, "line": 64, "coherent": True},
    "self_test": {"nodes_verified": 2, "mismatches": 0},
    "pages": 10,
    "phases": [
        {
            "phase": phase,
            "accesses": 1000,
            "misses": [[10, 30], [0, 60]],
            "unknown_home_misses": 0,
            "invalidation_misses": 0,
            "upgrades": 0,
            "untracked_misses": 0,
            "run_oracle_remote": 5,
        }
        for phase in (0, 1, 2, 3)
    ],
    "oracle": [
        {"first_phase": 3, "last_phase": 3, "misses": 100, "remote": 4},
        {"first_phase": 1, "last_phase": 3, "misses": 300, "remote": 14},
    ],
}


def step_result(status: int = 0, stdout: str = OUTPUT, timed_out: bool = False) -> StepResult:
    return StepResult(
        Step(command=["cg"], label="none"),
        status,
        stdout.encode(),
        b"why",
        9.0,
        timed_out,
        parse(json.dumps(COUNTS)),
    )


def test_an_outcome_leaves_out_what_is_not_the_run() -> None:
    found = outcome(step_result(), None, {"numa_balancing": 1})
    assert found.misses == {1: 100, 2: 100, 3: 100}  # phase 0 is not in it
    assert found.remote_misses() == 90
    assert found.remote_fraction(LAST_HALF) == pytest.approx(0.3)
    assert found.oracle_remote == 14
    assert found.oracle_last_half == pytest.approx(0.04)
    assert found.oracle_fraction() == pytest.approx(14 / 300)
    assert Outcome.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (step_result(139), "none: cg ended with 139, verification successful: why"),
        (step_result(137, timed_out=True), "was stopped at its time limit"),
        (step_result(0, OUTPUT.replace("successful", "failed")), "verification failed"),
        (step_result(0, "hello"), "cg ended with 0"),
    ],
)
def test_a_run_that_failed_is_no_outcome(result: StepResult, message: str) -> None:
    with pytest.raises(LabError, match=message):
        outcome(result, None, {})


def record(**tables: list[dict[str, Any]]) -> Record:
    """A record with the rows given."""
    writer = RecordWriter()
    for name, entries in tables.items():
        for entry in entries:
            writer.row(name, **entry)
    return parse_record(writer.bytes(), "r")


def iterations(*regions: int) -> list[dict[str, Any]]:
    return [
        {
            "number": number + 1,
            "time": float(number),
            "seconds": 1.0,
            "regions": count,
            "state": 2,
            "basis": 1,
            "references": 0,
            "moved": 0,
            "overhead_seconds": 0.0,
        }
        for number, count in enumerate(regions)
    ]


def move(time: float, moved: int, area: int = 1) -> dict[str, Any]:
    return {
        "area": area,
        "time": time,
        "wanted": moved,
        "moved": moved,
        "refused": 0,
        "bytes": 4096 * moved,
        "seconds": 0.0,
        "longest_call_seconds": 0.0,
        "calls": 1,
    }


END = {
    "time": 9.0,
    "parallel_seconds": 9.0,
    "iterations": 8,
    "settled_at": 6,
    "period": 105,
    "live_areas": 1,
    "dropped_areas": 0,
}


def guard(time: float, permitted: int, area: int = 1) -> dict[str, Any]:
    return {
        "area": area,
        "iteration": 1,
        "time": time,
        "remote_ns": 1.0,
        "move_ns": 1.0,
        "permitted": permitted,
    }


def test_settling_is_counted_from_the_outermost_period_and_the_guard() -> None:
    # Iterations 0..1 are an inner period; the outermost one is known from 2.0 on; the guard permits at 4.0.
    rows = {
        "iteration": iterations(4, 4, 105, 105, 105, 105, 105, 105),
        "guard": [guard(3.0, 0), guard(4.0, 1)],
        "end": [END],
    }
    at_once = describe(record(**rows, move=[move(4.0, 1000)]))
    assert at_once["last_move_after"] == 0
    later = describe(record(**rows, move=[move(4.0, 1000), move(6.5, 500)]))
    assert later["last_move_after"] == 2
    assert later["moved"] == 1500
    trickle = describe(record(**rows, move=[move(4.0, 1000), move(7.5, 5)]))
    assert trickle["last_move_after"] == 0  # less than a hundredth of all


def test_settling_is_that_of_the_last_area_from_its_own_permission_on() -> None:
    rows = {
        "iteration": iterations(*[105] * 8),
        "guard": [guard(1.5, 1, area=1), guard(3.5, 1, area=2)],
        "end": [END],
    }
    both = describe(record(**rows, move=[move(1.5, 1000, area=1), move(3.5, 1000, area=2)]))
    assert both["settled_after"] == 0
    first = [move(1.5, 500, area=1), move(3.6, 500, area=1)]
    slow = describe(record(**rows, move=[*first, move(3.5, 1, area=2)]))
    assert slow["settled_after"] == 2
    assert slow["known_at"] == 1


def test_a_run_without_moves_settles_at_once() -> None:
    assert describe(record(iteration=iterations(105), end=[END]))["last_move_after"] == 0
    assert describe(record())["moved"] == 0


# Overhead


def test_runs_of_a_pair_take_turns_and_pay_for_their_own(tmp_path: Path) -> None:
    work = "import sys, time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    command = [sys.executable, "-c", work]
    (tmp_path / "record").write_text("of an earlier run")
    begin = time.perf_counter()
    pair = overhead.measure_pair(command, find_library(), {"HOMING": "off"}, str(tmp_path), 0)
    elapsed = time.perf_counter() - begin
    assert set(pair) == set(overhead.KINDS)
    assert min(pair["cpu"]) >= 0.2
    assert min(pair["wall"]) >= 0.2
    assert sum(pair["wall"]) <= elapsed, "what one does while the other is stopped is not there"
    assert not (tmp_path / "record").exists(), "no run pays for the removal of an earlier one's record"


def test_a_run_that_fails_ends_the_pair(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no such thing >&2; exit 3"]
    with pytest.raises(UserError, match="ended with 3: no such thing"):
        overhead.measure_pair(command, find_library(), {"HOMING": "off"}, str(tmp_path), 1)


# Overhead and sampling


def test_the_bound_is_over_the_median_and_shrinks_with_pairs() -> None:
    random = np.random.default_rng(7)
    few, many = random.normal(1.0, 0.02, 10), random.normal(1.0, 0.02, 1000)
    for ratios in (few, many):
        median, bound = overhead.upper_bound(list(ratios))
        assert median == pytest.approx(float(np.median(ratios)))
        assert bound >= median
    assert overhead.upper_bound(list(many))[1] - 1 < 0.005
    assert overhead.upper_bound([1.25] * 30) == (1.25, 1.25)


def test_the_bound_holds_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    held = sum(
        overhead.upper_bound(list(random.normal(1.0, 0.05, 30)), seed)[1] >= 1.0 for seed in range(200)
    )
    assert 0.88 <= held / 200 <= 1.0


def test_regions_are_taken_from_the_second_half() -> None:
    assert overhead.settled_ns("ns 9000 9000 9000 100 110 120\n") == 110
    with pytest.raises(UserError):
        overhead.settled_ns("nothing\n")


def test_overheads_rows_are_those_promised() -> None:
    results = Results("overhead", "", "")
    pair = {kind: [2.0, 2.02] for kind in overhead.KINDS}
    overhead._ratio_rows(results, "aside.cg", [pair] * 30)
    overhead._ratio_rows(results, "working.cg", [pair] * 30)
    for name in overhead.REGIONS:
        overhead._region_rows(results, name, [[1000.0, 1150.0]] * 5)
    for name in overhead.BLOCKS:
        overhead._block_rows(results, name, [0.4, 0.5, 1.2])
    overhead._deciding_rows(results, "deciding.arrays", [0.001, 0.004, 0.005])
    overhead._searching(results)
    rows = {row.name: row.value for row in results.rows}
    assert rows["aside.cg"] == pytest.approx(1.01)
    assert rows["region.searching"] == 150
    assert rows["blocks.replaced"] == 0.5
    passed = {check.name.split(":")[0]: check.passed for check in results.checks}
    assert passed["working.cg"] and passed["region.libgomp"] and not passed["region.libomp"]
    assert passed["blocks.replaced"] and not passed["deciding.arrays"]


def test_the_beliefs_checks_tell_a_learner_that_is_behind() -> None:
    """The learner of 0.1.0: after 8 touches 12.75 % of a block right, after 100 98.26 %, and 1.66 % wrong."""
    entry = {"touches": 8, "right": 99.5, "wrong": 0.1, "harm": 0.0}
    data = {"areas": 24, "patterns": {"block": [entry, {**entry, "touches": 100}]}}
    results = Results("sampling", "", "")
    belief.touches(results, data)
    rows = {row.name: row.value for row in results.rows}
    assert rows["touches.block.8.right"] == pytest.approx(0.995)
    assert rows["touches.block.8.old_right"] == pytest.approx(0.1275)
    assert rows["touches.block.100.old_wrong"] == pytest.approx(0.0166)
    assert all(check.passed for check in results.checks)
    assert "99.5/0.1" in results.texts[0] and "98.3/1.7" in results.texts[0]
    for right, behind in ((96.2, False), (96.1, True)):
        data["patterns"]["block"][1].update(right=right)  # type: ignore[index]
        results = Results("sampling", "", "")
        belief.touches(results, data)
        assert [check.text for check in results.checks if not check.passed] == ["block at 100"] * behind
    data["patterns"]["block"][0].update(right=90.0, harm=0.6)  # type: ignore[index]
    results = Results("sampling", "", "")
    belief.touches(results, data)
    assert not any(check.passed for check in results.checks)
    ways = {"ways": {"worth": {"200": [0.89, 0.8]}}, "programs": 3}
    belief.areas(results, ways)
    assert results.rows[-1].name == "areas.worth.200" and not results.checks[-1].passed


def test_the_learner_of_0_1_0_is_known_wherever_the_model_is_measured() -> None:
    """For both sizes of the benchmark, with what benchmarks/belief.cpp prints."""
    measured = json.loads(subprocess.run([find_bench_program("belief"), "1"], stdout=subprocess.PIPE).stdout)
    for areas, _ in sampling.MODEL_SIZES.values():
        found = belief.with_old_learner(measured["patterns"], int(areas))
        assert found["block"][-1]["touches"] == 100 and 98 < found["block"][-1]["old_right"] < 99


def test_a_large_machines_memory_is_held_against_what_the_program_has() -> None:
    """A terabyte in a few iterations, by the program that is measured."""
    part = scale.Part(1 << 40, 8, "base", "found", "a terabyte")
    data = scale.measure(part, 3)
    assert data["threads"] == 1024 and data["areas"] == 8 and len(data["own_seconds"]) == 3
    assert data["references"] > 0 and data["right"] == 1.0
    results = Results("scale", "", "")
    scale.add_rows(results, "found", {**data, "bytes": 10 << 40, "resident_bytes": 1 << 30})
    assert results.checks[0].passed
    scale.add_rows(results, "many", {**data, "bytes": 10 << 40, "resident_bytes": (1 << 30) + (1 << 21)})
    assert not results.checks[3].passed


# Results and parts


def test_results_are_written_for_programs_and_for_people(tmp_path: Path) -> None:
    results = Results("demo", "A title", "homing bench demo", [Row("a.b", 0.5, "ratio", "why")])
    results.checks.append(Check("a: at most 1", False, "0.5"))
    results.rows.append(Row("c", math.nan, "ratio"))  # a last half without misses
    results.details["cases"] = [{"oracle_last_half": math.nan}]
    json_path, text_path = write(results, tmp_path / "new")
    assert "NaN" not in json_path.read_text()
    data = json.loads(json_path.read_text())
    assert data["rows"][0] == {"name": "a.b", "value": 0.5, "unit": "ratio", "note": "why"}
    assert data["rows"][1]["value"] is None and data["details"]["cases"] == [{"oracle_last_half": None}]
    assert data["command"] == "homing bench demo"
    assert data["machine"]["cpus"] >= 1
    assert data["checks"][0]["passed"] is False
    text = text_path.read_text()
    assert "| a.b | 0.5 | ratio | why |" in text
    assert "paper" not in text
    assert "**no**" in text
    assert not list(tmp_path.glob("**/*.part"))


def test_results_stand_beside_the_papers(tmp_path: Path) -> None:
    rows = [Row("a", 0.5, "s"), Row("b", 2, "s", "", 0.25)]
    results = Results("demo", "A title", "homing bench demo", rows)
    results.texts.append("a table")
    results.pictures["figure1"] = b"png"
    json_path, text_path = write(results, tmp_path)
    assert [row.get("paper") for row in json.loads(json_path.read_text())["rows"]] == [None, 0.25]
    text = text_path.read_text()
    assert "| a | 0.5 |  | s |\n| b | 2 | 0.25 | s |" in text
    assert "```\na table\n```" in text
    assert "![figure1](demo_figure1.png)" in text
    assert (tmp_path / "demo_figure1.png").read_bytes() == b"png"


def test_results_cannot_go_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError):
        write(Results("x", "x", "x"), tmp_path / "file")


def test_parts_go_on_under_the_same_key_only(tmp_path: Path) -> None:
    path = tmp_path / "parts" / "x.json"
    Parts(path, {"size": "small"}).put("cg", [1, 2])
    assert Parts(path, {"size": "small"}).get("cg") == [1, 2]
    assert Parts(path, {"size": "full"}).get("cg") is None
    for damaged in ("", "[]", '{"key": {"size": "small"}}', "{"):
        path.write_text(damaged)
        assert Parts(path, {"size": "small"}).get("cg") is None


def test_parts_that_several_threads_keep_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    parts, names = Parts(path, {}), [str(one) for one in range(100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: parts.put(name, [name] * 50), names))
    assert sorted(Parts(path, {}).names()) == sorted(names)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_progress_says_how_long_it_still_takes() -> None:
    file = io.StringIO()
    progress = Progress("bench", [1.0, 1.0, 2.0], file)
    progress.step("one")
    assert progress.seconds_left is None
    progress.finished(skipped=True)
    assert progress.seconds_left is None  # what was kept took no time
    progress._begin -= 10
    progress.finished()
    left = progress.seconds_left
    assert left is not None
    assert left == pytest.approx(20, rel=0.1)
    progress.step("three")
    assert file.getvalue().splitlines()[-1] == "bench: 3/3 three, 20 s left"


# The command


def test_the_list_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "convergence",
        "patterns",
        "foreign",
        "sampling",
        "chapman",
        "treadmarks",
        "overhead",
        "launcher",
        "scale",
        "report",
        "simulator_speed",
        "agreement",
        "lof",
        "upmlib",
        "tasks",
        "wittmann",
        "wittmann_why",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["sampling", "--size", "huge"],
        ["sampling", "--only", "nonsense"],
        ["overhead", "--only", "nonsense"],
        ["scale", "--only", "nonsense"],
        ["convergence", "--only", "nonsense"],
        ["lof", "--size", "full"],
        ["sampling", "--size", "paper"],
        ["lof", "--only", "nonsense"],
    ],
)
def test_mistakes_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        library = tmp_path / "libhoming.so"
        library.write_bytes(b"")
        patch.setenv("HOMING_LIBRARY", str(library))
        assert cli.main(["bench", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("homing bench: ")


def test_results_go_into_the_source_tree_or_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))
    tree = Path(__file__).resolve().parents[2]
    assert places.results_folder() == tree / "benchmarks" / "results"
    assert places.kept_folder() == tree / "build" / "bench"
    monkeypatch.setattr(places, "source_tree", lambda: None)
    assert places.results_folder() == tmp_path
    assert places.kept_folder() == tmp_path / "cache" / "bench"
    monkeypatch.setattr(places, "PACKAGE", str(tmp_path / "homing"))
    with pytest.raises(UserError, match="apps is missing"):
        places.sources_folder()


# The demo


def rows(serial: float, homed: float, parallel: float, oracle: float) -> list[demo.DemoRow]:
    values = {"serial": serial, "homing": homed, "parallel": parallel, "oracle": oracle}
    return [demo.DemoRow(name, name, value, value) for name, value in values.items()]


@pytest.mark.parametrize(
    ("values", "passed"),
    [
        ((0.74, 0.048, 0.038, 0.023), True),
        ((0.70, 0.048, 0.038, 0.023), False),
        ((0.74, 0.054, 0.038, 0.023), False),
        ((0.74, 0.048, 0.038, math.nan), True),
        ((0.74, 0.069, 0.038, math.nan), False),
        ((0.74, math.nan, 0.038, 0.023), False),
    ],
)
def test_the_demos_verdict(values: tuple[float, float, float, float], passed: bool) -> None:
    assert demo.verdict(rows(*values))[0] is passed


def test_the_demos_file(tmp_path: Path) -> None:
    path = tmp_path / "build" / "demo.json"
    demo.write_rows(rows(0.74, 0.048, 0.038, math.nan), path, ["cg"], "here", True)
    data = json.loads(path.read_text())
    assert [row["name"] for row in data["rows"]] == ["serial", "homing", "parallel", "oracle"]
    assert [row["remote_fraction"] for row in data["rows"]] == [0.74, 0.048, 0.038, None]


def test_pairs_are_taken_until_the_median_is_known() -> None:
    def pairs(*ratios: float) -> list[dict[str, list[float]]]:
        return [{"wall": [2.0, 2.0 * ratio]} for ratio in ratios]

    assert overhead.narrow(pairs(*[1.3] * 30))
    assert not overhead.narrow(pairs(*[0.9, 0.9, 1.1, 1.1] * 15))


def test_who_begins_does_not_count() -> None:
    pairs = [{"wall": [2.0, 2.0 * 1.02 * bias]} for bias in (1.01, 1 / 1.01, 1.01, 1 / 1.01, 1.01)]
    assert overhead.paired_ratios(pairs, "wall") == pytest.approx([1.02, 1.02])


def test_a_python_that_runs_homing_is_told_where_it_is() -> None:
    """An installed copy is on no path of its own."""
    folder = Path(demo.__file__).parent
    starts = re.compile(r'sys\.executable\)?,? *(\n *)?"-[mc]",\s*("homing|_IMPORTS)')
    sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    starting = [path for path, text in sources.items() if starts.search(text)]
    assert len(starting) > 10
    assert [path.name for path in starting if "python_path()" not in sources[path]] == []
