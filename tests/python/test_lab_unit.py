"""The lab without a boot: kernels, the initrd, QEMU's command line, steps, counts, and what is refused."""

from __future__ import annotations

import json
import lzma
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from homing.lab import built, counts, initrd, kernel, machine, shares, steps, vcpus
from homing.lab.errors import LabError
from homing.lab.guest import Guest
from homing.lab.options import CountOptions, LabOptions
from homing.lab.steps import KernelSettings, Step

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib


def bz_image(version: str) -> bytes:
    """The part of a bzImage that tells its version."""
    head = bytearray(0x8200)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x3000 - 0x200).to_bytes(2, "little")
    text = f"{version} (builder@host) #1 SMP".encode()
    head[0x3000 : 0x3000 + len(text)] = text
    return bytes(head)


def fake_kernel(root: Path, version: str, suffix: str = ".ko", builtin: str = "") -> None:
    boot, modules = root / "boot", root / "modules" / version
    boot.mkdir(exist_ok=True)
    (boot / f"vmlinuz-{version}").write_bytes(bz_image(version))
    (modules / "kernel").mkdir(parents=True)
    lines = [
        "virtio_ring:",
        "virtio:virtio_ring",
        "virtio_pci_modern_dev:",
        "virtio_pci:virtio_pci_modern_dev virtio virtio_ring",
        "fuse:",
        "virtiofs:virtio virtio_ring fuse",
        "overlay:",
    ]
    listed = []
    for line in lines:
        name, _, needed = line.partition(":")
        if name in builtin.split():
            continue
        needs = " ".join(f"kernel/{other}.ko{suffix[3:]}" for other in needed.split() if other not in builtin)
        listed.append(f"kernel/{name}{suffix}: {needs}")
        data = f"module {name}".encode()
        (modules / "kernel" / f"{name}{suffix}").write_bytes(
            lzma.compress(data) if suffix == ".ko.xz" else data
        )
    (modules / "modules.dep").write_text("\n".join(listed) + "\n")
    (modules / "modules.builtin").write_text("".join(f"kernel/{name}.ko\n" for name in builtin.split()))


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two kernels, none of them this machine's."""
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))
    fake_kernel(tmp_path, "6.1.0-9-cloud-amd64")
    fake_kernel(tmp_path, "6.1.0-56-cloud-amd64")
    fake_kernel(tmp_path, "6.1.0-60-amd64")
    fake_kernel(
        tmp_path,
        "6.12.30+deb12-cloud-amd64",
        ".ko.xz",
        builtin="virtio virtio_ring virtio_pci_modern_dev virtio_pci virtiofs",
    )
    return tmp_path


def find(root: Path, wanted: str | None) -> kernel.Kernel:
    return kernel.find_kernel(wanted, root / "boot", root / "modules")


# Kernels


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        (None, "6.1.0-56-cloud-amd64"),
        ("6.1", "6.1.0-56-cloud-amd64"),
        ("6.12", "6.12.30+deb12-cloud-amd64"),
    ],
)
def test_the_newest_kernel_of_the_series_is_chosen(kernels: Path, wanted: str | None, version: str) -> None:
    assert find(kernels, wanted).version == version


def test_a_kernel_given_by_path_tells_its_own_version(kernels: Path) -> None:
    image = kernels / "renamed"
    image.write_bytes(bz_image("6.1.0-9-cloud-amd64"))
    assert find(kernels, str(image)).modules == kernels / "modules" / "6.1.0-9-cloud-amd64"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("5.10", "apt-get install linux-image-5.10"),
        ("newest", "give a series"),
        ("/nonexistent/vmlinuz", "No such file"),
    ],
)
def test_a_missing_kernel_is_one_clear_line(kernels: Path, wanted: str, message: str) -> None:
    with pytest.raises(LabError, match=message) as caught:
        find(kernels, wanted)
    assert "\n" not in caught.value.message
    assert caught.value.status == 2


