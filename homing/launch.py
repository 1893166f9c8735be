"""Run a command as a child, as if the launcher were not there.

The child has the launcher's stdin, stdout, stderr and process group. What the terminal sends (Ctrl-C, Ctrl-Z)
has reached the child already; what was sent to the launcher alone is passed on. When the child stops, the
launcher stops too, so that a shell's job control works; when the child was killed by a signal, `end_like`
ends the launcher by the same one.
"""

from __future__ import annotations

import errno
import os
import stat
from time import sleep

from homing.errors import UserError, os_reason
from homing.light import contextmanager, signal, suppress
from homing.values import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType
    from typing import NoReturn

NOT_FOUND, NOT_EXECUTABLE = 127, 126

#: Seconds between looks for signals that came by another thread.
_LOOK = 0.2

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

#: The kernel sent it, for a terminal: to the whole foreground group, the child included (siginfo_t.si_code).
_SI_KERNEL = 0x80
#: A process sent it, by kill.
_SI_USER = 0

_PASSED_ON = (
    *_ENDING,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGXCPU,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGIO,
    signal.SIGPWR,
)


#: What is held back while a command runs.
HELD = (*_PASSED_ON, signal.SIGCHLD)


def find_command(name: str, search: str | None = None) -> str:
    """The file that execvp would start. UserError with a shell's status 127 (not found) or 126 (not
    executable)."""
    if "/" in name:
        candidates = [name]
    else:
        places = (os.environ.get("PATH", os.defpath) if search is None else search).split(":")
        candidates = [os.path.join(place or ".", name) for place in places] if name else []
    refused = None
    for path in candidates:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            # A folder of PATH that cannot be looked into (of another user's, after su) says nothing.
            if "/" in name and error.errno not in (errno.ENOENT, errno.ENOTDIR):
                refused = f"{path}: {os_reason(error)}"
            continue
        if stat.S_ISDIR(mode):
            refused = refused or (f"{path}: is a directory" if "/" in name else None)
        elif os.access(path, os.X_OK):
            return path
        else:
            refused = refused or f"{path}: not executable (Permission denied)"
    if refused:
        raise UserError(refused, NOT_EXECUTABLE)
    raise UserError(f"{name or repr(name)}: command not found", NOT_FOUND)


