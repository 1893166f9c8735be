"""The guest as a machine: its nodes, what the host must have for it, and the QEMU command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .kernel import Kernel

QEMU = "qemu-system-x86_64"
MAX_NODES = 16
MAX_COUNTED_CPUS = 32
_HOST_RESERVE_MIB = 256  # left for QEMU itself, virtiofsd and everybody else

# max without the fast-string flags: libc would use rep movs/stos, one emulated iteration an element.
_CPU_MODEL = "max,-erms,-fsrm"
_LOCAL_DISTANCE = 10
_REMOTE_DISTANCE = 20


@dataclass(frozen=True)
class Topology:
    nodes: int = 4
    cpus_per_node: int = 1
    memory_per_node_mib: int = 1024

    @property
    def cpus(self) -> int:
        return self.nodes * self.cpus_per_node

    @property
    def memory_mib(self) -> int:
        return self.nodes * self.memory_per_node_mib

    def check(self) -> None:
        if not 1 <= self.nodes <= MAX_NODES:
            raise LabError(f"nodes: {self.nodes} is not a number from 1 to {MAX_NODES}")
        if self.cpus_per_node < 1 or self.cpus > 255:
            raise LabError(
                f"cpus-per-node: {self.cpus_per_node} is not a number that gives 1 to 255 CPUs in all"
            )
        if self.memory_per_node_mib < 128 or self.memory_mib < 512:
            raise LabError(
                f"memory-per-node: {self.memory_per_node_mib} MiB is too little; "
                "at least 128 MiB a node and 512 MiB in all"
            )


@dataclass(frozen=True)
class Share:
    """A host folder that the guest mounts; `socket` is the vhost-user socket of its virtiofsd."""

    tag: str
    socket: Path


def find_qemu() -> str:
    qemu = shutil.which(QEMU)
    if qemu is None:
        raise LabError(f"{QEMU} is not installed: apt-get install qemu-system-x86")
    return qemu


def qemu_version(qemu: str) -> tuple[int, int]:
    text = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)\.(\d+)", text)
    if not found:
        raise LabError(f"{qemu}: does not tell its version")
    return int(found[1]), int(found[2])


def available_memory_mib(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that the guest may take: what the kernel calls available, or less where a cgroup limits us."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    available = int(found[1]) // 1024 if found else 1 << 30
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        if limit != "max":
            used = int((cgroup / "memory.current").read_text())
            available = min(available, (int(limit) - used) >> 20)
    except (OSError, ValueError):
        pass  # no cgroup v2, or the root group, which has no limit
    return available


def check_memory(topology: Topology) -> None:
    available = available_memory_mib()
    needed = topology.memory_mib + _HOST_RESERVE_MIB
    if needed > available:
        most = max(0, (available - _HOST_RESERVE_MIB) // topology.nodes)
        raise LabError(
            f"{topology.nodes} nodes of {topology.memory_per_node_mib} MiB need {needed} MiB, "
            f"{available} MiB are available: use fewer nodes or at most --memory-per-node {most}"
        )


def _escape(path: Path | str) -> str:
    """A comma ends a QEMU option's value unless it is doubled."""
    return os.fspath(path).replace(",", ",,")


def numa_arguments(topology: Topology) -> list[str]:
    arguments: list[str] = []
    for node in range(topology.nodes):
        first = node * topology.cpus_per_node
        last = first + topology.cpus_per_node - 1
        # Created in node order: the counter tells nodes by it. Shared memory: virtiofsd reads and writes it.
        arguments += [
            "-object",
            f"memory-backend-memfd,id=node{node},size={topology.memory_per_node_mib}M,share=on",
            "-numa",
            f"node,nodeid={node},cpus={first}-{last},memdev=node{node}",
        ]
    for source in range(topology.nodes):
        for target in range(topology.nodes):
            distance = _LOCAL_DISTANCE if source == target else _REMOTE_DISTANCE
            arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return arguments


def command_line(
    qemu: str,
    topology: Topology,
    kernel: Kernel,
    initrd: Path,
    shares: Sequence[Share],
    console: Path,
    kernel_append: str = "",
    plugin: str | None = None,
) -> list[str]:
    """QEMU's arguments. plugin: "FILE,argument=value,..." with commas inside values already doubled."""
    append = (
        "console=ttyS0 panic=-1 quiet mitigations=off random.trust_cpu=on tsc=reliable nowatchdog "
        "no_timer_check"  # on a busy host the emulated timer seems broken, and the kernel panics
    )
    command = [
        qemu,
        "-name",
        "homing-lab,debug-threads=on",  # vcpus.py looks for their names
        "-machine",
        "q35",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        _CPU_MODEL,
        "-smp",
        f"{topology.cpus},sockets={topology.nodes},cores={topology.cpus_per_node},threads=1",
        "-m",
        f"{topology.memory_mib}M",
        *numa_arguments(topology),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
        "-chardev",
        f"file,id=console,path={_escape(console)}",
        "-serial",
        "chardev:console",
        # What is written to QEMU's stdin arrives at the guest's second serial line.
        "-chardev",
        "stdio,id=signals,signal=off",
        "-serial",
        "chardev:signals",
        "-kernel",
        os.fspath(kernel.image),
        "-initrd",
        os.fspath(initrd),
        "-append",
        f"{append} {kernel_append}".strip(),
    ]
    for share in shares:
        command += [
            "-chardev",
            f"socket,id={share.tag},path={_escape(share.socket)}",
            "-device",
            f"vhost-user-fs-pci,chardev={share.tag},tag={share.tag}",
        ]
    if plugin is not None:
        command += ["-plugin", plugin]
    return command
