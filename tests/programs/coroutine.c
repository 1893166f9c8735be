// Stacks that lie in large heap blocks: coroutines by swapcontext, and threads with a stack of the program's
// own. A page of such a stack that is taken away leaves the kernel no place to report the fault, unless it
// has another stack.
//
// context | thread (pthread_attr_setstack) | masked (coroutines that block all signals) | setcontext (and not
// swapcontext) | switch (a change of stacks in assembly, which nobody can see: Boost.Context, Argobots and
// Qthreads do so) | beside (the same in a process that has had a thread before its first region: the C
// library's own handlers of signals, which come with it, ask for an alternate stack)
#include "core.h"
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

enum { stack_bytes = 1 << 18, threads = 3 };
static ucontext_t outside[threads], inside[threads];
static char* stacks[threads];
static uint64_t results[threads];

static uint64_t recursive(int depth, uint64_t value) {
    volatile uint64_t room[64];
    for (int i = 0; i < 64; ++i)
        room[i] = value + (uint64_t)i;
    return depth ? recursive(depth - 1, room[depth % 64] * 3) + room[5] : value;
}

__attribute__((noinline)) static void routine(int thread) {
    for (;;) {
        results[thread] = results[thread] * 7 + recursive(200, (uint64_t)thread);
        swapcontext(&inside[thread], &outside[thread]);
    }
}

// Stores the stack that is left, and goes on where the other one was left.
#if defined __x86_64__
void switch_stacks(void** leave, void* enter);
__asm__(".text\n.globl switch_stacks\n.type switch_stacks,@function\nswitch_stacks:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size switch_stacks,.-switch_stacks\n");
#endif

enum { several = 8 };
static void *left_outside[threads], *left_inside[threads][several];
static int current[threads];

__attribute__((noinline)) static void switched(void) {
    for (;;) {
        const int t = omp_get_thread_num();
        results[t] = results[t] * 7 + recursive(100, (uint64_t)t);
#if defined __x86_64__
        switch_stacks(&left_inside[t][current[t]], left_outside[t]);
#endif
    }
}

static void make_switched(int thread) {
    for (int k = 0; k < several; ++k) {
        char* stack = (char*)malloc(stack_bytes); // a block that is a stack and nothing else
        memset(stack, 0, stack_bytes);
        void** top = (void**)(stack + stack_bytes - 64);
        top[-2] = (void*)switched;
        left_inside[thread][k] = top - 8;
    }
}

static void run_switched(int thread) {
    for (int k = 0; k < several; ++k) {
        current[thread] = k;
#if defined __x86_64__
        switch_stacks(&left_outside[thread], left_inside[thread][k]);
#else
        results[thread] = results[thread] * 7 + recursive(100, (uint64_t)thread);
#endif
    }
}

static volatile int came_back[threads];

static void once(int thread) {
    results[thread] = results[thread] * 7 + recursive(200, (uint64_t)thread);
    came_back[thread] = 1;
    setcontext(&outside[thread]);
}

static void run_set(int thread) {
    came_back[thread] = 0;
    getcontext(&inside[thread]);
    inside[thread].uc_stack.ss_sp = stacks[thread] + (1 << 20);
    inside[thread].uc_stack.ss_size = stack_bytes;
    inside[thread].uc_link = NULL;
    makecontext(&inside[thread], (void (*)(void))once, 1, thread);
    getcontext(&outside[thread]);
    if (!came_back[thread]) setcontext(&inside[thread]);
}

static void make(int thread, int masked) {
    ucontext_t* context = &inside[thread];
    stacks[thread] = (char*)malloc(stack_bytes + (1 << 20)); // a large block: most of it is ordinary data
    memset(stacks[thread], 0, stack_bytes + (1 << 20));
    getcontext(context);
    context->uc_stack.ss_sp = stacks[thread] + (1 << 20);
    context->uc_stack.ss_size = stack_bytes;
    context->uc_link = NULL;
    if (masked) sigfillset(&context->uc_sigmask);
    makecontext(context, (void (*)(void))routine, 1, thread);
}

static void* threaded(void* result) {
    for (int i = 0; i < 50; ++i)
        *(uint64_t*)result = *(uint64_t*)result * 7 + recursive(200, 5);
    return NULL;
}

static void* nothing(void* argument) { return argument; }

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "context";
    const int beside = strcmp(how, "beside") == 0;
    if (beside) {
        pthread_t thread;
        expect(pthread_create(&thread, NULL, nothing, NULL) == 0, "a thread");
        pthread_join(thread, NULL);
    }
    core_start();
    for (int t = 0; t < threads; ++t) {
        make(t, strcmp(how, "masked") == 0);
        make_switched(t);
    }
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "thread") == 0) {
            pthread_t thread;
            pthread_attr_t attribute;
            pthread_attr_init(&attribute);
            pthread_attr_setstack(&attribute, stacks[0] + (1 << 20), stack_bytes);
            expect(pthread_create(&thread, &attribute, threaded, &results[0]) == 0, "a thread on my stack");
            core_step(i);
            pthread_join(thread, NULL);
        }
#pragma omp parallel num_threads(threads) reduction(+ : seen)
        {
            const int t = omp_get_thread_num();
            if (beside || strcmp(how, "switch") == 0)
                run_switched(t);
            else if (strcmp(how, "setcontext") == 0)
                run_set(t);
            else if (strcmp(how, "thread") != 0)
                swapcontext(&outside[t], &inside[t]);
            for (int at = 0; at < 1 << 20; at += 4096)
                stacks[t][at] += 1;
            seen += core_read_share();
        }
    }
    uint64_t ordinary = 0;
    for (int t = 0; t < threads; ++t) {
        for (int at = 0; at < 1 << 20; at += 4096)
            ordinary += (uint64_t)(unsigned char)stacks[t][at];
        printf("result %016llx\n", (unsigned long long)results[t]);
    }
    printf("ordinary %llu seen %llx\n", (unsigned long long)ordinary, (unsigned long long)seen);
    return core_end();
}
