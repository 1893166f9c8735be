/* homing-share: starts a file server (virtiofsd) that can write to one folder of the host, or to nothing.
 *
 *   homing-share read-only|writable FOLDER VIEW -- COMMAND ARGS
 *
 * The guest's root is whoever runs the lab, root often, and may ask the file server for anything. So what it
 * must not do is made impossible here, before the server starts, in a mount namespace of its own:
 * - FOLDER appears at VIEW, an empty folder; everything else in the namespace is read-only. With "read-only",
 *   VIEW is, too, and the host's proc, sys, dev and run in it are empty: the guest has its own.
 * - No device opens through VIEW (nodev). A seccomp filter refuses what would leave a device node, a set-uid
 *   or set-gid file, or a file with capabilities on the host, and every change of the mounts.
 * An ordinary user becomes root of a user namespace for it, with the user's own rights.
 *
 * Exit status: the command's; 125 with one line on stderr where the view cannot be made. Never less isolation
 * than this. Needs Linux 5.12 (mount_setattr). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILURE = 125 };
/* Of sys/mount.h, which cannot be included beside linux/mount.h. */
extern int mount(const char*, const char*, const char*, unsigned long, const void*);
enum { RDONLY = 1, NOSUID = 2, NODEV = 4, NOEXEC = 8, RECURSIVE = 1 << 14, PRIVATE = 1 << 18 };
#if defined(__x86_64__)
#define HOST AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HOST AUDIT_ARCH_AARCH64
#else
#error "homing-share: which AUDIT_ARCH_ is this?"
#endif
/* Newer than some libc's headers; the numbers are those of all architectures. */
enum { CALL_FCHMODAT2 = 452, CALL_SETXATTRAT = 463, CALL_OPEN_TREE_ATTR = 467 };

static void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(FAILURE);
}

static void write_file(const char* path, const char* format, unsigned number) {
    FILE* file = fopen(path, "w");
    if (!file) fail("cannot write %s: %s", path, strerror(errno));
    fprintf(file, format, number);
    if (fclose(file)) fail("cannot write %s: %s", path, strerror(errno));
}

/* A mount namespace whose changes nobody else sees; for an ordinary user in a user namespace, as its root. */
static void leave_the_hosts_mounts(void) {
    const unsigned user = geteuid(), group = getegid();
    if (user != 0) {
        if (unshare(CLONE_NEWUSER)) fail("this user may not make user namespaces: %s", strerror(errno));
        write_file("/proc/self/setgroups", "deny", 0);
        write_file("/proc/self/uid_map", "0 %u 1", user);
        write_file("/proc/self/gid_map", "0 %u 1", group);
    }
    if (unshare(CLONE_NEWNS)) fail("no mount namespace can be made: %s", strerror(errno));
    if (mount(NULL, "/", NULL, RECURSIVE | PRIVATE, NULL))
        fail("the mounts cannot be made private: %s", strerror(errno));
}

static void set_attributes(int tree, const char* path, unsigned flags, unsigned long long attributes) {
    struct mount_attr wanted = {.attr_set = attributes};
    if (syscall(SYS_mount_setattr, tree, path, flags | AT_RECURSIVE, &wanted, sizeof wanted))
        fail("mounts cannot be made read-only here: %s%s", strerror(errno),
             errno == ENOSYS ? " (Linux 5.12 is needed)" : "");
}

static void cover(const char* view, const char* name) {
    char path[4096];
    struct stat there;
    snprintf(path, sizeof path, "%s/%s", view, name);
    if (lstat(path, &there) || !S_ISDIR(there.st_mode)) return;
    if (mount("none", path, "tmpfs", RDONLY | NOSUID | NODEV | NOEXEC, "size=4k"))
        fail("the host's /%s cannot be kept from the guest: %s", name, strerror(errno));
}

static void make_view(const char* folder, const char* view, int writable) {
    const unsigned long long always = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
    /* A copy of the folder's mounts as they are: what the host mounts read-only stays so. */
    const int tree =
        (int)syscall(SYS_open_tree, AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) fail("%s cannot be bound: %s", folder, strerror(errno));
    set_attributes(tree, "", AT_EMPTY_PATH, writable ? always : always | MOUNT_ATTR_RDONLY);
    set_attributes(AT_FDCWD, "/", 0, MOUNT_ATTR_RDONLY);
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, view, MOVE_MOUNT_F_EMPTY_PATH))
        fail("%s cannot be bound to %s: %s", folder, view, strerror(errno));
    close(tree);
    if (writable) return;
    static const char* const own[] = {"proc", "sys", "dev", "run"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        cover(view, own[i]);
}

