// A program that asks its parent to trace it, so that no debugger can (copy protection does so): every signal
// stops it from then on, until the parent, which knows nothing of it, lets it go on.
//
// first (before the first region) | late
#include "core.h"

#include <sys/ptrace.h>

int main(int count, char** arguments) {
    const int late = count > 1 && strcmp(arguments[1], "late") == 0;
    core_start();
    if (late) core_run(CORE_ITERATIONS / 4);
    expect(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "PTRACE_TRACEME");
    core_run(CORE_ITERATIONS);
    return core_end();
}