class Interrupted(KeyboardInterrupt):
    """A signal came that ends this process."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.signal_number = number


def run_child(
    path: str, arguments: Sequence[str], environment: Mapping[str, str], cpus: set[int] | None = None
) -> tuple[int, int]:
    """Start `path` with `arguments` (argv, the name included) and wait. Returns (process id, wait status).
    cpus: those that it may use, where these are fewer than ours. Interrupted, and nothing is started, where
    a signal came before that was put off."""
    waited = {*HELD}
    # An ignored SIGCHLD (inherited) would let the kernel reap the child before we can ask for its status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        if _waiting is not None and _waiting.came:
            raise Interrupted(_waiting.came[0])
        with _PassOn() as pass_on:
            with _on_cpus(cpus):
                child = _spawn(path, arguments, environment, mask)
            pass_on.to(child)
            return child, _wait(child, waited)
    finally:
        # A second Ctrl-C that came as the child ended was meant for the child.
        while signal.sigtimedwait(waited, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _PassOn:
    """While it is entered: what a thread gets that does not hold signals back (a library's) is the child's,
    too. Such a signal would end or stop this process otherwise. One that was ignored stays so (nohup)."""

    def __init__(self) -> None:
        self._child: int | None = None
        self._early: list[int] = []
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> _PassOn:
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            _send(self._child, number)

    def to(self, child: int) -> None:
        """The child runs: it gets what came while it was started, and what comes from now on."""
        self._child = child
        for number in self._early:
            _send(child, number)


@contextmanager
def _on_cpus(cpus: set[int] | None) -> Iterator[None]:
    """What is started here may use these CPUs."""
    before = os.sched_getaffinity(0)
    if cpus is not None:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        if cpus is not None:
            os.sched_setaffinity(0, before)


@dataclass
class PutOff:
    """The signals that came while they were put off."""

    came: list[int] = field(default_factory=list)


#: What is put off now.
_waiting: PutOff | None = None


@contextmanager
def put_off() -> Iterator[PutOff]:
    """Around a run and what follows it: what was seen is worth more than to end at once. The first signal
    that would end this process waits (run_child starts nothing after it, and passes on those that come
    later), each one after it ends what is being done: Interrupted."""
    global _waiting
    waiting = PutOff()

    def put(number: int, frame: FrameType | None) -> None:
        waiting.came.append(number)
        if len(waiting.came) > 1:
            raise Interrupted(number)

    before = {
        number: signal.signal(number, put)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    outer, _waiting = _waiting, waiting
    try:
        yield waiting
    finally:
        _waiting = outer
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Threads that are started here hold back the signals that are a command's."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _spawn(
    path: str, arguments: Sequence[str], environment: Mapping[str, str], mask: set[signal.Signals | int]
) -> int:
    # Python ignores SIGPIPE and SIGXFSZ for itself: the program must find the defaults.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        try:
            return os.posix_spawn(path, list(arguments), environment, setsigmask=mask, setsigdef=defaults)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a #! line: execvp gives it to the shell.
            script = ["/bin/sh", path, *arguments[1:]]
            return os.posix_spawn("/bin/sh", script, environment, setsigmask=mask, setsigdef=defaults)
    except OSError as error:
        status = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
        hint = " (its interpreter is missing)" if error.errno == errno.ENOENT else ""
        raise UserError(f"{path}: {os_reason(error)}{hint}", status) from error


def _has_threads() -> bool:
    """Has a library started threads?"""
    return len(os.listdir("/proc/self/task")) > 1


def _wait(child: int, waited: set[signal.Signals]) -> int:
    while True:
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            info = signal.sigtimedwait(waited, _LOOK) if _has_threads() else signal.sigwaitinfo(waited)
            if info is None:
                continue  # a handler may have run: a thread that does not hold the signal back has got it
            if (
                info.si_signo != signal.SIGCHLD
                and info.si_code != _SI_KERNEL
                and not _is_of_command(info, child)
            ):
                _send(child, info.si_signo)
        elif os.WIFSTOPPED(status):
            if not _go_on_traced(child, os.WSTOPSIG(status)):
                _stop_like(os.WSTOPSIG(status), child)
        else:
            return status


def _is_of_command(info: signal.struct_siginfo, child: int) -> bool:
    """Was it sent by the command itself, or by what that has started? Then it was for their process group, to
    which we belong and they, too: what we got is one more."""
    if info.si_code != _SI_USER:
        return False
    sender = info.si_pid
    while sender > 1 and sender != child:
        sender = _told_of(sender)[1]
    return sender == child


def _told_of(process: int) -> tuple[str, int]:
    """What the kernel tells of a process: how it is ("T": stopped), and its parent; 0: unknown."""
    try:
        with open(f"/proc/{process}/stat", errors="replace") as file:
            text = file.read()
    except OSError:
        return "", 0
    state, parent = text.rpartition(")")[2].split()[
        :2
    ]  # before it is a name, perhaps with blanks and brackets
    return state, int(parent)


def _is_stopped(process: int) -> bool:
    return _told_of(process)[0] in ("T", "t")  # a debugger may have come meanwhile


def _go_on_traced(child: int, number: int) -> bool:
    """The child has asked to be traced by its parent (copy protection does so, and never looks again). It
    goes on, with the signal that stopped it, as if somebody else were its parent. False: it has not."""
    stops = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTRAP)
    try:
        import ctypes

        return bool(
            ctypes.CDLL(None).ptrace(7, child, None, 0 if number in stops else number) == 0
        )  # PTRACE_CONT
    except (ImportError, OSError, AttributeError):
        return False


def _send(child: int, number: int) -> None:
    # It may just have ended, or have become another user's (sudo): then there is nothing we may do.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(child, number)


def _start_watcher(child: int) -> int:
    """A process that continues us, who are about to stop, when the child goes on: who continues it need not
    know of us."""
    launcher = os.getpid()
    watcher = os.fork()
    if watcher:
        return watcher
    try:
        os.setsid()  # what stops the job does not stop it
        os.closerange(0, 3)
        while os.getppid() == launcher:
            sleep(0.05)
            if not _is_stopped(child):
                os.kill(launcher, signal.SIGCONT)  # again and again: we may not have stopped yet
    finally:
        os._exit(0)


def _stop_like(number: int, child: int) -> None:
    """Stop this process by the signal that stopped the child; returns when the shell continues the job, or
    when the child goes on."""
    watcher = _start_watcher(child)
    before = signal.SIG_DFL
    if number != signal.SIGSTOP:
        before = signal.signal(number, signal.SIG_DFL)  # type: ignore[assignment]
    # The terminal may have sent it to us as well, and it waits: sent once more while it is blocked it still
    # comes once. The other way round we would stop again after the shell has continued the job.
    os.kill(os.getpid(), number)
    if number != signal.SIGSTOP:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        if number in _PASSED_ON:
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.signal(number, before)
    os.kill(watcher, signal.SIGKILL)
    os.waitpid(watcher, 0)
    while signal.sigtimedwait({signal.SIGCONT}, 0) is not None:
        pass
    if _is_stopped(child):
        _send(child, signal.SIGCONT)


def exit_status(status: int) -> int:
    """A wait status as a shell's $?: the exit status, or 128 + the signal."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def signal_name(status: int) -> str:
    """The signal that ended a command of this exit status ("SIGINT" for 130), as a shell tells it of its own
    commands, too; empty where none did."""
    if status <= 128:
        return ""
    from signal import Signals

    try:
        return Signals(status - 128).name
    except ValueError:
        return ""


def end_like(status: int) -> NoReturn:
    """End this process as the child ended: same exit status, or same signal (without a core file of its
    own)."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _no_core()
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(exit_status(status))


def _no_core() -> None:
    """Both ways in which Linux writes cores: files obey the limit, a pipe in core_pattern only `dumpable`."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        pass
