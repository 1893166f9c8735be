// A library whose device reads and writes the program's memory comes in the middle of the run, by dlopen.
// (Some library by that name: the device need not be there.)
#include "core.h"
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

static void* open_as(const char* name) {
    struct link_map* map = NULL;
    void* some = dlopen("libm.so.6", RTLD_NOW);
    if (!some || dlinfo(some, RTLD_DI_LINKMAP, &map) != 0) return NULL;
    FILE* from = fopen(map->l_name, "r");
    FILE* to = fopen(name, "w");
    if (!from || !to) return NULL;
    int c;
    while ((c = getc(from)) != EOF)
        putc(c, to);
    fclose(from);
    fclose(to);
    void* opened = dlopen(name, RTLD_NOW);
    unlink(name);
    return opened;
}

int main(void) {
    core_start();
    core_run(CORE_ITERATIONS / 2);
    printf("opened %d\n", open_as("./libcuda.so.1") != NULL);
    core_run(CORE_ITERATIONS);
    return core_end();
}
