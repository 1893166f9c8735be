"""Every command with a stdout or stderr that is closed, full, or a pipe without a reader: one clear line at
most, and the status that says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.python.conftest import environment
from tests.python.record_writer import four_node_run


def shell(script: str, fake_library: Path, folder: Path) -> tuple[int, str]:
    """Run a script in which $H stands for `homing`; the status and what was said on stderr."""
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(fake_library, folder, H=f"{sys.executable} -m homing"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stderr


COMMANDS = ["report r", "report r --html -", "doctor", "machine --json", "run --help", "--version"]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("stdout", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_what_cannot_be_printed_is_one_line(
    words: str, stdout: str, reason: str, fake_library: Path, tmp_path: Path
) -> None:
    four_node_run().write(tmp_path / "r")
    status, said = shell(f"$H {words} {stdout}", fake_library, tmp_path)
    assert status == 1
    assert said.startswith("homing") and said.endswith(f": standard output: {reason}\n"), said
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_has_gone_is_no_news(words: str, fake_library: Path, tmp_path: Path) -> None:
    four_node_run().write(tmp_path / "r")
    # The reader is gone before anything is written.
    script = f"exec 3> >(exec true); wait $!; $H {words} >&3"
    assert shell(script, fake_library, tmp_path) == (141, "")


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2>&3"])
def test_a_status_does_not_depend_on_what_can_be_said(
    stderr: str, fake_library: Path, tmp_path: Path
) -> None:
    four_node_run().write(tmp_path / "r")
    for words, status in (("report nothing", 2), ("frobnicate", 2), ("report r --summary stderr", 0)):
        script = f"exec 3> >(exec true); wait $!; $H {words} {stderr}"
        assert shell(script, fake_library, tmp_path)[0] == status
