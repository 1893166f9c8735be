// A program that protects pages of its own watched arrays: dirty tracking by write faults, as checkpointing
// libraries and distributed shared memory do; read-only data; a guard page inside a block. Its faults must
// all arrive, and what it made read-only must stay so.
//
// dirty | readonly | none | region (the protection is taken inside the region)
#include "core.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { pages = 512 };
static char* tracked;
static volatile int faults;
static unsigned char dirty[pages];
static const char* how;

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    const char* at = (const char*)info->si_addr;
    if (at < tracked || at >= tracked + pages * 4096) _exit(99);
    const long page = (at - tracked) / 4096;
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    if (dirty[page]++) _exit(95); // a page faults once
    mprotect(tracked + page * 4096, 4096, PROT_READ | PROT_WRITE);
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "dirty";
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    core_start();
    tracked = (char*)aligned_alloc(4096, pages * 4096);
    memset(tracked, 0, pages * 4096);
    uint64_t seen = 0;
    int wanted = 0;
    const int protection = strcmp(how, "none") == 0 ? PROT_NONE : PROT_READ;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel for schedule(static)
        for (int page = 0; page < pages; ++page) // ordinary use, so that it is watched
            tracked[page * 4096 + 8] += 1;
        if (i < 12) continue;
        memset(dirty, 0, sizeof dirty);
        if (strcmp(how, "region") != 0) mprotect(tracked, pages * 4096, protection);
#pragma omp parallel reduction(+ : seen)
        {
            if (strcmp(how, "region") == 0) {
#pragma omp single
                mprotect(tracked, pages * 4096, protection);
            }
            seen += core_read_share();
            if (protection == PROT_READ) {
#pragma omp for schedule(static)
                for (int page = 0; page < pages; ++page) // reading is allowed and must not be reported
                    seen += (uint64_t)(unsigned char)tracked[page * 4096 + 8];
            }
#pragma omp for schedule(static)
            for (int page = 0; page < pages; page += 3)
                ((volatile char*)tracked)[page * 4096 + i] = 1;
        }
        wanted += (pages + 2) / 3;
        if (strcmp(how, "readonly") == 0) {
            core_step(i); // a whole iteration with the array read-only
            for (int page = 1; page < pages; page += 3) {
                ((volatile char*)tracked)[page * 4096] = 2;
                ++wanted;
            }
        }
        for (int page = 0; page < pages; ++page)
            if (strcmp(how, "readonly") == 0)
                expect(dirty[page] == (page % 3 != 2), "exactly the written pages are dirty");
            else
                expect(dirty[page] == (page % 3 == 0), "exactly the written pages are dirty");
        mprotect(tracked, pages * 4096, PROT_READ | PROT_WRITE);
    }
    expect(faults == wanted, "one fault for each written page");
    printf("faults %d seen %llx\n", faults, (unsigned long long)seen);
    return core_end();
}
