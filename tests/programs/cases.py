"""What is run: programs, their arguments, how they end, and whether homing must have worked in them."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

SEGV, ABRT, BUS, FPE, ILL = (
    -number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
)

C = ("gcc", "clang")
CXX = ("g++", "clang++")
FORTRAN = ("gfortran", "flang")
ALL_MECHANISMS = ("windows", "first-iteration", "every-region", "observe", "auto")


@dataclass(frozen=True)
class Case:
    """One run. status: exit status, or minus the signal."""

    program: str
    arguments: tuple[str, ...] = ()
    status: int = 0
    variants: tuple[str, ...] = C
    #: The record must show observed iterations. False: homing need not work (the process has no right, ...).
    works: bool = True
    # These are judged where every region wants a window (every-region), which the short selection takes then.
    #: Observation goes on to the end: what the program did has not ended it for good.
    lasts: bool = False
    #: What a message of the record must tell.
    says: str = ""
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    stdin: str = ""
    #: What the short selection runs it with, where others may miss what it is about: whatever is in turn.
    mechanism: str = ""
    #: Why it is not judged with a mechanism: {mechanism: reason}. Stated limits of homing, not test trouble.
    limits: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return "-".join((self.program, *self.arguments))


def _modes(program: str, modes: str, **common: object) -> list[Case]:
    return [Case(program, tuple(mode.split(":")), **common) for mode in modes.split()]  # type: ignore[arg-type]


CASES: list[Case] = [
    Case("heap"),
    # Fewer steps where each costs thousands of windows.
    *_modes("small_blocks", "rows churn:20 trim streams calls locks threads fork buffers mapped:20"),
    Case("deepbind"),
    Case(
        "regions",
        variants=(
            *C,
            "gcc-nopie",
            "clang-nopie",
            "gcc-stripped",
            "clang-stripped",
            "gcc-O0",
            "gcc-O3-lto",
            "clang-O3",
            "gcc-now",
            "gcc-gprof",
            "gcc-ubsan",
            "gcc-on-libomp",
            *CXX,
        ),
    ),
    Case("tasks", variants=(*C, *CXX, "gcc-on-libomp")),
    Case("nested", variants=(*C, *CXX, "gcc-on-libomp")),
    Case("constructs"),
    Case("captured", variants=(*C, *CXX)),
    Case("arguments", variants=(*C, "gcc-O0", "clang-O3", "gcc-on-libomp")),
    Case("many_regions", variants=C),
    Case("old_entry", variants=("gcc",)),
    Case("arrays", variants=FORTRAN),
    Case("fortran_io", variants=(*FORTRAN, "gcc-trap")),
    Case("fortran_tasks", variants=FORTRAN, status=3),
    Case("cxx_core", variants=CXX),
    Case("cxx_new", variants=CXX),
    Case("cxx_replaced", variants=CXX),
    # signals
    *_modes("segv_handler", "siginfo plain signal sigset sysv resethand nodefer late region again bypass"),
    Case("segv_query"),
    *_modes("signal_state", "alone threads onstack", works=False),
    Case("signal_state", ("regions",)),
    Case("own_stacks"),
    *_modes(
        "own_faults",
        "plain nodefer jump array masked",
        mechanism="every-region",
        says="faults (SIGSEGV) of its own",
    ),
    Case("own_faults", ("serial",), lasts=True),
    *_modes("segv_altstack", "static watched threads none"),
    Case("small_altstack", says="no room for a fault"),
    *_modes("segv_jump", "mask nomask stack"),
    Case("segv_throw", variants=("g++",)),  # clang's exceptions come from calls only
    *_modes("awaited", "sigwait pending unblock thread"),
    *_modes("blocked", "region serial sigprocmask raw attribute setmask"),
    Case("blocked", ("always",), works=False),
    Case("blocked", ("past",), works=False, says="blocks SIGSEGV"),
    # A thread's mask cannot be changed from outside: while it lives there are no windows.
    Case("blocked", ("early",), works=False, says="blocks SIGSEGV"),
    Case(
        "blocked",
        ("past-ends",),
        lasts=True,
        says="blocks SIGSEGV",
        limits={"first-iteration": "the one iteration is over before the thread ends"},
    ),
    *_modes("old_signals", "hold mask block set handler own ask"),
    *_modes("timer", "itimer timer suspend profile calls"),
    # libomp's own fork handler waits for the lock that a thread holds while it starts a team: such a program
    # hangs without homing, too.
    Case("timer", ("fork",), variants=("gcc",)),
    *_modes(
        "masked_wait", "ppoll pselect epoll suspend ppoll:number pselect:number epoll:number suspend:number"
    ),
    Case("collector"),
    Case("timer", ("thread",), works=False),  # its threads block every signal: windows are off
    *_modes("crash", "null serial overflow raise kill ignored readonly freed", status=SEGV),
    *_modes("crash", "nested nested-stack left masked", status=SEGV),
    Case("crash", ("own",), status=SEGV),
    Case("crash", ("bus",), status=BUS),
    Case("crash", ("fpe",), status=FPE),
    Case("crash", ("ill",), status=ILL),
    *_modes("crash", "abort abort-region", status=ABRT),
    # ends
    Case("leave", ("return",), status=3),
    Case("leave", ("exit",), status=7),
    Case("leave", ("_exit",), status=8),
    Case("leave", ("quick",), status=9),
    Case("leave", ("region",), status=10),
    Case("leave", ("thread",), status=3),
    Case("leave", ("pthread",), status=5),
    Case("leave", ("exec",), status=0),
    # processes
    *_modes("fork", "serial region write exec grandchild exit"),
    # LLVM's runtime waits at the child's exit for threads that are not there
    *_modes("fork", "_Fork clone _Fork-defaults vfork-defaults", variants=("gcc",)),
    Case("fork", ("openmp",), variants=("clang",)),
    *_modes("spawn", "vfork spawn system popen"),
    Case("spawn", ("clone",), mechanism="every-region"),
    Case("daemon", works=False),
    Case("inherits", ("exec",), status=11),
    *_modes("inherits", "vfork fork spawn system popen failed"),
    *_modes("environment", "clear early preload twice empty"),
    # control flow and stacks
    Case("jump"),
    *_modes("little_stack", "thread coroutine", variants=("gcc",)),
    *_modes("coroutine", "context thread masked setcontext switch beside"),
    # memory
    *_modes("remap", "realloc free calloc align mmap mremap munmap churn"),
    *_modes("moved", "away emptied hole file dontneed hugepage free nohugepage fork"),
    *_modes("protect", "dirty readonly none region"),
    *_modes("replaced", "shared private none raw number pkey segment moved"),
    Case("maps", works=False),  # it leaves nothing of what windows must leave to it
    *_modes("hugepages", "huge mlock mlockall"),
    *_modes("hugepages", "shared shm file populate memfd"),
    *_modes("reserve", "map malloc static sparse areas touched hole"),
    Case("allocate"),
    Case("arena"),
    *_modes("policy", "task range"),
    # the kernel
    *_modes(
        "io",
        "read pread readv write stdio buffer flush sendfile socket vm random names wait ask raw directory",
    ),
    Case("io", ("aio",), works=False),  # threads of the C library read and write: windows are off
    *_modes("io", "read:serial stdio:serial socket:serial raw:serial names:serial"),
    Case("io", ("read",), variants=("gcc-fortify",)),
    Case("io", ("stdio",), variants=("gcc-fortify",)),
    Case("io", ("socket",), variants=("gcc-fortify",)),
    Case("io", ("names",), variants=("gcc-fortify",)),
    *_modes("sync", "mutex condition semaphore barrier rwlock omp nest spin"),
    *(
        Case(f"calls_{group}", mechanism="every-region")
        for group in ("data", "names", "files", "waiting", "system", "processes")
    ),
    *_modes(
        "in_flight",
        "early handled jumped cancelled vfork child accept error datagram",
        mechanism="every-region",
    ),
    *_modes(
        "in_flight",
        "fresh forked",
        mechanism="every-region",
        limits={"first-iteration": "blocks come and go whenever a region of the one iteration begins"},
    ),
    *_modes("waiters", "all stop", mechanism="every-region"),
    *_modes("descriptors", "loop range from region number dup"),
    Case("dlerror"),
    Case("traced", ("first",), works=False),
    Case("traced", ("late",), says="asks to be traced"),
    Case("own_names", variants=("gcc",), mechanism="windows"),
    Case("late_library", says="libcuda.so"),
    Case("namespace", says="dlmopen"),
    Case("kernel_io", ("aio",), works=False, says="asynchronous input"),
    Case("kernel_io", ("uring",), works=False, says="io_uring"),
    Case("kernel_io", ("aio", "late"), says="asynchronous input"),
    Case("kernel_io", ("uring", "late"), says="io_uring"),
    *_modes("limits", "as nofile fsize nproc stack memlock sigpending cpu"),
    Case("limits", ("data",), works=False, says="RLIMIT_DATA"),
    Case("kept", mechanism="every-region"),
    Case("mappings", mechanism="every-region"),
    Case("lost_mappings", mechanism="every-region"),
    Case("advised", mechanism="every-region"),
    *_modes("contexts", "set swap", mechanism="every-region"),
    Case("library_blocks"),
    *_modes("sandbox", "eperm enosys mprotect dumpable chroot chdir user nonewprivs"),
    # LLVM's runtime opens files at its end
    Case("sandbox", ("one",), says="seccomp"),
    *_modes("sandbox", "kill kill-prctl", variants=("gcc",), says="seccomp"),
    *_modes("sandbox", "eperm:early enosys:early mprotect:early dumpable:early user:early", works=False),
    # threads
    *_modes("threads", "touch regions brief cancel detached keys waiting reused"),
    Case("cancel", ("first",), variants=("gcc",)),
    Case("cancel", ("first", "alone"), works=False),
    Case("cancel", ("loop",), variants=("gcc",)),  # LLVM's runtime ends a process that cancels so many
    Case("cancel", ("asynchronous",), lasts=True),
    *_modes("teams_of_threads", "varying many pause dynamic affinity"),
    Case("teams_of_threads", ("one",), works=False),
    *_modes("giant", "barriers singles pthread", works=False),
    *_modes("adaptive", "regions owners random drift"),
    *_modes("errno", "errno round trap flags denormal"),
    Case("filter", stdin="".join(f"{i * i}\n" for i in range(100))),
    # how it is started
    Case("regions", environment={"OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}),
    Case("regions", environment={"OMP_WAIT_POLICY": "active", "OMP_NUM_THREADS": "2"}),
    Case("regions", environment={"OMP_NUM_THREADS": "1"}, works=False),
    Case("regions", environment={"OMP_TOOL": "disabled"}, variants=("gcc",)),
    Case("regions", environment={"OMP_TOOL": "disabled"}, variants=("clang",), works=False),
    Case("regions", environment={"OMP_DYNAMIC": "true", "OMP_STACKSIZE": "256k", "OMP_THREAD_LIMIT": "2"}),
    Case("regions", environment={"LD_BIND_NOW": "1"}),
    Case(
        "regions",
        environment={"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "4194304000", "MALLOC_PERTURB_": "5"},
    ),
    Case(
        "allocate",
        environment={"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4194304:glibc.malloc.hugetlb=1"},
    ),
]
