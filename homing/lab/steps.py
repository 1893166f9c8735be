"""Commands for the guest: what a step is, its environment, and the two shell scripts that it becomes."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .counts import Counts
from .errors import LabError

GUEST_FOLDER = "/run/homing-lab"  # where the control folder is in the guest's root
GUEST_COSTS = f"{GUEST_FOLDER}/costs.toml"
GUEST_MARK = "/run/homing-mark"
_STATED_COSTS = Path(__file__).with_name("guest_costs.toml")

# Names that mean something on the host alone (its sessions, its sockets), or that should not go anywhere.
_LEFT_OUT = (
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_*",
    "XDG_*",
    "DBUS_*",
    "SSH_*",
    "GPG_*",
    "TMUX*",
    "STY",
    "LS_COLORS",
    "BASH_FUNC_*",
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*API_KEY*",
)
_BALANCING_FOLDER = "/sys/kernel/debug/sched/numa_balancing"
_KNOBS = ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb")


@dataclass(kw_only=True)
class KernelSettings:
    """The guest kernel's settings. None: LabOptions' value in a Step, the kernel's own in LabOptions."""

    numa_balancing: int | None = None  # 0 off, 1 on
    scan_delay_ms: int | None = None
    scan_period_min_ms: int | None = None
    scan_period_max_ms: int | None = None
    scan_size_mb: int | None = None
    transparent_hugepages: str | None = None  # always | madvise | never
    sysctl: Mapping[str, str | int] = field(default_factory=dict)  # "vm.max_map_count": 1000

    def files(self) -> dict[str, str]:
        """Kernel file -> value to write, for the settings that are stated."""
        values: dict[str, str] = {}
        if self.numa_balancing is not None:
            values["/proc/sys/kernel/numa_balancing"] = str(int(self.numa_balancing))
        for knob in _KNOBS:
            value = getattr(self, knob)
            if value is not None:
                values[f"{_BALANCING_FOLDER}/{knob}"] = str(int(value))
        if self.transparent_hugepages is not None:
            values["/sys/kernel/mm/transparent_hugepage/enabled"] = self.transparent_hugepages
        for name, setting in self.sysctl.items():
            if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
                raise LabError(f"sysctl '{name}': not a name such as vm.max_map_count")
            values["/proc/sys/" + name.replace(".", "/")] = str(setting)
        return values

    def check(self) -> None:
        if self.numa_balancing not in (None, 0, 1):
            raise LabError(f"numa_balancing: {self.numa_balancing} is neither 0 nor 1")
        for knob in _KNOBS:
            value = getattr(self, knob)
            if value is not None and value < (0 if knob == "scan_delay_ms" else 1):
                raise LabError(f"{knob}: {value} is too small")
        if self.transparent_hugepages not in (None, "always", "madvise", "never"):
            raise LabError(
                f"transparent_hugepages: '{self.transparent_hugepages}' is not always, madvise or never"
            )


@dataclass(kw_only=True)
class Step(KernelSettings):
    """One command of several in one boot."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)  # on top of the environment of the whole lab
    cwd: str | os.PathLike[str] | None = None  # the lab's unless given
    label: str = ""  # for the caller; in the results it comes back
    timeout: float | None = None  # seconds, then SIGKILL: exit status 137 and timed_out

    def check(self) -> None:
        super().check()
        if not self.command:
            raise LabError("no command to run in the lab")
        for word in (*self.command, *self.env, *self.env.values()):
            if "\0" in word:
                raise LabError("a command or an environment variable contains a zero byte")
        if self.timeout is not None and self.timeout <= 0:
            raise LabError(f"timeout: {self.timeout} is not a positive number of seconds")


@dataclass(frozen=True)
class StepResult:
    step: Step
    exit_status: int  # 128 + n if signal n ended the command
    stdout: bytes
    stderr: bytes
    seconds: float  # of the guest's clock
    timed_out: bool
    counts: Counts | None  # None unless LabOptions.count
    remarks: tuple[str, ...] = ()  # of the guest: what its kernel ended for want of memory

    @property
    def label(self) -> str:
        return self.step.label


def guest_environment(host: Mapping[str, str], cpus: int) -> dict[str, str]:
    """The guest's environment: the host's without what means nothing there, plus the lab's defaults."""
    environment = {
        name: value
        for name, value in host.items()
        if name and "=" not in name and not any(fnmatch.fnmatchcase(name, pattern) for pattern in _LEFT_OUT)
    }
    environment.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    environment.setdefault("HOME", "/root")
    # Spinning threads take the host's few cores from those that work.
    environment.setdefault("OMP_WAIT_POLICY", "passive")
    environment.setdefault("OMP_NUM_THREADS", str(cpus))
    environment.setdefault("HOMING_COSTS", GUEST_COSTS)
    environment["HOMING_LAB"] = "1"
    return environment


def guest_costs(node_cache_kib: int) -> str:
    """The guest's stated costs (TOML), with the cache of a node that its counter models."""
    return re.sub(
        r"^cache_kib = \d+", f"cache_kib = {node_cache_kib}", _STATED_COSTS.read_text(), flags=re.MULTILINE
    )


def setup_script(defaults: KernelSettings, step: KernelSettings) -> str:
    """Shell lines for the guest's init: the lab's settings, overruled by the step's; else as at boot."""
    files = {**defaults.files(), **step.files()}
    return "".join(f"knob {shlex.quote(file)} {shlex.quote(value)}\n" for file, value in files.items())


def command_script(step: Step, environment: Mapping[str, str], cwd: Path, counting: bool) -> str:
    """A shell script that becomes the step's command, with exactly this environment."""
    variables = {**environment, **step.env, "PWD": os.fspath(cwd)}
    for name in variables:
        if not name or "=" in name:
            raise LabError(f"'{name}': not a name of an environment variable")
    words = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    if step.timeout is not None:
        words += ["timeout", "-s", "KILL", f"{step.timeout:g}"]
    if counting:
        words += [GUEST_MARK, "run", "1", "--"]
    words += step.command
    quoted = " ".join(map(shlex.quote, words))
    return f"cd {shlex.quote(os.fspath(cwd))} || exit 125\nexec {quoted}\n"
