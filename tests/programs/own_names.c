// A program that has functions of its own by names of the C library's, which mean something else: as it is
// linked with the libraries that have them, too, they are hidden behind its own for every library of the
// process.
#include "core.h"

#include <stdarg.h>

static int lines;

// None of these may be called by anybody but the program.
void log(const char* format, ...) {
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    ++lines;
}
#define NOBODY_CALLS(name)                                                                                   \
    void name(void);                                                                                         \
    void name(void) { expect(0, #name " was called"); }
NOBODY_CALLS(log1p)
NOBODY_CALLS(lgamma)
NOBODY_CALLS(lround)
NOBODY_CALLS(close)
NOBODY_CALLS(poll)
NOBODY_CALLS(readdir)
NOBODY_CALLS(closedir)
NOBODY_CALLS(opendir)
NOBODY_CALLS(writev)
NOBODY_CALLS(clock_gettime)
NOBODY_CALLS(sched_getcpu)
NOBODY_CALLS(dladdr)
NOBODY_CALLS(uname)

int main(void) {
    core_start();
    core_run(CORE_ITERATIONS);
    log("%d lines\n", lines);
    return core_end();
}
