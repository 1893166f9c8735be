"""A fuzzer of everything that reads what others wrote (test_fuzz.py runs it).

    python -m tests.python.fuzzing READER [--count N] [--seconds S] [--seed N] [--first N] [--examples FOLDER]

Each input is a mutated example: bytes, words and lines, numbers, nesting, values of JSON, the parts of an ELF
file. A reader may answer, or refuse with a UserError of one line (or its own kind that is printed so); any
other exception, and whatever works for more than PATIENCE seconds of processor time, or waits each time that
it is read, is a finding; a process that the system stopped meanwhile is none. Inputs depend on the examples,
the seed and the number only, so a finding can be repeated.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from homing.errors import UserError
from homing.limits import TimeUp, time_limit
from tests.python.fuzz_readers import Reader, examples, readers

#: Seconds of processor time after which a reader hangs: machines that run the tests are busy.
PATIENCE = 20.0
#: Seconds that pass after which a reader may wait for something, if it does so in each of TRIALS: a process
#: that is stopped (SIGSTOP, a frozen cgroup) lets time pass, too.
WAITING = 200.0
TRIALS = 3


@dataclass
class Outcome:
    """What became of the inputs of one reader."""

    reader: str
    count: int = 0
    refused: int = 0
    #: (number of the input, what happened, the input).
    findings: list[tuple[int, str, bytes]] = field(default_factory=list)


def make_input(reader: Reader, seeds: list[bytes], seed: int, number: int) -> bytes:
    """The input with this number."""
    chance = random.Random(f"{reader.name} {seed} {number}")
    return reader.mutate(chance.choice(seeds), chance)


def judge(reader: Reader, data: bytes, folder: Path) -> str:
    """Read one input: "read", "refused", or what is wrong."""
    for _ in range(TRIALS):
        what = _judge_once(reader, data, folder)
        if what is not None:
            return what
    return f"waits for more than {WAITING:g} s, {TRIALS} times"


def _judge_once(reader: Reader, data: bytes, folder: Path) -> str | None:
    """The same; None where the time was over and the processor time was not."""
    try:
        with time_limit(PATIENCE, wall=WAITING):
            reader.read(data, folder)
    except UserError as error:
        return "a refusal of several lines" if "\n" in error.message else "refused"
    except TimeUp as up:
        return None if up.waited else f"takes more than {PATIENCE:g} s of processor time"
    except reader.refused:
        return "refused"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = [f"{os.path.basename(one.filename)}:{one.lineno}" for one in frames[-3:]]
        return f"{type(error).__name__}: {str(error)[:200]} at {' < '.join(reversed(at))}"
    return "read"


def run(
    reader: Reader,
    seed: int,
    count: int | None = None,
    seconds: float | None = None,
    more: Sequence[bytes] = (),
    first: int = 0,
) -> Outcome:
    """Read inputs until there were so many, or so many seconds are over. more: further examples. first: the
    number of the first input, so that a long run can be made in parts."""
    outcome = Outcome(reader.name)
    seeds = [*reader.seeds(), *more]
    end = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        while (count is None or outcome.count < count) and (end is None or time.monotonic() < end):
            data = make_input(reader, seeds, seed, first + outcome.count)
            what = judge(reader, data, Path(name))
            outcome.refused += what == "refused"
            if what not in ("read", "refused"):
                outcome.findings.append((first + outcome.count, what, data))
            outcome.count += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.python.fuzzing")
    parser.add_argument("reader", choices=[*readers(), "all"])
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--examples", type=Path, help="a folder with further examples")
    parser.add_argument("--keep", help="a folder for the inputs that were found")
    given = parser.parse_args()
    chosen = list(readers().values()) if given.reader == "all" else [readers()[given.reader]]
    bad = 0
    for reader in chosen:
        begin = time.monotonic()
        more = examples(given.examples, reader.pattern) if given.examples and reader.pattern else ()
        outcome = run(reader, given.seed, given.count, given.seconds, more, given.first)
        took = time.monotonic() - begin
        print(
            f"{reader.name}: {outcome.count:,} inputs in {took:.0f} s, {outcome.refused:,} refused, "
            f"{len(outcome.findings)} findings",
            flush=True,
        )
        kinds: dict[str, list[int]] = {}
        for number, what, data in outcome.findings:
            kinds.setdefault(what, []).append(number)
            if given.keep and len(kinds[what]) == 1:
                Path(given.keep, f"{reader.name}-{given.seed}-{number}").write_bytes(data)
        for what, numbers in kinds.items():
            print(f"    {len(numbers)} x {what} (input {numbers[0]})", flush=True)
        bad += len(outcome.findings)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
