"""`homing doctor` on the system files of other machines: an Intel, an AMD and an Arm server, a virtual
machine, a container; and on this one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from homing import cli
from homing.doctor import Diagnosis, Finding, diagnose
from homing.machine_facts import (
    MachineFacts,
    one_node_reason,
    parse_list,
    read_facts,
    try_move_pages,
    try_perf_event,
)

GIB = 1 << 20  # KiB in a GiB, as meminfo counts

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            {files}                 524288               files
Max locked memory         {locked}             8388608              bytes
"""


def tree(
    root: Path,
    nodes: dict[int, tuple[str, int, int, str]],
    files: dict[str, str],
    capabilities: int = 0,
    seccomp: int = 0,
    cpus: str = "0-63",
    allowed: str = "0-63",
    memories: str = "",
    limits: tuple[str, str] = ("1024", "8388608"),
) -> Path:
    """System files of a machine. nodes: index -> (cpulist, total GiB, free GiB, distances)."""
    listed = ",".join(map(str, nodes))
    status = (
        f"Name:\thoming\nSeccomp:\t{seccomp}\nCapEff:\t{capabilities:016x}\n"
        f"Cpus_allowed_list:\t{allowed}\nMems_allowed_list:\t{memories or listed}\n"
    )
    everything = {
        "sys/devices/system/node/online": listed,
        "sys/devices/system/cpu/online": cpus,
        "proc/self/status": status,
        "proc/self/limits": LIMITS.format(files=limits[0], locked=limits[1]),
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64",
        "proc/sys/kernel/numa_balancing": "1",
        "proc/sys/kernel/perf_event_paranoid": "2",
        "proc/sys/kernel/perf_event_mlock_kb": "516",
        "proc/sys/vm/max_map_count": "65530",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        **files,
    }
    for index, (cpulist, total, free, distances) in nodes.items():
        everything[f"sys/devices/system/node/node{index}/cpulist"] = cpulist
        everything[f"sys/devices/system/node/node{index}/distance"] = distances
        everything[f"sys/devices/system/node/node{index}/meminfo"] = (
            f"Node {index} MemTotal:       {total * GIB} kB\nNode {index} MemFree:        {free * GIB} kB\n"
            f"Node {index} MemUsed:        {(total - free) * GIB} kB\n"
        )
    for name, text in everything.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


TWO_NODES = {0: ("0-15,32-47", 128, 100, "10 21"), 1: ("16-31,48-63", 128, 90, "21 10")}
EVENTS = "sys/bus/event_source/devices"
INTEL = {f"{EVENTS}/cpu/type": "4", f"{EVENTS}/cpu/events/mem-loads": "event=0xcd,umask=0x1,ldlat=3"}


def examine(root: Path, **variables: str) -> tuple[MachineFacts, Diagnosis]:
    facts = read_facts(str(root), variables)
    return facts, diagnose(facts)


def finding(diagnosis: Diagnosis, name: str) -> Finding:
    (found,) = [one for one in diagnosis.findings if one.name == name]
    return found


def test_an_intel_server(tmp_path: Path) -> None:
    facts, diagnosis = examine(tree(tmp_path, TWO_NODES, INTEL), OMP_PROC_BIND="spread")
    assert [(node.cpus, node.memory_bytes, node.distances) for node in facts.nodes] == [
        (32, 128 << 30, (10, 21)),
        (32, 128 << 30, (21, 10)),
    ]
    assert (diagnosis.able, diagnosis.source) == (True, "pmu")
    assert diagnosis.verdict == "homing would observe by pmu and move pages between 2 nodes"
    assert all(source.available for source in diagnosis.sources)
    assert finding(diagnosis, "PMU").value == "Intel PEBS mem-loads (cpu)"
    assert {one.status for one in diagnosis.findings} <= {"ok", "note"}


def test_a_hybrid_intel(tmp_path: Path) -> None:
    _, diagnosis = examine(tree(tmp_path, TWO_NODES, {f"{EVENTS}/cpu_core/events/mem-loads": "event=0xcd"}))
    assert finding(diagnosis, "PMU").value == "Intel PEBS mem-loads (cpu_core)"


