"""The programs that are measured (apps/), and what they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homing.errors import UserError

#: Files of apps/common/ that every program in C or Fortran is built with.
COMMON = ("app", "mark", "place")


@dataclass(frozen=True)
class Output:
    """What a program of apps/ printed (apps/README.md). Seconds are of the clock where it ran."""

    fields: dict[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Of the large arrays."""
        return int(self.fields.get("bytes", "0"))

    @property
    def count(self) -> int:
        """How many iterations there were."""
        return int(self.fields.get("iterations", "0"))

    @property
    def median(self) -> float:
        """Seconds of an iteration, the median; NaN where the program did not say."""
        found = re.match(
            r"[0-9.]+ ([0-9.]+) [0-9.]+ s", self.fields.get("time iteration least, median, most", "")
        )
        return float(found[1]) if found else float("nan")

    @property
    def initialisation(self) -> float:
        """Seconds before the first iteration that counts."""
        return self._seconds("time initialisation")

    @property
    def total(self) -> float:
        """Seconds of all iterations."""
        return self._seconds("time total")

    @property
    def verification(self) -> str:
        """successful, failed, or not applicable."""
        return self.fields.get("verification", "")

    @property
    def results(self) -> dict[str, str]:
        """What must have the same digits in every run."""
        return {name: value for name, value in self.fields.items() if name.startswith("result")}

    def _seconds(self, name: str) -> float:
        found = re.match(r"[0-9.]+", self.fields.get(name, ""))
        return float(found[0]) if found else float("nan")


def parse_output(text: str) -> Output:
    """Lines `name: value` of a program's output."""
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(": ")
        if colon:
            fields[name] = value.strip()
    return Output(fields)


def execute(
    command: Sequence[str], environment: Mapping[str, str], timeout: float | None = None, name: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command, in messages called `name`. UserError where it fails, or does not end in `timeout` s."""
    name = name or " ".join(command)
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{name}: no end after {timeout:.0f} s", 1) from error
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).split())[-400:]
        raise UserError(f"{name} ended with {done.returncode}: {reason}", 1)
    return done


def callgrind(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Instructions of a run, all threads together: those must not spin, or waiting counts. UserError as
    execute()."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    found = re.search(r"Collected\s*: (\d+)", execute([*tool, *command], environment).stderr)
    if found is None:
        raise UserError(f"callgrind said nothing about {' '.join(command)}", 1)
    return int(found[1])
