// Contexts (makecontext) whose stacks, and the structures themselves, lie in watched arrays: the kernel reads
// and writes the signal mask in the middle of a structure, which is on another page here than its beginning.
//
// set (getcontext and setcontext) | swap (swapcontext)
#include "core.h"
#include <stddef.h>
#include <ucontext.h>

enum { threads = 3, stack_bytes = 256 * 1024, part = 65536 };
static char* stacks[threads];
static char* block;
static volatile int is_back[threads];
static uint64_t results[threads];

// 0: of the thread itself, 1: of its context. The mask is the first thing on the second page.
static ucontext_t* context(int thread, int which) {
    return (ucontext_t*)(void*)(block + (2 * thread + which + 1) * part - offsetof(ucontext_t, uc_sigmask));
}

static uint64_t recurse(int depth, uint64_t value) {
    volatile uint64_t room[64];
    for (int i = 0; i < 64; ++i)
        room[i] = value + (uint64_t)i;
    return depth ? recurse(depth - 1, room[depth % 64] * 3) + room[5] : value;
}

static void body(int thread) {
    results[thread] = results[thread] * 7 + recurse(200, (uint64_t)thread);
    is_back[thread] = 1;
    expect(setcontext(context(thread, 0)) == 0, "setcontext"); // does not return
}

int main(int count, char** arguments) {
    const int swaps = count > 1 && strcmp(arguments[1], "swap") == 0;
    core_start();
    block = (char*)aligned_alloc(part, (2 * threads + 1) * part);
    memset(block, 0, (2 * threads + 1) * part);
    for (int t = 0; t < threads; ++t) {
        stacks[t] = (char*)malloc(stack_bytes);
        memset(stacks[t], 0, stack_bytes);
    }
    for (volatile int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        for (int t = 0; t < threads; ++t) {
            is_back[t] = 0;
            expect(getcontext(context(t, 1)) == 0, "getcontext");
            context(t, 1)->uc_stack.ss_sp = stacks[t];
            context(t, 1)->uc_stack.ss_size = stack_bytes;
            context(t, 1)->uc_link = NULL;
            makecontext(context(t, 1), (void (*)(void))body, 1, t);
            if (!swaps) expect(getcontext(context(t, 0)) == 0, "getcontext");
        }
#pragma omp parallel num_threads(threads)
        {
            const int t = omp_get_thread_num();
            if (swaps) {
                expect(swapcontext(context(t, 0), context(t, 1)) == 0, "swapcontext");
            } else {
                // Right after its page was touched: a hook cannot stand before what returns twice.
                ((volatile char*)&context(t, 0)->uc_sigmask)[0] = 0;
                getcontext(context(t, 0));
                if (!is_back[t]) expect(setcontext(context(t, 1)) == 0, "setcontext to it");
            }
            core_read_share();
        }
    }
    printf("%llx %llx\n", (unsigned long long)results[0], (unsigned long long)results[2]);
    return core_end();
}
