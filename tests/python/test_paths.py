"""homing's cache: what is made there, what is trusted, and that nothing fails where it is not (issue: other
people's bitcode ran in the user's program)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing import paths
from homing.paths import Cache, CacheError, distrust, make_private
from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[2]
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "homing"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# Where it lies


def test_homing_cache_is_stronger_than_xdg_and_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert paths.cache_base() == f"{tmp_path}/.cache/homing"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    assert paths.cache_base() == f"{tmp_path}/.cache/homing"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert paths.cache_base() == "/xdg/homing"
    monkeypatch.setenv("HOMING_CACHE", "/own")
    assert paths.cache_base() == "/own"
    assert os.environ["XDG_CACHE_HOME"] == "/xdg"


@pytest.mark.parametrize("home", [None, "", "not/absolute"])
def test_without_a_useful_home_the_user_database_has_it(
    home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pwd

    for name in ("HOMING_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert paths.cache_base() == pwd.getpwuid(os.getuid()).pw_dir + "/.cache/homing"


def test_a_home_folder_that_is_not_there_is_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    assert Cache("cc").folder == ""
    assert "HOMING_CACHE" in capfd.readouterr().err
    assert not (tmp_path / "gone").exists()


# What is made


def test_folders_and_files_are_the_users_alone(cache_home: Path) -> None:
    before = os.umask(0)
    try:
        path = Cache("cc").write("verdict", b"exact")
    finally:
        os.umask(before)
    assert Path(path) == cache_home / "cc" / "verdict"
    assert [mode(one) for one in (cache_home, cache_home / "cc", Path(path))] == [0o700, 0o700, 0o600]
    assert Cache("cc").read("verdict") == b"exact"
    assert Cache("cc").find("verdict") == path
    assert [one.name for one in (cache_home / "cc").iterdir()] == ["verdict"]


def test_a_folder_that_others_may_read_is_closed(cache_home: Path) -> None:
    cache_home.mkdir(parents=True)
    cache_home.chmod(0o755)
    assert Cache().folder == str(cache_home)
    assert mode(cache_home) == 0o700


def test_what_cannot_be_made_leaves_nothing(cache_home: Path) -> None:
    def fill(path: str) -> None:
        inside = Path(path)
        (inside / "part" if inside.is_dir() else inside).write_text("half")
        raise ValueError

    for name in ("file", "folder/"):
        with pytest.raises(ValueError):
            Cache().make(name, fill)
    assert list(cache_home.iterdir()) == []


# What is not trusted


def untrusted(folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """A cache with a planted file: it is not read, the work is done elsewhere; the line that says so."""
    capfd.readouterr()
    cache = Cache("cc")
    assert cache.read("verdict") is None
    assert cache.find("verdict") == ""
    made = Path(cache.write("verdict", b"ours"))
    assert made.read_bytes() == b"ours"
    assert not made.resolve().is_relative_to(folder)
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("homing: the cache is not used: ")
    return said


@pytest.fixture
def planted(cache_home: Path) -> Path:
    folder = cache_home / "cc"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "verdict").write_bytes(b"theirs")
    return folder


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_folder_that_others_may_write_to(
    level: int, planted: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = [planted, *planted.parents][level]
    folder.chmod(0o777)
    assert f"{folder} can be written to by others" in untrusted(folder, capfd)


@as_root
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_folder_of_another_user(level: int, planted: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = [planted, *planted.parents][level]
    os.chown(folder, NOBODY, NOBODY)
    assert f"{folder} belongs to user {NOBODY}" in untrusted(folder, capfd)
    assert (planted / "verdict").read_bytes() == b"theirs"


@as_root
def test_a_group_may_not_write_unless_it_is_the_users_own(planted: Path) -> None:
    planted.chmod(0o770)
    os.chown(planted, 0, 50)  # any group of several users
    assert "by others" in distrust(str(planted))
    os.chown(planted, 0, 0)
    assert distrust(str(planted)) == ""


@as_root
def test_a_folder_that_another_user_made_in_tmp(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        shared = Path(name)
        shared.chmod(0o1777)
        (shared / "cache" / "cc").mkdir(parents=True)
        os.chown(shared / "cache", NOBODY, NOBODY)
        monkeypatch.setenv("HOMING_CACHE", str(shared / "cache"))
        assert f"belongs to user {NOBODY}" in untrusted(shared / "cache", capfd)


@as_root
def test_a_link_of_another_user_to_a_folder_of_ours(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "ours").mkdir(mode=0o700)
    link = tmp_path / "shared" / "link"
    link.symlink_to(tmp_path / "ours")
    assert distrust(str(link)) == ""
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert "belongs to user" in distrust(str(link))


def test_the_users_own_link_to_another_disk_is_followed(cache_home: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    cache_home.parent.symlink_to(tmp_path / "disk")
    assert Cache("cc").write("a", b"b") == f"{cache_home}/cc/a"
    assert (tmp_path / "disk/homing/cc/a").read_bytes() == b"b"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(CacheError):
        make_private(str(tmp_path / "a" / "cache"))


def test_planted_files_are_not_read_and_are_replaced(
    cache_home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"theirs")
    folder = cache_home / "cc"
    folder.mkdir(parents=True, mode=0o700)
    path = folder / "verdict"
    plants = {
        "link": lambda: path.symlink_to(victim),
        "pipe": lambda: os.mkfifo(path),
        "socket": lambda: subprocess.run(
            [sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX).bind('verdict')"],
            cwd=folder,
            check=True,
        ),
        "writable": lambda: (path.write_bytes(b"theirs"), path.chmod(0o666)),
        "link to nothing": lambda: path.symlink_to(tmp_path / "nothing"),
    }
    if os.geteuid() == 0:
        plants["owner"] = lambda: (path.write_bytes(b"theirs"), os.chown(path, NOBODY, NOBODY))
    for what, plant in plants.items():
        plant()
        cache = Cache("cc")
        assert cache.read("verdict") is None, what
        assert cache.find("verdict") == "", what
        assert cache.write("verdict", b"ours") == str(path), what
        assert path.lstat().st_size == 4, what
        assert Cache("cc").read("verdict") == b"ours", what
        path.unlink()
        assert capfd.readouterr().err.count("\n") == 1, what
    assert victim.read_bytes() == b"theirs"
    assert not (tmp_path / "nothing").exists()


def test_a_file_in_the_place_of_the_folder(cache_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cache_home.parent.mkdir()
    cache_home.write_text("")
    assert "is no folder" in untrusted(cache_home, capfd)


@as_root
def test_a_home_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """As nobody: HOME of root (sudo), a read-only one, and / itself."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        readable = Path(name)
        readable.chmod(0o755)
        shutil.copytree(TREE / "homing", readable / "homing", ignore=shutil.ignore_patterns("bench"))
        code = "from homing.paths import Cache; print(open(Cache('cc').write('a', b'b')).read())"
        for home in ("/root", name, "/", "/nonexistent"):
            done = subprocess.run(
                ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "/usr/bin/env",
                 "-i", f"HOME={home}", "TMPDIR=/tmp", f"PYTHONPATH={name}:{os.pathsep.join(sys.path)}",
                 "PYTHONDONTWRITEBYTECODE=1", "/usr/bin/python3", "-c", code],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stdout) == (0, "b\n"), done.stderr
            assert done.stderr.count("\n") == 1
            assert done.stderr.startswith("homing: the cache is not used: ")


