"""The lab with a real kernel: one boot with many checks, and one that is interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.lab import machine, vcpus
from homing.lab.built import find_built
from homing.lab.errors import LabError
from homing.lab.guest import CountOptions, Guest, LabOptions
from homing.lab.steps import Step, StepResult

REPOSITORY = Path(__file__).parents[2]
NODES = 4
MEMORY_MIB = 512

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(shutil.which(machine.QEMU) is None, reason=f"{machine.QEMU} is not installed"),
]


@pytest.fixture(scope="module", autouse=True)
def compiled_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The counter plugin and homing-mark; built here if the tree's build has none."""
    try:
        find_built("libhoming_counter_plugin.so")
        yield
        return
    except LabError:
        build = tmp_path_factory.mktemp("lab-build")
    subprocess.run(["cmake", "-S", REPOSITORY / "lab", "-B", build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOMING_LAB_LIBRARIES", str(build))
        yield


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest's current directory; a blank in its name, as users have."""
    folder = tmp_path_factory.mktemp("lab") / "my work"
    folder.mkdir()
    for program in ("count_known", "sweep_until"):
        source = Path(__file__).with_name(f"{program}.c")
        subprocess.run(["cc", "-O2", "-o", folder / program, source], check=True)
    return folder


@pytest.fixture(scope="module")
def guest(work: Path, compiled_parts: None) -> Iterator[Guest]:
    options = LabOptions(nodes=NODES, memory_per_node_mib=MEMORY_MIB, count=CountOptions(), timeout=500)
    with Guest(options, cwd=work) as running:
        yield running


def shell(guest: Guest, script: str, **settings: object) -> StepResult:
    return guest.step(Step(command=["sh", "-c", script], **settings))  # type: ignore[arg-type]


def test_the_guest_has_the_nodes_asked_for(guest: Guest) -> None:
    result = shell(
        guest,
        "uname -r; cd /sys/devices/system/node; cat online; cat node*/cpulist; cat node*/distance;"
        "sed -n 's/.*MemTotal: *//p' node*/meminfo",
    )
    lines = result.stdout.decode().splitlines()
    assert lines[0] == guest.kernel.version
    assert lines[1] == f"0-{NODES - 1}"
    assert lines[2 : 2 + NODES] == [str(cpu) for cpu in range(NODES)]
    assert lines[6] == "10 20 20 20"
    for size in lines[10:]:
        assert 0.7 * MEMORY_MIB < int(size.split()[0]) / 1024 <= MEMORY_MIB
    assert result.stderr == b""


def test_its_cpus_share_the_hosts_evenly(guest: Guest) -> None:
    here = sorted(os.sched_getaffinity(0))
    assert guest._running is not None and guest._running.qemu is not None
    threads = [thread for _, thread in sorted(vcpus.threads(guest._running.qemu.pid))]
    turns = [[{cpu} for cpu in vcpus.even_shares(NODES, here, turn)] for turn in range(len(here))]
    if not any(turns):
        assert [os.sched_getaffinity(thread) for thread in threads] == [set(here)] * NODES
        return
    seen = []
    end = time.monotonic() + 30
    # One that is being changed may be caught half way.
    while not all(turn in seen for turn in turns) and time.monotonic() < end:
        seen.append([os.sched_getaffinity(thread) for thread in threads])
        time.sleep(0.01)
    assert all(turn in seen for turn in turns)


def test_stdout_and_stderr_stay_apart_and_exact(guest: Guest, work: Path) -> None:
    data = os.urandom(1 << 20)
    (work / "data").write_bytes(data)
    result = shell(
        guest, "cat data; printf 'to\\000stderr' >&2; cat data >/dev/stdout; printf x >/dev/stderr"
    )
    assert result.stdout == data + data
    assert result.stderr == b"to\0stderrx"
    assert result.exit_status == 0


def test_output_arrives_while_the_command_runs(guest: Guest, work: Path) -> None:
    class Answer:
        """Answers the guest's question through the shared folder: the guest waits for it."""

        def __init__(self) -> None:
            self.seen = b""

        def write(self, data: bytes, /) -> None:
            self.seen += data
            if b"question\n" in self.seen:
                (work / "answer").write_text("42")

    out, err = Answer(), Answer()
    script = "echo question; until [ -s answer ]; do sleep 0.1; done; cat answer"
    result = guest.step(Step(command=["sh", "-c", script], timeout=60), out, err)
    assert result.exit_status == 0
    assert out.seen == b"question\n42"
    assert err.seen == b""


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)]
)
def test_the_exit_status_comes_back(guest: Guest, script: str, status: int) -> None:
    result = shell(guest, script)
    assert result.exit_status == status
    assert (result.stdout, result.stderr) == (b"", b"")


