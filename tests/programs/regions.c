// The plain case: an iterative program and nothing else.
#include "core.h"

int main(void) {
    core_start();
    core_run(CORE_ITERATIONS);
    return core_end();
}
