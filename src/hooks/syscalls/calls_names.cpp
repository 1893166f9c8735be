// Calls with names of files, and what the kernel tells of files.
#include "hooks/syscalls/calls.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <mntent.h>
#include <mqueue.h>
#include <nl_types.h>
#include <pty.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

extern "C" {
// Compiled with _FORTIFY_SOURCE, programs call these instead.
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
ssize_t __readlink_chk(const char*, char*, std::size_t, std::size_t);
ssize_t __readlinkat_chk(int, const char*, char*, std::size_t, std::size_t);
char* __getcwd_chk(char*, std::size_t, std::size_t);
char* __getwd_chk(char*, std::size_t);
char* __realpath_chk(const char*, char*, std::size_t);
int __ttyname_r_chk(int, char*, std::size_t, std::size_t);
int __ptsname_r_chk(int, char*, std::size_t, std::size_t);
// What programs call that were compiled with glibc before 2.33.
int __xstat(int, const char*, struct stat*);
int __xstat64(int, const char*, struct stat64*);
int __lxstat(int, const char*, struct stat*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstat(int, int, struct stat*);
int __fxstat64(int, int, struct stat64*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __fxstatat64(int, int, const char*, struct stat64*, int);
int __xmknod(int, const char*, mode_t, dev_t*);
int __xmknodat(int, int, const char*, mode_t, dev_t*);
// In no header.
int __statfs(const char*, struct statfs*);
FILE* _IO_fopen(const char*, const char*);
FILE* __setmntent(const char*, const char*);
int pivot_root(const char*, const char*);
}

// Opening, whose last argument is there only where a file may be made.
#define HOMING_OPEN(name, parameters, ...)                                                                   \
    HOMING_HOOK(name, parameters) {                                                                          \
        using namespace homing::hooks;                                                                       \
        static constinit Real<Signature<&::name>::Function> real{#name};                                     \
        mode_t mode = 0;                                                                                     \
        if (__OPEN_NEEDS_MODE(flags)) {                                                                      \
            va_list list;                                                                                    \
            va_start(list, flags);                                                                           \
            mode = va_arg(list, mode_t);                                                                     \
            va_end(list);                                                                                    \
        }                                                                                                    \
        if (!real.is_ready()) return early(real, __VA_ARGS__, flags, mode);                                  \
        homing::InFlight call;                                                                               \
        begin(call, text(path));                                                                             \
        return finish(call, real, __VA_ARGS__, flags, mode);                                                 \
    }
HOMING_OPEN(open, (const char* path, int flags, ...), path)
HOMING_OPEN(open64, (const char* path, int flags, ...), path)
HOMING_OPEN(openat, (int folder, const char* path, int flags, ...), folder, path)
HOMING_OPEN(openat64, (int folder, const char* path, int flags, ...), folder, path)
extern "C" int __open(const char*, int, ...);
extern "C" int __open64(const char*, int, ...);
HOMING_OPEN(__open, (const char* path, int flags, ...), path)
HOMING_OPEN(__open64, (const char* path, int flags, ...), path)
HOMING_CALL2(__open_2, text(a))
HOMING_CALL2(__open64_2, text(a))
HOMING_CALL3(__openat_2, text(b))
HOMING_CALL3(__openat64_2, text(b))
HOMING_CALL2(creat, text(a))
HOMING_CALL2(creat64, text(a))
HOMING_CALL2(fopen, text(a))
HOMING_CALL2(fopen64, text(a))
HOMING_CALL2(_IO_fopen, text(a))
HOMING_CALL3(freopen, text(a))
HOMING_CALL3(freopen64, text(a))
HOMING_CALL1(opendir, text(a))
HOMING_CALL4(scandir, text(a))
HOMING_CALL4(scandir64, text(a))
HOMING_CALL5(scandirat, text(b))
HOMING_CALL5(scandirat64, text(b))
HOMING_CALL3(ftw, text(a))
HOMING_CALL3(ftw64, text(a))
HOMING_CALL4(nftw, text(a))
HOMING_CALL4(nftw64, text(a))
HOMING_CALL4(glob, text(a))
HOMING_CALL4(glob64, text(a))
HOMING_CALL2(setmntent, text(a))
HOMING_CALL2(__setmntent, text(a))
HOMING_CALL2(catopen, text(a))

HOMING_CALL2(access, text(a))
HOMING_CALL2(eaccess, text(a))
HOMING_CALL2(euidaccess, text(a))
HOMING_CALL4(faccessat, text(b))
HOMING_CALL1(unlink, text(a))
HOMING_CALL3(unlinkat, text(b))
HOMING_CALL1(rmdir, text(a))
HOMING_CALL1(remove, text(a))
HOMING_CALL2(rename, text(a), text(b))
HOMING_CALL4(renameat, text(b), text(d))
HOMING_CALL5(renameat2, text(b), text(d))
HOMING_CALL2(link, text(a), text(b))
HOMING_CALL5(linkat, text(b), text(d))
HOMING_CALL2(symlink, text(a), text(b))
HOMING_CALL3(symlinkat, text(a), text(c))
HOMING_CALL3(readlink, text(a), bytes(b, c))
HOMING_CALL4(readlinkat, text(b), bytes(c, d))
HOMING_CALL4(__readlink_chk, text(a), bytes(b, c))
HOMING_CALL5(__readlinkat_chk, text(b), bytes(c, d))
HOMING_CALL2(mkdir, text(a))
HOMING_CALL3(mkdirat, text(b))
HOMING_CALL2(mkfifo, text(a))
HOMING_CALL3(mkfifoat, text(b))
HOMING_CALL3(mknod, text(a))
HOMING_CALL4(mknodat, text(b))
HOMING_CALL4(__xmknod, text(b))
HOMING_CALL5(__xmknodat, text(c))
HOMING_CALL1(chdir, text(a))
HOMING_CALL1(chroot, text(a))
HOMING_CALL2(chmod, text(a))
HOMING_CALL2(lchmod, text(a))
HOMING_CALL4(fchmodat, text(b))
HOMING_CALL3(chown, text(a))
HOMING_CALL3(lchown, text(a))
HOMING_CALL5(fchownat, text(b))
HOMING_CALL2(truncate, text(a))
HOMING_CALL2(truncate64, text(a))
HOMING_CALL2(utime, text(a), object(b))
HOMING_CALL2(utimes, text(a), objects(b, 2))
HOMING_CALL2(lutimes, text(a), objects(b, 2))
HOMING_CALL2(futimes, objects(b, 2))
HOMING_CALL3(futimesat, text(b), objects(c, 2))
HOMING_CALL2(futimens, objects(b, 2))
HOMING_CALL4(utimensat, text(b), objects(c, 2))
HOMING_CALL1(mkstemp, text(a))
HOMING_CALL1(mkstemp64, text(a))
HOMING_CALL2(mkstemps, text(a))
HOMING_CALL2(mkstemps64, text(a))
HOMING_CALL2(mkostemp, text(a))
HOMING_CALL2(mkostemp64, text(a))
HOMING_CALL3(mkostemps, text(a))
HOMING_CALL3(mkostemps64, text(a))
HOMING_CALL1(mkdtemp, text(a))
HOMING_CALL1(mktemp, text(a))
HOMING_CALL1(tmpnam, text(a))
HOMING_CALL1(tmpnam_r, text(a))
HOMING_CALL2(tempnam, text(a))
HOMING_CALL2(memfd_create, text(a))
HOMING_CALL2(pathconf, text(a))
HOMING_CALL2(ftok, text(a))

HOMING_CALL2(getcwd, bytes(a, b))
HOMING_CALL3(__getcwd_chk, bytes(a, b))
HOMING_CALL1(getwd, text(a))
HOMING_CALL2(__getwd_chk, text(a))
HOMING_CALL2(realpath, text(a), text(b))
HOMING_CALL3(__realpath_chk, text(a), text(b))
HOMING_CALL1(canonicalize_file_name, text(a))
HOMING_CALL3(ttyname_r, bytes(b, c))
HOMING_CALL4(__ttyname_r_chk, bytes(b, c))
HOMING_CALL3(ptsname_r, bytes(b, c))
HOMING_CALL4(__ptsname_r_chk, bytes(b, c))

HOMING_CALL2(stat, text(a), object(b))
HOMING_CALL2(stat64, text(a), object(b))
HOMING_CALL2(lstat, text(a), object(b))
HOMING_CALL2(lstat64, text(a), object(b))
HOMING_CALL2(fstat, object(b))
HOMING_CALL2(fstat64, object(b))
HOMING_CALL4(fstatat, text(b), object(c))
HOMING_CALL4(fstatat64, text(b), object(c))
HOMING_CALL3(__xstat, text(b), object(c))
HOMING_CALL3(__xstat64, text(b), object(c))
HOMING_CALL3(__lxstat, text(b), object(c))
HOMING_CALL3(__lxstat64, text(b), object(c))
HOMING_CALL3(__fxstat, object(c))
HOMING_CALL3(__fxstat64, object(c))
HOMING_CALL5(__fxstatat, text(c), object(d))
HOMING_CALL5(__fxstatat64, text(c), object(d))
HOMING_CALL5(statx, text(b), object(e))
HOMING_CALL2(statfs, text(a), object(b))
HOMING_CALL2(statfs64, text(a), object(b))
HOMING_CALL2(__statfs, text(a), object(b))
HOMING_CALL2(fstatfs, object(b))
HOMING_CALL2(fstatfs64, object(b))
HOMING_CALL2(statvfs, text(a), object(b))
HOMING_CALL2(statvfs64, text(a), object(b))
HOMING_CALL2(fstatvfs, object(b))
HOMING_CALL2(fstatvfs64, object(b))
#if __GLIBC_PREREQ(2, 30)
HOMING_CALL3(getdents64, bytes(b, c))
#endif
HOMING_CALL4(getdirentries, bytes(b, c), object(d))
HOMING_CALL4(getdirentries64, bytes(b, c), object(d))

HOMING_CALL4(getxattr, text(a), text(b), bytes(c, d))
HOMING_CALL4(lgetxattr, text(a), text(b), bytes(c, d))
HOMING_CALL4(fgetxattr, text(b), bytes(c, d))
HOMING_CALL5(setxattr, text(a), text(b), bytes(c, d))
HOMING_CALL5(lsetxattr, text(a), text(b), bytes(c, d))
HOMING_CALL5(fsetxattr, text(b), bytes(c, d))
HOMING_CALL3(listxattr, text(a), bytes(b, c))
HOMING_CALL3(llistxattr, text(a), bytes(b, c))
HOMING_CALL3(flistxattr, bytes(b, c))
HOMING_CALL2(removexattr, text(a), text(b))
HOMING_CALL2(lremovexattr, text(a), text(b))
HOMING_CALL2(fremovexattr, text(b))

HOMING_CALL3(inotify_add_watch, text(b))
HOMING_CALL5(fanotify_mark, text(e))
HOMING_CALL5(name_to_handle_at, text(b), structure(c), object(d))
HOMING_CALL3(open_by_handle_at, structure(b))

HOMING_CALL5(mount, text(a), text(b), text(c), structure(e))
HOMING_CALL1(umount, text(a))
HOMING_CALL2(umount2, text(a))
HOMING_CALL2(pivot_root, text(a), text(b))
HOMING_CALL2(swapon, text(a))
HOMING_CALL1(swapoff, text(a))
HOMING_CALL1(acct, text(a))
HOMING_CALL4(quotactl, text(b), structure(d))
#if __GLIBC_PREREQ(2, 36)
HOMING_CALL2(fsopen, text(a))
HOMING_CALL5(fsconfig, text(c), structure(d))
HOMING_CALL3(fspick, text(b))
HOMING_CALL3(open_tree, text(b))
HOMING_CALL5(move_mount, text(b), text(d))
HOMING_CALL5(mount_setattr, text(b), bytes(d, e))
#endif

HOMING_CALL5(openpty, objects(a, 1), objects(b, 1), object(e))
HOMING_CALL4(forkpty, object(d))

// The attributes are there only where a queue may be made.
HOMING_HOOK(mq_open, (const char* name, int flags, ...)) {
    using namespace homing::hooks;
    static constinit Real<Signature<&::mq_open>::Function> real{"mq_open"};
    mode_t mode = 0;
    mq_attr* attributes = nullptr;
    if (flags & O_CREAT) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        attributes = va_arg(list, mq_attr*);
        va_end(list);
    }
    if (!real.is_ready()) return early(real, name, flags, mode, attributes);
    homing::InFlight call;
    begin(call, text(name), object(attributes));
    return finish(call, real, name, flags, mode, attributes);
}
extern "C" mqd_t __mq_open_2(const char*, int);
HOMING_CALL2(__mq_open_2, text(a))
HOMING_CALL1(mq_unlink, text(a))
