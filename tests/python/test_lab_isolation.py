"""What a guest cannot do to its host, as far as that shows without a guest: the file server's view of the
host (lab/share.c), and the folder through which host and guest talk. tests/lab tries it from inside."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from homing.lab import shares
from homing.lab.built import find_built
from homing.lab.control import ControlFolder
from homing.lab.errors import LabError, LabInterrupted
from homing.lab.guest import out_of_memory
from homing.lab.interrupts import Interrupts, Passed
from tests.patience import PATIENCE

#: Prints the names of what was possible. argv: the folder in the server's view.
ATTEMPTS = r"""
import os, socket, stat, sys, ctypes
folder = sys.argv[1]
def attempt(name, function):
    try:
        function()
    except OSError as error:
        return
    print(name)
def path(name):
    return os.path.join(folder, name)
def create(name, mode):
    os.close(os.open(path(name), os.O_CREAT | os.O_WRONLY, mode))
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
os.umask(0)
attempt("create", lambda: create("plain", 0o644))
attempt("write", lambda: open(path("there"), "a").write("x"))
attempt("fifo", lambda: os.mkfifo(path("fifo")))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind(path("socket")))
attempt("rename", lambda: os.rename(path("there"), path("there")))
attempt("chown", lambda: os.chown(path("there"), -1, os.getegid()))
attempt("truncate", lambda: os.truncate(path("there"), 1))
attempt("utime", lambda: os.utime(path("there")))
attempt("block device", lambda: os.mknod(path("block"), stat.S_IFBLK | 0o600, os.makedev(8, 0)))
attempt("character device", lambda: os.mknod(path("character"), stat.S_IFCHR | 0o600, os.makedev(1, 1)))
attempt("set-uid chmod", lambda: os.chmod(path("there"), 0o4755))
attempt("set-gid chmod", lambda: os.chmod(path("there"), 0o2755))
attempt("set-uid open", lambda: create("set-uid", 0o4755))
attempt("set-uid mknod", lambda: os.mknod(path("set-uid-node"), stat.S_IFREG | 0o4755))
attempt("set-uid fchmodat2", lambda: call(452, -100, path("there").encode(), 0o4755, 0))
attempt("xattr", lambda: os.setxattr(path("there"), "user.x", b"1"))
attempt("mount", lambda: call(165, b"none", folder.encode(), b"tmpfs", 0, 0))
attempt("writable again", lambda: call(165, 0, b"/", 0, 4096 | 32, 0))
attempt("unmount", lambda: call(166, folder.encode(), 2))
attempt("outside", lambda: open(sys.argv[2] + "/there", "a").write("x"))
attempt("outside by the process", lambda: open("/proc/self/root" + sys.argv[2] + "/there", "a").write("x"))
attempt("link to outside", lambda: os.link(sys.argv[2] + "/there", path("linked")))
attempt("device", lambda: open(sys.argv[3], "r").close())
"""
HARMLESS = {"create", "write", "fifo", "socket", "rename", "chown", "truncate", "utime"}

_ISOLATES = True
try:
    shares.check()
except LabError:
    _ISOLATES = False
needs_views = pytest.mark.skipif(not _ISOLATES, reason="no mount namespaces here, or virtiofsd is missing")


def attempts(tmp_path: Path, kind: str, user: int | None = None) -> set[str]:
    folder, outside, view = tmp_path / "work", tmp_path / "outside", tmp_path / "view"
    for one in (folder, outside, view):
        one.mkdir()
        one.chmod(0o777)
    for one in (folder, outside):
        (one / "there").write_text("as it was")
        (one / "there").chmod(0o666)
    shared = "/" if kind == "read-only" else str(folder)
    inside = str(view) + (str(folder) if kind == "read-only" else "")
    device = str(view / "no device")  # only root can make one
    if kind == "writable" and os.geteuid() == 0:
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device = f"{view}/device"
    elif kind == "read-only":
        device = f"{view}/dev/null"
    python = shutil.which("python3", path="/usr/bin") or pytest.skip("no /usr/bin/python3")
    command = [
        str(find_built("homing-share")), kind, shared, str(view), "--",
        python, "-c", ATTEMPTS, inside, str(outside), device,
    ]  # fmt: skip
    if user is not None:
        command = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert (outside / "there").read_text() == "as it was"
    assert [path.name for path in outside.iterdir()] == ["there"]
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        assert not mode & (stat.S_ISUID | stat.S_ISGID)
        assert path.name == "device" or not (stat.S_ISBLK(mode) or stat.S_ISCHR(mode))
    return set(done.stdout.splitlines())


@needs_views
def test_a_server_of_the_hosts_files_writes_nothing(tmp_path: Path) -> None:
    assert attempts(tmp_path, "read-only") == set()


@needs_views
def test_a_server_of_a_work_folder_writes_there_and_no_device_and_no_set_uid_file(tmp_path: Path) -> None:
    assert attempts(tmp_path, "writable") == HARMLESS


@needs_views
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize(("kind", "possible"), [("read-only", set()), ("writable", HARMLESS - {"chown"})])
def test_an_ordinary_users_server_is_held_as_well(kind: str, possible: set[str]) -> None:
    # Not in pytest's folder, which is its user's alone.
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/homing-test-XXXXXX"], text=True).strip())
    try:
        folder.chmod(0o755)
        probe = "setpriv --reuid 65534 --regid 65534 --clear-groups unshare -rm true"
        if subprocess.run(probe.split(), check=False, capture_output=True).returncode != 0:
            pytest.skip("ordinary users may not make user namespaces here")
        assert attempts(folder, kind, 65534) == possible
    finally:
        shutil.rmtree(folder)


@needs_views
def test_the_hosts_own_file_systems_are_not_shown(tmp_path: Path) -> None:
    view = tmp_path / "view"
    view.mkdir()
    script = 'cd "$0" && ls -A proc sys dev run && ls -d usr'
    done = subprocess.run(
        [find_built("homing-share"), "read-only", "/", view, "--", "/bin/sh", "-c", script, view],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["dev:", "proc:", "run:", "sys:", "usr"]
    assert list(view.iterdir()) == []


# The control folder


def test_what_the_guest_puts_in_the_way_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    inside = tmp_path / "control"
    with ControlFolder.create(inside) as control:
        (inside / "status").symlink_to(outside / "secret")
        (inside / "end").symlink_to(outside / "new")
        (inside / "0").symlink_to(outside)
        os.mkfifo(inside / "ready")
        with pytest.raises(LabError):
            control.line("status")
        with pytest.raises(LabError):
            control.write("end")
        with pytest.raises(LabError):
            control.folder("0")
        with pytest.raises(LabError):  # and it does not wait for a writer
            control.line("ready")
        steps = control.folder("steps")
        (inside / "steps").rename(inside / "elsewhere")
        (inside / "steps").symlink_to(outside)
        with steps, steps.folder("1") as step:
            step.write("go", b"x")
        control.remove("0", ("secret",))
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret\n"
    assert (inside / "elsewhere" / "1" / "go").read_bytes() == b"x"


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    with ControlFolder.create(tmp_path / "control") as control:
        assert control.line("status") == ""
        control.write("status", b"0 1.0 2.")
        assert control.line("status") == ""
        (tmp_path / "control" / "status").write_bytes(b"0 1.0 2.5\n")
        assert control.line("status") == "0 1.0 2.5\n"
        with control.output("stdout") as output:
            (tmp_path / "control" / "stdout").write_bytes(b"text")
            assert output.read() == b"text"


# Signals


class Qemu:
    """Stands for QEMU: what was written to its stdin."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.stdin = ours.makefile("wb")
        self._reader = theirs
        ours.close()

    def read(self) -> str:
        self._reader.setblocking(False)
        try:
            return self._reader.recv(4096).decode()
        except BlockingIOError:
            return ""