def test_a_file_that_is_no_kernel_is_refused(kernels: Path) -> None:
    other = kernels / "other"
    other.write_bytes(b"\x7fELF" + bytes(5000))
    with pytest.raises(LabError, match="not an x86 Linux kernel image"):
        find(kernels, str(other))


def test_a_kernel_without_modules_is_refused(kernels: Path) -> None:
    shutil.rmtree(kernels / "modules" / "6.12.30+deb12-cloud-amd64")
    with pytest.raises(LabError, match="no modules of kernel"):
        find(kernels, "6.12")


def test_modules_come_after_what_they_need(kernels: Path) -> None:
    order = [path.name.removesuffix(".ko") for path in kernel.load_order(find(kernels, "6.1"))]
    needed = {
        "virtio": ["virtio_ring"],
        "virtio_pci": ["virtio_pci_modern_dev", "virtio"],
        "virtiofs": ["virtio", "fuse"],
    }
    assert set(order) == {
        "virtio_ring",
        "virtio",
        "virtio_pci_modern_dev",
        "virtio_pci",
        "fuse",
        "virtiofs",
        "overlay",
    }
    assert len(order) == len(set(order))
    for name, others in needed.items():
        assert all(order.index(other) < order.index(name) for other in others)


def test_builtin_modules_are_left_out_and_packed_ones_unpacked(kernels: Path) -> None:
    order = kernel.load_order(find(kernels, "6.12"))
    assert [path.name for path in order] == ["overlay.ko.xz"]
    assert kernel.read_module(order[0]) == b"module overlay"


def test_a_missing_module_is_named(kernels: Path) -> None:
    with pytest.raises(LabError, match="no module 'nfs'"):
        kernel.load_order(find(kernels, "6.1"), ("nfs",))


# The initrd


def test_cpio_unpacks_to_what_went_in(tmp_path: Path) -> None:
    cpio = shutil.which("cpio")
    if cpio is None:
        pytest.skip("cpio is not installed")
    entries = [
        initrd.Entry("folder", 0o040755),
        initrd.Entry("folder/data", 0o100644, bytes(range(256)) * 33),
        initrd.Entry("run", 0o100755, b"#!/bin/sh\n"),
        initrd.Entry("empty", 0o100600),
    ]
    subprocess.run([cpio, "-i", "--quiet"], input=initrd.cpio(entries), cwd=tmp_path, check=True)
    assert (tmp_path / "folder/data").read_bytes() == entries[1].data
    assert (tmp_path / "empty").read_bytes() == b""
    assert os.access(tmp_path / "run", os.X_OK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "folder", "run"]


def test_the_initrd_is_kept_until_something_changes(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busybox = kernels / "busybox"
    busybox.write_bytes(b"one")
    monkeypatch.setattr(initrd, "find_busybox", lambda: busybox)
    chosen = find(kernels, "6.1")
    first = initrd.build(chosen)
    written = first.stat().st_mtime_ns
    assert initrd.build(chosen) == first
    assert first.stat().st_mtime_ns == written
    assert b"module overlay" in first.read_bytes()
    busybox.write_bytes(b"another")
    assert initrd.build(chosen) != first
    assert initrd.build(find(kernels, "6.12")).name.startswith("lab-initrd-6.12.30")


def test_a_dynamic_or_missing_busybox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="apt-get install busybox-static"):
        initrd.find_busybox([tmp_path / "none"])
    # The program that runs this test is no static executable, or no ELF file at all.
    shell = Path("/bin/sh").resolve()
    with pytest.raises(LabError, match="not static"):
        initrd.find_busybox([shell])


# QEMU's command line


def options_of(command: list[str], name: str) -> list[str]:
    return [command[i + 1] for i, word in enumerate(command) if word == name]


def build_command(topology: machine.Topology, append: str = "", plugin: str | None = None) -> list[str]:
    return machine.command_line(
        "qemu",
        topology,
        kernel.Kernel(Path("/boot/vmlinuz"), "6.1", Path("/lib/modules/6.1")),
        Path("/cache/initrd"),
        [machine.Share("host", Path("/tmp/a,b/host.socket"))],
        Path("/tmp/a,b/console"),
        append,
        plugin,
    )


