// Programs that die, and must die in the same way: by the same signal, after the same output.
//
// null (in a region) | serial | overflow (of the stack) | own (a handler that restores the default and
// returns) | raise | kill | ignored (SIG_IGN does not help against a real fault) | bus | fpe | ill | abort |
// abort-region | readonly (constant data) | freed (a page of the program's own that it unmapped) | nested (in
// the handler of the crash) | nested-stack (on an alternate stack) | left (again, after the handler has
// jumped out and left the signal blocked) | masked (where the program blocks the signal, in spite of its
// handler)
#include "core.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const char* how;

static void last_words(int number) {
    static const char text[] = "last words\n";
    (void)!write(1, text, sizeof text - 1);
    signal(number, SIG_DFL);
}

static jmp_buf out;

static void crash_again(int number) {
    static const char text[] = "caught\n";
    (void)number;
    (void)!write(1, text, sizeof text - 1);
    if (strcmp(how, "left") == 0) _longjmp(out, 1);
    *(volatile int*)16 = 1;
}

static void install_crasher(void) {
    static char stack[65536];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = crash_again;
    if (strcmp(how, "nested-stack") == 0) {
        stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 0};
        sigaltstack(&mine, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGSEGV, &action, NULL);
}

static volatile int forever = 1;
static int depth(volatile char* above) {
    volatile char here[4096];
    here[0] = above ? above[0] : 1;
    return forever ? depth(here) + here[0] : 0;
}

const int crash_constant[4096] = {1, 2, 3};

static void die(void) {
    if (strcmp(how, "null") == 0 || strcmp(how, "serial") == 0 || strcmp(how, "own") == 0 ||
        strcmp(how, "ignored") == 0)
        *(volatile int*)8 = 1;
    else if (strncmp(how, "nested", 6) == 0 || strcmp(how, "masked") == 0)
        *(volatile int*)8 = 1;
    else if (strcmp(how, "left") == 0) {
        (void)_setjmp(out);
        *(volatile int*)8 = 1;
    } else if (strcmp(how, "overflow") == 0)
        depth(NULL);
    else if (strcmp(how, "raise") == 0)
        raise(SIGSEGV);
    else if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGSEGV), pause();
    else if (strcmp(how, "fpe") == 0)
        raise(SIGFPE);
    else if (strcmp(how, "ill") == 0)
        __builtin_trap();
    else if (strncmp(how, "abort", 5) == 0)
        abort();
    else if (strcmp(how, "readonly") == 0)
        *(volatile int*)(uintptr_t)&crash_constant[1024] = 1;
    else if (strcmp(how, "bus") == 0 || strcmp(how, "freed") == 0) {
        char name[] = "/tmp/crash-XXXXXX";
        const int file = mkstemp(name);
        unlink(name);
        volatile char* map = (volatile char*)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (strcmp(how, "freed") == 0) munmap((void*)(uintptr_t)map, 8192);
        map[4096] = 1;
    }
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "null";
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (strcmp(how, "own") == 0) signal(SIGSEGV, last_words);
    if (strcmp(how, "ignored") == 0) signal(SIGSEGV, SIG_IGN);
    if (strncmp(how, "nested", 6) == 0 || strcmp(how, "left") == 0 || strcmp(how, "masked") == 0)
        install_crasher();
    core_start();
    core_run(CORE_ITERATIONS / 2);
    printf("so far %016llx\n", (unsigned long long)core_sum);
    fflush(stdout);
    if (strcmp(how, "ignored") == 0) {
        raise(SIGSEGV); // this one is ignored
        puts("ignored");
        fflush(stdout);
    }
    if (strcmp(how, "null") == 0 || strcmp(how, "abort-region") == 0 || strcmp(how, "own") == 0 ||
        strcmp(how, "readonly") == 0) {
        uint64_t seen = 0;
#pragma omp parallel num_threads(3) reduction(+ : seen)
        {
            if (omp_get_thread_num() == 1) die();
            seen += core_read_share();
        }
        printf("not reached %llx\n", (unsigned long long)seen);
    }
    if (strcmp(how, "masked") == 0) {
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGSEGV);
        sigprocmask(SIG_BLOCK, &mask, NULL);
    }
    die();
    return core_end();
}
