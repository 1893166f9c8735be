// The input/output door: a system call on a protected page fails with EFAULT or stops short, so calls that
// use watched memory first take it out of the open window, and keep new windows from opening while they run.
//
// Two ways: calls that move data are bracketed (they may block for long, and have side effects before they
// fail); calls that only fill or read a small structure are simply repeated when they fail with EFAULT while
// a window is open.
#include "base/inside.hpp"
#include "doors/export.hpp"
#include "doors/heap.hpp"
#include "doors/sandbox.hpp"
#include "doors/signals.hpp"
#include "mechanisms/simulation.hpp"
#include "references/windows.hpp"

#include <aio.h>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>

// The buffers that we look at are only addresses to us: that read's is not filled yet is its nature.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace homing::doors {
namespace {

Windows* windows_in_use() noexcept { return active_windows.load(std::memory_order_acquire); }

/// Brackets one call on some buffers.
class Bracket {
  public:
    Bracket(const void* buffer, std::size_t bytes) noexcept {
        add(buffer, bytes);
        if (Simulation* simulated = simulation()) simulated->touched(buffer, bytes);
    }
    Bracket(const iovec* pieces, long count) noexcept {
        if (__builtin_expect(windows_in_use() == nullptr, 1) || !pieces) return;
        add(pieces, static_cast<std::size_t>(count > 0 ? count : 0) * sizeof *pieces);
        for (long i = 0; i < count; ++i)
            add(pieces[i].iov_base, pieces[i].iov_len);
    }
    explicit Bracket(const msghdr* message) noexcept {
        if (__builtin_expect(windows_in_use() == nullptr, 1) || !message) return;
        add(message, sizeof *message);
        for (std::size_t i = 0; i < message->msg_iovlen; ++i)
            add(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    }
    void add(const void* buffer, std::size_t bytes) noexcept {
        Windows* windows = windows_in_use();
        if (__builtin_expect(windows != nullptr, 0) && windows->system_call_begin(buffer, bytes)) {
            windows_ = windows;
            ++held_;
        }
    }
    ~Bracket() {
        const int saved = errno;
        for (; held_ > 0; --held_)
            windows_->system_call_end();
        errno = saved;
    }
    Bracket(const Bracket&) = delete;
    Bracket& operator=(const Bracket&) = delete;

  private:
    Windows* windows_ = nullptr;
    int held_ = 0;
};

/// Repeats a call that failed with EFAULT while a window was open: with the window gone the failure is the
/// program's own, if it comes again.
template <class Result> bool failed(Result result) noexcept {
    if constexpr (std::is_pointer_v<Result>)
        return result == nullptr;
    else
        return result == static_cast<Result>(-1);
}

template <class Call> auto repeated(Call&& call) {
    auto result = call();
    if (__builtin_expect(failed(result) && errno == EFAULT, 0))
        if (Windows* windows = windows_in_use()) {
            windows->abandon_and_wait();
            result = call();
        }
    return result;
}

/// No window while this call runs.
class NoWindow {
  public:
    NoWindow() noexcept : windows_(windows_in_use()) {
        if (windows_) windows_->system_call_begin();
    }
    ~NoWindow() {
        if (windows_) windows_->system_call_end();
    }
    NoWindow(const NoWindow&) = delete;
    NoWindow& operator=(const NoWindow&) = delete;

  private:
    Windows* windows_;
};

void no_more_windows(const char* reason) noexcept {
    if (Windows* windows = windows_in_use())
        windows->forbid(reason);
    else
        forbid_windows(reason);
}

void never_arm(const void* memory, std::size_t bytes) noexcept { note_alternate_stack(memory, bytes); }

} // namespace
} // namespace homing::doors

using homing::doors::Bracket;
using homing::doors::Real;
using homing::doors::repeated;

