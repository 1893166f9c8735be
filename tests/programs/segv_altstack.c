// Alternate signal stacks: of the program's own in static memory, in a large heap block that homing watches,
// and one in each thread; with faults on them inside regions. Handlers of other signals run on them too.
//
// static | watched | threads | none (the handlers ask for one, and no thread has any: they run where the
// thread runs)
#include "core.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { stack_bytes = 65536, threads = 3 };
static char static_stacks[threads][stack_bytes];
static char* stacks; // threads * stack_bytes
static char* page[threads];
static int faults[threads], users[threads];

static int without;
static char* interrupted[threads];

static int on_my_stack(int thread) {
    char here;
    if (without) return &here < interrupted[thread] && &here > interrupted[thread] - 65536;
    return &here >= stacks + thread * stack_bytes && &here < stacks + (thread + 1) * stack_bytes;
}

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)context;
    const int thread = omp_get_thread_num();
    if (number == SIGUSR1) {
        ++users[thread];
        core_a[thread * 1000] += 0; // a touch from the handler
    } else {
        if ((char*)info->si_addr < page[thread] || (char*)info->si_addr >= page[thread] + 4096) _exit(99);
        ++faults[thread];
        mprotect(page[thread], 4096, PROT_READ | PROT_WRITE);
    }
    if (!on_my_stack(thread)) _exit(96);
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "static";
    without = strcmp(how, "none") == 0;
    const int each = strcmp(how, "threads") == 0 || without;
    char* block = NULL;
    const size_t block_bytes = 2 << 20;
    if (strcmp(how, "static") == 0) {
        stacks = &static_stacks[0][0];
    } else {
        block = (char*)malloc(block_bytes);
        memset(block, 1, block_bytes);
        stacks = block + (block_bytes / 2 & ~4095UL);
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    core_start();
    for (int t = 0; t < threads; ++t)
        page[t] = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#pragma omp parallel num_threads(threads)
    {
        const int thread = omp_get_thread_num();
        stack_t mine = {.ss_sp = stacks + thread * stack_bytes, .ss_size = stack_bytes, .ss_flags = 0};
        if (without)
            expect(sigaltstack(NULL, &mine) == 0 && mine.ss_flags == SS_DISABLE, "none");
        else if (each || thread == 0)
            expect(sigaltstack(&mine, NULL) == 0, "sigaltstack");
    }
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(threads) reduction(+ : seen)
        {
            const int thread = omp_get_thread_num();
            char here;
            interrupted[thread] = &here;
            if (each || thread == 0) {
                mprotect(page[thread], 4096, PROT_NONE);
                ((volatile char*)page[thread])[i] = 1;
                raise(SIGUSR1);
            }
            seen += core_read_share();
            if (block) // the rest of the block is ordinary data
                for (size_t at = (size_t)thread * 4096; at < block_bytes / 2 - 4096; at += threads * 4096)
                    block[at] += 1;
        }
    }
    if (block)
        for (size_t at = 0; at < block_bytes / 2 - 4096; at += 4096)
            seen += (uint64_t)(unsigned char)block[at];
#pragma omp parallel num_threads(threads)
    if (each || omp_get_thread_num() == 0) {
        stack_t now, off = {.ss_flags = SS_DISABLE};
        struct sigaction asks;
        expect(sigaction(SIGUSR1, NULL, &asks) == 0 && asks.sa_flags & SA_ONSTACK, "still asked for");
        if (without)
            expect(sigaltstack(&off, &now) == 0 && now.ss_flags == SS_DISABLE, "still none");
        else {
            expect(sigaltstack(NULL, &now) == 0 && now.ss_sp == stacks + omp_get_thread_num() * stack_bytes,
                   "still mine");
            expect(sigaltstack(&off, &now) == 0 && now.ss_size == stack_bytes, "taken away again");
        }
    }
    for (int t = 0; t < threads; ++t)
        printf("faults %d users %d\n", faults[t], users[t]);
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
