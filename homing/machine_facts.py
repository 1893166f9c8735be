"""What the system files of a machine say: NUMA nodes, kernel settings, PMU, limits, container. Every path is
under a `root`, so that recorded trees of other machines can be read as well."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from homing.files import system_text
from homing.integers import decimal

_CAP_SYS_ADMIN, _CAP_SYS_NICE, _CAP_PERFMON = 21, 23, 38
_UNLIMITED = -1


@dataclass(frozen=True)
class NodeFacts:
    """A NUMA node as the kernel shows it. distances: to the online nodes in ascending order."""

    index: int
    cpus: int
    memory_bytes: int
    free_bytes: int
    distances: tuple[int, ...]
    #: Of the CPUs those that this process may run on; None: that is not known.
    usable_cpus: int | None = None


@dataclass(frozen=True)
class Pmu:
    """The hardware that samples memory accesses: kind pebs, ibs, spe or none."""

    kind: str
    device: str = ""
    #: AMD only: may the kernel's accesses be filtered out (needed without privilege)?
    filters_kernel: bool = True


@dataclass
class MachineFacts:
    """Everything that `homing doctor` judges. None: the file is not there."""

    nodes: list[NodeFacts] = field(default_factory=list)
    kernel: str = ""
    numa_balancing: int | None = None
    perf_paranoid: int | None = None
    perf_mlock_kb: int | None = None
    pmu: Pmu = field(default_factory=lambda: Pmu("none"))
    huge_pages: str | None = None
    max_map_count: int | None = None
    open_files: int | None = None
    locked_memory: int | None = None
    cpus_online: int = 0
    #: The same as the kernel lists them: "0-63".
    cpu_list: str = ""
    cpus_allowed: int = 0
    nodes_allowed: tuple[int, ...] = ()
    seccomp: int | None = None
    capabilities: int = 0
    container: str = ""
    memory_limit: int | None = None
    hypervisor: str = ""
    binding: dict[str, str] = field(default_factory=dict)
    #: errno of a harmless try on this machine; 0: allowed; None: not tried (another machine's tree).
    move_pages_error: int | None = None
    perf_error: int | None = None

    @property
    def targets(self) -> list[NodeFacts]:
        """The nodes that pages may be sent to: with CPUs, with memory, and inside the cpuset."""
        return [
            node
            for node in self.nodes
            if (node.cpus if node.usable_cpus is None else node.usable_cpus)
            and node.memory_bytes
            and (not self.nodes_allowed or node.index in self.nodes_allowed)
        ]

    def capable(self, number: int) -> bool:
        """Is this capability in effect?"""
        return bool(self.capabilities >> number & 1)

    @property
    def perfmon(self) -> bool:
        """May it use perf events whatever perf_event_paranoid says?"""
        return self.capable(_CAP_PERFMON) or self.capable(_CAP_SYS_ADMIN)

    @property
    def sys_nice(self) -> bool:
        """CAP_SYS_NICE: container run times allow move_pages and mbind with it."""
        return self.capable(_CAP_SYS_NICE)

    @property
    def kernel_version(self) -> tuple[int, int]:
        """Major and minor number; (0, 0) where unknown."""
        found = re.match(r"([0-9]{1,9})\.([0-9]{1,9})", self.kernel)
        return (int(found[1]), int(found[2])) if found else (0, 0)


def parse_list(text: str) -> list[int]:
    """The kernel's list format: "0-3,8" -> [0, 1, 2, 3, 8]. What is no list gives what could be read."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        found = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part.strip())
        if found:
            numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return numbers


def cpu_nodes(root: str = "/") -> list[int]:
    """NUMA nodes that have CPUs, as the library counts them at the start of a process; none where nothing
    can be read."""
    return parse_list(_Tree(root).text("sys/devices/system/node/has_cpu"))


def one_node_reason(root: str = "/") -> str:
    """Why homing has nothing to do on a machine; empty where several of its nodes have CPUs."""
    nodes = parse_list(_Tree(root).text("sys/devices/system/node/online"))
    with_cpus = cpu_nodes(root)
    if len(with_cpus) > 1:
        return ""
    if len(nodes) > 1 and with_cpus:
        return (
            f"of this machine's {len(nodes)} NUMA nodes only node {with_cpus[0]} has CPUs, and pages are "
            "sent to nodes with CPUs only"
        )
    if len(nodes) > 1:
        return f"none of this machine's {len(nodes)} NUMA nodes is known to have CPUs"
    return "this machine has one NUMA node, so every page is at home (homing run --on lab has four)"


