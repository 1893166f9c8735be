// A program that maps and unmaps more before its first region than homing's log of that holds. A thread's
// stack, which the C library maps itself, is then where the last mapping was: nothing may be taken away
// there.
#include "core.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { pairs = 3000, deep = 400000, stack_bytes = 8 << 20, guard_bytes = 4096 };
static volatile int stop;
static volatile unsigned long sum;

static char* map(size_t bytes) {
    return (char*)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// What the kernel writes where it is forbidden fails or ends the process: a signal's frame, say.
static void* use_stack(void* nothing) {
    volatile char there[deep];
    while (!stop) {
        for (unsigned i = 0; i < sizeof there; i += 64)
            sum += (unsigned)(there[i] = (char)i);
        usleep(100);
    }
    return nothing;
}

int main(void) {
    core_start();
    const size_t bytes = stack_bytes + guard_bytes;
    memset(map(bytes), 1, bytes); // the hole below it is the one that is used again
    for (int i = 0; i < pairs; ++i)
        munmap(map(bytes), bytes);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setguardsize(&attributes, guard_bytes);
    pthread_t thread;
    expect(pthread_create(&thread, &attributes, use_stack, NULL) == 0, "a thread");
    core_run(CORE_ITERATIONS);
    stop = 1;
    pthread_join(thread, NULL);
    return core_end();
}
