// A program that gives up rights in the middle: from then on the calls that homing needs are refused.
//
// eperm | enosys (a seccomp filter refuses perf_event_open, move_pages, mbind and their kin) | mprotect (also
// every mprotect that takes access away) | kill | kill-prctl (it ends the process, for what the program
// itself does not need either) | one (one thread of the team refuses itself every mprotect, in a region) |
// dumpable | chroot | chdir | user (another user id) | nonewprivs
#include "core.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void forbid(int error, int protection_too) {
    static const int numbers[] = {SYS_perf_event_open, SYS_move_pages, SYS_mbind,       SYS_get_mempolicy,
                                  SYS_set_mempolicy,   SYS_bpf,        SYS_userfaultfd, SYS_process_vm_readv};
    enum { kinds = sizeof numbers / sizeof *numbers };
    struct sock_filter filter[2 * kinds + 8];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < kinds; ++i) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    if (protection_too) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3);
        filter[n++] =
            (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_NONE, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    // for all threads, so that those of OpenMP are under it too
    expect(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
           "seccomp");
}

// What the rest of this program does without. By prctl: for this thread only.
static void end_at(int by_prctl) {
    static const int numbers[] = {
        SYS_perf_event_open, SYS_move_pages, SYS_mbind,  SYS_get_mempolicy, SYS_set_mempolicy, SYS_openat,
        SYS_getdents64,      SYS_prlimit64,  SYS_getpid, SYS_sigaltstack,   SYS_membarrier,    SYS_getcpu,
        SYS_rt_sigaction,    SYS_fallocate,  SYS_statx,  SYS_getcwd,        SYS_unlinkat,      SYS_pread64};
    enum { kinds = sizeof numbers / sizeof *numbers };
    struct sock_filter filter[2 * kinds + 2];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < kinds; ++i) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    if (by_prctl)
        expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "prctl");
    else
        expect(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
               "seccomp");
}

static void forbid_one_thread(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
#pragma omp parallel
    {
        if (omp_get_thread_num() == 1) {
            expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
            expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "prctl");
        }
        core_read_share();
    }
}

static void give_up(const char* how) {
    if (strcmp(how, "eperm") == 0)
        forbid(EPERM, 0);
    else if (strcmp(how, "enosys") == 0)
        forbid(ENOSYS, 0);
    else if (strcmp(how, "mprotect") == 0)
        forbid(EACCES, 1);
    else if (strcmp(how, "one") == 0)
        forbid_one_thread();
    else if (strncmp(how, "kill", 4) == 0)
        end_at(strcmp(how, "kill-prctl") == 0);
    else if (strcmp(how, "dumpable") == 0)
        expect(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "dumpable");
    else if (strcmp(how, "chroot") == 0)
        (void)!chroot("/dev"); // refused to an ordinary user, which is as good
    else if (strcmp(how, "chdir") == 0)
        expect(chdir("/") == 0, "chdir");
    else if (strcmp(how, "user") == 0)
        (void)!setuid(65534);
    else
        expect(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "eperm";
    const int early = count > 2 && strcmp(arguments[2], "early") == 0;
    if (early) give_up(how);
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        char* block = (char*)malloc(200000);
        memset(block, 1, 200000);
        free(block);
        if (!early && i == CORE_ITERATIONS / 3) give_up(how);
    }
    return core_end();
}
