#define _GNU_SOURCE
#include "faults.h"

#include "app.h"
#include "dsm.h"
#include "memory.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

static void (*handler)(long page, bool writing);

#if defined(__x86_64__)
static bool was_write(const ucontext_t* context) {
    enum { WRITE_BIT = 2 }; // of the page fault's error code
    return (context->uc_mcontext.gregs[REG_ERR] & WRITE_BIT) != 0;
}
#elif defined(__aarch64__)
// The syndrome register is in one of the records behind the registers.
static bool was_write(const ucontext_t* context) {
    enum { WRITE_NOT_READ = 1 << 6 };
    const char* at = (const char*)context->uc_mcontext.__reserved;
    for (;;) {
        const struct _aarch64_ctx* head = (const struct _aarch64_ctx*)at;
        if (head->magic == ESR_MAGIC) return (((const struct esr_context*)at)->esr & WRITE_NOT_READ) != 0;
        if (head->magic == 0) app_error("the kernel does not say whether a fault was a write");
        at += head->size;
    }
}
#else
#error "how does this machine say whether a page fault was a write?"
#endif

static void on_fault(int signal, siginfo_t* info, void* context) {
    uintptr_t base = (uintptr_t)memory_base(), at = (uintptr_t)info->si_addr;
    uintptr_t bytes = (uintptr_t)memory_pages() * DSM_PAGE_BYTES;
    if (at < base || at >= base + bytes) {
        struct sigaction otherwise = {.sa_handler = SIG_DFL};
        sigaction(signal, &otherwise, NULL); // the access is tried again, and ends the process
        return;
    }
    handler((long)((at - base) / DSM_PAGE_BYTES), was_write(context));
}

void faults_catch(void (*handle)(long page, bool writing)) {
    handler = handle;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, NULL) != 0) app_error("sigaction failed");
}
