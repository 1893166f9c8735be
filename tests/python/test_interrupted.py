"""Runs that a signal ends, here and on described machines: what was seen up to then is told and kept."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from homing import launch
from homing.installation import find_library
from homing.records import read_record
from tests.patience import PATIENCE
from tests.python.conftest import HOMING
from tests.python.test_simulator import FOUR, environment, homing
from tests.python.test_simulator import build as build

TREE = Path(__file__).resolve().parents[2]
Build = Callable[..., Path]
INTERRUPTED = r"until\S* \(process \d+ on [^)]*\) was interrupted after ([\d,]+) iterations? \((SIG[A-Z]+)\)"


@pytest.fixture
def until(tmp_path: Path) -> Path:
    """The program built as usual."""
    program = tmp_path / "until"
    source = TREE / "tests" / "simulated" / "until.c"
    subprocess.run(["gcc", "-O2", "-g", "-fopenmp", source, "-o", program], check=True)
    return program


class Run:
    """`homing run` that was started, its program in the twentieth sweep or later."""

    def __init__(self, folder: Path, *words: str | Path, **more: str) -> None:
        (folder / "tmp").mkdir(exist_ok=True)
        self.errors = folder / "errors"
        self.process = subprocess.Popen(
            [*HOMING, "run", *map(str, words)],
            cwd=folder,
            env=environment(TMPDIR=str(folder / "tmp"), **more),
            stdout=subprocess.PIPE,
            stderr=self.errors.open("w"),
            start_new_session=True,
        )
        self.output = self._until(b"sweep 20\n")

    def _until(self, text: bytes) -> bytes:
        assert self.process.stdout is not None
        seen = b""
        while text not in seen:
            line = self.process.stdout.readline()
            assert line, self.errors.read_text()
            seen += line
        return seen

    def child(self) -> int:
        """The program's process id."""
        [child] = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)

    def end(self) -> tuple[int, str]:
        """The status as a shell tells it, and what was said."""
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            pass
        status = self.process.wait(timeout=PATIENCE)
        return (128 - status if status < 0 else status), self.errors.read_text()


def interrupted(text: str) -> tuple[int, str]:
    """After how many iterations, and by what."""
    found = re.search(INTERRUPTED, text)
    assert found, text
    return int(found[1].replace(",", "")), found[2]


# On this machine


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_here_the_summary_and_the_record_say_it(tmp_path: Path, until: Path, number: signal.Signals) -> None:
    record = tmp_path / "kept.homing"
    run = Run(
        tmp_path, "--record", record, "--", until, HOMING_ASSUME_NODES="4", HOMING_LIBRARY=find_library()
    )
    run.process.send_signal(number)
    status, said = run.end()
    assert status == 128 + number
    after, name = interrupted(said)
    assert name == number.name
    assert after >= 10
    assert list((tmp_path / "tmp").glob("homing-*")) == []
    again = homing("report", record)
    assert again.returncode == 0
    assert interrupted(again.stdout) == (after, name)
    assert read_record(str(record)).progress == after


def test_ctrl_c_in_a_terminal_ends_the_program_and_not_its_summary(tmp_path: Path, until: Path) -> None:
    words = [*HOMING, "run", "--", str(until)]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(words[0], words, environment(HOMING_ASSUME_NODES="4", HOMING_LIBRARY=find_library()))
    said = b""
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while b"sweep 20\r" not in said:
            said += screen.read(1024)
        screen.write(b"\x03")
        try:
            while part := screen.read(1024):
                said += part
        except OSError:  # the last writer has gone
            pass
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGINT
    assert interrupted(said.decode().replace("\r\n", " "))[1] == "SIGINT"


