"""`homing doctor`: what this machine allows, what that means for homing, and the command that changes it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from homing import __version__
from homing.environment import stated_binding
from homing.errors import UserError, os_reason
from homing.machine_facts import MachineFacts, NodeFacts, Pmu, errno_name, read_facts

SCHEMA = "homing-doctor/1"

#: vm.max_map_count of the kernel; every isolated page that a window protects costs two mappings.
_DEFAULT_MAPS = 65530
_ENOUGH_FILES = 1024
#: The first kernel whose NUMA balancing scans only what a thread used recently.
_SELECTIVE_SCANS = (6, 4)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. status: ok, note, limits (homing works, but not as well), blocks."""

    name: str
    value: str
    status: str
    meaning: str
    command: str = ""


@dataclass(frozen=True)
class Source:
    """A source of references. reason: why it is not available, empty where it is."""

    name: str
    reason: str
    command: str = ""

    @property
    def available(self) -> bool:
        """Can it be used?"""
        return not self.reason


@dataclass(frozen=True)
class Diagnosis:
    """All findings, the sources from the best to the last, and the verdict in one line."""

    findings: list[Finding]
    sources: list[Source]
    verdict: str
    able: bool

    @property
    def source(self) -> str:
        """The source that --references auto would choose; empty: none."""
        return next((source.name for source in self.sources if source.available), "")


def diagnose(facts: MachineFacts) -> Diagnosis:
    """Judge a machine's facts."""
    sources = [_pmu_source(facts), _hint_fault_source(facts), _windows_source(facts)]
    findings = [
        *_nodes(facts),
        _kernel(facts),
        _balancing(facts),
        _perf(facts),
        _pmu(facts),
        *_pages(facts),
        *_limits(facts),
        *_container(facts),
        _mpi(facts, sources),
        _binding(facts),
    ]
    verdict, able = _verdict(facts, sources)
    return Diagnosis(findings, sources, verdict, able)


def _verdict(facts: MachineFacts, sources: list[Source]) -> tuple[str, bool]:
    targets = facts.targets
    best = next((source for source in sources if source.available), None)
    if len(targets) < 2:
        if not facts.nodes:
            why = "no NUMA node was found"
        elif len(facts.nodes) == 1:
            why = "one NUMA node, so every page is at home"
        else:
            why = f"of {len(facts.nodes)} NUMA nodes {_usable(targets)}"
        return f"homing steps aside here: {why} (try homing run --on lab)", False
    if facts.move_pages_error:
        return f"homing cannot move pages here: move_pages gives {errno_name(facts.move_pages_error)}", False
    if best is None:
        return "homing cannot see here who uses which page: no source of references is available", False
    better = [f"{source.name}: {source.reason}" for source in sources[: sources.index(best)]]
    why = f" (not {'; not '.join(better)})" if better else ""
    return f"homing would observe by {best.name}{why} and move pages between {len(targets)} nodes", True


# Sources


def _perf_reason(facts: MachineFacts, most: int = 2) -> tuple[str, str]:
    """Why perf events are not allowed, with the command; two empty texts where they are."""
    if facts.perf_error:
        if facts.container or facts.seccomp:
            return (
                f"perf_event_open gives {errno_name(facts.perf_error)} in this container",
                _with_capability(facts, "PERFMON"),
            )
    elif facts.perf_error == 0 and most >= 2:
        return "", ""
    if facts.perf_paranoid is None:
        return "the kernel has no perf events", ""
    if facts.perf_paranoid > most and not facts.perfmon:
        return (
            f"perf_event_paranoid is {facts.perf_paranoid}",
            f"sudo sysctl kernel.perf_event_paranoid={most}",
        )
    if facts.perf_error:
        return f"perf_event_open gives {errno_name(facts.perf_error)}", ""
    return "", ""


def _pmu_source(facts: MachineFacts) -> Source:
    if facts.pmu.kind == "none":
        where = "this virtual machine has no PMU that samples memory" if facts.hypervisor else "no such PMU"
        return Source("pmu", where)
    # Without a filter, samples of the kernel come along, which needs the right to see them.
    return Source("pmu", *_perf_reason(facts, 2 if facts.pmu.filters_kernel else 1))


def _hint_fault_source(facts: MachineFacts) -> Source:
    if facts.numa_balancing is None:
        return Source("hint-faults", "the kernel has no NUMA balancing")
    if not facts.numa_balancing & 1:
        return Source("hint-faults", "kernel.numa_balancing is 0", "sudo sysctl kernel.numa_balancing=1")
    return Source("hint-faults", *_perf_reason(facts))


def _windows_source(facts: MachineFacts) -> Source:
    if facts.max_map_count is not None and facts.max_map_count < 4096:
        return Source(
            "windows",
            f"vm.max_map_count is {facts.max_map_count}",
            f"sudo sysctl vm.max_map_count={_DEFAULT_MAPS}",
        )
    return Source("windows", "")


