"""What is said where the simulator counted nothing, or not to the end: why, as far as that is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.records import Record, parse_record
from homing.report.results import read_results
from homing.report.summary import print_summary
from homing.simulate.not_counted import _CALLBACKS, is_built_for_it, why_not_counted
from tests.places import TREE
from tests.python.record_writer import RecordWriter, four_node_run

HOW = "nothing was counted in program: "


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A program of `homing cc`, as far as can be told from its file."""
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF...\0homing_simulator_enter_1\0...")
    return str(path)


def record_of(program: str, signal: str = "", end: bool = False) -> Record:
    writer = RecordWriter(program)
    if signal:
        writer.fact("ended_by", signal)
    if end:
        writer.row("end", time=1.0)
    return parse_record(writer.bytes(), "x")


def test_the_reason_is_the_runs(program: str, tmp_path: Path) -> None:
    def why(*records: Record, off: bool = False, only: str = "", signal: str = "") -> str:
        return why_not_counted(program, records, off, only, signal)

    assert is_built_for_it(program)
    assert why(off=True) == f"{HOW}HOMING=off is set"
    assert why(record_of(program)) == f"{HOW}it did not end in order, and no iteration had ended"
    killed = record_of(program, "SIGABRT")
    assert why(killed) == f"{HOW}it was ended by SIGABRT, and no iteration had ended"
    assert why(record_of(program, end=True)) == HOW.removesuffix(": ")
    assert why(signal="SIGSEGV") == f"{HOW}it was ended by SIGSEGV before its first parallel region"
    assert why(only="cg") == f"{HOW}no program named cg (--only) was"
    assert "it made no access, or left by _exit" in why()
    Path(program).write_bytes(b"\x7fELF...")
    assert why(killed).startswith(f"{HOW}build it with `homing cc`")
    assert not is_built_for_it(str(tmp_path / "none")) and not is_built_for_it(str(tmp_path))


def test_the_mark_of_programs_is_what_the_callbacks_look_for() -> None:
    """A new version of the interface has another name."""
    assert f'"{_CALLBACKS.decode()[:-1]}"' in (TREE / "simulator" / "callbacks.c").read_text()


@pytest.mark.parametrize(
    ("signal", "words"),
    [("", "the process did not end in order"), ("SIGABRT", "the process was ended by SIGABRT")],
)
def test_who_leaves_by_exit_was_not_killed(tmp_path: Path, signal: str, words: str) -> None:
    writer = four_node_run(ended=False)
    if signal:
        writer.fact("ended_by", signal)
    for number in range(3):
        writer.row("counted", scope=1, id=number, accesses=100)
        writer.row("misses", scope=1, id=number, to=[10, 0, 0, 0])
    results = read_results([str(writer.write(tmp_path / "r.homing"))])
    print_summary(results, str(tmp_path / "summary"))
    assert f"in the first 3 iterations: {words}\n" in (tmp_path / "summary").read_text()
