// The input/output door: a system call on a protected page fails with EFAULT or stops short, so calls that use watched
// memory first take it out of the open window, and keep new windows from opening while they run.
//
// Two ways: calls that move data are bracketed (they may block for long, and have side effects before they fail);
// calls that only fill or read a small structure are simply repeated when they fail with EFAULT while a window is open.
#include "base/inside.hpp"
#include "doors/export.hpp"
#include "references/windows.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <poll.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
    Bracket(const void* buffer, std::size_t bytes) noexcept { add(buffer, bytes); }
    Bracket(const iovec* pieces, long count) noexcept {
        if (__builtin_expect(windows_in_use() == nullptr, 1) || !pieces)
            return;
        add(pieces, static_cast<std::size_t>(count > 0 ? count : 0) * sizeof *pieces);
        for (long i = 0; i < count; ++i)
            add(pieces[i].iov_base, pieces[i].iov_len);
    }
    explicit Bracket(const msghdr* message) noexcept {
        if (__builtin_expect(windows_in_use() == nullptr, 1) || !message)
            return;
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

/// Repeats a call that failed with EFAULT while a window was open: with the window gone the failure is the program's
/// own, if it comes again.
template <class Call> auto repeated(Call&& call) noexcept {
    auto result = call();
    if (__builtin_expect(static_cast<long>(result) == -1 && errno == EFAULT, 0))
        if (Windows* windows = windows_in_use(); windows && windows->is_open()) {
            windows->abandon();
            result = call();
        }
    return result;
}

} // namespace
} // namespace homing::doors

using homing::doors::Bracket;
using homing::doors::Real;
using homing::doors::repeated;

