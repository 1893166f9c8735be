// Threads that block every signal, SIGSEGV included, and then touch the arrays: servers and runtimes do so.
//
// region (some threads, inside regions) | always (all OpenMP threads inherit a full mask) | serial (around a
// region) | sigprocmask | raw (the system call itself) | attribute (a thread created with a full mask) |
// early (such a thread, created before the first region) | setmask | past (a thread that uses no function for
// it, as Go's runtime does) | past-ends (it ends in the middle)
#include "core.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static void block_all(const char* how, sigset_t* before) {
    sigset_t full;
    sigfillset(&full);
    if (strcmp(how, "sigprocmask") == 0)
        sigprocmask(SIG_BLOCK, &full, before);
    else if (strcmp(how, "raw") == 0)
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &full, before, 8);
    else
        pthread_sigmask(strcmp(how, "setmask") == 0 ? SIG_SETMASK : SIG_BLOCK, &full, before);
}

static volatile int started, stop;
static int past;

static void block_past_the_library(void) {
    uint64_t full = ~0ul;
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = sizeof full;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_rt_sigprocmask), "D"(SIG_BLOCK), "S"(&full), "d"(0), "r"(r10)
                     : "rcx", "r11", "memory");
#elif defined __aarch64__
    register long x8 __asm__("x8") = SYS_rt_sigprocmask;
    register long x0 __asm__("x0") = SIG_BLOCK;
    register uint64_t* x1 __asm__("x1") = &full;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = sizeof full;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
#else
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &full, 0, sizeof full);
#endif
}

static void* toucher(void* result) {
    uint64_t sum = 0;
    if (past) block_past_the_library();
    started = 1;
    while (!stop) {
        for (long i = 0; i < CORE_WORDS; i += 64)
            sum += core_c[i] & 0; // a read of every page, whatever is in it
        usleep(500);
    }
    *(uint64_t*)result = sum;
    return NULL;
}

static pthread_t create_blocked(uint64_t* touched) {
    pthread_t thread;
    pthread_attr_t attribute;
    sigset_t full;
    sigfillset(&full);
    pthread_attr_init(&attribute);
    pthread_attr_setsigmask_np(&attribute, &full);
    pthread_create(&thread, &attribute, toucher, touched);
    return thread;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "region";
    sigset_t before;
    sigemptyset(&before);
    if (strcmp(how, "always") == 0) block_all(how, &before);
    core_start();
    uint64_t seen = 0, touched = 1;
    pthread_t thread;
    past = strncmp(how, "past", 4) == 0;
    if (past) pthread_create(&thread, NULL, toucher, &touched);
    if (strcmp(how, "early") == 0) thread = create_blocked(&touched);
    // A thread that runs late enough begins under homing's handler, and nothing is blocked.
    while (strcmp(how, "early") == 0 && !started)
        usleep(100);
    for (int i = 0; i < (past ? 2 * CORE_ITERATIONS : CORE_ITERATIONS); ++i) {
        if (i == CORE_ITERATIONS && strcmp(how, "past-ends") == 0) {
            stop = 1;
            pthread_join(thread, NULL);
        }
        if (strcmp(how, "serial") == 0 && i % 2) block_all(how, &before);
        core_step(i);
        if (i == 0 && strcmp(how, "attribute") == 0) thread = create_blocked(&touched);
        if (strcmp(how, "serial") == 0 && i % 2) pthread_sigmask(SIG_SETMASK, &before, NULL);
#pragma omp parallel num_threads(3) reduction(+ : seen)
        {
            sigset_t mine;
            const int blocks = omp_get_thread_num() != 1 && strcmp(how, "always") != 0 &&
                               strcmp(how, "serial") != 0 && !past;
            if (blocks) block_all(how, &mine);
            seen += core_read_share();
            if (blocks) pthread_sigmask(SIG_SETMASK, &mine, NULL);
        }
    }
    if (strcmp(how, "attribute") == 0 || strcmp(how, "early") == 0 || strcmp(how, "past") == 0) {
        stop = 1;
        pthread_join(thread, NULL);
        printf("touched %llu\n", (unsigned long long)touched);
    }
    if (strcmp(how, "always") == 0) {
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, NULL, &now);
        expect(sigismember(&now, SIGSEGV) == 1, "SIGSEGV is still blocked for the program");
    }
    printf("seen %llx\n", (unsigned long long)seen);
    return core_end();
}
