"""The lab with a real kernel: one boot with many checks, and one that is interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.installation import find_library
from homing.lab import machine, vcpus
from homing.lab.built import find_built
from homing.lab.errors import LabError
from homing.lab.guest import Guest
from homing.lab.options import CountOptions, LabOptions
from homing.lab.steps import Step, StepResult
from tests.places import public_folder

REPOSITORY = Path(__file__).parents[2]
UNTIL = REPOSITORY / "tests" / "simulated" / "until.c"
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
def told() -> list[str]:
    """What was said while the guest booted."""
    return []


@pytest.fixture(scope="module")
def guest(work: Path, compiled_parts: None, told: list[str]) -> Iterator[Guest]:
    """Not up as soon as it should be at first, and started again: that takes no boot of its own."""
    options = LabOptions(
        nodes=NODES, memory_per_node_mib=MEMORY_MIB, count=CountOptions(), timeout=500, progress=told.append
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("homing.lab.guest._BOOT_TIMEOUTS", (0.5, 240.0))
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


class Sender:
    """Sends signals, as if they came to the lab, when the command says that it runs; one a line of it."""

    def __init__(self, guest: Guest, *numbers: signal.Signals) -> None:
        self.guest, self.numbers, self.seen = guest, list(numbers), b""

    def write(self, data: bytes, /) -> None:
        self.seen += data
        for _ in range(data.count(b"\n")):
            if self.numbers:
                self.guest.interrupts._keep(self.numbers.pop(0), None)


@pytest.mark.parametrize(
    ("script", "numbers", "status", "output"),
    [
        # The group gets what a terminal sends, the first process what is sent to the lab alone.
        ("trap 'echo got; exit 5' INT; echo on; while :; do sleep 0.1; done", ["INT"], 5, "on\ngot\n"),
        pytest.param("echo on; sleep 600; echo not reached", ["INT"], 130, "on\n", marks=pytest.mark.full),
        pytest.param("echo on; exec sleep 600", ["TERM"], 143, "on\n", marks=pytest.mark.full),
        ("trap 'echo got' USR1; echo on; while :; do sleep 0.1; done", ["USR1", "HUP"], 129, "on\ngot\n"),
        ("trap 'echo no' INT; echo on; while :; do sleep 0.1; done", ["INT", "INT"], 130, "on\nno\n"),
    ],
)
def test_signals_reach_the_command(
    guest: Guest, script: str, numbers: list[str], status: int, output: str
) -> None:
    out = Sender(guest, *(signal.Signals["SIG" + name] for name in numbers))
    result = guest.step(Step(command=["sh", "-c", script]), out)
    assert result.exit_status == status
    assert out.seen.decode() == output
    # What ran up to then is counted; and the next command is not met by what came too late.
    assert result.counts is not None
    assert result.counts.misses() > 0
    assert shell(guest, "exit 3").exit_status == 3


def test_what_the_guests_kernel_ends_for_memory_is_said(guest: Guest) -> None:
    limit = "cd /sys/fs/cgroup && echo +memory >cgroup.subtree_control && mkdir small && cd small"
    limit += " && echo 16M >memory.max && echo $$ >cgroup.procs"
    result = shell(guest, limit + " && head -c 64M /dev/zero | tail -c 64M >/dev/null", timeout=100)
    assert result.exit_status == 137
    assert not result.timed_out
    assert [line for line in result.remarks if "ran out of memory and ended tail" in line]


#: As the guest's root, from its first file system on. Arguments: a folder outside of the work folder, and it.
ESCAPES = r"""
outside=$1 work=$2 lower=/proc/1/root/lower
IFS=

mount -o remount,rw $lower; mount -o remount,rw,bind $lower
mount -t virtiofs -o rw host /mnt
for way in $lower$outside /mnt$outside /proc/1/root/proc/self/root/lower$outside; do
    echo x >>$way/there; echo x >$way/new; mkdir $way/folder; rm $way/there; mv $way/there $way/moved
    chmod 4777 $way/there; chown 1 $way/there; truncate -s 0 $way/there; ln -s x $way/link; mkfifo $way/fifo
    ln $way/there $work/linked; touch -d 2001-01-01 $way/there; mknod $way/node c 1 3
