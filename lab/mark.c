/* homing-mark: the guest's side of the counter. Linked statically where possible, so that it costs few
 * counted accesses.
 *
 *   homing-mark run [PHASE] -- COMMAND ARGS   counts COMMAND as PHASE (1 unless given) until it marks a phase
 * itself or ends homing-mark phase N                       phase N begins homing-mark dump the plugin writes
 * its counts and begins again homing-mark self-test                     stores to one page on each node,
 * which the plugin checks against its own view
 *
 * Exit status: the command's (128 + n if signal n ended it, 126/127 if it could not be started); 125 for our
 * own failures. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"

enum { PAGE = 4096, FAILURE = 125, MAX_NODES = 16, MAX_CPUS = 1024 };
enum { POLICY_BIND = 2 }; /* MPOL_BIND of linux/mempolicy.h, which needs no libnuma headers here */

static void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char* format, ...) {
    va_list arguments;
    fputs("homing-mark: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(FAILURE);
}

static volatile long* map_page(unsigned long address) {
    void* page = mmap((void*)address, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != (void*)address) fail("cannot map the mark page at %#lx: %s", address, strerror(errno));
    return page;
}

static void begin_phase(int phase) {
    static volatile long* marks;
    if (!marks) marks = map_page(HOMING_MARK_PAGE);
    marks[phase] = 1;
}

static int parse_phase(const char* text) {
    char* end;
    long phase = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || phase < 0 || phase >= HOMING_PHASES)
        fail("phase '%s' is not a number from 0 to %d", text, HOMING_PHASES - 1);
    return (int)phase;
}

static volatile pid_t counted;
static void pass_on(int number) { kill(counted, number); }

/* What is sent to us is meant for the command: what a terminal sends to all has reached it, the rest is
 * passed on. The caller holds all signals back. */
static void stand_in_front_of(pid_t child) {
    static const int to_all[] = {SIGINT, SIGQUIT}, to_us[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof to_all / sizeof *to_all; i++)
        sigaction(to_all[i], &action, NULL);
    counted = child;
    action.sa_handler = pass_on;
    for (size_t i = 0; i < sizeof to_us / sizeof *to_us; i++)
        sigaction(to_us[i], &action, NULL);
}

static int run(int phase, char** command) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child < 0) fail("cannot fork: %s", strerror(errno));
    if (child > 0) stand_in_front_of(child);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child == 0) {
        begin_phase(phase);
        execvp(command[0], command);
        begin_phase(0);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) fail("cannot wait for %s: %s", command[0], strerror(errno));
    begin_phase(0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The first CPU of a node, or -1: the node has none or does not exist. */
static int first_cpu(int node) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE* file = fopen(path, "r");
    int cpu = -1;
    if (file) {
        if (fscanf(file, "%d", &cpu) != 1) cpu = -1;
        fclose(file);
    }
    return cpu;
}

static void self_test_node(int node, int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        fail("self-test: cannot run on CPU %d: %s", cpu, strerror(errno));
    unsigned long address = HOMING_SELF_TEST_PAGE + (unsigned long)node * PAGE;
    volatile long* page = map_page(address);
    unsigned long mask = 1ul << node;
    if (syscall(SYS_mbind, address, PAGE, POLICY_BIND, &mask, 8 * sizeof mask, 0))
        fail("self-test: cannot bind a page to node %d: %s", node, strerror(errno));
    page[0] = 1;
    void* pages[1] = {(void*)address};
    int lies_on = -1;
    if (syscall(SYS_move_pages, 0, 1ul, pages, NULL, &lies_on, 0) || lies_on != node)
        fail("self-test: the page bound to node %d lies on node %d", node, lies_on);
}

static int self_test(void) {
    int nodes = 0;
    for (int node = 0; node < MAX_NODES; node++) {
        int cpu = first_cpu(node);
        if (cpu < 0) continue;
        self_test_node(node, cpu);
        nodes++;
    }
    if (nodes == 0) fail("self-test: no node with CPUs in /sys/devices/system/node");
    return 0;
}

int main(int argc, char** argv) {
    if (argc >= 2 && strcmp(argv[1], "run") == 0) {
        int next = 2, phase = 1;
        if (next < argc && strcmp(argv[next], "--") != 0) phase = parse_phase(argv[next++]);
        if (next < argc && strcmp(argv[next], "--") == 0) next++;
        if (next >= argc) fail("run needs a command");
        return run(phase, argv + next);
    }
    if (argc == 3 && strcmp(argv[1], "phase") == 0) {
        begin_phase(parse_phase(argv[2]));
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "dump") == 0) {
        map_page(HOMING_CONTROL_PAGE)[0] = 1;
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "self-test") == 0) return self_test();
    fprintf(stderr, "usage: homing-mark run [PHASE] -- COMMAND ARGS | phase N | dump | self-test\n");
    return FAILURE;
}