def test_a_command_that_does_not_exist_is_127(guest: Guest) -> None:
    result = guest.step(Step(command=["no-such-program"]))
    assert result.exit_status == 127
    assert b"no-such-program" in result.stderr


def test_a_step_is_ended_at_its_timeout_with_all_it_started(guest: Guest) -> None:
    result = shell(guest, "sleep 300 & echo $!; sleep 300", timeout=1)
    assert result.timed_out
    assert result.exit_status == 137
    after = shell(guest, f"test -e /proc/{result.stdout.decode().strip()}")
    assert after.exit_status == 1
    assert not after.timed_out


def test_files_come_back_from_the_current_directory_only(guest: Guest, work: Path) -> None:
    outside = work.parent / "outside"
    outside.write_text("host\n")
    result = shell(
        guest,
        f"mkdir made && echo back >made/file && mv made/file renamed; cat {outside}; echo guest >{outside};"
        f"cat {outside}; echo scratch >/tmp/homing-scratch && cat /tmp/homing-scratch; pwd; cat | wc -c",
    )
    assert result.stdout.decode().splitlines() == ["host", "guest", "scratch", str(work), "0"]
    assert (work / "renamed").read_text() == "back\n"
    assert (work / "made").is_dir()
    assert outside.read_text() == "host\n"
    assert not Path("/tmp/homing-scratch").exists()


def test_the_environment_reaches_the_command(guest: Guest) -> None:
    step = Step(command=["env"], env={"MINE": "two words", "OMP_NUM_THREADS": "3"})
    environment = dict(line.split("=", 1) for line in guest.step(step).stdout.decode().splitlines())
    assert environment["MINE"] == "two words"
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["OMP_WAIT_POLICY"] == "passive"
    assert environment["HOMING_LAB"] == "1"
    costs = shell(guest, 'cat "$HOMING_COSTS"').stdout.decode()
    assert "\ncache_kib = 1024" in costs


def test_kernel_settings_hold_for_their_step_only(guest: Guest) -> None:
    show = (
        "cat /proc/sys/kernel/numa_balancing /sys/kernel/debug/sched/numa_balancing/scan_size_mb"
        " /proc/sys/vm/max_map_count; cat /sys/kernel/mm/transparent_hugepage/enabled"
    )
    plain = shell(guest, show).stdout.decode().splitlines()
    assert plain[0] == "0"
    changed = shell(
        guest,
        show,
        numa_balancing=1,
        scan_size_mb=3,
        sysctl={"vm.max_map_count": 7777},
        transparent_hugepages="never",
    )
    assert changed.stdout.decode().splitlines() == ["1", "3", "7777", "always madvise [never]"]
    again = shell(guest, show).stdout.decode().splitlines()
    assert again[:3] == plain[:3]
    with pytest.raises(LabError, match="no_such_setting"):
        shell(guest, "true", sysctl={"vm.no_such_setting": 1})
    assert shell(guest, "true").exit_status == 0


@pytest.mark.parametrize(("balancing", "seconds"), [(0, 2), (1, 90)])
def test_balancing_on_arms_pages_and_off_does_not(guest: Guest, balancing: int, seconds: int) -> None:
    result = shell(
        guest,
        f"./sweep_until {seconds}",
        numa_balancing=balancing,
        scan_delay_ms=100,
        scan_period_min_ms=100,
    )
    assert result.exit_status == 0
    armed = int(result.stdout)
    assert armed >= 1000 if balancing else armed == 0


def test_the_counter_is_exact(guest: Guest) -> None:
    result = guest.step(Step(command=["./count_known", str(NODES), "1"]))
    assert result.exit_status == 0, result.stderr
    known = json.loads(result.stdout)
    counts = result.counts
    assert counts is not None
    assert counts.nodes == NODES
    assert counts.self_test_mismatches == 0
    expected = [[sweeps * known["lines"] for sweeps in row] for row in known["sweeps"]]
    matrix = counts.matrix([2])
    for cpu_node in range(NODES):
        for home in range(NODES):
            wanted = expected[cpu_node][home]
            assert wanted <= matrix[cpu_node][home] <= 1.01 * wanted
    total = sum(map(sum, expected))
    assert total <= counts.accesses([2]) <= 1.01 * total
    # Every page is used by all nodes: the oracle puts it on the one with most sweeps.
    oracle = sum(
        known["lines"]
        * (sum(row[home] for row in known["sweeps"]) - max(row[home] for row in known["sweeps"]))
        for home in range(NODES)
    )
    assert counts.oracle_remote([2]) == pytest.approx(oracle, rel=0.01)
    # What fits the cache misses once, however often it is swept.
    small = counts.matrix([3])[0][known["small_home"]]
    assert known["small_lines"] <= small <= known["small_lines"] + 30
    assert counts.accesses([3]) == pytest.approx(known["small_accesses"], rel=0.01)
    assert sum(phase.unknown_home_misses for phase in counts.phases.values()) == 0
    # What the kernel accesses when it is called, saving registers for example, is not the program's.
    assert counts.accesses([4]) < known["switches"] / 10