done
echo x >/proc/1/root/lower/proc/sys/kernel/hostname
ls -A $lower/proc $lower/sys $lower/dev $lower/run
cd $work
ln -s $outside out; echo x >out/there; echo x >out/new
echo x >../outside/new
mknod block b 8 0; mknod character c 1 1; mknod null c 1 3
echo '#!/bin/sh' >tool; chmod 4755 tool; chmod 2755 tool; chmod 755 tool; chown 1:1 tool
cp /bin/true true; setcap cap_setuid+ep true
mount --bind $outside $work/folder; mkdir folder; mount --bind $lower$outside folder; echo x >folder/new
true
"""


def test_root_in_the_guest_writes_nothing_but_its_work_folder(guest: Guest, work: Path) -> None:
    outside = work.parent / "out of reach"
    outside.mkdir()
    there = outside / "there"
    there.write_text("as it was\n")
    before = there.stat()
    hostname = os.uname().nodename
    result = guest.step(Step(command=["sh", "-c", ESCAPES, "sh", str(outside), str(work)]))
    assert result.exit_status == 0
    assert [path.name for path in outside.iterdir()] == ["there"]
    assert there.read_text() == "as it was\n"
    after = there.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns, after.st_nlink) == (
        before.st_mode,
        before.st_uid,
        before.st_mtime_ns,
        1,
    )
    assert os.uname().nodename == hostname
    assert (work / "tool").read_text() == "#!/bin/sh\n"
    for path in work.rglob("*"):
        mode = path.lstat().st_mode
        assert not (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)), path
        assert not mode & (stat.S_ISUID | stat.S_ISGID), path
    assert "security.capability" not in os.listxattr(work / "true")


def test_a_run_that_is_interrupted_tells_what_it_has_seen(work: Path, compiled_parts: None) -> None:
    """In a terminal: Ctrl-C, which the program is deaf to, and once more. The record is kept outside of what
    the guest may write to."""
    subprocess.run(["gcc", "-O2", "-fopenmp", "-o", work / "until", UNTIL], check=True)
    temporary, kept = work.parent / "temporary", work.parent / "kept"
    temporary.mkdir()
    kept.mkdir()
    words = ["--on", "lab", "--nodes", "2", "--memory-per-node", "256MiB", "--count"]
    words += ["--record", str(kept / "r.homing"), "--", "./until", "ignores"]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(work)
        os.environ.update(TMPDIR=str(temporary), PYTHONPATH=str(REPOSITORY))
        os.execv(sys.executable, [sys.executable, "-m", "homing", "run", *words])
    said = ""
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while "sweep 20\r" not in said:
            said += screen.read(1024).decode(errors="replace")
        helpers = [int(pid) for pid in children_of(process)]
        assert len(helpers) == 5  # QEMU and four virtiofsd
        screen.write(b"\x03")
        time.sleep(0.5)
        screen.write(b"\x03")
        with contextlib.suppress(OSError):  # the last writer has gone
            while part := screen.read(1024):
                said += part.decode(errors="replace")
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    said = said.replace("\r\n", "\n")
    assert "interrupted again: the command is killed\n" in said
    [after] = re.findall(r"was interrupted after (\d+) iterations? \(SIGINT\)", said)
    assert int(after) >= 10
    [counted] = re.findall(r"([0-9.]+ % of [0-9,]+ cache misses remote)", said)
    assert list(temporary.iterdir()) == []
    assert [path.name for path in kept.iterdir()] == ["r.homing"]
    assert [pid for pid in helpers if alive(pid)] == []
    again = subprocess.run(
        [sys.executable, "-m", "homing", "report", kept / "r.homing"],
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert counted in again
    assert f"was interrupted after {after} iteration" in again


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0 or not public_folder(), reason="needs root, and programs for all users")
def test_a_program_that_becomes_another_user_leaves_its_record(compiled_parts: None) -> None:
    code = UNTIL.read_text().replace("!stop", "k < 12")
    with tempfile.TemporaryDirectory(dir=public_folder()) as place:
        os.chmod(place, 0o755)
        subprocess.run(
            ["gcc", "-O2", "-fopenmp", "-xc", "-", "-o", f"{place}/until"], input=code, text=True, check=True
        )
        shutil.copy(find_library(), f"{place}/libhoming.so")
        words = [
            "--on",
            "lab",
            "--nodes",
            "2",
            "--memory-per-node",
            "256MiB",
            "--",
            "setpriv",
            "--reuid",
            "65534",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "homing", "run", *words, "--clear-groups", f"{place}/until"],
            cwd=place,
            env=dict(os.environ, PYTHONPATH=str(REPOSITORY), HOMING_LIBRARY=f"{place}/libhoming.so"),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 3 and done.stdout.endswith("in order: 1\n")
    assert "homing 0." in done.stderr and "(process " in done.stderr, done.stderr


def test_an_interrupt_while_the_guest_boots_is_one_line(work: Path, compiled_parts: None) -> None:
    words = ["--on", "lab", "--nodes", "2", "--memory-per-node", "256MiB", "--count", "--", "true"]
    with subprocess.Popen(
        [sys.executable, "-m", "homing", "run", *words],
        cwd=work,
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stderr is not None
        assert "booting" in lab.stderr.readline()
        lab.send_signal(signal.SIGTERM)
        assert lab.wait(timeout=60) == 143
        said = lab.stderr.read()
    assert said == (
        "homing run: interrupted while the guest booted: the command did not begin, nothing was counted\n"
    )


def test_a_guest_that_hangs_at_boot_is_started_again(guest: Guest, told: list[str]) -> None:
    assert shell(guest, "exit 4").exit_status == 4
    assert sum("trying once more" in line for line in told) == 1


HELPERS = [machine.QEMU[:15], "virtiofsd", "virtiofsd", "virtiofsd"]


def names_of_children(pid: int) -> list[str]:
    return sorted(Path(f"/proc/{child}/comm").read_text().strip() for child in children_of(pid))


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_killed_lab_takes_its_guest_along(work: Path, compiled_parts: None) -> None:
    code = (
        "from homing.lab.guest import run\n"
        "from homing.lab.options import LabOptions\n"
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
