"""OpenMP tasks with the affinity clause, with and without `--tasks affinity`: same output, same exit status,
and hints that are honoured, or left to the runtime for the reason that there is.

The modes of tests/programs/affinity.c follow the topics of the specification. Two domains are pretended, and
the pages of all arrays dealt out over both, so that tasks really go to and fro.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homing.records import Record, TaskHints
from tests.patience import PATIENCE
from tests.programs.build import CannotBuild, build
from tests.python.test_programs import LIBRARY, TREE, Outcome, environment, records, run

#: Modes and the reasons for which some of their hints are left to the runtime.
MODES: dict[str, set[str]] = {
    "task": set(),
    "taskwait": set(),
    "taskgroup": set(),
    "depend": {"depend"},
    "taskloop": set(),
    "reduction": set(),
    "cancel": set(),
    "detach": {"detach"},
    "priority": {"priority"},
    "final": {"final"},
    "if0": {"if(0)"},
    "untied": set(),
    "private": set(),
    "nested": {"team of one"},
    "tree": set(),
    "full": set(),
    "producers": set(),
    "orphans": set(),
    "fork": set(),
    "iterator": set(),
    "unmapped": {"no home"},
    "locks": set(),
    "serial": {"team of one"},
}
NONE_HONOURED = {"unmapped", "serial"}
AFFINITY = {"HOMING_TASKS": "affinity", "HOMING_ASSUME_NODES": "2", "HOMING_INITIAL": "random"}


def program(name: str, variant: str) -> Path:
    try:
        return build(name, variant)
    except CannotBuild as error:
        pytest.skip(str(error)) if str(error).startswith("no ") else pytest.fail(str(error))


def with_homing(command: list[str | Path], folder: Path, **more: str) -> tuple[Outcome, list[Record]]:
    extra = {"LD_PRELOAD": str(LIBRARY), "HOMING_RECORD": str(folder / "%p.homing"), **AFFINITY, **more}
    outcome, said = run(command, extra, folder)
    assert said == "", said
    return outcome, records(folder)


def hints_of(found: list[Record]) -> TaskHints:
    """Of the process that gave the most hints."""
    hints = [one.task_hints for one in found]
    return max((one for one in hints if one is not None), key=lambda one: one.given)


@pytest.mark.parametrize("mode", MODES)
def test_a_topic_with_and_without(mode: str, tmp_path: Path) -> None:
    path = program("affinity", "clang")
    alone, _ = run([path, mode], {}, tmp_path)
    assert alone.status == 0, alone
    outcome, found = with_homing([path, mode], tmp_path)
    assert outcome == alone
    hints = hints_of(found)
    assert hints.given > 0
    assert hints.honoured + sum(hints.left.values()) == hints.given, hints
    assert set(hints.left) == MODES[mode], hints
    assert (hints.honoured == 0) == (mode in NONE_HONOURED), hints
    # Every task that was honoured was submitted; a fork's child has its own life.
    assert hints.at_home + hints.elsewhere == hints.honoured, hints


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variant", ["clang", "clang-O3", "clang-stripped", "clang-nopie"])
@pytest.mark.parametrize("threads", ["2", "7"])
def test_topics_by_builds_and_threads(mode: str, variant: str, threads: str, tmp_path: Path) -> None:
    path = program("affinity", variant)
    alone, _ = run([path, mode], {"OMP_NUM_THREADS": threads}, tmp_path)
    outcome, found = with_homing(
        [path, mode], tmp_path, OMP_NUM_THREADS=threads, HOMING_REFERENCES="windows", HOMING_OBSERVE_SHARE="1"
    )
    assert outcome == alone
    assert set(hints_of(found).left) <= MODES[mode]


def test_cancellation_leaves_all_to_the_runtime(tmp_path: Path) -> None:
    path = program("affinity", "clang")
    alone, _ = run([path, "cancel"], {"OMP_CANCELLATION": "true"}, tmp_path)
    outcome, found = with_homing([path, "cancel"], tmp_path, OMP_CANCELLATION="true")
    assert outcome == alone
    hints = hints_of(found)
    assert hints.honoured == 0
    assert hints.left == {"cancellation": hints.given}


def test_objects_live_as_long_as_their_task(tmp_path: Path) -> None:
    path = program("affinity_objects", "clang++")
    alone, _ = run([path], {}, tmp_path)
    outcome, found = with_homing([path], tmp_path)
    assert outcome == alone
    assert outcome.status == 0, outcome
    hints = hints_of(found)
    assert hints.honoured >= 0.95 * hints.given, hints


def test_the_process_may_end_among_its_tasks(tmp_path: Path) -> None:
    path = program("affinity", "clang")
    alone, _ = run([path, "leave"], {}, tmp_path)
    outcome, _ = with_homing([path, "leave"], tmp_path)
    assert (outcome.status, outcome.stdout) == (5, alone.stdout)


def test_without_the_option_nothing_is_touched(tmp_path: Path) -> None:
    path = program("affinity", "clang")
    outcome, found = with_homing([path, "task"], tmp_path, HOMING_TASKS="runtime")
    assert outcome.status == 0
    assert found[0].task_hints is None


def test_gcc_drops_the_clause_and_homing_says_so(tmp_path: Path) -> None:
    path = program("affinity", "gcc")
    outcome, found = with_homing([path, "task"], tmp_path)
    assert outcome.status == 0
    hints = found[0].task_hints
    assert hints is not None
    assert hints.given == 0
    assert any("gcc" in message.text and "drops the clause" in message.text for message in found[0].messages)


@pytest.mark.parametrize("domains", ["1", "3", "8"])
def test_one_domain_and_more_domains_than_cpus(domains: str, tmp_path: Path) -> None:
    path = program("affinity", "clang")
    alone, _ = run([path, "task"], {}, tmp_path)
    outcome, _ = with_homing([path, "task"], tmp_path, HOMING_ASSUME_NODES=domains)
    assert outcome == alone


def test_threads_that_migrate(tmp_path: Path) -> None:
    """The thread's domain is read when it takes a task: nothing depends on where it was before."""
    path = program("affinity", "clang")
    alone, _ = run([path, "task"], {}, tmp_path)
    taskset = shutil.which("taskset")
    if taskset is None:
        pytest.skip("no taskset here")
    outcome, found = with_homing([taskset, "-c", "0", path, "task"], tmp_path)
    assert outcome == alone
    hints = hints_of(found)
    assert hints.elsewhere > 0, "the other domain has no CPU for this process: its blocks are taken here"


def test_without_ompt_all_is_left_to_the_runtime(tmp_path: Path) -> None:
    path = program("affinity", "clang")
    alone, _ = run([path, "task"], {}, tmp_path)
    outcome, _ = with_homing([path, "task"], tmp_path, OMP_TOOL="disabled")
    assert outcome == alone


def test_the_summary_counts_hints(tmp_path: Path) -> None:
    path = program("affinity", "clang")
    ended = subprocess.run(
        [sys.executable, "-m", "homing", "run", "--tasks", "affinity", "--", str(path), "if0"],
        env=environment({"HOMING_ASSUME_NODES": "2", "PYTHONPATH": str(TREE), "HOMING_COSTS": ""}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    line = next(line for line in ended.stderr.splitlines() if line.startswith("tasks "))
    assert "6,000 affinity hints, 3,999 honoured (67 %)" in line
    assert line.endswith("left to the runtime: if(0) 2,001")
