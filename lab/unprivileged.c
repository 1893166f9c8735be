/* Preloaded into virtiofsd when an ordinary user runs the lab: lets it work inside `unshare -r`.
 *
 * Two calls that root may make are refused there, and neither matters for the lab:
 * - virtiofsd gives up its supplementary groups at start. In a user namespace that its user made without
 * help, the kernel forbids setgroups (user_namespaces(7)). The daemon keeps the user's own groups, hence the
 * user's rights.
 * - The guest's overlay opens lower files with O_NOATIME, which is for their owner alone (open(2)). Most
 * files of the host are another user's: they are opened without it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int setgroups(size_t count, const gid_t* groups) {
    const long result = syscall(SYS_setgroups, count, groups);
    return result == -1 && errno == EPERM && count == 0 ? 0 : (int)result;
}

static int open_without_noatime(int folder, const char* path, int flags, mode_t mode) {
    const int descriptor = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (descriptor == -1 && errno == EPERM && (flags & O_NOATIME))
        return (int)syscall(SYS_openat, folder, path, flags & ~O_NOATIME, mode);
    return descriptor;
}

static mode_t mode_of(int flags, va_list arguments) {
    const int creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    return creates ? va_arg(arguments, mode_t) : 0;
}

EXPORT int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_without_noatime(AT_FDCWD, path, flags, mode);
}

EXPORT int openat64(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_without_noatime(folder, path, flags, mode);
}

/* What openat(2) without a mode becomes in a program built with _FORTIFY_SOURCE. */
EXPORT int __openat64_2(int folder, const char* path, int flags) {
    return open_without_noatime(folder, path, flags, 0);
}
