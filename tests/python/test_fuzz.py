"""All readers of what others wrote, on damaged input: a short run of each with a fixed seed, and 60 seconds
each in `make test-all`. What these found is a test of its own beside what reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.python import fuzzing
from tests.python.fuzz_readers import Reader

NAMES = list(fuzzing.readers())


def _check(outcome: fuzzing.Outcome) -> None:
    found = [f"input {number}: {what}" for number, what, _ in outcome.findings[:10]]
    assert not found, f"{outcome.reader}, {outcome.count} inputs: " + "; ".join(found)
    assert outcome.count


@pytest.mark.parametrize("name", NAMES)
def test_damaged_input_is_read_or_refused_in_one_line(name: str) -> None:
    reader = fuzzing.readers()[name]
    _check(fuzzing.run(reader, seed=1, count=reader.short))


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_read(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The fuzzer begins with something sound: else it would test refusals only."""
    reader = fuzzing.readers()[name]
    seeds = reader.seeds()
    assert fuzzing.judge(reader, seeds[0], tmp_path_factory.mktemp("seed")) == "read"


def _reader(read: Callable[[bytes, Path], object]) -> Reader:
    return Reader("own", lambda: [b"x"], read, lambda data, chance: data)


def test_a_process_that_was_stopped_while_it_read_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time that passes is no verdict on an input: a frozen cgroup made five sound sources "take 20 s"."""
    monkeypatch.setattr(fuzzing, "WAITING", 0.1)
    reads = []

    def stopped_once(data: bytes, folder: Path) -> None:
        reads.append(data)
        if len(reads) == 1:
            again = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
            again.wait()

    assert fuzzing.judge(_reader(stopped_once), b"x", tmp_path) == "read"
    assert len(reads) == 2


def test_what_waits_each_time_and_what_works_too_long_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, "WAITING", 0.05)
    waits = _reader(lambda data, folder: threading.Event().wait(60))
    assert fuzzing.judge(waits, b"x", tmp_path) == "waits for more than 0.05 s, 3 times"

    monkeypatch.setattr(fuzzing, "WAITING", 60.0)
    monkeypatch.setattr(fuzzing, "PATIENCE", 0.05)

    def works(data: bytes, folder: Path) -> None:
        while True:
            pass

    assert fuzzing.judge(_reader(works), b"x", tmp_path) == "takes more than 0.05 s of processor time"


#: Short texts of any characters, and of the signs that the small languages of options are made of.
_TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="{}()[]:,!-+.%=<>'\" 0123456789abcdefgruncliot", max_size=60),
    st.lists(
        st.sampled_from(
            ["run", "area", ".", "remote_fraction", "not", "and", "or", "(", ")", "<", "10%", "u"]
        )
    ).map(" ".join),
)


@settings(max_examples=25, derandomize=True)
@given(text=_TEXTS)
def test_any_text_is_an_option_or_refused(text: str) -> None:
    readers = fuzzing.readers()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("options", "expressions", "synthetic", "costs", "cc"):
            data = text.encode("utf-8", "surrogatepass")
            assert fuzzing.judge(readers[name], data, Path(folder)) in ("read", "refused"), name


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_minute_of_damaged_input(name: str) -> None:
    _check(fuzzing.run(fuzzing.readers()[name], seed=2, seconds=60))
