// Ways to end: each from serial code or from inside a region, with work registered for the end that uses the
// arrays and OpenMP itself.
//
// return | exit | region (exit inside a region) | _exit | quick | thread (return while threads run) | pthread
// (pthread_exit of the main thread) | exec (replaced by another program inside a region)
#include "core.h"
#include <pthread.h>
#include <unistd.h>

static volatile uint64_t sink;

static void* runner(void* nothing) {
    (void)nothing;
    for (;;)
        for (long i = 0; i < CORE_WORDS; i += 512) {
            sink = core_a[i];
            if (i % (512 * 16) == 0) usleep(100);
        }
    return NULL;
}

static void* last(void* main_thread) {
    pthread_join(*(pthread_t*)main_thread, NULL);
    core_run(8);
    exit(core_end() + 5);
}

static void at_end(void) {
    core_run(4);
    printf("at the end %016llx\n", (unsigned long long)core_sum);
    fflush(stdout);
}

__attribute__((destructor)) static void destructor(void) {
    if (core_a) {
        core_run(4);
        printf("destructor %016llx\n", (unsigned long long)core_sum);
        fflush(stdout);
    }
}

static void at_end_quietly(void) {
    uint64_t sum = 0;
    for (long i = 0; i < CORE_WORDS; ++i)
        sum += core_b[i];
    printf("at the end, serial %016llx\n", (unsigned long long)sum);
    fflush(stdout);
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "return";
    const int inside = strcmp(how, "region") == 0;
    atexit(inside ? at_end_quietly : at_end);
    at_quick_exit(at_end_quietly);
    core_start();
    core_run(CORE_ITERATIONS);
    printf("so far %016llx\n", (unsigned long long)core_sum);
    fflush(stdout);
    static pthread_t main_thread; // not on the stack that pthread_exit leaves
    pthread_t threads[3];
    main_thread = pthread_self();
    if (strcmp(how, "thread") == 0)
        for (int i = 0; i < 3; ++i)
            pthread_create(&threads[i], NULL, runner, NULL);
    if (strcmp(how, "exit") == 0) exit(7);
    if (strcmp(how, "_exit") == 0) _exit(8);
    if (strcmp(how, "quick") == 0) quick_exit(9);
    if (strcmp(how, "pthread") == 0) {
        pthread_create(&threads[0], NULL, last, &main_thread);
        pthread_exit(NULL);
    }
    if (inside || strcmp(how, "exec") == 0) {
#pragma omp parallel num_threads(3)
        {
            sink = core_read_share();
#pragma omp barrier
            if (omp_get_thread_num() == (inside ? 0 : 2)) {
                if (inside) {
                    core_a = NULL; // no region in the destructor: this one never ends
                    exit(10);
                }
                char text[] = "after exec";
                execl("/bin/echo", "echo", text, (char*)NULL);
            }
            for (;;)
                usleep(1000);
        }
    }
    return core_end() + 3;
}