class _Tree:
    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def text(self, name: str) -> str:
        return system_text(self.path(name))

    def number(self, name: str) -> int | None:
        """The first word as a number; None where it is none, or has more than 18 digits."""
        word = (self.text(name).split() or [""])[0]
        number = decimal(word.removeprefix("-"))
        return number if number is None or not word.startswith("-") else -number

    def exists(self, name: str) -> bool:
        return os.path.exists(self.path(name))

    def names(self, name: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []


def read_facts(root: str = "/", environment: Mapping[str, str] | None = None) -> MachineFacts:
    """Read a machine's files; on this machine (root "/") also try the two system calls that containers
    forbid."""
    tree = _Tree(root)
    status = _status(tree.text("proc/self/status"))
    facts = MachineFacts(
        nodes=_nodes(tree, set(parse_list(status.get("Cpus_allowed_list", "")))),
        kernel=tree.text("proc/sys/kernel/osrelease").strip(),
        numa_balancing=tree.number("proc/sys/kernel/numa_balancing"),
        perf_paranoid=tree.number("proc/sys/kernel/perf_event_paranoid"),
        perf_mlock_kb=tree.number("proc/sys/kernel/perf_event_mlock_kb"),
        pmu=_pmu(tree),
        huge_pages=_chosen(tree.text("sys/kernel/mm/transparent_hugepage/enabled")),
        max_map_count=tree.number("proc/sys/vm/max_map_count"),
        open_files=_limit(tree.text("proc/self/limits"), "Max open files"),
        locked_memory=_limit(tree.text("proc/self/limits"), "Max locked memory"),
        cpus_online=len(parse_list(tree.text("sys/devices/system/cpu/online"))),
        cpu_list=tree.text("sys/devices/system/cpu/online").strip(),
        cpus_allowed=len(parse_list(status.get("Cpus_allowed_list", ""))),
        nodes_allowed=tuple(parse_list(status.get("Mems_allowed_list", ""))),
        seccomp=_integer(status["Seccomp"]) if "Seccomp" in status else None,
        capabilities=_integer(status.get("CapEff", "0"), 16),
        container=_container(tree),
        memory_limit=_memory_limit(tree),
        hypervisor=_hypervisor(tree),
        binding=_binding(os.environ if environment is None else environment),
    )
    if os.path.abspath(root) == "/":
        facts.move_pages_error = try_move_pages()
        facts.perf_error = try_perf_event()
    return facts


def _status(text: str) -> dict[str, str]:
    return {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())
    }


