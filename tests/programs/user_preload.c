// A library that a user preloads already: it replaces the same entry points as homing does and passes them
// on.
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static long reads, allocations;

ssize_t read(int file, void* buffer, size_t bytes) {
    static ssize_t (*real)(int, void*, size_t);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "read");
    __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
    return real(file, buffer, bytes);
}

void* malloc(size_t bytes) {
    static void* (*real)(size_t);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "malloc");
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return real(bytes);
}

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
    static int (*real)(int, const struct sigaction*, struct sigaction*);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "sigaction");
    return real(number, action, before);
}

__attribute__((destructor)) static void end(void) {
    if (allocations == 0) dprintf(1, "the user's library was not used\n");
}
