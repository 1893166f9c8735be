"""`homing lab` and `homing run --on lab` around a pretended guest: what is looked at before it boots, and
that the command's exit status is kept. tests/lab boots a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from homing import cli, lab_flags
from homing.errors import UserError
from homing.lab import guest, sinks
from homing.lab.counts import CacheModel, Counts
from homing.lab.options import LabOptions
from homing.lab_flags import LAB_FLAGS, lab_options
from homing.streams import OutputError
from tests.patience import PATIENCE
from tests.python.conftest import environment


class Pretended:
    """Stands for the guest: every command ends with status 7."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.lost = ""

    def run(self, command: Sequence[str], options: LabOptions, **more: object) -> guest.LabResult:
        self.ran.append(list(command))
        cache = CacheModel(1024, 16, 64, True)
        counts = Counts(2, 2, 1, cache, 2, 0, 50, {}, ()) if options.count is not None else None
        return guest.LabResult(7, 1.0, 2.0, 0.5, "6.1", counts, self.lost)


@pytest.fixture
def pretended(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    stand_in = Pretended()
    monkeypatch.setattr(guest, "run", stand_in.run)
    monkeypatch.setenv("HOMING_LIBRARY", str(fake_library))
    monkeypatch.chdir(tmp_path)
    return stand_in


def test_the_counts_file_is_looked_at_before(
    pretended: Pretended, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for path, said in (("/nodir/x", "no folder /nodir"), (".", "is a folder"), ("", "the name is empty")):
        assert cli.main(["lab", "--count", "--json", path, "--", "true"]) == 2
        assert said in capfd.readouterr().err
    assert pretended.ran == []
    assert cli.main(["lab", "--count", "--json", "100%.json", "--", "true"]) == 7
    assert json.loads((tmp_path / "100%.json").read_text())["machine"]["nodes"] == 2


@pytest.mark.parametrize("words", [["lab"], ["run", "--on", "lab"]])
def test_the_status_is_kept(
    words: list[str], pretended: Pretended, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "--count", "--json", "/dev/full", "--", "true"]) == 7
    assert "/dev/full: No space left on device" in capfd.readouterr().err
    pretended.lost = "standard output: No space left on device"
    assert cli.main([*words, "--", "true"]) == 7
    assert "standard output: No space left" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "cache"), [("1048576:16", (1024, 16)), ("2MiB:8", (2048, 8)), ("512KiB:1", (512, 1))]
)
def test_a_cache_is_written_as_for_machines(text: str, cache: tuple[int, int]) -> None:
    given = {**dict.fromkeys(LAB_FLAGS), "count": True, "cache": text}
    count = lab_options(given, None, []).count
    assert count is not None and (count.cache_kib, count.ways) == cache


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1MiB:99999", "99999 ways are not 1 to 64"),
        ("64\N{KELVIN SIGN}iB:4", "must be SIZE:WAYS"),
        ("1MiB", "must be SIZE:WAYS"),
    ],
)
def test_what_is_no_cache(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        lab_options({**dict.fromkeys(LAB_FLAGS), "count": True, "cache": text}, None, [])


def test_output_that_cannot_be_passed_on(tmp_path: Path) -> None:
    full, reader, writer = os.open("/dev/full", os.O_WRONLY), *os.pipe()
    os.close(reader)
    for descriptor in (full, writer):
        sink = sinks.Descriptor(descriptor)
        sink.write(b"text")
        sink.write(b"more")
        assert sink.error is not None, "remembered, and the command runs on"
        os.close(descriptor)
    # The reader of stdout has gone: the end, as of a program whose SIGPIPE is not handled.
    script = "from homing.lab.sinks import Descriptor; Descriptor(1).write(b'text')"
    shell = f'{sys.executable} -c "{script}" 2>&1 >&3 | tail -n 1'
    done = subprocess.run(
        ["bash", "-c", f"exec 3> >(exec true); wait $!; {shell}"],
        env=environment(tmp_path, tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.startswith(f"{OutputError.__module__}.{OutputError.__name__}"), done


def test_a_folder_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(guest.LabError, match="the current folder was removed"):
        guest.Guest(LabOptions())
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("536870912", 512), ("512MiB", 512), ("2g", 2048), ("1 GB", 1024), ("100TiB", 100 << 20)],
)
def test_memory_of_a_node(text: str, mebibytes: int) -> None:
    """How much there may be, the guest says (homing/lab/machine.py)."""
    assert lab_flags._mebibytes(text) == mebibytes


@pytest.mark.parametrize("text", ["512", "1536KiB", "much"])
def test_memory_of_a_node_is_whole_mebibytes(text: str) -> None:
    with pytest.raises(UserError, match="must be a size of 128MiB or more"):
        lab_flags._mebibytes(text)


@pytest.mark.parametrize("words", [["--on", "lab", "--count"], ["--on", "origin2000-16"]])
def test_a_bare_number_of_a_cache_is_bytes(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """It was KiB here, and bytes elsewhere: what would be a cache of 1,024 bytes is refused."""
    assert cli.main(["run", *words, "--cache", "1024:16", "--", "true"]) == 2
    assert "4KiB" in capfd.readouterr().err
