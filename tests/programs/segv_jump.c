// Probing memory by sigsetjmp and siglongjmp out of the SIGSEGV handler, in serial code and in every thread
// of a region.
//
// mask (sigsetjmp restores the mask) | nomask (the handler unblocks by itself) | stack (on an alternate
// stack)
#include "core.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static __thread sigjmp_buf back;
static const char* how;
static char stack[65536];

static void on_fault(int number) {
    if (strcmp(how, "nomask") == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    siglongjmp(back, 1);
}

static int readable(const volatile uint64_t* address) {
    if (sigsetjmp(back, strcmp(how, "nomask") != 0)) return 0;
    (void)*address;
    return 1;
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "mask";
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_fault;
    if (strcmp(how, "stack") == 0) {
        stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 0};
        sigaltstack(&mine, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGSEGV, &action, NULL);
    uint64_t* hole = (uint64_t*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    core_start();
    int bad = 0, good = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        bad += !readable(hole);
        good += readable(core_b + i * 997);
#pragma omp parallel num_threads(3) reduction(+ : bad, good)
        {
            bad += !readable(hole) + !readable((uint64_t*)8);
            for (long at = omp_get_thread_num(); at < CORE_WORDS; at += 4096 * 3)
                good += readable(core_a + at) + readable(core_c + at);
        }
    }
    printf("bad %d good %d\n", bad, good);
    return core_end();
}
