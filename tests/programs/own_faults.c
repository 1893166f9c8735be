// A program that takes many faults of its own, as garbage collectors, write barriers and checkpointers do:
// pages that it protects are written inside regions and between them, and its handler opens them. It must see
// each of them once, and no others.
//
// plain | nodefer | jump (siglongjmp out of the handler) | serial (between the regions only) | array (the
// pages are a part of an array that the regions work on) | masked (by threads, and in a handler, that block
// all signals but faults from the beginning on)
#include "core.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { threads = 3, page_bytes = 4096 };
static int rounds = 8;
static char* pages; // one a thread
static volatile long handled[threads];
static sigjmp_buf back[threads];
static int jumps;

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    const long page = ((char*)info->si_addr - pages) / page_bytes;
    if ((char*)info->si_addr < pages || page >= threads) _exit(99);
    handled[page] = handled[page] + 1;
    if (mprotect(pages + page * page_bytes, page_bytes, PROT_READ | PROT_WRITE) != 0) _exit(98);
    if (jumps) siglongjmp(back[page], 1);
}

static void fault(int thread) {
    volatile char* page = pages + thread * page_bytes;
    for (volatile int round = 0; round < rounds; ++round) {
        mprotect((char*)page, page_bytes, PROT_READ);
        if (!jumps || sigsetjmp(back[thread], 1) == 0) page[8] = (char)round;
    }
}

static void fault_in_handler(int number) { fault(number - SIGRTMIN); }

static sigset_t all_but_faults(void) {
    sigset_t set;
    sigfillset(&set);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (int i = 0; i < 4; ++i)
        sigdelset(&set, faults[i]);
    return set;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "plain";
    if (count > 2) rounds = atoi(arguments[2]);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    jumps = strcmp(how, "jump") == 0;
    if (strcmp(how, "nodefer") == 0) action.sa_flags |= SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    const int masked = strcmp(how, "masked") == 0;
    if (masked) {
        struct sigaction other = action;
        other.sa_handler = fault_in_handler;
        other.sa_flags = 0;
        other.sa_mask = all_but_faults();
        for (int t = 0; t < threads; ++t)
            sigaction(SIGRTMIN + t, &other, NULL);
        pthread_sigmask(SIG_SETMASK, &other.sa_mask, NULL);
    }
    core_start();
    if (strcmp(how, "array") == 0) {
        pages = (char*)aligned_alloc(page_bytes, CORE_WORDS * sizeof *core_a);
        memcpy(pages, core_a, CORE_WORDS * sizeof *core_a);
        core_a = (uint64_t*)(void*)pages;
    } else {
        pages = (char*)mmap(NULL, threads * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            -1, 0);
    }
    fprintf(stderr, "pages %p\n", (void*)pages);
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "serial") != 0) {
#pragma omp parallel num_threads(threads) reduction(+ : seen)
            {
                const int me = omp_get_thread_num();
                fault(me);
                if (masked && me != 0) {
                    sigset_t one;
                    sigemptyset(&one);
                    sigaddset(&one, SIGRTMIN + me);
                    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
                    raise(SIGRTMIN + me);
                }
#pragma omp barrier
                seen += core_read_share();
            }
        }
        fault(0);
    }
    for (int t = 0; t < threads; ++t)
        printf("handled %ld\n", handled[t]);
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
