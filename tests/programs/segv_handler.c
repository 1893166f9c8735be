// A SIGSEGV handler of the program's own, as garbage collectors and users of guard pages have: the program
// touches a page that it protected itself, and its handler repairs it. The handler must see these faults and
// no others.
//
// How it is installed: siginfo | plain | signal | sigset | sysv | resethand | nodefer | late | region | again
// | bypass
#include "core.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static char* page;
static volatile sig_atomic_t repaired;
static const char* how;

static void install(void);

static void repair(void) {
    repaired = repaired + 1;
    if (repaired > 10 * CORE_ITERATIONS) _exit(98);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) _exit(97);
}

static void on_fault(int number) {
    (void)number;
    if (strcmp(how, "sysv") == 0) install(); // System V semantics: one fault a handler
    repair();
}

static void on_fault_info(int number, siginfo_t* info, void* context) {
    (void)context;
    if (number != SIGSEGV || (char*)info->si_addr < page || (char*)info->si_addr >= page + 4096) _exit(99);
    if (strcmp(how, "resethand") == 0) install();
    repair();
}

static void install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    if (strcmp(how, "signal") == 0) {
        signal(SIGSEGV, on_fault);
        return;
    }
    if (strcmp(how, "sysv") == 0) {
        sysv_signal(SIGSEGV, on_fault);
        return;
    }
    if (strcmp(how, "sigset") == 0) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        sigset(SIGSEGV, on_fault);
#pragma GCC diagnostic pop
        return;
    }
    if (strcmp(how, "plain") == 0) {
        action.sa_handler = on_fault;
        sigfillset(&action.sa_mask);
    } else {
        action.sa_sigaction = on_fault_info;
        action.sa_flags = SA_SIGINFO;
        if (strcmp(how, "resethand") == 0) action.sa_flags |= SA_RESETHAND;
        if (strcmp(how, "nodefer") == 0) action.sa_flags |= SA_NODEFER;
    }
    int (*install_it)(int, const struct sigaction*, struct sigaction*) = sigaction;
    if (strcmp(how, "bypass") == 0) // not through the symbol that a preloaded library can replace
        *(void**)&install_it = dlsym(dlopen("libc.so.6", RTLD_LAZY), "sigaction");
    expect(install_it(SIGSEGV, &action, NULL) == 0, "sigaction");
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "siginfo";
    const int late = strcmp(how, "late") == 0 || strcmp(how, "region") == 0 || strcmp(how, "bypass") == 0;
    page = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!late) install();
    core_start();
    uint64_t seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        const int installed = !late || i >= CORE_ITERATIONS / 2;
        if (late && i == CORE_ITERATIONS / 2 && strcmp(how, "region") != 0) install();
#pragma omp parallel reduction(+ : seen)
        {
            if (omp_get_thread_num() == 0) {
                if (i == CORE_ITERATIONS / 2 && strcmp(how, "region") == 0) install();
                if (strcmp(how, "again") == 0) install();
                if (installed) {
                    mprotect(page, 4096, PROT_NONE);
                    ((volatile char*)page)[i] = 1;
                }
            }
            seen += core_read_share();
        }
        if (installed) { // and in serial code
            mprotect(page, 4096, PROT_NONE);
            ((volatile char*)page)[i] = 2;
        }
    }
    printf("repaired %d, seen %llx\n", (int)repaired, (unsigned long long)seen);
    return core_end();
}