def test_a_debian_server_whose_perf_events_are_closed(tmp_path: Path) -> None:
    files = {**INTEL, "proc/sys/kernel/perf_event_paranoid": "3", "proc/sys/kernel/numa_balancing": "0"}
    _, diagnosis = examine(tree(tmp_path, TWO_NODES, files))
    assert diagnosis.source == "windows"
    assert "not pmu: perf_event_paranoid is 3" in diagnosis.verdict
    assert finding(diagnosis, "perf_event_paranoid").command == "sudo sysctl kernel.perf_event_paranoid=2"
    assert finding(diagnosis, "kernel.numa_balancing").command == "sudo sysctl kernel.numa_balancing=1"
    capable = tree(tmp_path / "capable", TWO_NODES, files, capabilities=1 << 38)
    assert examine(capable)[1].source == "pmu"
    admin = tree(tmp_path / "admin", TWO_NODES, files, capabilities=1 << 21)
    assert examine(admin)[1].source == "pmu"


def test_mpi_programs_need_more_than_windows(tmp_path: Path) -> None:
    name = "MPI, RDMA, GPU programs"
    closed = {"proc/sys/kernel/perf_event_paranoid": "3", "proc/sys/kernel/numa_balancing": "0"}
    _, diagnosis = examine(tree(tmp_path / "closed", TWO_NODES, closed))
    assert diagnosis.source == "windows"
    found = finding(diagnosis, name)
    assert (found.status, found.value) == ("limits", "not observed")
    assert "homing does nothing in them" in found.meaning
    assert found.command == "sudo sysctl kernel.numa_balancing=1 && sudo sysctl kernel.perf_event_paranoid=2"
    _, diagnosis = examine(tree(tmp_path / "open", TWO_NODES, {"proc/sys/kernel/numa_balancing": "1"}))
    assert (finding(diagnosis, name).status, finding(diagnosis, name).value) == ("ok", "hint-faults")


def test_an_amd_server_needs_more_without_a_filter(tmp_path: Path) -> None:
    files = {f"{EVENTS}/ibs_op/type": "11", f"{EVENTS}/ibs_op/format/cnt_ctl": "config:19"}
    _, diagnosis = examine(tree(tmp_path / "old", TWO_NODES, files))
    assert diagnosis.source == "hint-faults"
    assert finding(diagnosis, "PMU").command == "sudo sysctl kernel.perf_event_paranoid=1"
    files[f"{EVENTS}/ibs_op/format/swfilt"] = "config2:0"
    _, diagnosis = examine(tree(tmp_path / "new", TWO_NODES, files))
    assert diagnosis.source == "pmu"
    assert finding(diagnosis, "PMU").value == "AMD IBS op (ibs_op)"


def test_an_arm_server_with_a_node_without_cpus(tmp_path: Path) -> None:
    nodes = {**TWO_NODES, 4: ("", 256, 256, "10 21 28")}
    files = {f"{EVENTS}/arm_spe_0/type": "8", "proc/sys/kernel/osrelease": "6.8.0-aarch64"}
    facts, diagnosis = examine(tree(tmp_path, nodes, files))
    assert facts.pmu.kind == "spe"
    assert diagnosis.source == "pmu"
    assert "2 nodes" in diagnosis.verdict
    assert finding(diagnosis, "node 4").status == "note"
    assert "never a target" in finding(diagnosis, "node 4").meaning
    assert "recently" in finding(diagnosis, "kernel").meaning


def test_a_virtual_machine(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n",
        "sys/class/dmi/id/sys_vendor": "QEMU",
        "proc/sys/kernel/numa_balancing": "0",
    }
    facts, diagnosis = examine(tree(tmp_path, TWO_NODES, files))
    assert facts.hypervisor == "QEMU"
    assert diagnosis.source == "windows"
    assert "hidden by the hypervisor (QEMU)" in finding(diagnosis, "PMU").meaning