def test_nodes_have_their_cpus_memory_and_distances() -> None:
    command = build_command(machine.Topology(3, 2, 512), "extra=1")
    assert options_of(command, "-m") == ["1536M"]
    assert options_of(command, "-smp")[0].startswith("6,")
    objects = options_of(command, "-object")
    assert [word for word in objects if "share=on" in word] == objects
    assert [word.split(",")[1] for word in objects] == ["id=node0", "id=node1", "id=node2"]
    numa = options_of(command, "-numa")
    assert "node,nodeid=1,cpus=2-3,memdev=node1" in numa
    distances = {word for word in numa if word.startswith("dist")}
    assert len(distances) == 9
    assert "dist,src=1,dst=1,val=10" in distances
    assert options_of(command, "-append")[0].endswith(" extra=1")
    assert options_of(command, "-plugin") == []


def test_commas_in_paths_do_not_end_options() -> None:
    command = build_command(machine.Topology(), plugin="/x/plugin.so,out=/tmp/c")
    assert "socket,id=host,path=/tmp/a,,b/host.socket" in command
    assert options_of(command, "-plugin") == ["/x/plugin.so,out=/tmp/c"]


def test_memory_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory_mib", lambda: 3000)
    machine.check_memory(machine.Topology(2, 1, 1024))
    with pytest.raises(LabError, match="at most --memory-per-node 686"):
        machine.check_memory(machine.Topology(4, 1, 1024))


def test_a_control_group_limits_the_memory(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9999999 kB\nMemAvailable:    8388608 kB\n")
    assert machine.available_memory_mib(meminfo, tmp_path) == 8192
    (tmp_path / "memory.max").write_text(f"{3 << 30}\n")
    (tmp_path / "memory.current").write_text(f"{1 << 30}\n")
    assert machine.available_memory_mib(meminfo, tmp_path) == 2048
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available_memory_mib(meminfo, tmp_path) == 8192


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="apt-get install qemu-system-x86"):
        machine.find_qemu()
    with pytest.raises(LabError, match="apt-get install qemu-system-common"):
        shares.find_virtiofsd([tmp_path / "virtiofsd"])
    monkeypatch.setenv("HOMING_LAB_LIBRARIES", str(tmp_path))
    with pytest.raises(LabError, match="HOMING_LAB_LIBRARIES"):
        built.find_built("libhoming_counter_plugin.so")


# What is refused before anything starts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (LabOptions(nodes=0), "nodes: 0"),
        (LabOptions(nodes=17), "nodes: 17"),
        (LabOptions(cpus_per_node=0), "cpus-per-node"),
        (LabOptions(memory_per_node_mib=64), "memory-per-node"),
        (LabOptions(timeout=0), "timeout"),
        (LabOptions(numa_balancing=2), "numa_balancing"),
        (LabOptions(scan_size_mb=0), "scan_size_mb"),
        (LabOptions(transparent_hugepages="maybe"), "transparent_hugepages"),
        (LabOptions(count=CountOptions(cache_kib=1000)), "power of two of sets"),
        (LabOptions(count=CountOptions(line=48)), "line of 48"),
        (LabOptions(count=CountOptions(ways=0)), "0 ways"),
        (LabOptions(nodes=8, cpus_per_node=8, count=CountOptions()), "at most 32 CPUs"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: LabOptions, message: str) -> None:
    with pytest.raises(LabError, match=message) as caught:
        options.check()
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "step",
    [
        Step(command=[]),
        Step(command=["true\0"]),
        Step(command=["true"], timeout=-1),
        Step(command=["true"], numa_balancing=7),
    ],
)
def test_steps_that_make_no_sense_are_refused(step: Step) -> None:
    with pytest.raises(LabError):
        step.check()