/* The filter. Offsets are of the low words of arguments (little-endian); all that is looked at fits in them.
 */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ARGUMENT(number)                                                                                     \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, args) + 8 * (number)))
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define UNLESS_CALL(number, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, (skip))
#define REFUSE(number, error) UNLESS_CALL(number, 1), ANSWER(error)
#define UNLESS_ANY(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (skip))
/* The call may not give a file set-uid or set-gid. */
#define CHECK_MODE(number, argument)                                                                         \
    UNLESS_CALL(number, 4), ARGUMENT(argument), UNLESS_ANY(S_ISUID | S_ISGID, 1), ANSWER(EPERM), ALLOW
/* The same where the mode counts only if a file is created. */
#define CHECK_OPEN(number, flags)                                                                            \
    UNLESS_CALL(number, 6), ARGUMENT(flags), UNLESS_ANY(O_CREAT | __O_TMPFILE, 3), ARGUMENT((flags) + 1),    \
        UNLESS_ANY(S_ISUID | S_ISGID, 1), ANSWER(EPERM), ALLOW
/* Regular files, FIFOs and sockets without set-uid and set-gid; no devices. S_IFCHR is a bit of S_IFBLK and
 * of S_IFSOCK. */
#define CHECK_NODE(number, mode)                                                                             \
    UNLESS_CALL(number, 9), ARGUMENT(mode), UNLESS_ANY(S_ISUID | S_ISGID, 1), ANSWER(EPERM),                 \
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, S_IFMT), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, S_IFCHR, 1, 0),     \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, S_IFBLK, 0, 1), ANSWER(EPERM), ALLOW, ALLOW

static void forbid(void) {
    struct sock_filter filter[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HOST, 1, 0),
        ANSWER(ENOSYS),
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* the x32 interface */
        ANSWER(ENOSYS),
        /* Ways around a filter that sees numbers only: their callers know older kernels. */
        REFUSE(SYS_openat2, ENOSYS),
        REFUSE(SYS_io_uring_setup, ENOSYS),
        REFUSE(CALL_FCHMODAT2, ENOSYS),
        REFUSE(CALL_SETXATTRAT, ENOSYS),
        REFUSE(SYS_setxattr, EOPNOTSUPP),
        REFUSE(SYS_lsetxattr, EOPNOTSUPP),
        REFUSE(SYS_fsetxattr, EOPNOTSUPP),
        REFUSE(SYS_mount, EPERM),
        REFUSE(SYS_umount2, EPERM),
        REFUSE(SYS_mount_setattr, EPERM),
        REFUSE(SYS_move_mount, EPERM),
        REFUSE(SYS_open_tree, EPERM),
        REFUSE(CALL_OPEN_TREE_ATTR, EPERM),
        REFUSE(SYS_fsopen, EPERM),
        REFUSE(SYS_fspick, EPERM),
        REFUSE(SYS_pivot_root, EPERM),
        REFUSE(SYS_setns, EPERM),
        REFUSE(SYS_ptrace, EPERM),
        REFUSE(SYS_process_vm_writev, EPERM),
        REFUSE(SYS_open_by_handle_at, EPERM),
        CHECK_MODE(SYS_fchmod, 1),
        CHECK_MODE(SYS_fchmodat, 2),
        CHECK_OPEN(SYS_openat, 2),
        CHECK_NODE(SYS_mknodat, 2),
#ifdef SYS_chmod /* what newer architectures have no more */
        CHECK_MODE(SYS_chmod, 1),
        CHECK_MODE(SYS_creat, 1),
        CHECK_OPEN(SYS_open, 1),
        CHECK_NODE(SYS_mknod, 1),
#endif
        ALLOW,
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        fail("the file server's system calls cannot be limited: %s", strerror(errno));
}

int main(int argc, char** argv) {
    const int writable = argc > 1 && strcmp(argv[1], "writable") == 0;
    if (argc < 6 || (!writable && strcmp(argv[1], "read-only") != 0) || strcmp(argv[4], "--") != 0)
        fail("usage: homing-share read-only|writable FOLDER VIEW -- COMMAND ARGS");
    const pid_t parent = getppid();
    leave_the_hosts_mounts();
    /* A new user namespace has taken it back: nothing is left behind where the lab is killed. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent) fail("the lab has gone");
    make_view(argv[2], argv[3], writable);
    forbid();
    execv(argv[5], argv + 5);
    fail("%s: %s", argv[5], strerror(errno));
}
