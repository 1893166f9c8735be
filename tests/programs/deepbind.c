// A library that homing uses, too, was opened by the program with RTLD_DEEPBIND (oneTBB opens hwloc so): its
// free() is the C library's, whatever stands before it, and so must be what strdup() gave it.
#include "core.h"

#include <dlfcn.h>

int main(void) {
    void* handle = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    printf("%s\n", handle ? "opened" : "not here");
    core_start();
    core_run(CORE_ITERATIONS);
    return core_end();
}
