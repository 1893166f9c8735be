// Without a parallel region the process is as it is without homing: what a program asks of the kernel about
// signals it finds there, also where it asks the kernel itself. Everything that can be seen is printed.
//
// alone | threads (stacks and masks of other threads, too) | onstack (handlers on alternate stacks) | regions
// (after some regions, where homing has its own handler: what the C library's functions tell)
#include "core.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The kernel's own structure, and calls that nobody can stand before.
struct kernel_action {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

static long call(long number, long a, long b, long c, long d) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
    const long result = syscall(number, a, b, c, d);
    return result == -1 ? -errno : result;
#endif
}

static int handled, on_stack, after_regions;
static char here_is[65536] __attribute__((aligned(16)));

static void handler(int number) { (void)number; }
static void handler_info(int number, siginfo_t* info, void* context) {
    char here;
    (void)number, (void)info, (void)context;
    ++handled;
    on_stack += &here >= here_is && &here < here_is + sizeof here_is;
}

static const char* name_of(uintptr_t handler_address) {
    if (handler_address == (uintptr_t)SIG_DFL) return "default";
    if (handler_address == (uintptr_t)SIG_IGN) return "ignored";
    if (handler_address == (uintptr_t)handler) return "handler";
    if (handler_address == (uintptr_t)handler_info) return "handler_info";
    return "somebody's";
}

static void look(const char* when) {
    printf("%s\n", when);
    for (int signal = 1; signal < _NSIG; ++signal) {
        struct kernel_action raw;
        struct sigaction libc;
        memset(&raw, 0, sizeof raw);
        memset(&libc, 0, sizeof libc);
        const long result = after_regions ? syscall(SYS_rt_sigaction, signal, NULL, &raw, 8)
                                          : call(SYS_rt_sigaction, signal, 0, (long)&raw, 8);
        if (result != 0) continue;
        const int known = sigaction(signal, NULL, &libc);
        if (!raw.handler && !raw.flags && !raw.mask && known != 0) continue;
        uint64_t mask;
        memcpy(&mask, &libc.sa_mask, sizeof mask);
        printf("%d: %s %lx %d %llx; %d %s %x %d %llx\n", signal, name_of(raw.handler), raw.flags,
               raw.restorer != 0, (unsigned long long)raw.mask, known, name_of((uintptr_t)libc.sa_handler),
               (unsigned)libc.sa_flags, (uintptr_t)libc.sa_restorer == raw.restorer,
               (unsigned long long)mask);
    }
    uint64_t mask = 0;
    sigset_t libc;
    sigemptyset(&libc);
    stack_t stack, raw_stack;
    memset(&stack, 0, sizeof stack);
    memset(&raw_stack, 0, sizeof raw_stack);
    pthread_sigmask(SIG_BLOCK, NULL, &libc);
    sigaltstack(NULL, &stack);
    if (after_regions) {
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
        syscall(SYS_sigaltstack, NULL, &raw_stack);
    } else {
        call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
        call(SYS_sigaltstack, 0, (long)&raw_stack, 0, 0);
    }
    printf("mask %llx, members", (unsigned long long)mask);
    for (int signal = 1; signal < _NSIG; ++signal)
        if (sigismember(&libc, signal) == 1) printf(" %d", signal);
    printf("\nstack %d %d %d %zu %zu\n", stack.ss_flags, raw_stack.ss_flags, stack.ss_sp == raw_stack.ss_sp,
           stack.ss_size, raw_stack.ss_size);
}

static void install(int signal, void (*function)(int, siginfo_t*, void*), int flags, int full) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = function;
    action.sa_flags = flags;
    if (full)
        sigfillset(&action.sa_mask);
    else
        sigaddset(&action.sa_mask, SIGSEGV);
    printf("sigaction %d %d ", signal, sigaction(signal, &action, &before));
    printf("before %s %x\n", name_of((uintptr_t)before.sa_handler), (unsigned)before.sa_flags);
}

static void* in_thread(void* what) {
    look(what);
    sigset_t full;
    sigfillset(&full);
    pthread_sigmask(SIG_BLOCK, &full, NULL);
    look("thread, all blocked");
    return NULL;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "alone";
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (strcmp(how, "regions") == 0) {
        core_start();
        core_run(CORE_ITERATIONS);
        after_regions = 1;
    }
    look("at first");
    install(SIGUSR1, handler_info, SA_SIGINFO | SA_ONSTACK | SA_RESTART, 1);
    install(SIGUSR2, handler_info, SA_SIGINFO | SA_NODEFER, 0);
    install(SIGSEGV, handler_info, (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | 0x400), 1);
    printf("%d %d\n", signal(SIGTERM, handler) == SIG_DFL, sysv_signal(SIGHUP, handler) == SIG_DFL);
    struct kernel_action raw = {(uintptr_t)SIG_IGN, SA_ONSTACK, 0, ~0ULL};
    printf("raw %ld\n", syscall(SYS_rt_sigaction, SIGWINCH, &raw, NULL, 8));
    if (!after_regions) printf("raw %ld\n", call(SYS_rt_sigaction, SIGURG, (long)&raw, 0, 8));
    printf("refused %d %d %d %ld\n", sigaction(SIGKILL, &(struct sigaction){.sa_handler = handler}, NULL),
           sigaction(0, NULL, NULL), sigaction(65, NULL, NULL),
           syscall(SYS_rt_sigaction, SIGSEGV, NULL, NULL, 4));
    look("handlers");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    look("SIGSEGV blocked");
    uint64_t most = ~0ULL, old = 0;
    printf("by number %ld ", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &most, &old, 8));
    printf("%llx\n", (unsigned long long)old);
    look("all blocked");
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
    if (strcmp(how, "threads") == 0) {
        pthread_t thread;
        pthread_attr_t attribute;
        pthread_create(&thread, NULL, in_thread, (void*)"thread");
        pthread_join(thread, NULL);
        sigfillset(&set);
        pthread_attr_init(&attribute);
        pthread_attr_setsigmask_np(&attribute, &set);
        pthread_create(&thread, &attribute, in_thread, (void*)"thread with a mask");
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "onstack") == 0) {
        stack_t mine = {.ss_sp = here_is, .ss_size = sizeof here_is, .ss_flags = 0};
        raise(SIGUSR1);
        printf("handled %d, on a stack %d\n", handled, on_stack);
        printf("stack %ld\n", call(SYS_sigaltstack, (long)&mine, 0, 0, 0)); // nobody sees it
        raise(SIGUSR1);
        printf("handled %d, on a stack %d\n", handled, on_stack);
        look("with a stack");
        mine.ss_flags = 1 << 31; // SS_AUTODISARM
        printf("stack %d %d\n", sigaltstack(&mine, NULL), sigaltstack((stack_t*)8, NULL) == -1 ? errno : 0);
        raise(SIGUSR1);
        printf("handled %d, on a stack %d\n", handled, on_stack);
        look("with a stack that disarms itself");
    }
    return after_regions ? core_end() : 0;
}
