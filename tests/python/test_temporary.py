"""Temporary folders: those whose owner was killed go at the next start, nobody else's."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from homing import temporary

PREFIX = "homing-test-"


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_an_abandoned_folder_goes_at_once_and_a_living_one_stays() -> None:
    living, abandoned = temporary.make_folder(PREFIX), temporary.make_folder(PREFIX)
    abandoned.note(b"who I was")
    os.close(abandoned.lock)  # as the kernel does it for a process that was killed
    assert [(path, note) for path, note in temporary.abandoned(PREFIX)] == [(abandoned.path, b"who I was")]
    temporary.remove_abandoned(PREFIX)
    assert (living.path.exists(), abandoned.path.exists()) == (True, False)
    living.remove()
    assert not living.path.exists()


def test_only_one_looks_at_an_abandoned_folder() -> None:
    os.close(temporary.make_folder(PREFIX).lock)
    first = temporary.abandoned(PREFIX)
    assert next(first)
    assert list(temporary.abandoned(PREFIX)) == []


@pytest.mark.parametrize(
    "kind",
    [
        "named by the user",
        "another's",
        "with a lock of its own",
        "link",
        "without a lock",
        "linked lock",
        "file",
    ],
)
def test_what_is_not_such_a_folder_stays(kind: str, base: Path) -> None:
    path = base / (PREFIX + ("results" if kind == "named by the user" else "baseline"))
    if kind == "link":
        (base / "work").mkdir()
        (base / "work" / "lock").touch()
        path.symlink_to(base / "work")
    elif kind == "file":
        path.touch()
    else:
        path.mkdir()
        (path / "data").touch()
        if kind == "linked lock":
            (path / "lock").symlink_to(path / "data")
        elif kind != "without a lock":
            (path / "lock").touch()
        if kind == "another's":
            if os.geteuid() != 0:
                pytest.skip("only root can give a folder away")
            os.chown(path, 12345, 12345)
    os.utime(path, (0, 0), follow_symlinks=False)
    temporary.remove_abandoned(PREFIX)
    assert path.exists()


def test_an_empty_folder_whose_owner_had_no_time_to_lock_it_goes_when_it_is_old(base: Path) -> None:
    young, old = base / f"{PREFIX}aaaaaaaa", base / f"{PREFIX}bbbbbbbb"
    for path in (young, old):
        path.mkdir()
        (path / "new").touch()
    os.utime(old, (0, 0))
    temporary.remove_abandoned(PREFIX)
    assert (young.exists(), old.exists()) == (True, False)


def test_a_long_path_goes_to_tmp(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / ("x" * 80)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(base / ("x" * 80)))
    folder = temporary.make_folder(PREFIX, longest=80)
    assert folder.path.parent == Path("/tmp")
    folder.remove()


def test_a_folder_is_used_as_long_as_a_process_knows_it() -> None:
    folder = temporary.make_folder(PREFIX)
    assert not temporary.is_used(os.fsencode(folder.path.name))
    with subprocess.Popen(["sleep", "60"], env={"X": f"{folder.path}/%p"}) as process:
        assert temporary.is_used(os.fsencode(folder.path.name))
        process.kill()
    assert not temporary.is_used(os.fsencode(folder.path.name))
    folder.remove()