def test_a_container(tmp_path: Path) -> None:
    files = {
        **INTEL,
        ".dockerenv": "",
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": str(4 << 30),
    }
    root = tree(tmp_path, TWO_NODES, files, seccomp=2, allowed="0-15", memories="0")
    facts, diagnosis = examine(root)
    assert (facts.container, facts.memory_limit, facts.nodes_allowed) == ("docker", 4 << 30, (0,))
    assert not diagnosis.able
    assert "steps aside" in diagnosis.verdict
    assert "of 2 NUMA nodes only node 0 has CPUs and memory that this process may use" in diagnosis.verdict
    cpuset = finding(diagnosis, "cpuset")
    assert cpuset.value == "16 of 64 CPUs"
    assert "no memory of node 1" in cpuset.meaning
    assert cpuset.command == "docker run --cpuset-cpus 0-63 --cpuset-mems 0,1 ..."
    assert "below" in finding(diagnosis, "container").meaning
    assert "cpuset" in finding(diagnosis, "node 1").meaning
    assert finding(diagnosis, "seccomp").command == "docker run --cap-add SYS_NICE ..."
    # What was really tried counts more than what is usual.
    nodes = [replace(one, usable_cpus=16) for one in facts.nodes]
    blocked = diagnose(replace(facts, nodes=nodes, nodes_allowed=(0, 1), move_pages_error=1, perf_error=1))
    assert not blocked.able
    assert "move_pages gives EPERM" in blocked.verdict
    assert finding(blocked, "seccomp").status == "blocks"
    assert blocked.sources[0].command == "docker run --cap-add PERFMON ..."
    open_door = diagnose(replace(facts, nodes=nodes, nodes_allowed=(0, 1), move_pages_error=0, perf_error=0))
    assert open_door.able
    assert finding(open_door, "seccomp").status == "ok"


@pytest.mark.parametrize(
    ("files", "run_time"),
    [
        ({"run/.containerenv": ""}, "podman run --cap-add SYS_NICE ..."),
        (
            {"proc/self/cgroup": "0::/kubepods/pod1"},
            "in the pod: securityContext: capabilities: add: [SYS_NICE]",
        ),
    ],
)
def test_other_containers_are_changed_in_their_way(
    files: dict[str, str], run_time: str, tmp_path: Path
) -> None:
    _, diagnosis = examine(tree(tmp_path, TWO_NODES, {**INTEL, **files}, seccomp=2))
    assert finding(diagnosis, "seccomp").command == run_time


def test_what_binds_a_process_to_some_cpus_is_told_without_a_container(tmp_path: Path) -> None:
    _, diagnosis = examine(tree(tmp_path / "bound", TWO_NODES, INTEL, allowed="3"))
    assert finding(diagnosis, "cpuset").command == "taskset -c 0-63 COMMAND"
    _, diagnosis = examine(tree(tmp_path / "free", TWO_NODES, INTEL))
    cpuset = finding(diagnosis, "cpuset")
    assert (cpuset.value, cpuset.status, cpuset.command) == ("all 64 CPUs", "ok", "")
    _, diagnosis = examine(tree(tmp_path / "memory", TWO_NODES, INTEL, memories="1"))
    assert "no memory of node 0" in finding(diagnosis, "cpuset").meaning


def test_every_line_says_what_it_means(tmp_path: Path) -> None:
    for at, nodes in enumerate((TWO_NODES, {0: ("0-3", 16, 8, "10")}, {})):
        _, diagnosis = examine(tree(tmp_path / str(at), nodes, INTEL))
        for name in ("NUMA nodes", "container", "cpuset", "seccomp", "thread binding"):
            finding(diagnosis, name)
        assert all(one.meaning for one in diagnosis.findings)


def test_a_nested_control_group_with_a_tighter_parent(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/batch/job7",
        "sys/fs/cgroup/batch/job7/memory.max": "max",
        "sys/fs/cgroup/batch/memory.max": str(2 << 30),
    }
    assert read_facts(str(tree(tmp_path, TWO_NODES, files)), {}).memory_limit == 2 << 30


def test_a_control_group_that_no_folder_can_be_named_after(tmp_path: Path) -> None:
    facts = read_facts(str(tree(tmp_path, TWO_NODES, {"proc/self/cgroup": "0::/a\0\n"})), {})
    assert facts.memory_limit is None
    assert diagnose(facts).findings