@pytest.mark.parametrize(
    ("cpus", "host", "places"),
    [
        (4, [0, 1], [0, 1, 0, 1]),
        (6, [2, 5, 7], [2, 5, 7, 2, 5, 7]),
        (4, [3], [3, 3, 3, 3]),
        (4, [0, 1, 2], []),  # one of them would get two
        (4, [0, 1, 2, 3], []),
        (2, list(range(64)), []),
    ],
)
def test_the_guests_cpus_share_the_hosts_evenly(cpus: int, host: list[int], places: list[int]) -> None:
    assert vcpus.even_shares(cpus, host) == places


def test_in_turn_each_of_the_guests_cpus_gets_each_of_the_hosts() -> None:
    turns = [vcpus.even_shares(6, [2, 5, 7], turn) for turn in range(3)]
    assert all(sorted(turn) == [2, 2, 5, 5, 7, 7] for turn in turns)
    assert all(sorted(places) == [2, 5, 7] for places in zip(*turns, strict=True))


def test_a_guest_that_has_gone_has_no_cpus_to_place() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    turns = vcpus.Turns(gone.pid, 4096)
    turns.stop()
    turns.stop()


def test_folders_to_share_for_writing(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    other = tmp_path / "ab"
    other.mkdir()
    assert shares.writable_folders([inner, tmp_path / "a", other, inner / ".."]) == [tmp_path / "a", other]
    for refused in ("/", "/proc/self", "/dev", tmp_path / "missing"):
        with pytest.raises(LabError):
            shares.writable_folders([refused])


def test_a_guest_that_was_refused_leaves_nothing_behind(
    kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(kernels / "cache"))
    (kernels / "cache").mkdir()
    monkeypatch.setattr("homing.lab.guest.find_kernel", lambda wanted: find(kernels, wanted))
    with pytest.raises(LabError), Guest(LabOptions(), cwd="/"):
        pass
    assert list((kernels / "cache").glob("homing-lab-*")) == []


# Steps


def test_the_environment_is_passed_without_the_hosts_own_affairs() -> None:
    host = {"PATH": "/x", "DISPLAY": ":0", "MY_TOKEN": "t", "OMP_NUM_THREADS": "2", "LD_PRELOAD": "a.so"}
    environment = steps.guest_environment(host, cpus=4)
    assert environment["PATH"] == "/x"
    assert environment["LD_PRELOAD"] == "a.so"
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["OMP_WAIT_POLICY"] == "passive"
    assert environment["HOMING_LAB"] == "1"
    assert not {"DISPLAY", "MY_TOKEN"} & environment.keys()
    assert steps.guest_environment({}, cpus=6)["OMP_NUM_THREADS"] == "6"
    assert steps.guest_environment({"HOMING_COSTS": "/c"}, cpus=1)["HOMING_COSTS"] == "/c"


def test_the_stated_costs_name_the_modelled_cache() -> None:
    stated = {"local_ns": 100, "remote_ns": 200, "move_call_us": 40, "move_page_us": 1.5, "touch_us": 15}
    stated["fit_us"] = 100
    assert tomllib.loads(steps.guest_costs(2048)) == {**stated, "cache_kib": 2048}


def test_a_command_keeps_its_words_and_its_environment(tmp_path: Path) -> None:
    folder = tmp_path / "a b'c"
    folder.mkdir()
    words = ["two words", "quote'\"", "$HOME `x`", "line\nbreak", "*", ""]
    step = Step(command=["printf", "%s\\0", *words], env={"ODD": "a'b\n$c"})
    script = steps.command_script(step, {"PATH": os.environ["PATH"], "ODD": "no"}, folder, counting=False)
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words
    shown = Step(command=["sh", "-c", 'printf %s "$ODD|$PWD|${USER-none}"'], env=step.env)
    script = steps.command_script(shown, {"PATH": os.environ["PATH"]}, folder, counting=False)
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, env={"USER": "me"})
    assert done.stdout.decode() == f"a'b\n$c|{folder}|none"


def test_counting_wraps_the_command_in_phase_one() -> None:
    script = steps.command_script(Step(command=["a.out"], timeout=5), {}, Path("/"), counting=True)
    words = shlex.split(script.splitlines()[-1])
    assert words[-5:] == [steps.GUEST_MARK, "run", "1", "--", "a.out"]
    assert "timeout" in words


