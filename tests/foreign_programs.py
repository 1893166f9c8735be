"""Programs of the distribution and of PyPI, each bare, with homing on one node, and on four assumed nodes.

Compared are stdout, stderr (less homing's own lines), the exit status, and the files that a program makes.
Programs that are not installed are listed as skipped. The list is tests/foreign_programs.tsv.

    python -m tests.foreign_programs [--short] [--on-lab] [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[1]
LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))
#: Seconds that a run with the boot of a guest may take: a busy machine makes it slow.
LAB_SECONDS = 1500

#: Made in each folder before a program runs.
INPUTS = r"""
seq 1 20000 | sed 's/$/ the quick brown fox/' > text
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n' > a.c
printf 'program a\nprint *, "hello", sum([(i, i = 1, 10)])\nend\n' > a.f90
printf '#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }\n' > a.cc
mkdir -p tree/one/two && cp text a.c tree/one/two/
touch -d 2020-01-01 tree tree/one tree/one/two tree/one/two/*
"""

#: Of these 20 run in the guest as well: small, without a compiler's start of seconds.
LAB = [
    *("awk", "bash", "bc", "bzip2", "cat", "dd", "diff", "find", "gcc", "grep", "gzip", "jq", "make", "perl"),
    *("python", "sed", "sort", "sqlite", "tar", "xz"),
]
#: What `make test` runs.
SHORT = ["sort-parallel", "xz-threads", "python-threads", "gcc", "gdb", "perl", "node", "tar", "make"]


def load_programs() -> dict[str, tuple[str, str]]:
    """name -> (what must be there, a command of bash), from the table beside this file."""
    found = {}
    for line in (TREE / "tests" / "foreign_programs.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, probe, command = (part.replace("PYTHON", sys.executable) for part in line.split("\t"))
        found[name] = (probe, command)
    return found


PROGRAMS = load_programs()


@dataclass(frozen=True)
class Seen:
    """What a user sees of a run."""

    status: int
    out: bytes
    errors: str
    files: tuple[tuple[str, str], ...]

    def differences(self, other: Seen) -> list[str]:
        found = []
        if self.status != other.status:
            found.append(f"exit status {self.status}, with homing {other.status}")
        if self.out != other.out:
            found.append(f"stdout {self.out[-300:]!r}, with homing {other.out[-300:]!r}")
        if self.errors != other.errors:
            found.append(f"stderr {self.errors[-300:]!r}, with homing {other.errors[-300:]!r}")
        if self.files != other.files:
            found.append(f"files {set(self.files) ^ set(other.files)}")
        return found


def is_there(probe: str) -> bool:
    if probe.startswith("py:"):
        found = subprocess.run([sys.executable, "-c", f"import {probe[3:]}"], capture_output=True)
        return found.returncode == 0
    return shutil.which(probe) is not None


def files_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """Names and contents of what lies in the folder."""
    return tuple(
        (str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()[:16])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("a", "m", "log")  # executables have a build-id by their path
    )


#: What differs from run to run without homing, too.
CHANGING = re.compile(r"==\d+==|\(\d+\)|process \d+|/tmp/[\w./-]+|0x[0-9a-f]+|\d+\.\d+ ?(s|ms)\b")


def run(
    command: str, before: list[str], extra: dict[str, str], place: Path, seconds: float = PATIENCE
) -> Seen:
    """One run in a folder of one name, which is made anew."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    subprocess.run(["sh", "-c", INPUTS], cwd=place, check=True)
    own = ("HOMING", "LD_PRELOAD", "OMP_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    usual = {"OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    environment = {**kept, **usual, **extra}
    ended = subprocess.run(
        [*before, "bash", "-c", command],
        cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds,
    )  # fmt: skip
    lines = [
        CHANGING.sub("_", line)
        for line in ended.stderr.decode(errors="replace").splitlines()
        if not line.startswith("homing")
    ]
    out = CHANGING.sub("_", ended.stdout.decode(errors="replace")).encode()
    return Seen(ended.returncode, out, "\n".join(lines), files_of(place))


def ways(on_lab: bool) -> dict[str, tuple[list[str], dict[str, str]]]:
    """How each program is started: what stands before it, and the environment."""
    launch = [sys.executable, "-m", "homing", "run", "--summary", "none"]
    own = {"PYTHONPATH": str(TREE), "HOMING_LIBRARY": str(LIBRARY)}
    found = {
        "one node": ([*launch, "--"], own),
        "four assumed nodes": ([*launch, "--"], {**own, "HOMING_ASSUME_NODES": "4"}),
    }
    if on_lab:
        found = {"the guest": ([*launch, "--on", "lab", "--"], own)}
    return found


def check(names: Iterable[str], on_lab: bool = False) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """Same, skipped, and what differs by program."""
    same, skipped, different = [], [], {}
    seconds = LAB_SECONDS if on_lab else PATIENCE
    with tempfile.TemporaryDirectory(prefix="homing-foreign.") as scratch:
        place = Path(scratch) / "here"
        for name in names:
            probe, command = PROGRAMS[name]
            if not is_there(probe):
                skipped.append(name)
                continue
            bare = run(command, [], {}, place)
            found = []
            for way, (before, extra) in ways(on_lab).items():
                try:
                    seen = run(command, before, extra, place, seconds)
                    found += [f"{way}: {text}" for text in bare.differences(seen)]
                except subprocess.TimeoutExpired:
                    found.append(f"{way}: did not end within {seconds} s")
            if found:
                different[name] = found
            else:
                same.append(name)
            print("\n    ".join([f"{'DIFFERENT' if found else 'same':9} {name}", *found]), flush=True)
    return same, skipped, different


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.foreign_programs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--short", action="store_true", help="what make test runs")
    parser.add_argument("--on-lab", action="store_true", help="20 of them in the guest with four nodes")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these only")
    arguments = parser.parse_args()
    chosen = arguments.names or (SHORT if arguments.short else LAB if arguments.on_lab else list(PROGRAMS))
    if unknown := [name for name in chosen if name not in PROGRAMS]:
        parser.error(f"unknown program {unknown[0]!r}; known: {', '.join(PROGRAMS)}")
    same, skipped, different = check(chosen, arguments.on_lab)
    if skipped:
        print(f"skipped, not installed: {', '.join(skipped)}")
    print(f"{len(same)} of {len(same) + len(different)} same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