def test_signals_are_passed_on_the_second_kills_and_the_third_is_not_waited_for() -> None:
    qemu, told = Qemu(), []
    passed = Passed(qemu, 7)  # type: ignore[arg-type]
    with Interrupts() as interrupts:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        passed.pass_on(interrupts, told.append)
        assert qemu.read() == "7 USR1 first\n7 TERM first\n7 USR1 first\n"
        assert passed.status(0) == 0
        assert passed.status(137) == 137
        assert told == []
        os.kill(os.getpid(), signal.SIGINT)
        passed.pass_on(interrupts, told.append)
        assert qemu.read() == "7 KILL group\n"
        assert len(told) == 1
        assert passed.status(137) == 130
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(LabInterrupted) as raised:
            passed.pass_on(interrupts, told.append)
    assert raised.value.status == 130


def test_a_terminals_signal_goes_to_the_whole_group() -> None:
    qemu = Qemu()
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        Passed(qemu, 0).pass_on(interrupts, print)  # type: ignore[arg-type]
    assert qemu.read() == "0 INT group\n"


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.take() is None
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            assert interrupts.take_ending() == signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_the_guests_kernel_ends_is_said() -> None:
    console = (
        "[   12.3] oom-kill:constraint=CONSTRAINT_NONE,task=big,pid=183\n"
        "[   12.3] Out of memory: Killed process 183 (big) total-vm:900000kB, anon-rss:800000kB\n"
        "[   14.0] Memory cgroup out of memory: Killed process 190 (other) total-vm:1kB\n"
    )
    assert out_of_memory(console) == [
        "the guest ran out of memory and ended big (process 183): see --memory-per-node",
        "the guest ran out of memory and ended other (process 190): see --memory-per-node",
    ]
    assert out_of_memory("") == []
