// A library that the program opens with RTLD_DEEPBIND, as oneTBB opens hwloc (libtbb brings it): its malloc()
// and free() are the C library's, whatever stands before them.
#include "core.h"

#include <dlfcn.h>

int main(void) {
    void* handle = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    printf("%s\n", handle ? "opened" : "not here");
    core_start();
    core_run(CORE_ITERATIONS);
    return core_end();
}
