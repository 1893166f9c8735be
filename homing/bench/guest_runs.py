"""Programs run in the lab's guest, with homing or without, and what the guest's counter says about each run.

What is compared are *counted* cache misses by (node of the CPU, node of the page): guest time means nothing.
The programs mark their phases for the counter: 1 initialisation, 2 and 3 the two halves of the iterations.
"""

from __future__ import annotations

import glob
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from homing import environment
from homing.bench.programs import Output, parse_output
from homing.errors import UserError
from homing.installation import find_library
from homing.lab.counts import Counts
from homing.lab.errors import LAB_FAILED, LabError
from homing.lab.guest import Guest
from homing.lab.options import CountOptions, LabOptions
from homing.lab.steps import Step, StepResult
from homing.record_format import RecordError
from homing.records import Record, read_record

#: The share of all moves after which a run counts as settled.
_SETTLED = 0.95
RUN = (1, 2, 3)
LAST_HALF = (3,)
#: One thread a node, and it stays there: where threads wander, no page has a home.
BINDING = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}


@dataclass
class Outcome:
    """One run. Misses by phase; oracles are placements without migration (homing/lab/counts.py)."""

    name: str
    command: list[str]
    misses: dict[int, int]
    remote: dict[int, int]
    #: Remote misses of the whole run with every page on its majority node of the whole run.
    oracle_remote: int
    #: The remote share of the last half's misses with every page on its majority node of that half.
    oracle_last_half: float
    output: Output
    #: Seconds of the guest's clock, for the whole command.
    seconds: float
    settings: dict[str, Any] = field(default_factory=dict)
    #: What homing's record says; None where homing did not run.
    homing: dict[str, Any] | None = None

    def remote_misses(self, phases: Sequence[int] = RUN) -> int:
        return sum(self.remote.get(phase, 0) for phase in phases)

    def remote_fraction(self, phases: Sequence[int] = RUN) -> float:
        total = sum(self.misses.get(phase, 0) for phase in phases)
        return self.remote_misses(phases) / total if total else math.nan

    def oracle_fraction(self) -> float:
        """Of the whole run."""
        total = sum(self.misses.get(phase, 0) for phase in RUN)
        return self.oracle_remote / total if total else math.nan

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "command": self.command,
            "misses": {str(phase): count for phase, count in self.misses.items()},
            "remote": {str(phase): count for phase, count in self.remote.items()},
            "oracle_remote": self.oracle_remote,
            "oracle_last_half": self.oracle_last_half,
            "output": self.output.fields,
            "seconds": self.seconds,
            "settings": self.settings,
            "homing": self.homing,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Outcome:
        """The inverse of to_dict. KeyError, TypeError or ValueError where it is not that."""
        return Outcome(
            data["name"],
            list(data["command"]),
            {int(phase): int(count) for phase, count in data["misses"].items()},
            {int(phase): int(count) for phase, count in data["remote"].items()},
            int(data["oracle_remote"]),
            float(data["oracle_last_half"]),
            Output(dict(data["output"])),
            float(data["seconds"]),
            dict(data["settings"]),
            data["homing"],
        )


#: A kind of GuestWithFolder (typing.Self is not in Python 3.10).
Self = TypeVar("Self", bound="GuestWithFolder")


class GuestWithFolder:
    """A booted guest and a folder that it may write to, as a context manager."""

    def __init__(self, options: LabOptions) -> None:
        self._folder = tempfile.mkdtemp(prefix="homing-runs-")
        self.options = options
        self.options.writable = [*self.options.writable, self._folder]
        self._guest: Guest | None = None

    def __enter__(self: Self) -> Self:
        try:
            self._guest = Guest(self.options, cwd=self._folder).__enter__()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._guest is not None:
                self._guest.__exit__(kind, error, trace)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def guest(self) -> Guest:
        assert self._guest is not None
        return self._guest


class GuestRuns(GuestWithFolder):
    """A booted guest with its counter that runs programs one after the other."""

    def __init__(
        self, progress: Callable[[str], None] | None = None, options: LabOptions | None = None
    ) -> None:
        super().__init__(options or LabOptions(count=CountOptions(), progress=progress))
        self._library = find_library()

    def run(
        self,
        name: str,
        command: Sequence[str],
        *,
        homing: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        cwd: str | None = None,
        read: Callable[[StepResult], Output] | None = None,
        **settings: Any,
    ) -> Outcome:
        """Run one command. `homing`: homing's variables; None runs the program without homing.

        read: of a program that is not one of apps/, what its output would be. settings: of the guest's kernel
        (homing/lab/steps.py). LabError where the program failed, or did not verify: then there is nothing to
        compare.
        """
        variables = {**BINDING, **(env or {})}
        pattern = os.path.join(self._folder, name + ".%p.homing")
        if homing is not None:
            variables.update(homing)
            variables["HOMING_RECORD"] = pattern
            environment.preload(variables, self._library, self._folder)
        step = Step(command=list(command), env=variables, label=name, timeout=timeout, cwd=cwd, **settings)
        result = self.guest.step(step)
        record = None if homing is None else self._record(pattern)
        return outcome(result, record, settings, read)

    def _record(self, pattern: str) -> Record:
        """The record of the one process, which is removed."""
        paths = glob.glob(pattern.replace("%p", "*"))
        if len(paths) != 1:
            raise LabError(f"homing left {len(paths)} records instead of one", LAB_FAILED)
        record = read_record(paths[0])
        os.unlink(paths[0])
        return record

    def vmstat(self, name: str) -> int:
        """A number of the guest's /proc/vmstat, 0 where the kernel has none of this name."""
        result = self.guest.step(Step(command=["cat", "/proc/vmstat"]))
        for line in result.stdout.decode().splitlines():
            words = line.split()
            if words[:1] == [name]:
                return int(words[1])
        return 0


