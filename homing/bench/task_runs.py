"""Programs with tasks, run here or in the guest: common to the benchmarks `tasks` and `wittmann`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence

from homing import environment
from homing.bench.guest_runs import BINDING, GuestWithFolder
from homing.bench.programs import Output, parse_output
from homing.errors import UserError
from homing.installation import find_library
from homing.lab.errors import LAB_FAILED, LabError
from homing.lab.options import LabOptions
from homing.lab.steps import Step

#: Follow affinity clauses, and leave pages where they are.
CLAUSE = {"HOMING_TASKS": "affinity", "HOMING_MECHANISM": "observe", "HOMING_NO_SIGNALS": "1"}


def numbers(output: Output, name: str) -> list[float]:
    """The numbers of the line `name: ...`. UserError where there is none."""
    try:
        return [float(word) for word in output.fields[name].split()]
    except (KeyError, ValueError) as error:
        raise UserError(f"the program printed no numbers under '{name}'", 1) from error


def share_at_home(output: Output) -> float:
    """Of the blocks with a home, those that ran there: blocked_jacobi's own count."""
    words = output.fields["time home"].split()
    return int(words[0]) / max(int(words[2]), 1)


def variables(
    clause: bool, nodes: int, bound: bool, folder: str, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a run. bound: OpenMP binds its threads.

    clause: with homing, for the clause only; else homing's library, which the programs call, does nothing by
    itself. nodes: to pretend, 0 for those of the machine."""
    chosen = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("HOMING", "OMP_", "GOMP_", "KMP_"))
    }
    chosen.update(BINDING if bound else {}, OMP_WAIT_POLICY="passive")
    if nodes:
        chosen["HOMING_ASSUME_NODES"] = str(nodes)
    if clause:
        environment.preload(chosen, find_library(), folder)
        chosen.update(CLAUSE)
    else:
        chosen["HOMING"] = "off"
    return chosen


def run_here(
    command: Sequence[str], *, threads: int, nodes: int = 0, clause: bool = False, bound: bool = True
) -> Output:
    """Run on this machine. UserError where the program fails."""
    with tempfile.TemporaryDirectory(prefix="homing-tasks-") as folder:
        chosen = {**variables(clause, nodes, bound, folder, os.environ), "OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
    output = parse_output(done.stdout)
    if done.returncode != 0 or output.verification == "failed":
        words = " ".join(done.stderr.split()[-30:])
        raise UserError(f"{' '.join(command)} ended with {done.returncode}: {words}", 1)
    return output


class TaskGuest(GuestWithFolder):
    """The guest with four nodes of one CPU each; nothing is counted but by programs."""

    def __init__(self, progress: Callable[[str], None] | None = None) -> None:
        super().__init__(LabOptions(progress=progress))

    def run(self, command: Sequence[str], *, clause: bool = False, bound: bool = True) -> Output:
        """One command. LabError where it fails."""
        chosen = variables(clause, 0, bound, self._folder, {})
        result = self.guest.step(Step(command=list(command), env=chosen, timeout=300))
        output = parse_output(result.stdout.decode(errors="replace"))
        if result.exit_status != 0 or output.verification == "failed":
            words = " ".join(result.stderr.decode(errors="replace").split()[-30:])
            raise LabError(f"{' '.join(command)} ended with {result.exit_status}: {words}", LAB_FAILED)
        return output
