// Advice by which memory stays what it is: arrays in memory that was populated ahead of its use, and advised
// otherwise. A thread goes on to populate them while regions run, which fails where a page is taken away.
#include "core.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { populate_read = 22, populate_write = 23, collapse = 25, bytes = CORE_WORDS * sizeof(uint64_t) };
static uint64_t *first, *second;
static volatile int stop;

static uint64_t* map(void) {
    return (uint64_t*)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int advise(void* memory, int advice) { return madvise(memory, bytes, advice) == 0 ? 0 : errno; }

static void* populate(void* nothing) {
    const int possible = advise(first, populate_write) != EINVAL; // since Linux 5.14
    while (!stop && possible) {
        expect(advise(first, populate_write) == 0, "to populate");
        expect(syscall(SYS_madvise, second, (size_t)bytes, populate_read) == 0, "to populate by number");
        usleep(100);
    }
    return nothing;
}

int main(void) {
    first = map();
    second = map();
    printf("populated %d\n", advise(first, populate_write));
    static const int harmless[] = {MADV_COLD,      MADV_PAGEOUT,  MADV_DONTFORK,    MADV_DOFORK,
                                   MADV_MERGEABLE, populate_read, MADV_UNMERGEABLE, MADV_KEEPONFORK};
    for (unsigned i = 0; i < sizeof harmless / sizeof *harmless; ++i)
        printf("advice %d: %d\n", harmless[i], advise(second, harmless[i]));
    advise(second, collapse); // whether there is room for it is not the same each time
    core_start_in(first, second);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, populate, NULL) == 0, "a thread");
    core_run(CORE_ITERATIONS);
    stop = 1;
    pthread_join(thread, NULL);
    return core_end();
}