// A data-moving call: (result, name, parameters, arguments, buffers that it uses).
#define HOMING_BRACKETED(result, name, parameters, arguments, ...)                                           \
    HOMING_EXPORT result name parameters {                                                                   \
        static constinit Real<result parameters> real{#name};                                                \
        const Bracket bracket{__VA_ARGS__};                                                                  \
        return real arguments;                                                                               \
    }
#define HOMING_REPEATED(result, name, parameters, arguments)                                                 \
    HOMING_EXPORT result name parameters noexcept {                                                          \
        static constinit Real<result parameters> real{#name};                                                \
        return repeated([&] { return real arguments; });                                                     \
    }

extern "C" {

HOMING_BRACKETED(ssize_t, read, (int fd, void* data, size_t n), (fd, data, n), data, n)
HOMING_BRACKETED(ssize_t, write, (int fd, const void* data, size_t n), (fd, data, n), data, n)
HOMING_BRACKETED(ssize_t, pread, (int fd, void* data, size_t n, off_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pwrite, (int fd, const void* data, size_t n, off_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pread64, (int fd, void* data, size_t n, off64_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pwrite64, (int fd, const void* data, size_t n, off64_t at), (fd, data, n, at), data,
                 n)
HOMING_BRACKETED(ssize_t, readv, (int fd, const iovec* pieces, int n), (fd, pieces, n), pieces, long{n})
HOMING_BRACKETED(ssize_t, writev, (int fd, const iovec* pieces, int n), (fd, pieces, n), pieces, long{n})
HOMING_BRACKETED(ssize_t, preadv, (int fd, const iovec* pieces, int n, off_t at), (fd, pieces, n, at), pieces,
                 long{n})
HOMING_BRACKETED(ssize_t, pwritev, (int fd, const iovec* pieces, int n, off_t at), (fd, pieces, n, at),
                 pieces, long{n})
HOMING_BRACKETED(ssize_t, preadv64, (int fd, const iovec* pieces, int n, off64_t at), (fd, pieces, n, at),
                 pieces, long{n})
HOMING_BRACKETED(ssize_t, pwritev64, (int fd, const iovec* pieces, int n, off64_t at), (fd, pieces, n, at),
                 pieces, long{n})
// Compiled with _FORTIFY_SOURCE, programs call these instead.
HOMING_BRACKETED(ssize_t, __read_chk, (int fd, void* data, size_t n, size_t size), (fd, data, n, size), data,
                 n)
HOMING_BRACKETED(ssize_t, __pread_chk, (int fd, void* data, size_t n, off_t at, size_t size),
                 (fd, data, n, at, size), data, n)
HOMING_BRACKETED(ssize_t, __pread64_chk, (int fd, void* data, size_t n, off64_t at, size_t size),
                 (fd, data, n, at, size), data, n)
HOMING_BRACKETED(ssize_t, __recv_chk, (int fd, void* data, size_t n, size_t size, int flags),
                 (fd, data, n, size, flags), data, n)
// glibc's streams read and write large buffers directly, inside libc, where read is not seen.
HOMING_BRACKETED(size_t, fread, (void* data, size_t size, size_t n, FILE* file), (data, size, n, file), data,
                 size* n)
HOMING_BRACKETED(size_t, fwrite, (const void* data, size_t size, size_t n, FILE* file), (data, size, n, file),
                 data, size* n)
HOMING_BRACKETED(size_t, fread_unlocked, (void* data, size_t size, size_t n, FILE* file),
                 (data, size, n, file), data, size* n)
HOMING_BRACKETED(size_t, fwrite_unlocked, (const void* data, size_t size, size_t n, FILE* file),
                 (data, size, n, file), data, size* n)
HOMING_BRACKETED(size_t, __fread_chk, (void* data, size_t length, size_t size, size_t n, FILE* file),
                 (data, length, size, n, file), data, size* n)
HOMING_BRACKETED(ssize_t, recv, (int fd, void* data, size_t n, int flags), (fd, data, n, flags), data, n)
HOMING_BRACKETED(ssize_t, send, (int fd, const void* data, size_t n, int flags), (fd, data, n, flags), data,
                 n)
HOMING_BRACKETED(ssize_t, recvfrom,
                 (int fd, void* data, size_t n, int flags, sockaddr* from, socklen_t* length),
                 (fd, data, n, flags, from, length), data, n)
HOMING_BRACKETED(ssize_t, sendto,
                 (int fd, const void* data, size_t n, int flags, const sockaddr* to, socklen_t length),
                 (fd, data, n, flags, to, length), data, n)
HOMING_BRACKETED(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), message)
HOMING_BRACKETED(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags), message)
HOMING_BRACKETED(ssize_t, getrandom, (void* data, size_t n, unsigned flags), (data, n, flags), data, n)

using ProcessCall = ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

/// The other process reads or writes our pages from outside; only our own side can be bracketed.
static ssize_t call_process(Real<ProcessCall>& real, pid_t process, const iovec* local, unsigned long locals,
                            const iovec* remote, unsigned long remotes, unsigned long flags) noexcept {
    const Bracket here{local, static_cast<long>(locals)};
    const Bracket there{remote, static_cast<long>(process == ::getpid() ? remotes : 0)};
    return real(process, local, locals, remote, remotes, flags);
}

HOMING_EXPORT ssize_t process_vm_readv(pid_t process, const iovec* local, unsigned long locals,
                                       const iovec* remote, unsigned long remotes,
                                       unsigned long flags) noexcept {
    static constinit Real<ProcessCall> real{"process_vm_readv"};
    return call_process(real, process, local, locals, remote, remotes, flags);
}

HOMING_EXPORT ssize_t process_vm_writev(pid_t process, const iovec* local, unsigned long locals,
                                        const iovec* remote, unsigned long remotes,
                                        unsigned long flags) noexcept {
    static constinit Real<ProcessCall> real{"process_vm_writev"};
    return call_process(real, process, local, locals, remote, remotes, flags);
}

HOMING_REPEATED(int, stat, (const char* path, struct stat* out), (path, out))
HOMING_REPEATED(int, lstat, (const char* path, struct stat* out), (path, out))
HOMING_REPEATED(int, fstat, (int fd, struct stat* out), (fd, out))
HOMING_REPEATED(int, fstatat, (int fd, const char* path, struct stat* out, int flags), (fd, path, out, flags))
HOMING_REPEATED(ssize_t, readlink, (const char* path, char* out, size_t n), (path, out, n))
HOMING_REPEATED(int, pipe, (int* ends), (ends))
HOMING_REPEATED(int, access, (const char* path, int mode), (path, mode))
HOMING_REPEATED(int, unlink, (const char* path), (path))
HOMING_REPEATED(char*, getcwd, (char* out, size_t n), (out, n))
HOMING_REPEATED(char*, __getcwd_chk, (char* out, size_t n, size_t size), (out, n, size))
HOMING_REPEATED(int, uname, (utsname * out), (out))
HOMING_REPEATED(int, gethostname, (char* out, size_t n), (out, n))
HOMING_REPEATED(int, sigpending, (sigset_t * out), (out))
HOMING_REPEATED(int, sysinfo, (struct sysinfo * out), (out))
HOMING_REPEATED(clock_t, times, (tms * out), (out))
HOMING_REPEATED(int, getrusage, (__rusage_who_t who, rusage* out), (who, out))
HOMING_REPEATED(int, getrlimit, (__rlimit_resource_t what, rlimit* out), (what, out))
HOMING_REPEATED(int, statvfs, (const char* path, struct statvfs* out), (path, out))
HOMING_REPEATED(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* out),
                (at, path, flags, mask, out))

// mlock faults every page in: it fails (ENOMEM) where one is taken away.
HOMING_BRACKETED(int, mlock, (const void* data, size_t n), (data, n), data, n)
HOMING_BRACKETED(int, mlock2, (const void* data, size_t n, unsigned flags), (data, n, flags), data, n)

// A stream's buffer is read and filled by the C library itself, at any time: never to be taken away.
HOMING_EXPORT int setvbuf(FILE* file, char* buffer, int mode, size_t n) noexcept {
    static constinit Real<int(FILE*, char*, int, size_t)> real{"setvbuf"};
    if (buffer) homing::doors::never_arm(buffer, n);
    return real(file, buffer, mode, n);
}

// Reads and writes by threads of the C library, which run on after we have returned.
#define HOMING_FORBIDDING(result, name, parameters, arguments, reason)                                       \
    HOMING_EXPORT result name parameters noexcept {                                                          \
        static constinit Real<result parameters> real{#name};                                                \
        homing::doors::no_more_windows(reason);                                                              \
        return real arguments;                                                                               \
    }
HOMING_FORBIDDING(int, aio_read, (aiocb * request), (request), "asynchronous input is used")
HOMING_FORBIDDING(int, aio_write, (aiocb * request), (request), "asynchronous output is used")
HOMING_FORBIDDING(int, aio_read64, (aiocb64 * request), (request), "asynchronous input is used")
HOMING_FORBIDDING(int, aio_write64, (aiocb64 * request), (request), "asynchronous output is used")
HOMING_FORBIDDING(int, lio_listio, (int mode, aiocb* const* list, int n, sigevent* event),
                  (mode, list, n, event), "asynchronous input is used")
HOMING_FORBIDDING(int, lio_listio64, (int mode, aiocb64* const* list, int n, sigevent* event),
                  (mode, list, n, event), "asynchronous input is used")

// Timers that run functions in threads of the C library: those block SIGSEGV.
HOMING_EXPORT int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
    static constinit Real<int(clockid_t, sigevent*, timer_t*)> real{"timer_create"};
    if (event && event->sigev_notify == SIGEV_THREAD)
        homing::doors::no_more_windows("a timer runs functions in threads that block SIGSEGV");
    return real(clock, event, timer);
}
HOMING_EXPORT int mq_notify(mqd_t queue, const sigevent* event) noexcept {
    static constinit Real<int(mqd_t, const sigevent*)> real{"mq_notify"};
    if (event && event->sigev_notify == SIGEV_THREAD)
        homing::doors::no_more_windows("a message queue runs functions in threads that block SIGSEGV");
    return real(queue, event);
}

// A new program: the kernel reads its arguments from our pages, in the child or here. Rare: the window simply
// ends.
// specification: as the C library declares it; some are cancellation points, which unwind.
#define HOMING_ENDS_WINDOW(result, name, parameters, arguments, specification)                               \
    HOMING_EXPORT result name parameters specification {                                                     \
        static constinit Real<result parameters> real{#name};                                                \
        const homing::doors::NoWindow none;                                                                  \
        const homing::doors::Inheritance inheritance;                                                        \
        return real arguments;                                                                               \
    }
HOMING_ENDS_WINDOW(int, execve, (const char* path, char* const* list, char* const* names),
                   (path, list, names), noexcept)
HOMING_ENDS_WINDOW(int, execv, (const char* path, char* const* list), (path, list), noexcept)
HOMING_ENDS_WINDOW(int, execvp, (const char* path, char* const* list), (path, list), noexcept)
HOMING_ENDS_WINDOW(int, execvpe, (const char* path, char* const* list, char* const* names),
                   (path, list, names), noexcept)
HOMING_ENDS_WINDOW(int, posix_spawn,
                   (pid_t * pid, const char* path, const posix_spawn_file_actions_t* actions,
                    const posix_spawnattr_t* attributes, char* const* list, char* const* names),
                   (pid, path, actions, attributes, list, names), )
HOMING_ENDS_WINDOW(int, posix_spawnp,
                   (pid_t * pid, const char* path, const posix_spawn_file_actions_t* actions,
                    const posix_spawnattr_t* attributes, char* const* list, char* const* names),
                   (pid, path, actions, attributes, list, names), )
HOMING_ENDS_WINDOW(int, system, (const char* command), (command), )
HOMING_ENDS_WINDOW(FILE*, popen, (const char* command, const char* mode), (command, mode), )

// Stacks of the program's own: where the page under the stack pointer is taken away, the kernel has no place
// to report the fault.
HOMING_EXPORT int pthread_attr_setstack(pthread_attr_t* attribute, void* stack, size_t n) noexcept {
    static constinit Real<int(pthread_attr_t*, void*, size_t)> real{"pthread_attr_setstack"};
    homing::doors::never_arm(stack, n);
    return real(attribute, stack, n);
}
// Every stack that was made by makecontext is entered by one of these.
HOMING_EXPORT int swapcontext(ucontext_t* from, const ucontext_t* to) noexcept {
    static constinit Real<int(ucontext_t*, const ucontext_t*)> real{"swapcontext"};
    if (to && to->uc_stack.ss_sp) homing::doors::never_arm(to->uc_stack.ss_sp, to->uc_stack.ss_size);
    return real(from, to);
}

HOMING_REPEATED(int, epoll_ctl, (int queue, int what, int fd, epoll_event* event), (queue, what, fd, event))
HOMING_REPEATED(int, getsockopt, (int fd, int level, int name, void* out, socklen_t* n),
                (fd, level, name, out, n))
HOMING_REPEATED(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t n),
                (fd, level, name, value, n))
HOMING_REPEATED(int, getsockname, (int fd, sockaddr* out, socklen_t* n), (fd, out, n))
HOMING_REPEATED(int, getpeername, (int fd, sockaddr* out, socklen_t* n), (fd, out, n))
HOMING_REPEATED(int, socketpair, (int domain, int type, int protocol, int* ends),
                (domain, type, protocol, ends))
HOMING_REPEATED(int, pipe2, (int* ends, int flags), (ends, flags))

// The same for cancellation points, which a cancelled thread leaves by unwinding.
#define HOMING_REPEATED_POINT(result, name, parameters, arguments)                                           \
    HOMING_EXPORT result name parameters {                                                                   \
        static constinit Real<result parameters> real{#name};                                                \
        return repeated([&] { return real arguments; });                                                     \
    }
HOMING_REPEATED_POINT(int, epoll_wait, (int queue, epoll_event* out, int n, int timeout),
                      (queue, out, n, timeout))
HOMING_REPEATED_POINT(int, epoll_pwait,
                      (int queue, epoll_event* out, int n, int timeout, const sigset_t* mask),
                      (queue, out, n, timeout, mask))
HOMING_REPEATED_POINT(int, select, (int n, fd_set* in, fd_set* out, fd_set* other, timeval* timeout),
                      (n, in, out, other, timeout))
HOMING_REPEATED_POINT(int, nanosleep, (const timespec* time, timespec* left), (time, left))
HOMING_REPEATED_POINT(int, accept, (int fd, sockaddr* out, socklen_t* n), (fd, out, n))
HOMING_REPEATED_POINT(int, connect, (int fd, const sockaddr* to, socklen_t n), (fd, to, n))
HOMING_REPEATED_POINT(pid_t, waitpid, (pid_t child, int* status, int options), (child, status, options))
HOMING_REPEATED_POINT(pid_t, wait, (int* status), (status))

HOMING_EXPORT int poll(pollfd* entries, nfds_t count, int timeout) {
    static constinit Real<int(pollfd*, nfds_t, int)> real{"poll"};
    return repeated([&] { return real(entries, count, timeout); });
}

// The static arrays of an object go with it.
HOMING_EXPORT int dlclose(void* handle) noexcept {
    static constinit Real<int(void*)> real{"dlclose"};
    const homing::doors::NoWindow none;
    return real(handle);
}

// A raw system call: we do not know its buffers, but an argument that points into watched memory is one.
HOMING_EXPORT long syscall(long number, ...) noexcept {
    static constinit Real<long(long, long, long, long, long, long, long)> real{"syscall"};
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (long& argument : arguments)
        argument = va_arg(list, long);
    va_end(list);
    homing::doors::memory_changes_by(number, arguments);
    homing::doors::filter_may_come(number, arguments);
    if (number == SYS_rt_sigprocmask && arguments[3] == 8 &&
        !homing::is_inside()) { // not past the signal door
        sigset_t set = {};
        sigset_t old = {};
        if (arguments[1]) std::memcpy(&set, reinterpret_cast<const void*>(arguments[1]), 8);
        const int result = ::sigprocmask(static_cast<int>(arguments[0]), arguments[1] ? &set : nullptr,
                                         arguments[2] ? &old : nullptr);
        if (result == 0 && arguments[2]) std::memcpy(reinterpret_cast<void*>(arguments[2]), &old, 8);
        return result;
    }
    homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire);
    int held = 0;
    if (windows && number != SYS_futex && !homing::is_inside())
        for (const long argument : arguments)
            // Up to a page on: an area is watched from its first whole page.
            if (windows->system_call_begin(reinterpret_cast<const void*>(argument), homing::page_bytes())) {
                windows->abandon_and_wait();
                ++held;
            }
    const long result =
        real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    const int saved = errno;
    for (; held > 0; --held)
        windows->system_call_end();
    errno = saved;
    return result;
}

} // extern "C"
