// A library in a namespace of its own (dlmopen) brings another C library with it, whose read() fills an
// array.
#include "core.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    core_start();
    typedef ssize_t reading(int, void*, size_t);
    reading* own_read = NULL;
    const int zeros = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i == CORE_ITERATIONS / 2) {
            void* library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
            expect(library != NULL, "dlmopen");
            if (library) own_read = (reading*)dlsym(library, "read");
        }
        if (own_read)
            expect(own_read(zeros, core_b, CORE_WORDS * sizeof *core_b) ==
                       (ssize_t)(CORE_WORDS * sizeof *core_b),
                   "a read by another C library");
    }
    return core_end();
}