def test_a_signal_reaches_the_command_though_a_thread_of_the_launcher_got_it(tmp_path: Path) -> None:
    code = (
        "import threading, time, sys\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "from homing import launch\n"
        "with launch.put_off():\n"
        "    command = ['sh', '-c', 'echo here; exec sleep 600']\n"
        "    print(launch.run_child('/bin/sh', command, {})[1], flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment(), cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == b"%d\n" % signal.SIGTERM


@pytest.mark.parametrize("number", [*launch._PASSED_ON])
def test_a_signal_that_only_a_thread_of_the_launcher_can_get_reaches_the_command(
    tmp_path: Path, number: int
) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    script = f"trap 'echo got; exit 9' {name}; echo > ready; for i in $(seq 200); do sleep 0.05; done"
    command = ["sh", "-c", script]
    code = (
        "import os, signal, threading, time\n"
        "def send():\n"
        "    while not os.path.exists('ready'): time.sleep(0.01)\n"
        f"    signal.pthread_kill(threading.get_ident(), {int(number)})\n"
        "    time.sleep(600)\n"
        "threading.Thread(target=send, daemon=True).start()\n"
        "from homing import launch\n"
        f"print(launch.run_child('/bin/sh', {command}, dict(os.environ))[1] >> 8)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "got\n9\n", "")


@pytest.mark.parametrize("modules", ["cli", "cli, records"])
def test_no_thread_of_the_launcher_takes_signals_from_the_command(modules: str) -> None:
    """A killed run's records are read before the next program runs, and with them comes NumPy with its
    threads."""
    threads = "cd /proc/$PPID/task && grep -H SigBlk */status | grep -v ^$PPID/"
    words = ["run", "--summary", "none", "--", "sh", "-c", f"{threads}; exit 5"]
    code = f"import sys; from homing import {modules}; sys.exit(cli.main({words}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, timeout=PATIENCE, text=True
    )
    assert (done.returncode, done.stderr) == (5, "")
    masks = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
    for number in launch._PASSED_ON:
        assert all(mask >> (number - 1) & 1 for mask in masks), number
    if modules == "cli":
        assert masks == [], "threads cost time at each start"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("place", ["here", FOUR])
def test_a_signal_before_the_program_was_started_ends_the_launcher(
    tmp_path: Path, build: Build, number: signal.Signals, place: str
) -> None:
    (tmp_path / "tmp").mkdir()
    words = ["run", "--on", place, "--", str(build("until.c")), "ends"]
    code = (
        "import os, sys\n"
        "from homing import cli, killed\n"
        f"killed.clean = lambda: os.kill(os.getpid(), {int(number)})\n"
        f"sys.exit(cli.main({words}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(TMPDIR=str(tmp_path / "tmp")),
        capture_output=True,
        timeout=PATIENCE,
        text=True,
    )
    assert (done.returncode, done.stdout) == (-number, "")
    assert done.stderr == f"homing run: interrupted ({number.name})\n"
    assert list((tmp_path / "tmp").glob("homing-run-*")) == []


def test_what_follows_a_run_is_finished_at_the_first_signal_and_left_at_the_second() -> None:
    done = []
    with launch.put_off() as waiting:
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("first")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        done.append("rest")
    assert waiting.came == [signal.SIGTERM, signal.SIGINT]
    assert done == ["first", "rest"]


# On a described machine


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "kept.homing"


def counted(tmp_path: Path, record: Path) -> dict[str, Any]:
    """The counts of `homing report --json` of the record."""
    done = homing("report", "--json", tmp_path / "again.json", "--summary", "none", record)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "again.json").read_text())["counts"]
    assert isinstance(counts, dict)
    return counts


@pytest.mark.parametrize(
    ("number", "mode"),
    [("SIGINT", "ends"), ("SIGTERM", "waits"), ("SIGTERM", "stays"), ("SIGHUP", "ignores")],
)
def test_counts_up_to_a_signal_come_back(
    tmp_path: Path, build: Build, record: Path, number: str, mode: str
) -> None:
    run = Run(tmp_path, "--on", FOUR, "--record", record, "--", build("until.c"), mode)
    run.process.send_signal(getattr(signal, number))
    status, said = run.end()
    assert status == 128 + getattr(signal, number)
    after, name = interrupted(said)
    assert name == number
    assert after >= 10
    counts = counted(tmp_path, record)
    assert counts["run"]["total_misses"] > 0
    assert f"of {counts['run']['total_misses']:,} cache misses remote" in said
    if mode != "waits":  # no access came, so only its iterations are known
        assert [area["variable"] for area in counts["areas"]] == ["u"]


@pytest.mark.parametrize("mode", ["raises", "kills", "leaves"])
def test_a_program_that_sends_itself_the_signal_goes_no_further(
    tmp_path: Path, build: Build, record: Path, mode: str
) -> None:
    done = homing("run", "--on", FOUR, "--record", record, "--", build("until.c"), mode)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "sweep 0\nsweep 10\nsweep 20\n")
    assert interrupted(done.stderr)[1] == "SIGTERM"
    assert counted(tmp_path, record)["run"]["total_misses"] > 0


def test_a_program_that_handles_the_signal_ends_as_it_likes(
    tmp_path: Path, build: Build, record: Path
) -> None:
    run = Run(tmp_path, "--on", FOUR, "--record", record, "--", build("until.c"), "handles")
    run.process.send_signal(signal.SIGINT)
    status, said = run.end()
    assert status == 3
    assert "interrupted" not in said
    assert counted(tmp_path, record)["run"]["oracle_remote_misses"] is not None


def test_of_a_killed_program_the_iterations_that_ended_are_counted(
    tmp_path: Path, build: Build, record: Path
) -> None:
    run = Run(tmp_path, "--on", FOUR, "--record", record, "--", build("until.c"))
    os.kill(run.child(), signal.SIGKILL)
    status, said = run.end()
    assert status == 128 + signal.SIGKILL
    assert re.search(r"was killed after [\d,]+ iterations \(SIGKILL\)", said)
    counts = counted(tmp_path, record)
    assert counts["run"]["total_misses"] == sum(one["total_misses"] for one in counts["iterations"]) > 0
    assert counts["run"]["oracle_remote_misses"] is None


def test_a_command_that_is_interrupted_as_it_starts_says_so_in_one_line(tmp_path: Path) -> None:
    """Whatever Python and its packages are at just then."""
    plain = subprocess.run([*HOMING, "doctor"], cwd=tmp_path, capture_output=True, env=environment())
    for milliseconds in range(0, 160, 16):
        command = subprocess.Popen(
            [*HOMING, "doctor"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        time.sleep(milliseconds / 1000)
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGINT)
        _, said = command.communicate(timeout=PATIENCE)
        # -SIGINT: before the launcher has done anything.
        ends = {130: "homing( doctor)?: interrupted\n", plain.returncode: "", -signal.SIGINT: ""}
        assert command.returncode in ends, (milliseconds, said)
        assert re.fullmatch(ends[command.returncode], said), (milliseconds, said)