# Findings


def _size(value: int) -> str:
    from homing.report.words import size

    return size(value)


def _usable(targets: list[NodeFacts]) -> str:
    """Fewer than two nodes that pages may be sent to."""
    which = f"only node {targets[0].index}" if targets else "none"
    return f"{which} has CPUs and memory that this process may use"


def _nodes(facts: MachineFacts) -> Iterator[Finding]:
    count = len(facts.nodes)
    targets = facts.targets
    if not count:
        meaning = "sys/devices/system/node shows none: homing does nothing in such a process"
        yield Finding("NUMA nodes", "none found", "blocks", meaning)
    elif count < 2:
        yield Finding(
            "NUMA nodes", str(count), "blocks", "every page is at home: homing does nothing in such a process"
        )
    elif len(targets) < 2:
        meaning = f"{_usable(targets)}: homing does nothing in such a process"
        yield Finding("NUMA nodes", str(count), "blocks", meaning)
    else:
        where = "from node to node" if len(targets) == count else f"between {len(targets)} of them"
        yield Finding("NUMA nodes", str(count), "ok", f"pages can be sent {where}")
    for node in facts.nodes:
        distances = " ".join(map(str, node.distances))
        value = f"{node.cpus} CPUs, {_size(node.free_bytes)} free of {_size(node.memory_bytes)}"
        if distances and count > 1:
            value += f", distances {distances}"
        name = f"node {node.index}"
        if not node.cpus:
            yield Finding(name, value, "note", "has no CPUs: never a target")
        elif not node.memory_bytes:
            yield Finding(
                name, value, "note", "has no memory: never a target; its threads' pages live elsewhere"
            )
        elif facts.nodes_allowed and node.index not in facts.nodes_allowed:
            yield Finding(name, value, "limits", "outside the cpuset's memory nodes: never a target")
        elif node.usable_cpus == 0:
            yield Finding(name, value, "limits", "no CPUs that this process may run on: never a target")
        elif len(targets) > 1 and node.free_bytes * 20 < node.memory_bytes:
            yield Finding(
                name,
                value,
                "limits",
                "less than 5 % free: pages sent there may be refused; file cache counts as not free",
                "sync; echo 1 | sudo tee /proc/sys/vm/drop_caches",
            )
        else:
            meaning = "pages can be sent here" if len(targets) > 1 else "the only node for pages"
            yield Finding(name, value, "ok", meaning if count > 1 else "all pages are here")


def _kernel(facts: MachineFacts) -> Finding:
    if facts.kernel_version == (0, 0):
        return Finding("kernel", facts.kernel or "unknown", "note", "its version is not known")
    if facts.kernel_version >= _SELECTIVE_SCANS:
        meaning = "NUMA balancing scans only what a thread used recently: hint-faults sees less of idle areas"
    else:
        meaning = (
            "pages armed for a hint fault cannot be moved until they are touched: homing touches them first"
        )
    return Finding("kernel", facts.kernel, "ok", meaning)


def _balancing(facts: MachineFacts) -> Finding:
    name = "kernel.numa_balancing"
    if facts.numa_balancing is None:
        return Finding(name, "absent", "limits", "built without it: no hint-faults")
    if facts.numa_balancing & 1:
        return Finding(
            name,
            str(facts.numa_balancing),
            "ok",
            "hint-faults can observe; homing takes its areas out of balancing",
        )
    return Finding(
        name,
        str(facts.numa_balancing),
        "limits",
        "hint-faults cannot observe: it needs balancing",
        "sudo sysctl kernel.numa_balancing=1",
    )


def _perf(facts: MachineFacts) -> Finding:
    name = "perf_event_paranoid"
    if facts.perf_paranoid is None:
        return Finding(name, "absent", "limits", "no perf events: neither pmu nor hint-faults")
    value = str(facts.perf_paranoid) + (", CAP_PERFMON" if facts.perfmon else "")
    reason, command = _perf_reason(facts)
    if reason:
        return Finding(name, value, "limits", f"neither pmu nor hint-faults: {reason}", command)
    return Finding(name, value, "ok", "perf events of one's own processes are allowed")


def _pmu(facts: MachineFacts) -> Finding:
    pmu: Pmu = facts.pmu
    words = {"pebs": "Intel PEBS mem-loads", "ibs": "AMD IBS op", "spe": "Arm SPE"}
    if pmu.kind == "none":
        why = f"hidden by the hypervisor ({facts.hypervisor})" if facts.hypervisor else "not on this machine"
        return Finding(
            "PMU", "none", "limits", f"no sampling of memory accesses: {why}; hint-faults or windows serve"
        )
    value = f"{words[pmu.kind]} ({pmu.device})"
    source = _pmu_source(facts)
    if source.reason:
        return Finding("PMU", value, "limits", f"cannot be used: {source.reason}", source.command)
    return Finding("PMU", value, "ok", "samples memory accesses: the best source")