def test_a_program_without_marks_counts_as_phase_one(guest: Guest) -> None:
    counts = shell(guest, "true").counts
    assert counts is not None
    assert list(counts.phases) == [1]
    assert 1000 < counts.accesses() < 10_000_000
    # The counts of the step before are not in it.
    assert counts.misses() < 100_000


def test_an_interrupt_ends_everything(work: Path, compiled_parts: None, guest: Guest) -> None:
    """Runs after the checks above, beside their guest, which must survive."""
    temporary = work.parent / "temporary"
    temporary.mkdir()
    code = (
        "import sys; from homing.lab.guest import LabOptions, run\n"
        "run(['sh', '-c', 'echo to-stderr >&2; echo running; sleep 600'],"
        " LabOptions(nodes=2, memory_per_node_mib=256))"
    )
    environment = dict(os.environ, TMPDIR=str(temporary), PYTHONPATH=str(REPOSITORY))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as lab:
        assert lab.stdout is not None
        assert lab.stderr is not None
        assert lab.stdout.readline() == b"running\n"
        assert lab.stderr.readline() == b"to-stderr\n"
        helpers = [int(pid) for pid in children_of(lab.pid)]
        assert len(helpers) == 4  # QEMU and three virtiofsd
        began = time.monotonic()
        lab.send_signal(signal.SIGINT)
        assert lab.wait(timeout=30) in (-signal.SIGINT, 130, 1)
        assert time.monotonic() - began < 20
        assert b"LabInterrupted: signal 2" in lab.stderr.read()
        assert lab.stdout.read() == b""
    assert list(temporary.iterdir()) == []
    assert [pid for pid in helpers if Path(f"/proc/{pid}").exists()] == []
    assert shell(guest, "exit 3").exit_status == 3


def test_a_guest_that_hangs_at_boot_is_started_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.lab.guest._BOOT_TIMEOUTS", (0.5, 240.0))
    told: list[str] = []
    options = LabOptions(nodes=2, memory_per_node_mib=256, progress=told.append)
    with Guest(options, cwd=work) as again:
        assert shell(again, "exit 4").exit_status == 4
    assert sum("trying once more" in line for line in told) == 1


HELPERS = [machine.QEMU[:15], "virtiofsd", "virtiofsd", "virtiofsd"]


def names_of_children(pid: int) -> list[str]:
    return sorted(Path(f"/proc/{child}/comm").read_text().strip() for child in children_of(pid))


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_killed_lab_takes_its_guest_along(work: Path, compiled_parts: None) -> None:
    code = (
        "from homing.lab.guest import LabOptions, run\n"
        "tell = lambda text: print(text, flush=True)\n"
        "run(['sleep', '600'], LabOptions(nodes=2, memory_per_node_mib=256, progress=tell))"
    )
    with tempfile.TemporaryDirectory() as temporary:
        environment = dict(os.environ, TMPDIR=temporary, PYTHONPATH=str(REPOSITORY))
        with subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=work,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as lab:
            assert lab.stdout is not None
            assert b"booting" in lab.stdout.readline()
            deadline = time.monotonic() + 20
            while names_of_children(lab.pid) != HELPERS and time.monotonic() < deadline:
                time.sleep(0.05)
            helpers = [int(pid) for pid in children_of(lab.pid)]
            assert len(helpers) == 4
            lab.kill()
            lab.wait(timeout=10)
        deadline = time.monotonic() + 20
        while any(alive(pid) for pid in helpers) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [pid for pid in helpers if alive(pid)] == []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.full
def test_the_newer_kernel_with_several_cpus_a_node(work: Path, compiled_parts: None) -> None:
    options = LabOptions(
        nodes=3, cpus_per_node=2, memory_per_node_mib=1536, kernel="6.12", count=CountOptions(), timeout=500
    )
    with Guest(options, cwd=work) as guest:
        assert shell(guest, "uname -r; nproc").stdout.decode().split()[1] == "6"
        result = guest.step(Step(command=["./count_known", "3", "2"]))
        known = json.loads(result.stdout)
        counts = result.counts
        assert counts is not None
        for cpu_node in range(3):
            for home in range(3):
                wanted = known["sweeps"][cpu_node][home] * known["lines"]
                assert wanted <= counts.matrix([2])[cpu_node][home] <= 1.01 * wanted
