"""apps/dsm: shared memory between processes after TreadMarks. Results have the bits of the serial run, and
counts are those that were worked out by hand; the comments say how."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.python.test_apps import built_by, program


def run(name: str, *arguments: str, compiler: str = "gcc") -> subprocess.CompletedProcess[str]:
    command = [program(f"dsm_{name}", compiler), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def counts(name: str, *arguments: str, compiler: str = "gcc") -> dict[str, list[int]]:
    """By count: each process's."""
    done = run(name, *arguments, compiler=compiler)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "verification: successful"
    found = {}
    for line in lines:
        if line.startswith("count "):
            head, numbers = line.removeprefix("count ").split(" of ")
            found[head.split(":")[0]] = [int(number) for number in numbers.split()]
    return found


def sums(name: str, *arguments: str, compiler: str = "gcc") -> dict[str, int]:
    return {count: sum(each) for count, each in counts(name, *arguments, compiler=compiler).items()}


def case(name: str, processes: int, *more: str) -> dict[str, int]:
    return sums("cases", "--case", name, "--processes", str(processes), *more)


def sent(processes: int) -> int:
    """Bytes of a message of a barrier or lock: header 16, which one 4, a number for each process."""
    return 20 + 4 * processes


def interval(processes: int, notices: int) -> int:
    """Bytes that an interval adds to it."""
    return 8 + 4 * processes + 4 * notices


def diff(*sizes: int) -> int:
    """Bytes of a request for diffs, and of the answer."""
    return (16 + 4 + 8 * len(sizes)) + (16 + sum(12 + size for size in sizes))


def page(processes: int) -> int:
    """Bytes of a request for a page, and of the answer."""
    return 20 + (20 + 4 * processes + 4096)


ONE_WORD = 8  # a run and a word


def test_a_diff_has_what_changed_and_nothing_else() -> None:
    case("diff", 1)


def test_of_two_writers_to_one_page_none_is_lost() -> None:
    found = case("false-sharing", 2)
    # Each: a fault, a twin, a notice. At the barrier each hears of the other's, so that its own diff is made;
    # then each reads the other's word.
    for count in ("write_faults", "twins", "notices", "intervals", "invalidated", "diffs", "read_faults"):
        assert found[count] == 2, count
    assert found["diff_bytes"] == 2 * ONE_WORD
    # To READ and WRITE when it is written, back when the diff is made, away when it is invalid, READ again:
    # writing, diff, invalid, reading; for each of both.
    assert found["protections"] == 2 * 4
    assert found["messages"] == 2 + 2 * 2
    assert found["bytes"] == 2 * (sent(2) + interval(2, 1)) + 2 * diff(ONE_WORD)


def test_what_nobody_reads_is_told_once() -> None:
    found = case("unread", 2)
    for count in ("write_faults", "twins", "notices", "intervals", "invalidated"):
        assert found[count] == 1, count
    assert found["diffs"] == 0
    assert found["messages"] == 10 * 2
    assert found["bytes"] == 20 * sent(2) + interval(2, 1)


def test_eager_diffs_are_told_in_every_interval() -> None:
    found = case("unread", 2, "--diffs", "eager")
    for count in ("write_faults", "twins", "notices", "intervals", "diffs"):
        assert found[count] == 10, count
    assert found["invalidated"] == 1
    assert found["diff_bytes"] == 10 * ONE_WORD
    assert found["bytes"] == 20 * sent(2) + 10 * interval(2, 1)


def test_each_reader_of_a_producer_asks_once_an_interval() -> None:
    found = case("producer", 3)
    assert found["write_faults"] == found["twins"] == found["diffs"] == found["notices"] == 10
    assert found["read_faults"] == found["diffs_applied"] == found["invalidated"] == 20
    assert found["messages"] == 20 * 4 + 20 * 2
    assert found["bytes"] == 80 * sent(3) + 20 * interval(3, 1) + 20 * diff(ONE_WORD)


def test_a_copy_made_while_its_page_is_written_misses_nothing() -> None:
    found = case("late-copy", 3)
    # Process 2 gets the page while process 0 has a twin. Its first diff holds both words, those that were
    # written until it was asked for; then process 0 has a fault again.
    assert found["pages_fetched"] == 1
    assert found["write_faults"] == found["twins"] == found["diffs"] == found["notices"] == 2
    assert found["diff_bytes"] == 12 + ONE_WORD
    assert found["messages"] == 2 + 3 * 4 + 2 + 2 + 2
    barriers = 12 * sent(3) + 4 * interval(3, 1)
    # Process 2 asks twice, process 1 once for both diffs.
    assert found["bytes"] == page(3) + barriers + diff(12) + diff(ONE_WORD) + diff(12, ONE_WORD)


def test_a_lock_takes_two_or_three_messages_and_its_notices_along() -> None:
    found = case("counter", 3)
    # Process 0 has the lock and the page. 1: asks the manager, 0, which has it: 2 messages, and the page's 2.
    # 2: by 0 to 1: 3 messages, the page from 0, the diff from 1. After the barrier 0 asks 2 for both diffs,
    # which had heard of 1's, and 1 asks for that of 2.
    assert found["locks_acquired"] == 3
    assert found["messages"] == (2 + 2) + (3 + 2 + 2) + 4 + 2 + 2
    locks = 5 * sent(3) + interval(3, 1)
    barrier = 4 * sent(3) + 3 * interval(3, 1)
    diffs = diff(ONE_WORD) + diff(ONE_WORD, ONE_WORD) + diff(ONE_WORD)
    assert found["bytes"] == locks + 2 * page(3) + barrier + diffs