def _pages(facts: MachineFacts) -> Iterator[Finding]:
    name = "transparent huge pages"
    if facts.huge_pages is None:
        yield Finding(name, "absent", "ok", "all pages are base pages")
    elif facts.huge_pages == "always":
        yield Finding(
            name,
            "always",
            "note",
            "pages of 2 MiB move whole: cheap, but owners of less than 2 MiB share a page",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    else:
        yield Finding(name, facts.huge_pages, "ok", "base pages unless the program asks for huge ones")
    maps = facts.max_map_count
    if maps is not None:
        pages = f"windows and next touch can protect about {maps // 2:,} separate pages"
        enough = maps >= _DEFAULT_MAPS
        command = "" if enough else f"sudo sysctl vm.max_map_count={_DEFAULT_MAPS}"
        yield Finding("vm.max_map_count", str(maps), "ok" if enough else "limits", pages, command)


def _limits(facts: MachineFacts) -> Iterator[Finding]:
    files = facts.open_files
    if files is not None:
        enough = files < 0 or files >= _ENOUGH_FILES
        meaning = "one is open for a moment for each sampled thread"
        command = "" if enough else f"ulimit -n {_ENOUGH_FILES}"
        value = "unlimited" if files < 0 else str(files)
        yield Finding("open files (ulimit -n)", value, "ok" if enough else "limits", meaning, command)
    locked = facts.locked_memory
    if locked is not None:
        rings = (facts.perf_mlock_kb or 0) * 1024 * max(1, facts.cpus_online)
        needed = max(1, facts.cpus_allowed) * 2 * 16 * 4096
        enough = locked < 0 or locked + rings >= needed
        value = "unlimited" if locked < 0 else _size(locked)
        if rings:
            value += f", and {_size(rings)} by kernel.perf_event_mlock_kb"
        yield Finding(
            "locked memory (ulimit -l)",
            value,
            "ok" if enough else "limits",
            "perf rings of pmu and hint-faults count as locked memory"
            + ("" if enough else ": they will be small"),
            "" if enough else "ulimit -l unlimited",
        )


def _with_capability(facts: MachineFacts, name: str) -> str:
    """How a container of this kind is started with a capability."""
    if facts.container in ("kubepods", "containerd"):
        return f"in the pod: securityContext: capabilities: add: [{name}]"
    run_time = "podman" if facts.container in ("podman", "libpod") else "docker"
    return f"{run_time} run --cap-add {name} ..."


def _container(facts: MachineFacts) -> Iterator[Finding]:
    kind = facts.container or ("unknown kind" if facts.seccomp == 2 else "")
    if kind:
        meaning = "its limits are homing's: CPUs, nodes, memory, and which system calls it may make (below)"
        yield Finding("container", kind, "note", meaning)
    else:
        yield Finding("container", "none seen", "ok", "homing sees the machine itself")
    yield _cpuset(facts)
    if facts.memory_limit is not None:
        yield Finding(
            "memory limit (cgroup)",
            _size(facts.memory_limit),
            "note",
            "a move needs no more than a few pages of it",
        )
    blocked = facts.move_pages_error
    words = {None: "unknown", 0: "off", 1: "strict", 2: "filter"}
    value = words.get(facts.seccomp, str(facts.seccomp))
    allow = _with_capability(facts, "SYS_NICE")
    if blocked:
        yield Finding(
            "seccomp", value, "blocks", f"move_pages gives {errno_name(blocked)}: no page can be moved", allow
        )
    elif facts.seccomp == 2 and blocked is None and not facts.sys_nice:
        yield Finding(
            "seccomp", value, "limits", "container run times forbid move_pages and mbind by default", allow
        )
    elif facts.seccomp:
        yield Finding("seccomp", value, "ok", "move_pages is allowed")
    elif facts.seccomp is None:
        yield Finding("seccomp", value, "note", "nothing says whether system calls are filtered")
    else:
        yield Finding("seccomp", value, "ok", "no system call is filtered: pages can be moved")
    if facts.hypervisor:
        meaning = "a virtual machine: its nodes and distances are what the hypervisor shows"
        yield Finding("hypervisor", facts.hypervisor, "note", meaning)


def _cpuset(facts: MachineFacts) -> Finding:
    """Which CPUs and which nodes' memory this process may use."""
    if not facts.cpus_allowed or not facts.cpus_online:
        return Finding("cpuset", "unknown", "note", "proc/self/status or sys/devices/system/cpu is missing")
    barred = [node.index for node in facts.nodes if node.index not in facts.nodes_allowed]
    if facts.cpus_allowed >= facts.cpus_online and not (facts.nodes_allowed and barred):
        return Finding("cpuset", f"all {facts.cpus_online} CPUs", "ok", "every node can be used")
    meaning = "only the nodes of these CPUs are used"
    if facts.nodes_allowed and barred:
        meaning += f", and no memory of node {', '.join(map(str, barred))}"
    memory = ",".join(str(node.index) for node in facts.nodes)
    command = f"taskset -c {facts.cpu_list} COMMAND"
    if facts.container in ("kubepods", "containerd"):
        command = "in the pod: whole nodes' CPUs and memory (kubelet's topologyManagerPolicy)"
    elif facts.container:
        run_time = "podman" if facts.container in ("podman", "libpod") else "docker"
        command = f"{run_time} run --cpuset-cpus {facts.cpu_list} --cpuset-mems {memory} ..."
    value = f"{facts.cpus_allowed} of {facts.cpus_online} CPUs"
    return Finding("cpuset", value, "note", meaning, command)


def _mpi(facts: MachineFacts, sources: list[Source]) -> Finding:
    """Windows are off where a library is loaded whose peers may touch protected pages."""
    name = "MPI, RDMA, GPU programs"
    others = [source for source in sources if source.name != "windows"]
    best = next((source for source in others if source.available), None)
    if best is not None:
        return Finding(name, best.name, "ok", f"windows are not used in them; {best.name} observes")
    reason = "; ".join(f"{source.name}: {source.reason}" for source in others)
    hint_faults = _hint_fault_source(facts)
    # Balancing is looked at first; perf events are needed all the same.
    command = " && ".join(dict.fromkeys(filter(None, (hint_faults.command, _perf_reason(facts)[1]))))
    meaning = f"homing does nothing in them: windows are not used there, and nothing else works ({reason})"
    return Finding(name, "not observed", "limits", meaning, command)


def _binding(facts: MachineFacts) -> Finding:
    binding, loose = stated_binding(facts.binding)
    value = " ".join(f"{name}={text}" for name, text in facts.binding.items()) or "not set"
    if loose or not binding:
        meaning = "threads may wander from node to node, and their pages would follow them"
        unset = f"unset {' '.join(loose)}; " if loose else ""
        return Finding("thread binding", value, "limits", meaning, f"{unset}homing run --bind -- COMMAND")
    return Finding("thread binding", value, "ok", "threads stay on their nodes")


# Output


def to_json(diagnosis: Diagnosis, facts: MachineFacts) -> dict[str, Any]:
    """The diagnosis for programs (docs/json.md)."""
    return {
        "schema": SCHEMA,
        "homing": __version__,
        "verdict": diagnosis.verdict,
        "able": diagnosis.able,
        "source": diagnosis.source or None,
        "sources": [
            {
                "name": one.name,
                "available": one.available,
                "reason": one.reason or None,
                "command": one.command or None,
            }
            for one in diagnosis.sources
        ],
        "nodes": [asdict(node) for node in facts.nodes],
        "findings": [{**asdict(one), "command": one.command or None} for one in diagnosis.findings],
    }


def _print(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from homing.report.lines import terminal_width

    terminal = sys.stdout.isatty()
    console = Console(
        width=terminal_width(sys.stdout, os.environ) if terminal else 120,
        no_color=None if terminal else True,
        highlight=False,
        emoji=False,
        markup=False,
    )
    styles = {"ok": "green", "note": "cyan", "limits": "yellow", "blocks": "bold red"}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("", "what", "value", "what it means for homing"):
        table.add_column(column, no_wrap=column == "")
    for one in diagnosis.findings:
        meaning = Text(one.meaning)
        if one.command:
            meaning.append(f"\n$ {one.command}", "bold")
        table.add_row(Text(one.status, styles[one.status]), one.name, one.value, meaning)
    console.print(table)
    console.print()
    for source in diagnosis.sources:
        text = Text(f"{source.name:<12}")
        text.append("available" if source.available else f"not available: {source.reason}")
        if source.command:
            text.append(f"   $ {source.command}", "bold")
        console.print(text, soft_wrap=True)
    console.print(Text(diagnosis.verdict, "bold"), soft_wrap=True)


def command(
    json_output: Annotated[bool, typer.Option("--json", help="print JSON, for programs")] = False,
    root: Annotated[
        str, typer.Option(help="read the system files under this folder", metavar="FOLDER")
    ] = "/",
) -> int:
    """What this machine allows, what that means for homing, and the command that changes it."""
    if not os.path.isdir(root):
        raise UserError(f"--root {root}: no such folder")
    try:
        facts = read_facts(root)
    except OSError as error:
        raise UserError(f"--root {root}: {os_reason(error)}") from error
    diagnosis = diagnose(facts)
    if json_output:
        print(json.dumps(to_json(diagnosis, facts), indent=1))
    else:
        _print(diagnosis)
    return 0
