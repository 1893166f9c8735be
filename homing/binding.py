"""`--bind` where several tasks of a job run on one host: each gets its share of the CPUs, by its local rank.
A runtime that binds threads keeps within the CPUs that the process may use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from homing.files import system_text
from homing.launchers import Task, load_launchers, load_starters, task
from homing.machine_facts import parse_list
from homing.values import dataclass


@dataclass(frozen=True)
class Core:
    """One core: its node, and its CPUs (hardware threads) that may be used."""

    node: int
    cpus: tuple[int, ...]


def cores_of(cpus: Iterable[int], root: str = "/") -> list[Core]:
    """The cores with these CPUs, by node and then by their first CPU, from sysfs; a CPU of which nothing is
    known is a core of node 0."""
    wanted = set(cpus)
    nodes = {}
    folder = os.path.join(root, "sys/devices/system/node")
    for index in parse_list(system_text(os.path.join(folder, "online"))):
        for cpu in parse_list(system_text(os.path.join(folder, f"node{index}/cpulist"))):
            nodes[cpu] = index
    cores = {}
    for cpu in sorted(wanted):
        siblings = system_text(
            os.path.join(root, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        )
        mine = tuple(sorted(wanted & {cpu, *parse_list(siblings)}))
        cores[mine] = Core(nodes.get(cpu, 0), mine)
    return sorted(cores.values(), key=lambda core: (core.node, core.cpus))


def share_of(cores: Sequence[Core], rank: int, count: int) -> set[int] | None:
    """The CPUs of task `rank` of `count` on this host: a run of whole cores in the order of nodes, as many as
    the others' within one; hardware threads where there are more tasks than cores. None: there are more
    tasks than CPUs. Shares do not overlap, and nothing is left over."""
    parts = [core.cpus for core in cores]
    if len(parts) < count:
        parts = [(cpu,) for part in parts for cpu in part]
    if not 0 <= rank < count or len(parts) < count:
        return None
    mine = parts[rank * len(parts) // count : (rank + 1) * len(parts) // count]
    return {cpu for part in mine for cpu in part}


@dataclass(frozen=True)
class Share:
    """What `--bind` does with the CPUs of this process: those it keeps to (None: it binds nothing, or need
    not), and a line for the user. refused: nothing is bound."""

    cpus: set[int] | None
    text: str = ""
    refused: bool = False


def share(
    environment: Mapping[str, str], allowed: set[int], job: set[int] | None, cores: Sequence[Core]
) -> Share:
    """The share of this process. `allowed`: the CPUs that it may use; `job`: those that its launcher could
    have given it (None: not known); `cores`: those of `allowed`."""
    mine = task(environment)
    if mine is None:
        return Share(None)
    if job is not None and allowed < job:
        return Share(None, f"CPUs {cpu_list(allowed)}, as {mine.launcher} gave them to this task")
    if mine.local_rank is None or mine.local_size is None:
        return Share(None, _unknown(mine), refused=True)
    if mine.local_size == 1:
        return Share(None)
    cpus = share_of(cores, mine.local_rank, mine.local_size)
    if cpus is None:
        few = f"{mine.local_size} tasks on this host share CPUs {cpu_list(allowed)}"
        return Share(None, f"not bound: {few}, fewer than tasks", refused=True)
    where = f"local rank {mine.local_rank} of {mine.local_size}"
    return Share(cpus, f"CPUs {cpu_list(cpus)} of {cpu_list(allowed)} ({where})")


def _unknown(mine: Task) -> str:
    return (
        f"not bound: {mine.launcher} does not say how many of the tasks are on this host, and all of them "
        "would be bound to the same CPUs: bind with the launcher (mpirun --bind-to, srun --cpu-bind)"
    )


def starts_tasks(command: Sequence[str]) -> bool:
    """Is the command one that starts the tasks of a job, on any host?"""
    return os.path.basename(command[0]) in load_starters()


def starter(command: Sequence[str]) -> str:
    """Why threads are not bound where the command starts the tasks of a job; empty where it does not."""
    name = os.path.basename(command[0])
    if not starts_tasks(command):
        return ""
    return (
        f"not bound: the tasks that {name} starts would all be bound to the same CPUs: "
        f"{name} ... homing run --bind -- PROGRAM shares the cores out"
    )


def cpu_list(cpus: Iterable[int]) -> str:
    """As the kernel writes it: {0, 1, 2, 8} -> "0-2,8"."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def job_cpus(root: str = "/proc") -> set[int] | None:
    """The CPUs that the launcher of this task could have given it: those of the nearest process above us that
    is no task itself, within our own cpuset. None: not known."""
    cpus = _launcher_cpus(root)
    own = _cpuset(root)
    if cpus is None:
        return None
    return cpus & own if own else cpus


def _launcher_cpus(root: str) -> set[int] | None:
    names = [f"{name}=".encode() for launcher in load_launchers() for name in launcher.rank]
    process = os.getppid()
    for _ in range(64):
        status = system_text(f"{root}/{process}/status")
        try:
            with open(f"{root}/{process}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            is_task = any(variable.startswith(name) for variable in variables for name in names)
        except OSError:
            is_task = False  # another user's: a system's daemon that starts tasks
        if not is_task:
            found = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
            return set(parse_list(found[1])) if found else None
        parent = re.search(r"^PPid:\s*(\d+)", status, re.MULTILINE)
        if parent is None or parent[1] == "0":
            return None
        process = int(parent[1])
    return None


def _cpuset(root: str) -> set[int]:
    """The CPUs of our control group; empty where that is not known."""
    for line in system_text(f"{root}/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            base, name = "/sys/fs/cgroup", "cpuset.cpus.effective"
        elif "cpuset" in controllers.split(","):
            base, name = "/sys/fs/cgroup/cpuset", "cpuset.effective_cpus"
        else:
            continue
        while True:
            if cpus := set(parse_list(system_text(f"{base}{path}/{name}"))):
                return cpus
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return set()
