"""Signals of the program's: what it asks of the kernel it gets, and what it takes itself costs what it costs
without homing. The programs of other languages run where their compilers are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs.build import OUTPUT, build
from tests.python.test_hooks import both, preloaded
from tests.python.test_programs import TREE, environment, run

FOREIGN = TREE / "tests" / "programs" / "foreign"


def needs(program: str) -> str:
    found = shutil.which(program)
    if not found:
        pytest.skip(f"no {program} here")
    return found


@pytest.mark.parametrize(
    "how", ["array", *(pytest.param(how, marks=pytest.mark.full) for how in ("plain", "nodefer", "jump"))]
)
def test_a_fault_of_the_programs_own_comes_once(how: str, tmp_path: Path) -> None:
    """Counted outside the process: a fault that the program takes itself is one signal and one system call
    more than without homing, but for two of each thread in a window, of which there are few."""
    strace = needs("strace")
    log = tmp_path / "calls"
    command = [
        strace,
        "-f",
        "-qq",
        "-o",
        log,
        "-e",
        "trace=rt_sigprocmask",
        build("own_faults", "gcc"),
        how,
        "32",
    ]
    counts = []
    for extra in ({}, preloaded(tmp_path, "every-region", HOMING_REFERENCES="windows")):
        outcome, errors = run(command, extra, tmp_path)
        place = re.search(r"pages (0x[0-9a-f]+)", errors)
        if not place:
            pytest.skip(f"strace does not work here: {errors[-200:]}")
        handled = sum(map(int, re.findall(r"handled (\d+)", outcome.stdout)))
        text = log.read_text(errors="replace")
        signals = [int(address, 16) for address in re.findall(r"SIGSEGV .*si_addr=(0x[0-9a-f]+)", text)]
        own = sum(0 <= address - int(place[1], 16) < 3 * 4096 for address in signals)
        counts.append((handled, own, text.count("rt_sigprocmask(")))
    (handled, bare_signals, bare_calls), (same, signals_now, calls) = counts
    windows = 4 * 40  # at the most; all but 32 find no fault of the program's on a machine that is not busy
    assert handled == same == bare_signals
    assert signals_now <= handled + 2 * 3 * 40, counts
    # A handler's mask, and signals that wait while a window is opened, while it ends, and while what the
    # program protects leaves it.
    assert calls - bare_calls <= handled + 6 * windows, counts


@pytest.mark.full  # Go builds its own library first: 18 s
@pytest.mark.parametrize("flags", ["-O2", "-O2 -fopenmp"], ids=["without OpenMP", "with OpenMP"])
@pytest.mark.parametrize("mechanism", ["auto", "every-region"])
def test_go_with_c(flags: str, mechanism: str, tmp_path: Path) -> None:
    """Go's runtime insists on its own signal stacks, which it sets past the C library."""
    needs("gcc")
    go = needs("go")
    folder = tmp_path / "go"
    shutil.copytree(FOREIGN / "go_c", folder)
    (folder / "go.mod").write_text("module program\n\ngo 1.19\n")
    cache = {"GOCACHE": str(OUTPUT / "go-cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    cache |= {"CGO_CFLAGS": flags, "CGO_LDFLAGS": flags}
    program = tmp_path / "program"
    # Not what is tested: it may take its time on a busy machine.
    built = subprocess.run(
        [go, "build", "-o", program, "."], env=environment(cache), cwd=folder, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    outcome, _ = both([program], tmp_path, mechanism=mechanism)
    assert outcome.status == 0 and outcome.stdout.endswith(" 80\n"), outcome


def test_java_takes_its_null_checks(tmp_path: Path) -> None:
    command: list[str | Path] = [needs("java"), "-Xss512k", FOREIGN / "NullChecks.java"]
    outcome, _ = both(command, tmp_path)
    assert outcome.stdout == "603000 1000\n", outcome


def test_rust_reports_an_overflow_of_the_stack(tmp_path: Path) -> None:
    program = tmp_path / "overflow"
    built, errors = run([needs("rustc"), "-O", FOREIGN / "overflow.rs", "-o", program], {}, tmp_path)
    assert built.status == 0, errors
    _, plain = run([program], {}, tmp_path)
    outcome, with_homing = run([program], preloaded(tmp_path), tmp_path)
    assert "overflowed its stack" in plain and outcome.status < 0
    assert re.sub(r"\(\d+\)", "", with_homing) == re.sub(r"\(\d+\)", "", plain)


@pytest.mark.parametrize("how", ["segfault", "overflow", "abort"])
def test_python_tells_where_it_crashed(how: str, tmp_path: Path) -> None:
    """faulthandler: a handler on an alternate stack, and the default one behind it."""
    crash = {
        "segfault": "import ctypes; ctypes.string_at(0)",
        "overflow": "import faulthandler; faulthandler._stack_overflow()",
        "abort": "import os; os.abort()",
    }[how]
    command: list[str | Path] = [sys.executable, "-X", "faulthandler", "-c", crash]
    plain, told = run(command, {"MALLOC_PERTURB_": "0"}, tmp_path)
    outcome, told_with = run(command, preloaded(tmp_path), tmp_path)
    assert outcome == plain and plain.status < 0
    first = told.splitlines()[:1]
    assert first and first == told_with.splitlines()[:1]


def test_valgrind_gets_no_windows(tmp_path: Path) -> None:
    """It does not know all registers where an access faults: the program computed something else."""
    _, found = both([needs("valgrind"), "-q", "--tool=none", build("regions", "gcc")], tmp_path)
    assert any("valgrind" in message.text for message in found[0].messages), found[0].messages