def test_a_steps_settings_win_over_the_labs() -> None:
    lab = KernelSettings(numa_balancing=0, scan_delay_ms=100)
    step = Step(command=["x"], numa_balancing=1, sysctl={"vm.max_map_count": 9000})
    lines = steps.setup_script(lab, step).splitlines()
    assert "knob /proc/sys/kernel/numa_balancing 1" in lines
    assert "knob /sys/kernel/debug/sched/numa_balancing/scan_delay_ms 100" in lines
    assert not [line for line in lines if "scan_size_mb" in line]
    assert "knob /proc/sys/kernel/numa_balancing 0" not in lines
    assert "knob /proc/sys/vm/max_map_count 9000" in lines
    with pytest.raises(LabError, match="not a name"):
        KernelSettings(sysctl={"../../etc": 1}).files()


# Counts

COUNTS = {
    "version": 1,
    "machine": {"nodes": 2, "cpus": 4, "cpus_per_node": 2},
    "cache": {"kib": 1024, "ways": 16, "line": 64, "coherent": True},
    "self_test": {"nodes_verified": 2, "mismatches": 0},
    "pages": 10,
    "phases": [
        {
            "phase": phase,
            "accesses": 1000 * phase,
            "misses": matrix,
            "unknown_home_misses": 0,
            "invalidation_misses": 1,
            "upgrades": 2,
            "untracked_misses": 0,
            "run_oracle_remote": phase,
        }
        for phase, matrix in ((1, [[10, 0], [30, 0]]), (2, [[40, 10], [50, 0]]), (5, [[5, 0], [0, 5]]))
    ],
    "oracle": [
        {"first_phase": 1, "last_phase": 1, "misses": 40, "remote": 4},
        {"first_phase": 2, "last_phase": 5, "misses": 110, "remote": 11},
        {"first_phase": 1, "last_phase": 5, "misses": 150, "remote": 30},
    ],
}


def test_counts_add_up_over_phases() -> None:
    result = counts.parse(json.dumps(COUNTS))
    assert result.matrix() == [[55, 10], [80, 5]]
    assert result.matrix([2, 5]) == [[45, 10], [50, 5]]
    assert result.misses() == 150
    assert result.remote_fraction() == pytest.approx(90 / 150)
    assert result.remote_fraction([5]) == 0
    assert result.remote_fraction([7]) == 0
    assert result.home_shares([1]) == [1, 0]
    assert result.oracle_remote_fraction() == pytest.approx(0.2)
    assert result.oracle_remote_fraction([2, 5]) == pytest.approx(0.1)
    assert result.run_oracle_remote([2, 5]) == 7
    with pytest.raises(ValueError, match="no oracle"):
        result.oracle_remote([1, 5])
    assert "1024 KiB 16-way" in str(result.cache)


def test_counts_as_a_dictionary_hold_the_fractions() -> None:
    data = dict(
        COUNTS,
        oracle=[
            *COUNTS["oracle"],
            *({"first_phase": p, "last_phase": p, "misses": 1, "remote": 0} for p in (2, 5)),
        ],
    )  # type: ignore[misc]
    result = json.loads(json.dumps(counts.parse(json.dumps(data)).to_dict()))
    assert result["run"]["remote_fraction"] == pytest.approx(0.6)
    assert result["run"]["oracle_remote_fraction"] == pytest.approx(0.2)
    assert [phase["phase"] for phase in result["phases"]] == [1, 2, 5]
    assert result["phases"][1]["home_shares"] == [0.9, 0.1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps(dict(COUNTS, version=2)),
        json.dumps(dict(COUNTS, machine={"nodes": 3, "cpus": 3, "cpus_per_node": 1})),
        json.dumps(COUNTS)[:-40],
    ],
)
def test_a_file_that_is_no_counts_is_one_clear_line(text: str) -> None:
    with pytest.raises(LabError, match=r"^file") as caught:
        counts.parse(text, "file")
    assert "\n" not in caught.value.message
