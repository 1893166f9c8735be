// Memory policies of the program's own: they must be found as they were set when it looks, and in the end.
//
// task (set_mempolicy) | range (mbind on one array)
#include "core.h"
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "task";
    const size_t bytes = CORE_WORDS * sizeof(uint64_t);
    uint64_t* a = (uint64_t*)aligned_alloc(4096, bytes);
    uint64_t* b = (uint64_t*)aligned_alloc(4096, bytes);
    const unsigned long nodes = 1;
    if (strcmp(how, "task") == 0)
        expect(syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, 64) == 0, "set_mempolicy");
    else
        expect(syscall(SYS_mbind, a, bytes, MPOL_PREFERRED, &nodes, 64, 0) == 0, "mbind");
    core_start_in(a, b);
    core_run(CORE_ITERATIONS);
    int mode = -1;
    unsigned long seen[16] = {0};
    if (strcmp(how, "task") == 0) {
        expect(syscall(SYS_get_mempolicy, &mode, seen, 1024, NULL, 0) == 0 && mode == MPOL_INTERLEAVE &&
                   seen[0] == 1,
               "the task's policy is kept");
    }
    printf("looked\n");
    return core_end();
}