def _integer(text: str, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        return 0


def _nodes(tree: _Tree, allowed: set[int]) -> list[NodeFacts]:
    folder = "sys/devices/system/node"
    nodes = []
    for index in parse_list(tree.text(f"{folder}/online")):
        memory = {
            found[1]: int(found[2]) * 1024
            for found in re.finditer(
                r"Node [0-9]+ (\w+):\s+([0-9]{1,15}) kB", tree.text(f"{folder}/node{index}/meminfo")
            )
        }
        distances = tuple(
            number
            for word in tree.text(f"{folder}/node{index}/distance").split()
            if (number := decimal(word)) is not None
        )
        cpus = parse_list(tree.text(f"{folder}/node{index}/cpulist"))
        usable = len(allowed.intersection(cpus)) if allowed else None
        total, free = memory.get("MemTotal", 0), memory.get("MemFree", 0)
        nodes.append(NodeFacts(index, len(cpus), total, free, distances, usable))
    return nodes


def _pmu(tree: _Tree) -> Pmu:
    """As the library's `pmu` source looks for it: Intel's mem-loads event (PEBS), AMD's IBS op, Arm's SPE."""
    devices = "sys/bus/event_source/devices"
    for device in ("cpu", "cpu_core"):
        if tree.exists(f"{devices}/{device}/events/mem-loads"):
            return Pmu("pebs", device)
    if tree.exists(f"{devices}/ibs_op/type"):
        return Pmu("ibs", "ibs_op", tree.exists(f"{devices}/ibs_op/format/swfilt"))
    for device in tree.names(devices):
        if device.startswith("arm_spe_"):
            return Pmu("spe", device)
    return Pmu("none")


def _chosen(text: str) -> str | None:
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None


def _limit(text: str, name: str) -> int | None:
    """The soft limit in a /proc/PID/limits table; -1: unlimited."""
    for line in text.splitlines():
        if line.startswith(name):
            word = line[len(name) :].split()[:1]
            if word == ["unlimited"]:
                return _UNLIMITED
            return decimal(word[0]) if word else None
    return None


def _container(tree: _Tree) -> str:
    if tree.exists(".dockerenv"):
        return "docker"
    if tree.exists("run/.containerenv"):
        return "podman"
    if tree.exists(".singularity.d"):
        return "apptainer"
    found = re.search(r"/(docker|kubepods|lxc|libpod|containerd)\b", tree.text("proc/self/cgroup"))
    return found[1] if found else ""


def _memory_limit(tree: _Tree) -> int | None:
    """The tightest memory limit of our control group and its parents (cgroup v2, else v1)."""
    found = re.search(r"^0::(/.*)$", tree.text("proc/self/cgroup"), re.MULTILINE)
    group = found[1].strip("/") if found else ""
    limits = []
    while True:
        limit = tree.number(os.path.join("sys/fs/cgroup", group, "memory.max"))
        if limit is not None:
            limits.append(limit)
        if not group:
            break
        group = os.path.dirname(group)
    old = tree.number("sys/fs/cgroup/memory/memory.limit_in_bytes")
    if old is not None and old < 1 << 60:
        limits.append(old)
    return min(limits, default=None)


def _hypervisor(tree: _Tree) -> str:
    kind = tree.text("sys/hypervisor/type").strip()
    if kind:
        return kind
    if re.search(r"^flags\s*:.*\bhypervisor\b", tree.text("proc/cpuinfo"), re.MULTILINE):
        maker = tree.text("sys/class/dmi/id/sys_vendor").strip()
        return maker or "unknown"
    return ""


def _binding(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_NUM_THREADS")
    return {name: environment[name] for name in names if environment.get(name)}


# The two system calls that container run times forbid, tried without any effect.

_NUMBERS = {
    "x86_64": {"move_pages": 279, "perf_event_open": 298},
    "aarch64": {"move_pages": 239, "perf_event_open": 241},
}


def _call(name: str, *arguments: object) -> int | None:
    """The result of a system call, or minus its errno; None where its number is not known here."""
    number = _NUMBERS.get(platform.machine(), {}).get(name)
    if number is None:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    return -ctypes.get_errno() if result < 0 else result


def try_move_pages() -> int | None:
    """Ask where a page of our own is: 0, or the errno. None where it cannot be tried."""
    memory = ctypes.create_string_buffer(1)
    pages = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    status = (ctypes.c_int * 1)()
    result = _call("move_pages", ctypes.c_int(0), ctypes.c_ulong(1), pages, None, status, ctypes.c_int(0))
    return None if result is None else max(0, -result)


def try_perf_event() -> int | None:
    """Open the event that hint-faults uses (page faults of this process, user space only): 0, or the
    errno."""
    # struct perf_event_attr, version 5: type software, size, config page faults, disabled | exclude_kernel |
    # exclude_hv; perf_event_open(2).
    attributes = bytearray(112)
    attributes[0:4] = (1).to_bytes(4, "little")
    attributes[4:8] = len(attributes).to_bytes(4, "little")
    attributes[8:16] = (2).to_bytes(8, "little")
    attributes[40:48] = (1 | 1 << 5 | 1 << 6).to_bytes(8, "little")
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    minus = ctypes.c_int(-1)
    result = _call("perf_event_open", buffer, ctypes.c_int(0), minus, minus, ctypes.c_ulong(8))
    if result is None:
        return None
    if result >= 0:
        os.close(result)
        return 0
    return -result


def errno_name(number: int) -> str:
    """EPERM for 1."""
    return errno.errorcode.get(number, f"errno {number}")
