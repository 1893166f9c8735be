// SIGSEGV is blocked, handled and asked about by the functions of BSD and System V while arrays are used.
//
// hold | mask | block | set (blocked by sigset) | handler (installed by sigset) | own (by the C library's own
// names) | ask (what the functions return)
#include "core.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
int __sigaction(int, const struct sigaction*, struct sigaction*);

static int bit(int signal) { return 1 << (signal - 1); }

static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void on_fault(int number) {
    caught += number == SIGSEGV;
    siglongjmp(back, 1);
}

static void fault(void) {
    if (sigsetjmp(back, 1) == 0) *(volatile int*)8 = 1;
}

static void on_alarm(int number) { caught += number; }

static void use_arrays(void) {
#pragma omp parallel
    core_read_share();
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "hold";
    core_start();
    uint64_t sum = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        int before = 0;
        if (strcmp(how, "hold") == 0) sighold(SIGSEGV);
        if (strcmp(how, "mask") == 0) before = sigsetmask(~0);
        if (strcmp(how, "block") == 0) before = sigblock(bit(SIGSEGV) | bit(SIGUSR1));
        if (strcmp(how, "set") == 0) sigset(SIGSEGV, SIG_HOLD);
        for (long k = 0; k < CORE_WORDS; k += 8)
            sum += core_a[k];
        use_arrays();
        if (strcmp(how, "hold") == 0 || strcmp(how, "set") == 0) sigrelse(SIGSEGV);
        if (strcmp(how, "mask") == 0 || strcmp(how, "block") == 0) sigsetmask(before);
        if (i == CORE_ITERATIONS / 2 && strcmp(how, "handler") == 0)
            expect(sigset(SIGSEGV, on_fault) == SIG_DFL, "there was no handler");
        if (i == CORE_ITERATIONS / 2 && strcmp(how, "own") == 0) {
            struct sigaction action = {.sa_handler = on_fault}, old;
            expect(__sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == SIG_DFL, "no handler");
        }
        if (caught == 0 && (strcmp(how, "handler") == 0 || strcmp(how, "own") == 0) &&
            i > CORE_ITERATIONS / 2)
            fault();
        if (strcmp(how, "ask") != 0) continue;
        expect(sigblock(0) == 0 && siggetmask() == 0, "nothing is blocked");
        expect(sighold(SIGSEGV) == 0 && siggetmask() == (int)bit(SIGSEGV), "held");
        expect(sigset(SIGSEGV, SIG_HOLD) == SIG_HOLD, "was held");
        expect(sigset(SIGSEGV, on_fault) == SIG_HOLD && siggetmask() == 0, "released by a handler");
        expect(sigset(SIGSEGV, SIG_DFL) == on_fault, "the handler");
        expect(sigignore(SIGSEGV) == 0 && sigset(SIGSEGV, SIG_DFL) == SIG_IGN, "ignored");
        expect(sighold(0) == -1 && errno == EINVAL && sigset(NSIG, SIG_DFL) == SIG_ERR, "no such signal");
        expect(sigsetmask(~0) == 0, "all");
        const unsigned all = (unsigned)sigsetmask(0);
        expect(all == (0x7fffffffu & ~(unsigned)(bit(SIGKILL) | bit(SIGSTOP))), "what all is");
        signal(SIGALRM, on_alarm);
        sighold(SIGALRM);
        raise(SIGALRM);
        expect(sigpause(SIGALRM) == -1 && errno == EINTR, "waited for the alarm");
        sigrelse(SIGALRM);
    }
    printf("sum %016llx caught %d\n", (unsigned long long)sum, (int)caught);
    return core_end();
}
