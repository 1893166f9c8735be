/* A program whose cache misses are known in advance, for the counter's exactness test in the guest.
 *
 * One page area on each node (mbind), verified by move_pages. In phase 2 the process runs on one CPU after
 * the other and reads every line of every node's pages once a sweep. The areas of all nodes together are
 * several times the cache, so under LRU every line access misses: misses[cpu's node][home] = sweeps(cpu,
 * home) * lines, with sweeps chosen different for each pair. Phase 3 stays inside the cache: one area of a
 * few pages, swept many times from one CPU: only the first sweep misses. Phase 4 accesses nothing but calls
 * the kernel, which switches to another process and back each time. It prints the expected numbers as JSON.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    LINE = 64,
    PAGES = 1024,
    LINES = PAGES * (PAGE / LINE),
    SMALL_PAGES = 16,
    SMALL_SWEEPS = 100,
    SWITCHES = 2000,
    BIND = 2
};

static volatile long* marks;

static void die(const char* what) {
    perror(what);
    exit(1);
}

static char* pages_on(int node, size_t pages) {
    char* area = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long mask = 1ul << node;
    if (area == MAP_FAILED || madvise(area, pages * PAGE, MADV_NOHUGEPAGE) ||
        syscall(SYS_mbind, area, pages * PAGE, BIND, &mask, 8 * sizeof mask, 0))
        die("cannot bind pages");
    for (size_t i = 0; i < pages; i++) {
        void* page[1] = {area + i * PAGE};
        int lies_on = -1;
        area[i * PAGE] = 1;
        if (syscall(SYS_move_pages, 0, 1ul, page, NULL, &lies_on, 0) || lies_on != node)
            die("page not where it was bound to");
    }
    return area;
}

static void run_on(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus)) die("sched_setaffinity");
}

static void sweep(const char* area, size_t lines) {
    for (size_t i = 0; i < lines; i++)
        (void)*(volatile const char*)(area + i * LINE);
}

/* sched_yield() without one access of our own. */
static void yield(unsigned long times) {
    for (unsigned long i = times; i != 0; i--) {
        long result = SYS_sched_yield;
        __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    }
}

static void switch_to_and_fro(void) {
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) yield(ULONG_MAX); /* until it is ended */
    yield(10);
    marks[4] = 1;
    yield(SWITCHES);
    marks[0] = 1;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
    const int nodes = argc > 1 ? atoi(argv[1]) : 4;
    const int cpus_per_node = argc > 2 ? atoi(argv[2]) : 1;
    marks = mmap((void*)0x5eed00000000, PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (marks != (void*)0x5eed00000000) die("marks");
    marks[0] = 1;
    char* area[16];
    for (int node = 0; node < nodes; node++)
        area[node] = pages_on(node, PAGES);
    char* small = pages_on(nodes - 1, SMALL_PAGES);
    printf("{\"lines\": %d, \"sweeps\": [", LINES);
    for (int cpu_node = 0; cpu_node < nodes; cpu_node++) {
        run_on(cpu_node * cpus_per_node);
        printf("%s[", cpu_node ? ", " : "");
        for (int home = 0; home < nodes; home++) {
            const int sweeps = 1 + (cpu_node + 2 * home) % 5;
            printf("%s%d", home ? ", " : "", sweeps);
            marks[2] = 1;
            for (int i = 0; i < sweeps; i++)
                sweep(area[home], LINES);
            marks[0] = 1;
        }
        printf("]");
    }
    run_on(0);
    marks[3] = 1;
    for (int i = 0; i < SMALL_SWEEPS; i++)
        sweep(small, SMALL_PAGES * (PAGE / LINE));
    marks[0] = 1;
    printf("], \"small_lines\": %d, \"small_accesses\": %d, \"small_home\": %d, \"switches\": %d}\n",
           SMALL_PAGES * (PAGE / LINE), SMALL_PAGES * (PAGE / LINE) * SMALL_SWEEPS, nodes - 1, SWITCHES);
    fflush(stdout);
    switch_to_and_fro();
    return 0;
}
