// What a program asks of the kernel about its memory, by number as libraries do: each answer must be the
// described machine's. Prints a line where one is not, and "done".
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { pages = 64, page = 4096, nodes = 4 };

static char* fresh(void) {
    return mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void touch(char* memory) {
    for (int i = 0; i < pages; ++i)
        memory[i * page] = 1;
}

static int home(char* at) {
    void* list[1] = {at};
    int status[1] = {-1};
    if (syscall(SYS_move_pages, 0, 1ul, list, NULL, status, 0) != 0) return -1000;
    return status[0];
}

static void expect(int is, int wanted, const char* what) {
    if (is != wanted) printf("%s: %d instead of %d\n", what, is, wanted);
}

int main(void) {
    unsigned long mask = 1ul << 2;
    char* memory = fresh();
    expect(home(memory), -ENOENT, "an untouched page");
    expect((int)syscall(SYS_mbind, memory, (long)pages * page, MPOL_BIND, &mask, 65ul, 0), 0, "mbind");
    touch(memory);
    expect(home(memory + 5 * page), 2, "a page bound to node 2");
    int mode = -1;
    unsigned long told = 0;
    syscall(SYS_get_mempolicy, &mode, &told, 65ul, memory, MPOL_F_ADDR);
    expect(mode, MPOL_BIND, "the mode of its policy");
    expect((int)told, 1 << 2, "the nodes of its policy");
    syscall(SYS_get_mempolicy, &mode, NULL, 0ul, memory, MPOL_F_ADDR | MPOL_F_NODE);
    expect(mode, 2, "its node, of get_mempolicy");

    mask = 1ul << 1;
    expect((int)syscall(SYS_mbind, memory, (long)pages * page, MPOL_BIND, &mask, 65ul, MPOL_MF_MOVE), 0,
           "mbind");
    expect(home(memory + 7 * page), 1, "a page that mbind moved");

    mask = 0xf;
    char* spread = fresh();
    syscall(SYS_mbind, spread, (long)pages * page, MPOL_INTERLEAVE, &mask, 65ul, 0);
    touch(spread);
    int count[nodes] = {0};
    for (int i = 0; i < pages; ++i)
        ++count[home(spread + i * page) & 3];
    for (int node = 0; node < nodes; ++node)
        expect(count[node], pages / nodes, "pages of an interleaved range");

    mask = 1ul << 3;
    expect((int)syscall(SYS_set_mempolicy, MPOL_PREFERRED, &mask, 65ul), 0, "set_mempolicy");
    char* preferred = fresh();
    touch(preferred);
    expect(home(preferred), 3, "a page of a task with a policy");
    syscall(SYS_get_mempolicy, &mode, &told, 65ul, NULL, 0);
    expect(mode, MPOL_PREFERRED, "the mode of the task's policy");
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);

    void* list[2] = {preferred, preferred + page};
    int to[2] = {0, 2}, status[2] = {-1, -1};
    expect((int)syscall(SYS_move_pages, 0, 2ul, list, to, status, MPOL_MF_MOVE), 0, "move_pages");
    expect(status[0] * 10 + status[1], 2, "where move_pages sent two pages");
    to[0] = 9;
    expect((int)syscall(SYS_move_pages, 0, 1ul, list, to, status, MPOL_MF_MOVE), -1,
           "a node that is not there");
    expect(errno, ENODEV, "its errno");
    mask = 1ul << 9;
    expect((int)syscall(SYS_mbind, memory, (long)page, MPOL_BIND, &mask, 65ul, 0), -1, "mbind to it");
    expect(errno, EINVAL, "its errno");
    syscall(SYS_get_mempolicy, NULL, &told, 65ul, NULL, MPOL_F_MEMS_ALLOWED);
    expect((int)told, 0xf, "the nodes that there are");

    // What the kernel cannot read or write is an error, not a signal.
    expect((int)syscall(SYS_mbind, memory, (long)page, MPOL_BIND, (void*)8, 65ul, 0), -1, "a mask nowhere");
    expect(errno, EFAULT, "its errno");
    expect((int)syscall(SYS_get_mempolicy, (void*)8, NULL, 0ul, NULL, 0), -1, "a mode nowhere");
    expect((int)syscall(SYS_move_pages, 0, 1ul, (void*)8, NULL, status, 0), -1, "pages nowhere");
    expect((int)syscall(SYS_getcpu, (void*)8, NULL, NULL), -1, "a CPU nowhere");
    expect(errno, EFAULT, "its errno");
    unsigned long masks[3] = {7, 7, 7};
    syscall(SYS_get_mempolicy, NULL, masks, 128ul, NULL, MPOL_F_MEMS_ALLOWED);
    expect((int)masks[0], 0xf, "the first word of a longer mask");
    expect((int)masks[1] * 10 + (int)masks[2], 7, "its other words, and what is behind it");

#pragma omp parallel num_threads(nodes)
    {
        unsigned cpu = 99, node = 99;
        getcpu(&cpu, &node);
        const int self = omp_get_thread_num();
#pragma omp critical
        {
            expect((int)node, self, "the node of a thread, of getcpu");
            expect((int)cpu, sched_getcpu(), "its CPU");
            syscall(SYS_getcpu, &cpu, &node, NULL);
            expect((int)node, self, "the same by number");
        }
    }
    puts("done");
    return 0;
}
