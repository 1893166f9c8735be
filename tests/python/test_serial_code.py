"""What windows have armed stays so in serial code, which uses it through the kernel, frees it, runs on it and
leaves it: no call may fail, no result may differ (tests/programs/serial.c). Where serial code may do what no
guard sees, windows end with their regions, and the record says so."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from homing.records import Record
from tests.programs.build import build
from tests.python.conftest import TREE
from tests.python.test_hooks import both, preloaded
from tests.python.test_programs import assert_worked, did, records, run

IN_REGIONS = "each window ends with its parallel region"

HOWS = [
    *("read", "file", "line", "pieces", "names", "mutex", "number", "control", "mapped", "touch", "masked"),
    *("stack", "altstack", "jump", "fork", "vfork", "spawn", "protect", "remap", "limit", "thread"),
]


def said(record: Record) -> list[str]:
    return [message.text for message in record.messages if IN_REGIONS in message.text]


@pytest.mark.parametrize("how", HOWS)
def test_serial_code_uses_what_is_armed(how: str, tmp_path: Path) -> None:
    variant = ("gcc", "clang")[HOWS.index(how) % 2]
    _, found = both([build("serial", variant), how], tmp_path)
    # On a busy machine what a short run may spend is gone before its first round of observation has ended.
    assert found and found[0].overhead.armed > 20, did(found[0])
    assert not said(found[0]), did(found[0])


def test_what_serial_code_touches_is_seen(tmp_path: Path) -> None:
    """The second half of the array is touched by serial code only, by the first thread."""
    _, found = both([build("serial", "gcc"), "touch"], tmp_path, {"HOMING_RECORD_SAMPLES": "100000"})
    samples = found[0].table("sample")
    array = max(found[0].areas, key=lambda area: area.bytes)
    between = samples[samples["region"] == 0xFFFFFFFF]
    mine = between[between["area"] == array.id]
    assert len(mine) > 0, did(found[0])
    assert len(set(mine["thread"].tolist())) == 1
    assert min(int(one) for one in mine["granule"]) * array.granule >= array.bytes // 2 - array.granule


def test_a_window_stays_when_the_team_begins_its_threads(tmp_path: Path) -> None:
    """The first region creates its threads after its window was opened: it sees what they touch."""
    program = TREE / "build" / "release" / "apps" / "pattern_block_gcc"
    command = [program, "--size", "8M", "--iterations", "1", "--initialise", "serial"]
    extra = {"HOMING_RECORD_SAMPLES": "100000", "OMP_NUM_THREADS": "4"}
    outcome, _ = run([*command], {**preloaded(tmp_path, "windows"), **extra}, tmp_path)  # it prints times
    assert outcome.status == 0
    found = records(tmp_path)
    samples = found[0].table("sample")
    first = samples[samples["region"] == 0]
    assert len(first) > 16, did(found[0])
    assert len(set(first["thread"].tolist())) > 1, did(found[0])


def test_a_programs_own_handler_keeps_windows_in_regions(tmp_path: Path) -> None:
    """From when it is installed: what it is for comes to it."""
    _, found = both([build("serial", "gcc"), "handler"], tmp_path)
    assert_worked(found, "windows")
    assert any("SIGSEGV" in text for text in said(found[0])), did(found[0])


@pytest.mark.parametrize("how", ["end", "null"])
def test_gfortrans_handler_takes_no_faults(how: str, tmp_path: Path) -> None:
    """It tells of a crash, as without homing, and windows need not end with their regions for it."""
    command = [build("fortran_serial", "gfortran"), how]
    outcome, found = both(command, tmp_path)
    assert not said(found[0]), did(found[0])
    assert found[0].overhead.armed > 20, did(found[0])
    assert outcome.status == (-signal.SIGSEGV if how == "null" else 0)
    if how == "null":
        _, errors = run(command, preloaded(tmp_path, "windows"), tmp_path)
        assert "Backtrace for this error" in errors and "#0 " in errors, errors


def test_system_calls_of_the_programs_own_keep_windows_in_regions(tmp_path: Path) -> None:
    _, found = both([build("serial_raw", "gcc"), "raw"], tmp_path)
    assert_worked(found, "windows")
    why = "the program makes system calls past the C library"
    assert said(found[0]) == [f"{IN_REGIONS}: {why}"], did(found[0])


def test_a_library_that_comes_with_system_calls_of_its_own(tmp_path: Path) -> None:
    library = build("library_raw", "gcc-library")
    _, found = both([build("serial", "gcc"), "library", library], tmp_path)
    assert_worked(found, "windows")
    why = "library_raw makes system calls past the C library"
    assert said(found[0]) == [f"{IN_REGIONS}: {why}"], did(found[0])


def test_the_librarys_own_system_calls_are_known_whatever_its_file_is_called(tmp_path: Path) -> None:
    variables = preloaded(tmp_path, "windows")
    renamed = shutil.copy(variables["LD_PRELOAD"], tmp_path / "observer.so")
    run([build("serial", "gcc"), "touch"], {**variables, "LD_PRELOAD": str(renamed)}, tmp_path)
    found = records(tmp_path)
    assert found and not said(found[0]), did(found[0])


def test_exit_in_a_region(tmp_path: Path) -> None:
    outcome, found = both([build("serial", "gcc"), "exit"], tmp_path)
    assert outcome.status == 7
    assert found[0].overhead.touches > 0, did(found[0])  # it is early: no iteration need be known


def test_most_of_what_is_armed_is_touched_where_regions_are_short(tmp_path: Path) -> None:
    """LULESH's shape: many regions an iteration, each of which uses a few of 60 arrays for a moment."""
    _, found = both([build("short_regions", "gcc")], tmp_path, {"HOMING_OBSERVE_SHARE": "0.05"})
    overhead = found[0].overhead
    assert overhead.armed > 100, did(found[0])
    assert overhead.touches > overhead.armed / 4, overhead
    # 18 runs, busy machine or not: 3.1 to 4.5 calls a touch. A window that ends with its region took 28.
    assert overhead.calls < 7 * overhead.touches, overhead
