"""A launcher that was killed: the next one says what became of its run, and removes what it left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from homing.records import read_record
from tests.patience import wait_until
from tests.python.conftest import HOMING, Command, environment
from tests.python.record_writer import four_node_run


@pytest.fixture
def killed(fake_library: Path, tmp_path: Path) -> Callable[..., int]:
    """Runs `homing run` with a shell script that leaves a record in its process `sleep`, and kills the
    launcher when the script has made the file `ready`; returns the script's process."""
    record = four_node_run().write(tmp_path / "fake.homing")
    variables = environment(
        fake_library, tmp_path / "tmp", FAKE_RECORD=str(record), FAKE_NAME="sleep", HOMING_ASSUME_NODES="4"
    )

    def run(script: str, *words: str) -> int:
        ready = tmp_path / "ready"
        over = tmp_path / "over"
        for file in (ready, over):
            file.unlink(missing_ok=True)
        script = f"echo $$ >pid; {script}; while [ ! -e over ]; do :; done"
        command = [*HOMING, "run", *words, "--", "sh", "-c", script]
        with subprocess.Popen(command, env=variables, cwd=tmp_path, stderr=subprocess.PIPE) as launcher:
            wait_until(ready.exists, "the program is ready")
            launcher.kill()
            launcher.wait()
            assert launcher.returncode == -signal.SIGKILL
        over.touch()
        return int((tmp_path / "pid").read_text())

    return run


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # In a container nobody may wait for it.
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_the_next_run_says_what_became_of_it(
    killed: Callable[..., int], homing: Command, tmp_path: Path
) -> None:
    process = killed("sleep 0; touch ready")
    wait_until(lambda: is_gone(process), "the program has ended")
    assert len(list((tmp_path / "tmp").glob("homing-*"))) == 1
    done = homing("run", "--summary", "none", "--", "true")
    (line,) = done.stderr.splitlines()
    assert line.startswith("homing run: the launcher of an earlier run was killed (process ")
    assert line.endswith("; cg moved 740 pages in 5 iterations")
    assert list((tmp_path / "tmp").glob("homing-*")) == []
    assert homing("run", "--summary", "none", "--", "true").stderr == "", "it is said once"


def test_a_program_that_outlives_its_launcher_keeps_its_folder(
    killed: Callable[..., int], homing: Command, tmp_path: Path
) -> None:
    process = killed("touch ready; while [ ! -e go ]; do :; done; sleep 0")
    done = homing("run", "--summary", "none", "--", "true")
    assert done.stderr == "" and len(list((tmp_path / "tmp").glob("homing-*"))) == 1
    (tmp_path / "go").touch()
    wait_until(lambda: is_gone(process), "the program has ended")
    assert "cg moved 740 pages" in homing("run", "--summary", "none", "--", "true").stderr
    assert list((tmp_path / "tmp").glob("homing-*")) == []


def test_a_record_with_a_name_stays(killed: Callable[..., int], homing: Command, tmp_path: Path) -> None:
    process = killed("touch ready; while [ ! -e go ]; do :; done; sleep 0", "--record", "my record")
    assert homing("run", "--summary", "none", "--", "true").stderr == "", "the program still runs"
    (tmp_path / "go").touch()
    wait_until(lambda: is_gone(process), "the program has ended")
    done = homing("run", "--summary", "none", "--", "true")
    (record,) = tmp_path.glob("my record.*")
    assert read_record(str(record)).pid == 4711
    assert done.stderr.endswith(f"; its program's record stays: homing report '{record}'\n")
    assert list((tmp_path / "tmp").glob("homing-*")) == []


def test_nothing_is_said_where_there_is_nothing_to_say(
    killed: Callable[..., int], homing: Command, tmp_path: Path
) -> None:
    for script, words in (("touch ready", []), ("sleep 0; touch ready", ["--summary", "none"])):
        process = killed(script, *words)
        wait_until(lambda one=process: is_gone(one), "the program has ended")
        assert homing("run", "--summary", "none", "--", "true").stderr == ""
        assert list((tmp_path / "tmp").glob("homing-*")) == []


def test_a_living_launchers_folder_is_left_alone(fake_library: Path, homing: Command, tmp_path: Path) -> None:
    command = [*HOMING, "run", "--summary", "none", "--", "sh", "-c", "touch ready; read x"]
    with subprocess.Popen(
        command, env=environment(fake_library, tmp_path / "tmp"), cwd=tmp_path, stdin=subprocess.PIPE
    ) as first:
        wait_until((tmp_path / "ready").exists, "the program is ready")
        homing("run", "--", "true")
        assert len(list((tmp_path / "tmp").glob("homing-*"))) == 1
        first.communicate(b"\n")
    assert list((tmp_path / "tmp").glob("homing-*")) == []


def test_notes_that_make_no_sense_are_no_hindrance(homing: Command, tmp_path: Path) -> None:
    notes = (
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"quiet": false, "records": 7}',
        b'{"quiet": false, "records": ""}',
    )
    for number, note in enumerate(notes):
        folder = tmp_path / "tmp" / f"homing-run-aaaaaaa{number}"
        folder.mkdir()
        (folder / "lock").write_bytes(b"homing folder\n" + note)
        (folder / "1.homing").write_bytes(b"homing-record 1\n{}")
    done = homing("run", "--summary", "none", "--", "sh", "-c", "exit 4")
    assert (done.returncode, done.stderr) == (4, "")
    assert list((tmp_path / "tmp").glob("homing-*")) == []
