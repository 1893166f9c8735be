"""The files of `homing run`: nobody's data is lost to them, what is wrong with them is said before the
program starts, and the program's exit status is kept whatever becomes of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homing import run_end
from homing.record_format import PIECE_BYTES
from homing.records import read_record
from homing.run_files import Records, find_records
from tests.patience import PATIENCE
from tests.python.conftest import Command, environment
from tests.python.record_writer import HEADER_BYTES, four_node_run


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


@pytest.fixture
def four_nodes(tmp_path: Path) -> dict[str, str]:
    """Variables with which every process `sleep` leaves a record."""
    path = four_node_run().write(tmp_path / "fake.homing")
    return {"FAKE_RECORD": str(path), "FAKE_NAME": "sleep"}


@pytest.fixture
def no_room(tmp_path: Path) -> dict[str, str]:
    """Variables with which every process `sleep` leaves what the library leaves where there is no room."""
    (tmp_path / "nothing").touch()
    return {"FAKE_RECORD": str(tmp_path / "nothing"), "FAKE_NAME": "sleep"}


def shell(script: str, fake_library: Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which $H stands for `homing run`."""
    return subprocess.run(
        ["sh", "-c", script],
        env=environment(fake_library, folder, H=f"{sys.executable} -m homing run", **more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


# What lies there already


@pytest.mark.parametrize("kind", ["data", "short", "link", "pipe"])
def test_a_record_takes_nothings_place(
    kind: str, homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "there"
    if kind == "link":
        path.symlink_to("/dev/null")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("years of work" if kind == "data" else "h")
    before = path.lstat()
    done = homing("run", "--record", "there", "--", "touch", "started", **four_nodes)
    assert done.returncode == 2
    assert "--record there" in one_line(done.stderr)
    assert not (tmp_path / "started").exists()
    assert (path.lstat().st_ino, path.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_nor_does_a_ranks_record(homing: Command, four_nodes: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "job.3").write_text("years of work")
    for name in ("job", "job.%r"):
        done = homing("run", "--record", name, "--", "sleep", "0", PMI_RANK="3", **four_nodes)
        assert done.returncode == 2 and "job.3" in one_line(done.stderr)
    done = homing("run", "--record", "job.%r", "--", "sleep", "0", **four_nodes)
    assert done.returncode == 2 and "job.3" in one_line(done.stderr), "any rank may come"
    assert homing("run", "--record", "job", "--", "sleep", "0", PMI_RANK="4", **four_nodes).returncode == 0
    assert (tmp_path / "job.3").read_text() == "years of work"


def test_what_came_during_the_run_stays(homing: Command, four_nodes: dict[str, str], tmp_path: Path) -> None:
    script = "echo years of work >result; sleep 0; exit 6"
    done = homing("run", "--record", "result", "--", "sh", "-c", script, **four_nodes)
    assert done.returncode == 6
    assert (tmp_path / "result").read_text() == "years of work\n"
    (record,) = tmp_path.glob("result.*")
    assert f"the record is {record}" in done.stderr


def test_empty_files_and_records_are_replaced(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "r").touch()
    for _ in range(2):
        assert homing("run", "--record", "r", "--", "sleep", "0", **four_nodes).returncode == 0
        assert read_record(str(tmp_path / "r")).pid == 4711


def test_only_whole_numbers_are_records_of_ours(tmp_path: Path) -> None:
    for name in ("r.1", "r.22", "r.22.txt", "r.2x", "r.x"):
        (tmp_path / name).touch()
    assert [Path(path).name for path in find_records(f"{tmp_path}/r.%p")] == ["r.1", "r.22"]


def test_a_new_record_with_the_inode_of_the_old_one(tmp_path: Path) -> None:
    """As file systems give a removed file's inode to the next one."""
    path = four_node_run().write(tmp_path / "r.0")
    records = Records(str(tmp_path / "r.%r"), str(tmp_path))
    assert records.written() == ([], "")
    new = four_node_run()
    new.header["pid"] = 4712
    inode = path.stat().st_ino
    path.write_bytes(new.write(tmp_path / "new").read_bytes())
    assert path.stat().st_ino == inode
    assert records.written() == ([str(path)], "")


def test_a_record_that_cannot_be_read_is_kept(
    fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its run's temporary folder goes, it does not."""
    path = four_node_run().write(tmp_path / "1.homing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("homing.files._read", lambda *_: (_ for _ in ()).throw(MemoryError()))
    before = path.read_bytes()
    records = Records("", str(tmp_path), ended=None)
    monkeypatch.setattr(records, "written", lambda: ([str(path)], ""))
    run_end.finish(run_end.Request(["prog"]), records, run_end.Ended(0, 1, 1.0, []))
    (saved,) = tmp_path.glob("homing-*.record")
    assert saved.read_bytes() == before
    said = capfd.readouterr().err
    assert "no memory to read it" in said and f"homing report {saved}" in said


# Two runs


@pytest.mark.parametrize("end", ["exit 3", "kill -INT $$"])
def test_what_a_first_run_that_failed_leaves(
    end: str, homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    flags = ("--compare", "--record", "r", "--json", "j", "--html", "h", "--summary", "s")
    script = f"echo run >>runs; sleep 0; {end}"
    done = homing("run", *flags, "--", "sh", "-c", script, **four_nodes)
    assert done.returncode == (3 if end == "exit 3" else -2)
    assert (tmp_path / "runs").read_text() == "run\n"
    assert read_record(str(tmp_path / "r")).pid == 4711
    assert json.loads((tmp_path / "j").read_text())["processes"]
    assert all("main_mem" in (tmp_path / name).read_text() for name in ("h", "s"))
    assert done.stderr.count("no second run") == 1


def test_a_first_run_that_ended_well_leaves_nothing(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    flags = ("--compare", "--record", "r.%p", "--json", "j.%p", "--summary", "none")
    done = homing("run", *flags, "--", "sleep", "0", **four_nodes)
    assert done.returncode == 0
    assert len(list(tmp_path.glob("r.*"))) == len(list(tmp_path.glob("j.*"))) == 1
    assert "nothing moved -> with homing" in done.stderr


def test_two_runs_without_moves_are_not_compared(homing: Command, tmp_path: Path) -> None:
    for words, more in ((["--mechanism", "observe"], {}), ([], {"HOMING_MECHANISM": "observe"})):
        done = homing("run", "--compare", *words, "--", "touch", "started", **more)
        assert done.returncode == 2 and "neither run would move" in one_line(done.stderr)
        assert not (tmp_path / "started").exists()


# The exit status


STREAMS = ["2>&-", "2>/dev/full", "2>&1 >/dev/null | true", "1>&- 2>&-", "0<&- 1>&- 2>&-", "1>/dev/full 2>&1"]


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("more", ["", "--json j.json", "--summary s.txt --record r"])
def test_the_status_is_kept_where_nothing_can_be_said(
    streams: str, more: str, fake_library: Path, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    script = f"{{ $H {more} -- sh -c 'sleep 0; exit 5'; echo $? >status; }} {streams}"
    shell(script, fake_library, tmp_path, **four_nodes)
    assert (tmp_path / "status").read_text() == "5\n"
    if "json" in more:
        assert json.loads((tmp_path / "j.json").read_text())["exit_status"] == 5
    if "record" in more:
        assert "/main_mem/" in (tmp_path / "s.txt").read_text()
        assert read_record(str(tmp_path / "r")).pid == 4711


def test_the_programs_closed_streams_stay_closed(fake_library: Path, tmp_path: Path) -> None:
    """Nothing that the launcher opens takes their numbers over to the program."""
    look = "for number in 1 2; do [ -e /proc/$$/fd/$number ] && echo $number >&7; done; exit 3"
    script = f"$H --summary none -- sh -c '{look}' 7>open 1>&- 2>&-"
    assert shell(script, fake_library, tmp_path).returncode == 3
    assert (tmp_path / "open").read_text() == ""


FAILURES = [KeyError("x"), SystemExit(1), OSError(28, "No space"), KeyboardInterrupt()]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_nothing_after_the_run_raises(failure: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with run_end.afterwards("the summary"):
        raise failure
    said = capsys.readouterr().err
    assert said == "" if isinstance(failure, KeyboardInterrupt) else "the summary" in one_line(said)


# JSON and summary


def test_a_file_that_cannot_be_written_is_noticed_before(homing: Command, tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    shutil.copy("/bin/sleep", busy)
    with subprocess.Popen([busy, "60"]) as process:
        try:
            while os.readlink(f"/proc/{process.pid}/exe") != str(busy):
                time.sleep(0.01)
            for flag in ("--json", "--summary"):
                done = homing("run", flag, "busy", "--", "touch", "started")
                assert done.returncode == 2 and f"{flag} busy: Text file busy" in one_line(done.stderr)
                done = homing("run", flag, "tmp", "--", "touch", "started")
                assert done.returncode == 2 and f"{flag} tmp: is a folder" in one_line(done.stderr)
        finally:
            process.kill()
    assert not (tmp_path / "started").exists()


def test_what_fails_after_the_run_holds_up_nothing_else(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    script = "sleep 0; rm -r d; exit 4"
    done = homing("run", "--json", "d/j", "--record", "r", "--", "sh", "-c", script, **four_nodes)
    assert done.returncode == 4
    assert "/main_mem/" in done.stderr
    assert done.stderr.splitlines()[-1] == "homing run: d/j: No such file or directory"
    assert read_record(str(tmp_path / "r")).pid == 4711
    (tmp_path / "d").mkdir()
    done = homing("run", "--json", "j", "--summary", "d/s", "--", "sh", "-c", script, **four_nodes)
    assert (done.returncode, one_line(done.stderr)) == (4, "homing run: d/s: No such file or directory\n")
    assert json.loads((tmp_path / "j").read_text())["exit_status"] == 4
    done = homing("run", "--json", "/dev/full", "--", "sh", "-c", "sleep 0; exit 4", **four_nodes)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        4,
        "homing run: /dev/full: No space left on device",
    )


def test_what_the_reader_remarks_is_told(homing: Command, four_nodes: dict[str, str]) -> None:
    done = homing("run", "--", "sleep", "0", **four_nodes)
    assert "note: cg: is not here (any more), so its source lines are not known" in done.stderr


def test_ranks_do_not_take_each_others_files(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    words = ["run", "--record", "r", "--json", "j", "--summary", "s", "--", "sleep", "0"]
    for rank in ("0", "1"):
        assert homing(*words, PMI_RANK=rank, **four_nodes).stderr == ""
    found = sorted(path.name for path in tmp_path.glob("[rjs].*"))
    assert found == ["j.0", "j.1", "r.0", "r.1", "s.0", "s.1"]
    done = homing("run", "--json", "/dev/stdout", "--", "sleep", "0", PMI_RANK="0", **four_nodes)
    assert json.loads(done.stdout)["schema"] == "homing-run/2", "a device is meant as it is"
    assert "/main_mem/" in done.stderr, "and stderr is no file"


@pytest.mark.parametrize("flag", ["--summary", "--json", "--record", "--costs"])
def test_a_name_is_not_empty(flag: str, homing: Command) -> None:
    done = homing("run", flag, "", "--", "true")
    assert done.returncode == 2 and f"{flag}: the name is empty" in one_line(done.stderr)


@pytest.mark.parametrize("flag", ["--json", "--record", "--summary"])
def test_in_a_folder_that_was_removed(
    flag: str, fake_library: Path, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    gone = "mkdir gone; cd gone; rmdir ../gone"
    done = shell(f"{gone}; $H {flag} x -- sh -c 'exit 3'", fake_library, tmp_path, **four_nodes)
    assert done.returncode == 2 and f"{flag} x: the current folder" in one_line(done.stderr)
    script = f"{gone}; $H {flag} {tmp_path}/x -- sh -c 'sleep 0; exit 3'"
    done = shell(script, fake_library, tmp_path, **four_nodes)
    assert done.returncode == 3 and (tmp_path / "x").stat().st_size > 0, done.stderr


# Records for which there is no room


def test_a_record_that_could_not_be_written_is_told(
    homing: Command, no_room: dict[str, str], tmp_path: Path
) -> None:
    done = homing("run", "--json", "j", "--", "sh", "-c", "sleep 0; sleep 0; exit 7", **no_room)
    assert done.returncode == 7
    line = one_line(done.stderr)
    assert line.startswith("homing: what was done is not known: 2 processes at work could not write a record")
    assert "2 processes at work" in json.loads((tmp_path / "j").read_text())["notes"][0]
    done = homing("run", "--record", "r", "--", "sleep", "0", **no_room)
    assert "1 process at work could not write a record" in one_line(done.stderr)
    assert list(tmp_path.glob("r*")) == [], "the empty files are gone"


def test_a_limit_is_told_before_and_after(
    fake_library: Path, no_room: dict[str, str], tmp_path: Path
) -> None:
    done = shell("ulimit -f 512; $H -- sh -c 'sleep 0; exit 7'", fake_library, tmp_path, **no_room)
    assert done.returncode == 7
    before, after = done.stderr.splitlines()
    assert before.startswith("homing run: no record can be written: ulimit -f allows")
    assert after.startswith("homing: what was done is not known") and "ulimit -f allows" in after
    done = shell("ulimit -f 512; $H --summary none -- sleep 0", fake_library, tmp_path, **no_room)
    assert done.stderr == "", "nobody asked"
    script = "ulimit -f 512; $H --record r -- touch started"
    done = shell(script, fake_library, tmp_path, **no_room)
    assert done.returncode == 2 and "--record r: ulimit -f allows" in one_line(done.stderr)
    assert not (tmp_path / "started").exists()


def test_a_record_whose_end_found_no_room(homing: Command, tmp_path: Path) -> None:
    writer = four_node_run(ended=False)
    row = writer.rows[-1]
    writer.rows += [row] * ((PIECE_BYTES - HEADER_BYTES) // len(row) - len(writer.rows))
    full = writer.bytes()
    assert len(full) == PIECE_BYTES
    (tmp_path / "r").write_bytes(full)
    assert "found no more room for its record" in homing("report", "r").stdout
    (tmp_path / "r").write_bytes(full[: -len(row)] + bytes(len(row)))
    assert "did not end in order" in homing("report", "r").stdout
