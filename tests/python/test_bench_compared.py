"""homing bench patterns and foreign without a guest: steps, rows, what is required, and files of programs."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from homing.bench import compared, foreign, patterns
from homing.bench.balancing import FIRST, SCANNED, SCANNED_FIRST
from homing.bench.compared import BALANCING, PLAIN, WAYS, Case, Comparison, Required
from homing.bench.guest_runs import Outcome
from homing.bench.programs import Output
from homing.bench.results import Parts, Results
from homing.errors import UserError
from homing.lab.built import find_built
from homing.lab.errors import LabError
from homing.lab.steps import Step, StepResult
from tests.patience import PATIENCE
from tests.python.test_apps import program

RATE = {SCANNED: 1.0, SCANNED_FIRST: 1.0, FIRST: 12, "scan_size_mb": 1, "scan_period_min_ms": 100}
REQUIRED = {"windows": Required((1, 2), (1, 2)), "hint_faults": Required((1, 1), (1, 1))}


def made(whole: float, last: float, oracle: float = 0.02, result: str = "7", **settings: Any) -> Outcome:
    """An outcome with 1,000,000 misses in each half, of which these shares are remote."""
    remote = {1: 0, 2: round((2 * whole - last) * 1e6), 3: round(last * 1e6)}
    fields = {
        "bytes": "8388608",
        "iterations": "160",
        "time total": "16.0 s",
        "time iteration least, median, most": "0.1 0.1 0.1 s",
        "result checksum": result,
    }
    misses = {1: 0, 2: 1_000_000, 3: 1_000_000}
    oracle_remote = round(oracle * 2e6)
    return Outcome("x", ["x"], misses, remote, oracle_remote, oracle, Output(fields), 16.0, settings)


def comparison(**changed: Outcome) -> Comparison:
    """Two programs that homing serves well; of the second, runs are changed."""
    cases = [Case("one.serial", "one", ("one",)), Case("two.serial", "two", ("two",))]
    runs = {
        PLAIN: made(0.7, 0.75),
        "windows": made(0.1, 0.03),
        "hint_faults": made(0.08, 0.02),
        BALANCING: made(0.12, 0.03, **RATE),
        "balancing_0.1": made(0.3, 0.1, **RATE),
        "balancing_10": made(0.05, 0.02, **RATE),
    }
    return Comparison(
        cases,
        {
            **{("one.serial", way): [outcome] for way, outcome in runs.items()},
            **{("two.serial", way): [outcome] for way, outcome in (runs | changed).items()},
        },
    )


def filled(compared_: Comparison) -> Results:
    results = Results("x", "x", "x")
    compared.fill(results, compared_, REQUIRED)
    return results


def failed(**changed: Outcome) -> list[str]:
    return [check.name for check in filled(comparison(**changed)).checks if not check.passed]


def test_every_way_has_a_row_for_the_run_and_one_for_its_last_half() -> None:
    rows = {row.name: row.value for row in filled(comparison()).rows}
    for way in (*WAYS, "oracle"):
        assert {f"one.serial.{way}", f"one.serial.{way}.last_half"} <= set(rows)
    assert rows["one.serial.plain"] == pytest.approx(0.7)
    assert rows["one.serial.plain.last_half"] == pytest.approx(0.75)
    assert rows["one.serial.oracle"] == pytest.approx(0.02)
    assert failed() == []


def test_the_table_shows_what_was_measured_and_no_more() -> None:
    some = comparison()
    del some.runs["two.serial", "windows"]
    head, one, two = filled(some).texts[0].splitlines()
    assert head.split()[-2:] == ["windows", "hint_faults"]
    assert " ".join(one.split()) == "one.serial 70.0 75.0 2.0 2.0 30.0 10.0 12.0 3.0 5.0 2.0 10.0 3.0 8.0 2.0"
    assert two.split()[-3:] == ["-", "8.0", "2.0"]


def test_a_share_of_the_programs_has_to_be_near_the_oracle() -> None:
    assert failed(windows=made(0.1, 0.06)) == [], "one of two is enough for windows"
    far = failed(hint_faults=made(0.1, 0.06))
    assert far == [
        "hint_faults: last half within 3 points of the oracle, where that is 10 points below plain"
    ]


def test_a_share_of_the_programs_has_to_be_no_worse_than_balancing() -> None:
    assert failed(windows=made(0.13, 0.03)) == []
    assert failed(hint_faults=made(0.13, 0.03)) == [
        f"hint_faults: the whole run no worse than under {BALANCING}"
    ]


def test_harm_and_other_results_are_seen_in_any_program() -> None:
    good = made(0.02, 0.02)
    assert failed(plain=good, windows=made(0.0209, 0.02), hint_faults=good) == []
    harm = failed(plain=good, windows=made(0.0211, 0.02), hint_faults=good)
    assert harm == ["windows: no harm (at most 1 % more remote misses than plain, or 0.1 % of all)"]
    assert failed(windows=made(0.1, 0.03, result="8")) == ["same results in all runs"]


def test_programs_that_gain_nothing_need_not_be_near_the_oracle() -> None:
    some = comparison(plain=made(0.1, 0.1), hint_faults=made(0.09, 0.09))
    assert not [check for check in filled(some).checks if "oracle" in check.name and not check.passed]


def test_misses_of_homing_itself_do_not_make_it_look_better() -> None:
    crowd = made(0.2, 0.04)
    crowd.misses = {phase: 2 * count for phase, count in crowd.misses.items()}
    assert crowd.remote_fraction() == pytest.approx(0.1)
    assert failed(hint_faults=crowd) == [f"hint_faults: the whole run no worse than under {BALANCING}"]


class FakeRuns:
    """Runs nothing, and says what it was asked for."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcome]]) -> None:
        self.outcomes = {name: list(turns) for name, turns in outcomes.items()}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.booted = 0

    def run(self, name: str, command: Sequence[str], **more: Any) -> Outcome:
        self.asked.append((name, {"command": list(command), **more}))
        turns = self.outcomes.get(name, [made(0.5, 0.5)])
        return turns.pop(0) if len(turns) > 1 else turns[0]

    def vmstat(self, name: str) -> int:
        return 0

    @contextlib.contextmanager
    def boot(self) -> Iterator[FakeRuns]:
        self.booted += 1
        yield self


