// A program that forks while homing observes its array: it says which memory policy the array has at work,
// in the child, which waits meanwhile, and at work again once the child has ended.
//
//     forked MIB SECONDS       SECONDS: at most so long is waited for a policy at work
//
// prints one JSON object.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { page_bytes = 4096 };

typedef struct {
    int mode;
    unsigned long nodes;
} policy;

static char* array;
static long pages;

static policy policy_now(void) {
    policy found = {-1, 0};
    unsigned long mask[16] = {0};
    if (syscall(SYS_get_mempolicy, &found.mode, mask, 1024ul, array + pages / 2 * page_bytes, MPOL_F_ADDR) !=
        0)
        perror("get_mempolicy");
    found.nodes = mask[0];
    return found;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sweep(void) {
#pragma omp parallel for schedule(static)
    for (long page = 0; page < pages; ++page)
        for (long line = 0; line < page_bytes; line += 64)
            ++array[page * page_bytes + line];
}

/// Iterations until the array has a policy.
static policy policy_at_work(double most) {
    policy found = policy_now();
    for (const double end = seconds() + most; found.mode == MPOL_DEFAULT && seconds() < end;
         found = policy_now())
        sweep();
    return found;
}

static void print(const char* name, policy found) {
    printf("\"%s\": [%d, %lu], ", name, found.mode, found.nodes);
}

int main(int count, char** words) {
    const long bytes = count > 2 ? atol(words[1]) << 20 : 0;
    const double most = count > 2 ? atof(words[2]) : 0;
    pages = bytes / page_bytes;
    if (bytes <= 0 || posix_memalign((void**)&array, page_bytes, (size_t)bytes) != 0) return 2;
    memset(array, 1, (size_t)bytes);
    const policy before = policy_now(), at_work = policy_at_work(most);

    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
        const policy inherited = policy_now();
        char byte;
        close(down[1]);
        if (write(up[1], &inherited, sizeof inherited) != sizeof inherited || read(down[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    const policy in_parent = policy_now();
    policy in_child = {-1, 0};
    if (child < 0 || read(up[0], &in_child, sizeof in_child) != sizeof in_child) return 1;
    close(down[1]);
    int status = 0;
    waitpid(child, &status, 0);
    const policy again = policy_at_work(most);

    printf("{");
    print("before", before);
    print("at_work", at_work);
    print("in_parent", in_parent);
    print("in_child", in_child);
    print("again", again);
    printf("\"status\": %d}\n", status);
    return 0;
}