def test_a_number_that_no_kernel_writes_is_none(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/a",
        "sys/fs/cgroup/a/memory.max": "9" * 400,
        "proc/sys/kernel/perf_event_paranoid": "-1",
        "proc/sys/vm/max_map_count": "1_000",
    }
    facts = read_facts(str(tree(tmp_path, TWO_NODES, files)), {})
    assert (facts.memory_limit, facts.perf_paranoid, facts.max_map_count) == (None, -1, None)
    assert diagnose(facts).findings


def test_one_node(tmp_path: Path) -> None:
    _, diagnosis = examine(tree(tmp_path, {0: ("0-3", 16, 8, "10")}, INTEL, cpus="0-3", allowed="0-3"))
    assert not diagnosis.able
    assert "steps aside" in diagnosis.verdict
    assert finding(diagnosis, "NUMA nodes").status == "blocks"


def test_little_memory_few_mappings_few_files(tmp_path: Path) -> None:
    nodes = {0: TWO_NODES[0], 1: ("16-31", 128, 1, "21 10")}
    files = {
        **INTEL,
        "proc/sys/vm/max_map_count": "1000",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] never",
    }
    _, diagnosis = examine(tree(tmp_path, nodes, files, limits=("64", "0")))
    assert "less than 5 % free" in finding(diagnosis, "node 1").meaning
    assert finding(diagnosis, "vm.max_map_count").command == "sudo sysctl vm.max_map_count=65530"
    assert "vm.max_map_count is 1000" in diagnosis.sources[2].reason
    assert finding(diagnosis, "open files (ulimit -n)").command == "ulimit -n 1024"
    assert finding(diagnosis, "transparent huge pages").status == "note"
    _, diagnosis = examine(tree(tmp_path / "b", nodes, files, limits=("unlimited", "unlimited")))
    assert finding(diagnosis, "locked memory (ulimit -l)").status == "ok"


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({}, "limits"),
        ({"OMP_NUM_THREADS": "8"}, "limits"),
        ({"OMP_PROC_BIND": "false"}, "limits"),
        ({"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}, "limits"),
        ({"KMP_AFFINITY": "disabled"}, "limits"),
        ({"OMP_PLACES": "cores"}, "ok"),
        ({"OMP_PROC_BIND": "close"}, "ok"),
        ({"GOMP_CPU_AFFINITY": "0-7"}, "ok"),
    ],
)
def test_thread_binding(variables: dict[str, str], status: str, tmp_path: Path) -> None:
    _, diagnosis = examine(tree(tmp_path, TWO_NODES, INTEL), **variables)
    found = finding(diagnosis, "thread binding")
    assert found.status == status
    assert bool(found.command) == (status == "limits")
    if variables.get("OMP_PROC_BIND") == "false":
        assert found.command == "unset OMP_PROC_BIND; homing run --bind -- COMMAND"


