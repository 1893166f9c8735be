"""Which task of a parallel job a process is: what the launchers of MPI programs say in the environment. The
rule and the names are in homing/launchers.toml; src/record/rank.cpp reads the same."""

from __future__ import annotations

import os
import sys

from homing.integers import decimal
from homing.late import re
from homing.light import cache
from homing.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launchers.toml")
_MOST = 2**31 - 1
_MOST_NODES = 1_000_000


@dataclass(frozen=True)
class Launcher:
    """A row of the table: names of variables."""

    name: str
    rank: tuple[str, ...]
    size: tuple[str, ...] = ()
    local_rank: tuple[str, ...] = ()
    local_size: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    step: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One task of a job that has several, as far as that is known. `size`: how many tasks; `local_rank`,
    `local_size`: its number among those on its host, and how many these are. None: not stated."""

    launcher: str
    rank: int
    size: int | None = None
    local_rank: int | None = None
    local_size: int | None = None


@cache
def _table() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

    with open(TABLE, "rb") as file:
        table: dict[str, Any] = tomllib.load(file)
    return table


@cache
def load_launchers() -> tuple[Launcher, ...]:
    """The rows of the table, the innermost launcher first."""
    return tuple(
        Launcher(row["name"], **{key: tuple(names) for key, names in row.items() if key != "name"})
        for row in _table()["launcher"]
    )


def load_starters() -> frozenset[str]:
    """Names of programs that start the tasks of a job."""
    return frozenset(_table()["starters"])


def task(environment: Mapping[str, str]) -> Task | None:
    """The task that this process is; None where it is the only one of its job, or of no job."""
    launcher, rank, size, local_rank, local_size = "", -1, None, None, None
    for row in load_launchers():
        stated = _rank_by(row, environment)
        if stated is None:
            continue
        if rank < 0:
            launcher, rank = row.name, stated
        if stated != rank:
            continue
        if size is None:
            size = _number(environment, row.size) or None
        if local_rank is None:
            local_rank = _number(environment, row.local_rank)
            if local_rank is not None:
                local_size = _number(environment, row.local_size) or _local_size(row, environment, size)
    if rank < 0 or size == 1:
        return None
    return Task(launcher, rank, size, local_rank, local_size)


def _rank_by(launcher: Launcher, environment: Mapping[str, str]) -> int | None:
    def is_set(names: tuple[str, ...]) -> bool:
        return any(environment.get(name) for name in names)

    if is_set(launcher.batch) and not is_set(launcher.step):
        return None  # the batch script itself
    return _number(environment, launcher.rank)


def _number(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        number = decimal(environment.get(name, ""))
        if number is not None and number <= _MOST:
            return number
    return None


def _local_size(launcher: Launcher, environment: Mapping[str, str], size: int | None) -> int | None:
    """How many tasks are on this host, where no variable says just that."""
    if launcher.name == "Slurm":
        node = _number(environment, ("SLURM_NODEID",))
        for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
            counts = tasks_per_node(environment.get(name, ""))
            if counts:
                return counts[node] if node is not None and node < len(counts) else None
    hosts = _number(environment, ("FLUX_JOB_NNODES",)) if launcher.name == "Flux" else None
    # A count that does not divide evenly says nothing about this host.
    return size // hosts if size and hosts and size % hosts == 0 else None


def tasks_per_node(text: str) -> list[int]:
    """Slurm's counts of tasks, one for each node of a job: "4(x2),3" -> [4, 4, 3]; empty where it is none."""
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?", part)
        if found is None or len(counts) > _MOST_NODES:
            return []
        counts += [int(found[1])] * int(found[2] or 1)
    return counts
