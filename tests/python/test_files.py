"""Files that a user names: each kind that is no file ends in one line and status 2, and nothing waits."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homing import files
from homing.errors import UserError, unexpected
from homing.limits import TimeUp, time_limit
from homing.outputs import output
from tests.patience import PATIENCE
from tests.python.record_writer import four_node_run

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture
def kinds(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A path of each kind that is no file."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "nothing")
    (folder / "circle").symlink_to(folder / "circle")
    before = os.getcwd()
    os.chdir(folder)  # names of sockets have at most 108 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        os.chdir(before)
        names = ("pipe", "folder", "link", "circle", "socket", "missing")
        yield {
            **{name: str(folder / name) for name in names},
            "zeros": "/dev/zero",
            "full": "/dev/full",
            "null": "/dev/null",
            "below a file": "/etc/passwd/x",
            "too long": "/" + "x" * 5000,
        }


def test_nothing_is_left_of_a_file_that_cannot_be_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "page"
    with pytest.raises(UserError, match="No space left on device"), output(str(path), "page") as file:
        file.write("begin")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not path.exists()


def run(*words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "homing", *words],
        env={**os.environ, "PYTHONPATH": str(TREE), **more},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


#: How each flag and argument is given a file.
_READERS: dict[str, Callable[[str], list[str]]] = {
    "record": lambda path: ["report", path],
    "costs": lambda path: ["run", "--costs", path, "--", "true"],
    "machine": lambda path: ["machine", path],
    "response file": lambda path: ["cc", "gcc", f"@{path}"],
}


@pytest.mark.parametrize("reader", _READERS)
def test_what_is_no_file_is_one_line(reader: str, kinds: dict[str, str], tmp_path: Path) -> None:
    for what in ("pipe", "zeros") if reader == "record" else ("pipe",):  # the others without a process
        done = run(*_READERS[reader](kinds[what]), cwd=tmp_path)
        assert done.returncode == 2, (what, done.stderr)
        assert done.stderr.count("\n") == 1, (what, done.stderr)
        assert kinds[what] in done.stderr
        assert "Traceback" not in done.stderr


def test_sources_that_are_none(kinds: dict[str, str], tmp_path: Path) -> None:
    from homing.translate.translation import Options, translate

    for what, path in kinds.items():
        for ending in (".f90", ".c"):
            link = tmp_path / f"source{ending}"
            link.unlink(missing_ok=True)
            link.symlink_to(path[:4000])
            with pytest.raises(UserError) as raised:
                translate([str(link)], Options("spmd"))
            assert "\n" not in raised.value.message
            if what in ("pipe", "folder", "zeros", "full", "null"):
                assert "not a file" in raised.value.message


@pytest.mark.parametrize(("ending", "compiler"), [(".f90", "gfortran"), (".c", "gcc")])
def test_a_compiler_gets_no_source_that_is_none(
    ending: str, compiler: str, kinds: dict[str, str], tmp_path: Path
) -> None:
    """gfortran waits for ever for a pipe, and for a folder."""
    for what in ("pipe", "folder", "zeros"):
        (tmp_path / f"{what}{ending}").symlink_to(kinds[what])
        done = run("translate", "--to", "spmd", "--", compiler, "-fopenmp", f"{what}{ending}", cwd=tmp_path)
        assert done.returncode == 2, (what, done.stderr)
        assert done.stderr.count("\n") == 1, (what, done.stderr)
        assert f"{what}{ending}: is a" in done.stderr


def test_every_kind_is_refused_and_nothing_waits(kinds: dict[str, str]) -> None:
    for what, path in kinds.items():
        with pytest.raises(UserError) as raised:
            files.read_bytes(path, 1000)
        assert raised.value.message.startswith(path[:50]), what
    with pytest.raises(UserError, match="no file can have this name"):
        files.read_bytes("a\0b", 1000)


def test_the_size_has_a_limit_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(3 << 10))
    assert files.read_bytes(tmp_path / "large", 3 << 10) == bytes(3 << 10)
    with pytest.raises(UserError, match="more than 2 KiB"):
        files.read_bytes(tmp_path / "large", 2 << 10)


def test_a_file_that_has_no_size_but_content_is_read() -> None:
    assert files.read_bytes("/proc/self/stat", 1 << 20)


@pytest.mark.parametrize("empty_first", [False, True])
def test_a_read_asks_for_what_the_file_has(
    empty_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for what it may have: that is memory which a small machine does not have."""
    asked = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size)
            return super().read(size)

        def fileno(self) -> int:
            return descriptor

    (tmp_path / "f").write_bytes(bytes(33 << 10))
    with open("/proc/self/stat" if empty_first else tmp_path / "f", "rb") as file:
        descriptor = file.fileno()
        content = bytes(300 << 10) if empty_first else bytes(33 << 10)
        monkeypatch.setattr(files, "open_regular", lambda *_: Counted(content))
        assert files.read_bytes(tmp_path / "f", 4 << 30) == content
    assert all(size is not None and 0 < size <= 1 << 17 for size in asked)