def verified(result: StepResult) -> Output:
    """The output of a program of apps/ that ended well."""
    output = parse_output(result.stdout.decode(errors="replace"))
    if result.exit_status != 0 or output.verification not in ("successful", "not applicable"):
        words = " ".join(result.stderr.decode(errors="replace").split()[-30:])
        why = "was stopped at its time limit" if result.timed_out else f"ended with {result.exit_status}"
        verified = f", verification {output.verification}" if output.verification else ""
        raise LabError(
            f"{result.label}: {' '.join(result.step.command)} {why}{verified}: {words}", LAB_FAILED
        )
    return output


def outcome(
    result: StepResult,
    record: Record | None,
    settings: Mapping[str, Any],
    read: Callable[[StepResult], Output] | None = None,
) -> Outcome:
    """The outcome of a step that counted. LabError where its program failed."""
    output = (read or verified)(result)
    counts = result.counts
    if counts is None:
        raise UserError("the guest does not count")
    phases = [phase for phase in RUN if phase in counts.phases]
    return Outcome(
        name=result.label,
        command=list(result.step.command),
        misses={phase: counts.misses([phase]) for phase in phases},
        remote={phase: counts.remote([phase]) for phase in phases},
        oracle_remote=_oracle_remote(counts),
        oracle_last_half=counts.oracle_remote_fraction(list(LAST_HALF)) if 3 in phases else math.nan,
        output=output,
        seconds=result.seconds,
        settings=dict(settings),
        homing=None if record is None else describe(record),
    )


def _oracle_remote(counts: Counts) -> int:
    """Of phases 1 to 3, with every page on its majority node of these phases together."""
    phases = [phase for phase in RUN if phase in counts.phases]
    try:
        return counts.oracle_remote(phases)
    except ValueError:
        return counts.run_oracle_remote(phases)


def describe(record: Record) -> dict[str, Any]:
    """What a record says about the run and about settling.

    `settled_after`: of each area with a hundredth of all moved pages or more, the iterations from the moment
    at which the outermost period was known and the guard permitted moves of this area, until 95 % of its
    moved pages had moved; the largest of them. `settled_seconds`: the same in seconds of the guest's clock.
    `known_at`: the iteration from which the period was known. `last_move_after`: iterations from the latest
    of the permissions to the last move of a hundredth of all pages or more.
    """
    end = record.end
    final = end.period if end is not None else 0
    iterations = record.iterations
    outer = [one for one in iterations if one.regions == final] if final else iterations
    known_time = outer[0].time if outer else math.nan
    permitted = _first_permissions(record)
    moved = sum(move.moved for move in record.moves)
    large = [move for move in record.moves if move.moved * 100 >= moved > 0]
    last_time = max((move.time for move in large), default=math.nan)
    settled_after, settled_seconds = 0, 0.0
    for area, time in _settled_times(record, moved).items():
        begin = max_known(known_time, permitted.get(area, math.nan))
        settled_after = max(settled_after, _passed(iterations, begin, time))
        settled_seconds = max(settled_seconds, 0.0 if math.isnan(begin) else time - begin)
    latest = max(permitted.values(), default=math.nan)
    return {
        "source": record.facts.get("source", ""),
        "mechanism": record.facts.get("mechanism", ""),
        "period": final,
        "iterations": end.iterations if end is not None else len(iterations),
        "known_at": outer[0].number if outer else 0,
        "settled_at": end.settled_at if end is not None else 0,
        "moved": moved,
        "refused": sum(refusal.pages for refusal in record.refusals),
        "observing": record.overhead.observing,
        "deciding": record.overhead.deciding,
        "moving": record.overhead.moving,
        "faults": record.overhead.faults,
        "settled_after": settled_after,
        "settled_seconds": settled_seconds,
        "last_move_after": _passed(iterations, max_known(known_time, latest), last_time),
    }


def _first_permissions(record: Record) -> dict[int, float]:
    """When the guard first permitted moves of an area."""
    table = record.table("guard")
    names = table.dtype.names or ()
    first: dict[int, float] = {}
    for row in table.tolist() if len(table) else []:
        named = dict(zip(names, row, strict=True))
        if named["permitted"]:
            first.setdefault(named["area"], named["time"])
    return first


def _settled_times(record: Record, moved: int) -> dict[int, float]:
    """When 95 % of an area's moved pages had moved, of areas with a hundredth of all that `moved` or more."""
    by_area: dict[int, list[tuple[float, int]]] = {}
    for move in record.moves:
        by_area.setdefault(move.area, []).append((float(move.time), move.moved))
    times = {}
    for area, moves in by_area.items():
        total, so_far = sum(pages for _, pages in moves), 0
        if total * 100 < moved or total == 0:
            continue
        for time, pages in sorted(moves):
            so_far += pages
            if so_far >= _SETTLED * total:
                times[area] = time
                break
    return times


def max_known(*times: float) -> float:
    """The latest of the times that are known, NaN where none is."""
    known = [time for time in times if not math.isnan(time)]
    return max(known) if known else math.nan


def _passed(iterations: Sequence[Any], begin: float, end: float) -> int:
    """Iterations whose end lies in (begin, end]: how long it took from one event to the other."""
    if math.isnan(begin) or math.isnan(end):
        return 0
    return sum(1 for one in iterations if begin < one.time + one.seconds <= end)


__all__ = ["BINDING", "LAST_HALF", "RUN", "GuestRuns", "Outcome", "RecordError", "describe", "outcome"]
