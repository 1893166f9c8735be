// Calls in which the kernel tells of files and file systems, or is told (calls.h).
#include "calls.h"
#include <dirent.h>
#include <pty.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/xattr.h>

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
int __statfs(const char*, struct statfs*);
int pivot_root(const char*, const char*);
#ifdef __aarch64__
enum { stat_version = 0 };
#else
enum { stat_version = 1 };
#endif
CALL(stat, stat(P("/"), OUT(struct stat)))
CALL(stat64, stat64(P("/"), OUT(struct stat64)))
CALL(lstat, lstat(P("/"), OUT(struct stat)))
CALL(lstat64, lstat64(P("/"), OUT(struct stat64)))
CALL(fstat, fstat(file, OUT(struct stat)))
CALL(fstat64, fstat64(file, OUT(struct stat64)))
CALL(fstatat, fstatat(AT_FDCWD, P("/"), OUT(struct stat), 0))
CALL(fstatat64, fstatat64(AT_FDCWD, P("/"), OUT(struct stat64), 0))
CALL(__xstat, __xstat(stat_version, P("/"), OUT(struct stat)))
CALL(__xstat64, __xstat64(stat_version, P("/"), OUT(struct stat64)))
CALL(__lxstat, __lxstat(stat_version, P("/"), OUT(struct stat)))
CALL(__lxstat64, __lxstat64(stat_version, P("/"), OUT(struct stat64)))
CALL(__fxstat, __fxstat(stat_version, file, OUT(struct stat)))
CALL(__fxstat64, __fxstat64(stat_version, file, OUT(struct stat64)))
CALL(__fxstatat, __fxstatat(stat_version, AT_FDCWD, P("/"), OUT(struct stat), 0))
CALL(__fxstatat64, __fxstatat64(stat_version, AT_FDCWD, P("/"), OUT(struct stat64), 0))
CALL(__xmknod, __xmknod(0, P(nowhere), S_IFREG | 0600, IN(dev_t, 0)))
CALL(__xmknodat, __xmknodat(0, AT_FDCWD, P(nowhere), S_IFREG | 0600, IN(dev_t, 0)))
CALL(statx, statx(AT_FDCWD, P("/"), 0, STATX_ALL, OUT(struct statx)))
CALL(statfs, statfs(P("/"), OUT(struct statfs)))
CALL(statfs64, statfs64(P("/"), OUT(struct statfs64)))
CALL(__statfs, __statfs(P("/"), OUT(struct statfs)))
CALL(fstatfs, fstatfs(file, OUT(struct statfs)))
CALL(fstatfs64, fstatfs64(file, OUT(struct statfs64)))
CALL(statvfs, statvfs(P("/"), OUT(struct statvfs)))
CALL(statvfs64, statvfs64(P("/"), OUT(struct statvfs64)))
CALL(fstatvfs, fstatvfs(file, OUT(struct statvfs)))
CALL(fstatvfs64, fstatvfs64(file, OUT(struct statvfs64)))
static int process_folder; // which has entries enough
CALL(getdents64, some(seek(process_folder, getdents64(process_folder, SPACE(much), much))))
CALL(getdirentries, some(seek(process_folder, getdirentries(process_folder, SPACE(much), much, OUT(off_t)))))
CALL(getdirentries64,
     some(seek(process_folder, getdirentries64(process_folder, SPACE(much), much, OUT(off64_t)))))
CALL(getxattr, getxattr(P("/"), P("user.none"), SPACE(100), 100))
CALL(lgetxattr, lgetxattr(P("/"), P("user.none"), SPACE(100), 100))
CALL(fgetxattr, fgetxattr(file, P("user.none"), SPACE(100), 100))
CALL(setxattr, setxattr(P(nowhere), P("user.none"), SPACE(100), 100, 0))
CALL(lsetxattr, lsetxattr(P(nowhere), P("user.none"), SPACE(100), 100, 0))
CALL(fsetxattr, fsetxattr(scratch, P("none"), SPACE(100), 100, 0))
CALL(listxattr, listxattr(P("/"), SPACE(1000), 1000))
CALL(llistxattr, llistxattr(P("/"), SPACE(1000), 1000))
CALL(flistxattr, flistxattr(file, SPACE(1000), 1000))
CALL(removexattr, removexattr(P(nowhere), P("user.none")))
CALL(lremovexattr, lremovexattr(P(nowhere), P("user.none")))
CALL(fremovexattr, fremovexattr(scratch, P("user.none")))
CALLS(inotify_add_watch, const int watch = inotify_init();
      const int result = inotify_add_watch(watch, P("/"), IN_MOVED_TO); closed(watch); return some(result);)
CALLS(fanotify_mark, const int group = fanotify_init(0, O_RDONLY);
      const int result = fanotify_mark(group, FAN_MARK_ADD, FAN_CLOSE, AT_FDCWD, P(nowhere)); closed(group);
      return result;)
CALLS(
    name_to_handle_at,
    struct file_handle* const handle = (struct file_handle*)SPACE(sizeof(struct file_handle) + MAX_HANDLE_SZ);
    if (preparing) {
        const unsigned bytes = MAX_HANDLE_SZ;
        memcpy(handle, &bytes, sizeof bytes);
        memcpy(initial[arguments - 1], &bytes, sizeof bytes);
    } return name_to_handle_at(AT_FDCWD, P("/tmp"), handle, OUT(int), 0);)
CALL(open_by_handle_at,
     closed(open_by_handle_at(AT_FDCWD, (struct file_handle*)place((const int[4]){8, 1}, 16), O_RDONLY)))
CALL(mount, mount(P("none"), P(nowhere), P("none"), 0, P("")))
CALL(umount, umount(P(nowhere)))
CALL(umount2, umount2(P(nowhere), 0))
CALL(pivot_root, pivot_root(P(nowhere), P(nowhere)))
CALL(swapon, swapon(P(nowhere), 0))
CALL(swapoff, swapoff(P(nowhere)))
CALL(acct, acct(P(nowhere)))
CALL(quotactl, quotactl(QCMD(Q_GETINFO, USRQUOTA), P(nowhere), 0, SPACE(200)))
#if __GLIBC_PREREQ(2, 36)
CALL(fsopen, closed(fsopen(P("none"), 0)))
CALL(fsconfig, fsconfig(file, FSCONFIG_SET_STRING, P("none"), P("none"), 0))
CALL(fspick, closed(fspick(AT_FDCWD, P(nowhere), 0)))
CALL(open_tree, closed(open_tree(AT_FDCWD, P(nowhere), 0)))
CALL(move_mount, move_mount(AT_FDCWD, P(nowhere), AT_FDCWD, P(nowhere), 0))
CALL(mount_setattr, mount_setattr(AT_FDCWD, P(nowhere), 0, SPACE(32), 32))
#endif
CALLS(
    openpty, int* const master = OUT(int); int* const other = OUT(int);
    const int result = openpty(master, other, NULL, NULL, IN(struct winsize, .ws_row = 24, .ws_col = 80));
    if (result == 0) {
        close(*master);
        close(*other);
    } return result;)
CALL(mq_open,
     mq_open(P("/no/queue"), O_RDWR | O_CREAT, 0600, IN(struct mq_attr, .mq_maxmsg = 2, .mq_msgsize = 8)))
mqd_t __mq_open_2(const char*, int);
CALL(__mq_open_2, __mq_open_2(P("/no-queue-here"), O_RDWR))
CALL(mq_unlink, mq_unlink(P("/no-queue-here")))

int main(int count, char** words) {
    begin_calls();
    process_folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    return run_calls(count, words);
}
