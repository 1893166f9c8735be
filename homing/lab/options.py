"""What a guest is to be, and what is counted in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homing.progress import Line

from . import machine
from .errors import LabError
from .steps import KernelSettings


@dataclass(kw_only=True)
class CountOptions:
    """The counter and the cache that it counts for, private to each CPU (lab/counter_plugin.c)."""

    cache_kib: int = 1024
    ways: int = 16
    line: int = 64
    coherent: bool = True

    def check(self) -> None:
        sets, rest = divmod(self.cache_kib * 1024, max(1, self.ways * self.line))
        if self.line not in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
            raise LabError(f"count: a line of {self.line} bytes is not a power of two from 16 to 4096")
        if not 1 <= self.ways <= 64:
            raise LabError(f"count: {self.ways} ways are not 1 to 64")
        if sets < 1 or rest or sets & (sets - 1):
            raise LabError(
                f"count: {self.cache_kib} KiB in {self.ways} ways of {self.line}-byte lines "
                "is not a power of two of sets"
            )


@dataclass(kw_only=True)
class LabOptions(KernelSettings):
    """The guest. Kernel settings (numa_balancing, scan knobs, ...) are the defaults of its steps."""

    nodes: int = 4
    cpus_per_node: int = 1
    memory_per_node_mib: int = 1024
    kernel: str | None = None  # a series ("6.1", "6.12") or the path of a vmlinuz
    count: CountOptions | None = None
    kernel_append: str = ""  # more words for the kernel's command line
    timeout: float | None = None  # seconds for the whole guest, boot included; then LabTimeout
    numa_balancing: int | None = 0
    # Debian's kernel has "always": then arrays of a few MiB share huge pages between nodes, and a small
    # program's counts depend on address randomisation.
    transparent_hugepages: str | None = "madvise"
    writable: Sequence[
        str | os.PathLike[str]
    ] = ()  # folders shared for writing besides the current directory
    progress: Callable[[str], None] | None = None  # told what takes long
    line: Line | None = None  # shows on a terminal how long it has taken

    @property
    def topology(self) -> machine.Topology:
        return machine.Topology(self.nodes, self.cpus_per_node, self.memory_per_node_mib)

    def check(self) -> None:
        super().check()
        self.topology.check()
        if self.timeout is not None and self.timeout <= 0:
            raise LabError(f"timeout: {self.timeout} is not a positive number of seconds")
        if self.count is not None:
            self.count.check()
            if self.topology.cpus > machine.MAX_COUNTED_CPUS:
                raise LabError(f"count: at most {machine.MAX_COUNTED_CPUS} CPUs, not {self.topology.cpus}")
