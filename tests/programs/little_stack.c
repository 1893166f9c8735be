// The thread that meets every region has little stack: the least that a thread may have, or a coroutine's
// without a guard page, of which everything below must stay as it was.
#include "core.h"
#include <limits.h>
#include <pthread.h>
#include <ucontext.h>

enum { below_bytes = 1 << 20, stack_bytes = 12 << 10 };
static _Alignas(4096) unsigned char memory[below_bytes + stack_bytes];
static ucontext_t outside, inside;

static void work(void) { core_run(CORE_ITERATIONS); }

static void* in_thread(void* unused) {
    work();
    return unused;
}

int main(int argc, char** argv) {
    core_start();
    if (argc > 1 && strcmp(argv[1], "thread") == 0) {
        pthread_attr_t little;
        pthread_t thread;
        expect(pthread_attr_init(&little) == 0, "attributes");
        expect(pthread_attr_setstacksize(&little, PTHREAD_STACK_MIN) == 0, "the least stack");
        expect(pthread_create(&thread, &little, in_thread, NULL) == 0, "a thread");
        pthread_join(thread, NULL);
    } else {
        memset(memory, 0x5a, sizeof memory);
        expect(getcontext(&inside) == 0, "getcontext");
        inside.uc_stack.ss_sp = memory + below_bytes;
        inside.uc_stack.ss_size = stack_bytes;
        inside.uc_link = &outside;
        makecontext(&inside, work, 0);
        expect(swapcontext(&outside, &inside) == 0, "swapcontext");
        size_t written = 0;
        for (size_t i = 0; i < below_bytes; ++i)
            written += memory[i] != 0x5a;
        expect(written == 0, "memory below the stack is as it was");
    }
    return core_end();
}
