// System calls by number, past the C library's functions: the library interposes some of them (mmap,
// mprotect, free's munmap), a program may bring its own, and another preloaded library's may not be ready yet
// when our constructor runs, and gone already when our destructor does. errno stays as it was found, so that
// hooks and signal handlers leave no trace; the result is that of the kernel itself: a value, or a negative
// errno.
#pragma once

#include "base/own_mappings.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>

namespace homing::raw {

// syscall(2) takes whole registers: a narrower argument would leave the upper half of one undefined.
template <class T> long word([[maybe_unused]] T value) noexcept {
    if constexpr (std::is_null_pointer_v<T>) {
        return 0;
    } else if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<long>(value);
    } else {
        return static_cast<long>(value);
    }
}

// Not through syscall(2) where that can be avoided: the guard hook interposes it, and would take homing's own
// calls for the program's (a window would be cut short by its own handler).
template <class... Arguments> long call(long number, Arguments... arguments) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
    long given[6] = {word(arguments)...};
#if defined(__x86_64__)
    register long r10 asm("r10") = given[3];
    register long r8 asm("r8") = given[4];
    register long r9 asm("r9") = given[5];
    long result = 0;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(given[0]), "S"(given[1]), "d"(given[2]), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
#else
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = given[0];
    register long x1 asm("x1") = given[1];
    register long x2 asm("x2") = given[2];
    register long x3 asm("x3") = given[3];
    register long x4 asm("x4") = given[4];
    register long x5 asm("x5") = given[5];
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
#else
    const int saved = errno;
    long result = ::syscall(number, word(arguments)...);
    if (result == -1) result = -errno;
    errno = saved;
    return result;
#endif
}

/// The address, or nullptr and the errno in `error`.
inline void* map(std::size_t bytes, int protection, int flags, int descriptor, std::uint64_t offset,
                 int& error) noexcept {
    const long result =
        call(SYS_mmap, static_cast<void*>(nullptr), bytes, protection, flags, descriptor, offset);
    error = result < 0 && result > -4096 ? static_cast<int>(-result) : 0;
    return error ? nullptr : reinterpret_cast<void*>(result);
}

/// Private anonymous memory that is zero, or nullptr: for tables that must not come from the program's
/// malloc.
inline void* map_memory(std::size_t bytes) noexcept {
    int error = 0;
    void* const memory =
        map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, error);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    if (memory) own_mappings.add(begin, begin + bytes);
    return memory;
}

inline void unmap(void* address, std::size_t bytes) noexcept {
    if (!address) return;
    own_mappings.remove(reinterpret_cast<std::uintptr_t>(address));
    call(SYS_munmap, address, bytes);
}

/// The pages' memory goes back to the kernel; they read as zeros.
inline void discard(std::uintptr_t begin, std::size_t bytes) noexcept {
    call(SYS_madvise, begin, bytes, MADV_DONTNEED);
}

/// A descriptor above 2 (a program may have closed its standard ones and must not find us there), or -errno.
inline int open(const char* path, int flags, unsigned mode = 0600) noexcept {
    const int first = static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
    if (first < 0 || first > 2) return first;
    const int above = static_cast<int>(call(SYS_fcntl, first, F_DUPFD_CLOEXEC, 3));
    call(SYS_close, first);
    return above;
}

inline void close(int descriptor) noexcept {
    if (descriptor >= 0) call(SYS_close, descriptor);
}

/// What lies at the path (a link: where it leads to); 0, or -errno.
inline int status(const char* path, struct stat& there) noexcept {
#if defined(__x86_64__) || defined(__aarch64__) // the C library's structure is the kernel's
    return static_cast<int>(call(SYS_newfstatat, AT_FDCWD, path, &there, 0));
#else
    const int saved = errno;
    const int result = ::stat(path, &there) == 0 ? 0 : -errno;
    errno = saved;
    return result;
#endif
}

/// The same without following a link.
inline int link_status(const char* path, struct stat& there) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
    return static_cast<int>(call(SYS_newfstatat, AT_FDCWD, path, &there, AT_SYMLINK_NOFOLLOW));
#else
    const int saved = errno;
    const int result = ::lstat(path, &there) == 0 ? 0 : -errno;
    errno = saved;
    return result;
#endif
}

/// What is open; 0, or -errno.
inline int status(int descriptor, struct stat& there) noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
    return static_cast<int>(call(SYS_fstat, descriptor, &there));
#else
    const int saved = errno;
    const int result = ::fstat(descriptor, &there) == 0 ? 0 : -errno;
    errno = saved;
    return result;
#endif
}

inline int process_id() noexcept { return static_cast<int>(call(SYS_getpid)); }

/// Up to `bytes` from `offset`, short only at the end of the file; the number read, or -errno.
inline long read_at(int descriptor, void* buffer, std::size_t bytes, std::uint64_t offset) noexcept {
    std::size_t done = 0;
    while (done < bytes) {
        const long got =
            call(SYS_pread64, descriptor, static_cast<char*>(buffer) + done, bytes - done, offset + done);
        if (got == -EINTR) continue;
        if (got < 0) return done ? static_cast<long>(done) : got;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return static_cast<long>(done);
}

/// A whole small file (of sysfs or procfs) as a terminated string, cut at the buffer's size; its length, or
/// -errno.
inline long read_file(const char* path, char* buffer, std::size_t bytes) noexcept {
    buffer[0] = '\0';
    const int descriptor = open(path, O_RDONLY);
    if (descriptor < 0) return descriptor;
    const long got = read_at(descriptor, buffer, bytes - 1, 0);
    close(descriptor);
    buffer[got < 0 ? 0 : got] = '\0';
    return got;
}

} // namespace homing::raw