# Two at once


def test_processes_that_make_the_same_at_once(cache_home: Path) -> None:
    """Each gets a whole file and a whole folder, and nothing is left aside."""
    code = """
import os, sys
from pathlib import Path
from homing.paths import Cache
def fill(path):
    for number in range(50):
        (Path(path) / str(number)).write_text("whole")
for turn in range(20):
    name = Cache("cc").write("file", b"x" * 100_000)
    assert Path(name).stat().st_size == 100_000
    folder = Path(Cache("cc").make(f"folder-{turn}/", fill))
    assert len(list(folder.iterdir())) == 50
"""
    made = [
        subprocess.Popen([sys.executable, "-c", code], cwd=TREE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for one in made:
        _, said = one.communicate(timeout=PATIENCE)
        assert (one.returncode, said) == (0, "")
    assert sorted(one.name for one in (cache_home / "cc").iterdir() if one.name.startswith(".")) == []


# Where it is used


@pytest.fixture
def c_source(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "program.c"
    path.write_text("int main(void) { return 0; }\n")
    yield path


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_homing_cc_compiles_without_a_cache_it_can_trust(
    compiler: str, c_source: Path, planted: Path, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    planted.chmod(0o777)
    (planted / "verdict").unlink()
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "homing", "cc", compiler, "-c", str(c_source), "-o", str(tmp_path / "p.o")],
        env={**os.environ, "PYTHONPATH": str(TREE), "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"homing: the cache is not used: {planted} can be written to by others\n"
    assert (tmp_path / "p.o").exists()
    assert list(planted.iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_kernels_of_others_are_not_booted(cache_home: Path, tmp_path: Path) -> None:
    from homing.lab import kernel

    boot = cache_home / "kernels" / "boot"
    boot.mkdir(parents=True)
    assert kernel.unpacked() == boot.parent
    boot.parent.chmod(0o777)
    with pytest.raises(CacheError, match="can be written to by others"):
        kernel.unpacked()


@pytest.mark.parametrize("why", ["open to others", "no home"])
@pytest.mark.parametrize("wanted", [None, "6.12"])
def test_a_kernel_that_cannot_be_looked_for_is_not_called_missing(
    why: str, wanted: str | None, cache_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from homing.lab import kernel
    from homing.lab.errors import LabError

    if why == "open to others":
        (cache_home / "kernels").mkdir(parents=True)
        (cache_home / "kernels").chmod(0o777)
        reason = "can be written to by others"
    else:
        monkeypatch.delenv("HOMING_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
        reason = "there is no home folder"
    with pytest.raises(LabError, match=reason) as caught:
        kernel.find_kernel(wanted, tmp_path / "boot", tmp_path / "modules")
    assert "\n" not in caught.value.message
    assert "--setup" not in caught.value.message and "apt-get" not in caught.value.message


def test_set_up_unpacks_into_a_folder_of_its_own(cache_home: Path) -> None:
    words = [sys.executable, "-m", "homing.paths", str(cache_home / "kernels")]
    done = subprocess.run(words, cwd=TREE, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert mode(cache_home / "kernels") == 0o700
    (cache_home / "kernels").chmod(0o777)
    done = subprocess.run(words, cwd=TREE, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