def measured(runs: FakeRuns, tmp_path: Path, ways: Sequence[str] = WAYS, library: str = "l") -> Comparison:
    path = tmp_path / "program"
    path.touch()
    some = Comparison([Case("one.serial", "one", (str(path), "--iterations", "99"))])
    parts = Parts(tmp_path / "parts.json", {})
    compared.measure("test", some, lambda _case, way: way in ways, parts, library, runs.boot)
    return some


def test_what_was_measured_is_kept_but_not_for_another_library(tmp_path: Path) -> None:
    runs = FakeRuns({})
    measured(runs, tmp_path)
    assert runs.booted == 1
    again = FakeRuns({})
    assert set(measured(again, tmp_path).runs) == {("one.serial", way) for way in WAYS}
    assert again.booted == 0
    other = FakeRuns({})
    measured(other, tmp_path, library="another")
    assert {name for name, _ in other.asked} == {"one.serial.windows", "one.serial.hint_faults"}


def test_only_ways_that_are_wanted_are_measured_and_what_they_depend_on(tmp_path: Path) -> None:
    runs = FakeRuns({})
    measured(runs, tmp_path, ["hint_faults"])
    assert {name.partition(".")[2] for name, _ in runs.asked} == {
        f"serial.{way}" for way in (PLAIN, BALANCING, "hint_faults")
    }
    homing = [more["homing"] for name, more in runs.asked if name.endswith("hint_faults")]
    assert homing == [{"HOMING_REFERENCES": "hint-faults"}]
    shortened = [more["command"][-1] for name, more in runs.asked if name.endswith(BALANCING)]
    assert shortened[-1] == "99" and set(shortened[:-1]) == {"12"}


def test_knobs_may_be_those_of_another_case(tmp_path: Path) -> None:
    words = (str(tmp_path / "program"), "--iterations", "99")
    Path(words[0]).touch()
    serial, parallel = Case("a.serial", "a", words), Case("a.parallel", "a", words, knobs_from="a.serial")
    runs = FakeRuns({"a.serial.balancing_1": [made(0.1, 0.1, numa_balancing=1, scan_size_mb=3)]})
    some, parts = Comparison([serial, parallel]), Parts(tmp_path / "parts.json", {})
    compared.measure(
        "test", some, lambda case, way: (case, way) == (parallel, "hint_faults"), parts, "l", runs.boot
    )
    asked = dict(runs.asked)
    assert set(asked) == {
        "a.serial.plain",
        "a.serial.balancing_1",
        "a.parallel.plain",
        "a.parallel.hint_faults",
    }
    assert asked["a.parallel.hint_faults"]["scan_size_mb"] == 3


def test_runs_are_repeated_while_harm_is_unclear(tmp_path: Path) -> None:
    worse = FakeRuns({"one.serial.windows": [made(0.504, 0.5), made(0.504, 0.5), made(0.5, 0.5)]})
    some = measured(worse, tmp_path, ["windows"])
    assert len(some.runs["one.serial", "windows"]) == 5
    assert some.harm(some.cases[0], "windows") == pytest.approx(0.0)
    clear = measured(FakeRuns({"one.serial.windows": [made(0.6, 0.6)]}), tmp_path, ["windows"], "other")
    assert len(clear.runs["one.serial", "windows"]) == 1


def test_patterns_have_both_initialisations_of_every_program() -> None:
    cases = patterns.cases_of(list(patterns.PATTERNS), "small")
    assert [case.name for case in cases[:2]] == ["block.serial", "block.parallel"]
    assert all(case.command[-1] == case.name.rpartition(".")[2] for case in cases)
    assert {os.path.basename(case.command[0]).rpartition("_")[0] for case in cases} == {
        path.name.rpartition("_")[0] for path in Path(cases[0].command[0]).parent.glob("pattern_*")
    }