@pytest.mark.parametrize("diffs", ["lazy", "eager"])
@pytest.mark.parametrize("processes", ["1", "2", "3", "8", "32"])
def test_programs_without_races_read_what_was_written(processes: str, diffs: str) -> None:
    arguments = ("--case", "random", "--processes", processes, "--diffs", diffs)
    first = run("cases", *arguments)
    assert (first.returncode, first.stderr) == (0, "")
    assert run("cases", *arguments).stdout == first.stdout, "two runs count differently"


SMALL = {"jacobi": ("--n", "96"), "lu": ("--n", "70"), "lbe": ("--n", "48")}


@pytest.mark.parametrize(
    ("name", "compiler"), built_by(*itertools.product(SMALL, ["gcc", "clang"]), prefix="dsm_")
)
def test_the_programs_have_the_bits_of_the_serial_run(name: str, compiler: str) -> None:
    for version, processes in itertools.product(("shared", "private"), ("1", "3", "8", "16")):
        words = ("--version", version, "--processes", processes, *SMALL[name])
        found = sums(name, *words, compiler=compiler)
        if processes == "1":
            used = {count: value for count, value in found.items() if value > 0}
            assert set(used) <= {"barriers", "locks_acquired"}, "alone, nothing is sent and nothing faults"
        else:
            assert found["messages"] > 0
    sums(name, "--diffs", "eager", "--processes", "5", *SMALL[name], compiler=compiler)


def test_jacobi_needs_one_page_for_each_side_of_a_border() -> None:
    """Rows of one page, 4 processes: 3 borders, a page on either side of each."""
    words = ("--n", "512", "--processes", "4", "--steps", "3")
    for version, barriers in (("shared", 2), ("private", 1)):
        found = sums("jacobi", "--version", version, *words)
        for count in ("read_faults", "write_faults", "twins", "diffs", "notices", "diffs_applied"):
            assert found[count] == 3 * 6, (version, count)
        assert found["messages"] == 3 * (6 * 2 + barriers * 6), version
    # Eager: all pages of both grids but the first and last row, in the intervals in which they are written.
    eager = sums("jacobi", "--diffs", "eager", *words)
    assert eager["twins"] == eager["diffs"] == eager["notices"]
    # Process 0's rows that nobody asked for are its own: it was given all pages, and writes them as it likes.
    # Of its 127 rows inside only the one at the border was ever read by another.
    others = 128 + 128 + 127
    assert eager["twins"] == 3 * (2 * others + 1)


def test_lu_has_one_reader_for_each_process_that_has_columns_left() -> None:
    n, processes = 64, 4
    found = sums("lu", "--version", "private", "--n", str(n), "--processes", str(processes))
    readers = sum(
        1
        for k in range(n - 1)
        for process in range(processes)
        if process != k % processes and any(j % processes == process for j in range(k + 1, n))
    )
    assert found["read_faults"] == readers
    assert found["pages_fetched"] == processes - 1
    assert found["barriers"] == processes * 2 * (n - 1)


COSTS = ("work", "fault", "protect", "twin", "diff", "apply", "roundtrip", "serve", "byte", "client")


def costs_file(folder: Path, **chosen: float) -> str:
    lines = [f"{name} {chosen.get(name, 0)} {2 * chosen.get(name, 0)} 0\n" for name in COSTS]
    path = folder / "costs"
    path.write_text("".join(lines))
    return str(path)


def predicted(done: subprocess.CompletedProcess[str]) -> list[float]:
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if line.startswith("predicted")]
    return [float(line.split()[2]) for line in lines]


def test_predicted_times_are_those_of_the_costs(tmp_path: Path) -> None:
    barriers = costs_file(tmp_path, roundtrip=100, client=10)
    done = run("cases", "--case", "unread", "--processes", "3", "--costs", barriers)
    assert predicted(done) == [10 * 120, 10 * 240, 0]
    faults = costs_file(tmp_path, fault=5, twin=7, protect=1)
    done = run("cases", "--case", "unread", "--processes", "2", "--costs", faults)
    assert predicted(done)[0] == 5 + 7 + 1 + 1  # process 1 loses its copy after the barrier
    work = costs_file(tmp_path, work=3)
    done = run("jacobi", "--n", "66", "--processes", "2", "--steps", "4", "--costs", work)
    assert predicted(done) == [4 * 32 * 64 * 3, 4 * 32 * 64 * 6, 0]  # each step waits for the slower half


def test_costs_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "costs"
    path.write_text("work 1 1 1\n")
    done = run("jacobi", "--n", "16", "--costs", str(path))
    assert done.returncode == 1
    assert "lacks a cost" in done.stderr


def test_a_process_that_fails_ends_all() -> None:
    done = run("cases", "--case", "failure", "--processes", "3")
    assert done.returncode == 1
    assert "process 1: dsm_cases: as it was told to" in done.stderr
