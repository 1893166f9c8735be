"""Shared folders: one virtiofsd for each host folder that the guest mounts.

The guest's root may be the host's and asks virtiofsd for whatever it likes: what each one can write is
limited by lab/share.c, on the host's side, never by how the guest mounts it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .built import find_built
from .errors import LabError
from .machine import Share

_SHARE = "homing-share"
_VIRTIOFSD = (Path("/usr/lib/qemu/virtiofsd"), Path("/usr/libexec/virtiofsd"), Path("/usr/lib/virtiofsd"))
# Folders of the guest's own, or everything at once: they cannot be shared for writing at their place.
_NEVER_WRITABLE = (Path("/"), Path("/proc"), Path("/sys"), Path("/dev"), Path("/run"))


def find_virtiofsd(candidates: Sequence[Path] = _VIRTIOFSD) -> Path:
    for path in candidates:
        if os.access(path, os.X_OK):
            return path
    raise LabError("virtiofsd is not installed: apt-get install qemu-system-common (Debian 12) or virtiofsd")


def as_helper(command: list[str]) -> list[str]:
    """The command, told to end when this process is killed: nothing is left behind even then."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command


def _for_ordinary_users() -> list[str]:
    """What virtiofsd needs in front of it in a user namespace (lab/unprivileged.c)."""
    if os.geteuid() == 0:
        return []
    return ["/usr/bin/env", f"LD_PRELOAD={find_built('libhoming_unprivileged.so')}"]


def check() -> None:
    """LabError where folders cannot be shared here without giving the guest more than its own folders."""
    find_virtiofsd()
    with tempfile.TemporaryDirectory(prefix="homing-lab-view-") as view:
        command = [os.fspath(find_built(_SHARE)), "read-only", "/", view, "--", "/bin/true"]
        probe = subprocess.run(command, capture_output=True, text=True, check=False)
    if probe.returncode == 0:
        return
    why = probe.stderr.strip() or f"{_SHARE} ended with status {probe.returncode}"
    what = "give the guest a read-only view of this machine's files"
    if os.geteuid() == 0:
        raise LabError(f"cannot {what}: {why}; in a container, allow it to mount (CAP_SYS_ADMIN)")
    raise LabError(
        f"cannot {what}: {why}; run the lab as root, or: "
        "sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    )


def writable_folders(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The folders to share for writing: absolute, existing, none inside another one."""
    folders = sorted({Path(path).resolve() for path in paths})
    for folder in folders:
        if not folder.is_dir():
            raise LabError(f"{folder}: not a folder; only folders can be shared for writing")
        if folder in _NEVER_WRITABLE or any(
            folder.is_relative_to(own) for own in (Path("/proc"), Path("/sys"))
        ):
            raise LabError(f"{folder}: cannot be shared for writing; change to a folder of your own")
        if "\n" in os.fspath(folder):
            raise LabError(f"{str(folder)!r}: a line break in the name of a shared folder")
    outermost: list[Path] = []
    for folder in folders:
        if not any(folder.is_relative_to(other) for other in outermost):
            outermost.append(folder)
    return outermost


@dataclass
class SharedFolder:
    """A running virtiofsd. It ends by itself when QEMU closes the connection."""

    share: Share
    folder: Path
    process: subprocess.Popen[bytes]
    log: Path

    def error(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.is_file() else []
        return lines[-1] if lines else f"exit status {self.process.poll()}"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def start(folder: Path, tag: str, cache: str, runtime: Path, writable: bool) -> SharedFolder:
    """Starts a virtiofsd for `folder`, which can write there, or nowhere (lab/share.c).

    cache: "none", "auto" or "always" (the guest may keep what it saw: for what does not change meanwhile).
    runtime: the lab's temporary folder, for the socket, the log and the server's view of the folder.
    """
    path = runtime / f"{tag}.socket"
    log = runtime / f"{tag}.log"
    view = runtime / f"{tag}.view"
    view.mkdir(mode=0o700)
    # Handing over a listening socket saves waiting for the daemon: QEMU may connect at once.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.fspath(path))
        listener.listen(1)
        source = os.fspath(view).replace("\\", "\\\\").replace(",", "\\,")
        command = [
            os.fspath(find_built(_SHARE)),
            "writable" if writable else "read-only",
            os.fspath(folder),
            os.fspath(view),
            "--",
            *_for_ordinary_users(),
            os.fspath(find_virtiofsd()),
            f"--fd={listener.fileno()}",
            "--rlimit-nofile=0",
            "-o",
            f"source={source}",
            "-o",
            f"cache={cache}",
            "-o",
            "sandbox=chroot",
            "-o",
            "log_level=err",
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,  # which ends when this process is killed
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
    return SharedFolder(Share(tag, path), folder, process, log)
