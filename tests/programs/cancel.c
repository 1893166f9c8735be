// Threads that are cancelled while homing works for them: they have cancellation points of their own, and
// none in between.
//
// first (the request is there before the thread's first region) | loop (at any time; blocks come and go) |
// asynchronous (threads that only compute on the arrays). alone: nothing runs afterwards (LLVM's runtime
// keeps the locks of a thread that was cancelled in its start)
#include "core.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static const char* how;
static int ready, stop;
static volatile uint64_t sink;

static void* regions(void* nothing) {
    if (strcmp(how, "first") == 0)
        while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
            ; // computes until it is cancelled
    for (int i = 0;; ++i) {
        char* block = (char*)malloc(300000);
        memset(block, i, 300000);
        core_step(i);
        free(block);
        if (i % 4 == 3) pthread_testcancel();
    }
    return nothing;
}

static void* computes(void* nothing) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    for (;;)
        for (long i = 0; i < CORE_WORDS; i += 64)
            sink = core_a[i] + core_b[i];
    return nothing;
}

static int cancelled(pthread_t thread) {
    void* result = NULL;
    pthread_cancel(thread);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    return pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

static void* cancels(void* wrong) {
    unsigned seed = 1;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        pthread_t thread;
        __atomic_store_n(&ready, 0, __ATOMIC_RELEASE);
        pthread_create(&thread, NULL, computes, NULL);
        while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
            sched_yield();
        usleep((unsigned)rand_r(&seed) % 1500);
        if (!cancelled(thread)) *(int*)wrong = 1;
    }
    return NULL;
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "loop";
    core_start();
    if (strcmp(how, "asynchronous") == 0) {
        pthread_t canceller;
        int wrong = 0;
        pthread_create(&canceller, NULL, cancels, &wrong);
        core_run((getenv("TEST_ALL") ? 8 : 3) * CORE_ITERATIONS);
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        pthread_join(canceller, NULL);
        expect(!wrong, "cancelled");
        return core_end();
    }
    const int rounds = strcmp(how, "first") == 0 ? 1 : 20;
    int ended = 0;
    for (int round = 0; round < rounds; ++round) {
        pthread_t thread;
        pthread_create(&thread, NULL, regions, NULL);
        if (rounds > 1) usleep((unsigned)(20000 + round * 1700));
        ended += cancelled(thread);
    }
    if (count < 3) core_run(CORE_ITERATIONS);
    printf("cancelled %d\n", ended); // no checksum: how far the threads came depends on time
    return 0;
}
