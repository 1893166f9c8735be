// Handlers that insist on an alternate stack, and stacks that threads give themselves by the system call
// itself: so does Go's runtime, which ends the process where a handler runs elsewhere. Signals come in
// regions and outside, on threads with a stack; a handler works on an array, and takes faults of its own.
#include "core.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { threads = 3, stack_bytes = 65536 };
static char* stacks; // one a thread, in a mapping of the program's
static char* page[threads];
static __thread int here, has_stack;
static int signals[threads], faults[threads];

static long set_stack(const stack_t* stack) {
#if defined __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_sigaltstack), "D"(stack), "S"(0)
                     : "rcx", "r11", "memory");
    return result;
#else
    return syscall(SYS_sigaltstack, stack, NULL);
#endif
}

static void must_be_on_my_stack(void) {
    char local;
    if (&local < stacks + here * stack_bytes || &local >= stacks + (here + 1) * stack_bytes) {
        static const char words[] = "handler not on its stack\n";
        if (write(2, words, sizeof words - 1) < 0) _exit(98);
        _exit(97);
    }
}

static void on_signal(int number, siginfo_t* info, void* context) {
    (void)context;
    must_be_on_my_stack();
    if (number == SIGURG) {
        ++signals[here];
        core_a[here * 1000] += 0;
    } else {
        if ((char*)info->si_addr != page[here]) _exit(99);
        ++faults[here];
        mprotect(page[here], 4096, PROT_READ | PROT_WRITE);
    }
}

static void begin_thread(int number) {
    if (has_stack) return;
    has_stack = 1;
    here = number;
    const stack_t mine = {.ss_sp = stacks + number * stack_bytes, .ss_size = stack_bytes, .ss_flags = 0};
    expect(set_stack(&mine) == 0, "sigaltstack");
}

int main(void) {
    stacks =
        (char*)mmap(NULL, threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int t = 0; t < threads; ++t)
        page[t] = (char*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action, read_back;
    memset(&action, 0, sizeof action);
    sigfillset(&action.sa_mask);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGURG, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    begin_thread(0);
    raise(SIGURG);
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(threads)
        {
            const int thread = omp_get_thread_num();
            begin_thread(thread);
            core_read_share();
            raise(SIGURG);
            if (i % 8 == 0) {
                mprotect(page[thread], 4096, PROT_NONE);
                ((volatile char*)page[thread])[0] = 1;
            }
        }
        raise(SIGURG);
        sigaction(i % 2 ? SIGURG : SIGSEGV, NULL, &read_back);
        expect(read_back.sa_sigaction == on_signal && sigismember(&read_back.sa_mask, SIGSEGV) == 1 &&
                   sigismember(&read_back.sa_mask, SIGSTKFLT) == 1 && read_back.sa_flags & SA_ONSTACK,
               "as it was asked for");
    }
    for (int t = 0; t < threads; ++t)
        printf("signals %d faults %d\n", signals[t], faults[t]);
    return core_end();
}
