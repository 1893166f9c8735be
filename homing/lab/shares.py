"""Shared folders: one virtiofsd for each host folder that the guest mounts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .built import find_built
from .errors import LabError
from .machine import Share

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


def in_user_namespace(command: list[str]) -> list[str]:
    """For an ordinary user: virtiofsd needs to be root of some user namespace to change its root folder."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise LabError(
            "unshare is not installed, which shared folders need without root: apt-get install util-linux"
        )
    probe = subprocess.run([unshare, "-r", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise LabError(
            "this user may not make user namespaces, which sharing folders needs: run the lab as root, or: "
            "sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
        )
    preload = find_built("libhoming_unprivileged.so")
    return [unshare, "-r", "--", "/usr/bin/env", f"LD_PRELOAD={preload}", *command]


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


def start(folder: Path, tag: str, cache: str, runtime: Path) -> SharedFolder:
    """Starts a virtiofsd for `folder`.

    cache: "none", "auto" or "always" (the guest may keep what it saw: for what does not change meanwhile).
    runtime: the lab's temporary folder, for the socket and the log. Read-only is what the guest mounts so.
    """
    path = runtime / f"{tag}.socket"
    log = runtime / f"{tag}.log"
    # Handing over a listening socket saves waiting for the daemon: QEMU may connect at once.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.fspath(path))
        listener.listen(1)
        source = os.fspath(folder).replace("\\", "\\\\").replace(",", "\\,")
        command = [
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
                as_helper(command if os.geteuid() == 0 else in_user_namespace(command)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
    return SharedFolder(Share(tag, path), folder, process, log)