def test_where_memory_is_short_the_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object) -> bytes:
        raise MemoryError

    (tmp_path / "f").write_bytes(bytes(3 << 20))
    monkeypatch.setattr(files, "_read", short)
    monkeypatch.setattr("resource.getrlimit", lambda _: (3000 << 10, 3000 << 10))
    with pytest.raises(UserError, match=r"f: no memory to read it \(3 MiB\): ulimit -v allows 3000 KiB"):
        files.read_bytes(tmp_path / "f", 4 << 30)


def test_a_record_may_come_through_the_shells_pipe(tmp_path: Path) -> None:
    four_node_run().write(tmp_path / "record")
    command = f"{sys.executable} -m homing report <(cat record)"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_results_into_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    four_node_run().write(tmp_path / "record")
    os.mkfifo(tmp_path / "pipe")
    for flag in ("--json", "--summary"):
        done = run("report", "record", flag, "pipe", cwd=tmp_path)
        assert done.returncode == 2
        assert "nobody reads" in done.stderr
        done = run("report", "record", flag, "/dev/full", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def test_results_into_a_pipe_that_is_read(tmp_path: Path) -> None:
    four_node_run().write(tmp_path / "record")
    command = f"{sys.executable} -m homing report record --summary none --json >(cat >out; touch done)"
    subprocess.run(
        ["bash", "-c", command + "; while [ ! -e done ]; do sleep 0.05; done"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        check=True,
        timeout=PATIENCE,
    )
    assert json.loads((tmp_path / "out").read_text())["processes"]


# Response files


def test_response_files_in_a_circle(tmp_path: Path) -> None:
    from homing.compilers import expand_response_files

    (tmp_path / "a").write_text(f"-O2 @{tmp_path}/b")
    (tmp_path / "b").write_text(f"@{tmp_path}/a")
    with pytest.raises(UserError, match="without end"):
        expand_response_files([f"@{tmp_path}/a"])
    (tmp_path / "b").write_text("-DX='a b' @missing")
    assert expand_response_files([f"@{tmp_path}/a", "x.c"]) == ["-O2", "-DX=a b", "@missing", "x.c"]
    (tmp_path / "b").write_text("'open")
    with pytest.raises(UserError, match="no closing quotation"):
        expand_response_files([f"@{tmp_path}/a"])
    (tmp_path / "b").write_bytes(b"\xff.c")
    assert expand_response_files([f"@{tmp_path}/a"]) == ["-O2", "\udcff.c"]


# The command's edge


def test_a_defect_is_one_line_and_a_traceback_where_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from homing import cli, records

    def broken(path: str) -> None:
        raise KeyError("x\ny")

    four_node_run().write(tmp_path / "record")
    monkeypatch.setattr("homing.report.results.read_record", broken)
    assert cli.main(["report", str(tmp_path / "record")]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "a defect of homing (KeyError: " in said
    assert "at homing/report/results.py:" in said
    assert "HOMING_DEBUG=1" in said
    monkeypatch.setenv("HOMING_DEBUG", "1")
    assert cli.main(["report", str(tmp_path / "record")]) == 2
    assert "Traceback" in capfd.readouterr().err
    assert records is not None


def test_a_current_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from homing import cli

    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words in (["translate", "--to", "spmd", "x.c"], ["translate", "--to", "spmd", "--", "gcc", "x.c"]):
        assert cli.main(words) == 2
        assert capfd.readouterr().err == (
            "homing translate: the current folder was removed: go to one that is there\n"
        )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RecursionError(), "nested too deeply"),
        (MemoryError(), "out of memory"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "/x: No such file or directory"),
        (ValueError("a\nb"), "a defect of homing (ValueError: a b)"),
    ],
)
def test_unexpected_errors_in_words(error: Exception, said: str) -> None:
    assert said in unexpected(error)
    assert "\n" not in unexpected(error)


# Time


def test_a_time_limit_ends_what_catches_everything() -> None:
    turns = 0
    with pytest.raises(TimeUp), time_limit(0.05):
        while True:
            try:
                turns += 1
            except Exception:
                continue
    assert turns


def test_waiting_for_a_processor_is_no_work() -> None:
    with time_limit(0.05):
        time.sleep(0.3)
    with pytest.raises(TimeUp), time_limit(60, wall=0.05):
        time.sleep(60)
    with pytest.raises(TimeUp), time_limit(0.05, wall=60):
        while True:
            pass


def test_a_timer_that_comes_early_ends_no_work() -> None:
    """A late tick is charged as a whole to the process that it finds."""
    with time_limit(60):
        os.kill(os.getpid(), signal.SIGPROF)
    begin = time.process_time()
    with pytest.raises(TimeUp), time_limit(0.1):
        os.kill(os.getpid(), signal.SIGPROF)
        while True:
            pass
    assert time.process_time() - begin >= 0.1


def test_limits_within_one_another() -> None:
    with pytest.raises(TimeUp), time_limit(0.05):
        with time_limit(60):
            pass
        while True:
            pass
    with time_limit(60), pytest.raises(TimeUp), time_limit(0.05):
        while True:
            pass


def test_a_distribution_of_nothing_but_spaces_is_refused_at_once() -> None:
    from homing.simulate.description import parse_distributions

    with pytest.raises(UserError, match="must be ARRAY=block"), time_limit(5):
        parse_distributions(" " * 50_000)
    (one,) = parse_distributions(" u = cyclic(4) ")
    assert (one.area, one.cycle) == ("u", 4)
