// Calls whose arguments mean something else from one to the next: a number, or where a structure lies. They
// are taken for structures; a number is nobody's memory.
//
// And system calls by number, as language runtimes and libraries make them: those that wait or move data are
// known; others may use anything, also through pointers in what they are given.
#include "base/inside.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/signals/signals.hpp"
#include "hooks/syscalls/calls.hpp"
#include "hooks/syscalls/guards.hpp"
#include "hooks/syscalls/sandbox.hpp"
#include "machine/simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// What an ioctl's argument points to: the request tells the size, or did not yet when it was defined.
homing::hooks::bytes of_request(unsigned long request, long argument) noexcept {
    return {reinterpret_cast<const void*>(argument), std::max<std::size_t>(_IOC_SIZE(request), 4096)};
}

/// Each fault of a window would stop the program until its parent continues it, which may not know that it
/// should.
constexpr const char* traced = "the program asks to be traced by its parent";

/// Requests whose argument holds no pointers of its own: terminals, and how much there is to read. Of others
/// (devices that read and write memory of the program, or keep it to themselves) nothing is known.
bool is_flat(unsigned long request) noexcept {
    constexpr unsigned long terminals = 'T';
    return _IOC_TYPE(request) == terminals;
}

} // namespace

HOMING_HOOK(ioctl, (int fd, unsigned long request, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::ioctl>::Function> real{"ioctl"};
    va_list list;
    va_start(list, request);
    const long argument = va_arg(list, long);
    va_end(list);
    if (!real.is_ready()) return early(real, fd, request, argument);
    homing::InFlight call;
    if (is_flat(request))
        begin(call, of_request(request, argument));
    else
        begin(call, everything{});
    return finish(call, real, fd, request, argument);
}

#define HOMING_CONTROL(name)                                                                                 \
    HOMING_HOOK(name, (int fd, int command, ...)) {                                                          \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        va_list list;                                                                                        \
        va_start(list, command);                                                                             \
        const long argument = va_arg(list, long);                                                            \
        va_end(list);                                                                                        \
        if (!real.is_ready()) return early(real, fd, command, argument);                                     \
        homing::InFlight call;                                                                               \
        begin(call, bytes{reinterpret_cast<const void*>(argument), sizeof(struct flock)});                   \
        return finish(call, real, fd, command, argument);                                                    \
    }
extern "C" int __fcntl(int, int, ...);
HOMING_CONTROL(fcntl)
HOMING_CONTROL(fcntl64)
HOMING_CONTROL(__fcntl)

// The fourth is a number, a structure, or the values of a whole set of semaphores.
HOMING_HOOK(semctl, (int set, int number, int command, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::semctl>::Function> real{"semctl"};
    va_list list;
    va_start(list, command);
    const long argument = va_arg(list, long);
    va_end(list);
    if (!real.is_ready()) return early(real, set, number, command, argument);
    homing::InFlight call;
    begin(call, bytes{reinterpret_cast<const void*>(argument), 65536});
    return finish(call, real, set, number, command, argument);
}

HOMING_HOOK(prctl, (int option, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::prctl>::Function> real{"prctl"};
    va_list list;
    va_start(list, option);
    long arguments[5] = {option};
    for (int i = 1; i < 5; ++i)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (!real.is_ready()) return early(real, option, arguments[1], arguments[2], arguments[3], arguments[4]);
    filter_may_come(SYS_prctl, arguments);
    FilterCall filter(SYS_prctl, arguments);
    homing::InFlight call;
    begin(call, structure(arguments[1]), structure(arguments[2]), structure(arguments[3]));
    const int result = finish(call, real, option, arguments[1], arguments[2], arguments[3], arguments[4]);
    filter.returned(result);
    return result;
}

// The third argument is an address of the other process.
HOMING_HOOK(ptrace, (int request, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::ptrace>::Function> real{"ptrace"};
    va_list list;
    va_start(list, request);
    const long process = va_arg(list, long);
    const long there = va_arg(list, long);
    const long here = va_arg(list, long);
    const long more = va_arg(list, long);
    va_end(list);
    if (!real.is_ready())
        return early(real, static_cast<__ptrace_request>(request), static_cast<pid_t>(process), there, here,
                     more);
    if (request == PTRACE_TRACEME) no_more_windows(traced);
    homing::InFlight call;
    begin(call, structure(here));
    return finish(call, real, static_cast<__ptrace_request>(request), static_cast<pid_t>(process), there,
                  here, more);
}

namespace homing::hooks {
namespace {

template <class T> T* at(long argument) noexcept { return reinterpret_cast<T*>(argument); }
std::size_t size(long argument) noexcept { return static_cast<std::size_t>(argument); }

struct SystemCall {
    long number;
    const long* arguments;

    /// False: it is not known what the call uses.
    bool lend(InFlight& call) const noexcept;
};

bool SystemCall::lend(InFlight& call) const noexcept {
    const long a = arguments[0];
    const long b = arguments[1];
    const long c = arguments[2];
    const long d = arguments[3];
    const long e = arguments[4];
    const long f = arguments[5];
    const auto uses = [&call](auto... memory) {
        (memory.lend(call), ...);
        return true;
    };
    switch (number) {
    case SYS_futex: {
        const long operation = b & FUTEX_CMD_MASK;
        const bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
                           operation == FUTEX_LOCK_PI || operation == FUTEX_WAIT_REQUEUE_PI;
        return uses(object(at<int>(a)), object(at<timespec>(waits ? d : 0)), object(at<int>(e)));
    }
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
        return uses(bytes{at<void>(b), size(c)});
    case SYS_connect:
    case SYS_bind:
        return uses(bytes{at<void>(b), size(c)});
    case SYS_accept:
    case SYS_accept4:
        return uses(address{at<sockaddr>(b), at<socklen_t>(c)});
    case SYS_recvfrom:
        return uses(bytes{at<void>(b), size(c)}, address{at<sockaddr>(e), at<socklen_t>(f)});
    case SYS_sendto:
        return uses(bytes{at<void>(b), size(c)}, bytes{at<void>(e), size(f)});
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_vmsplice:
        return uses(pieces{at<iovec>(b), c});
    case SYS_recvmsg:
    case SYS_sendmsg:
        return uses(message{at<msghdr>(b)});
    case SYS_recvmmsg:
    case SYS_sendmmsg:
        return uses(messages{at<mmsghdr>(b), static_cast<unsigned>(c)}, object(at<timespec>(e)));
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
        return uses(objects(at<pollfd>(a), size(b)), structure(number == SYS_ppoll ? c : 0),
                    structure(number == SYS_ppoll ? d : 0));
    case SYS_pselect6: {
        const int n = static_cast<int>(a);
        return uses(set(at<fd_set>(b), n), set(at<fd_set>(c), n), set(at<fd_set>(d), n), structure(e),
                    structure(f));
    }
    case SYS_rt_sigsuspend:
        return uses(structure(a));
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
        return uses(objects(at<epoll_event>(b), size(c)), structure(e));
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
        return uses(objects(at<epoll_event>(b), size(c)), structure(d), structure(e));
#endif
    case SYS_semop:
    case SYS_semtimedop:
        return uses(objects(at<sembuf>(b), size(c)), structure(number == SYS_semtimedop ? d : 0));
    case SYS_nanosleep:
        return uses(structure(a), structure(b));
    case SYS_clock_nanosleep:
        return uses(structure(c), structure(d));
    case SYS_clock_gettime:
    case SYS_clock_getres:
        return uses(structure(b));
    case SYS_rt_sigtimedwait:
        return uses(structure(a), structure(b), structure(c));
    case SYS_wait4:
        return uses(structure(b), structure(d));
    case SYS_waitid:
        return uses(structure(c), structure(e));
    case SYS_getrandom:
    case SYS_madvise:
        return uses(bytes{at<void>(a), size(b)});
    case SYS_getdents64:
        return uses(bytes{at<void>(b), size(c)});
    case SYS_sched_getaffinity:
    case SYS_sched_setaffinity:
        return uses(bytes{at<void>(c), size(b)});
    case SYS_getcpu:
        return uses(structure(a), structure(b));
    // Without memory that they read or write, and some that do not come back.
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_brk:
    case SYS_gettid:
    case SYS_getpid:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_kill:
    case SYS_sched_yield:
    case SYS_close:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_flock:
    case SYS_membarrier:
    case SYS_exit:
    case SYS_exit_group:
        return true;
    default:
        return false;
    }
}

/// Calls that have made something by which the kernel uses memory of the program at any time. Null: none of
/// them.
const char* forbids(long number, long first) noexcept {
    switch (number) {
    case SYS_io_setup:
        return "asynchronous input is used";
    case SYS_io_uring_setup:
        return "io_uring is used";
    case SYS_ptrace:
        return first == PTRACE_TRACEME ? traced : nullptr;
    default:
        return nullptr;
    }
}

} // namespace
} // namespace homing::hooks

HOMING_HOOK(syscall, (long number, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::syscall>::Function> real{"syscall"};
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (long& argument : arguments)
        argument = va_arg(list, long);
    va_end(list);
    if (!real.is_ready())
        return early(real, number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                     arguments[5]);
    if (long result = 0;
        homing::homing_simulated_call && homing::homing_simulated_call(number, arguments, &result))
        return result;
    memory_changes_by(number, arguments);
    filter_may_come(number, arguments);
    FilterCall filter(number, arguments);
    if (long result = 0; !homing::is_inside() && signal_call_by_number(number, arguments, result)) {
        if (result >= 0) return result;
        errno = static_cast<int>(-result);
        return -1;
    }
    const MaskedWait masked(number, arguments);
    homing::InFlight call;
    if (SystemCall{number, arguments}.lend(call)) {
        homing::Windows::begin(call);
    } else if (!homing::is_inside()) {
        call.add(homing::all_memory);
        homing::Windows::begin(call);
    }
    const long result = finish(call, real, number, arguments[0], arguments[1], arguments[2], arguments[3],
                               arguments[4], arguments[5]);
    filter.returned(result);
    if (const char* reason = forbids(number, arguments[0]); reason && result >= 0) no_more_windows(reason);
    return result;
}
