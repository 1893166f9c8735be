"""One run of a code of apps/chapman, and what it says: seconds, instructions, messages, remote fractions."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from homing.bench.programs import Output, callgrind, execute, parse_output
from homing.errors import UserError

MACHINE = "origin2000-128"
MPI_ARGUMENTS = {
    "jacobi": ("--n", "255", "--iterations", "1", "--steps"),
    "lu": ("--n", "129"),
    "lbe": ("--nx", "65", "--ny", "63", "--iterations", "1", "--steps"),
}


def quiet_environment(threads: int, **extra: str) -> dict[str, str]:
    """Bound threads that do not spin, and nothing of the caller's own settings."""
    chosen = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HOMING", "OMP_", "GOMP_", "LD_PRELOAD"))
    }
    return {
        **chosen,
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "true",
        "OMP_WAIT_POLICY": "passive",
        **extra,
    }


def bytes_a_step(code: str, parts: int, arguments: Sequence[str]) -> int:
    """What has to be exchanged (section 5): in LU, in the whole factorisation."""
    values = dict(itertools.pairwise(arguments))
    if code == "jacobi":
        return 16 * (parts - 1) * int(values["--n"])
    if code == "lu":
        n = int(values["--n"])
        return sum(8 * (n - k) for k in range(1, n))
    return 48 * (parts - 1) * int(values["--nx"])


STATISTICS = re.compile(
    r"homing_parts parts (\d+) exchanges (\d+) bytes (\d+) messages (\d+) message_bytes (\d+)"
)


@dataclass(frozen=True)
class Exchanged:
    """What a run sent: into buffers, and in messages between ranks."""

    bytes: int
    messages: int
    message_bytes: int


def exchanged(stderr: str) -> Exchanged:
    """From the line that HOMING_PARTS=statistics prints."""
    found = STATISTICS.search(stderr)
    if found is None:
        raise UserError("the program printed no statistics of its exchanges", 1)
    return Exchanged(int(found[3]), int(found[4]), int(found[5]))


def run_time(command: Sequence[str], threads: int) -> float:
    """Seconds of all iterations."""
    output: Output = parse_output(execute(command, quiet_environment(threads)).stdout)
    if output.verification != "successful":
        raise UserError(f"{' '.join(command)}: verification {output.verification}", 1)
    return output.total


def counted_step(command: Sequence[str], more: int) -> float:
    """The difference of two runs by `more` steps, a step; the run itself where more is 0."""
    if more == 0:
        return float(_instructions(command))
    return (_instructions([*command, str(2 + more)]) - _instructions([*command, "2"])) / more


def _instructions(command: Sequence[str]) -> int:
    """Of a run with 2 threads. They do not spin: waiting is not counted."""
    return callgrind(command, quiet_environment(2))


def ranks_step(path: str, code: str, ranks: int) -> tuple[float, float, float]:
    """(bytes, messages, bytes in messages) between ranks: of a step, or of LU as a whole."""
    first = exchanged(run_ranks(path, code, ranks, 1))
    if code == "lu":
        return first.bytes, first.messages, first.message_bytes
    second = exchanged(run_ranks(path, code, ranks, 3))
    return (
        (second.bytes - first.bytes) / 2,
        (second.messages - first.messages) / 2,
        (second.message_bytes - first.message_bytes) / 2,
    )


def run_ranks(path: str, code: str, ranks: int, steps: int) -> str:
    """What `ranks` ranks of one thread each print on stderr."""
    arguments = [*MPI_ARGUMENTS[code], *([] if code == "lu" else [str(steps)])]
    command = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe"]
    command += ["--bind-to", "none", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
    extra = {"HOMING_PARTS": "statistics", "OMPI_MCA_mpi_yield_when_idle": "1"}
    return execute([*command, "-n", str(ranks), path, *arguments], quiet_environment(1, **extra)).stderr
