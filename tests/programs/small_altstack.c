// An alternate stack with room for one signal and little more, on which a handler reads an array. Memory
// below the stack stays as it was.
#include "core.h"
#include <signal.h>
#include <sys/auxv.h>

enum { below_bytes = 1 << 16, most_bytes = 1 << 17 };
static _Alignas(4096) unsigned char memory[most_bytes];
static volatile uint64_t seen;

static void on_signal(int number) {
    for (long i = 0; i < CORE_WORDS; i += 512)
        seen += core_a[i] & (uint64_t)number;
}

int main(void) {
    core_start();
    memset(memory, 0x5a, sizeof memory);
    stack_t small = {.ss_sp = memory + below_bytes, .ss_size = getauxval(AT_MINSIGSTKSZ) + 1024};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    expect(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i == CORE_ITERATIONS / 2) expect(sigaltstack(&small, NULL) == 0, "sigaltstack");
        if (i >= CORE_ITERATIONS / 2) raise(SIGUSR1);
    }
    long written = 0;
    for (long i = 0; i < below_bytes; ++i)
        written += memory[i] != 0x5a;
    expect(written == 0, "memory below the stack is as it was");
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