# Files of programs

PROGRAM = 'name = "x"\ncommand = ["./run.sh", "-n", "3"]\niterations = 3\n'


def described(tmp_path: Path, text: str) -> list[foreign.Program]:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    path = tmp_path / "programs.toml"
    path.write_text(text)
    return foreign.read_programs(str(path))


def test_a_file_describes_programs(tmp_path: Path) -> None:
    more = 'first = ["./run.sh"]\nfirst_iterations = 2\nresults = "^Energy"\nthreads = 8\n'
    one, two = described(tmp_path, f"[[program]]\n{PROGRAM}[[program]]\n{PROGRAM.replace('x', 'y')}{more}")
    assert one.command == (str(tmp_path / "run.sh"), "-n", "3")
    assert (one.folder, one.threads, one.marks) == (str(tmp_path), 4, "regions")
    assert (two.first, two.first_iterations, two.threads) == ((str(tmp_path / "run.sh"),), 2, 8)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must have one or more tables [[program]]"),
        ("program = 3\n", "must have one or more tables [[program]]"),
        ("[[program]\n", "not TOML"),
        ("[[program]]\n", "program 1: name is missing"),
        (f"[[program]]\n{PROGRAM}[[program]]\n{PROGRAM}", "program 'x' is there twice"),
        (f"[[program]]\n{PROGRAM}thread = 4\n", "unknown key 'thread'"),
        (f"[[program]]\n{PROGRAM}threads = 6\n", "threads: must be a multiple of 4"),
        (f"[[program]]\n{PROGRAM}threads = true\n", "threads: wants a whole number"),
        (f"[[program]]\n{PROGRAM}first = ['./run.sh']\n", "first and first_iterations belong together"),
        (f"[[program]]\n{PROGRAM}marks = 'time'\n", "marks: must be regions or program"),
        (f"[[program]]\n{PROGRAM}results = '('\n", "results: not a regular expression"),
        (f"[[program]]\n{PROGRAM}folder = 'none'\n", "is not there"),
        (f"[[program]]\n{PROGRAM}environment = {{A = 1}}\n", "environment: wants names and texts"),
        (f"[[program]]\n{PROGRAM.replace('./run.sh', './no.sh')}", "./no.sh is no program that can be run"),
        (f"[[program]]\n{PROGRAM.replace('= 3', '= -3')}", "iterations: must not be negative"),
        (f"[[program]]\n{PROGRAM.replace('[', '[3, ')}", "command: wants a list of words"),
        (f"[[program]]\n{PROGRAM.replace('x', 'a b')}", "name: only letters"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        described(tmp_path, text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_benchmark_of_foreign_programs_wants_a_file() -> None:
    with pytest.raises(UserError, match="wants --programs FILE"):
        foreign.run("small", [], " ".join)


def test_a_foreign_program_is_read_like_one_of_ours(tmp_path: Path) -> None:
    (one,) = described(tmp_path, f"[[program]]\n{PROGRAM}results = '^Energy'\n")
    step = Step(command=list(one.command), label="x.plain")
    result = StepResult(step, 0, b"time 3 s\nEnergy 1.5\n", b"", 6.0, False, None)
    output = foreign.output_of(one, result, 3)
    assert (output.count, output.median, output.total) == (3, 2.0, 6.0)
    assert output.results == {"result 1": "Energy 1.5"}
    with pytest.raises(LabError, match=r"x\.plain: .* ended with 3: oh"):
        foreign.output_of(one, StepResult(step, 3, b"", b"oh\n", 6.0, False, None), 3)


def test_what_a_foreign_program_preloads_itself_stays(tmp_path: Path) -> None:
    more = 'environment = { LD_PRELOAD = "/own.so", A = "b" }\n'
    (one,) = described(tmp_path, f"[[program]]\n{PROGRAM}{more}")
    assert foreign._environment(one, {}) == {"LD_PRELOAD": "/own.so", "A": "b", "OMP_NUM_THREADS": "4"}
    marked = foreign._environment(one, {"HOMING_MARK_REGIONS": "file"})
    assert marked["LD_PRELOAD"].split() == [str(find_built("libhoming_region_marks.so")), "/own.so"]


@pytest.mark.parametrize("name", ["block", "dynamic"])
def test_parallel_regions_of_a_foreign_program_are_counted(tmp_path: Path, name: str) -> None:
    counted = tmp_path / "regions"
    environment = dict(
        os.environ,
        LD_PRELOAD=str(find_built("libhoming_region_marks.so")),
        HOMING_MARK_REGIONS=str(counted),
        OMP_NUM_THREADS="2",
        OMP_WAIT_POLICY="passive",
    )
    command = [str(program(f"pattern_{name}", "gcc")), "--size", "1M", "--iterations", "7"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    assert counted.read_text() == "14\n"
