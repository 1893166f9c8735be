"""The lab: a Linux guest with several NUMA nodes, emulated, that runs commands on the host's files.

    result = run(["./a.out"], LabOptions(nodes=4))         # one command, its output live
    results = run_many([Step(command=["./a"]), ...])       # many commands in one boot, outputs collected
    with Guest(options) as guest: guest.step(Step(...))    # the same, one at a time

The host's / is there read-only under a writable layer in memory; the current directory and
LabOptions.writable are the host's own. Time inside means nothing (emulation, one host memory for all nodes);
results, placement and counts do.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from homing import temporary
from homing.progress import Line
from homing.streams import OutputError

from . import counts as counts_module
from . import initrd, machine, shares, vcpus
from .built import find_built
from .control import ControlFolder
from .counts import Counts
from .errors import LAB_FAILED, LabError, LabInterrupted, LabTimeout
from .interrupts import Interrupts, Passed, no_interrupts, signals_as_exceptions
from .kernel import find_kernel
from .options import CountOptions, LabOptions
from .sinks import Descriptor, Sink, forward
from .steps import (
    Step,
    StepResult,
    command_script,
    guest_costs,
    guest_environment,
    setup_script,
)

_FOLDER = "homing-lab-"
# Of its path: with a socket's name behind it, it must fit the 108 bytes of sockaddr_un.
_LONGEST_FOLDER = 80
_PLUGIN = "libhoming_counter_plugin.so"
_MARK = "homing-mark"
# Seconds for the first try and the second; 12 on a quiet machine. Emulated CPUs hang at boot now and then
# (once in some hundred boots here), before the kernel says a word.
_BOOT_TIMEOUTS = (120.0, 240.0)
_STOP_TIMEOUT = 30.0
_POLL = 0.02


@dataclass(frozen=True)
class LabResult:
    exit_status: int  # of the command; 128 + n if signal n ended it
    boot_seconds: float  # from QEMU's start until the command could begin
    wall_seconds: float  # everything, on the host's clock
    guest_seconds: float  # the command alone, on the guest's clock, which means little
    kernel: str
    counts: Counts | None = None
    lost: str = ""  # why not all of the command's stdout could be written to ours
    failed: str = ""  # why the guest ended before its command did; the status is the lab's then
    remarks: tuple[str, ...] = ()  # what the user should know of the guest, one line each


@dataclass
class _Running:
    """What must be ended and removed again, filled in as it comes to be."""

    folder: Path
    lock: int  # descriptor that holds the folder's lock
    control: ControlFolder
    steps: ControlFolder
    shared: list[shares.SharedFolder] = field(default_factory=list)
    qemu: subprocess.Popen[bytes] | None = None
    turns: vcpus.Turns | None = None


class Guest:
    """A running guest, as a context manager. Not for use by several threads at once."""

    def __init__(
        self,
        options: LabOptions | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        """interrupts: signals that end the boot, and that a step passes on to its command."""
        self.options = options or LabOptions()
        self.interrupts = interrupts or Interrupts()
        self.unread: Counts | None = None  # what a guest counted that ended before its command did
        self.options.check()
        try:
            self.cwd = Path(cwd if cwd is not None else os.getcwd()).resolve()
        except FileNotFoundError as error:
            raise LabError("the current folder was removed: go to one that the guest can share") from error
        self.environment = guest_environment(os.environ if env is None else env, self.options.topology.cpus)
        self.kernel = find_kernel(self.options.kernel)
        self.boot_seconds = 0.0
        self._started = 0.0
        self._line = self.options.line or Line("homing lab", io.StringIO())
        self._steps = 0
        self._reports = 0  # of the counter
        self._running: _Running | None = None

    # Start and end

    def __enter__(self) -> Guest:
        options = self.options
        qemu = machine.find_qemu()
        shares.check()
        machine.check_memory(options.topology)
        folders = shares.writable_folders([self.cwd, *options.writable])
        archive = initrd.build(self.kernel)
        failure = ""
        for timeout in _BOOT_TIMEOUTS:
            if failure:
                self._tell(f"{failure}: trying once more")
            failure = self._boot(qemu, archive, folders, timeout)
            if not failure:
                return self
        raise LabError(failure, LAB_FAILED)

    def _boot(self, qemu: str, archive: Path, folders: list[Path], timeout: float) -> str:
        """One try, undone where the guest does not come up: why it did not, or nothing."""
        failure = ""
        try:
            temporary.remove_abandoned(_FOLDER, _LONGEST_FOLDER)
            made = temporary.make_folder(_FOLDER, _LONGEST_FOLDER)
            control = ControlFolder.create(made.path / "control")
            self._running = running = _Running(made.path, made.lock, control, control.folder("steps"))
            self._start(running, qemu, archive, folders)
            if not self._is_ready_within(timeout):
                failure = f"the guest did not boot within {timeout:g} s{self._last_words()}"
            elif running.qemu is not None:
                running.turns = vcpus.Turns(running.qemu.pid, self.options.topology.cpus)
        except BaseException:
            self._stop()
            raise
        if failure:
            self._stop()
        return failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._running is not None and self._running.qemu is not None:
                self._running.control.write("end")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._running.qemu.wait(timeout=_STOP_TIMEOUT)
        finally:
            self._stop()

    def _start(self, running: _Running, qemu: str, archive: Path, folders: list[Path]) -> None:
        options = self.options
        tags = {f"share{number}": folder for number, folder in enumerate(folders)}
        listed = "".join(f"{tag} {folder}\n" for tag, folder in tags.items())
        running.control.write("shares", os.fsencode(listed))
        cache_kib = (options.count or CountOptions()).cache_kib
        running.control.write("costs.toml", guest_costs(cache_kib * options.cpus_per_node).encode())
        plugin = self._prepare_counter() if options.count is not None else None
        # For the guest, the host's files do not change while it runs: it may keep what it read.
        for folder, tag, cache, writable in [
            (Path("/"), "host", "always", False),
            (running.folder / "control", "control", "none", True),
            *((folder, tag, "auto", True) for tag, folder in tags.items()),
        ]:
            running.shared.append(shares.start(folder, tag, cache, running.folder, writable))
        command = machine.command_line(
            qemu,
            options.topology,
            self.kernel,
            archive,
            [shared.share for shared in running.shared],
            running.folder / "console",
            options.kernel_append,
            plugin,
        )
        self._tell(
            f"booting Linux {self.kernel.version} with {options.nodes} nodes of {options.cpus_per_node} CPU "
            f"and {options.memory_per_node_mib} MiB"
        )
        self._started = time.monotonic()
        with (running.folder / "qemu.log").open("wb") as log:
            running.qemu = subprocess.Popen(
                shares.as_helper(command),
                stdin=subprocess.PIPE,  # signals for the guest's command
                stdout=log,
                stderr=log,
                # A terminal's Ctrl-C must reach us alone, so that we can end things in order.
                start_new_session=True,
            )

    def _prepare_counter(self) -> str:
        """Puts the counter's parts in place; returns the value of QEMU's -plugin."""
        count = self.options.count
        assert count is not None
        plugin = find_built(_PLUGIN)
        control = self._alive.control
        control.write(_MARK, find_built(_MARK).read_bytes(), 0o755)
        control.write("count")
        arguments = {
            "out": os.fspath(self._folder / "counts").replace(",", ",,"),
            "nodes": self.options.nodes,
            "cpus_per_node": self.options.cpus_per_node,
            "memory": self.options.memory_per_node_mib,
            "cache": count.cache_kib,
            "ways": count.ways,
            "line": count.line,
            "coherent": "on" if count.coherent else "off",
        }
        words = [
            os.fspath(plugin).replace(",", ",,"),
            *(f"{name}={value}" for name, value in arguments.items()),
        ]
        return ",".join(words)

    def _is_ready_within(self, timeout: float) -> bool:
        line = self._line
        line.begin("booting", *self._shape)
        while not self._alive.control.line("ready"):
            line.tick()
            self._check_alive("while it booted")
            if (number := self.interrupts.take_ending()) is not None:
                raise LabInterrupted(
                    number,
                    "interrupted while the guest booted: the command did not begin, nothing was counted",
                )
            if time.monotonic() - self._started > timeout:
                return False
            time.sleep(_POLL)
        self.boot_seconds = time.monotonic() - self._started
        if self.options.count is not None:
            self_test = self._read_counts()
            if self_test.nodes_verified != self.options.nodes or self_test.self_test_mismatches:
                raise LabError(
                    f"the counter's self-test failed: it recognised {self_test.nodes_verified} of "
                    f"{self.options.nodes} nodes ({self_test.self_test_mismatches} mismatches); "
                    "the counter is made for QEMU 7.2",
                    LAB_FAILED,
                )
        line.end()
        self._tell(f"booted in {self.boot_seconds:.1f} s")
        return True

    def _stop(self) -> None:
        """Ends QEMU and virtiofsd and removes the temporary folder; safe at any moment, more than once."""
        self._line.end(whole=False)
        running, self._running = self._running, None
        if running is None:
            return
        with no_interrupts():
            if running.turns is not None:
                running.turns.stop()
            if running.qemu is not None and running.qemu.poll() is None:
                running.qemu.terminate()
                try:
                    running.qemu.wait(timeout=3)
                except subprocess.TimeoutExpired:
                    running.qemu.kill()
                    running.qemu.wait()
            if running.qemu is not None and running.qemu.stdin is not None:
                running.qemu.stdin.close()
            if self.options.count is not None and self._steps:
                # The counter writes one more report when QEMU ends.
                with contextlib.suppress(LabError):
                    self.unread = counts_module.read(running.folder / f"counts-{self._reports}.json")
            running.steps.close()
            running.control.close()
            for shared in running.shared:
                shared.stop()
            shutil.rmtree(running.folder, ignore_errors=True)
            os.close(running.lock)

    # Steps

    def step(self, step: Step, stdout: Sink | None = None, stderr: Sink | None = None) -> StepResult:
        """Runs one command and returns when it has ended.

        Its output goes to the sinks while it runs; without a sink it comes back in the result. Signals that
        come meanwhile (Guest's interrupts) are passed on to it; the second one that ends programs kills it,
        the third raises LabInterrupted.
        """
        step.check()
        running = self._running
        if running is None:
            raise LabError("this guest does not run (any more)", LAB_FAILED)
        number = self._steps
        self._steps += 1
        cwd = Path(step.cwd).resolve() if step.cwd is not None else self.cwd
        script = command_script(step, self.environment, cwd, self.options.count is not None)
        said = len(self._console())
        with running.steps.folder(str(number)) as folder:
            folder.write("setup", setup_script(self.options, step).encode())
            folder.write("command", os.fsencode(script))
            with folder.output("stdout") as out, folder.output("stderr") as err:
                folder.write("go")
                follow = [(out, stdout), (err, stderr)]
                signals = Passed(running.qemu, number)
                line = self._line
                line.begin(f"running {os.path.basename(step.command[0])}", *step.command, *self._shape)
                while not (status := folder.line("status")):
                    moved = [forward(source, sink, line) for source, sink in follow if sink is not None]
                    line.tick()
                    signals.pass_on(self.interrupts, self._tell)
                    if not any(moved):
                        self._check_alive("while it ran " + step.command[0])
                        time.sleep(_POLL)
                for source, sink in follow:
                    if sink is not None:
                        while forward(source, sink, line):
                            pass
                exit_status, seconds = _status(status, folder)
                line.end(whole=exit_status == 0)
                timed_out = step.timeout is not None and exit_status in (124, 137) and seconds >= step.timeout
                result = StepResult(
                    step,
                    signals.status(exit_status),
                    out.read() if stdout is None else b"",
                    err.read() if stderr is None else b"",
                    seconds,
                    timed_out,
                    self._read_counts() if self.options.count is not None else None,
                    tuple(out_of_memory(self._console()[said:])),
                )
        running.steps.remove(str(number), _STEP_FILES)
        return result

    # Small things

    @property
    def _folder(self) -> Path:
        assert self._running is not None
        return self._running.folder

    @property
    def began(self) -> bool:
        """Has a command been started?"""
        return self._steps > 0

    @property
    def _alive(self) -> _Running:
        assert self._running is not None
        return self._running

    def _console(self) -> str:
        """What the guest's kernel has said so far."""
        try:
            return (self._folder / "console").read_text(errors="replace")
        except OSError:
            return ""

    @property
    def _shape(self) -> tuple[object, ...]:
        """What of the guest decides how long things take."""
        options = self.options
        memory, counted = options.memory_per_node_mib, options.count is not None
        return self.kernel.version, options.nodes, options.cpus_per_node, memory, counted

    def _tell(self, text: str) -> None:
        if self.options.progress is not None:
            self.options.progress(text)

    def _read_counts(self) -> Counts:
        """The counter's next report: it writes one after its self-test and one after each command."""
        path = self._folder / f"counts-{self._reports}.json"
        self._reports += 1
        result = counts_module.read(path)
        path.unlink()
        return result

    def _check_alive(self, when: str) -> None:
        running = self._running
        assert running is not None and running.qemu is not None
        timeout = self.options.timeout
        if timeout is not None and time.monotonic() - self._started > timeout:
            raise LabTimeout(f"the guest did not end within {timeout:g} s")
        if running.qemu.poll() is None:
            return
        if error := running.control.read("error"):
            raise LabError(f"the guest failed {when}: {' '.join(error.split())}", LAB_FAILED)
        for shared in running.shared:
            if shared.process.poll() not in (None, 0):
                raise LabError(f"virtiofsd for {shared.folder} failed: {shared.error()}", LAB_FAILED)
        if running.qemu.returncode == -signal.SIGKILL:
            raise LabError(f"QEMU was killed {when}: perhaps this machine ran out of memory", LAB_FAILED)
        raise LabError(f"the guest ended {when}{self._last_words()}", LAB_FAILED)

    def _last_words(self) -> str:
        """What QEMU or the guest's console said last, for a message of one line."""
        for name in ("qemu.log", "console"):
            path = self._folder / name
            if path.is_file():
                lines = [
                    line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()
                ]
                panics = [line for line in lines if "Kernel panic" in line or "homing-lab:" in line]
                if lines:
                    return ": " + (panics or lines)[-1]
        return ""


_STEP_FILES = ("setup", "command", "stdout", "stderr", "go", "setup.log", "status")


def _status(line: str, folder: ControlFolder) -> tuple[int, float]:
    """Exit status and seconds, as the guest's init wrote them."""
    words = line.split()
    if words == ["setup"]:
        raise LabError(f"the guest's kernel refused a setting: {' '.join(folder.read('setup.log').split())}")
    try:
        return int(words[0]), float(words[2]) - float(words[1])
    except (ValueError, IndexError):
        raise LabError("the guest wrote no status of its command", LAB_FAILED) from None


def out_of_memory(console: str) -> list[str]:
    """What the guest's kernel ended for want of memory, a line for each; from what it said."""
    return [
        f"the guest ran out of memory and ended {name} (process {pid}): see --memory-per-node"
        for pid, name in re.findall(r"[Oo]ut of memory[^\n]*: Killed process (\d+) \(([^)\n]*)\)", console)
    ]


def run(
    command: Sequence[str],
    options: LabOptions | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdout: Sink | None = None,
    stderr: Sink | None = None,
) -> LabResult:
    """Boots a guest, runs one command in it with its output going to ours live, and ends the guest.

    cwd: shared for writing at the same path; ours unless given.
    env: the host's unless given, filtered as guest_environment says.
    stdout, stderr: our file descriptors 1 and 2 unless given. stdin is empty.
    Signals that come are passed on to the command (Guest.step). A guest that ends before its command does, or
    has to be ended, gives a result with `failed`, and what was counted up to then. Raises LabError and
    LabInterrupted where the command did not begin, and what a sink raises (ours: OutputError where the reader
    of stdout has gone). The guest is gone then.
    """
    began = time.monotonic()
    step = Step(command=list(command))
    step.check()
    sys.stdout.flush()
    sys.stderr.flush()
    own = Descriptor(1)
    result: StepResult | None = None
    failed, status = "", 0
    with Interrupts() as interrupts:
        guest = Guest(options, cwd, env, interrupts)
        try:
            with guest:
                result = guest.step(step, stdout or own, stderr or Descriptor(2))
        except (LabError, LabInterrupted) as error:
            if not guest.began:
                raise
            failed, status = error.message, error.status
    return LabResult(
        exit_status=status if result is None else result.exit_status,
        boot_seconds=guest.boot_seconds,
        wall_seconds=time.monotonic() - began,
        guest_seconds=0.0 if result is None else result.seconds,
        kernel=guest.kernel.version,
        counts=guest.unread if result is None else result.counts,
        lost="" if own.error is None else OutputError(own.error).message,
        failed=failed,
        remarks=() if result is None else result.remarks,
    )


def run_many(
    steps: Sequence[Step],
    options: LabOptions | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    on_result: Callable[[StepResult], None] | None = None,
) -> list[StepResult]:
    """Runs the steps one after the other in one boot. A step that fails does not stop the next one.

    on_result is called after each step. Raises as `run` does.
    """
    for step in steps:
        step.check()
    results: list[StepResult] = []
    with signals_as_exceptions(), Guest(options, cwd, env) as guest:
        for step in steps:
            result = guest.step(step)
            results.append(result)
            if on_result is not None:
                on_result(result)
    return results