def test_an_empty_tree_is_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--root", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "steps aside here: no NUMA node was found" in text
    assert "none found" in text and "unknown" in text and "one NUMA node" not in text
    assert cli.main(["doctor", "--root", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, TWO_NODES, {**INTEL, "proc/sys/kernel/numa_balancing": "0"})
    assert cli.main(["doctor", "--json", "--root", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "homing-doctor/1"
    assert (document["source"], document["able"]) == ("pmu", True)
    assert [source["name"] for source in document["sources"]] == ["pmu", "hint-faults", "windows"]
    assert document["sources"][1]["command"] == "sudo sysctl kernel.numa_balancing=1"
    assert document["nodes"][1]["distances"] == [21, 10]
    for one in document["findings"]:
        assert set(one) == {"name", "value", "status", "meaning", "command"}
        assert one["status"] in ("ok", "note", "limits", "blocks")


def test_the_text_names_each_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, TWO_NODES, {**INTEL, "proc/sys/kernel/perf_event_paranoid": "4"})
    assert cli.main(["doctor", "--root", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "$ sudo sysctl kernel.perf_event_paranoid=2" in text
    assert text.splitlines()[-1].startswith("homing would observe by windows")


def test_this_machine() -> None:
    facts, diagnosis = examine(Path("/"))
    assert facts.nodes
    assert sum(node.cpus for node in facts.nodes) == os.cpu_count()
    assert facts.move_pages_error == try_move_pages()
    assert facts.perf_error == try_perf_event()
    assert diagnosis.verdict


def test_lists_of_the_kernel() -> None:
    assert parse_list("0-3,8,10-11\n") == [0, 1, 2, 3, 8, 10, 11]
    assert parse_list("") == []
    assert parse_list("nonsense,5") == [5]


def test_memory_nodes_of_which_one_has_cpus(tmp_path: Path) -> None:
    """HBM or CXL memory beside one processor: nothing says that pages could be sent, nor that there is one
    node."""
    nodes = {0: ("0-63", 128, 100, "10 20 20 20"), **dict.fromkeys((1, 2, 3), ("", 32, 30, "20 10 20 20"))}
    root = tree(tmp_path, nodes, {"sys/devices/system/node/has_cpu": "0"})
    _, diagnosis = examine(root)
    assert not diagnosis.able
    assert "of 4 NUMA nodes only node 0 has CPUs and memory" in diagnosis.verdict
    blocks = finding(diagnosis, "NUMA nodes")
    assert blocks.status == "blocks" and "homing does nothing" in blocks.meaning
    assert [finding(diagnosis, f"node {at}").meaning for at in range(4)] == [
        "the only node for pages",
        *["has no CPUs: never a target"] * 3,
    ]
    assert not any("can be sent" in one.meaning for one in diagnosis.findings)
    assert one_node_reason(str(root)) == (
        "of this machine's 4 NUMA nodes only node 0 has CPUs, and pages are sent to nodes with CPUs only"
    )


def test_two_nodes_with_cpus_beside_memory(tmp_path: Path) -> None:
    nodes = {**TWO_NODES, 2: ("", 512, 500, "20 20 10")}
    root = tree(tmp_path, nodes, {"sys/devices/system/node/has_cpu": "0-1"})
    _, diagnosis = examine(root)
    assert diagnosis.able and "between 2 nodes" in diagnosis.verdict
    assert finding(diagnosis, "NUMA nodes").meaning == "pages can be sent between 2 of them"
    assert one_node_reason(str(root)) == ""


@pytest.mark.parametrize(
    ("online", "has_cpu", "reason"),
    [
        ("0", "0", "this machine has one NUMA node, so every page is at home (homing run --on lab has four)"),
        ("", "", "this machine has one NUMA node, so every page is at home (homing run --on lab has four)"),
        ("0-3", "", "none of this machine's 4 NUMA nodes is known to have CPUs"),
        ("0,8", "8", "of this machine's 2 NUMA nodes only node 8 has CPUs"),
        ("0,8", "0,8", ""),
    ],
)
def test_why_there_is_nothing_to_do(tmp_path: Path, online: str, has_cpu: str, reason: str) -> None:
    folder = tmp_path / "sys/devices/system/node"
    folder.mkdir(parents=True)
    (folder / "online").write_text(online + "\n")
    (folder / "has_cpu").write_text(has_cpu + "\n")
    found = one_node_reason(str(tmp_path))
    assert found.startswith(reason) and bool(found) == bool(reason)


def test_node_folders_of_any_shape(tmp_path: Path) -> None:
    root = tree(tmp_path, TWO_NODES, {})
    folder = root / "sys/devices/system/node/node1"
    for name in ("cpulist", "distance", "meminfo"):
        (folder / name).unlink()
    _, diagnosis = examine(root)
    assert not diagnosis.able and "only node 0 has CPUs and memory" in diagnosis.verdict
    (folder / "cpulist").write_bytes(b"\xff9-3,junk,\n")
    assert examine(root)[1].verdict == diagnosis.verdict


def test_a_process_that_may_run_on_one_node(tmp_path: Path) -> None:
    _, diagnosis = examine(tree(tmp_path, TWO_NODES, {}, allowed="0-15"))
    assert not diagnosis.able and "only node 0 has CPUs and memory" in diagnosis.verdict
    assert finding(diagnosis, "NUMA nodes").status == "blocks"
    assert finding(diagnosis, "node 1").meaning == "no CPUs that this process may run on: never a target"