// A data-moving call: (result, name, parameters, arguments, buffers that it uses).
#define HOMING_BRACKETED(result, name, parameters, arguments, ...)                                                   \
    HOMING_EXPORT result name parameters {                                                                           \
        static constinit Real<result parameters> real{#name};                                                        \
        const Bracket bracket{__VA_ARGS__};                                                                          \
        return real arguments;                                                                                       \
    }
#define HOMING_REPEATED(result, name, parameters, arguments)                                                         \
    HOMING_EXPORT result name parameters noexcept {                                                                  \
        static constinit Real<result parameters> real{#name};                                                        \
        return repeated([&] { return real arguments; });                                                             \
    }

extern "C" {

HOMING_BRACKETED(ssize_t, read, (int fd, void* data, size_t n), (fd, data, n), data, n)
HOMING_BRACKETED(ssize_t, write, (int fd, const void* data, size_t n), (fd, data, n), data, n)
HOMING_BRACKETED(ssize_t, pread, (int fd, void* data, size_t n, off_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pwrite, (int fd, const void* data, size_t n, off_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pread64, (int fd, void* data, size_t n, off64_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, pwrite64, (int fd, const void* data, size_t n, off64_t at), (fd, data, n, at), data, n)
HOMING_BRACKETED(ssize_t, readv, (int fd, const iovec* pieces, int n), (fd, pieces, n), pieces, long{n})
HOMING_BRACKETED(ssize_t, writev, (int fd, const iovec* pieces, int n), (fd, pieces, n), pieces, long{n})
HOMING_BRACKETED(ssize_t, preadv, (int fd, const iovec* pieces, int n, off_t at), (fd, pieces, n, at), pieces, long{n})
HOMING_BRACKETED(ssize_t, pwritev, (int fd, const iovec* pieces, int n, off_t at), (fd, pieces, n, at), pieces, long{n})
HOMING_BRACKETED(ssize_t, preadv64, (int fd, const iovec* pieces, int n, off64_t at), (fd, pieces, n, at), pieces,
                 long{n})
HOMING_BRACKETED(ssize_t, pwritev64, (int fd, const iovec* pieces, int n, off64_t at), (fd, pieces, n, at), pieces,
                 long{n})
// Compiled with _FORTIFY_SOURCE, programs call these instead.
HOMING_BRACKETED(ssize_t, __read_chk, (int fd, void* data, size_t n, size_t size), (fd, data, n, size), data, n)
HOMING_BRACKETED(ssize_t, __pread_chk, (int fd, void* data, size_t n, off_t at, size_t size), (fd, data, n, at, size),
                 data, n)
HOMING_BRACKETED(ssize_t, __pread64_chk, (int fd, void* data, size_t n, off64_t at, size_t size),
                 (fd, data, n, at, size), data, n)
HOMING_BRACKETED(ssize_t, __recv_chk, (int fd, void* data, size_t n, size_t size, int flags),
                 (fd, data, n, size, flags), data, n)
// glibc's streams read and write large buffers directly, inside libc, where read is not seen.
HOMING_BRACKETED(size_t, fread, (void* data, size_t size, size_t n, FILE* file), (data, size, n, file), data, size* n)
HOMING_BRACKETED(size_t, fwrite, (const void* data, size_t size, size_t n, FILE* file), (data, size, n, file), data,
                 size* n)
HOMING_BRACKETED(size_t, fread_unlocked, (void* data, size_t size, size_t n, FILE* file), (data, size, n, file), data,
                 size* n)
HOMING_BRACKETED(size_t, fwrite_unlocked, (const void* data, size_t size, size_t n, FILE* file), (data, size, n, file),
                 data, size* n)
HOMING_BRACKETED(size_t, __fread_chk, (void* data, size_t length, size_t size, size_t n, FILE* file),
                 (data, length, size, n, file), data, size* n)
HOMING_BRACKETED(ssize_t, recv, (int fd, void* data, size_t n, int flags), (fd, data, n, flags), data, n)
HOMING_BRACKETED(ssize_t, send, (int fd, const void* data, size_t n, int flags), (fd, data, n, flags), data, n)
HOMING_BRACKETED(ssize_t, recvfrom, (int fd, void* data, size_t n, int flags, sockaddr* from, socklen_t* length),
                 (fd, data, n, flags, from, length), data, n)
HOMING_BRACKETED(ssize_t, sendto, (int fd, const void* data, size_t n, int flags, const sockaddr* to, socklen_t length),
                 (fd, data, n, flags, to, length), data, n)
HOMING_BRACKETED(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), message)
HOMING_BRACKETED(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags), message)
HOMING_BRACKETED(ssize_t, getrandom, (void* data, size_t n, unsigned flags), (data, n, flags), data, n)

// The other process reads or writes our pages from outside; only our own side can be bracketed.
HOMING_EXPORT ssize_t process_vm_readv(pid_t process, const iovec* local, unsigned long locals, const iovec* remote,
                                       unsigned long remotes, unsigned long flags) noexcept {
    static constinit Real<ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long)> real{
        "process_vm_readv"};
    const Bracket here{local, static_cast<long>(locals)};
    const Bracket there{remote, static_cast<long>(process == ::getpid() ? remotes : 0)};
    return real(process, local, locals, remote, remotes, flags);
}

HOMING_EXPORT ssize_t process_vm_writev(pid_t process, const iovec* local, unsigned long locals, const iovec* remote,
                                        unsigned long remotes, unsigned long flags) noexcept {
    static constinit Real<ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long)> real{
        "process_vm_writev"};
    const Bracket here{local, static_cast<long>(locals)};
    const Bracket there{remote, static_cast<long>(process == ::getpid() ? remotes : 0)};
    return real(process, local, locals, remote, remotes, flags);
}

HOMING_REPEATED(int, stat, (const char* path, struct stat* out), (path, out))
HOMING_REPEATED(int, lstat, (const char* path, struct stat* out), (path, out))
HOMING_REPEATED(int, fstat, (int fd, struct stat* out), (fd, out))
HOMING_REPEATED(int, fstatat, (int fd, const char* path, struct stat* out, int flags), (fd, path, out, flags))
HOMING_REPEATED(ssize_t, readlink, (const char* path, char* out, size_t n), (path, out, n))
HOMING_REPEATED(int, pipe, (int* ends), (ends))
HOMING_REPEATED(int, access, (const char* path, int mode), (path, mode))
HOMING_REPEATED(int, unlink, (const char* path), (path))

HOMING_EXPORT int poll(pollfd* entries, nfds_t count, int timeout) {
    static constinit Real<int(pollfd*, nfds_t, int)> real{"poll"};
    return repeated([&] { return real(entries, count, timeout); });
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
    homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire);
    int held = 0;
    if (windows && number != SYS_futex && !homing::is_inside())
        for (const long argument : arguments)
            if (windows->system_call_begin(reinterpret_cast<const void*>(argument), 1)) {
                windows->abandon();
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
