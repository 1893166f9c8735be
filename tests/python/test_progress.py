"""What takes long, on a terminal: how long it has taken and how long it still takes."""

from __future__ import annotations

import io
import signal
import sys
import time
from pathlib import Path

import pytest

from homing import progress
from homing.cli import main
from homing.progress import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        """What is to be read in the last line."""
        return self.getvalue().rpartition("\n")[2].rstrip("\r").rpartition("\r")[2].rstrip()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))


def test_what_is_long_in_one_call_is_followed_by_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.001)
    file = Terminal()
    line = Line("homing translate", file)
    line.begin("reading")
    line.change("1 of 2 files read")
    before = signal.getsignal(signal.SIGALRM)
    with line.ticking():
        while "\rhoming translate: 1 of 2 files read, 0 s" not in file.getvalue():
            time.sleep(0.001)
    assert file.screen() == "" and signal.getsignal(signal.SIGALRM) is before
    silent = io.StringIO()
    line = Line("homing translate", silent)
    line.begin("reading")
    with line.ticking():
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert silent.getvalue() == ""


def test_a_compiler_behind_a_translation_is_told_with_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "step.f90").write_text("subroutine step(n)\ninteger n\nn = n + 1\nend\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.001)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(["translate", "--to", "spmd", "--", "gfortran", "-c", "step.f90"]) == 0
    assert "\rhoming translate: reading step.f90, 0 s" in terminal.getvalue()
    assert terminal.screen() == "" and (tmp_path / "step.o").exists()


def test_the_second_time_the_seconds_that_are_left_are_known() -> None:
    now = [100.0]
    for known, said in ((False, "lab: booting, 4 s"), (True, "lab: booting, 4 s, about 6 s left")):
        file = Terminal()
        line = Line("lab", file, lambda: now[0])
        line.begin("booting", 4)
        now[0] += 1
        line.tick()
        assert file.getvalue() == ""  # not long yet
        now[0] += 3
        line.tick()
        assert file.screen() == said, known
        now[0] += 6
        line.end()
        assert file.screen() == ""
    line.begin("booting", 4)
    now[0] += 70
    line.tick()
    assert file.screen() == "lab: booting, 1 min 10 s, longer than the last time (10 s)"
    line.end(whole=False)
    line.begin("booting", 8)  # another guest
    now[0] += 5
    line.tick()
    assert file.screen() == "lab: booting, 5 s"


def test_the_line_gives_way_to_what_is_printed() -> None:
    now = [0.0]
    file = Terminal()
    line = Line("lab", file, lambda: now[0])
    line.begin("running a.out")
    now[0] = 3
    line.tick()
    assert file.screen()
    line.clear()
    file.write("half a l")
    line.printed(b"half a l")
    now[0] = 5
    line.tick()
    assert file.screen() == "half a l"
    line.printed(b"ine\n")
    file.write("ine\n")
    line.tick()
    assert file.screen() == "lab: running a.out, 5 s"
    line.say("booted")
    assert file.getvalue().endswith("lab: booted\n")


def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    file, now = io.StringIO(), [0.0]
    line = Line("lab", file, lambda: now[0])
    line.begin("booting")
    now[0] = 60
    line.tick()
    line.end()
    assert file.getvalue() == ""
    assert not (tmp_path / "cache").exists()
